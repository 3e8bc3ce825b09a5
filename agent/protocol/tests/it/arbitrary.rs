//! Any message that can stand, by proptest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::directive::{
    Directive, DirectiveSet, LiveValues, Mode, OffReason, Stamp, Standing,
};
use hedgerow_protocol::ids::{
    DependencyName, Epoch, Incarnation, InstanceId, ModeSequence, OperationName, ReplicaName,
    Revision, RouteKey, Sequence, Tick, ZoneName,
};
use hedgerow_protocol::latency::{BUCKETS, SparseHistogram};
use hedgerow_protocol::limits::{ARMING_EPOCH_MAX, ARMING_EPOCH_MIN, LEASE_MAX, LEASE_MIN};
use hedgerow_protocol::report::{
    Attempts, Effective, IN_FLIGHT_MAX, Refusal, ReplicaReport, Report, RouteReport, Totals,
};
use hedgerow_protocol::session::{
    AgentMessage, Applied, AppliedRoute, COME_BACK_MAX, ComeBack, ComeBackReason,
    ControllerMessage, Goodbye, HEARTBEAT_MAX, Heartbeat, HeartbeatAck, Held, Hello, INTERVAL_MIN,
    REPORT_INTERVAL_MAX, Refused, ReportAck, SentReport, Text, Welcome,
};
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;

const NAME: &str = "[A-Za-z0-9._/:@-]{0,127}[A-Za-z0-9_/:@-]";

fn text() -> impl Strategy<Value = Text> {
    "[ -~]{0,512}".prop_map(|text| Text::new(&text).unwrap())
}

fn route() -> impl Strategy<Value = RouteKey> {
    (NAME, NAME).prop_map(|(dependency, operation)| RouteKey {
        dependency: DependencyName::new(&dependency).unwrap(),
        operation: OperationName::new(&operation).unwrap(),
    })
}

fn zone() -> impl Strategy<Value = Option<ZoneName>> {
    of(NAME.prop_map(|name| ZoneName::new(&name).unwrap()))
}

fn replica() -> impl Strategy<Value = ReplicaName> {
    NAME.prop_map(|name| ReplicaName::new(&name).unwrap())
}

fn stamp() -> impl Strategy<Value = Stamp> {
    any::<(u64, u64, u64)>().prop_map(|(epoch, revision, mode_sequence)| Stamp {
        epoch: Epoch(epoch),
        revision: Revision(revision),
        mode_sequence: ModeSequence(mode_sequence),
    })
}

fn known_reason() -> impl Strategy<Value = OffReason> {
    prop::sample::select(vec![
        OffReason::Errors,
        OffReason::SharedSlowdown,
        OffReason::PushBack,
        OffReason::WinsNothing,
        OffReason::KillSwitch,
        OffReason::Policy,
        OffReason::TooManyChanges,
    ])
}

/// All but probing for an unknown reason, which comes in as off: see p17 in `sets`.
fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        known_reason().prop_map(Mode::Off),
        Just(Mode::Off(OffReason::Unknown)),
        Just(Mode::Observing),
        known_reason().prop_map(Mode::Probing),
        Just(Mode::On),
    ]
}

fn threshold() -> impl Strategy<Value = Threshold> {
    (100..=3_600_000_000_u64).prop_map(|us| Threshold::new(Duration::from_micros(us)).unwrap())
}

fn budget() -> impl Strategy<Value = Budget> {
    prop_oneof![
        Just(Budget::ZERO),
        Just(Budget::clamped(0.25)),
        (1e-9..0.25_f64).prop_map(|share| Budget::new(share).unwrap()),
    ]
}

fn ratio() -> impl Strategy<Value = Ratio> {
    (0.0..=1.0_f64).prop_map(|share| Ratio::new(share).unwrap())
}

fn millis(min: Duration, max: Duration) -> impl Strategy<Value = Duration> {
    (min.as_millis() as u64..=max.as_millis() as u64).prop_map(Duration::from_millis)
}

fn histogram() -> impl Strategy<Value = SparseHistogram> {
    btree_map(
        0..BUCKETS as u16,
        prop_oneof![Just(1_u64), 1..1_u64 << 30],
        0..20,
    )
    .prop_map(|pairs| SparseHistogram::try_from_pairs(pairs).unwrap())
}

fn attempts() -> impl Strategy<Value = Attempts> {
    (histogram(), histogram()).prop_map(|(done, censored)| Attempts { done, censored })
}

fn hello_any() -> impl Strategy<Value = Hello> {
    let held = (stamp(), mode(), any::<u64>(), of(threshold()), budget());
    (
        any::<u128>(),
        any::<u64>(),
        zone(),
        (text(), text(), btree_set(text(), 0..=32)),
        btree_map(route(), held, 0..=8),
    )
        .prop_map(
            |(instance, incarnation, zone, (version, build, capabilities), held)| Hello {
                instance: InstanceId::from_u128(instance),
                incarnation: Incarnation(incarnation),
                zone,
                version,
                build,
                capabilities,
                held: held
                    .into_iter()
                    .map(|(route, (stamp, mode, tick, threshold, budget))| Held {
                        route,
                        stamp,
                        mode,
                        tick: Tick(tick),
                        threshold,
                        budget,
                    })
                    .collect(),
            },
        )
}

