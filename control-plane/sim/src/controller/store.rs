//! What outlives the controller, and what a run's outcome tells of it.

use std::collections::BTreeMap;

use hedgerow_core::effect::{
    AlertState, KillState, ModeState, Record, Restored, RestoredPolicy, Transition,
};
use hedgerow_core::event::KillScope;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::Point;
use hedgerow_protocol::ids::{Epoch, Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyScope};

/// The action under which the record has an agent that was left out.
const QUARANTINED: &str = "agent.quarantine";

/// A store in memory: durable at once.
#[derive(Debug, Default)]
pub(crate) struct Store {
    epoch: Epoch,
    policies: BTreeMap<PolicyScope, RestoredPolicy>,
    kills: BTreeMap<KillScope, KillState>,
    modes: BTreeMap<RouteKey, ModeState>,
    points: BTreeMap<RouteKey, Point>,
    /// Automatic changes, in order.
    pub(crate) transitions: Vec<Transition>,
    /// Alerts by episode, in the order in which they began.
    pub(crate) alerts: Vec<AlertState>,
    /// Agents quarantined or let go: when, which of both, and why.
    pub(crate) agents: Vec<(Moment, bool, String)>,
}

impl Store {
    pub(crate) fn commit(&mut self, records: Vec<Record>) {
        for record in records {
            match record {
                Record::Policy {
                    revision,
                    policy,
                    at,
                    ..
                } => {
                    self.revise(policy.scope().clone(), revision, Some(*policy), at);
                }
                Record::PolicyRemoved {
                    revision,
                    scope,
                    at,
                    ..
                } => self.revise(scope, revision, None, at),
                Record::Kill(state) => {
                    self.kills.insert(state.scope.clone(), state);
                }
                Record::Mode(state) => {
                    self.modes.insert(state.route.clone(), state);
                }
                Record::Transition(transition) => self.transitions.push(transition),
                Record::Audit(row) if row.action.starts_with("agent.") => {
                    let into = row.action == QUARANTINED;
                    self.agents.push((row.at, into, row.reason));
                }
                // Nobody reads the record here, nothing is replayed, no policy is rolled out and
                // nothing is silenced.
                Record::Audit(_)
                | Record::Minute { .. }
                | Record::Rollout(_)
                | Record::TrialMode { .. }
                | Record::RolloutEnded(_)
                | Record::Silence(_)
                | Record::SilenceEnded { .. }
                | Record::AlertTold { .. }
                | Record::Acknowledged { .. } => {}
                Record::Alert(state) | Record::AlertSilenced(state) => {
                    match self.alerts.iter_mut().find(|known| known.id == state.id) {
                        Some(known) => *known = state,
                        None => self.alerts.push(state),
                    }
                }
                Record::History { route, point } => {
                    self.points.insert(route, point);
                }
                Record::Epoch(epoch) => self.epoch = epoch,
            }
        }
    }

    fn revise(
        &mut self,
        scope: PolicyScope,
        revision: Revision,
        policy: Option<Policy>,
        since: Moment,
    ) {
        let restored = RestoredPolicy {
            scope: scope.clone(),
            revision,
            policy,
            since,
        };
        self.policies.insert(scope, restored);
    }

    /// What a controller finds when it starts.
    pub(crate) fn restored(&self) -> Restored {
        let firing = self.alerts.iter().filter(|it| it.resolved.is_none());
        Restored {
            epoch: self.epoch,
            policies: self.policies.values().cloned().collect(),
            kills: self.kills.values().cloned().collect(),
            modes: self.modes.values().cloned().collect(),
            alerts: firing.cloned().collect(),
            switchbacks: Vec::new(),
            rollouts: Vec::new(),
            points: self.points.clone().into_iter().collect(),
            ..Restored::default()
        }
    }
}
