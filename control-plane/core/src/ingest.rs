//! Reports: counted once each, or refused whole with the reason.

use std::time::Duration;

use hedgerow_protocol::ids::{InstanceId, RouteKey};
use hedgerow_protocol::report::{Report, RouteReport, Totals};

use crate::controller::Controller;
use crate::effect::Effect;
use crate::event::ConnectionId;
use crate::ledger::Verdict;
use crate::moment::Moment;
use crate::quarantine::{Change, Counts, Floors, Reception};
use crate::route::{Arrival, Route};
use crate::weigh::{self, Scale};
use crate::window::Slice;

/// A report that covers more is counted in totals only: nobody knows which second of it was what.
const COVERS_MAX: Duration = Duration::from_secs(5);
/// Reports of one agent counted between two ticks. An agent has one under way at most and sends one
/// a second; more is a flood (S3).
const REPORTS_PER_TICK_MAX: u32 = 5;

impl Controller {
    /// An agent reported.
    pub(crate) fn reported(&mut self, now: Moment, connection: ConnectionId, report: Report) {
        let Some((agent, ledger)) = self.fleet.reporting(connection, now) else {
            return;
        };
        agent.hear(now);
        let sequence = report.sequence;
        let verdict = if agent.reports_this_tick >= REPORTS_PER_TICK_MAX {
            Verdict::Refused(format!(
                "more than {REPORTS_PER_TICK_MAX} reports in {:?}; expected one a second",
                self.settings.tick
            ))
        } else {
            ledger.take(&report, now)
        };
        let refused = match verdict {
            Verdict::Duplicate => {
                agent.duplicate_reports += 1;
                self.counters.reports_duplicate += 1;
                None
            }
            Verdict::Refused(reason) => {
                agent.count_refusal(&reason);
                self.counters.reports_refused += 1;
                Some(reason)
            }
            Verdict::Counted(deltas) => {
                agent.reports_this_tick += 1;
                agent.reported = Some(now);
                agent.skew_ms = Some(skew(report.wall_clock_ms, now));
                self.counters.reports += 1;
                let fresh = report.covers <= COVERS_MAX;
                for (route, delta) in report.routes.into_iter().zip(deltas) {
                    self.count_route(now, connection, route, delta.as_ref(), fresh);
                }
                None
            }
        };
        self.effects.push_back(Effect::Acknowledge {
            connection,
            sequence,
            refused,
        });
    }

    /// One route of a report that stands. `delta` is None where it is only what later ones are
    /// counted from.
    fn count_route(
        &mut self,
        now: Moment,
        connection: ConnectionId,
        report: RouteReport,
        delta: Option<&Totals>,
        fresh: bool,
    ) {
        let key = self.keep_route(&report.route, now);
        let rollout = self.rules.rollout(&key);
        let rollout = rollout.map(|it| (it.share, it.next.revision));
        let mut instance = InstanceId::from_u128(0);
        if let Some(agent) = self.fleet.attached.get_mut(&connection) {
            instance = agent.joined.instance;
            let new = match agent.routes.get_mut(&report.route) {
                Some(state) => {
                    state.effective = Some(report.effective);
                    false
                }
                None => agent.meets(&report.route, report.effective),
            };
            if new && key == report.route {
                if let Some(route) = self.routes.get_mut(&key) {
                    route.starters.meet(connection, &report, now);
                }
                self.meet_route(now, &key);
                self.agents_to_push.insert(connection);
            }
        }
        let Some(route) = self.routes.get_mut(&key) else {
            return;
        };
        route.used = now;
        let Some(delta) = delta else { return };
        route.sent.add(delta.hedges());
        let (reception, load) = if fresh {
            // What is counted together under `__other__` has nothing to be compared with, nor has an
            // agent that is to do otherwise than the rest.
            let apart = rollout.is_some_and(|(share, _)| share.has(instance));
            let counts = (!key.is_other() && !apart)
                .then(|| Counts::of(delta, &report, route.memory.threshold.value()));
            let load = weigh::load(delta, &report);
            let calls = delta.started;
            route
                .bench
                .hear(connection, instance, counts.as_ref(), calls, load)
        } else if route.bench.is_out(connection) {
            (Reception::Apart, 0.0)
        } else {
            (Reception::Counted, 0.0)
        };
        if reception == Reception::Apart {
            return;
        }
        route.totals.add(delta);
        if fresh {
            route.see(rollout, instance, delta, &report);
            let arrival = Arrival {
                connection,
                delta: *delta,
                report,
            };
            route.arrive(arrival, load, reception == Reception::Doubted);
        }
    }

