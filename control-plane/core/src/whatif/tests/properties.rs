//! What holds for every sample.

use std::time::Duration;

use hedgerow_protocol::units::Ratio;
use proptest::prelude::*;

use super::{Advice, Distribution, Percentile, brute, goal, ms, ratio};
use crate::whatif::exact::parts;
use crate::whatif::hedging::Hedging;

const TAILS: [(Percentile, u128); 5] = [
    (Percentile::P50, 500),
    (Percentile::P90, 100),
    (Percentile::P95, 50),
    (Percentile::P99, 10),
    (Percentile::P99_9, 1),
];

/// A few calls, many of them equal; none under the least delay an agent accepts.
fn calls() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![4 => 1_u64..6, 1 => 6_u64..60], 1..20)
}

fn of(calls: &[u64]) -> Distribution {
    Distribution::of_counts(calls.iter().map(|&call| (ms(call), 1))).unwrap()
}

/// Counts of any size on a few values.
fn large() -> impl Strategy<Value = Distribution> {
    prop::collection::vec((1_u64..5_000, 1_u64..(1 << 40)), 1..40).prop_map(|counts| {
        Distribution::of_counts(counts.into_iter().map(|(at, n)| (ms(at), n))).unwrap()
    })
}

/// The percentile that a goal comes to, hedged or left alone.
fn outcome(sample: &Distribution, percentile: Percentile, budget: f64, shared: f64) -> Duration {
    match sample.best(&goal(percentile, budget).with_shared(ratio(shared))) {
        Advice::Hedge(plan) => plan.reached,
        Advice::Leave(_) => sample.percentile(percentile).unwrap(),
    }
}

proptest! {
    #[test]
    fn the_curve_is_what_counting_every_pair_gives(calls in calls()) {
        let sample = of(&calls);
        for (percentile, tail) in TAILS {
            for row in sample.curve(Ratio::ZERO, 100) {
                let delay = row.delay.as_millis() as u64;
                let counted = brute::percentile(&calls, delay, (1, 1), tail);
                prop_assert_eq!(row.at(percentile), Some(ms(counted)));
            }
        }
    }

    #[test]
    fn the_best_is_what_trying_everything_gives(calls in calls(), budget in 1_u32..250) {
        let sample = of(&calls);
        for (percentile, tail) in TAILS {
            let tried = brute::best(&calls, budget.into(), tail);
            match sample.best(&goal(percentile, f64::from(budget) / 1000.0)) {
                Advice::Hedge(plan) => {
                    let found = (plan.reached, plan.delay);
                    prop_assert_eq!(Some(found), tried.map(|(time, delay)| (ms(time), ms(delay))));
                }
                Advice::Leave(_) => {
                    let alone = sample.percentile(percentile).unwrap().as_millis() as u64;
                    prop_assert!(tried.is_none_or(|(time, _)| time * 100 > alone * 95), "{tried:?}");
                }
            }
        }
    }

    #[test]
    fn the_probability_reaches_it_and_hardly_less_does_not(
        sample in large(),
        budget in 0.001_f64..0.25,
        shared in 0.0_f64..0.9,
    ) {
        let asked = goal(Percentile::P99, budget).with_shared(ratio(shared));
        let Advice::Hedge(plan) = sample.best(&asked) else { return Ok(()) };
        prop_assert!(plan.extra_load <= budget * (1.0 + 1e-9) + 1e-9, "{plan:?}");
        prop_assert!(plan.probability > 0.0 && plan.probability <= 1.0, "{plan:?}");
        let with = |probability: f64| {
            let load = sample.crossed(plan.delay) * probability;
            Hedging::every(&sample, plan.delay)
                .within(parts(load))
                .sharing(parts(shared))
                .reaches(Percentile::P99, plan.reached)
        };
        prop_assert!(with(plan.probability * (1.0 + 1e-6) + 1e-6));
        // Parts of 1e9 are too coarse to tell for the smallest shares.
        if sample.crossed(plan.delay) > 1e-3 && plan.probability > 1e-2 {
            prop_assert!(!with(plan.probability * (1.0 - 1e-3)), "{plan:?}");
        }
    }

    #[test]
    fn more_budget_is_never_worse(sample in large(), less in 0.001_f64..0.25, more in 0.001_f64..0.25) {
        let (less, more) = (less.min(more), less.max(more));
        for (percentile, _) in TAILS {
            prop_assert!(
                outcome(&sample, percentile, more, 0.0) <= outcome(&sample, percentile, less, 0.0)
            );
        }
    }

    #[test]
    fn more_in_common_is_never_better(sample in large(), a in 0.0_f64..1.0, b in 0.0_f64..1.0) {
        let (less, more) = (a.min(b), a.max(b));
        for (percentile, _) in TAILS {
            prop_assert!(
                outcome(&sample, percentile, 0.05, less) <= outcome(&sample, percentile, 0.05, more)
            );
            for (apart, close) in sample.curve(ratio(less), 100).into_iter().zip(sample.curve(ratio(more), 100)) {
                prop_assert!(apart.at(percentile) <= close.at(percentile));
            }
        }
    }

    #[test]
    fn all_in_common_gains_nothing(sample in large()) {
        for (percentile, _) in TAILS {
            let alone = sample.percentile(percentile);
            for row in sample.curve(Ratio::ONE, 100) {
                prop_assert_eq!(row.at(percentile), alone);
            }
            let advice = sample.best(&goal(percentile, 0.25).with_shared(Ratio::ONE));
            prop_assert!(matches!(advice, Advice::Leave(_)), "{advice:?}");
        }
    }

    #[test]
    fn a_later_hedge_costs_less_and_buys_less(sample in large()) {
        let curve = sample.curve(Ratio::ZERO, 100);
        for pair in curve.windows(2) {
            prop_assert!(pair[0].extra_load > pair[1].extra_load);
            for (percentile, _) in TAILS {
                prop_assert!(pair[0].at(percentile) <= pair[1].at(percentile));
            }
        }
        // From the maximum on it is not hedging at all.
        for delay in [ms(5_000), ms(5_001), Duration::MAX] {
            let never = sample.hedged(delay, Ratio::ZERO);
            prop_assert_eq!(never.extra_load, 0.0);
            for (percentile, _) in TAILS {
                prop_assert_eq!(never.at(percentile), sample.percentile(percentile));
            }
        }
    }

    #[test]
    fn percentiles_ascend_and_none_is_worse_than_unhedged(sample in large(), shared in 0.0_f64..1.0) {
        for row in sample.curve(ratio(shared), 100) {
            prop_assert!(row.latencies.is_sorted());
            for (percentile, _) in TAILS {
                prop_assert!(row.at(percentile) <= sample.percentile(percentile));
            }
        }
    }

    #[test]
    fn in_which_order_and_in_how_many_parts_counts_come_changes_nothing(calls in calls(), by in 0_usize..20) {
        let mut turned = calls.clone();
        turned.rotate_left(by % calls.len());
        prop_assert_eq!(of(&turned), of(&calls));
        let mut twice = calls.clone();
        twice.extend(&calls);
        prop_assert_eq!(of(&twice).curve(Ratio::ZERO, 100), of(&calls).curve(Ratio::ZERO, 100));
    }
}
