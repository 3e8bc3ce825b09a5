//! Loom's, under the names the agent knows them by; few lanes and slots, as models are small.

use std::cell::Cell;

/// What is made before it is shared, or by one owner: not what is modelled.
pub(crate) use std::sync::OnceLock;

pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

pub(crate) const SLOTS: usize = 8;
pub(crate) const OWNED_LANES: usize = 2;

thread_local! {
    /// All of a model's threads are one thread of the system.
    static LOCKED: Cell<u64> = const { Cell::new(0) };
}

/// How often anything was locked.
pub(crate) fn times_locked() -> u64 {
    LOCKED.get()
}

#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        LOCKED.set(LOCKED.get() + 1);
        self.0.lock().expect("no model panics with a lock")
    }
}
