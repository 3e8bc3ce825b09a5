//! One agent's stream, from hello to its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_core::event::{ConnectionId, Departure, Event, Joined};
use hedgerow_protocol::ids::ServiceName;
use hedgerow_protocol::limits::REPORT_INTERVAL_DEFAULT;
use hedgerow_protocol::session::{
    AgentMessage, ComeBack, ComeBackReason, ControllerMessage, HeartbeatAck, Hello,
    ReceivedAgentMessage, Text, Welcome,
};
use hedgerow_protocol::wire::{agent_message, proto};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Code, Status, Streaming};

use super::admission::Place;
use super::identity::Credential;
use super::outbox::Outbox;
use super::service::Shared;
use crate::engine::{EngineEnded, Intake};

/// How long a new stream may take for its hello.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Events kept while the engine has no room: a report and what may come with it. An agent that keeps
/// to the contract has one report under way.
const WAITING_MAX: usize = 8;
/// How long the last message may wait for an agent that does not read.
const LAST_WORD_WITHIN: Duration = Duration::from_secs(1);
/// Messages an agent may send at once, and how often afterwards. It sends one or two a second; one
/// that sends more is read more slowly, which it feels, and nobody else (S3).
const MESSAGES_AT_ONCE: u32 = 100;
/// See [`MESSAGES_AT_ONCE`].
const MESSAGE_EVERY: Duration = Duration::from_millis(20);

/// A stream.
pub(super) struct Session {
    shared: Arc<Shared>,
    _place: Place,
    connection: ConnectionId,
    incoming: Streaming<proto::AgentMessage>,
    outgoing: mpsc::Sender<Result<proto::ControllerMessage, Status>>,
    outbox: Arc<Outbox>,
    /// What it came by; the stream ends with it.
    credential: Credential,
    /// The newest heartbeat that is not answered yet.
    heartbeat: Option<HeartbeatAck>,
    /// What the engine had no room for yet.
    waiting: VecDeque<Event>,
    /// When the last message came.
    heard: Instant,
    /// Until when messages are accounted for: see [`MESSAGES_AT_ONCE`].
    read_until: Instant,
}

/// How a stream ends.
#[derive(Debug)]
enum End {
    /// The agent said goodbye.
    Left,
    /// It ended, or broke, on its side.
    Lost,
    /// It is ended from here, with this status.
    Refused(Status),
    /// The process shuts down.
    Stopping,
}

