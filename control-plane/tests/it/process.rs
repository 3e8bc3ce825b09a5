//! The real binary, as a process that can be killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::running::SOON;

const FILE: &str = r#"
http = "127.0.0.1:0"
grpc = "127.0.0.1:0"
store = "hedgerow.db"

[log]
format = "json"

[[agent_token]]
service = "shop"
token = "shop-token-0123456789abcdef"
"#;

pub(crate) struct Process {
    child: Child,
    pub(crate) http: String,
    pub(crate) grpc: String,
    pub(crate) folder: Arc<TempDir>,
    lines: Receiver<String>,
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hedgerow"));
    // Nothing from outside decides what a test sees.
    for (name, _) in std::env::vars() {
        if name.starts_with("HEDGEROW_") || name.starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

impl Process {
    pub(crate) async fn start(more: &str) -> Self {
        Self::start_in(Arc::new(TempDir::new().unwrap()), more).await
    }

    /// Starts on the store in `folder`, and waits until it serves.
    pub(crate) async fn start_in(folder: Arc<TempDir>, more: &str) -> Self {
        let config = folder.path().join("hedgerow.toml");
        std::fs::write(&config, format!("{FILE}\n{more}")).unwrap();
        let mut child = command()
            .args(["serve", "--config"])
            .arg(&config)
            .spawn()
            .unwrap();
        let lines = follow(&mut child);
        let waiting =
            tokio::task::spawn_blocking(move || (line_with(&lines, "\"serving\""), lines));
        let (line, lines) = waiting.await.unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        let grpc = format!("http://{}", text("grpc"));
        Self {
            child,
            http: text("http"),
            grpc,
            folder,
            lines,
        }
    }

    /// Signal 9.
    pub(crate) fn kill(mut self) -> Arc<TempDir> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Arc::clone(&self.folder)
    }

    /// Asks it to leave; how long it took, and whether it ended well.
    pub(crate) async fn leave(mut self) -> (Duration, bool) {
        let asked = Instant::now();
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        let status = tokio::task::spawn_blocking(move || {
            let status = self.child.wait().unwrap();
            drop(self.lines);
            status
        });
        let status = status.await.unwrap();
        (asked.elapsed(), status.success())
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }
}

/// What a run that should not last says, and whether it failed.
pub(crate) fn refused(arguments: &[&str], folder: &Path) -> String {
    let output = command()
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(!output.status.success(), "it was expected to be refused");
    String::from_utf8(output.stderr).unwrap()
}

/// Reads standard error to its end, so that the process never waits for a reader.
fn follow(child: &mut Child) -> Receiver<String> {
    let (lines, reader) = std::sync::mpsc::channel();
    let errors = BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || {
        for line in errors.lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    reader
}

fn line_with(lines: &Receiver<String>, text: &str) -> String {
    let mut all = String::new();
    let asked = Instant::now();
    while asked.elapsed() < SOON {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) if line.contains(text) => return line,
            Ok(line) => {
                all.push_str(&line);
                all.push('\n');
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    panic!("no {text} in:\n{all}");
}
