//! What is to happen, in order: by time, then as it was said.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Debug)]
struct Due<E> {
    at: u64,
    order: u64,
    event: E,
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The earliest is the greatest.
impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Virtual time, in microseconds since the beginning.
#[derive(Debug)]
pub(super) struct Clock<E> {
    now: u64,
    order: u64,
    due: BinaryHeap<Due<E>>,
}

impl<E> Default for Clock<E> {
    fn default() -> Self {
        Self {
            now: 0,
            order: 0,
            due: BinaryHeap::new(),
        }
    }
}

impl<E> Clock<E> {
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Something is to happen; what lies behind happens now.
    pub(super) fn at(&mut self, at: u64, event: E) {
        self.order += 1;
        self.due.push(Due {
            at: at.max(self.now),
            order: self.order,
            event,
        });
    }

    /// The next event, up to `end`; it is then.
    pub(super) fn next(&mut self, end: u64) -> Option<E> {
        let due = self.due.pop().filter(|due| due.at <= end)?;
        self.now = due.at;
        Some(due.event)
    }
}
