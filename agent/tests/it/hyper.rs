//! hyper-util's client, hedged, against real HTTP servers.

#[path = "../../examples/hyper_client.rs"]
#[allow(dead_code, reason = "its main is for running it by itself")]
mod hyper_client;

use std::error::Error as _;
use std::time::Duration;

use axum::body::Bytes;
use hedgerow_agent::integrations::body::{BodyError, HeldBody};
use hedgerow_agent::integrations::hyper::HedgedHttp;
use hedgerow_agent::integrations::verdict::HttpVerdicts;
use hedgerow_agent::{Call, CallError, HEDGE_HEADER, HEDGE_MARK, Hold, Route, Verdict};
use hedgerow_protocol::report::Refusal;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::warm::{self, all_freed, answered, eventually};
use crate::web::{FOR_EVER, Plan, Replica, hedges, list, requests, resets, whole};

const MS: Duration = Duration::from_millis(1);
const DEADLINE: Duration = Duration::from_secs(10);

type Http = Client<HttpConnector, Full<Bytes>>;

fn client() -> Http {
    Client::builder(TokioExecutor::new()).build_http()
}

async fn rig(deadline: Duration) -> ([Replica; 2], Route, HedgedHttp<Http>) {
    let replicas = Replica::two().await;
    let route = warm::route(&list(&replicas), deadline).await;
    let hedged = HedgedHttp::new(client(), route.clone());
    (replicas, route, hedged)
}

fn get() -> Request<Full<Bytes>> {
    Request::get("/item").body(Full::default()).unwrap()
}

fn post() -> Request<Full<Bytes>> {
    Request::post("/item").body(Full::from("one pair")).unwrap()
}

