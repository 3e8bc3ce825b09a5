//! Why a route does what it does, one click further than the line above: what decided it, since when,
//! whether it changes by itself, and what that takes.

use hedgerow_core::effect::Transition;
use hedgerow_core::event::{KillScope, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{FleetSnapshot, KillView, NoData, NoGain, RouteView};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::limits::THRESHOLD_CALLS_MIN;
use hedgerow_protocol::policy::{Intent, Policy};

use crate::format::{Time, clock, latency, percent, percent_set, span};
use crate::pages::state::{kill_address, policy_address};

/// One line of it: what, and how it stands.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) what: &'static str,
    pub(super) words: String,
    pub(super) at: Option<Time>,
    /// Where it can be changed or looked at.
    pub(super) href: Option<String>,
}

fn fact(what: &'static str, words: impl Into<String>) -> Fact {
    Fact {
        what,
        words: words.into(),
        at: None,
        href: None,
    }
}

/// All of it for a route.
pub(super) fn facts(
    view: &RouteView,
    snapshot: &FleetSnapshot,
    transitions: &[Transition],
) -> Vec<Fact> {
    let now = snapshot.at;
    let mut facts = vec![decided_by(view, snapshot), again(view, now)];
    facts.extend(no_effect(view));
    facts.extend(little_data(view));
    facts.extend(view.no_gain.as_ref().map(no_gain));
    facts.extend(armed(view));
    facts.extend(load(view, now));
    facts.extend(view.pool.as_ref().map(|pool| {
        let words = format!(
            "pool {} lends {} of calls; its policy puts in {}",
            pool.pool,
            percent(pool.budget),
            percent_set(pool.own)
        );
        fact("Budget", words)
    }));
    facts.extend(transitions.first().map(|last| Fact {
        at: Some(Time::near(last.at, now)),
        ..fact(
            "Last change by the controller",
            format!(
                "{} to {}: {}",
                last.from.as_str(),
                last.to.as_str(),
                last.words
            ),
        )
    }));
    facts
}

/// The engaged switch that holds for a route; one for everything comes first.
fn kill_of<'a>(view: &RouteView, snapshot: &'a FleetSnapshot) -> Option<&'a KillView> {
    let engaged = || snapshot.kills.iter().filter(|kill| kill.state.engaged);
    let everything = engaged().find(|kill| kill.state.scope == KillScope::Everything);
    everything.or_else(|| {
        engaged().find(|kill| match &kill.state.scope {
            KillScope::Dependency(name) => *name == view.route.dependency,
            KillScope::Everything => true,
        })
    })
}

/// A person's switch, a person's policy, or the controller by its policy.
fn decided_by(view: &RouteView, snapshot: &FleetSnapshot) -> Fact {
    if view.mode == Mode::Off(OffReason::KillSwitch)
        && let Some(kill) = kill_of(view, snapshot)
    {
        let what = match &kill.state.scope {
            KillScope::Everything => "everything".into(),
            KillScope::Dependency(name) => name.to_string(),
        };
        let (actor, reason) = (&kill.state.actor, &kill.state.reason);
        return Fact {
            at: Some(Time::near(kill.state.at, snapshot.at)),
            href: Some(match &kill.state.scope {
                KillScope::Everything => "/kill".into(),
                KillScope::Dependency(name) => kill_address(name),
            }),
            ..fact(
                "Kill switch",
                format!(
                    "{what}, by {} ({}): {reason}; {} of {} agents have it",
                    actor.name,
                    via_words(actor.via),
                    kill.acked.n,
                    kill.acked.m
                ),
            )
        };
    }
    let Some(policy) = snapshot.policy_for(&view.route) else {
        return Fact {
            href: Some(policy_address(&view.route.dependency.clone().into())),
            ..fact("Policy", "none covers this route, so it is observed")
        };
    };
    Fact {
        at: Some(Time::near(policy.since, snapshot.at)),
        href: Some(policy_address(policy.policy.scope())),
        ..fact(
            "Policy",
            format!(
                "{}, revision {}: {}",
                policy.policy.scope(),
                policy.revision.0,
                intent_words(&policy.policy)
            ),
        )
    }
}

const fn via_words(via: Via) -> &'static str {
    match via {
        Via::Page => "page",
        Via::Api => "API",
        Via::CommandLine => "command line",
        Via::Controller => "controller",
        Via::Seed => "configuration",
    }
}

