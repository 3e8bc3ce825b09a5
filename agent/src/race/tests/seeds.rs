//! Ten thousand calls, each from a seed of its own: whatever attempts do, whenever callers leave and
//! whatever is directed meanwhile, nothing is left, the books balance, and hedges are paid for.

use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::units::{AttemptLimit, Budget, Ratio, Threshold};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time::sleep;

use super::rig::{MS, Rig};
use super::script::{DEADLINE, Model, play};
use crate::budget::TokenBucket;
use crate::chance::Dice;
use crate::replicas::Replicas;

/// Runtimes, and calls in each: 10,000 in all.
const RUNTIMES: u32 = 40;
const CALLS: u64 = 250;

/// Another directive, from `dice`.
fn redirect(rig: &mut Rig, dice: &mut Dice, model: &Mutex<Model>) {
    let threshold = Duration::from_micros(100 + dice.below(60_000));
    let budget = match dice.below(6) {
        0 => Budget::ZERO,
        1 => Budget::clamped(0.25 * dice.share()),
        _ => Budget::clamped(0.25),
    };
    let cap = 12.0 * dice.share();
    rig.direct(|directive| {
        directive.mode = match dice.below(16) {
            0 => Mode::Off(OffReason::KillSwitch),
            1 => Mode::Observing,
            2 => Mode::Probing(OffReason::SharedSlowdown),
            _ => Mode::On,
        };
        let (live, standing) = (&mut directive.live, &mut directive.standing);
        live.threshold = Some(Threshold::new(threshold).unwrap());
        live.budget = budget;
        live.cap = cap;
        live.probability = if dice.percent(70) {
            Ratio::ONE
        } else {
            Ratio::clamped(dice.share())
        };
        standing.holdout = Ratio::clamped(if dice.percent(70) { 0.0 } else { 0.3 });
        standing.attempts = AttemptLimit::new(2 + dice.below(2)).unwrap();
        standing.hedge_on_error = dice.percent(50);
        directive.probation.clear();
        if dice.percent(20) {
            directive.probation.push("b:1".parse().unwrap());
        }
    });
    model.lock().direct(budget.get(), cap);
}

/// Directs, discovers and reports while calls go on.
async fn meddle(rig: &mut Rig, replicas: &Replicas, seed: u64, model: &Mutex<Model>) {
    let dice = &mut Dice::new(seed);
    for _ in 0..30 {
        sleep(Duration::from_micros(dice.below(200_000))).await;
        match dice.below(6) {
            0 => {
                let all = [("a:1", None), ("b:1", Some("eu-2")), ("c:1", None)];
                let some = 1 + dice.below(3) as usize;
                replicas.replace(all.into_iter().take(some)).unwrap();
            }
            1 => {
                let _ = rig.report();
            }
            _ => redirect(rig, dice, model),
        }
    }
}

/// Plays the calls from `seed` on one route and holds everything to account.
async fn play_all(seed: u64) {
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)]).unwrap();
    let mut rig = Rig::with(|route| {
        let route = route.replicas(replicas.clone()).deadline(DEADLINE);
        route.max_in_flight(200).max_hedges_in_flight(100)
    })
    .await;
    crate::chance::seed(seed);
    let model = Mutex::new(Model::default());
    rig.direct(|directive| {
        directive.live.budget = Budget::clamped(0.25);
        directive.live.threshold = Some(Threshold::new(20 * MS).unwrap());
    });
    model.lock().direct(0.25, 40.0);
    let route = rig.route.clone();
    let calls = (1..=CALLS).map(|call| play(&route, seed.wrapping_add(call), &model));
    let calls = futures::future::join_all(calls);
    tokio::join!(calls, meddle(&mut rig, &replicas, seed, &model));
    // Losers that are watched, and work that ignores having been given up.
    sleep(Duration::from_secs(61)).await;
    rig.assert_at_rest().await;

    let model = model.into_inner();
    model.assert_within_budget();
    let t = rig.totals();
    let seen = (model.begun, model.not_eligible, model.hedges);
    assert_eq!((t.started, t.not_eligible, t.hedges()), seen);
    let seen = (model.by_primary, model.by_hedge);
    let answered = t.primary_finished - t.primary_errors;
    assert_eq!((answered, t.won + t.won_on_error), seen);
    assert_eq!((t.failed, t.abandoned), (model.failed, model.abandoned));
    assert!(model.most <= 3, "{} attempts of one call", model.most);
}

/// What may happen to a bucket.
#[derive(Debug, Clone, Copy)]
enum Step {
    Finish,
    Take,
    Direct(f64, f64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Finish),
        8 => Just(Step::Take),
        1 => (0.0..=1.0, 0.0..20.0).prop_map(|(budget, cap)| Step::Direct(budget, cap)),
    ]
}

fn paused(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// In every window of every sequence: hedges <= what its finishes earned + the cap at its
    /// beginning, also where budget and cap are changed within it; an armed agent's budget is up to 1.
    #[test]
    fn b25_b28_the_bucket_holds_in_every_window_whatever_is_directed_meanwhile(
        steps in prop::collection::vec(step(), 1..600),
    ) {
        let bucket = TokenBucket::default();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Finish => {
                    bucket.earn();
                    model.finish();
                }
                Step::Take if bucket.take() => model.hedge(),
                Step::Take => {}
                Step::Direct(budget, cap) => {
                    bucket.set(Ratio::clamped(budget), cap);
                    model.direct(budget, cap);
                }
            }
        }
        model.assert_within_budget();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(RUNTIMES))]

    #[test]
    fn c13_b28_ten_thousand_seeds_leave_nothing_balance_and_stay_within_the_budget(seed: u64) {
        paused(play_all(seed));
    }
}
