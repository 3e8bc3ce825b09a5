//! What the typed policy would do with a route's calls of the last minutes: the curve of delays, and
//! where today and the policy stand on it.
//!
//! The curve has few rows: some thousand comparisons, a fraction of a millisecond, so that it can be
//! drawn anew while somebody types.

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{FleetSnapshot, RouteView};
use hedgerow_core::whatif::{Distribution, Hedged, Latencies, Percentile, Planned};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::{Intent, Policy};
use hedgerow_protocol::units::Quantile;

use super::diff::aim_words;
use crate::backend::{Backend, StoreError};
use crate::chart::{Curve, CurvePoint, Panels};
use crate::format::{Figure, Time, count, percent, percent_set, span};
use crate::pages::state::route_address;

/// Rows of the curve: as many as can be told apart.
const ROWS: usize = 120;
/// Primaries under which the far tail is luck.
const FEW: u64 = 10_000;

/// The curve and its words, or why there is none.
#[derive(Debug, Template)]
#[template(path = "parts/policy_whatif.html")]
pub(crate) struct WhatIf {
    route: Option<(String, String)>,
    /// Why there is nothing to show.
    nothing: Option<String>,
    shown: Option<Shown>,
}

impl HtmlSafe for WhatIf {}

#[derive(Debug)]
struct Shown {
    chart: Panels,
    rows: Vec<Row>,
    /// What the typed policy comes to, in a sentence.
    verdict: String,
    sample: String,
    at: Time,
    assumed: Vec<String>,
}

/// A point in figures.
#[derive(Debug)]
struct Row {
    class: &'static str,
    what: String,
    delay: Figure,
    drawn: Figure,
    load: Figure,
    waits: Vec<Figure>,
}

/// The percentiles of the table, as they are headed.
const HEADED: [Percentile; 4] = [
    Percentile::P50,
    Percentile::P95,
    Percentile::P99,
    Percentile::P99_9,
];

impl WhatIf {
    /// None is shown.
    pub(super) const fn none() -> Self {
        Self {
            route: None,
            nothing: None,
            shown: None,
        }
    }

    fn nothing(route: Option<&RouteKey>, why: impl Into<String>) -> Self {
        Self {
            route: route.map(|it| (it.to_string(), route_address(it))),
            nothing: Some(why.into()),
            shown: None,
        }
    }

    /// For the typed policy, or without its point where what was typed cannot stand.
    pub(super) async fn load<B: Backend>(
        backend: &B,
        snapshot: &FleetSnapshot,
        route: Option<&RouteKey>,
        typed: Option<&Policy>,
    ) -> Self {
        let Some(route) = route else {
            let why = "no agent has reported a route that this policy covers";
            return Self::nothing(None, why);
        };
        let latencies = match backend.latencies(route.clone()).await {
            Err(StoreError(problem)) => return Self::nothing(Some(route), problem),
            Ok(None) => {
                let why = "no call of it has ended in the last five minutes";
                return Self::nothing(Some(route), why);
            }
            Ok(Some(latencies)) => latencies,
        };
        let sample = match latencies.distribution() {
            Ok(sample) => sample,
            Err(problem) => return Self::nothing(Some(route), problem.to_string()),
        };
        let view = snapshot.routes.get(route);
        Self {
            route: Some((route.to_string(), route_address(route))),
            nothing: None,
            shown: Some(Shown::new(
                &latencies,
                &sample,
                typed,
                view.map(AsRef::as_ref),
                snapshot.at,
            )),
        }
    }
}

impl Shown {
    fn new(
        latencies: &Latencies,
        sample: &Distribution,
        typed: Option<&Policy>,
        view: Option<&RouteView>,
        at: Moment,
    ) -> Self {
        let shared = latencies.shared();
        let unhedged = |percentile| sample.percentile(percentile);
        let hedging = view.is_some_and(|it| it.mode.hedges());
        let now = latencies.as_hedged(sample).filter(|_| hedging);
        let planned = typed.map(|policy| latencies.planned(policy, sample));
        let mut rows = vec![Row {
            class: "",
            what: "without hedging".into(),
            delay: Figure::none("nothing is hedged"),
            drawn: Figure::none("nothing is hedged"),
            load: Figure::new("0", "0 %"),
            waits: HEADED.map(|it| wait(unhedged(it))).into(),
        }];
        let mut points = Vec::new();
        if let Some(now) = now {
            rows.push(row(
                "now",
                "as hedged now",
                &now,
                latencies.probability.get(),
            ));
            points.push(CurvePoint {
                class: "now",
                label: "now".into(),
                hedged: now,
            });
        }
        if let Some(Planned::Hedges {
            hedged,
            probability,
        }) = planned
        {
            rows.push(row("typed", "this policy", &hedged, probability));
            points.push(CurvePoint {
                class: "typed",
                label: "this policy".into(),
                hedged,
            });
        }
        let chart = Curve {
            rows: sample.curve(shared, ROWS),
            unhedged: [unhedged(Percentile::P99), unhedged(Percentile::P99_9)],
            points,
            target: typed
                .filter(|it| it.goal().is_none() && it.pool().is_none())
                .map(Policy::target_rate),
            budget: typed.map_or(0.08, |it| it.budget().get()),
        };
        Self {
            chart: chart.layout(),
            rows,
            verdict: verdict(sample, typed, planned),
            sample: sample_words(latencies, view.filter(|_| !hedging)),
            at: Time::clock(at),
            assumed: assumed(latencies, typed),
        }
    }
}

