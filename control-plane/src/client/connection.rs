//! Where the controller is, and with what one comes in.

use std::path::{Path, PathBuf};

use reqwest::{Certificate, Url};
use secrecy::SecretString;

use super::{ANSWER_WITHIN, Client, ClientError};

/// Where a controller is looked for, where nothing else is said.
pub const CONNECTION_DEFAULT: &str = "http://127.0.0.1:7410";

/// How to reach a controller.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Its address, as people reach the dashboard by.
    pub url: String,
    /// An API token; None: only what needs none is answered.
    pub token: Option<SecretString>,
    /// A file of certificates, PEM: the authorities that its certificate may come from, in the place
    /// of the system's.
    pub authority: Option<PathBuf>,
}

impl Connection {
    /// A client; nothing is sent yet.
    pub fn client(self) -> Result<Client, ClientError> {
        let base = base(&self.url)?;
        let mut builder = reqwest::Client::builder()
            .timeout(ANSWER_WITHIN)
            .user_agent(concat!("hedgerow/", env!("CARGO_PKG_VERSION")))
            // A token is for the address that was named, and no other.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        if let Some(path) = &self.authority {
            builder = builder.tls_certs_only(certificates(path)?);
        }
        let http = builder.build().map_err(|error| ClientError::Address {
            given: self.url.clone(),
            problem: error.to_string(),
        })?;
        Ok(Client {
            http,
            base,
            token: self.token,
        })
    }
}

/// The address, ending in a slash: what is joined to it comes behind its path.
fn base(given: &str) -> Result<Url, ClientError> {
    let refused = |problem: String| ClientError::Address {
        given: given.to_owned(),
        problem,
    };
    let mut url = Url::parse(given.trim()).map_err(|e| refused(e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(refused("it is none of http or https".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(
            "it has a name or a password in it, which would be seen; a token goes in a file".into(),
        ));
    }
    url.set_query(None);
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// Whether what is sent there stays on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, ClientError> {
    let refused = |problem: String| ClientError::Authority {
        path: path.to_owned(),
        problem,
    };
    let pem = std::fs::read(path).map_err(|e| refused(e.to_string()))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|e| refused(e.to_string()))?;
    if certificates.is_empty() {
        return Err(refused("it holds no BEGIN CERTIFICATE".into()));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (given, expected) in [
            ("http://127.0.0.1:7410", "http://127.0.0.1:7410/"),
            (
                " https://h.example/hedgerow ",
                "https://h.example/hedgerow/",
            ),
            ("https://h.example/?a=b#c", "https://h.example/"),
        ] {
            assert_eq!(base(given).unwrap().as_str(), expected);
        }
        for (given, said) in [
            ("127.0.0.1:7410", "expected an address such as"),
            ("ftp://h.example", "none of http or https"),
            ("https://ada:secret@h.example", "a name or a password"),
        ] {
            let error = base(given).unwrap_err().to_string();
            assert!(error.contains(said), "{given}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn loopback_is_known_by_name_and_number() {
        for (url, is) in [
            ("http://localhost:1", true),
            ("http://127.0.0.2", true),
            ("http://[::1]:7410", true),
            ("http://10.0.0.1", false),
            ("https://localhost.example", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), is, "{url}");
        }
    }
}
