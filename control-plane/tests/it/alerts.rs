//! Notices on their way (P15, B76, B77, B79, S8), to receivers on real sockets.

mod address;
mod alertmanager;
pub(crate) mod catch;
pub(crate) mod kinds;
mod mail;
mod people;
mod post;
pub(crate) mod program;
pub(crate) mod sink;

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hedgerow_control_plane::alerts::Receiver;
use hedgerow_core::effect::AlertState;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::AlertRule;
use hedgerow_protocol::ids::RouteKey;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use crate::standing::eventually;
pub(crate) use post::{Post, brisk};
use sink::Sink;

/// The 32 bytes `canary-secret-of-thirty-two-byte`.
const KEY: &[u8; 32] = b"canary-secret-of-thirty-two-byte";

pub(crate) fn receiver(name: &str, address: SocketAddr) -> Receiver {
    receiver_at(name, &format!("http://{address}/canary-path"), true)
}

fn receiver_at(name: &str, url: &str, allow_private: bool) -> Receiver {
    let secret = format!("whsec_{}", STANDARD.encode(KEY));
    Receiver::webhook(name, url, &secret.into(), allow_private).unwrap()
}

fn firing(episode: &str) -> AlertState {
    AlertState {
        id: episode.into(),
        rule: AlertRule::SharedSlowdown,
        route: RouteKey::new("catalog", "get").unwrap(),
        replica: None,
        summary: "9 of 10 replicas are slow together".into(),
        // A minute ago, so that its end, below, is not ahead.
        since: Moment::from_millis(jiff::Timestamp::now().as_millisecond() as u64 - 60_000),
        resolved: None,
    }
}

/// Texts that a service might be called by.
fn hostile() -> Vec<String> {
    vec![
        "<img src=x onerror=alert(1)>".into(),
        "a\"b'c`d*e*_f_~g~ <!channel> &amp;".into(),
        "r\u{202E}1\u{2067}\u{2069}".into(),
        "a\r\nBcc: eve@example.org\r\n.\r\n\0".into(),
        "Ä".repeat(5_000),
    ]
}

fn resolved(alert: &AlertState) -> AlertState {
    AlertState {
        resolved: Some(alert.since.plus(Duration::from_secs(40))),
        ..alert.clone()
    }
}

fn pairs(episodes: &[&str]) -> Vec<(String, String)> {
    let both = |e: &&str| {
        [
            (e.to_string(), "alert.firing"),
            (e.to_string(), "alert.resolved"),
        ]
    };
    episodes
        .iter()
        .flat_map(both)
        .map(|(episode, kind)| (episode, kind.to_owned()))
        .collect()
}

/// HMAC-SHA-256 by its definition (RFC 2104), apart from the crate that signs.
fn hmac_sha256(key: &[u8; 32], message: &[u8]) -> Vec<u8> {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(b, k)| *b ^= k);
        block
    };
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

#[tokio::test]
async fn p15_one_firing_and_one_resolved_notice_for_each_receiver_signed() {
    let (one, two) = (Sink::new(), Sink::new());
    let receivers = vec![
        receiver("one", one.serve().await),
        receiver("two", two.serve().await),
    ];
    let post = Post::new(receivers).await;
    let alert = firing("e1");
    post.write(alert.clone(), &["one", "two"]).await;
    post.write(alert.clone(), &["one", "two"]).await;
    post.until_done().await;
    post.write(resolved(&alert), &["one", "two"]).await;
    post.write(resolved(&alert), &["one", "two"]).await;
    post.until_done().await;
    for sink in [&one, &two] {
        assert_eq!(sink.taken(), pairs(&["e1"]));
        for got in sink.got() {
            let signed = [
                format!("{}.{}.", got.id, got.timestamp).as_bytes(),
                &got.bytes,
            ]
            .concat();
            let expected = format!("v1,{}", STANDARD.encode(hmac_sha256(KEY, &signed)));
            assert_eq!(got.signature, expected);
            let age = jiff::Timestamp::now().as_second() - got.timestamp;
            assert!((0..60).contains(&age), "{age} s");
            assert_eq!(got.body["data"]["rule"], "SharedSlowdown");
            assert_eq!(got.body["data"]["dependency"], "catalog");
        }
    }
    let ids: std::collections::BTreeSet<_> = one
        .got()
        .into_iter()
        .chain(two.got())
        .map(|got| got.id)
        .collect();
    assert_eq!(ids.len(), 4, "each notice has an identity of its own");
}

