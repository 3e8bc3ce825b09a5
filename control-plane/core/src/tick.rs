//! The tick: what arrived becomes windows, windows become decisions, decisions become directives,
//! alerts and records.

use std::collections::BTreeSet;
use std::time::Duration;

use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Policy;

use crate::alert::{Observed, REVERTED_FIRES};
use crate::controller::Controller;
use crate::decide::errors::PUSH_BACK_LIMIT;
use crate::decide::goal::InForce;
use crate::decide::{Decision, Situation, decide, in_force};
use crate::effect::{AuditRow, Record};
use crate::event::Actor;
use crate::memory::Memory;
use crate::moment::Moment;
use crate::orders::{covers, mode_words};
use crate::push::probation_list;
use crate::quarantine::Floors;
use crate::route::{Census, Place, Route};
use crate::rules::Rules;
use crate::view::{Mark, MarkKind};

/// A probation list changes at most this often: each change is stored and sent to every agent.
pub(crate) const PROBATION_LASTS: Duration = Duration::from_secs(5);
/// Refusals shown for a route: the reason is mostly the same.
const REFUSALS_SHOWN: usize = 100;
/// Agents quarantined or let go in a tick that are told of one by one.
const AGENTS_TOLD: usize = 10;
/// A route nobody has reported for so long, and whose mode was never changed, is forgotten.
const UNUSED_KEPT: Duration = Duration::from_hours(1);

