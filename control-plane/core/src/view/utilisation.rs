//! How busy a dependency is.

use serde::Serialize;

use crate::decide::Utilisation;
use crate::moment::Moment;

/// A reading from outside of how much of a dependency's capacity is in use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UtilisationView {
    /// 0 to 1.
    pub value: f64,
    /// When it was told.
    pub at: Moment,
    /// Until when it holds; after that it limits nothing.
    pub until: Moment,
}

impl UtilisationView {
    pub(crate) fn new(reading: &Utilisation) -> Self {
        Self {
            value: reading.value.get(),
            at: reading.at,
            until: reading.until(),
        }
    }
}
