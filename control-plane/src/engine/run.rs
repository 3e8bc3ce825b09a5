//! The task itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hedgerow_core::Controller;
use hedgerow_core::effect::{Done, Effect, OrderError};
use hedgerow_core::event::{ConnectionId, Event, RequestId};
use hedgerow_core::view::FleetSnapshot;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Ask, Intake, OrderMessage, Parts, ReportLag, writer};
use crate::agents::Outbox;
use crate::clock::Clock;
use crate::store::StoreError;
use crate::telemetry::Metrics;

/// Events taken at once before ticks and orders get their turn again: about a millisecond's work.
const EVENTS_AT_ONCE: usize = 256;

/// Where an order's sender waits.
type Answer = oneshot::Sender<Result<Done, OrderError>>;

/// What the task hears beside the store.
pub(super) struct Inputs {
    pub(super) orders: mpsc::Receiver<OrderMessage>,
    pub(super) asks: mpsc::Receiver<Ask>,
    pub(super) events: mpsc::Receiver<Intake>,
    pub(super) lag: ReportLag,
}

/// The engine's task.
pub(super) struct Task {
    pub(super) core: Controller,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    pub(super) outboxes: HashMap<ConnectionId, Arc<Outbox>>,
    pub(super) requests: HashMap<RequestId, Answer>,
    /// Answers that wait for the snapshot that shows what was done.
    pub(super) replies: Vec<(Answer, Result<Done, OrderError>)>,
    pub(super) jobs: mpsc::Sender<writer::Job>,
    pub(super) publish_due: bool,
    answers: mpsc::Receiver<Event>,
    orders: mpsc::Receiver<OrderMessage>,
    asks: mpsc::Receiver<Ask>,
    events: mpsc::Receiver<Intake>,
    /// None once the controller is leaving: those who follow snapshots see their end.
    snapshots: Option<watch::Sender<Arc<FleetSnapshot>>>,
    leaving: CancellationToken,
    writer: JoinHandle<()>,
    next_request: u64,
    tick_took: std::time::Duration,
    /// When the newest report came that no tick has decided on yet.
    reported: Option<Instant>,
    lag: ReportLag,
    stop: CancellationToken,
}

impl Task {
    /// Restores the core and makes its epoch durable.
    pub(super) async fn begin(
        parts: Parts,
        inputs: Inputs,
    ) -> Result<(Self, watch::Receiver<Arc<FleetSnapshot>>), StoreError> {
        let Parts {
            settings,
            store,
            receivers,
            wake,
            metrics,
            clock,
            leaving,
            stop,
        } = parts;
        let restored = store.restore().await?;
        let mut core = Controller::new(settings, restored, clock.now());
        // What the core wants before anybody is attached is written here, so that a store that
        // cannot be written ends the start with its reason. A write may ask for another.
        while let Some(effect) = core.poll_effect() {
            if let Effect::Persist { write, records } = effect {
                store.write(&records, &receivers).await?;
                core.handle_event(clock.now(), Event::Persisted(write));
            }
        }
        let (snapshots, published) = watch::channel(Arc::new(core.snapshot(clock.now())));
        let (jobs, jobs_out) = mpsc::channel(writer::JOBS);
        let (answers_in, answers) = mpsc::channel(writer::JOBS);
        let writing = writer::Writer {
            store,
            receivers,
            wake,
            metrics: metrics.clone(),
            answers: answers_in,
        };
        let task = Self {
            core,
            clock,
            metrics,
            outboxes: HashMap::new(),
            requests: HashMap::new(),
            replies: Vec::new(),
            jobs,
            publish_due: false,
            answers,
            orders: inputs.orders,
            asks: inputs.asks,
            events: inputs.events,
            snapshots: Some(snapshots),
            leaving,
            writer: tokio::spawn(writing.run(jobs_out)),
            next_request: 0,
            tick_took: std::time::Duration::ZERO,
            reported: None,
            lag: inputs.lag,
            stop,
        };
        Ok((task, published))
    }

