//! What a receiver's address and answer can and cannot do (S8, S9).

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hedgerow_control_plane::config::{ReceiverKind, TlsFiles};
use hedgerow_control_plane::listen::{Bound, HttpLimits, PemPair, serve_http};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::catch::Catch;
use super::kinds::{alertmanager, email, made, made_with, pagerduty, slack, webhook};
use super::mail::certificate;
use super::sink::Sink;
use super::{KEY, Post, brisk, firing, receiver, receiver_at};
use crate::logged::Log;
use crate::standing::eventually;

#[tokio::test]
async fn s08_a_name_that_leads_inside_is_not_connected_to() {
    let sink = Sink::new();
    let port = sink.serve().await.port();
    let strict = receiver_at("strict", &format!("http://localhost:{port}/"), false);
    let allowed = receiver_at("allowed", &format!("http://localhost:{port}/"), true);
    let post = Post::new(vec![strict, allowed]).await;
    post.write(firing("e1"), &["strict", "allowed"]).await;
    eventually("both were tried", async || {
        post.deliveries().await.iter().all(|d| d.attempts >= 1)
    })
    .await;
    let deliveries = post.deliveries().await;
    let error = deliveries[0].last_error.as_deref().unwrap();
    assert!(
        error.contains("private or loopback") && error.contains("allow_private"),
        "{error}"
    );
    assert!(
        !error.contains("127.0.0.1") && !error.contains("::1"),
        "{error}"
    );
    assert_eq!(deliveries[1].state, "delivered");
    assert_eq!(sink.got().len(), 1, "the strict one never reached it");
}

#[tokio::test]
async fn s08_a_redirect_is_not_followed() {
    let (inside, sink) = (Sink::new(), Sink::new());
    let target = format!("http://{}/", inside.serve().await);
    sink.answers(move |_| {
        (
            StatusCode::TEMPORARY_REDIRECT,
            [("location", target.clone())],
        )
            .into_response()
    });
    let post = Post::new(vec![receiver("pager", sink.serve().await)]).await;
    post.write(firing("e1"), &["pager"]).await;
    eventually("it was tried twice", async || sink.got().len() >= 2).await;
    eventually("and that shows", async || {
        post.deliveries().await[0].last_error.is_some()
    })
    .await;
    assert_eq!(
        post.deliveries().await[0].last_error.as_deref(),
        Some("answered 307")
    );
    assert!(inside.got().is_empty());
}

#[tokio::test]
async fn s08_s09_a_failed_notice_shows_neither_secret_nor_address_nor_answer() {
    let sink = Sink::new();
    sink.answers(|_| (StatusCode::BAD_REQUEST, "canary-answer").into_response());
    let address = sink.serve().await;
    let log = Log::default();
    let _guard = log.capture();
    let post = Post::new(vec![receiver("pager", address)]).await;
    post.write(firing("e1"), &["pager"]).await;
    eventually("it was tried", async || sink.got().len() >= 2).await;
    eventually("that is kept", async || {
        post.deliveries().await[0].last_error.is_some()
    })
    .await;
    let (deliveries, log) = (format!("{:?}", post.deliveries().await), log.text());
    assert!(
        deliveries.contains("answered 400") && log.contains("answered 400"),
        "{log}"
    );
    for secret in ["canary", &STANDARD.encode(KEY)] {
        assert!(
            !deliveries.contains(secret) && !log.contains(secret),
            "{secret}: {log}"
        );
    }
    assert!(
        !deliveries.contains(&address.port().to_string()),
        "{deliveries}"
    );
}

#[tokio::test]
async fn s08_s09_no_kind_connects_inside_follows_a_redirect_or_shows_a_secret() {
    let (inside, sink) = (Catch::start().await, Catch::start().await);
    let target = format!("http://{}/", inside.address);
    sink.answers(move |_| {
        let location = [("location", target.clone())];
        (StatusCode::TEMPORARY_REDIRECT, location, "canary-answer").into_response()
    });
    let named = format!("localhost:{}", sink.address.port());
    let log = Log::default();
    let _guard = log.capture();
    let strict = [
        ("alertmanager", alertmanager(&named)),
        ("slack", slack(&named)),
        ("pagerduty", pagerduty(&named)),
        ("email", email(sink.address.port())),
    ];
    let mut receivers: Vec<_> = strict
        .into_iter()
        .map(|(name, kind)| made_with(name, kind, false, None))
        .collect();
    receivers.extend([
        made("alertmanager-sent-on", alertmanager(sink.address)),
        made("slack-sent-on", slack(sink.address)),
        made("pagerduty-sent-on", pagerduty(sink.address)),
        made("webhook-sent-on", webhook(sink.address)),
    ]);
    let names: Vec<String> = receivers.iter().map(|it| it.name().to_owned()).collect();
    assert!(
        !format!("{receivers:?}").contains("canary"),
        "{receivers:?}"
    );
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let post = Post::new(receivers).await;
    post.write(firing("e1"), &names).await;
    eventually("all were tried", async || {
        let all = post.deliveries().await;
        all.iter().all(|it| it.last_error.is_some())
    })
    .await;
    for delivery in post.deliveries().await {
        let (receiver, error) = (delivery.receiver, delivery.last_error.unwrap());
        if receiver.ends_with("sent-on") {
            assert_eq!(error, "answered 307", "{receiver}");
        } else {
            assert!(error.contains("allow_private"), "{receiver}: {error}");
        }
    }
    assert!(inside.caught().is_empty());
    assert!(!log.text().contains("canary"), "{}", log.text());
}

#[tokio::test]
async fn s09_an_https_receiver_has_to_be_certified_by_an_authority_that_is_known() {
    let folder = TempDir::new().unwrap();
    let (certificate, key, pem) = certificate(&folder);
    let tls = TlsFiles {
        certificate: certificate.into(),
        key: key.into(),
    };
    let catch = Catch::start().await;
    let bound = Bound::new("127.0.0.1:0".parse().unwrap(), "a test")
        .await
        .unwrap();
    let port = bound.address().port();
    tokio::spawn(serve_http(
        bound,
        Some(PemPair::read(&tls).unwrap()),
        catch.router(),
        HttpLimits::default(),
        CancellationToken::new(),
    ));
    let kind = || ReceiverKind::Slack {
        url: format!("https://localhost:{port}/canary-path").into(),
    };
    let known = made_with("known", kind(), true, Some(pem));
    let mut settings = brisk();
    settings.timeout = Duration::from_secs(10);
    let mut post = Post::new(Vec::new()).await;
    post.restart(settings, vec![known, made("stranger", kind())])
        .await;
    post.write(firing("e1"), &["known", "stranger"]).await;
    eventually("both were tried", async || {
        let all = post.deliveries().await;
        all[0].state == "delivered" && all[1].last_error.is_some()
    })
    .await;
    let error = post.deliveries().await[1].last_error.clone().unwrap();
    assert!(
        error.contains("certificate") && error.contains("ca_file"),
        "{error}"
    );
    assert_eq!(catch.taken().len(), 1);
    post.stop().await;
}