async fn read(answer: Response<HeldBody<Incoming>>) -> Result<Bytes, BodyError> {
    Ok(answer.into_body().collect().await?.to_bytes())
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
    let lines = hyper_client::run(&names, 10).await.unwrap();
    assert_eq!(lines[0], "10 items, 5242880 bytes");
    assert_eq!(lines[1], "11 eligible calls, 1 others, 0 hedged");
    assert_eq!(requests(&replicas), 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b05_the_winner_has_all_its_bytes_and_the_loser_is_cancelled_at_its_head() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    replicas[0].does(takes(FOR_EVER));
    while route.snapshot().totals.won == 0 {
        let answer = hedged.clone().oneshot(get()).await.unwrap();
        assert!(
            route.snapshot().attempts_in_flight >= 1,
            "the winner keeps its permit until it is read"
        );
        whole(&read(answer).await.unwrap());
    }
    eventually("the loser saw its reset", || resets(&replicas) >= 1).await;
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_a_hedged_answer_is_one_replicas_from_first_to_last_byte() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for replica in &replicas {
        // Both answer at about the same moment, so that either may win.
        replica.does_each(takes(170 * MS), Plan::default());
    }
    for _ in 0..12 {
        answered(&route, 20).await;
        let answer = hedged.clone().oneshot(get()).await.unwrap();
        whole(&read(answer).await.unwrap());
    }
    let totals = route.snapshot().totals;
    assert!(totals.hedged > 0 && totals.failed == 0, "{totals:?}");
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b06_a_winner_that_stalls_after_its_head_is_a_timeout_and_both_are_reset() {
    let (replicas, route, hedged) = rig(Duration::from_secs(1)).await;
    for replica in &replicas {
        let hedge = Plan {
            stalls_after: Some(3),
            ..Plan::default()
        };
        replica.does_each(takes(FOR_EVER), hedge);
    }
    let answer = hedged.oneshot(get()).await.unwrap();
    let error = read(answer).await.unwrap_err();
    assert!(matches!(error, BodyError::DeadlineExceeded(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the answer was not complete before the deadline"
    );
    let source = error.source().unwrap().downcast_ref::<std::io::Error>();
    assert_eq!(source.unwrap().kind(), std::io::ErrorKind::TimedOut);
    eventually("both saw their reset", || resets(&replicas) == 2).await;
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_may_be_read_past_the_deadline_where_it_is_said_so() {
    let (_replicas, route, hedged) = rig(400 * MS).await;
    let late = hedged.clone().oneshot(get()).await.unwrap();
    let patient = hedged.stream_past_deadline(true);
    let in_time = patient.oneshot(get()).await.unwrap();
    sleep(800 * MS).await;
    let error = read(late).await.unwrap_err();
    assert!(matches!(error, BodyError::DeadlineExceeded(_)), "{error:?}");
    whole(&read(in_time).await.unwrap());
    assert_eq!(route.snapshot().attempts_in_flight, 0);
}

/// The client in a task of its own, which goes on when its caller is gone: it can only take the
/// permit along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c12_a_loser_that_ignores_cancellation_keeps_its_permit_until_it_ends() {
    const LOSER: Duration = Duration::from_secs(4);
    let replicas = Replica::two().await;
    let route = warm::route(&list(&replicas), DEADLINE).await;
    let http = client();
    let stubborn = tower::service_fn(move |request: Request<Full<Bytes>>| {
        let hold = request.extensions().get::<Hold>().cloned();
        let answer = http.request(request);
        let task = tokio::spawn(async move {
            let _hold = hold.expect("every attempt's request has one");
            answer.await
        });
        async move { task.await.unwrap() }
    });
    let hedged = HedgedHttp::new(stubborn, route.clone());
    for replica in &replicas {
        replica.does_each(takes(LOSER), Plan::default());
    }
    let began = Instant::now();
    let answer = hedged.oneshot(get()).await.unwrap();
    whole(&read(answer).await.unwrap());
    assert!(
        began.elapsed() < LOSER,
        "the winner did not wait for the loser"
    );
    assert_eq!(route.snapshot().attempts_in_flight, 1, "the loser's");
    assert_eq!(route.snapshot().totals.won, 1);
    all_freed(&route).await;
    assert!(began.elapsed() >= LOSER, "not before its work was over");
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
            let answer = hedged.clone().oneshot(get()).await.unwrap();
            assert_eq!(answer.status().as_u16(), status);
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
        replica.does_each(failing(400 * MS, 503), failing(700 * MS, 500));
    }
    let answer = hedged.oneshot(get()).await.unwrap();
    assert_eq!(requests(&replicas), 2, "the call waited for both");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(read(answer).await.unwrap(), "503 of a primary");
    all_freed(&route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c15_a_hedge_is_marked_and_what_is_made_for_it_is_not_hedged_again() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for replica in &replicas {
        replica.does(takes(500 * MS));
    }
    let answer = hedged.clone().oneshot(get()).await.unwrap();
    whole(&read(answer).await.unwrap());
    assert_eq!((requests(&replicas), hedges(&replicas)), (2, 1));
    let mut for_a_hedge = get();
    let mark = HEDGE_MARK.parse().unwrap();
    for_a_hedge.headers_mut().insert(HEDGE_HEADER, mark);
    let answer = hedged.oneshot(for_a_hedge).await.unwrap();
    whole(&read(answer).await.unwrap());
    assert_eq!((requests(&replicas), hedges(&replicas)), (3, 2));
    let totals = route.snapshot().totals;
    assert_eq!(totals.refused_for(Refusal::AlreadyHedge), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_post_is_hedged_only_where_its_caller_says_so() {
    let (replicas, route, hedged) = rig(DEADLINE).await;
    for replica in &replicas {
        replica.does(takes(500 * MS));
    }
    hedged.clone().oneshot(post()).await.unwrap();
    let totals = route.snapshot().totals;
    assert_eq!((totals.not_eligible, totals.hedged), (1, 0), "{totals:?}");
    assert_eq!(requests(&replicas), 1);
    let mut marked = post();
    marked.extensions_mut().insert(Call::idempotent());
    hedged.oneshot(marked).await.unwrap();
    assert_eq!(route.snapshot().totals.hedged, 1);
    assert_eq!(requests(&replicas), 3);
    assert!(replicas.iter().all(|it| it.received() == "one pair"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verdicts_can_be_said_otherwise_and_no_connection_is_the_clients_own_error() {
    let replicas = Replica::two().await;
    let route = warm::route(&list(&replicas), DEADLINE).await;
    for replica in &replicas {
        replica.does(Plan {
            status: 404,
            ..Plan::default()
        });
    }
    let usual = HedgedHttp::new(client(), route.clone());
    usual.clone().oneshot(get()).await.unwrap();
    assert_eq!(route.snapshot().totals.failed, 0, "not found is an answer");
    let verdicts = HttpVerdicts::new()
        .with(|status, _| (status == StatusCode::NOT_FOUND).then_some(Verdict::Fatal));
    let strict = usual.clone().verdicts(verdicts);
    strict.oneshot(get()).await.unwrap();
    assert_eq!(route.snapshot().totals.failed, 1);

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let mut request = get();
    let pinned = Call::not_idempotent().pinned(address.parse().unwrap());
    request.extensions_mut().insert(pinned);
    let error = usual.oneshot(request).await.unwrap_err();
    let CallError::Failed(failed) = error else {
        panic!("{error:?}");
    };
    assert!(failed.into_failed().unwrap().is_connect());
    sleep(MS).await;
}
