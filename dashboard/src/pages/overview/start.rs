//! What the start page tells of this controller: where agents reach it.

use axum::http::{HeaderMap, Uri};

use crate::guard;
use crate::router::Settings;

/// For the snippet to paste.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// Agents' address of this controller, as whoever looks reaches it.
    pub(super) controller: String,
    /// Whether agents need its certificate authority.
    pub(super) tls: bool,
}

impl Start {
    /// By the name the page was asked for under, and the port agents are served on.
    pub(crate) fn new(settings: &Settings, headers: &HeaderMap, uri: &Uri) -> Self {
        let agents = settings.agents.unwrap_or_default();
        let host = guard::host(headers, uri).unwrap_or_default();
        let scheme = if agents.tls { "https" } else { "http" };
        Self {
            controller: format!("{scheme}://{}:{}", name_of(&host), agents.port),
            tls: agents.tls,
        }
    }
}

/// A host without its port. An address of the sixth version has colons within its brackets.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let sane = |b: u8| b.is_ascii_alphanumeric() || b"-._[]:".contains(&b);
    if name.is_empty() || !name.bytes().all(sane) {
        "127.0.0.1"
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u13_the_snippet_names_the_host_that_was_asked_for() {
        for (host, name) in [
            ("hedgerow.test", "hedgerow.test"),
            ("hedgerow.test:7410", "hedgerow.test"),
            ("[::1]:7410", "[::1]"),
            ("[::1]", "[::1]"),
            ("", "127.0.0.1"),
            ("<script>", "127.0.0.1"),
        ] {
            assert_eq!(name_of(host), name, "{host}");
        }
    }
}
