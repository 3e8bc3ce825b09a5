#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod arming;
pub mod directive;
pub mod ids;
pub mod latency;
pub mod limits;
pub mod majority;
pub mod policy;
pub mod report;
pub mod session;
pub mod units;

#[cfg(feature = "wire")]
pub mod wire;
