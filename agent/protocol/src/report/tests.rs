use super::*;

#[test]
fn impossible_counters_are_refused_and_named() {
    let totals = Totals {
        started: 10,
        crossed: 3,
        hedged: 4,
        ..Totals::default()
    };
    assert_eq!(
        totals.check().unwrap_err().to_string(),
        "totals: hedged (4) is above crossed (3)"
    );
}

/// Makes counters ones that no honest agent has.
type Spoil = fn(&mut Totals);

#[test]
fn p12_counters_beyond_what_was_started_are_refused_and_named() {
    let honest = Totals {
        started: 100,
        finished: 90,
        failed: 3,
        abandoned: 2,
        crossed: 10,
        hedged: 4,
        won: 2,
        primary_finished: 95,
        primary_errors: 5,
        hedge_finished: 3,
        hedge_errors: 1,
        push_back: 6,
        treated_finished: 80,
        treated_failed: 2,
        holdout_finished: 8,
        holdout_failed: 1,
        hedged_again: 2,
        hedged_on_error: 3,
        won_on_error: 1,
        further_refused: 5,
        refused: [1, 1, 0, 1, 1, 1, 0, 0, 0, 1],
        ..Totals::default()
    };
    assert_eq!(honest.check(), Ok(()));
    let spoilers: [(&str, Spoil); 12] = [
        ("hedged_again (9) is above hedged", |it| it.hedged_again = 9),
        ("won_on_error (4) is above hedged_on_error", |it| {
            it.won_on_error = 4;
        }),
        ("further_refused (201) is above twice started", |it| {
            it.further_refused = 201;
        }),
        ("primary_finished (17592186044416) is above started", |it| {
            it.primary_finished = 1 << 44;
            it.primary_errors = 1 << 44;
        }),
        ("push_back (17592186044416) is above started +", |it| {
            it.push_back = 1 << 44;
        }),
        ("above finished (90)", |it| it.treated_finished = 1 << 46),
        ("above finished (90)", |it| it.holdout_finished = 11),
        ("above finished (90)", |it| it.abandoned = u64::MAX),
        (
            "treated_failed + holdout_failed (4) is above failed",
            |it| {
                it.treated_failed = 3;
            },
        ),
        ("failed_despite_primary (4) is above failed", |it| {
            it.failed_despite_primary = 4;
        }),
        ("hedged + refused (11) is above crossed", |it| {
            it.refuse(Refusal::Budget);
        }),
        ("17592186044326 calls started and not", |it| {
            it.started = 1 << 44;
        }),
    ];
    for (expected, spoil) in spoilers {
        let mut totals = honest;
        spoil(&mut totals);
        let refused = totals.check().unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn since_is_the_inverse_of_add() {
    let mut a = Totals {
        started: 5,
        won: 1,
        ..Totals::default()
    };
    let mut b = Totals {
        started: 7,
        ..Totals::default()
    };
    b.refuse(Refusal::Budget);
    let before = a;
    a.add(&b);
    assert_eq!(a.since(&before), Some(b));
    assert_eq!(before.since(&a), None);
}
