#![doc = include_str!("../README.md")]

mod assets;
pub mod backend;
mod chart;
mod format;
mod fragment;
mod guard;
mod live;
mod pages;
mod router;

pub use pages::record::export;
pub use router::{AgentsAt, OPEN_ROUTES, PROTECTED_ROUTES, Settings, router};
