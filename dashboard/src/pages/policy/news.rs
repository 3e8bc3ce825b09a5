//! Whether an open page is still of what is in force.

use askama::Template;
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::policy::PolicyScope;

use crate::pages::state::policy_address;

/// That the page shows an older state than there is.
#[derive(Debug, Clone, Template)]
#[template(
    ext = "html",
    source = r#"{% if let Some(words) = words %}<p class="note-box" role="status">{{ words }} <a href="{{ address }}">Look at it</a>; what is typed here is not saved over it unseen.</p>{% endif %}"#
)]
pub(super) struct News {
    words: Option<String>,
    address: String,
}

impl askama::filters::HtmlSafe for News {}

impl News {
    /// `seen`: what [`seen`] was as the page was made.
    pub(super) fn new(snapshot: &FleetSnapshot, scope: &PolicyScope, before: &str) -> Self {
        let now = snapshot.policies.get(scope).map(|it| it.revision.0);
        let differs = !before.is_empty() && seen(snapshot, scope) != before;
        Self {
            words: differs.then(|| {
                now.map_or_else(
                    || "The policy was taken away since this page was opened.".to_owned(),
                    |now| format!("Revision {now} was saved since this page was opened."),
                )
            }),
            address: policy_address(scope),
        }
    }
}

/// Which revision a page is of, as its stream's address has it.
pub(super) fn seen(snapshot: &FleetSnapshot, scope: &PolicyScope) -> String {
    let revision = snapshot.policies.get(scope).map(|it| it.revision.0);
    revision.unwrap_or_default().to_string()
}
