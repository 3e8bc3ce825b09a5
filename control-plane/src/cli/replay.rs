//! `hedgerow replay`: what a policy would have done with the last hours, from a store's minutes, on
//! which a controller may be running; or asked of a controller, where `--url` is given.

mod ask;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use hedgerow_core::moment::Moment;
use hedgerow_core::whatif::replay;
use hedgerow_protocol::ids::{DependencyName, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyDraft, PolicyScope};

use super::StoreArg;
use super::accounts::existing;
use super::connect::Credentials;
use super::output::print;
use super::policy::file::entries_of;
use crate::clock::Clock;
use crate::store::{MINUTES_KEPT, Store};
use crate::whatif::replayed::Replayed;

/// `hedgerow replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayHours {
    #[command(flatten)]
    store: StoreArg,
    /// What is called.
    #[arg(long, value_name = "NAME")]
    dependency: String,
    /// Which of its operations.
    #[arg(long, value_name = "NAME")]
    operation: String,
    /// A policy: the fields of the configuration file's [[policy]], without that line, as TOML; or
    /// as YAML, where the file ends in .yaml or .yml. It hedges unless it says otherwise [default:
    /// the one in force].
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// How far back, at most 24.
    #[arg(long, value_name = "HOURS", default_value = "24", value_parser = hours, allow_hyphen_values = true)]
    hours: f64,
    /// Print JSON, minute by minute.
    #[arg(long)]
    json: bool,
    /// Ask this controller, and no store.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
}

impl ReplayHours {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let route = RouteKey::new(&self.dependency, &self.operation).with_context(|| {
            format!(
                "--dependency {} --operation {}",
                self.dependency, self.operation
            )
        })?;
        if let Some(url) = &self.url {
            let policy = self.policy.as_deref();
            let policy = policy
                .map(|path| read(path, &route.dependency))
                .transpose()?;
            let client = self.credentials.client(url)?;
            return print(&ask::text(&client, &route, policy, self.hours, self.json).await?);
        }
        let store = existing(&self.store.store).await?;
        let answer = self.answer(&store, &route).await;
        store.close().await;
        print(&answer?)
    }

    async fn answer(&self, store: &Store, route: &RouteKey) -> anyhow::Result<String> {
        let policy = match &self.policy {
            Some(path) => read(path, &route.dependency)?,
            None => stored(store, &route.dependency).await?,
        };
        let back = Duration::from_secs_f64(self.hours * 3600.0);
        let now = Clock::start().now().as_millis();
        let since = now.saturating_sub(u64::try_from(back.as_millis()).unwrap_or(u64::MAX));
        let minutes = store.minutes(route, Moment::from_millis(since)).await?;
        if minutes.is_empty() {
            bail!(
                "nothing is stored of {route} in the last {} h: expected the names of a route that \
                 agents report to the controller of this store, for a minute at least",
                self.hours
            );
        }
        let replayed = replay(&minutes, &policy);
        if self.json {
            return Ok(serde_json::to_string(&Replayed::from(&replayed))?);
        }
        Ok(table::text(route, &table::terms(&policy), &replayed))
    }
}

fn read(path: &Path, dependency: &DependencyName) -> anyhow::Result<Policy> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the policy {} cannot be read", path.display()))?;
    let ending = path.extension().and_then(|ending| ending.to_str());
    if matches!(ending, Some("yaml" | "yml")) {
        return from_yaml(path, &text, dependency);
    }
    let refused = || format!("the policy {} cannot stand", path.display());
    let mut fields: toml::Table = text.parse().with_context(refused)?;
    fields
        .entry("dependency")
        .or_insert_with(|| dependency.as_str().into());
    // What it would have done is asked of a policy that does something.
    fields.entry("intent").or_insert_with(|| "hedge".into());
    let draft: PolicyDraft = fields.try_into().with_context(refused)?;
    if draft.dependency != dependency.as_str() {
        bail!(
            "the policy {} is for {:?}: expected {dependency}, or no dependency in it",
            path.display(),
            draft.dependency
        );
    }
    Policy::try_from(draft).with_context(refused)
}

/// The one that is for the dependency, whether for all of it or for an operation.
fn from_yaml(path: &Path, text: &str, dependency: &DependencyName) -> anyhow::Result<Policy> {
    let mut faults = Vec::new();
    let entries = entries_of(&path.display().to_string(), text, &mut faults);
    if let Some(fault) = faults.first() {
        bail!("{fault}");
    }
    let fits = |scope: &PolicyScope| scope.dependency() == Some(dependency);
    let mut fitting = entries.into_iter().filter(|entry| fits(&entry.scope));
    let (Some(entry), None) = (fitting.next(), fitting.next()) else {
        bail!(
            "{} has none, or more than one policy for {dependency}: expected one",
            path.display()
        );
    };
    let mut fields = entry.body;
    fields.remove("rollout");
    fields.insert("dependency".into(), dependency.as_str().into());
    fields.entry("intent").or_insert_with(|| "hedge".into());
    let refused = || format!("the policy {} cannot stand", path.display());
    let draft: PolicyDraft = serde_json::from_value(fields.into()).with_context(refused)?;
    Policy::try_from(draft).with_context(refused)
}

async fn stored(store: &Store, dependency: &DependencyName) -> anyhow::Result<Policy> {
    let scope = PolicyScope::from(dependency.clone());
    let newest = store.policy_history(&scope).await?.into_iter().next();
    let policy = newest.and_then(|revision| revision.policy);
    Ok(policy.unwrap_or_else(|| Policy::observing(scope)))
}

fn hours(text: &str) -> Result<f64, String> {
    let most = MINUTES_KEPT.as_secs_f64() / 3600.0;
    text.parse()
        .ok()
        .filter(|hours| *hours > 0.0 && *hours <= most)
        .ok_or_else(|| format!("expected a number of hours above 0 and at most {most}, such as 6"))
}
