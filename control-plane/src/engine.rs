//! One task owns the core: events in, effects out, one snapshot published after each tick.
//!
//! Invariant: nobody else touches the `Controller`, so nobody ever waits for a lock on it. Readers
//! take the published snapshot; agents and operators send events through bounded channels.
//!
//! Invariant: the task never waits for anything but its inputs. Pushes go into slots that hold the
//! latest only, writes to a task of their own; where that is full, the write fails at once and the
//! core hears of it.

mod effects;
mod intake;
mod run;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_core::effect::{Done, OrderError};
use hedgerow_core::event::{Actor, Order, Settings};
use hedgerow_core::view::FleetSnapshot;
use hedgerow_core::whatif::Latencies;
use hedgerow_protocol::ids::RouteKey;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

pub(crate) use intake::{EngineEnded, Intake, IntakeSender};
pub(crate) use writer::log_recorded;

/// Orders that wait to be looked at. A person sends one at a time; beyond, senders wait.
const ORDERS: usize = 64;
/// Questions that wait to be answered; beyond, those who ask wait.
const ASKS: usize = 16;
/// Events of agents that wait to be looked at: a fifth of a second at 10,000 reports a second.
/// Beyond, sessions stop reading, which slows their agents down.
const EVENTS: usize = 2048;

/// The running core. Cheap to clone; all clones speak to the same one.
#[derive(Debug, Clone)]
pub struct Engine {
    orders: mpsc::Sender<OrderMessage>,
    asks: mpsc::Sender<Ask>,
    intake: IntakeSender,
    snapshots: watch::Receiver<Arc<FleetSnapshot>>,
    clock: Clock,
    settings: Arc<Settings>,
    lag: ReportLag,
}

/// From a report's arrival to its decision, as last seen: nanoseconds, 0 where none was.
#[derive(Debug, Clone, Default)]
struct ReportLag(Arc<AtomicU64>);

impl ReportLag {
    fn set(&self, lag: Duration) {
        let nanos = u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.0.store(nanos, Ordering::Relaxed);
    }

    fn get(&self) -> Option<Duration> {
        let nanos = self.0.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }
}

/// What an engine is made of.
#[derive(Debug)]
pub struct Parts {
    /// The core's settings.
    pub settings: Settings,
    /// Where it begins from, and what it writes to.
    pub store: Store,
    /// Names of the receivers that get notices.
    pub receivers: Vec<String>,
    /// Told after each write that holds an alert.
    pub wake: Arc<Notify>,
    /// Counters.
    pub metrics: Metrics,
    /// Its clock.
    pub clock: Clock,
    /// Ends the streams of snapshots, so that those who follow them can leave; the newest one can
    /// still be read.
    pub leaving: CancellationToken,
    /// Ends it: what is under way is still written.
    pub stop: CancellationToken,
}

/// An order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The core refused it; nothing changed.
    #[error(transparent)]
    Refused(#[from] OrderError),
    /// The controller is shutting down.
    #[error(
        "the controller is shutting down and did not answer; nothing is known to have changed, look before you try again"
    )]
    Gone,
}

#[derive(Debug)]
struct OrderMessage {
    actor: Actor,
    reason: String,
    order: Order,
    answer: oneshot::Sender<Result<Done, OrderError>>,
    span: tracing::Span,
}

/// A question that the snapshot does not answer, since the answer is large and seldom wanted.
#[derive(Debug)]
pub(crate) enum Ask {
    /// A route's latencies now.
    Latencies(RouteKey, oneshot::Sender<Option<Latencies>>),
}

impl Engine {
    /// Restores the core from the store, makes its new epoch durable, and lets it run. An error
    /// means that the store cannot be read or written.
    pub async fn start(parts: Parts) -> Result<(Self, JoinHandle<()>), StoreError> {
        let (orders_in, orders) = mpsc::channel(ORDERS);
        let (asks_in, asks) = mpsc::channel(ASKS);
        let (events_in, events) = mpsc::channel(EVENTS);
        let (clock, settings) = (parts.clock, Arc::new(parts.settings.clone()));
        let lag = ReportLag::default();
        let (task, snapshots) = run::Task::begin(
            parts,
            run::Inputs {
                orders,
                asks,
                events,
                lag: lag.clone(),
            },
        )
        .await?;
        let running = tokio::spawn(task.run());
        let intake = IntakeSender::new(events_in);
        Ok((
            Self {
                orders: orders_in,
                asks: asks_in,
                intake,
                snapshots,
                clock,
                settings,
                lag,
            },
            running,
        ))
    }

    /// The newest published snapshot. Never waits.
    pub fn snapshot(&self) -> Arc<FleetSnapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// Each snapshot as it is published; a slow reader sees the latest only. Closed when the
    /// controller begins to leave.
    pub fn watch(&self) -> watch::Receiver<Arc<FleetSnapshot>> {
        self.snapshots.clone()
    }

    /// Gives an order and waits until it is carried out and durable, or refused.
    #[tracing::instrument(name = "order", skip_all, fields(actor = %actor.name, via = actor.via.as_str()))]
    pub async fn order(
        &self,
        actor: Actor,
        reason: String,
        order: Order,
    ) -> Result<Done, EngineError> {
        let (answer, answered) = oneshot::channel();
        let span = tracing::Span::current();
        let message = OrderMessage {
            actor,
            reason,
            order,
            answer,
            span,
        };
        self.orders
            .send(message)
            .await
            .map_err(|_| EngineError::Gone)?;
        Ok(answered.await.map_err(|_| EngineError::Gone)??)
    }

    /// What is known of a route's latencies; None where nothing is.
    pub async fn latencies(&self, route: RouteKey) -> Result<Option<Latencies>, EngineError> {
        let (answer, answered) = oneshot::channel();
        self.asks
            .send(Ask::Latencies(route, answer))
            .await
            .map_err(|_| EngineError::Gone)?;
        answered.await.map_err(|_| EngineError::Gone)
    }

    /// The clock that everything in the snapshot was taken by.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Between the newest report's arrival at the core and the decision that took it in, at the last
    /// tick that had one; None: no report has come.
    pub fn report_lag(&self) -> Option<Duration> {
        self.lag.get()
    }

    /// The core's settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where agents' sessions send what they hear.
    pub(crate) fn intake(&self) -> &IntakeSender {
        &self.intake
    }
}
