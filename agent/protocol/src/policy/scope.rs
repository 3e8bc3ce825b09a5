//! What a policy is for: one operation, one dependency, or all dependencies that a pattern covers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{DependencyName, NameError, OperationName, RouteKey};

/// What a policy is for. As text: `catalog`, `catalog get-item` (a space between dependency and
/// operation, as in the record), or a pattern, `catalog-*`.
///
/// Of several that cover a route the narrowest holds: an operation before its dependency, a
/// dependency before patterns, a pattern with more letters before one with fewer (of two with as
/// many, the one that is first by name).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PolicyScope {
    /// All operations of a dependency but those with a policy of their own.
    Dependency(DependencyName),
    /// One operation of one dependency.
    Operation(RouteKey),
    /// Every dependency that has no policy of its own and fits: a default.
    Pattern(DependencyPattern),
}

/// Why a text is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The dependency, or the pattern but for its stars.
    #[error("the dependency {0}")]
    Dependency(NameError),
    /// The operation.
    #[error("the operation {0}")]
    Operation(NameError),
    /// A pattern with an operation.
    #[error("a pattern covers whole dependencies: expected no operation beside {0}")]
    PatternOfOperations(DependencyPattern),
}

impl PolicyScope {
    /// Of a dependency, which may be a pattern, and perhaps one of its operations.
    pub fn new(dependency: &str, operation: Option<&str>) -> Result<Self, ScopeError> {
        let dependency = dependency.trim();
        let operation = operation.map(str::trim).filter(|it| !it.is_empty());
        if dependency.contains('*') {
            let pattern = DependencyPattern::new(dependency).map_err(ScopeError::Dependency)?;
            return match operation {
                None => Ok(Self::Pattern(pattern)),
                Some(_) => Err(ScopeError::PatternOfOperations(pattern)),
            };
        }
        let dependency = DependencyName::new(dependency).map_err(ScopeError::Dependency)?;
        Ok(match operation {
            None => Self::Dependency(dependency),
            Some(operation) => Self::Operation(RouteKey {
                dependency,
                operation: OperationName::new(operation).map_err(ScopeError::Operation)?,
            }),
        })
    }

    /// Whether a policy for it is for `route`, where nothing narrower is.
    pub fn covers(&self, route: &RouteKey) -> bool {
        match self {
            Self::Dependency(dependency) => *dependency == route.dependency,
            Self::Operation(one) => one == route,
            Self::Pattern(pattern) => pattern.covers(&route.dependency),
        }
    }

    /// The dependency it is for; None: a pattern, which is for many.
    pub fn dependency(&self) -> Option<&DependencyName> {
        match self {
            Self::Dependency(dependency) => Some(dependency),
            Self::Operation(route) => Some(&route.dependency),
            Self::Pattern(_) => None,
        }
    }

    /// What it is for of dependencies, as text: a name, or a pattern.
    pub fn dependency_text(&self) -> &str {
        match self {
            Self::Pattern(pattern) => pattern.as_str(),
            Self::Dependency(dependency) => dependency.as_str(),
            Self::Operation(route) => route.dependency.as_str(),
        }
    }

    /// The operation it is for; None: all of them.
    pub fn operation(&self) -> Option<&OperationName> {
        match self {
            Self::Operation(route) => Some(&route.operation),
            Self::Dependency(_) | Self::Pattern(_) => None,
        }
    }

    /// The pattern, where it is one.
    pub fn pattern(&self) -> Option<&DependencyPattern> {
        match self {
            Self::Pattern(pattern) => Some(pattern),
            Self::Dependency(_) | Self::Operation(_) => None,
        }
    }

    /// How narrow it is; of those that cover a route the greatest holds.
    pub fn rank(&self) -> (u8, usize) {
        match self {
            Self::Pattern(pattern) => (0, pattern.letters()),
            Self::Dependency(_) => (1, 0),
            Self::Operation(_) => (2, 0),
        }
    }
}

impl fmt::Display for PolicyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dependency(dependency) => dependency.fmt(f),
            Self::Operation(route) => write!(f, "{} {}", route.dependency, route.operation),
            Self::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

