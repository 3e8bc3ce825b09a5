#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

mod access;
mod access_page;
mod agents;
mod alerts;
mod ask;
mod big;
mod clients;
mod controller;
mod dependency;
mod doors;
mod editor;
mod fleet;
mod forms;
mod fragments;
mod frame;
mod hostile;
mod kill;
mod lately;
mod live;
mod overview;
mod policies;
mod receivers;
mod record;
mod rollout;
mod sso;
mod stage;
mod switchback;
mod told;
mod whatif;
