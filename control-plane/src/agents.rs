//! Agents' streams: the gRPC service `hedgerow.v1.Fleet`.
//!
//! The .proto file in `hedgerow-protocol` states who says what when. In here:
//!
//! | | |
//! |---|---|
//! | `identity` | which service a stream speaks for: from its token, before anything it sent is read |
//! | `admission` | how many, how fast |
//! | `session` | one stream |
//! | `outbox` | what is to be sent on it: the latest, never a queue |
//! | `server` | the listener's limits |

mod admission;
mod identity;
mod outbox;
mod server;
mod service;
mod session;

pub use identity::Identities;
pub(crate) use outbox::Outbox;
pub use server::{Server, ServerError};