fn wait(value: Option<std::time::Duration>) -> Figure {
    Figure::millis(value, "too many calls were stopped before they answered")
}

fn row(class: &'static str, what: &str, hedged: &Hedged, probability: f64) -> Row {
    Row {
        class,
        what: what.into(),
        delay: Figure::millis(Some(hedged.delay), ""),
        drawn: Figure::percent(Some(probability), ""),
        load: Figure::percent(Some(hedged.extra_load), ""),
        waits: HEADED.map(|it| wait(hedged.at(it))).into(),
    }
}

/// The typed policy in a sentence.
fn verdict(sample: &Distribution, typed: Option<&Policy>, planned: Option<Planned>) -> String {
    let (Some(policy), Some(planned)) = (typed, planned) else {
        return "What was typed cannot stand: the curve has no point for it.".into();
    };
    let latency = |it: Option<std::time::Duration>| {
        it.map_or_else(|| "not known".to_owned(), crate::format::latency)
    };
    match planned {
        Planned::Hedges { hedged, .. } if hedged.extra_load <= 0.0 => format!(
            "No effect, because no call lasts longer than {}: this policy would hedge nothing.",
            crate::format::latency(hedged.delay)
        ),
        Planned::Hedges { hedged, .. } => {
            let shown = policy.goal().map_or(Percentile::P99, Percentile::from);
            let (alone, with) = (sample.percentile(shown), hedged.at(shown));
            // A goal may be a percentile that no table shows.
            let (shown, alone, with) = if hedged.at(shown).is_some() || shown == Percentile::P99 {
                (shown, alone, with)
            } else {
                let p99 = Percentile::P99;
                (p99, sample.percentile(p99), hedged.at(p99))
            };
            let best = if policy.goal().is_some() && policy.pool().is_none() {
                let aim = aim_words(policy.goal().map(Quantile::get));
                format!(", the best for {aim} of {}", percent_set(policy.budget().get()))
            } else {
                String::new()
            };
            let gain = if with.is_some() && with >= alone && alone.is_some() {
                format!("{shown} would stay at {}", latency(alone))
            } else {
                format!("{shown} {} instead of {} without hedging", latency(with), latency(alone))
            };
            format!(
                "With this policy calls slower than {} are hedged, {} of all{best}: {gain}.",
                crate::format::latency(hedged.delay),
                percent(hedged.extra_load),
            )
        }
        Planned::NotWanted => match policy.intent() {
            Intent::Off => "This policy is off: nothing would be hedged.".into(),
            _ => "This policy only observes: nothing would be hedged.".into(),
        },
        Planned::NoGain => format!(
            "This policy would hedge nothing: {} gains under 5 % from it.",
            aim_words(policy.goal().map(Quantile::get))
        ),
        Planned::NotKnown => {
            "What this policy would do is not known: too many calls were stopped before they answered."
                .into()
        }
    }
}

/// `idle`: the route, where nothing is hedged on it now.
fn sample_words(latencies: &Latencies, idle: Option<&RouteView>) -> String {
    let measured = match (latencies.hedge_rate, idle) {
        (_, Some(view)) => format!("; now {}", view.words),
        (Some(rate), None) => format!("; {} were hedged in fact", percent(rate)),
        (None, None) => String::new(),
    };
    let few = if latencies.attempts < FEW {
        ", too few to tell much of p99.9"
    } else {
        ""
    };
    format!(
        "From {} primaries of the last {}{few}{measured}.",
        count(latencies.attempts),
        span(latencies.window),
    )
}

fn assumed(latencies: &Latencies, typed: Option<&Policy>) -> Vec<String> {
    let mut out = vec![
        latencies.phi.map_or_else(
            || {
                "too few hedges were sent to measure how much slowness a call shares with its hedge: taken as none, so that what is gained may be less".to_owned()
            },
            |phi| {
                format!(
                    "{} of slowness is shared by a call and its hedge, as measured; otherwise a hedge is as slow as any call",
                    percent(phi.get())
                )
            },
        ),
        "the load of the hedges makes nothing slower".into(),
        "what was stopped before it answered counts as far as it was seen".into(),
    ];
    if typed.is_some_and(|it| it.pool().is_some()) {
        out.push("the policy hedges by its own budget, whatever its pool would lend it".into());
    }
    out
}
