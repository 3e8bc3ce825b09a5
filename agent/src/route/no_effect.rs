//! A policy that is valid but can do nothing.

use std::fmt;
use std::time::Duration;

/// Why hedging is on and yet no call can be hedged: see
/// [`RouteSnapshot::no_effect`](crate::RouteSnapshot::no_effect). Displayed as `no effect, because
/// ...`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoEffect {
    /// The route was given no [`Replicas`](crate::Replicas): it does not know where else to go.
    NoReplicas,
    /// A hedge has nowhere to go but to the replica that its call waits on.
    OneReplica {
        /// Further ones, which are on probation and get no hedges.
        on_probation: usize,
    },
    /// A call's deadline comes before a hedge could answer it.
    Deadline {
        /// When a call may be hedged; the policy's least threshold, while none is known.
        threshold: Duration,
        /// What an answer typically takes beyond it; zero while that is not known.
        typical: Duration,
        /// The route's default deadline. Calls that bring a longer one may still be hedged.
        deadline: Duration,
    },
    /// The only permit is the primary's.
    OnePermit,
    /// The bucket never holds a whole hedge.
    Budget,
}

impl NoEffect {
    /// A short name, for a metric's label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoReplicas => "no_replicas",
            Self::OneReplica { .. } => "one_replica",
            Self::Deadline { .. } => "deadline",
            Self::OnePermit => "one_permit",
            Self::Budget => "budget",
        }
    }
}

/// In words.
impl serde::Serialize for NoEffect {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for NoEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no effect, because ")?;
        match self {
            Self::NoReplicas => f.write_str(
                "the route has no list of replicas to send a hedge to: give it one when it is built",
            ),
            Self::OneReplica { on_probation: 0 } => {
                f.write_str("there is only one replica, and a hedge goes to another one")
            }
            Self::OneReplica { on_probation } => write!(
                f,
                "there is only one replica but for {on_probation} on probation, and a hedge goes \
                 to another one"
            ),
            Self::Deadline {
                threshold,
                typical,
                deadline,
            } if threshold < deadline => write!(
                f,
                "a hedge sent at {threshold:?} would take some {typical:?} more, and calls end at \
                 their deadline of {deadline:?}"
            ),
            Self::Deadline {
                threshold,
                deadline,
                ..
            } => write!(
                f,
                "calls may be hedged after {threshold:?}, and end at their deadline of {deadline:?}"
            ),
            Self::OnePermit => {
                f.write_str("max_in_flight is 1: the primary has the only permit there is")
            }
            Self::Budget => f.write_str("the budget never grants a whole hedge"),
        }
    }
}

/// What decides whether a hedge is possible at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means {
    /// Replicas to pick from, those on probation among them.
    pub(crate) replicas: usize,
    pub(crate) on_probation: usize,
    pub(crate) attempts_alive: u64,
    pub(crate) cap: f64,
    pub(crate) budget: f64,
    pub(crate) threshold: Option<Duration>,
    pub(crate) typical: Duration,
    pub(crate) deadline: Duration,
}

/// Why nothing comes of hedging, where nothing does.
pub(crate) fn no_effect(means: &Means) -> Option<NoEffect> {
    let Means {
        replicas,
        on_probation,
        threshold,
        typical,
        deadline,
        ..
    } = *means;
    if replicas == 0 {
        return Some(NoEffect::NoReplicas);
    }
    // Probation of all is probation of none.
    let on_probation = if on_probation < replicas {
        on_probation
    } else {
        0
    };
    if replicas - on_probation == 1 {
        return Some(NoEffect::OneReplica { on_probation });
    }
    if means.attempts_alive <= 1 {
        return Some(NoEffect::OnePermit);
    }
    if means.budget <= 0.0 || means.cap < 1.0 {
        return Some(NoEffect::Budget);
    }
    let threshold = threshold.filter(|threshold| *threshold + typical >= deadline)?;
    Some(NoEffect::Deadline {
        threshold,
        typical,
        deadline,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    const WORKS: Means = Means {
        replicas: 3,
        on_probation: 1,
        attempts_alive: 2,
        cap: 3.0,
        budget: 0.08,
        threshold: Some(Duration::from_millis(50)),
        typical: Duration::from_millis(10),
        deadline: Duration::from_millis(100),
    };

    fn said(change: impl FnOnce(&mut Means)) -> String {
        let mut means = WORKS;
        change(&mut means);
        no_effect(&means).map_or_else(String::new, |why| why.to_string())
    }

    #[test]
    fn b23_a_policy_that_can_do_nothing_says_why() {
        for works in [
            said(|_| {}),
            said(|means| means.threshold = None),
            // Probation of all is probation of none.
            said(|means| means.on_probation = 3),
        ] {
            assert_eq!(works, "");
        }
        for (said, expected) in [
            (said(|means| means.replicas = 0), "no list of replicas"),
            (
                said(|means| (means.replicas, means.on_probation) = (1, 0)),
                "only one replica, and",
            ),
            (
                said(|means| means.replicas = 2),
                "only one replica but for 1 on probation",
            ),
            (said(|means| means.attempts_alive = 1), "max_in_flight is 1"),
            (said(|means| means.cap = 0.5), "never grants"),
            (
                said(|means| means.threshold = Some(95 * MS)),
                "would take some 10ms more",
            ),
            (
                said(|means| means.threshold = Some(100 * MS)),
                "hedged after 100ms, and end at",
            ),
        ] {
            assert!(said.starts_with("no effect, because "), "{said}");
            assert!(said.contains(expected), "{said}");
        }
    }
}
