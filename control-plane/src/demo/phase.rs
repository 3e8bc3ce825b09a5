//! What a phase of the demo showed, as one JSON object, and what must hold of it.

use serde::Serialize;

use super::line::{Course, share};

/// Figures of a phase; `null` where there is no value.
#[derive(Debug, Clone, Default, Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "`phase` is the name in the printed object"
)]
pub(crate) struct Phase {
    pub(crate) phase: &'static str,
    pub(crate) calls: u64,
    pub(crate) hedge_rate: Option<f64>,
    pub(crate) demand: Option<f64>,
    pub(crate) win_rate: Option<f64>,
    pub(crate) error_rate: Option<f64>,
    pub(crate) threshold_ms: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p99_holdout_ms: Option<f64>,
    pub(crate) budget: f64,
    pub(crate) seconds_over_budget: u64,
    pub(crate) mode: String,
    pub(crate) reason: String,
    pub(crate) replica: Option<String>,
    pub(crate) off_after_s: Option<f64>,
    pub(crate) on_after_s: Option<f64>,
    pub(crate) offs: u64,
    pub(crate) ons: u64,
    /// What the verdict needs beyond the printed figures.
    #[serde(skip)]
    pub(crate) seen: Seen,
}

/// Counts behind the verdict.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Requests that reached the servers beyond one for each call, as a share of calls: the load
    /// hedging costs, counted where it is paid.
    pub(crate) extra_load: Option<f64>,
    pub(crate) failed_calls: u64,
    pub(crate) failed_despite_primary: u64,
    pub(crate) treated: (u64, u64),
    pub(crate) holdout: (u64, u64),
    /// What came after hedging went off.
    pub(crate) after_off: Option<AfterOff>,
    /// Whether the page and a firing alert name the slow replica.
    pub(crate) page_names_replica: bool,
    pub(crate) alert_names_replica: bool,
}

/// Traffic after hedging went off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AfterOff {
    pub(crate) seconds: f64,
    pub(crate) crossed: u64,
    pub(crate) hedged: u64,
}

impl AfterOff {
    /// Whether there were no more hedges than probes: a share clamp(5 / crossed a second, 0.02, 0.5)
    /// of crossed calls (ALGORITHMS 4), give or take four standard errors of that count, and the
    /// one second in which the order to stop is under way.
    fn only_probes(self) -> bool {
        let crossed_per_s = self.crossed as f64 / self.seconds.max(1.0);
        let share = (5.0 / crossed_per_s.max(1.0)).clamp(0.02, 0.5);
        let expected = share * (self.crossed as f64 + crossed_per_s);
        self.hedged as f64 <= expected + 4.0 * expected.sqrt()
    }
}

impl Phase {
    /// Fills in what the clients saw.
    pub(crate) fn with_course(mut self, course: &Course) -> Self {
        let totals = &course.totals;
        self.calls = totals.started;
        self.hedge_rate = share(totals.hedged, totals.started);
        self.win_rate = share(totals.won, totals.hedged);
        self.error_rate = share(totals.primary_errors, totals.primary_finished);
        self.p50_ms = course.treated_ms(0.5);
        self.p99_ms = course.treated_ms(0.99);
        self.p99_holdout_ms = course.holdout_ms(0.99);
        self.seen.failed_calls = course.caller.failed;
        self.seen.failed_despite_primary = course.caller.failed_despite_primary;
        self.seen.treated = (totals.treated_failed, totals.treated_finished);
        self.seen.holdout = (totals.holdout_failed, totals.holdout_finished);
        self
    }

