//! Telling people: notices out of the store's outbox to the receivers of the configuration.
//!
//! A notice is written in the transaction of the change it tells of, by the store. Here it is only
//! carried: a receiver that is slow or dead delays neither a decision nor another receiver.
//!
//! Invariant: of one episode, a receiver gets the firing notice first and the resolved one after it,
//! each once (P15, B77). A notice is marked right after the receiver's 2xx; where the process is
//! killed between the two, it is sent again with the same `webhook-id`, by which the receiver
//! recognises it.

pub(crate) mod address;
mod backoff;
mod body;
mod deliver;
mod receiver;
mod signature;
mod webhook;

pub use address::AddressError;
pub use deliver::{Delivering, deliver};
pub use receiver::{Receiver, ReceiverError};
pub use signature::{SecretError, SigningSecret};
