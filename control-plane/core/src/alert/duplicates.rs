//! What servers say they executed twice, beside what agents sent twice.
//!
//! Agents cannot know it: what a server does with a request that was cancelled is the server's own
//! affair. So whoever can count there tells the controller how many executions in a span were not
//! the first of their call; each hedge sent explains at most one of them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::moment::Moment;
use crate::view::DuplicatesView;

/// Spans a server may count over: shorter ones are all edges, longer ones are not kept here.
pub(crate) const OVER: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(5));
/// How much earlier than its duplicate a hedge may have been told of, or be executed after it was.
const LATE: Duration = Duration::from_secs(10);
/// Time between two marks.
const MARK_EACH: Duration = Duration::from_secs(5);

/// Hedges that agents told of in the last minutes, of agents whose other words are left out too:
/// what they send is executed all the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    total: u64,
    /// The total at some moments, oldest first.
    marks: VecDeque<(Moment, u64)>,
}

impl Sent {
    /// An agent told of so many.
    pub(crate) fn add(&mut self, hedges: u64) {
        self.total = self.total.saturating_add(hedges);
    }

    /// Each tick.
    pub(crate) fn tick(&mut self, now: Moment) {
        let last = self.marks.back();
        if last.is_some_and(|(at, _)| now.since(*at) < MARK_EACH) {
            return;
        }
        self.marks.push_back((now, self.total));
        // The oldest that is kept is the first beyond what can be asked for.
        while self
            .marks
            .get(1)
            .is_some_and(|(at, _)| now.since(*at) >= OVER.1 + LATE)
        {
            self.marks.pop_front();
        }
    }

    /// Those told of in the last `over`, and somewhat before; None: not known for so long.
    fn within(&self, now: Moment, over: Duration) -> Option<u64> {
        let mut marks = self.marks.iter().rev();
        let before = marks.find(|(at, _)| now.since(*at) >= over + LATE)?;
        Some(self.total - before.1)
    }
}

/// A server's reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Duplicates {
    pub(crate) at: Moment,
    pub(crate) over: Duration,
    pub(crate) executed: u64,
    /// Hedges that may explain them; None: not known for so long.
    pub(crate) hedges: Option<u64>,
}

impl Duplicates {
    /// A reading that has just come.
    pub(crate) fn read(now: Moment, over: Duration, executed: u64, sent: &Sent) -> Self {
        Self {
            at: now,
            over,
            executed,
            hedges: sent.within(now, over),
        }
    }

    /// Whether it still tells of the present: the next one is late, but not missing.
    pub(super) fn holds(&self, now: Moment) -> bool {
        now.since(self.at) < self.over * 2
    }

    pub(crate) fn view(&self) -> DuplicatesView {
        DuplicatesView {
            at: self.at,
            over: self.over,
            executed: self.executed,
            hedges: self.hedges,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hedges_are_counted_from_somewhat_before_the_span_and_not_guessed() {
        let at = |seconds: u64| Moment::from_millis(seconds * 1_000);
        let mut sent = Sent::default();
        for second in 0..=600 {
            sent.add(1);
            sent.tick(at(second));
        }
        assert_eq!(sent.within(at(600), Duration::from_mins(1)), Some(70));
        assert_eq!(sent.within(at(600), OVER.1), Some(310));
        assert_eq!(sent.within(at(600), Duration::from_mins(6)), None);
        assert!(sent.marks.len() <= 64, "{}", sent.marks.len());
        let mut new = Sent::default();
        new.tick(at(0));
        assert_eq!(new.within(at(60), Duration::from_mins(1)), None);
        assert_eq!(new.within(at(70), Duration::from_mins(1)), Some(0));
    }
}