impl From<EngineEnded> for End {
    fn from(_: EngineEnded) -> Self {
        Self::Stopping
    }
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        place: Place,
        incoming: Streaming<proto::AgentMessage>,
        outgoing: mpsc::Sender<Result<proto::ControllerMessage, Status>>,
        credential: Credential,
    ) -> Self {
        let now = Instant::now();
        Self {
            connection: shared.engine.intake().next_connection(),
            shared,
            _place: place,
            incoming,
            outgoing,
            outbox: Arc::default(),
            credential,
            heartbeat: None,
            waiting: VecDeque::new(),
            heard: now,
            read_until: now,
        }
    }

    /// Runs it to its end.
    pub(super) async fn run(mut self, service: ServiceName, peer: String) {
        let end = match self.greet().await {
            Ok(hello) => {
                let instance = hello.instance;
                let end = self.attached(hello, service.clone(), peer.clone()).await;
                self.tell_departure(&end).await;
                tracing::debug!(
                    agent.service = %service, agent.instance = %instance, agent.peer = %peer,
                    end = ?end, "a stream ended"
                );
                end
            }
            Err(end) => end,
        };
        self.last_word(end).await;
    }

    /// Waits for the hello.
    async fn greet(&mut self) -> Result<Hello, End> {
        let received = tokio::select! {
            () = self.shared.stop.cancelled() => return Err(End::Stopping),
            received = timeout(HELLO_WITHIN, self.incoming.message()) => received,
        };
        let Ok(received) = received else {
            self.count_refused("no_hello");
            let problem =
                format!("no hello within {HELLO_WITHIN:?}: expected it as the first message");
            return Err(End::Refused(Status::deadline_exceeded(problem)));
        };
        let message = match received {
            Ok(Some(message)) => message,
            Ok(None) => return Err(End::Lost),
            Err(status) => return Err(self.broken(status)),
        };
        match agent_message(message) {
            Ok(Some(AgentMessage::Hello(hello))) => Ok(hello),
            Ok(_) => {
                self.count_refused("out_of_turn");
                let problem = "hello: expected it as the first message, before any other";
                Err(End::Refused(Status::invalid_argument(problem)))
            }
            Err(error) => {
                self.count_refused("undecodable");
                Err(End::Refused(error.into()))
            }
        }
    }

    /// From hello to the end.
    async fn attached(&mut self, hello: Hello, service: ServiceName, peer: String) -> End {
        let joined = Joined {
            connection: self.connection,
            service,
            instance: hello.instance,
            incarnation: hello.incarnation,
            zone: hello.zone,
            version: version(&hello.version, &hello.build),
            peer,
            held: hello.held,
        };
        let attach = Intake::Attach(Box::new(joined), Arc::clone(&self.outbox));
        if self.shared.engine.intake().send(attach).await.is_err() {
            return End::Stopping;
        }
        let welcome = ControllerMessage::Welcome(self.welcome());
        if self.outgoing.send(Ok(welcome.into())).await.is_err() {
            return End::Lost;
        }
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
        }
    }

    fn welcome(&self) -> Welcome {
        let settings = self.shared.engine.settings();
        Welcome {
            controller: Text::lossy(&settings.controller),
            epoch: self.shared.engine.snapshot().epoch,
            report_interval: REPORT_INTERVAL_DEFAULT,
            heartbeat: settings.heartbeat,
            lease: settings.lease,
            // The core answers every hello with a set at once: it relearns from the hello itself.
            resyncing: false,
        }
    }

    /// Waits for the next thing that can be done, and does it. Reading and writing never wait for
    /// each other.
    async fn step(&mut self) -> Result<(), End> {
        let silent_at = self.heard + self.shared.limits.silence_max;
        let intake = self.shared.engine.intake();
        let next = tokio::select! {
            () = self.shared.stop.cancelled() => return Err(End::Stopping),
            () = self.credential.taken_back() => return Err(taken_back(&self.shared)),
            room = intake.reserve(), if !self.waiting.is_empty() => {
                if let Some(event) = self.waiting.pop_front() {
                    room?.send(Intake::Event(event));
                }
                return Ok(());
            }
            room = room_to_send(&self.outgoing, &self.outbox, self.heartbeat.is_some()) => {
                let Ok(room) = room else { return Err(End::Lost) };
                let answer = self.heartbeat.take().map(ControllerMessage::HeartbeatAck);
                if let Some(message) = answer.or_else(|| self.outbox.take()) {
                    room.send(Ok(message.into()));
                }
                return Ok(());
            }
            received = next_message(&mut self.incoming, self.read_until) => Some(received),
            // By what was received, not by what could be written: a stopped process still takes
            // what the kernel buffers for it (B65).
            () = sleep_until(silent_at) => None,
        };
        match next {
            Some(Ok(Some(message))) => {
                self.account();
                self.take(message)
            }
            Some(Ok(None)) => Err(End::Lost),
            Some(Err(status)) => Err(self.broken(status)),
            None => Err(self.silent()),
        }
    }

    fn silent(&self) -> End {
        self.count_refused("silent");
        let (silence, heartbeat) = (
            self.shared.limits.silence_max,
            self.shared.engine.settings().heartbeat,
        );
        let problem =
            format!("no message for {silence:?}: expected a heartbeat every {heartbeat:?}");
        End::Refused(Status::deadline_exceeded(problem))
    }

    fn account(&mut self) {
        let now = Instant::now();
        self.heard = now;
        let at_once = MESSAGE_EVERY * MESSAGES_AT_ONCE;
        self.read_until =
            self.read_until.max(now.checked_sub(at_once).unwrap_or(now)) + MESSAGE_EVERY;
    }

    /// One message of the agent.
    fn take(&mut self, message: proto::AgentMessage) -> Result<(), End> {
        let message = match agent_message(message) {
            Ok(Some(message)) => message,
            // Of a newer version: to be ignored.
            Ok(None) => return Ok(()),
            Err(error) => {
                self.count_undecodable(error.to_string());
                return Err(End::Refused(error.into()));
            }
        };
        self.act(message)
    }

    fn act(&mut self, message: ReceivedAgentMessage) -> Result<(), End> {
        let connection = self.connection;
        match message {
            AgentMessage::Hello(_) => {
                self.count_refused("out_of_turn");
                let problem = "hello: a second one; expected it once, as the first message";
                return Err(End::Refused(Status::invalid_argument(problem)));
            }
            AgentMessage::Goodbye(_) => return Err(End::Left),
            AgentMessage::Report(Ok(sent)) => self.forward(Event::Reported {
                connection,
                report: Box::new(sent.report),
                held_hash: sent.held_hash,
            }),
            AgentMessage::Report(Err(refused)) => {
                // Refused whole, and said so, so that it is not sent again; what the agent holds is
                // known all the same.
                self.outbox
                    .acknowledge(refused.sequence, Some(refused.reason.to_string()));
                self.count_undecodable(refused.reason.to_string());
                self.forward(Event::Heartbeat {
                    connection,
                    held_hash: refused.held_hash,
                });
            }
            AgentMessage::Applied(applied) => {
                let stamps = applied
                    .routes
                    .into_iter()
                    .map(|it| (it.route, it.stamp))
                    .collect();
                self.forward(Event::Applied { connection, stamps });
            }
            AgentMessage::Refused(refused) => self.forward(Event::Refused {
                connection,
                route: refused.route,
                stamp: refused.stamp,
                reason: refused.reason.to_string(),
            }),
            AgentMessage::Heartbeat(heartbeat) => {
                self.heartbeat = Some(HeartbeatAck {
                    number: heartbeat.number,
                });
                self.forward(Event::Heartbeat {
                    connection,
                    held_hash: heartbeat.held_hash,
                });
            }
        }
        Ok(())
    }

    /// To the engine; kept for a while where it has no room, in order. An agent that keeps to the
    /// contract never fills that place: it waits for its report's acknowledgement.
    fn forward(&mut self, event: Event) {
        let event = if self.waiting.is_empty() {
            match self.shared.engine.intake().try_send(event) {
                Some(event) => event,
                None => return,
            }
        } else {
            event
        };
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(event);
        } else {
            self.shared.metrics.intake_dropped.inc();
        }
    }

    fn count_undecodable(&mut self, problem: String) {
        self.forward(Event::Undecodable {
            connection: self.connection,
            problem,
        });
    }

    fn count_refused(&self, reason: &str) {
        self.shared
            .metrics
            .streams_refused
            .with_label_values(&[reason])
            .inc();
    }

    /// The stream itself broke: by what it carried, or by its connection.
    fn broken(&mut self, status: Status) -> End {
        match status.code() {
            Code::InvalidArgument
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::Unimplemented => {
                self.count_refused("undecodable");
                self.count_undecodable(status.message().to_owned());
                End::Refused(status)
            }
            _ => End::Lost,
        }
    }

    /// The engine learns of the end whatever it is, after everything that came before it.
    async fn tell_departure(&mut self, end: &End) {
        let departure = match end {
            End::Left => Departure::Left,
            End::Lost | End::Refused(_) | End::Stopping => Departure::Lost,
        };
        let connection = self.connection;
        let intake = self.shared.engine.intake();
        for event in self.waiting.drain(..).chain([Event::Gone {
            connection,
            departure,
        }]) {
            // An ended engine needs no news.
            if intake.send(Intake::Event(event)).await.is_err() {
                return;
            }
        }
    }

    /// What the agent gets to know of the end, if it still reads.
    async fn last_word(&mut self, end: End) {
        let word = match end {
            End::Left | End::Lost => return,
            End::Refused(status) => Err(status),
            End::Stopping => {
                let after = self.shared.admission.drained();
                let reason = ComeBackReason::Draining;
                Ok(ControllerMessage::ComeBack(ComeBack { after, reason }).into())
            }
        };
        // One that does not read is gone for all we know: the end of the stream says the rest.
        let _ = timeout(LAST_WORD_WITHIN, self.outgoing.send(word)).await;
    }
}

/// The stream's token is not good any more.
fn taken_back(shared: &Shared) -> End {
    shared
        .metrics
        .streams_refused
        .with_label_values(&["taken_back"])
        .inc();
    End::Refused(Status::unauthenticated(
        "the token of this stream was taken back: expected another one of this service's",
    ))
}

/// For people: the library's version, and the service's build.
fn version(version: &Text, build: &Text) -> String {
    if build.is_empty() {
        version.to_string()
    } else {
        format!("{version} ({build})")
    }
}

/// Waits until there is something to send, and room for it.
async fn room_to_send<'a>(
    outgoing: &'a mpsc::Sender<Result<proto::ControllerMessage, Status>>,
    outbox: &Outbox,
    at_once: bool,
) -> Result<mpsc::Permit<'a, Result<proto::ControllerMessage, Status>>, mpsc::error::SendError<()>>
{
    if !at_once {
        outbox.filled().await;
    }
    outgoing.reserve().await
}

/// The next message, not before the sender has earned another one.
async fn next_message(
    incoming: &mut Streaming<proto::AgentMessage>,
    not_before: Instant,
) -> Result<Option<proto::AgentMessage>, Status> {
    if not_before > Instant::now() {
        sleep_until(not_before).await;
    }
    incoming.message().await
}
