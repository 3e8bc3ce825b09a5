#![doc = include_str!("../README.md")]

mod acts;
pub mod agents;
pub mod alerts;
pub mod api;
pub mod app;
pub mod auth;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod demo;
pub mod engine;
pub mod listen;
mod outward;
mod process;
pub mod store;
pub mod telemetry;
pub mod ui;
mod whatif;
