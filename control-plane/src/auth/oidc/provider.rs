//! The provider, over the network: its discovery document, its keys, and the exchange of a code.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use jsonwebtoken::decode_header;
use jsonwebtoken::jwk::Jwk;
use reqwest::{Client, RequestBuilder, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::claims::Claims;
use super::signed::{ALGORITHMS, Unverified, signed};
use super::{Oidc, SignOnError};
use crate::outward::{self, AddressError, Outside};

/// How long the provider may take for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Longest answer read; the largest honest ones, sets of keys, are a few KB.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How long a discovery document is good. Where a new one cannot be had, the old one serves on.
const DOCUMENT_LASTS: Duration = Duration::from_hours(1);
/// How long a provider that did not answer is not asked again: those who wait behind one who asks
/// get the same answer.
const FAILURE_LASTS: Duration = Duration::from_secs(5);
/// How often keys are fetched anew for a token by an unknown key: it may be a new one, or invented.
const KEYS_EVERY: Duration = Duration::from_secs(30);
/// Longest code and ID token looked at.
const CODE_LEN_MAX: usize = 4096;
/// See [`CODE_LEN_MAX`].
const TOKEN_LEN_MAX: usize = 64 * 1024;

/// Why an address of a provider is not connected to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressProblem {
    /// Not an address, or with parts that none of these has.
    #[error(
        "expected an address such as https://id.example.org, without a name, password or fragment"
    )]
    Url,
    /// Without TLS.
    #[error("expected https://; http:// only with `allow_private = true`")]
    Scheme,
    /// Another port.
    #[error("expected port 80, 443 or one from 1024 on")]
    Port,
    /// Private.
    #[error("it is private or loopback: expected a public one, or `allow_private = true`")]
    Private,
    /// Never one of a provider.
    #[error("it is link-local, multicast or reserved, which is never connected to")]
    Reserved,
}

/// Checks an address as far as it tells by itself; names are checked when they are resolved.
pub(super) fn check(text: &str, allow_private: bool) -> Result<Url, AddressProblem> {
    let url = outward::check(text, allow_private).map_err(|outside| match outside {
        Outside::Url | Outside::Scheme | Outside::Credentials => AddressProblem::Url,
        Outside::Port => AddressProblem::Port,
        Outside::Address(AddressError::Private) => AddressProblem::Private,
        Outside::Address(_) => AddressProblem::Reserved,
    })?;
    if url.fragment().is_some() {
        return Err(AddressProblem::Url);
    }
    if url.scheme() == "http" && !allow_private {
        return Err(AddressProblem::Scheme);
    }
    Ok(url)
}

/// The discovery document, checked.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) authorization_endpoint: Url,
    token_endpoint: Url,
    jwks_uri: Url,
    /// Whether the client's secret goes into the form; otherwise into a header.
    secret_in_form: bool,
}

/// As it is sent.
#[derive(Debug, Deserialize)]
struct RawDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct RawKeys {
    keys: Vec<serde_json::Value>,
}

/// Not to be printed.
#[derive(Deserialize)]
struct RawTokens {
    id_token: String,
}

#[derive(Debug, Deserialize)]
struct RawRefusal {
    error: String,
}

#[derive(Debug, Default)]
struct Cached {
    document: Option<(Arc<Document>, Instant)>,
    keys: Option<(Arc<Vec<Jwk>>, Instant)>,
    /// When keys were last fetched for a token that none of them had signed.
    keys_anew: Option<Instant>,
    failed: Option<(SignOnError, Instant)>,
}

/// A provider.
#[derive(Debug)]
pub(super) struct Provider {
    client: Client,
    issuer: String,
    allow_private: bool,
    cached: Mutex<Cached>,
}

impl Provider {
    pub(super) fn new(settings: &Oidc) -> Result<Self, reqwest::Error> {
        let allow_private = settings.allow_private;
        let client = outward::client(allow_private)
            .timeout(ANSWERS_WITHIN)
            .build()?;
        Ok(Self {
            client,
            issuer: settings.issuer.clone(),
            allow_private,
            cached: Mutex::default(),
        })
    }

    /// The discovery document; asked for once for all who want it.
    pub(super) async fn document(&self) -> Result<Arc<Document>, SignOnError> {
        let mut cached = self.cached.lock().await;
        let old = match &cached.document {
            Some((document, at)) if at.elapsed() < DOCUMENT_LASTS => return Ok(document.clone()),
            old => old.as_ref().map(|(document, _)| document.clone()),
        };
        if let Some((error, at)) = &cached.failed
            && at.elapsed() < FAILURE_LASTS
        {
            return old.ok_or_else(|| error.clone());
        }
        match self.discover().await {
            Ok(document) => {
                let document = Arc::new(document);
                cached.document = Some((document.clone(), Instant::now()));
                cached.failed = None;
                Ok(document)
            }
            Err(error) => {
                tracing::warn!(%error, "the discovery document of single sign-on was not read");
                cached.failed = Some((error.clone(), Instant::now()));
                old.ok_or(error)
            }
        }
    }

