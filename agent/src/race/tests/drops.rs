//! Callers that go away.

use hedgerow_protocol::report::ReplicaReport;
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

use super::rig::{D, Does, MS, Rig};
use crate::attempt::AttemptKind;
use crate::eligibility::Verdict;

#[tokio::test(start_paused = true)]
async fn b20_a_caller_that_gives_up_is_not_an_error() {
    let mut rig = Rig::hedging().await;
    for after in [D / 2, D * 2] {
        let call = rig.call(Does::Never, Does::Never);
        assert!(timeout(after, call).await.is_err());
    }
    let t = rig.totals();
    assert_eq!((t.started, t.finished, t.abandoned, t.failed), (2, 2, 2, 0));
    assert_eq!((t.crossed, t.hedged), (1, 1));
    assert_eq!((t.primary_finished, t.primary_errors), (0, 0));
    assert_eq!((t.hedge_finished, t.hedge_errors), (0, 0));
    rig.assert_at_rest().await;
    let report = rig.report();
    assert_eq!(
        (
            report.primary.censored.count(),
            report.hedge.censored.count()
        ),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_gives_up_by_itself_is_not_an_error_either() {
    let mut rig = Rig::hedging().await;
    let (outcome, _) = rig
        .call(Does::Fails(5, Verdict::Dropped), Does::Never)
        .await;
    assert!(outcome.is_err());
    let t = rig.totals();
    assert_eq!((t.abandoned, t.failed, t.primary_finished), (1, 0, 0));
    rig.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn c13_dropped_at_any_moment_nothing_is_left() {
    let mut rig = Rig::hedging().await;
    for after in 0..300 {
        rig.earn(20);
        let call = rig.call(Does::Answers(180), Does::Fails(60, Verdict::Retryable));
        let _ = timeout(after * MS, call).await;
    }
    rig.assert_at_rest().await;
    assert!(rig.totals().abandoned > 100);
}

#[tokio::test(start_paused = true)]
async fn c13_a_watched_loser_ends_with_the_agent() {
    let mut rig = Rig::hedging().await;
    for _ in 0..400 {
        rig.earn(20);
        rig.call(Does::Never, Does::Answers(1)).await.0.unwrap();
    }
    let watched = rig.route.snapshot().effective.watched_losers;
    assert!(watched > 0, "of 400 hedged calls some are watched");
    assert!(watched <= crate::watch::WATCHED_MAX);
    rig.agent.shutdown().await;
    rig.assert_at_rest().await;
    // Calls go on after a shutdown, without hedges: nobody renews what they would hang on.
    let hedged = rig.totals().hedged;
    rig.earn(100);
    let (outcome, took) = rig.call(Does::Answers(300), Does::Answers(1)).await;
    assert_eq!(outcome, Ok(AttemptKind::Primary));
    assert!(took >= 300 * MS);
    assert_eq!(rig.totals().hedged, hedged);
}

fn does() -> impl Strategy<Value = Does> {
    let verdict = prop_oneof![
        Just(Verdict::Fatal),
        Just(Verdict::Retryable),
        Just(Verdict::PushBack),
        Just(Verdict::Dropped),
    ];
    prop_oneof![
        3 => (0u32..300).prop_map(Does::Answers),
        2 => (1u32..300, verdict).prop_map(|(ms, verdict)| Does::Fails(ms, verdict)),
        1 => Just(Does::Never),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever attempts do and whenever callers leave: all is given back, every call ends once,
    /// every attempt is recorded once, and hedges stay within the budget.
    #[test]
    fn c13_the_books_always_balance(
        calls in prop::collection::vec((does(), does(), prop::option::of(0u32..400)), 1..60),
        holdout in 0.0..0.5f64,
        probability in 0.0..=1.0f64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut rig = Rig::hedging().await;
            rig.direct(|d| {
                d.standing.holdout = hedgerow_protocol::units::Ratio::clamped(holdout);
                d.live.probability = hedgerow_protocol::units::Ratio::clamped(probability);
            });
            let running = calls.iter().map(|(primary, hedge, leaves)| async {
                let call = rig.call(*primary, *hedge);
                match leaves {
                    Some(ms) => drop(timeout(*ms * MS, call).await),
                    None => drop(call.await),
                }
            });
            futures::future::join_all(running).await;
            sleep(61_000 * MS).await;
            rig.assert_at_rest().await;
            let t = rig.totals();
            assert_eq!(t.crossed, t.hedged + t.refused.iter().sum::<u64>());
            let report = rig.report();
            assert_eq!(report.primary.done.count() + report.primary.censored.count(), t.started);
            assert_eq!(report.hedge.done.count() + report.hedge.censored.count(), t.hedged);
            assert_eq!(report.treated.count(), t.treated_finished);
            assert_eq!(report.holdout.count(), t.holdout_finished);
            let on_replicas: u64 = report.replicas.iter().map(|replica| replica.started).sum();
            assert_eq!(on_replicas, t.started);
            let of_replicas = |count: fn(&ReplicaReport) -> u64| -> u64 {
                report.replicas.iter().map(count).sum()
            };
            assert_eq!(of_replicas(|replica| replica.hedged), t.hedged);
            assert_eq!(of_replicas(|replica| replica.won), t.won);
            assert_eq!(report.over_budget_seconds, 0);
        });
    }
}
