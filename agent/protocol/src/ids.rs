//! Names and identities. A name is checked once, where it enters; inside, an invalid one cannot
//! exist, so pages, alerts and metrics need no second check.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Longest name, in bytes. A name is a metric label and a table cell: longer ones are mistakes.
pub const NAME_LEN_MAX: usize = 128;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing, or only spaces.
    #[error("must not be blank")]
    Blank,
    /// Only dots: a browser takes `.` and `..` in an address for a way through folders, so nobody
    /// could open the page of such a name.
    #[error("has only dots; expected a letter, a digit or one of _ - / : @ as well")]
    OnlyDots,
    /// Longer than [`NAME_LEN_MAX`].
    #[error("is {len} bytes long; at most {NAME_LEN_MAX} are allowed")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A character outside the allowed set. Quotes, angle brackets, spaces, control and
    /// bidirectional characters are all outside it, so that a name is harmless wherever it is shown.
    #[error(
        "has the character {found:?} at byte {at}; letters, digits and . _ - / : @ are allowed"
    )]
    Character {
        /// The offending character.
        found: char,
        /// Its byte offset.
        at: usize,
    },
    /// [`DependencyName::other`], given to something that has a name of its own.
    #[error("is kept for what is counted together; expected another name")]
    Reserved,
}

fn check_name(text: &str) -> Result<(), NameError> {
    if text.trim().is_empty() {
        return Err(NameError::Blank);
    }
    if text.len() > NAME_LEN_MAX {
        return Err(NameError::TooLong { len: text.len() });
    }
    if text.bytes().all(|byte| byte == b'.') {
        return Err(NameError::OnlyDots);
    }
    match text
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_alphanumeric() || "._-/:@".contains(*c)))
    {
        Some((at, found)) => Err(NameError::Character { found, at }),
        None => Ok(()),
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// One to 128 ASCII letters, digits and `. _ - / : @`, not only dots. Cheap to clone.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and keeps `text`.
            pub fn new(text: &str) -> Result<Self, NameError> {
                check_name(text).map(|()| Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(&text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

names! {
    /// The service an agent is linked into. It comes from the agent's credential, never from a message.
    ServiceName;
    /// What is called.
    DependencyName;
    /// One method of a dependency.
    OperationName;
    /// A place that can answer.
    ReplicaName;
    /// A failure domain of replicas and agents.
    ZoneName;
    /// Policies that lend each other their budgets.
    PoolName;
}

/// What names are counted under that are too many to be counted by themselves.
const OTHER: &str = "__other__";

impl DependencyName {
    /// Where the traffic of dependencies beyond the cap is counted. Reserved: the wire takes it, and
    /// no service gives it to a dependency of its own.
    pub fn other() -> Self {
        Self(OTHER.into())
    }

    /// Whether it is [`other`](Self::other).
    pub fn is_other(&self) -> bool {
        self.as_str() == OTHER
    }
}

/// A dependency and one of its operations: the unit that is reported, decided and directed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouteKey {
    /// What is called.
    pub dependency: DependencyName,
    /// Which of its methods.
    pub operation: OperationName,
}

impl RouteKey {
    /// Checks both names.
    pub fn new(dependency: &str, operation: &str) -> Result<Self, NameError> {
        Ok(Self {
            dependency: DependencyName::new(dependency)?,
            operation: OperationName::new(operation)?,
        })
    }

    /// Where the traffic of routes beyond the cap is counted: observed, reported as one route, and
    /// never directed.
    pub fn other() -> Self {
        Self {
            dependency: DependencyName::other(),
            operation: OperationName(OTHER.into()),
        }
    }

    /// Whether it is [`other`](Self::other).
    pub fn is_other(&self) -> bool {
        self.dependency.is_other() && self.operation.as_str() == OTHER
    }
}

impl fmt::Display for RouteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dependency, self.operation)
    }
}

/// One agent: a fresh UUIDv7 for each one built, so that two in a process, or a cloned machine,
/// are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(Uuid);

impl InstanceId {
    /// A new one. Reads the wall clock and the system's entropy: for edges only.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// From a number, for tests and simulations that need the same identity each time.
    pub const fn from_u128(value: u128) -> Self {
        Self(Uuid::from_u128(value))
    }

    /// Its first and its last eight bytes, as numbers: the first byte is the highest.
    pub const fn halves(&self) -> [u64; 2] {
        let (high, low) = self.0.as_u64_pair();
        [high, low]
    }

    /// As a number, most significant byte first.
    pub const fn as_u128(self) -> u128 {
        self.0.as_u128()
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for InstanceId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one that follows; after the last, the last: numbers come in by wire, and one that
            /// is made up must neither panic nor begin anew.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

counters! {
    /// A life of the controller's store. A restored or new store begins a higher one, which agents
    /// accept whatever its revisions say.
    Epoch;
    /// How often a dependency's policy has been changed. 0: never set.
    Revision;
    /// How often a route's mode has been changed, within an epoch.
    ModeSequence;
    /// Which decision of the controller live values come from, within an epoch.
    Tick;
    /// An agent's report, counted from 1 for each incarnation.
    Sequence;
    /// A life of one agent's counters: they start at 0 with it.
    Incarnation;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_refuse_what_could_do_harm_where_they_are_shown() {
        for (text, expected) in [
            ("", NameError::Blank),
            ("   ", NameError::Blank),
            ("<img src=x>", NameError::Character { found: '<', at: 0 }),
            ("a\"b", NameError::Character { found: '"', at: 1 }),
            (
                "a\u{202e}b",
                NameError::Character {
                    found: '\u{202e}',
                    at: 1,
                },
            ),
            ("a b", NameError::Character { found: ' ', at: 1 }),
            (".", NameError::OnlyDots),
            ("..", NameError::OnlyDots),
            ("....", NameError::OnlyDots),
        ] {
            assert_eq!(DependencyName::new(text), Err(expected), "{text:?}");
        }
        assert_eq!(
            DependencyName::new(&"x".repeat(129)),
            Err(NameError::TooLong { len: 129 })
        );
        assert!(DependencyName::new("a..").is_ok());
        assert!(ReplicaName::new("10.0.0.7:8080").is_ok());
        assert!(OperationName::new("hedgerow.v1.Fleet/Attach").is_ok());
    }

    #[test]
    fn b72_what_is_counted_together_has_a_name_like_any_other() {
        let other = RouteKey::other();
        assert_eq!(RouteKey::new("__other__", "__other__"), Ok(other.clone()));
        assert!(other.is_other());
        for (dependency, operation) in [("__others__", "__other__"), ("__other__", "get")] {
            assert!(!RouteKey::new(dependency, operation).unwrap().is_other());
        }
    }
}
