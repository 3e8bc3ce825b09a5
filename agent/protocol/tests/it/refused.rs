//! What cannot stand is refused, and says which field and what was expected.

use hedgerow_protocol::directive::Directive;
use hedgerow_protocol::latency::{COUNT_MAX, LAYOUT_ID};
use hedgerow_protocol::report::Report;
use hedgerow_protocol::session::{
    AgentMessage, Applied, Goodbye, Hello, ReceivedAgentMessage, Refused, ReportAck, SentReport,
    Welcome,
};
use hedgerow_protocol::wire::{WireError, agent_message, controller_message, proto};

use crate::good;

type Cases<T> = &'static [(&'static str, &'static str, fn(&mut T))];

/// Breaks `good` in each way; each refusal must name the field and hold the words expected.
fn table<P, T>(good: impl Fn() -> P, cases: Cases<P>)
where
    P: Clone,
    T: TryFrom<P, Error = WireError> + std::fmt::Debug,
{
    T::try_from(good()).unwrap();
    for (field, words, spoil) in cases {
        let mut bad = good();
        spoil(&mut bad);
        let error = T::try_from(bad).expect_err(field);
        assert_eq!(&error.field, field, "{error}");
        assert!(error.problem.contains(words), "{error}: not {words:?}");
    }
}

#[test]
fn every_field_of_a_hello() {
    table::<proto::Hello, Hello>(
        || good::hello().into(),
        &[
            ("instance", "expected a UUID", |m| m.instance.clear()),
            ("instance", "expected a UUID", |m| {
                m.instance = "checkout-1".into();
            }),
            ("zone", "character ' '", |m| m.zone = "eu west".into()),
            ("version", "at most 512", |m| m.version = "x".repeat(513)),
            ("build", "printable ASCII", |m| {
                m.build = "a\u{202e}b".into();
            }),
            ("capabilities", "at most 32", |m| {
                m.capabilities = vec![String::new(); 33];
            }),
            ("capabilities[0]", "printable ASCII", |m| {
                m.capabilities = vec!["\n".into()];
            }),
            ("held", "at most 64", |m| {
                m.held = vec![m.held[0].clone(); 65];
            }),
            ("held", "catalog get is there twice", |m| {
                m.held = vec![m.held[0].clone(); 2];
            }),
            ("held[0].route", "is missing", |m| m.held[0].route = None),
            ("held[0].route.dependency", "must not be blank", |m| {
                m.held[0].route = Some(proto::Route::default());
            }),
            ("held[0].stamp", "is missing", |m| m.held[0].stamp = None),
            ("held[0].mode", "is missing", |m| m.held[0].mode = 0),
            ("held[0].threshold_us", "expected from 100", |m| {
                m.held[0].threshold_us = Some(0);
            }),
            ("held[0].budget", "is missing", |m| m.held[0].budget = None),
            ("held[0].budget", "at most 0.25", |m| {
                m.held[0].budget = Some(0.26);
            }),
        ],
    );
}

#[test]
fn every_field_of_what_answers_a_set() {
    table::<proto::Applied, Applied>(
        || proto::Applied {
            nonce: 1,
            routes: vec![proto::AppliedRoute {
                route: Some(good::directive("catalog").route.into()),
                stamp: Some(proto::Stamp::default()),
            }],
        },
        &[
            ("routes", "at most 64", |m| {
                m.routes = vec![m.routes[0].clone(); 65];
            }),
            ("routes[0].route", "is missing", |m| {
                m.routes[0].route = None;
            }),
            ("routes[0].stamp", "is missing", |m| {
                m.routes[0].stamp = None;
            }),
        ],
    );
    table::<proto::Refused, Refused>(
        || proto::Refused {
            reason: "older".into(),
            ..proto::Refused::default()
        },
        &[
            ("reason", "expected why", |m| m.reason.clear()),
            ("reason", "printable ASCII", |m| {
                m.reason = "\u{1b}[31m".into();
            }),
            ("route.dependency", "must not be blank", |m| {
                m.route = Some(proto::Route::default());
            }),
        ],
    );
    table::<proto::Goodbye, Goodbye>(
        proto::Goodbye::default,
        &[("reason", "printable ASCII", |m| m.reason = "\0".into())],
    );
}

fn report() -> proto::Report {
    (&good::sent_report(3)).into()
}

