//! What the link needs of the agent. The link is the only module that does network; this is the
//! only way it reaches anything else.
//!
//! Time is tokio's `Instant`, so that tests under a paused clock see one time everywhere.

use std::collections::BTreeSet;
use std::time::Duration;

use hedgerow_protocol::directive::{Directive, Stamp};
use hedgerow_protocol::ids::{RouteKey, Sequence};
use hedgerow_protocol::report::Report;
use hedgerow_protocol::session::{Hello, Welcome};
use tokio::time::Instant;

/// What was refused, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// One directive, by the agent.
    Directive,
    /// A whole set of directives, by the agent.
    Set,
    /// A report, by the controller.
    Report,
}

/// The agent as the link sees it. No method blocks, does IO or waits for a call in flight.
pub(crate) trait Host: Send + Sync + 'static {
    /// What we are and hold, in full, at every connect.
    fn hello(&self) -> Hello;

    /// What came since the last acknowledged report. Asked again with the same sequence before
    /// [`acknowledged`](Self::acknowledged), it gives the same report again.
    fn collect(&self, sequence: Sequence, covers: Duration, now: Instant) -> Report;

    /// The report was dealt with, counted or refused: it is never sent again.
    fn acknowledged(&self, sequence: Sequence);

    /// Something was refused. Told each time, also where the other side is not told once more.
    fn not_taken(&self, what: NotTaken);

    /// Takes a directive, or says why not; what was held before then stays.
    fn apply(&self, directive: Directive, now: Instant) -> Result<(), String>;

    /// Any word from the controller renews the leases.
    fn heard(&self, now: Instant);

    /// The controller takes us on.
    fn welcomed(&self, welcome: &Welcome, now: Instant);

    /// A set was taken that names these routes, the ones of refused directives among them. Words
    /// from the controller no longer renew the leases of routes that are not named, until a set
    /// names them again. None named: an empty set that is meant; all routes go back to observing,
    /// but for those that are off.
    fn delivered(&self, named: &BTreeSet<RouteKey>, now: Instant);

    /// What is held, for the hash in reports and heartbeats.
    fn held(&self) -> Vec<(RouteKey, Stamp)>;

    /// Each second, connected or not: leases, local threshold, local switch-off.
    fn tick(&self, now: Instant);
}
