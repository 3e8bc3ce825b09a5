//! gRPC, and HTTP/2 beneath it.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use hedgerow_agent::integrations::tonic::HedgedChannel;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tower::ServiceExt;

use super::{IN_TIME, listen, raw, rig};
use crate::warm::all_freed;

type Frames = Vec<Result<Frame<Bytes>, std::io::Error>>;

/// A message with this before it: compression, length.
fn message(flag: u8, length: u32, bytes: &[u8]) -> Frame<Bytes> {
    let mut all = vec![flag];
    all.extend(length.to_be_bytes());
    all.extend(bytes);
    Frame::data(all.into())
}

fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        (HeaderName::from_static(name), value)
    });
    pairs.collect()
}

/// An HTTP/2 server that answers every request so; `last`: and goes away after each.
async fn h2(
    make: impl Fn() -> (u16, HeaderMap, Frames, bool) + Clone + Send + Sync + 'static,
    last: bool,
) -> SocketAddr {
    listen(move |stream| {
        let make = make.clone();
        async move {
            let service = service_fn(move |_| {
                let (status, head, frames, stalls) = make();
                async move {
                    let frames = futures::stream::iter(frames);
                    let rest = futures::stream::unfold(stalls, |stalls| async move {
                        if stalls {
                            sleep(Duration::from_mins(1)).await;
                        }
                        None
                    });
                    let body = StreamBody::new(futures::StreamExt::chain(frames, rest));
                    let mut answer = Response::new(body);
                    *answer.status_mut() = status.try_into().unwrap();
                    *answer.headers_mut() = head;
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let mut connection =
                std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
            if last {
                let serving = timeout(Duration::from_millis(5), connection.as_mut());
                if serving.await.is_err() {
                    connection.as_mut().graceful_shutdown();
                }
                let _ = timeout(Duration::from_secs(1), connection).await;
            } else {
                let _ = connection.await;
            }
        }
    })
    .await
}

fn get() -> Request<Body> {
    let message = Bytes::from_static(&[0, 0, 0, 0, 0]);
    let request = Request::post("/shop.v1.Catalog/Get").header("content-type", "application/grpc");
    request.body(Body::new(Full::new(message))).unwrap()
}

/// What becomes of two calls; they end, and leave nothing.
async fn calls(what: &str, server: SocketAddr) -> Vec<tonic::Code> {
    let (route, replicas) = rig(&[server]).await;
    let channel = HedgedChannel::builder(route.clone(), replicas)
        .all_idempotent()
        .build()
        .unwrap();
    let mut codes = Vec::new();
    for _ in 0..2 {
        let call = async {
            let answer = match channel.clone().oneshot(get()).await {
                Ok(answer) => answer,
                Err(status) => return status.code(),
            };
            let by =
                |headers: &HeaderMap| tonic::Status::from_header_map(headers).map(|it| it.code());
            let mut code = by(answer.headers());
            let mut body = answer.into_body();
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => code = frame.trailers_ref().and_then(by).or(code),
                    Err(status) => return status.code(),
                }
            }
            code.unwrap_or(tonic::Code::Unknown)
        };
        let code = timeout(IN_TIME, call).await;
        codes.push(code.unwrap_or_else(|_| panic!("{what} has no end")));
    }
    all_freed(&route).await;
    let totals = route.snapshot().totals;
    assert_eq!((totals.started, totals.finished), (2, 2), "{what}");
    codes
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x61_grpc_servers_that_speak_it_badly() {
    use tonic::Code::{
        Cancelled, DeadlineExceeded, Internal, NotFound, Ok, ResourceExhausted, Unavailable,
        Unknown,
    };
    type Make = fn() -> (u16, HeaderMap, Frames, bool);
    let cases: [(&str, Make, &[tonic::Code]); 14] = [
        (
            "no status at all",
            || (200, HeaderMap::new(), vec![], false),
            &[Unknown],
        ),
        (
            "trailers only",
            || (200, headers(&[("grpc-status", "5".into())]), vec![], false),
            &[NotFound],
        ),
        (
            "a status in words",
            || {
                (
                    200,
                    headers(&[("grpc-status", "fine".into())]),
                    vec![],
                    false,
                )
            },
            &[Unknown],
        ),
        (
            "a status of its own",
            || {
                (
                    200,
                    headers(&[("grpc-status", "4294967299".into())]),
                    vec![],
                    false,
                )
            },
            &[Unknown],
        ),
        (
            "OK, and then nothing",
            || (200, headers(&[("grpc-status", "0".into())]), vec![], false),
            &[Ok],
        ),
        (
            "empty frames, then silence",
            || {
                (
                    200,
                    HeaderMap::new(),
                    (0..1_000)
                        .map(|_| Result::Ok(Frame::data(Bytes::new())))
                        .collect(),
                    true,
                )
            },
            // Too many of them, says the client's HTTP/2.
            &[DeadlineExceeded, ResourceExhausted],
        ),
        (
            "half a message, then silence",
            || {
                (
                    200,
                    HeaderMap::new(),
                    vec![Result::Ok(message(0, 100, b"half"))],
                    true,
                )
            },
            &[DeadlineExceeded],
        ),
        (
            "half a message, then a reset",
            || {
                (
                    200,
                    HeaderMap::new(),
                    vec![
                        Result::Ok(message(0, 100, b"half")),
                        Err(std::io::Error::other("no")),
                    ],
                    false,
                )
            },
            &[Internal, Unknown, Unavailable],
        ),
        (
            "a reset",
            || {
                (
                    200,
                    HeaderMap::new(),
                    vec![Err(std::io::Error::other("no"))],
                    false,
                )
            },
            &[Internal, Unknown, Unavailable],
        ),
        (
            "a message without end",
            || {
                (
                    200,
                    HeaderMap::new(),
                    vec![Result::Ok(message(7, u32::MAX, b"x"))],
                    false,
                )
            },
            &[Unknown],
        ),
        (
            "huge trailers",
            || {
                let trailers = headers(&[
                    ("grpc-status", "5".into()),
                    ("grpc-message", "%ZZ%".repeat(100_000)),
                ]);
                (
                    200,
                    HeaderMap::new(),
                    vec![Result::Ok(Frame::trailers(trailers))],
                    false,
                )
            },
            // Which of the two sides gives the stream up first decides between these.
            &[
                Internal,
                Unknown,
                Unavailable,
                NotFound,
                ResourceExhausted,
                Cancelled,
            ],
        ),
        (
            "a proxy's page",
            || {
                (
                    502,
                    HeaderMap::new(),
                    vec![Result::Ok(Frame::data(Bytes::from_static(b"<html>")))],
                    false,
                )
            },
            &[Unknown, Unavailable],
        ),
        (
            "data after trailers",
            || {
                let trailers = headers(&[("grpc-status", "0".into())]);
                let data = Frame::data(Bytes::from_static(b"late"));
                (
                    200,
                    HeaderMap::new(),
                    vec![Result::Ok(Frame::trailers(trailers)), Result::Ok(data)],
                    false,
                )
            },
            &[Ok],
        ),
        (
            "push-back that is no number",
            || {
                let head = headers(&[
                    ("grpc-status", "14".into()),
                    ("grpc-retry-pushback-ms", "never".into()),
                ]);
                (200, head, vec![], false)
            },
            &[Unavailable],
        ),
    ];
    for (what, make, expected) in cases {
        for code in calls(what, h2(make, false).await).await {
            assert!(expected.contains(&code), "{what}: {code:?}");
        }
    }
    calls(
        "gone after each",
        h2(
            || (200, headers(&[("grpc-status", "0".into())]), vec![], false),
            true,
        )
        .await,
    )
    .await;
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    for (what, bytes, times, stays) in [
        ("silence", vec![], 1, true),
        ("closed", vec![], 1, false),
        (
            "garbage",
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            1,
            false,
        ),
        ("calm down", [&settings[..], &goaway[..]].concat(), 1, true),
        ("settings for ever", settings.to_vec(), 1_000_000, true),
        (
            "a frame too large",
            vec![255, 255, 255, 0, 0, 0, 0, 0, 1, 7],
            1,
            true,
        ),
    ] {
        for code in calls(what, raw(bytes, times, stays).await).await {
            assert!(code != Ok, "{what}: {code:?}");
        }
    }
}
