//! What each thread has for itself: its lane.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lanes::{FreeLanes, Lane};

static LANES: LazyLock<FreeLanes> = LazyLock::new(FreeLanes::new);
/// One more than the highest lane that ever had an owner.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Given back when the thread ends.
struct Lease(Lane);

impl Drop for Lease {
    fn drop(&mut self) {
        // What this thread still does, in destructors to come, it does where all may.
        LANE.set(Some(Lane::SHARED));
        LANES.give_back(self.0);
    }
}

thread_local! {
    /// Apart from the lease, as reading what has no destructor is cheaper.
    static LANE: Cell<Option<Lane>> = const { Cell::new(None) };
    static LEASE: Lease = Lease(LANES.take());
}

/// This thread's lane.
#[inline]
pub(crate) fn lane() -> Lane {
    LANE.get().unwrap_or_else(take)
}

#[cold]
fn take() -> Lane {
    let lane = LEASE.try_with(|lease| lease.0).unwrap_or(Lane::SHARED);
    if lane.owned() {
        USED.fetch_max(lane.index() + 1, Ordering::Release);
    }
    LANE.set(Some(lane));
    lane
}

/// Lanes with an owner, now or before: all below this.
#[inline]
pub(crate) fn lanes_used() -> usize {
    USED.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_threads_never_share_a_lane_of_their_own_and_dead_ones_leave_theirs() {
        let barrier = std::sync::Barrier::new(8);
        let mut lanes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let lane = lane();
                        barrier.wait();
                        lane
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        lanes.retain(|lane| lane.owned());
        lanes.sort_by_key(|lane| lane.index());
        let taken = lanes.len();
        lanes.dedup();
        assert_eq!(lanes.len(), taken);
        for _ in 0..1000 {
            std::thread::spawn(|| assert!(lane().owned(), "lanes come back"))
                .join()
                .unwrap();
        }
    }
}
