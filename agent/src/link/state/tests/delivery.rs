//! Reports one way, directives the other.

use super::*;

#[test]
fn b45_an_unacknowledged_report_is_sent_again_word_for_word_until_it_is_acknowledged() {
    let mut rig = Rig::new();
    let first = reports(&rig.attach())[0].clone();
    assert_eq!(first.report.sequence, Sequence(1));
    for _ in 0..3 {
        rig.pass(4 * SECOND);
        rig.input(Input::Ended(Lost::Closed));
        let outputs = rig.attach();
        assert_eq!(
            reports(&outputs),
            [&first],
            "the same report, on each new stream"
        );
    }
    assert_eq!(rig.host.covers.lock().len(), 1, "collected once");
    rig.ack(1);
    rig.ack(1);
    assert_eq!(
        *rig.host.acknowledged.lock(),
        [Sequence(1)],
        "a second answer changes nothing"
    );
    let outputs = rig.pass(SECOND);
    assert_eq!(reports(&outputs)[0].report.sequence, Sequence(2));
}

#[test]
fn one_report_is_under_way_and_the_next_covers_the_time_since() {
    let mut rig = Rig::new();
    rig.attach();
    assert_eq!(reports(&rig.pass(5 * SECOND)).len(), 0);
    rig.ack(7);
    assert_eq!(
        reports(&rig.pass(SECOND)).len(),
        0,
        "that was another report"
    );
    rig.ack(1);
    let outputs = rig.pass(Duration::ZERO);
    assert_eq!(reports(&outputs)[0].report.sequence, Sequence(2));
    assert_eq!(
        *rig.host.covers.lock(),
        [Duration::from_micros(1), 6 * SECOND]
    );
}

#[test]
fn a_refused_report_is_done_with_and_told_once() {
    let mut rig = Rig::new();
    rig.attach();
    let reason = Text::lossy("totals: hedged (4) is above crossed (3)");
    let outputs = rig.message(ControllerMessage::ReportAck(ReportAck {
        sequence: Sequence(1),
        refusal: Some(reason.clone()),
    }));
    assert_eq!(outputs, [Output::Notice(Notice::ReportRefused(reason))]);
    assert_eq!(*rig.host.not_taken.lock(), [NotTaken::Report]);
    assert_eq!(reports(&rig.pass(SECOND))[0].report.sequence, Sequence(2));
}

#[test]
fn p06_what_is_held_goes_with_every_report_and_heartbeat() {
    let mut rig = Rig::new();
    rig.attach();
    rig.message(set(
        1,
        vec![directive("a", stamp(1, 3)), directive("b", stamp(1, 1))],
    ));
    rig.ack(1);
    let expected = held_hash([(&route("a"), stamp(1, 3)), (&route("b"), stamp(1, 1))]);
    let outputs = rig.pass(SECOND);
    assert_eq!(reports(&outputs)[0].held_hash, expected);
    let outputs = rig.pass(9 * SECOND);
    assert_eq!(
        sent(&outputs),
        [&AgentMessage::Heartbeat(Heartbeat {
            number: 1,
            held_hash: expected
        })]
    );
}

#[test]
fn b47_one_refusal_for_a_stamp_then_wait_for_a_newer_one() {
    let mut rig = Rig::new();
    rig.attach();
    rig.message(set(1, vec![directive("a", stamp(1, 7))]));
    for nonce in 2..10 {
        let outputs = rig.message(set(nonce, vec![directive("a", stamp(1, 5))]));
        let expected = usize::from(nonce == 2);
        assert_eq!(refusals(&outputs).len(), expected, "delivery {nonce}");
        let Some(AgentMessage::Applied(applied)) = sent(&outputs).last() else {
            panic!("a set is answered: {outputs:?}");
        };
        assert_eq!((applied.nonce, applied.routes.len()), (nonce, 0));
    }
    let outputs = rig.message(set(10, vec![directive("a", stamp(1, 6))]));
    assert_eq!(
        refusals(&outputs)[0].stamp,
        Some(stamp(1, 6)),
        "another stamp is news"
    );
    let outputs = rig.message(set(11, vec![directive("a", stamp(1, 8))]));
    assert_eq!(refusals(&outputs).len(), 0);
    assert_eq!(rig.host.held()[0].1, stamp(1, 8));

    rig.input(Input::Ended(Lost::Closed));
    rig.attach();
    let outputs = rig.message(set(1, vec![directive("a", stamp(1, 6))]));
    assert_eq!(
        refusals(&outputs).len(),
        1,
        "another controller may not know yet"
    );
}

#[test]
fn p03_each_directive_stands_or_falls_alone() {
    let mut rig = Rig::new();
    rig.attach();
    let bad = RefusedDirective {
        route: Some(route("b")),
        stamp: Some(stamp(1, 2)),
        reason: Text::lossy("live.budget: 2 is not a budget"),
    };
    let outputs = rig.message(ControllerMessage::Directives(Ok(DecodedSet {
        nonce: 4,
        empty_is_meant: false,
        accepted: vec![directive("a", stamp(1, 2)), directive("c", stamp(1, 2))],
        refused: vec![bad.clone()],
    })));
    let routes = ["a", "c"]
        .map(|name| AppliedRoute {
            route: route(name),
            stamp: stamp(1, 2),
        })
        .to_vec();
    let refused = Refused {
        nonce: 4,
        route: bad.route,
        stamp: bad.stamp,
        reason: bad.reason,
    };
    assert_eq!(
        sent(&outputs),
        [
            &AgentMessage::Refused(refused),
            &AgentMessage::Applied(Applied { nonce: 4, routes })
        ],
        "what stands is said last, as fleet.proto has it"
    );
    let named: BTreeSet<_> = ["a", "b", "c"].map(route).into();
    assert_eq!(
        *rig.host.delivered.lock(),
        [named],
        "the refused one is named as well"
    );
    assert_eq!(*rig.host.not_taken.lock(), [NotTaken::Directive]);
}

#[test]
fn b61_a_refused_set_changes_nothing_and_is_answered_once() {
    let mut rig = Rig::new();
    rig.attach();
    rig.message(set(1, vec![directive("a", stamp(1, 7))]));
    let before = rig.host.held();
    for nonce in 2..6 {
        let outputs = rig.message(ControllerMessage::Directives(Err(RefusedSet {
            nonce,
            reason: Text::lossy("directives: the set is empty without empty_is_meant"),
        })));
        assert_eq!(refusals(&outputs).len(), usize::from(nonce == 2));
    }
    assert_eq!(
        *rig.host.not_taken.lock(),
        [NotTaken::Set; 4],
        "told once, counted each time"
    );
    assert_eq!(rig.host.held(), before);
    assert_eq!(
        (*rig.host.applies.lock(), rig.host.delivered.lock().len()),
        (1, 1)
    );

    rig.message(set(6, Vec::new()));
    assert_eq!(
        rig.host.delivered.lock().last(),
        Some(&BTreeSet::new()),
        "this one is meant"
    );
}
