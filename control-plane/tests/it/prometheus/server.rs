//! Debian's Prometheus as a process of the test, with the rules that are shipped.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::running::SOON;

/// What to do where its programs are missing.
pub(super) const INSTALL: &str = "the tests need Debian's package `prometheus`: `apt-get install prometheus`, or `.ci/test`, which does it";

pub(super) struct Server {
    child: Child,
    base: String,
    client: reqwest::Client,
    _folder: TempDir,
}

impl Server {
    /// Scrapes `targets`, by job, each second.
    pub(super) async fn start(targets: &[(&str, String)], deploy: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("prometheus.yml");
        let rules = deploy.join("prometheus/hedgerow.rules.yml");
        let rules = rules.canonicalize().unwrap();
        std::fs::write(&config, config_text(targets, &rules)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=warn")
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus: {error}; {INSTALL}"));
        let mut server = Self {
            child,
            base: format!("http://127.0.0.1:{port}"),
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            _folder: folder,
        };
        server.until_ready().await;
        server
    }

    async fn until_ready(&mut self) {
        let asked = Instant::now();
        let url = format!("{}/-/ready", self.base);
        while asked.elapsed() < SOON {
            assert_eq!(self.child.try_wait().unwrap(), None, "Prometheus ended");
            let answer = self.client.get(&url).send().await;
            if answer.is_ok_and(|it| it.status().is_success()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("Prometheus was not ready");
    }

    /// The `data` of an answer of its API.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let mut url = reqwest::Url::parse(&format!("{}{path}", self.base)).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let answer = self.client.get(url).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["status"], "success", "{query:?}: {answer}");
        answer["data"].clone()
    }

    /// Asks until there is an answer that is not empty.
    pub(super) async fn until_some(&self, query: &str) -> Value {
        let asked = Instant::now();
        while asked.elapsed() < SOON {
            let answer = self.get("/api/v1/query", &[("query", query)]).await;
            let found = answer["result"].as_array().unwrap();
            if !found.is_empty() {
                return answer["result"].clone();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("in vain: {query}");
    }

    pub(super) async fn stop(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// The example's, at a test's pace.
fn config_text(targets: &[(&str, String)], rules: &Path) -> String {
    let jobs = targets.iter().map(|(job, address)| {
        format!("  - job_name: {job}\n    static_configs:\n      - targets: [\"{address}\"]\n")
    });
    let jobs = jobs.collect::<Vec<_>>().concat();
    format!(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files:\n  - {}\nscrape_configs:\n{jobs}",
        rules.display()
    )
}
