//! Silences, and who works on what.

use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError, SilenceDraft, SilenceId};
use hedgerow_core::event::Order;
use hedgerow_core::view::{AlertPhase, AlertRule, AlertView};
use hedgerow_protocol::ids::{DependencyName, OperationName};

use super::{CALLS, STORM, assert_one_each, told};
use crate::store::Answers;
use crate::world::{World, route};

const RATE: AlertRule = AlertRule::HedgeRateHigh;

fn draft(minutes: u64) -> SilenceDraft {
    SilenceDraft {
        lasts: Duration::from_mins(minutes),
        ..SilenceDraft::default()
    }
}

fn silence(world: &mut World, draft: SilenceDraft) -> SilenceId {
    match world.ordered(Order::Silence(draft)) {
        Ok(Done::Silenced(id)) => id,
        other => panic!("{other:?}"),
    }
}

fn end(world: &mut World, silence: SilenceId) -> Result<Done, OrderError> {
    world.ordered(Order::EndSilence { silence })
}

fn acknowledge(world: &mut World, alert: &str, minutes: Option<u64>) -> Result<Done, OrderError> {
    world.ordered(Order::Acknowledge {
        alert: alert.into(),
        lasts: minutes.map(Duration::from_mins),
    })
}

fn first(world: &World) -> AlertView {
    world.snapshot().alerts[0].clone()
}

#[test]
fn p15_what_begins_under_a_silence_is_told_when_that_ends_and_its_end_to_whom_it_was() {
    let mut world = World::hedging();
    let id = silence(&mut world, draft(2));
    world.seconds(60, &[(route(), STORM)]);
    assert!(told(&world, RATE).is_empty());
    let alert = first(&world);
    assert_eq!(alert.phase, AlertPhase::Firing);
    assert_eq!(alert.silenced, Some(id));
    world.seconds(61, &[(route(), STORM)]);
    assert_eq!(told(&world, RATE).len(), 1, "its time is over");
    assert_eq!(first(&world).silenced, None);
    assert!(world.snapshot().silences.is_empty());
    world.seconds(40, &[(route(), CALLS)]);
    assert_one_each(&told(&world, RATE), 1);
}

#[test]
fn b77_what_begins_and_ends_under_a_silence_nobody_hears_of_and_the_next_is_told() {
    let mut world = World::hedging();
    let id = silence(&mut world, draft(60));
    world.seconds(30, &[(route(), STORM)]);
    world.seconds(40, &[(route(), CALLS)]);
    assert_eq!(first(&world).phase, AlertPhase::Resolved);
    end(&mut world, id).unwrap();
    world.seconds(5, &[(route(), CALLS)]);
    assert!(world.store.notices.is_empty());
    world.seconds(30, &[(route(), STORM)]);
    world.seconds(40, &[(route(), CALLS)]);
    assert_one_each(&told(&world, RATE), 1);
}

#[test]
fn a_silence_over_what_fires_already_keeps_nothing_back() {
    let mut world = World::hedging();
    world.seconds(30, &[(route(), STORM)]);
    let id = silence(&mut world, draft(60));
    assert_eq!(first(&world).silenced, Some(id));
    world.seconds(40, &[(route(), CALLS)]);
    assert_one_each(&told(&world, RATE), 1);
}

#[test]
fn of_two_silences_the_one_that_lasts_keeps_what_both_cover() {
    let mut world = World::hedging();
    let first_one = silence(&mut world, draft(1));
    let second = silence(&mut world, draft(30));
    world.seconds(90, &[(route(), STORM)]);
    assert_eq!(first(&world).silenced, Some(second));
    assert_eq!(
        end(&mut world, first_one),
        Err(OrderError::UnknownSilence(first_one))
    );
    assert!(told(&world, RATE).is_empty());
    end(&mut world, second).unwrap();
    world.second(&[(route(), STORM)]);
    assert_eq!(told(&world, RATE).len(), 1);
    world.seconds(60, &[(route(), STORM)]);
    assert_eq!(told(&world, RATE).len(), 1);
}

