//! A permit for each attempt alive, and with it the attempt's age.
//!
//! A permit lasts as long as the attempt's real work: until the attempt's future is gone *and* the
//! last [`Hold`](crate::Hold) taken from it is dropped. A slot carries that count and the time it
//! began in one word, so that the ages of what is in flight are read without a lock and an attempt
//! costs no allocation.
//!
//! Slots lie in regions, one for each lane. Only a lane's owner takes slots of its region, so that
//! taking one is a load and a store; anybody gives them back. A region that is full is no reason to
//! refuse a call: it grows, by blocks that are never given up.

use std::time::Duration;

use hedgerow_protocol::latency::Histogram;

use crate::lanes::{Lane, PerLane};
use crate::sync::{AtomicU32, AtomicU64, OnceLock, Ordering};
use crate::thread;

/// Slots of a region's first block; each further one has twice as many.
const SLOTS: u32 = 256;
/// With all of them, 2^27 attempts may be alive: their futures would not fit into memory.
const BLOCKS: usize = 20;
/// Slots looked at before going on to the next block. Slots are used in turn where the last one is
/// still taken, so that the next one is nearly always free.
const LOOKS: u32 = 8;

/// Lowest bits: how many hold the permit. A million holders of one attempt is not a program.
const HOLDER: u64 = 1;
const HOLDERS: u64 = (1 << 20) - 1;
/// Set while this is a primary nobody has answered yet.
const UNANSWERED: u64 = 1 << 20;
/// Above: when it began, in microseconds since the route's birth, modulo 2^43 (101 days): ages are
/// differences in the same ring.
const BEGAN_SHIFT: u32 = 21;

