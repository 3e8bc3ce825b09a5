//! Clients hedged as they are: what they send and what they hand back stays what it was, and each
//! call of theirs is a call of a [`Route`](crate::Route). Each has an example that is a whole
//! program: `tonic_client`, `reqwest_client`, `hyper_client`, `tower_layer`.
//!
//! | module | feature | hedged | not hedged |
//! |---|---|---|---|
//! | `tonic` | `tonic` | unary and server-streaming calls of methods named idempotent, by the caller or by a service config | other methods; calls that stream their request or send more than a bounded size |
//! | `reqwest` | `reqwest` | GET, HEAD, OPTIONS, and what the caller marks | other methods; bodies that are streams |
//! | `hyper` | `hyper-client` | the same, over any tower service of `http` requests | other methods |
//! | [`layer`](crate::layer) | | what its policy says, over any tower service | what cannot be duplicated |
//! | `service_config` | `service-config` | reads a gRPC service config as policies | what it says that Hedgerow does not know is named |
//!
//! What is the same in all of them:
//!
//! - **Replicas are addresses**: `host:port`, or `http://host:port` and `https://host:port`.
//! - **The mark**: a hedge carries the header `hedgerow-attempt: hedge`. A request that carries it
//!   already is not hedged once more, and all its attempts carry it on.
//! - **The permit** of the winner is kept until its body is read, or dropped; the loser is dropped
//!   whole, which resets its stream.
//! - **The deadline** covers the body, too: at its end a body that stalls is an error and its stream
//!   is reset. Where answers are meant to be read for longer than that, say so
//!   (`stream_past_deadline`).
//! - **Which answers count** is told by `verdict` and `tonic::GrpcVerdicts`, and can be said
//!   otherwise.

#[cfg(any(feature = "hyper-client", feature = "reqwest"))]
pub mod address;
#[cfg(any(feature = "hyper-client", feature = "reqwest", feature = "tonic"))]
pub mod body;
#[cfg(feature = "hyper-client")]
pub mod hyper;
#[cfg(any(feature = "hyper-client", feature = "reqwest", feature = "tonic"))]
pub mod mark;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "service-config")]
pub mod service_config;
#[cfg(feature = "tonic")]
pub mod tonic;
#[cfg(any(feature = "hyper-client", feature = "reqwest"))]
pub mod verdict;
