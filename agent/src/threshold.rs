//! The threshold from the agent's own histogram, for when there is no controller. Pure.
//!
//! The same idea as the controller's: the survival curve's quantile over the shortest window with
//! enough calls and over one five times as long, whichever is larger, so that it goes up fast and
//! comes down slowly. Cancelled primaries are in it as censored: without them the threshold would
//! sink below what it is meant to be and the rate run away (C07). Replicas that are what is slow are
//! left out: with one of three unreachable the threshold would climb to the deadline (B08, C09).

mod room;
mod trim;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::{Histogram, SparseHistogram, SurvivalCurve, flat};
use hedgerow_protocol::limits::THRESHOLD_CALLS_MIN;
use hedgerow_protocol::majority::{CALLS_TO_COMPARE, Count};
use hedgerow_protocol::units::{Quantile, Threshold};

pub(crate) use self::room::Room;
pub(crate) use self::trim::Trim;
use crate::naming;
use crate::stats::replica::ReplicaSecond;

/// Seconds kept.
const SECONDS_MAX: usize = 60;
/// Calls that end a window.
const CALLS_ENOUGH: u64 = 1000;
/// Seconds a window has at least.
const SECONDS_MIN: usize = 2;
/// How many times as long the second window is.
const LONGER: usize = 5;
/// Most replicas that are told apart by their samples: one of more than that has fewer calls than
/// are meant to cross, so its samples alone are not what the threshold is.
const BY_SAMPLES_MAX: usize = 32;

/// Primaries of one second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Second {
    pub(crate) done: SparseHistogram,
    pub(crate) censored: SparseHistogram,
    /// The same by replica.
    pub(crate) replicas: Vec<ReplicaSecond>,
}

impl Second {
    fn calls(&self) -> u64 {
        self.done.count() + self.censored.count()
    }

    fn counts(&self) -> impl Iterator<Item = (&ReplicaName, Count)> {
        self.replicas.iter().map(|own| {
            let count = Count {
                events: own.growth.crossed,
                calls: own.growth.started,
            };
            (&own.replica, count)
        })
    }
}

/// What a threshold is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aimed {
    /// This quantile.
    Exactly(Quantile),
    /// Or, where hardly more calls would cross it, a far earlier one.
    OrWhereFlat(Quantile),
}

/// The last minute of a route's primaries, or as much of it as is looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    seconds: VecDeque<Second>,
}

impl Windows {
    /// A second is over.
    pub(crate) fn push(&mut self, second: Second) {
        self.seconds.push_front(second);
        // A busy route's windows are short: what lies beyond the longer one would be kept in vain.
        let looked_at = self.enough().map_or(SECONDS_MAX, |window| LONGER * window);
        self.seconds.truncate(looked_at.min(SECONDS_MAX));
    }

    /// The shortest window with a thousand calls, in seconds.
    fn enough(&self) -> Option<usize> {
        let mut calls = 0;
        let counted = self.seconds.iter().map(|second| {
            calls += second.calls();
            calls
        });
        let mut windows = (1..).zip(counted);
        windows
            .find(|(window, calls)| *calls >= CALLS_ENOUGH && *window >= SECONDS_MIN)
            .map(|(window, _)| window)
    }

    /// The shortest window with enough calls, in seconds. None under 200 calls in all (B46).
    fn shortest(&self) -> Option<usize> {
        self.enough().or_else(|| {
            let calls: u64 = self.seconds.iter().map(Second::calls).sum();
            (calls >= THRESHOLD_CALLS_MIN).then_some(self.seconds.len())
        })
    }

    /// Replicas that are what is slow, at most half of them; `target`: the share of calls that is
    /// meant to cross. By what each did last, by what is still in the longer window (samples of
    /// one that has just recovered are as wrong there as they were before), and the `suspects`: those
    /// named before of whose calls there are too few to say it anew.
    pub(crate) fn named(&self, target: f64, suspects: &[ReplicaName]) -> BTreeSet<ReplicaName> {
        let floor = target / 2.0;
        let all = || self.seconds.iter().flat_map(Second::counts);
        let lately = naming::named(self.seconds.iter().map(Second::counts), floor);
        let ever = naming::named([all()], floor);
        let with_calls = all().filter(|(_, count)| count.calls > 0);
        let active: BTreeSet<_> = with_calls.map(|(replica, _)| replica).collect();
        let mut named = BTreeSet::new();
        let suspects = suspects.iter().filter(|name| active.contains(name));
        for replica in suspects.cloned().chain(lately).chain(ever) {
            if named.len() < active.len() / 2 {
                named.insert(replica);
            }
        }
        named
    }

