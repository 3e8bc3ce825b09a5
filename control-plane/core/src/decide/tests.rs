//! The whole loop in miniature: a seeded fleet of agents that hedge and report, and the decisions
//! made on what they report.

mod agent;
mod arming;
mod faults;
mod goal;
mod healthy;
mod load;
mod persons;
mod readings;
mod rules;
mod setup;
mod shared;
mod silence;
mod world;
mod worth;
