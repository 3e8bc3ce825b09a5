//! The way to the controller: checked once, before the first packet, and dialled anew for each
//! stream, so that a name that moved is looked up again.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use hedgerow_protocol::limits::MESSAGE_BYTES_MAX;
use hedgerow_protocol::wire;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Uri};
use tonic::{Request, Streaming};

use super::lost::Lost;

/// For one address to take the connection. The greeting's own limit bounds all of it.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Messages waiting to be written: a refusal for each route, and the rest. A controller that lets
/// more than these pile up is not reading.
const OUTBOX: usize = 128;

/// How to reach the controller.
pub(crate) struct LinkSettings {
    /// `https://host:port`, or `http://host:port` on this machine.
    pub(crate) endpoint: String,
    /// Says which service the agent belongs to.
    pub(crate) token: SecretString,
    /// Certificates, in PEM, of the authorities whose controllers are believed.
    pub(crate) ca_pem: Option<Vec<u8>>,
    /// Whether the token may cross a network in the clear.
    pub(crate) allow_plaintext: bool,
}

/// Why a link cannot even be tried. Found by [`connect`](crate::AgentBuilder::connect), without
/// asking the network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Not an address.
    #[error(
        "controller address: {given:?} is not one: expected https://host:port, or \
         http://host:port for a controller on this machine"
    )]
    Address {
        /// What was given.
        given: String,
    },
    /// The token would be readable on the way.
    #[error(
        "controller address: http://{host} is not this machine, and the token would cross the \
         network in the clear: expected https://, or plaintext allowed in so many words"
    )]
    Plaintext {
        /// The host it would be sent to.
        host: String,
    },
    /// Nobody to believe.
    #[error(
        "controller certificate authority: https needs one, and none is built in: expected the \
         PEM of the authority that signed the controller's certificate"
    )]
    NoAuthority,
    /// Not certificates.
    #[error(
        "controller certificate authority: no certificate in it: expected PEM with at least one \
         BEGIN CERTIFICATE block"
    )]
    Authority,
    /// The token cannot be sent.
    #[error("token: expected 1 or more printable ASCII characters, without spaces")]
    Token,
}

/// What is needed to open streams.
pub(crate) struct Dialer {
    endpoint: Endpoint,
    authorization: MetadataValue<Ascii>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("uri", self.endpoint.uri())
            .finish_non_exhaustive()
    }
}

/// An open stream. Dropping it closes the connection and ends its tasks, answered or not.
pub(crate) struct Stream {
    /// What is to be written; the greeting is already in it.
    pub(crate) outbox: mpsc::Sender<wire::proto::AgentMessage>,
    /// What the controller says.
    pub(crate) inbox: Streaming<wire::proto::ControllerMessage>,
    /// Ends the connection's tasks.
    pub(crate) connection: DropGuard,
}

impl Dialer {
    /// Checks everything that can be checked without the network.
    pub(crate) fn new(settings: &LinkSettings) -> Result<Self, LinkError> {
        let address = || LinkError::Address {
            given: settings.endpoint.clone(),
        };
        let uri: Uri = settings.endpoint.parse().map_err(|_| address())?;
        let host = uri.host().ok_or_else(address)?.to_owned();
        // HTTP/2 pings stay off, as tonic has them: some proxies answer them with GOAWAY (B64).
        let endpoint = Endpoint::from(uri.clone()).connect_timeout(CONNECT_MAX);
        let endpoint = match uri.scheme_str() {
            Some("http") if settings.allow_plaintext || is_this_machine(&host) => endpoint,
            Some("http") => return Err(LinkError::Plaintext { host }),
            Some("https") => {
                let pem = settings.ca_pem.as_deref().ok_or(LinkError::NoAuthority)?;
                if !String::from_utf8_lossy(pem).contains("-----BEGIN CERTIFICATE-----") {
                    return Err(LinkError::Authority);
                }
                let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
                endpoint.tls_config(tls).map_err(|_| LinkError::Authority)?
            }
            _ => return Err(address()),
        };
        Ok(Self {
            endpoint,
            authorization: authorization(&settings.token)?,
        })
    }

