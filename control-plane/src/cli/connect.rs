//! How commands find the controller, and what they share in asking it.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use hedgerow_protocol::ids::RouteKey;
use secrecy::{ExposeSecret as _, SecretString};

use crate::client::{CONNECTION_DEFAULT, Client, Connection, Path};

/// Where the controller is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct ConnectArgs {
    /// The controller's address.
    #[arg(long, env = "HEDGEROW_URL", value_name = "URL", default_value = CONNECTION_DEFAULT)]
    pub(super) url: String,
    #[command(flatten)]
    pub(super) credentials: Credentials,
}

/// With what to come in.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct Credentials {
    /// A file with an API token in its first line; without it, HEDGEROW_API_TOKEN is the token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The authorities that the controller's certificate may come from, PEM; without it the
    /// system's.
    #[arg(long, env = "HEDGEROW_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Where an API token is looked for without a file.
const TOKEN_VARIABLE: &str = "HEDGEROW_API_TOKEN";

impl ConnectArgs {
    /// A client; nothing is sent yet.
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        self.credentials.client(&self.url)
    }
}

impl Credentials {
    /// A client for this address.
    pub(super) fn client(&self, url: &str) -> anyhow::Result<Client> {
        let connection = Connection {
            url: url.to_owned(),
            token: self.token()?,
            authority: self.ca.clone(),
        };
        Ok(connection.client()?)
    }

    fn token(&self) -> anyhow::Result<Option<SecretString>> {
        let token = match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("the token {} cannot be read", path.display()))?;
                let line = text.lines().next().unwrap_or_default().trim();
                anyhow::ensure!(
                    !line.is_empty(),
                    "{} is empty: expected an API token in its first line",
                    path.display()
                );
                Some(SecretString::from(line))
            }
            None => std::env::var(TOKEN_VARIABLE)
                .ok()
                .map(|token| SecretString::from(token.trim())),
        };
        Ok(token.filter(|token| !token.expose_secret().is_empty()))
    }
}

/// A route on the command line.
#[derive(Debug, Clone, Args)]
pub(super) struct RouteArgs {
    /// What is called.
    #[arg(value_name = "DEPENDENCY")]
    pub(super) dependency: String,
    /// Which of its operations.
    #[arg(value_name = "OPERATION")]
    pub(super) operation: String,
}

impl RouteArgs {
    /// Checked.
    pub(super) fn key(&self) -> anyhow::Result<RouteKey> {
        RouteKey::new(&self.dependency, &self.operation)
            .with_context(|| format!("{} {}", self.dependency, self.operation))
    }
}

/// What is told of a route: `routes/{dependency}/{operation}`, and what is below it.
pub(super) fn route_path(route: &RouteKey, below: Option<&str>) -> Path {
    let parts = [
        "routes",
        route.dependency.as_str(),
        route.operation.as_str(),
    ];
    Path::new(parts.into_iter().chain(below))
}

/// A reason, where harm is possible.
#[derive(Debug, Clone, Args)]
pub(super) struct ReasonArg {
    /// Why, in a few words: it stands in the record.
    #[arg(long, value_name = "WORDS", value_parser = reason)]
    pub(super) reason: String,
}

/// Refused here, before anything is sent.
pub(super) fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("expected a few words that say why".into());
    }
    Ok(text.to_owned())
}
