//! Signing in by OpenID Connect: against a real provider, and against one that lies.

mod browser;
mod liar;
mod lies;
mod python;
mod real;
mod settings;
