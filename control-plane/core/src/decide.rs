//! What is to be done about one route, each tick: pure, a value in and a value out.
//!
//! [`decide`] reads the route's [`Windows`], the [`Situation`] it is in and what was decided before
//! ([`Memory`]), and returns a [`Decision`] with its reasons and figures, and the memory for the
//! next time. Deciding again without a new slice changes nothing that time alone does not change:
//! tick counters and learned values move only with [`Windows::push`]. So it may be called at any
//! moment, as when a person has just thrown the kill switch.

pub(crate) mod all_slow;
pub(crate) mod arming;
pub(crate) mod budget;
mod conditions;
pub(crate) mod errors;
mod figures;
pub(crate) mod goal;
pub(crate) mod latch;
pub(crate) mod load;
mod mode;
pub(crate) mod naming;
mod primaries;
mod recent;
pub(crate) mod shared_cause;
#[cfg(test)]
mod tests;
pub(crate) mod threshold;
mod why;
pub(crate) mod wins_nothing;
pub(crate) mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::units::{Budget, Ratio, Threshold};

use all_slow::Phase;
pub use arming::Armed;
use budget::Phi;
pub(crate) use conditions::Answers;
pub use conditions::Conditions;
use goal::{Aim, InForce};
use latch::{Findings, Verdict};
use primaries::{Healthy, Present, Primaries};
use threshold::View;

pub use load::Utilisation;

use crate::effect::Transition;
use crate::memory::Memory;
use crate::moment::Moment;
use crate::share::Lent;
use crate::view::{Evidence, Figures, Named, NoData, NoGain};
use crate::window::{Lookback, WINDOW_CALLS, WINDOW_MAX, WINDOW_MIN, Windows};

/// What a decision depends on beside the figures.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// When.
    pub now: Moment,
    /// When this controller started.
    pub started: Moment,
    /// The dependency's policy; None: nobody set one.
    pub policy: Option<&'a Policy>,
    /// Who engaged a kill switch that covers the route.
    pub killed_by: Option<&'a str>,
    /// Live agents that report the route.
    pub agents: u64,
    /// Agents that reported it and have gone silent.
    pub agents_stale: u64,
    /// The most replicas any of them can pick from; 0: callers pin them.
    pub replicas_per_agent_max: u32,
    /// How busy the dependency is, where somebody said so, also where that no longer holds.
    pub utilisation: Option<Utilisation>,
    /// Whether nothing is to be hedged for the moment, so that a switchback can compare.
    pub paused: bool,
    /// What its pool lends it; None: the policy's own budget holds.
    pub lent: Option<&'a Lent>,
}

impl Situation<'_> {
    /// Hedges allowed, before anything that is shared is taken off.
    fn budget(&self, policy: &Policy) -> Budget {
        self.lent.map_or(policy.budget(), |lent| lent.budget)
    }
}

/// What is to be done, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What may be hedged.
    pub mode: Mode,
    /// Since when.
    pub since: Moment,
    /// The change of mode, where this decision makes one.
    pub change: Option<Change>,
    /// What agents are to use.
    pub live: Live,
    /// Replicas that are what is slow or failing.
    pub named: BTreeMap<ReplicaName, Named>,
    /// Of these, those agents keep primaries away from.
    pub probation: Vec<ReplicaName>,
    /// The present figures; None: see `no_data`.
    pub figures: Option<Figures>,
    /// Why there are no figures, or too few.
    pub no_data: Option<NoData>,
    /// Why it is so, in one line.
    pub words: String,
    /// The figures behind the mode: at the moment of the decision where it is off.
    pub evidence: Vec<Evidence>,
    /// Why a route with a goal hedges nothing, or little, though it is on.
    pub no_gain: Option<NoGain>,
    /// The earliest it may change by itself, where it is off.
    pub tries_again: Option<Moment>,
    /// The newest slice holds more hedges than ALGORITHMS 2 allows.
    pub over_budget: bool,
    /// What alerts are raised on.
    pub conditions: Conditions,
}

/// A change of mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What changed, with evidence and words.
    pub transition: Transition,
    /// Whether the controller did it on its own: these count towards the hour's limit. A person's
    /// change is in the record already.
    pub automatic: bool,
}

