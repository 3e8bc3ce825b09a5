//! The whole loop in miniature: a seeded fleet of agents that hedge and report, and the decisions
//! made on what they report.

mod agent;
mod faults;
mod goal;
mod healthy;
mod persons;
mod readings;
mod rules;
mod setup;
mod shared;
mod silence;
mod world;