fn intent_words(policy: &Policy) -> String {
    match policy.intent() {
        Intent::Off => "off".into(),
        Intent::Observe => "observe, hedge nothing".into(),
        Intent::Hedge => format!(
            "hedge, budget {}, off above {} errors",
            percent_set(policy.budget().get()),
            percent_set(policy.error_limit().get())
        ),
    }
}

/// Whether, and when, it changes by itself.
fn again(view: &RouteView, now: Moment) -> Fact {
    if let Some(at) = view.tries_again {
        let left = at.since(now);
        let words = if left.is_zero() {
            format!("now (due {} UTC)", clock(at))
        } else {
            format!("in {}, at {} UTC", span(left), clock(at))
        };
        return fact("Tries again", words);
    }
    let words = match view.mode {
        Mode::On => "nothing to try: it is on",
        Mode::Probing(_) => "it is trying now, with few hedges; that decides",
        Mode::Observing => match view.no_data {
            Some(_) => "by itself, once there is enough traffic and a policy that hedges",
            None => "by itself, once a policy says hedge",
        },
        Mode::Off(OffReason::KillSwitch) => "not by itself: the switch has to be released",
        Mode::Off(OffReason::Policy) => "not by itself: the policy has to say something else",
        Mode::Off(OffReason::TooManyChanges) => {
            "not by itself: it changed too often, and a person has to release it"
        }
        Mode::Off(_) => {
            "by itself, as soon as what is measured is within its limit for long enough"
        }
    };
    fact("Tries again", words)
}

fn no_effect(view: &RouteView) -> Option<Fact> {
    let words = view.words.strip_prefix("no effect: ")?;
    let more = match words {
        "one replica" => "no agent knows a second replica to send a hedge to",
        _ => "no call has time left for a hedge when it crosses the threshold",
    };
    Some(fact("No effect", format!("{words}: {more}")))
}

fn little_data(view: &RouteView) -> Option<Fact> {
    let no_data = view.no_data?;
    let more = match no_data {
        NoData::TooFew => {
            format!(": a verdict takes {THRESHOLD_CALLS_MIN} calls a minute at least")
        }
        NoData::AgentsStale => ": none has been heard for two heartbeats".into(),
        _ => String::new(),
    };
    Some(fact("Data", format!("{}{more}", no_data.words())))
}

fn no_gain(no_gain: &NoGain) -> Fact {
    let words = match no_gain {
        NoGain::NothingCrosses => {
            "no call lasts as long as the least delay allowed; the policy's least delay is the limit"
                .into()
        }
        NoGain::Small {
            percentile,
            unhedged,
            best,
        } => format!(
            "p{} is {} as it is and {} at best",
            trimmed_percentile(*percentile),
            latency(*unhedged),
            latency(*best)
        ),
        NoGain::Shared {
            percentile,
            unhedged,
            shared,
        } => format!(
            "p{} would stay near {}: {} of slowness is shared by a call and its hedge",
            trimmed_percentile(*percentile),
            latency(*unhedged),
            percent(*shared)
        ),
    };
    fact("Goal", words)
}

/// Nine digits: 1 - 0.001 is p99.9.
fn trimmed_percentile(percentile: f64) -> f64 {
    (percentile * 1e9).round() / 1e7
}

/// Only a share of the agents at a time, where all tokens at once would be too many.
fn armed(view: &RouteView) -> Option<Fact> {
    let (_, armed) = view.words.split_once("armed: ")?;
    let clauses: Vec<&str> = armed.split("; ").take(2).collect();
    let words = format!(
        "{}, in turns: all their tokens at once would be more than a tenth of a second's calls",
        clauses.join(", ")
    );
    Some(fact("Armed", words))
}

fn load(view: &RouteView, now: Moment) -> Option<Fact> {
    let told = view.utilisation.as_ref()?;
    let until = told.until;
    let words = if until > now {
        format!(
            "{} of capacity, told until {} UTC; from 60 % on less is hedged, from 80 % nothing",
            percent(told.value),
            clock(until)
        )
    } else {
        format!("not known since {} UTC, so it limits nothing", clock(until))
    };
    Some(Fact {
        at: Some(Time::near(told.at, now)),
        ..fact("Utilisation", words)
    })
}
