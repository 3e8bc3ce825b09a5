#![doc = include_str!("../README.md")]

pub mod effect;
pub mod event;
pub mod moment;
pub mod view;
