//! What is read from a run.

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::Totals;

use super::world::{Row, World};

impl World {
    /// Rows of the seconds after `from` up to and with `to`.
    pub(super) fn between(&self, from: u64, to: u64) -> &[Row] {
        &self.rows[from as usize..(to as usize).min(self.rows.len())]
    }

    /// The row of a second, counted from 1.
    pub(super) fn row(&self, second: u64) -> &Row {
        &self.rows[second as usize - 1]
    }

    pub(super) fn hedge_rate(&self, from: u64, to: u64) -> f64 {
        let rows = self.between(from, to);
        let sum =
            |of: fn(&Totals) -> u64| rows.iter().map(|row| of(&row.totals)).sum::<u64>() as f64;
        sum(|t| t.hedged) / sum(|t| t.started)
    }

    /// What callers of treated calls waited.
    pub(super) fn waited(&self, from: u64, to: u64) -> Histogram {
        let mut sum = Histogram::new();
        for row in self.between(from, to) {
            row.treated.add_to(&mut sum);
        }
        sum
    }

    pub(super) fn threshold_ms(&self, second: u64) -> f64 {
        let live = self.row(second).decision.live;
        live.threshold.unwrap().get().as_secs_f64() * 1e3
    }

    /// Changes of mode: second, mode, words.
    pub(super) fn changes(&self) -> Vec<(u64, Mode, &str)> {
        self.rows
            .iter()
            .filter_map(|row| {
                let change = &row.decision.change.as_ref()?.transition;
                Some((row.second, change.to, change.words.as_str()))
            })
            .collect()
    }

    /// One off after `fault` and one on after `mended`, each within so many seconds, and nothing
    /// else. Returns the off's words.
    pub(super) fn one_off_one_on(
        &self,
        (fault, off_within): (u64, u64),
        (mended, on_within): (u64, u64),
    ) -> &str {
        let changes = self.changes();
        assert_eq!(changes.len(), 3, "{changes:?}");
        let [_, (off, _, words), (on, mode, _)] = changes[..] else {
            unreachable!("three changes were counted");
        };
        assert!(off > fault && off <= fault + off_within, "{changes:?}");
        assert!(on > mended && on <= mended + on_within, "{changes:?}");
        assert_eq!(mode, Mode::On);
        assert_eq!(self.seconds_over_budget(), 0);
        words
    }

    /// Changes from hedging on to anything else.
    pub(super) fn offs(&self) -> Vec<u64> {
        let offs = self.rows.iter().filter(|row| {
            let change = row.decision.change.as_ref();
            change.is_some_and(|change| change.transition.from == Mode::On)
        });
        offs.map(|row| row.second).collect()
    }

    pub(super) fn seconds_over_budget(&self) -> usize {
        self.rows
            .iter()
            .filter(|row| row.decision.over_budget)
            .count()
    }
}
