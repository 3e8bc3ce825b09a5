//! A realistic fleet as values: a snapshot for any moment, with every state a page has to show.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::effect::Transition;
use hedgerow_core::event::{Actor, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::rollout::RolloutPlan;
use hedgerow_core::view::{
    Acked, BadReplica, ControllerView, Evidence, Figures, FleetSnapshot, GuardFigure, Interval,
    Mark, MarkKind, Named, NoData, Point, PolicyView, ReplicaCell, ReplicaColumn, ReplicaCourse,
    ReplicaView, RolloutView, RouteView, Together, Unlike,
};
use hedgerow_protocol::directive::{Mode, OffReason, Stamp};
use hedgerow_protocol::ids::{
    DependencyName, Epoch, ModeSequence, ReplicaName, Revision, RouteKey, ZoneName,
};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft, PolicyScope};
use hedgerow_protocol::report::{Refusal, Totals};

use crate::{clients, told};

/// 2026-03-01 14:03:07 UTC.
pub(crate) const START: Moment = Moment::from_millis(1_772_373_787_000);

/// What a route is going through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Story {
    Healthy,
    Shared,
    Errors,
    Probing,
    SlowReplica,
    HighDemand,
    NoEffect,
    Observing,
    Silent,
    OffByPolicy,
}

/// Name, operation, story, calls a second, p50 in ms.
pub(crate) const ROUTES: &[(&str, &str, Story, f64, f64)] = &[
    ("catalog", "get-item", Story::Healthy, 1240.0, 11.8),
    ("catalog", "list", Story::SlowReplica, 318.0, 21.0),
    ("checkout", "charge", Story::Errors, 96.0, 48.0),
    ("feature-flags", "evaluate", Story::Healthy, 8420.0, 0.62),
    ("geo", "lookup", Story::Healthy, 212.0, 4.1),
    ("hedgerow.v2.Ledger/Balance", "Get", Story::Silent, 0.0, 0.0),
    ("inventory", "reserve", Story::NoEffect, 61.0, 17.0),
    ("mail", "render", Story::OffByPolicy, 12.0, 92.0),
    ("pricing", "quote", Story::Observing, 405.0, 8.7),
    ("profile", "read", Story::Healthy, 2210.0, 6.3),
    ("recommendations", "rank", Story::Probing, 530.0, 36.0),
    ("search", "query", Story::Shared, 940.0, 74.0),
    ("sessions", "get", Story::HighDemand, 3120.0, 3.4),
];

pub(crate) fn route(dependency: &str, operation: &str) -> RouteKey {
    RouteKey::new(dependency, operation).unwrap()
}

pub(crate) fn dependency(name: &str) -> DependencyName {
    DependencyName::new(name).unwrap()
}

/// A policy that hedges, over the defaults.
pub(crate) fn hedging(name: &str) -> Policy {
    Policy::try_from(PolicyDraft {
        intent: Intent::Hedge,
        ..PolicyDraft::from(Policy::observing(dependency(name).into()))
    })
    .unwrap()
}

/// The fleet, `seconds` after [`START`].
pub(crate) fn snapshot(seconds: u64) -> FleetSnapshot {
    let at = START.plus(Duration::from_secs(seconds));
    let routes: BTreeMap<RouteKey, Arc<RouteView>> = ROUTES
        .iter()
        .map(|&(d, o, story, rate, p50)| {
            let view = view(&route(d, o), story, rate, p50, at);
            (view.route.clone(), Arc::new(view))
        })
        .collect();
    let policies = ROUTES
        .iter()
        .filter(|r| r.2 != Story::Observing && r.2 != Story::Silent)
        .map(|&(d, ..)| {
            let view = PolicyView {
                revision: Revision(3),
                policy: hedging(d),
                since: START.plus(Duration::from_secs(0)),
                rollout: None,
            };
            (dependency(d).into(), view)
        })
        .chain([(
            dependency("shipping").into(),
            PolicyView {
                revision: Revision(1),
                policy: hedging("shipping"),
                since: START,
                rollout: None,
            },
        )])
        .collect();
    FleetSnapshot {
        at,
        started: Moment::from_millis(START.as_millis() - 7_500_000),
        epoch: Epoch(2),
        tick: 7500 + seconds,
        agents: clients::agents(at, &routes),
        alerts: told::alerts(at),
        silences: Vec::new(),
        routes,
        policies,
        kills: Vec::new(),
        controller: ControllerView {
            reports: 1_204_551 + seconds * 12,
            reports_duplicate: 3,
            reports_per_s: 12.0,
            tick_took: Duration::from_micros(2_840 + seconds % 7 * 90),
            ..ControllerView::default()
        },
    }
}

