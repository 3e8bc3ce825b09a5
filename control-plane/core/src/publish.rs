//! What people and programs may know: a snapshot made of parts that are built once a tick.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{InstanceId, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use hedgerow_protocol::report::LinkState;
use hedgerow_protocol::units::{Threshold, as_millis};

use crate::alert::duplicates::Duplicates;
use crate::controller::Controller;
use crate::effect::Record;
use crate::event::Departure;
use crate::fleet::{Agent, AgentRoute};
use crate::moment::Moment;
use crate::orders::covers;
use crate::replicas;
use crate::route::{COURSE_MAX, Route};
use crate::stagger::stagger;
use crate::view::{
    Acked, AgentRouteView, AgentState, AgentView, Figures, FleetSnapshot, KillView, NoData, Point,
    PolicyView, PoolView, ReplicaView, RouteView, Sync, UtilisationView,
};
use crate::window::WINDOW_MAX;
use crate::writes::Waiting;

/// Time between points of a course.
const POINT_EACH: Duration = Duration::from_secs(2);
/// Points between two that are stored: the history has one each 10 s.
const STORED_EACH: Duration = Duration::from_secs(10);
/// Points a store that does not answer may owe: beyond, the history has a gap.
const POINTS_PENDING_MAX: usize = 16;

impl Controller {
    /// The fleet as it is. Cheap: routes' views are shared with the last tick.
    pub fn snapshot(&self, now: Moment) -> FleetSnapshot {
        let mut controller = self.counters.clone();
        controller.writes_pending = self.writes.pending();
        controller.write_problem = self.writes.problem();
        FleetSnapshot {
            at: now,
            started: self.started,
            epoch: self.epoch(),
            tick: self.tick.0,
            routes: self
                .routes
                .iter()
                .filter_map(|(key, route)| Some((key.clone(), Arc::clone(route.view.as_ref()?))))
                .collect(),
            policies: self.policy_views(),
            kills: self.kill_views(),
            agents: self.agent_views(now),
            alerts: self.alerts.views(now),
            silences: self.alerts.silences(now),
            controller,
        }
    }

    /// The newest policy of each scope, in force for all or for a share.
    fn policy_views(&self) -> BTreeMap<PolicyScope, PolicyView> {
        let standing = self.rules.policies.values().filter_map(|it| {
            let policy = it.policy.as_ref()?;
            Some((&it.scope, (it.revision, policy, it.since)))
        });
        let mut newest: BTreeMap<_, _> = standing.collect();
        newest.extend(self.rules.rollouts.iter().map(|(scope, it)| {
            let it = &it.next;
            (scope, (it.revision, &it.policy, it.since))
        }));
        newest
            .into_iter()
            .map(|(scope, (revision, policy, since))| {
                let view = PolicyView {
                    revision,
                    policy: Policy::clone(policy),
                    since,
                    rollout: self.rollout_view(scope),
                };
                (scope.clone(), view)
            })
            .collect()
    }

    fn kill_views(&self) -> Vec<KillView> {
        let engaged = self.rules.kills.values().filter(|kill| kill.engaged);
        engaged
            .map(|kill| {
                let mut acked = Acked::default();
                for agent in self.fleet.attached.values() {
                    let mut routes = agent
                        .routes
                        .iter()
                        .filter(|(key, _)| covers(&kill.scope, key))
                        .peekable();
                    if routes.peek().is_none() {
                        continue;
                    }
                    acked.m += 1;
                    let instance = agent.joined.instance;
                    let off = routes.all(|(key, state)| self.is_off(key, instance, state));
                    acked.n += u64::from(off);
                }
                KillView {
                    state: kill.clone(),
                    acked,
                }
            })
            .collect()
    }

    /// Whether an agent is known to hedge nothing on a route because it was told so.
    fn is_off(&self, key: &RouteKey, instance: InstanceId, state: &AgentRoute) -> bool {
        let Some(route) = self.routes.get(key) else {
            // Beyond the cap: it was never given a directive, so nothing is hedged.
            return state.held.is_none();
        };
        let told = match &route.trial {
            Some(trial) if self.in_share(key, instance) => trial.durable.mode,
            _ => route.durable.mode,
        };
        matches!(told, Mode::Off(_))
            && self
                .wanted_of(key, instance)
                .is_some_and(|wanted| state.held == Some(wanted))
    }

    fn agent_views(&self, now: Moment) -> Vec<AgentView> {
        let attached = self.fleet.attached.values().map(|agent| {
            let state = if agent.stale {
                AgentState::Stale
            } else {
                AgentState::Live
            };
            self.agent_view(now, agent, state)
        });
        let gone = self.fleet.gone.iter().map(|gone| {
            let state = match gone.departure {
                Departure::Left => AgentState::Left,
                Departure::Lost => AgentState::Lost,
            };
            self.agent_view(now, &gone.agent, state)
        });
        attached.chain(gone).collect()
    }

