//! Carrying notices out of the outbox, one task for each receiver.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use hedgerow_core::moment::Moment;
use reqwest::Url;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::backoff;
use super::body::{body, webhook_id};
use super::receiver::Receiver;
use super::webhook::{AttemptError, Webhook};
use crate::auth::WallClock;
use crate::store::outbox::Notice;
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

/// Notices of different episodes under way to one receiver at once.
const AT_ONCE: usize = 8;
/// Notices read from the store at once.
const BATCH: u32 = 64;
/// The store is looked at this often even where nobody said that there is something new.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long to wait before the store is asked again after it failed.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// Attempts a notice gets before its age can end it: one written long before the controller came
/// back is not given up on its first failure.
const ATTEMPTS_MIN: u32 = 10;

/// How notices are delivered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Delivering {
    /// Wait after the first failure.
    pub retry_first: Duration,
    /// Longest wait.
    pub retry_max: Duration,
    /// Age at which a notice is given up.
    pub give_up_after: Duration,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// The dashboard's address, for links; without it, notices have none.
    pub dashboard: Option<Url>,
    /// Counters.
    pub metrics: Metrics,
    /// What notices are timed by.
    pub clock: WallClock,
}

impl Default for Delivering {
    fn default() -> Self {
        Self {
            retry_first: Duration::from_secs(1),
            retry_max: Duration::from_mins(5),
            give_up_after: Duration::from_hours(24),
            timeout: Duration::from_secs(10),
            dashboard: None,
            metrics: Metrics::new(),
            // A step of the machine's clock must not hold notices back, or rush them.
            clock: WallClock::steady(),
        }
    }
}

