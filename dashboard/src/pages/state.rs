//! Shared by several pages: a mode's badge, and addresses of routes.

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::view::RouteView;
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, RouteKey};
use hedgerow_protocol::policy::PolicyScope;

use crate::format::url_part;

/// A mode as a shape, a word and a colour: never by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Template)]
#[template(
    ext = "html",
    source = r#"<span class="badge b-{{ class }}"><svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d="{{ shape }}"/></svg>{{ word }}</span>"#
)]
pub(crate) struct Badge {
    class: &'static str,
    word: &'static str,
    shape: &'static str,
}

impl HtmlSafe for Badge {}

const FULL: &str = "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1Z";
const RING: &str =
    "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1Zm0 1.8a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4Z";
const HALF: &str = "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1Zm0 1.8v6.4a3.2 3.2 0 0 1 0-6.4Z";
const SQUARE: &str = "M1.5 1.5h9v9h-9z";
const CROSS: &str =
    "M2.6 1.2 6 4.6l3.4-3.4 1.4 1.4L7.4 6l3.4 3.4-1.4 1.4L6 7.4l-3.4 3.4-1.4-1.4L4.6 6 1.2 2.6z";
const DASH: &str = "M1 4.8h10v2.4H1z";

impl Badge {
    /// For a mode.
    pub(crate) fn mode(mode: Mode) -> Self {
        match mode {
            Mode::On => Self {
                class: "on",
                word: "on",
                shape: FULL,
            },
            Mode::Observing => Self {
                class: "observing",
                word: "observing",
                shape: RING,
            },
            Mode::Probing(_) => Self {
                class: "probing",
                word: "probing",
                shape: HALF,
            },
            Mode::Off(OffReason::Policy) => Self {
                class: "quiet",
                word: "off",
                shape: DASH,
            },
            Mode::Off(OffReason::KillSwitch) => Self {
                class: "off",
                word: "off",
                shape: CROSS,
            },
            Mode::Off(_) => Self {
                class: "off",
                word: "off",
                shape: SQUARE,
            },
        }
    }

    /// For a route: one that is on, but to no effect, says so.
    pub(crate) fn route(view: &RouteView) -> Self {
        if view.mode == Mode::On && view.words.starts_with("no effect") {
            return Self {
                class: "quiet",
                word: "no effect",
                shape: DASH,
            };
        }
        Self::mode(view.mode)
    }

    /// The word it shows.
    pub(crate) const fn word(self) -> &'static str {
        self.word
    }

    /// With words of its own.
    pub(crate) const fn new(class: &'static str, word: &'static str) -> Self {
        let shape = match class.as_bytes() {
            b"on" => FULL,
            b"probing" => HALF,
            b"off" => SQUARE,
            b"observing" => RING,
            _ => DASH,
        };
        Self { class, word, shape }
    }
}

/// A route's words without the mode they begin with, where the badge already says it.
pub(crate) fn reason_words(view: &RouteView) -> &str {
    let words = view.words.as_str();
    ["off: ", "on: ", "observing: ", "probing: ", "no effect: "]
        .iter()
        .find_map(|prefix| words.strip_prefix(prefix))
        .unwrap_or(words)
}

/// A route's page.
pub(crate) fn route_address(route: &RouteKey) -> String {
    let dependency = url_part(route.dependency.as_str());
    let operation = url_part(route.operation.as_str());
    format!("/dependencies/{dependency}/{operation}")
}

/// The form of a policy.
pub(crate) fn policy_address(scope: &PolicyScope) -> String {
    format!("/policies/{}", url_part(&scope.to_string()))
}

/// The kill switch's page for one dependency.
pub(crate) fn kill_address(dependency: &DependencyName) -> String {
    format!(
        "/kill?scope=dependency&dependency={}",
        url_part(dependency.as_str())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_an_address_of_its_own() {
        let address = |d, o| route_address(&RouteKey::new(d, o).unwrap());
        assert_eq!(address("catalog", "get"), "/dependencies/catalog/get");
        assert_eq!(
            address("hedgerow.v1.Fleet/Attach", "a:b@c"),
            "/dependencies/hedgerow.v1.Fleet%2FAttach/a%3Ab%40c"
        );
    }
}
