//! The course of a route's replicas: a column each 10 s, bounded, and never a figure where nothing
//! is known.

use std::collections::BTreeSet;

use crate::traffic::Traffic;
use crate::world::{World, route};

#[test]
fn u06_a_column_each_ten_seconds_and_never_more_than_fifteen_minutes() {
    let mut world = World::hedging();
    let course = world.view(&route()).replica_course.clone();
    assert!((2..=3).contains(&course.columns.len()), "30 s of calls");
    world.checked = false;
    world.seconds(1_000, &[(route(), Traffic::HEALTHY)]);
    let course = world.view(&route()).replica_course.clone();
    assert_eq!(course.columns.len(), 90);
    let steps: BTreeSet<u64> = course
        .columns
        .windows(2)
        .map(|it| it[1].at.since(it[0].at).as_secs())
        .collect();
    assert_eq!(steps, [10].into());
    for column in &course.columns {
        assert_eq!(column.replicas.len(), 4);
        assert_eq!(column.cells.len(), 4);
        assert!(column.cells.iter().all(|cell| cell.p95_ms.is_some()));
        // 400 calls of three agents for 10 s, over four replicas.
        assert!(column.cells.iter().all(|cell| cell.calls == 3_000));
        assert!(column.cells.iter().all(|cell| cell.win_rate().is_none()));
    }
    let slow = course.slow.as_ref().unwrap();
    assert!(slow.rows.is_empty() && slow.columns.is_empty(), "{slow:?}");
}

#[test]
fn u06_one_slow_replica_is_a_row_and_all_of_them_a_column() {
    let mut world = World::hedging();
    world.seconds(60, &[(route(), Traffic::HEALTHY)]);
    let mut one = world.clone();
    let bad = Traffic {
        slow: 0.2,
        one_replica: true,
        ..Traffic::HEALTHY
    };
    one.seconds(70, &[(route(), bad)]);
    let slow = one.view(&route()).replica_course.slow.clone().unwrap();
    assert_eq!(slow.rows[0].replica.as_str(), "r0");
    assert!(slow.columns.is_empty(), "{slow:?}");

    let all = Traffic {
        usual_ms: 60,
        ..Traffic::HEALTHY
    };
    world.seconds(30, &[(route(), all)]);
    let slow = world.view(&route()).replica_course.slow.clone().unwrap();
    assert!(slow.rows.is_empty(), "{slow:?}");
    assert_eq!(slow.lasting().map(|it| it.known), Some(4));
}

#[test]
fn u06_silence_is_an_empty_column_and_after_fifteen_minutes_nothing() {
    let mut world = World::hedging();
    world.checked = false;
    world.seconds(60, &[]);
    let course = world.view(&route()).replica_course.clone();
    let newest = course.columns.last().unwrap();
    assert!(newest.replicas.is_empty(), "nobody was called");
    assert!(course.columns[0].cells.iter().all(|cell| cell.calls > 0));
    world.seconds(1_000, &[]);
    let course = world.view(&route()).replica_course.clone();
    assert!(course.columns.is_empty() && course.slow.is_none());
}
