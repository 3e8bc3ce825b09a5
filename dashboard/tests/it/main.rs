#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod access;
mod agents;
mod ask;
mod clients;
mod dependency;
mod doors;
mod fleet;
mod forms;
mod fragments;
mod hostile;
mod keys;
mod kill;
mod overview;
mod rollout;
mod sso;
mod stage;
mod switchback;
mod told;