fn began_word(since_birth: Duration) -> u64 {
    // Not `as_micros`, which multiplies in 128 bits.
    let us = since_birth.as_secs() * 1_000_000 + u64::from(since_birth.subsec_micros());
    us << BEGAN_SHIFT
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
struct Block {
    /// Where the region's owner looks next.
    next: AtomicU32,
    /// Those at and above it were never taken: readers need not look at them.
    used: AtomicU32,
    slots: Box<[AtomicU64]>,
}

impl Block {
    fn new(slots: u32) -> Self {
        Self {
            next: AtomicU32::new(0),
            used: AtomicU32::new(0),
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline]
    fn take(&self, lane: Lane, word: u64) -> Option<u32> {
        let start = self.next.load(Ordering::Relaxed);
        // A power of two.
        let last = self.slots.len() as u32 - 1;
        for look in 0..LOOKS {
            let at = start.wrapping_add(look) & last;
            if take(&self.slots[at as usize], lane, word) {
                self.next.store(at + 1, Ordering::Relaxed);
                if self.used.load(Ordering::Relaxed) <= at {
                    self.used.fetch_max(at + 1, Ordering::SeqCst);
                }
                return Some(at);
            }
        }
        self.next.store(start.wrapping_add(LOOKS), Ordering::Relaxed);
        None
    }
}

/// The slots that one lane takes.
#[derive(Debug)]
struct Region {
    first: Block,
    more: [OnceLock<Box<Block>>; BLOCKS - 1],
}

impl Region {
    fn new(slots: u32) -> Self {
        Self {
            first: Block::new(slots),
            more: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// Block and slot.
    #[cold]
    fn take_of_more(&self, lane: Lane, word: u64) -> (usize, u32) {
        let slots = self.first.slots.len() as u32;
        let mut blocks = self.more.iter().zip(1..);
        let taken = blocks.find_map(|(block, i)| {
            let block = block.get_or_init(|| Box::new(Block::new(slots << i)));
            Some((i, block.take(lane, word)?))
        });
        taken.expect("memory ends before blocks do")
    }

    #[inline]
    fn block(&self, i: usize) -> Option<&Block> {
        match i.checked_sub(1) {
            None => Some(&self.first),
            Some(i) => self.more[i].get().map(|block| &**block),
        }
    }

    /// Those that may be taken.
    fn looked_at(&self) -> impl Iterator<Item = &AtomicU64> {
        (0..BLOCKS).map_while(|i| self.block(i)).flat_map(|block| {
            let used = block.used.load(Ordering::SeqCst) as usize;
            &block.slots[..used]
        })
    }
}

/// Takes a slot where it is free. In a lane with an owner nobody else does, so nothing can come
/// between the load and the store; but a hedge's has to be seen by all who count after it: two that
/// come at once must not both be let in for one place.
#[inline]
fn take(slot: &AtomicU64, lane: Lane, word: u64) -> bool {
    if !lane.owned() {
        return slot
            .compare_exchange(0, word, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok();
    }
    if slot.load(Ordering::Acquire) != 0 {
        return false;
    }
    if word & UNANSWERED == 0 {
        slot.swap(word, Ordering::SeqCst);
    } else {
        slot.store(word, Ordering::Release);
    }
    true
}

#[derive(Debug)]
pub(crate) struct SlotTable {
    regions: PerLane<Region>,
    /// Slots of each region's first block.
    slots: u32,
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
            slots: SlotTable::new(SLOTS),
            hedges: AtomicU64::new(0),
        }
    }
}

/// A place in a [`SlotTable`]. Whoever has one counts as one holder. Lane, block and number in one
/// word: it is moved about with every attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot(u64);

impl Slot {
    #[inline]
    fn new(lane: Lane, block: usize, at: u32) -> Self {
        Self((lane.index() as u64) << 40 | (block as u64) << 32 | u64::from(at))
    }

    #[inline]
    fn lane(self) -> usize {
        (self.0 >> 40) as usize
    }

    #[inline]
    fn block(self) -> usize {
        (self.0 >> 32 & 0xff) as usize
    }

    #[inline]
    fn at(self) -> u32 {
        self.0 as u32
    }
}

impl SlotTable {
    /// `slots`: of each lane's first block; a power of two, at least 8.
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            regions: PerLane::new(),
            slots,
        }
    }

    /// Takes a slot for so many holders. `unanswered`: it is a primary whose age is to be seen.
    #[inline]
    pub(crate) fn take(&self, since_birth: Duration, holders: u64, unanswered: bool) -> Slot {
        let flag = if unanswered { UNANSWERED } else { 0 };
        let word = began_word(since_birth) | (holders * HOLDER) | flag;
        let lane = thread::lane();
        let region = self.regions.get_or_make(lane, || Region::new(self.slots));
        let (block, at) = match region.first.take(lane, word) {
            Some(at) => (0, at),
            None => region.take_of_more(lane, word),
        };
        Slot::new(lane, block, at)
    }

    #[inline]
    fn block(&self, slot: Slot) -> &Block {
        self.regions
            .get(slot.lane())
            .and_then(|region| region.block(slot.block()))
            .expect("the slot was taken of it")
    }

    /// One more holder.
    pub(crate) fn hold(&self, slot: Slot) {
        self.block(slot).slots[slot.at() as usize].fetch_add(HOLDER, Ordering::Relaxed);
    }

    /// One holder less. True for the last one: the slot is free, the permit given back. `answered`:
    /// somebody answered for it, or nobody will, and its age is no longer seen.
    #[inline]
    pub(crate) fn release(&self, slot: Slot, answered: bool) -> bool {
        let block = self.block(slot);
        let cell = &block.slots[slot.at() as usize];
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
            if slot.lane() == thread::lane().index() {
                // Its cache line is at hand: the next attempt takes it again.
                block.next.store(slot.at(), Ordering::Relaxed);
            }
        }
        last
    }

    /// Slots taken: permits in use. Looks at them all, so not for every call.
    pub(crate) fn taken(&self) -> u64 {
        let slots = self.regions.iter().flat_map(|(_, it)| it.looked_at());
        slots.filter(|slot| slot.load(Ordering::SeqCst) != 0).count() as u64
    }

    /// Ages of unanswered primaries of at least `beyond`. A gauge, read while calls go on.
    pub(crate) fn ages(&self, now_since_birth: Duration, beyond: Duration) -> Histogram {
        let mut ages = Histogram::new();
        for slot in self.regions.iter().flat_map(|(_, region)| region.looked_at()) {
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
        let table = SlotTable::new(SLOTS);
        let slot = table.take(MS, 1, true);
        table.hold(slot);
        assert!(!table.release(slot, false));
        assert_eq!(table.taken(), 1);
        assert!(table.release(slot, false));
        assert_eq!(table.taken(), 0);
    }

    #[test]
    fn ages_show_unanswered_primaries_beyond_the_threshold() {
        let table = SlotTable::new(SLOTS);
        let old = table.take(Duration::ZERO, 1, true);
        let _young = table.take(90 * MS, 1, true);
        let _hedge = table.take(Duration::ZERO, 1, false);
        assert_eq!(table.ages(100 * MS, 50 * MS).count(), 1);
        table.hold(old);
        assert!(!table.release(old, true));
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
        let table = SlotTable::new(SLOTS);
        let slots: Vec<_> = (0..SLOTS * 20).map(|_| table.take(MS, 1, true)).collect();
        assert_eq!(table.taken(), 20 * u64::from(SLOTS));
        assert!(slots.iter().all(|slot| table.release(*slot, false)));
        assert_eq!(table.taken(), 0);
    }

    #[test]
    fn threads_never_share_a_slot() {
        let table = SlotTable::new(SLOTS);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        let a = table.take(MS, 1, true);
                        let b = table.take(MS, 1, false);
                        assert!(table.release(a, false), "nobody else holds it");
                        assert!(table.release(b, false), "nobody else holds it");
                    }
                });
            }
        });
        assert_eq!(table.taken(), 0);
    }
}
