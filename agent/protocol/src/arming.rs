//! Which agents may hedge at this moment, where a token each would be too many at once.
//!
//! A bucket of one token for each process does not bound what a fleet of many quiet processes sends
//! in the first second of a stall that all of them see: 100,000 agents at one call a second hedge
//! 63 % of it. So a controller arms a share of them at a time. Nobody is told when: each agent works
//! its turns out from a seed, by the rule of [`Arming::armed`], which both sides and the simulator
//! share.
//!
//! The turns are the multiples of the golden ratio modulo 1, begun at a place of the agent's own
//! (H. Weyl's equidistributed sequence with the most even gaps of all: V. T. Sós, "On the
//! distribution mod 1 of the sequence n alpha", 1958). So each agent is armed `share` of the time in
//! regular turns, rather than by a draw that leaves one waiting for ever, and of many agents a
//! `share` is armed in each.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::directive::DirectiveError;
use crate::ids::InstanceId;
use crate::limits::{ARMING_EPOCH_MAX, ARMING_EPOCH_MIN};
use crate::units::{Budget, Ratio};

/// 2^64 times the golden ratio's fraction.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A share of the agents, in turns: see the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Arming {
    share: Ratio,
    epoch: Duration,
    seed: u64,
}

#[derive(Deserialize)]
struct Unchecked {
    share: Ratio,
    epoch: Duration,
    seed: u64,
}

impl TryFrom<Unchecked> for Arming {
    type Error = DirectiveError;
    fn try_from(value: Unchecked) -> Result<Self, DirectiveError> {
        Self::new(value.share, value.epoch, value.seed)
    }
}

impl Arming {
    /// `share` of the agents are armed at a time, for an `epoch` each; another `seed` is another
    /// draw.
    ///
    /// # Errors
    /// A share of 0 or 1, which is nobody or no arming at all; an epoch outside 1 s to 10 min.
    pub fn new(share: Ratio, epoch: Duration, seed: u64) -> Result<Self, DirectiveError> {
        if share.get() <= 0.0 || share.get() >= 1.0 {
            return Err(DirectiveError::ArmingShare(share.get()));
        }
        if !(ARMING_EPOCH_MIN..=ARMING_EPOCH_MAX).contains(&epoch) {
            return Err(DirectiveError::ArmingEpoch(epoch));
        }
        Ok(Self { share, epoch, seed })
    }

    /// The share of agents armed at a time, above 0 and below 1.
    pub const fn share(&self) -> Ratio {
        self.share
    }

    /// How long a turn lasts, 1 s to 10 min.
    pub const fn epoch(&self) -> Duration {
        self.epoch
    }

    /// Which draw.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether `agent` may hedge now: `since` is how long it has had arming with this seed, by its
    /// own monotonic clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hedgerow_protocol::arming::Arming;
    /// use hedgerow_protocol::ids::InstanceId;
    /// use hedgerow_protocol::units::Ratio;
    ///
    /// let tenth = Arming::new(Ratio::new(0.1)?, Duration::from_secs(10), 7)?;
    /// let agent = InstanceId::from_u128(1);
    /// let armed: Vec<_> = (0..100)
    ///     .filter(|turn| tenth.armed(&agent, Duration::from_secs(10 * turn)))
    ///     .collect();
    /// assert_eq!(armed[..5], [3, 11, 24, 32, 45]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn armed(&self, agent: &InstanceId, since: Duration) -> bool {
        let turn = since.as_nanos() / self.epoch.as_nanos();
        // Modulo 2^64, which is modulo 1 in fractions: a turn's own high bits do not matter.
        let place = self
            .place(agent)
            .wrapping_add((turn as u64).wrapping_mul(GOLDEN));
        place < (self.share.get() * 2f64.powi(64)) as u64
    }

    /// What a finished call earns an armed agent, so that over all turns it is `budget` on average:
    /// budget / share, but at most one hedge. An agent that is not armed earns nothing.
    pub fn earned(&self, budget: Budget) -> Ratio {
        Ratio::clamped(budget.get() / self.share.get())
    }

    /// Where `agent`'s turns begin, in 2^64 parts.
    fn place(&self, agent: &InstanceId) -> u64 {
        let [high, low] = agent.halves();
        mixed(mixed(self.seed ^ high) ^ low)
    }
}

