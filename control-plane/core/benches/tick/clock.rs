//! Time by the wall, and time this thread had a processor: on a machine that others use too, only the
//! second says what the controller costs.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Seconds of both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Took {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// A measurement under way.
#[derive(Debug)]
pub(crate) struct Began {
    wall: Instant,
    cpu: f64,
}

impl Began {
    pub(crate) fn now() -> Self {
        Self {
            cpu: cpu_seconds(),
            wall: Instant::now(),
        }
    }

    pub(crate) fn took(&self) -> Took {
        Took {
            wall: self.wall.elapsed().as_secs_f64(),
            cpu: cpu_seconds() - self.cpu,
        }
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
