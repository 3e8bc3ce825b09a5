//! Latencies by value, however they were come by.

use std::time::Duration;

use hedgerow_protocol::latency::{COUNT_MAX, Counts, SurvivalCurve, upper_edge_us};

use super::hedging::Hedging;
use super::percentile::Percentile;

/// Longest latency of a sample: what is longer was most likely not written in milliseconds.
pub const SAMPLE_MAX: Duration = Duration::from_hours(24);
/// Most different values in a sample: 32 MB, and a goal found within a second or so.
pub const VALUES_MAX: usize = 1_000_000;
/// What an estimated curve is counted in: shares with up to twelve digits stay what they are.
const CURVE_UNITS: u64 = 1_000_000_000_000;

/// How many calls take how long: a step function with integer steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Ascending in time; the counts above strictly descend.
    points: Vec<Point>,
    /// What the counts are parts of, above 0 and at most [`COUNT_MAX`].
    total: u64,
    /// Calls it comes from.
    calls: u64,
    /// The last time that anything is known of; `MAX` where nobody is left beyond the last point.
    known_until: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    at: Duration,
    above: u64,
}

/// Why latencies make no distribution.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// Nothing, or nothing but counts of zero.
    #[error("there are no latencies: expected at least one value with a count above 0")]
    Empty,
    /// More than can be counted exactly.
    #[error("too many latencies: expected at most {COUNT_MAX} together")]
    TooMany,
    /// More values than are gone through.
    #[error(
        "{0} different values: expected at most {VALUES_MAX}; round them, as to 0.01 milliseconds"
    )]
    TooManyValues(usize),
    /// Negative, not a number, or in another unit.
    #[error(
        "{0} is not a latency: expected milliseconds, a number from 0 to 86400000, such as 12.5"
    )]
    Latency(f64),
}

/// A latency from milliseconds, 0 to a day, to the nanosecond: decimals with up to six digits after
/// the point are exact.
pub fn latency(millis: f64) -> Result<Duration, SampleError> {
    if (0.0..=SAMPLE_MAX.as_millis() as f64).contains(&millis) {
        Ok(Duration::from_nanos((millis * 1e6).round() as u64))
    } else {
        Err(SampleError::Latency(millis))
    }
}

impl Distribution {
    /// From counts by latency, in any order; those of equal latencies are added up, and zero counts
    /// are nothing. Exact. Refuses latencies over [`SAMPLE_MAX`], more than [`COUNT_MAX`] calls, and
    /// more than [`VALUES_MAX`] values.
    pub fn of_counts(
        counts: impl IntoIterator<Item = (Duration, u64)>,
    ) -> Result<Self, SampleError> {
        let mut counts: Vec<_> = counts.into_iter().filter(|&(_, count)| count > 0).collect();
        counts.sort_unstable_by_key(|&(at, _)| at);
        let last = counts.last().ok_or(SampleError::Empty)?.0;
        if last > SAMPLE_MAX {
            return Err(SampleError::Latency(last.as_secs_f64() * 1e3));
        }
        let total = counts
            .iter()
            .try_fold(0_u64, |sum, &(_, count)| sum.checked_add(count))
            .filter(|&total| total <= COUNT_MAX)
            .ok_or(SampleError::TooMany)?;
        let mut points: Vec<Point> = Vec::new();
        let mut above = total;
        for (at, count) in counts {
            above -= count;
            match points.last_mut().filter(|last| last.at == at) {
                Some(last) => last.above = above,
                None => points.push(Point { at, above }),
            }
        }
        if points.len() > VALUES_MAX {
            return Err(SampleError::TooManyValues(points.len()));
        }
        Ok(Self {
            points,
            total,
            calls: total,
            known_until: Duration::MAX,
        })
    }

    /// From a histogram. A latency counts as its bucket's upper edge, so that what is said of it is
    /// at most a bucket's width, 2.2 %, too high.
    pub fn of_histogram(histogram: &impl Counts) -> Result<Self, SampleError> {
        Self::of_counts(
            histogram
                .pairs()
                .map(|(bucket, count)| (edge(bucket), count)),
        )
    }

    /// From an estimated curve, with upper edges as in [`of_histogram`](Self::of_histogram). Of what
    /// the curve does not know there is no value.
    pub fn of_curve(curve: &SurvivalCurve) -> Result<Self, SampleError> {
        let known_until = curve.known_buckets().checked_sub(1).map(edge);
        let known_until = known_until.ok_or(SampleError::Empty)?;
        let mut points = Vec::new();
        let mut left = CURVE_UNITS;
        for step in curve.steps() {
            let above = (step.survival * CURVE_UNITS as f64).round() as u64;
            if above < left {
                left = above;
                points.push(Point {
                    at: edge(step.bucket),
                    above,
                });
            }
        }
        Ok(Self {
            points,
            total: CURVE_UNITS,
            calls: curve.at_risk(0).round() as u64,
            known_until: if left == 0 {
                Duration::MAX
            } else {
                known_until
            },
        })
    }

    /// Calls it comes from.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Different latencies in it.
    pub fn values(&self) -> usize {
        self.points.len()
    }

    /// A percentile without hedging: the first latency with at most 1 - q of the calls above it.
    /// `None` where that is not known.
    pub fn percentile(&self, percentile: Percentile) -> Option<Duration> {
        // A delay nobody crosses.
        Hedging::every(self, Duration::MAX).percentile(percentile)
    }

    /// The share of calls that last longer than a delay, 0 to 1. One that lasts exactly as long is
    /// not hedged.
    pub fn crossed(&self, delay: Duration) -> f64 {
        self.above(delay) as f64 / self.total as f64
    }

    /// Delays worth a look, ascending: the values themselves, as between two of them the extra load
    /// is that of the lower one and the hedge only later. Without those nobody crosses.
    pub(super) fn delays(&self) -> impl DoubleEndedIterator<Item = Duration> + Clone + '_ {
        let crossed = self.points.partition_point(|point| point.above > 0);
        self.points[..crossed].iter().map(|point| point.at)
    }

    /// Parts of the total that take longer.
    pub(super) fn above(&self, latency: Duration) -> u64 {
        self.points
            .partition_point(|point| point.at <= latency)
            .checked_sub(1)
            .map_or(self.total, |last| self.points[last].above)
    }

    /// The first value, or value and `after`, from which on `reached` holds. It has to go on holding
    /// once it does: the values are halved rather than gone through.
    pub(super) fn first(
        &self,
        after: Duration,
        reached: impl Fn(Duration) -> bool,
    ) -> Option<Duration> {
        let time = |point: &Point| point.at.saturating_add(after);
        let first = self.points.partition_point(|point| !reached(time(point)));
        self.points.get(first).map(time)
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn known_until(&self) -> Duration {
        self.known_until
    }
}

fn edge(bucket: usize) -> Duration {
    Duration::from_nanos((upper_edge_us(bucket) * 1e3).ceil() as u64)
}
