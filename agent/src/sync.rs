//! What threads share state with, in one place: the models in `agent/loom` compile the same
//! structures with loom's own in these names' stead.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

pub(crate) use parking_lot::Mutex;

/// Slots of a region's first block: a power of two, at least 8.
pub(crate) const SLOTS: usize = 256;

/// Lanes with an owner. More threads than this seldom make calls, and those that do still can.
pub(crate) const OWNED_LANES: usize = 64;