    async fn discover(&self) -> Result<Document, SignOnError> {
        let base = self.issuer.trim_end_matches('/');
        let url = self.allowed(
            &format!("{base}/.well-known/openid-configuration"),
            "discovery document",
        )?;
        let raw: RawDocument = self
            .json(self.client.get(url), "discovery document")
            .await?;
        if raw.issuer != self.issuer {
            return Err(SignOnError::Provider(
                "the provider's discovery document is of another issuer: expected the one in the setting oidc.issuer, letter by letter".into(),
            ));
        }
        let methods = raw.token_endpoint_auth_methods_supported;
        Ok(Document {
            // Not connected to from here, but what a browser is sent to.
            authorization_endpoint: self
                .allowed(&raw.authorization_endpoint, "authorization endpoint")?,
            token_endpoint: self.allowed(&raw.token_endpoint, "token endpoint")?,
            jwks_uri: self.allowed(&raw.jwks_uri, "keys")?,
            secret_in_form: methods.is_some_and(|them| {
                let has = |method: &str| them.iter().any(|it| it == method);
                has("client_secret_post") && !has("client_secret_basic")
            }),
        })
    }

    fn allowed(&self, text: &str, what: &str) -> Result<Url, SignOnError> {
        check(text, self.allow_private).map_err(|problem| {
            SignOnError::Provider(format!("the address of the provider's {what}: {problem}"))
        })
    }

    /// Hands a code in for an ID token.
    pub(super) async fn exchange(
        &self,
        settings: &Oidc,
        code: &str,
        back: &str,
        verifier: &SecretString,
    ) -> Result<SecretString, SignOnError> {
        if code.is_empty() || code.len() > CODE_LEN_MAX {
            return Err(SignOnError::Provider("the provider sent no code".into()));
        }
        let document = self.document().await?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", back),
            ("client_id", &settings.client_id),
            ("code_verifier", verifier.expose_secret()),
        ];
        let mut request = self.client.post(document.token_endpoint.clone());
        if let Some(secret) = &settings.client_secret {
            if document.secret_in_form {
                form.push(("client_secret", secret.expose_secret()));
            } else {
                request = request.header(AUTHORIZATION, basic(&settings.client_id, secret));
            }
        }
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(encoded(&form));
        let tokens: RawTokens = self.json(request, "token endpoint").await?;
        Ok(tokens.id_token.into())
    }

    /// What a token says, if it is signed by a key of the provider's.
    pub(super) async fn verified(&self, token: &SecretString) -> Result<Claims, SignOnError> {
        let token = token.expose_secret();
        if token.len() > TOKEN_LEN_MAX {
            return Err(SignOnError::Token("it is too long"));
        }
        // `none` is no algorithm to this library, and fails here.
        let header = decode_header(token)
            .map_err(|_| SignOnError::Token("it does not begin as one does"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(SignOnError::Token(
                "its algorithm is none of RS256, ES256 and EdDSA",
            ));
        }
        if header.crit.is_some() {
            return Err(SignOnError::Token("it demands what is not understood here"));
        }
        let document = self.document().await?;
        let keys = self.keys(&document, false).await?;
        match signed(token, &header, &keys) {
            // Perhaps by a key that is newer than those that are known.
            Err(Unverified::Key(problem)) => {
                let anew = self.keys(&document, true).await?;
                if Arc::ptr_eq(&keys, &anew) {
                    return Err(SignOnError::Token(problem));
                }
                signed(token, &header, &anew).map_err(SignOnError::from)
            }
            other => other.map_err(SignOnError::from),
        }
    }

    /// The provider's keys; `anew`: fetched for a token that none of them has signed, which is done
    /// now and then only, since such a token may be invented.
    async fn keys(&self, document: &Document, anew: bool) -> Result<Arc<Vec<Jwk>>, SignOnError> {
        let mut cached = self.cached.lock().await;
        if let Some((keys, at)) = &cached.keys {
            let tried = cached.keys_anew.is_some_and(|at| at.elapsed() < KEYS_EVERY);
            if if anew {
                tried
            } else {
                at.elapsed() < DOCUMENT_LASTS
            } {
                return Ok(keys.clone());
            }
        }
        if anew {
            cached.keys_anew = Some(Instant::now());
        }
        let raw: RawKeys = self
            .json(self.client.get(document.jwks_uri.clone()), "keys")
            .await?;
        // Keys of kinds that are not known here may be among them.
        let keys = raw
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value(key).ok())
            .collect();
        let keys = Arc::new(keys);
        cached.keys = Some((Arc::clone(&keys), Instant::now()));
        Ok(keys)
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        request: RequestBuilder,
        what: &str,
    ) -> Result<T, SignOnError> {
        let (status, body) = self.answer(request, what).await?;
        if status.is_success() {
            // The parser's own words would quote what it found, which may be a token.
            return serde_json::from_slice(&body).map_err(|_| {
                SignOnError::Provider(format!("the provider's {what} did not read as expected"))
            });
        }
        let refusal = serde_json::from_slice::<RawRefusal>(&body).ok();
        let code = refusal
            .filter(|it| is_error_code(&it.error))
            .map_or_else(String::new, |it| format!(" ({})", it.error));
        Err(SignOnError::Provider(format!(
            "the provider's {what} answered {}{code}",
            status.as_u16()
        )))
    }

    async fn answer(
        &self,
        request: RequestBuilder,
        what: &str,
    ) -> Result<(StatusCode, Vec<u8>), SignOnError> {
        let failed = |error: &reqwest::Error| {
            SignOnError::Provider(format!("the provider's {what} {}", named(error)))
        };
        let request = request.header(ACCEPT, "application/json");
        let mut answer = request.send().await.map_err(|error| failed(&error))?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(SignOnError::Provider(format!(
                    "the provider's {what} answered with more than {ANSWER_BYTES_MAX} bytes"
                )));
            }
        }
        Ok((answer.status(), body))
    }
}

