//! The threshold from the agent's own histogram, for when there is no controller. Pure.
//!
//! The same idea as the controller's: the survival curve's quantile over the shortest window with
//! enough calls and over one five times as long, whichever is larger, so that it goes up fast and
//! comes down slowly. Cancelled primaries are in it as censored: without them the threshold would
//! sink below what it is meant to be and the rate run away (C07).

use std::collections::VecDeque;
use std::time::Duration;

use hedgerow_protocol::latency::{Histogram, SparseHistogram, SurvivalCurve};
use hedgerow_protocol::limits::THRESHOLD_CALLS_MIN;
use hedgerow_protocol::units::{Quantile, Threshold};

/// Seconds kept.
const SECONDS_MAX: usize = 60;
/// Calls that end a window.
const CALLS_ENOUGH: u64 = 1000;
/// Seconds a window has at least.
const SECONDS_MIN: usize = 2;

/// Primaries of one second.
#[derive(Debug, Clone, Default)]
struct Second {
    done: SparseHistogram,
    censored: SparseHistogram,
}

impl Second {
    fn calls(&self) -> u64 {
        self.done.count() + self.censored.count()
    }
}

/// The last minute of a route's primaries.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    seconds: VecDeque<Second>,
}

impl Windows {
    /// A second is over.
    pub(crate) fn push(&mut self, done: SparseHistogram, censored: SparseHistogram) {
        self.seconds.push_front(Second { done, censored });
        self.seconds.truncate(SECONDS_MAX);
    }

    /// The shortest window with enough calls, in seconds. None under 200 calls in all (B46).
    fn shortest(&self) -> Option<usize> {
        let mut calls = 0;
        for (i, second) in self.seconds.iter().enumerate() {
            calls += second.calls();
            if calls >= CALLS_ENOUGH && i + 1 >= SECONDS_MIN {
                return Some(i + 1);
            }
        }
        (calls >= THRESHOLD_CALLS_MIN).then_some(self.seconds.len())
    }

    fn sum(&self, seconds: usize) -> (Histogram, Histogram) {
        let (mut done, mut censored) = (Histogram::new(), Histogram::new());
        for second in self.seconds.iter().take(seconds) {
            // A minute of calls is far from the most a histogram holds.
            let _ = done.add(&second.done);
            let _ = censored.add(&second.censored);
        }
        (done, censored)
    }

    /// The threshold, `in_flight` being the ages of what is unanswered now.
    pub(crate) fn threshold(
        &self,
        percentile: Quantile,
        in_flight: &Histogram,
    ) -> Option<Threshold> {
        let window = self.shortest()?;
        let quantile = |seconds| {
            let (done, mut censored) = self.sum(seconds);
            let _ = censored.add(in_flight);
            SurvivalCurve::estimate(&done, &censored).quantile(percentile.get())
        };
        let threshold = quantile(window).max(quantile((5 * window).min(SECONDS_MAX)))?;
        Some(Threshold::clamped(threshold))
    }

    /// What an answer typically takes: the median of what was answered. None under 200 calls.
    pub(crate) fn typical(&self) -> Option<Duration> {
        let (done, _) = self.sum(self.shortest()?);
        done.quantile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn second(latencies: impl IntoIterator<Item = Duration>) -> SparseHistogram {
        let mut histogram = Histogram::new();
        latencies
            .into_iter()
            .for_each(|latency| histogram.record(latency));
        histogram.to_sparse()
    }

    fn p95(windows: &Windows) -> Option<Threshold> {
        windows.threshold(Quantile::new(0.95).unwrap(), &Histogram::new())
    }

    #[test]
    fn b46_there_is_no_threshold_before_200_calls() {
        let mut windows = Windows::default();
        windows.push(
            second((0..199).map(|_| 10 * MS)),
            SparseHistogram::default(),
        );
        assert_eq!(p95(&windows), None);
        windows.push(second([10 * MS]), SparseHistogram::default());
        assert!(p95(&windows).is_some());
    }

    #[test]
    fn b31_an_agent_without_samples_has_none_rather_than_zero() {
        assert_eq!(p95(&Windows::default()), None);
        assert_eq!(Windows::default().typical(), None);
    }

    #[test]
    fn c05_sub_millisecond_latencies_are_neither_0_nor_1_ms() {
        let mut windows = Windows::default();
        let us = |i: u64| Duration::from_micros(200 + i % 100);
        windows.push(second((0..1000).map(us)), SparseHistogram::default());
        let threshold = p95(&windows).unwrap().get();
        assert!((285..305).contains(&threshold.as_micros()), "{threshold:?}");
    }

    #[test]
    fn c07_cancelled_primaries_keep_the_threshold_where_it_belongs() {
        // 5 % were cancelled at the threshold of 50 ms: p95 is there, not at p95 of the rest.
        let mut windows = Windows::default();
        for _ in 0..10 {
            windows.push(
                second((0..950).map(|i| MS + i * 50 * MS / 950)),
                second((0..50).map(|_| 51 * MS)),
            );
        }
        let threshold = p95(&windows).unwrap().get();
        assert!(
            (threshold.as_secs_f64() - 0.050).abs() < 0.002,
            "{threshold:?}"
        );
    }

    #[test]
    fn up_fast_and_down_slowly() {
        let mut windows = Windows::default();
        let flat = |ms: u32| second((0..1000).map(|_| ms * MS));
        for _ in 0..10 {
            windows.push(flat(10), SparseHistogram::default());
        }
        windows.push(flat(100), SparseHistogram::default());
        windows.push(flat(100), SparseHistogram::default());
        assert!(p95(&windows).unwrap().get() > 90 * MS);
        for _ in 0..8 {
            assert!(p95(&windows).unwrap().get() > 90 * MS);
            windows.push(flat(10), SparseHistogram::default());
        }
        for _ in 0..2 {
            windows.push(flat(10), SparseHistogram::default());
        }
        assert!(p95(&windows).unwrap().get() < 15 * MS);
    }
}