impl Controller {
    /// A tick is due: see [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Moment) {
        let since_last = now.since(self.ticked);
        if since_last > self.settings.tick * 2 {
            self.fleet
                .excuse(since_last.saturating_sub(self.settings.tick));
        }
        self.ticked = now;
        self.tick = self.tick.next();
        self.begin_epoch(now);
        for connection in self.fleet.age(now, self.settings.heartbeat) {
            let agent = self.fleet.attached.get(&connection);
            for key in agent.into_iter().flat_map(|agent| agent.routes.keys()) {
                if let Some(route) = self.routes.get_mut(key) {
                    route.windows.forget(connection.0);
                }
            }
        }
        self.take_census(now);
        let keys: Vec<_> = self.routes.keys().cloned().collect();
        for key in &keys {
            self.fold(now, key, since_last);
            self.run_switchback(now, key);
            self.judge(now, key);
            if let Some(route) = self.routes.get_mut(key)
                && route
                    .decision
                    .as_ref()
                    .is_some_and(|decision| decision.over_budget)
                // What an agent may send goes by its policy: of two, the larger counts.
                && route
                    .trial
                    .as_ref()
                    .and_then(|trial| trial.decision.as_ref())
                    .is_none_or(|decision| decision.over_budget)
            {
                route.seconds_over_budget += 1;
            }
        }
        self.share_out(now);
        self.steer_rollouts(now);
        self.raise_alerts(now);
        self.draw_courses(now);
        self.persist_changes();
        for key in &keys {
            self.publish_route(now, key);
            if self.live_is_due(now, key) {
                self.routes_to_push.insert(key.clone());
            }
        }
        self.forget_routes(now);
        self.forget_utilisation(now);
        self.count_rate(now);
        self.lend_to_starters(now);
        self.flush_pushes(now);
        // Lent in this second or not at all: what could not be sent is not a debt.
        self.credits.clear();
    }

    /// Makes a slice of what arrived for a route, and tells which agents were left out or let go.
    fn fold(&mut self, now: Moment, key: &RouteKey, since_last: Duration) {
        let policy = self.rules.policy(key);
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let floors = floors(policy.map(|it| &**it), key, &route.memory);
        let fleet = &self.fleet;
        let attached = |connection| fleet.attached.contains_key(&connection);
        route.sent.tick(now);
        let (slice, changes) = route.fold(now, floors, attached);
        route.windows.push(slice, since_last);
        if let Some(slice) = route.windows.last() {
            route.minute.add(slice);
        }
        if let Some(trial) = &mut route.trial {
            trial.seen.tick();
        }
        let mut records = Vec::new();
        for (number, change) in changes.iter().enumerate() {
            let verb = if change.into { "quarantined" } else { "let go" };
            let words = if number < AGENTS_TOLD {
                format!("agent {} {verb}: {}", change.instance, change.words)
            } else {
                format!(
                    "{} more agents quarantined or let go",
                    changes.len() - number
                )
            };
            records.push(Record::Audit(AuditRow {
                at: now,
                actor: Actor::controller(),
                action: if change.into {
                    "agent.quarantine".into()
                } else {
                    "agent.release".into()
                },
                target: key.to_string(),
                before: String::new(),
                after: verb.into(),
                reason: words.clone(),
            }));
            route.mark(Mark {
                at: now,
                kind: MarkKind::Agent,
                words,
            });
            if number >= AGENTS_TOLD {
                break;
            }
        }
        self.writes.note(records);
    }

    /// Counts, for each route, the agents that are on it.
    fn take_census(&mut self, now: Moment) {
        self.fleet.place(self.routes.keys());
        let begin = |key| Census {
            wanted: self.wanted(key),
            trial: self
                .rules
                .rollout(key)
                .map(|it| (it.share, self.wanted_in_trial(key))),
            ..Census::default()
        };
        let mut counted: Vec<_> = self.routes.keys().map(begin).collect();
        let mut beyond = BTreeSet::new();
        for agent in self.fleet.attached.values() {
            for (key, state) in &agent.routes {
                match state.slot {
                    Some(slot) => counted[slot].count(agent, state),
                    None => {
                        beyond.insert(key);
                    }
                }
            }
        }
        self.counters.routes_beyond_cap = beyond.len() as u64;
        for (route, census) in self.routes.values_mut().zip(counted) {
            if census.attached > 0 {
                route.used = now;
            }
            route.census = census;
        }
    }

    /// What would be decided for a route under `rules`.
    pub(crate) fn decide_under(
        &self,
        now: Moment,
        key: &RouteKey,
        route: &Route,
        rules: &Rules,
        memory: &Memory,
    ) -> (Decision, Memory) {
        let policy = rules.policy(key).map(|it| &**it);
        self.decide_by(now, key, route, rules, policy, memory)
    }

    /// What would be decided for a route by `policy`, with the kill switches of `rules`.
    pub(crate) fn decide_by(
        &self,
        now: Moment,
        key: &RouteKey,
        route: &Route,
        rules: &Rules,
        policy: Option<&Policy>,
        memory: &Memory,
    ) -> (Decision, Memory) {
        let killed_by = rules
            .kills
            .values()
            .find(|kill| kill.engaged && covers(&kill.scope, key))
            .map(|kill| kill.actor.name.as_str());
        let situation = Situation {
            now,
            started: self.started,
            policy,
            killed_by,
            agents: route.census.live,
            agents_stale: route.census.reporting - route.census.live,
            replicas_per_agent_max: route.census.replicas_max,
            utilisation: self.utilisation.get(&key.dependency).copied(),
            paused: route.switchbacks.pauses(now),
            lent: route.lent_by(policy.and_then(Policy::pool)),
        };
        decide(key, &route.windows, &situation, memory)
    }

    /// Decides for one route and takes the decision over: what is believed changes at once, what
    /// agents are told only when it is stored.
    pub(crate) fn judge(&mut self, now: Moment, key: &RouteKey) {
        let Some(route) = self.routes.get(key) else {
            return;
        };
        let (decision, memory) = self.decide_under(now, key, route, &self.rules, &route.memory);
        let policy = self.rules.policy(key).map(|it| &**it);
        let probation = probation_list(policy, &decision.probation);
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        route.memory = memory;
        let mut records = Vec::new();
        if let Some(change) = decision.change.clone().filter(|change| change.automatic) {
            let transition = change.transition;
            records.push(Record::Audit(AuditRow {
                at: now,
                actor: Actor::controller(),
                action: format!("mode.{}", transition.to.as_str()),
                target: key.to_string(),
                before: mode_words(transition.from),
                after: mode_words(transition.to),
                reason: transition.words.clone(),
            }));
            let words = transition.words.clone();
            route.mark(Mark {
                at: now,
                kind: MarkKind::Mode,
                words,
            });
            route.keep_transition(transition.clone());
            records.push(Record::Transition(transition));
        }
        let rested = route
            .probation_changed
            .is_none_or(|at| now.since(at) >= PROBATION_LASTS);
        let probation_moves = rested && probation != route.believed.probation;
        if probation_moves {
            route.probation_changed = Some(now);
            records.push(Record::Audit(probation_row(
                now,
                key,
                &route.believed,
                &probation,
            )));
        }
        if probation_moves || decision.mode != route.believed.mode {
            let sequence = route.next_sequence();
            let before = &mut route.believed;
            if decision.mode != before.mode {
                before.mode = decision.mode;
                before.since = now;
            }
            if probation_moves {
                before.probation = probation;
            }
            before.sequence = sequence;
            self.unsettled.insert(key.clone());
        }
        route.decision = Some(decision);
        self.writes.note(records);
        self.refresh_live(key);
        self.judge_trial(now, key);
    }

    fn raise_alerts(&mut self, now: Moment) {
        let observed: Vec<_> = self
            .routes
            .iter()
            .filter_map(|(key, route)| {
                let policy = self.rules.policy(key);
                Some(Observed {
                    route: key,
                    decision: route.decision.as_ref()?,
                    budget: policy.map(|it| it.budget().get()),
                    lent: route.lent.as_ref().map(|lent| lent.budget.get()),
                    replicas: &route.replicas,
                    reverted: route
                        .reverted
                        .as_ref()
                        .filter(|(at, _)| now.since(*at) < REVERTED_FIRES)
                        .map(|(_, why)| why.as_str()),
                    census: &route.census,
                    lost: self.fleet.lost_on(key),
                    duplicates: route.duplicates.as_ref(),
                })
            })
            .collect();
        let changed = self.alerts.evaluate(now, &observed);
        for record in &changed {
            // What a silence kept is an episode all the same; that it is told later is none.
            let (Record::Alert(alert) | Record::AlertSilenced(alert)) = record else {
                continue;
            };
            if let Some(route) = self.routes.get_mut(&alert.route) {
                let verb = if alert.resolved.is_some() {
                    "resolved"
                } else {
                    "firing"
                };
                let words = format!("{} {verb}: {}", alert.rule.as_str(), alert.summary);
                route.mark(Mark {
                    at: now,
                    kind: MarkKind::Alert,
                    words,
                });
            }
        }
        self.writes.note(changed);
    }

    /// Forgets routes that came and went without ever being decided about.
    fn forget_routes(&mut self, now: Moment) {
        let alerts = &self.alerts;
        self.routes.retain(|key, route| {
            now.since(route.used) < UNUSED_KEPT || route.sequence_used.0 > 0 || alerts.concerns(key)
        });
    }

    fn count_rate(&mut self, now: Moment) {
        const OVER: Duration = Duration::from_secs(10);
        self.report_counts.push_back((now, self.counters.reports));
        while self
            .report_counts
            .get(1)
            .is_some_and(|(at, _)| now.since(*at) >= OVER)
        {
            self.report_counts.pop_front();
        }
        if let Some((at, count)) = self.report_counts.front() {
            let seconds = now.since(*at).as_secs_f64();
            self.counters.reports_per_s = if seconds > 0.0 {
                (self.counters.reports - count) as f64 / seconds
            } else {
                0.0
            };
        }
    }
}

