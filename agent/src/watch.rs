//! The one detached task there is: a loser let finish, so that the joint tail of both attempts is
//! known without one more request.
//!
//! It ends with the call's deadline, a minute, or the agent's shutdown. It has its own bound and its
//! own gauge, and is a permit longer alive than its call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::attempt::{AttemptGuard, Ending};
use crate::eligibility::Verdict;
use crate::route::RouteState;

/// Losers watched at once on one route: at one hedged call in ten, of a minute each, this is reached
/// at ten hedges a second; beyond it the sample is thinner, no more.
pub(crate) const WATCHED_MAX: u32 = 64;
/// Longest watch.
const WATCH_MAX: Duration = Duration::from_mins(1);

/// A place among the watched; given back when dropped.
struct Place(Arc<RouteState>);

impl Place {
    fn take(route: &Arc<RouteState>) -> Option<Self> {
        route.watched.take(WATCHED_MAX).then(|| Self(route.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.watched.give_back();
    }
}

/// Lets `loser` finish, or drops it where there is no place.
pub(crate) fn watch<T, E, Fut>(
    route: &Arc<RouteState>,
    guard: AttemptGuard<&RouteState>,
    loser: Pin<Box<Fut>>,
    classify: impl Fn(&Result<T, E>) -> Verdict + Send + 'static,
    deadline: Instant,
) where
    T: 'static,
    E: 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
{
    let Some(place) = Place::take(route) else {
        return;
    };
    let guard = guard.detach(route.clone());
    let until = deadline.min(Instant::now() + WATCH_MAX);
    let stopping = route.tasks.stopping.clone();
    route.tasks.tracker.spawn(async move {
        let _place = place;
        tokio::select! {
            biased;
            ending = async move {
                let result = loser.await;
                ending_of(classify(&result))
            } => match ending {
                Some(ending) => guard.loser_ended(ending, Instant::now()),
                // Given up by its own side: the guard records it as stopped.
                None => drop(guard),
            },
            () = stopping.cancelled() => drop(guard),
            () = sleep_until(until) => drop(guard),
        }
    });
}

fn ending_of(verdict: Verdict) -> Option<Ending> {
    match verdict {
        Verdict::Good | Verdict::NegativeAnswer => Some(Ending::Answered),
        Verdict::Fatal | Verdict::Retryable | Verdict::PushBack => Some(Ending::Failed),
        Verdict::Dropped => None,
    }
}
