//! Both listeners with certificates.

use hedgerow_control_plane::app::App;
use hedgerow_control_plane::config::TlsFiles;
use tempfile::TempDir;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::raw_agent::{RawAgent, hello};
use crate::running::{Running, SHOP_TOKEN, settings};

fn certificate(folder: &TempDir) -> (TlsFiles, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles {
        certificate: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
    };
    let pem = made.cert.pem();
    std::fs::write(&files.certificate, &pem).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    (files, pem)
}

#[tokio::test]
async fn both_listeners_speak_tls_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let (files, pem) = certificate(&folder);
    let running = Running::start_with("", |settings| {
        settings.http.tls = Some(files.clone());
        settings.grpc.tls = Some(files.clone());
    })
    .await;

    let root = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([root])
        .build()
        .unwrap();
    let port = running.app.http_address().port();
    let answer = client
        .get(format!("https://localhost:{port}/readyz"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    assert!(
        client
            .get(format!("http://localhost:{port}/readyz"))
            .send()
            .await
            .is_err()
    );

    let port = running.app.grpc_address().port();
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&pem));
    let channel = Endpoint::from_shared(format!("https://localhost:{port}"))
        .unwrap()
        .tls_config(tls)
        .unwrap()
        .connect()
        .await
        .unwrap();
    let id = hedgerow_protocol::ids::InstanceId::generate();
    let agent = RawAgent::attach_on(channel, SHOP_TOKEN, hello(id, Vec::new())).await;
    let view = running
        .until("it joins", |it| it.agent(agent.instance))
        .await;
    assert!(view.peer.starts_with("127.0.0.1:"), "{}", view.peer);
    let plain = Endpoint::from_shared(running.grpc())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let (_outgoing, messages) = tokio::sync::mpsc::channel(1);
    let refused =
        crate::raw_agent::open(plain, Some(&format!("Bearer {SHOP_TOKEN}")), messages).await;
    assert!(refused.is_err());
    running.app.stop().await;
}

#[tokio::test]
async fn files_that_do_not_fit_are_named_at_the_start() {
    let folder = TempDir::new().unwrap();
    let (files, _) = certificate(&folder);
    let other = TempDir::new().unwrap();
    let (others, _) = certificate(&other);
    let start = async |tls: TlsFiles| {
        let mut settings = settings(folder.path(), "");
        settings.http.tls = Some(tls);
        App::start(settings).await.unwrap_err().to_string()
    };
    let error = start(TlsFiles {
        key: others.key,
        ..files.clone()
    })
    .await;
    assert!(error.contains("cannot be used together"), "{error}");
    let error = start(TlsFiles {
        certificate: files.key.clone(),
        ..files.clone()
    })
    .await;
    assert!(error.contains("BEGIN CERTIFICATE"), "{error}");
    let error = start(TlsFiles {
        key: files.certificate.clone(),
        ..files.clone()
    })
    .await;
    assert!(error.contains("BEGIN PRIVATE KEY"), "{error}");
    let error = start(TlsFiles {
        key: folder.path().join("none.pem"),
        ..files
    })
    .await;
    assert!(error.contains("none.pem cannot be read"), "{error}");
}
