//! The pages. View model, template and handler of a page in one file.

pub(crate) mod access;
pub(crate) mod agents;
pub(crate) mod alerts;
pub(crate) mod controller;
pub(crate) mod dependency;
pub(crate) mod error;
pub(crate) mod frame;
pub(crate) mod kill;
pub(crate) mod login;
pub(crate) mod overview;
pub(crate) mod policies;
pub(crate) mod policy;
pub(crate) mod receivers;
pub(crate) mod record;
pub(crate) mod state;
