//! A real gRPC server that does what the test says: each stream is handed to the test, which plays
//! the controller on it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_protocol::directive::{Directive, DirectiveSet};
use hedgerow_protocol::ids::Epoch;
use hedgerow_protocol::session::{
    AgentMessage, ControllerMessage, HeartbeatAck, Hello, ReceivedAgentMessage, RefusedReport,
    ReportAck, SentReport, Text, Welcome,
};
use hedgerow_protocol::wire;
use hedgerow_protocol::wire::proto;
use hedgerow_protocol::wire::proto::fleet_server::{Fleet, FleetServer};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tonic::metadata::MetadataMap;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

/// How long anything may take before the test fails: generous, the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(30);

type Sent = Result<proto::ControllerMessage, Status>;

/// A listening controller.
pub(super) struct Controller {
    address: std::net::SocketAddr,
    sessions: mpsc::UnboundedReceiver<Session>,
    door: Arc<Door>,
    server: tokio::task::JoinHandle<()>,
}

/// Who is let in.
#[derive(Default)]
struct Door {
    token: Mutex<Option<String>>,
    turned_away: AtomicU64,
}

impl Controller {
    /// On a free port, in the clear.
    pub(super) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// On a free port.
    pub(super) async fn start_with(tls: Option<ServerTlsConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (arrivals, sessions) = mpsc::unbounded_channel();
        let door = Arc::new(Door::default());
        let service = FleetServer::new(Attacher {
            arrivals,
            door: door.clone(),
        });
        let mut builder = Server::builder();
        if let Some(tls) = tls {
            builder = builder.tls_config(tls).unwrap();
        }
        let router = builder.add_service(service);
        let server = tokio::spawn(async move {
            router
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        Self {
            address,
            sessions,
            door,
            server,
        }
    }

    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets in only who shows this token.
    pub(super) fn only(&self, token: &str) {
        *self.door.token.lock() = Some(token.to_owned());
    }

    /// How many were turned away for their token.
    pub(super) fn turned_away(&self) -> u64 {
        self.door.turned_away.load(Ordering::SeqCst)
    }

    /// The next stream, after its hello.
    pub(super) async fn accept(&mut self) -> Session {
        timeout(PATIENCE, self.sessions.recv())
            .await
            .expect("an agent says hello")
            .unwrap()
    }

    /// The next stream, welcomed: reports each 100 ms, a heartbeat each second.
    pub(super) async fn welcome(&mut self) -> Session {
        let session = self.accept().await;
        session.welcome(Duration::from_secs(1));
        session
    }

    /// Whether another stream comes within `time`.
    pub(super) async fn is_called_within(&mut self, time: Duration) -> bool {
        timeout(time, self.sessions.recv()).await.is_ok()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Attacher {
    arrivals: mpsc::UnboundedSender<Session>,
    door: Arc<Door>,
}

#[tonic::async_trait]
impl Fleet for Attacher {
    type AttachStream = Pin<Box<dyn tokio_stream::Stream<Item = Sent> + Send>>;

    async fn attach(
        &self,
        request: Request<Streaming<proto::AgentMessage>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let metadata = request.metadata().clone();
        if let Some(token) = self.door.token.lock().as_ref() {
            let shown = metadata
                .get("authorization")
                .map(|value| value.as_bytes().to_vec());
            if shown != Some(format!("Bearer {token}").into_bytes()) {
                self.door.turned_away.fetch_add(1, Ordering::SeqCst);
                return Err(Status::unauthenticated("no such token"));
            }
        }
        let (outbox, sent) = mpsc::unbounded_channel();
        tokio::spawn(read(
            request.into_inner(),
            metadata,
            outbox,
            self.arrivals.clone(),
        ));
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(sent))))
    }
}

async fn read(
    mut messages: Streaming<proto::AgentMessage>,
    metadata: MetadataMap,
    outbox: mpsc::UnboundedSender<Sent>,
    arrivals: mpsc::UnboundedSender<Session>,
) {
    // A connection cut before hello is no agent's fault.
    let Ok(Some(first)) = messages.message().await else {
        return;
    };
    let first = wire::agent_message(first).expect("what an agent sends can be read");
    let Some(AgentMessage::Hello(hello)) = first else {
        panic!("expected hello first, got {first:?}");
    };
    let (heard, inbox) = mpsc::unbounded_channel();
    let ear = Arc::new(tokio::sync::Mutex::new(()));
    let open = ear.clone();
    if arrivals
        .send(Session {
            hello,
            metadata,
            inbox,
            outbox,
            ear,
            nonce: 0,
        })
        .is_err()
    {
        return;
    }
    while let Ok(Some(message)) = messages.message().await {
        let message = wire::agent_message(message).expect("what an agent sends can be read");
        if heard.send(message.expect("a known kind")).is_err() {
            return;
        }
        drop(open.lock().await);
    }
}

/// One stream of one agent.
pub(super) struct Session {
    pub(super) hello: Hello,
    pub(super) metadata: MetadataMap,
    inbox: mpsc::UnboundedReceiver<ReceivedAgentMessage>,
    outbox: mpsc::UnboundedSender<Sent>,
    /// Locked: the controller reads nothing more.
    ear: Arc<tokio::sync::Mutex<()>>,
    nonce: u64,
}

impl Session {
    pub(super) fn send(&self, message: ControllerMessage) {
        self.send_raw(message.into());
    }

