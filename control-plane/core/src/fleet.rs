//! The agents: who is attached, how long each has been silent, and whose counters are whose.

mod lost;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use hedgerow_protocol::directive::Stamp;
use hedgerow_protocol::ids::{Epoch, Incarnation, InstanceId, RouteKey};
use hedgerow_protocol::limits::ROUTES_PER_AGENT_MAX;
use hedgerow_protocol::report::Effective;
use hedgerow_protocol::session::held_hash;

use self::lost::Lost;
use crate::event::{ConnectionId, Departure, Joined};
use crate::ledger::Ledger;
use crate::moment::Moment;

/// How long an agent that went is remembered: its counters go on where they were if it comes back,
/// and the page shows that it was there.
pub(crate) const GONE_KEPT: Duration = Duration::from_mins(5);
/// Most gone agents remembered: a fleet that is redeployed at once, not a flood of new names.
const GONE_MAX: usize = 10_000;
/// An agent has one report under way at most. After another stream of the same life attached, one
/// more can still arrive on the old stream; a second proves that two agents share the identity.
const LATE_REPORTS: u32 = 1;

/// Which counters a stream's reports belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LedgerId(u64);

/// What an agent does on one route.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentRoute {
    /// Where the route is in [`Fleet::order`], once the agent was counted with it.
    pub(crate) slot: Option<usize>,
    /// What it holds, as far as it said.
    pub(crate) held: Option<Stamp>,
    /// What it was sent last.
    pub(crate) sent: Option<Stamp>,
    /// What it refused last, and why. Boxed: few refuse anything, and a tick walks over all of these.
    pub(crate) refused: Option<Box<(Stamp, String)>>,
    /// What it last said it does.
    pub(crate) effective: Option<Effective>,
}

/// An attached agent.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) joined: Joined,
    pub(crate) connected: Moment,
    /// Its last word.
    pub(crate) heard: Moment,
    /// From when its silence counts: its last word, later by the controller's own pauses since
    /// (C22).
    pub(crate) silent_since: Moment,
    pub(crate) reported: Option<Moment>,
    pub(crate) skew_ms: Option<i64>,
    pub(crate) refused_reports: u64,
    pub(crate) last_refusal: Option<String>,
    pub(crate) duplicate_reports: u64,
    pub(crate) ledger: LedgerId,
    /// Reports since another stream of the same life attached; None: none did.
    pub(crate) overtaken: Option<u32>,
    /// Whether its routes have their slots.
    placed: bool,
    /// Routes it reported or holds; 64 at most.
    pub(crate) routes: BTreeMap<RouteKey, AgentRoute>,
    /// It came with a directive of this epoch that was not ours: it is told nothing before a higher
    /// one has begun.
    pub(crate) after_epoch: Option<Epoch>,
    /// Hash of the stamps of a set it refused whole, and why: not sent again until one changes.
    pub(crate) refused_set: Option<(u64, String)>,
    /// Counts deliveries.
    pub(crate) nonce: u64,
    pub(crate) pushed: Option<Moment>,
    /// When it was last sent everything again because its hash was not what it should be.
    pub(crate) resent: Option<Moment>,
    /// Reports counted since the last tick.
    pub(crate) reports_this_tick: u32,
    /// Whether it was silent for two heartbeats at the last tick.
    pub(crate) stale: bool,
    /// Hash of what it holds, as far as known.
    held_hash: u64,
}

impl Agent {
    fn new(joined: Joined, ledger: LedgerId, now: Moment) -> Self {
        let mut agent = Self {
            connected: now,
            heard: now,
            silent_since: now,
            reported: None,
            skew_ms: None,
            refused_reports: 0,
            last_refusal: None,
            duplicate_reports: 0,
            ledger,
            overtaken: None,
            placed: false,
            routes: BTreeMap::new(),
            after_epoch: None,
            refused_set: None,
            nonce: 0,
            pushed: None,
            resent: None,
            reports_this_tick: 0,
            stale: false,
            held_hash: 0,
            joined,
        };
        for held in agent.joined.held.iter().take(ROUTES_PER_AGENT_MAX) {
            agent.routes.entry(held.route.clone()).or_default().held = Some(held.stamp);
        }
        agent.rehash();
        agent
    }