impl Census {
    fn count(&mut self, agent: &crate::fleet::Agent, state: &crate::fleet::AgentRoute) {
        self.attached += 1;
        self.silent += u64::from(agent.stale);
        let wanted = match self.trial {
            Some((share, wanted)) if share.has(agent.joined.instance) => wanted,
            _ => self.wanted,
        };
        let Some(wanted) = wanted else {
            return self.count_reporting(agent, state);
        };
        if state.held == Some(wanted) {
            self.holding += 1;
        } else if let Some(reason) = agent.refusal_of(state, wanted) {
            self.refusing += 1;
            if self.refusals.len() < REFUSALS_SHOWN {
                let refusal = (agent.joined.instance, reason.to_owned());
                self.refusals.push(refusal);
            }
        } else if !agent.stale {
            self.behind += 1;
        }
        self.count_reporting(agent, state);
    }

    fn count_reporting(&mut self, agent: &crate::fleet::Agent, state: &crate::fleet::AgentRoute) {
        let Some(effective) = &state.effective else {
            return;
        };
        self.reporting += 1;
        if !agent.stale {
            self.live += 1;
            self.replicas_max = self.replicas_max.max(effective.replicas);
        }
    }
}

/// Shares under which no agent stands out: halves of what the policy's rules act on.
fn floors(policy: Option<&Policy>, key: &RouteKey, memory: &Memory) -> Floors {
    let policy = &*in_force(policy, key);
    Floors {
        crossed: InForce::of(memory, policy).crossing / 2.0,
        failed: policy.error_limit().get() / 2.0,
        pushed_back: PUSH_BACK_LIMIT / 2.0,
    }
}

fn probation_row(
    now: Moment,
    key: &RouteKey,
    before: &Place,
    after: &[hedgerow_protocol::ids::ReplicaName],
) -> AuditRow {
    let list = |names: &[hedgerow_protocol::ids::ReplicaName]| {
        names
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    AuditRow {
        at: now,
        actor: Actor::controller(),
        action: "probation.set".into(),
        target: key.to_string(),
        before: list(&before.probation),
        after: list(after),
        reason: "replicas named slow or failing get a tenth of their share of primaries".into(),
    }
}
