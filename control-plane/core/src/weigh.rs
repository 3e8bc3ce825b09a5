//! How much one agent may weigh in what the fleet is judged by (P12).
//!
//! An agent that reports a hundred times what the others do is a liar, or lives on another planet;
//! either way it must not move the fleet's threshold alone. What it says is thinned to its share,
//! evenly over all buckets and counters, so that its own ratios stay what they are.

use hedgerow_protocol::latency::SparseHistogram;
use hedgerow_protocol::report::{Attempts, ReplicaReport, RouteReport, Totals};

/// The least share of a window that any agent may make up.
const WEIGHT_MIN: f64 = 0.05;
/// An agent may weigh this many times what it would if all were equal.
const WEIGHT_TIMES_EQUAL: f64 = 2.0;

/// How much may count of what a number of agents say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// The most that one of them may count for. Infinite where all may count in full.
    pub(crate) most: f64,
    /// What one could have said and counted for in full.
    pub(crate) light: f64,
}

impl Scale {
    /// So that none of `loads` is more than max(5 %, 2 / number) of the sum of what is counted.
    pub(crate) fn of(mut loads: Vec<f64>) -> Self {
        let share = WEIGHT_MIN.max(WEIGHT_TIMES_EQUAL / loads.len().max(1) as f64);
        if share >= 1.0 {
            return Self {
                most: f64::INFINITY,
                light: f64::INFINITY,
            };
        }
        loads.sort_unstable_by(f64::total_cmp);
        let mut rest: f64 = loads.iter().sum();
        let mut level = share * rest;
        for (capped, heaviest) in loads.iter().rev().enumerate() {
            // With the `capped` heaviest at the level L, L = share * (rest + capped * L).
            let free = 1.0 - share * capped as f64;
            if free <= f64::EPSILON {
                break;
            }
            level = share * rest / free;
            if *heaviest <= level {
                let most = if capped == 0 { f64::INFINITY } else { level };
                return Self { most, light: level };
            }
            rest -= heaviest;
        }
        Self {
            most: level,
            light: level,
        }
    }
}

/// How much `report` would weigh: the largest of its figures, for a liar need not lie in the one that
/// is looked at. Only calls that may not be hedged weigh nothing, as nothing is judged by them.
pub(crate) fn load(delta: &Totals, report: &RouteReport) -> f64 {
    let of_replicas = |figure: fn(&ReplicaReport) -> u64| {
        let each = report.replicas.iter().map(figure);
        each.fold(0, u64::saturating_add)
    };
    [
        largest(delta),
        attempts(&report.primary),
        attempts(&report.hedge),
        report.treated.count(),
        report.holdout.count(),
        report.in_flight.count(),
        of_replicas(|it| it.started),
        of_replicas(|it| it.crossed),
        of_replicas(|it| it.finished),
        of_replicas(|it| it.errors),
        of_replicas(|it| it.hedged),
        of_replicas(|it| it.won),
        of_replicas(|it| attempts(&it.primary)),
    ]
    .into_iter()
    .fold(0, u64::max) as f64
}

fn attempts(attempts: &Attempts) -> u64 {
    let (done, censored) = (attempts.done.count(), attempts.censored.count());
    done.saturating_add(censored)
}

fn largest(delta: &Totals) -> u64 {
    let mut judged = *delta;
    judged.not_eligible = 0;
    judged
        .counters_mut()
        .fold(0, |most, counter| most.max(*counter))
}

/// `report`, with what it adds, thinned to `share` of itself.
pub(crate) fn thin(delta: &mut Totals, report: &mut RouteReport, share: f64) {
    // Rounded down: order between them (won <= hedged <= crossed <= started) stays.
    for counter in delta.counters_mut() {
        *counter = scaled(*counter, share);
    }
    thin_attempts(&mut report.primary, share);
    thin_attempts(&mut report.hedge, share);
    for histogram in [
        &mut report.treated,
        &mut report.holdout,
        &mut report.in_flight,
    ] {
        *histogram = thinned(histogram, share);
    }
    for replica in &mut report.replicas {
        for counter in [
            &mut replica.started,
            &mut replica.crossed,
            &mut replica.finished,
            &mut replica.errors,
            &mut replica.hedged,
            &mut replica.won,
        ] {
            *counter = scaled(*counter, share);
        }
        thin_attempts(&mut replica.primary, share);
    }
}

fn scaled(count: u64, share: f64) -> u64 {
    (count as f64 * share) as u64
}

fn thin_attempts(attempts: &mut Attempts, share: f64) {
    attempts.done = thinned(&attempts.done, share);
    attempts.censored = thinned(&attempts.censored, share);
}

/// Each bucket's share, with what rounding leaves carried into the next: the sum is right to one.
fn thinned(histogram: &SparseHistogram, share: f64) -> SparseHistogram {
    let mut carried = 0.0;
    let pairs = histogram.iter().filter_map(|(bucket, count)| {
        let exact = count as f64 * share + carried;
        let whole = exact.floor();
        carried = exact - whole;
        (whole >= 1.0).then_some((bucket, whole as u64))
    });
    SparseHistogram::try_from_pairs(pairs)
        .expect("a part of a valid histogram's buckets, in their order, with smaller counts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p12_nobody_weighs_more_than_twice_an_equal_share() {
        for (loads, expected) in [
            (vec![10.0; 100], f64::INFINITY),
            (vec![1.0, 1_000.0], f64::INFINITY), // two agents: one may be half of it, or all
            ([vec![10.0; 99], vec![1e9]].concat(), 0.05 * 990.0 / 0.95),
        ] {
            assert!(
                (Scale::of(loads.clone()).most - expected).abs() < 1e-9
                    || Scale::of(loads).most == expected,
                "{expected}"
            );
        }
        let loads = [vec![10.0; 90], vec![1e6; 10]].concat();
        let level = Scale::of(loads.clone()).most;
        let counted: f64 = loads.iter().map(|load| load.min(level)).sum();
        assert!(level / counted <= 0.05 + 1e-9);
    }

    #[test]
    fn p12_any_figure_weighs_and_is_thinned_but_calls_that_may_not_be_hedged() {
        let mut all = Totals::default();
        for (n, counter) in all.counters_mut().enumerate() {
            *counter = 1_000 + n as u64;
        }
        let largest_of_all = 1_000 + all.counters_mut().count() as u64 - 1;
        assert_eq!(largest(&all), largest_of_all);
        let quiet = Totals {
            not_eligible: 1 << 30,
            started: 7,
            ..Totals::default()
        };
        assert_eq!(largest(&quiet), 7);
        for number in 0..all.counters_mut().count() {
            let mut one = Totals::default();
            *one.counters_mut().nth(number).unwrap() = 1 << 40;
            let expected = if one.not_eligible > 0 { 0 } else { 1 << 40 };
            assert_eq!(largest(&one), expected, "counter {number}");
        }
    }

    #[test]
    fn thinning_keeps_the_sum() {
        let full = SparseHistogram::try_from_pairs((0..100).map(|b| (b, 3))).unwrap();
        let thin = thinned(&full, 0.1);
        assert!((29..=30).contains(&thin.count()), "{}", thin.count());
    }
}
