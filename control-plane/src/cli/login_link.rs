//! `hedgerow login-link`: a one-time link, for whoever may write the store's file.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Parser};

use super::accounts::{existing, say};
use crate::auth;
use crate::config::{STORE_DEFAULT, ServeArgs, Settings};
use crate::store::Claim;

/// Flags of `hedgerow login-link`.
#[derive(Debug, Args)]
pub(super) struct LoginLink {
    /// The controller's store [default: that of the settings, or hedgerow.db].
    #[arg(long, env = "HEDGEROW_STORE", value_name = "FILE")]
    store: Option<PathBuf>,
    /// The controller's settings, which say where its store and its dashboard are.
    #[arg(long, env = "HEDGEROW_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Who signs in with it.
    #[arg(long, default_value = auth::FIRST_ADMINISTRATOR)]
    operator: String,
    /// The dashboard's address [default: that of the settings, or where the controller on this store
    /// says that it listens].
    #[arg(long, alias = "url", env = "HEDGEROW_PUBLIC_URL", value_name = "URL")]
    dashboard_url: Option<String>,
}

impl LoginLink {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let settings = self.config.as_deref().map(settings).transpose()?;
        let path = self
            .store
            .or_else(|| settings.as_ref().map(|it| it.store.clone()))
            .unwrap_or_else(|| STORE_DEFAULT.into());
        let store = existing(&path).await?;
        let base = match self.dashboard_url {
            Some(url) => url,
            None => dashboard(settings, &path)?,
        };
        let token = auth::new_login_link(&store, &self.operator, auth::LINK_VALID).await?;
        let base = base.trim_end_matches('/');
        say(&format!("{base}/login/link?token={token}"));
        store.close().await;
        Ok(())
    }
}

/// Reads everything `hedgerow serve` would be told in this environment.
#[derive(Debug, Parser)]
struct Environment {
    #[command(flatten)]
    serve: ServeArgs,
}

fn settings(config: &Path) -> anyhow::Result<Settings> {
    let args = ServeArgs {
        config: Some(config.to_owned()),
        ..Environment::try_parse_from(["hedgerow"])?.serve
    };
    Settings::resolve(args)
        .context("the settings do not say where the dashboard is; name it with --dashboard-url")
}

/// Where people reach the dashboard: as the settings say, or the controller on this store, or as it
/// would listen if it were started here.
fn dashboard(settings: Option<Settings>, store: &Path) -> anyhow::Result<String> {
    if let Some(url) = settings.as_ref().and_then(|it| it.public_url.as_ref()) {
        return Ok(url.to_string());
    }
    if let Some(told) = Claim::told(store) {
        return Ok(told);
    }
    let settings = match settings {
        Some(settings) => settings,
        None => Settings::resolve(Environment::try_parse_from(["hedgerow"])?.serve)?,
    };
    let mut http = settings.http.address;
    if http.port() == 0 {
        bail!(
            "where the dashboard listens is known when its controller runs: start it, or name the address with --dashboard-url"
        );
    }
    if http.ip().is_unspecified() {
        http.set_ip(IpAddr::from([127, 0, 0, 1]));
    }
    Ok(settings.public_base(http))
}