#[test]
fn every_field_of_a_report() {
    table::<proto::Report, Report>(
        report,
        &[
            ("sequence", "expected 1 or more", |m| m.sequence = 0),
            ("covers_us", "expected above 0", |m| m.covers_us = 0),
            ("covers_us", "expected above 0", |m| m.covers_us = u64::MAX),
            ("routes", "at most 64", |m| {
                m.routes = vec![m.routes[0].clone(); 65];
            }),
            ("routes", "is there twice", |m| {
                m.routes[1] = m.routes[0].clone();
            }),
            ("routes[2].route", "is missing", |m| {
                m.routes[2].route = None;
            }),
            ("routes[2].route.operation", "must not be blank", |m| {
                m.routes[2].route.as_mut().unwrap().operation.clear();
            }),
            ("routes[2].totals", "is missing", |m| {
                m.routes[2].totals = None;
            }),
            ("routes[2].primary.done", "middle of a bucket", |m| {
                m.routes[2].primary.as_mut().unwrap().done = vec![0x80];
            }),
            ("routes[2].hedge.censored", "is not a bucket", |m| {
                let censored = vec![0xfe, 0x7f];
                m.routes[2].hedge = Some(proto::Attempts {
                    done: Vec::new(),
                    censored,
                });
            }),
            ("routes[0].treated", "expected at most", |m| {
                m.routes[0].treated = vec![0; 10_000];
            }),
            ("routes[0].holdout", "shortest form", |m| {
                m.routes[0].holdout = vec![0x80, 0];
            }),
            ("routes[0].in_flight", "is not a bucket", |m| {
                m.routes[0].in_flight = vec![0; 1018];
            }),
            ("routes[0].over_budget_seconds", "expected at most", |m| {
                m.routes[0].over_budget_seconds = u64::MAX;
            }),
            ("routes[1].effective", "is missing", |m| {
                m.routes[1].effective = None;
            }),
        ],
    );
}

#[test]
fn every_field_of_a_replica() {
    table::<proto::Report, Report>(
        report,
        &[
            ("routes[1].replicas", "at most 16", |m| {
                m.routes[1].replicas = vec![m.routes[1].replicas[0].clone(); 17];
            }),
            ("routes[1].replicas", "is there twice", |m| {
                m.routes[1].replicas = vec![m.routes[1].replicas[0].clone(); 2];
            }),
            ("routes[1].replicas[0].replica", "must not be blank", |m| {
                m.routes[1].replicas[0].replica.clear();
            }),
            ("routes[1].replicas[0].zone", "are allowed", |m| {
                m.routes[1].replicas[0].zone = "<zone>".into();
            }),
            (
                "routes[1].replicas[0].errors",
                "is above finished (9)",
                |m| {
                    m.routes[1].replicas[0].errors = 10;
                },
            ),
            ("routes[1].replicas[0].won", "expected at most", |m| {
                m.routes[1].replicas[0].won = COUNT_MAX + 1;
            }),
            ("routes[1].replicas[0].primary.done", "shortest form", |m| {
                let done = vec![0x80, 0];
                m.routes[1].replicas[0].primary = Some(proto::Attempts {
                    done,
                    censored: Vec::new(),
                });
            }),
        ],
    );
}

fn effective(report: &mut proto::Report) -> &mut proto::Effective {
    report.routes[1].effective.as_mut().unwrap()
}

#[test]
fn every_field_of_what_an_agent_does() {
    table::<proto::Report, Report>(
        report,
        &[
            ("routes[1].effective.mode", "expected off,", |m| {
                effective(m).mode = 0;
            }),
            ("routes[1].effective.threshold_us", "expected from", |m| {
                effective(m).threshold_us = Some(99);
            }),
            ("routes[1].effective.probability", "from 0 to 1", |m| {
                effective(m).probability = f64::NAN;
            }),
            ("routes[1].effective.budget", "at most 0.25", |m| {
                effective(m).budget = -0.1;
            }),
            ("routes[1].effective.cap", "from 0 to", |m| {
                effective(m).cap = f64::INFINITY;
            }),
            ("routes[1].effective.tokens", "from 0 to", |m| {
                effective(m).tokens = -1.0;
            }),
        ],
    );
}

fn totals(report: &mut proto::Report) -> &mut proto::Totals {
    report.routes[2].totals.as_mut().unwrap()
}

