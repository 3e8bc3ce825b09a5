//! The gRPC service: admits streams and starts their sessions.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use hedgerow_protocol::session::{ComeBack, ComeBackReason, ControllerMessage};
use hedgerow_protocol::wire::proto;
use hedgerow_protocol::wire::proto::fleet_server::Fleet;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming};

use super::admission::Admission;
use super::identity::{Identity, peer};
use super::session::Session;
use crate::config::AgentLimits;
use crate::engine::Engine;
use crate::telemetry::Metrics;

/// What all streams share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) admission: Admission,
    pub(super) limits: AgentLimits,
    pub(super) metrics: Metrics,
    pub(super) stop: CancellationToken,
}

/// `hedgerow.v1.Fleet`.
#[derive(Debug, Clone)]
pub(super) struct FleetService {
    pub(super) shared: Arc<Shared>,
    pub(super) sessions: TaskTracker,
}

#[tonic::async_trait]
impl Fleet for FleetService {
    type AttachStream = BoxStream<'static, Result<proto::ControllerMessage, Status>>;

    async fn attach(
        &self,
        request: Request<Streaming<proto::AgentMessage>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let Some(identity) = request.extensions().get::<Identity>().cloned() else {
            return Err(Status::unauthenticated(
                "expected a stream with an identity",
            ));
        };
        let peer = peer(request.extensions())
            .map_or_else(|| "unknown".into(), |it| it.address.to_string());
        if self.shared.stop.is_cancelled() {
            let after = self.shared.admission.drained();
            return Ok(sent_away(ComeBack {
                after,
                reason: ComeBackReason::Draining,
            }));
        }
        let place = match self.shared.admission.admit() {
            Ok(place) => place,
            Err(not_now) => {
                self.shared
                    .metrics
                    .streams_refused
                    .with_label_values(&[not_now.why])
                    .inc();
                let reason = ComeBackReason::Busy;
                return Ok(sent_away(ComeBack {
                    after: not_now.after,
                    reason,
                }));
            }
        };
        // One: the session fills it with the latest whenever the agent has read the one before.
        let (outgoing, answers) = mpsc::channel(1);
        let session = Session::new(
            Arc::clone(&self.shared),
            place,
            request.into_inner(),
            outgoing,
            identity.credential,
        );
        self.sessions.spawn(session.run(identity.service, peer));
        Ok(Response::new(ReceiverStream::new(answers).boxed()))
    }
}

fn sent_away(
    come_back: ComeBack,
) -> Response<BoxStream<'static, Result<proto::ControllerMessage, Status>>> {
    let message = ControllerMessage::ComeBack(come_back).into();
    Response::new(futures::stream::iter([Ok(message)]).boxed())
}
