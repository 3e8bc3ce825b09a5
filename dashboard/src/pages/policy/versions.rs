//! All revisions of a policy, and the way back to each.

use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::{Policy, PolicyScope};

use super::diff::{Change, changes};
use crate::backend::PolicyRevision;
use crate::format::Time;

/// Revisions shown unless all are asked for.
pub(super) const SHOWN: usize = 20;

/// One revision.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) revision: u64,
    pub(super) at: Time,
    pub(super) actor: String,
    pub(super) via: &'static str,
    pub(super) reason: String,
    pub(super) changes: Vec<Change>,
    pub(super) taken_away: bool,
    /// Why one goes back to it where nobody says otherwise.
    pub(super) usual_reason: String,
    /// It is what stands now.
    pub(super) current: bool,
}

/// What a revision says: where it took the policy away, what everything begins with.
pub(super) fn written(revision: &PolicyRevision, scope: &PolicyScope) -> Policy {
    let policy = revision.policy.clone();
    policy.unwrap_or_else(|| Policy::observing(scope.clone()))
}

/// The revision that stands: the one in force, or the one that took the policy away; 0: there never
/// was one, so that of two people who set the first only one is not refused.
pub(super) fn standing(
    snapshot: &FleetSnapshot,
    scope: &PolicyScope,
    history: &[PolicyRevision],
) -> Revision {
    let in_force = snapshot.policies.get(scope).map(|it| it.revision);
    in_force
        .or_else(|| history.first().map(|it| it.revision))
        .unwrap_or_default()
}

/// The reason a way back has where nobody gave another.
pub(super) fn usual_reason(revision: u64) -> String {
    format!("back to revision {revision}")
}

/// Newest first.
pub(super) fn versions(
    scope: &PolicyScope,
    history: &[PolicyRevision],
    standing: Revision,
    shown: usize,
) -> Vec<Version> {
    let each = history.iter().enumerate().take(shown);
    each.map(|(i, r)| {
        let before = history.get(i + 1).map_or_else(
            || Policy::observing(scope.clone()),
            |older| written(older, scope),
        );
        Version {
            revision: r.revision.0,
            at: Time::full(r.at),
            actor: r.actor.name.clone(),
            via: r.actor.via.as_str(),
            reason: r.reason.clone(),
            changes: r
                .policy
                .as_ref()
                .map_or_else(Vec::new, |policy| changes(&before, policy)),
            usual_reason: usual_reason(r.revision.0),
            taken_away: r.policy.is_none(),
            current: r.revision == standing,
        }
    })
    .collect()
}