/// [`LiveValues`](hedgerow_protocol::directive::LiveValues) but for the tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Live {
    /// When a call may be hedged; None: agents keep what they have.
    pub threshold: Option<Threshold>,
    /// Share of crossed calls that is hedged.
    pub probability: Ratio,
    /// Tokens earned by each eligible finished call.
    pub budget: Budget,
    /// Most tokens an agent keeps, in hedges.
    pub cap: f64,
    /// A share of the agents hedges at a time; None: all of them.
    pub arming: Option<Armed>,
}

/// Most replicas that probation may keep primaries away from: a third, so that the others can carry
/// what they do not get.
const PROBATION_PART: usize = 3;
/// Probes a second aimed at while off for a shared cause, and the shares that this may come to.
const PROBES_PER_S: f64 = 5.0;
const PROBE_SHARE: (f64, f64) = (0.02, 0.5);

/// Decides.
pub fn decide(
    route: &RouteKey,
    windows: &Windows,
    situation: &Situation<'_>,
    memory: &Memory,
) -> (Decision, Memory) {
    let mut memory = memory.clone();
    let present = windows.present().map(Present::of);
    let policy = &*in_force(situation.policy, route);
    let is_new = windows.pushed() != memory.seen;
    let over_budget = is_new
        && windows
            .last()
            .is_some_and(|slice| memory.pushed.exceeded_by(slice));
    let again = if is_new {
        let again = learn(windows, present.as_ref(), policy, situation, &mut memory);
        ask_what_it_wins(route, windows, policy, situation.now, &mut memory);
        let test = memory.shared.test().map(|(test, _)| test);
        memory.answers.follow(windows, test);
        again
    } else {
        None
    };
    memory.seen = windows.pushed();

    let changed = mode::change(situation, &mut memory, windows.pushed());
    let phi = phi(windows, policy, &memory);
    let live = live(windows, policy, situation, &memory, phi.as_ref());
    let figures = present.as_ref().map(|present| {
        let phi = phi.map(|phi| phi.value);
        Figures {
            utilisation: situation.utilisation.and_then(|it| it.known(situation.now)),
            ..figures::figures(windows, present, &memory, &live, situation.policy, phi)
        }
    });
    if is_new {
        let budget = situation.budget(policy);
        memory.pushed.push(budget, live.cap, live.arming);
        memory.probability = live.probability.get();
    }
    let no_data = figures
        .is_none()
        .then(|| figures::no_data(windows, situation));
    let reasons = why::reasons(windows, situation, &memory, &live, no_data);
    let change = changed.map(|changed| mode::record(route, &memory, changed, &reasons, again));
    let decision = Decision {
        mode: memory.mode,
        since: memory.since,
        change,
        live,
        named: memory
            .named
            .iter()
            .map(|(name, entry)| (name.clone(), entry.named))
            .collect(),
        probation: probation(windows, policy, situation, &memory),
        conditions: Conditions::of(windows, figures.as_ref(), memory.answers),
        figures,
        no_data,
        words: reasons.words,
        evidence: reasons.evidence,
        no_gain: InForce::of(&memory, policy).no_gain,
        tries_again: mode::tries_again(memory.mode, &memory),
        over_budget,
    };
    (decision, memory)
}

/// A dependency's policy; what it has where nobody set one.
pub(crate) fn in_force<'a>(policy: Option<&'a Policy>, route: &RouteKey) -> Cow<'a, Policy> {
    let observing = || Cow::Owned(Policy::observing(route.dependency.clone().into()));
    policy.map_or_else(observing, Cow::Borrowed)
}

