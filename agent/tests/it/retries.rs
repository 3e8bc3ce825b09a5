//! The example of hedges and retries on one budget, run as it stands.

#[expect(dead_code, reason = "the example's own main prints; the test looks")]
#[path = "../../examples/retries.rs"]
mod example;

use example::{ATTEMPTS, BUDGET, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_and_hedges_share_one_budget_and_mend_most_failures() {
    let (without, with) = (run(false).await.unwrap(), run(true).await.unwrap());
    assert_eq!(without.on_error, 0);
    assert!(without.failed > 30, "two in a hundred fail: {without:?}");
    assert!(
        with.failed * 4 < without.failed,
        "nearly all are mended: {with:?} {without:?}"
    );
    assert!(with.on_error > 30, "{with:?}");
    for it in [without, with] {
        let extra = (it.requests - it.calls) as f64;
        // Counted at the servers. Tokens that were saved up before the first call count too.
        assert!(extra <= BUDGET * it.calls as f64 + it.cap, "{it:?}");
        assert!(it.requests <= ATTEMPTS * it.calls, "{it:?}");
    }
}