    /// The same by the samples alone: each replica's share beyond what is the quantile of the middle
    /// one. For when crossing tells nothing, because the threshold came from a mix with a bad
    /// replica in it, and is so long that even there hardly a call crosses. Dearer, as all samples
    /// are added up by replica; none where there are more than [`BY_SAMPLES_MAX`].
    pub(crate) fn slow_by_samples(&self, percentile: Quantile) -> BTreeSet<ReplicaName> {
        let mut samples: BTreeMap<&ReplicaName, (Histogram, Histogram)> = BTreeMap::new();
        let replicas = self.seconds.iter().map(|second| second.replicas.len());
        if replicas.max().is_some_and(|most| most > BY_SAMPLES_MAX) {
            return BTreeSet::new();
        }
        for own in self.seconds.iter().flat_map(|second| &second.replicas) {
            let (done, censored) = samples.entry(&own.replica).or_default();
            // A minute of calls is far from the most a histogram holds.
            for part in &own.samples.done {
                let _ = done.add(part);
            }
            for part in &own.samples.censored {
                let _ = censored.add(part);
            }
        }
        samples.retain(|_, (done, censored)| done.count() + censored.count() >= CALLS_TO_COMPARE);
        // None: beyond all that is known, so longer than any.
        let mut quantiles: Vec<_> = samples
            .values()
            .map(|(done, censored)| {
                let curve = SurvivalCurve::estimate(done, censored);
                curve.quantile(percentile.get()).unwrap_or(Duration::MAX)
            })
            .collect();
        quantiles.sort_unstable();
        let middle = quantiles.len().saturating_sub(1) / 2;
        let Some(beyond) = quantiles.get(middle).filter(|it| **it < Duration::MAX) else {
            return BTreeSet::new();
        };
        let counts = samples.iter().map(|(name, (done, censored))| {
            let above = |samples: &Histogram| {
                let share = samples.share_above(*beyond).unwrap_or(0.0);
                (share * samples.count() as f64).round() as u64
            };
            let count = Count {
                events: above(done) + above(censored),
                calls: done.count() + censored.count(),
            };
            (*name, count)
        });
        let named = naming::named([counts.collect::<Vec<_>>()], percentile.tail() / 2.0);
        named.into_iter().collect()
    }

    /// All primaries of a window but those of the replicas `without`.
    fn sum(&self, seconds: usize, without: &BTreeSet<ReplicaName>) -> (Histogram, Histogram) {
        let (mut done, mut censored) = (Histogram::new(), Histogram::new());
        let (mut left_out_done, mut left_out_censored) = (Histogram::new(), Histogram::new());
        // A minute of calls is far from the most a histogram holds.
        for second in self.seconds.iter().take(seconds) {
            let _ = done.add(&second.done);
            let _ = censored.add(&second.censored);
            let left_out = |own: &&ReplicaSecond| without.contains(&own.replica);
            for own in second.replicas.iter().filter(left_out) {
                for part in &own.samples.done {
                    let _ = left_out_done.add(part);
                }
                for part in &own.samples.censored {
                    let _ = left_out_censored.add(part);
                }
            }
        }
        (
            done.without(&left_out_done),
            censored.without(&left_out_censored),
        )
    }

    /// The threshold of the healthy majority: all but the `named` replicas. `in_flight`: the ages of
    /// what is unanswered now.
    pub(crate) fn threshold(
        &self,
        aim: Aimed,
        named: &BTreeSet<ReplicaName>,
        in_flight: &Histogram,
    ) -> Option<Threshold> {
        let window = self.shortest()?;
        let quantile = |seconds| {
            let (done, mut censored) = self.sum(seconds, named);
            if done.count() + censored.count() < THRESHOLD_CALLS_MIN {
                return None;
            }
            let _ = censored.add(in_flight);
            let calls = done.count() + censored.count();
            let curve = SurvivalCurve::estimate(&done, &censored);
            match aim {
                Aimed::Exactly(percentile) => curve.quantile(percentile.get()),
                Aimed::OrWhereFlat(percentile) => flat::threshold(&curve, percentile.tail(), calls),
            }
        };
        let threshold = quantile(window).max(quantile((LONGER * window).min(SECONDS_MAX)))?;
        Some(Threshold::clamped(threshold))
    }

