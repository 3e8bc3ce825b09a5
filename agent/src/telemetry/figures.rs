//! One reading of an agent. Everything a scrape shows comes from one, so that it adds up: counters
//! of a route are read together, and once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::latency::{
    BUCKETS, BUCKETS_PER_OCTAVE, Histogram, lower_edge_us, upper_edge_us,
};
use hedgerow_protocol::report::{LinkState, Totals};

use crate::agent::Shared;
use crate::host::NotTaken;
use crate::naming::NamedReplica;
use crate::route::{NoEffect, RouteState};
use crate::stats::recorder::ByReason;

/// See the [module](self).
pub(super) struct Figures {
    pub(super) routes: Vec<OfRoute>,
    pub(super) agent: OfAgent,
}

/// What belongs to no route.
pub(super) struct OfAgent {
    pub(super) link: Option<LinkState>,
    pub(super) unreported_routes: u64,
    pub(super) directives_refused: u64,
    pub(super) sets_refused: u64,
    pub(super) reports_refused: u64,
    /// Policies that hold and contents refused, where there is a policy file.
    pub(super) policy_file: Option<(usize, u64)>,
}

/// One route.
pub(super) struct OfRoute {
    pub(super) key: RouteKey,
    pub(super) totals: Totals,
    /// What [`Totals::further_refused`] is made of.
    pub(super) further_refused: ByReason,
    pub(super) mode: Mode,
    pub(super) threshold: Option<Duration>,
    pub(super) budget: f64,
    pub(super) tokens: f64,
    pub(super) attempts_in_flight: u64,
    pub(super) watched_losers: u32,
    pub(super) treated: Histogram,
    pub(super) holdout: Histogram,
    pub(super) named: Vec<NamedReplica>,
    pub(super) no_effect: Option<NoEffect>,
}

impl Figures {
    pub(super) fn read(shared: &Shared) -> Self {
        Self {
            routes: shared
                .routes()
                .iter()
                .map(|route| OfRoute::read(route))
                .collect(),
            agent: OfAgent {
                link: shared.link_state(),
                unreported_routes: shared.unreported_routes(),
                directives_refused: shared.times_not_taken(NotTaken::Directive),
                sets_refused: shared.times_not_taken(NotTaken::Set),
                reports_refused: shared.times_not_taken(NotTaken::Report),
                policy_file: shared
                    .policy_file
                    .as_ref()
                    .map(|file| (file.policies().len(), file.refused())),
            },
        }
    }
}

impl OfRoute {
    fn read(route: &RouteState) -> Self {
        let [treated, holdout] = route.lifetime();
        let (named, no_effect) = route.findings();
        let (totals, further_refused) = route.recorder.totals_and_further();
        Self {
            key: route.key.clone(),
            totals,
            further_refused,
            mode: route.effective().mode,
            threshold: route.gate.threshold(),
            budget: route.bucket.earned(),
            tokens: route.bucket.tokens(),
            attempts_in_flight: route.attempts_alive(),
            watched_losers: route.watched.load(Ordering::Relaxed),
            treated,
            holdout,
            named,
            no_effect,
        }
    }
}

/// Bounds of latencies: 2^7 us (128 us) to 2^26 us (67 s), an octave apart. What is faster is not
/// worth a hedge, what is slower is beyond most deadlines. With the one for all, and two arms, 42
/// series for a route.
const OCTAVES: std::ops::RangeInclusive<usize> = 7..=26;

/// A histogram as cumulative counts below some of its own edges: exact, where edges are concerned.
pub(super) struct Cumulative {
    /// Bound in seconds, upper edge inclusive, and samples at or below it; ascending.
    pub(super) bounds: Vec<(f64, u64)>,
    pub(super) count: u64,
    /// The sum of the buckets' middles: within 1.1 %, for a mean on a chart.
    pub(super) sum_seconds: f64,
}

impl Cumulative {
    pub(super) fn of(histogram: &Histogram) -> Self {
        let bound = |bucket: usize| {
            let octave = bucket / BUCKETS_PER_OCTAVE;
            bucket.is_multiple_of(BUCKETS_PER_OCTAVE) && OCTAVES.contains(&octave)
        };
        let (mut count, mut sum_us) = (0, 0.0);
        let mut bounds = Vec::new();
        for bucket in 0..BUCKETS {
            let here = histogram.in_bucket(bucket);
            count += here;
            sum_us += here as f64 * (lower_edge_us(bucket) + upper_edge_us(bucket)) / 2.0;
            if bound(bucket) {
                bounds.push((upper_edge_us(bucket) / 1e6, count));
            }
        }
        Self {
            bounds,
            count,
            sum_seconds: sum_us / 1e6,
        }
    }
}