#[test]
fn p12_impossible_counters_are_refused_and_named() {
    table::<proto::Report, Report>(
        report,
        &[
            (
                "routes[2].totals",
                "won (3) is above hedged + hedged_again (2)",
                |m| {
                    totals(m).won = 3;
                },
            ),
            ("routes[2].totals", "hedged (4) is above crossed (3)", |m| {
                totals(m).hedged = 4;
            }),
            (
                "routes[2].totals",
                "crossed (11) is above started (10)",
                |m| totals(m).crossed = 11,
            ),
            ("routes[2].totals", "finished (11) is above started", |m| {
                totals(m).finished = 11;
            }),
            (
                "routes[2].totals",
                "push_back (1000) is above started + crossed + hedged_again + hedged_on_error (13)",
                |m| totals(m).push_back = 1000,
            ),
            (
                "routes[2].totals",
                "primary_finished (11) is above started (10)",
                |m| totals(m).primary_finished = 11,
            ),
            ("routes[2].totals.started", "expected at most", |m| {
                totals(m).started = u64::MAX;
            }),
            (
                "routes[2].totals.refused.no_permit",
                "expected at most",
                |m| {
                    totals(m).refused = Some(proto::Refusals {
                        no_permit: u64::MAX,
                        ..proto::Refusals::default()
                    });
                },
            ),
        ],
    );
}

#[test]
fn b43_a_foreign_bucket_layout_is_refused_and_acknowledged_by_its_sequence() {
    for foreign in [0, LAYOUT_ID + 1, u32::MAX] {
        let report = proto::Report {
            histogram_layout: foreign,
            ..report()
        };
        let refused = SentReport::try_from(report).unwrap_err();
        assert_eq!(refused.sequence.0, 42);
        assert_eq!(refused.held_hash, 7);
        assert_eq!(
            refused.reason.as_str(),
            format!("histogram_layout: {foreign} is not a known histogram layout: expected 1")
        );
    }
}

#[test]
fn a_bad_report_does_not_end_the_stream() {
    let bad = proto::Report {
        covers_us: 0,
        ..report()
    };
    let message = proto::AgentMessage {
        kind: Some(proto::agent_message::Kind::Report(bad)),
    };
    let received: ReceivedAgentMessage = agent_message(message).unwrap().unwrap();
    let AgentMessage::Report(Err(refused)) = received else {
        panic!("{received:?}")
    };
    assert!(
        refused.reason.as_str().starts_with("covers_us: "),
        "{}",
        refused.reason
    );
}

#[test]
fn every_field_of_what_a_controller_says() {
    table::<proto::Welcome, Welcome>(
        || good::welcome().into(),
        &[
            ("controller", "printable ASCII", |m| {
                m.controller = "\r\n".into();
            }),
            ("report_interval_ms", "expected from 10ms to 60s", |m| {
                m.report_interval_ms = 0;
            }),
            ("heartbeat_ms", "expected from 10ms to 10s", |m| {
                m.heartbeat_ms = 10_001;
            }),
            ("lease_ms", "expected from 1s to 3600s", |m| m.lease_ms = 0),
            ("lease_ms", "expected from 1s to 3600s", |m| {
                m.lease_ms = u64::MAX;
            }),
        ],
    );
    table::<proto::ReportAck, ReportAck>(
        proto::ReportAck::default,
        &[("refusal", "at most 512", |m| {
            m.refusal = Some("x".repeat(513));
        })],
    );
    let kind = proto::controller_message::Kind::ComeBack(proto::ComeBack {
        after_ms: 3_600_001,
        ..proto::ComeBack::default()
    });
    let error = controller_message(proto::ControllerMessage { kind: Some(kind) }).unwrap_err();
    assert_eq!(error.field, "come_back.after_ms");
    let status = tonic::Status::from(error);
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(
        status.message().starts_with("come_back.after_ms: "),
        "{status}"
    );
}

fn live(directive: &mut proto::Directive) -> &mut proto::LiveValues {
    directive.live.as_mut().unwrap()
}

fn arming(directive: &mut proto::Directive) -> &mut proto::Arming {
    live(directive).arming.as_mut().unwrap()
}

fn standing(directive: &mut proto::Directive) -> &mut proto::Standing {
    directive.standing.as_mut().unwrap()
}

fn directive() -> proto::Directive {
    good::directive("catalog").into()
}