/// With policies by pattern and for one operation beside those of dependencies.
pub(crate) fn with_wider(mut snapshot: FleetSnapshot) -> FleetSnapshot {
    let policies = [
        ("*", 4, Intent::Observe, 0.05),
        ("pri*", 6, Intent::Hedge, 0.04),
        ("catalog list", 9, Intent::Hedge, 0.1),
        ("profile read", 2, Intent::Hedge, 0.03),
    ];
    for (scope, revision, intent, budget) in policies {
        let scope: PolicyScope = scope.parse().unwrap();
        let draft = PolicyDraft {
            intent,
            budget,
            goal: (scope.operation().is_some()).then_some(0.99),
            ..PolicyDraft::from(Policy::observing(scope.clone()))
        };
        let view = PolicyView {
            revision: Revision(revision),
            policy: Policy::try_from(draft).unwrap(),
            since: Moment::from_millis(START.as_millis() - revision * 90_000_000),
            rollout: None,
        };
        snapshot.policies.insert(scope, view);
    }
    snapshot
}

/// Deterministic noise from -1 to 1.
fn noise(seed: u64, step: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 31;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 29;
    (x % 20_001) as f64 / 10_000.0 - 1.0
}

fn mode_of(story: Story) -> Mode {
    match story {
        Story::Shared => Mode::Off(OffReason::SharedSlowdown),
        Story::Errors => Mode::Off(OffReason::Errors),
        Story::Probing => Mode::Probing(OffReason::SharedSlowdown),
        Story::OffByPolicy => Mode::Off(OffReason::Policy),
        Story::Observing | Story::Silent => Mode::Observing,
        _ => Mode::On,
    }
}

fn words_of(story: Story, p95: f64) -> String {
    match story {
        Story::Shared => "off: shared slowdown (9 of 10 replicas slow together)".into(),
        Story::Errors => "off: error rate 6.1 % > 5 %".into(),
        Story::Probing => {
            "probing: hedging 2 % of crossed calls to see whether it helps again".into()
        }
        Story::OffByPolicy => "off: policy, by dana".into(),
        Story::Observing => "observing: no policy yet".into(),
        Story::Silent => "observing: no traffic".into(),
        Story::NoEffect => "no effect: one replica".into(),
        _ => format!("on: hedging calls slower than {p95:.1} ms"),
    }
}

fn since_of(story: Story, at: Moment) -> Moment {
    let ago = match story {
        Story::Shared => 74_000,
        Story::Errors => 212_000,
        Story::Probing => 31_000,
        _ => 7_400_000,
    };
    Moment::from_millis(at.as_millis() - ago)
}

/// How the story bends figures `ago` seconds before now: latency factor, error rate, demand.
fn bend(story: Story, ago: f64) -> (f64, f64, f64) {
    match story {
        Story::Shared if ago < 80.0 => (4.6, 0.002, 0.31),
        Story::Probing if ago < 190.0 && ago > 60.0 => (3.4, 0.002, 0.22),
        Story::Errors if ago < 216.0 => (1.05, 0.061, 0.047),
        Story::HighDemand if ago < 150.0 => (1.35, 0.001, 0.142),
        Story::SlowReplica => (1.0, 0.001, 0.052),
        _ => (1.0, 0.0008, 0.048),
    }
}

fn hedging_at(story: Story, ago: f64) -> bool {
    match story {
        Story::Shared => ago > 74.0,
        Story::Errors => ago > 212.0,
        Story::Probing => !(31.0..186.0).contains(&ago),
        Story::OffByPolicy | Story::Observing | Story::Silent => false,
        _ => true,
    }
}