/// An error code of the standard: letters and underscores.
fn is_error_code(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// Name and secret as the standard wants them in a header: each encoded as in a form.
fn basic(client_id: &str, secret: &SecretString) -> HeaderValue {
    let pair = format!("{}:{}", part(client_id), part(secret.expose_secret()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
        .expect("base64 can stand in a header");
    value.set_sensitive(true);
    value
}

fn encoded(form: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = form
        .iter()
        .map(|(name, value)| format!("{}={}", part(name), part(value)))
        .collect();
    pairs.join("&")
}

/// One part of a form's body.
fn part(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a String cannot fail");
        }
        out
    })
}

/// The client's own words name the address; these do not.
fn named(error: &reqwest::Error) -> String {
    match outward::cause(error, outward::refused) {
        Some(AddressError::Private) => {
            return "has a private or loopback address: expected a public one, or `allow_private = true` under [oidc]".into();
        }
        Some(AddressError::Reserved) => {
            return "has a link-local, multicast or reserved address, which is never connected to"
                .into();
        }
        Some(AddressError::None) => return "has a name without an address".into(),
        None => {}
    }
    if error.is_timeout() {
        format!("did not answer within {} s", ANSWERS_WITHIN.as_secs())
    } else if error.is_connect() {
        "could not be connected to".into()
    } else {
        "ended the connection without an answer".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s08_a_providers_addresses_are_checked_as_receivers_are() {
        use AddressProblem::{Port, Private, Reserved, Scheme, Url};
        for (url, strict, lenient) in [
            ("https://id.example.org/realm", Ok(()), Ok(())),
            ("http://id.example.org", Err(Scheme), Ok(())),
            ("ftp://id.example.org", Err(Url), Err(Url)),
            ("file:///etc/passwd", Err(Url), Err(Url)),
            ("id.example.org", Err(Url), Err(Url)),
            ("https://ada:pw@id.example.org", Err(Url), Err(Url)),
            ("https://id.example.org:25", Err(Port), Err(Port)),
            ("https://127.0.0.1:9400", Err(Private), Ok(())),
            ("https://0x7f.1:9400", Err(Private), Ok(())),
            ("https://[::ffff:10.0.0.1]", Err(Private), Ok(())),
            ("https://169.254.169.254", Err(Reserved), Err(Reserved)),
        ] {
            assert_eq!(check(url, false).map(|_| ()), strict, "{url}");
            assert_eq!(
                check(url, true).map(|_| ()),
                lenient,
                "{url}, private allowed"
            );
        }
    }

    #[test]
    fn a_form_and_a_header_carry_any_secret() {
        assert_eq!(
            encoded(&[("a b", "c&d=é"), ("e", "~")]),
            "a%20b=c%26d%3D%C3%A9&e=~"
        );
        let value = basic("id:1", &"s%".into());
        let decoded = STANDARD.decode(&value.as_bytes()[6..]).unwrap();
        assert_eq!(decoded, b"id%3A1:s%25");
        assert!(value.is_sensitive());
    }
}
