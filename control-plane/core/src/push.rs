//! What agents are told, and when.
//!
//! Every push is the full snapshot for its agent: made of what is stored (places, policies, epoch)
//! and of live values. It is never older than what the agent holds, and never has what it refused.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::directive::{Directive, DirectiveSet, LiveValues, Mode, Stamp, Standing};
use hedgerow_protocol::ids::{Epoch, ReplicaName, RouteKey, Tick};
use hedgerow_protocol::limits::{CAP_MAX, LEASE_MAX, LEASE_MIN};
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::session::held_hash;
use hedgerow_protocol::units::{Budget, Ratio, Threshold};

use crate::controller::Controller;
use crate::decide::Live;
use crate::effect::Effect;
use crate::epoch::Heard;
use crate::event::{ConnectionId, Joined};
use crate::fleet::{Agent, AgentRoute};
use crate::moment::Moment;

/// Live values that moved by less are not worth a message to every agent.
const MOVED_MIN: f64 = 0.01;
/// They are sent this often all the same.
const REPEATED: Duration = Duration::from_secs(10);

/// Directives by slot, each made when the first agent is sent it, and shared by all that are.
type Made = Vec<OnceCell<Option<Arc<Directive>>>>;

impl Controller {
    /// An agent attached: what it holds is taken over where nothing better is known, and it is sent
    /// everything.
    pub(crate) fn joined(&mut self, now: Moment, joined: Joined) {
        let connection = joined.connection;
        let mut lies = None;
        let mut foreign = None;
        let mut met = Vec::new();
        for held in joined
            .held
            .iter()
            .take(hedgerow_protocol::limits::ROUTES_PER_AGENT_MAX)
        {
            let key = self.keep_route(&held.route, now);
            let revision = self.rules.revision(&key);
            let in_trial = self.wanted_in_trial(&key);
            let wanted = self.epochs.wanted();
            let Some(route) = self.routes.get_mut(&key) else {
                continue;
            };
            route.used = now;
            let epoch = held.stamp.epoch;
            let ours = in_trial
                .unwrap_or_default()
                .max(route.stamp(wanted, revision));
            let heard = self.epochs.heard(held.stamp, ours);
            match heard {
                Heard::Ours => {}
                Heard::Foreign => foreign = foreign.max(Some(epoch)),
                Heard::Lie => {
                    let most = self.epochs.believed_max();
                    lies = Some(format!(
                        "{key}: holds epoch {epoch}, but this controller is at {wanted}; expected \
                         at most {most}, so it keeps what it holds and is told nothing: restart \
                         it, or give this controller the store that its directives are from"
                    ));
                }
            }
            if key == held.route {
                met.push(key.clone());
            }
            // Of what nobody of ours has said nothing is learned.
            if key == held.route && heard != Heard::Lie {
                let heard = (held.stamp, held.tick.0);
                let own = route
                    .decision
                    .as_ref()
                    .is_some_and(|it| it.live.threshold.is_some());
                if !own && route.relearned.is_none_or(|best| best < heard) {
                    route.relearned = Some(heard);
                    route.memory.relearn(held);
                }
            }
        }
        self.fleet.join(joined, now);
        for key in met {
            self.meet_route(now, &key);
        }
        if let Some(agent) = self.fleet.attached.get_mut(&connection) {
            agent.after_epoch = foreign;
            if let Some(lies) = lies {
                agent.count_refusal(&lies);
            }
        }
        self.begin_epoch(now);
        self.agents_to_push.insert(connection);
    }

    /// An agent says what it holds now.
    pub(crate) fn applied(&mut self, connection: ConnectionId, stamps: &[(RouteKey, Stamp)]) {
        let Some(agent) = self.fleet.attached.get_mut(&connection) else {
            return;
        };
        agent.holds(stamps);
    }