#[test]
fn a_silence_is_for_what_matches_all_it_names() {
    let catalog = DependencyName::new("catalog").unwrap();
    let named = SilenceDraft {
        dependency: Some(catalog.clone()),
        ..draft(60)
    };
    let table = [
        (draft(60), true),
        (named.clone(), true),
        (
            SilenceDraft {
                rule: Some(RATE),
                operation: OperationName::new("get").ok(),
                ..named.clone()
            },
            true,
        ),
        (
            SilenceDraft {
                rule: Some(AlertRule::SharedSlowdown),
                ..named.clone()
            },
            false,
        ),
        (
            SilenceDraft {
                operation: OperationName::new("put").ok(),
                ..named.clone()
            },
            false,
        ),
        (
            SilenceDraft {
                dependency: DependencyName::new("cart").ok(),
                ..draft(60)
            },
            false,
        ),
        (
            SilenceDraft {
                replica: Some("r0".into()),
                ..named
            },
            false,
        ),
    ];
    for (draft, silences) in table {
        let mut world = World::hedging();
        silence(&mut world, draft.clone());
        world.seconds(30, &[(route(), STORM)]);
        assert_eq!(told(&world, RATE).is_empty(), silences, "{draft:?}");
    }
}

#[test]
fn p15_silences_and_what_they_kept_survive_a_restart() {
    let mut world = World::hedging();
    let id = silence(&mut world, draft(10));
    world.seconds(30, &[(route(), STORM)]);
    for _ in 0..2 {
        world.restart(Duration::from_secs(10));
        world.seconds(20, &[(route(), STORM)]);
        assert_eq!(first(&world).silenced, Some(id));
    }
    assert!(told(&world, RATE).is_empty());
    // It ends while nobody is there to see it.
    world.restart(Duration::from_mins(10));
    world.seconds(5, &[(route(), STORM)]);
    assert_eq!(told(&world, RATE).len(), 1);
    world.restart(Duration::from_secs(10));
    world.seconds(20, &[(route(), STORM)]);
    world.seconds(40, &[(route(), CALLS)]);
    assert_one_each(&told(&world, RATE), 1);
    assert!(silence(&mut world, draft(1)) > id, "a number of its own");
}

#[test]
fn a_silence_that_cannot_be_is_refused_with_what_was_expected() {
    let mut world = World::hedging();
    let operation = OperationName::new("get").ok();
    let table = [
        (draft(0), "minutes"),
        (draft(30 * 24 * 60 + 1), "minutes"),
        (
            SilenceDraft {
                operation,
                ..draft(5)
            },
            "operation",
        ),
        (
            SilenceDraft {
                replica: Some("<b>".into()),
                ..draft(5)
            },
            "replica",
        ),
    ];
    for (draft, wrong) in table {
        match world.ordered(Order::Silence(draft.clone())) {
            Err(OrderError::OutOfRange { field, .. }) => assert_eq!(field, wrong),
            other => panic!("{draft:?}: {other:?}"),
        }
    }
    let silent = world.order_because(" ", Order::Silence(draft(5)));
    assert_eq!(world.replies[&silent], Err(OrderError::NoReason));
    assert!(world.snapshot().silences.is_empty());
    for minutes in [1, 30 * 24 * 60] {
        silence(&mut world, draft(minutes));
    }
    for _ in 2..256 {
        silence(&mut world, draft(5));
    }
    let one_more = world.ordered(Order::Silence(draft(5)));
    assert!(
        matches!(one_more, Err(OrderError::NotNow(_))),
        "{one_more:?}"
    );
    // Those whose time is over make room.
    world.seconds(61, &[(route(), CALLS)]);
    silence(&mut world, draft(5));
}

