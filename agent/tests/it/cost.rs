//! What a call that is not hedged costs in allocations: none.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hedgerow_agent::{Agent, Attempt, Call, Intent, Policy, PolicyDraft, Replicas, Route};
use tokio::task::coop::unconstrained;

const CALLS: u64 = 10_000;

/// Answers at once, or when polled again.
struct Answer {
    polls_left: u32,
}

impl Future for Answer {
    type Output = Result<u64, ()>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls_left == 0 {
            return Poll::Ready(Ok(7));
        }
        self.polls_left -= 1;
        Poll::Pending
    }
}

async fn route(intent: Intent) -> Route {
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let observing = Policy::observing("catalog".parse().unwrap());
    let policy = Policy::try_from(PolicyDraft {
        intent,
        threshold_min_ms: Some(50.0),
        ..observing.into()
    });
    let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
    let route = agent
        .route("catalog", "get")
        .replicas(replicas)
        .hedge_standalone(policy.unwrap())
        .build()
        .unwrap();
    // What a thread sets up once for the route and for each replica; and enough calls to hedge by.
    make_calls(&route, 300, 0);
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    make_calls(&route, 300, 1);
    route
}

/// Polled by hand: no task, no waker, no turn of the runtime is in what is counted.
fn make_calls(route: &Route, calls: u64, polls_left: u32) {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..calls {
        let call = route.call(Call::idempotent(), |_: Attempt| Answer { polls_left });
        let mut call = pin!(unconstrained(call));
        for _ in 0..polls_left {
            assert!(call.as_mut().poll(&mut cx).is_pending());
        }
        assert!(call.as_mut().poll(&mut cx).is_ready());
    }
}

fn allocations(route: &Route, polls_left: u32) -> u64 {
    allocation_counter::measure(|| make_calls(route, CALLS, polls_left)).count_total
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_hedged_allocates_nothing() {
    let route = route(Intent::Observe).await;
    for polls_left in [0, 1, 2] {
        assert_eq!(allocations(&route, polls_left), 0, "{polls_left} polls");
    }
}

/// While hedging is on, the primary of one call in ten is boxed, so that its loser can be watched:
/// one allocation for each of these, and no other.
#[tokio::test(start_paused = true)]
async fn while_hedging_is_on_one_call_in_ten_boxes_its_primary() {
    let route = route(Intent::Hedge).await;
    let effective = route.snapshot().effective;
    assert!(effective.threshold.is_some() && effective.mode.hedges());
    for polls_left in [0, 1, 2] {
        let boxed = allocations(&route, polls_left);
        // Six standard deviations of 10,000 draws.
        let share = CALLS / 10;
        assert!(boxed.abs_diff(share) < 180, "{polls_left} polls: {boxed}");
    }
    assert_eq!(route.snapshot().totals.hedged, 0);
}
