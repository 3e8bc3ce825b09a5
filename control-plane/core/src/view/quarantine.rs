//! Agents that are left out, as people see them.

use serde::Serialize;

use super::Evidence;
use crate::moment::Moment;

/// Why what an agent says of a route is in no window, threshold or verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuarantineView {
    /// Since when.
    pub since: Moment,
    /// Held: put off for some seconds, until it is known whether it belongs to the rest. Otherwise
    /// quarantined: left out until it agrees with the others.
    pub held: bool,
    /// As `calls crossed 95 % of 120, others' 5 %`.
    pub words: String,
    /// The same as a figure: its share, and the limit beyond which it stands out.
    pub evidence: Vec<Evidence>,
    /// Reports left out since then.
    pub reports: u64,
    /// Calls begun in these.
    pub calls: u64,
}