    /// An agent refused a directive, or a set. It is not sent again until it changes (P4).
    pub(crate) fn refused(
        &mut self,
        connection: ConnectionId,
        route: Option<&RouteKey>,
        stamp: Option<Stamp>,
        reason: &str,
    ) {
        let Some(agent) = self.fleet.attached.get_mut(&connection) else {
            return;
        };
        let Some(route) = route else {
            agent.refused_set = Some((sent_hash(agent), reason.to_owned()));
            return;
        };
        if let Some(state) = agent.routes.get_mut(route)
            && let Some(stamp) = stamp.or(state.sent)
        {
            state.refused = Some(Box::new((stamp, reason.to_owned())));
        }
    }

    /// Sends everything again to an agent that does not hold what it should, once a heartbeat at
    /// most: a lost push heals within one (P6, B53).
    pub(crate) fn compare_held(&mut self, now: Moment, connection: ConnectionId, hash: u64) {
        let (heartbeat, tick) = (self.settings.heartbeat, self.settings.tick);
        let Some(agent) = self.fleet.attached.get(&connection) else {
            return;
        };
        let on_its_way = agent.pushed.is_some_and(|pushed| now.since(pushed) < tick);
        let tried = agent
            .resent
            .is_some_and(|resent| now.since(resent) < heartbeat);
        if on_its_way || tried || (hash == agent.held_hash() && !self.behind(agent)) {
            return;
        }
        if let Some(agent) = self.fleet.attached.get_mut(&connection) {
            agent.resent = Some(now);
        }
        self.agents_to_push.insert(connection);
    }

    /// Whether an agent is known to hold something older than it could.
    fn behind(&self, agent: &Agent) -> bool {
        agent.routes.iter().any(|(key, state)| {
            self.wanted_of(key, agent.joined.instance)
                .is_some_and(|wanted| {
                    state.held.is_none_or(|held| held < wanted)
                        && state
                            .refused
                            .as_deref()
                            .is_none_or(|(refused, _)| *refused != wanted)
                })
        })
    }

    /// The stamp agents should hold; None where nothing can be told yet.
    pub(crate) fn wanted(&self, key: &RouteKey) -> Option<Stamp> {
        let epoch = self.epochs.durable()?;
        let route = self.routes.get(key)?;
        route.live?;
        // Agents hold a mode from before this controller's store: they keep it until it is stored
        // here, rather than being told "observing" in between.
        let relearning = route.relearned.is_some() && route.durable.sequence.0 == 0;
        if relearning && route.believed.sequence.0 > 0 {
            return None;
        }
        Some(route.stamp(epoch, self.rules.revision(key)))
    }

    /// Works out what agents may be told of the last decision: where the stored mode still allows
    /// what was decided against, or a person's order against it is being stored, the live values
    /// already say no. They need no storing, so nobody waits for a slow disk to be safe.
    pub(crate) fn refresh_live(&mut self, key: &RouteKey) {
        let stopped = self.orders.would_stop(&self.rules, key);
        let tick = self.tick;
        let seed = arming_seed(self.epochs.wanted(), key);
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let Some(decision) = &route.decision else {
            return;
        };
        let decided = live_values(tick, &decision.live, seed);
        let modes = (route.durable.mode, route.believed.mode);
        route.live = Some(held_back(decided, route.live, modes, stopped));
    }

    /// Whether a route's live values are to be sent, because they moved or are old.
    pub(crate) fn live_is_due(&self, now: Moment, key: &RouteKey) -> bool {
        let Some(route) = self.routes.get(key) else {
            return false;
        };
        let due = |live: &Option<LiveValues>, told: &Option<(LiveValues, Moment)>| {
            live.is_some_and(|live| {
                told.is_none_or(|(told, at)| now.since(at) >= REPEATED || moved(&told, &live))
            })
        };
        let trial = route.trial.as_ref();
        due(&route.live, &route.told) || trial.is_some_and(|it| due(&it.live, &it.told))
    }

