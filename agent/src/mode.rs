//! What holds on a route: the last good directive, its lease, and the agent's own switch-off on
//! top. Pure: `now` is an argument, a duration since the agent began.
//!
//! ```text
//!              directive                    lease over                  30 s more
//! observing ─────────────► as directed ─────────────────► decaying ─────────────────► fallback
//!                              ▲   budget as pushed          budget falls to min(pushed, 2 %),
//!                              └────── any word ──────────── threshold from own histogram
//! ```
//! An off that came from a controller has no arrow out but another directive. A probing route
//! without its controller is off: nobody is there to read the probes.
//!
//! Without a controller the orders are the service's own policy: the policy file's, where that names
//! the dependency, else the code's. After the agent's shutdown nobody renews anything any more, so
//! nothing is hedged, whoever ordered it.

mod policy;

use std::time::Duration;

use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::directive::{Directive, LiveValues, Mode, OffReason, Stamp, Standing};
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::limits::{
    BUDGET_MAX, CAP_MAX, FALLBACK_BUDGET, FALLBACK_DECAY, HEARTBEAT_DEFAULT, LEASE_DEFAULT,
    LEASE_MAX, LEASE_MIN,
};
use hedgerow_protocol::policy::{Intent, Policy};
use hedgerow_protocol::report::LinkState;
use hedgerow_protocol::units::{Budget, Quantile, Ratio, Threshold};

pub use self::policy::{PolicyInForce, PolicySource};
use crate::gate::Further;

/// When the controller was last heard, for all routes of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkClock {
    last_word: Option<Duration>,
    heartbeat: Duration,
}

impl Default for LinkClock {
    fn default() -> Self {
        Self {
            last_word: None,
            heartbeat: HEARTBEAT_DEFAULT,
        }
    }
}

impl LinkClock {
    pub(crate) fn heard(&mut self, now: Duration) {
        self.last_word = self.last_word.max(Some(now));
    }

    /// Whether a controller ever said a word.
    pub(crate) fn was_heard(&self) -> bool {
        self.last_word.is_some()
    }

    pub(crate) fn set_heartbeat(&mut self, heartbeat: Duration) {
        self.heartbeat = heartbeat;
    }

    /// How the agent stands towards its controller, for what holds for `lease`.
    pub(crate) fn state(&self, now: Duration, lease: Duration) -> LinkState {
        match self.last_word.map(|word| now.saturating_sub(word)) {
            Some(silence) if silence > lease => LinkState::Fallback,
            Some(silence) if silence > 2 * self.heartbeat => LinkState::Stale,
            Some(_) => LinkState::Live,
            None => LinkState::Fallback,
        }
    }

    /// How long the lease has been over, for a route that was named until `unnamed_since`.
    fn overdue(
        &self,
        now: Duration,
        lease: Duration,
        unnamed_since: Option<Duration>,
    ) -> Option<Duration> {
        let word = self.last_word?;
        let word = unnamed_since.map_or(word, |since| since.min(word));
        let silence = now.saturating_sub(word);
        silence
            .checked_sub(lease)
            .filter(|overdue| !overdue.is_zero())
    }
}

/// Why a directive was not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum DirectiveRefused {
    #[error(transparent)]
    Invalid(#[from] hedgerow_protocol::directive::DirectiveError),
    #[error("stamp: {offered} is older than {held}, which is held; expected that or a newer one")]
    Older { offered: Stamp, held: Stamp },
    #[error("live.budget: {0} is beyond the hard limit; expected at most 0.25")]
    Budget(f64),
    #[error("live.cap: {0} is not a number of hedges; expected a number from 0 to 10000")]
    Cap(f64),
    #[error("route: {0} is not a route of this agent")]
    Route(hedgerow_protocol::ids::RouteKey),
}

/// Where a route's orders come from.
#[derive(Debug, Clone, Default)]
enum Source {
    /// Nobody has said anything: observing.
    #[default]
    Nobody,
    /// A controller.
    Directive(Box<Directive>),
    /// The service's own code, where there is no controller.
    Own(Box<Policy>),
}

