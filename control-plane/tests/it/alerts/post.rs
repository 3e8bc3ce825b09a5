//! A store, and a task that delivers from it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_control_plane::alerts::{Delivering, Receiver, deliver};
use hedgerow_control_plane::store::Store;
use hedgerow_core::effect::{AlertState, Record};
use hedgerow_dashboard::backend::Delivery;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::standing::eventually;

/// A store, and a task that delivers from it.
pub(crate) struct Post {
    folder: TempDir,
    store: Store,
    wake: Arc<Notify>,
    stop: CancellationToken,
    pub(crate) task: Option<JoinHandle<()>>,
}

pub(crate) fn brisk() -> Delivering {
    let mut settings = Delivering::default();
    settings.retry_first = Duration::from_millis(20);
    settings.retry_max = Duration::from_millis(100);
    settings.timeout = Duration::from_millis(500);
    settings
}

async fn open(folder: &Path) -> Store {
    Store::open(&folder.join("hedgerow.db")).await.unwrap()
}

impl Post {
    pub(crate) async fn new(receivers: Vec<Receiver>) -> Self {
        let folder = TempDir::new().unwrap();
        let store = open(folder.path()).await;
        let mut post = Self {
            folder,
            store,
            wake: Arc::default(),
            stop: CancellationToken::new(),
            task: None,
        };
        post.start(brisk(), receivers);
        post
    }

    fn start(&mut self, settings: Delivering, receivers: Vec<Receiver>) {
        let (store, wake, stop) = (
            self.store.clone(),
            Arc::clone(&self.wake),
            self.stop.clone(),
        );
        self.task = Some(tokio::spawn(deliver(
            settings, store, receivers, wake, stop,
        )));
    }

    /// Ends delivery and opens the store again, as a new process would.
    pub(crate) async fn restart(&mut self, settings: Delivering, receivers: Vec<Receiver>) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
        self.store.close().await;
        self.store = open(self.folder.path()).await;
        self.stop = CancellationToken::new();
        self.start(settings, receivers);
    }

    pub(crate) async fn write(&self, alert: AlertState, receivers: &[&str]) {
        let receivers: Vec<String> = receivers.iter().map(|&r| r.into()).collect();
        self.store
            .write(&[Record::Alert(alert)], &receivers)
            .await
            .unwrap();
        self.wake.notify_one();
    }

    /// Several in one write, as of one tick.
    pub(crate) async fn write_all(&self, alerts: &[AlertState], receivers: &[&str]) {
        let receivers: Vec<String> = receivers.iter().map(|&r| r.into()).collect();
        let records: Vec<_> = alerts.iter().cloned().map(Record::Alert).collect();
        self.store.write(&records, &receivers).await.unwrap();
        self.wake.notify_one();
    }

    /// Ends delivery.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }

    pub(crate) async fn deliveries(&self) -> Vec<Delivery> {
        let mut all = self.store.deliveries(1000).await.unwrap();
        all.reverse();
        all
    }

    pub(crate) async fn until_done(&self) {
        eventually("nothing waits", async || {
            self.deliveries().await.iter().all(|d| d.state != "waiting")
        })
        .await;
    }
}
