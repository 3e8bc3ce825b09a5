//! One way of hedging the calls of a distribution, and how long callers then wait.

use std::time::Duration;

use super::distribution::Distribution;
use super::exact::{Draw, ONE};
use super::percentile::Percentile;

/// Hedging the calls of a distribution in one certain way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hedging<'a> {
    latencies: &'a Distribution,
    delay: Duration,
    draw: Draw,
    /// 1 - phi, in parts of [`ONE`].
    apart: u64,
}

impl<'a> Hedging<'a> {
    /// Each call that crosses, its hedge independent of it.
    pub(super) fn every(latencies: &'a Distribution, delay: Duration) -> Self {
        Self {
            latencies,
            delay,
            draw: Draw::every(latencies.total()),
            apart: ONE,
        }
    }

    /// As many of those that cross as a budget allows, in parts of [`ONE`].
    pub(super) fn within(mut self, budget: u64) -> Self {
        let total = self.latencies.total();
        self.draw = Draw::within(budget, self.latencies.above(self.delay), total);
        self
    }

    /// With a share of slowness, in parts of [`ONE`], that a call has in common with its hedge.
    pub(super) fn sharing(mut self, shared: u64) -> Self {
        self.apart = ONE - shared;
        self
    }

    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// 1 - phi, in parts of [`ONE`].
    pub(super) fn apart(&self) -> u64 {
        self.apart
    }

    /// Parts of the total whose hedge would be back by a time.
    pub(super) fn hedges_back(&self, by: Duration) -> u64 {
        by.checked_sub(self.delay)
            .map_or(0, |age| self.latencies.total() - self.latencies.above(age))
    }

    /// Whether no more callers wait longer than a time than a percentile leaves.
    pub(super) fn reaches(&self, percentile: Percentile, time: Duration) -> bool {
        self.draw.reaches(
            self.latencies.above(time),
            self.hedges_back(time),
            self.latencies.total(),
            self.apart,
            percentile.tail(),
        )
    }

    /// The first such time. It is among the values and the values plus the delay, as the share that
    /// waits longer changes nowhere else, and only falls. `None` beyond what is known.
    pub(super) fn percentile(&self, percentile: Percentile) -> Option<Duration> {
        let first = |after| {
            self.latencies
                .first(after, |time| self.reaches(percentile, time))
        };
        [first(Duration::ZERO), first(self.delay)]
            .into_iter()
            .flatten()
            .min()
            .filter(|&time| time <= self.latencies.known_until())
    }
}
