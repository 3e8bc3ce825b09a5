//! The parts of a route's page, from values to what is shown.

use hedgerow_core::effect::Transition;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{
    Acked, Evidence, Figures, FleetSnapshot, MarkKind, Named, NoData, PoolView, ReplicaView,
    RouteView, Sync,
};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::report::Refusal;

use super::why::{Fact, facts};
use crate::chart::{Band, CARRIED_BEYOND, Event, alert_line, sign_of, within_words};
use crate::format::{
    Figure, Time, count, grouped, latency, percent, percent_set, significant, span,
};
use crate::pages::state::{Badge, reason_words};

/// What the route does and why, with the figures that decided it.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) badge: Badge,
    pub(super) words: String,
    pub(super) tone: &'static str,
    pub(super) since: Time,
    pub(super) for_long: String,
    pub(super) tries_again: Option<String>,
    pub(super) evidence: Vec<EvidenceRow>,
    /// What decided it, one click further.
    pub(super) facts: Vec<Fact>,
    /// Whether the evidence speaks against hedging.
    pub(super) against: bool,
    pub(super) cure: Option<String>,
    /// Whether a person has to let it decide again.
    pub(super) held: bool,
    /// Whether "this is the normal speed" is an answer to it.
    pub(super) slow: bool,
    pub(super) no_data: Option<&'static str>,
}

#[derive(Debug)]
pub(super) struct EvidenceRow {
    pub(super) what: String,
    pub(super) value: String,
    pub(super) limit: String,
    pub(super) window: String,
}

impl EvidenceRow {
    fn new(e: &Evidence) -> Self {
        let unit = |v: f64| match e.unit.as_str() {
            "" => significant(v),
            unit => format!("{} {unit}", significant(v)),
        };
        Self {
            what: e.what.clone(),
            value: unit(e.value),
            limit: unit(e.limit),
            window: if e.window.is_zero() {
                "–".into()
            } else {
                span(e.window)
            },
        }
    }
}

impl Verdict {
    pub(super) fn new(
        view: &RouteView,
        snapshot: &FleetSnapshot,
        transitions: &[Transition],
    ) -> Self {
        let tone = match view.mode {
            Mode::Off(OffReason::Policy) | Mode::Observing => "quiet",
            Mode::Off(_) => "bad",
            Mode::Probing(_) => "warn",
            Mode::On => "ok",
        };
        Self {
            badge: Badge::route(view),
            words: reason_words(view).to_owned(),
            tone,
            since: Time::near(view.since, snapshot.at),
            for_long: span(snapshot.at.since(view.since)),
            tries_again: view.tries_again.map(|at| {
                let left = at.since(snapshot.at);
                if left.is_zero() {
                    "now".into()
                } else {
                    format!("in {}", span(left))
                }
            }),
            evidence: view.evidence.iter().map(EvidenceRow::new).collect(),
            facts: facts(view, snapshot, transitions),
            against: view.mode.reason().is_some(),
            cure: cure(view),
            held: view.mode == Mode::Off(OffReason::TooManyChanges),
            slow: matches!(
                view.mode,
                Mode::Off(OffReason::SharedSlowdown) | Mode::Probing(OffReason::SharedSlowdown)
            ),
            no_data: view.no_data.map(NoData::words),
        }
    }
}