fn point(story: Story, rate: f64, p50: f64, at: Moment, now: Moment, seed: u64) -> Point {
    let ago = now.since(at).as_secs_f64();
    let step = at.as_millis() / 2000;
    let wave = |salt: u64, by: f64| 1.0 + by * noise(seed ^ salt, step);
    let (slow, errors, demand) = bend(story, ago);
    let hedging = hedging_at(story, ago);
    let p95 = p50 * 2.4 * slow * wave(1, 0.04);
    let p99 = p50 * 6.1 * slow * wave(2, 0.12);
    let hedge_rate = demand.min(0.079) * wave(3, 0.07);
    let silent = story == Story::Silent;
    let some = |v: f64| (!silent).then_some(v);
    Point {
        at,
        calls_per_s: rate * wave(4, 0.05) * (1.0 + 0.08 * (step as f64 / 60.0).sin()),
        p50_ms: some(p50 * slow * wave(5, 0.02)),
        p95_ms: some(p95),
        p99_ms: some(p99),
        treated_p99_ms: some(if hedging {
            p99 * 0.46 * wave(6, 0.08)
        } else {
            p99
        }),
        holdout_p99_ms: some(p99 * wave(7, 0.14)).filter(|_| step.wrapping_add(seed) % 29 > 3),
        threshold_ms: some(
            p50 * 2.4
                * if story == Story::SlowReplica {
                    1.05
                } else {
                    1.0
                },
        ),
        hedge_rate: some(if hedging { hedge_rate } else { 0.0 }),
        demand: some(demand * wave(8, 0.05)),
        win_rate: some(0.71 * wave(9, 0.05)).filter(|_| hedging),
        error_rate: some(errors * wave(10, 0.3)),
        treated_p95_ms: some(p95 * if hedging { 0.82 } else { 1.0 }).map(|it| it as f32),
        holdout_p95_ms: some(p95 * wave(11, 0.05)).map(|it| it as f32),
        holdout_p99_low_ms: some(p99 * 0.8).map(|it| it as f32),
        holdout_p99_high_ms: some(p99 * 1.25)
            .filter(|_| rate > 500.0)
            .map(|it| it as f32),
        holdout_calls: some(rate * 0.6).map(|it| it as u32),
        refused: some(demand).map(|demand| refused(story, hedging, demand)),
        hedging,
        base_ms: some(p50),
    }
}

/// Shares of crossed calls, by reason.
fn refused(story: Story, hedging: bool, demand: f64) -> [f32; Refusal::ALL.len()] {
    let mut refused = [0.0; Refusal::ALL.len()];
    if hedging {
        refused[Refusal::Budget as usize] = (1.0 - 0.079 / demand).max(0.03) as f32;
        refused[Refusal::Holdout as usize] = 0.01;
        refused[Refusal::Deadline as usize] = 0.004;
        if story == Story::NoEffect {
            refused[Refusal::NoReplica as usize] = 0.95;
        }
    } else {
        refused[Refusal::Mode as usize] = 0.99;
    }
    refused
}

/// The stored course of a route: as many points as asked for, from a moment to another.
pub(crate) fn history(key: &RouteKey, since: Moment, now: Moment, points: u32) -> Vec<Point> {
    let found = ROUTES.iter().find(|r| route(r.0, r.1) == *key);
    let Some(&(_, _, story, rate, p50)) = found else {
        return Vec::new();
    };
    let span = now.since(since).as_millis() as u64;
    let step = (span / u64::from(points)).max(10_000);
    (1..=span / step)
        // A night in which the controller was away.
        .filter(|n| !(n * 20 / (span / step)).eq(&11))
        .map(|n| {
            let at = Moment::from_millis(since.as_millis() + n * step);
            point(story, rate, p50, at, now, n)
        })
        .collect()
}

