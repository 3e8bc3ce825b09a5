//! What people have laid down, and which of it holds for a route.
//!
//! A policy is for a [`PolicyScope`]; of those that cover a route the narrowest holds. Taking one away
//! is a revision too: a route's revision is the newest of the scopes that had a say, down to the one
//! that holds, so that it only ever rises, whichever policy comes or goes (P5).

use std::collections::BTreeMap;
use std::sync::Arc;

use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::{Intent, Policy, PolicyScope};

use crate::effect::KillState;
use crate::event::KillScope;
use crate::moment::Moment;
use crate::orders::Outcome;
use crate::rollout::Rollout;

/// A policy in force: stored, or it would not be here.
#[derive(Debug, Clone)]
pub(crate) struct InForce {
    pub(crate) revision: Revision,
    pub(crate) policy: Arc<Policy>,
    pub(crate) since: Moment,
}

/// What stands for a scope: a policy, or none since it was taken away.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) scope: PolicyScope,
    pub(crate) revision: Revision,
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) since: Moment,
}

impl From<&InForce> for Standing {
    fn from(it: &InForce) -> Self {
        Self {
            scope: it.policy.scope().clone(),
            revision: it.revision,
            policy: Some(Arc::clone(&it.policy)),
            since: it.since,
        }
    }
}

/// What people have laid down: all of it stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) policies: BTreeMap<PolicyScope, Standing>,
    pub(crate) kills: BTreeMap<KillScope, KillState>,
    /// Policies that are in force for a share of the agents, beside what is in `policies`. No two of
    /// them, and none and a policy of a dependency's other scope, are changed at the same time.
    pub(crate) rollouts: BTreeMap<PolicyScope, Rollout>,
}

impl Rules {
    /// For all agents: what was under way for some is over.
    pub(crate) fn put_in_force(&mut self, it: &Standing) {
        self.rollouts.remove(&it.scope);
        self.policies.insert(it.scope.clone(), it.clone());
    }

