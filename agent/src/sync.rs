//! What threads share state with, in one place: the models in `agent/loom` compile the same
//! structures with loom's own in these names' stead.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) use parking_lot::Mutex;
