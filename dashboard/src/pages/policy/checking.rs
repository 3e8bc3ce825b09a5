//! What is typed, beside how things are: which routes it is for, and what it is compared with.

use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::{Policy, PolicyScope};

use super::covered::{Covered, wider};
use super::diff::{Change, changes};
use super::draft::Typed;
use super::fields::Wide;
use super::standing::Wider;

/// Routes that may be chosen for the curve; the busiest is chosen where nobody did.
const ROUTES_OFFERED: usize = 300;

/// The parts that need no waiting for.
pub(super) struct Checking<'a> {
    pub(super) snapshot: &'a FleetSnapshot,
    pub(super) scope: &'a PolicyScope,
    pub(super) covered: Covered<'a>,
    /// What the form is compared with.
    pub(super) base: Policy,
    pub(super) route: Option<RouteKey>,
}

impl<'a> Checking<'a> {
    pub(super) fn new(snapshot: &'a FleetSnapshot, scope: &'a PolicyScope, typed: &Typed) -> Self {
        let covered = Covered::new(snapshot, scope);
        let mut routes = covered.routes.iter().map(|it| &it.route);
        let chosen = routes.find(|it| it.to_string() == typed.route);
        let route = chosen.or_else(|| covered.busiest()).cloned();
        Self {
            base: base_policy(snapshot, scope),
            snapshot,
            scope,
            covered,
            route,
        }
    }

    pub(super) fn wide(&self) -> Option<Wide<'a>> {
        wider(self.snapshot, self.scope).map(|it| Wide {
            policy: &it.policy,
            holds: !self.snapshot.policies.contains_key(self.scope),
        })
    }

    pub(super) fn against(&self) -> String {
        match (self.snapshot.policies.contains_key(self.scope), self.wide()) {
            (true, _) => "what is in force".into(),
            (false, Some(wide)) => wide.policy.scope().to_string(),
            (false, None) => "the defaults".into(),
        }
    }

    pub(super) fn offered(&self) -> Vec<(String, bool)> {
        let routes = self.covered.routes.iter();
        let chosen = |it: &RouteKey| Some(it) == self.route.as_ref();
        let mut offered: Vec<_> = routes
            .map(|it| (it.route.to_string(), chosen(&it.route)))
            .collect();
        if offered.len() > ROUTES_OFFERED {
            let at = offered.iter().position(|it| it.1).unwrap_or_default();
            offered.swap(ROUTES_OFFERED - 1, at.max(ROUTES_OFFERED - 1));
            offered.truncate(ROUTES_OFFERED);
        }
        offered
    }
}

/// What taking the policy away would do.
#[derive(Debug)]
pub(super) struct Removal {
    /// What holds then.
    pub(super) then: Option<Wider>,
    pub(super) changes: Vec<Change>,
    pub(super) governs: usize,
}

impl Removal {
    pub(super) fn new(checking: &Checking<'_>) -> Self {
        let (snapshot, scope) = (checking.snapshot, checking.scope);
        let then = wider(snapshot, scope).map(|it| it.policy.clone().for_scope(scope.clone()));
        let then = then.unwrap_or_else(|| Policy::observing(scope.clone()));
        Self {
            then: Wider::of(snapshot, scope),
            changes: changes(&checking.base, &then),
            governs: checking.covered.governed.len(),
        }
    }
}

/// The policy in force; where there is none what holds in its place, or what everything begins with.
pub(super) fn base_policy(snapshot: &FleetSnapshot, scope: &PolicyScope) -> Policy {
    let own = snapshot.policies.get(scope);
    let holds = own.or_else(|| wider(snapshot, scope));
    holds.map_or_else(
        || Policy::observing(scope.clone()),
        |it| it.policy.clone().for_scope(scope.clone()),
    )
}