#[test]
fn each_act_has_its_line_in_the_record_in_the_same_write() {
    let mut world = World::hedging();
    let id = silence(
        &mut world,
        SilenceDraft {
            rule: Some(RATE),
            dependency: DependencyName::new("catalog").ok(),
            ..draft(90)
        },
    );
    end(&mut world, id).unwrap();
    world.seconds(20, &[(route(), STORM)]);
    let alert = first(&world).state.id;
    acknowledge(&mut world, &alert, Some(30)).unwrap();
    let rows = world.store.audit.iter().rev().take(3).rev();
    let rows: Vec<_> = rows
        .map(|it| [&it.action, &it.target, &it.before, &it.after].map(String::as_str))
        .collect();
    let acknowledged = format!("{alert} for 30 min");
    let words = "HedgeRateHigh for 1 h 30 min";
    assert_eq!(
        rows,
        [
            ["silence.begin", "catalog", "", words],
            ["silence.end", "catalog", words, ""],
            ["alert.acknowledge", "catalog get", "", &acknowledged],
        ]
    );
}

#[test]
fn a_silence_that_could_not_be_stored_is_none_and_its_number_is_not_used_again() {
    let mut world = World::hedging();
    world.store.answers = Answers::Never;
    let refused = world.ordered(Order::Silence(draft(5)));
    assert!(matches!(refused, Err(OrderError::NotPersisted(_))));
    assert!(world.snapshot().silences.is_empty());
    world.store.answers = Answers::Now;
    assert_eq!(silence(&mut world, draft(5)), SilenceId(2));
    // Nor is one over before its end is stored.
    world.store.answers = Answers::Never;
    assert!(end(&mut world, SilenceId(2)).is_err());
    assert_eq!(world.snapshot().silences.len(), 1);
}

#[test]
fn an_acknowledgement_says_who_and_changes_nothing_else() {
    let mut world = World::hedging();
    world.seconds(5, &[(route(), STORM)]);
    let alert = first(&world).state.id;
    let early = acknowledge(&mut world, &alert, None);
    assert!(matches!(early, Err(OrderError::NotNow(_))), "{early:?}");
    world.seconds(15, &[(route(), STORM)]);
    let alert = first(&world).state.id;
    acknowledge(&mut world, &alert, None).unwrap();
    let by = first(&world).acknowledged.unwrap();
    assert_eq!((by.actor.name.as_str(), by.until), ("ann", None));
    assert_eq!(by.comment, "a test wants it");
    world.restart(Duration::from_secs(10));
    world.seconds(60, &[(route(), STORM)]);
    assert_eq!(first(&world).acknowledged, Some(by), "also over a restart");
    assert_eq!(told(&world, RATE).len(), 1, "no notice of its own");
    world.seconds(40, &[(route(), CALLS)]);
    assert_one_each(&told(&world, RATE), 1);
    assert_eq!(first(&world).acknowledged, None);
    let late = acknowledge(&mut world, &alert, None);
    assert!(matches!(late, Err(OrderError::NotNow(_))), "{late:?}");
    // The next episode is nobody's yet.
    world.seconds(30, &[(route(), STORM)]);
    assert_eq!(first(&world).acknowledged, None);
}

#[test]
fn an_acknowledgement_ends_at_its_time_and_the_next_takes_its_place() {
    let mut world = World::hedging();
    world.seconds(20, &[(route(), STORM)]);
    let alert = first(&world).state.id;
    acknowledge(&mut world, &alert, Some(30)).unwrap();
    acknowledge(&mut world, &alert, Some(1)).unwrap();
    world.seconds(59, &[(route(), STORM)]);
    assert!(first(&world).acknowledged.is_some());
    world.seconds(2, &[(route(), STORM)]);
    assert_eq!(first(&world).acknowledged, None);
    for minutes in [0, 30 * 24 * 60 + 1] {
        let refused = acknowledge(&mut world, &alert, Some(minutes));
        assert!(
            matches!(
                &refused,
                Err(OrderError::OutOfRange {
                    field: "minutes",
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    assert_eq!(
        acknowledge(&mut world, "nothing", None),
        Err(OrderError::UnknownAlert("nothing".into()))
    );
}
