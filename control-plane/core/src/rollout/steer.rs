//! Each tick: on to the next stage, back, or wait.

use std::time::Duration;

use hedgerow_protocol::directive::{LiveValues, Mode, OffReason};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Intent;

use super::guard::{self, CALLS_MIN, Pair, What};
use super::seen::Arm;
use super::{Rollout, Trial};
use crate::alert::rate_line;
use crate::controller::Controller;
use crate::decide::latch::TICKS_OVER;
use crate::decide::words::percent;
use crate::event::Order;
use crate::moment::Moment;
use crate::route::Route;

/// Calls that agents with the new policy must have ended in a stage: as many as a threshold needs.
const CALLS_TO_PASS: u64 = hedgerow_protocol::limits::THRESHOLD_CALLS_MIN;
/// How long demand must be above its line, as for the alert of it: a healthy drift is over before.
const DEMAND_LASTS: Duration = Duration::from_secs(10);

/// What was seen of a rollout since its stage began, here: a restarted controller begins anew.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    pub(crate) since: Moment,
    /// Ticks in a row in which the share did worse.
    over: u32,
    /// Since when demand is above its line.
    demand: Option<Moment>,
    /// Why it is being taken back. Stays, also where the store fails: then it is tried again.
    pub(crate) reverting: Option<String>,
    pub(crate) agents: Agents,
    /// Whether an agent was in the share at any time.
    told: bool,
    pub(crate) figures: Vec<(RouteKey, Pair)>,
    pub(crate) calls: u64,
    pub(crate) words: String,
}

/// Attached agents on what a rollout is for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agents {
    /// In all.
    pub(crate) all: u64,
    /// In the share.
    pub(crate) share: u64,
    /// Of these, those that hold what they should on all their routes.
    pub(crate) holding: u64,
    /// What one of them refused, in words.
    refusal: Option<String>,
}

/// What the figures say.
#[derive(Debug, Default)]
struct Look {
    figures: Vec<(RouteKey, Pair)>,
    /// Calls that agents with the new policy ended on routes where it is in effect.
    calls: u64,
    worse: Option<String>,
    demand: Option<String>,
    /// Why it is not in effect on a route with calls.
    ineffective: Option<String>,
}

impl Watch {
    fn new(now: Moment) -> Self {
        Self {
            since: now,
            over: 0,
            demand: None,
            reverting: None,
            agents: Agents::default(),
            told: false,
            figures: Vec::new(),
            calls: 0,
            words: "just begun".into(),
        }
    }

    /// Takes in a tick. From then on, `reverting` says whether to take it back.
    fn take(&mut self, now: Moment, agents: Agents, look: Look) {
        self.over = if look.worse.is_some() {
            self.over + 1
        } else {
            0
        };
        self.demand = match look.demand {
            Some(_) => self.demand.or(Some(now)),
            None => None,
        };
        let demanding = self
            .demand
            .is_some_and(|since| now.since(since) >= DEMAND_LASTS);
        let worse = look.worse.filter(|_| self.over >= TICKS_OVER);
        let demand = look.demand.filter(|_| demanding);
        let reason = agents.refusal.clone().or(worse).or(demand);
        self.reverting = self.reverting.take().or(reason);
        self.told |= agents.share > 0;
        self.words = words(
            self.reverting.as_deref(),
            (&agents, self.told),
            look.ineffective.as_deref(),
            look.calls,
        );
        (self.agents, self.figures, self.calls) = (agents, look.figures, look.calls);
    }

    /// Why the next stage may begin, once its time is over.
    fn passes(&self, share: f64) -> Option<String> {
        let Agents { all, share: of, .. } = self.agents;
        if of > 0 && self.calls >= CALLS_TO_PASS && self.over == 0 && self.demand.is_none() {
            return Some(format!("{} calls with it were well", self.calls));
        }
        // Nobody was told anything, so that there is nothing to wait for. Where those who were told
        // are gone since, the policy may be why.
        (all > 0 && !self.told)
            .then(|| format!("none of {all} agents is among the first {}", percent(share)))
    }
}

impl Controller {
    /// Judges each rollout.
    pub(crate) fn steer_rollouts(&mut self, now: Moment) {
        let rollouts: Vec<_> = self.rules.rollouts.values().cloned().collect();
        for rollout in &rollouts {
            self.steer(now, rollout);
        }
    }

    fn steer(&mut self, now: Moment, rollout: &Rollout) {
        let scope = &rollout.state.scope;
        let agents = self.count_agents(rollout);
        let look = self.look(rollout);
        let watch = self
            .watches
            .entry(scope.clone())
            .or_insert_with(|| Watch::new(now));
        watch.take(now, agents, look);
        let back = watch.reverting.clone();
        let over = now.since(watch.since) >= rollout.state.plan.stay();
        let on = watch.passes(rollout.share.size()).filter(|_| over);
        if back.is_some() {
            for key in self.routes_under(scope) {
                self.refresh_trial(&key);
            }
        }
        if self.orders.steps(scope) {
            return;
        }
        let (scope, expected) = (scope.clone(), Some(rollout.next.revision));
        let (order, reason) = match (back, on) {
            (Some(why), _) => (Order::AbortRollout { scope, expected }, why),
            (None, Some(why)) => (Order::AdvanceRollout { scope, expected }, why),
            (None, None) => return,
        };
        self.order_itself(now, order, reason);
    }

