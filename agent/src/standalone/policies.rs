//! A policy file's text, and what it says.

use std::collections::BTreeMap;
use std::ops::Range;

use hedgerow_protocol::ids::{DependencyName, NameError, RouteKey};
use hedgerow_protocol::policy::{FieldError, Policy, PolicyDraft, PolicyErrors, PolicyScope};
use serde::Deserialize;
use toml::Spanned;

/// Most bytes a policy file may have: some thousands of policies.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// Why a policy file was refused, whole. Says where in it, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFileError {
    /// Not TOML, or a key or a type that is not expected.
    #[error("line {line}, column {column}: {problem}")]
    Parse {
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong and what was expected, 300 characters of it at most.
        problem: String,
    },
    /// A `[[policy]]` with values that cannot stand.
    #[error("line {line}, column {column}: [[policy]] for {dependency:?}: {errors}")]
    Policy {
        /// Where the table begins, from 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// As it is written, 300 characters of it at most.
        dependency: String,
        /// Every field that cannot stand, with its range.
        errors: PolicyErrors,
    },
    /// Two policies for the same.
    #[error(
        "line {line}, column {column}: there is a [[policy]] for {scope} in line {first} \
         already; expected one for each dependency, operation or pattern"
    )]
    Duplicate {
        /// Where the second table begins, from 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// For what.
        scope: PolicyScope,
        /// Where the first one begins.
        first: usize,
    },
    /// No policy at all: more likely a file that is not written yet than one that is meant so.
    #[error("no policy; expected [[policy]] tables, or `policy = []` where none is meant")]
    Empty,
    /// More than a megabyte.
    #[error("larger than {BYTES_MAX} bytes")]
    TooLarge,
    /// Not text.
    #[error("not UTF-8 from byte {valid_up_to} on")]
    NotText {
        /// Bytes that are.
        valid_up_to: usize,
    },
}

/// What a policy file says: one policy for each dependency, operation or pattern.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Policies(BTreeMap<PolicyScope, Policy>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    policy: Option<Vec<Spanned<PolicyDraft>>>,
}

impl Policies {
    pub(crate) fn parse(content: &[u8]) -> Result<Self, PolicyFileError> {
        if content.len() > BYTES_MAX {
            return Err(PolicyFileError::TooLarge);
        }
        let text = std::str::from_utf8(content).map_err(|error| PolicyFileError::NotText {
            valid_up_to: error.valid_up_to(),
        })?;
        let file: File = toml::from_str(text).map_err(|error| {
            let (line, column) = place(text, error.span());
            PolicyFileError::Parse {
                line,
                column,
                problem: problem(text, &error),
            }
        })?;
        let mut policies = BTreeMap::new();
        // Where each table is; its line is looked for only where it is to be told.
        let mut spans: BTreeMap<PolicyScope, Range<usize>> = BTreeMap::new();
        for entry in file.policy.ok_or(PolicyFileError::Empty)? {
            let span = entry.span();
            let policy = checked(text, entry)?;
            let scope = policy.scope().clone();
            if let Some(first) = spans.get(&scope) {
                let (line, column) = place(text, Some(span));
                let (first, _) = place(text, Some(first.clone()));
                return Err(PolicyFileError::Duplicate {
                    line,
                    column,
                    scope,
                    first,
                });
            }
            spans.insert(scope.clone(), span);
            policies.insert(scope, policy);
        }
        Ok(Self(policies))
    }

    /// The policy for a route: of those that cover it the narrowest.
    pub(crate) fn of(&self, route: &RouteKey) -> Option<&Policy> {
        let covering = self.0.values().rev();
        let covering = covering.filter(|policy| policy.scope().covers(route));
        // Of equal ones the last is taken: the first by name.
        covering.max_by_key(|policy| policy.scope().rank())
    }

    /// The policy that is written for exactly this.
    pub(super) fn own(&self, scope: &PolicyScope) -> Option<&Policy> {
        self.0.get(scope)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&PolicyScope, &Policy)> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What is wrong. One bracket too few is common, and TOML's own words for it are about maps.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().and_then(|span| text.get(span.start..));
    let one_bracket = at
        .and_then(|at| at.strip_prefix('['))
        .is_some_and(|header| header.trim_start().starts_with("policy"));
    if one_bracket && error.message().starts_with("invalid type: map") {
        return "[policy] is one table; expected [[policy]], with two brackets".to_owned();
    }
    shown(error.message().trim_end())
}

