//! What statuses come to, and to whom.

use std::time::Duration;

use hedgerow_agent::integrations::tonic::{
    GrpcVerdicts, HedgedChannel, HedgedChannelBuilder, pass_on,
};
use hedgerow_agent::{HEDGE_HEADER, HEDGE_MARK, Replicas, Verdict};
use hedgerow_protocol::report::Refusal;
use tonic::{Code, Request, Status};

use super::shop::{FOR_EVER, Failing, GetRequest, Item, Plan};
use super::{CatalogClient, DEADLINE, Rig};
use crate::warm::{self, THRESHOLD, all_freed};

async fn get(rig: &mut Rig) -> Result<Item, Status> {
    let answer = rig.client.get(GetRequest::default()).await;
    answer.map(tonic::Response::into_inner)
}

fn failing(code: Code, message: &'static str) -> Failing {
    Failing {
        code,
        message,
        push_back: false,
    }
}

/// The primary fails while its hedge is under way.
fn primary_fails() -> Plan {
    Plan {
        takes: 2 * THRESHOLD,
        fails: Some(failing(Code::Unavailable, "the primary")),
        ..Plan::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c02_where_both_fail_the_caller_sees_the_primarys_status_word_for_word() {
    let mut rig = Rig::reads(DEADLINE).await;
    let hedge = Plan {
        takes: 3 * THRESHOLD,
        fails: Some(failing(Code::Internal, "the hedge")),
        ..Plan::default()
    };
    for replica in &rig.replicas {
        replica.does_each(primary_fails(), hedge.clone());
    }
    let status = get(&mut rig).await.unwrap_err();
    assert_eq!(
        (rig.requests(), rig.hedges()),
        (2, 1),
        "the call waited for both"
    );
    assert_eq!(
        (status.code(), status.message(), status.details()),
        (
            Code::Unavailable,
            "the primary",
            &b"details of the primary"[..]
        )
    );
    assert_eq!(status.metadata().get("x-from").unwrap(), "the-shop");
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c02_a_hedge_under_way_mends_the_primarys_failure() {
    let mut rig = Rig::reads(DEADLINE).await;
    let hedge = Plan {
        takes: 3 * THRESHOLD,
        ..Plan::default()
    };
    for replica in &rig.replicas {
        replica.does_each(primary_fails(), hedge.clone());
    }
    get(&mut rig).await.unwrap();
    let totals = rig.route.snapshot().totals;
    assert_eq!((totals.won, totals.failed), (1, 0), "{totals:?}");
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14_push_back_is_counted_and_never_hedged() {
    let mut rig = Rig::reads(DEADLINE).await;
    let pushed_back = Failing {
        code: Code::Unavailable,
        message: "later",
        push_back: true,
    };
    for (code, fails) in [
        (
            Code::ResourceExhausted,
            failing(Code::ResourceExhausted, "full"),
        ),
        (Code::Unavailable, pushed_back),
    ] {
        for replica in &rig.replicas {
            replica.does(Plan {
                fails: Some(fails.clone()),
                ..Plan::default()
            });
        }
        for _ in 0..3 {
            assert_eq!(get(&mut rig).await.unwrap_err().code(), code);
        }
    }
    let totals = rig.route.snapshot().totals;
    assert_eq!((totals.push_back, totals.hedged), (6, 0), "{totals:?}");
    assert_eq!(rig.requests(), 6, "one request a call");
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_negative_answer_is_an_answer_unless_it_is_said_otherwise() {
    let not_found = Plan {
        fails: Some(failing(Code::NotFound, "no such item")),
        ..Plan::default()
    };
    let verdicts = GrpcVerdicts::new().with(Code::NotFound, Verdict::Fatal);
    for (verdicts, failed) in [(GrpcVerdicts::new(), 0), (verdicts, 1)] {
        let set = |channel: HedgedChannelBuilder| channel.all_idempotent().verdicts(verdicts);
        let mut rig = Rig::with(DEADLINE, set).await;
        for replica in &rig.replicas {
            replica.does(not_found.clone());
        }
        let status = get(&mut rig).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::NotFound, "no such item")
        );
        assert_eq!(rig.route.snapshot().totals.failed, failed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c15_a_hedge_is_marked_and_what_is_made_for_it_is_not_hedged_again() {
    let mut rig = Rig::reads(Duration::from_secs(1)).await;
    for replica in &rig.replicas {
        replica.does(Plan {
            takes: FOR_EVER,
            ..Plan::default()
        });
    }
    assert!(get(&mut rig).await.is_err());
    assert_eq!(
        (rig.requests(), rig.hedges()),
        (2, 1),
        "only the hedge is marked"
    );

    // What a server does that was itself called by a hedge.
    let mut incoming = Request::new(());
    let mark = HEDGE_MARK.parse().unwrap();
    incoming.metadata_mut().insert(HEDGE_HEADER, mark);
    let mut outgoing = Request::new(GetRequest::default());
    pass_on(&incoming, &mut outgoing);
    assert!(rig.client.get(outgoing).await.is_err());
    assert_eq!((rig.requests(), rig.hedges()), (3, 2), "one more, marked");
    let totals = rig.route.snapshot().totals;
    assert_eq!(totals.refused_for(Refusal::AlreadyHedge), 1);
    all_freed(&rig.route).await;
}

/// The channel and the server have timers of their own for it, and call it CANCELLED.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b06_whoevers_timer_is_first_the_deadline_is_deadline_exceeded() {
    let mut rig = Rig::reads(DEADLINE).await;
    for replica in &rig.replicas {
        replica.does(Plan {
            takes: FOR_EVER,
            ..Plan::default()
        });
    }
    for _ in 0..5 {
        let mut request = Request::new(GetRequest::default());
        request.set_timeout(2 * THRESHOLD);
        let status = rig.client.get(request).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::DeadlineExceeded, "no answer before the deadline")
        );
    }
    let totals = rig.route.snapshot().totals;
    assert_eq!(
        (totals.failed, totals.primary_errors),
        (5, 0),
        "no attempt failed: their call's time was up"
    );
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_not_there_is_unavailable() {
    let mut rig = Rig::reads(DEADLINE).await;
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let list = Replicas::new([(nobody.as_str(), None)]).unwrap();
    let route = warm::route(&list, DEADLINE).await;
    let channel = HedgedChannel::builder(route.clone(), list.clone())
        .all_idempotent()
        .build()
        .unwrap();
    rig.client = CatalogClient::new(channel);
    assert_eq!(get(&mut rig).await.unwrap_err().code(), Code::Unavailable);
    // Discovery finds another one.
    let found = rig.replicas[0].address.to_string();
    list.replace([(found.as_str(), None)]).unwrap();
    assert_eq!(get(&mut rig).await.unwrap().replica, found);
    all_freed(&route).await;
}