    /// Connects, presents the token, sends the greeting. The stream is open when the controller has
    /// answered with headers; the greeting goes out before that, since it may wait for it.
    pub(crate) async fn open(&self, hello: wire::proto::AgentMessage) -> Result<Stream, Lost> {
        let token = CancellationToken::new();
        let connection = token.clone().drop_guard();
        let endpoint = self.endpoint.clone().executor(ConnectionTasks(token));
        let channel = endpoint
            .connect()
            .await
            .map_err(|error| Lost::Unreachable(chain(&error)))?;
        let (outbox, messages) = mpsc::channel(OUTBOX);
        outbox.try_send(hello).map_err(|_| Lost::NotReading)?;
        let mut request = Request::new(ReceiverStream::new(messages));
        request
            .metadata_mut()
            .insert("authorization", self.authorization.clone());
        let mut client = wire::proto::fleet_client::FleetClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let inbox = client.attach(request).await?.into_inner();
        Ok(Stream {
            outbox,
            inbox,
            connection,
        })
    }
}

/// Runs a connection's tasks until its stream is dropped. Left to themselves they would wait on a
/// half-open socket until the system gives it up, a quarter of an hour later.
struct ConnectionTasks(CancellationToken);

impl hyper::rt::Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for ConnectionTasks {
    fn execute(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let token = self.0.clone();
        tokio::spawn(async move { token.run_until_cancelled(task).await });
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn authorization(token: &SecretString) -> Result<MetadataValue<Ascii>, LinkError> {
    let token = token.expose_secret();
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(LinkError::Token);
    }
    let mut value: MetadataValue<Ascii> = format!("Bearer {token}")
        .parse()
        .map_err(|_| LinkError::Token)?;
    // Kept out of HTTP/2's compression table and of debug output.
    value.set_sensitive(true);
    Ok(value)
}

/// An error and what caused it: tonic's own says only "transport error".
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(endpoint: &str, token: &str) -> LinkSettings {
        LinkSettings {
            endpoint: endpoint.to_owned(),
            token: token.to_owned().into(),
            ca_pem: None,
            allow_plaintext: false,
        }
    }

    fn refusal(settings: &LinkSettings) -> Option<LinkError> {
        Dialer::new(settings).err()
    }

    #[test]
    fn plaintext_is_for_this_machine_unless_asked_for() {
        for (host, is_safe) in [
            ("127.0.0.1", true),
            ("127.8.0.1", true),
            ("[::1]", true),
            ("LOCALHOST", true),
            ("controller", false),
            ("10.0.0.1", false),
            ("localhost.example.org", false),
        ] {
            let mut settings = settings(&format!("http://{host}:7300"), "t");
            let expected = LinkError::Plaintext {
                host: host.to_owned(),
            };
            assert_eq!(refusal(&settings), (!is_safe).then_some(expected), "{host}");
            settings.allow_plaintext = true;
            assert_eq!(refusal(&settings), None, "{host}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_before_the_first_packet() {
        for given in [
            "controller:7300",
            "ftp://controller",
            "",
            "http://",
            "/controller",
        ] {
            let expected = LinkError::Address {
                given: given.to_owned(),
            };
            assert_eq!(refusal(&settings(given, "t")), Some(expected), "{given:?}");
        }
        for token in ["", "a b", "a\nb", "\u{e4}"] {
            let settings = settings("http://127.0.0.1:7300", token);
            assert_eq!(refusal(&settings), Some(LinkError::Token), "{token:?}");
        }
        let mut settings = settings("https://controller:7300", "t");
        assert_eq!(refusal(&settings), Some(LinkError::NoAuthority));
        settings.ca_pem = Some(b"junk".to_vec());
        assert_eq!(refusal(&settings), Some(LinkError::Authority));
    }

    #[test]
    fn s09_the_token_is_in_no_debug_output() {
        let dialer = Dialer::new(&settings("http://127.0.0.1:7300", "canary-7f3a")).unwrap();
        assert!(!format!("{dialer:?} {:?}", dialer.authorization).contains("canary"));
        let error = refusal(&settings("http://127.0.0.1:1", "canary 7f3a")).unwrap();
        assert!(!format!("{error} {error:?}").contains("canary"));
    }

    #[tokio::test]
    async fn b55_a_stream_given_up_leaves_no_connection_behind() {
        use tokio::io::AsyncReadExt as _;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let dialer = Dialer::new(&settings(&endpoint, "t")).unwrap();
        let opening =
            tokio::spawn(async move { dialer.open(wire::proto::AgentMessage::default()).await });
        let (mut silent, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 24];
        silent.read_exact(&mut greeting).await.unwrap();
        assert!(!opening.is_finished(), "it waits for an answer");
        opening.abort();
        let mut rest = Vec::new();
        let rest = silent.read_to_end(&mut rest);
        let closed = tokio::time::timeout(Duration::from_secs(30), rest).await;
        assert!(closed.is_ok(), "the other side sees the end");
    }
}
