//! Which routes a policy covers, which it governs, what is wider than it, and how far it has got.

use std::collections::HashSet;

use hedgerow_core::view::{AgentState, AgentView, FleetSnapshot, PolicyView, RouteView, Sync};
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::PolicyScope;

/// The routes of a scope.
#[derive(Debug, Default)]
pub(crate) struct Covered<'a> {
    /// All it covers, by name.
    pub(crate) routes: Vec<&'a RouteView>,
    /// Of these, those for which it holds, or would hold once it is set.
    pub(crate) governed: HashSet<&'a RouteKey>,
    /// The narrower scopes that hold for the others, and for how many.
    pub(crate) narrower: Vec<(&'a PolicyScope, usize)>,
}

impl<'a> Covered<'a> {
    pub(crate) fn new(snapshot: &'a FleetSnapshot, scope: &PolicyScope) -> Self {
        let mut covered = Self::default();
        for (key, view) in snapshot.routes.iter().filter(|(key, _)| scope.covers(key)) {
            covered.routes.push(view);
            let holder = snapshot.policy_for(key).map(|it| it.policy.scope());
            match holder.filter(|holder| before(holder, scope)) {
                None => {
                    covered.governed.insert(key);
                }
                Some(narrower) => covered.count(narrower),
            }
        }
        covered
    }

    fn count(&mut self, narrower: &'a PolicyScope) {
        match self.narrower.iter_mut().find(|(it, _)| *it == narrower) {
            Some((_, routes)) => *routes += 1,
            None => self.narrower.push((narrower, 1)),
        }
    }

    /// The busiest of the routes it governs, or of those it covers.
    pub(crate) fn busiest(&self) -> Option<&'a RouteKey> {
        let rate = |view: &RouteView| view.figures.map_or(0.0, |it| it.calls_per_s);
        let busiest = |governed: bool| {
            let own = |it: &&&RouteView| !governed || self.governed.contains(&it.route);
            let views = self.routes.iter().filter(own);
            views.max_by(|a, b| rate(a).total_cmp(&rate(b)))
        };
        busiest(true)
            .or_else(|| busiest(false))
            .map(|view| &view.route)
    }
}

/// Whether `holder` is another scope that comes before `scope` where both cover a route.
fn before(holder: &PolicyScope, scope: &PolicyScope) -> bool {
    // Of two patterns with as many letters the first by name holds.
    holder != scope
        && (holder.rank() > scope.rank() || (holder.rank() == scope.rank() && holder < scope))
}

/// The pattern that holds for a dependency without a policy of its own.
pub(crate) fn pattern_for<'a>(
    snapshot: &'a FleetSnapshot,
    dependency: &DependencyName,
) -> Option<&'a PolicyView> {
    let covers = |scope: &PolicyScope| {
        scope
            .pattern()
            .is_some_and(|pattern| pattern.covers(dependency))
    };
    patterns(snapshot)
        .filter(|(scope, _)| covers(scope))
        .max_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()).then_with(|| b.cmp(a)))
        .map(|(_, view)| view)
}

fn patterns(snapshot: &FleetSnapshot) -> impl Iterator<Item = (&PolicyScope, &PolicyView)> {
    // Last in the order of scopes.
    let newest_first = snapshot.policies.iter().rev();
    newest_first.take_while(|(scope, _)| scope.pattern().is_some())
}

/// The policy that holds where this scope has none: of a pattern, the next wider one that covers all
/// dependencies it covers at present.
pub(crate) fn wider<'a>(
    snapshot: &'a FleetSnapshot,
    scope: &PolicyScope,
) -> Option<&'a PolicyView> {
    match scope {
        PolicyScope::Operation(route) => {
            let dependency = PolicyScope::Dependency(route.dependency.clone());
            let own = snapshot.policies.get(&dependency);
            own.or_else(|| pattern_for(snapshot, &route.dependency))
        }
        PolicyScope::Dependency(dependency) => pattern_for(snapshot, dependency),
        PolicyScope::Pattern(_) => {
            let covered: HashSet<_> = snapshot
                .routes
                .keys()
                .filter(|key| scope.covers(key))
                .map(|key| &key.dependency)
                .collect();
            let all = |pattern: &PolicyScope| {
                let pattern = pattern.pattern();
                let each = covered.iter();
                !covered.is_empty() && pattern.is_some_and(|it| each.clone().all(|d| it.covers(d)))
            };
            patterns(snapshot)
                .filter(|(it, _)| before(scope, it) && all(it))
                .max_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()).then_with(|| b.cmp(a)))
                .map(|(_, view)| view)
        }
    }
}

/// How many of the attached agents that report a governed route hold its policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) holding: u64,
    pub(crate) agents: u64,
    /// Those that do not yet, and what they say.
    pub(crate) behind: Vec<(String, String)>,
}

impl Held {
    pub(crate) fn new(
        snapshot: &FleetSnapshot,
        scope: &PolicyScope,
        revision: Revision,
        governed: &HashSet<&RouteKey>,
    ) -> Self {
        let attached = |it: &&AgentView| matches!(it.state, AgentState::Live | AgentState::Stale);
        let mut held = Self::default();
        for agent in snapshot.agents.iter().filter(attached) {
            let mut own = agent
                .routes
                .iter()
                .filter(|it| scope.covers(&it.route) && governed.contains(&it.route))
                .peekable();
            if own.peek().is_none() {
                continue;
            }
            held.agents += 1;
            let missing = own.find(|it| {
                // What is wanted may be a tick older than what was saved.
                let wanted = it.wanted.revision.max(revision);
                it.held.epoch != snapshot.epoch || it.held.revision < wanted
            });
            match missing {
                None => held.holding += 1,
                Some(route) => {
                    let words = match (&route.sync, agent.state) {
                        (Sync::Refused(reason), _) => format!("refused: {reason}"),
                        (_, AgentState::Stale) => "silent".into(),
                        _ => "not confirmed yet".into(),
                    };
                    let name = format!("{} {} ({})", agent.service, agent.instance, agent.peer);
                    held.behind.push((name, words));
                }
            }
        }
        held
    }
}
