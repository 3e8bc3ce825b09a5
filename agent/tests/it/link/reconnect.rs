//! Streams that end, fall silent or never begin.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hedgerow_agent::{Attempt, Call};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::session::{
    AgentMessage, ComeBack, ComeBackReason, ControllerMessage, ReceivedAgentMessage, SentReport,
};

use super::controller::{Controller, Session};
use super::proxy::{Proxy, Way};
use super::{agent, applied, directive, held, route, stamp};

const BEAT: Duration = Duration::from_secs(1);

/// The next report, not acknowledged.
async fn unanswered_report(session: &mut Session) -> SentReport {
    loop {
        if let Some(AgentMessage::Report(report)) = session.next().await {
            return report.expect("a good report");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b45_a_report_whose_acknowledgement_was_lost_comes_again_with_its_sequence() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let _catalog = route(&agent, "catalog");
    let mut session = controller.welcome().await;
    let first = session.report().await;
    let lost = unanswered_report(&mut session).await;
    assert_eq!(lost.report.sequence, first.report.sequence.next());
    let instance = session.hello.instance;
    session.close();

    let mut session = controller.welcome().await;
    assert_eq!(session.hello.instance, instance);
    assert_eq!(session.report().await.report, lost.report, "word for word");
    assert_eq!(
        session.report().await.report.sequence,
        lost.report.sequence.next()
    );
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p13_every_call_is_counted_once_over_lost_answers_and_new_streams() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let catalog = route(&agent, "catalog");
    let call = async || {
        let attempts = |_: Attempt| async { Ok::<_, ()>(()) };
        catalog.call(Call::idempotent(), attempts).await.unwrap();
    };
    // What a controller applies: each sequence once, however often it comes.
    let mut applied = BTreeMap::new();
    let mut made = 0;
    for stream in 0..4 {
        let mut session = controller.welcome().await;
        for _ in 0..3 {
            call().await;
            made += 1;
            let sent = session.report().await;
            applied.insert(sent.report.sequence, sent.report);
        }
        // Taken, but the answer is lost with the stream: it comes again on the next one.
        call().await;
        made += 1;
        let sent = unanswered_report(&mut session).await;
        let known = applied.insert(sent.report.sequence, sent.report);
        assert!(known.is_none(), "stream {stream}");
        session.close();
    }
    let mut session = controller.welcome().await;
    let last = session.report().await.report;
    applied.insert(last.sequence, last);
    let newest = session.report().await.report;
    assert_eq!(
        newest.routes[0].totals.started, made,
        "cumulative, never back"
    );
    applied.insert(newest.sequence, newest);
    let sequences: Vec<u64> = applied.keys().map(|sequence| sequence.0).collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
    let counted: u64 = applied
        .values()
        .flat_map(|report| &report.routes)
        .map(|route| route.treated.count())
        .sum();
    assert_eq!(counted, made);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b50_identity_and_what_is_held_are_in_the_first_message_of_every_stream() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let _catalog = route(&agent, "catalog");
    let mut session = controller.welcome().await;
    let known = session.hello.clone();
    session.push(vec![directive("catalog", stamp(1, 3, 1), Mode::On)]);
    session.until(applied).await;
    session.close();

    // The greeting is lost: the controller ends the stream without having answered it.
    controller.accept().await.close();

    let session = controller.welcome().await;
    assert_eq!(session.hello.instance, known.instance);
    assert_eq!(session.hello.incarnation, known.incarnation);
    assert_eq!(session.hello.held.len(), 1);
    assert_eq!(session.hello.held[0].stamp, stamp(1, 3, 1));
    assert!(
        session.metadata.get("authorization").is_some(),
        "the token as well"
    );
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b55_a_half_open_stream_is_left_and_the_agent_attaches_anew() {
    let mut controller = Controller::start().await;
    let proxy = Proxy::start(Way::To(controller.address())).await;
    let agent = agent(&proxy.url()).await;
    let catalog = route(&agent, "catalog");
    let mut session = controller.accept().await;
    session.welcome(Duration::from_millis(300));
    session.push(vec![directive("catalog", stamp(1, 1, 0), Mode::On)]);
    session.until(applied).await;

    // Writes still succeed, into the proxy's buffers; nothing is answered.
    proxy.set(Way::Frozen);
    let frozen = Instant::now();
    while proxy.accepted() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(
            frozen.elapsed() < Duration::from_secs(30),
            "noticed within 30 s"
        );
    }
    assert_eq!(
        held(&catalog),
        (stamp(1, 1, 0), Mode::On),
        "it changed nothing"
    );

    // The second connection was accepted and met silence; that, too, ends.
    proxy.set(Way::Cut);
    proxy.set(Way::To(controller.address()));
    controller.welcome().await.report().await;
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b59_a_controller_that_flaps_is_always_tried_again() {
    let mut controller = Controller::start().await;
    let proxy = Proxy::start(Way::Cut).await;
    let agent = agent(&proxy.url()).await;
    let catalog = route(&agent, "catalog");
    for revision in 1..=5 {
        proxy.set(Way::To(controller.address()));
        let mut session = controller.welcome().await;
        session.push(vec![directive("catalog", stamp(1, revision, 0), Mode::On)]);
        session.until(applied).await;
        assert_eq!(held(&catalog).0, stamp(1, revision, 0));
        proxy.set(Way::Cut);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(
            held(&catalog),
            (stamp(1, revision, 0), Mode::On),
            "kept while it is gone"
        );
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c17_streams_ended_cleanly_are_not_hammered() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let start = Instant::now();
    let mut streams = 0_u32;
    while start.elapsed() < 3 * BEAT {
        if let Ok(session) = tokio::time::timeout(3 * BEAT, controller.welcome()).await {
            streams += 1;
            session.close();
        }
    }
    // Without a wait there would be hundreds. Waits drawn from 0.25, 0.5, 1, 2 ... s leave few; the
    // bound allows for lucky draws.
    assert!((2..=20).contains(&streams), "{streams} streams in 3 s");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p07_come_back_is_waited_for() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let session = controller.welcome().await;
    let after = 2 * BEAT;
    session.send(ControllerMessage::ComeBack(ComeBack {
        after,
        reason: ComeBackReason::Draining,
    }));
    let sent_away = Instant::now();
    controller.welcome().await;
    // The agent's clock and this one start a moment apart.
    assert!(
        sent_away.elapsed() >= after * 9 / 10,
        "{:?}",
        sent_away.elapsed()
    );
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c18_two_agents_in_one_process_are_two_and_do_not_kick_each_other() {
    let mut controller = Controller::start().await;
    let first = agent(&controller.url()).await;
    let mut first_session = controller.welcome().await;
    let second = agent(&controller.url()).await;
    let mut second_session = controller.welcome().await;
    assert_ne!(first_session.hello.instance, second_session.hello.instance);
    for sequence in 1..=5 {
        assert_eq!(first_session.report().await.report.sequence.0, sequence);
        assert_eq!(second_session.report().await.report.sequence.0, sequence);
    }
    assert!(
        !controller.is_called_within(BEAT).await,
        "both stay where they are"
    );
    tokio::join!(first.shutdown(), second.shutdown());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_stops_says_goodbye_after_its_last_report() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let mut session = controller.welcome().await;
    session.report().await;
    let stopping = tokio::spawn(async move { agent.shutdown().await });
    let mut last: Vec<ReceivedAgentMessage> = Vec::new();
    while let Some(message) = session.next().await {
        last.push(message);
    }
    assert!(
        matches!(last.last(), Some(AgentMessage::Goodbye(_))),
        "{last:?}"
    );
    session.close();
    stopping.await.unwrap();
    assert!(
        !controller.is_called_within(BEAT).await,
        "and it stays away"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b56_a_controller_that_writes_and_does_not_read_is_left_and_nothing_piles_up() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let names: Vec<String> = (0..20).map(|n| format!("{}{n}", "d".repeat(120))).collect();
    let _routes: Vec<_> = names.iter().map(|name| route(&agent, name)).collect();
    let mut session = controller.welcome().await;
    let _deaf = session.deafen().await;
    // Each answer is some 3 kB. The controller goes on talking, so silence ends nothing: only the
    // full outbox does.
    let start = Instant::now();
    let anew = loop {
        let set = names
            .iter()
            .map(|name| directive(name, stamp(1, 1, 0), Mode::On));
        session.push(set.collect());
        let moment = Duration::from_millis(1);
        if let Ok(anew) = tokio::time::timeout(moment, controller.accept()).await {
            break anew;
        }
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "everything piles up"
        );
    };
    assert_eq!(anew.hello.instance, session.hello.instance);
    agent.shutdown().await;
}
