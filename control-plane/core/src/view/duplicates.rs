//! What a server executed twice.

use std::time::Duration;

use serde::Serialize;

use super::millis;
use crate::moment::Moment;

/// A server's count of the executions that were not the first of their call, beside the hedges that
/// may have caused them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DuplicatesView {
    /// When it was told.
    pub at: Moment,
    /// Over what time before that.
    #[serde(rename = "over_ms", with = "millis")]
    pub over: Duration,
    /// Executions that were not the first of their call.
    pub executed: u64,
    /// Hedges that agents told of in that time and just before; each explains one. None: this
    /// controller has not listened for so long.
    pub hedges: Option<u64>,
}
