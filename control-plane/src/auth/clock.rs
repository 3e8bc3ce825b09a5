//! The wall clock: what has to hold across processes and restarts (sessions, links, tokens, notices)
//! is dated by it. Decisions are not.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hedgerow_core::moment::Moment;

use crate::clock::Clock;

/// Tells the time of day.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl WallClock {
    /// A clock that says what `now` says.
    pub fn new(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The machine's clock as it stands now, carried on by its monotonic one: steps of the machine's
    /// clock are not seen.
    pub fn steady() -> Self {
        let clock = Clock::start();
        Self::new(move || clock.now())
    }

    /// The time.
    pub fn now(&self) -> Moment {
        (self.0)()
    }
}

impl Default for WallClock {
    /// The machine's.
    fn default() -> Self {
        Self::new(|| {
            let since = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            Moment::from_millis(since.as_millis() as u64)
        })
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}
