//! Calls drawn from seeds: what their attempts do, when their callers leave, and what has to come
//! of it. The model here knows nothing of the executor but what a caller sees.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::rig::{Failure, MS, Outcome, classify};
use crate::attempt::{Attempt, AttemptKind};
use crate::chance::Dice;
use crate::eligibility::{Call, Verdict};
use crate::error::CallError;
use crate::route::Route;

/// The route's deadline, where a script says none.
pub(super) const DEADLINE: Duration = Duration::from_secs(2);

/// What one attempt does.
#[derive(Debug, Clone, Copy)]
struct Part {
    yields: u64,
    takes: Duration,
    /// None: never.
    ends: Option<Verdict>,
    /// In a task that goes on when the attempt is dropped.
    ignores_cancellation: bool,
}

impl Part {
    fn draw(dice: &mut Dice) -> Self {
        let verdicts = [
            Verdict::NegativeAnswer,
            Verdict::Fatal,
            Verdict::Retryable,
            Verdict::Retryable,
            Verdict::PushBack,
            Verdict::Dropped,
        ];
        let takes = match dice.below(4) {
            0 => Duration::ZERO,
            1 => Duration::from_micros(dice.below(5_000)),
            _ => Duration::from_micros(dice.below(400_000)),
        };
        let ends = match dice.below(10) {
            0..5 => Some(Verdict::Good),
            9 => None,
            _ => Some(verdicts[dice.below(6) as usize]),
        };
        Self {
            yields: dice.below(3),
            takes,
            ends,
            ignores_cancellation: dice.percent(15),
        }
    }
}

/// When a caller goes away.
#[derive(Debug, Clone, Copy)]
enum Leaves {
    Never,
    After(Duration),
    /// At the await point it is at when it was polled so often.
    AfterPolls(u64),
}

/// One call.
#[derive(Debug, Clone)]
struct Script {
    begins: Duration,
    call: Call,
    deadline: Duration,
    leaves: Leaves,
    parts: [Part; 3],
}

impl Script {
    fn draw(seed: u64) -> Self {
        let dice = &mut Dice::new(seed);
        let mut call = if dice.percent(90) {
            Call::idempotent()
        } else {
            Call::not_idempotent()
        };
        call = call.already_hedge(dice.percent(8));
        if dice.percent(20) {
            let names = ["a:1", "b:1", "nobody-heard-of:1"];
            let name = ReplicaName::new(names[dice.below(3) as usize]).unwrap();
            call = call.pinned(name);
        }
        let mut deadline = DEADLINE;
        if dice.percent(30) {
            deadline = Duration::from_micros(dice.below(400_000));
            call = call.deadline(deadline);
        }
        let leaves = match dice.below(4) {
            0 => Leaves::After(Duration::from_micros(dice.below(500_000))),
            1 => Leaves::AfterPolls(dice.below(9)),
            _ => Leaves::Never,
        };
        Self {
            begins: Duration::from_micros(dice.below(3_000_000)),
            call,
            deadline,
            leaves,
            parts: std::array::from_fn(|_| Part::draw(dice)),
        }
    }
}

/// What a budget is held to.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Hedge,
    /// A call ended and earned this.
    Earned(f64),
    /// No more than this is kept from now on.
    Cap(f64),
}

/// What a caller can know of all calls that may be hedged.
#[derive(Debug, Default)]
pub(super) struct Model {
    budget: f64,
    pub(super) begun: u64,
    pub(super) not_eligible: u64,
    pub(super) by_primary: u64,
    pub(super) by_hedge: u64,
    pub(super) failed: u64,
    pub(super) abandoned: u64,
    pub(super) hedges: u64,
    /// Attempts of the call that had most.
    pub(super) most: usize,
    log: Vec<Entry>,
}

impl Model {
    pub(super) fn hedge(&mut self) {
        self.log.push(Entry::Hedge);
    }

    pub(super) fn finish(&mut self) {
        self.log.push(Entry::Earned(self.budget));
    }

    pub(super) fn direct(&mut self, budget: f64, cap: f64) {
        self.budget = budget;
        self.log.push(Entry::Cap(cap));
    }

