//! What a policy comes to on latencies as they are now: the point of the curve that it stands for.

use std::time::Duration;

use hedgerow_protocol::latency::{bucket_of, flat, upper_edge_us};
use hedgerow_protocol::policy::{Intent, Policy};
use hedgerow_protocol::units::{Ratio, Threshold};

use super::curve::Hedged;
use super::distribution::Distribution;
use super::live::Latencies;
use crate::decide::goal::{Aim, look};

/// What a policy would do with a route's calls of the last minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Planned {
    /// Calls that cross are hedged, as many as it allows.
    Hedges {
        /// Delay, load and what callers wait.
        hedged: Hedged,
        /// The share of crossed calls that is hedged, held-out ones among those that are not.
        probability: f64,
    },
    /// None is: the policy does not want it.
    NotWanted,
    /// None is: its goal gains too little from it.
    NoGain,
    /// That cannot be said: its percentile or goal lies beyond what is known.
    NotKnown,
}

impl Distribution {
    /// Hedging a share of the calls that last longer than a delay, where a share of slowness is common
    /// to the call and its hedge.
    pub fn drawn(&self, delay: Duration, probability: Ratio, shared: Ratio) -> Hedged {
        // A call that is not drawn is as little helped as one whose hedge is as slow as itself.
        let helped = probability.get() * (1.0 - shared.get());
        let all = self.hedged(delay, Ratio::clamped(1.0 - helped));
        Hedged {
            extra_load: all.extra_load * probability.get(),
            ..all
        }
    }
}

impl Latencies {
    /// The measured share of common slowness, or that nothing is common where it was not measured.
    pub fn shared(&self) -> Ratio {
        self.phi.unwrap_or(Ratio::ZERO)
    }

    /// What a policy would do with them: its threshold as the controller finds one, without its trim
    /// and its memory; its own budget, whatever a pool would lend it; nothing for those held out.
    /// `latencies` are its own [`distribution`](Self::distribution).
    pub fn planned(&self, policy: &Policy, latencies: &Distribution) -> Planned {
        if policy.intent() != Intent::Hedge {
            return Planned::NotWanted;
        }
        let shared = self.shared();
        let treated = 1.0 - policy.holdout().get();
        let aim = Aim::of(policy);
        if aim == Aim::Percentile {
            let calls = self.curve.at_risk(0) as u64;
            let found = flat::threshold(&self.curve, policy.percentile().tail(), calls);
            let Some(found) = found else {
                return Planned::NotKnown;
            };
            let found = policy.threshold_min().map_or(found, |min| found.max(min));
            let found = policy.threshold_max().map_or(found, |max| found.min(max));
            let delay = Threshold::clamped(found).get();
            // Shared slowness costs budget, as the threshold knows nothing of gains.
            let most = policy.budget().get() * (1.0 - shared.get());
            let crossed = latencies.crossed(edge(delay));
            let probability = if crossed > 0.0 {
                (most / crossed).min(treated)
            } else {
                treated
            };
            return hedges(latencies, delay, probability, shared);
        }
        match look(&self.curve, policy, shared) {
            Some((Some(delay), probability)) => {
                hedges(latencies, delay, probability * treated, shared)
            }
            Some((None, _)) => Planned::NoGain,
            None => Planned::NotKnown,
        }
    }

    /// What is done with them now; None where no threshold is known.
    pub fn as_hedged(&self, latencies: &Distribution) -> Option<Hedged> {
        let delay = self.threshold?;
        let now = at_edge(latencies, delay, self.probability, self.shared());
        Some(now)
    }
}

/// The end of a delay's bucket: calls of a distribution that was counted in buckets take that long, so
/// that before it all calls of the bucket would seem to cross.
fn edge(delay: Duration) -> Duration {
    Duration::from_nanos((upper_edge_us(bucket_of(delay)) * 1e3).ceil() as u64)
}

fn at_edge(latencies: &Distribution, delay: Duration, drawn: Ratio, shared: Ratio) -> Hedged {
    Hedged {
        delay,
        ..latencies.drawn(edge(delay), drawn, shared)
    }
}

fn hedges(latencies: &Distribution, delay: Duration, probability: f64, shared: Ratio) -> Planned {
    let probability = Ratio::clamped(probability);
    Planned::Hedges {
        hedged: at_edge(latencies, delay, probability, shared),
        probability: probability.get(),
    }
}
