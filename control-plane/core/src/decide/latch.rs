//! A rule that switches off after some ticks over its limit, and on again after some ticks well
//! under it and a least stay.

use std::time::Duration;

use super::words::percent;
use crate::moment::Moment;
use crate::view::Evidence;

/// Least time an automatic off lasts: shorter ones would only be seen as noise.
pub(crate) const LEAST_STAY: Duration = Duration::from_secs(10);
/// Ticks in a row over the limit before a rule acts: one bad second is nobody's fault.
pub(crate) const TICKS_OVER: u32 = 2;
/// Ticks in a row well under the limit before it lets go.
pub(crate) const TICKS_WELL: u32 = 3;

/// What one look at the figures says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// Over the limit.
    Over(Seen),
    /// Under the limit for letting go.
    Well(Seen),
    /// Between the two.
    Between,
    /// Too little to say, or nothing new: changes nothing.
    Unknown,
}

/// A share beside the limit that it is over or under. Nearly every look is one that nobody asks the
/// words of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Seen {
    /// As `error rate`.
    pub(crate) what: &'static str,
    /// 0 to 1.
    pub(crate) value: f64,
    /// The same.
    pub(crate) limit: f64,
    /// Over what time.
    pub(crate) window: Duration,
}

impl Seen {
    fn findings(&self) -> Findings {
        let sign = if self.value > self.limit { '>' } else { '<' };
        let (value, limit) = (percent(self.value), percent(self.limit));
        Findings {
            words: format!("{} {value} {sign} {limit}", self.what),
            evidence: vec![Evidence {
                what: self.what.into(),
                value: self.value * 100.0,
                limit: self.limit * 100.0,
                unit: "%".into(),
                window: self.window,
            }],
        }
    }
}

/// Figures and the same in words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Findings {
    /// As `error rate 6.1 % > 5 %`.
    pub(crate) words: String,
    /// Value and limit side by side.
    pub(crate) evidence: Vec<Evidence>,
}

/// An off and what led to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tripped {
    /// Since when.
    pub(crate) at: Moment,
    /// Why.
    pub(crate) why: Findings,
}

/// The state of one rule. It and its time change together: there is no second place (B35).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Latch {
    over: u32,
    well: u32,
    tripped: Option<Tripped>,
}

impl Latch {
    /// Off since before, by a controller that is no more.
    pub(crate) fn restored(at: Moment, why: Findings) -> Self {
        Self {
            tripped: Some(Tripped { at, why }),
            ..Self::default()
        }
    }

    /// The off, while it lasts.
    pub(crate) fn tripped(&self) -> Option<&Tripped> {
        self.tripped.as_ref()
    }

    /// One tick. Returns what let it go, where it does so now.
    pub(crate) fn observe(&mut self, now: Moment, verdict: Verdict) -> Option<Findings> {
        let (over, well, seen) = match verdict {
            Verdict::Over(seen) => (self.over + 1, 0, seen),
            Verdict::Well(seen) => (0, self.well + 1, seen),
            Verdict::Between => (0, 0, Seen::default()),
            Verdict::Unknown => return None,
        };
        (self.over, self.well) = (over, well);
        match &self.tripped {
            None if over >= TICKS_OVER => {
                self.tripped = Some(Tripped {
                    at: now,
                    why: seen.findings(),
                });
                None
            }
            Some(tripped) if well >= TICKS_WELL && now.since(tripped.at) >= LEAST_STAY => {
                self.tripped = None;
                Some(seen.findings())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(verdicts: impl IntoIterator<Item = Verdict>) -> Vec<bool> {
        let mut latch = Latch::default();
        let mut off = Vec::new();
        for (second, verdict) in verdicts.into_iter().enumerate() {
            latch.observe(Moment::from_millis(second as u64 * 1_000), verdict);
            off.push(latch.tripped().is_some());
        }
        off
    }

    fn over() -> Verdict {
        Verdict::Over(Seen::default())
    }

    fn well() -> Verdict {
        Verdict::Well(Seen::default())
    }

    #[test]
    fn two_ticks_over_switch_off_and_one_does_not() {
        assert_eq!(
            run([over(), well(), over(), over()]),
            [false, false, false, true]
        );
        assert_eq!(run([over(), Verdict::Between, over()]), [false; 3]);
    }

    #[test]
    fn p14_an_off_stays_ten_seconds_and_three_ticks_must_be_well() {
        let off = run([over(), over()].into_iter().chain((0..12).map(|_| well())));
        assert_eq!(off.iter().filter(|off| **off).count(), 10, "{off:?}");
    }

    #[test]
    fn p16_silence_never_lets_go() {
        let off = run([over(), over()]
            .into_iter()
            .chain((0..500).map(|_| Verdict::Unknown)));
        assert!(off[1..].iter().all(|off| *off));
    }
}
