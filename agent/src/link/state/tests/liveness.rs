//! Streams that begin, live, fall silent and end.

use super::*;

#[test]
fn b55_a_controller_that_accepts_and_is_silent_is_left_within_the_greetings_limit() {
    let mut rig = Rig::new();
    rig.until_open();
    assert!(!dropped(&rig.pass(GREETING_MAX * 9 / 10)));
    let outputs = rig.pass(GREETING_MAX / 10);
    assert!(dropped(&outputs), "{outputs:?}");
    assert!(outputs.contains(&Output::Notice(Notice::Down(Lost::NoWelcome))));
    assert!(rig.until_open() <= CAP);
}

#[test]
fn a_report_unanswered_for_30_s_ends_a_stream_that_otherwise_lives() {
    let mut rig = Rig::new();
    rig.attach();
    for number in 1..=5 {
        let outputs = rig.pass(5 * SECOND);
        assert!(!dropped(&outputs));
        rig.message(ControllerMessage::HeartbeatAck(HeartbeatAck { number }));
    }
    let outputs = rig.pass(5 * SECOND);
    assert!(outputs.contains(&Output::Notice(Notice::Down(Lost::ReportUnanswered))));
}

#[test]
fn p09_silence_is_noticed_within_30_s_whatever_heartbeat_was_asked_for() {
    for (heartbeat, expected) in [
        (SECOND, 3 * SECOND),
        (10 * SECOND, SILENCE_MAX),
        (300 * SECOND, SILENCE_MAX),
    ] {
        let mut rig = Rig::new();
        rig.until_open();
        rig.message(welcome(SECOND, heartbeat));
        rig.ack(1);
        let outputs = rig.pass(expected * 29 / 30);
        assert!(!dropped(&outputs), "{heartbeat:?}");
        let beats = sent(&outputs)
            .iter()
            .filter(|message| matches!(message, AgentMessage::Heartbeat(_)))
            .count();
        assert_eq!(beats, 2, "{heartbeat:?}: two went unanswered");
        assert!(dropped(&rig.pass(expected / 30)), "{heartbeat:?}");
    }
}

#[test]
fn p09_any_word_is_a_sign_of_life_also_one_of_a_newer_version() {
    let mut rig = Rig::new();
    rig.until_open();
    // Silence is 15 s.
    rig.message(welcome(SECOND, 5 * SECOND));
    for sequence in 1..=20 {
        assert!(!dropped(&rig.pass(10 * SECOND)));
        rig.input(Input::Message(None));
        assert!(!dropped(&rig.pass(10 * SECOND)));
        rig.ack(sequence);
    }
}

#[test]
fn c17_a_clean_end_waits_like_any_other_and_longer_each_time() {
    let mut rig = Rig::new();
    rig.entropy = u64::MAX;
    let mut waits = Vec::new();
    for _ in 0..8 {
        rig.attach();
        rig.pass(SECOND);
        rig.input(Input::Ended(Lost::Closed));
        waits.push(rig.until_open());
        // The attach above opens anew: leave this opening first.
        rig.input(Input::Ended(Lost::Closed));
    }
    assert!(waits[0] <= BASE && waits[0] > BASE / 2, "{waits:?}");
    assert!(
        waits[1..].windows(2).all(|pair| pair[0] <= pair[1]),
        "{waits:?}"
    );
    assert!(waits[7] <= CAP && waits[7] > CAP * 9 / 10, "{waits:?}");

    rig.attach();
    for sequence in 1..=STEADY.as_secs() {
        rig.ack(sequence);
        assert!(!dropped(&rig.pass(SECOND)));
    }
    rig.input(Input::Ended(Lost::Closed));
    assert!(rig.until_open() <= BASE, "after a stream that held");
}

#[test]
fn p07_a_controllers_come_back_is_kept_in_greeting_and_when_attached() {
    for attached in [false, true] {
        let mut rig = Rig::new();
        if attached {
            rig.attach();
        } else {
            rig.until_open();
        }
        let after = 20 * SECOND;
        let come_back = ComeBack {
            after,
            reason: ComeBackReason::Draining,
        };
        assert!(dropped(
            &rig.message(ControllerMessage::ComeBack(come_back))
        ));
        let waited = rig.until_open();
        assert!(waited >= after && waited <= after + CAP, "{waited:?}");
    }
}

#[test]
fn b59_a_flapping_controller_is_always_tried_again_and_told_of_once_an_episode() {
    let mut rig = Rig::new();
    let mut notices = Vec::new();
    let down = |outputs: Vec<Output>| {
        outputs
            .into_iter()
            .filter(|out| matches!(out, Output::Notice(Notice::Down(_))))
    };
    for _ in 0..500 {
        rig.until_open();
        notices.extend(down(
            rig.input(Input::Ended(Lost::Unreachable("refused".to_owned()))),
        ));
    }
    assert_eq!(notices.len(), 1);
    rig.until_open();
    notices.extend(down(
        rig.input(Input::Ended(Lost::TokenRefused("no".to_owned()))),
    ));
    assert_eq!(notices.len(), 2, "another reason is news");
    rig.attach();
    notices.extend(down(rig.input(Input::Ended(Lost::Closed))));
    assert_eq!(notices.len(), 3, "a new episode");
    assert_eq!(rig.host.acknowledged.lock().len(), 0);
}

#[test]
fn p01_the_host_is_ticked_each_second_without_a_controller_too() {
    let mut rig = Rig::new();
    rig.pass(60 * SECOND);
    assert_eq!(*rig.host.ticks.lock(), 60);
    assert_eq!(*rig.host.heard.lock(), 0);
}

#[test]
fn the_first_message_is_welcome_or_come_back() {
    let mut rig = Rig::new();
    rig.until_open();
    let outputs = rig.message(set(1, vec![directive("a", stamp(1, 1))]));
    assert!(outputs.contains(&Output::Notice(Notice::Down(Lost::OutOfTurn))));
    assert_eq!(*rig.host.applies.lock(), 0);
}

#[test]
fn leaving_says_what_the_last_interval_saw_and_goodbye() {
    let mut rig = Rig::new();
    rig.attach();
    rig.ack(1);
    let outputs = rig.input(Input::Shutdown);
    assert_eq!(reports(&outputs)[0].report.sequence, Sequence(2));
    assert!(matches!(
        sent(&outputs).last(),
        Some(AgentMessage::Goodbye(_))
    ));
    assert_eq!(outputs.last(), Some(&Output::Finish));

    let mut rig = Rig::new();
    assert_eq!(rig.input(Input::Shutdown), [Output::Finish]);
}
