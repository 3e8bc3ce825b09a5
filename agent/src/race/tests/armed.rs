//! An agent of a fleet of which a share is armed at a time, and what a controller lends at the start.

use std::time::Duration;

use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::units::{Budget, Ratio};
use tokio::time::sleep;

use super::rig::{Does, Rig};

const S: Duration = Duration::from_secs(1);
const EPOCH: Duration = Duration::from_secs(20);

/// Arming in whose first two turns the rig's agent is armed or not, as said.
fn arming(rig: &Rig, share: f64, turns: [bool; 2]) -> Arming {
    let agent = &rig.agent.keeper.shared.instance;
    (0..100_000)
        .map(|seed| Arming::new(Ratio::clamped(share), EPOCH, seed).unwrap())
        .find(|arming| turns == [0, 1].map(|turn| arming.armed(agent, EPOCH * turn)))
        .unwrap()
}

/// A slow call, and whether it was hedged.
async fn slow(rig: &Rig) -> bool {
    let before = rig.totals().hedged;
    rig.call(Does::Answers(300), Does::Answers(10))
        .await
        .0
        .unwrap();
    rig.totals().hedged > before
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_turn_it_is_not_earns_and_holds_nothing_and_refuses() {
    let mut rig = Rig::hedging().await;
    let bucket = || rig.route.state.bucket.tokens();
    assert!(bucket() > 39.0);
    let others = arming(&rig, 0.1, [false, true]);
    rig.direct(|directive| {
        directive.live.arming = Some(others);
        directive.live.cap = 1.0;
    });
    for _ in 0..20 {
        assert!(!slow(&rig).await);
    }
    let (refused, tokens) = (
        rig.refused(Refusal::Unarmed),
        rig.route.state.bucket.tokens(),
    );
    assert_eq!((refused, tokens), (20, 0.0));
    assert_eq!(rig.totals().finished, 20);
    assert_eq!(rig.route.snapshot().no_effect, None);

    // Its turn comes by itself, within a second of its time, and begins with nothing. 0.08 / 0.1 a
    // call, and a bucket of one.
    sleep(15 * S).await;
    assert!(!slow(&rig).await);
    assert_eq!(rig.refused(Refusal::Budget), 1);
    assert!((rig.route.state.bucket.tokens() - 0.8).abs() < 1e-6);
    rig.earn(100);
    assert!((rig.route.state.bucket.tokens() - 1.0).abs() < 1e-6);
    assert!(slow(&rig).await);

    // Everyone again: nothing is left of it.
    rig.direct(|directive| directive.live.arming = None);
    assert!((rig.route.state.bucket.earned() - 0.08).abs() < 1e-6);
    assert_eq!(rig.report().over_budget_seconds, 0);
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn when_its_turn_ends_its_tokens_are_gone() {
    let mut rig = Rig::hedging().await;
    let first = arming(&rig, 0.1, [true, false]);
    rig.direct(|directive| directive.live.arming = Some(first));
    rig.earn(100);
    sleep(EPOCH + S).await;
    assert!(rig.route.state.bucket.tokens() <= 0.0);
    assert!(!slow(&rig).await);
    assert_eq!(rig.refused(Refusal::Unarmed), 1);
}

#[tokio::test(start_paused = true)]
async fn p08_a_share_of_a_hundredth_earns_one_hedge_a_call_at_most_and_keeps_to_its_cap() {
    let mut rig = Rig::hedging().await;
    let rare = arming(&rig, 0.01, [true, false]);
    rig.direct(|directive| {
        directive.live.arming = Some(rare);
        directive.live.budget = Budget::clamped(0.25);
        directive.live.cap = 2.0;
    });
    while rig.route.state.bucket.take() {}
    let before = rig.totals();
    assert!(rig.route.state.bucket.earned() <= 1.0);
    // Every call slow, for all of its turn: none finishes without having asked.
    for _ in 0..50 {
        slow(&rig).await;
    }
    let grown = rig.totals().since(&before).unwrap();
    assert!(grown.hedges() <= grown.finished + 2, "{grown:?}");
    assert!(grown.hedges() >= 40);
    assert_eq!(rig.report().over_budget_seconds, 0);
    // Over all turns a hundredth of that: far under the budget.
    let mean = rare.earned(Budget::clamped(0.25)).get() * rare.share().get();
    assert!(mean <= 0.25);
}

#[tokio::test(start_paused = true)]
async fn p02_without_a_controller_the_turns_go_on() {
    let mut rig = Rig::hedging().await;
    let second = arming(&rig, 0.1, [false, true]);
    rig.direct(|directive| {
        directive.live.arming = Some(second);
        directive.standing.lease = 2 * S;
    });
    sleep(10 * S).await;
    assert!(!slow(&rig).await);
    assert_eq!(rig.refused(Refusal::Unarmed), 1);
    sleep(EPOCH).await;
    // 30 s after the lease, of a budget of 2 %; until then of one that falls to it.
    let earned = rig.route.state.bucket.earned();
    assert!(earned > 0.2 && earned < 0.8, "{earned}");
}

#[tokio::test(start_paused = true)]
async fn a_start_credit_is_taken_once_however_often_it_is_sent() {
    let mut rig = Rig::with(|route| route).await;
    rig.direct(|directive| {
        directive.live.cap = 3.0;
        directive.start_credit = 5.0;
    });
    let tokens = |rig: &Rig| rig.route.state.bucket.tokens();
    assert!((tokens(&rig) - 3.0).abs() < 1e-6, "up to the cap");
    for _ in 0..3 {
        assert!(slow(&rig).await);
    }
    // The same again, with newer stamps and ticks.
    for _ in 0..3 {
        rig.direct(|_| {});
    }
    assert!(tokens(&rig) < 1.0, "{}", tokens(&rig));
    assert!(!slow(&rig).await);
    assert_eq!(rig.report().over_budget_seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_credit_is_not_for_an_agent_that_hedged_nor_for_one_with_turns() {
    let mut rig = Rig::hedging().await;
    assert!(slow(&rig).await);
    while rig.route.state.bucket.take() {}
    rig.direct(|directive| directive.start_credit = 5.0);
    assert!(rig.route.state.bucket.tokens() < 1.0, "it has hedged");

    let mut rig = Rig::with(|route| route).await;
    let first = arming(&rig, 0.5, [true, true]);
    rig.direct(|directive| {
        directive.live.arming = Some(first);
        directive.start_credit = 1.0;
    });
    assert!(rig.route.state.bucket.tokens() <= 0.0, "it has turns");
}
