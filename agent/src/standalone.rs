//! Policy from a file, for agents without a controller: read when the agent starts, and again when
//! it changes.
//!
//! ```text
//! content as last seen ──────────────────────────────────────► nothing to do
//!    │ another one: read again half a second later
//!    ├─ changed once more ───► it is being written: wait for the next look
//!    └─ the same twice ──────► parsed ──► good: every route is given its policy
//!                                    └──► bad, or gone: the last good one stays, counted, logged once
//! ```
//! Invariant: no call ever comes here, and no file is read but on the blocking pool.

mod file;
mod policies;
mod taken;
mod watch;

pub use self::policies::PolicyFileError;
pub(crate) use self::watch::{Opened, PolicyFile, open, watch};

#[cfg(test)]
mod tests;
