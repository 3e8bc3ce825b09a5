//! Messages by the contract's structure, good ones and nearly good ones.

use hedgerow_protocol::wire::proto;
use proto::controller_message::Kind;

use super::dice::Dice;

/// The routes of the agent under test; further names are nobody's.
pub(super) const ROUTES: [(&str, &str); 3] =
    [("catalog", "get"), ("catalog", "put"), ("search", "query")];

/// A message that an agent can follow, or nearly.
pub(super) fn message(dice: &mut Dice) -> proto::ControllerMessage {
    let kind = match dice.below(16) {
        0 => Kind::Welcome(welcome(dice)),
        1 => Kind::ReportAck(proto::ReportAck {
            sequence: dice.count(1),
            refusal: dice.percent(30).then(|| name(dice)),
        }),
        2 => Kind::HeartbeatAck(proto::HeartbeatAck {
            number: dice.count(1),
        }),
        3 => Kind::ComeBack(proto::ComeBack {
            after_ms: dice.count(500),
            reason: dice.below(6) as i32,
        }),
        _ => Kind::Directives(set(dice)),
    };
    proto::ControllerMessage {
        kind: dice.percent(99).then_some(kind),
    }
}

/// What a stream begins with.
pub(super) fn greeting(dice: &mut Dice) -> proto::ControllerMessage {
    proto::ControllerMessage {
        kind: Some(Kind::Welcome(welcome(dice))),
    }
}

fn welcome(dice: &mut Dice) -> proto::Welcome {
    proto::Welcome {
        controller: "controller-1".to_owned(),
        epoch: dice.count(1),
        report_interval_ms: dice.count(1000),
        heartbeat_ms: dice.count(5000),
        lease_ms: dice.count(30_000),
        resyncing: dice.percent(10),
    }
}

fn set(dice: &mut Dice) -> proto::DirectiveSet {
    let count = dice.pick(&[0, 1, 1, 2, 3, 3, 3, 5, 64, 65]);
    proto::DirectiveSet {
        nonce: dice.count(1),
        directives: (0..count).map(|at| directive(at, dice)).collect(),
        empty_is_meant: dice.percent(if count == 0 { 70 } else { 10 }),
    }
}

fn name(dice: &mut Dice) -> String {
    match dice.below(40) {
        0 => "<b>".to_owned(),
        1 => "x".repeat(129),
        2 => String::new(),
        3 => "__other__".to_owned(),
        4 => "..".to_owned(),
        n => format!("r{n}:80"),
    }
}

fn directive(at: usize, dice: &mut Dice) -> proto::Directive {
    let (dependency, operation) = match ROUTES.get(at) {
        Some((dependency, operation)) if dice.percent(95) => {
            ((*dependency).to_owned(), (*operation).to_owned())
        }
        _ => (name(dice), format!("op-{at}")),
    };
    let stamp = proto::Stamp {
        epoch: 1 + dice.below(2),
        revision: dice.below(4),
        mode_sequence: dice.count_below(5),
    };
    proto::Directive {
        route: dice.percent(99).then_some(proto::Route {
            dependency,
            operation,
        }),
        stamp: dice.percent(99).then_some(stamp),
        mode: dice.pick(&[0, 1, 1, 2, 3, 4, 4, 4, 4, 5, -1]),
        reason: dice.below(10) as i32,
        live: dice.percent(99).then(|| live(dice)),
        standing: dice.percent(99).then(|| standing(dice)),
        probation: {
            let count = dice.pick(&[0, 0, 0, 0, 0, 1, 2, 256, 257]);
            (0..count).map(|_| name(dice)).collect()
        },
        start_credit: {
            let usual = dice.pick(&[0.0, 0.0, 0.0, 1.0, 3.0]);
            dice.number(usual)
        },
    }
}

fn live(dice: &mut Dice) -> proto::LiveValues {
    let mut some = |value| dice.percent(99).then_some(value);
    let (has_threshold, probability, budget, cap) = (some(1.0), some(1.0), some(0.08), some(20.0));
    proto::LiveValues {
        tick: dice.count_below(8),
        threshold_us: has_threshold.and_then(|_| {
            let usual = dice.pick(&[100, 250, 50_000, 2_000_000]);
            dice.percent(90).then(|| dice.count(usual))
        }),
        probability: probability.map(|it| dice.number(it)),
        budget: budget.map(|it| dice.number(it)),
        cap: cap.map(|it| dice.number(it)),
        arming: dice.percent(30).then(|| arming(dice)),
    }
}

fn arming(dice: &mut Dice) -> proto::Arming {
    proto::Arming {
        share: dice.number(0.3),
        epoch_ms: dice.count(1000),
        seed: dice.below(3),
    }
}

fn standing(dice: &mut Dice) -> proto::Standing {
    let usual = dice.pick(&[0, 2, 3]);
    let attempts = dice.count(usual);
    let mut some = |value| dice.percent(99).then_some(value);
    let (percentile, holdout, limit) = (some(0.95), some(0.01), some(0.05));
    proto::Standing {
        percentile: percentile.map(|it| dice.number(it)),
        holdout: holdout.map(|it| dice.number(it)),
        error_limit: limit.map(|it| dice.number(it)),
        threshold_min_us: dice.percent(20).then(|| dice.count(1000)),
        threshold_max_us: dice.percent(20).then(|| dice.count(500_000)),
        lease_ms: dice.count(30_000),
        attempts: attempts as u32,
        hedge_on_error: dice.percent(50),
    }
}
