//! An agent that does exactly what a test wants: the generated client, and nothing around it.

use std::time::Duration;

use hedgerow_protocol::directive::{Directive, Mode, Stamp};
use hedgerow_protocol::ids::{Incarnation, InstanceId, RouteKey, Sequence};
use hedgerow_protocol::latency::sparse::SparseHistogram;
use hedgerow_protocol::report::{Effective, Report, RouteReport, Totals};
use hedgerow_protocol::session::{
    AgentMessage, Applied, AppliedRoute, ComeBack, ControllerMessage, Heartbeat, Held, Hello,
    ReceivedControllerMessage, SentReport, Text, Welcome, held_hash,
};
use hedgerow_protocol::units::{Budget, Ratio};
use hedgerow_protocol::wire::controller_message;
use hedgerow_protocol::wire::proto;
use hedgerow_protocol::wire::proto::fleet_client::FleetClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

use crate::running::SOON;

/// A stream, and what the agent holds.
pub(crate) struct RawAgent {
    pub(crate) instance: InstanceId,
    pub(crate) outgoing: mpsc::Sender<proto::AgentMessage>,
    incoming: Streaming<proto::ControllerMessage>,
    pub(crate) held: Vec<Held>,
    heartbeats: u64,
}

pub(crate) fn hello(instance: InstanceId, held: Vec<Held>) -> Hello {
    Hello {
        instance,
        incarnation: Incarnation(1),
        zone: None,
        version: Text::new("1.2.3").unwrap(),
        build: Text::default(),
        capabilities: std::collections::BTreeSet::new(),
        held,
    }
}

/// A connection; small windows, so that what is not read is soon not sent either.
pub(crate) async fn connect(address: &str) -> Channel {
    Endpoint::from_shared(address.to_owned())
        .unwrap()
        .initial_stream_window_size(16 * 1024)
        .initial_connection_window_size(16 * 1024)
        .connect()
        .await
        .unwrap()
}

/// Opens a stream, with whatever metadata.
pub(crate) async fn open(
    channel: Channel,
    authorization: Option<&str>,
    outgoing: mpsc::Receiver<proto::AgentMessage>,
) -> Result<Streaming<proto::ControllerMessage>, Status> {
    let mut request = Request::new(ReceiverStream::new(outgoing));
    if let Some(value) = authorization {
        request
            .metadata_mut()
            .insert("authorization", value.parse().unwrap());
    }
    let answer = FleetClient::new(channel).attach(request).await?;
    Ok(answer.into_inner())
}

impl RawAgent {
    /// Connects, says hello and takes the welcome.
    pub(crate) async fn attach(address: &str, token: &str) -> Self {
        Self::attach_as(address, token, hello(InstanceId::generate(), Vec::new())).await
    }

    pub(crate) async fn attach_as(address: &str, token: &str, hello: Hello) -> Self {
        Self::attach_on(connect(address).await, token, hello).await
    }

    pub(crate) async fn attach_on(channel: Channel, token: &str, hello: Hello) -> Self {
        let (instance, held) = (hello.instance, hello.held.clone());
        let (outgoing, messages) = mpsc::channel(64);
        outgoing
            .send(AgentMessage::<SentReport>::Hello(hello).into())
            .await
            .unwrap();
        let incoming = open(channel, Some(&format!("Bearer {token}")), messages)
            .await
            .unwrap();
        let mut agent = Self {
            instance,
            outgoing,
            incoming,
            held,
            heartbeats: 0,
        };
        agent.welcome().await;
        agent
    }

    async fn welcome(&mut self) -> Welcome {
        match self.next().await {
            Some(ControllerMessage::Welcome(welcome)) => welcome,
            other => panic!("expected a welcome, got {other:?}"),
        }
    }

    pub(crate) async fn send(&self, message: AgentMessage) {
        self.outgoing.send(message.into()).await.unwrap();
    }

    /// The next message; None: the stream ended well.
    pub(crate) async fn next(&mut self) -> Option<ReceivedControllerMessage> {
        self.try_next().await.unwrap()
    }

    pub(crate) async fn try_next(&mut self) -> Result<Option<ReceivedControllerMessage>, Status> {
        let message = tokio::time::timeout(SOON, self.incoming.message())
            .await
            .expect("a message");
        Ok(message?.map(|it| controller_message(it).unwrap().expect("a known kind")))
    }

    /// What comes within `wait`, if anything.
    pub(crate) async fn next_within(
        &mut self,
        wait: Duration,
    ) -> Option<ReceivedControllerMessage> {
        let message = tokio::time::timeout(wait, self.incoming.message())
            .await
            .ok()?;
        message
            .unwrap()
            .map(|it| controller_message(it).unwrap().expect("a known kind"))
    }