    /// A route that an agent asks for is decided at once, so that the agent need not wait for the
    /// tick to know what it may do.
    pub(crate) fn meet_route(&mut self, now: Moment, key: &RouteKey) {
        if self
            .routes
            .get(key)
            .is_some_and(|route| route.decision.is_none())
        {
            self.judge(now, key);
            self.persist_changes();
            self.publish_route(now, key);
        }
    }
}

impl Route {
    /// Takes a report's part. What is light by the last tick's measure is added at once, which
    /// spreads the work over the second; the rest, and what is doubted, waits until it is known what
    /// everybody said. `load`: what the agent said since the last tick, this included.
    fn arrive(&mut self, arrival: Arrival, load: f64, doubted: bool) {
        if load <= self.light && !doubted {
            self.add(arrival);
        } else {
            self.heavy.push(arrival);
        }
    }

    fn add(
        &mut self,
        Arrival {
            connection,
            delta,
            report,
        }: Arrival,
    ) {
        self.slice.add_report(&delta, &report);
        self.windows.set_in_flight(connection.0, report.in_flight);
    }

    /// What arrived since the last tick, no agent weighing more than its share, and none of those
    /// that are left out anything.
    pub(crate) fn fold(
        &mut self,
        now: Moment,
        floors: Floors,
        attached: impl Fn(ConnectionId) -> bool,
    ) -> (Slice, Vec<Change>) {
        let outcome = self.bench.tick(now, floors, attached);
        let loads = self.bench.take_loads();
        for (connection, ..) in loads.iter().filter(|(.., is_out)| *is_out) {
            self.windows.forget(connection.0);
        }
        let counted = loads.into_iter().filter(|(.., is_out)| !is_out);
        let mut loads: Vec<_> = counted.map(|(who, load, _)| (who, load)).collect();
        for freed in &outcome.freed {
            let more = weigh::load(&freed.delta, &freed.report);
            match loads.binary_search_by_key(&freed.connection, |(who, _)| *who) {
                Ok(at) => loads[at].1 += more,
                Err(at) => loads.insert(at, (freed.connection, more)),
            }
        }
        let scale = Scale::of(loads.iter().map(|(_, load)| *load).collect());
        if !loads.is_empty() {
            // Half of it: should everybody say less the next time, what was light is still
            // bounded. Where there are so few agents that all may count in full, there is little
            // to put off.
            self.light = if scale.light.is_finite() {
                scale.light / 2.0
            } else {
                0.0
            };
        }
        let arrived = std::mem::take(&mut self.heavy);
        for arrival in outcome.freed.into_iter().chain(arrived) {
            let Some(mut arrival) = self.bench.keep(arrival) else {
                continue;
            };
            let at = loads.binary_search_by_key(&arrival.connection, |(who, _)| *who);
            let load = at.map_or(0.0, |at| loads[at].1);
            if load > scale.most {
                weigh::thin(&mut arrival.delta, &mut arrival.report, scale.most / load);
            }
            self.add(arrival);
        }
        (std::mem::take(&mut self.slice), outcome.changes)
    }
}

/// How far an agent's wall clock is ahead of ours, milliseconds: shown, never used (C19, P18).
fn skew(wall_clock_ms: u64, now: Moment) -> i64 {
    let ahead = i128::from(wall_clock_ms) - i128::from(now.as_millis());
    i64::try_from(ahead).unwrap_or(if ahead > 0 { i64::MAX } else { i64::MIN })
}
