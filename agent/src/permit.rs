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
use crate::sync::{AtomicU32, AtomicU64, OnceLock, Ordering, SLOTS, fence};
use crate::thread;

/// Blocks beyond a region's first, each of twice as many slots as the one before. With all of them,
/// 2^27 attempts may be alive: their futures would not fit into memory.
const FURTHER: usize = 19;
/// Slots looked at before going on to the next block. Slots are used in turn where the last one is
/// still taken, so that the next one is nearly always free.
const LOOKS: u32 = 8;

/// Lowest bits: how many hold the permit. With a million holders of one attempt nobody counts any
/// more, and the permit stays taken: too few permits then, but never one that is taken twice.
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

/// Slots, and how they are used.
#[derive(Debug)]
struct Block<S> {
    /// Where the region's owner looks next.
    next: AtomicU32,
    /// Those at and above it were never taken: readers need not look at them.
    used: AtomicU32,
    slots: S,
}

impl<S> Block<S> {
    fn new(slots: S) -> Self {
        Self {
            next: AtomicU32::new(0),
            used: AtomicU32::new(0),
            slots,
        }
    }
}

/// A block's slots in place: one pointer less to follow for the block that nearly all slots are of.
type First = Block<[AtomicU64; SLOTS]>;
type Further = Block<Box<[AtomicU64]>>;

impl<S: AsRef<[AtomicU64]>> Block<S> {
    #[inline]
    fn slot(&self, at: u32) -> &AtomicU64 {
        &self.slots.as_ref()[at as usize]
    }

    #[inline]
    fn take(&self, lane: Lane, word: u64) -> Option<u32> {
        let start = self.next.load(Ordering::Relaxed);
        // A power of two.
        let last = self.slots.as_ref().len() as u32 - 1;
        for look in 0..LOOKS {
            let at = start.wrapping_add(look) & last;
            if take(self.slot(at), lane, word) {
                self.next.store(at + 1, Ordering::Relaxed);
                if self.used.load(Ordering::Relaxed) <= at {
                    self.used.fetch_max(at + 1, Ordering::Release);
                }
                return Some(at);
            }
        }
        self.next
            .store(start.wrapping_add(LOOKS), Ordering::Relaxed);
        None
    }

    /// Those that may be taken.
    fn looked_at(&self) -> &[AtomicU64] {
        &self.slots.as_ref()[..self.used.load(Ordering::Acquire) as usize]
    }
}

/// The slots that one lane takes.
#[derive(Debug)]
struct Region {
    first: First,
    further: [OnceLock<Box<Further>>; FURTHER],
}

