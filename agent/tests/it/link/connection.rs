//! What is seen of the agent on the wire before any message, and whom it believes.

use std::path::PathBuf;
use std::time::Duration;

use hedgerow_agent::Agent;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Identity, ServerTlsConfig};

use super::controller::Controller;
use super::proxy::{Proxy, Way};
use super::{TOKEN, agent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b64_no_http2_ping_and_no_compression_comes_from_the_agent() {
    let mut controller = Controller::start().await;
    let proxy = Proxy::start(Way::To(controller.address())).await;
    let agent = agent(&proxy.url()).await;
    let mut session = controller.accept().await;
    session.welcome(Duration::from_millis(300));
    let messages = session.collect_for(Duration::from_secs(2)).await;
    let is_beat = |message: &&_| {
        matches!(
            message,
            hedgerow_protocol::session::AgentMessage::Heartbeat(_)
        )
    };
    assert!(
        messages.iter().filter(is_beat).count() >= 2,
        "the heartbeat is application data"
    );
    assert_eq!(proxy.pings(), 0);
    for header in ["grpc-encoding", "grpc-accept-encoding"] {
        assert!(session.metadata.get(header).is_none(), "{header}");
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_tried_again_without_hammering_until_it_is_let_in() {
    let mut controller = Controller::start().await;
    controller.only("another");
    let agent = agent(&controller.url()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let turned_away = controller.turned_away();
    assert!(
        (2..=20).contains(&turned_away),
        "{turned_away} tries in 3 s"
    );
    controller.only(TOKEN);
    controller.welcome().await.report().await;
    agent.shutdown().await;
}

/// An authority of our own, in a file, and a certificate for this machine signed by it, as PEM.
struct Authority {
    ca_file: PathBuf,
    certificate: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        let ca_file = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}.pem", std::process::id()));
        std::fs::write(&ca_file, issuer.pem()).unwrap();
        Self {
            ca_file,
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    async fn controller(&self) -> Controller {
        let identity = Identity::from_pem(&self.certificate, &self.key);
        Controller::start_with(Some(ServerTlsConfig::new().identity(identity))).await
    }
}

async fn agent_believing(controller: &Controller, authority: &Authority) -> Agent {
    Agent::builder()
        .service("shop")
        .controller(format!("https://localhost:{}", controller.address().port()))
        .token(TOKEN.to_owned().into())
        .ca_certificate_file(&authority.ca_file)
        .connect()
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s02_only_a_controller_of_the_given_authority_is_believed() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mut controller = ours.controller().await;
    controller.only(TOKEN);
    let agent = agent_believing(&controller, &ours).await;
    controller.welcome().await.report().await;
    agent.shutdown().await;

    let mut impostor = theirs.controller().await;
    let agent = agent_believing(&impostor, &ours).await;
    assert!(
        !impostor.is_called_within(Duration::from_secs(2)).await,
        "no hello, no token"
    );
    assert_eq!(impostor.turned_away(), 0);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_token_never_crosses_a_network_in_the_clear_unasked() {
    let refused = Agent::builder()
        .service("shop")
        .controller("http://controller.example.org:7300")
        .token(TOKEN.to_owned().into())
        .connect()
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        refused.contains("https://"),
        "says what was expected: {refused}"
    );
    assert!(!refused.contains(TOKEN));
}
