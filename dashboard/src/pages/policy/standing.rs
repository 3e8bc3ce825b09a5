//! What stands for a scope now: which revision, for how many routes, and how many agents hold it.

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::policy::PolicyScope;

use super::covered::{Covered, Held, wider};
use super::rollout::Rollout;
use crate::format::Time;
use crate::pages::state::policy_address;

/// Agents named that do not hold it yet; further ones are told by number.
const BEHIND_SHOWN: usize = 20;

/// The head of the page, which changes by itself.
#[derive(Debug, Template)]
#[template(path = "parts/policy_standing.html")]
pub(crate) struct Standing {
    scope: String,
    in_force: Option<InForce>,
    /// What holds where there is no own policy.
    wider: Option<Wider>,
    pattern: bool,
    covers: usize,
    governs: usize,
    narrower: Vec<(String, String, usize)>,
    /// The share that has it so far, where it is put in force in steps.
    share: Option<String>,
    held: Held,
    more_behind: usize,
}

impl HtmlSafe for Standing {}

#[derive(Debug)]
struct InForce {
    revision: u64,
    since: Time,
}

/// Another policy, by name.
#[derive(Debug, Clone)]
pub(crate) struct Wider {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) revision: u64,
    pub(crate) intent: &'static str,
}

impl Wider {
    pub(crate) fn of(snapshot: &FleetSnapshot, scope: &PolicyScope) -> Option<Self> {
        let view = wider(snapshot, scope)?;
        Some(Self {
            name: view.policy.scope().to_string(),
            address: policy_address(view.policy.scope()),
            revision: view.revision.0,
            intent: view.policy.intent().as_str(),
        })
    }
}

impl Standing {
    pub(crate) fn new(snapshot: &FleetSnapshot, scope: &PolicyScope) -> Self {
        let covered = Covered::new(snapshot, scope);
        let view = snapshot.policies.get(scope);
        let share = Rollout::share(snapshot, scope);
        let mut held = match view {
            Some(view) if share.is_none() => {
                Held::new(snapshot, scope, view.revision, &covered.governed)
            }
            _ => Held::default(),
        };
        let more_behind = held.behind.len().saturating_sub(BEHIND_SHOWN);
        held.behind.truncate(BEHIND_SHOWN);
        Self {
            scope: scope.to_string(),
            in_force: view.map(|view| InForce {
                revision: view.revision.0,
                since: Time::near(view.since, snapshot.at),
            }),
            wider: Wider::of(snapshot, scope),
            pattern: scope.pattern().is_some(),
            covers: covered.routes.len(),
            governs: covered.governed.len(),
            narrower: covered
                .narrower
                .iter()
                .map(|(scope, routes)| (scope.to_string(), policy_address(scope), *routes))
                .collect(),
            share,
            held,
            more_behind,
        }
    }
}
