//! Delay against extra load and hedged percentiles.

use std::time::Duration;

use hedgerow_protocol::units::Ratio;

use super::distribution::Distribution;
use super::exact::parts;
use super::hedging::Hedging;
use super::percentile::Percentile;

/// What hedging at one delay costs and buys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hedged {
    /// A call that lasts longer is hedged.
    pub delay: Duration,
    /// Hedges for each call, 0 to 1.
    pub extra_load: f64,
    /// Percentiles of what callers wait, as in [`Percentile::SHOWN`]; `None` where not known.
    pub latencies: [Option<Duration>; Percentile::SHOWN.len()],
}

impl Hedged {
    /// One of the percentiles; `None` where it is not known, or not among [`Percentile::SHOWN`].
    pub fn at(&self, percentile: Percentile) -> Option<Duration> {
        let place = Percentile::SHOWN.iter().position(|&it| it == percentile)?;
        self.latencies[place]
    }
}

impl Distribution {
    /// Hedging each call that lasts longer than a delay, where a share of slowness is common to the
    /// call and its hedge.
    pub fn hedged(&self, delay: Duration, shared: Ratio) -> Hedged {
        let hedging = Hedging::every(self, delay).sharing(parts(shared.get()));
        Hedged {
            delay,
            extra_load: self.crossed(delay),
            latencies: Percentile::SHOWN.map(|percentile| hedging.percentile(percentile)),
        }
    }

    /// The curve over all delays that are exceeded, ascending. Where there are more than `rows_max`
    /// (2 at least), it ends with the first that no shown percentile gains from, and has those whose
    /// extra loads are spread most evenly on a logarithmic scale.
    pub fn curve(&self, shared: Ratio, rows_max: usize) -> Vec<Hedged> {
        let mut delays: Vec<_> = self.delays().collect();
        let rows_max = rows_max.max(2);
        if delays.len() > rows_max {
            // Where no more calls cross than may be beyond a percentile, it is at or before the delay.
            let [.., last] = Percentile::SHOWN;
            let gaining = delays.partition_point(|&delay| self.crossed(delay) > last.beyond());
            delays.truncate((gaining + 1).max(2));
        }
        if delays.len() > rows_max {
            delays = self.spread(&delays, rows_max);
        }
        delays
            .into_iter()
            .map(|delay| self.hedged(delay, shared))
            .collect()
    }

    fn spread(&self, delays: &[Duration], rows: usize) -> Vec<Duration> {
        let last = delays.len() - 1;
        let (most, least) = (self.crossed(delays[0]), self.crossed(delays[last]));
        let mut chosen: Vec<_> = (0..rows)
            .map(|row| {
                let load = most * (least / most).powf(row as f64 / (rows - 1) as f64);
                delays[delays
                    .partition_point(|&delay| self.crossed(delay) > load)
                    .min(last)]
            })
            .collect();
        chosen.dedup();
        chosen
    }
}
