//! Replicas as addresses of HTTP servers.

use hedgerow_protocol::ids::ReplicaName;
use http::Uri;
use http::uri::{PathAndQuery, Scheme};

/// What went wrong with one attempt of an HTTP client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptError<E> {
    /// The replica's name is no address.
    #[error("replica {replica} is no address: expected host:port, http://... or https://...")]
    Address {
        /// The replica.
        replica: ReplicaName,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The client's own error, word for word.
    #[error("the request failed")]
    Failed(#[source] E),
}

impl<E> AttemptError<E> {
    /// The client's own error, where it is one.
    pub fn into_failed(self) -> Option<E> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Address { .. } => None,
        }
    }
}

/// The same path at the replica: its scheme (`http` where it names none), its authority, and the
/// path of its own, if it has one, before the request's.
pub(crate) fn at_replica<E>(uri: &Uri, replica: &ReplicaName) -> Result<Uri, AttemptError<E>> {
    join(uri, replica.as_str()).map_err(|error| no_address(replica, error))
}

/// The replica's name is none.
pub(crate) fn no_address<E>(
    replica: &ReplicaName,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> AttemptError<E> {
    AttemptError::Address {
        replica: replica.clone(),
        source: error.into(),
    }
}

fn join(uri: &Uri, replica: &str) -> Result<Uri, http::Error> {
    let base = if replica.contains("://") {
        replica.parse::<Uri>()?
    } else {
        format!("http://{replica}").parse::<Uri>()?
    };
    let base = base.into_parts();
    let asked = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let before = base.path_and_query.as_ref().map_or("", |path| path.path());
    let path = format!("{}{asked}", before.trim_end_matches('/'));
    let mut at = Uri::builder()
        .scheme(base.scheme.unwrap_or(Scheme::HTTP))
        .path_and_query(path);
    if let Some(authority) = base.authority {
        at = at.authority(authority);
    }
    at.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_to_the_replica_with_its_path_and_query() {
        for (asked, replica, expected) in [
            (
                "/item/7?a=b",
                "10.0.0.1:80",
                "http://10.0.0.1:80/item/7?a=b",
            ),
            ("http://catalog/item", "b:81", "http://b:81/item"),
            ("https://catalog/", "https://b:443", "https://b:443/"),
            ("/item", "http://b:81/v2/", "http://b:81/v2/item"),
        ] {
            let uri: Uri = asked.parse().unwrap();
            assert_eq!(join(&uri, replica).unwrap().to_string(), expected);
        }
        assert!(join(&Uri::from_static("/"), "a@b@c:").is_err());
    }
}
