//! Less is hedged the busier the dependency is, where somebody says how busy that is.
//!
//! A hedge that is not cancelled in a queue is more work for a dependency that may have none to
//! spare: it stops paying at some 60 % of its capacity for tails that come of queueing and at 80 %
//! for stalls. So the budget is lent whole up to 60 %, and less and less until at 80 % nothing is
//! hedged at all: neither by new tokens nor by those that agents have kept.
//!
//! Nothing here measures the utilisation. It is a reading from outside that holds for as long as
//! who gave it said; older than that it says nothing, and limits nothing.

use std::time::Duration;

use hedgerow_protocol::units::Ratio;

use super::words::{clock, percent};
use crate::moment::Moment;

/// Utilisation from which nothing is hedged.
pub(crate) const FULL: f64 = 0.8;
/// How far below that the budget begins to be cut.
const SLOPE: f64 = 0.2;

/// A reading of a dependency's utilisation, 0 to 1 of what it can carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilisation {
    /// How much of its capacity is in use.
    pub value: Ratio,
    /// When it was told.
    pub at: Moment,
    /// How long it holds.
    pub valid_for: Duration,
}

impl Utilisation {
    /// Until when it holds.
    pub fn until(&self) -> Moment {
        self.at.plus(self.valid_for)
    }

    /// The value, while it holds.
    pub fn known(&self, now: Moment) -> Option<f64> {
        (now < self.until()).then(|| self.value.get())
    }
}

/// The share of the budget that is lent at a utilisation.
pub(crate) fn lent(utilisation: Option<f64>) -> f64 {
    utilisation.map_or(1.0, |value| ((FULL - value) / SLOPE).clamp(0.0, 1.0))
}

/// What a route that is on says of it; None: there is nothing to say. `budget` is what is lent, all
/// reasons together, `whole` the policy's.
pub(crate) fn words(
    reading: Option<&Utilisation>,
    now: Moment,
    budget: f64,
    whole: f64,
) -> Option<String> {
    let reading = reading?;
    match reading.known(now) {
        None => Some(format!(
            "utilisation unknown since {}",
            clock(reading.until())
        )),
        Some(value) if value >= FULL => Some(format!(
            "nothing is hedged: utilisation {value:.2}, at {FULL} a hedge no longer pays"
        )),
        Some(value) if lent(Some(value)) < 1.0 => Some(format!(
            "budget {} of {}: utilisation {value:.2}",
            percent(budget),
            percent(whole)
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_whole_up_to_60_percent_and_nothing_from_80() {
        for (utilisation, expected) in [
            (None, 1.0),
            (Some(0.0), 1.0),
            (Some(0.59), 1.0),
            (Some(0.6), 1.0),
            (Some(0.65), 0.75),
            (Some(0.72), 0.4),
            (Some(0.79), 0.05),
            (Some(0.8), 0.0),
            (Some(0.95), 0.0),
            (Some(1.0), 0.0),
        ] {
            let found = lent(utilisation);
            assert!((found - expected).abs() < 1e-9, "{utilisation:?}: {found}");
        }
    }

    #[test]
    fn a_reading_is_known_for_as_long_as_it_holds_and_no_longer() {
        let reading = Utilisation {
            value: Ratio::clamped(0.72),
            at: Moment::from_millis(50_000_000),
            valid_for: Duration::from_mins(1),
        };
        let after = |ms: u64| reading.at.plus(Duration::from_millis(ms));
        assert_eq!(reading.known(after(59_999)), Some(0.72));
        assert_eq!(reading.known(after(60_000)), None);
        let said = |now| words(Some(&reading), now, 0.032, 0.08);
        assert_eq!(
            said(after(0)).unwrap(),
            "budget 3.2 % of 8 %: utilisation 0.72"
        );
        assert_eq!(
            said(after(60_000)).unwrap(),
            "utilisation unknown since 13:54:20 UTC"
        );
        assert_eq!(words(None, after(0), 0.08, 0.08), None);
    }
}
