//! One copy of a call on the wire: what the service's code sees of it, and the guard that records
//! how it ended.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::latency::bucket_of;
use tokio::time::Instant;

use crate::hand::Hand;
use crate::permit::Slot;
use crate::pool::Replica;
use crate::route::RouteState;
use crate::stats::recorder::{Counter, Series};

/// Name of the header, or of the gRPC metadata entry, that marks a hedge on the wire.
pub const HEDGE_HEADER: &str = "hedgerow-attempt";
/// Its value.
pub const HEDGE_MARK: &str = "hedge";

/// Which copy of the call an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptKind {
    /// The first one.
    Primary,
    /// A further one: because those before it were slow, or, where the policy hedges on errors, because
    /// they failed.
    Hedge,
}

impl AttemptKind {
    /// `primary` or `hedge`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Hedge => "hedge",
        }
    }
}

/// One attempt of a call, handed to the code that carries it out.
///
/// It keeps the route's permit for as long as it, or a [`Hold`] from it, is kept.
///
/// ```
/// use hedgerow_agent::Attempt;
///
/// // One attempt over a client of the service's own.
/// # struct Request { to: String, headers: Vec<(&'static str, &'static str)> }
/// # async fn send(_: Request) -> std::io::Result<String> { Ok(String::new()) }
/// async fn fetch(attempt: Attempt) -> std::io::Result<String> {
///     let request = Request {
///         to: attempt.replica().to_string(),
///         headers: attempt.headers().collect(), // a hedge says that it is one
///     };
///     send(request).await
/// }
/// ```
#[derive(Debug)]
pub struct Attempt {
    hold: Hold,
    deadline: Instant,
    marked: bool,
}

impl Attempt {
    /// The replica to call. The dependency's own name where the route has no
    /// [`Replicas`](crate::Replicas) and the call pins none.
    pub fn replica(&self) -> &ReplicaName {
        &self.hold.replica.name
    }

    /// Primary or hedge.
    pub fn kind(&self) -> AttemptKind {
        self.hold.kind
    }

    /// When the call ends, answered or not; to be told to the dependency where its protocol can.
    /// Tokio's `Instant`, for `tokio::time::timeout_at`.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What to put on the wire: the mark of a hedge, for the dependency to see that it need not
    /// hedge calls of its own. Nothing for a primary, but where the call was
    /// [already a hedge](crate::Call::already_hedge).
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        self.marked
            .then_some((HEDGE_HEADER, HEDGE_MARK))
            .into_iter()
    }

    /// Keeps the permit until dropped: for work that goes on when the attempt's future is dropped,
    /// such as a spawned task, a blocking call, or an answer's body that is read later.
    ///
    /// ```
    /// use hedgerow_agent::Attempt;
    ///
    /// # fn look_up(_replica: &str) -> std::io::Result<u64> { Ok(7) }
    /// async fn fetch(attempt: Attempt) -> std::io::Result<u64> {
    ///     let hold = attempt.hold();
    ///     let replica = attempt.replica().to_string();
    ///     let work = tokio::task::spawn_blocking(move || {
    ///         let _until_done = hold; // nobody can cancel this
    ///         look_up(&replica)
    ///     });
    ///     work.await.map_err(std::io::Error::other)?
    /// }
    /// ```
    #[must_use = "the permit is kept as long as this is"]
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }
}

/// Keeps an attempt's permit: see [`Attempt::hold`]. A clone is one more holder; the permit is given
/// back with the last one.
#[derive(Debug)]
pub struct Hold {
    replica: Hand,
    slot: Slot,
    kind: AttemptKind,
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        self.replica.permits.slots.hold(self.slot);
        Self {
            replica: self.replica.clone(),
            slot: self.slot,
            kind: self.kind,
        }
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        release(&self.replica, self.slot, self.kind, false);
    }
}

