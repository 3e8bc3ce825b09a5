//! The whole loop in miniature: a seeded fleet of agents that hedge and report, and the decisions
//! made on what they report.

mod faults;
mod healthy;
mod persons;
mod shared;
mod silence;
mod world;
