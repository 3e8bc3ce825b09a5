//! Callers: how calls come, and a record of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::time::{interval, sleep_until};
use tokio_util::task::TaskTracker;

use crate::subjects::{Client, Outcome, Sample};
use crate::world::Backend;
use crate::world::chance::Chance;
use crate::world::ledger::{Books, Ledger};

/// One call, or one user's request, as its caller saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Since the world began.
    pub(crate) began: Duration,
    pub(crate) took: Duration,
    pub(crate) outcome: Outcome,
}

/// All there is to know of a run.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) calls: Vec<Record>,
    /// Users' requests, where each waits for several calls.
    pub(crate) requests: Vec<Record>,
    pub(crate) books: Books,
    pub(crate) samples: Vec<(Duration, Sample)>,
}

/// A client with its log.
pub(crate) struct Caller<B> {
    client: Client<B>,
    ledger: Arc<Ledger>,
    next: AtomicU64,
    log: Mutex<Run>,
}

/// How often the subject is asked for its own figures.
pub(crate) const SAMPLED: Duration = Duration::from_millis(100);

impl<B: Backend> Caller<B> {
    pub(crate) fn new(client: Client<B>, ledger: Arc<Ledger>) -> Arc<Self> {
        Arc::new(Self {
            client,
            ledger,
            next: AtomicU64::new(0),
            log: Mutex::default(),
        })
    }

    /// Makes one call.
    async fn call(&self) -> Outcome {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let began = self.ledger.now();
        let outcome = self.client.call(call).await;
        let took = self.ledger.now().saturating_sub(began);
        self.log.lock().calls.push(Record {
            began,
            took,
            outcome,
        });
        outcome
    }

    /// Calls that come by chance, so many a second on average, whatever became of those before.
    /// `width`: calls that a user's request makes at once and waits for.
    pub(crate) async fn open(self: &Arc<Self>, per_second: f64, width: usize, until: Duration) {
        let mut chance = Chance::new(per_second as u64, width as u64);
        let tasks = TaskTracker::new();
        let mut at = chance.gap(per_second);
        while at < until {
            sleep_until(self.ledger.at(at)).await;
            let caller = self.clone();
            tasks.spawn(async move { caller.request(width).await });
            at += chance.gap(per_second);
        }
        tasks.close();
        tasks.wait().await;
    }

    async fn request(&self, width: usize) {
        if width == 1 {
            self.call().await;
            return;
        }
        let began = self.ledger.now();
        let outcomes = join_all((0..width).map(|_| self.call())).await;
        let bad = outcomes.into_iter().find(|o| *o != Outcome::Answered);
        let record = Record {
            began,
            took: self.ledger.now().saturating_sub(began),
            outcome: bad.unwrap_or(Outcome::Answered),
        };
        self.log.lock().requests.push(record);
    }

    /// Workers that call again as soon as they are answered, while `more`.
    pub(crate) async fn closed(
        self: &Arc<Self>,
        workers: usize,
        more: impl Fn(&Ledger, u64) -> bool,
    ) {
        let more = &more;
        let work = |_| async move {
            while more(&self.ledger, self.next.load(Ordering::Relaxed)) {
                self.call().await;
            }
        };
        join_all((0..workers).map(work)).await;
    }

    /// Reads the subject's own figures until dropped.
    pub(crate) async fn watch(&self) {
        let mut ticks = interval(SAMPLED);
        while let Some(sample) = self.client.sample() {
            let sample = (self.ledger.now(), sample);
            self.log.lock().samples.push(sample);
            ticks.tick().await;
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn finish(&self) -> Run {
        Run {
            books: self.ledger.books(),
            ..std::mem::take(&mut *self.log.lock())
        }
    }
}
