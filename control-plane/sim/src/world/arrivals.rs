//! When calls come: Poisson, at a rate that surges change.

use super::{Event, World};

/// A tenth of a second: a gap between calls beyond it is looked at again when traffic changes.
const PATIENCE: u64 = 100_000;

impl World<'_> {
    /// Calls a second, now.
    pub(super) fn rate(&self) -> f64 {
        self.scenario.fleet.calls_per_s * self.scenario.traffic(self.t())
    }

    /// Draws when the next call comes. A gap that is long and reaches into another traffic is drawn
    /// anew from there, which is as good (arrivals remember nothing): after a lull of one call an
    /// hour calls come at once.
    pub(super) fn next_arrival(&mut self) {
        let (now, rate) = (self.now(), self.rate());
        let at = (rate > 0.0).then(|| {
            let gap = self.arrivals.exponential(1e6 / rate);
            now.saturating_add(gap as u64).saturating_add(1)
        });
        let changes = self.weather.traffic_changes_after(now);
        match (at, changes) {
            (Some(at), Some(change)) if at - now > PATIENCE && change < at => {
                self.clock.at(change, Event::OtherTraffic);
            }
            (Some(at), _) => self.clock.at(at, Event::Arrival),
            (None, Some(change)) => self.clock.at(change, Event::OtherTraffic),
            (None, None) => {}
        }
    }
}
