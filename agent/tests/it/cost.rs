//! What a call that is not hedged costs in allocations: none.

use hedgerow_agent::{Agent, Attempt, Call, Replicas};

#[test]
fn a_call_that_is_not_hedged_allocates_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let agent = Agent::builder().service("shop").connect().await.unwrap();
        let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
        let route = agent
            .route("catalog", "get")
            .replicas(replicas)
            .build()
            .unwrap();
        let call = || {
            route.call(Call::idempotent(), |_: Attempt| {
                std::future::ready(Ok::<_, ()>(7))
            })
        };
        // What each thread sets up once.
        call().await.unwrap();
        let counted = allocation_counter::measure(|| {
            for _ in 0..1000 {
                let mut call = std::pin::pin!(call());
                let waker = std::task::Waker::noop();
                let answered = call
                    .as_mut()
                    .poll(&mut std::task::Context::from_waker(waker));
                assert!(answered.is_ready());
            }
        });
        assert_eq!(counted.count_total, 0);
    });
}
