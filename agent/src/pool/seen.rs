//! The snapshots a thread saw last: reading one of these takes no count and no locked instruction.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Pool, Snapshot};
use crate::hand;

/// Pools whose snapshot a thread keeps. As many routes as an agent reports.
const KEPT: usize = 64;

#[derive(Debug)]
struct Seen {
    pool: u64,
    changes: u64,
    snapshot: Arc<Snapshot>,
}

thread_local! {
    static SEEN: RefCell<[Option<Seen>; KEPT]> = const { RefCell::new([const { None }; KEPT]) };
}

/// Runs `f` with the pool's present snapshot.
#[inline]
pub(super) fn with<T>(pool: &Pool, f: impl FnOnce(&Snapshot) -> T) -> T {
    let mut f = Some(f);
    let at_hand = SEEN.try_with(|seen| {
        let mut seen = seen.try_borrow_mut().ok()?;
        let kept = &mut seen[pool.number as usize % KEPT];
        let snapshot = match kept {
            Some(kept) if kept.is_present(pool) => &kept.snapshot,
            _ => &kept.insert(look(pool)).snapshot,
        };
        f.take().map(|f| f(snapshot))
    });
    match (at_hand, f) {
        (Ok(Some(done)), _) => done,
        // The thread is ending.
        (_, Some(f)) => f(&pool.current()),
        (_, None) => unreachable!("`f` is taken by what returns its result"),
    }
}

impl Seen {
    #[inline]
    fn is_present(&self, pool: &Pool) -> bool {
        self.pool == pool.number
            && self.changes == pool.changes.load(Ordering::Acquire)
            && !pool.is_old(&self.snapshot)
    }
}

/// Of the count and the snapshot, the count first: then it is never newer.
#[cold]
fn look(pool: &Pool) -> Seen {
    hand::let_go();
    drop(pool.current());
    let changes = pool.changes.load(Ordering::Acquire);
    Seen {
        pool: pool.number,
        changes,
        snapshot: pool.snapshot.load_full(),
    }
}
