//! The last five minutes of a route, in bounded memory.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hedgerow_protocol::latency::SparseHistogram;

use super::lookback::Lookback;
use super::slice::Slice;

/// Calls a window should hold: its p95 is then known to within 7 % in rank.
pub const WINDOW_CALLS: u64 = 1_000;
/// Under this many calls in [`WINDOW_MAX`] slices there is no value.
pub const WINDOW_CALLS_MIN: u64 = hedgerow_protocol::limits::THRESHOLD_CALLS_MIN;
/// Shortest window, in slices: agents' seconds do not begin where ours do.
pub const WINDOW_MIN: usize = 2;
/// Longest window, in slices, for what is to be called the present.
pub const WINDOW_MAX: usize = 60;

/// Slices kept one by one.
const FINE: usize = 20;
/// Slices in a block.
const BLOCK: usize = 10;
/// Blocks in the longest window for what is called the present.
const MINUTE: usize = WINDOW_MAX / BLOCK;
/// Blocks kept: five of the longest windows, for the threshold's slow side.
const BLOCKS: usize = 30;

/// The last slices of one route: twenty one by one, then thirty blocks of ten.
///
/// Sums are made when they are asked for, of a few slices each: the present window is short where
/// there is traffic. The minute is asked for each tick, several times, so that its blocks are also
/// kept as a sum: what enters is added, what leaves subtracted. They are counts, and the very same
/// blocks that came go: nothing can drift.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Windows {
    fine: VecDeque<Slice>,
    blocks: VecDeque<Slice>,
    /// The block that is not full yet: each slice is added as it comes, so that no tick has ten to
    /// add.
    open: Slice,
    /// The newest blocks added up, as many as a minute has room for beside `open`.
    minute: Slice,
    /// How many these are.
    minute_blocks: usize,
    /// Slices pushed in all.
    pushed: u64,
    /// Each agent's newest gauge of the ages of unanswered primaries.
    in_flight: BTreeMap<u64, SparseHistogram>,
}

impl Windows {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the slice of a tick that is over; `span` is the time since the tick before. Also an
    /// empty one: silence is time too.
    pub fn push(&mut self, mut slice: Slice, span: Duration) {
        slice.span = span;
        slice.ticks = 1;
        self.open.add(&slice);
        self.fine.push_back(slice);
        self.pushed += 1;
        // One enters with the last slice of a block, one leaves with the first: no tick does both.
        if self.minute_blocks == MINUTE {
            let leaves = &self.blocks[self.blocks.len() - MINUTE];
            self.minute.subtract(leaves);
            self.minute_blocks -= 1;
        }
        if self.pushed.is_multiple_of(BLOCK as u64) {
            self.minute.add_whole(&self.open);
            self.minute_blocks += 1;
            self.blocks.push_back(std::mem::take(&mut self.open));
            if self.blocks.len() > BLOCKS {
                self.blocks.pop_front();
            }
        }
        if self.fine.len() > FINE {
            self.fine.pop_front();
        }
    }

    /// Keeps an agent's newest gauge in place of its last one. `agent` is any key that is its own,
    /// such as its connection's number.
    pub fn set_in_flight(&mut self, agent: u64, ages: SparseHistogram) {
        if ages.is_empty() {
            self.in_flight.remove(&agent);
        } else {
            self.in_flight.insert(agent, ages);
        }
    }

    /// The agent is gone: what it had in flight ends with it.
    pub fn forget(&mut self, agent: u64) {
        self.in_flight.remove(&agent);
    }

    /// What is in flight beyond the threshold, over all agents.
    pub fn in_flight(&self) -> impl Iterator<Item = &SparseHistogram> {
        self.in_flight.values()
    }

    /// How many slices were ever pushed: tells a new tick from a second look at the same one.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The newest slice.
    pub fn last(&self) -> Option<&Slice> {
        self.fine.back()
    }

