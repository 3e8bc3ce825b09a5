//! A reqwest client, hedged, against real HTTP servers.

#[path = "../../examples/reqwest_client.rs"]
#[allow(dead_code, reason = "its main is for running it by itself")]
mod reqwest_client;

use std::convert::Infallible;
use std::time::Duration;

use hedgerow_agent::integrations::reqwest::HedgedClient;
use hedgerow_agent::{Call, CallError, HEDGE_HEADER, HEDGE_MARK, Route};
use hedgerow_protocol::report::Refusal;
use http_body_util::StreamBody;
use reqwest::{Body, Client, Method, Request, StatusCode};

use crate::warm::{self, THRESHOLD, all_freed, answered, eventually};
use crate::web::{FOR_EVER, Plan, Replica, hedges, list, requests, resets, whole};

const MS: Duration = Duration::from_millis(1);
const DEADLINE: Duration = Duration::from_secs(10);

async fn rig(deadline: Duration) -> ([Replica; 2], Route, HedgedClient) {
    let replicas = Replica::two().await;
    let route = warm::route(&list(&replicas), deadline).await;
    let hedged = HedgedClient::new(Client::new(), route.clone());
    (replicas, route, hedged)
}

fn get(client: &HedgedClient) -> Request {
    client.request(Method::GET, "/item").build().unwrap()
}

fn post(client: &HedgedClient, body: impl Into<Body>) -> Request {
    let request = client.request(Method::POST, "/item").body(body);
    request.build().unwrap()
}

