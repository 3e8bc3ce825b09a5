//! A permit for each attempt alive, and with it the attempt's age.
//!
//! A permit lasts as long as the attempt's real work: until the attempt's future is gone *and* the
//! last [`Hold`](crate::Hold) taken from it is dropped. A slot of a fixed table carries that count
//! and the time it began in one word, so that the ages of what is in flight are read without a lock
//! and an attempt costs no allocation. A full table is no reason to refuse a call: further attempts
//! get a slot of their own on the heap.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_protocol::latency::Histogram;

use crate::stats::recorder::thread_number;

/// Slots of a route. At a thousand calls a second of a second each it is still not full.
const SLOTS: usize = 1024;
/// Slots looked at before giving up on the table. Slots are used in turn, so the next one is nearly
/// always free.
const LOOKS: usize = 8;

/// Lowest bits: how many hold the permit. A million holders of one attempt is not a program.
const HOLDER: u64 = 1;
const HOLDERS: u64 = (1 << 20) - 1;
/// Set while this is a primary nobody has answered yet.
const UNANSWERED: u64 = 1 << 20;
/// Above: when it began, in microseconds since the route's birth, modulo 2^43 (101 days): ages are
/// differences in the same ring.
const BEGAN_SHIFT: u32 = 21;

fn began_word(since_birth: Duration) -> u64 {
    (since_birth.as_micros() as u64) << BEGAN_SHIFT
}

/// How long ago a slot's attempt began.
fn age(word: u64, now_since_birth: Duration) -> Duration {
    let now = began_word(now_since_birth);
    let age = now.wrapping_sub(word & !(u64::MAX >> (64 - BEGAN_SHIFT))) >> BEGAN_SHIFT;
    // It began a moment after `now` was read: in the ring, nearly a whole turn ago.
    if age > u64::MAX >> (BEGAN_SHIFT + 1) {
        Duration::ZERO
    } else {
        Duration::from_micros(age)
    }
}

#[derive(Debug)]
pub(crate) struct SlotTable {
    slots: Box<[AtomicU64]>,
    /// Slots beyond the table that are taken.
    beyond: AtomicU64,
}

/// Permits of a route, and the hedges among them.
#[derive(Debug)]
pub(crate) struct Permits {
    pub(crate) slots: SlotTable,
    pub(crate) hedges: AtomicU64,
}

impl Permits {
    pub(crate) fn new() -> Self {
        Self {
            slots: SlotTable::new(),
            hedges: AtomicU64::new(0),
        }
    }
}

/// A place in a [`SlotTable`]. Whoever has one counts as one holder.
#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Table(u32),
    Own(Arc<AtomicU64>),
}

thread_local! {
    /// Where this thread looks next. Threads start apart.
    static NEXT: Cell<usize> = Cell::new(thread_number() * 131);
}

