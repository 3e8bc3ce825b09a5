//! Pages that are open in browsers.

use prometheus::IntGauge;

use super::Metrics;

/// A page's event stream; counted until dropped, however the stream ends (B81).
#[derive(Debug)]
pub(crate) struct OpenPage(IntGauge);

impl OpenPage {
    /// One more.
    pub(crate) fn count(metrics: &Metrics) -> Self {
        metrics.pages_open.inc();
        Self(metrics.pages_open.clone())
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        self.0.dec();
    }
}
