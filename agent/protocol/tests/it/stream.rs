//! The generated client and server, joined without a network: the codec between them is ours.

use std::pin::Pin;

use hedgerow_protocol::session::{AgentMessage, ControllerMessage, Heartbeat, HeartbeatAck};
use hedgerow_protocol::wire::proto::fleet_client::FleetClient;
use hedgerow_protocol::wire::proto::fleet_server::{Fleet, FleetServer};
use hedgerow_protocol::wire::{agent_message, controller_message, proto};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Code, Request, Response, Status, Streaming};

use crate::good;

/// Welcomes, then answers heartbeats.
struct Controller;

type Answers = Pin<Box<dyn Stream<Item = Result<proto::ControllerMessage, Status>> + Send>>;

#[tonic::async_trait]
impl Fleet for Controller {
    type AttachStream = Answers;

    async fn attach(
        &self,
        request: Request<Streaming<proto::AgentMessage>>,
    ) -> Result<Response<Answers>, Status> {
        let answers = request.into_inner().filter_map(|message| {
            let answer = match message.and_then(|message| Ok(agent_message(message)?)) {
                Ok(Some(AgentMessage::Hello(_))) => ControllerMessage::Welcome(good::welcome()),
                Ok(Some(AgentMessage::Heartbeat(heartbeat))) => {
                    ControllerMessage::HeartbeatAck(HeartbeatAck {
                        number: heartbeat.number,
                    })
                }
                Ok(_) => return None,
                Err(status) => return Some(Err(status)),
            };
            Some(Ok(answer.into()))
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

async fn attach(sent: Vec<proto::AgentMessage>) -> Streaming<proto::ControllerMessage> {
    let mut client = FleetClient::new(FleetServer::new(Controller));
    client
        .attach(tokio_stream::iter(sent))
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test]
async fn an_agent_attaches_and_is_answered() {
    let heartbeat = Heartbeat {
        number: 3,
        held_hash: 0,
    };
    let mut answers = attach(vec![
        AgentMessage::Hello(good::hello()).into(),
        proto::AgentMessage { kind: None },
        AgentMessage::Heartbeat(heartbeat).into(),
    ])
    .await;
    let welcome = controller_message(answers.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(welcome, Some(ControllerMessage::Welcome(good::welcome())));
    let ack = controller_message(answers.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(
        ack,
        Some(ControllerMessage::HeartbeatAck(HeartbeatAck { number: 3 }))
    );
    assert!(answers.next().await.is_none());
}

#[tokio::test]
async fn what_cannot_be_read_ends_the_stream_and_names_the_field() {
    let mut hello = proto::Hello::from(good::hello());
    hello.instance = "checkout".into();
    let kind = Some(proto::agent_message::Kind::Hello(hello));
    let status = attach(vec![proto::AgentMessage { kind }])
        .await
        .next()
        .await
        .unwrap();
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("hello.instance: "), "{status}");
}

#[tokio::test]
async fn p11_the_servers_codec_counts_before_it_unfolds() {
    let routes = vec![proto::RouteReport::default(); 3000];
    let report = proto::Report {
        routes,
        ..proto::Report::default()
    };
    let kind = Some(proto::agent_message::Kind::Report(report));
    let status = attach(vec![proto::AgentMessage { kind }])
        .await
        .next()
        .await
        .unwrap();
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("3000 elements"), "{status}");
}
