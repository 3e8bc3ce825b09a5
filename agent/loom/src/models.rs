//! The models; each checks all interleavings, or all with so many preemptions.

use std::time::Duration;

use hedgerow_protocol::units::{Budget, Ratio};
use loom::sync::Arc;
use loom::thread::spawn;

use crate::budget::TokenBucket;
use crate::lanes::{FreeLanes, LANES, Lane};
use crate::load::Load;
use crate::permit::{Permits, SlotTable};
use crate::places::Places;
use crate::sync::{AtomicU64, Ordering, times_locked};
use crate::tally::{Seen, Tally};
use crate::thread::with_lane;

const MS: Duration = Duration::from_millis(1);

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // More switches than any model here needs to go wrong; without a bound some take minutes.
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// The fourth earning and two takers: one token, taken once.
pub fn token_bucket() {
    check(|| {
        let bucket = Arc::new(TokenBucket::default());
        bucket.set(Budget::clamped(0.25).into(), 1.0);
        (0..3).for_each(|_| bucket.earn());
        let other = bucket.clone();
        let thread = spawn(move || u32::from(other.take()));
        bucket.earn();
        let taken = u32::from(bucket.take());
        assert_eq!(
            taken + thread.join().expect("joins"),
            1 - u32::from(bucket.take())
        );
    });
}

/// A cap lowered while a call earns: never more than the cap is paid out.
pub fn lowered_cap() {
    check(|| {
        let bucket = Arc::new(TokenBucket::default());
        bucket.set(Budget::clamped(0.25).into(), 3.0);
        (0..11).for_each(|_| bucket.earn());
        let other = bucket.clone();
        let thread = spawn(move || other.earn());
        bucket.set(Budget::clamped(0.25).into(), 1.0);
        thread.join().expect("joins");
        assert_eq!((0..3).filter(|_| bucket.take()).count(), 1);
    });
}

/// An armed agent's turn ends while a call earns: nothing is paid out before the next one.
pub fn turn_ends() {
    check(|| {
        let bucket = Arc::new(TokenBucket::default());
        bucket.set(Ratio::ONE, 1.0);
        let other = bucket.clone();
        let thread = spawn(move || other.earn());
        bucket.set(Ratio::ZERO, 0.0);
        bucket.clear();
        assert!(!bucket.take());
        thread.join().expect("joins");
        assert!(!bucket.take());
        bucket.set(Ratio::ONE, 1.0);
        bucket.clear();
        assert!(!bucket.take());
    });
}

/// Guard and hold end on two threads: one of them is the last, and the slot is free.
pub fn permit_ends_once() {
    check(|| {
        let lanes = Arc::new(FreeLanes::new());
        let table = Arc::new(SlotTable::new());
        with_lane(&lanes, |_| {
            let slot = table.take(MS, 2, true);
            let other = table.clone();
            let thread = spawn(move || other.release(slot, false));
            let here = table.release(slot, true);
            assert!(here ^ thread.join().expect("joins"), "one is the last");
            assert_eq!(table.taken(), 0);
        });
    });
}

/// The owner takes a slot while another thread gives its last one back: no slot is taken twice.
pub fn slot_is_given_back_from_elsewhere() {
    check(|| {
        let lanes = Arc::new(FreeLanes::new());
        let table = Arc::new(SlotTable::new());
        with_lane(&lanes, |_| {
            let old = table.take(MS, 1, true);
            let other = table.clone();
            let thread = spawn(move || other.release(old, true));
            let new = table.take(MS, 1, true);
            assert!(thread.join().expect("joins"));
            assert_eq!(table.taken(), 1, "the new one, wherever it is");
            assert!(table.release(new, true));
            assert_eq!(table.taken(), 0);
        });
    });
}

/// Two hedges at once for one place: never both are let in.
pub fn two_hedges_for_one_place() {
    check(|| {
        let lanes = Arc::new(FreeLanes::new());
        let table = Arc::new(SlotTable::new());
        // Both regions are there: how they come to be is not what is modelled.
        with_lane(&lanes, |_| {
            table.release(table.take(MS, 1, false), false);
            with_lane(&lanes, |_| table.release(table.take(MS, 1, false), false))
        });
        let hedge = |lanes: &FreeLanes, table: &SlotTable| {
            with_lane(lanes, |_| {
                let _kept = table.take(MS, 1, false);
                table.taken() <= 1
            })
        };
        let (lanes_there, table_there) = (lanes.clone(), table.clone());
        let thread = spawn(move || hedge(&lanes_there, &table_there));
        let here = hedge(&lanes, &table);
        assert!(!(here && thread.join().expect("joins")));
    });
}

/// A lane's samples against a reader: each is read once, and never more than were counted. (Readers
/// are spawned and writers are not: loom begins with the thread that is there, and a load finds what
/// may be stale only where the store was made before it.)
pub fn single_writer_and_reader() {
    check(|| {
        let lanes = FreeLanes::new();
        let lane = lanes.take();
        let tally = Arc::new(Tally::<2>::new());
        let there = tally.clone();
        let reader = spawn(move || {
            let mut seen = Seen::default();
            let read = seen.news(&there).count();
            assert!(read <= there.count());
            (seen, read)
        });
        tally.record(lane, 0);
        tally.record(lane, 1);
        let (mut seen, read) = reader.join().expect("joins");
        assert_eq!(read + seen.news(&tally).count(), 2);
        assert_eq!(seen.news(&tally).count(), 0);
    });
}