/// Where replicas are named: which, and what helps.
fn cure(view: &RouteView) -> Option<String> {
    let named = |what| {
        let names: Vec<&str> = view
            .replicas
            .iter()
            .filter(|r| r.named == Some(what))
            .map(|r| r.replica.as_str())
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let carried = view.figures.map(|f| {
        let most = percent_set(f.budget + CARRIED_BEYOND);
        format!(": hedging can carry at most {most} of slow traffic")
    });
    let carried = carried.unwrap_or_default();
    match (named(Named::Failing), named(Named::Slow)) {
        (Some(names), _) => Some(format!("{names} is what fails. Ejecting it is the cure.")),
        (None, Some(names)) => Some(format!(
            "{names} is what is slow. Ejecting it is the cure{carried}."
        )),
        (None, None) => None,
    }
}

/// The strip of figures under the verdict.
#[derive(Debug)]
pub(super) struct KeyFigures {
    pub(super) cells: Vec<KeyFigure>,
    pub(super) window: String,
    pub(super) band: Option<Band>,
}

#[derive(Debug)]
pub(super) struct KeyFigure {
    pub(super) label: &'static str,
    pub(super) unit: &'static str,
    pub(super) value: Figure,
    pub(super) note: String,
}

impl KeyFigures {
    pub(super) fn new(view: &RouteView) -> Self {
        let why = view.no_data.map_or("not enough traffic", NoData::words);
        let f = view.figures.as_ref();
        let mut cells = outcome_cells(f, why);
        cells.extend(hedging_cells(f, view.pool.as_ref(), why));
        cells.extend(guard_cells(f, why));
        cells.push(duplicates(view));
        Self {
            cells,
            window: f.map_or_else(String::new, |f| {
                format!("{} calls over {}", grouped(f.calls), span(f.window))
            }),
            band: f.and_then(|f| {
                let line = alert_line(f.budget);
                f.hedge_rate
                    .map(|rate| Band::new(rate, f.demand, f.target, line))
            }),
        }
    }
}

fn cell(label: &'static str, unit: &'static str, value: Figure, note: Option<String>) -> KeyFigure {
    KeyFigure {
        label,
        unit,
        value,
        note: note.unwrap_or_default(),
    }
}

/// What callers get.
fn outcome_cells(f: Option<&Figures>, why: &str) -> Vec<KeyFigure> {
    let calls = Figure::rate(f.map(|f| f.calls_per_s), "calls/s", why);
    let success = Figure::success(f.and_then(|f| f.success), why);
    let p99 = Figure::millis(f.and_then(|f| f.treated_p99), why);
    let threshold = Figure::millis(f.and_then(|f| f.threshold), why);
    let drawn = f
        .filter(|f| f.probability < 1.0)
        .map(|f| format!("{} of crossed calls hedged", percent(f.probability)));
    vec![
        cell("Calls", "/s", calls, None),
        cell("Success", "%", success, None),
        cell("p99 with hedging", "ms", p99, f.and_then(gain)),
        cell("Threshold", "ms", threshold, drawn),
    ]
}

/// What hedging does.
fn hedging_cells(f: Option<&Figures>, pool: Option<&PoolView>, why: &str) -> Vec<KeyFigure> {
    let share = |get: fn(&Figures) -> Option<f64>| Figure::percent(f.and_then(get), why);
    let aims = f.map(|f| {
        let lent = pool.map_or_else(String::new, |pool| {
            format!(
                " of its own {}, lent by pool {}",
                percent_set(pool.own),
                pool.pool
            )
        });
        let busy = f
            .utilisation
            .map_or_else(String::new, |it| format!(", utilisation {}", percent(it)));
        format!(
            "target {}, budget {}{lent}{busy}",
            percent_set(f.target),
            percent_set(f.budget)
        )
    });
    let refused = f
        .and_then(|f| f.refused_by_budget)
        .map(|r| format!("{} of crossed refused by budget", percent(r)));
    let independent = f
        .and_then(|f| f.win_rate_expected)
        .map(|e| format!("independent: {}", percent(e)));
    vec![
        cell("Hedge rate", "%", share(|f| f.hedge_rate), aims),
        cell("Demand", "%", share(|f| f.demand), refused),
        cell("Win rate", "%", share(|f| f.win_rate), independent),
    ]
}

/// What would switch it off.
fn guard_cells(f: Option<&Figures>, why: &str) -> Vec<KeyFigure> {
    let errors = Figure::percent(f.and_then(|f| f.error_rate), why);
    let answered = Figure::number(f.and_then(|f| f.hedges_answered_ratio), why);
    let shared = f
        .and_then(|f| f.phi)
        .map(|phi| format!("{} of slowness shared", percent(phi)));
    let median = Figure::number(f.and_then(|f| f.median_ratio), why);
    vec![
        cell("Errors", "%", errors, None),
        cell("Answered / expected", "", answered, shared),
        cell("Median / base", "x", median, None),
    ]
}

/// What hedging buys at p99, where both arms are known.
fn gain(f: &Figures) -> Option<String> {
    let holdout = f.holdout_p99?;
    let within = f
        .holdout_p99_within
        .map_or_else(String::new, |it| format!(", 95 %: {}", within_words(it)));
    Some(format!(
        "held out: {} on {} calls{within}",
        latency(holdout),
        count(f.holdout_calls)
    ))
}

/// What a server executed more than once: no agent can know that.
fn duplicates(view: &RouteView) -> KeyFigure {
    let label = "Duplicates at server";
    let Some(told) = view.duplicates else {
        let none = Figure::none("no server of it has reported duplicates");
        return cell(label, "", none, Some("no server reports them".into()));
    };
    let hedges = match told.hedges {
        Some(hedges) => format!("{} hedges explain one each", count(hedges)),
        None => "hedges of that time are not known".into(),
    };
    let note = format!("executed in {}; {hedges}", span(told.over));
    cell(label, "", Figure::count(told.executed), Some(note))
}

/// A replica.
#[derive(Debug)]
pub(super) struct ReplicaRow {
    pub(super) name: String,
    pub(super) zone: String,
    pub(super) badge: Badge,
    pub(super) tone: &'static str,
    pub(super) probation: bool,
    pub(super) calls: Figure,
    pub(super) crossed: Figure,
    pub(super) errors: Figure,
    pub(super) p50: Figure,
    pub(super) p95: Figure,
    pub(super) wins: Figure,
}

impl ReplicaRow {
    pub(super) fn new(r: &ReplicaView) -> Self {
        const FEW: &str = "too few calls";
        Self {
            name: r.replica.to_string(),
            zone: r
                .zone
                .as_ref()
                .map_or_else(|| "–".into(), ToString::to_string),
            badge: match r.named {
                Some(Named::Slow) => Badge::new("probing", "slow"),
                Some(Named::Failing) => Badge::new("off", "failing"),
                None => Badge::new("on", "well"),
            },
            tone: match r.named {
                Some(Named::Slow) => "warn",
                Some(Named::Failing) => "bad",
                None => "ok",
            },
            probation: r.probation,
            calls: Figure::rate(Some(r.calls_per_s), "calls/s", FEW),
            crossed: Figure::percent(r.crossed, FEW),
            errors: Figure::percent(r.error_rate, FEW),
            p50: Figure::millis(r.p50, FEW),
            p95: Figure::millis(r.p95, FEW),
            wins: Figure::percent(r.win_rate, "no hedges sent to it"),
        }
    }
}

/// Crossed calls that were not hedged, by reason.
#[derive(Debug)]
pub(super) struct Refusals {
    pub(super) rows: Vec<(&'static str, Figure, Figure)>,
    pub(super) started: Figure,
    pub(super) not_eligible: Figure,
    pub(super) crossed: Figure,
    pub(super) hedged: Figure,
    pub(super) won: Figure,
    pub(super) over_budget: u64,
}

impl Refusals {
    pub(super) fn new(view: &RouteView) -> Self {
        let t = &view.totals;
        let share = |n: u64| (t.crossed > 0).then(|| n as f64 / t.crossed as f64);
        Self {
            rows: Refusal::ALL
                .into_iter()
                .map(|reason| (reason, t.refused_for(reason)))
                .filter(|(_, n)| *n > 0)
                .map(|(reason, n)| {
                    (
                        words_of(reason),
                        Figure::count(n),
                        Figure::percent(share(n), "nothing crossed"),
                    )
                })
                .collect(),
            started: Figure::count(t.started),
            not_eligible: Figure::count(t.not_eligible),
            crossed: Figure::count(t.crossed),
            hedged: Figure::count(t.hedges()),
            won: Figure::count(t.won + t.won_on_error),
            over_budget: view.seconds_over_budget,
        }
    }
}

const fn words_of(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Mode => "hedging was off",
        Refusal::Holdout => "held out, to compare with",
        Refusal::Unarmed => "another agent's turn",
        Refusal::NotDrawn => "not drawn",
        Refusal::Deadline => "too late for the deadline",
        Refusal::NoReplica => "no other replica",
        Refusal::NoPermit => "no free permit",
        Refusal::Budget => "budget spent",
        Refusal::AlreadyHedge => "itself a hedge",
        Refusal::Answered => "answered before its timer fired",
    }
}

/// Who does not hold what is wanted.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) acked: Acked,
    pub(super) stamp: String,
    pub(super) behind: Vec<Behind>,
}