    /// It spoke.
    pub(crate) fn hear(&mut self, now: Moment) {
        self.heard = now;
        self.silent_since = now;
        self.stale = false;
    }

    /// It refused a report, or sent what cannot be read.
    pub(crate) fn count_refusal(&mut self, reason: &str) {
        self.refused_reports += 1;
        self.last_refusal = Some(reason.to_owned());
    }

    /// The hash it should report, if it holds what it said it does.
    pub(crate) fn held_hash(&self) -> u64 {
        self.held_hash
    }

    /// It holds these stamps now.
    pub(crate) fn holds(&mut self, stamps: &[(RouteKey, Stamp)]) {
        let mut changed = false;
        for (route, stamp) in stamps {
            let Some(state) = self.routes.get_mut(route) else {
                continue;
            };
            changed |= state.held != Some(*stamp);
            state.held = Some(*stamp);
            if state
                .refused
                .as_deref()
                .is_some_and(|(refused, _)| *refused <= *stamp)
            {
                state.refused = None;
            }
        }
        // Mostly live values are all that moved, and the stamps are the same.
        if changed {
            self.rehash();
        }
    }

    /// Why it does not take `wanted`, where it said so.
    pub(crate) fn refusal_of<'a>(
        &'a self,
        state: &'a AgentRoute,
        wanted: Stamp,
    ) -> Option<&'a str> {
        match (state.refused.as_deref(), &self.refused_set) {
            (Some((stamp, reason)), _) if *stamp == wanted => Some(reason),
            (_, Some((_, reason))) if state.sent == Some(wanted) => Some(reason),
            _ => None,
        }
    }

    /// Makes room for a route it reported; false where it has its 64 already, and for what it
    /// counts together, which nobody directs.
    pub(crate) fn meets(&mut self, route: &RouteKey, effective: Effective) -> bool {
        let full = self.routes.len() >= ROUTES_PER_AGENT_MAX;
        if full || route.is_other() || self.routes.contains_key(route) {
            return false;
        }
        let state = AgentRoute {
            effective: Some(effective),
            ..AgentRoute::default()
        };
        self.routes.insert(route.clone(), state);
        self.placed = false;
        true
    }

    fn rehash(&mut self) {
        self.held_hash = held_hash(
            self.routes
                .iter()
                .filter_map(|(route, state)| Some((route, state.held?))),
        );
    }
}

/// An agent that went.
#[derive(Debug, Clone)]
pub(crate) struct GoneAgent {
    pub(crate) agent: Agent,
    pub(crate) departure: Departure,
    pub(crate) at: Moment,
    /// The routes it was on, where it was lost.
    lost_on: Vec<RouteKey>,
}

#[derive(Debug, Clone)]
struct KeptLedger {
    ledger: Ledger,
    life: (InstanceId, Incarnation),
    /// Streams that write to it.
    streams: u32,
    /// Since when none does.
    idle: Moment,
}

/// All agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fleet {
    pub(crate) attached: BTreeMap<ConnectionId, Agent>,
    /// Their streams by agent: a fleet that comes back at once is not walked for each that does.
    streams: BTreeSet<(InstanceId, ConnectionId)>,
    pub(crate) gone: VecDeque<GoneAgent>,
    lost: Lost,
    /// The controller's routes when agents were last counted, ascending: what is done for each
    /// agent and route each tick finds the route by a number, not by its name.
    order: Vec<RouteKey>,
    ledgers: BTreeMap<LedgerId, KeptLedger>,
    /// The newest ledger of each life.
    lives: BTreeMap<(InstanceId, Incarnation), LedgerId>,
    ledgers_made: u64,
}

/// The streams of an agent.
fn all_of(instance: InstanceId) -> RangeInclusive<(InstanceId, ConnectionId)> {
    (instance, ConnectionId(0))..=(instance, ConnectionId(u64::MAX))
}

