//! Directives to agents and reports from them: order, loss, restoring, slowness.

use std::time::Duration;

use hedgerow_core::view::{AgentState, Sync};
use hedgerow_protocol::directive::{Mode, OffReason, Stamp};
use hedgerow_protocol::ids::{Epoch, InstanceId, ModeSequence, Revision, RouteKey};
use hedgerow_protocol::session::{AgentMessage, ControllerMessage, Refused, Text};
use hedgerow_protocol::units::Threshold;
use tonic::Code;

use crate::raw_agent::{RawAgent, connect, hello, open};
use crate::running::{Running, SEARCH_TOKEN, SHOP_TOKEN, hedging, route, settings};

/// An agent that has reported the route and holds what it was told then.
async fn reporting(running: &Running) -> RawAgent {
    let mut agent = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    agent.report(1, &[route()], 0).await;
    agent.until(&route(), |_| true).await;
    agent
}

#[tokio::test]
async fn s01_the_service_follows_from_the_token_and_from_nothing_else() {
    let running = Running::start().await;
    let shop = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    let search = RawAgent::attach(&running.grpc(), SEARCH_TOKEN).await;
    for (agent, service) in [(&shop, "shop"), (&search, "search")] {
        let view = running
            .until("the agent joins", |it| it.agent(agent.instance))
            .await;
        assert_eq!(view.service.as_str(), service);
        assert!(view.peer.starts_with("127.0.0.1:"), "{}", view.peer);
    }
    running.app.stop().await;
}

#[tokio::test]
async fn b45_a_report_whose_acknowledgement_was_lost_is_counted_once() {
    let running = Running::start().await;
    let instance = InstanceId::generate();
    let first = RawAgent::attach_as(&running.grpc(), SHOP_TOKEN, hello(instance, Vec::new())).await;
    first.report(1, &[route()], 100).await;
    running
        .until("the report is counted", |it| {
            it.route(&route()).filter(|it| it.totals.started == 100)
        })
        .await;
    // The acknowledgement is never read: the connection breaks.
    drop(first);

    let mut again =
        RawAgent::attach_as(&running.grpc(), SHOP_TOKEN, hello(instance, Vec::new())).await;
    again.report(1, &[route()], 100).await;
    assert_eq!(again.acknowledged(1).await, None, "done with, all the same");
    again.report(2, &[route()], 150).await;
    assert_eq!(again.acknowledged(2).await, None);
    let view = running
        .until("the next one is counted", |it| {
            it.route(&route()).filter(|it| it.totals.started > 100)
        })
        .await;
    assert_eq!(view.totals.started, 150);
    assert_eq!(running.snapshot().controller.reports_duplicate, 1);
    running.app.stop().await;
}

#[tokio::test]
async fn b47_p03_p04_a_refused_directive_is_shown_and_not_sent_again_until_it_changes() {
    let running = Running::start().await;
    let mut agent = reporting(&running).await;
    let held = agent.held_hash();
    running.set_policy(hedging(0.08)).await;
    let refused = loop {
        let (nonce, directives) = agent.next_set().await;
        let Some(it) = directives
            .into_iter()
            .find(|it| it.stamp.revision == Revision(1))
        else {
            continue;
        };
        agent
            .send(AgentMessage::Refused(Refused {
                nonce,
                route: Some(route()),
                stamp: Some(it.stamp),
                reason: Text::new("budget: not with me").unwrap(),
            }))
            .await;
        break it.stamp;
    };
    let view = running
        .until("the refusal is shown", |it| {
            it.route(&route()).filter(|it| !it.refusals.is_empty())
        })
        .await;
    assert_eq!(
        view.refusals,
        [(agent.instance, "budget: not with me".into())]
    );
    let shown = running.agent(agent.instance).unwrap().routes;
    assert_eq!(shown[0].sync, Sync::Refused("budget: not with me".into()));

    // It goes on saying that it holds the old one. Nothing comes but answers.
    for _ in 0..5 {
        agent.beat(held).await;
        while let Some(message) = agent.next_within(Duration::from_millis(400)).await {
            if let ControllerMessage::Directives(Ok(set)) = message {
                let again = set.accepted.iter().any(|it| it.stamp == refused);
                assert!(!again, "the refused directive came again");
            }
        }
    }
    running.set_policy(hedging(0.05)).await;
    let taken = agent
        .until(&route(), |it| it.stamp.revision == Revision(2))
        .await;
    assert_eq!(taken.stamp.revision, Revision(2));
    running
        .until("it is acked", |it| {
            it.route(&route()).filter(|it| it.acked.n == 1)
        })
        .await;
    running.app.stop().await;
}

