//! What changed on a route by the agent's own figures, for the log: each change once, with the
//! figures it rests on.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::ReplicaName;

use super::RouteState;
use crate::local::{PUSH_BACK_LIMIT, Shares};
use crate::mode::InForce;
use crate::naming::NamedReplica;
use crate::probation::Change;

/// How long a replica must not have been named for it to be well again: one that comes and goes
/// is told of once.
const QUIET: Duration = Duration::from_mins(1);

/// One change.
#[derive(Debug)]
pub(super) enum News {
    Probation(Change),
    /// Named, and not on probation for it.
    Named(NamedReplica),
    NamedNoMore(ReplicaName),
    Off {
        reason: OffReason,
        shares: Shares,
        error_limit: f64,
    },
    On,
}

/// What was told, so that it is told once.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Replicas told to be named, and when each was last.
    named: BTreeMap<ReplicaName, Duration>,
    off: bool,
}

impl Told {
    /// A second is over. `on_probation` is told of by [`News::Probation`].
    pub(super) fn named(
        &mut self,
        now: Duration,
        named: &[NamedReplica],
        on_probation: &[ReplicaName],
    ) -> Vec<News> {
        self.named
            .retain(|replica, _| !on_probation.contains(replica));
        let mut news = Vec::new();
        for named in named {
            let replica = &named.replica;
            if !on_probation.contains(replica) && self.named.insert(replica.clone(), now).is_none()
            {
                news.push(News::Named(named.clone()));
            }
        }
        self.named.retain(|replica, last| {
            let named = now.saturating_sub(*last) < QUIET;
            if !named {
                news.push(News::NamedNoMore(replica.clone()));
            }
            named
        });
        news
    }

    /// What is in force now. Only where hedging would be on but for the agent itself: a route that
    /// observes has nothing to switch off.
    pub(super) fn switched(
        &mut self,
        in_force: &InForce,
        shares: Shares,
        error_limit: f64,
    ) -> Option<News> {
        let own = match in_force.mode {
            Mode::Off(reason) => Some(reason).filter(|_| in_force.own_off == Some(reason)),
            _ => None,
        };
        match (own, std::mem::replace(&mut self.off, own.is_some())) {
            (Some(reason), false) => Some(News::Off {
                reason,
                shares,
                error_limit,
            }),
            (None, true) if in_force.mode.hedges() => Some(News::On),
            _ => None,
        }
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(
        || "not known".to_owned(),
        |share| format!("{:.1} %", 100.0 * share),
    )
}

/// Logs a change: never under a lock, as whoever reads logs may look at the route.
pub(super) fn tell(route: &RouteState, news: &News) {
    let route = &route.key;
    match news {
        News::Probation(change) => probation(route, change),
        News::Named(named) => {
            let replica = &named.replica;
            tracing::warn!(%route, %replica, why = %named, "replica named; it is not on probation");
        }
        News::NamedNoMore(replica) => {
            tracing::info!(%route, %replica, "replica is no longer named");
        }
        News::Off {
            reason,
            shares,
            error_limit,
        } => tracing::warn!(
            %route,
            reason = reason.as_str(),
            failing_primaries = percent(shares.errors),
            error_limit = percent(Some(*error_limit)),
            push_back = percent(shares.push_back),
            push_back_limit = percent(Some(PUSH_BACK_LIMIT)),
            "hedging switched off by the agent's own figures"
        ),
        News::On => tracing::info!(%route, "hedging is on again"),
    }
}

fn probation(route: &hedgerow_protocol::ids::RouteKey, change: &Change) {
    let replica = change.replica();
    match change {
        Change::Put(why) => {
            tracing::warn!(%route, %replica, why = %why, "replica put on probation");
        }
        Change::Well(_) => tracing::info!(%route, %replica, "replica is well, back from probation"),
        Change::Tried(_) => {
            tracing::info!(%route, %replica, "too few calls to judge the replica: tried again");
        }
        Change::NoPlace(_) => {
            tracing::info!(%route, %replica, "too few replicas for probation of this one");
        }
    }
}
