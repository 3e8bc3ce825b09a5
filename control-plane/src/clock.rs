//! The process's one clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hedgerow_core::moment::Moment;
use tokio::time::Instant;

/// Monotonic time, anchored to the wall clock once, when the process starts.
///
/// Whatever the wall clock does later, decisions and leases do not see it (P18); what is stored and
/// shown still reads as a date.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    anchor: Instant,
    anchor_is: Moment,
}

impl Clock {
    /// Anchors now. A wall clock before 1970 counts as 1970.
    pub fn start() -> Self {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self {
            anchor: Instant::now(),
            anchor_is: Moment::default().plus(since_1970),
        }
    }

    /// The present.
    pub fn now(&self) -> Moment {
        self.anchor_is.plus(self.anchor.elapsed())
    }

    /// When `moment` is on the runtime's clock; the anchor, where it lies before that.
    pub(crate) fn instant(&self, moment: Moment) -> Instant {
        self.anchor + moment.since(self.anchor_is)
    }
}
