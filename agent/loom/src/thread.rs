//! A lane for each of a model's threads.

use std::cell::Cell;

use crate::lanes::{FreeLanes, Lane};

loom::thread_local! {
    static LANE: Cell<Option<Lane>> = Cell::new(None);
}

pub(crate) fn lane() -> Lane {
    LANE.with(Cell::get).unwrap_or(Lane::SHARED)
}

/// Runs `f` as a thread with a lane of its own, where there is one left.
pub(crate) fn with_lane<T>(lanes: &FreeLanes, f: impl FnOnce(Lane) -> T) -> T {
    let lane = lanes.take();
    LANE.with(|here| here.set(Some(lane)));
    let result = f(lane);
    LANE.with(|here| here.set(None));
    lanes.give_back(lane);
    result
}
