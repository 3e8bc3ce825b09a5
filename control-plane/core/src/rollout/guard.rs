//! Whether the agents in the share do worse than the rest.
//!
//! Shares of failures are compared by their difference, the 99th percentile of what callers wait by
//! how many of the share's calls lie beyond the rest's: both are differences of two proportions, with
//! the standard error of the pooled one. A difference counts where it is larger than chance and
//! large enough to matter. Where a holdout is kept, hedged calls of the share are compared with its
//! own held-out ones in the same way, which also works when there is no rest any more.
//!
//! It cannot tell a policy from its agents: where those in the share always did worse, as in a zone
//! further away, that is taken for the policy's doing.

use hedgerow_protocol::latency::Histogram;

use super::seen::Arm;
use crate::decide::words::{latency, percent};

/// Ended calls of a group under which nothing is said of its failures.
pub(crate) const CALLS_MIN: u64 = 100;
/// Standard errors by which the share's failures must be more.
const ERRORS_SIGMAS: f64 = 3.0;
/// And by how much at least, of all calls.
const ERRORS_MORE: f64 = 0.005;
/// Calls of a group under which nothing is said of its 99th percentile: ten lie beyond it.
const LATENCY_CALLS_MIN: u64 = 1_000;
/// Standard errors for the calls beyond the other's percentile. A distribution's end is looked at
/// each second, and one pause makes several calls slow: chance needs more room than with failures.
const LATENCY_SIGMAS: f64 = 4.0;
/// And how much longer the percentile must be.
const LATENCY_LONGER: f64 = 1.1;
/// The percentile compared.
const PERCENTILE: f64 = 0.99;

/// A figure of both groups side by side; None: too few calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    pub(crate) what: What,
    pub(crate) new: Option<f64>,
    pub(crate) old: Option<f64>,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Share of calls that failed.
    CallsFailed,
    /// Share of primaries that failed.
    PrimariesFailed,
    /// What callers waited at p99, seconds.
    Latency,
    /// The share's hedged calls that failed, beside those held out.
    FailedByHedging,
    /// The share's p99 with hedging, beside that of the calls held out, seconds.
    LatencyByHedging,
    /// Calls that want a hedge.
    Demand,
}

impl What {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::CallsFailed => "calls failed",
            Self::PrimariesFailed => "primaries failed",
            Self::Latency => "callers' p99",
            Self::FailedByHedging => "calls failed, hedged beside held out",
            Self::LatencyByHedging => "callers' p99, hedged beside held out",
            Self::Demand => "calls that want a hedge",
        }
    }

    pub(crate) const fn is_latency(self) -> bool {
        matches!(self, Self::Latency | Self::LatencyByHedging)
    }
}

/// A share of calls.
#[derive(Debug, Clone, Copy)]
struct Portion {
    part: u64,
    of: u64,
}

impl Portion {
    fn share(self) -> Option<f64> {
        (self.of >= CALLS_MIN).then(|| self.part as f64 / self.of as f64)
    }
}

/// Compares the share with the rest. Returns the figures, and what is worse, in words.
pub(crate) fn compare(share: &Arm, rest: &Arm) -> (Vec<Pair>, Option<String>) {
    let failures = [
        (What::CallsFailed, failed(share), failed(rest)),
        (
            What::PrimariesFailed,
            primaries_failed(share),
            primaries_failed(rest),
        ),
        (
            What::FailedByHedging,
            Portion {
                part: share.totals.treated_failed,
                of: share.totals.treated_finished,
            },
            Portion {
                part: share.totals.holdout_failed,
                of: share.totals.holdout_finished,
            },
        ),
    ];
    let latencies = [
        (What::Latency, &share.treated, &rest.treated),
        (What::LatencyByHedging, &share.treated, &share.holdout),
    ];
    let mut pairs = Vec::new();
    let mut worse = None;
    for (what, new, old) in failures {
        pairs.push(Pair {
            what,
            new: new.share(),
            old: old.share(),
        });
        if fails_more(new, old) {
            worse.get_or_insert_with(|| failure_words(what, new, old));
        }
    }
    for (what, new, old) in latencies {
        pairs.push(Pair {
            what,
            new: p99(new),
            old: p99(old),
        });
        if is_slower(new, old) {
            worse.get_or_insert_with(|| latency_words(what, new, old));
        }
    }
    (pairs, worse)
}

