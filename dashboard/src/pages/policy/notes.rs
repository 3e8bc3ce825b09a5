//! Why a policy has no effect, or none yet (B23).

use hedgerow_core::event::KillScope;
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::policy::{Intent, Policy, PolicyScope};

/// Routes named; further ones are told by number.
const NAMED: usize = 5;

/// Why saving this would change nothing, or nothing yet.
pub(crate) fn no_effect(
    snapshot: &FleetSnapshot,
    scope: &PolicyScope,
    policy: Option<&Policy>,
) -> Vec<String> {
    if policy.is_none_or(|p| p.intent() != Intent::Hedge) {
        return Vec::new();
    }
    let mut why = kills(snapshot, scope);
    let routes: Vec<_> = snapshot
        .routes
        .values()
        .filter(|v| scope.covers(&v.route))
        .collect();
    if routes.is_empty() {
        why.push(match scope {
            PolicyScope::Pattern(_) => {
                "no effect yet: no agent has reported a dependency that fits".into()
            }
            PolicyScope::Dependency(_) => {
                "no effect yet: no agent has reported this dependency".into()
            }
            PolicyScope::Operation(_) => {
                "no effect yet: no agent has reported this operation".into()
            }
        });
    }
    let idle: Vec<_> = routes
        .iter()
        .filter(|v| v.words.starts_with("no effect"))
        .collect();
    for view in idle.iter().take(NAMED) {
        let name = match scope {
            PolicyScope::Pattern(_) => view.route.to_string(),
            _ => view.route.operation.to_string(),
        };
        why.push(format!("{name}: {}", view.words));
    }
    if idle.len() > NAMED {
        why.push(format!("no effect on {} more routes", idle.len() - NAMED));
    }
    why
}

fn kills(snapshot: &FleetSnapshot, scope: &PolicyScope) -> Vec<String> {
    let engaged = snapshot.kills.iter().filter(|k| k.state.engaged);
    engaged
        .filter_map(|kill| {
            let by = &kill.state.actor.name;
            match (&kill.state.scope, scope) {
                (KillScope::Everything, _) => Some(format!(
                    "no effect while the kill switch for everything is on, by {by}"
                )),
                (KillScope::Dependency(name), PolicyScope::Pattern(pattern)) => pattern
                    .covers(name)
                    .then(|| format!("no effect on {name} while its kill switch is on, by {by}")),
                (KillScope::Dependency(name), _) => (Some(name) == scope.dependency())
                    .then(|| format!("no effect while its kill switch is on, by {by}")),
            }
        })
        .collect()
}