#[tokio::test]
async fn b50_what_an_agent_holds_is_in_its_first_message_and_nothing_else_may_come_first() {
    let running = Running::start().await;
    let agent = reporting(&running).await;
    running.set_policy(hedging(0.08)).await;
    let mut agent = agent;
    agent
        .until(&route(), |it| it.stamp.revision == Revision(1))
        .await;
    let (instance, held) = (agent.instance, agent.held.clone());
    drop(agent);

    // Nothing is applied on the new stream, and nothing has to be: the hello said it.
    let again = RawAgent::attach_as(&running.grpc(), SHOP_TOKEN, hello(instance, held)).await;
    running
        .until("known to hold it", |it| {
            let view = it
                .agent(instance)
                .filter(|it| it.state == AgentState::Live)?;
            view.routes
                .iter()
                .any(|it| it.sync == Sync::Applied)
                .then_some(())
        })
        .await;
    drop(again);

    // The hello lost, or overtaken.
    let (outgoing, messages) = tokio::sync::mpsc::channel(4);
    let beat = hedgerow_protocol::session::Heartbeat {
        number: 1,
        held_hash: 0,
    };
    outgoing
        .send(AgentMessage::Heartbeat(beat).into())
        .await
        .unwrap();
    let channel = connect(&running.grpc()).await;
    let mut stream = open(channel, Some(&format!("Bearer {SHOP_TOKEN}")), messages)
        .await
        .unwrap();
    let status = stream.message().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("hello"), "{status}");
    running.app.stop().await;
}

#[tokio::test]
async fn b52_p05_a_restored_store_begins_a_higher_epoch_which_agents_take() {
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    let folder = running.folder.clone();
    running.app.stop().await;
    let path = folder.path().join("hedgerow.db");
    let copy = folder.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();

    let app = hedgerow_control_plane::app::App::start(settings(folder.path(), ""))
        .await
        .unwrap();
    let running = Running {
        app,
        folder: folder.clone(),
    };
    for budget in [0.05, 0.06, 0.07] {
        running.set_policy(hedging(budget)).await;
    }
    let mut agent = reporting(&running).await;
    let newest = agent.held[0].stamp;
    assert_eq!(newest.revision, Revision(4));
    agent.beat(agent.held_hash()).await;
    running.app.stop().await;

    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.path().join(format!("hedgerow.db{suffix}")));
    }
    std::fs::copy(&copy, &path).unwrap();
    let app = hedgerow_control_plane::app::App::start(settings(folder.path(), ""))
        .await
        .unwrap();
    let running = Running { app, folder };
    let hello = hello(agent.instance, agent.held.clone());
    let mut agent = RawAgent::attach_as(&running.grpc(), SHOP_TOKEN, hello).await;
    let directive = agent.until(&route(), |it| it.stamp > newest).await;
    assert_eq!(directive.stamp.revision, Revision(1), "the restored one");
    assert!(directive.stamp.epoch > newest.epoch);

    // And then there is peace.
    let mut sets = 0;
    let quiet = tokio::time::Instant::now() + Duration::from_secs(4);
    while tokio::time::Instant::now() < quiet {
        agent.beat(agent.held_hash()).await;
        while let Some(message) = agent.next_within(Duration::from_millis(300)).await {
            if let ControllerMessage::Directives(Ok(set)) = message {
                sets += 1;
                assert!(set.accepted.iter().all(|it| it.stamp == directive.stamp));
            }
        }
    }
    assert!(sets <= 4, "{sets} sets in 4 s");
    running.app.stop().await;
}

