//! Operators and tokens. Whoever may write the store's file may do all of this.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::ServiceName;
use secrecy::ExposeSecret as _;

use super::StoreArg;
use crate::auth::{self, Accounts};
use crate::store::{Account, Store, role_name};

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
    /// List those in the store: each by the first letters of its hash.
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Take one back: it opens nothing from now on, and a running controller ends the streams that
    /// came by it.
    Revoke {
        #[command(flatten)]
        store: StoreArg,
        #[command(flatten)]
        reason: ReasonArg,
        /// Which, as `list` shows it.
        id: String,
    },
}

impl AgentTokens {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { store, service } => {
                let store = existing(&store.store).await?;
                let token = auth::new_agent_token(&store, service).await?;
                say(token.expose_secret());
                store.close().await;
            }
            Self::List { store } => {
                for it in existing(&store.store).await?.stored_agent_tokens().await? {
                    let since = date(it.created.as_millis());
                    let (id, service) = (it.token.id(), it.token.service);
                    say(&format!("{id:<14} {service:<24} since {since}"));
                }
            }
            Self::Revoke { store, reason, id } => {
                let store = existing(&store.store).await?;
                reason.accounts(&store)?.revoke_agent_token(&id).await?;
            }
        }
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
        #[command(flatten)]
        reason: ReasonArg,
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
            Self::Revoke {
                store,
                reason,
                name,
            } => {
                let store = existing(&store.store).await?;
                reason.accounts(&store)?.revoke_api_token(&name).await?;
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
    /// Give one another role: their open sessions have it at once.
    SetRole {
        #[command(flatten)]
        store: StoreArg,
        #[command(flatten)]
        reason: ReasonArg,
        /// Their name.
        name: String,
        /// What they may do from now on.
        #[arg(long, value_enum)]
        role: RoleArg,
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
        #[command(flatten)]
        reason: ReasonArg,
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
                let store = existing(&store.store).await?;
                let accounts = Accounts::by_command_line(&store, "").operators().await?;
                for account in accounts {
                    say(&operator_line(&account));
                }
            }
            Self::SetRole {
                store,
                reason,
                name,
                role,
            } => {
                let store = existing(&store.store).await?;
                let accounts = reason.accounts(&store)?;
                accounts.set_role(&name, role.into()).await?;
            }
            Self::SetPassword { store, name } => {
                let store = existing(&store.store).await?;
                auth::set_password(&store, &name, password_line()?).await?;
            }
            Self::Remove {
                store,
                reason,
                name,
            } => {
                let store = existing(&store.store).await?;
                reason.accounts(&store)?.remove_operator(&name).await?;
            }
        }
        Ok(())
    }
}

fn operator_line(account: &Account) -> String {
    let by = match (account.single_sign_on, account.has_password) {
        (true, _) => "by single sign-on",
        (false, true) => "by password",
        (false, false) => "by link",
    };
    let (name, role) = (&account.name, role_name(account.role));
    format!(
        "{name:<24} {role:<14} {by:<18} {} sessions",
        account.sessions
    )
}

/// Why somebody or something is kept out, or may do other things.
#[derive(Debug, Clone, Args)]
pub(super) struct ReasonArg {
    /// Why, for the record.
    #[arg(long)]
    reason: String,
}

impl ReasonArg {
    fn accounts<'a>(&self, store: &'a Store) -> anyhow::Result<Accounts<'a>> {
        let reason = crate::acts::readable_reason(&self.reason)?;
        Ok(Accounts::by_command_line(store, reason))
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
