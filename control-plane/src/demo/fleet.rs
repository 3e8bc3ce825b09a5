//! The client processes, and what they have said so far.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use super::line::{Course, Line};
use super::own_command;

/// Client processes.
pub(crate) const CLIENTS: usize = 3;

/// Running clients. Dropped, they end: their standard input closes, and they are killed.
#[derive(Debug)]
pub(crate) struct Fleet {
    children: Vec<Child>,
    /// All lines of each client, oldest first: one a second for a few minutes.
    lines: Arc<Mutex<Vec<Vec<Line>>>>,
}

/// A moment between two lines, for differences.
#[derive(Debug, Clone)]
pub(crate) struct Mark(Vec<usize>);

impl Fleet {
    /// Starts the processes.
    pub(crate) fn start(
        controller: &str,
        token: &SecretString,
        replicas: &[(String, SocketAddr)],
        rate: f64,
    ) -> anyhow::Result<Self> {
        let lines = Arc::new(Mutex::new(vec![Vec::new(); CLIENTS]));
        let mut children = Vec::with_capacity(CLIENTS);
        for client in 0..CLIENTS {
            let mut command = own_command(&["demo-client", "--controller", controller])?;
            command
                .args(["--client", &client.to_string(), "--rate", &rate.to_string()])
                .env("HEDGEROW_TOKEN", token.expose_secret())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true);
            for (name, address) in replicas {
                command.args(["--replica", &format!("{name}={address}")]);
            }
            let mut child = command.spawn().context("a client process did not start")?;
            let output = child
                .stdout
                .take()
                .context("a client process has no output")?;
            tokio::spawn(read_lines(
                client,
                BufReader::new(output),
                Arc::clone(&lines),
            ));
            children.push(child);
        }
        Ok(Self { children, lines })
    }

    /// Now.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.lines.lock().iter().map(Vec::len).collect())
    }

    /// What happened since `mark`, over all clients.
    pub(crate) fn since(&self, mark: &Mark) -> Course {
        self.between(mark, &self.mark())
    }

    /// What happened from one mark to another.
    pub(crate) fn between(&self, from: &Mark, to: &Mark) -> Course {
        let lines = self.lines.lock();
        let mut course = Course::default();
        for (client, lines) in lines.iter().enumerate() {
            let (Some(from), Some(to)) = (
                lines.get(from.0[client].saturating_sub(1)),
                lines.get(to.0[client].saturating_sub(1)),
            ) else {
                continue;
            };
            course.add(from, to);
        }
        course
    }

    /// Seconds since `mark` in which a client sent more hedges than B times the calls finished in
    /// it plus its bucket's cap: the bound of ALGORITHMS 2 for a single second, held by each agent
    /// for itself and therefore by the fleet.
    pub(crate) fn seconds_over_budget(&self, mark: &Mark) -> u64 {
        let lines = self.lines.lock();
        let mut over = 0;
        for (client, lines) in lines.iter().enumerate() {
            let first = mark.0[client].saturating_sub(1);
            for pair in lines.get(first..).unwrap_or_default().windows(2) {
                let Some(second) = pair[1].totals.since(&pair[0].totals) else {
                    continue;
                };
                // Values may change within the second: the larger of its two ends is in force.
                let budget = pair[0].budget.max(pair[1].budget);
                let cap = pair[0].cap.max(pair[1].cap);
                if second.hedged as f64 > budget * second.finished as f64 + cap {
                    over += 1;
                }
            }
        }
        over
    }

    /// Waits until every client has said something.
    pub(crate) async fn speaking(&self) -> anyhow::Result<()> {
        for _ in 0..300 {
            if self.lines.lock().iter().all(|lines| !lines.is_empty()) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::bail!("the client processes did not begin to speak within 30 s")
    }

    /// An error where a client process has ended: the demo's figures would be about fewer.
    pub(crate) fn all_alive(&mut self) -> anyhow::Result<()> {
        for (client, child) in self.children.iter_mut().enumerate() {
            if let Some(status) = child.try_wait()? {
                anyhow::bail!("client process {client} ended by itself: {status}");
            }
        }
        Ok(())
    }
}

async fn read_lines(
    client: usize,
    output: BufReader<tokio::process::ChildStdout>,
    lines: Arc<Mutex<Vec<Vec<Line>>>>,
) {
    let mut output = output.lines();
    while let Ok(Some(text)) = output.next_line().await {
        match serde_json::from_str::<Line>(&text) {
            Ok(line) => lines.lock()[client].push(line),
            Err(error) => tracing::error!(%error, client, "a client's line could not be read"),
        }
    }
}
