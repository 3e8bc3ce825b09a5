#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod access;
mod access_page;
mod ask;
mod clients;
mod doors;
mod fleet;
mod forms;
mod fragments;
mod hostile;
mod kill;
mod overview;
mod rollout;
mod sso;
mod stage;
mod switchback;
mod told;
