//! Round against round: what differs, and whether by more than chance.
//!
//! Each round is one pair. The **sign test** asks how often a fair coin would divide the rounds so
//! unevenly (W. J. Dixon and A. M. Mood, "The statistical sign test", Journal of the American
//! Statistical Association 41, 1946); the interval for the median difference goes with it, from the
//! r-th smallest to the r-th largest (W. R. Thompson, "On confidence ranges for the median and other
//! expectation distributions", Annals of Mathematical Statistics 7, 1936). Neither assumes anything
//! of how p99s of 20 s are distributed, and one bad minute counts as one round. The price: under six
//! rounds nothing is certain, for even six alike come by chance once in thirty-two.

use hedgerow_protocol::units::as_millis;

use crate::decide::words::{latency, percent};
use crate::view::{ArmView, DifferenceView, RoundView};

/// Two-sided chance under which a difference is certain.
const CERTAIN: f64 = 0.05;
/// Fewest rounds that can be.
const ROUNDS_MIN: u32 = 6;

type Figure = (&'static str, &'static str, fn(&ArmView) -> Option<f64>);

const FIGURES: [Figure; 5] = [
    ("p50", "ms", |arm| arm.p50.map(as_millis)),
    ("p95", "ms", |arm| arm.p95.map(as_millis)),
    ("p99", "ms", |arm| arm.p99.map(as_millis)),
    ("error rate", "%", |arm| arm.error_rate.map(|it| it * 100.0)),
    ("calls/s", "/s", |arm| arm.calls_per_s),
];

/// Every figure's differences, those that no round has left out.
pub(super) fn differences(rounds: &[RoundView]) -> Vec<DifferenceView> {
    let of = |&(what, unit, figure): &Figure| {
        let each = rounds
            .iter()
            .filter_map(|round| Some(figure(&round.on)? - figure(&round.off)?));
        difference(what, unit, each.collect())
    };
    FIGURES.iter().filter_map(of).collect()
}

fn difference(
    what: &'static str,
    unit: &'static str,
    mut each: Vec<f64>,
) -> Option<DifferenceView> {
    each.sort_by(f64::total_cmp);
    let rounds = each.len();
    let median = match rounds {
        0 => return None,
        n if n % 2 == 1 => each[n / 2],
        n => f64::midpoint(each[n / 2 - 1], each[n / 2]),
    };
    let higher = each.iter().filter(|it| **it > 0.0).count();
    let lower = each.iter().filter(|it| **it < 0.0).count();
    let chance = (2.0 * coins_up_to(higher.min(lower), higher + lower)).min(1.0);
    let order = order(rounds);
    Some(DifferenceView {
        what,
        unit,
        median,
        low: order.map(|r| each[r - 1]),
        high: order.map(|r| each[rounds - r]),
        higher: higher as u32,
        lower: lower as u32,
        rounds: rounds as u32,
        chance,
        certain: chance < CERTAIN,
    })
}

/// The chance that of `n` fair coins at most `k` fall one way.
fn coins_up_to(k: usize, n: usize) -> f64 {
    let mut term = 0.5_f64.powf(n as f64);
    let mut sum = 0.0;
    for i in 0..=k {
        sum += term;
        term *= (n - i.min(n)) as f64 / (i + 1) as f64;
    }
    sum
}

/// The greatest r for which the interval from the r-th smallest to the r-th largest holds the median
/// in 95 % of cases.
fn order(rounds: usize) -> Option<usize> {
    (1..=rounds / 2)
        .rev()
        .find(|r| 2.0 * coins_up_to(r - 1, rounds) < CERTAIN)
}

/// The verdict in one line.
pub(super) fn words(on: &ArmView, off: &ArmView, all: &[DifferenceView]) -> String {
    let find = |what: &str| all.iter().find(|it| it.what == what);
    let (Some(p99), Some(with), Some(without)) = (find("p99"), on.p99, off.p99) else {
        return "nothing was measured".into();
    };
    let figures = format!("{} off, {} on", latency(without), latency(with));
    let (way, rounds) = if p99.median > 0.0 {
        ("worse", p99.higher)
    } else {
        ("better", p99.lower)
    };
    let rounds = format!("{way} in {rounds} of {} rounds", p99.rounds);
    let mut words = if p99.certain {
        let by = std::time::Duration::from_secs_f64(p99.median.abs() / 1e3);
        format!(
            "hedging makes p99 {} {way}: {figures}; {rounds}",
            latency(by)
        )
    } else if p99.rounds < ROUNDS_MIN {
        format!(
            "p99 {figures}; {rounds}, too few to tell from chance: expected {ROUNDS_MIN} at least"
        )
    } else {
        format!("no difference in p99 that is more than chance: {figures}; {rounds}")
    };
    for it in all.iter().filter(|it| it.certain) {
        let way = if it.median > 0.0 { "up" } else { "down" };
        match it.what {
            "p50" | "p95" => {
                let by = std::time::Duration::from_secs_f64(it.median.abs() / 1e3);
                words = format!("{words}; {} {way} by {}", it.what, latency(by));
            }
            "error rate" => {
                let by = percent(it.median.abs() / 100.0);
                words = format!("{words}; errors {way} by {by} of calls");
            }
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_and_its_interval_are_those_of_the_tables() {
        // Chance of at most k of n, and the order statistics of the 95 % interval.
        for (k, n, expected) in [
            (0, 6, 1.0 / 64.0),
            (1, 10, 11.0 / 1024.0),
            (5, 10, 638.0 / 1024.0),
        ] {
            assert!((coins_up_to(k, n) - expected).abs() < 1e-12, "{k} of {n}");
        }
        for (rounds, r) in [
            (3, None),
            (5, None),
            (6, Some(1)),
            (9, Some(2)),
            (10, Some(2)),
            (20, Some(6)),
            (60, Some(22)),
        ] {
            assert_eq!(order(rounds), r, "{rounds} rounds");
        }
    }

    #[test]
    fn nine_of_ten_rounds_are_certain_and_eight_are_not() {
        let of = |worse: usize| {
            let each = (0..10).map(|i| if i < worse { 180.0 } else { -20.0 });
            difference("p99", "ms", each.collect()).unwrap()
        };
        let nine = of(9);
        assert_eq!((nine.median, nine.higher, nine.rounds), (180.0, 9, 10));
        assert_eq!((nine.low, nine.high), (Some(180.0), Some(180.0)));
        assert!(nine.certain && (nine.chance - 22.0 / 1024.0).abs() < 1e-12);
        assert!(!of(8).certain && of(8).low == Some(-20.0));
        // Rounds without any difference speak for neither side.
        let none = difference("p99", "ms", vec![0.0; 10]).unwrap();
        assert!(!none.certain && none.chance == 1.0);
    }
}
