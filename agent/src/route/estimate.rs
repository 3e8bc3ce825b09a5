//! The agent's own threshold: the healthy majority's, held to what really crosses, with room in the
//! budget for the rest.

use std::collections::BTreeSet;
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::units::{Quantile, Threshold};

use crate::stats::replica::ReplicaSecond;
use crate::threshold::{Aimed, Room, Second, Trim, Windows};

/// Seconds between two looks at each replica's samples, where crossing tells nobody apart.
const BY_SAMPLES_EVERY: u64 = 5;

/// What a route is held to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    pub(crate) percentile: Quantile,
    /// None: nothing is hedged, so it is for nobody to make room.
    pub(crate) budget: Option<f64>,
    /// Whether what crossed last crossed the agent's own threshold.
    pub(crate) own_in_use: bool,
}

/// Calls of one second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) started: u64,
    pub(crate) crossed: u64,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    windows: Windows,
    trim: Trim,
    room: Room,
    /// Those that are slow by their samples, as far as that was looked at last.
    by_samples: BTreeSet<ReplicaName>,
    /// In none of the figures, as they are what is slow.
    left_out: BTreeSet<ReplicaName>,
    seconds: u64,
}

impl Estimate {
    /// What crossed in a second that is over, of all calls and of each replica's.
    pub(crate) fn crossed(
        &mut self,
        calls: Calls,
        replicas: &[ReplicaSecond],
        probation: &[ReplicaName],
        aim: &Aim,
    ) {
        let mut healthy = calls;
        let mut on_probation = 0;
        for own in replicas {
            if probation.contains(&own.replica) {
                on_probation += own.growth.crossed;
            }
            if self.left_out.contains(&own.replica) {
                // What ends as the second does may be counted on either side of it.
                healthy.started = healthy.started.saturating_sub(own.growth.started);
                healthy.crossed = healthy.crossed.saturating_sub(own.growth.crossed);
            }
        }
        self.room.second(calls.started, on_probation);
        let target = aim.percentile.tail();
        if aim.own_in_use && self.tail(aim) >= self.trim.tail(target) {
            self.trim.second(healthy.started, healthy.crossed, target);
        } else {
            self.trim.pause();
        }
    }

    /// Its samples. `suspects`: replicas whose last word was that they are bad.
    pub(crate) fn samples(&mut self, second: Second, mut suspects: Vec<ReplicaName>, aim: &Aim) {
        self.windows.push(second);
        suspects.extend(self.by_samples.iter().cloned());
        let target = aim.percentile.tail();
        self.left_out = self.windows.named(target, &suspects);
        self.seconds += 1;
        if self.seconds.is_multiple_of(BY_SAMPLES_EVERY) {
            let named = !self.left_out.is_subset(&self.by_samples);
            self.by_samples = if named {
                BTreeSet::new()
            } else {
                self.windows.slow_by_samples(aim.percentile)
            };
            self.left_out.extend(self.by_samples.iter().cloned());
        }
    }

    /// The share of calls that is to cross: such that the policy's really does, less what there is
    /// no room for.
    fn tail(&self, aim: &Aim) -> f64 {
        let target = aim.percentile.tail();
        let tail = self.trim.tail(target);
        match aim.budget {
            Some(budget) => self.room.within(tail, target, budget),
            None => tail,
        }
    }

    /// Where room is made, none is left for more than the tail.
    fn aimed(&self, aim: &Aim) -> Aimed {
        let tail = self.tail(aim);
        let percentile = Quantile::new(1.0 - tail).unwrap_or(aim.percentile);
        if tail < self.trim.tail(aim.percentile.tail()) {
            Aimed::Exactly(percentile)
        } else {
            Aimed::OrWhereFlat(percentile)
        }
    }

    /// The threshold, where there are enough calls. `in_flight`: ages of what is unanswered. They
    /// are not known by replica: where one is left out, nearly all that stays in flight is its own,
    /// so they are left out, too, and the others' slow calls show when they end.
    pub(crate) fn threshold(
        &self,
        aim: &Aim,
        in_flight: impl FnOnce() -> Histogram,
    ) -> Option<Threshold> {
        let in_flight = if self.left_out.is_empty() {
            in_flight()
        } else {
            Histogram::new()
        };
        self.windows
            .threshold(self.aimed(aim), &self.left_out, &in_flight)
    }

    /// The same and what an answer typically takes, before the second under way is over. None where replicas are left out: which of its
    /// samples are theirs is told when it is.
    pub(crate) fn early(
        &self,
        so_far: Second,
        aim: &Aim,
        in_flight: impl FnOnce() -> Histogram,
    ) -> Option<(Threshold, Option<Duration>)> {
        if !self.left_out.is_empty() {
            return None;
        }
        let mut windows = self.windows.clone();
        windows.push(so_far);
        let threshold = windows.threshold(self.aimed(aim), &self.left_out, &in_flight())?;
        Some((threshold, windows.typical(&self.left_out)))
    }

    /// What an answer typically takes where a hedge would go.
    pub(crate) fn typical(&self) -> Option<Duration> {
        self.windows.typical(&self.left_out)
    }
}