    /// Everything that does not hold, in words. Empty: the phase is as promised.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut must = |holds: bool, words: String| {
            if !holds {
                broken.push(format!("{}: {words}", self.phase));
            }
        };
        must(
            self.seen.failed_despite_primary == 0,
            format!(
                "{} calls failed although their primary had answered",
                self.seen.failed_despite_primary
            ),
        );
        match self.phase {
            "healthy" => self.healthy_as_promised(&mut must),
            "one_replica_slow" => self.one_slow_as_promised(&mut must),
            "all_slow" => {
                self.off_as_promised("shared_slowdown", 10.0, &mut must);
                must(self.seconds_over_budget == 0, self.budget_words());
                must(
                    self.seen.after_off.is_some_and(AfterOff::only_probes),
                    format!("after off {:?}: more than probes", self.seen.after_off),
                );
            }
            "failing" => {
                self.off_as_promised("errors", 5.0, &mut must);
                must(
                    self.treated_fail_no_more(),
                    format!(
                        "treated calls failed {:?}, held-out ones {:?}: more than 3 standard errors",
                        self.seen.treated, self.seen.holdout
                    ),
                );
            }
            _ => self.on_as_promised(&mut must),
        }
        broken
    }

    fn healthy_as_promised(&self, must: &mut impl FnMut(bool, String)) {
        must(
            self.hedge_rate.is_some_and(|r| (0.035..=0.06).contains(&r)),
            format!(
                "hedge rate {}, expected 3.5 % to 6 %",
                self.hedge_rate
                    .map_or_else(|| "unknown".into(), |rate| format!("{:.2} %", rate * 100.0))
            ),
        );
        must(self.halves_the_tail(), self.tail_words());
        must(
            self.mode == "on",
            format!("mode {}, expected on", self.mode),
        );
        must(
            self.offs == 0,
            format!("hedging went off {} times", self.offs),
        );
    }

    fn one_slow_as_promised(&self, must: &mut impl FnMut(bool, String)) {
        must(self.halves_the_tail(), self.tail_words());
        must(self.seconds_over_budget == 0, self.budget_words());
        must(
            self.mode == "on" && self.offs == 0,
            format!(
                "mode {}, {} offs, expected on and none",
                self.mode, self.offs
            ),
        );
        must(self.replica.is_some(), "no replica is named".into());
        must(
            self.seen.page_names_replica,
            "the page does not name the replica".into(),
        );
        must(
            self.seen.alert_names_replica,
            "no alert names the replica".into(),
        );
    }

    fn on_as_promised(&self, must: &mut impl FnMut(bool, String)) {
        must(
            self.mode == "on",
            format!("mode {}, expected on", self.mode),
        );
        must(
            self.on_after_s.is_some_and(|s| s <= 60.0),
            format!(
                "on again after {} s, expected within 60",
                figure(self.on_after_s)
            ),
        );
        must(
            self.ons == 1 && self.offs == 0,
            format!("{} ons and {} offs, expected one on", self.ons, self.offs),
        );
    }

    fn off_as_promised(&self, reason: &str, within_s: f64, must: &mut impl FnMut(bool, String)) {
        must(
            (self.mode == "off" || self.mode == "probing") && self.reason == reason,
            format!(
                "{} ({}), expected off or probing ({reason})",
                self.mode, self.reason
            ),
        );
        must(
            self.off_after_s.is_some_and(|s| s <= within_s),
            format!(
                "off after {} s, expected within {within_s}",
                figure(self.off_after_s)
            ),
        );
        must(
            self.offs == 1 && self.ons == 0,
            format!("{} offs and {} ons, expected one off", self.offs, self.ons),
        );
    }

    fn halves_the_tail(&self) -> bool {
        match (self.p99_ms, self.p99_holdout_ms) {
            (Some(hedged), Some(holdout)) => hedged <= holdout / 2.0,
            _ => false,
        }
    }

    fn tail_words(&self) -> String {
        format!(
            "hedged p99 {} ms, held-out {} ms: expected at most half",
            figure(self.p99_ms),
            figure(self.p99_holdout_ms)
        )
    }

    fn budget_words(&self) -> String {
        format!(
            "{} seconds over the budget, expected none",
            self.seconds_over_budget
        )
    }

    fn treated_fail_no_more(&self) -> bool {
        let (treated_failed, treated) = self.seen.treated;
        let (holdout_failed, holdout) = self.seen.holdout;
        if treated == 0 || holdout == 0 {
            return false;
        }
        let (n, m) = (treated as f64, holdout as f64);
        let (a, b) = (treated_failed as f64 / n, holdout_failed as f64 / m);
        let pooled = (treated_failed + holdout_failed) as f64 / (n + m);
        let error = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
        a <= b + 3.0 * error
    }
}

/// In words for a person.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "unknown".into(), |value| format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> Phase {
        Phase {
            phase: "healthy",
            hedge_rate: Some(0.045),
            p99_ms: Some(50.0),
            p99_holdout_ms: Some(310.0),
            mode: "on".into(),
            ..Phase::default()
        }
    }

    #[test]
    fn a_phase_as_promised_has_no_failures() {
        assert_eq!(healthy().failures(), Vec::<String>::new());
    }

    #[test]
    fn each_broken_promise_is_named() {
        let broken = Phase {
            hedge_rate: Some(0.097),
            p99_ms: Some(200.0),
            ..healthy()
        }
        .failures();
        assert_eq!(broken.len(), 2, "{broken:?}");
        assert!(broken[0].contains("hedge rate"));
        assert!(broken[1].contains("at most half"));
    }

    #[test]
    fn no_value_never_passes_for_a_good_one() {
        let silent = Phase {
            phase: "failing",
            ..Phase::default()
        };
        assert!(silent.failures().len() >= 3);
    }
}
