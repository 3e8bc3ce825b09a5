//! What is typed, read.

use super::super::diff::changes;
use super::*;

fn typed() -> Typed {
    Typed::from_policy(&Policy::observing("catalog".parse().unwrap()))
}

fn check(typed: &Typed) -> Checked {
    typed.check(&"catalog".parse().unwrap())
}

#[test]
fn a_policy_survives_the_form() {
    let policy = Policy::observing("catalog".parse().unwrap());
    assert_eq!(check(&typed()).policy, Some(policy));
}

#[test]
fn a_goal_and_a_pool_survive_the_form_and_are_named_in_the_diff() {
    let before = check(&typed()).policy.unwrap();
    let with = Typed {
        goal: "0.999".into(),
        pool: " checkout ".into(),
        objective_ms: "120".into(),
        ..typed()
    };
    let after = check(&with).policy.unwrap();
    assert_eq!(
        check(&Typed::from_policy(&after)).policy,
        Some(after.clone())
    );
    let words: Vec<_> = changes(&before, &after)
        .into_iter()
        .map(|c| format!("{}: {} -> {}", c.field, c.before, c.after))
        .collect();
    assert_eq!(
        words,
        [
            "Aim: percentile -> p99.9 under the budget",
            "Pool: none -> checkout",
            "Objective: none -> 120 ms"
        ]
    );
}

#[test]
fn b60_a_pool_without_an_objective_and_a_goal_out_of_range_are_named() {
    let checked = check(&Typed {
        goal: "99".into(),
        pool: "checkout".into(),
        ..typed()
    });
    let goal = checked.error("goal").unwrap();
    assert!(goal.contains("from 0.9 to 0.9995"), "{goal}");
    let objective = checked.error("objective_ms").unwrap();
    assert!(objective.contains("is needed in a pool"), "{objective}");
}

#[test]
fn c06_a_percentile_of_95_is_refused_beside_its_field_with_the_range() {
    let checked = check(&Typed {
        percentile: "95".into(),
        ..typed()
    });
    assert_eq!(checked.policy, None);
    assert!(
        checked
            .error("percentile")
            .unwrap()
            .contains("from 0.92 to 0.999")
    );
    assert_eq!(checked.count(), 1);
}

#[test]
fn b60_what_is_no_number_is_named_with_what_was_expected() {
    let checked = check(&Typed {
        percentile: "p95".into(),
        budget: String::new(),
        threshold_max_ms: "fast".into(),
        intent: "yes".into(),
        ..typed()
    });
    for (field, expected) in [
        ("percentile", "from 0.92 to 0.999"),
        ("budget", "at most 0.25"),
        ("threshold_max_ms", "milliseconds"),
        ("intent", "off, observe, hedge"),
    ] {
        assert!(checked.error(field).unwrap().contains(expected), "{field}");
    }
}

#[test]
fn stages_are_read_in_percent_and_named_where_they_cannot_stand() {
    let steps = |stages: &str, stay_s: &str| {
        check(&Typed {
            rollout: STEPS.into(),
            stages: stages.into(),
            stay_s: stay_s.into(),
            ..typed()
        })
    };
    let plan = steps("10 %, 55; 100", "60").plan.unwrap();
    assert_eq!(plan.stages(), [0.1, 0.55, 1.0]);
    assert_eq!(plan.stay(), Duration::from_mins(1));
    assert_eq!(steps("", "").plan, Some(RolloutPlan::default()));
    assert_eq!(typed().stages, STAGES);
    assert_eq!(steps(STAGES, "120").plan, Some(RolloutPlan::default()));
    for (stages, stay, fields) in [
        ("25, 5, 100", "120", vec!["stages"]),
        ("5, 25", "120", vec!["stages"]),
        ("five", "120", vec!["stages"]),
        ("5, 100", "5", vec!["stay_s"]),
        ("5, 100", "soon", vec!["stay_s"]),
        ("0, 100", "1e300", vec!["stages", "stay_s"]),
    ] {
        let checked = steps(stages, stay);
        let named: Vec<_> = checked.errors().iter().map(|(field, _)| *field).collect();
        assert_eq!(named, fields, "{stages} {stay}");
        assert_eq!(checked.policy, None);
    }
    let pattern = Typed {
        rollout: STEPS.into(),
        ..typed()
    };
    let checked = pattern.check(&"cat*".parse().unwrap());
    assert!(checked.error("rollout").unwrap().contains("pattern"));
}

#[test]
fn a_diff_names_only_what_differs() {
    let before = check(&typed()).policy.unwrap();
    let after = check(&Typed {
        intent: "hedge".into(),
        budget: "0.1".into(),
        ..typed()
    });
    let fields: Vec<_> = changes(&before, &after.policy.unwrap())
        .into_iter()
        .map(|c| c.field)
        .collect();
    assert_eq!(fields, ["Hedging", "Budget"]);
}