/// Two counters in a lane, the larger first: no reader sees the smaller above it.
pub fn ordered_counters() {
    check(|| {
        let lanes = FreeLanes::new();
        let lane = lanes.take();
        let counters = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let there = counters.clone();
        let reader = spawn(move || {
            let smaller = there[1].load(Ordering::Acquire);
            let larger = there[0].load(Ordering::Acquire);
            assert!(smaller <= larger);
        });
        for _ in 0..2 {
            lane.add(&counters[0], 1);
            lane.add(&counters[1], 1);
        }
        reader.join().expect("joins");
    });
}

/// More threads than lanes, and a lane that changes hands: nothing that was added is lost.
pub fn lane_changes_hands() {
    check(|| {
        let lanes = Arc::new(FreeLanes::new());
        let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)]);
        // One lane is left for two threads: the second has it after the first, or shares.
        let taken = lanes.take();
        let threads = [(); 2].map(|()| {
            let (lanes, words) = (lanes.clone(), words.clone());
            spawn(move || {
                with_lane(&lanes, |lane| {
                    lane.add(&words[lane.index()], 1);
                    lane.add(&words[lane.index()], 1);
                });
            })
        });
        for thread in threads {
            thread.join().expect("joins");
        }
        lanes.give_back(taken);
        let sum: u64 = words.iter().map(|word| word.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, 4);
    });
}

/// Threads without a lane of their own in the one they share: nothing that was added is lost.
pub fn shared_lane() {
    check(|| {
        let word = Arc::new(AtomicU64::new(0));
        let threads = [(); 2].map(|()| {
            let word = word.clone();
            spawn(move || Lane::SHARED.add(&word, 1))
        });
        for thread in threads {
            thread.join().expect("joins");
        }
        assert_eq!(word.load(Ordering::Relaxed), 2);
    });
}

/// Places for losers that are watched: no more than there are, and none is lost.
pub fn watch_places() {
    check(|| {
        let places = Arc::new(Places::new());
        let other = places.clone();
        let watch = |places: &Places| {
            if places.take(1) {
                assert_eq!(places.load(Ordering::Relaxed), 1);
                places.give_back();
            }
        };
        let thread = spawn(move || watch(&other));
        watch(&places);
        thread.join().expect("joins");
        assert_eq!(places.load(Ordering::Relaxed), 0);
        assert!(places.take(1));
    });
}

/// An attempt that ends on another thread than it began on: a reader never sees more than there can
/// be, and at rest there is none.
pub fn replicas_in_flight() {
    check(|| {
        let lanes = Arc::new(FreeLanes::new());
        let load = Arc::new(Load::new());
        with_lane(&lanes, |lane| load.begins(lane, true));
        let there = load.clone();
        let reader = spawn(move || {
            assert!(there.alive(LANES) <= 2);
            assert!(there.started() <= 2);
        });
        let (lanes_there, load_there) = (lanes.clone(), load.clone());
        let ending = spawn(move || with_lane(&lanes_there, |lane| load_there.ends(lane)));
        with_lane(&lanes, |lane| {
            load.begins(lane, true);
            load.ends(lane);
        });
        reader.join().expect("joins");
        ending.join().expect("joins");
        assert_eq!((load.alive(LANES), load.started()), (0, 2));
    });
}

/// What a call's attempt has in the books.
struct Books {
    lanes: FreeLanes,
    permits: Permits,
    load: Load,
    bucket: TokenBucket,
}

impl Books {
    /// One holder of an attempt is dropped, as by a cancelled future.
    fn drop_holder(&self, lane: Lane, slot: crate::permit::Slot, hedge: bool) {
        if self.permits.slots.release(slot, true) {
            self.load.ends(lane);
            if hedge {
                self.permits.hedges.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

/// The caller cancels as another call's timer fires and its hedge is admitted and dropped again;
/// the cancelled primary's work has a hold on a third thread. Nothing is left, and nobody locked
/// anything between taking a lane and giving it back.
pub fn cancelled_as_the_timer_fires() {
    check(|| {
        let books = Arc::new(Books {
            lanes: FreeLanes::new(),
            permits: Permits::new(),
            load: Load::new(),
            bucket: TokenBucket::default(),
        });
        books.bucket.set(Budget::clamped(0.25).into(), 1.0);
        (0..4).for_each(|_| books.bucket.earn());
        let lane = books.lanes.take();
        books.load.begins(lane, true);
        let primary = books.permits.slots.take(MS, 2, true);
        let there = books.clone();
        let hedging = spawn(move || {
            with_lane(&there.lanes, |lane| {
                let before = times_locked();
                let hedge = there.permits.slots.take(MS, 2, false);
                there.permits.hedges.fetch_add(1, Ordering::SeqCst);
                there.load.begins(lane, false);
                let paid = there.bucket.take();
                there.drop_holder(lane, hedge, true);
                there.drop_holder(lane, hedge, true);
                (paid, times_locked() == before)
            })
        });
        let there = books.clone();
        let working_on = spawn(move || there.drop_holder(Lane::SHARED, primary, false));
        let before = times_locked();
        books.drop_holder(lane, primary, false);
        books.bucket.earn();
        assert!(
            times_locked() - before <= 2,
            "the other thread's lane alone"
        );
        working_on.join().expect("joins");
        let (paid, unlocked) = hedging.join().expect("joins");
        assert!(paid && unlocked);
        assert_eq!(books.permits.slots.taken(), 0);
        assert_eq!(books.permits.hedges.load(Ordering::Relaxed), 0);
        assert_eq!((books.load.alive(LANES), books.load.started()), (0, 1));
    });
}