/// The output function of `SplitMix64` (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014).
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(GOLDEN);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Duration = Duration::from_secs(10);

    fn arming(share: f64) -> Arming {
        Arming::new(Ratio::new(share).unwrap(), EPOCH, 42).unwrap()
    }

    /// As real ones are: the time in front, and ones that were made together.
    fn agents(count: u128) -> Vec<InstanceId> {
        (0..count)
            .map(|n| InstanceId::from_u128((0x0198_0000_0000_7000 << 64) | (n << 40)))
            .collect()
    }

    #[test]
    fn in_each_turn_about_the_share_of_a_thousand_agents_is_armed() {
        for share in [0.01, 0.1, 0.5, 0.9] {
            let arming = arming(share);
            let agents = agents(1000);
            for turn in 0..1000 {
                let armed = |it: &&InstanceId| arming.armed(it, EPOCH * turn);
                let armed = agents.iter().filter(armed).count() as f64 / 1000.0;
                // Four standard errors of a thousand draws are 6.3 points at a half.
                let doubt = 4.0 * (share * (1.0 - share) / 1000.0).sqrt();
                assert!((armed - share).abs() < doubt, "{share}, {turn}: {armed}");
            }
        }
    }

    #[test]
    fn each_agent_is_armed_for_its_share_of_a_thousand_turns_and_never_waits_long() {
        for share in [0.01, 0.1, 0.5, 0.9] {
            let arming = arming(share);
            for agent in agents(100) {
                let turns: Vec<_> = (0..1000)
                    .filter(|turn| arming.armed(&agent, EPOCH * *turn))
                    .collect();
                let of = turns.len() as f64 / 1000.0;
                assert!((of - share).abs() < 0.005, "{share}: {of}");
                let waits = turns.windows(2).map(|two| two[1] - two[0]).max().unwrap();
                assert!(f64::from(waits) < 3.0 / share, "{share}: {waits} turns");
            }
        }
    }

    #[test]
    fn a_turn_lasts_an_epoch_and_a_larger_share_only_adds_to_it() {
        let (tenth, fifth) = (arming(0.1), arming(0.2));
        for agent in agents(50) {
            for turn in 0..50 {
                let at = EPOCH * turn;
                let armed = tenth.armed(&agent, at);
                let end = at + Duration::from_nanos(9_999_999_999);
                assert_eq!(tenth.armed(&agent, end), armed);
                assert!(!armed || fifth.armed(&agent, at));
            }
        }
    }

    #[test]
    fn another_seed_is_another_draw() {
        let agents = agents(1000);
        let other = Arming {
            seed: 43,
            ..arming(0.1)
        };
        let both = agents
            .iter()
            .filter(|it| arming(0.1).armed(it, EPOCH) && other.armed(it, EPOCH))
            .count();
        assert!(both < 30, "{both} of 1,000 in both; expected some 10");
    }

    #[test]
    fn p08_over_all_turns_the_mean_is_at_most_the_budget_and_no_call_earns_more_than_one() {
        for (share, budget, earned) in [
            (0.01, 0.25, 1.0),
            (0.1, 0.08, 0.8),
            (0.25, 0.25, 1.0),
            (0.5, 0.05, 0.1),
            (0.1, 0.0, 0.0),
        ] {
            let ratio = arming(share).earned(Budget::clamped(budget)).get();
            assert!((ratio - earned).abs() < 1e-12, "{share}, {budget}: {ratio}");
            assert!(ratio * share <= budget + 1e-12);
        }
    }

    #[test]
    fn what_is_no_arming_is_refused_with_what_was_expected() {
        let refused = |share, epoch| {
            let refused = Arming::new(Ratio::clamped(share), epoch, 1);
            refused.unwrap_err().to_string()
        };
        for share in [0.0, 1.0] {
            assert!(refused(share, EPOCH).contains("above 0 and below 1"));
        }
        for epoch in [Duration::ZERO, Duration::from_millis(999), Duration::MAX] {
            assert!(refused(0.5, epoch).contains("from 1s to 600s"));
        }
        let stored = r#"{"share":1.0,"epoch":{"secs":10,"nanos":0},"seed":1}"#;
        assert!(serde_json::from_str::<Arming>(stored).is_err());
    }
}
