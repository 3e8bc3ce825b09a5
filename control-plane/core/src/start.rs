//! Hedges lent to agents that start with an empty bucket.
//!
//! At a few calls a second an agent earns its first hedge in some ten seconds; after a deployment
//! all agents of a service are such. So one that is new is lent a hedge or a few, once. All that is
//! lent on a route in any one second is at most a tenth of its calls in a second: a fleet that
//! restarts at once is not a burst.
//!
//! **Who is new** is read from the agent's own words, never from what this controller remembers, so
//! that a restarted one does not lend again: the report that first names the route says that no
//! directive is in force on it (its stamp is zero), and that no hedge was ever sent (its counters are
//! cumulative for its life). An agent holds a directive for as long as it lives, and says so in its
//! hello, and a credit comes with a directive: whoever ever took one is not new. (And an agent takes
//! one in its life, whatever it is sent.)

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::report::RouteReport;

use crate::controller::Controller;
use crate::decide::arming::rate;
use crate::decide::budget::{BURST_SHARE, RATE_SLICES};
use crate::event::ConnectionId;
use crate::moment::Moment;
use crate::route::Route;

/// Whoever has been there for longer has earned what it needs by itself.
const STARTS_FOR: Duration = Duration::from_secs(30);
/// The time in which all that is lent is bounded.
const WITHIN: Duration = Duration::from_secs(1);
/// The least that is any use.
const HEDGE: f64 = 1.0;

/// What is to be lent with the next push, by agent.
pub(crate) type Credits = BTreeMap<ConnectionId, Vec<(RouteKey, f64)>>;

/// Agents that are new on a route, and what was lent there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starters {
    /// Since when; an agent is in it once at most.
    waiting: BTreeMap<ConnectionId, Moment>,
    /// In the last second.
    lent: VecDeque<(Moment, f64)>,
}

impl Starters {
    /// An agent names the route for the first time on its stream.
    pub(crate) fn meet(&mut self, connection: ConnectionId, report: &RouteReport, now: Moment) {
        if report.effective.stamp == Stamp::default() && report.totals.hedges() == 0 {
            self.waiting.insert(connection, now);
        }
    }

    /// Lends what may be lent now, of `most` within any second and at most `cap` to each. Those that
    /// waited least get theirs last.
    fn lend(&mut self, now: Moment, most: f64, cap: f64) -> Vec<(ConnectionId, f64)> {
        self.lent.retain(|(at, _)| now.since(*at) < WITHIN);
        let lent: f64 = self.lent.iter().map(|(_, hedges)| hedges).sum();
        let mut left = (most - lent).max(0.0);
        let each = (left / self.waiting.len() as f64).min(cap).max(HEDGE);
        let mut credits = Vec::new();
        while left >= each
            && cap >= HEDGE
            && let Some((connection, _)) = self.waiting.pop_first()
        {
            left -= each;
            self.lent.push_back((now, each));
            credits.push((connection, each));
        }
        credits
    }
}

impl Controller {
    /// Each tick: what is lent with this tick's push.
    pub(crate) fn lend_to_starters(&mut self, now: Moment) {
        let fleet = &self.fleet;
        for (key, route) in &mut self.routes {
            if route.starters.waiting.is_empty() {
                continue;
            }
            let bench = &route.bench;
            route.starters.waiting.retain(|connection, since| {
                now.since(*since) < STARTS_FOR
                    && fleet.attached.contains_key(connection)
                    && !bench.is_out(*connection)
            });
            let Some((calls_per_s, cap)) = lends(route) else {
                continue;
            };
            for (connection, credit) in route.starters.lend(now, BURST_SHARE * calls_per_s, cap) {
                let credits = self.credits.entry(connection).or_default();
                credits.push((key.clone(), credit));
                self.agents_to_push.insert(connection);
            }
        }
    }
}

/// The fleet's calls a second on a route, and the bucket's cap, where anything is lent at all: where
/// hedging is on, for agents as it is stored and for the controller as it is believed, with figures
/// and a threshold, and not in turns.
fn lends(route: &Route) -> Option<(f64, f64)> {
    let on = |mode: Mode| mode == Mode::On;
    let live = route.live.filter(|live| {
        live.arming.is_none()
            && live.threshold.is_some()
            && live.probability.get() > 0.0
            && live.budget.get() > 0.0
    })?;
    let figures = route.decision.as_ref().and_then(|it| it.figures);
    let lends = on(route.durable.mode) && on(route.believed.mode) && figures.is_some();
    let rate = rate(&route.windows, RATE_SLICES)?;
    lends.then_some((rate, live.cap))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(agents: u64) -> Starters {
        let waiting = (0..agents).map(|it| (ConnectionId(it), Moment::default()));
        Starters {
            waiting: waiting.collect(),
            ..Starters::default()
        }
    }

    /// What is lent at each of some moments.
    fn lent(starters: &mut Starters, millis: &[u64], most: f64, cap: f64) -> Vec<f64> {
        let lend = |ms: &u64| starters.lend(Moment::from_millis(*ms), most, cap);
        let lent = millis.iter().map(lend);
        lent.map(|credits| credits.iter().map(|(_, hedges)| hedges).sum())
            .collect()
    }

    #[test]
    fn in_no_second_is_more_lent_than_may_be_however_many_wait_and_however_often_it_is_asked() {
        let mut starters = waiting(1_000);
        let times: Vec<_> = (0..50).map(|it| it * 250).collect();
        let each = lent(&mut starters, &times, 100.5, 1.0);
        for second in each.windows(4) {
            assert!(second.iter().sum::<f64>() <= 100.5, "{second:?}");
        }
        assert_eq!(each[..5], [100.0, 0.0, 0.0, 0.0, 100.0]);
        assert_eq!(each.iter().sum::<f64>() as u64, 1_000);
        assert!(starters.waiting.is_empty());
    }

    #[test]
    fn few_get_what_their_buckets_hold_and_nobody_a_part_of_a_hedge() {
        for (agents, most, cap, expected) in [
            (2, 100.0, 3.0, 6.0),     // the cap
            (100, 250.0, 3.0, 250.0), // as much as there is
            (100, 30.0, 3.0, 30.0),   // one each, for thirty
            (5, 0.9, 3.0, 0.0),
            (5, 100.0, 0.5, 0.0),
        ] {
            let mut starters = waiting(agents);
            let sum = lent(&mut starters, &[0], most, cap)[0];
            let case = format!("{agents} agents, {most} in all, {cap} each");
            assert!((sum - expected).abs() < 1e-9, "{case}: {sum}");
        }
    }
}