/// See the [module](self).
#[derive(Debug, Clone, Default)]
pub(crate) struct RouteMode {
    source: Source,
    /// The welcome's lease, for a directive held from an earlier stream.
    welcome_lease: Option<Duration>,
    /// Since when the controller's sets no longer name the route: its words renew nothing here.
    unnamed_since: Option<Duration>,
    /// The controller let go of all it directed.
    released: bool,
    /// What the service's code said, for when the policy file says nothing.
    code: Option<Box<Policy>>,
    /// Whether the policy in force is the file's.
    by_file: bool,
    /// The agent has shut down.
    closed: bool,
}

/// Who decides which replicas are on probation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ProbationRule<'a> {
    /// Nobody may be.
    None,
    /// Exactly these.
    Directed(&'a [ReplicaName]),
    /// The agent, by its own figures.
    Own,
    /// The same, among those that the controller had put there before it was gone: whether the
    /// policy allows more is not known.
    OwnAmong(&'a [ReplicaName]),
}

/// What the agent does on the route now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InForce {
    pub(crate) stamp: Stamp,
    pub(crate) mode: Mode,
    pub(crate) own_off: Option<OffReason>,
    pub(crate) threshold: Option<Threshold>,
    pub(crate) probability: Ratio,
    /// The mean over all turns, where there is arming.
    pub(crate) budget: Budget,
    pub(crate) cap: f64,
    /// In fallback as last held: to end it is the controller's to say, since a fleet that loses its
    /// controller is still as large.
    pub(crate) arming: Option<Arming>,
    pub(crate) holdout: Ratio,
    pub(crate) further: Further,
}

/// What the agent found out by itself, to go on alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnFigures {
    /// The threshold from its own histogram, where it has enough calls.
    pub(crate) threshold: Option<Threshold>,
    /// The agent's own switch-off.
    pub(crate) off: Option<OffReason>,
    /// Eligible calls that finished in the last second.
    pub(crate) calls_per_second: f64,
}

/// A bucket's cap where nobody pushes one: three hedges, or half a second's worth.
fn own_cap(budget: Budget, calls_per_second: f64) -> f64 {
    (0.5 * budget.get() * calls_per_second).max(3.0)
}

fn default_error_limit() -> Ratio {
    Ratio::clamped(0.05)
}

fn default_percentile() -> Quantile {
    Quantile::new(0.95).expect("0.95 is between 0 and 1")
}

impl RouteMode {
    /// Orders from the service's own code. Only for agents without a controller.
    pub(crate) fn own(policy: Policy) -> Self {
        let policy = Box::new(policy);
        Self {
            source: Source::Own(policy.clone()),
            code: Some(policy),
            ..Self::default()
        }
    }

    /// What the policy file says of the dependency now. Where it says nothing the code's word holds
    /// again, or nobody's. Only for agents without a controller: a directive stays.
    pub(crate) fn set_file_policy(&mut self, policy: Option<&Policy>) {
        if matches!(self.source, Source::Directive(_)) {
            return;
        }
        let file = policy.map(|policy| Box::new(policy.clone()));
        self.by_file = file.is_some();
        let policy = file.or_else(|| self.code.clone());
        self.source = policy.map_or(Source::Nobody, Source::Own);
    }

