//! The controller as a whole: real sockets, real store, real processes where one is killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod access;
mod alerts;
mod api;
mod auth;
mod cli;
mod commands;
mod config;
mod crash;
mod delivery;
mod end_to_end;
mod engine;
mod episode;
mod history;
mod hostile;
mod leaving;
mod listener;
mod logged;
mod oidc;
mod process;
mod prometheus;
mod raw_agent;
mod replay;
mod running;
mod silences;
mod simulate;
mod standing;
mod store;
mod telemetry;
mod tls;
mod ui;
mod ways_in;
mod whatif;