#[tokio::test]
async fn b52_an_agent_that_claims_an_impossible_epoch_does_not_move_the_fleet() {
    let running = Running::start().await;
    let before = running.snapshot().epoch;
    let mut held = reporting(&running).await.held;
    held[0].stamp = Stamp {
        epoch: Epoch(u64::MAX),
        revision: Revision(9),
        mode_sequence: ModeSequence(9),
    };
    let liar = hello(InstanceId::generate(), held);
    let _liar = RawAgent::attach_as(&running.grpc(), SHOP_TOKEN, liar).await;
    let honest = reporting(&running).await;
    assert_eq!(honest.held[0].stamp.epoch, before);
    running.app.stop().await;
}

#[tokio::test]
async fn b53_p06_what_changed_during_a_cut_comes_with_the_new_stream() {
    let running = Running::start().await;
    let agent = reporting(&running).await;
    let (instance, held) = (agent.instance, agent.held.clone());
    drop(agent);
    running.set_policy(hedging(0.08)).await;
    running.set_policy(hedging(0.05)).await;
    let mut agent = RawAgent::attach_as(&running.grpc(), SHOP_TOKEN, hello(instance, held)).await;
    let (_, directives) = agent.next_set().await;
    assert_eq!(
        directives[0].stamp.revision,
        Revision(2),
        "at once, and the newest only"
    );
    running.app.stop().await;
}

#[tokio::test]
async fn b53_p06_a_lost_push_heals_with_the_next_heartbeat() {
    let running = Running::start().await;
    let mut agent = reporting(&running).await;
    running.set_policy(hedging(0.08)).await;
    // The set arrives and is lost inside the agent: it goes on holding the old one.
    while agent.next_set().await.1[0].stamp.revision < Revision(1) {}
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    agent.beat(agent.held_hash()).await;
    agent
        .until(&route(), |it| it.stamp.revision == Revision(1))
        .await;
    running
        .until("it is acked", |it| {
            it.route(&route()).filter(|it| it.acked.n == 1)
        })
        .await;
    running.app.stop().await;
}

#[tokio::test]
async fn b56_an_agent_that_does_not_read_gets_the_latest_and_holds_nobody_up() {
    let running = Running::start().await;
    // Sixty routes of one dependency: a set is some ten kilobytes.
    let routes: Vec<RouteKey> = (0..60)
        .map(|n| RouteKey::new("catalog", &format!("operation-with-a-long-name-{n:03}")).unwrap())
        .collect();
    let slow = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    slow.report(1, &routes, 0).await;
    running
        .until("its routes are known", |it| it.route(&routes[59]))
        .await;
    let orders: u64 = 150;
    for n in 1..=orders {
        running.set_policy(hedging(0.01 + 0.001 * n as f64)).await;
    }
    // Now it reads. What was on its way already comes first, then the newest.
    let mut slow = slow;
    let mut sets = 0;
    loop {
        sets += 1;
        let (_, directives) = slow.next_set().await;
        if directives[0].stamp.revision == Revision(orders) {
            break;
        }
    }
    assert!(
        sets < orders / 2,
        "{sets} sets for {orders} changes: a queue"
    );
    running.app.stop().await;
}

