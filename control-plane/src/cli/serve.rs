//! `hedgerow serve`.

use anyhow::Context as _;
use secrecy::ExposeSecret as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::{App, FirstLogin};
use crate::config::{ServeArgs, Settings};
use crate::telemetry;

/// Runs the controller until it is asked to leave.
pub(super) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    let settings = Settings::resolve(args)?;
    let telemetry = telemetry::init(&settings.telemetry)?;
    // Before anything is started: a signal that comes early must not end the process unheard.
    let mut terminate =
        signal(SignalKind::terminate()).context("SIGTERM cannot be listened for")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be listened for")?;
    let mut app = App::start(settings).await?;
    if let Some(login) = app.take_first_login() {
        tell(&login);
    }
    let result = tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        error = app.broken() => Err(error),
    };
    tracing::info!("leaving: agents are told when to come back");
    app.stop().await;
    // Sends the last spans, and may block for it.
    tokio::task::spawn_blocking(|| telemetry.shut_down()).await?;
    Ok(result?)
}

/// Not through the log, which may be kept: the link is a secret while it lasts.
#[expect(
    clippy::print_stderr,
    reason = "the only way to the terminal that is not the log"
)]
fn tell(login: &FirstLogin) {
    eprintln!(
        "\nThe store has no operators yet, so {:?} was made, an administrator. Sign in once, within 15 minutes, at:\n\n  {}\n\n`hedgerow login-link` makes another link.\n",
        login.name,
        login.link.expose_secret()
    );
}
