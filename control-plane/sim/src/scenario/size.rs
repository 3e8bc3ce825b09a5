//! What a run would need: each field may stand by itself, and all of them together be more than a
//! machine can hold. Said before the run, not by the system after a minute of it.

use super::{FaultKind, Scenario, ScenarioError, Which};

/// Most calls a second, with all surges that are on at once.
const RATE_MAX: f64 = 1e6;
/// Most calls that can be unanswered at once: some 120 bytes each.
const IN_FLIGHT_MAX: f64 = 1e7;
/// Most pairs of an agent and a replica: each has books.
const PAIRS_MAX: usize = 10_000_000;
/// Most pauses of all replicas, as expected: each is drawn before the run.
const PAUSES_MAX: f64 = 5e6;

impl Scenario {
    pub(super) fn check_size(&self) -> Result<(), ScenarioError> {
        let fleet = &self.fleet;
        let pairs = fleet.agents.saturating_mul(fleet.replicas);
        let most = format!("at most {PAIRS_MAX} pairs of an agent and a replica");
        at_most("fleet.agents", pairs as f64, PAIRS_MAX as f64, &most)?;
        let seconds = (fleet.deadline_ms / 1e3).min(self.seconds as f64);
        let starts = self.faults.iter().map(|it| it.from_s);
        for t in std::iter::once(0.0).chain(starts) {
            let rate = fleet.calls_per_s * self.traffic(t);
            let most = format!("at most {RATE_MAX} calls a second, with all surges at {t} s");
            at_most("fleet.calls_per_s", rate, RATE_MAX, &most)?;
            let most = format!("at most {IN_FLIGHT_MAX} calls within a deadline at {t} s");
            at_most("fleet.deadline_ms", rate * seconds, IN_FLIGHT_MAX, &most)?;
        }
        let mut pauses = 0.0;
        for (i, fault) in self.faults.iter().enumerate() {
            let end = self.seconds as f64;
            let lasts = (fault.to_s.unwrap_or(end).min(end) - fault.from_s).max(0.0);
            pauses += lasts * self.pauses_per_s(&fault.kind);
            let most = format!("at most {PAUSES_MAX} pauses of all replicas, with those before");
            at_most(&format!("fault[{i}].ms"), pauses, PAUSES_MAX, &most)?;
        }
        Ok(())
    }

    /// Times the usual traffic at `t` seconds.
    pub(crate) fn traffic(&self, t: f64) -> f64 {
        let on = self.faults.iter().filter(|fault| fault.is_on(t));
        let times = on.map(|fault| match fault.kind {
            FaultKind::Surge { factor } => factor,
            _ => 1.0,
        });
        times.product()
    }

    fn pauses_per_s(&self, kind: &FaultKind) -> f64 {
        let (ms, share, replicas) = match kind {
            FaultKind::SharedPauses { ms, share_of_time } => {
                (ms, share_of_time, self.fleet.replicas)
            }
            FaultKind::ReplicaPauses {
                ms,
                share_of_time,
                replicas,
            } => {
                let count = match replicas {
                    Which::All => self.fleet.replicas,
                    Which::These(these) => these.len(),
                };
                (ms, share_of_time, count)
            }
            _ => return 0.0,
        };
        share / (ms / 1e3) * replicas as f64
    }
}

fn at_most(field: &str, value: f64, most: f64, expected: &str) -> Result<(), ScenarioError> {
    // A product without end is more, and so is one that is no number.
    if value <= most {
        return Ok(());
    }
    Err(ScenarioError::Range {
        field: field.to_owned(),
        value: format!("{value:.0}"),
        expected: expected.to_owned(),
    })
}
