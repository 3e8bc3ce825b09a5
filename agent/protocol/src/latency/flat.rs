//! Where the survival curve is flat, the earlier end. Pure.
//!
//! Where about as many calls are stragglers as are meant to cross, the quantile lies in the gap
//! between the usual answers and the stragglers. Anywhere in it the same share crosses, but a call
//! waits for its hedge three times as long at its far end; and chance alone, in a window of a
//! thousand calls, takes the quantile from one end to the other. So the quantile holds unless
//! already far before it hardly more calls are left: then that is the threshold.
//!
//! ```text
//! S  │\            near: S falls to the tail + slack
//!    │ \.
//!    │   ▪────────────\        ▪ 1.35 times that: past the usual answers' last, so that what
//!    │                 \         crosses is the plateau, not the plateau and the slack
//!    └───┴──────────────┴── t
//!       near          exact quantile
//! ```
//! The threshold is the least of the two: continuous, and without effect on a curve that falls as
//! usual answers' do, where from `near` to the quantile it is less than a third. The slack is what a
//! window cannot tell apart anyway, its standard error 1.5 times, and a twentieth of the tail; where
//! too many cross after all, the trim of agent and controller takes it back.
//!
//! Measured (`--bench behaviour`, row `healthy`: 5 % stragglers for a target of 5 %): the threshold
//! went from 107 to 365 ms (tenth and ninetieth percentile) and now from 118 to 170, p99 from 387 ms
//! to some 225, at 4.9 % hedged as before. Without the reach p99 is 344 ms: at the near end itself
//! the slack crosses, too, and the trim then turns the threshold back to the far one. Without the
//! standard errors it is 377: the windows' chance is five times the slack that is left.

use std::time::Duration;

use super::SurvivalCurve;

/// Parts of the tail that more may cross anywhere.
const SLACK: f64 = 0.05;
/// Standard errors of the window that are no reason to wait.
const ERRORS: f64 = 1.5;
/// Parts of the tail that are the most slack there is, however few the calls.
const SLACK_MAX: f64 = 0.3;
/// How far past the near end.
const REACH: f64 = 1.35;

/// The threshold that a share `tail` of the calls (above 0 and below 1) is to cross, of a curve that
/// was estimated from so many; see the [module](self). `None` where the curve is not known that far.
pub fn threshold(curve: &SurvivalCurve, tail: f64, calls: u64) -> Option<Duration> {
    let exact = curve.quantile(1.0 - tail);
    let error = (tail * (1.0 - tail) / calls as f64).sqrt();
    let slack = (SLACK * tail + ERRORS * error).min(SLACK_MAX * tail);
    let near = curve.quantile(1.0 - tail - slack);
    let early = near.map(|near| near.mul_f64(REACH));
    // Of two that are known; either may lie beyond what is.
    exact.into_iter().chain(early).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Histogram;

    const MS: Duration = Duration::from_millis(1);

    /// Of 100,000 calls so many take 300 to 400 ms, the others 50 to 100.
    fn with_stragglers(stragglers: u32) -> SurvivalCurve {
        let mut done = Histogram::new();
        let usual = 100_000 - stragglers;
        (0..usual).for_each(|i| done.record(50 * MS + i * 50 * MS / usual));
        (0..stragglers).for_each(|i| done.record(300 * MS + i * 100 * MS / stragglers));
        SurvivalCurve::estimate(&done, &Histogram::new())
    }

    #[test]
    fn stragglers_about_as_many_as_may_cross_are_hedged_at_the_near_end_of_the_gap() {
        for (stragglers, calls) in [
            (4_990, 100_000),
            (5_010, 100_000),
            (5_200, 100_000),
            (5_500, 5_000),
            (5_900, 1_000),
        ] {
            let curve = with_stragglers(stragglers);
            let threshold = threshold(&curve, 0.05, calls).unwrap();
            assert!(
                (100 * MS..140 * MS).contains(&threshold),
                "{stragglers}: {threshold:?}"
            );
            // What crosses is the plateau.
            let share = curve.survival_at(threshold).unwrap();
            assert!((share - f64::from(stragglers) / 1e5).abs() < 1e-3);
        }
    }

    #[test]
    fn more_stragglers_than_chance_and_slack_explain_are_left_to_the_quantile() {
        for (stragglers, calls) in [(5_700, 100_000), (6_600, 1_000), (10_000, 200)] {
            let curve = with_stragglers(stragglers);
            let exact = curve.quantile(0.95);
            assert_eq!(threshold(&curve, 0.05, calls), exact, "{stragglers}");
        }
    }

    #[test]
    fn a_curve_that_falls_steadily_keeps_its_quantile() {
        // Uniform, exponential, and a power: S falls to half in twice the time.
        type Curve = fn(f64) -> f64;
        let curves: [Curve; 3] = [|u| u, |u| -u.ln(), |u| 1.0 / u];
        for latency in curves {
            let mut done = Histogram::new();
            (1..100_000).for_each(|i| {
                done.record((10 * MS).mul_f64(latency(f64::from(i) / 1e5)));
            });
            let curve = SurvivalCurve::estimate(&done, &Histogram::new());
            for (tail, calls) in [(0.05, 200), (0.05, 1_000), (0.01, 1_000), (0.001, 100_000)] {
                let exact = curve.quantile(1.0 - tail);
                assert_eq!(threshold(&curve, tail, calls), exact, "{tail} of {calls}");
            }
        }
    }
}
