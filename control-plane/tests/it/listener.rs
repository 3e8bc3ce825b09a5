//! The HTTP listener's patience (S5).

use std::time::Duration;

use hedgerow_control_plane::alerts::Receivers;
use hedgerow_control_plane::api::{self, ApiState};
use hedgerow_control_plane::listen::{Bound, HttpLimits, serve_http};
use hedgerow_control_plane::telemetry::Metrics;
use hedgerow_dashboard::backend::Role;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::running::SOON;
use crate::standing::{Standing, eventually};

/// A listener with little patience that counts the bytes of a body.
async fn listening(limits: HttpLimits) -> String {
    let read = |body: axum::body::Bytes| async move { format!("{} bytes", body.len()) };
    let router = axum::Router::new().route("/", axum::routing::post(read));
    serving(router, limits).await
}

async fn serving(router: axum::Router, limits: HttpLimits) -> String {
    let bound = Bound::new("127.0.0.1:0".parse().unwrap(), "a test")
        .await
        .unwrap();
    let address = bound.address().to_string();
    tokio::spawn(serve_http(
        bound,
        None,
        router,
        limits,
        CancellationToken::new(),
    ));
    address
}

/// What comes back until the connection ends.
async fn said(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // An end by reset is an end too.
    let _ = tokio::time::timeout(SOON, stream.read_to_end(&mut answer))
        .await
        .expect("the connection ends");
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn s05_who_says_nothing_or_half_of_it_does_not_keep_a_place() {
    let address = listening(HttpLimits {
        opening: Duration::from_millis(300),
        ..HttpLimits::default()
    })
    .await;
    for bytes in [
        &b""[..],
        b"P",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: h\r\n",
    ] {
        let answer = said(&address, bytes).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
}

#[tokio::test]
async fn s05_a_body_that_does_not_arrive_ends_its_request_and_a_slow_one_in_time_does_not() {
    let address = listening(HttpLimits {
        body: Duration::from_secs(2),
        ..HttpLimits::default()
    })
    .await;
    let head = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 10\r\n\r\n";
    let answer = said(&address, format!("{head}half").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");

    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for byte in b"0123456789" {
        tokio::time::sleep(Duration::from_millis(20)).await;
        stream.write_all(&[*byte]).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("10 bytes"), "{answer}");
}

#[tokio::test]
async fn s05_the_api_says_that_the_body_was_too_slow() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Operator).await;
    let state = ApiState {
        engine: standing.engine.clone(),
        store: standing.store.clone(),
        auth: standing.auth.clone(),
        receivers: Receivers::default(),
        metrics: Metrics::new(),
    };
    let limits = HttpLimits {
        body: Duration::from_millis(500),
        ..HttpLimits::default()
    };
    let address = serving(api::router(state), limits).await;
    let request = format!(
        "POST /api/v1/kill HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 10\r\n\r\n{{"
    );
    let answer = said(&address, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(
        answer.contains("the body did not arrive within 0.5 s"),
        "{answer}"
    );
}

#[tokio::test]
async fn s05_no_address_takes_all_connections_and_what_it_holds_comes_back() {
    let address = listening(HttpLimits {
        opening: Duration::from_secs(2),
        connections_loopback: 3,
        ..HttpLimits::default()
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(TcpStream::connect(&address).await.unwrap());
    }
    let request = b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(said(&address, request).await, "", "beyond the share");
    for mut silent in held {
        let mut nothing = Vec::new();
        let ended = tokio::time::timeout(SOON, silent.read_to_end(&mut nothing)).await;
        assert!(ended.is_ok(), "who says nothing is let go");
    }
    let answered = async || said(&address, request).await.ends_with("0 bytes");
    eventually("a place again", answered).await;
}

#[tokio::test]
async fn s05_who_speaks_http2_or_pauses_between_requests_does_not_keep_a_place() {
    let address = listening(HttpLimits {
        opening: Duration::from_millis(300),
        ..HttpLimits::default()
    })
    .await;
    let preface_and_settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    said(&address, preface_and_settings).await;
    let kept = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n";
    assert!(said(&address, kept).await.ends_with("0 bytes"));
    let unread = b"POST /nowhere HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nhalf";
    assert!(said(&address, unread).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn s05_who_does_not_read_its_answer_does_not_keep_a_place() {
    let (told, mut ended) = tokio::sync::mpsc::channel::<()>(1);
    let told = std::sync::Arc::new(std::sync::Mutex::new(Some(told)));
    let route = axum::routing::get(async move || {
        // The answer alone holds it from here on.
        let told = told.lock().unwrap().take();
        let chunks = futures::stream::repeat_with(move || {
            let _held = &told;
            Ok::<_, std::convert::Infallible>(axum::body::Bytes::from_static(&[0; 16_384]))
        });
        axum::body::Body::from_stream(chunks)
    });
    let limits = HttpLimits {
        taking: Duration::from_millis(500),
        ..HttpLimits::default()
    };
    let address = serving(axum::Router::new().route("/", route), limits).await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    let over = tokio::time::timeout(SOON, ended.recv()).await.unwrap();
    assert_eq!(over, None, "the answer was let go of");
}
