//! Operators, links and tokens. Whoever may write the store's file may do all of this.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::ServiceName;
use secrecy::ExposeSecret as _;

use super::StoreArg;
use crate::auth;
use crate::config::HTTP_DEFAULT;
use crate::store::{Store, role_name};

/// `hedgerow login-link`.
#[derive(Debug, Args)]
pub(super) struct LoginLink {
    #[command(flatten)]
    store: StoreArg,
    /// Who signs in with it.
    #[arg(long, default_value = auth::FIRST_ADMINISTRATOR)]
    operator: String,
    /// The dashboard's address [default: http://127.0.0.1:7410/].
    #[arg(long, env = "HEDGEROW_PUBLIC_URL", value_name = "URL")]
    url: Option<String>,
}

impl LoginLink {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let store = existing(&self.store.store).await?;
        let token = auth::new_login_link(&store, &self.operator, auth::LINK_VALID).await?;
        let base = self
            .url
            .unwrap_or_else(|| format!("http://{HTTP_DEFAULT}/"));
        say(&format!(
            "{}/login/link?token={token}",
            base.trim_end_matches('/')
        ));
        store.close().await;
        Ok(())
    }
}

/// `hedgerow agent-token`.
#[derive(Debug, Subcommand)]
pub(super) enum AgentTokens {
    /// Make a token; it is shown once, and takes effect at once.
    New {
        #[command(flatten)]
        store: StoreArg,
        /// The service whose agents will present it.
        #[arg(long)]
        service: ServiceName,
    },
}

impl AgentTokens {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let Self::New { store, service } = self;
        let store = existing(&store.store).await?;
        let token = auth::new_agent_token(&store, service).await?;
        say(token.expose_secret());
        store.close().await;
        Ok(())
    }
}

/// `hedgerow api-token`.
#[derive(Debug, Subcommand)]
pub(super) enum ApiTokens {
    /// Make a token; it is shown once.
    New {
        #[command(flatten)]
        store: StoreArg,
        /// Its name, for the record.
        #[arg(long)]
        name: String,
        /// What it may do.
        #[arg(long, value_enum)]
        role: RoleArg,
        /// How long it lasts, in days [default: 90].
        #[arg(long)]
        days: Option<u32>,
    },
    /// List them.
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Remove one: from now on it opens nothing.
    Revoke {
        #[command(flatten)]
        store: StoreArg,
        /// Its name.
        #[arg(long)]
        name: String,
    },
}

impl ApiTokens {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New {
                store,
                name,
                role,
                days,
            } => {
                let store = existing(&store.store).await?;
                let lasts = days.map(|days| Duration::from_hours(24 * u64::from(days)));
                let token = auth::new_api_token(&store, &name, role.into(), lasts).await?;
                say(token.expose_secret());
            }
            Self::List { store } => {
                for token in existing(&store.store).await?.api_tokens().await? {
                    let until = date(token.expires.as_millis());
                    say(&format!(
                        "{:<24} {:<14} until {until}",
                        token.name,
                        role_name(token.role)
                    ));
                }
            }
            Self::Revoke { store, name } => {
                auth::revoke_api_token(&existing(&store.store).await?, &name).await?;
            }
        }
        Ok(())
    }
}

/// `hedgerow operator`.
#[derive(Debug, Subcommand)]
pub(super) enum Operators {
    /// Add one; they sign in by `hedgerow login-link --operator NAME`, or by a password.
    Add {
        #[command(flatten)]
        store: StoreArg,
        /// Their name.
        name: String,
        /// What they may do.
        #[arg(long, value_enum)]
        role: RoleArg,
        /// Read a password for them from the first line of standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// List them.
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Set a password, from the first line of standard input; ends their sessions.
    SetPassword {
        #[command(flatten)]
        store: StoreArg,
        /// Their name.
        name: String,
    },
    /// Remove one, with their sessions.
    Remove {
        #[command(flatten)]
        store: StoreArg,
        /// Their name.
        name: String,
    },
}

impl Operators {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Add {
                store,
                name,
                role,
                password_stdin,
            } => {
                let store = existing(&store.store).await?;
                let password = password_stdin.then(password_line).transpose()?;
                auth::add_operator(&store, &name, role.into(), password).await?;
            }
            Self::List { store } => {
                for account in existing(&store.store).await?.accounts().await? {
                    say(&format!("{:<24} {}", account.name, role_name(account.role)));
                }
            }
            Self::SetPassword { store, name } => {
                let store = existing(&store.store).await?;
                auth::set_password(&store, &name, password_line()?).await?;
            }
            Self::Remove { store, name } => {
                auth::remove_operator(&existing(&store.store).await?, &name).await?;
            }
        }
        Ok(())
    }
}

/// Roles, as they are written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum RoleArg {
    /// Look.
    Viewer,
    /// Throw and release kill switches.
    Operator,
    /// Set policies.
    Editor,
    /// Everything.
    Administrator,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Viewer => Self::Viewer,
            RoleArg::Operator => Self::Operator,
            RoleArg::Editor => Self::Editor,
            RoleArg::Administrator => Self::Administrator,
        }
    }
}

/// A store that is there. None is made: a mistyped path would pass for the controller's, and what is
/// written to it would open nothing.
pub(super) async fn existing(path: &Path) -> anyhow::Result<Store> {
    if !path.exists() {
        bail!(
            "there is no store at {}: expected the file that `hedgerow serve` uses, which its first start makes; name it with --store",
            path.display()
        );
    }
    Ok(Store::open(path).await?)
}

fn password_line() -> anyhow::Result<secrecy::SecretString> {
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .context("standard input cannot be read")?;
    Ok(secrecy::SecretString::from(
        line.trim_end_matches(['\r', '\n']),
    ))
}

fn date(millis: u64) -> String {
    i64::try_from(millis)
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .map_or_else(
            || "for ever".into(),
            |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        )
}

#[expect(clippy::print_stdout, reason = "what the command was asked for")]
pub(super) fn say(text: &str) {
    println!("{text}");
}
