//! Coming and going: admission, draining, flapping (P7, P20, B57, B59).

use std::time::Duration;

use hedgerow_protocol::session::{ComeBackReason, ControllerMessage};
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::process::Process;
use crate::raw_agent::{RawAgent, connect, hello, open};
use crate::running::{Running, SHOP_TOKEN};

#[tokio::test]
async fn p20_every_agent_is_told_when_to_come_back_and_they_are_told_different_times() {
    let running = Running::start().await;
    let mut agents = Vec::new();
    for _ in 0..30 {
        agents.push(RawAgent::attach(&running.grpc(), SHOP_TOKEN).await);
    }
    // An agent that does not read, and a connection that says nothing, must not hold it up.
    let _deaf = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    let _silent = TcpStream::connect(running.app.grpc_address())
        .await
        .unwrap();
    let mut page = TcpStream::connect(running.app.http_address())
        .await
        .unwrap();
    page.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 15];
    page.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");

    let asked = tokio::time::Instant::now();
    let leaving = tokio::spawn(running.app.stop());
    let mut times = Vec::new();
    for agent in &mut agents {
        let come_back = agent.come_back().await;
        assert_eq!(come_back.reason, ComeBackReason::Draining);
        times.push(come_back.after);
    }
    drop(agents);
    leaving.await.unwrap();
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    times.sort_unstable();
    let spread = times[29].abs_diff(times[0]);
    assert!(spread > Duration::from_millis(300), "{times:?}");
}

#[tokio::test]
async fn p20_sigterm_ends_the_process_well() {
    let process = Process::start("").await;
    let mut agent = RawAgent::attach(&process.grpc, SHOP_TOKEN).await;
    let told = tokio::spawn(async move { agent.come_back().await.reason });
    let (took, well) = process.leave().await;
    assert!(well);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(told.await.unwrap(), ComeBackReason::Draining);
}

#[tokio::test]
async fn p07_b57_beyond_the_limits_newcomers_are_told_when_to_come_back_and_nobody_is_put_out() {
    let more = "[agents]\nstreams_max = 5\nadmitted_per_s = 1000";
    let running = Running::start_with(more, |_| {}).await;
    let mut agents = Vec::new();
    for _ in 0..5 {
        agents.push(RawAgent::attach(&running.grpc(), SHOP_TOKEN).await);
    }
    for _ in 0..3 {
        let (outgoing, messages) = tokio::sync::mpsc::channel(4);
        let first = hello(hedgerow_protocol::ids::InstanceId::generate(), Vec::new());
        let first = hedgerow_protocol::session::AgentMessage::<
            hedgerow_protocol::session::SentReport,
        >::Hello(first);
        outgoing.send(first.into()).await.unwrap();
        let channel = connect(&running.grpc()).await;
        let mut stream = open(channel, Some(&format!("Bearer {SHOP_TOKEN}")), messages)
            .await
            .unwrap();
        let message = stream.message().await.unwrap().unwrap();
        let message = hedgerow_protocol::wire::controller_message(message).unwrap();
        let Some(ControllerMessage::ComeBack(it)) = message else {
            panic!("{message:?}")
        };
        assert_eq!(it.reason, ComeBackReason::Busy);
        assert!(it.after >= Duration::from_millis(500));
    }
    for agent in &mut agents {
        agent.beat(7).await;
        let answered = loop {
            if let Some(ControllerMessage::HeartbeatAck(ack)) = agent.next().await {
                break ack.number;
            }
        };
        assert_eq!(answered, 1, "still served");
    }
    // A place that comes free is given away.
    let gone = agents.pop().unwrap().instance;
    running
        .until("the place is free", |it| {
            let state = it.agent(gone)?.state;
            (state != hedgerow_core::view::AgentState::Live).then_some(())
        })
        .await;
    RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    running.app.stop().await;
}

#[tokio::test]
async fn p20_open_pages_do_not_hold_a_controller_back() {
    let mut running = Running::start().await;
    let login = running.app.take_first_login().expect("a first start");
    let link = login.link.expose_secret().to_owned();
    let (page, token) = link.split_once("?token=").unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let origin = format!("http://{}", running.app.http_address());
    let signed_in = client
        .post(page)
        .header("origin", &origin)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={token}"))
        .send()
        .await
        .unwrap();
    let cookie = signed_in.headers()["set-cookie"]
        .to_str()
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let mut streams = Vec::new();
    for _ in 0..5 {
        let live = client
            .get(format!("{origin}/live"))
            .header("cookie", cookie)
            .send();
        let mut live = live.await.unwrap();
        assert_eq!(live.status(), 200);
        assert!(
            live.headers()["content-type"]
                .to_str()
                .unwrap()
                .contains("event-stream")
        );
        live.chunk().await.unwrap().expect("something at once");
        streams.push(live);
    }
    let asked = tokio::time::Instant::now();
    running.app.stop().await;
    let took = asked.elapsed();
    assert!(
        took < Duration::from_secs(4),
        "{took:?}: waited for the pages"
    );
    for mut live in streams {
        while let Ok(Some(_)) = live.chunk().await {}
    }
}
