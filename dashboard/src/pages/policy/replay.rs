//! What the typed policy would have done with the hours that are stored.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::whatif::{ASSUMED, Percentile, Replay};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Policy;

use crate::backend::{Backend, StoreError};
use crate::chart::{Panels, replay_chart};
use crate::format::{Figure, count, latency, percent, span};

/// Hours that may be chosen: a day is what is stored.
pub(super) const HOURS: [u64; 3] = [1, 6, 24];

/// Its outcome; nothing where it was not asked for.
#[derive(Debug, Template)]
#[template(path = "parts/policy_replay.html")]
pub(crate) struct Replayed {
    /// Why there is none, though it was asked for.
    problem: Option<String>,
    shown: Option<Shown>,
}

impl HtmlSafe for Replayed {}

#[derive(Debug)]
struct Shown {
    verdict: String,
    rows: Vec<Row>,
    chart: Option<Panels>,
    minutes: String,
    notes: Vec<String>,
    headed: [&'static str; 5],
    assumed: String,
}

#[derive(Debug)]
struct Row {
    what: &'static str,
    hedged: Figure,
    waits: Vec<Figure>,
}

const HEADED: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

/// The hours that were chosen; None: others than may be.
pub(super) fn hours(typed: &str) -> Option<u64> {
    let typed = match typed.trim() {
        "" => return Some(24),
        typed => typed.parse().ok()?,
    };
    HOURS.contains(&typed).then_some(typed)
}

impl Replayed {
    /// It was not asked for.
    pub(super) const fn not_asked() -> Self {
        Self {
            problem: None,
            shown: None,
        }
    }

    fn problem(words: impl Into<String>) -> Self {
        Self {
            problem: Some(words.into()),
            shown: None,
        }
    }

    /// `in_force`: what holds for the route now, to be replayed beside where it is another.
    pub(super) async fn load<B: Backend>(
        backend: &B,
        route: Option<&RouteKey>,
        typed: Option<&Policy>,
        in_force: Option<&Policy>,
        asked: &str,
    ) -> Self {
        let Some(hours) = hours(asked) else {
            return Self::problem(format!("{asked:?} hours: expected one of 1, 6, 24"));
        };
        let Some(policy) = typed else {
            return Self::problem("what was typed cannot stand; mend it first");
        };
        let Some(route) = route else {
            return Self::problem("no agent has reported a route that this policy covers");
        };
        let last = Duration::from_hours(hours);
        let replay = backend.replay(route.clone(), policy.clone(), last).await;
        let replay = match replay {
            Ok(replay) => replay,
            Err(StoreError(problem)) => return Self::problem(problem),
        };
        if replay.rows.is_empty() {
            return Self::problem(format!(
                "no minute of {route} is stored of the last {hours} h: minutes are kept for a day, from the first that an agent reported it"
            ));
        }
        let differs = |it: &&Policy| Policy::clone(it).for_scope(policy.scope().clone()) != *policy;
        let then = match in_force.filter(differs) {
            None => None,
            // Without it there is one comparison fewer.
            Some(other) => backend
                .replay(route.clone(), other.clone(), last)
                .await
                .ok(),
        };
        Self {
            problem: None,
            shown: Some(Shown::new(&replay, then.as_ref(), policy, hours)),
        }
    }
}

fn place(percentile: Percentile) -> usize {
    let place = Percentile::SHOWN.iter().position(|&it| it == percentile);
    place.expect("p99 is among the percentiles that are shown")
}

impl Shown {
    fn new(replay: &Replay, in_force: Option<&Replay>, policy: &Policy, hours: u64) -> Self {
        let p99 = place(Percentile::P99);
        let words = |it: Option<Duration>| it.map_or_else(|| "not known".to_owned(), latency);
        let beside = in_force.map_or_else(String::new, |it| {
            format!(" ({} under the one in force)", words(it.hedged[p99]))
        });
        let verdict = if replay.calls == 0 {
            format!("No call was made in the last {hours} h that are stored.")
        } else {
            format!(
                "With this policy the last {hours} h would have hedged {}, p99 {} instead of {} without hedging{beside}. In fact {} were hedged.",
                percent(replay.hedge_rate),
                words(replay.hedged[p99]),
                words(replay.unhedged[p99]),
                percent(replay.hedge_rate_then)
            )
        };
        let budget = policy.budget().get();
        Self {
            rows: rows(replay, in_force),
            chart: replay_chart(replay, in_force, budget, verdict.clone()),
            minutes: format!(
                "{} calls in {} stored minutes, {}.",
                count(replay.calls),
                replay.rows.len(),
                covered(replay)
            ),
            notes: notes(replay),
            headed: HEADED,
            assumed: ASSUMED.join("; "),
            verdict,
        }
    }
}

/// From when to when, as a length.
fn covered(replay: &Replay) -> String {
    let (first, last) = (replay.rows.first(), replay.rows.last());
    let length = first.zip(last).map(|(first, last)| last.at.since(first.at));
    let length = length.unwrap_or_default() + Duration::from_mins(1);
    format!("over {}", span(length))
}

fn rows(replay: &Replay, in_force: Option<&Replay>) -> Vec<Row> {
    let known = replay.calls > 0;
    let share = |value: f64| Figure::percent(known.then_some(value), "no calls");
    let waits = |all: &[Option<Duration>; 5]| {
        let each = all.iter();
        each.map(|it| Figure::millis(*it, "beyond what is known of these hours"))
            .collect()
    };
    let mut rows = vec![Row {
        what: "without hedging",
        hedged: Figure::new("0", "0 %"),
        waits: waits(&replay.unhedged),
    }];
    rows.extend(in_force.map(|it| Row {
        what: "the one in force",
        hedged: share(it.hedge_rate),
        waits: waits(&it.hedged),
    }));
    rows.push(Row {
        what: "this policy",
        hedged: share(replay.hedge_rate),
        waits: waits(&replay.hedged),
    });
    rows.push(Row {
        what: "as it was",
        hedged: share(replay.hedge_rate_then),
        waits: vec![Figure::none("what callers waited is not kept by the minute"); 5],
    });
    rows
}

fn notes(replay: &Replay) -> Vec<String> {
    let minutes = |n: usize| format!("{n} minute{}", if n == 1 { "" } else { "s" });
    let mut notes = Vec::new();
    if replay.minutes_off > 0 {
        let off = minutes(replay.minutes_off);
        notes.push(format!("Hedging would have been off in {off}."));
    }
    if replay.minutes_alerting > 0 {
        let over = minutes(replay.minutes_alerting);
        notes.push(format!(
            "In {over} more would have been hedged than an alert allows."
        ));
    }
    notes
}
