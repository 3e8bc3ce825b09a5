#![doc = include_str!("../README.md")]

mod alert;
mod brief;
pub mod check;
mod controller;
pub mod decide;
pub mod effect;
mod epoch;
pub mod event;
mod fleet;
mod ingest;
mod ledger;
pub mod memory;
pub mod minute;
pub mod moment;
mod orders;
mod pools;
mod publish;
mod push;
mod quarantine;
mod replicas;
pub mod rollout;
mod route;
mod rules;
pub mod share;
mod stagger;
mod start;
mod switchback;
mod tick;
pub mod view;
mod weigh;
pub mod whatif;
pub mod window;
mod writes;

pub use controller::Controller;