/// Counters in an order an honest agent can have: the larger ones are sums of the smaller.
fn totals() -> impl Strategy<Value = Totals> {
    any::<([u32; 24], [u32; Refusal::ALL.len()])>().prop_map(|(n, refused)| {
        let n = n.map(u64::from);
        let refused = refused.map(u64::from);
        let won = n[0];
        let hedged = won + n[1] + n[2] + n[3];
        let crossed = hedged + n[4] + refused.iter().sum::<u64>();
        let failed = n[13] + n[15] + n[17];
        let abandoned = n[9] + n[17];
        let finished = n[13] + n[14] + n[15] + n[16] + abandoned + n[5];
        let primary_finished = n[10] + n[11];
        // As many as all that is started may have ended; of the others not too many.
        let started =
            crossed + finished + primary_finished + n[18] + n[19] + n[22] + n[23] + IN_FLIGHT_MAX;
        let hedged_on_error = n[21] + n[22];
        Totals {
            started,
            not_eligible: n[8],
            finished: started - n[7] % (IN_FLIGHT_MAX + 1),
            failed,
            abandoned,
            crossed,
            hedged,
            hedged_again: n[20] % (hedged + 1),
            hedged_on_error: hedged_on_error % (2 * started + 1),
            won,
            won_on_error: n[22] % (hedged_on_error % (2 * started + 1) + 1),
            further_refused: n[23],
            primary_finished,
            primary_errors: n[10],
            hedge_finished: n[1] + n[2],
            hedge_errors: n[1],
            push_back: n[12] % (started + 1),
            holdout_finished: n[13] + n[14],
            holdout_failed: n[13],
            treated_finished: n[15] + n[16],
            treated_failed: n[15],
            failed_despite_primary: n[17],
            probation_skipped: n[18],
            threshold_past_deadline: n[19],
            refused,
        }
    })
}

fn replica_report() -> impl Strategy<Value = (Option<ZoneName>, [u32; 6], Attempts)> {
    (zone(), any::<[u32; 6]>(), attempts())
}

fn effective() -> impl Strategy<Value = Effective> {
    (
        (
            prop_oneof![Just(Stamp::default()), stamp()],
            mode(),
            any::<bool>(),
        ),
        (
            of(threshold()),
            ratio(),
            budget(),
            0.0..=1e9_f64,
            0.0..=1e9_f64,
        ),
        any::<(u32, u32)>(),
    )
        .prop_map(
            |((stamp, mode, own_off), (threshold, probability, budget, cap, tokens), n)| {
                Effective {
                    stamp,
                    mode,
                    own_off,
                    threshold,
                    probability,
                    budget,
                    cap,
                    tokens,
                    replicas: n.0,
                    watched_losers: n.1,
                }
            },
        )
}

fn route_any() -> impl Strategy<Value = RouteReport> {
    (
        (route(), totals()),
        (
            attempts(),
            attempts(),
            histogram(),
            histogram(),
            histogram(),
        ),
        btree_map(replica(), replica_report(), 0..=4),
        (effective(), any::<u32>()),
    )
        .prop_map(
            |((route, totals), histograms, replicas, (effective, over))| {
                let replicas = replicas
                    .into_iter()
                    .map(|(replica, (zone, n, primary))| ReplicaReport {
                        replica,
                        zone,
                        started: n[0].into(),
                        crossed: n[1].into(),
                        finished: u64::from(n[2]) + u64::from(n[3]),
                        errors: n[3].into(),
                        hedged: n[4].into(),
                        won: n[5].into(),
                        primary,
                    })
                    .collect();
                RouteReport {
                    route,
                    totals,
                    primary: histograms.0,
                    hedge: histograms.1,
                    treated: histograms.2,
                    holdout: histograms.3,
                    in_flight: histograms.4,
                    replicas,
                    effective,
                    over_budget_seconds: over.into(),
                }
            },
        )
}

fn report_any() -> impl Strategy<Value = SentReport> {
    let routes = vec(route_any(), 0..=3).prop_map(|mut routes| {
        let mut seen = BTreeSet::new();
        routes.retain(|report| seen.insert(report.route.clone()));
        routes
    });
    (
        1..=u64::MAX,
        any::<(u64, u64)>(),
        1..=31_622_400_000_000_u64,
        routes,
    )
        .prop_map(
            |(sequence, (held_hash, wall_clock_ms), covers_us, routes)| SentReport {
                held_hash,
                report: Report {
                    sequence: Sequence(sequence),
                    covers: Duration::from_micros(covers_us),
                    wall_clock_ms,
                    routes,
                },
            },
        )
}