impl Fleet {
    /// Takes an agent on. Its counters go on where its life's last stream left them; an older
    /// stream of the same life stays attached (C18).
    pub(crate) fn join(&mut self, joined: Joined, now: Moment) {
        let life = (joined.instance, joined.incarnation);
        for (_, connection) in self.streams.range(all_of(joined.instance)) {
            if let Some(other) = self.attached.get_mut(connection)
                && other.joined.incarnation == joined.incarnation
            {
                other.overtaken.get_or_insert(0);
            }
        }
        let lost = &mut self.lost;
        self.gone.retain(|gone| {
            let is_back = gone.agent.joined.instance == joined.instance;
            if is_back {
                lost.remove(&gone.lost_on);
            }
            !is_back
        });
        let ledger = match self.lives.get(&life) {
            Some(id) => *id,
            None => self.open(life, now),
        };
        if let Some(kept) = self.ledgers.get_mut(&ledger) {
            kept.streams += 1;
        }
        let (connection, instance) = (joined.connection, joined.instance);
        let agent = Agent::new(joined, ledger, now);
        if let Some(replaced) = self.attached.insert(connection, agent) {
            self.streams.remove(&(replaced.joined.instance, connection));
            self.let_go(replaced.ledger, now);
        }
        self.streams.insert((instance, connection));
    }

    /// A stream ended. Returns the routes its agent was on.
    pub(crate) fn leave(
        &mut self,
        connection: ConnectionId,
        departure: Departure,
        now: Moment,
    ) -> Vec<RouteKey> {
        let Some(mut agent) = self.attached.remove(&connection) else {
            return Vec::new();
        };
        self.let_go(agent.ledger, now);
        let routes: Vec<_> = std::mem::take(&mut agent.routes).into_keys().collect();
        let instance = agent.joined.instance;
        self.streams.remove(&(instance, connection));
        if self.streams.range(all_of(instance)).next().is_none() {
            if self.gone.len() >= GONE_MAX {
                self.forget_gone();
            }
            let lost_on = match departure {
                Departure::Lost => routes.clone(),
                Departure::Left => Vec::new(),
            };
            self.lost.add(&lost_on);
            self.gone.push_back(GoneAgent {
                agent,
                departure,
                at: now,
                lost_on,
            });
        }
        routes
    }

    /// Forgets the one that went first.
    fn forget_gone(&mut self) {
        if let Some(gone) = self.gone.pop_front() {
            self.lost.remove(&gone.lost_on);
        }
    }

    /// Agents that were on `route`, ended without a goodbye in the last minutes, and are not back.
    pub(crate) fn lost_on(&self, route: &RouteKey) -> u64 {
        self.lost.on(route)
    }

    /// The agent on a stream and the counters its reports belong to. Tells two agents of one
    /// identity apart, where the older stream speaks on.
    pub(crate) fn reporting(
        &mut self,
        connection: ConnectionId,
        now: Moment,
    ) -> Option<(&mut Agent, &mut Ledger)> {
        let agent = self.attached.get_mut(&connection)?;
        if let Some(late) = &mut agent.overtaken {
            *late += 1;
            if *late > LATE_REPORTS {
                self.fork(connection, now);
            }
        }
        let agent = self.attached.get_mut(&connection)?;
        let kept = self.ledgers.get_mut(&agent.ledger)?;
        Some((agent, &mut kept.ledger))
    }

    /// The older stream gets counters of its own. Both begin anew: nobody can say which of what
    /// was counted together came from whom.
    fn fork(&mut self, connection: ConnectionId, now: Moment) {
        let Some(agent) = self.attached.get(&connection) else {
            return;
        };
        let (shared, life) = (
            agent.ledger,
            (agent.joined.instance, agent.joined.incarnation),
        );
        let own = self.open_apart(life, now);
        if let Some(kept) = self.ledgers.get_mut(&shared) {
            kept.ledger.forget();
        }
        self.let_go(shared, now);
        if let Some(kept) = self.ledgers.get_mut(&own) {
            kept.streams = 1;
        }
        if let Some(agent) = self.attached.get_mut(&connection) {
            agent.ledger = own;
            agent.overtaken = None;
        }
    }