#[tokio::test]
async fn b67_a_stream_that_breaks_within_a_report_is_lost_and_the_report_is_not_counted() {
    let running = Running::start().await;
    let agent = reporting(&running).await;
    let instance = agent.instance;
    let goodbye = reporting(&running).await;
    let both = |it: &Running| (it.snapshot().controller.reports == 2).then_some(());
    running.until("both reports show", both).await;
    crate::hostile::break_within_a_report(&running, instance).await;
    drop(agent);
    goodbye
        .send(AgentMessage::Goodbye(
            hedgerow_protocol::session::Goodbye::default(),
        ))
        .await;
    running
        .until("the one is lost", |it| {
            it.agent(instance).filter(|it| it.state == AgentState::Lost)
        })
        .await;
    running
        .until("the other left", |it| {
            it.agent(goodbye.instance)
                .filter(|it| it.state == AgentState::Left)
        })
        .await;
    assert_eq!(running.snapshot().controller.reports, 2);
    running.app.stop().await;
}

#[tokio::test]
async fn p09_b65_a_silent_stream_is_ended_by_what_was_not_received() {
    let running = Running::start_with("", |it| {
        it.agents.silence_max = Duration::from_millis(1_500);
    })
    .await;
    let mut agent = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        agent.beat(0).await;
    }
    assert_eq!(
        running.agent(agent.instance).unwrap().state,
        AgentState::Live,
        "it speaks"
    );
    let status = loop {
        match agent.try_next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("ended without a status"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    running
        .until("it is lost", |it| {
            it.agent(agent.instance)
                .filter(|it| it.state == AgentState::Lost)
        })
        .await;
    running.app.stop().await;
}

#[tokio::test]
async fn p10_the_kill_switch_reaches_every_agent_and_is_seen_to() {
    const AGENTS: usize = 40;
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    let mut agents = Vec::new();
    for _ in 0..AGENTS {
        agents.push(reporting(&running).await);
    }
    running
        .until("all hold the policy", |it| {
            it.route(&route()).filter(|it| it.acked.n == 40)
        })
        .await;
    let thrown = tokio::time::Instant::now();
    running.kill_everything(true).await;
    let stored = running.app.store().restore().await.unwrap();
    assert!(
        stored.kills.iter().any(|it| it.engaged),
        "stored before it was answered"
    );
    let told = agents.iter_mut().map(|agent| async {
        let route = route();
        agent
            .until(&route, |it| it.mode == Mode::Off(OffReason::KillSwitch))
            .await
    });
    futures::future::join_all(told).await;
    let took = thrown.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let kill = running
        .until("acked n of m", |it| {
            it.snapshot()
                .kills
                .first()
                .filter(|it| it.acked.n == 40)
                .cloned()
        })
        .await;
    assert_eq!((kill.acked.n, kill.acked.m), (40, 40));
    running.app.stop().await;
}

#[tokio::test]
async fn s03_a_flood_of_messages_slows_its_sender_down_and_nobody_else() {
    let running = Running::start().await;
    let flood = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    let sender = flood.outgoing.clone();
    let flooding = tokio::spawn(async move {
        let mut sent: u64 = 0;
        let beat = hedgerow_protocol::session::Heartbeat {
            number: 1,
            held_hash: 0,
        };
        while sender
            .send(AgentMessage::Heartbeat(beat).into())
            .await
            .is_ok()
        {
            sent += 1;
            if sent == 20_000 {
                break;
            }
        }
    });
    let asked = tokio::time::Instant::now();
    let mut calm = reporting(&running).await;
    calm.report(2, &[route()], 10).await;
    assert_eq!(calm.acknowledged(2).await, None);
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        !flooding.is_finished(),
        "the flood was read as fast as it was sent"
    );
    flooding.abort();
    running.app.stop().await;
}

#[tokio::test]
async fn b60_a_threshold_of_zero_cannot_be_pushed() {
    assert!(Threshold::new(Duration::ZERO).is_err());
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    let agent = reporting(&running).await;
    assert!(
        agent
            .held
            .iter()
            .all(|it| it.threshold.is_none_or(|it| it.get() > Duration::ZERO))
    );
    running.app.stop().await;
}