    fn directive(&self, key: &RouteKey) -> Option<Arc<Directive>> {
        let stamp = self.wanted(key)?;
        let route = self.routes.get(key)?;
        let standing = match self.rules.policy(key) {
            Some(policy) => standing(policy, self.settings.lease),
            None => standing(
                &Policy::observing(key.dependency.clone().into()),
                self.settings.lease,
            ),
        };
        Some(Arc::new(Directive {
            route: key.clone(),
            stamp,
            mode: route.durable.mode,
            live: route.live?,
            standing,
            probation: route.durable.probation.clone(),
            start_credit: 0.0,
        }))
    }

    /// Sends a snapshot to everyone that is to get one: once each, whatever happened.
    pub(crate) fn flush_pushes(&mut self, now: Moment) {
        let idle = self.routes_to_push.is_empty() && self.agents_to_push.is_empty();
        if idle || self.epochs.durable().is_none() {
            return;
        }
        let routes = std::mem::take(&mut self.routes_to_push);
        let agents = std::mem::take(&mut self.agents_to_push);
        let order = self.fleet.order();
        let due: Vec<_> = order.iter().map(|key| routes.contains(key)).collect();
        let made: Made = order.iter().map(|_| OnceCell::new()).collect();
        for key in &routes {
            if let Some(route) = self.routes.get_mut(key) {
                route.told = route.live.map(|live| (live, now));
                if let Some(trial) = &mut route.trial {
                    trial.told = trial.live.map(|live| (live, now));
                }
            }
        }
        // Taken out meanwhile: agents are written to while routes are read.
        let mut attached = std::mem::take(&mut self.fleet.attached);
        if routes.is_empty() {
            for connection in &agents {
                if let Some(agent) = attached.get_mut(connection) {
                    self.push(now, agent, &made);
                }
            }
        } else {
            let is_due = |(key, state): (&RouteKey, &AgentRoute)| match state.slot {
                Some(slot) => due[slot],
                None => routes.contains(key),
            };
            for (connection, agent) in &mut attached {
                if agent.routes.iter().any(is_due) || agents.contains(connection) {
                    self.push(now, agent, &made);
                }
            }
        }
        self.fleet.attached = attached;
    }

    /// Sends one agent its snapshot. `made`: the directives that others are sent, too.
    fn push(&mut self, now: Moment, agent: &mut Agent, made: &Made) {
        let connection = agent.joined.connection;
        if agent.after_epoch >= self.epochs.durable() && agent.after_epoch.is_some() {
            return;
        }
        let mut directives = Vec::with_capacity(agent.routes.len());
        directives.extend(agent.routes.iter().filter_map(|(key, state)| {
            let directive = if self.in_share(key, agent.joined.instance) {
                Arc::new(self.directive_in_trial(key)?)
            } else if let Some(made) = state.slot.and_then(|slot| made.get(slot)) {
                made.get_or_init(|| self.directive(key)).clone()?
            } else {
                self.directive(key)?
            };
            let refused = state
                .refused
                .as_deref()
                .is_some_and(|(stamp, _)| *stamp == directive.stamp);
            let older = state.held.is_some_and(|held| held > directive.stamp);
            (!refused && !older).then_some(directive)
        }));
        // An empty set would tell it to let go of everything: it is never meant here.
        if directives.is_empty() {
            return;
        }
        for (key, credit) in self.credits.remove(&connection).unwrap_or_default() {
            // By a rollout's policy it may be told to hedge nothing, where the others hedge.
            let hedges =
                |it: &&mut Arc<Directive>| it.mode == Mode::On && it.live.probability.get() > 0.0;
            let mut directives = directives.iter_mut();
            if let Some(directive) = directives.find(|it| it.route == key).filter(hedges) {
                // Its own from here on.
                Arc::make_mut(directive).start_credit = credit;
            }
        }
        let hash = || held_hash(directives.iter().map(|it| (&it.route, it.stamp)));
        if agent
            .refused_set
            .as_ref()
            .is_some_and(|(refused, _)| *refused == hash())
        {
            return;
        }
        // Both ascend by route.
        let mut sent = directives.iter().peekable();
        for (key, state) in &mut agent.routes {
            if let Some(directive) = sent.next_if(|directive| directive.route == *key) {
                state.sent = Some(directive.stamp);
            }
        }
        agent.refused_set = None;
        agent.pushed = Some(now);
        agent.nonce += 1;
        self.epochs.given = true;
        let set = DirectiveSet {
            nonce: agent.nonce,
            directives,
            empty_is_meant: false,
        };
        self.effects.push_back(Effect::Push { connection, set });
    }
}