#[tokio::test]
async fn p15_b77_a_receiver_that_was_down_gets_firing_then_resolved_once_each() {
    let sink = Sink::new();
    // A port that refuses: bound, its number kept, and let go.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let post = Post::new(vec![receiver("pager", address)]).await;
    let alert = firing("e1");
    post.write(alert.clone(), &["pager"]).await;
    post.write(resolved(&alert), &["pager"]).await;
    eventually("some attempts failed", async || {
        post.deliveries().await[0].attempts >= 4
    })
    .await;
    let waiting = post.deliveries().await;
    assert_eq!(
        waiting[0].last_error.as_deref(),
        Some("could not be connected to")
    );
    assert_eq!(waiting[1].attempts, 0, "the end waits for the beginning");
    // Up again, but not well yet.
    sink.answers(|n| {
        if n < 3 {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::OK
        }
        .into_response()
    });
    sink.serve_on(TcpListener::bind(address).await.unwrap());
    post.until_done().await;
    assert_eq!(sink.taken(), pairs(&["e1"]));
    let got = sink.got();
    assert_eq!(got.len(), 5, "three refused, two taken");
    assert!(
        got[..4]
            .iter()
            .all(|g| g.id == got[0].id && g.bytes == got[0].bytes)
    );
    assert_ne!(got[4].id, got[0].id);
    assert!(got[..4].iter().all(|g| g.kind() == "alert.firing"));
}

#[tokio::test]
async fn p15_a_restart_neither_loses_nor_repeats_a_notice() {
    let sink = Sink::new();
    let address = sink.serve().await;
    let mut post = Post::new(vec![receiver("pager", address)]).await;
    let (done, begun, waiting) = (firing("done"), firing("begun"), firing("waiting"));
    post.write(done.clone(), &["pager"]).await;
    post.write(resolved(&done), &["pager"]).await;
    post.write(begun.clone(), &["pager"]).await;
    post.until_done().await;
    sink.answers(|_| StatusCode::BAD_GATEWAY.into_response());
    post.write(waiting.clone(), &["pager"]).await;
    eventually("it was tried", async || {
        post.deliveries().await[3].attempts >= 1
    })
    .await;
    post.restart(brisk(), vec![receiver("pager", address)])
        .await;
    // The same states again, as a core that starts anew may write them.
    post.write(begun.clone(), &["pager"]).await;
    post.write(resolved(&begun), &["pager"]).await;
    sink.answers(|_| StatusCode::OK.into_response());
    post.write(resolved(&waiting), &["pager"]).await;
    post.until_done().await;
    let taken = sink.taken();
    for episode in ["done", "begun", "waiting"] {
        let of_it: Vec<_> = taken
            .iter()
            .filter(|(e, _)| e == episode)
            .cloned()
            .collect();
        assert_eq!(of_it, pairs(&[episode]));
    }
    let ids: Vec<_> = sink
        .got()
        .into_iter()
        .filter(|g| g.episode() == "waiting")
        .collect();
    let firing_ids: std::collections::BTreeSet<_> = ids
        .iter()
        .filter(|g| g.kind() == "alert.firing")
        .map(|g| &g.id)
        .collect();
    assert_eq!(firing_ids.len(), 1, "the identity outlives the restart");
}

#[tokio::test]
async fn b76_b79_every_episode_gets_its_own_pair_of_notices() {
    let sink = Sink::new();
    let post = Post::new(vec![receiver("pager", sink.serve().await)]).await;
    for episode in ["e1", "e2", "e3", "e4"] {
        let alert = firing(episode);
        post.write(alert.clone(), &["pager"]).await;
        post.write(resolved(&alert), &["pager"]).await;
        post.until_done().await;
    }
    assert_eq!(sink.taken(), pairs(&["e1", "e2", "e3", "e4"]));
}

#[tokio::test]
async fn p15_a_receiver_that_hangs_delays_no_other_and_no_write() {
    let well = Sink::new();
    // Accepts connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_at = silent.local_addr().unwrap();
    let mut settings = brisk();
    settings.timeout = Duration::from_mins(10);
    let mut post = Post::new(Vec::new()).await;
    let receivers = vec![
        receiver("silent", silent_at),
        kinds::made("silent-mail", kinds::email(silent_at.port())),
        receiver("well", well.serve().await),
    ];
    post.restart(settings, receivers).await;
    for episode in ["e1", "e2", "e3"] {
        let alert = firing(episode);
        post.write(alert.clone(), &["silent", "silent-mail", "well"])
            .await;
        post.write(resolved(&alert), &["silent", "silent-mail", "well"])
            .await;
    }
    eventually("the other has all", async || well.taken().len() == 6).await;
    // It has them before the store knows that it has: only that is waited for. What is the silent
    // one's has nothing to wait for.
    let states = async |receiver: &str| {
        let all = post.deliveries().await;
        let own = all.into_iter().filter(|d| d.receiver == receiver);
        own.map(|d| d.state).collect::<Vec<_>>()
    };
    eventually("the store knows it", async || {
        states("well")
            .await
            .iter()
            .all(|state| state == "delivered")
    })
    .await;
    for silent in ["silent", "silent-mail"] {
        assert_eq!(states(silent).await, ["waiting"; 6]);
    }
    post.task.as_ref().unwrap().abort();
}