/// The course of a route's replicas, as the core would read it.
fn replica_course(replicas: &[ReplicaView], story: Story, at: Moment) -> ReplicaCourse {
    let mut names: Vec<_> = replicas.iter().map(|r| r.replica.clone()).collect();
    names.sort();
    let names = Arc::new(names);
    let end = at.as_millis() / 10_000 * 10_000;
    let columns = (0..90).rev().map(|n| {
        let moment = Moment::from_millis(end - n * 10_000);
        let (slow, ..) = bend(story, at.since(moment).as_secs_f64());
        let cells = names.iter().enumerate().map(|(i, name)| {
            let replica = replicas.iter().find(|r| r.replica == *name).unwrap();
            let wave = 1.0 + 0.08 * noise(i as u64 * 7 + 1, moment.as_millis() / 10_000);
            let usual = replica.p95.map(|it| it.as_secs_f64() * 1e3);
            let well = replica.named.is_some() && n > 40;
            let p95 = usual.map(|it| if well { it / 5.8 } else { it } * slow.max(1.0) * wave);
            let hedged = (replica.calls_per_s * 0.5) as u32;
            let won = replica.win_rate.unwrap_or(0.0) * if slow > 2.0 { 0.2 } else { 1.0 };
            ReplicaCell {
                calls: (replica.calls_per_s * 10.0) as u32,
                p95_ms: p95.map(|it| it as f32),
                hedged: if replica.win_rate.is_some() {
                    hedged
                } else {
                    0
                },
                won: (f64::from(hedged) * won * wave).round() as u32,
            }
        });
        Arc::new(ReplicaColumn {
            at: moment,
            span: Duration::from_secs(10),
            replicas: Arc::clone(&names),
            cells: cells.collect(),
        })
    });
    let usual = replicas.iter().find(|r| r.named.is_none());
    let usual = usual.and_then(|r| r.p95).map(|it| it.as_secs_f64() * 1e3);
    let named = replicas.iter().filter(|r| r.named == Some(Named::Slow));
    let rows = named.map(|r| BadReplica {
        replica: r.replica.clone(),
        bad: 40,
        known: 90,
    });
    let together = (story == Story::Shared).then(|| Together {
        from: Moment::from_millis(end - 80_000),
        until: Moment::from_millis(end),
        bad: 5,
        known: 5,
        lasts: true,
    });
    ReplicaCourse {
        columns: columns.collect(),
        slow: usual.map(|usual| Unlike {
            usual,
            limit: usual * 2.0,
            rows: rows.collect(),
            columns: together.into_iter().collect(),
        }),
        losing: None,
    }
}

fn short_ms(value: f32) -> Duration {
    ms(f64::from(value))
}

fn ms(value: f64) -> Duration {
    Duration::from_secs_f64(value / 1e3)
}

fn figures(story: Story, last: &Point, rate: f64) -> Figures {
    let (_, errors, _) = bend(story, 0.0);
    Figures {
        window: Duration::from_secs(2),
        calls: (rate * 2.0) as u64,
        calls_per_s: last.calls_per_s,
        success: Some(1.0 - errors),
        p50: last.p50_ms.map(ms),
        p95: last.p95_ms.map(ms),
        p99: last.p99_ms.map(ms),
        treated_p99: last.treated_p99_ms.map(ms),
        holdout_p99: last.p99_ms.map(ms),
        holdout_calls: (rate * 0.6) as u64,
        treated_calls: (rate * 58.0) as u64,
        treated_p95: last.treated_p95_ms.map(short_ms),
        holdout_p95: last.holdout_p95_ms.map(short_ms),
        treated_p99_within: last.treated_p99_ms.map(|it| Interval {
            low: ms(it * 0.98),
            high: Some(ms(it * 1.02)),
        }),
        holdout_p99_within: last.holdout_p99_low_ms.map(|low| Interval {
            low: short_ms(low),
            high: last.holdout_p99_high_ms.map(short_ms),
        }),
        refused: last.refused,
        hedge_rate: last.hedge_rate,
        demand: last.demand,
        win_rate: last.win_rate,
        win_rate_expected: Some(0.74),
        error_rate: last.error_rate,
        refused_by_budget: Some(if story == Story::HighDemand {
            0.44
        } else {
            0.03
        }),
        threshold: last.threshold_ms.map(ms),
        probability: 1.0,
        budget: 0.08,
        target: 0.0495,
        hedges_answered_ratio: Some(if story == Story::Shared { 0.12 } else { 1.04 }),
        log_rank_z: Some(if story == Story::Shared { -9.2 } else { 0.4 }),
        phi: Some(if story == Story::Shared { 0.93 } else { 0.02 }),
        median_ratio: Some(if story == Story::Shared { 4.6 } else { 1.01 }),
        utilisation: None,
    }
}

fn evidence(story: Story) -> Vec<Evidence> {
    let row = |what: &str, value, limit, unit: &str, window| Evidence {
        what: what.into(),
        value,
        limit,
        unit: unit.into(),
        window: Duration::from_secs(window),
    };
    match story {
        Story::Shared | Story::Probing => vec![
            row("median / base", 4.6, 2.5, "x", 3),
            row("hedges answered / expected", 0.12, 0.3, "", 3),
            row("log-rank Z", -9.2, -4.0, "", 3),
        ],
        Story::Errors => vec![row("error rate", 6.1, 5.0, "%", 2)],
        Story::HighDemand => vec![row("demand", 14.2, 10.0, "%", 10)],
        _ => vec![row("error rate", 0.08, 5.0, "%", 2)],
    }
}

