//! Threshold and probability of a route, whichever way they were come by.

use std::time::Duration;

use hedgerow_protocol::policy::Policy;

use super::Aim;
use crate::memory::Memory;
use crate::view::NoGain;

/// What a route is hedged by now, whatever its aim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InForce {
    /// The threshold, before the policy's limits; None: nothing is known yet.
    pub(crate) threshold: Option<Duration>,
    /// The share of crossed calls hedged while it is on.
    pub(crate) probability: f64,
    /// The share of calls meant to cross.
    pub(crate) crossing: f64,
    /// Hedges aimed at, as a share of the calls not held out.
    pub(crate) load: f64,
    /// Why nothing, or little, is hedged.
    pub(crate) no_gain: Option<NoGain>,
}

impl InForce {
    /// From what is remembered. Without a gain, and before anything was found, the threshold is the
    /// percentile's: crossing it goes on telling who is slow.
    pub(crate) fn of(memory: &Memory, policy: &Policy) -> Self {
        let tail = policy.percentile().tail();
        let followed = Self {
            threshold: memory.threshold.value(),
            probability: 1.0,
            crossing: tail,
            load: tail,
            no_gain: None,
        };
        let track = &memory.goal;
        if track.aim != Aim::of(policy) {
            return followed;
        }
        match track.point {
            Some(point) => Self {
                threshold: Some(point.delay),
                probability: point.probability,
                crossing: point.crossed,
                load: point.load(),
                no_gain: track.no_gain,
            },
            None if track.no_gain.is_some() => Self {
                probability: 0.0,
                load: 0.0,
                no_gain: track.no_gain,
                ..followed
            },
            None => followed,
        }
    }
}