/// Delivers notices until `shutdown`; `wake` says that the store may hold new ones. At `shutdown`
/// nothing new is begun; what is under way ends, or is dropped with this future. It returns earlier
/// only where something is broken.
pub async fn deliver(
    settings: Delivering,
    store: Store,
    receivers: Vec<Receiver>,
    wake: Arc<Notify>,
    shutdown: CancellationToken,
) {
    let names: Vec<String> = receivers.iter().map(|r| r.name().to_owned()).collect();
    let (news, _) = watch::channel(());
    let mut tasks = JoinSet::new();
    for receiver in receivers {
        let name = receiver.name().to_owned();
        match Webhook::new(receiver, settings.timeout) {
            Ok(webhook) => {
                let settings = settings.clone();
                let carrier = Carrier {
                    settings,
                    store: store.clone(),
                    webhook,
                    shutdown: shutdown.clone(),
                };
                tasks.spawn(carrier.run(news.subscribe()));
            }
            // No trust store, or the like: its notices wait, and their number shows.
            Err(error) => {
                tracing::error!(receiver = name, error = %error.without_url(), "receiver unusable");
            }
        }
    }
    sweep(&settings, &store, &names).await;
    loop {
        tokio::select! { biased;
            () = shutdown.cancelled() => break,
            () = wake.notified() => { news.send_replace(()); }
            // None: there are no receivers.
            Some(ended) = tasks.join_next() => {
                // It ends with the shutdown only. Whoever runs this starts anew, rather than that
                // one receiver never hears of anything again.
                let how = ended.err().map_or_else(|| "by itself".into(), |it| it.to_string());
                tracing::error!(how, "a receiver's task ended");
                return;
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Gives up old notices of receivers that are no longer configured: nobody else would.
async fn sweep(settings: &Delivering, store: &Store, names: &[String]) {
    let now = settings.clock.now();
    let age = settings.give_up_after.as_millis() as u64;
    let before = Moment::from_millis(now.as_millis().saturating_sub(age));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match store.outbox_give_up_unknown(&names, before, now).await {
        Ok(0) => {}
        Ok(notices) => tracing::warn!(
            notices,
            "notices given up: their receiver is not configured"
        ),
        Err(error) => tracing::error!(error = error.in_full(), "the outbox could not be swept"),
    }
}

/// Carries notices to one receiver.
struct Carrier {
    settings: Delivering,
    store: Store,
    webhook: Webhook,
    shutdown: CancellationToken,
}

impl Carrier {
    async fn run(self, mut news: watch::Receiver<()>) {
        loop {
            // Before the store is read: news that come while it is being read are not missed.
            news.mark_unchanged();
            let wait = match self.round().await {
                Ok(wait) => wait,
                Err(error) => {
                    let receiver = self.webhook.receiver().name();
                    tracing::error!(receiver, error = error.in_full(), "outbox not read");
                    STORE_RETRY
                }
            };
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                // An error: the sender is gone, and with it the task that cancels.
                changed = news.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Hands over everything that is due; says how long until there is more to do.
    async fn round(&self) -> Result<Duration, StoreError> {
        let receiver = self.webhook.receiver().name();
        let waiting = &self.settings.metrics.notices_waiting;
        loop {
            waiting
                .with_label_values(&[receiver])
                .set(self.store.outbox_waiting(receiver).await?);
            let notices = self.store.outbox_next(receiver, BATCH).await?;
            let now = self.settings.clock.now();
            let (due, later): (Vec<_>, Vec<_>) = notices
                .into_iter()
                .partition(|notice| notice.next_at <= now);
            if due.is_empty() || self.shutdown.is_cancelled() {
                let wait = later
                    .first()
                    .map_or(LOOK_EVERY, |next| next.next_at.since(now));
                return Ok(wait.min(LOOK_EVERY));
            }
            futures::stream::iter(due)
                .for_each_concurrent(AT_ONCE, async |notice| {
                    if !self.shutdown.is_cancelled() {
                        self.hand_over(notice).await;
                    }
                })
                .await;
        }
    }

    async fn hand_over(&self, notice: Notice) {
        let name = self.webhook.receiver().name();
        let id = webhook_id(&notice.alert.id, notice.resolved, name);
        let body = body(
            &notice.alert,
            notice.resolved,
            self.settings.dashboard.as_ref(),
        );
        let body = serde_json::to_vec(&body).expect("text and options of text are JSON");
        let now = self.settings.clock.now();
        let date = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let date = jiff::Timestamp::from_millisecond(date).unwrap_or_default();
        let outcome = self
            .webhook
            .attempt(&id, date, self.settings.timeout, body)
            .await;
        let now = self.settings.clock.now();
        match outcome {
            Ok(()) => {
                self.count("delivered");
                self.keep(|| self.store.outbox_delivered(notice.id, now))
                    .await;
                tracing::info!(receiver = name, alert = notice.alert.id, "notice delivered");
            }
            Err(error) => self.failed(&notice, &error, now).await,
        }
    }

    fn count(&self, outcome: &str) {
        let receiver = self.webhook.receiver().name();
        let deliveries = &self.settings.metrics.deliveries;
        deliveries.with_label_values(&[receiver, outcome]).inc();
    }

    async fn failed(&self, notice: &Notice, error: &AttemptError, now: Moment) {
        let attempt = notice.attempts + 1;
        let retry_after = match error {
            AttemptError::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        let (first, most) = (self.settings.retry_first, self.settings.retry_max);
        let wait = backoff::delay(attempt, first, most, retry_after, rand::random());
        let receiver = self.webhook.receiver().name();
        let problem = error.to_string();
        let age = now.plus(wait).since(notice.at);
        if attempt >= ATTEMPTS_MIN && age > self.settings.give_up_after {
            self.count("given_up");
            tracing::error!(
                receiver,
                alert = notice.alert.id,
                attempt,
                problem,
                "notice given up"
            );
            let problem = format!("given up after {attempt} attempts: {problem}");
            self.keep(|| self.store.outbox_give_up(notice.id, now, &problem))
                .await;
        } else {
            self.count("failed");
            tracing::warn!(
                receiver,
                alert = notice.alert.id,
                attempt,
                problem,
                "notice refused"
            );
            self.keep(|| {
                self.store
                    .outbox_failed(notice.id, now.plus(wait), &problem)
            })
            .await;
        }
    }

    /// Keeps an outcome, however often the store refuses it: a notice that was delivered is not
    /// sent again because the disk was full.
    async fn keep<T, F>(&self, write: impl Fn() -> F)
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        while let Err(error) = write().await {
            tracing::error!(error = error.in_full(), "a notice's outcome was not saved");
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(STORE_RETRY) => {}
            }
        }
    }
}
