//! The parts of an agent that decide, for the simulator: the same code, driven by a world of
//! discrete events instead of calls. Times are durations since the agent began.
//!
//! What is here only passes on to the pure modules of this crate, in the order in which a route's
//! second uses them (`route::keeping`). No promise of any kind is made for it.

mod own;

use std::time::Duration;

use hedgerow_protocol::directive::{Directive, Mode, Stamp};
use hedgerow_protocol::ids::{InstanceId, ReplicaName, RouteKey};
use hedgerow_protocol::limits::CAP_MAX;
use hedgerow_protocol::report::LinkState;
use hedgerow_protocol::session::Held;
use hedgerow_protocol::units::{Budget, Ratio, Threshold};

pub use self::own::{Own, ReplicaSeen, Seen};
use crate::budget::TokenBucket;
use crate::mode::{self, LinkClock, OwnFigures, ProbationRule, RouteMode};
use crate::route::{Turn, Turns};

/// The token bucket, and the agent's turns to use it: see `budget` and `route::turns`.
#[derive(Debug)]
pub struct Bucket {
    tokens: TokenBucket,
    turns: Turns,
    turn: Turn,
    lent: bool,
}

impl Bucket {
    /// An empty one.
    pub fn new(agent: InstanceId) -> Self {
        Self {
            tokens: TokenBucket::default(),
            turns: Turns::new(agent),
            turn: Turn::Everyone,
            lent: false,
        }
    }

    /// What a finished call earns and what is kept, from now on.
    pub fn put_in_force(&mut self, now: Duration, in_force: &InForce) {
        let turn = self.turns.at(in_force.whole.arming.as_ref(), now);
        let before = std::mem::replace(&mut self.turn, turn);
        turn.begin(before, &in_force.whole, &self.tokens);
    }

    /// Takes the guard away: more tokens than anybody spends.
    pub fn take_off(&self) {
        self.tokens.set(Ratio::ONE, CAP_MAX);
    }

    /// The controller lends hedges to start with: once, before any hedge, not in turns.
    pub fn lend(&mut self, in_force: &InForce, credit: f64, hedges: u64) {
        let credit = credit.min(in_force.cap);
        if !self.lent && credit > 0.0 && in_force.whole.arming.is_none() && hedges == 0 {
            self.lent = true;
            self.tokens.lend(credit);
        }
    }

    /// Whether it is this agent's turn to hedge.
    pub fn armed(&self) -> bool {
        self.turn != Turn::Unarmed
    }

    /// An eligible call finished.
    pub fn earn(&self) {
        self.tokens.earn();
    }

    /// Takes one hedge's token, where there is one.
    pub fn take(&self) -> bool {
        self.tokens.take()
    }

    /// What a finished call earns now, in hedges.
    pub fn earned(&self) -> f64 {
        self.tokens.earned()
    }

    /// Tokens left, in hedges.
    pub fn tokens(&self) -> f64 {
        self.tokens.tokens()
    }
}

/// What the agent does on the route now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InForce {
    /// The directive's place in the order.
    pub stamp: Stamp,
    /// The stricter of what was directed and what the agent found out.
    pub mode: Mode,
    /// Whether the agent itself switched off.
    pub own_off: bool,
    /// When a call may be hedged.
    pub threshold: Option<Threshold>,
    /// Share of crossed calls hedged.
    pub probability: Ratio,
    /// Tokens earned by a finished call.
    pub budget: Budget,
    /// Most tokens kept, in hedges.
    pub cap: f64,
    /// Share of calls never hedged.
    pub holdout: Ratio,
    whole: mode::InForce,
}

/// What the controller said, for how long it holds, and what is left of it afterwards: see `mode`.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    mode: RouteMode,
    link: LinkClock,
}

impl Orders {
    /// Takes a directive, or says why not.
    pub fn apply(&mut self, directive: Directive) -> Result<(), String> {
        self.mode.apply(directive).map_err(|it| it.to_string())
    }

    /// The controller spoke.
    pub fn heard(&mut self, now: Duration) {
        self.link.heard(now);
    }

    /// The controller took the agent on.
    pub fn welcomed(&mut self, now: Duration, lease: Duration, heartbeat: Duration) {
        self.link.set_heartbeat(heartbeat);
        self.mode.welcomed(lease);
        self.link.heard(now);
    }

    /// A set was taken that names the route or does not.
    pub fn delivered(&mut self, now: Duration, named: bool) {
        self.mode.delivered(named, now);
    }

    /// How the agent stands towards its controller.
    pub fn link_state(&self, now: Duration) -> LinkState {
        self.link.state(now, self.mode.lease())
    }

    /// The stamp held.
    pub fn stamp(&self) -> Option<Stamp> {
        self.mode.directive().map(|directive| directive.stamp)
    }

    /// What is said of it in a hello.
    pub fn held(&self, route: &RouteKey) -> Option<Held> {
        let directive = self.mode.directive()?;
        Some(Held {
            route: route.clone(),
            stamp: directive.stamp,
            mode: directive.mode,
            tick: directive.live.tick,
            threshold: directive.live.threshold,
            budget: directive.live.budget,
        })
    }

    /// Whether the threshold in use is the agent's own: nobody pushed one, or the lease is over.
    pub fn on_its_own(&self, now: Duration) -> bool {
        let pushed = self
            .mode
            .directive()
            .is_some_and(|directive| directive.live.threshold.is_some());
        !pushed || matches!(self.rule(now), ProbationRule::OwnAmong(_))
    }

    /// What holds now, `own` being what the agent found out by itself.
    pub fn in_force(&self, now: Duration, own: &Own) -> InForce {
        let it = self.mode.in_force(now, &self.link, own.figures());
        InForce {
            stamp: it.stamp,
            mode: it.mode,
            own_off: it.own_off.is_some(),
            threshold: it.threshold,
            probability: it.probability,
            budget: it.budget,
            cap: it.cap,
            holdout: it.holdout,
            whole: it,
        }
    }

    /// The replicas a controller has put on probation, while it is there to say so.
    pub fn directed_probation(&self, now: Duration) -> Option<&[ReplicaName]> {
        match self.rule(now) {
            ProbationRule::Directed(replicas) => Some(replicas),
            ProbationRule::None => Some(&[]),
            ProbationRule::Own | ProbationRule::OwnAmong(_) => None,
        }
    }

    fn rule(&self, now: Duration) -> ProbationRule<'_> {
        self.mode.probation_rule(now, &self.link)
    }

    fn figures(&self, now: Duration, own: OwnFigures) -> mode::InForce {
        self.mode.in_force(now, &self.link, own)
    }
}
