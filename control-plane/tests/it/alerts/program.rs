//! Real servers, started for a test and ended with it.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use crate::standing::eventually;

/// Ends its process with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Debian's Alertmanager.
pub(crate) struct Alertmanager {
    pub(crate) address: SocketAddr,
    client: reqwest::Client,
    _process: Process,
    _folder: TempDir,
}

impl Alertmanager {
    /// Tells `hook` of each alert by itself, at once.
    pub(crate) async fn start(hook: SocketAddr) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("alertmanager.yml");
        std::fs::write(
            &config,
            format!(
                "route:\n  receiver: hook\n  group_by: ['...']\n  group_wait: 0s\n  \
                 group_interval: 1s\n  repeat_interval: 24h\nreceivers:\n- name: hook\n  \
                 webhook_configs:\n  - url: http://{hook}/\n    send_resolved: true\n"
            ),
        )
        .unwrap();
        let process = Command::new(alertmanager())
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.path={}", folder.path().display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let started = Self {
            address,
            client,
            _process: Process(process),
            _folder: folder,
        };
        eventually("Alertmanager is ready", async || {
            let ready = started.client.get(format!("http://{address}/-/ready"));
            ready.send().await.is_ok_and(|it| it.status() == 200)
        })
        .await;
        started
    }

    /// Alerts that it holds for firing.
    pub(crate) async fn firing(&self) -> Vec<Value> {
        let url = format!("http://{}/api/v2/alerts?active=true", self.address);
        let answer = self.client.get(url).send().await.unwrap();
        answer.json::<Vec<Value>>().await.unwrap()
    }
}

fn alertmanager() -> PathBuf {
    let name = "prometheus-alertmanager";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/bin")]);
    let mut found = folders.map(|folder| folder.join(name));
    found.find(|it| it.is_file()).unwrap_or_else(|| {
        panic!("there is no {name} here: install it (apt-get install {name}; `.ci/test` does)")
    })
}

/// A mail server in Python.
pub(crate) struct Mailbox {
    pub(crate) port: u16,
    letters: Arc<Mutex<Vec<Value>>>,
    _process: Process,
}

impl Mailbox {
    /// `arguments`: as `smtp_sink.py` describes them.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("../target/py/bin/python");
        let started = Command::new(&python)
            .arg(root.join("tests/it/alerts/smtp_sink.py"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn();
        let mut process = Process(started.unwrap_or_else(|error| {
            panic!(
                "{}: {error}: make it (python3 -m venv target/py && target/py/bin/pip install \
                 -r .ci/python-requirements.txt; `.ci/test` does)",
                python.display()
            )
        }));
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap_or_else(|| {
            panic!(
                "the mail server did not start: is aiosmtpd in target/py? `.ci/test` installs it"
            )
        });
        let first: Value = serde_json::from_str(&first.unwrap()).unwrap();
        let letters = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&letters);
        // Ends with the process.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self {
            port: u16::try_from(first["port"].as_u64().unwrap()).unwrap(),
            letters,
            _process: process,
        }
    }

    pub(crate) fn letters(&self) -> Vec<Value> {
        self.letters.lock().clone()
    }

    /// Waits for so many letters, and a while for more than that.
    pub(crate) async fn exactly(&self, count: usize) -> Vec<Value> {
        eventually("the letters came", async || self.letters().len() >= count).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let letters = self.letters();
        assert_eq!(letters.len(), count, "{letters:#?}");
        letters
    }
}