/// One holder less; the last one gives the permit back.
#[inline]
fn release(replica: &Replica, slot: Slot, kind: AttemptKind, answered: bool) {
    let permits = &replica.permits;
    if permits.slots.release(slot, answered) {
        replica.attempt_ends();
        if kind == AttemptKind::Hedge {
            permits.hedges.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Who holds an attempt's permit when it begins: the guard and the attempt.
pub(crate) const ATTEMPT_HOLDERS: u64 = 2;

/// How an attempt that was not cancelled ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Answered,
    Failed,
}

/// Records how the attempt ended; dropped before it did, that it was cancelled. `R` is the route,
/// borrowed by a call, owned by a loser that is watched to its end.
#[derive(Debug)]
pub(crate) struct AttemptGuard<R: Deref<Target = RouteState>> {
    route: R,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    replica: Hand,
    slot: Slot,
    began: Instant,
    kind: AttemptKind,
    /// Whether the call may be hedged: of others nothing is recorded.
    recorded: bool,
}

/// What [`begin`] needs to know.
pub(crate) struct Beginning {
    pub(crate) replica: Arc<Replica>,
    /// A hedge's permit; a primary is never refused one and takes its own.
    pub(crate) permit: Option<Slot>,
    pub(crate) now: Instant,
    pub(crate) deadline: Instant,
    pub(crate) recorded: bool,
    pub(crate) already_hedge: bool,
}

/// Begins an attempt: the guard for the race, the attempt for the service.
#[expect(
    clippy::inline_always,
    reason = "what it returns is moved on at once: not through memory"
)]
#[inline(always)]
pub(crate) fn begin(
    route: &RouteState,
    beginning: Beginning,
) -> (AttemptGuard<&RouteState>, Attempt) {
    let Beginning {
        replica,
        permit,
        now,
        deadline,
        recorded,
        already_hedge,
    } = beginning;
    let primary = permit.is_none();
    let kind = if primary {
        AttemptKind::Primary
    } else {
        AttemptKind::Hedge
    };
    let replica = Hand::from(replica);
    replica.attempt_begins(primary && recorded);
    let slot = permit.unwrap_or_else(|| {
        route
            .permits
            .slots
            .take(route.since_birth(now), ATTEMPT_HOLDERS, recorded)
    });
    let hold = Hold {
        replica: replica.clone(),
        slot,
        kind,
    };
    let attempt = Attempt {
        hold,
        deadline,
        marked: already_hedge || !primary,
    };
    let running = Running {
        replica,
        slot,
        began: now,
        kind,
        recorded,
    };
    (
        AttemptGuard {
            route,
            running: Some(running),
        },
        attempt,
    )
}

impl<R: Deref<Target = RouteState>> AttemptGuard<R> {
    pub(crate) fn replica(&self) -> Option<&Arc<Replica>> {
        self.running.as_ref().map(|running| &*running.replica)
    }

    /// A treated call's primary answered. The call's own sample says the rest.
    #[expect(
        clippy::inline_always,
        reason = "what it returns is moved on at once: not through memory"
    )]
    #[inline(always)]
    pub(crate) fn answered_plainly(mut self, bucket: usize) {
        if let Some(running) = self.running.take() {
            running.replica.record_done(bucket);
            running.close();
        }
    }

    /// It ended by itself while its call went on.
    pub(crate) fn ended(mut self, ending: Ending, now: Instant) {
        if let Some(running) = self.running.take() {
            running.count_end(&self.route, ending);
            running.record(&self.route, ending == Ending::Answered, now);
            running.close();
        }
    }

    /// A loser that was watched ended by itself. In no error rate, neither above nor below the
    /// line: only its latency was wanted.
    pub(crate) fn loser_ended(mut self, ending: Ending, now: Instant) {
        if let Some(running) = self.running.take() {
            let answered = ending == Ending::Answered;
            running.record(&self.route, answered, now);
            if answered && running.kind == AttemptKind::Primary {
                running.replica.watched_done.fetch_add(1, Ordering::Release);
            }
            running.close();
        }
    }
}

impl AttemptGuard<&RouteState> {
    /// The same guard, for a task that outlives the call.
    pub(crate) fn detach(mut self, route: Arc<RouteState>) -> AttemptGuard<Arc<RouteState>> {
        AttemptGuard {
            route,
            running: self.running.take(),
        }
    }
}

impl<R: Deref<Target = RouteState>> Drop for AttemptGuard<R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stopped(&self.route);
        }
    }
}

impl Running {
    fn count_end(&self, route: &RouteState, ending: Ending) {
        if !self.recorded {
            return;
        }
        let failed = ending == Ending::Failed;
        let (finished, errors) = match self.kind {
            AttemptKind::Primary => (Counter::PrimaryFinished, Counter::PrimaryErrors),
            AttemptKind::Hedge => (Counter::HedgeFinished, Counter::HedgeErrors),
        };
        route.recorder.count(finished);
        if failed {
            route.recorder.count(errors);
        }
        if failed && self.kind == AttemptKind::Primary {
            self.replica.errors.fetch_add(1, Ordering::Release);
        }
    }

    /// Its age on its own clock. `Instant` never goes backwards here: the difference saturates.
    fn record(&self, route: &RouteState, done: bool, now: Instant) {
        if !self.recorded {
            return;
        }
        let age = now.saturating_duration_since(self.began);
        let series = match (self.kind, done) {
            (AttemptKind::Primary, true) => Series::PrimaryDone,
            (AttemptKind::Primary, false) => Series::PrimaryCensored,
            (AttemptKind::Hedge, true) => Series::HedgeDone,
            (AttemptKind::Hedge, false) => Series::HedgeCensored,
        };
        route.recorder.record(series, age);
        if self.kind == AttemptKind::Primary {
            if done {
                self.replica.record_done(bucket_of(age));
            } else {
                self.replica.record_censored(age);
            }
        }
    }

    #[cold]
    fn stopped(self, route: &RouteState) {
        self.record(route, false, Instant::now());
        self.close();
    }

    #[inline]
    fn close(&self) {
        release(&self.replica, self.slot, self.kind, true);
    }
}