#[derive(Debug)]
pub(super) struct Behind {
    pub(super) instance: String,
    pub(super) service: String,
    pub(super) held: String,
    pub(super) words: String,
}

/// More are told by number only.
const BEHIND_SHOWN: usize = 20;

impl Standing {
    pub(super) fn new(view: &RouteView, snapshot: &FleetSnapshot) -> Self {
        let behind = snapshot
            .agents
            .iter()
            .flat_map(|agent| agent.routes.iter().map(move |route| (agent, route)))
            .filter(|(_, route)| route.route == view.route && route.sync != Sync::Applied)
            .take(BEHIND_SHOWN)
            .map(|(agent, route)| Behind {
                instance: agent.instance.to_string(),
                service: agent.service.to_string(),
                held: route.held.to_string(),
                words: match &route.sync {
                    Sync::Refused(reason) => format!("refused: {reason}"),
                    _ => "sent, not yet confirmed".into(),
                },
            })
            .collect();
        Self {
            acked: view.acked,
            stamp: view.stamp.to_string(),
            behind,
        }
    }
}

/// Something that happened, for the list beside the charts.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) at: Time,
    pub(super) class: &'static str,
    pub(super) glyph: &'static str,
    pub(super) kind: &'static str,
    pub(super) words: String,
    /// Its record, or its alert.
    pub(super) href: Option<String>,
    pub(super) evidence: Vec<EvidenceRow>,
}

