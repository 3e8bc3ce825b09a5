//! A route's latencies now: what a curve or a goal on its page is computed from.

use std::time::Duration;

use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::latency::SurvivalCurve;
use hedgerow_protocol::units::{Ratio, Threshold};

use super::distribution::{Distribution, SampleError};
use crate::controller::Controller;
use crate::window::Windows;

/// Slices looked at, at most: as far back as a route's windows go.
const SLICES: usize = 300;

/// What is known of a route's latencies over the last five minutes at most.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    /// All primaries, each on its own clock, also those that were stopped.
    pub curve: SurvivalCurve,
    /// Primaries in it.
    pub attempts: u64,
    /// The time it covers.
    pub window: Duration,
    /// The share of slowness that calls and their hedges have in common; None where too few hedges
    /// were sent to tell.
    pub phi: Option<Ratio>,
    /// When a call may be hedged now; None where no threshold is known.
    pub threshold: Option<Duration>,
    /// The share of crossed calls that is hedged now.
    pub probability: Ratio,
    /// Hedges sent for each call over the window; None without calls.
    pub hedge_rate: Option<f64>,
}

impl Latencies {
    fn of(windows: &Windows) -> Option<Self> {
        let window = windows.over(SLICES);
        let mut primaries = window.primary();
        for ages in windows.in_flight() {
            // Fails only after 2^48 calls in flight at once.
            let _ = primaries.censored.add(ages);
        }
        let totals = window.totals();
        let curve = primaries.curve();
        (!curve.is_empty()).then(|| Self {
            curve,
            attempts: primaries.count(),
            window: window.span(),
            phi: None,
            threshold: None,
            probability: Ratio::ZERO,
            hedge_rate: (totals.started > 0)
                .then(|| totals.hedges() as f64 / totals.started as f64),
        })
    }

    /// As a distribution, for [`curve`](Distribution::curve) and [`best`](Distribution::best).
    pub fn distribution(&self) -> Result<Distribution, SampleError> {
        Distribution::of_curve(&self.curve)
    }
}

impl Controller {
    /// A route's latencies now. None where it is not known, or no call of it ended in the last five
    /// minutes. Changes nothing.
    pub fn latencies(&self, route: &RouteKey) -> Option<Latencies> {
        let route = self.routes.get(route)?;
        let latencies = Latencies::of(&route.windows)?;
        let Some(decision) = &route.decision else {
            return Some(latencies);
        };
        Some(Latencies {
            phi: decision
                .figures
                .and_then(|figures| figures.phi)
                .map(Ratio::clamped),
            threshold: decision.live.threshold.map(Threshold::get),
            probability: decision.live.probability,
            ..latencies
        })
    }
}