/// Takes in a new slice. Returns what let an off go, where one went.
fn learn(
    windows: &Windows,
    present: Option<&Present<'_>>,
    policy: &Policy,
    situation: &Situation<'_>,
    memory: &mut Memory,
) -> Option<Findings> {
    let now = situation.now;
    let rate = arming::rate(windows, budget::RATE_SLICES);
    let budget = situation.budget(policy);
    memory.arming = arming::arm(rate, situation.agents, budget, memory.arming);
    let crossing = InForce::of(memory, policy).crossing;
    let floors = naming::Floors {
        crossed: crossing / 2.0,
        errors: policy.error_limit().get() / 2.0,
    };
    let named = naming::judge(windows, &memory.named, floors, now);
    if memory.named.keys().any(|name| !named.contains_key(name)) {
        // What it did while it was named counts again: not for the slow window.
        memory.calm_from = windows.pushed();
    }
    memory.named = named;

    let errors = errors::errors(windows, &memory.named, policy.error_limit().get());
    // A failed attempt says of its latency only that it would have been longer. Where many fail,
    // no median can be told from the rest.
    let failing = matches!(errors, Verdict::Over(_)) || memory.errors.tripped().is_some();
    let mut again = memory.errors.observe(now, errors);
    let push_back = errors::push_back(windows);
    again = again.or(memory.push_back.observe(now, push_back));

    let phase = match memory.shared.off() {
        _ if failing => Phase::Failing,
        Some(off) if off.by_median => Phase::Slow,
        // Hedges may win nothing for days, and nothing else is wrong meanwhile.
        Some(off) if off.reason == OffReason::WinsNothing => Phase::Learning,
        Some(_) => Phase::Off,
        None => Phase::Learning,
    };
    let primaries = present.map(|present| present.healthy(windows, &memory.named));
    let present = present.map(|present| &present.window);
    let known = present.zip(primaries.as_ref());
    memory
        .base
        .observe(windows, &memory.named, known, phase, now);
    let shared = memory.shared.observe(&shared_cause::View {
        now,
        windows,
        mode: memory.mode,
        mode_from: memory.mode_from,
        named: &memory.named,
        base: &memory.base,
        crossed: crossed_share(windows, present, memory),
        target: crossing,
        slow_replicas: all_slow::slow_replicas(windows, &memory.base),
    });
    if shared.is_some() {
        let calm = memory.base.calm_for(now).as_secs();
        memory.calm_from = windows.pushed().saturating_sub(calm);
    } else if again.is_some() {
        memory.calm_from = windows
            .pushed()
            .saturating_sub(u64::from(latch::TICKS_WELL));
    }
    again = shared.or(again);
    follow(windows, known, policy, situation, memory);
    again
}

/// Switches off where hedges have won nothing for ten minutes.
fn ask_what_it_wins(
    route: &RouteKey,
    windows: &Windows,
    policy: &Policy,
    now: Moment,
    memory: &mut Memory,
) {
    let view = wins_nothing::View {
        now,
        route,
        windows,
        named: &memory.named,
        mode: memory.mode,
        mode_from: memory.mode_from,
        probability: memory.probability,
        threshold: memory
            .threshold
            .value()
            .map(|value| threshold::limited(value, policy).get()),
    };
    if let Some(why) = memory.wins_nothing.observe(&view) {
        memory.shared.trip(now, windows.pushed(), why);
    }
}

/// The share of the healthy majority's calls that cross; None where none are made.
fn crossed_share(
    windows: &Windows,
    present: Option<&Lookback<'_>>,
    memory: &Memory,
) -> Option<f64> {
    let present = present.filter(|_| windows.over(WINDOW_MIN).calls() > 0)?;
    let healthy = Healthy::count(present, &memory.named);
    primaries::share(healthy.crossed, healthy.started)
}

