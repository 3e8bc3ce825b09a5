//! What the caller says about a call: whether it may run twice, above all.

use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;

/// One call, as its caller describes it. Whether it may run twice has to be said: there is no
/// default, and no guess from a method's name.
///
/// ```
/// use std::time::Duration;
/// use hedgerow_agent::Call;
///
/// let read = Call::idempotent().deadline(Duration::from_millis(500));
/// let write = Call::not_idempotent();
/// # let _ = (read, write);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until a route runs it"]
pub struct Call {
    pub(crate) idempotent: bool,
    pub(crate) deadline: Option<Duration>,
    pub(crate) pinned: Option<ReplicaName>,
    pub(crate) already_hedge: bool,
}

impl Call {
    /// May run twice, and both may take effect: it may be hedged, where the policy says so. What that
    /// asks of an operation: [is mine safe to hedge?](crate::guide::safe_to_hedge)
    pub const fn idempotent() -> Self {
        Self {
            idempotent: true,
            deadline: None,
            pinned: None,
            already_hedge: false,
        }
    }

    /// Must not run twice: never hedged, counted as not eligible.
    pub const fn not_idempotent() -> Self {
        Self {
            idempotent: false,
            deadline: None,
            pinned: None,
            already_hedge: false,
        }
    }

    /// How long it may take in all, hedges included, in place of the route's default; longer than a
    /// day is a day. Zero: only an answer that is there at once counts.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The replica its primary goes to, where the caller chooses. A hedge goes to another one, out
    /// of the route's [`Replicas`](crate::Replicas); without those it is never hedged.
    pub fn pinned(mut self, replica: ReplicaName) -> Self {
        self.pinned = Some(replica);
        self
    }

    /// Whether the request this call is made for was itself a hedge, as said by its
    /// [`HEDGE_HEADER`](crate::HEDGE_HEADER): it is not hedged once more, and its own attempts
    /// carry the mark on, so that a chain of services does not multiply.
    pub const fn already_hedge(mut self, already_hedge: bool) -> Self {
        self.already_hedge = already_hedge;
        self
    }
}

/// What an attempt's result means for hedging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// An answer.
    Good,
    /// An answer that says no, of the application's own making (not found, refused): as good an
    /// answer as any.
    NegativeAnswer,
    /// A failure that no other attempt can mend (invalid request): given to the caller at once.
    Fatal,
    /// A failure that a hedge under way may still make good.
    Retryable,
    /// The dependency is overloaded (429, RESOURCE_EXHAUSTED, a push-back header): a failure, and
    /// counted toward switching hedging off.
    PushBack,
    /// The attempt was given up by its own side (the caller went away): neither an answer nor an
    /// error.
    Dropped,
}

impl Verdict {
    /// Whether it ends the call with this result.
    pub(crate) const fn answers(self) -> bool {
        matches!(self, Self::Good | Self::NegativeAnswer)
    }

    /// An error is [`Retryable`](Self::Retryable), anything else [`Good`](Self::Good).
    pub fn of_result<T, E>(result: &Result<T, E>) -> Self {
        if result.is_ok() {
            Self::Good
        } else {
            Self::Retryable
        }
    }
}
