//! HTTP/1.1, byte by byte.

use axum::body::Bytes;
use hedgerow_agent::integrations::hyper::HedgedHttp;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use tower::ServiceExt;

use super::{IN_TIME, raw, rig};
use crate::warm::all_freed;

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x60_http_servers_that_break_off_lie_or_never_end() {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let header = |bytes: usize| format!("{OK}x: {}\r\n\r\n", "y".repeat(bytes));
    for (what, answer, times, stays) in [
        ("nothing", String::new(), 1, false),
        ("silence", String::new(), 1, true),
        ("half a head", format!("{OK}content-le"), 1, false),
        (
            "half a head, and silence",
            format!("{OK}content-le"),
            1,
            true,
        ),
        (
            "half a body",
            format!("{OK}content-length: 100\r\n\r\nhalf"),
            1,
            false,
        ),
        (
            "half a body, and silence",
            format!("{OK}content-length: 100\r\n\r\nhalf"),
            1,
            true,
        ),
        (
            "two lengths",
            format!("{OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab"),
            1,
            true,
        ),
        (
            "a length that is none",
            format!("{OK}content-length: 99999999999999999999\r\n\r\n"),
            1,
            true,
        ),
        (
            "chunks that are none",
            format!("{OK}transfer-encoding: chunked\r\n\r\nzz\r\n"),
            1,
            true,
        ),
        (
            "a chunk of everything",
            format!("{OK}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nx"),
            1,
            true,
        ),
        (
            "early hints for ever",
            "HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n".to_owned(),
            1_000_000,
            true,
        ),
        (
            "continue, and then",
            format!("HTTP/1.1 100 Continue\r\n\r\n{OK}content-length: 0\r\n\r\n"),
            1,
            true,
        ),
        (
            "switching",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
                .to_owned(),
            1,
            true,
        ),
        ("a huge header", header(1 << 20), 1, true),
        (
            "headers for ever",
            "HTTP/1.1 200 OK\r\n".to_owned() + &"a: b\r\n".repeat(100_000),
            1,
            true,
        ),
        ("garbage", "\0\u{1}\u{2}garbage\r\n\r\n".to_owned(), 1, true),
        ("a body for ever", format!("{OK}\r\n"), 1_000_000, true),
        (
            "an answer twice",
            format!("{OK}content-length: 0\r\n\r\n"),
            2,
            true,
        ),
        (
            "pushed back with nonsense",
            "HTTP/1.1 503 No\r\nretry-after: -1e999\r\ncontent-length: 0\r\n\r\n".to_owned(),
            1,
            true,
        ),
    ] {
        let server = raw(answer.into_bytes(), times, stays).await;
        let (route, _) = rig(&[server]).await;
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let http = HedgedHttp::new(client, route.clone());
        for _ in 0..2 {
            let request = Request::get("/").body(Full::default()).unwrap();
            let call = async {
                let Ok(answer) = http.clone().oneshot(request).await else {
                    return;
                };
                let mut body = answer.into_body();
                while let Some(Ok(_)) = body.frame().await {}
            };
            assert!(timeout(IN_TIME, call).await.is_ok(), "{what} has no end");
        }
        all_freed(&route).await;
        let totals = route.snapshot().totals;
        assert_eq!((totals.started, totals.finished), (2, 2), "{what}");
    }
}
