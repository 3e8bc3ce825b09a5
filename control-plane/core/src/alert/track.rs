//! One subject's way through its episodes.

use std::time::Duration;

use hedgerow_protocol::ids::{ReplicaName, RouteKey};

use crate::effect::AlertState;
use crate::moment::Moment;
use crate::view::{Acknowledgement, AlertRule};

/// What an alert is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) route: RouteKey,
    pub(super) rule: AlertRule,
    pub(super) replica: Option<ReplicaName>,
}

impl Subject {
    /// What a stored episode is about.
    pub(super) fn of(state: &AlertState) -> Self {
        let replica = state.replica.as_deref();
        Self {
            route: state.route.clone(),
            rule: state.rule,
            replica: replica.and_then(|name| ReplicaName::new(name).ok()),
        }
    }

    /// An episode as it begins; `raised`: since when the condition held.
    pub(super) fn begin(&self, raised: Moment, now: Moment, summary: &str) -> AlertState {
        AlertState {
            id: self.episode(raised),
            rule: self.rule,
            route: self.route.clone(),
            replica: self.replica.as_ref().map(ToString::to_string),
            summary: summary.to_owned(),
            since: now,
            resolved: None,
        }
    }

    /// An episode's name: the rule, when it began to be true, and a hash (FNV-1a) of what it is
    /// about; fit for an address.
    fn episode(&self, raised: Moment) -> String {
        let replica = self.replica.as_ref().map_or("", ReplicaName::as_str);
        let route = &self.route;
        let about = format!("{}\0{}\0{replica}", route.dependency, route.operation);
        let hash = about.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let rule = self.rule.as_str();
        format!("{rule}-{}-{hash:016x}", raised.as_millis())
    }
}

/// What a rule says at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Raise,
    Clear,
    /// Neither: between the two limits, or nothing can be known. What fires goes on firing; what
    /// does not begins to wait anew.
    Neither,
}

/// How long a rule waits before it fires, and before it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    pub(super) pending: Duration,
    pub(super) kept: Duration,
}

/// See the [module](self).
#[derive(Debug, Clone, Default)]
pub(super) struct Track {
    /// Since when the condition holds.
    pub(super) raised: Option<Moment>,
    cleared: Option<Moment>,
    pub(super) summary: String,
    pub(super) firing: Option<AlertState>,
    /// Whether receivers were told of what fires.
    pub(super) told: bool,
    /// Who works on what fires.
    pub(super) acknowledged: Option<Acknowledgement>,
}

impl Track {
    /// One that was firing when the controller stopped.
    pub(super) fn restore(state: AlertState, told: bool) -> Self {
        Self {
            raised: Some(state.since),
            summary: state.summary.clone(),
            firing: Some(state),
            told,
            ..Self::default()
        }
    }

    /// Whether it fires or waits.
    pub(super) fn is_open(&self) -> bool {
        self.firing.is_some() || self.raised.is_some()
    }

    /// Takes one signal; returns the episode where it begins or ends by it.
    pub(super) fn step(
        &mut self,
        now: Moment,
        signal: Signal,
        waits: Waits,
        subject: &Subject,
        words: impl FnOnce() -> String,
    ) -> Option<AlertState> {
        match signal {
            Signal::Raise => {
                self.cleared = None;
                let since = *self.raised.get_or_insert(now);
                if self.firing.is_some() {
                    return None;
                }
                self.summary = words();
                if now.since(since) < waits.pending {
                    return None;
                }
                self.firing = Some(subject.begin(since, now, &self.summary));
                self.firing.clone()
            }
            Signal::Neither => {
                self.cleared = None;
                if self.firing.is_none() {
                    self.raised = None;
                }
                None
            }
            Signal::Clear => {
                let since = *self.cleared.get_or_insert(now);
                if self.firing.is_some() && now.since(since) < waits.kept {
                    return None;
                }
                let mut ended = std::mem::take(self).firing?;
                ended.resolved = Some(now);
                Some(ended)
            }
        }
    }
}