    fn agent_view(&self, now: Moment, agent: &Agent, state: AgentState) -> AgentView {
        let joined = &agent.joined;
        let link = match state {
            AgentState::Live => LinkState::Live,
            _ if now.since(agent.silent_since) < self.settings.lease => LinkState::Stale,
            _ => LinkState::Fallback,
        };
        AgentView {
            connection: joined.connection,
            service: joined.service.clone(),
            instance: joined.instance,
            zone: joined.zone.clone(),
            version: joined.version.clone(),
            peer: joined.peer.clone(),
            state,
            connected: agent.connected,
            heard: agent.heard,
            reported: agent.reported,
            skew_ms: agent.skew_ms,
            refused_reports: agent.refused_reports,
            last_refusal: agent.last_refusal.clone(),
            duplicate_reports: agent.duplicate_reports,
            routes: agent
                .routes
                .iter()
                .map(|(key, route)| self.agent_route_view(agent, key, route, link))
                .collect(),
        }
    }

    fn agent_route_view(
        &self,
        agent: &Agent,
        key: &RouteKey,
        state: &AgentRoute,
        link: LinkState,
    ) -> AgentRouteView {
        let held = state.held.unwrap_or_default();
        let known = self.wanted_of(key, agent.joined.instance);
        let wanted = known.unwrap_or(held);
        let sync = match known {
            Some(wanted) if state.held == Some(wanted) => Sync::Applied,
            Some(wanted) => match agent.refusal_of(state, wanted) {
                Some(reason) => Sync::Refused(reason.to_owned()),
                None => Sync::Pending,
            },
            None => Sync::Pending,
        };
        let effective = state.effective;
        AgentRouteView {
            route: key.clone(),
            held,
            wanted,
            sync,
            mode: effective.map_or(Mode::Observing, |it| it.mode),
            own_off: effective.is_some_and(|it| it.own_off),
            threshold: effective.and_then(|it| it.threshold).map(Threshold::get),
            budget: effective.map_or(0.0, |it| it.budget.get()),
            tokens: effective.map_or(0.0, |it| it.tokens),
            link,
            replicas: effective.map_or(0, |it| it.replicas),
            quarantine: self
                .routes
                .get(key)
                .and_then(|route| route.bench.view(agent.joined.connection)),
        }
    }

    /// Builds a route's view anew.
    pub(crate) fn publish_route(&mut self, now: Moment, key: &RouteKey) {
        let stamp = self.wanted(key).unwrap_or_else(|| {
            let revision = self.rules.revision(key);
            let route = self.routes.get(key);
            route.map_or_else(Stamp::default, |it| it.stamp(self.epoch(), revision))
        });
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let course_began = now.as_millis().saturating_sub(600_000);
        while route
            .marks
            .front()
            .is_some_and(|mark| mark.at.as_millis() < course_began)
        {
            route.marks.pop_front();
        }
        let utilisation = self.utilisation.get(&key.dependency);
        let utilisation = utilisation.map(UtilisationView::new);
        route.view = Some(Arc::new(RouteView {
            utilisation,
            ..route_view(key, stamp, route)
        }));
    }

    /// Adds a point to each course whose turn it is, and to one that has none; each fifth goes to
    /// the store.
    pub(crate) fn draw_courses(&mut self, now: Moment) {
        let turns = POINT_EACH.div_duration_f64(self.settings.tick).round() as u64;
        let column_turns = replicas::COLUMN_EACH.div_duration_f64(self.settings.tick);
        let column_turns = (column_turns.round() as u64).max(1);
        let mut stored = Vec::new();
        let may_store = self.writes.points_pending() < POINTS_PENDING_MAX;
        for (key, route) in &mut self.routes {
            let Some(decision) = &route.decision else {
                continue;
            };
            let turn = (self.tick.0 + stagger(key)).is_multiple_of(turns.max(1));
            if !turn && !route.course.is_empty() {
                continue;
            }
            let point = Point {
                base_ms: route.memory.base().map(as_millis),
                ..point(now, decision.figures.as_ref(), decision.mode)
            };
            let mut course = Vec::with_capacity(COURSE_MAX);
            route.brief.take(&point);
            let kept = (COURSE_MAX - 1).min(route.course.len());
            course.extend_from_slice(&route.course[route.course.len() - kept..]);
            course.push(point);
            route.course = Arc::new(course);
            route.replicas = replica_views(route);
            if (self.tick.0 + stagger(key)).is_multiple_of(column_turns) {
                replicas::draw(route, now, column_turns);
            }
            if may_store
                && route
                    .stored_point
                    .is_none_or(|at| now.since(at) >= STORED_EACH)
            {
                route.stored_point = Some(now);
                stored.push(Record::History {
                    route: key.clone(),
                    point,
                });
            }
        }
        if !stored.is_empty() {
            self.persist(Waiting::Points, stored);
        }
        self.keep_minutes(now, may_store);
    }
}