/// Any message a good agent can send.
pub(crate) fn agent_message() -> impl Strategy<Value = AgentMessage> {
    let applied = (any::<u64>(), vec((route(), stamp()), 0..=8)).prop_map(|(nonce, routes)| {
        let routes = routes
            .into_iter()
            .map(|(route, stamp)| AppliedRoute { route, stamp });
        Applied {
            nonce,
            routes: routes.collect(),
        }
    });
    let refused = (any::<u64>(), of(route()), of(stamp()), "[ -~]{1,512}").prop_map(
        |(nonce, route, stamp, reason)| Refused {
            nonce,
            route,
            stamp,
            reason: Text::new(&reason).unwrap(),
        },
    );
    prop_oneof![
        2 => hello_any().prop_map(AgentMessage::Hello),
        4 => report_any().prop_map(AgentMessage::Report),
        1 => applied.prop_map(AgentMessage::Applied),
        1 => refused.prop_map(AgentMessage::Refused),
        1 => any::<(u64, u64)>().prop_map(|(number, held_hash)| {
            AgentMessage::Heartbeat(Heartbeat { number, held_hash })
        }),
        1 => text().prop_map(|reason| AgentMessage::Goodbye(Goodbye { reason })),
    ]
}

fn arming() -> impl Strategy<Value = Arming> {
    (
        0.001..0.999_f64,
        millis(ARMING_EPOCH_MIN, ARMING_EPOCH_MAX),
        any::<u64>(),
    )
        .prop_map(|(share, epoch, seed)| {
            Arming::new(Ratio::new(share).unwrap(), epoch, seed).unwrap()
        })
}

fn directive_any() -> impl Strategy<Value = Directive> {
    (
        (route(), stamp(), mode(), any::<u64>()),
        (
            of(threshold()),
            ratio(),
            budget(),
            0.0..=10_000.0_f64,
            of(arming()),
        ),
        (
            0.001..0.999_f64,
            ratio(),
            ratio(),
            of(threshold()),
            of(threshold()),
        ),
        (millis(LEASE_MIN, LEASE_MAX), 2..=3_u64, any::<bool>()),
        vec(replica(), 0..=4),
        0.0..=10_000.0_f64,
    )
        .prop_map(
            |(
                (route, stamp, mode, tick),
                live,
                standing,
                (lease, attempts, on_error),
                probation,
                start_credit,
            )| {
                let (threshold, probability, budget, cap, arming) = live;
                let live = LiveValues::new(Tick(tick), threshold, probability, budget, cap);
                let (percentile, holdout, error_limit, one, other) = standing;
                let (threshold_min, threshold_max) = match (one, other) {
                    (Some(a), Some(b)) => (Some(a.min(b)), Some(a.max(b))),
                    either => either,
                };
                Directive {
                    route,
                    stamp,
                    mode,
                    live: live.unwrap().with_arming(arming),
                    standing: Standing {
                        percentile: Quantile::new(percentile).unwrap(),
                        holdout,
                        error_limit,
                        threshold_min,
                        threshold_max,
                        lease,
                        attempts: AttemptLimit::new(attempts).unwrap(),
                        hedge_on_error: on_error,
                    },
                    probation,
                    start_credit,
                }
            },
        )
}

fn set_any() -> impl Strategy<Value = DirectiveSet> {
    (any::<u64>(), vec(directive_any(), 0..=4), any::<bool>()).prop_map(
        |(nonce, mut directives, meant)| {
            let mut seen = BTreeSet::new();
            directives.retain(|directive| seen.insert(directive.route.clone()));
            DirectiveSet {
                nonce,
                empty_is_meant: meant || directives.is_empty(),
                directives: directives.into_iter().map(Arc::new).collect(),
            }
        },
    )
}

/// Any message a good controller can send.
pub(crate) fn controller_message() -> impl Strategy<Value = ControllerMessage> {
    let welcome = (
        (text(), any::<u64>(), any::<bool>()),
        millis(INTERVAL_MIN, REPORT_INTERVAL_MAX),
        millis(INTERVAL_MIN, HEARTBEAT_MAX),
        millis(LEASE_MIN, LEASE_MAX),
    )
        .prop_map(
            |((controller, epoch, resyncing), report_interval, heartbeat, lease)| Welcome {
                controller,
                epoch: Epoch(epoch),
                report_interval,
                heartbeat,
                lease,
                resyncing,
            },
        );
    let reasons = prop::sample::select(vec![
        ComeBackReason::Draining,
        ComeBackReason::Busy,
        ComeBackReason::Rebalance,
        ComeBackReason::Unknown,
    ]);
    prop_oneof![
        1 => welcome.prop_map(ControllerMessage::Welcome),
        4 => set_any().prop_map(ControllerMessage::Directives),
        1 => (any::<u64>(), of(text())).prop_map(|(sequence, refusal)| {
            ControllerMessage::ReportAck(ReportAck { sequence: Sequence(sequence), refusal })
        }),
        1 => any::<u64>()
            .prop_map(|number| ControllerMessage::HeartbeatAck(HeartbeatAck { number })),
        1 => (millis(Duration::ZERO, COME_BACK_MAX), reasons)
            .prop_map(|(after, reason)| ControllerMessage::ComeBack(ComeBack { after, reason })),
    ]
}