fn takes(takes: Duration) -> Plan {
    Plan {
        takes,
        ..Plan::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_runs_against_real_servers() {
    let replicas = Replica::two().await;
    let names: Vec<_> = replicas.iter().map(|it| it.address.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let lines = reqwest_client::run(&names, 10).await.unwrap();
    assert_eq!(lines[0], "10 items, 5242880 bytes");
    assert_eq!(lines[1], "11 eligible calls, 1 others, 0 hedged");
    assert_eq!(requests(&replicas), 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_without_its_first_slash_is_the_same_path() {
    let (_replicas, _route, hedged) = rig(DEADLINE).await;
    for (path, expected) in [
        ("/items/7?a=b", "/items/7?a=b"),
        ("items/7?a=b", "/items/7?a=b"),
        ("?a=b", "/?a=b"),
        ("", "/"),
    ] {
        let request = hedged.request(Method::GET, path).build().unwrap();
        let url = request.url().as_str();
        assert_eq!(url, format!("http://replica.invalid{expected}"));
    }
    let answer = hedged.execute(hedged.request(Method::GET, "item").build().unwrap());
    let answer = answer.await.unwrap();
    assert_eq!(answer.url().path(), "/item");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b05_the_winner_has_all_its_bytes_and_the_loser_is_cancelled_at_its_head() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    replicas[0].does(takes(FOR_EVER));
    while route.snapshot().totals.won == 0 {
        let answer = hedged.execute(get(&hedged)).await.unwrap();
        let from = replicas
            .iter()
            .map(|it| format!("http://{}/item", it.address));
        assert!(
            from.into_iter().any(|url| url == answer.url().as_str()),
            "the URL is the replica's"
        );
        assert!(
            route.snapshot().attempts_in_flight >= 1,
            "the winner keeps its permit until it is read"
        );
        whole(&answer.bytes().await.unwrap());
    }
    eventually("the loser saw its reset", || resets(&replicas) >= 1).await;
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_a_hedged_answer_is_one_replicas_from_first_to_last_byte() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for replica in &replicas {
        // Both answer at about the same moment, so that either may win.
        replica.does_each(takes(THRESHOLD + 20 * MS), Plan::default());
    }
    for _ in 0..12 {
        answered(&route, 20).await;
        let mut answer = hedged.execute(get(&hedged)).await.unwrap();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.unwrap() {
            body.extend_from_slice(&chunk);
        }
        whole(&body);
    }
    let totals = route.snapshot().totals;
    assert!(totals.hedged > 0 && totals.failed == 0, "{totals:?}");
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b06_a_winner_that_stalls_after_its_head_is_a_timeout_and_both_are_reset() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for replica in &replicas {
        let hedge = Plan {
            stalls_after: Some(3),
            ..Plan::default()
        };
        replica.does_each(takes(FOR_EVER), hedge);
    }
    // The request's own timeout is the deadline of all its attempts.
    let mut request = get(&hedged);
    *request.timeout_mut() = Some(Duration::from_secs(1));
    let answer = hedged.execute(request).await.unwrap();
    let error = answer.bytes().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    eventually("both saw their reset", || resets(&replicas) == 2).await;
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b06_no_head_at_all_is_a_timeout_and_both_are_reset() {
    let (replicas, route, hedged) = rig(Duration::from_secs(1)).await;
    for replica in &replicas {
        replica.does(takes(FOR_EVER));
    }
    let error = hedged.execute(get(&hedged)).await.unwrap_err();
    assert!(matches!(error, CallError::DeadlineExceeded), "{error:?}");
    eventually("both saw their reset", || resets(&replicas) == 2).await;
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14_push_back_is_counted_and_never_hedged() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for (status, retry_after) in [(429, false), (503, true)] {
        for replica in &replicas {
            replica.does(Plan {
                status,
                retry_after,
                ..Plan::default()
            });
        }
        for _ in 0..3 {
            let answer = hedged.execute(get(&hedged)).await.unwrap();
            assert_eq!(answer.status().as_u16(), status);
            assert_eq!(answer.headers().contains_key("retry-after"), retry_after);
        }
    }
    let totals = route.snapshot().totals;
    assert_eq!((totals.push_back, totals.hedged), (6, 0), "{totals:?}");
    assert_eq!(requests(&replicas), 6, "one request a call");
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c02_where_both_fail_the_caller_has_the_primarys_answer_word_for_word() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    let failing = |takes, status| Plan {
        takes,
        status,
        ..Plan::default()
    };
    for replica in &replicas {
        replica.does_each(failing(2 * THRESHOLD, 503), failing(3 * THRESHOLD, 500));
    }
    let answer = hedged.execute(get(&hedged)).await.unwrap();
    assert_eq!(requests(&replicas), 2, "the call waited for both");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.text().await.unwrap(), "503 of a primary");
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c15_a_hedge_is_marked_and_what_is_made_for_it_is_not_hedged_again() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for replica in &replicas {
        replica.does(takes(3 * THRESHOLD));
    }
    let answer = hedged.execute(get(&hedged)).await.unwrap();
    whole(&answer.bytes().await.unwrap());
    assert_eq!((requests(&replicas), hedges(&replicas)), (2, 1));
    let for_a_hedge = hedged
        .request(Method::GET, "/item")
        .header(HEDGE_HEADER, HEDGE_MARK)
        .build()
        .unwrap();
    let answer = hedged.execute(for_a_hedge).await.unwrap();
    whole(&answer.bytes().await.unwrap());
    assert_eq!((requests(&replicas), hedges(&replicas)), (3, 2));
    let totals = route.snapshot().totals;
    assert_eq!(totals.refused_for(Refusal::AlreadyHedge), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_post_is_hedged_only_where_its_caller_says_so_and_a_stream_never() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for replica in &replicas {
        replica.does(takes(3 * THRESHOLD));
    }
    hedged.execute(post(&hedged, "one pair")).await.unwrap();
    let totals = route.snapshot().totals;
    assert_eq!((totals.not_eligible, totals.hedged), (1, 0), "{totals:?}");
    assert_eq!(requests(&replicas), 1);

    let frame = http_body::Frame::data(bytes::Bytes::from("a stream"));
    let frames = [Ok::<_, Infallible>(frame)];
    let stream = Body::wrap(StreamBody::new(tokio_stream::iter(frames)));
    let request = post(&hedged, stream);
    hedged
        .execute_as(Call::idempotent(), request)
        .await
        .unwrap();
    let totals = route.snapshot().totals;
    assert_eq!((totals.not_eligible, totals.hedged), (2, 0), "{totals:?}");
    assert!(replicas.iter().any(|it| it.received() == "a stream"));

    let request = post(&hedged, "shoes");
    hedged
        .execute_as(Call::idempotent(), request)
        .await
        .unwrap();
    assert_eq!(route.snapshot().totals.hedged, 1);
    assert_eq!(requests(&replicas), 4);
    assert!(replicas.iter().all(|it| it.received() == "shoes"));
    all_freed(&route).await;
}
