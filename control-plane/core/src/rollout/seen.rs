//! What the agents in the share report, and what the others do, apart.

use std::collections::VecDeque;

use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::{RouteReport, Totals};

use crate::window::Tally;

/// Ticks in a block.
const BLOCK: u32 = 5;
/// Blocks kept: two minutes, so that what happens late in a long stage is not thinned by what was
/// well before.
const BLOCKS: usize = 24;
/// The newest blocks that demand is told from: 5 to 10 s.
const BLOCKS_NEW: usize = 2;

/// One group's calls.
#[derive(Debug, Clone, Default)]
struct Side {
    totals: Totals,
    treated: Tally,
    holdout: Tally,
}

/// The last two minutes of a stage, on one route: of the share, and of the rest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Oldest first; of each, the share's and then the rest's.
    blocks: VecDeque<[Side; 2]>,
    ticks: u32,
}

/// One group's calls, added up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arm {
    pub(crate) totals: Totals,
    /// What callers waited, where a hedge was allowed.
    pub(crate) treated: Histogram,
    /// What callers waited, held out.
    pub(crate) holdout: Histogram,
}

impl Seen {
    /// Adds a report of an agent, in the share or not.
    pub(crate) fn add(&mut self, in_share: bool, delta: &Totals, report: &RouteReport) {
        if self.blocks.is_empty() {
            self.blocks.push_back(Default::default());
        }
        let Some(block) = self.blocks.back_mut() else {
            return;
        };
        let side = &mut block[usize::from(!in_share)];
        side.totals.add(delta);
        side.treated.add_sparse(&report.treated);
        side.holdout.add_sparse(&report.holdout);
    }

    /// A tick is over.
    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks.is_multiple_of(BLOCK) {
            self.blocks.push_back(Default::default());
            if self.blocks.len() > BLOCKS {
                self.blocks.pop_front();
            }
        }
    }

    /// The share's calls and the rest's, over two minutes at most.
    pub(crate) fn arms(&self) -> [Arm; 2] {
        self.newest(BLOCKS)
    }

    /// The same over the last seconds.
    pub(crate) fn new_arms(&self) -> [Arm; 2] {
        self.newest(BLOCKS_NEW)
    }

    fn newest(&self, blocks: usize) -> [Arm; 2] {
        let mut arms = [Arm::default(), Arm::default()];
        for block in self.blocks.iter().rev().take(blocks) {
            for (arm, side) in arms.iter_mut().zip(block) {
                arm.totals.add(&side.totals);
                side.treated.add_to(&mut arm.treated);
                side.holdout.add_to(&mut arm.holdout);
            }
        }
        arms
    }
}
