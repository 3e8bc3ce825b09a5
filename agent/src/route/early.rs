//! The first threshold as soon as there are calls enough for one, not when the second is over.
//!
//! A thousand calls may go by in a second, and until there is a threshold none of them can be
//! hedged. So calls that look for a threshold and find none are counted, and the one that makes them
//! enough wakes a task that looks at what the second under way has brought so far, until it ends. The
//! second itself goes on: what is held to seconds (budgets, verdicts, windows) never sees half of
//! one. Where no such call is made nobody wakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_protocol::limits::THRESHOLD_CALLS_MIN;
use tokio::time::{Instant, sleep};

use super::RouteState;
use crate::agent::Shared;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(10);
/// How long a route is looked at, once its calls are enough: after that, what they did is in a
/// second that is over.
const LONGEST: Duration = Duration::from_secs(1);

/// Calls of a route that found no threshold.
#[derive(Debug, Default)]
pub(crate) struct Missed(AtomicU64);

impl Missed {
    /// One more. True for the one that makes them enough; once they are, nothing is written.
    pub(crate) fn one_more(&self) -> bool {
        self.0.load(Ordering::Relaxed) < THRESHOLD_CALLS_MIN
            && self.0.fetch_add(1, Ordering::Relaxed) + 1 == THRESHOLD_CALLS_MIN
    }

    fn enough(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= THRESHOLD_CALLS_MIN
    }

    fn begin_again(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Looks for first thresholds whenever it is woken, until the agent stops.
pub(crate) async fn look_early(shared: Arc<Shared>) {
    let stopping = shared.tasks.stopping.clone();
    let looking = async {
        loop {
            shared.tasks.threshold_missed.notified().await;
            look_until_found(&shared).await;
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = looking => {}
    }
}

async fn look_until_found(shared: &Shared) {
    let mut looked_at: Vec<(Arc<RouteState>, Instant)> = Vec::new();
    loop {
        let now = Instant::now();
        let missing = shared.routes();
        for route in missing.iter().filter(|route| route.missed.enough()) {
            if !looked_at.iter().any(|(known, _)| known.key == route.key) {
                looked_at.push((route.clone(), now + LONGEST));
            }
        }
        looked_at.retain(|(route, until)| {
            let goes_on = !shared.look_early(route, now) && now < *until;
            if !goes_on {
                route.missed.begin_again();
            }
            goes_on
        });
        if looked_at.is_empty() {
            return;
        }
        sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::eligibility::Call;

    #[test]
    fn the_call_that_makes_them_enough_is_told_and_no_other() {
        let missed = Missed::default();
        for _ in 0..2 {
            let told = (0..1000).filter(|_| missed.one_more()).count();
            assert!(told == 1 && missed.enough());
            missed.begin_again();
            assert!((1..THRESHOLD_CALLS_MIN).all(|_| !missed.one_more()));
            assert!(!missed.enough(), "one short of it, nobody is woken");
            missed.begin_again();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_do_not_end_are_not_looked_at_for_ever() {
        let agent = Agent::builder().service("shop").connect().await.unwrap();
        let route = agent.route("catalog", "get").build().unwrap();
        let never = || std::future::pending::<Result<(), ()>>();
        let calls = (0..300).map(|_| route.call(Call::idempotent(), move |_| never()));
        let calling = futures::future::join_all(calls);
        let looking = async {
            tokio::task::yield_now().await;
            let began = Instant::now();
            look_until_found(&agent.keeper.shared).await;
            began.elapsed()
        };
        let looked = tokio::select! {
            _ = calling => unreachable!("they do not end"),
            looked = looking => looked,
        };
        assert!(
            (LONGEST..LONGEST + 2 * EVERY).contains(&looked),
            "{looked:?}"
        );
        assert!(!route.state.missed.enough(), "the next ones count anew");
        let began = Instant::now();
        look_until_found(&agent.keeper.shared).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nothing to look at");
    }
}
