//! Replicas as addresses of HTTP servers.

use hedgerow_protocol::ids::ReplicaName;
use http::Uri;
use http::uri::{PathAndQuery, Scheme};

use crate::eligibility::Verdict;

/// What went wrong with one attempt of an HTTP client.
///
/// ```
/// use hedgerow_agent::integrations::address::AttemptError;
///
/// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// let error = AttemptError::Failed(refused);
/// assert_eq!(error.to_string(), "the request failed");
/// assert!(error.into_failed().is_some());
/// ```
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
    /// The request's URI has no path: nothing was sent.
    #[error("{asked} is no path: expected one that begins with /, as in /items/7")]
    Path {
        /// The URI as given.
        asked: Uri,
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
            Self::Address { .. } | Self::Path { .. } => None,
        }
    }
}

/// What an attempt without an answer means: another replica may do better, but for a request that
/// is at fault itself.
pub(crate) fn verdict_of<E>(error: &AttemptError<E>) -> Verdict {
    match error {
        AttemptError::Path { .. } => Verdict::Fatal,
        AttemptError::Address { .. } | AttemptError::Failed(_) => Verdict::Retryable,
    }
}

/// The same path at the replica: its scheme (`http` where it names none), its authority, and the
/// path of its own, if it has one, before the request's.
pub(crate) fn at_replica<E>(uri: &Uri, replica: &ReplicaName) -> Result<Uri, AttemptError<E>> {
    if uri.path_and_query().is_none() {
        // Only a host: whoever wrote `items` did not ask for `/`.
        return Err(AttemptError::Path { asked: uri.clone() });
    }
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
        assert!(join(&Uri::from_static("/"), "a:1:2").is_err());
    }

    #[test]
    fn a_uri_without_a_path_is_refused_and_no_other_replica_is_asked() {
        let replica = ReplicaName::new("b:81").unwrap();
        for (asked, sent) in [("items", false), ("/items", true), ("http://items", true)] {
            let at = at_replica::<()>(&asked.parse().unwrap(), &replica);
            assert_eq!(at.is_ok(), sent, "{asked}");
        }
        let error = at_replica::<()>(&Uri::from_static("items"), &replica).unwrap_err();
        assert_eq!(verdict_of(&error), Verdict::Fatal);
        assert_eq!(
            error.to_string(),
            "items is no path: expected one that begins with /, as in /items/7"
        );
        assert!("items/7".parse::<Uri>().is_err(), "refused by http itself");
    }
}