#[test]
fn b60_every_field_that_is_empty() {
    table::<proto::Directive, Directive>(
        directive,
        &[
            ("route", "is missing", |m| m.route = None),
            ("route.dependency", "must not be blank", |m| {
                m.route.as_mut().unwrap().dependency.clear();
            }),
            ("stamp", "is missing", |m| m.stamp = None),
            ("mode", "is missing", |m| m.mode = 0),
            ("live", "is missing", |m| m.live = None),
            ("live.threshold_us", "expected from", |m| {
                live(m).threshold_us = Some(0);
            }),
            ("live.probability", "is missing", |m| {
                live(m).probability = None;
            }),
            ("live.budget", "is missing", |m| live(m).budget = None),
            ("live.cap", "is missing", |m| live(m).cap = None),
            ("standing", "is missing", |m| m.standing = None),
            ("standing.percentile", "is missing", |m| {
                standing(m).percentile = None;
            }),
            ("standing.holdout", "is missing", |m| {
                standing(m).holdout = None;
            }),
            ("standing.error_limit", "is missing", |m| {
                standing(m).error_limit = None;
            }),
            ("standing.threshold_min_us", "expected", |m| {
                standing(m).threshold_min_us = Some(0);
            }),
            ("standing.threshold_max_us", "expected", |m| {
                standing(m).threshold_max_us = Some(0);
            }),
            ("standing.lease_ms", "expected from 1s", |m| {
                standing(m).lease_ms = 0;
            }),
            ("probation[1]", "must not be blank", |m| {
                m.probation.push(String::new());
            }),
        ],
    );
}

#[test]
fn p08_arming_and_a_start_credit_are_within_their_limits() {
    table::<proto::Directive, Directive>(
        directive,
        &[
            ("live.arming.share", "above 0 and below 1", |m| {
                arming(m).share = 0.0;
            }),
            ("live.arming.share", "above 0 and below 1", |m| {
                arming(m).share = 1.0;
            }),
            ("live.arming.share", "above 0 and below 1", |m| {
                arming(m).share = f64::NAN;
            }),
            ("live.arming.epoch_ms", "from 1s to 600s", |m| {
                arming(m).epoch_ms = 999;
            }),
            ("live.arming.epoch_ms", "from 1s to 600s", |m| {
                arming(m).epoch_ms = u64::MAX;
            }),
            ("start_credit", "from 0 to 10000", |m| m.start_credit = -1.0),
            ("start_credit", "from 0 to 10000", |m| {
                m.start_credit = 10_001.0;
            }),
            ("start_credit", "from 0 to 10000", |m| {
                m.start_credit = f64::NAN;
            }),
        ],
    );
}

#[test]
fn p08_hard_limits_hold_whatever_is_pushed() {
    table::<proto::Directive, Directive>(
        directive,
        &[
            ("live.budget", "at most 0.25", |m| {
                live(m).budget = Some(0.251);
            }),
            ("live.budget", "at most 0.25", |m| {
                live(m).budget = Some(-0.08);
            }),
            ("live.budget", "at most 0.25", |m| {
                live(m).budget = Some(f64::NAN);
            }),
            ("live.budget", "at most 0.25", |m| {
                live(m).budget = Some(f64::INFINITY);
            }),
            ("live.budget", "at most 0.25", |m| {
                live(m).budget = Some(f64::NEG_INFINITY);
            }),
            ("live.probability", "from 0 to 1", |m| {
                live(m).probability = Some(1.01);
            }),
            ("live.probability", "from 0 to 1", |m| {
                live(m).probability = Some(f64::NAN);
            }),
            ("live.cap", "from 0 to 10000", |m| {
                live(m).cap = Some(10_001.0);
            }),
            ("live.cap", "from 0 to 10000", |m| {
                live(m).cap = Some(f64::NAN);
            }),
            ("live.threshold_us", "expected from 100", |m| {
                live(m).threshold_us = Some(99);
            }),
            ("live.threshold_us", "to 3600s", |m| {
                live(m).threshold_us = Some(3_600_000_001);
            }),
            ("live.threshold_us", "to 3600s", |m| {
                live(m).threshold_us = Some(u64::MAX);
            }),
            ("standing.percentile", "below 1", |m| {
                standing(m).percentile = Some(95.0);
            }),
            ("standing.holdout", "from 0 to 1", |m| {
                standing(m).holdout = Some(-0.01);
            }),
            ("standing.attempts", "expected 2 or 3", |m| {
                standing(m).attempts = 4;
            }),
            ("standing.error_limit", "from 0 to 1", |m| {
                standing(m).error_limit = Some(5.0);
            }),
            (
                "standing.threshold_max_us",
                "is below threshold_min_us",
                |m| {
                    standing(m).threshold_max_us = Some(4_999);
                },
            ),
            ("standing.lease_ms", "to 3600s", |m| {
                standing(m).lease_ms = u64::MAX;
            }),
            ("probation", "at most 256", |m| {
                m.probation = vec!["r".into(); 257];
            }),
        ],
    );
}