    /// What they are once an order is stored.
    pub(crate) fn apply(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Policy(it) => {
                self.put_in_force(it);
            }
            Outcome::Rollout(it) => it.apply(self),
            Outcome::Kill(it, reverted) => {
                self.kills.insert(it.scope.clone(), it.clone());
                for old in reverted {
                    self.put_in_force(old);
                }
            }
            Outcome::Release(_)
            | Outcome::AcceptBase(_)
            | Outcome::StartSwitchback(..)
            | Outcome::StopSwitchback(_)
            | Outcome::Quiet(_) => {}
        }
    }

    /// The policy of a scope itself, whatever else covers it; None: it has none.
    pub(crate) fn own(&self, scope: &PolicyScope) -> Option<&Arc<Policy>> {
        self.policies.get(scope)?.policy.as_ref()
    }

    /// The policy that holds for a route, for agents in no rollout's share; None: nobody set one.
    pub(crate) fn policy(&self, key: &RouteKey) -> Option<&Arc<Policy>> {
        self.walk(key).0
    }

    /// The revision of what holds for a route; 0: nobody ever set a policy that covers it.
    pub(crate) fn revision(&self, key: &RouteKey) -> Revision {
        self.walk(key).1
    }

    /// The same, also where only a share of the agents holds it so far.
    pub(crate) fn newest(&self, key: &RouteKey) -> Revision {
        let rollout = self.rollout(key);
        rollout.map_or_else(|| self.revision(key), |it| it.next.revision)
    }

    /// From the narrowest scope to the widest, up to the first that has a policy: that, and the newest
    /// revision on the way.
    fn walk(&self, key: &RouteKey) -> (Option<&Arc<Policy>>, Revision) {
        self.walk_without(None, key)
    }

    /// The same as if `gone` had no policy.
    fn walk_without(
        &self,
        gone: Option<&PolicyScope>,
        key: &RouteKey,
    ) -> (Option<&Arc<Policy>>, Revision) {
        let mut newest = Revision::default();
        let own = [
            PolicyScope::Operation(key.clone()),
            PolicyScope::Dependency(key.dependency.clone()),
        ];
        for scope in &own {
            if let Some(it) = self.policies.get(scope) {
                newest = newest.max(it.revision);
                if it.policy.is_some() && gone != Some(&it.scope) {
                    return (it.policy.as_ref(), newest);
                }
            }
        }
        for it in self.patterns_for(key) {
            newest = newest.max(it.revision);
            if it.policy.is_some() && gone != Some(&it.scope) {
                return (it.policy.as_ref(), newest);
            }
        }
        (None, newest)
    }

    /// Patterns that cover a route, the narrowest first.
    fn patterns_for(&self, key: &RouteKey) -> Vec<&Standing> {
        // Patterns are last in the order of scopes.
        let patterns = self.policies.values().rev();
        let patterns = patterns.take_while(|it| it.scope.pattern().is_some());
        let mut patterns: Vec<_> = patterns.filter(|it| it.scope.covers(key)).collect();
        patterns.sort_by_key(|it| (std::cmp::Reverse(it.scope.rank()), &it.scope));
        patterns
    }

    /// Whether what is laid down for `scope` holds for a route, or would: nothing narrower does.
    pub(crate) fn governs(&self, scope: &PolicyScope, key: &RouteKey) -> bool {
        if !scope.covers(key) {
            return false;
        }
        let (policy, _) = self.walk(key);
        policy.is_none_or(|it| {
            let (held, wanted) = (it.scope().rank(), scope.rank());
            held < wanted || (held == wanted && scope <= it.scope())
        })
    }

    /// What hedging may do on a route once the policy of `scope` is taken away.
    pub(crate) fn without(&self, scope: &PolicyScope, key: &RouteKey) -> Intent {
        let left = self.walk_without(Some(scope), key).0;
        left.map(|it| it.intent()).unwrap_or_default()
    }

    /// The rollout that a route is in.
    pub(crate) fn rollout(&self, key: &RouteKey) -> Option<&Rollout> {
        if self.rollouts.is_empty() {
            return None;
        }
        let operation = PolicyScope::Operation(key.clone());
        if let Some(rollout) = self.rollouts.get(&operation) {
            return Some(rollout);
        }
        if self.own(&operation).is_some() {
            return None;
        }
        self.rollouts
            .get(&PolicyScope::Dependency(key.dependency.clone()))
    }

    /// A rollout of another scope that has routes in common with `scope`, or may: while it is under
    /// way, agents in its share would have to go back to an older revision.
    pub(crate) fn rollout_beside(&self, scope: &PolicyScope) -> Option<&PolicyScope> {
        let mut others = self.rollouts.keys().filter(|it| *it != scope);
        others.find(|other| overlap(other, scope))
    }

    /// The newest revision of anything that may ever say something about a route of `scope`.
    pub(crate) fn newest_near(
        &self,
        used: &BTreeMap<PolicyScope, Revision>,
        scope: &PolicyScope,
    ) -> Revision {
        let standing = self.policies.values().map(|it| (&it.scope, it.revision));
        let rolled = self.rollouts.iter().map(|(of, it)| (of, it.next.revision));
        let used = used.iter().map(|(of, revision)| (of, *revision));
        let near = standing.chain(rolled).chain(used);
        let near = near.filter(|(of, _)| overlap(of, scope));
        near.map(|(_, revision)| revision).max().unwrap_or_default()
    }
}

/// Whether two scopes may have routes in common. Of two patterns nobody knows.
fn overlap(one: &PolicyScope, other: &PolicyScope) -> bool {
    match (one.dependency(), other.dependency()) {
        (Some(one), Some(other)) => one == other,
        (Some(name), None) => other.pattern().is_some_and(|it| it.covers(name)),
        (None, Some(name)) => one.pattern().is_some_and(|it| it.covers(name)),
        (None, None) => true,
    }
}
