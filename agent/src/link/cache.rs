//! What must outlive a stream on the agent's side of it: the one report under way, and the count.
//!
//! The directives held and the counters live in the host. A report that was sent and not
//! acknowledged may have been counted or not: only the controller knows, by its sequence number. It
//! is therefore kept word for word and sent again, on whichever stream comes next, until it is
//! acknowledged. One is enough, and bounds what an agent keeps for a controller that is gone.

use std::time::Duration;

use hedgerow_protocol::ids::Sequence;
use hedgerow_protocol::report::Report;
use tokio::time::Instant;

use crate::host::Host;

/// The wire's resolution.
const COVERS_MIN: Duration = Duration::from_micros(1);

/// The report under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    last: Sequence,
    report: Option<Report>,
    collected: Instant,
}

impl UnderWay {
    /// None yet. The first report will cover the time from `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            last: Sequence(0),
            report: None,
            collected: now,
        }
    }

    /// Collects the next report, unless one is under way: then that one it is.
    pub(crate) fn collect(&mut self, host: &dyn Host, now: Instant) -> &Report {
        let Self {
            last,
            report,
            collected,
        } = self;
        report.get_or_insert_with(|| {
            *last = last.next();
            // A report covers some time, by contract; a coarse clock may not show it.
            let covers = now.saturating_duration_since(*collected).max(COVERS_MIN);
            *collected = now;
            host.collect(*last, covers, now)
        })
    }

    /// Lets go of the report if it is the one acknowledged. A late answer to an earlier one, or one
    /// to a report never sent, changes nothing.
    pub(crate) fn acknowledge(&mut self, sequence: Sequence, host: &dyn Host) -> bool {
        let matches = self
            .report
            .as_ref()
            .is_some_and(|report| report.sequence == sequence);
        if matches {
            self.report = None;
            host.acknowledged(sequence);
        }
        matches
    }
}