    fn count_agents(&self, rollout: &Rollout) -> Agents {
        let scope = &rollout.state.scope;
        let order = self.fleet.order().iter();
        let due: Vec<_> = order.map(|key| self.rules.governs(scope, key)).collect();
        let mut agents = Agents::default();
        for agent in self.fleet.attached.values() {
            let is_due = |key: &RouteKey, slot: Option<usize>| match slot {
                Some(slot) => due[slot],
                None => self.rules.governs(scope, key),
            };
            let mut routes = agent
                .routes
                .iter()
                .filter(|(key, state)| is_due(key, state.slot))
                .peekable();
            if routes.peek().is_none() {
                continue;
            }
            agents.all += 1;
            if !rollout.share.has(agent.joined.instance) {
                continue;
            }
            agents.share += 1;
            let mut holds = true;
            for (key, state) in routes {
                let Some(wanted) = self.wanted_in_trial(key) else {
                    continue;
                };
                holds &= state.held == Some(wanted);
                if let Some(reason) = agent.refusal_of(state, wanted) {
                    let instance = agent.joined.instance;
                    agents.refusal.get_or_insert_with(|| {
                        format!("agent {instance} refused it on {key}: {reason}")
                    });
                }
            }
            agents.holding += u64::from(holds);
        }
        agents
    }

    fn look(&self, rollout: &Rollout) -> Look {
        let mut look = Look::default();
        for (key, route) in &self.routes {
            if self.rules.governs(&rollout.state.scope, key)
                && let Some(trial) = &route.trial
            {
                look.add(rollout, key, route, trial);
            }
        }
        look
    }
}

impl Look {
    fn add(&mut self, rollout: &Rollout, key: &RouteKey, route: &Route, trial: &Trial) {
        let [share, rest] = trial.seen.arms();
        let ended = share.totals.finished.saturating_sub(share.totals.abandoned);
        if ended == 0 {
            return;
        }
        if trial.durable.mode == meant(rollout.next.policy.intent()) && !trial.is_held_back() {
            self.calls += ended;
        } else if let Some(decision) = &trial.decision {
            self.ineffective
                .get_or_insert_with(|| format!("{}: {}", key.operation, decision.words));
        }
        let (mut figures, worse) = guard::compare(&share, &rest);
        let [new, old] = trial.seen.new_arms();
        // Where the rest is not to hedge, it is asked what it would want by the new policy: what all
        // wait for alike is not its doing.
        let by_old = if route.durable.mode.hedges() {
            route.live
        } else {
            trial.live
        };
        let told = |live: Option<LiveValues>| live.map_or(0.0, |it| it.probability.get());
        let demand = Pair {
            what: What::Demand,
            new: demand(&new, told(trial.live)),
            old: demand(&old, told(by_old)),
        };
        figures.push(demand);
        let policy = &rollout.next.policy;
        let lent = route.lent_by(policy.pool()).map(|it| it.budget.get());
        let line = rate_line(Some(policy.budget().get()), lent);
        // Where the rest wants as many, it is not the policy's doing.
        if let Some(wanted) = demand.new.filter(|it| *it > line)
            && demand.old.is_none_or(|old| old <= line)
        {
            self.demand.get_or_insert_with(|| {
                format!(
                    "{key}: {} of calls want a hedge with the new policy, for {} s; {} is the line",
                    percent(wanted),
                    DEMAND_LASTS.as_secs(),
                    percent(line)
                )
            });
        }
        if let Some(worse) = worse {
            self.worse.get_or_insert_with(|| format!("{key}: {worse}"));
        }
        self.figures
            .extend(figures.into_iter().map(|pair| (key.clone(), pair)));
    }
}

fn demand(arm: &Arm, probability: f64) -> Option<f64> {
    let started = arm.totals.started;
    (started >= CALLS_MIN).then(|| arm.totals.crossed as f64 / started as f64 * probability)
}

/// The mode in which a policy does what it is for.
fn meant(intent: Intent) -> Mode {
    match intent {
        Intent::Hedge => Mode::On,
        Intent::Observe => Mode::Observing,
        Intent::Off => Mode::Off(OffReason::Policy),
    }
}

fn words(
    reverting: Option<&str>,
    (agents, told): (&Agents, bool),
    ineffective: Option<&str>,
    calls: u64,
) -> String {
    if let Some(why) = reverting {
        format!("taken back: {why}")
    } else if agents.all == 0 {
        "waiting for agents: none reports it".into()
    } else if agents.share == 0 && told {
        "waiting for the agents in the share, which are gone".into()
    } else if agents.share == 0 {
        format!("none of {} agents is in the share", agents.all)
    } else if agents.holding == 0 {
        format!("waiting for {} agents to take it", agents.share)
    } else if calls >= CALLS_TO_PASS {
        "well so far".into()
    } else if let Some(why) = ineffective {
        format!("waiting, the policy is not in effect: {why}")
    } else {
        format!("waiting for calls: {calls} of {CALLS_TO_PASS}")
    }
}