    /// The agent has shut down.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Who decides now which replicas are on probation. A route that only observes changes nothing
    /// about a call, so not where it goes either.
    pub(crate) fn probation_rule(&self, now: Duration, link: &LinkClock) -> ProbationRule<'_> {
        match &self.source {
            _ if self.closed || self.released => ProbationRule::None,
            Source::Own(policy) if policy.probation() && policy.intent() == Intent::Hedge => {
                ProbationRule::Own
            }
            Source::Nobody | Source::Own(_) => ProbationRule::None,
            Source::Directive(directive) => {
                let overdue = link.overdue(now, self.lease(), self.unnamed_since);
                if overdue.is_some() {
                    ProbationRule::OwnAmong(&directive.probation)
                } else {
                    ProbationRule::Directed(&directive.probation)
                }
            }
        }
    }

    /// The policy's least threshold.
    pub(crate) fn threshold_min(&self) -> Option<Threshold> {
        match &self.source {
            Source::Nobody => None,
            Source::Directive(directive) => directive.standing.threshold_min,
            Source::Own(policy) => policy.threshold_min().map(Threshold::clamped),
        }
    }

    pub(crate) fn directive(&self) -> Option<&Directive> {
        match &self.source {
            Source::Directive(directive) => Some(directive),
            Source::Nobody | Source::Own(_) => None,
        }
    }

    /// Takes a directive that is not older than the one held.
    ///
    /// With a stamp as held, live values and probation are all that is taken: mode and standing
    /// belong to the stamp, and whoever sends others under it cannot lift an off with them. Within
    /// an epoch, live values and probation of a lower tick are no mistake, they were on their way,
    /// and are passed over.
    pub(crate) fn apply(&mut self, mut offered: Directive) -> Result<(), DirectiveRefused> {
        offered.check()?;
        // The types hold these already; a later decoder must not be able to weaken them (P8).
        if !(0.0..=BUDGET_MAX).contains(&offered.live.budget.get()) {
            return Err(DirectiveRefused::Budget(offered.live.budget.get()));
        }
        if !(0.0..=CAP_MAX).contains(&offered.live.cap) {
            return Err(DirectiveRefused::Cap(offered.live.cap));
        }
        if let Source::Directive(held) = &self.source {
            if offered.stamp < held.stamp {
                let (offered, held) = (offered.stamp, held.stamp);
                return Err(DirectiveRefused::Older { offered, held });
            }
            let same_epoch = offered.stamp.epoch == held.stamp.epoch;
            if same_epoch && offered.live.tick < held.live.tick {
                offered.live = held.live;
                offered.probation.clone_from(&held.probation);
            }
            if offered.stamp == held.stamp {
                (offered.mode, offered.standing) = (held.mode, held.standing);
            }
            if offered.live.threshold.is_none() {
                offered.live.threshold = held.live.threshold;
            }
        }
        self.welcome_lease = None;
        self.unnamed_since = None;
        self.released = false;
        self.source = Source::Directive(Box::new(offered));
        Ok(())
    }

    /// The controller says how long what is held stays good.
    pub(crate) fn welcomed(&mut self, lease: Duration) {
        self.welcome_lease = Some(lease.clamp(LEASE_MIN, LEASE_MAX));
    }

    /// A set was taken that names this route or does not.
    pub(crate) fn delivered(&mut self, named: bool, now: Duration) {
        if named {
            self.unnamed_since = None;
        } else {
            self.unnamed_since.get_or_insert(now);
        }
    }

    /// The controller let go of everything: back to observing, but for what is off. The stamp stays,
    /// for whatever comes next to be newer than.
    pub(crate) fn let_go(&mut self) {
        self.released = true;
    }

    pub(crate) fn lease(&self) -> Duration {
        let directed = || self.directive().map(|directive| directive.standing.lease);
        self.welcome_lease
            .or_else(directed)
            .unwrap_or(LEASE_DEFAULT)
    }

    /// For the threshold from the agent's own histogram.
    pub(crate) fn percentile(&self) -> Quantile {
        match &self.source {
            Source::Nobody => default_percentile(),
            Source::Directive(directive) => directive.standing.percentile,
            Source::Own(policy) => policy.percentile(),
        }
    }

    /// For the agent's own switch-off.
    pub(crate) fn error_limit(&self) -> Ratio {
        match &self.source {
            Source::Nobody => default_error_limit(),
            Source::Directive(directive) => directive.standing.error_limit,
            Source::Own(policy) => policy.error_limit(),
        }
    }

    /// What holds now.
    pub(crate) fn in_force(&self, now: Duration, link: &LinkClock, own: OwnFigures) -> InForce {
        let mut in_force = match &self.source {
            Source::Nobody => observing(Stamp::default(), own),
            Source::Directive(directive) => {
                let overdue = link.overdue(now, self.lease(), self.unnamed_since);
                let mut in_force = directed(directive, overdue, own);
                if self.released {
                    in_force.mode = match in_force.mode {
                        Mode::Off(reason) | Mode::Probing(reason) => Mode::Off(reason),
                        Mode::Observing | Mode::On => Mode::Observing,
                    };
                }
                in_force
            }
            Source::Own(policy) => self_directed(policy, own),
        };
        if let Some(reason) = own.off
            && in_force.mode.hedges()
        {
            in_force.mode = Mode::Off(reason);
        }
        if self.closed {
            // An off keeps its reason; a threshold that nobody renews is none.
            let mode = match in_force.mode {
                Mode::Off(reason) | Mode::Probing(reason) => Mode::Off(reason),
                Mode::Observing | Mode::On => Mode::Observing,
            };
            let nothing = OwnFigures::default();
            return InForce {
                mode,
                ..observing(in_force.stamp, nothing)
            };
        }
        in_force
    }
}