    /// What no honest controller would send.
    pub(super) fn send_raw(&self, message: proto::ControllerMessage) {
        // An agent that has gone hears nothing: the test sees that elsewhere.
        let _ = self.outbox.send(Ok(message));
    }

    pub(super) fn welcome(&self, heartbeat: Duration) {
        self.send(ControllerMessage::Welcome(Welcome {
            controller: Text::lossy("test"),
            epoch: Epoch(1),
            report_interval: Duration::from_millis(100),
            heartbeat,
            lease: Duration::from_secs(30),
            resyncing: false,
        }));
    }

    /// Sends a set, and says its nonce.
    pub(super) fn push(&mut self, directives: Vec<Directive>) -> u64 {
        self.nonce += 1;
        let nonce = self.nonce;
        self.send(ControllerMessage::Directives(DirectiveSet {
            nonce,
            directives: directives.into_iter().map(Arc::new).collect(),
            empty_is_meant: false,
        }));
        nonce
    }

    /// Stops reading for as long as the guard lives.
    pub(super) async fn deafen(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.ear.clone().lock_owned().await
    }

    /// Ends the stream without an error.
    pub(super) fn close(self) {
        drop(self.outbox);
    }

    /// The next message, unanswered. None: the agent closed its side.
    pub(super) async fn next(&mut self) -> Option<ReceivedAgentMessage> {
        timeout(PATIENCE, self.inbox.recv())
            .await
            .expect("the agent says something")
    }

    /// Answers a report or a heartbeat.
    pub(super) fn answer(&self, message: &ReceivedAgentMessage) {
        match message {
            AgentMessage::Report(
                Ok(SentReport {
                    report: hedgerow_protocol::report::Report { sequence, .. },
                    ..
                })
                | Err(RefusedReport { sequence, .. }),
            ) => self.send(ControllerMessage::ReportAck(ReportAck {
                sequence: *sequence,
                refusal: None,
            })),
            AgentMessage::Heartbeat(heartbeat) => {
                self.send(ControllerMessage::HeartbeatAck(HeartbeatAck {
                    number: heartbeat.number,
                }));
            }
            _ => {}
        }
    }

    /// Answers reports and heartbeats until `pick` finds what it looks for.
    pub(super) async fn until<T>(
        &mut self,
        mut pick: impl FnMut(&ReceivedAgentMessage) -> Option<T>,
    ) -> T {
        let search = async {
            loop {
                let message = self.inbox.recv().await.expect("the stream goes on");
                self.answer(&message);
                if let Some(found) = pick(&message) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, search)
            .await
            .expect("what the test waits for comes")
    }

    /// The next report, answered.
    pub(super) async fn report(&mut self) -> SentReport {
        self.until(|message| match message {
            AgentMessage::Report(report) => Some(report.clone().expect("a good report")),
            _ => None,
        })
        .await
    }

    /// Answers everything for `time`, and gives it back.
    pub(super) async fn collect_for(&mut self, time: Duration) -> Vec<ReceivedAgentMessage> {
        let mut collected = Vec::new();
        let end = tokio::time::Instant::now() + time;
        while let Ok(Some(message)) = tokio::time::timeout_at(end, self.inbox.recv()).await {
            self.answer(&message);
            collected.push(message);
        }
        collected
    }
}
