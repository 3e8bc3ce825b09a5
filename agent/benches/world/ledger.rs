//! What the replicas received, counted where it arrives. A subject's own counters are believed by
//! nobody: the first version of the experiment repeated here counted at the client and reported 95
//! extra requests where the servers had seen a thousand.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Ask, REPLICAS};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Ledger {
    began: Instant,
    books: Mutex<Books>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    /// For each call, how often each replica was asked.
    asked: Vec<[u8; REPLICAS]>,
    /// Attempts beyond a call's first, by the second they were received in.
    pub(crate) hedges_in: Vec<u32>,
    /// All attempts, by second.
    pub(crate) attempts_in: Vec<u32>,
    /// Time that replicas spent on attempts, by the second these ended in.
    pub(crate) busy_in: Vec<Duration>,
}

/// An attempt at work.
#[derive(Debug)]
pub(crate) struct Busy {
    ledger: Arc<Ledger>,
    since: Instant,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            books: Mutex::default(),
        }
    }

    /// Since the world began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// When the world was so old.
    pub(crate) fn at(&self, age: Duration) -> Instant {
        self.began + age
    }

    pub(crate) fn receive(self: &Arc<Self>, replica: usize, call: u64) -> (Ask, Busy) {
        let at = self.now();
        let mut books = self.books.lock();
        let asked = entry(&mut books.asked, call as usize);
        let first = asked.iter().all(|times| *times == 0);
        let times_before = asked[replica];
        asked[replica] = times_before.saturating_add(1);
        *entry(&mut books.attempts_in, at.as_secs() as usize) += 1;
        if !first {
            *entry(&mut books.hedges_in, at.as_secs() as usize) += 1;
        }
        let ask = Ask {
            replica,
            call,
            times_before,
            at,
        };
        let busy = Busy {
            ledger: self.clone(),
            since: Instant::now(),
        };
        (ask, busy)
    }

    pub(crate) fn books(&self) -> Books {
        self.books.lock().clone()
    }
}

impl Books {
    /// Attempts beyond the first one of each call, of calls from number `from` on.
    pub(crate) fn extra(&self, from: u64) -> u64 {
        let calls = self.asked.iter().skip(from as usize);
        let attempts = calls.map(|asked| asked.iter().map(|times| u64::from(*times)).sum::<u64>());
        attempts.map(|attempts| attempts.saturating_sub(1)).sum()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let second = self.ledger.now().as_secs() as usize;
        *entry(&mut self.ledger.books.lock().busy_in, second) += self.since.elapsed();
    }
}

/// The value at `at`, the list made longer where it ends before.
pub(crate) fn entry<T: Clone + Default>(list: &mut Vec<T>, at: usize) -> &mut T {
    if list.len() <= at {
        list.resize(at + 1, T::default());
    }
    &mut list[at]
}