/// Nothing is hedged.
fn observing(stamp: Stamp, own: OwnFigures) -> InForce {
    InForce {
        stamp,
        mode: Mode::Observing,
        own_off: own.off,
        threshold: own.threshold,
        probability: Ratio::ZERO,
        budget: Budget::ZERO,
        cap: 0.0,
        arming: None,
        holdout: Ratio::ZERO,
        further: Further::default(),
    }
}

/// As the controller said, or what is left of it `overdue` after the lease's end.
fn directed(directive: &Directive, overdue: Option<Duration>, own: OwnFigures) -> InForce {
    let LiveValues {
        threshold,
        probability,
        budget,
        cap,
        arming,
        ..
    } = directive.live;
    let mut in_force = InForce {
        stamp: directive.stamp,
        mode: directive.mode,
        own_off: own.off,
        threshold: threshold.or(own.threshold),
        probability,
        budget,
        cap,
        arming,
        holdout: directive.standing.holdout,
        further: further(&directive.standing),
    };
    let Some(overdue) = overdue else {
        return in_force;
    };
    if let Mode::Probing(reason) = in_force.mode {
        in_force.mode = Mode::Off(reason);
    }
    let within = |threshold| bounded(threshold, &directive.standing);
    in_force.threshold = own.threshold.map(within).or(threshold);
    let gone = (overdue.as_secs_f64() / FALLBACK_DECAY.as_secs_f64()).min(1.0);
    let left = budget.get().min(FALLBACK_BUDGET);
    in_force.budget = Budget::clamped(left + (budget.get() - left) * (1.0 - gone));
    if budget.get() > 0.0 {
        let shrunk = cap * in_force.budget.get() / budget.get();
        in_force.cap = shrunk.max(cap.min(1.0));
    }
    in_force
}

fn self_directed(policy: &Policy, own: OwnFigures) -> InForce {
    let mode = match policy.intent() {
        Intent::Off => Mode::Off(OffReason::Policy),
        Intent::Observe => Mode::Observing,
        Intent::Hedge => Mode::On,
    };
    let standing = Standing {
        percentile: policy.percentile(),
        holdout: policy.holdout(),
        error_limit: policy.error_limit(),
        threshold_min: policy.threshold_min().map(Threshold::clamped),
        threshold_max: policy.threshold_max().map(Threshold::clamped),
        lease: LEASE_MAX,
        attempts: policy.attempts(),
        hedge_on_error: policy.hedge_on_error(),
    };
    InForce {
        stamp: Stamp::default(),
        mode,
        own_off: own.off,
        threshold: own.threshold.map(|threshold| bounded(threshold, &standing)),
        probability: Ratio::ONE,
        budget: policy.budget(),
        cap: own_cap(policy.budget(), own.calls_per_second),
        arming: None,
        holdout: standing.holdout,
        further: further(&standing),
    }
}

fn further(standing: &Standing) -> Further {
    Further {
        attempts: standing.attempts,
        hedge_on_error: standing.hedge_on_error,
    }
}

fn bounded(threshold: Threshold, standing: &Standing) -> Threshold {
    let raised = standing
        .threshold_min
        .map_or(threshold, |min| threshold.max(min));
    standing.threshold_max.map_or(raised, |max| raised.min(max))
}

#[cfg(test)]
mod tests;