fn route_view(key: &RouteKey, stamp: Stamp, route: &Route) -> RouteView {
    let decision = route.decision.as_ref();
    RouteView {
        route: key.clone(),
        stamp,
        mode: route.durable.mode,
        since: route.durable.since,
        words: decision.map_or_else(
            || format!("{}: nothing decided yet", route.durable.mode.as_str()),
            |it| it.words.clone(),
        ),
        evidence: decision.map(|it| it.evidence.clone()).unwrap_or_default(),
        tries_again: decision.and_then(|it| it.tries_again),
        figures: decision.and_then(|it| it.figures),
        no_data: match decision {
            Some(decision) => decision.no_data,
            None => Some(NoData::JustStarted),
        },
        no_gain: decision.and_then(|it| it.no_gain),
        pool: route.lent.as_ref().map(PoolView::of),
        acked: Acked {
            n: route.census.holding,
            m: route.census.attached,
        },
        refusals: route.census.refusals.clone(),
        replicas: route.replicas.clone(),
        course: Arc::clone(&route.course),
        brief: route.brief.points(),
        replica_course: Arc::clone(&route.replica_course),
        marks: route.marks.iter().cloned().collect(),
        totals: route.totals,
        seconds_over_budget: route.seconds_over_budget,
        transitions: route.transitions.iter().cloned().collect(),
        utilisation: None,
        duplicates: route.duplicates.as_ref().map(Duplicates::view),
        switchback: route.switchbacks.last.clone(),
    }
}

fn point(at: Moment, figures: Option<&Figures>, mode: Mode) -> Point {
    let Some(it) = figures else {
        return Point {
            at,
            hedging: mode.hedges(),
            ..Point::default()
        };
    };
    Point {
        at,
        calls_per_s: it.calls_per_s,
        p50_ms: it.p50.map(as_millis),
        p95_ms: it.p95.map(as_millis),
        p99_ms: it.p99.map(as_millis),
        treated_p99_ms: it.treated_p99.map(as_millis),
        holdout_p99_ms: it.holdout_p99.map(as_millis),
        threshold_ms: it.threshold.map(as_millis),
        hedge_rate: it.hedge_rate,
        demand: it.demand,
        win_rate: it.win_rate,
        error_rate: it.error_rate,
        treated_p95_ms: it.treated_p95.map(short_millis),
        holdout_p95_ms: it.holdout_p95.map(short_millis),
        holdout_p99_low_ms: it.holdout_p99_within.map(|it| short_millis(it.low)),
        holdout_p99_high_ms: it
            .holdout_p99_within
            .and_then(|it| it.high)
            .map(short_millis),
        holdout_calls: it
            .holdout_p99
            .map(|_| u32::try_from(it.holdout_calls).unwrap_or(u32::MAX)),
        refused: it.refused,
        hedging: mode.hedges(),
        base_ms: None,
    }
}

/// Milliseconds, as exact as a chart can show.
fn short_millis(value: Duration) -> f32 {
    as_millis(value) as f32
}

/// The route's replicas over the last minute at most: the named ones first, then by name.
fn replica_views(route: &Route) -> Vec<ReplicaView> {
    let window = match route.windows.present() {
        Some(window) => window,
        None => route.windows.over(WINDOW_MAX),
    };
    let seconds = window.span().as_secs_f64();
    let Some(decision) = &route.decision else {
        return Vec::new();
    };
    let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
    let mut views: Vec<_> = window
        .replicas()
        .into_iter()
        .map(|(name, counts)| {
            let curve = window.primary_of(name).curve();
            ReplicaView {
                replica: name.clone(),
                zone: counts.zone,
                named: decision.named.get(name).copied(),
                probation: route.durable.probation.contains(name),
                calls_per_s: if seconds > 0.0 {
                    counts.started as f64 / seconds
                } else {
                    0.0
                },
                crossed: share(counts.crossed, counts.started).map(|it| it.min(1.0)),
                error_rate: share(counts.errors, counts.finished),
                p50: curve.quantile(0.5),
                p95: curve.quantile(0.95),
                win_rate: share(counts.won, counts.hedged).map(|it| it.min(1.0)),
            }
        })
        .collect();
    views.sort_by_key(|view| view.named.is_none());
    views
}