impl SlotTable {
    pub(crate) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            beyond: AtomicU64::new(0),
        }
    }

    /// Takes a slot for so many holders. `unanswered`: it is a primary whose age is to be seen.
    pub(crate) fn take(&self, since_birth: Duration, holders: u64, unanswered: bool) -> Slot {
        let flag = if unanswered { UNANSWERED } else { 0 };
        let word = began_word(since_birth) | (holders * HOLDER) | flag;
        let start = NEXT.get();
        for look in 0..LOOKS {
            let at = (start + look) % SLOTS;
            let taken =
                self.slots[at].compare_exchange(0, word, Ordering::SeqCst, Ordering::Relaxed);
            if taken.is_ok() {
                NEXT.set(at + 1);
                return Slot::Table(at as u32);
            }
        }
        NEXT.set(start.wrapping_add(LOOKS));
        self.beyond.fetch_add(1, Ordering::SeqCst);
        Slot::Own(Arc::new(AtomicU64::new(word)))
    }

    fn cell<'a>(&'a self, slot: &'a Slot) -> &'a AtomicU64 {
        match slot {
            Slot::Table(at) => &self.slots[*at as usize],
            Slot::Own(cell) => cell,
        }
    }

    /// One more holder.
    pub(crate) fn hold(&self, slot: &Slot) {
        self.cell(slot).fetch_add(HOLDER, Ordering::Relaxed);
    }

    /// One holder less. True for the last one: the slot is free, the permit given back. `answered`:
    /// somebody answered for it, or nobody will, and its age is no longer seen.
    pub(crate) fn release(&self, slot: &Slot, answered: bool) -> bool {
        let cell = self.cell(slot);
        let word = cell.load(Ordering::Acquire);
        let last = word & HOLDERS == HOLDER || {
            let gone = if answered {
                HOLDER + (word & UNANSWERED)
            } else {
                HOLDER
            };
            cell.fetch_sub(gone, Ordering::AcqRel) & HOLDERS == HOLDER
        };
        if last {
            // Only holders add holders: with one left, nobody but us is here.
            cell.store(0, Ordering::Release);
            if matches!(slot, Slot::Own(_)) {
                self.beyond.fetch_sub(1, Ordering::SeqCst);
            }
        }
        last
    }

    /// Slots taken: permits in use. Looks at them all, so not for every call.
    pub(crate) fn taken(&self) -> u64 {
        let in_table = self
            .slots
            .iter()
            .filter(|slot| slot.load(Ordering::SeqCst) != 0)
            .count();
        in_table as u64 + self.beyond.load(Ordering::SeqCst)
    }

    /// Ages of unanswered primaries of at least `beyond`. A gauge, read while calls go on.
    pub(crate) fn ages(&self, now_since_birth: Duration, beyond: Duration) -> Histogram {
        let mut ages = Histogram::new();
        for slot in &self.slots {
            let word = slot.load(Ordering::Relaxed);
            if word & UNANSWERED != 0 {
                let age = age(word, now_since_birth);
                if age >= beyond {
                    ages.record(age);
                }
            }
        }
        ages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_slot_is_free_when_its_last_holder_is_gone() {
        let table = SlotTable::new();
        let slot = table.take(MS, 1, true);
        table.hold(&slot);
        assert!(!table.release(&slot, false));
        assert_eq!(table.taken(), 1);
        assert!(table.release(&slot, false));
        assert_eq!(table.taken(), 0);
    }

    #[test]
    fn ages_show_unanswered_primaries_beyond_the_threshold() {
        let table = SlotTable::new();
        let old = table.take(Duration::ZERO, 1, true);
        let _young = table.take(90 * MS, 1, true);
        let _hedge = table.take(Duration::ZERO, 1, false);
        assert_eq!(table.ages(100 * MS, 50 * MS).count(), 1);
        table.hold(&old);
        assert!(!table.release(&old, true));
        assert_eq!(table.ages(100 * MS, 50 * MS).count(), 0);
    }

    #[test]
    fn ages_are_right_after_years_and_never_negative() {
        let year = Duration::from_hours(365 * 24);
        let word = began_word(3 * year);
        assert_eq!(age(word, 3 * year + 5 * MS), 5 * MS);
        assert_eq!(age(began_word(3 * year + 5 * MS), 3 * year), Duration::ZERO);
    }

    #[test]
    fn b15_a_full_table_refuses_nobody() {
        let table = SlotTable::new();
        let slots: Vec<_> = (0..SLOTS * 2).map(|_| table.take(MS, 1, true)).collect();
        assert_eq!(table.taken(), 2 * SLOTS as u64);
        assert!(slots.iter().all(|slot| table.release(slot, false)));
        assert_eq!(table.taken(), 0);
    }

    #[test]
    fn threads_never_share_a_slot() {
        let table = SlotTable::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        let a = table.take(MS, 1, true);
                        let b = table.take(MS, 1, false);
                        assert!(table.release(&a, false), "nobody else holds it");
                        assert!(table.release(&b, false), "nobody else holds it");
                    }
                });
            }
        });
        assert_eq!(table.taken(), 0);
    }
}