/// Brings the threshold up to date.
fn follow(
    windows: &Windows,
    known: Option<(&Lookback<'_>, &Primaries)>,
    policy: &Policy,
    situation: &Situation<'_>,
    memory: &mut Memory,
) {
    let in_force = InForce::of(memory, policy);
    let view = known.map(|(present, primaries)| View {
        windows,
        present,
        curve: &primaries.curve,
        named: &memory.named,
        target: policy.percentile().tail(),
        calm: windows.pushed().saturating_sub(memory.calm_from) as usize,
        in_use: in_force.threshold == memory.threshold.value(),
    });
    let slow = |off: &shared_cause::Off| off.by_median || off.reason != OffReason::WinsNothing;
    if memory.shared.off().is_some_and(slow) || memory.errors.tripped().is_some() {
        memory.threshold.hold(view.as_ref());
        memory.goal.hold();
    } else if let Some(view) = view {
        let shared = match Aim::of(policy) {
            // Scales the budget instead.
            Aim::Percentile => None,
            Aim::Goal(_) | Aim::Objective(_) => phi(windows, policy, memory),
        };
        let shared = shared.map_or(Ratio::ZERO, |phi| phi.at_least());
        memory.goal.follow(
            &view,
            &goal::Sought {
                policy,
                budget: situation.budget(policy),
                shared,
            },
        );
        memory.threshold.follow(&view);
        memory.ready |= memory.threshold.value().is_some();
    }
    // Too few calls: the last good one is held.
}

/// Share of hedges sent to replicas not named from which they tell how much is shared.
const SENT_ELSEWHERE_MIN: f64 = 0.5;

/// How much of slowness is shared, over the last minute at most and not before the mode began.
fn phi(windows: &Windows, policy: &Policy, memory: &Memory) -> Option<Phi> {
    let slices = windows.pushed().saturating_sub(memory.mode_from) as usize;
    let window = windows.over(WINDOW_MAX.min(slices));
    let hedge = window.hedge();
    let hedges = hedge.count();
    if hedges == 0 || !memory.mode.hedges() {
        return None;
    }
    // What most of them met is a replica's own fault: of a shared cause they say nothing.
    if shared_cause::sent_elsewhere(&window, &memory.named) < SENT_ELSEWHERE_MIN {
        return None;
    }
    let threshold = InForce::of(memory, policy).threshold?;
    Phi::measure(&window.primary().curve(), &hedge.curve(), hedges, threshold)
}

fn live(
    windows: &Windows,
    policy: &Policy,
    situation: &Situation<'_>,
    memory: &Memory,
    phi: Option<&Phi>,
) -> Live {
    let utilisation = situation.utilisation.and_then(|it| it.known(situation.now));
    let load = load::lent(utilisation);
    let in_force = InForce::of(memory, policy);
    let probability = match memory.mode {
        // Tokens that agents have kept are not to be spent either.
        _ if load <= 0.0 || situation.paused => Ratio::ZERO,
        Mode::On => Ratio::clamped(in_force.probability),
        Mode::Probing(_) => probe_share(windows, memory.arming),
        Mode::Off(_) | Mode::Observing => Ratio::ZERO,
    };
    // While probing the probability is what bounds the harm; the probes need their tokens. For a goal
    // what is shared was in the search.
    let lent = match memory.mode {
        Mode::On if Aim::of(policy) == Aim::Percentile => phi.map_or(1.0, Phi::lent),
        _ => 1.0,
    };
    Live {
        threshold: in_force
            .threshold
            .map(|value| threshold::limited(value, policy)),
        probability,
        budget: Budget::clamped(situation.budget(policy).get() * lent * load),
        cap: budget::cap(
            windows,
            situation.agents,
            situation.budget(policy),
            memory.arming,
        ),
        arming: memory.arming,
    }
}

fn probe_share(windows: &Windows, armed: Option<Armed>) -> Ratio {
    let window = windows.grown(WINDOW_MIN, WINDOW_MAX, |window| {
        window.calls() >= WINDOW_CALLS
    });
    let crossed = window.sum(|totals| totals.crossed) as f64;
    // Only what crosses at an armed agent can be probed with.
    let armed = armed.map_or(1.0, |armed| armed.share.get());
    let per_s = armed * crossed / window.span().as_secs_f64();
    let share = PROBES_PER_S / per_s;
    // Nothing crossed: whatever crosses first may well be probed with.
    let share = if share.is_finite() {
        share
    } else {
        PROBE_SHARE.1
    };
    Ratio::clamped(share.clamp(PROBE_SHARE.0, PROBE_SHARE.1))
}

fn probation(
    windows: &Windows,
    policy: &Policy,
    situation: &Situation<'_>,
    memory: &Memory,
) -> Vec<ReplicaName> {
    if !policy.probation() || situation.replicas_per_agent_max < 2 {
        return Vec::new();
    }
    let replicas = windows.over(WINDOW_MAX).replicas().len();
    naming::worst_first(&memory.named)
        .into_iter()
        .take(replicas / PROBATION_PART)
        .cloned()
        .collect()
}
