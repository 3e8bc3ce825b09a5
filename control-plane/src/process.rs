//! The controller's process, as its page and the API show it.

use hedgerow_dashboard::backend::ProcessView;

use crate::engine::Engine;
use crate::store::Store;

/// This process, of which `open_pages` are open. What cannot be found out is None; that is logged, and nothing else fails by it.
pub(crate) async fn view(engine: &Engine, store: &Store, open_pages: u64) -> ProcessView {
    let (store_bytes, outbox) = tokio::join!(store.bytes(), store.outbox_depth());
    let known = |what: &str, found: Result<u64, crate::store::StoreError>| {
        found
            .inspect_err(|error| {
                tracing::warn!(error = error.in_full(), what, "could not be found out");
            })
            .ok()
    };
    ProcessView {
        version: env!("CARGO_PKG_VERSION").into(),
        name: engine.settings().controller.clone(),
        // A second controller on the store is refused at its start.
        leader: true,
        store_bytes: known("the store's size", store_bytes),
        outbox_depth: known("the outbox's depth", outbox).unwrap_or_default(),
        open_pages,
        resident_bytes: resident_bytes(),
        report_lag_ms: engine.report_lag().map(|lag| lag.as_secs_f64() * 1e3),
    }
}

/// Resident memory, where the system tells it in `/proc`.
fn resident_bytes() -> Option<u64> {
    resident_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The line is `VmRSS:     12345 kB`.
fn resident_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u14_resident_memory_is_read_or_not_known() {
        assert_eq!(
            resident_of("Name:\thedgerow\nVmRSS:\t  2048 kB\nThreads:\t4\n"),
            Some(2 * 1024 * 1024)
        );
        assert_eq!(resident_of("Name:\thedgerow\n"), None);
        assert_eq!(resident_of("VmRSS: many kB"), None);
    }
}
