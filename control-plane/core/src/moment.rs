//! Time as the core sees it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, as the duration since 1970 on a clock that only goes forward.
///
/// The caller anchors its monotonic clock to the wall clock once, when it starts: decisions are then
/// made on monotonic time (a step of the wall clock changes nothing, P18), while what is stored and
/// shown still reads as a date. In a simulation it starts wherever the scenario says.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment {
    millis: u64,
}

impl Moment {
    /// From milliseconds since 1970.
    pub const fn from_millis(millis: u64) -> Self {
        Self { millis }
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> u64 {
        self.millis
    }

    /// Time since `earlier`; zero where that lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.millis.saturating_sub(earlier.millis))
    }

    /// `after` later.
    #[must_use]
    pub const fn plus(self, after: Duration) -> Self {
        Self {
            millis: self.millis.saturating_add(after.as_millis() as u64),
        }
    }
}
