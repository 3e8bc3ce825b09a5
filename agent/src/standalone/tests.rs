//! The whole loop without a controller, with the real executor, under a paused clock.

mod early;
mod failing;
mod fallback;
mod load;
mod no_effect;
mod policy_file;
mod replicas;
mod shutdown;
mod steady;
mod surge;
mod told;