fn transitions(key: &RouteKey, story: Story, at: Moment) -> Vec<Transition> {
    let ago = |s: u64| Moment::from_millis(at.as_millis() - s * 1000);
    let off = |at, from, to, words: &str| Transition {
        route: key.clone(),
        at,
        from,
        to,
        evidence: evidence(story),
        words: words.into(),
    };
    match story {
        Story::Shared => vec![off(
            since_of(story, at),
            Mode::On,
            mode_of(story),
            "shared slowdown (9 of 10 replicas slow together)",
        )],
        Story::Errors => {
            vec![off(
                since_of(story, at),
                Mode::On,
                mode_of(story),
                "error rate 6.1 % > 5 %",
            )]
        }
        Story::Probing => vec![
            off(
                ago(186),
                Mode::On,
                Mode::Off(OffReason::SharedSlowdown),
                "shared slowdown",
            ),
            off(
                since_of(story, at),
                Mode::Off(OffReason::SharedSlowdown),
                mode_of(story),
                "trying again with 2 % of crossed calls",
            ),
        ],
        _ => Vec::new(),
    }
}

fn marks(story: Story, at: Moment) -> Vec<Mark> {
    let ago = |s: u64| Moment::from_millis(at.as_millis() - s * 1000);
    let mark = |at, kind, words: &str| Mark {
        at,
        kind,
        words: words.into(),
    };
    let mut marks = vec![mark(
        ago(480),
        MarkKind::Policy,
        "revision 3 by dana: percentile 0.95 after the cache change",
    )];
    match story {
        Story::Shared => {
            marks.push(mark(ago(74), MarkKind::Mode, "off: shared slowdown"));
            marks.push(mark(ago(72), MarkKind::Alert, "SharedSlowdown fires"));
        }
        Story::Errors => {
            marks.push(mark(
                ago(212),
                MarkKind::Mode,
                "off: error rate 6.1 % > 5 %",
            ));
            marks.push(mark(ago(211), MarkKind::Alert, "HedgingDisabled fires"));
        }
        Story::Probing => {
            marks.push(mark(ago(186), MarkKind::Mode, "off: shared slowdown"));
            marks.push(mark(ago(31), MarkKind::Mode, "probing"));
        }
        Story::HighDemand => marks.push(mark(ago(138), MarkKind::Alert, "HedgeRateHigh fires")),
        Story::SlowReplica => marks.push(mark(
            ago(300),
            MarkKind::Alert,
            "ReplicaSlow fires: replica-4",
        )),
        _ => {}
    }
    marks
}

fn replicas(key: &RouteKey, story: Story, rate: f64, p50: f64) -> Vec<ReplicaView> {
    let n = if story == Story::NoEffect { 1 } else { 5 };
    let mut replicas: Vec<ReplicaView> = (1..=n)
        .map(|i| {
            let bad = story == Story::SlowReplica && i == 4;
            let failing = story == Story::Errors && i == 2;
            let wave = 1.0 + 0.05 * noise(i, 77);
            ReplicaView {
                replica: ReplicaName::new(&format!(
                    "{}-{i}",
                    key.dependency
                        .as_str()
                        .to_lowercase()
                        .replace(['/', '.'], "-")
                ))
                .unwrap(),
                zone: Some(ZoneName::new(["eu-1a", "eu-1b", "eu-1c"][(i % 3) as usize]).unwrap()),
                named: if bad {
                    Some(Named::Slow)
                } else if failing {
                    Some(Named::Failing)
                } else {
                    None
                },
                probation: bad,
                calls_per_s: if bad {
                    rate / 50.0
                } else {
                    rate / n as f64 * wave
                },
                crossed: Some(if bad { 0.21 } else { 0.041 * wave }),
                error_rate: Some(if failing { 0.58 } else { 0.0008 }),
                p50: (p50 > 0.0).then(|| ms(p50 * if bad { 1.4 } else { wave })),
                p95: (p50 > 0.0).then(|| ms(p50 * if bad { 14.0 } else { 2.4 * wave })),
                win_rate: mode_of(story)
                    .hedges()
                    .then_some(if bad { 0.22 } else { 0.72 * wave }),
            }
        })
        .collect();
    replicas.sort_by_key(|r| (r.named.is_none(), r.replica.clone()));
    replicas
}

