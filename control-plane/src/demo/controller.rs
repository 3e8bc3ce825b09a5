//! The demo's controller: a process of its own on a store in a temporary folder, spoken to as anyone
//! would, over its REST API.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::process::Child;

use super::client::{DEPENDENCY, OPERATION};
use super::own_command;

/// A running controller.
#[derive(Debug)]
pub(crate) struct ControllerProcess {
    child: Child,
    config: PathBuf,
    log: PathBuf,
    http: SocketAddr,
    token: SecretString,
    client: reqwest::Client,
}

impl ControllerProcess {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(
        config: &Path,
        log: &Path,
        http: SocketAddr,
        token: SecretString,
    ) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(5))
            .build()
            .context("the HTTP client could not be built")?;
        let mut controller = Self {
            child: spawn(config, log)?,
            config: config.to_owned(),
            log: log.to_owned(),
            http,
            token,
            client,
        };
        controller.until_ready().await?;
        Ok(controller)
    }

    async fn until_ready(&mut self) -> anyhow::Result<()> {
        let url = format!("http://{}/readyz", self.http);
        for _ in 0..200 {
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "the controller ended at once ({status}); its log says:\n{}",
                    std::fs::read_to_string(&self.log).unwrap_or_default()
                );
            }
            if self
                .client
                .get(&url)
                .send()
                .await
                .is_ok_and(|a| a.status().is_success())
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!(
            "the controller was not ready after 20 s; its log says:\n{}",
            std::fs::read_to_string(&self.log).unwrap_or_default()
        )
    }

    /// Signal 9: nothing is flushed, nobody is told.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child
            .kill()
            .await
            .context("the controller could not be killed")
    }

    /// Starts it again on the same store.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        self.child = spawn(&self.config, &self.log)?;
        self.until_ready().await
    }

    /// Asks it to leave, and waits.
    pub(crate) async fn stop(mut self) {
        // There is no portable way to send a gentle signal without more dependencies: the demo's
        // store is temporary, so the hard one does no harm.
        let _ = self.child.kill().await;
    }

    /// The route's view, as the API gives it.
    pub(crate) async fn route(&self) -> anyhow::Result<RouteState> {
        let value = self
            .get(&format!("/api/v1/routes/{DEPENDENCY}/{OPERATION}"))
            .await?;
        Ok(RouteState(value))
    }

    /// The firing alerts.
    pub(crate) async fn alerts(&self) -> anyhow::Result<Value> {
        self.get("/api/v1/alerts").await
    }

    /// The policy in force: its revision and what it says.
    pub(crate) async fn policy(&self) -> anyhow::Result<Value> {
        self.get(&format!("/api/v1/policies/{DEPENDENCY}")).await
    }

    /// A page of the dashboard, as a browser with this session gets it.
    pub(crate) async fn page(&self, path: &str, session: &str) -> anyhow::Result<String> {
        let url = format!("http://{}{path}", self.http);
        let answer = self
            .client
            .get(&url)
            .header("cookie", format!("hedgerow_session={session}"))
            .send()
            .await?
            .error_for_status()?;
        Ok(answer.text().await?)
    }

    /// Signs in by a one-time link, as a browser does; gives the session's cookie.
    pub(crate) async fn sign_in(&self, link_token: &str) -> anyhow::Result<String> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let origin = format!("http://{}", self.http);
        let answer = client
            .post(format!("{origin}/login/link"))
            .header("origin", &origin)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("token={link_token}"))
            .send()
            .await?;
        let cookies = answer.headers().get_all("set-cookie");
        cookies
            .iter()
            .filter_map(|value| value.to_str().ok())
            .find_map(|text| text.strip_prefix("hedgerow_session="))
            .and_then(|text| text.split(';').next())
            .map(str::to_owned)
            .with_context(|| format!("signing in by link gave no session: {}", answer.status()))
    }

    /// Sets the demo's policy, as an operator would.
    pub(crate) async fn set_policy(&self, policy: &Value, reason: &str) -> anyhow::Result<()> {
        let mut body = policy.clone();
        body["reason"] = json!(reason);
        let answer = self
            .client
            .put(format!("http://{}/api/v1/policies/{DEPENDENCY}", self.http))
            .bearer_auth(self.token.expose_secret())
            .json(&body)
            .send()
            .await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            bail!("the policy was refused ({status}): {text}");
        }
        Ok(())
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let answer = self
            .client
            .get(format!("http://{}{path}", self.http))
            .bearer_auth(self.token.expose_secret())
            .send()
            .await
            .with_context(|| format!("GET {path}"))?
            .error_for_status()?;
        Ok(answer.json().await?)
    }
}

fn spawn(config: &Path, log: &Path) -> anyhow::Result<Child> {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)?;
    own_command(&["demo-controller", "--config"])?
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .context("the controller did not start")
}

/// The route, as JSON.
#[derive(Debug, Clone)]
pub(crate) struct RouteState(Value);

impl RouteState {
    /// Nothing is known yet.
    pub(crate) fn none() -> Self {
        Self(Value::Null)
    }

    /// `off`, `observing`, `probing` or `on`.
    pub(crate) fn mode(&self) -> &str {
        self.0["mode"]["mode"].as_str().unwrap_or("unknown")
    }

    /// Why it is off, or nothing.
    pub(crate) fn reason(&self) -> &str {
        self.0["mode"]["reason"].as_str().unwrap_or("")
    }

    /// In words.
    pub(crate) fn words(&self) -> &str {
        self.0["words"].as_str().unwrap_or("")
    }

    /// Whether hedging is on or probing.
    pub(crate) fn is_on(&self) -> bool {
        self.mode() == "on"
    }

    /// A figure of the present window.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        self.0["figures"][name].as_f64()
    }

    /// The threshold, milliseconds.
    pub(crate) fn threshold_ms(&self) -> Option<f64> {
        self.figure("threshold_ms")
    }

    /// The replica that is named, if one is.
    pub(crate) fn named_replica(&self) -> Option<String> {
        self.0["replicas"].as_array()?.iter().find_map(|replica| {
            (!replica["named"].is_null())
                .then(|| replica["replica"].as_str().map(str::to_owned))
                .flatten()
        })
    }

    /// Agents that hold what is wanted, and agents it is for.
    pub(crate) fn acked(&self) -> (u64, u64) {
        let acked = &self.0["acked"];
        (
            acked["n"].as_u64().unwrap_or(0),
            acked["m"].as_u64().unwrap_or(0),
        )
    }

    /// Automatic changes since `from`: when, and whether hedging is on after it.
    pub(crate) fn changes_since(&self, from: Timestamp) -> Vec<(Timestamp, bool)> {
        let transitions = self.0["transitions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        transitions
            .iter()
            .filter_map(|transition| {
                let at = transition["at"].as_i64()?;
                let at = Timestamp::from_millisecond(at).ok()?;
                let on = transition["to"]["mode"].as_str()? == "on";
                (at >= from).then_some((at, on))
            })
            .collect()
    }
}