#[tokio::test]
async fn p15_what_cannot_be_delivered_is_given_up_visibly_with_what_follows_it() {
    let sink = Sink::new();
    sink.answers(|_| (StatusCode::IM_A_TEAPOT, "canary-answer").into_response());
    let mut settings = brisk();
    settings.give_up_after = Duration::from_millis(1);
    let mut post = Post::new(Vec::new()).await;
    post.restart(settings, vec![receiver("pager", sink.serve().await)])
        .await;
    let alert = firing("e1");
    post.write(alert.clone(), &["pager"]).await;
    post.write(resolved(&alert), &["pager"]).await;
    post.until_done().await;
    let given_up = post.deliveries().await;
    assert_eq!(given_up.len(), 2);
    for delivery in given_up {
        assert_eq!(delivery.state, "given_up");
        assert!(delivery.done.is_some());
        let error = delivery.last_error.unwrap();
        assert_eq!(error, "given up after 10 attempts: answered 418");
        assert!(
            !error.contains("canary"),
            "S8: neither address nor answer is shown"
        );
    }
    assert!(sink.got().iter().all(|g| g.kind() == "alert.firing"));
}

#[tokio::test]
async fn p15_notices_of_a_receiver_that_is_gone_are_given_up_once_they_are_old() {
    let mut post = Post::new(Vec::new()).await;
    let old = AlertState {
        since: Moment::from_millis(1_000),
        ..firing("old")
    };
    post.write(old, &["gone"]).await;
    post.write(firing("young"), &["gone"]).await;
    post.restart(brisk(), Vec::new()).await;
    eventually("the old one is given up", async || {
        let states: Vec<_> = post
            .deliveries()
            .await
            .into_iter()
            .map(|d| d.state)
            .collect();
        states == ["given_up", "waiting"]
    })
    .await;
}

#[tokio::test]
async fn p15_notices_of_a_receiver_that_is_gone_are_given_up_while_the_controller_runs() {
    let mut post = Post::new(Vec::new()).await;
    // Old enough not at the start, but soon.
    let alert = firing("e1");
    let now = Moment::from_millis(jiff::Timestamp::now().as_millisecond() as u64);
    let mut settings = brisk();
    settings.give_up_after = now.since(alert.since) + Duration::from_secs(2);
    settings.sweep_every = Duration::from_millis(50);
    post.write(alert, &["gone"]).await;
    post.restart(settings, Vec::new()).await;
    post.until_done().await;
    assert_eq!(post.deliveries().await[0].state, "given_up");
}

#[tokio::test]
async fn a_receiver_that_asks_for_time_gets_it() {
    let sink = Sink::new();
    sink.answers(|n| match n {
        0 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "2")]).into_response(),
        _ => StatusCode::OK.into_response(),
    });
    let post = Post::new(vec![receiver("pager", sink.serve().await)]).await;
    let began = std::time::Instant::now();
    post.write(firing("e1"), &["pager"]).await;
    post.until_done().await;
    assert!(
        began.elapsed() >= Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(sink.got().len(), 2);
}

#[tokio::test]
async fn p15_the_end_goes_to_nobody_whose_beginning_was_given_up() {
    let sink = Sink::new();
    sink.answers(|_| StatusCode::BAD_GATEWAY.into_response());
    let mut settings = brisk();
    settings.give_up_after = Duration::from_millis(1);
    let mut post = Post::new(Vec::new()).await;
    post.restart(settings, vec![receiver("pager", sink.serve().await)])
        .await;
    let alert = firing("e1");
    post.write(alert.clone(), &["pager"]).await;
    post.until_done().await;
    sink.answers(|_| StatusCode::OK.into_response());
    post.write(resolved(&alert), &["pager"]).await;
    let all = post.deliveries().await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].state, "given_up");
}

#[tokio::test]
async fn metrics_count_what_waits_and_what_became_of_each_attempt() {
    let sink = Sink::new();
    sink.answers(|n| match n {
        0 | 1 => StatusCode::BAD_GATEWAY.into_response(),
        _ => StatusCode::OK.into_response(),
    });
    let settings = brisk();
    let metrics = settings.metrics.clone();
    let mut post = Post::new(Vec::new()).await;
    post.restart(settings, vec![receiver("pager", sink.serve().await)])
        .await;
    let shown = |line: &str| metrics.text().unwrap().lines().any(|it| it == line);
    post.write(firing("e1"), &["pager"]).await;
    eventually("one waits", async || {
        shown("hedgerow_controller_notices_waiting{receiver=\"pager\"} 1")
    })
    .await;
    post.until_done().await;
    eventually("none waits", async || {
        shown("hedgerow_controller_notices_waiting{receiver=\"pager\"} 0")
    })
    .await;
    for (outcome, count) in [("failed", 2), ("delivered", 1)] {
        let line = format!(
            "hedgerow_controller_deliveries_total{{outcome=\"{outcome}\",receiver=\"pager\"}} {count}"
        );
        assert!(shown(&line), "{line} in\n{}", metrics.text().unwrap());
    }
}