fn checked(text: &str, entry: Spanned<PolicyDraft>) -> Result<Policy, PolicyFileError> {
    let span = entry.span();
    let draft = entry.into_inner();
    let dependency = shown(&draft.dependency);
    let policy = Policy::try_from(draft).and_then(|policy| {
        if policy
            .scope()
            .dependency()
            .is_some_and(DependencyName::is_other)
        {
            // What is counted under it has nothing in common.
            return Err(PolicyErrors(vec![FieldError {
                field: "dependency",
                message: NameError::Reserved.to_string(),
            }]));
        }
        Ok(policy)
    });
    policy.map_err(|errors| {
        let (line, column) = place(text, Some(span));
        PolicyFileError::Policy {
            line,
            column,
            dependency,
            errors,
        }
    })
}

/// Longest text of a file that is shown in an error: it goes into logs.
const SHOWN_MAX: usize = 300;

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Line and column, from 1, of where a span begins.
fn place(text: &str, span: Option<Range<usize>>) -> (usize, usize) {
    let at = span.map_or(0, |span| span.start);
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or(before);
    (line, last.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use hedgerow_protocol::policy::Intent;
    use hedgerow_protocol::units::Quantile;

    use super::*;

    fn refused(text: &str) -> String {
        Policies::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn every_key_of_a_policy_and_the_defaults_of_those_that_are_absent() {
        let policies = Policies::parse(
            br#"
            [[policy]]
            dependency = "catalog"
            intent = "hedge"
            percentile = 0.99
            budget = 0.02
            holdout = 0.0
            error_limit = 0.1
            threshold_min_ms = 2.5
            threshold_max_ms = 250.0
            probation = false
            goal = 0.999
            pool = "checkout"
            objective_ms = 120.0

            [[policy]]
            dependency = "search"
            "#,
        )
        .unwrap();
        assert_eq!(policies.len(), 2);
        let catalog = policies.own(&"catalog".parse().unwrap()).unwrap();
        assert_eq!(catalog.intent(), Intent::Hedge);
        assert_eq!(catalog.percentile().get(), 0.99);
        assert!(!catalog.probation());
        assert_eq!(catalog.goal().map(Quantile::get), Some(0.999));
        assert_eq!(
            catalog.pool().map(ToString::to_string),
            Some("checkout".into())
        );
        let search = "search".parse().unwrap();
        assert_eq!(
            policies.own(&search),
            Some(&Policy::observing(search.clone()))
        );
        assert_eq!(policies.own(&"other".parse().unwrap()), None);
    }

    #[test]
    fn the_example_of_the_controllers_seed_file_is_a_policy_file() {
        let example = include_str!("../../../deploy/config.example.toml");
        let from = example.find("# [[policy]]").unwrap();
        let lines = example[from..].lines().take_while(|line| !line.is_empty());
        let lines: Vec<_> = lines.map(|line| line.trim_start_matches("# ")).collect();
        let text = lines.join("\n");
        let policies = Policies::parse(text.as_bytes()).unwrap();
        assert_eq!(
            policies.own(&"catalog".parse().unwrap()).unwrap().intent(),
            Intent::Hedge
        );
    }

    #[test]
    fn none_is_meant_only_where_it_says_so() {
        assert_eq!(Policies::parse(b"policy = []"), Ok(Policies::default()));
        for nothing in ["", "# [[policy]]\n", "\n\n"] {
            assert_eq!(
                Policies::parse(nothing.as_bytes()),
                Err(PolicyFileError::Empty)
            );
        }
    }

    #[test]
    fn what_cannot_stand_is_named_with_its_place() {
        for (text, expected) in [
            (
                "[[policy]]\ndependency = \"a\"\nbudgett = 0.1\n",
                "line 3, column 1: unknown field `budgett`",
            ),
            (
                "[[policy]]\ndependency = \"a\"\n  budget = \"high\"\n",
                "line 3, column 12: invalid type",
            ),
            (
                "[[policy]]\nintent = \"hedge\"\n",
                "line 1, column 1: missing field `dependency`",
            ),
            (
                "[[policy]]\ndependency = \"a\"\nintent = \"on\"\n",
                "line 3, column 10: unknown variant `on`",
            ),
            ("[[policy]\n", "line 1, column "),
            (
                "# one\n[policy]\ndependency = \"a\"\n",
                "line 2, column 1: [policy] is one table; expected [[policy]], with two brackets",
            ),
            (
                "polices = []\n",
                "line 1, column 1: unknown field `polices`",
            ),
            (
                "# one\n\n[[policy]]\ndependency = \"a\"\npercentile = 95\nbudget = 0.5\n",
                "line 3, column 1: [[policy]] for \"a\": percentile: 95 is out of range: expected a \
                 number from 0.92 to 0.999; budget: 0.5 ",
            ),
            (
                "[[policy]]\ndependency = \"a\"\n[[policy]]\ndependency = \"a\"\n",
                "line 3, column 1: there is a [[policy]] for a in line 1 already",
            ),
        ] {
            let refused = refused(text);
            assert!(refused.starts_with(expected), "{refused}\nfor {expected}");
        }
        assert_eq!(
            Policies::parse(b"policy = [] # \xff"),
            Err(PolicyFileError::NotText { valid_up_to: 14 })
        );
        assert_eq!(
            Policies::parse(&vec![b'#'; BYTES_MAX + 1]),
            Err(PolicyFileError::TooLarge)
        );
    }

    #[test]
    fn x30_hostile_text_is_refused_and_neither_hangs_nor_overflows() {
        let million = BYTES_MAX - 100;
        let hedged = |value: &str| format!("[[policy]]\ndependency = \"a\"\n{value}\n");
        for text in [
            format!("a = {}", "[".repeat(million)),
            format!("a = {}{}", "[".repeat(million / 2), "]".repeat(million / 2)),
            format!("a = {}", "{a=".repeat(million / 3)),
            format!("{}a = 1", "a.".repeat(million / 2)),
            format!("[{}a]", "a.".repeat(million / 2)),
            format!("[[{}a]]", "a.".repeat(million / 2)),
            format!("policy = \"{}\"", "x".repeat(million)),
            hedged(&format!("budget = {}", "9".repeat(million))),
            hedged(&format!("budget = 0.{}", "0".repeat(million))),
            hedged("budget = nan"),
            hedged("budget = +inf"),
            hedged("budget = -0.0"),
            hedged("percentile = 1e308"),
            hedged("holdout = 1e-999999999"),
            hedged("threshold_min_ms = 1e308"),
            hedged("threshold_max_ms = -1e308"),
            hedged("attempts = 9223372036854775807"),
            hedged("attempts = -1"),
            hedged("budget = 0.1\nbudget = 0.1"),
            hedged("dependency = \"b\""),
            "[[policy]]\ndependency = \"\u{202e}catalog\"\n".to_owned(),
            "[[policy]]\ndependency = \"__other__\"\n".to_owned(),
            "[policy]\ndependency = \"a\"\n".to_owned(),
        ] {
            let start = text.chars().take(40).collect::<String>();
            let outcome = Policies::parse(text.as_bytes());
            if text.contains("1e-9999") {
                assert!(outcome.is_ok(), "zero is a holdout");
                continue;
            }
            let error = outcome.expect_err(&start).to_string();
            assert!(
                error.len() < 2_000,
                "{start}: {} bytes of error",
                error.len()
            );
        }
    }

    #[test]
    fn x31_a_byte_order_mark_and_carriage_returns_are_no_part_of_the_text() {
        let text = "\u{feff}[[policy]]\r\ndependency = \"catalog\"\r\nbudget = 0.1\r\n";
        assert_eq!(Policies::parse(text.as_bytes()).unwrap().len(), 1);
        let wrong = "\u{feff}[[policy]]\r\ndependency = \"catalog\"\r\n  budget = 7\r\n";
        assert!(
            refused(wrong).starts_with("line 1, column "),
            "{}",
            refused(wrong)
        );
    }

    #[test]
    fn x32_the_largest_file_takes_no_longer_for_each_policy_than_a_small_one() {
        let file = |policies: usize| {
            let tables = (0..policies).map(|nth| format!("[[policy]]\ndependency=\"a{nth}\"\n"));
            tables.collect::<String>()
        };
        let time = |policies: usize| {
            let text = file(policies);
            assert!(text.len() <= BYTES_MAX);
            let began = std::time::Instant::now();
            assert_eq!(Policies::parse(text.as_bytes()).unwrap().len(), policies);
            began.elapsed().as_secs_f64() / policies as f64
        };
        // The best of each: other tests run meanwhile.
        let best = |policies| (0..3).map(|_| time(policies)).fold(f64::INFINITY, f64::min);
        // With a look at the text before it for each policy, this was a hundred times as much.
        let (few, many) = (best(2_000), best(32_000));
        assert!(many < 8.0 * few, "{many} s each, of a few {few} s");
    }

    #[test]
    fn p12_no_part_of_a_file_is_taken_for_more_than_it_says() {
        let text = b"[[policy]]\ndependency = \"catalog\"\nintent = \"hedge\"\nbudget = 0.08\n";
        for cut in 0..text.len() {
            // Whatever is left of it parses or does not; nothing panics.
            let _ = Policies::parse(&text[..cut]);
        }
    }
}
