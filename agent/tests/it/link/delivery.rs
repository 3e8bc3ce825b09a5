//! Directives: order, refusals, healing.

use std::time::Duration;

use hedgerow_agent::Agent;
use hedgerow_protocol::directive::{Directive, DirectiveSet, Mode, OffReason};
use hedgerow_protocol::session::{
    AgentMessage, ControllerMessage, ReceivedAgentMessage, ReportAck, Text,
};
use hedgerow_protocol::wire::proto;
use prometheus::{Registry, TextEncoder};

use super::controller::{Controller, Session};
use super::proxy::{Proxy, Way};
use super::{TOKEN, agent, applied, directive, hash, held, refusals, refused, route, stamp};

const A_WHILE: Duration = Duration::from_secs(1);

/// Delivers one directive and says what it was answered: its route in force, or the refusal.
async fn deliver(session: &mut Session, directive: Directive) -> Result<(), String> {
    let nonce = session.push(vec![directive]);
    let mut reason = None;
    let applied = session
        .until(|message| {
            let this = refused(message).filter(|refused| refused.nonce == nonce);
            reason = this
                .map(|refused| refused.reason.to_string())
                .or(reason.take());
            applied(message).filter(|applied| applied.nonce == nonce)
        })
        .await;
    reason.map_or_else(
        || {
            assert_eq!(applied.routes.len(), 1, "taken or refused");
            Ok(())
        },
        Err,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b47_one_refusal_then_the_agent_waits_for_a_newer_one() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let catalog = route(&agent, "catalog");
    let mut session = controller.welcome().await;
    deliver(&mut session, directive("catalog", stamp(1, 7, 0), Mode::On))
        .await
        .unwrap();

    for _ in 0..5 {
        session.push(vec![directive("catalog", stamp(1, 5, 0), Mode::Observing)]);
    }
    let refusals = refusals(&session.collect_for(A_WHILE).await);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert_eq!(refusals[0].stamp, Some(stamp(1, 5, 0)));
    assert!(!refusals[0].reason.is_empty());
    assert_eq!(
        held(&catalog),
        (stamp(1, 7, 0), Mode::On),
        "the last good one stays"
    );

    deliver(
        &mut session,
        directive("catalog", stamp(1, 8, 0), Mode::Observing),
    )
    .await
    .unwrap();
    assert_eq!(held(&catalog), (stamp(1, 8, 0), Mode::Observing));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b49_two_controllers_at_5_and_7_never_pull_an_agent_back() {
    let mut old = Controller::start().await;
    let mut new = Controller::start().await;
    let proxy = Proxy::start(Way::To(new.address())).await;
    let agent = agent(&proxy.url()).await;
    let catalog = route(&agent, "catalog");
    for turn in 0..3 {
        let mut session = new.welcome().await;
        deliver(&mut session, directive("catalog", stamp(1, 7, 2), Mode::On))
            .await
            .unwrap();
        assert_eq!(held(&catalog).0, stamp(1, 7, 2), "turn {turn}");
        proxy.set(Way::To(old.address()));
        session.close();

        let mut session = old.welcome().await;
        assert_eq!(
            session.hello.held[0].stamp,
            stamp(1, 7, 2),
            "the hello says what is held"
        );
        let reason = deliver(
            &mut session,
            directive("catalog", stamp(1, 5, 9), Mode::Observing),
        )
        .await;
        assert!(reason.is_err(), "turn {turn}");
        assert_eq!(held(&catalog), (stamp(1, 7, 2), Mode::On), "turn {turn}");
        proxy.set(Way::To(new.address()));
        session.close();
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b52_a_restored_store_begins_a_higher_epoch_and_is_followed_without_a_loop() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let catalog = route(&agent, "catalog");
    let mut session = controller.welcome().await;
    deliver(&mut session, directive("catalog", stamp(1, 9, 4), Mode::On))
        .await
        .unwrap();
    for (restored, mode) in [
        (stamp(2, 3, 1), Mode::Observing),
        (stamp(3, 0, 0), Mode::On),
    ] {
        deliver(&mut session, directive("catalog", restored, mode))
            .await
            .unwrap();
        assert_eq!(held(&catalog), (restored, mode));
    }
    let refused = deliver(
        &mut session,
        directive("catalog", stamp(1, 10, 5), Mode::On),
    )
    .await;
    assert!(refused.is_err(), "the old store's life is over");

    // Ten reports and a heartbeat a second are what it says anyway.
    let messages = session.collect_for(A_WHILE).await;
    assert!(
        messages.len() <= 15,
        "a hot loop: {} messages",
        messages.len()
    );
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b53_a_change_during_a_cut_is_held_after_the_reconnect() {
    let mut controller = Controller::start().await;
    let proxy = Proxy::start(Way::To(controller.address())).await;
    let agent = agent(&proxy.url()).await;
    let catalog = route(&agent, "catalog");
    let mut session = controller.welcome().await;
    deliver(&mut session, directive("catalog", stamp(1, 1, 0), Mode::On))
        .await
        .unwrap();

    proxy.set(Way::Cut);
    // Cut when the controller's side has seen it: what is pushed before may still get through.
    while session.next().await.is_some() {}
    session.push(vec![directive("catalog", stamp(1, 2, 0), Mode::Observing)]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(
        held(&catalog),
        (stamp(1, 1, 0), Mode::On),
        "nothing came, nothing changed"
    );

    proxy.set(Way::To(controller.address()));
    let mut session = controller.welcome().await;
    assert_eq!(session.hello.held[0].stamp, stamp(1, 1, 0));
    deliver(
        &mut session,
        directive("catalog", stamp(1, 2, 0), Mode::Observing),
    )
    .await
    .unwrap();
    assert_eq!(held(&catalog), (stamp(1, 2, 0), Mode::Observing));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p06_every_report_and_heartbeat_says_what_is_held_so_that_a_lost_push_shows() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let _routes = (route(&agent, "catalog"), route(&agent, "search"));
    let mut session = controller.welcome().await;
    assert_eq!(session.report().await.held_hash, hash(&[]), "nothing yet");

    // The push of `search` is the one that gets lost.
    deliver(&mut session, directive("catalog", stamp(1, 1, 0), Mode::On))
        .await
        .unwrap();
    let wanted = hash(&[("catalog", stamp(1, 1, 0)), ("search", stamp(1, 4, 0))]);
    let beat = session
        .until(|message| match message {
            AgentMessage::Heartbeat(heartbeat) => Some(heartbeat.held_hash),
            _ => None,
        })
        .await;
    assert_eq!(beat, hash(&[("catalog", stamp(1, 1, 0))]));
    assert_ne!(beat, wanted);

    session.push(vec![
        directive("catalog", stamp(1, 1, 0), Mode::On),
        directive("search", stamp(1, 4, 0), Mode::On),
    ]);
    session.until(applied).await;
    session.report().await; // may have been on its way already
    assert_eq!(session.report().await.held_hash, wanted);
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b61_sets_with_a_route_twice_or_too_many_are_refused_whole() {
    let newer = |name: &str| directive(name, stamp(1, 4, 0), Mode::Observing);
    refused_whole(vec![newer("catalog"), newer("catalog")]).await;
    refused_whole((0..65).map(|n| newer(&format!("d{n}"))).collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b62_an_empty_set_that_is_not_meant_is_refused_whole() {
    refused_whole(Vec::new()).await;
}

/// The last good directive stays.
async fn refused_whole(set: Vec<Directive>) {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let catalog = route(&agent, "catalog");
    let mut session = controller.welcome().await;
    deliver(&mut session, directive("catalog", stamp(1, 3, 0), Mode::On))
        .await
        .unwrap();

    let nonce = session.push(set);
    let refused = session.until(refused).await;
    assert_eq!((refused.nonce, refused.route), (nonce, None));
    assert!(
        refused.reason.as_str().contains("directives"),
        "{}",
        refused.reason
    );
    assert_eq!(held(&catalog), (stamp(1, 3, 0), Mode::On));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b60_a_partial_directive_is_refused_alone_and_its_neighbour_stands() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let (catalog, search) = (route(&agent, "catalog"), route(&agent, "search"));
    let mut session = controller.welcome().await;
    deliver(&mut session, directive("catalog", stamp(1, 1, 0), Mode::On))
        .await
        .unwrap();

    let mut partial: proto::Directive =
        directive("catalog", stamp(1, 2, 0), Mode::Off(OffReason::Policy)).into();
    partial.live.as_mut().unwrap().budget = None;
    let whole: proto::Directive = directive("search", stamp(1, 2, 0), Mode::On).into();
    session.send_raw(proto::ControllerMessage {
        kind: Some(proto::controller_message::Kind::Directives(
            proto::DirectiveSet {
                nonce: 9,
                directives: vec![partial, whole],
                empty_is_meant: false,
            },
        )),
    });
    let refused = session.until(refused).await;
    assert_eq!((refused.nonce, refused.stamp), (9, Some(stamp(1, 2, 0))));
    assert!(
        refused.reason.as_str().contains("budget"),
        "names the field: {}",
        refused.reason
    );
    assert_eq!(held(&catalog), (stamp(1, 1, 0), Mode::On));
    assert_eq!(held(&search), (stamp(1, 2, 0), Mode::On));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b62_an_empty_set_that_is_meant_lets_go_of_all_but_what_is_off() {
    let mut controller = Controller::start().await;
    let agent = agent(&controller.url()).await;
    let (catalog, search) = (route(&agent, "catalog"), route(&agent, "search"));
    let mut session = controller.welcome().await;
    let off = Mode::Off(OffReason::KillSwitch);
    session.push(vec![
        directive("catalog", stamp(1, 1, 0), Mode::On),
        directive("search", stamp(1, 1, 0), off),
    ]);
    session.until(applied).await;
    session.send(ControllerMessage::Directives(DirectiveSet {
        nonce: 2,
        directives: Vec::new(),
        empty_is_meant: true,
    }));
    let applied = session.until(applied).await;
    assert_eq!((applied.nonce, applied.routes.len()), (2, 0));
    assert_eq!(held(&catalog).1, Mode::Observing);
    assert_eq!(
        held(&search).1,
        off,
        "what a controller switched off only a controller lifts"
    );
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p03_what_was_refused_is_counted_in_the_hosts_registry() {
    let mut controller = Controller::start().await;
    let registry = Registry::new();
    let agent = Agent::builder()
        .service("shop")
        .controller(controller.url())
        .token(TOKEN.to_owned().into())
        .registry(registry.clone())
        .connect()
        .await
        .unwrap();
    let _catalog = route(&agent, "catalog");
    let mut session = controller.welcome().await;
    deliver(&mut session, directive("catalog", stamp(1, 7, 0), Mode::On))
        .await
        .unwrap();
    // The second time it is not told, but counted all the same.
    for _ in 0..2 {
        session.push(vec![directive("catalog", stamp(1, 5, 0), Mode::On)]);
        session.until(applied).await;
    }
    session.push(Vec::new());
    session.until(refused_set).await;
    let sequence = loop {
        if let Some(AgentMessage::Report(Ok(sent))) = session.next().await {
            break sent.report.sequence;
        }
    };
    session.send(ControllerMessage::ReportAck(ReportAck {
        sequence,
        refusal: Some(Text::lossy("totals: made up")),
    }));
    assert!(session.report().await.report.sequence > sequence);

    let text = TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    for line in [
        r#"hedgerow_directives_refused_total{scope="directive"} 2"#,
        r#"hedgerow_directives_refused_total{scope="set"} 1"#,
        "hedgerow_reports_refused_total 1",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    agent.shutdown().await;
}

fn refused_set(message: &ReceivedAgentMessage) -> Option<()> {
    refused(message)
        .filter(|refused| refused.route.is_none())
        .map(drop)
}