const fn kind_words(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Policy => "person",
        MarkKind::Mode => "controller",
        MarkKind::Alert => "alert",
        MarkKind::Agent => "agent",
    }
}

/// Marks and automatic changes in one list, newest first. An automatic change that is marked too is
/// told once, with its evidence and the mark's address.
pub(super) fn happened(events: &[Event], transitions: &[Transition], now: Moment) -> Vec<Happened> {
    let of = |t: &Transition| {
        let mark = events
            .iter()
            .find(|event| event.kind == MarkKind::Mode && event.at == t.at);
        let (class, glyph) = sign_of(MarkKind::Mode);
        let happened = Happened {
            at: Time::near(t.at, now),
            class,
            glyph,
            kind: kind_words(MarkKind::Mode),
            words: format!("{} to {}: {}", t.from.as_str(), t.to.as_str(), t.words),
            href: mark.map(|it| it.href.clone()),
            evidence: t.evidence.iter().map(EvidenceRow::new).collect(),
        };
        (t.at, happened)
    };
    let told = |event: &&Event| {
        event.kind == MarkKind::Mode && transitions.iter().any(|t| t.at == event.at)
    };
    let marks = events.iter().filter(|it| !told(it)).map(|event| {
        let (class, glyph) = sign_of(event.kind);
        let happened = Happened {
            at: Time::near(event.at, now),
            class,
            glyph,
            kind: kind_words(event.kind),
            words: event.words.clone(),
            href: Some(event.href.clone()),
            evidence: Vec::new(),
        };
        (event.at, happened)
    });
    let mut all: Vec<(Moment, Happened)> = transitions.iter().map(of).chain(marks).collect();
    all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    all.into_iter().map(|(_, happened)| happened).collect()
}
