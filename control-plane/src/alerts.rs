//! Telling people: notices out of the store's outbox to the receivers of the configuration.
//!
//! A notice is written in the transaction of the change it tells of, by the store. Here it is only
//! carried: a receiver that is slow or dead delays neither a decision nor another receiver.
//!
//! Invariant: of one episode, a receiver gets the firing notice first and the resolved one after it,
//! each once (P15, B77). A notice is marked right after the receiver's 2xx; where the process is
//! killed between the two, it is sent again with the same `webhook-id`, by which the receiver
//! recognises it.
//!
//! A kind of receiver is a file: what it is configured with, and one `attempt` to hand a message over.
//! Programs get one notice a message and tell episodes apart; people (Slack, e-mail) get what is due
//! of a dependency in one. To add a kind: its file, a variant in [`receiver`] and in
//! [`crate::config::ReceiverKind`], its keys in `config/receiver/entry.rs`.

mod alertmanager;
mod attempt;
mod backoff;
mod deliver;
mod directory;
mod email;
mod endpoint;
mod notice;
mod pagerduty;
mod plain;
mod receiver;
mod resend;
mod signature;
mod slack;
mod webhook;

pub use crate::outward::AddressError;
pub use deliver::{Delivering, deliver};
pub use directory::Receivers;
pub use receiver::{Receiver, ReceiverError};
pub use signature::{SecretError, SigningSecret};
