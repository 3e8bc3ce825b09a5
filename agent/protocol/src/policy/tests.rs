//! What a policy may be.

use super::*;
use crate::ids::DependencyName;

fn draft() -> PolicyDraft {
    Policy::observing(DependencyName::new("catalog").unwrap().into()).into()
}

#[test]
fn c06_a_percentile_of_95_is_refused_with_the_accepted_range() {
    let errors = Policy::try_from(PolicyDraft {
        percentile: 95.0,
        ..draft()
    })
    .unwrap_err();
    assert_eq!(errors.0.len(), 1);
    assert_eq!(errors.0[0].field, "percentile");
    assert_eq!(
        errors.0[0].message,
        "95 is out of range: expected a number from 0.92 to 0.999"
    );
}

#[test]
fn b60_every_blank_or_impossible_field_is_named_at_once() {
    let bad = PolicyDraft {
        dependency: " ".into(),
        percentile: f64::NAN,
        budget: 0.0,
        holdout: -1.0,
        error_limit: f64::INFINITY,
        threshold_min_ms: Some(0.0),
        threshold_max_ms: Some(f64::NAN),
        ..draft()
    };
    let fields: Vec<_> = Policy::try_from(bad)
        .unwrap_err()
        .0
        .into_iter()
        .map(|e| e.field)
        .collect();
    assert_eq!(
        fields,
        [
            "dependency",
            "percentile",
            "budget",
            "holdout",
            "error_limit",
            "threshold_min_ms",
            "threshold_max_ms"
        ]
    );
}

#[test]
fn b14_nothing_is_hedged_by_default() {
    assert_eq!(draft().intent, Intent::Observe);
}

#[test]
fn b60_a_goal_a_pool_and_an_objective_that_cannot_stand_are_refused_in_their_fields() {
    let refused = |draft: PolicyDraft| Policy::try_from(draft).unwrap_err().to_string();
    for goal in [0.5, 0.99951, 99.0, f64::NAN] {
        let words = refused(PolicyDraft {
            goal: Some(goal),
            ..draft()
        });
        assert_eq!(
            words,
            format!("goal: {goal} is out of range: expected a number from 0.9 to 0.9995")
        );
    }
    let words = refused(PolicyDraft {
        pool: Some("check out".into()),
        objective_ms: Some(0.0),
        ..draft()
    });
    assert!(words.starts_with("pool: has the character ' '"), "{words}");
    assert!(words.contains("objective_ms: 0"), "{words}");
    let words = refused(PolicyDraft {
        pool: Some("checkout".into()),
        ..draft()
    });
    assert_eq!(
        words,
        "objective_ms: is needed in a pool (checkout): expected the milliseconds a call should \
         take at most"
    );
}

#[test]
fn what_an_older_controller_stored_is_read_and_what_is_absent_is_not_written() {
    let stored = serde_json::to_string(&draft()).unwrap();
    for field in ["goal", "pool", "objective_ms"] {
        assert!(!stored.contains(field), "{stored}");
    }
    assert_eq!(
        serde_json::from_str::<PolicyDraft>(&stored).unwrap(),
        draft()
    );
}

#[test]
fn a_policy_survives_the_way_out_and_in_again() {
    let policy = Policy::try_from(PolicyDraft {
        goal: Some(0.999),
        pool: Some("checkout".into()),
        objective_ms: Some(120.0),
        threshold_min_ms: Some(2.5),
        threshold_max_ms: Some(250.0),
        ..draft()
    })
    .unwrap();
    assert_eq!(
        Policy::try_from(PolicyDraft::from(policy.clone())),
        Ok(policy)
    );
}

#[test]
fn every_field_of_a_draft_is_named() {
    let whole = PolicyDraft {
        operation: Some("get-item".into()),
        threshold_min_ms: Some(1.0),
        threshold_max_ms: Some(2.0),
        goal: Some(0.99),
        pool: Some("checkout".into()),
        objective_ms: Some(100.0),
        ..draft()
    };
    let fields = serde_json::to_value(whole).unwrap();
    let mut fields: Vec<_> = fields.as_object().unwrap().keys().cloned().collect();
    let mut named = PolicyDraft::FIELDS.map(str::to_owned);
    fields.sort_unstable();
    named.sort_unstable();
    assert_eq!(fields, named);
}
