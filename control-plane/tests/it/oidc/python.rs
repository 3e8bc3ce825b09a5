//! A real provider, of another make than ours: a process of `oidc-provider-mock`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use reqwest::{Response, Url};
use serde_json::Value;

use super::browser::field;
use crate::standing::eventually;

pub(super) struct Provider {
    process: Child,
    pub(super) port: u16,
    client: reqwest::Client,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Provider {
    pub(super) async fn start(more: &[&str]) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        Self::start_at(port, more).await
    }

    /// On a port: each process has keys of its own.
    pub(super) async fn start_at(port: u16, more: &[&str]) -> Self {
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/py/bin/python");
        let process = Command::new(&python)
            .args(["-W", "ignore", "-m", "oidc_provider_mock", "--port"])
            .arg(port.to_string())
            .args(more)
            .env("AUTHLIB_INSECURE_TRANSPORT", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}: make it (python3 -m venv target/py && target/py/bin/pip install \
                     -r .ci/python-requirements.txt), as `.ci/test` does",
                    python.display()
                )
            });
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        let provider = Self {
            process,
            port,
            client,
        };
        let document = format!("{}/.well-known/openid-configuration", provider.issuer());
        eventually("the provider answers", async || {
            let answer = provider.client.get(&document).send().await;
            answer.is_ok_and(|it| it.status().is_success())
        })
        .await;
        provider
    }

    pub(super) fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes somebody, or gives them other claims.
    pub(super) async fn person(&self, subject: &str, claims: &Value) {
        let address = format!("{}/users/{subject}", self.issuer());
        let answer = self.client.put(address).json(claims).send().await.unwrap();
        assert_eq!(answer.status(), 204);
    }

    /// Somebody says yes on the provider's page: the code and the state that go back.
    pub(super) async fn agree(&self, address: &Url, subject: &str) -> (String, String) {
        let back = self.answer(address, &format!("sub={subject}")).await;
        let location = back.headers()["location"].to_str().unwrap();
        let back: Url = location.parse().unwrap();
        (field(&back, "code"), field(&back, "state"))
    }

    /// Sends the form of the provider's page.
    pub(super) async fn answer(&self, address: &Url, form: &str) -> Response {
        let request = self
            .client
            .post(address.clone())
            .header("content-type", "application/x-www-form-urlencoded");
        let answer = request.body(form.to_owned()).send().await.unwrap();
        assert_eq!(answer.status(), 302);
        answer
    }
}

/// The same address with another value in a field of its query.
pub(super) fn with(address: &Url, name: &str, value: &str) -> Url {
    let pairs: Vec<(String, String)> = address
        .query_pairs()
        .map(|(key, old)| {
            let new = if key == name { value.into() } else { old };
            (key.into_owned(), new.into_owned())
        })
        .collect();
    let mut changed = address.clone();
    changed.query_pairs_mut().clear().extend_pairs(pairs);
    changed
}
