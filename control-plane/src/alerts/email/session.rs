//! One conversation with a mail server.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::Mechanism;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Code;

use super::Email;
use super::letter::Letter;
use crate::alerts::attempt::{AttemptError, Taken, is_of_tls};
use crate::config::MailTls;
use crate::outward::address;

/// Hands a letter in: taken once the server has said so of the whole text.
///
/// A recipient who is refused for good is left out, with a line in the log, as long as there is
/// another: they must not keep it from the others. One refused for now is asked for again with all.
///
/// The attempt may take `within`; one address gets `patience` at most to take the connection.
pub(super) async fn hand_in(
    email: &Email,
    letter: &Letter,
    within: Duration,
    patience: Duration,
) -> Result<Taken, AttemptError> {
    // To these very addresses: a name looked up a second time could lead elsewhere (S8).
    let addresses = address::resolve(&email.host, email.port, email.allow_private).await?;
    // However many do not answer, the last one is asked, and has time left to talk.
    let shares = u32::try_from(addresses.len()).map_or(u32::MAX, |it| it.saturating_add(1));
    let mut server = connect(email, &addresses, patience.min(within / shares)).await?;
    if let Some(credentials) = &email.credentials {
        let known = [Mechanism::Plain, Mechanism::Login];
        if server.server_info().get_auth_mechanism(&known).is_none() {
            server.abort().await;
            return Err(AttemptError::NoLogin);
        }
        let outcome = server.auth(&known, credentials).await;
        ok(&mut server, outcome).await?;
    }
    let sender = Some(email.from.email.clone());
    let outcome = server.command(Mail::new(sender, Vec::new())).await;
    ok(&mut server, outcome).await?;
    address_to(&mut server, email).await?;
    let outcome = server.command(Data).await;
    ok(&mut server, outcome).await?;
    let outcome = server.message(&letter.text).await;
    let status = ok(&mut server, outcome).await?;
    // It has the letter: how it says good-bye changes nothing.
    let _ = server.quit().await;
    Ok(Taken(status))
}

/// The first of the addresses that takes the connection within `each`.
async fn connect(
    email: &Email,
    addresses: &[SocketAddr],
    each: Duration,
) -> Result<AsyncSmtpConnection, AttemptError> {
    let hello = ClientId::default();
    let at_once = match &email.tls {
        Some((MailTls::Tls, parameters)) => Some(parameters.clone()),
        _ => None,
    };
    let mut failed = AttemptError::Connect;
    for address in addresses {
        let at_once = at_once.clone();
        let outcome =
            AsyncSmtpConnection::connect_tokio1(address, Some(each), &hello, at_once, None).await;
        let mut server = match outcome {
            Ok(server) => server,
            Err(error) => {
                failed = named(&error);
                continue;
            }
        };
        if let Some((MailTls::StartTls, parameters)) = &email.tls {
            // Nobody on the way may talk us out of it.
            if !server.can_starttls() {
                server.abort().await;
                return Err(AttemptError::NoStartTls);
            }
            let outcome = server.starttls(parameters.clone(), &hello).await;
            outcome.map_err(|error| named(&error))?;
        }
        return Ok(server);
    }
    Err(failed)
}

async fn address_to(server: &mut AsyncSmtpConnection, email: &Email) -> Result<(), AttemptError> {
    let (mut accepted, mut refused) = (0_usize, None);
    for to in &email.to {
        let recipient: Address = to.email.clone();
        match server.command(Rcpt::new(recipient, Vec::new())).await {
            Ok(_) => accepted += 1,
            Err(error) if error.is_permanent() => refused = Some(named(&error)),
            Err(error) => {
                server.abort().await;
                return Err(named(&error));
            }
        }
    }
    match refused {
        Some(error) if accepted == 0 => {
            server.abort().await;
            Err(error)
        }
        Some(error) => {
            let problem = error.to_string();
            let refused = email.to.len() - accepted;
            tracing::warn!(
                accepted,
                refused,
                problem,
                "a mail server refused recipients"
            );
            Ok(())
        }
        None => Ok(()),
    }
}

/// The answer's status, or the conversation ended and why.
async fn ok(
    server: &mut AsyncSmtpConnection,
    outcome: Result<lettre::transport::smtp::response::Response, Error>,
) -> Result<u16, AttemptError> {
    match outcome {
        Ok(response) => Ok(number(response.code())),
        Err(error) => {
            server.abort().await;
            Err(named(&error))
        }
    }
}

fn number(code: Code) -> u16 {
    code.to_string().parse().unwrap_or(0)
}

/// The library's own words repeat the server's; these do not.
fn named(error: &Error) -> AttemptError {
    if let Some(code) = error.status() {
        return AttemptError::Status {
            status: number(code),
            retry_after: None,
        };
    }
    if error.is_tls() {
        return AttemptError::Tls;
    }
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if is_of_tls(error) {
            return AttemptError::Tls;
        }
        let inner = error.downcast_ref::<std::io::Error>();
        // Refused, or not answered in time.
        let unconnected = [ErrorKind::ConnectionRefused, ErrorKind::TimedOut];
        if inner.is_some_and(|it| unconnected.contains(&it.kind())) {
            return AttemptError::Connect;
        }
        cause = error.source();
    }
    AttemptError::Broken
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpSocket, TcpStream};

    use super::*;
    use crate::config::MailSettings;

    /// An address that answers nobody: what waits to be accepted is as much as may wait. It is so
    /// while what is given along is kept.
    async fn black_hole() -> (SocketAddr, impl Sized) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        let moment = Duration::from_millis(200);
        while let Ok(it) = tokio::time::timeout(moment, TcpStream::connect(address)).await {
            waiting.push(it.unwrap());
            assert!(waiting.len() < 100, "it takes everybody");
        }
        (address, (listener, waiting))
    }

    async fn greeter() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            stream.write_all(b"220 here\r\n").await.unwrap();
            let mut line = String::new();
            while stream.read_line(&mut line).await.unwrap_or(0) > 0 {
                stream.write_all(b"250 here\r\n").await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn p15_an_address_that_does_not_answer_keeps_nobody_from_the_next_one() {
        let email = Email::new(
            &MailSettings {
                host: "localhost".into(),
                port: 2525,
                tls: MailTls::None,
                login: None,
                from: "hedgerow@example.com".into(),
                to: vec!["ada@example.org".into()],
            },
            true,
            None,
        )
        .unwrap();
        let (silent, _kept) = black_hole().await;
        let each = Duration::from_millis(100);
        let alone = [silent];
        let connecting = connect(&email, &alone, each);
        let failed = tokio::time::timeout(each * 100, connecting).await.unwrap();
        assert_eq!(failed.err(), Some(AttemptError::Connect));
        let addresses = [silent, greeter().await];
        let connecting = connect(&email, &addresses, each);
        let server = tokio::time::timeout(each * 100, connecting).await.unwrap();
        assert!(server.is_ok());
    }
}