impl Region {
    fn new() -> Self {
        Self {
            first: Block::new(std::array::from_fn(|_| AtomicU64::new(0))),
            further: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// Block and slot.
    #[cold]
    fn take_further(&self, lane: Lane, word: u64) -> (usize, u32) {
        let mut blocks = self.further.iter().zip(1..);
        let taken = blocks.find_map(|(block, i)| {
            let slots = || (0..SLOTS << i).map(|_| AtomicU64::new(0)).collect();
            let block = block.get_or_init(|| Box::new(Block::new(slots())));
            Some((i, block.take(lane, word)?))
        });
        taken.expect("memory ends before blocks do")
    }

    fn further(&self, block: usize) -> Option<&Further> {
        let block = self.further.get(block.checked_sub(1)?)?;
        block.get().map(|block| &**block)
    }

    #[inline]
    fn slot(&self, slot: Slot) -> &AtomicU64 {
        match slot.block() {
            0 => self.first.slot(slot.at()),
            further => self
                .further(further)
                .expect("the slot was taken of it")
                .slot(slot.at()),
        }
    }

    /// Its owner takes this slot next: its cache line is at hand.
    #[inline]
    fn take_next(&self, slot: Slot) {
        let next = match slot.block() {
            0 => Some(&self.first.next),
            further => self.further(further).map(|block| &block.next),
        };
        if let Some(next) = next {
            next.store(slot.at(), Ordering::Relaxed);
        }
    }

    /// Those that may be taken.
    fn looked_at(&self) -> impl Iterator<Item = &AtomicU64> {
        let further = (1..=FURTHER).map_while(|i| self.further(i));
        let further = further.flat_map(Block::looked_at);
        self.first.looked_at().iter().chain(further)
    }
}

/// Takes a slot where it is free. In a lane with an owner nobody else does, so nothing can come
/// between the load and the store.
#[inline]
fn take(slot: &AtomicU64, lane: Lane, word: u64) -> bool {
    if !lane.owned() {
        let taken = slot.compare_exchange(0, word, Ordering::Acquire, Ordering::Relaxed);
        return taken.is_ok();
    }
    let free = slot.load(Ordering::Acquire) == 0;
    if free {
        slot.store(word, Ordering::Release);
    }
    free
}

/// One holder less of several. True where the others went meanwhile, and it was the last.
fn one_less(cell: &AtomicU64, answered: bool) -> bool {
    let less = |word| {
        let rest = if answered { word & !UNANSWERED } else { word };
        let full = word & HOLDERS == HOLDERS;
        Some(if full { rest } else { rest - HOLDER })
    };
    let before = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    before.is_ok_and(|word| word & HOLDERS == HOLDER)
}

#[derive(Debug)]
pub(crate) struct SlotTable {
    regions: PerLane<Region>,
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
    pub(crate) fn new() -> Self {
        Self {
            regions: PerLane::new(),
        }
    }

    /// Takes a slot for so many holders. `unanswered`: it is a primary whose age is to be seen.
    #[inline]
    pub(crate) fn take(&self, since_birth: Duration, holders: u64, unanswered: bool) -> Slot {
        let flag = if unanswered { UNANSWERED } else { 0 };
        let word = began_word(since_birth) | (holders * HOLDER) | flag;
        let lane = thread::lane();
        let region = self.regions.get_or_make(lane, Region::new);
        let (block, at) = match region.first.take(lane, word) {
            Some(at) => (0, at),
            None => region.take_further(lane, word),
        };
        Slot::new(lane, block, at)
    }

    #[inline]
    fn region(&self, slot: Slot) -> &Region {
        let region = self.regions.get(slot.lane());
        region.expect("the slot was taken of it")
    }

    /// One more holder.
    pub(crate) fn hold(&self, slot: Slot) {
        let cell = self.region(slot).slot(slot);
        let more = |word| (word & HOLDERS < HOLDERS).then_some(word + HOLDER);
        // Refused where it is full: a slot that is full stays so.
        let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// One holder less. True for the last one: the slot is free, the permit given back. `answered`:
    /// somebody answered for it, or nobody will, and its age is no longer seen.
    #[inline]
    pub(crate) fn release(&self, slot: Slot, answered: bool) -> bool {
        let region = self.region(slot);
        let cell = region.slot(slot);
        let word = cell.load(Ordering::Acquire);
        let last = word & HOLDERS == HOLDER || one_less(cell, answered);
        if last {
            // Only holders add holders: with one left, nobody but us is here.
            cell.store(0, Ordering::Release);
            if slot.lane() == thread::lane().index() {
                region.take_next(slot);
            }
        }
        last
    }

    /// Slots taken: permits in use. Looks at them all, so not for every call. Of two threads that
    /// each take a slot and count then, at least one sees the other's.
    pub(crate) fn taken(&self) -> u64 {
        fence(Ordering::SeqCst);
        let slots = self.regions.iter().flat_map(|(_, it)| it.looked_at());
        slots
            .filter(|slot| slot.load(Ordering::Relaxed) != 0)
            .count() as u64
    }

    /// Ages of unanswered primaries of at least `beyond`. A gauge, read while calls go on.
    pub(crate) fn ages(&self, now_since_birth: Duration, beyond: Duration) -> Histogram {
        let mut ages = Histogram::new();
        for slot in self
            .regions
            .iter()
            .flat_map(|(_, region)| region.looked_at())
        {
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
        table.hold(slot);
        assert!(!table.release(slot, false));
        assert_eq!(table.taken(), 1);
        assert!(table.release(slot, false));
        assert_eq!(table.taken(), 0);
    }

    #[test]
    fn ages_show_unanswered_primaries_beyond_the_threshold() {
        let table = SlotTable::new();
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
    fn x33_more_holders_than_can_be_counted_cost_their_permit_and_no_other() {
        let table = SlotTable::new();
        let slot = table.take(MS, 1, true);
        for _ in 0..HOLDERS + 5 {
            table.hold(slot);
        }
        assert_eq!(table.taken(), 1);
        assert!(!table.release(slot, true));
        assert_eq!(table.ages(100 * MS, MS).count(), 0, "it was answered");
        let freed = (0..HOLDERS + 5).filter(|_| table.release(slot, false));
        assert_eq!(freed.count(), 0, "nobody knows who is the last");
        assert_eq!(table.taken(), 1);
        let other = table.take(MS, 2, false);
        assert!(!table.release(other, false) && table.release(other, false));
    }

    #[test]
    fn x34_long_attempts_among_short_ones_do_not_make_the_table_grow_without_end() {
        let table = SlotTable::new();
        let mut long = std::collections::VecDeque::new();
        let mut blocks = 0;
        let mut state: u64 = 34;
        let mut below = |n: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % n
        };
        for round in 0..200_000 {
            let short: Vec<_> = (0..12).map(|_| table.take(MS, 1, false)).collect();
            if round % 3 == 0 {
                let slot = table.take(MS, 1, false);
                blocks = blocks.max(slot.block());
                long.push_back(slot);
            }
            if long.len() > 600 + below(400) {
                let at = below(long.len());
                table.release(long.swap_remove_back(at).unwrap(), false);
            }
            for slot in short {
                blocks = blocks.max(slot.block());
                assert!(table.release(slot, false));
            }
        }
        assert!(
            blocks <= 6,
            "{blocks} further blocks for a thousand attempts"
        );
    }

    #[test]
    fn b15_a_full_table_refuses_nobody() {
        let table = SlotTable::new();
        let slots: Vec<_> = (0..SLOTS * 20).map(|_| table.take(MS, 1, true)).collect();
        assert_eq!(table.taken(), 20 * SLOTS as u64);
        assert!(slots.iter().all(|slot| table.release(*slot, false)));
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
                        assert!(table.release(a, false), "nobody else holds it");
                        assert!(table.release(b, false), "nobody else holds it");
                    }
                });
            }
        });
        assert_eq!(table.taken(), 0);
    }
}
