//! What happens to the controller.

use std::time::Duration;

use hedgerow_protocol::directive::Stamp;
use hedgerow_protocol::ids::{
    DependencyName, Incarnation, InstanceId, Revision, RouteKey, ServiceName, ZoneName,
};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use hedgerow_protocol::report::Report;
use hedgerow_protocol::session::Held;
use hedgerow_protocol::units::Ratio;
use serde::{Deserialize, Serialize};

use crate::effect::{SilenceDraft, SilenceId};
use crate::rollout::RolloutPlan;

/// One stream of one agent, numbered by the server and never used again in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u64);

/// An operator's request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A write to the store that the core waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// Everything that can happen.
#[derive(Debug, Clone)]
pub enum Event {
    /// An agent attached and said hello.
    Joined(Joined),
    /// Its stream ended.
    Gone {
        /// Which.
        connection: ConnectionId,
        /// How.
        departure: Departure,
    },
    /// It reported.
    Reported {
        /// Which.
        connection: ConnectionId,
        /// What, already decoded field by field; the core checks it against what came before.
        report: Box<Report>,
        /// Hash of the stamps it holds: where it differs from what it was sent, it is sent again.
        held_hash: u64,
    },
    /// It spoke, without news, and holds these stamps.
    Heartbeat {
        /// Which.
        connection: ConnectionId,
        /// See [`Event::Reported`].
        held_hash: u64,
    },
    /// It applied directives.
    Applied {
        /// Which.
        connection: ConnectionId,
        /// Which directives.
        stamps: Vec<(RouteKey, Stamp)>,
    },
    /// It refused one, or a whole set.
    Refused {
        /// Which.
        connection: ConnectionId,
        /// The route; None: the whole set.
        route: Option<RouteKey>,
        /// The refused directive's place in the order.
        stamp: Option<Stamp>,
        /// In the agent's words.
        reason: String,
    },
    /// A message that could not be decoded was dropped at the edge: counted against the agent.
    Undecodable {
        /// Which.
        connection: ConnectionId,
        /// What was wrong, naming the field.
        problem: String,
    },
    /// A person, or a seed file, wants something.
    Ordered {
        /// To answer to.
        request: RequestId,
        /// Who.
        actor: Actor,
        /// Why, in their words.
        reason: String,
        /// What.
        order: Order,
    },
    /// A write is durable.
    Persisted(WriteId),
    /// A write failed: nothing that waited for it happens.
    PersistFailed {
        /// Which.
        write: WriteId,
        /// Why.
        problem: String,
    },
}

/// An agent's first word on a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// The stream.
    pub connection: ConnectionId,
    /// Who it is. From its credential.
    pub service: ServiceName,
    /// Which of the service's agents.
    pub instance: InstanceId,
    /// Which life of its counters.
    pub incarnation: Incarnation,
    /// Where it runs.
    pub zone: Option<ZoneName>,
    /// The agent's version, for people.
    pub version: String,
    /// Where it connects from, for people.
    pub peer: String,
    /// What it holds, so that a new controller relearns instead of resetting.
    pub held: Vec<Held>,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// The agent said goodbye.
    Left,
    /// It just ended, or fell silent.
    Lost,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// A person's or token's name; `controller` for what it did on its own.
    pub name: String,
    /// From where.
    pub via: Via,
}

impl Actor {
    /// The controller itself.
    pub fn controller() -> Self {
        Self {
            name: "controller".into(),
            via: Via::Controller,
        }
    }
}

/// Where an act came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The dashboard.
    Page,
    /// The REST API.
    Api,
    /// The command line.
    CommandLine,
    /// The controller's own decision.
    Controller,
    /// A policy in the configuration file, read on first start.
    Seed,
}

impl Via {
    /// Its name in the store and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Api => "api",
            Self::CommandLine => "command_line",
            Self::Controller => "controller",
            Self::Seed => "seed",
        }
    }
}

