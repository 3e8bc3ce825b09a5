//! Carrying notices out of the outbox, one task for each receiver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::DependencyName;
use reqwest::Url;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::attempt::AttemptError;
use super::backoff;
use super::notice::{Message, Notice};
use super::receiver::{Grouping, Receiver};
use crate::auth::WallClock;
use crate::store::outbox;
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

/// Notices of different episodes under way to one receiver at once.
const AT_ONCE: usize = 8;
/// Notices read from the store at once.
const BATCH: u32 = 64;
/// Most notices in one message: a screen of them.
const TOGETHER_MAX: usize = 20;
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
    /// How often notices of receivers that are no longer configured are looked for; above zero.
    pub sweep_every: Duration,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How often a receiver that forgets (Alertmanager) is told again what still fires.
    pub resend_every: Duration,
    /// How long such a receiver is to hold on to what it is told: it outlasts a controller that is
    /// away so long, and ends what nobody tells it of any more.
    pub held_for: Duration,
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
            sweep_every: Duration::from_hours(1),
            timeout: Duration::from_secs(10),
            resend_every: Duration::from_mins(1),
            held_for: Duration::from_mins(15),
            dashboard: None,
            metrics: Metrics::new(),
            // A step of the machine's clock must not hold notices back, or rush them.
            clock: WallClock::steady(),
        }
    }
}

impl Delivering {
    /// A message of these notices, as it is at this time.
    pub(super) fn message(
        &self,
        receiver: &Receiver,
        notices: Vec<Notice>,
        resolved: bool,
    ) -> Message {
        Message {
            notices,
            resolved,
            test: false,
            receiver: receiver.name().to_owned(),
            now: self.clock.now(),
            timeout: self.timeout,
            held_for: self.held_for,
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
        let carrier = Carrier {
            settings: settings.clone(),
            store: store.clone(),
            receiver,
            shutdown: shutdown.clone(),
        };
        tasks.spawn(carrier.run(news.subscribe()));
    }
    // At once, too.
    let mut sweeps = tokio::time::interval(settings.sweep_every);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! { biased;
            () = shutdown.cancelled() => break,
            () = wake.notified() => { news.send_replace(()); }
            _ = sweeps.tick() => sweep(&settings, &store, &names).await,
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
pub(super) struct Carrier {
    pub(super) settings: Delivering,
    pub(super) store: Store,
    pub(super) receiver: Receiver,
    pub(super) shutdown: CancellationToken,
}

impl Carrier {
    async fn run(self, mut news: watch::Receiver<()>) {
        // At once, too: the receiver may have been started anew meanwhile.
        let mut resend = self.receiver.forgets().then(tokio::time::Instant::now);
        loop {
            // Before the store is read: news that come while it is being read are not missed.
            news.mark_unchanged();
            let mut wait = match self.round().await {
                Ok(wait) => wait,
                Err(error) => {
                    let receiver = self.receiver.name();
                    tracing::error!(receiver, error = error.in_full(), "outbox not read");
                    STORE_RETRY
                }
            };
            if let Some(due) = &mut resend {
                if *due <= tokio::time::Instant::now() && !self.shutdown.is_cancelled() {
                    self.resend().await;
                    *due = tokio::time::Instant::now() + self.settings.resend_every;
                }
                wait = wait.min(due.duration_since(tokio::time::Instant::now()));
            }
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
        let receiver = self.receiver.name();
        let grouping = self.receiver.grouping();
        let by_subject = grouping != Grouping::Episodes;
        let waiting = &self.settings.metrics.notices_waiting;
        loop {
            waiting
                .with_label_values(&[receiver])
                .set(self.store.outbox_waiting(receiver).await?);
            let notices = self.store.outbox_next(receiver, by_subject, BATCH).await?;
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
            futures::stream::iter(together(due, grouping))
                .for_each_concurrent(AT_ONCE, async |notices| {
                    if !self.shutdown.is_cancelled() {
                        self.hand_over(notices).await;
                    }
                })
                .await;
        }
    }

    /// One message with these notices, which are all of beginnings or all of ends.
    async fn hand_over(&self, notices: Vec<outbox::Notice>) {
        let resolved = notices.first().is_some_and(|it| it.resolved);
        let dashboard = self.settings.dashboard.as_ref();
        let message = self.settings.message(
            &self.receiver,
            notices
                .iter()
                .map(|it| Notice::of(&it.alert, resolved, dashboard))
                .collect(),
            resolved,
        );
        let outcome = self.receiver.attempt(&message).await;
        let now = self.settings.clock.now();
        // Drawn once: what failed together is tried again together.
        let jitter = rand::random();
        for notice in &notices {
            match &outcome {
                Ok(_) => self.delivered(notice, now).await,
                Err(error) => self.failed(notice, error, now, jitter).await,
            }
        }
    }

    async fn delivered(&self, notice: &outbox::Notice, now: Moment) {
        self.count("delivered");
        self.keep(|| self.store.outbox_delivered(notice.id, now))
            .await;
        let receiver = self.receiver.name();
        tracing::info!(receiver, alert = notice.alert.id, "notice delivered");
    }

    fn count(&self, outcome: &str) {
        let receiver = self.receiver.name();
        let deliveries = &self.settings.metrics.deliveries;
        deliveries.with_label_values(&[receiver, outcome]).inc();
    }

    async fn failed(
        &self,
        notice: &outbox::Notice,
        error: &AttemptError,
        now: Moment,
        jitter: f64,
    ) {
        let attempt = notice.attempts + 1;
        let (first, most) = (self.settings.retry_first, self.settings.retry_max);
        let wait = backoff::delay(attempt, first, most, error.retry_after(), jitter);
        let receiver = self.receiver.name();
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

/// What goes into one message each.
fn together(due: Vec<outbox::Notice>, grouping: Grouping) -> Vec<Vec<outbox::Notice>> {
    if grouping != Grouping::Dependencies {
        return due.into_iter().map(|it| vec![it]).collect();
    }
    let mut groups: BTreeMap<(DependencyName, bool), Vec<outbox::Notice>> = BTreeMap::new();
    for notice in due {
        let group = (notice.alert.route.dependency.clone(), notice.resolved);
        groups.entry(group).or_default().push(notice);
    }
    let mut messages = Vec::new();
    for mut group in groups.into_values() {
        // In the order of what happened.
        group.sort_by_key(|it| it.id);
        while group.len() > TOGETHER_MAX {
            let rest = group.split_off(TOGETHER_MAX);
            messages.push(std::mem::replace(&mut group, rest));
        }
        messages.push(group);
    }
    messages
}