    /// What an answer typically takes where a hedge would go: the median of what the replicas that
    /// are not `named` answered. None under 200 calls.
    pub(crate) fn typical(&self, named: &BTreeSet<ReplicaName>) -> Option<Duration> {
        let (done, _) = self.sum(self.shortest()?, named);
        done.quantile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::replica::{ReplicaSamples, ReplicaTotals};

    const MS: Duration = Duration::from_millis(1);

    fn samples(latencies: impl IntoIterator<Item = Duration>) -> SparseHistogram {
        let mut histogram = Histogram::new();
        latencies
            .into_iter()
            .for_each(|latency| histogram.record(latency));
        histogram.to_sparse()
    }

    /// All answered.
    fn second(latencies: impl IntoIterator<Item = Duration>) -> Second {
        Second {
            done: samples(latencies),
            ..Second::default()
        }
    }

    fn p95(windows: &Windows) -> Option<Threshold> {
        let named = windows.named(0.05, &[]);
        let aim = Aimed::OrWhereFlat(Quantile::new(0.95).unwrap());
        windows.threshold(aim, &named, &Histogram::new())
    }

    /// A hundred calls of each of three replicas; those of the last one get no answer and are given
    /// up at `given_up`.
    fn one_of_three_silent(given_up: Duration) -> Second {
        let usual = || samples((0..100).map(|i| 5 * MS + i * MS / 10));
        let of =
            |name: &str, done: SparseHistogram, censored: SparseHistogram, crossed| ReplicaSecond {
                replica: name.parse().unwrap(),
                growth: ReplicaTotals {
                    started: 100,
                    crossed,
                    ..ReplicaTotals::default()
                },
                samples: ReplicaSamples {
                    done: vec![done],
                    censored: vec![censored],
                },
            };
        let none = SparseHistogram::default;
        let silent = samples((0..100).map(|_| given_up));
        Second {
            done: samples((0..200).map(|i| 5 * MS + (i % 100) * MS / 10)),
            censored: silent.clone(),
            replicas: vec![
                of("a:1", usual(), none(), 5),
                of("b:1", usual(), none(), 5),
                of("c:1", none(), silent, 100),
            ],
        }
    }

    #[test]
    fn b46_there_is_no_threshold_before_200_calls() {
        let mut windows = Windows::default();
        windows.push(second((0..199).map(|_| 10 * MS)));
        assert_eq!(p95(&windows), None);
        windows.push(second([10 * MS]));
        assert!(p95(&windows).is_some());
    }

    #[test]
    fn b31_an_agent_without_samples_has_none_rather_than_zero() {
        assert_eq!(p95(&Windows::default()), None);
        assert_eq!(Windows::default().typical(&BTreeSet::new()), None);
    }

    #[test]
    fn c05_sub_millisecond_latencies_are_neither_0_nor_1_ms() {
        let mut windows = Windows::default();
        let us = |i: u64| Duration::from_micros(200 + i % 100);
        windows.push(second((0..1000).map(us)));
        let threshold = p95(&windows).unwrap().get();
        assert!((285..305).contains(&threshold.as_micros()), "{threshold:?}");
    }

    #[test]
    fn c07_cancelled_primaries_keep_the_threshold_where_it_belongs() {
        // 5 % were cancelled at the threshold of 50 ms: p95 is there, not at p95 of the rest.
        let mut windows = Windows::default();
        for _ in 0..10 {
            windows.push(Second {
                censored: samples((0..50).map(|_| 51 * MS)),
                ..second((0..950).map(|i| MS + i * 50 * MS / 950))
            });
        }
        let threshold = p95(&windows).unwrap().get();
        assert!(
            (threshold.as_secs_f64() - 0.050).abs() < 0.002,
            "{threshold:?}"
        );
    }

    #[test]
    fn b09_one_silent_replica_of_three_leaves_the_threshold_with_the_others() {
        let mut windows = Windows::default();
        for given_up in [14 * MS, 2000 * MS] {
            for _ in 0..20 {
                windows.push(one_of_three_silent(given_up));
                let named = windows.named(0.05, &[]);
                assert_eq!(named, BTreeSet::from(["c:1".parse().unwrap()]));
            }
            let threshold = p95(&windows).unwrap().get();
            assert!((14..=15).contains(&threshold.as_millis()), "{threshold:?}");
        }
    }

    #[test]
    fn a_replica_that_recovered_stays_out_as_long_as_its_samples_are_looked_at() {
        let mut windows = Windows::default();
        for _ in 0..20 {
            windows.push(one_of_three_silent(2000 * MS));
        }
        let well = Second {
            replicas: one_of_three_silent(MS)
                .replicas
                .into_iter()
                .map(|own| ReplicaSecond {
                    growth: ReplicaTotals {
                        crossed: 5,
                        ..own.growth
                    },
                    ..own
                })
                .collect(),
            ..second((0..300).map(|i| 5 * MS + (i % 100) * MS / 10))
        };
        for seconds in 0..30 {
            windows.push(well.clone());
            let threshold = p95(&windows).unwrap().get();
            assert!(threshold < 16 * MS, "after {seconds} s: {threshold:?}");
        }
        assert!(windows.named(0.05, &[]).is_empty());
    }

    #[test]
    fn p16_too_few_calls_of_healthy_replicas_are_no_threshold() {
        let mut windows = Windows::default();
        let mut thin = one_of_three_silent(2000 * MS);
        thin.done = samples((0..20).map(|_| 5 * MS));
        for _ in 0..4 {
            windows.push(thin.clone());
        }
        assert_eq!(p95(&windows), None);
    }

    #[test]
    fn up_fast_and_down_slowly() {
        let mut windows = Windows::default();
        let flat = |ms: u32| second((0..1000).map(|_| ms * MS));
        for _ in 0..10 {
            windows.push(flat(10));
        }
        windows.push(flat(100));
        windows.push(flat(100));
        assert!(p95(&windows).unwrap().get() > 90 * MS);
        for _ in 0..8 {
            assert!(p95(&windows).unwrap().get() > 90 * MS);
            windows.push(flat(10));
        }
        for _ in 0..2 {
            windows.push(flat(10));
        }
        assert!(p95(&windows).unwrap().get() < 15 * MS);
    }
}