impl FromStr for PolicyScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        match text.trim().split_once(' ') {
            None => Self::new(text, None),
            Some((dependency, operation)) => Self::new(dependency, Some(operation)),
        }
    }
}

impl TryFrom<String> for PolicyScope {
    type Error = ScopeError;

    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<PolicyScope> for String {
    fn from(scope: PolicyScope) -> Self {
        scope.to_string()
    }
}

impl From<DependencyName> for PolicyScope {
    fn from(dependency: DependencyName) -> Self {
        Self::Dependency(dependency)
    }
}

impl From<RouteKey> for PolicyScope {
    fn from(route: RouteKey) -> Self {
        Self::Operation(route)
    }
}

/// A dependency's name in which each `*` stands for any letters, also none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DependencyPattern(std::sync::Arc<str>);

impl DependencyPattern {
    /// Checks and keeps `text`: what a dependency's name may have, and one star or more.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let letters: String = text.chars().filter(|c| *c != '*').collect();
        if !letters.is_empty() {
            // Only dots are no name, and the beginning of many.
            match DependencyName::new(&letters) {
                Ok(_) | Err(NameError::OnlyDots) => {}
                Err(NameError::Character { found, .. }) => {
                    let at = text.find(found).unwrap_or_default();
                    return Err(NameError::Character { found, at });
                }
                Err(error) => return Err(error),
            }
        }
        if text.len() > crate::ids::NAME_LEN_MAX {
            return Err(NameError::TooLong { len: text.len() });
        }
        if letters.len() == text.len() {
            return Err(NameError::Blank);
        }
        Ok(Self(text.into()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many of its letters are no stars.
    pub fn letters(&self) -> usize {
        self.0.bytes().filter(|byte| *byte != b'*').count()
    }

    /// Whether it fits a dependency. `__other__`, which counts many together, it never does.
    pub fn covers(&self, dependency: &DependencyName) -> bool {
        !dependency.is_other() && fits(self.0.as_bytes(), dependency.as_str().as_bytes())
    }
}

impl fmt::Display for DependencyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The pieces between stars, each as early as can be: linear in the name for each piece, with no way
/// back, so that no pattern is slow.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let mut pieces = pattern.split(|byte| *byte == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        let Some(at) = rest.windows(piece.len()).position(|part| part == piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_reads_as_it_is_written() {
        for text in [
            "catalog",
            "catalog get-item",
            "catalog-*",
            "*",
            "*.eu",
            "a*b*c",
        ] {
            let scope: PolicyScope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
        }
        for (text, said) in [
            ("", "the dependency must not be blank"),
            ("cat<alog", "'<'"),
            ("catalog get item", "the operation has the character ' '"),
            ("cat* get-item", "expected no operation beside cat*"),
            ("cat<*", "'<'"),
        ] {
            let problem = text.parse::<PolicyScope>().unwrap_err().to_string();
            assert!(problem.contains(said), "{text:?}: {problem}");
        }
    }

    #[test]
    fn a_pattern_fits_what_its_pieces_do() {
        let table = [
            ("*", "catalog", true),
            ("cat*", "catalog", true),
            ("cat*", "ca", false),
            ("*log", "catalog", true),
            ("*log", "logs", false),
            ("c*l*g", "catalog", true),
            ("c*x*g", "catalog", false),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("a*a*a", "aa", false),
            ("**", "x", true),
        ];
        for (pattern, name, fits) in table {
            let pattern = DependencyPattern::new(pattern).unwrap();
            let name = DependencyName::new(name).unwrap();
            assert_eq!(pattern.covers(&name), fits, "{pattern} {name}");
        }
        let all = DependencyPattern::new("*").unwrap();
        assert!(!all.covers(&DependencyName::other()));
    }

    #[test]
    fn the_narrowest_is_last_by_rank() {
        let scopes = ["*", "cat*", "catalo*", "catalog", "catalog get-item"];
        let ranks = scopes.map(|text| text.parse::<PolicyScope>().unwrap().rank());
        assert!(ranks.is_sorted(), "{ranks:?}");
    }
}