    /// The next set, whatever comes before it; not yet applied.
    pub(crate) async fn next_set(&mut self) -> (u64, Vec<Directive>) {
        loop {
            match self.next().await {
                Some(ControllerMessage::Directives(Ok(set))) => {
                    assert!(set.refused.is_empty(), "{:?}", set.refused);
                    return (set.nonce, set.accepted);
                }
                Some(_) => {}
                None => panic!("the stream ended before a set came"),
            }
        }
    }

    /// Takes sets, and applies them, until `wanted` holds for a directive of `route`.
    pub(crate) async fn until(
        &mut self,
        route: &RouteKey,
        wanted: impl Fn(&Directive) -> bool,
    ) -> Directive {
        loop {
            let (nonce, directives) = self.next_set().await;
            self.apply(nonce, &directives).await;
            if let Some(it) = directives
                .into_iter()
                .find(|it| it.route == *route && wanted(it))
            {
                return it;
            }
        }
    }

    /// The message that ends a draining controller's streams.
    pub(crate) async fn come_back(&mut self) -> ComeBack {
        loop {
            match self.next().await {
                Some(ControllerMessage::ComeBack(it)) => return it,
                Some(_) => {}
                None => panic!("the stream ended without a word"),
            }
        }
    }

    /// Holds the directives, and says so.
    pub(crate) async fn apply(&mut self, nonce: u64, directives: &[Directive]) {
        for it in directives {
            self.held.retain(|held| held.route != it.route);
            self.held.push(holding(it));
        }
        let routes = directives
            .iter()
            .map(|it| AppliedRoute {
                route: it.route.clone(),
                stamp: it.stamp,
            })
            .collect();
        self.send(AgentMessage::Applied(Applied { nonce, routes }))
            .await;
    }

    pub(crate) fn held_hash(&self) -> u64 {
        held_hash(self.held.iter().map(|held| (&held.route, held.stamp)))
    }

    /// Says "I am here"; `hash` is what it claims to hold.
    pub(crate) async fn beat(&mut self, hash: u64) {
        self.heartbeats += 1;
        let heartbeat = Heartbeat {
            number: self.heartbeats,
            held_hash: hash,
        };
        self.send(AgentMessage::Heartbeat(heartbeat)).await;
    }

    /// Reports `started` calls, all of them fast, since the agent began.
    pub(crate) async fn report(&self, sequence: u64, routes: &[RouteKey], started: u64) {
        let routes = routes
            .iter()
            .map(|route| self.route_report(route, started))
            .collect();
        let report = Report {
            sequence: Sequence(sequence),
            covers: Duration::from_secs(1),
            wall_clock_ms: 1_700_000_000_000,
            routes,
        };
        let held_hash = self.held_hash();
        self.send(AgentMessage::Report(SentReport { held_hash, report }))
            .await;
    }

    pub(crate) fn route_report(&self, route: &RouteKey, started: u64) -> RouteReport {
        let held = self.held.iter().find(|held| held.route == *route);
        RouteReport {
            route: route.clone(),
            totals: Totals {
                started,
                finished: started,
                primary_finished: started,
                treated_finished: started,
                ..Totals::default()
            },
            primary: hedgerow_protocol::report::Attempts::default(),
            hedge: hedgerow_protocol::report::Attempts::default(),
            treated: SparseHistogram::default(),
            holdout: SparseHistogram::default(),
            in_flight: SparseHistogram::default(),
            replicas: Vec::new(),
            effective: Effective {
                stamp: held.map_or_else(Stamp::default, |held| held.stamp),
                mode: held.map_or(Mode::Observing, |held| held.mode),
                own_off: false,
                threshold: None,
                probability: Ratio::ZERO,
                budget: Budget::ZERO,
                cap: 0.0,
                tokens: 0.0,
                replicas: 3,
                watched_losers: 0,
            },
            over_budget_seconds: 0,
        }
    }

    /// The answer to a report; messages before it are passed over.
    pub(crate) async fn acknowledged(&mut self, sequence: u64) -> Option<Text> {
        loop {
            match self.next().await {
                Some(ControllerMessage::ReportAck(ack)) if ack.sequence.0 == sequence => {
                    return ack.refusal;
                }
                Some(_) => {}
                None => panic!("the stream ended before the acknowledgement"),
            }
        }
    }
}

/// A directive as an agent holds it.
pub(crate) fn holding(directive: &Directive) -> Held {
    Held {
        route: directive.route.clone(),
        stamp: directive.stamp,
        mode: directive.mode,
        tick: directive.live.tick,
        threshold: directive.live.threshold,
        budget: directive.live.budget,
    }
}