    /// Hedges <= what the calls that finished have earned + the cap at the beginning, in every
    /// window, whatever is directed within it: for each end, the window that leaves least room is
    /// looked at. The bucket is empty at first.
    pub(super) fn assert_within_budget(&self) {
        let (mut hedges_less_earned, mut room, mut cap) = (0.0_f64, 0.0_f64, 0.0);
        for (at, entry) in self.log.iter().enumerate() {
            match entry {
                Entry::Hedge => {
                    hedges_less_earned += 1.0;
                    assert!(
                        hedges_less_earned <= room + 1e-6,
                        "a window that ends with entry {at} has more hedges than are allowed"
                    );
                }
                Entry::Earned(budget) => hedges_less_earned -= budget,
                Entry::Cap(new) => cap = *new,
            }
            room = room.min(hedges_less_earned + cap);
        }
    }

    fn ended(&mut self, outcome: Option<&Outcome>) {
        let answered_by = match outcome {
            Some(Ok(kind)) => Some(*kind),
            Some(Err(CallError::Failed(failure))) if failure.verdict == Verdict::NegativeAnswer => {
                Some(failure.of)
            }
            _ => None,
        };
        match (answered_by, outcome) {
            (Some(AttemptKind::Primary), _) => self.by_primary += 1,
            (Some(AttemptKind::Hedge), _) => self.by_hedge += 1,
            (None, Some(Err(CallError::Failed(failure)))) => {
                let words = "the caller sees the primary's own failure";
                assert_eq!(failure.of, AttemptKind::Primary, "{words}");
                if failure.verdict == Verdict::Dropped {
                    self.abandoned += 1;
                } else {
                    self.failed += 1;
                }
            }
            (None, Some(_)) => self.failed += 1,
            (None, None) => self.abandoned += 1,
        }
        self.finish();
    }
}

/// The replicas one call waits on.
type WaitsOn = Arc<Mutex<BTreeSet<ReplicaName>>>;

struct Waiting(WaitsOn, ReplicaName);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

async fn carry_out(attempt: Attempt, part: Part, waiting: Waiting) -> Result<AttemptKind, Failure> {
    let _waiting = waiting;
    let of = attempt.kind();
    for _ in 0..part.yields {
        tokio::task::yield_now().await;
    }
    if part.ignores_cancellation {
        let hold = attempt.hold();
        let work = async move {
            let _hold = hold;
            sleep(part.takes).await;
        };
        tokio::spawn(work).await.unwrap();
    } else if !part.takes.is_zero() {
        sleep(part.takes).await;
    }
    match part.ends {
        Some(Verdict::Good) => Ok(of),
        Some(verdict) => Err(Failure { of, verdict }),
        None => std::future::pending().await,
    }
}

async fn after_polls<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Plays the call that `seed` stands for.
pub(super) async fn play(route: &Route, seed: u64, log: &Mutex<Model>) {
    let script = Script::draw(seed);
    let eligible = script.call.idempotent;
    sleep(script.begins).await;
    let mut attempts = 0;
    let waits_on = WaitsOn::default();
    let began = Instant::now();
    let make = |attempt: Attempt| {
        let hedge = attempt.kind() == AttemptKind::Hedge;
        assert_eq!(
            hedge,
            attempts > 0,
            "the first is the primary, and only that"
        );
        let part = script.parts[attempts.min(2)];
        attempts += 1;
        let replica = attempt.replica().clone();
        let fresh = waits_on.lock().insert(replica.clone());
        assert!(fresh, "seed {seed}: two attempts wait on {replica}");
        let mut log = log.lock();
        log.most = log.most.max(attempts);
        match (hedge, eligible) {
            (true, _) => {
                log.hedges += 1;
                log.hedge();
            }
            (false, true) => log.begun += 1,
            (false, false) => log.not_eligible += 1,
        }
        carry_out(attempt, part, Waiting(waits_on.clone(), replica))
    };
    let call = route.call_with(script.call.clone(), classify, make);
    let outcome = match script.leaves {
        Leaves::Never => Some(call.await),
        Leaves::After(time) => timeout(time, call).await.ok(),
        Leaves::AfterPolls(polls) => after_polls(polls, call).await,
    };
    let took = began.elapsed();
    assert!(
        took <= script.deadline + 2 * MS,
        "seed {seed}: {took:?} for a deadline of {:?}",
        script.deadline
    );
    if eligible && attempts > 0 {
        log.lock().ended(outcome.as_ref());
    }
}