    fn open(&mut self, life: (InstanceId, Incarnation), now: Moment) -> LedgerId {
        let id = self.open_apart(life, now);
        self.lives.insert(life, id);
        id
    }

    fn open_apart(&mut self, life: (InstanceId, Incarnation), now: Moment) -> LedgerId {
        self.ledgers_made += 1;
        let id = LedgerId(self.ledgers_made);
        let kept = KeptLedger {
            ledger: Ledger::default(),
            life,
            streams: 0,
            idle: now,
        };
        self.ledgers.insert(id, kept);
        id
    }

    fn let_go(&mut self, ledger: LedgerId, now: Moment) {
        if let Some(kept) = self.ledgers.get_mut(&ledger) {
            kept.streams = kept.streams.saturating_sub(1);
            kept.idle = now;
        }
    }

    /// The routes that slots are of, ascending.
    pub(crate) fn order(&self) -> &[RouteKey] {
        &self.order
    }

    /// Gives each agent's routes their slots: their places in `routes`, ascending. Only for what is
    /// new, unless `routes` are others than the last time.
    pub(crate) fn place<'a>(
        &mut self,
        routes: impl ExactSizeIterator<Item = &'a RouteKey> + Clone,
    ) {
        let same = self.order.len() == routes.len() && self.order.iter().eq(routes.clone());
        if !same {
            self.order = routes.cloned().collect();
        }
        let order = &self.order;
        for agent in self.attached.values_mut() {
            if same && agent.placed {
                continue;
            }
            for (key, state) in &mut agent.routes {
                if !same || state.slot.is_none() {
                    state.slot = order.binary_search(key).ok();
                }
            }
            agent.placed = true;
        }
    }

    /// The controller itself stood still for `pause`: nobody was silent in that time.
    pub(crate) fn excuse(&mut self, pause: Duration) {
        for agent in self.attached.values_mut() {
            agent.silent_since = agent.silent_since.plus(pause);
        }
    }

    /// Each tick: who is stale, and who is forgotten. Returns those newly stale.
    pub(crate) fn age(&mut self, now: Moment, heartbeat: Duration) -> Vec<ConnectionId> {
        let mut fell_silent = Vec::new();
        for (connection, agent) in &mut self.attached {
            agent.reports_this_tick = 0;
            let stale = now.since(agent.silent_since) >= heartbeat * 2;
            if stale && !agent.stale {
                fell_silent.push(*connection);
            }
            agent.stale = stale;
        }
        while self
            .gone
            .front()
            .is_some_and(|gone| now.since(gone.at) >= GONE_KEPT)
        {
            self.forget_gone();
        }
        if self.ledgers.len() > self.attached.len() {
            let idle_most = self.attached.len() + GONE_MAX;
            let crowded = self.ledgers.len() > idle_most;
            let kept_for = if crowded { Duration::ZERO } else { GONE_KEPT };
            self.ledgers
                .retain(|_, kept| kept.streams > 0 || now.since(kept.idle) < kept_for);
            let ledgers = &self.ledgers;
            self.lives.retain(|_, ledger| ledgers.contains_key(ledger));
        }
        fell_silent
    }

    /// For the checker: each stream's counters exist, and their streams add up.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut streams: BTreeMap<LedgerId, u32> = BTreeMap::new();
        for agent in self.attached.values() {
            *streams.entry(agent.ledger).or_default() += 1;
            if agent.routes.len() > ROUTES_PER_AGENT_MAX {
                return Err(format!(
                    "{} has {} routes",
                    agent.joined.instance,
                    agent.routes.len()
                ));
            }
        }
        for (id, kept) in &self.ledgers {
            let expected = streams.remove(id).unwrap_or(0);
            if kept.streams != expected {
                return Err(format!(
                    "ledger of {:?} says {} streams, expected {expected}",
                    kept.life, kept.streams
                ));
            }
        }
        match streams.into_keys().next() {
            Some(missing) => Err(format!("a stream writes to {missing:?}, which is gone")),
            None => Ok(()),
        }
    }
}
