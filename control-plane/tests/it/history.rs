//! The stored course of a route: bounded, thinned, and read without holding anything open.

use std::time::Duration;

use hedgerow_control_plane::store::Store;
use hedgerow_core::effect::Record;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::Point;
use hedgerow_dashboard::backend::Backend as _;
use hedgerow_protocol::ids::RouteKey;
use tempfile::TempDir;

use crate::standing::Standing;

const START: u64 = 1_000_000_000_000;

fn route(operation: &str) -> RouteKey {
    RouteKey::new("catalog", operation).unwrap()
}

fn at(second: u64) -> Moment {
    Moment::from_millis(START + second * 1_000)
}

/// A point each 10 s; one in the middle is a peak.
fn points(route: &RouteKey, count: u64, peak: u64) -> Vec<Record> {
    (1..=count)
        .map(|n| Record::History {
            route: route.clone(),
            point: Point {
                at: at(n * 10),
                calls_per_s: 100.0,
                p99_ms: Some(if n == peak { 900.0 } else { 20.0 }),
                hedging: true,
                ..Point::default()
            },
        })
        .collect()
}

#[tokio::test]
async fn u04_hours_of_one_route_are_thinned_and_keep_their_peak() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let (mine, other) = (route("get"), route("list"));
    store
        .write(&points(&mine, 2_500, 1_234), &[])
        .await
        .unwrap();
    store.write(&points(&other, 10, 3), &[]).await.unwrap();

    let all = store.history(&mine, at(0), at(25_000), 100).await.unwrap();
    assert!((90..=100).contains(&all.len()), "{}", all.len());
    assert!(all.windows(2).all(|it| it[0].at < it[1].at));
    let peaks = all.iter().filter(|it| it.p99_ms == Some(900.0)).count();
    assert_eq!(peaks, 1, "and only where it was");

    // After the beginning, up to the end, and nothing of another route's.
    let some = store.history(&mine, at(100), at(200), 1_000).await.unwrap();
    assert_eq!(some.len(), 10);
    assert_eq!((some[0].at, some[9].at), (at(110), at(200)));
    let none = store.history(&route("put"), at(0), at(25_000), 100).await;
    assert!(none.unwrap().is_empty());
}

#[tokio::test]
async fn b75_reading_a_long_history_holds_no_transaction_between_its_steps() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hedgerow.db");
    let store = Store::open(&path).await.unwrap();
    store
        .write(&points(&route("get"), 4_000, 7), &[])
        .await
        .unwrap();
    // While it is read again and again, writes go on, and the log can be cut back to nothing.
    let reader = store.clone();
    let reading = tokio::spawn(async move {
        for _ in 0..20 {
            let read = reader.history(&route("get"), at(0), at(50_000), 50).await;
            assert!(read.unwrap().len() <= 50);
        }
    });
    while !reading.is_finished() {
        store
            .write(&points(&route("put"), 20, 3), &[])
            .await
            .unwrap();
    }
    reading.await.unwrap();
    let (busy, _, _): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(busy, 0);
    let log = std::fs::metadata(path.with_extension("db-wal")).unwrap();
    assert_eq!(log.len(), 0, "nobody held on to it");
}

#[tokio::test]
async fn u04_pages_get_what_is_stored_up_to_now() {
    let standing = Standing::start().await;
    let now = standing.ui.snapshot().at.as_millis();
    let point = |ago: Duration| Record::History {
        route: route("get"),
        point: Point {
            at: Moment::from_millis(now - ago.as_millis() as u64),
            ..Point::default()
        },
    };
    let stored = [
        point(Duration::from_hours(5)),
        point(Duration::from_mins(30)),
    ];
    standing.store.write(&stored, &[]).await.unwrap();
    let hour = Moment::from_millis(now - 3_600_000);
    let read = standing.ui.history(&route("get"), hour, 60).await.unwrap();
    assert_eq!(read.len(), 1);
}
