//! The controller's second, and the row it makes.

use hedgerow_core::decide::Decision;
use hedgerow_core::view::AgentRouteView;
use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::report::LinkState;
use hedgerow_protocol::units::{Threshold, as_millis};

use super::{Event, SECOND, World};
use crate::outcome::{Decided, NamedReplica, Second};

/// Beyond so many agents nobody is asked one by one each second.
const AGENTS_ASKED: usize = 1000;

impl World<'_> {
    pub(super) fn tick(&mut self) -> Second {
        let now = self.now();
        self.clock.at(now + SECOND, Event::Tick);
        if let Some(driver) = &mut self.driver {
            driver.tick(now);
        }
        self.follow_driver();
        let measured = self.meter.end_second(self.scenario);
        let decided = self.driver.as_ref().and_then(|driver| driver.decision());
        let decided = decided.map(decided_of);
        let window = decided.as_ref().and_then(|it| it.window_s);
        let window = window.map_or(1, |seconds| seconds.round() as usize);
        let millis = |q, seconds| self.meter.true_quantile(q, seconds).map(as_millis);
        let counters = measured.counters;
        let waited = |q| measured.waited.quantile(q).map(as_millis);
        let mut row = Second {
            second: now / SECOND,
            calls: counters.calls,
            finished: counters.finished,
            failed: counters.failed,
            abandoned: counters.abandoned,
            crossed: counters.crossed,
            hedged: counters.hedged,
            won: counters.won,
            refused: counters.refusals(),
            waited_p50_ms: waited(0.5),
            waited_p99_ms: waited(0.99),
            true_p99_ms: millis(0.99, 1),
            true_p95_window_ms: millis(0.95, window),
            true_p99_window_ms: millis(0.99, window),
            agents_attached: 0,
            agents_fallback: 0,
            agents_own_off: 0,
            agents_quarantined: None,
            agents_threshold_ms: None,
            utilisation: Vec::new(),
            waiting: None,
            decided,
        };
        if let Some(queues) = &mut self.queues {
            row.utilisation = queues.utilisation(now, 1.0);
            row.waiting = Some(queues.waiting());
        }
        self.ask_agents(&mut row);
        row
    }

    fn ask_agents(&self, row: &mut Second) {
        let now = self.now();
        let mut thresholds = Vec::new();
        for agent in &self.agents {
            row.agents_attached += u64::from(agent.connection.is_some());
            if self.driver.is_some() {
                let link = agent.orders.link_state(agent.age(now));
                row.agents_fallback += u64::from(link == LinkState::Fallback);
                row.agents_own_off += u64::from(agent.own_off());
                thresholds.extend(agent.in_force.threshold.map(Threshold::get));
            } else if let Some(plain) = &agent.plain {
                thresholds.extend(plain.threshold());
            }
        }
        thresholds.sort_unstable();
        row.agents_threshold_ms = thresholds.get(thresholds.len() / 2).copied().map(as_millis);
        if self.agents.len() > AGENTS_ASKED {
            return;
        }
        let snapshot = self.driver.as_ref().and_then(|driver| driver.snapshot(now));
        row.agents_quarantined = snapshot.map(|snapshot| {
            let out = |it: &AgentRouteView| it.quarantine.is_some();
            let agents = snapshot.agents.iter();
            agents.filter(|it| it.routes.iter().any(out)).count() as u64
        });
    }
}

fn decided_of(decision: &Decision) -> Decided {
    let figures = decision.figures.as_ref();
    let millis = |it: Option<std::time::Duration>| it.map(as_millis);
    Decided {
        mode: decision.mode.as_str(),
        reason: decision.mode.reason().map(OffReason::as_str),
        words: decision.words.clone(),
        threshold_ms: decision.live.threshold.map(|it| as_millis(it.get())),
        probability: decision.live.probability.get(),
        budget: decision.live.budget.get(),
        cap: decision.live.cap,
        named: decision
            .named
            .iter()
            .map(|(replica, why)| NamedReplica {
                replica: replica.to_string(),
                why: *why,
            })
            .collect(),
        probation: decision.probation.iter().map(ToString::to_string).collect(),
        window_s: figures.map(|it| it.window.as_secs_f64()),
        p50_ms: figures.and_then(|it| millis(it.p50)),
        p95_ms: figures.and_then(|it| millis(it.p95)),
        p99_ms: figures.and_then(|it| millis(it.p99)),
        demand: figures.and_then(|it| it.demand),
        error_rate: figures.and_then(|it| it.error_rate),
        phi: figures.and_then(|it| it.phi),
        hedges_answered_ratio: figures.and_then(|it| it.hedges_answered_ratio),
        log_rank_z: figures.and_then(|it| it.log_rank_z),
        median_ratio: figures.and_then(|it| it.median_ratio),
        over_budget: decision.over_budget,
    }
}