fn failed(arm: &Arm) -> Portion {
    Portion {
        part: arm.totals.failed,
        of: arm.totals.finished.saturating_sub(arm.totals.abandoned),
    }
}

fn primaries_failed(arm: &Arm) -> Portion {
    Portion {
        part: arm.totals.primary_errors,
        of: arm.totals.primary_finished,
    }
}

fn fails_more(new: Portion, old: Portion) -> bool {
    let (Some(a), Some(b)) = (new.share(), old.share()) else {
        return false;
    };
    a - b > ERRORS_MORE && a - b > ERRORS_SIGMAS * standard_error(new, old)
}

fn is_slower(new: &Histogram, old: &Histogram) -> bool {
    let (Some(a), Some(b)) = (quantile(new), quantile(old)) else {
        return false;
    };
    let beyond = |histogram: &Histogram| Portion {
        part: (histogram.share_above(b).unwrap_or_default() * histogram.count() as f64) as u64,
        of: histogram.count(),
    };
    let (new, old) = (beyond(new), beyond(old));
    let (Some(x), Some(y)) = (new.share(), old.share()) else {
        return false;
    };
    a.as_secs_f64() > LATENCY_LONGER * b.as_secs_f64()
        && x - y > LATENCY_SIGMAS * standard_error(new, old)
}

