//! The last thresholds, to go back to when a fault is noticed.

use std::collections::VecDeque;
use std::time::Duration;

/// How many, in slices: before a fault that is noticed after this long there is none to go back to.
const KEPT: usize = 20;

/// See the [module](self); newest last.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Recent(VecDeque<Duration>);

impl Recent {
    pub(crate) fn push(&mut self, value: Duration) {
        self.0.push_back(value);
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// The lowest: a fault pulls thresholds up before it is noticed.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.0.iter().copied().min()
    }
}
