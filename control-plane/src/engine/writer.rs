//! The one task that writes what the core wants written, in its order.

use std::sync::Arc;

use hedgerow_core::effect::{AlertState, Record};
use hedgerow_core::event::{Event, WriteId};
use tokio::sync::{Notify, mpsc};
use tracing::{Instrument as _, Span};

use crate::store::Store;
use crate::telemetry::Metrics;

/// Writes that wait. The core makes some a second: so many mean a store that has not answered for
/// minutes, and the next ones fail.
pub(super) const JOBS: usize = 1024;
/// Writes put into one transaction where several wait: one trip to the disk for all.
const JOBS_AT_ONCE: usize = 32;

/// A write.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) write: WriteId,
    pub(super) records: Vec<Record>,
    /// What led to it.
    pub(super) span: Span,
}

/// The writer.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) store: Store,
    pub(super) receivers: Vec<String>,
    pub(super) wake: Arc<Notify>,
    pub(super) metrics: Metrics,
    pub(super) answers: mpsc::Sender<Event>,
}

impl Writer {
    /// Writes until no more can come.
    pub(super) async fn run(self, mut jobs: mpsc::Receiver<Job>) {
        let mut batch = Vec::with_capacity(JOBS_AT_ONCE);
        while jobs.recv_many(&mut batch, JOBS_AT_ONCE).await > 0 {
            self.write(&batch).await;
            batch.clear();
        }
    }

    /// All in one transaction; if that fails, each for itself, so that one bad write does not take
    /// its neighbours with it.
    async fn write(&self, batch: &[Job]) {
        let span = tracing::info_span!(parent: &batch[0].span, "write", jobs = batch.len());
        let written = self
            .store
            .write_batch(&all(batch), &self.receivers)
            .instrument(span)
            .await;
        match written {
            Ok(()) => {
                for job in batch {
                    self.done(job).await;
                }
            }
            Err(error) if batch.len() == 1 => self.failed(&batch[0], error.in_full()).await,
            Err(_) => {
                for job in batch {
                    match self.store.write(&job.records, &self.receivers).await {
                        Ok(()) => self.done(job).await,
                        Err(error) => self.failed(job, error.in_full()).await,
                    }
                }
            }
        }
    }

    async fn done(&self, job: &Job) {
        self.metrics.writes.with_label_values(&["stored"]).inc();
        job.records.iter().for_each(log_recorded);
        if job
            .records
            .iter()
            .any(|record| matches!(record, Record::Alert(_) | Record::AlertTold { .. }))
        {
            self.wake.notify_one();
        }
        self.answer(Event::Persisted(job.write)).await;
    }

    async fn failed(&self, job: &Job, problem: String) {
        self.metrics.writes.with_label_values(&["failed"]).inc();
        tracing::error!(store.problem = %problem, records = job.records.len(), "a write failed");
        self.answer(Event::PersistFailed {
            write: job.write,
            problem,
        })
        .await;
    }

    /// Only fails when the engine has ended, and then nobody waits.
    async fn answer(&self, event: Event) {
        let _ = self.answers.send(event).await;
    }
}

/// What people may want to find later, once it is stored: each act, a person's or the controller's
/// own, and each alert. People's words are written escaped, so that they stay in their line.
pub(crate) fn log_recorded(record: &Record) {
    match record {
        Record::Audit(row) => tracing::info!(
            act.action = row.action,
            act.target = row.target,
            act.actor = row.actor.name,
            act.via = row.actor.via.as_str(),
            act.before = ?row.before,
            act.after = ?row.after,
            act.reason = ?row.reason,
            "recorded"
        ),
        Record::Alert(alert) if alert.resolved.is_some() => log_alert(alert, "resolved"),
        Record::Alert(alert) => log_alert(alert, "firing"),
        Record::AlertSilenced(alert) => log_alert(alert, "silenced"),
        Record::AlertTold { alert, .. } => log_alert(alert, "told"),
        _ => {}
    }
}

fn log_alert(alert: &AlertState, phase: &str) {
    tracing::info!(
        alert.id = alert.id,
        alert.rule = alert.rule.as_str(),
        alert.route = %alert.route,
        alert.summary = ?alert.summary,
        alert.phase = phase,
        "alert"
    );
}

fn all(batch: &[Job]) -> Vec<&[Record]> {
    batch.iter().map(|job| job.records.as_slice()).collect()
}
