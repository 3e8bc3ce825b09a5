//! What an attempt meets at a moment: the service as it is, and all that goes wrong with it.

use super::pauses::Pauses;
use crate::chance::Random;
use crate::scenario::{Fault, FaultKind, Scenario, Service};

/// Longest work: an hour, where latencies end.
const WORK_MAX_US: f64 = 3.6e9;

/// What is drawn for one attempt, always as much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    normal: f64,
    stalls: f64,
    fails: f64,
}

impl Draws {
    pub(super) fn of(random: &mut Random) -> Self {
        Self {
            normal: random.normal(),
            stalls: random.unit(),
            fails: random.unit(),
        }
    }
}

/// What a call is, whoever answers it: both copies meet it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared {
    factor: f64,
    more_ms: f64,
}

/// How an attempt ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    /// Of work, microseconds; None: it never ends.
    pub(super) work: Option<u64>,
    pub(super) fails: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Weather {
    service: Service,
    faults: Vec<Fault>,
    pauses: Pauses,
}

impl Weather {
    pub(super) fn of(scenario: &Scenario, seed: u64) -> Self {
        let Scenario {
            faults,
            fleet,
            service,
            seconds,
            ..
        } = scenario;
        Self {
            service: service.clone(),
            pauses: Pauses::drawn(faults, seed, fleet.replicas, *seconds as f64),
            faults: faults.clone(),
        }
    }

    fn on(&self, t: f64) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(move |fault| fault.is_on(t))
    }

    /// When there are next more or fewer calls, after a moment; both in microseconds.
    pub(super) fn traffic_changes_after(&self, now: u64) -> Option<u64> {
        let surge = |it: &&Fault| matches!(it.kind, FaultKind::Surge { .. });
        let surges = self.faults.iter().filter(surge);
        let edges = surges.flat_map(|it| [Some(it.from_s), it.to_s]).flatten();
        let edges = edges.map(|s| (s * 1e6).ceil() as u64);
        edges.filter(|at| *at > now).min()
    }

    /// What a call that begins at `t` is. Draws for each fault of the scenario, on or not.
    pub(super) fn shared(&self, t: f64, random: &mut Random) -> Shared {
        let mut shared = Shared {
            factor: 1.0,
            more_ms: 0.0,
        };
        for fault in &self.faults {
            let drawn = random.unit();
            if !fault.is_on(t) {
                continue;
            }
            match fault.kind {
                FaultKind::Expensive { share, factor } if drawn < share => shared.factor *= factor,
                FaultKind::SharedStall { share, ms } if drawn < share => shared.more_ms += ms,
                _ => {}
            }
        }
        shared
    }

    /// How an attempt ends that begins on `replica` at `t`.
    pub(super) fn fate(&self, t: f64, replica: usize, shared: &Shared, draws: &Draws) -> Fate {
        let mut factor = shared.factor;
        let (mut sigma, mut stall_share, mut stall_ms) = (
            self.service.sigma,
            self.service.stall_share,
            self.service.stall_ms,
        );
        for fault in self.on(t) {
            let reached = |over_s: f64| ((t - fault.from_s) / over_s.max(1e-9)).min(1.0);
            match &fault.kind {
                FaultKind::Dead { replicas } if replicas.has(replica) => {
                    return Fate {
                        work: None,
                        fails: false,
                    };
                }
                FaultKind::Failing {
                    share,
                    replicas,
                    ms,
                } if replicas.has(replica) && draws.fails < *share => {
                    return Fate {
                        work: Some((ms * 1e3) as u64),
                        fails: true,
                    };
                }
                FaultKind::Slow {
                    factor: times,
                    replicas,
                } if replicas.has(replica) => factor *= times,
                FaultKind::Drift {
                    factor: times,
                    over_s,
                } => factor *= 1.0 + (times - 1.0) * reached(*over_s),
                FaultKind::TailDrift {
                    sigma: to,
                    stall_ms: to_ms,
                    over_s,
                } => {
                    let part = reached(*over_s);
                    let towards =
                        |from: f64, to: Option<f64>| from + part * (to.unwrap_or(from) - from);
                    (sigma, stall_ms) = (towards(sigma, *to), towards(stall_ms, *to_ms));
                }
                FaultKind::Stalls { share, ms } => (stall_share, stall_ms) = (*share, *ms),
                _ => {}
            }
        }
        let stall = if draws.stalls < stall_share {
            stall_ms
        } else {
            0.0
        };
        let usual = self.service.median_ms * (sigma * draws.normal).exp();
        let us = ((usual + stall) * factor + shared.more_ms) * 1e3;
        Fate {
            work: Some(us.min(WORK_MAX_US) as u64),
            fails: false,
        }
    }

    /// When `work` is done that begins on `replica` at `now`.
    pub(super) fn done_at(&self, replica: usize, now: u64, work: u64) -> u64 {
        self.pauses.done_at(replica, now, work)
    }
}