    /// The newest `slices`, or a few less beyond twenty, so that whole blocks can be used: never
    /// more. Fewer where there are not as many yet.
    pub fn over(&self, slices: usize) -> Lookback<'_> {
        let open = self.in_open();
        let blocks = self.whole_blocks(slices);
        if slices <= self.fine.len() || blocks * BLOCK + open < self.fine.len() {
            return self.newest(slices.min(self.fine.len()));
        }
        let kept = self.blocks.len();
        let rest = (open > 0).then_some(&self.open);
        if blocks < self.minute_blocks || blocks == 0 {
            let blocks = self.blocks.range(kept - blocks..);
            return Lookback::new(blocks.chain(rest).collect());
        }
        let before = self.blocks.range(kept - blocks..kept - self.minute_blocks);
        let newest = Some(&self.minute).into_iter().chain(rest);
        Lookback::new(before.chain(newest).collect())
    }

    /// The shortest run of newest slices, of at least `min` and at most `max`, that `enough` is true
    /// of; the longest where it is true of none. Not every length is tried: each is a quarter longer
    /// than the one before, so that growing costs a few sums.
    pub fn grown(
        &self,
        min: usize,
        max: usize,
        enough: impl Fn(&Lookback<'_>) -> bool,
    ) -> Lookback<'_> {
        let mut slices = min;
        loop {
            let lookback = self.over(slices.min(max));
            if slices >= max || slices >= self.kept() || enough(&lookback) {
                return lookback;
            }
            slices += (slices / 4).max(1);
        }
    }

    /// The window everything is estimated on: the shortest with [`WINDOW_CALLS`] calls. None where
    /// the longest has fewer than [`WINDOW_CALLS_MIN`].
    pub fn present(&self) -> Option<Lookback<'_>> {
        let window = self.grown(WINDOW_MIN, WINDOW_MAX, |window| {
            window.calls() >= WINDOW_CALLS
        });
        (window.calls() >= WINDOW_CALLS_MIN).then_some(window)
    }

    fn kept(&self) -> usize {
        self.fine
            .len()
            .max(self.blocks.len() * BLOCK + self.in_open())
    }

    /// Slices in the block that is not full yet.
    fn in_open(&self) -> usize {
        (self.pushed % BLOCK as u64) as usize
    }

    /// How many blocks are wholly among the newest `slices`.
    fn whole_blocks(&self, slices: usize) -> usize {
        (slices.saturating_sub(self.in_open()) / BLOCK).min(self.blocks.len())
    }

    /// As many slices as that, of those kept one by one: one by one only where they are not in a
    /// block, which holds them added up already.
    fn newest(&self, slices: usize) -> Lookback<'_> {
        let open = self.in_open();
        let first = self.fine.len() - slices;
        if slices < open {
            return Lookback::new(self.fine.range(first..).collect());
        }
        let blocks = self.whole_blocks(slices);
        let alone = slices - open - blocks * BLOCK;
        let alone = self.fine.range(first..first + alone);
        let blocks = self.blocks.range(self.blocks.len() - blocks..);
        let open = (open > 0).then_some(&self.open);
        Lookback::new(alone.chain(blocks).chain(open).collect())
    }
}

#[cfg(test)]
mod tests {
    use hedgerow_protocol::ids::ReplicaName;
    use hedgerow_protocol::report::Totals;

    use super::*;

    fn second(started: u64) -> Slice {
        Slice {
            totals: Totals {
                started,
                ..Totals::default()
            },
            ..Slice::default()
        }
    }

    fn windows(seconds: impl IntoIterator<Item = u64>) -> Windows {
        let mut windows = Windows::new();
        for started in seconds {
            windows.push(second(started), Duration::from_secs(1));
        }
        windows
    }

    #[test]
    fn a_lookback_is_the_newest_slices_and_whole_blocks_beyond() {
        // The n-th second has n calls.
        let windows = windows(1..=57);
        for (asked, slices) in [
            (1, 1),
            (2, 2),
            (20, 20),
            (21, 20),
            (27, 27),
            (28, 27),
            (37, 37),
            (60, 57),
        ] {
            let lookback = windows.over(asked);
            assert_eq!(lookback.slices(), slices, "asked for {asked}");
            let expected: u64 = (57 - slices as u64 + 1..=57).sum();
            assert_eq!(lookback.calls(), expected, "asked for {asked}");
        }
    }

    #[test]
    fn up_to_twenty_slices_are_exactly_those_whether_in_a_block_or_not() {
        for pushed in 1..=57 {
            let windows = windows(1..=pushed);
            for asked in 1..=20 {
                let lookback = windows.over(asked as usize);
                assert_eq!(lookback.slices() as u64, asked.min(pushed));
                let expected: u64 = (pushed.saturating_sub(asked) + 1..=pushed).sum();
                assert_eq!(lookback.calls(), expected, "{asked} of {pushed}");
            }
        }
    }

    #[test]
    fn the_kept_minute_is_the_sum_of_its_blocks() {
        let mut windows = Windows::new();
        for number in 0_u64..400 {
            let mut slice = second(number);
            let bucket = (number * 7 % 1_000) as u16;
            let sample = SparseHistogram::try_from_pairs([(bucket, number + 1)]).unwrap();
            slice.primary_done.add_sparse(&sample);
            let name = ReplicaName::new(&format!("r{}", number / 15)).unwrap();
            let replica = slice.replicas.entry(name).or_default();
            replica.started = number;
            replica.primary_done.add_sparse(&sample);
            windows.push(slice, Duration::from_secs(1));
            let mut sum = Slice::default();
            let blocks = windows.blocks.len() - windows.minute_blocks;
            for block in windows.blocks.range(blocks..) {
                sum.add(block);
            }
            assert_eq!(windows.minute, sum, "after {number}");
        }
    }

    #[test]
    fn p11_memory_is_bounded_and_holds_five_minutes() {
        let windows = windows((0..5_000).map(|_| 1));
        assert_eq!(windows.fine.len(), FINE);
        assert_eq!(windows.blocks.len(), BLOCKS);
        assert_eq!(windows.over(300).slices(), 300);
        assert_eq!(windows.over(10_000).slices(), 300);
    }

    #[test]
    fn the_window_is_the_shortest_with_a_thousand_calls() {
        for (rate, expected) in [(600, 2), (500, 2), (250, 4), (100, 10)] {
            let windows = windows((0..120).map(|_| rate));
            let window = windows.present().unwrap();
            assert!(
                window.slices() >= expected && window.slices() <= expected + 2,
                "{rate}: {}",
                window.slices()
            );
            assert!(window.calls() >= WINDOW_CALLS);
        }
    }

    #[test]
    fn b42_under_200_calls_in_a_minute_there_is_no_window() {
        assert!(windows((0..120).map(|_| 2)).present().is_none());
        assert!(windows((0..120).map(|_| 4)).present().is_some());
        assert!(windows([]).present().is_none());
    }
}