/// Of the difference of two proportions, were both samples of one.
fn standard_error(a: Portion, b: Portion) -> f64 {
    let (n, m) = (a.of as f64, b.of as f64);
    let pooled = (a.part as f64 + b.part as f64) / (n + m);
    (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt()
}

fn quantile(histogram: &Histogram) -> Option<std::time::Duration> {
    (histogram.count() >= LATENCY_CALLS_MIN)
        .then(|| histogram.quantile(PERCENTILE))
        .flatten()
}

fn p99(histogram: &Histogram) -> Option<f64> {
    quantile(histogram).map(|it| it.as_secs_f64())
}

/// Which groups two figures are of.
fn groups(what: What) -> [&'static str; 2] {
    match what {
        What::FailedByHedging | What::LatencyByHedging => ["hedged", "held out"],
        _ => ["with the new policy", "with the old one"],
    }
}

fn failure_words(what: What, new: Portion, old: Portion) -> String {
    let [by_new, by_old] = groups(what);
    let share = |it: Portion| percent(it.share().unwrap_or_default());
    let what = match what {
        What::PrimariesFailed => "primaries",
        _ => "calls",
    };
    format!(
        "{} of {} {what} failed {by_new}, {} of {} {by_old}",
        share(new),
        new.of,
        share(old),
        old.of
    )
}

fn latency_words(what: What, new: &Histogram, old: &Histogram) -> String {
    let [by_new, by_old] = groups(what);
    let p99 = |it: &Histogram| quantile(it).map_or_else(String::new, latency);
    format!(
        "callers' p99 is {} over {} calls {by_new}, {} over {} {by_old}",
        p99(new),
        new.count(),
        p99(old),
        old.count()
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hedgerow_protocol::latency::bucket_of;
    use hedgerow_protocol::report::Totals;

    use super::*;

    fn latencies(parts: &[(u64, u64)]) -> Histogram {
        let mut all = Histogram::new();
        for (millis, count) in parts {
            all.add_to_bucket(bucket_of(Duration::from_millis(*millis)), *count)
                .unwrap();
        }
        all
    }

    fn arm(calls: u64, failed: u64, slow: u64) -> Arm {
        Arm {
            totals: Totals {
                finished: calls,
                failed,
                primary_finished: calls,
                primary_errors: failed,
                ..Totals::default()
            },
            treated: latencies(&[(10, calls - slow), (100, slow)]),
            holdout: Histogram::new(),
        }
    }

    fn worse(share: &Arm, rest: &Arm) -> Option<String> {
        compare(share, rest).1
    }

    #[test]
    fn failures_count_where_they_are_more_than_chance_and_enough_to_matter() {
        for (share, rest, expected) in [
            ((1_000, 20), (20_000, 100), true),
            ((1_000, 9), (20_000, 100), false), // under half a point
            ((200, 4), (20_000, 100), false),   // chance
            ((99, 50), (20_000, 100), false),   // too few
            ((1_000, 50), (99, 0), false),
            ((1_000, 0), (20_000, 2_000), false), // better
        ] {
            let (new, old) = (arm(share.0, share.1, 0), arm(rest.0, rest.1, 0));
            assert_eq!(worse(&new, &old).is_some(), expected, "{share:?} {rest:?}");
        }
        let words = worse(&arm(1_000, 20, 0), &arm(20_000, 100, 0)).unwrap();
        assert_eq!(
            words,
            "2 % of 1000 calls failed with the new policy, 0.5 % of 20000 with the old one"
        );
    }

    #[test]
    fn a_slower_end_counts_where_more_calls_lie_beyond_the_rests_percentile() {
        for (share, rest, expected) in [
            ((2_000, 60), (40_000, 200), true),
            ((2_000, 25), (40_000, 380), false),   // chance
            ((900, 60), (40_000, 200), false),     // too few
            ((2_000, 10), (40_000, 2_000), false), // better
        ] {
            let (new, old) = (arm(share.0, 0, share.1), arm(rest.0, 0, rest.1));
            assert_eq!(worse(&new, &old).is_some(), expected, "{share:?} {rest:?}");
        }
        let words = worse(&arm(2_000, 0, 60), &arm(40_000, 0, 200)).unwrap();
        assert!(
            words.starts_with("callers' p99 is ") && words.contains("over 2000 calls with the new"),
            "{words}"
        );
    }

    #[test]
    fn with_nobody_left_to_compare_with_its_own_holdout_is() {
        let mut share = arm(5_000, 0, 300);
        share.holdout = latencies(&[(10, 4_990), (100, 10)]);
        let none = Arm::default();
        let words = worse(&share, &none).unwrap();
        assert!(
            words.contains("hedged, ") && words.ends_with("held out"),
            "{words}"
        );
        share.treated = latencies(&[(10, 5_000)]);
        assert_eq!(worse(&share, &none), None);
        share.totals = Totals {
            treated_finished: 4_000,
            treated_failed: 120,
            holdout_finished: 1_000,
            holdout_failed: 5,
            ..share.totals
        };
        assert!(worse(&share, &none).unwrap().contains("held out"));
    }

    /// Uniform from 0 to 1: the high bits of a linear congruence (Knuth's MMIX).
    fn uniform(state: &mut u64) -> f64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn equal_groups_are_told_apart_in_under_two_of_a_hundred_stages() {
        // Two minutes of one look a second, 100 and 400 calls a second, 1 % failures and a tail of
        // 2 %; a verdict needs two looks in a row, as in the tick.
        let (mut stages, mut reverted) = (0, 0);
        for seed in 0..100 {
            let mut state = seed * 7_919 + 1;
            let (mut share, mut rest) = (arm(0, 0, 0), arm(0, 0, 0));
            let (mut over, mut hit) = (0, false);
            for _ in 0..120 {
                for (arm, calls) in [(&mut share, 100), (&mut rest, 400)] {
                    let mut count =
                        |p: f64| (0..calls).filter(|_| uniform(&mut state) < p).count() as u64;
                    let (failed, slow) = (count(0.01), count(0.02));
                    let second = self::arm(calls, failed, slow);
                    arm.totals.add(&second.totals);
                    arm.treated.add(&second.treated).unwrap();
                }
                over = if worse(&share, &rest).is_some() {
                    over + 1
                } else {
                    0
                };
                hit |= over >= 2;
            }
            stages += 1;
            reverted += u64::from(hit);
        }
        assert!(reverted * 50 < stages, "{reverted} of {stages}");
    }
}
