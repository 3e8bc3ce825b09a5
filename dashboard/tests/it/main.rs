#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod access;
mod ask;
mod clients;
mod doors;
mod editor;
mod fleet;
mod forms;
mod fragments;
mod hostile;
mod keys;
mod kill;
mod lately;
mod overview;
mod policies;
mod rollout;
mod sso;
mod stage;
mod switchback;
mod told;
mod whatif;