fn totals(story: Story, rate: f64) -> Totals {
    let started = (rate * 7400.0) as u64;
    let crossed = started / 21;
    let mut totals = Totals {
        started,
        not_eligible: started / 40,
        finished: started - started / 9000,
        crossed,
        hedged: crossed * 93 / 100,
        won: crossed * 66 / 100,
        ..Totals::default()
    };
    totals.refused[Refusal::Holdout as usize] = crossed / 100;
    totals.refused[Refusal::Budget as usize] = crossed * 4 / 100;
    totals.refused[Refusal::Deadline as usize] = crossed / 250;
    if story == Story::Observing {
        totals.hedged = 0;
        totals.won = 0;
        totals.refused[Refusal::Mode as usize] = crossed;
    }
    totals
}

/// One route as it goes through its story.
pub(crate) fn view(key: &RouteKey, story: Story, rate: f64, p50: f64, at: Moment) -> RouteView {
    let seed = key.to_string().bytes().map(u64::from).sum::<u64>() * 31;
    let end = at.as_millis() / 2000 * 2000;
    let course: Vec<Point> = (0..300)
        .rev()
        .map(|i| {
            point(
                story,
                rate,
                p50,
                Moment::from_millis(end - i * 2000),
                at,
                seed,
            )
        })
        .collect();
    let last = *course.last().unwrap();
    // A point each 15 s that is over, of a quarter of an hour.
    let brief: Vec<Point> = (1..=60)
        .rev()
        .map(|i| {
            let end = at.as_millis() / 15_000 * 15_000;
            let of = Moment::from_millis(end - i * 15_000);
            point(story, rate, p50, of, at, seed)
        })
        .collect();
    let silent = story == Story::Silent;
    let mut figures = (!silent).then(|| figures(story, &last, rate));
    if let Some(f) = figures.as_mut().filter(|_| !mode_of(story).hedges()) {
        f.win_rate = None;
        f.hedge_rate = Some(0.0);
    }
    RouteView {
        route: key.clone(),
        stamp: Stamp {
            epoch: Epoch(2),
            revision: Revision(3),
            mode_sequence: ModeSequence(7),
        },
        mode: mode_of(story),
        since: since_of(story, at),
        words: words_of(story, p50 * 2.4),
        evidence: evidence(story),
        tries_again: matches!(story, Story::Shared | Story::Errors)
            .then(|| at.plus(Duration::from_secs(9))),
        figures,
        no_data: silent.then_some(NoData::NoTraffic),
        no_gain: None,
        pool: None,
        acked: if story == Story::Probing {
            Acked { n: 9, m: 12 }
        } else {
            Acked { n: 12, m: 12 }
        },
        refusals: Vec::new(),
        replicas: replicas(key, story, rate, p50),
        course: Arc::new(course),
        brief: Arc::new(brief),
        replica_course: Arc::new(replica_course(&replicas(key, story, rate, p50), story, at)),
        marks: marks(story, at),
        totals: totals(story, rate),
        seconds_over_budget: 0,
        transitions: transitions(key, story, at),
        utilisation: None,
        duplicates: None,
        switchback: None,
    }
}

/// A rollout in its second step.
pub(crate) fn rollout(plan: &RolloutPlan, base: Revision, base_policy: Policy) -> RolloutView {
    let figure = |what: &str, new, old, unit: &str| GuardFigure {
        route: route("catalog", "get-item"),
        what: what.into(),
        new,
        old,
        unit: unit.into(),
    };
    RolloutView {
        base,
        base_policy,
        actor: Actor {
            name: "dana".into(),
            via: Via::Page,
        },
        stages: plan.stages().to_vec(),
        stage: 2,
        share: plan.stages()[1],
        since: START,
        stay: plan.stay(),
        next_at: START.plus(plan.stay()),
        agents_in: 9,
        agents_holding: 8,
        agents: 40,
        calls: 12_345,
        guard: vec![
            figure("calls failed", Some(0.52), Some(0.61), "%"),
            figure("callers' p99", Some(61.25), None, "ms"),
        ],
        words: "well so far".into(),
    }
}
