//! Connections to where the settings say, and nowhere else (S8): receivers of alerts, the provider of
//! single sign-on.
//!
//! An address is checked as far as it tells by itself when it is read, and what its name resolves to in
//! the resolver that the connection uses. No proxy of the environment, no redirect, no connection that
//! was checked long ago.

pub(crate) mod address;

use std::error::Error;
use std::net::IpAddr;

use reqwest::{Client, ClientBuilder, Url, redirect};

pub use address::AddressError;
use address::CheckedResolver;

/// Ports below 1024 that web servers listen on: an address cannot be used to talk to a mail server or
/// the like.
const LOW_PORTS: [u16; 2] = [80, 443];

/// Why an address is not connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Not an address of a host.
    Url,
    /// Neither http nor https.
    Scheme,
    /// A name or a password before the host.
    Credentials,
    /// A port that no web server listens on.
    Port,
    /// A literal address in a range that is not allowed.
    Address(AddressError),
}

/// Checks an address as far as it tells by itself.
pub(crate) fn check(text: &str, allow_private: bool) -> Result<Url, Outside> {
    let url = Url::parse(text.trim()).map_err(|_| Outside::Url)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Outside::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Outside::Credentials);
    }
    let port = url.port_or_known_default().ok_or(Outside::Port)?;
    if port < 1024 && !LOW_PORTS.contains(&port) {
        return Err(Outside::Port);
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(Outside::Url);
    }
    literal(&url, allow_private).map_err(Outside::Address)?;
    Ok(url)
}

/// An address in figures never reaches the resolver that checks names. `Url` has already made one form
/// out of 0x7f.1, 2130706433 and the like.
pub(crate) fn literal(url: &Url, allow_private: bool) -> Result<(), AddressError> {
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address::check(address, allow_private),
        Err(_) => Ok(()),
    }
}

/// What such connections are made by.
pub(crate) fn client(allow_private: bool) -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .dns_resolver(CheckedResolver { allow_private })
        .pool_max_idle_per_host(0)
        .http1_only()
        .user_agent(concat!("hedgerow/", env!("CARGO_PKG_VERSION")))
}

/// The first cause of a failed connection that `is` finds.
pub(crate) fn cause<T>(
    error: &reqwest::Error,
    is: impl Fn(&(dyn Error + 'static)) -> Option<T>,
) -> Option<T> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = is(error) {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The address that a name resolved to and that was not connected to.
pub(crate) fn refused(error: &(dyn Error + 'static)) -> Option<AddressError> {
    error.downcast_ref::<AddressError>().copied()
}