/// Hash of the stamps an agent was sent last.
fn sent_hash(agent: &Agent) -> u64 {
    held_hash(
        agent
            .routes
            .iter()
            .filter_map(|(key, state)| Some((key, state.sent?))),
    )
}

/// The draw of agents' turns on a route: another one in each of the store's lives, the same for all
/// ticks of it.
pub(crate) fn arming_seed(epoch: Epoch, key: &RouteKey) -> u64 {
    let stamp = Stamp {
        epoch,
        ..Stamp::default()
    };
    held_hash([(key, stamp)])
}

/// The live values beside a mode that is told while another one may be believed. `stopped`: a
/// person's order against hedging is being stored.
pub(crate) fn held_back(
    decided: LiveValues,
    before: Option<LiveValues>,
    (told, believed): (Mode, Mode),
    stopped: bool,
) -> LiveValues {
    match before {
        _ if told.hedges() && (stopped || !believed.hedges()) => LiveValues {
            probability: Ratio::ZERO,
            budget: Budget::ZERO,
            ..decided
        },
        // Decided for a mode that is not stored yet: the old values stay beside the old mode.
        Some(before) if told.hedges() && told != believed => LiveValues {
            tick: decided.tick,
            ..before
        },
        _ => decided,
    }
}

pub(crate) fn live_values(tick: Tick, live: &Live, seed: u64) -> LiveValues {
    let cap = if live.cap.is_finite() {
        live.cap.clamp(0.0, CAP_MAX)
    } else {
        0.0
    };
    LiveValues {
        tick,
        threshold: live.threshold,
        probability: live.probability,
        budget: live.budget,
        cap,
        // A share that is nobody or everybody is none to tell.
        arming: live
            .arming
            .and_then(|armed| Arming::new(armed.share, armed.epoch, seed).ok()),
    }
}

fn moved(told: &LiveValues, live: &LiveValues) -> bool {
    let threshold = |live: &LiveValues| live.threshold.map_or(0.0, |it| it.get().as_secs_f64());
    [
        (threshold(told), threshold(live)),
        (told.probability.get(), live.probability.get()),
        (told.budget.get(), live.budget.get()),
        (told.cap, live.cap),
    ]
    .into_iter()
    .any(|(before, now)| (before - now).abs() > MOVED_MIN * before.abs().max(now.abs()))
        || told.arming != live.arming
}

pub(crate) fn standing(policy: &Policy, lease: Duration) -> Standing {
    Standing {
        percentile: policy.percentile(),
        holdout: policy.holdout(),
        error_limit: policy.error_limit(),
        threshold_min: policy.threshold_min().map(Threshold::clamped),
        threshold_max: policy.threshold_max().map(Threshold::clamped),
        lease: lease.clamp(LEASE_MIN, LEASE_MAX),
        attempts: policy.attempts(),
        hedge_on_error: policy.hedge_on_error(),
    }
}

/// The replicas an agent may be told to keep primaries from.
pub(crate) fn probation_list(policy: Option<&Policy>, named: &[ReplicaName]) -> Vec<ReplicaName> {
    match policy {
        Some(policy) if policy.probation() => named
            .iter()
            .take(hedgerow_protocol::limits::REPLICAS_PER_ROUTE_MAX)
            .cloned()
            .collect(),
        _ => Vec::new(),
    }
}
