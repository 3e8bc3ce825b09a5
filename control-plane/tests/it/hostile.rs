//! What nobody honest sends: bytes below the generated client.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use hedgerow_core::view::AgentState;
use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::session::{AgentMessage, SentReport};
use hedgerow_protocol::wire::proto;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::process::Process;
use crate::raw_agent::hello;
use crate::running::{Running, SHOP_TOKEN, route};

type Body = StreamBody<
    std::pin::Pin<Box<dyn futures::Stream<Item = Result<Frame<Bytes>, std::io::Error>> + Send>>,
>;

/// A stream of bytes to the service.
struct Raw {
    bytes: mpsc::Sender<Result<Bytes, std::io::Error>>,
    answer: tokio::task::JoinHandle<Result<http::Response<Incoming>, hyper::Error>>,
    connection: tokio::task::JoinHandle<()>,
}

impl Raw {
    async fn open(address: &str, headers: &[(&'static str, &str)]) -> Self {
        let stream = TcpStream::connect(address.trim_start_matches("http://"))
            .await
            .unwrap();
        let (mut requests, connection): (SendRequest<Body>, _) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        let (bytes, chunks) = mpsc::channel(1);
        let mut request = Request::post(format!("{address}/hedgerow.v1.Fleet/Attach"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let chunks = ReceiverStream::new(chunks)
            .map(|it: Result<Bytes, std::io::Error>| it.map(Frame::data));
        let request = request
            .body(StreamBody::new(Box::pin(chunks) as _))
            .unwrap();
        let answer = tokio::spawn(async move { requests.send_request(request).await });
        Self {
            bytes,
            answer,
            connection,
        }
    }

    async fn send(&self, bytes: impl Into<Bytes>) -> bool {
        self.bytes.send(Ok(bytes.into())).await.is_ok()
    }

    /// The status, from the headers or the trailers.
    async fn status(self) -> (u16, String) {
        let answer = tokio::time::timeout(Duration::from_secs(20), self.answer);
        let answer = answer.await.unwrap().unwrap().unwrap();
        if let Some(status) = status(answer.headers()) {
            return status;
        }
        let body = tokio::time::timeout(Duration::from_secs(20), answer.into_body().collect());
        let body = body.await.unwrap().unwrap();
        status(body.trailers().unwrap()).unwrap()
    }
}

fn status(headers: &HeaderMap) -> Option<(u16, String)> {
    let code = headers
        .get("grpc-status")?
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let message = headers
        .get("grpc-message")
        .map_or("", |it| it.to_str().unwrap());
    Some((code, message.to_owned()))
}

fn framed(compressed: bool, len: u32, bytes: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(u8::from(compressed));
    frame.put_u32(len);
    frame.put_slice(bytes);
    frame.freeze()
}

fn whole(message: &proto::AgentMessage) -> Bytes {
    let bytes = message.encode_to_vec();
    framed(false, bytes.len() as u32, &bytes)
}

fn hello_message(instance: InstanceId) -> proto::AgentMessage {
    AgentMessage::<SentReport>::Hello(hello(instance, Vec::new())).into()
}

/// Attaches as `instance`, sends half of a report and drops the connection.
pub(crate) async fn break_within_a_report(running: &Running, instance: InstanceId) {
    let token = format!("Bearer {SHOP_TOKEN}");
    let raw = Raw::open(&running.grpc(), &[("authorization", &token)]).await;
    assert!(raw.send(whole(&hello_message(instance))).await);
    let report = proto::AgentMessage {
        kind: Some(proto::agent_message::Kind::Report(proto::Report {
            sequence: 1,
            covers_us: 1_000_000,
            routes: vec![proto::RouteReport {
                route: Some(route().into()),
                ..proto::RouteReport::default()
            }],
            ..proto::Report::default()
        })),
    };
    let bytes = whole(&report);
    assert!(raw.send(bytes.slice(..bytes.len() / 2)).await);
    let live = |it: &Running| it.agent(instance).filter(|it| it.state == AgentState::Live);
    running.until("it is attached", live).await;
    raw.connection.abort();
}

#[tokio::test]
async fn s04_without_a_token_nothing_that_was_sent_is_decoded() {
    let running = Running::start().await;
    for authorization in [
        None,
        Some(""),
        Some("Bearer"),
        Some("Bearer wrong-token-0123456789"),
        Some("Basic eDp5"),
    ] {
        let headers: Vec<_> = authorization
            .iter()
            .map(|it| ("authorization", *it))
            .collect();
        let raw = Raw::open(&running.grpc(), &headers).await;
        raw.send(framed(false, 64, &[0xff; 64])).await;
        let (code, message) = raw.status().await;
        assert_eq!(
            code,
            tonic::Code::Unauthenticated as u16,
            "{authorization:?}"
        );
        assert!(message.contains("authorization"), "{message}");
        assert!(!message.contains("wrong-token"), "{message}");
    }
    assert!(running.snapshot().agents.is_empty());
    assert_eq!(running.snapshot().controller.undecodable, 0);

    // With one, the same bytes are read, and refused as what they are.
    let token = format!("Bearer {SHOP_TOKEN}");
    let raw = Raw::open(&running.grpc(), &[("authorization", &token)]).await;
    raw.send(framed(false, 64, &[0xff; 64])).await;
    let (code, _) = raw.status().await;
    assert_eq!(code, tonic::Code::InvalidArgument as u16);
    running.app.stop().await;
}

#[tokio::test]
async fn b68_compressed_and_oversized_messages_are_refused_before_they_take_room() {
    let process = Process::start("").await;
    let before = process.resident_bytes();
    let token = format!("Bearer {SHOP_TOKEN}");
    for _ in 0..8 {
        let gzip = [("authorization", token.as_str()), ("grpc-encoding", "gzip")];
        let raw = Raw::open(&process.grpc, &gzip).await;
        raw.send(framed(true, 1 << 20, &vec![0; 1 << 20])).await;
        let (code, message) = raw.status().await;
        assert_eq!(code, tonic::Code::Unimplemented as u16, "{message}");

        // A gigabyte announced, and as much of it sent as is taken.
        let raw = Raw::open(&process.grpc, &[("authorization", &token)]).await;
        raw.send(framed(false, 1 << 30, &[])).await;
        let zeros = Bytes::from(vec![0; 1 << 16]);
        let sending = async {
            for _ in 0..512 {
                if !raw.send(zeros.clone()).await {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(500), sending).await;
        let (code, message) = raw.status().await;
        let refused = [
            tonic::Code::OutOfRange as u16,
            tonic::Code::ResourceExhausted as u16,
        ];
        assert!(refused.contains(&code), "{code}: {message}");
    }
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
    process.leave().await;
}

#[tokio::test]
async fn p12_a_report_that_cannot_be_is_refused_with_its_field_and_the_stream_goes_on() {
    let running = Running::start().await;
    let mut agent = crate::raw_agent::RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    let half = proto::AgentMessage {
        kind: Some(proto::agent_message::Kind::Report(proto::Report {
            sequence: 7,
            covers_us: 1_000_000,
            histogram_layout: 99,
            ..proto::Report::default()
        })),
    };
    agent.outgoing.send(half).await.unwrap();
    let refusal = agent.acknowledged(7).await.expect("a refusal");
    assert!(refusal.as_str().contains("histogram_layout"), "{refusal}");
    agent.report(8, &[route()], 5).await;
    assert_eq!(agent.acknowledged(8).await, None);
    let view = running
        .until("it is counted against the agent", |it| {
            it.agent(agent.instance).filter(|it| it.refused_reports > 0)
        })
        .await;
    assert!(view.last_refusal.unwrap().contains("histogram_layout"));
    running.app.stop().await;
}