/// What a person wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// A policy for what its scope says.
    SetPolicy {
        /// The new policy, whole.
        policy: Box<Policy>,
        /// The revision it was made from; another one in force meanwhile refuses it. None: whatever
        /// is in force.
        expected: Option<Revision>,
        /// In which steps; None: for every agent at once. Either way it takes the place of a rollout
        /// under way.
        rollout: Option<RolloutPlan>,
    },
    /// A policy is taken away: what it was for has the next wider one again, or none.
    RemovePolicy {
        /// Whose.
        scope: PolicyScope,
        /// The revision that was looked at; another one meanwhile refuses it. None: whichever is.
        expected: Option<Revision>,
    },
    /// The next step of a rollout, without waiting for it; after the last the new policy is in force
    /// for everybody.
    AdvanceRollout {
        /// Of which scope's policy.
        scope: PolicyScope,
        /// The revision that is rolled out; another one meanwhile refuses it. None: whichever is.
        expected: Option<Revision>,
    },
    /// A rollout is taken back: the old policy is in force again, as a new revision.
    AbortRollout {
        /// Of which scope's policy.
        scope: PolicyScope,
        /// See [`Order::AdvanceRollout`].
        expected: Option<Revision>,
    },
    /// The kill switch. Engaged, it takes back the rollouts of what it covers.
    Kill {
        /// For what.
        scope: KillScope,
        /// On: hedging goes off.
        engaged: bool,
    },
    /// Hedging may go on again on a route that changed too often by itself.
    Release {
        /// The route.
        route: RouteKey,
    },
    /// The present speed is the normal one: makes it the base of the all-slow test.
    AcceptBase {
        /// The route.
        route: RouteKey,
    },
    /// How busy a dependency is. A reading, not a change of anybody's mind: it needs no reason, is
    /// neither stored nor recorded, and is forgotten when it is older than it holds.
    SetUtilisation {
        /// Of what.
        dependency: DependencyName,
        /// The share of what it can carry that is in use; None: unknown from now on.
        utilisation: Option<Ratio>,
        /// How long the reading holds, 1 s to 1 h.
        valid_for: Duration,
    },
    /// How many executions of a route's calls were not the first, by a server that can tell. A
    /// reading, as [`Order::SetUtilisation`] is.
    SetDuplicates {
        /// Of what.
        route: RouteKey,
        /// Executions that were not the first of their call, over all servers.
        executed: u64,
        /// In the time up to now, 10 s to 5 min.
        over: Duration,
    },
    /// Keeps firing notices of what matches from receivers, for a time.
    Silence(SilenceDraft),
    /// Ends a silence before its time.
    EndSilence {
        /// Which.
        silence: SilenceId,
    },
    /// Somebody works on an alert that fires. It goes on firing.
    Acknowledge {
        /// The episode.
        alert: String,
        /// For so long, a minute to 30 days; None: until it is over.
        lasts: Option<Duration>,
    },
    /// The whole fleet hedges on a route and does not, in turns, to see what that does to callers.
    StartSwitchback {
        /// The route.
        route: RouteKey,
        /// Pairs of with and without, 3 to 60; see [`SWITCHBACK_ROUNDS`].
        rounds: u32,
    },
    /// Ends a route's switchback before its time.
    StopSwitchback {
        /// The route.
        route: RouteKey,
    },
}

/// Rounds of a switchback where nothing is said: they take as many minutes.
pub const SWITCHBACK_ROUNDS: u32 = 10;

/// What a kill switch covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "scope", content = "dependency")]
pub enum KillScope {
    /// Everything.
    Everything,
    /// One dependency, all its operations.
    Dependency(DependencyName),
}

/// Settings of the core, fixed for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The name of this controller, for people.
    pub controller: String,
    /// How often decisions are made.
    pub tick: Duration,
    /// How long a directive holds without a word.
    pub lease: Duration,
    /// After what silence an agent counts as stale.
    pub heartbeat: Duration,
    /// Most routes kept; traffic beyond goes to `__other__`.
    pub routes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            controller: "hedgerow".into(),
            tick: Duration::from_secs(1),
            lease: hedgerow_protocol::limits::LEASE_DEFAULT,
            heartbeat: hedgerow_protocol::limits::HEARTBEAT_DEFAULT,
            routes_max: hedgerow_protocol::limits::ROUTES_PER_CONTROLLER_MAX,
        }
    }
}
