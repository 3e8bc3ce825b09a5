//! Streams of messages: the winner whole, the loser gone.

use std::collections::BTreeSet;
use std::time::Duration;

use tonic::{Code, Request, Status};

use super::shop::{FOR_EVER, Item, ListRequest, PICTURE, Plan, Replica, letter};
use super::{DEADLINE, Rig};
use crate::warm::{all_freed, answered, eventually};

/// Messages of a stream of 512 KiB.
const COUNT: u32 = 64;

async fn read(rig: &mut Rig) -> Result<Vec<Item>, Status> {
    let request = ListRequest { count: COUNT };
    let mut items = rig.client.list(request).await?.into_inner();
    let mut all = Vec::new();
    while let Some(item) = items.message().await? {
        all.push(item);
    }
    Ok(all)
}

/// Every message is there, in order, and from one replica.
fn whole(items: &[Item]) {
    let ids: Vec<_> = items.iter().map(|item| item.id).collect();
    assert_eq!(ids, (0..COUNT).collect::<Vec<_>>());
    let replicas: BTreeSet<_> = items.iter().map(|item| &item.replica).collect();
    assert_eq!(replicas.len(), 1, "one response, and no other mixed in");
    for item in items {
        assert_eq!(item.picture, vec![letter(&item.replica); PICTURE]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b05_a_streamed_response_of_512_kb_wins_and_the_loser_is_reset() {
    let mut rig = Rig::reads(DEADLINE).await;
    rig.replicas[0].does(Plan {
        takes: FOR_EVER, // its headers are there at once
        ..Plan::default()
    });
    let before = rig.route.snapshot().totals;
    let mut won = 0;
    while won == 0 {
        whole(&read(&mut rig).await.unwrap());
        won = rig.route.snapshot().totals.since(&before).unwrap().won;
    }
    assert!(rig.hedges() >= 1, "the mark is metadata");
    eventually("the loser saw its reset", || rig.resets() >= 1).await;
    all_freed(&rig.route).await;
    assert_eq!(rig.route.snapshot().totals.failed, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b05_the_winner_keeps_its_permit_until_it_is_read() {
    let mut rig = Rig::reads(DEADLINE).await;
    let items = rig.client.list(ListRequest { count: COUNT }).await.unwrap();
    assert_eq!(rig.route.snapshot().attempts_in_flight, 1);
    let mut items = items.into_inner();
    while items.message().await.unwrap().is_some() {}
    assert_eq!(rig.route.snapshot().attempts_in_flight, 0);
    let half_read = rig.client.list(ListRequest { count: COUNT }).await.unwrap();
    drop(half_read);
    assert_eq!(rig.route.snapshot().attempts_in_flight, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_a_hedged_stream_is_one_replicas_from_first_to_last_byte() {
    let mut rig = Rig::reads(DEADLINE).await;
    // Both answer at about the same moment, so that either may win.
    for replica in &rig.replicas {
        let primary = Plan {
            takes: Duration::from_millis(170),
            ..Plan::default()
        };
        replica.does_each(primary, Plan::default());
    }
    for _ in 0..12 {
        answered(&rig.route, 20).await;
        whole(&read(&mut rig).await.unwrap());
    }
    let totals = rig.route.snapshot().totals;
    assert!(totals.hedged > 0 && totals.failed == 0, "{totals:?}");
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b06_headers_and_then_nothing_is_a_timeout_and_both_attempts_are_reset() {
    let mut rig = Rig::reads(DEADLINE).await;
    for replica in &rig.replicas {
        replica.does(Plan {
            takes: FOR_EVER,
            ..Plan::default()
        });
    }
    let mut request = Request::new(ListRequest { count: COUNT });
    request.set_timeout(Duration::from_secs(1));
    let status = rig.client.list(request).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::DeadlineExceeded, "no answer before the deadline")
    );
    assert_eq!((rig.requests(), rig.hedges()), (2, 1));
    eventually("both saw their reset", || rig.resets() == 2).await;
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b06_a_winner_that_stalls_in_its_stream_is_a_timeout_too() {
    let mut rig = Rig::reads(Duration::from_secs(1)).await;
    for replica in &rig.replicas {
        let hedge = Plan {
            stalls_after: Some(3),
            ..Plan::default()
        };
        let primary = Plan {
            takes: FOR_EVER,
            ..Plan::default()
        };
        replica.does_each(primary, hedge);
    }
    let request = ListRequest { count: COUNT };
    let mut items = rig.client.list(request).await.unwrap().into_inner();
    for _ in 0..3 {
        assert!(items.message().await.unwrap().is_some());
    }
    let status = items.message().await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    eventually("both saw their reset", || rig.resets() == 2).await;
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_may_be_read_past_the_deadline_where_it_is_said_so() {
    let mut rig = Rig::with(Duration::from_millis(400), |channel| {
        channel.all_idempotent().stream_past_deadline(true)
    })
    .await;
    let request = ListRequest { count: COUNT };
    let mut items = rig.client.list(request).await.unwrap().into_inner();
    assert!(items.message().await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(800)).await;
    let mut rest = 0;
    while items.message().await.unwrap().is_some() {
        rest += 1;
    }
    assert_eq!(rest, COUNT - 1);
    let seen = rig.replicas.iter().flat_map(Replica::seen);
    assert!(seen.into_iter().all(|seen| seen.timeout.is_none()));
}