    /// Runs until told to stop; then lets what is under way be written.
    pub(super) async fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS_AT_ONCE);
        loop {
            let next_tick = self.clock.instant(self.core.poll_timeout());
            // In this order: the store's answers free what waits; a tick is never late because
            // many agents report.
            tokio::select! { biased;
                () = self.stop.cancelled() => break,
                () = self.leaving.cancelled(), if self.snapshots.is_some() => self.snapshots = None,
                Some(answer) = self.answers.recv() => self.handle(answer),
                () = tokio::time::sleep_until(next_tick) => self.tick(),
                Some(order) = self.orders.recv() => self.order(order),
                Some(Ask::Latencies(route, answer)) = self.asks.recv() => {
                    // Whoever asked may have gone.
                    let _ = answer.send(self.core.latencies(&route));
                }
                received = self.events.recv_many(&mut events, EVENTS_AT_ONCE) => {
                    if received == 0 {
                        break;
                    }
                    events.drain(..).for_each(|event| self.take(event));
                }
            }
            if self.publish_due {
                self.publish();
            }
            for (answer, result) in self.replies.drain(..) {
                // Whoever asked may have gone; the order stands all the same.
                let _ = answer.send(result);
            }
        }
        self.end().await;
    }

    /// Everything the core wants after an event is set going before the next event.
    pub(super) fn handle(&mut self, event: Event) {
        self.core.handle_event(self.clock.now(), event);
        self.carry_out();
    }

    fn take(&mut self, message: Intake) {
        match message {
            Intake::Attach(joined, outbox) => {
                self.outboxes.insert(joined.connection, outbox);
                self.handle(Event::Joined(*joined));
            }
            Intake::Event(event) => {
                if matches!(event, Event::Reported { .. }) {
                    self.reported = Some(Instant::now());
                }
                let gone = match &event {
                    Event::Gone { connection, .. } => Some(*connection),
                    _ => None,
                };
                self.handle(event);
                if let Some(connection) = gone {
                    self.outboxes.remove(&connection);
                }
            }
        }
    }

    fn order(&mut self, message: OrderMessage) {
        let OrderMessage {
            actor,
            reason,
            order,
            answer,
            span,
        } = message;
        self.next_request += 1;
        let request = RequestId(self.next_request);
        self.requests.insert(request, answer);
        let _entered = tracing::info_span!(parent: &span, "decide").entered();
        self.handle(Event::Ordered {
            request,
            actor,
            reason,
            order,
        });
    }

    fn tick(&mut self) {
        let _entered = tracing::info_span!("tick").entered();
        let began = Instant::now();
        self.core.handle_timeout(self.clock.now());
        self.carry_out();
        self.tick_took = began.elapsed();
        if let Some(came) = self.reported.take() {
            self.lag.set(came.elapsed());
        }
        self.metrics
            .tick_seconds
            .observe(self.tick_took.as_secs_f64());
        self.publish_due = true;
    }

    fn publish(&mut self) {
        self.publish_due = false;
        let Some(snapshots) = &self.snapshots else {
            return;
        };
        let mut snapshot = self.core.snapshot(self.clock.now());
        snapshot.controller.tick_took = self.tick_took;
        snapshots.send_replace(Arc::new(snapshot));
    }

    /// Lets the writer finish what it has; people who wait for it get their answers.
    async fn end(mut self) {
        let (jobs, writer) = (self.jobs, self.writer);
        drop(jobs);
        while let Some(answer) = self.answers.recv().await {
            self.core.handle_event(self.clock.now(), answer);
            while let Some(effect) = self.core.poll_effect() {
                if let Effect::Reply { request, result } = effect
                    && let Some(answer) = self.requests.remove(&request)
                {
                    // Whoever asked may have gone.
                    let _ = answer.send(result);
                }
            }
        }
        if let Err(error) = writer.await {
            tracing::error!(error = %error, "the writer did not end well");
        }
    }
}
