//! When it is this agent's turn to hedge, where only a share of the fleet's agents is armed at a
//! time. Calls read what came of it from the gate and the bucket, never from here.

use std::time::Duration;

use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::units::Ratio;

use crate::budget::TokenBucket;
use crate::mode::InForce;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Everyone's, always.
    Everyone,
    /// This agent's, and that of others.
    Armed,
    /// Others'.
    Unarmed,
}

impl Turn {
    /// What a finished call earns in it, and the most tokens that are kept.
    pub(crate) fn allows(self, in_force: &InForce) -> (f64, f64) {
        let earned = match (self, &in_force.arming) {
            (Self::Unarmed, _) => return (0.0, 0.0),
            (Self::Armed, Some(arming)) => arming.earned(in_force.budget).get(),
            (Self::Armed | Self::Everyone, _) => in_force.budget.get(),
        };
        (earned, in_force.cap)
    }

    /// It comes after `before`, or goes on by other values: so calls earn and pay from now on. Returns
    /// what it [allows](Self::allows).
    pub(crate) fn begin(
        self,
        before: Self,
        in_force: &InForce,
        bucket: &TokenBucket,
    ) -> (f64, f64) {
        let (earned, cap) = self.allows(in_force);
        bucket.set(Ratio::clamped(earned), cap);
        if before != self && [before, self].contains(&Self::Unarmed) {
            // Also where a turn begins: a call that ended as the last one did may have left something.
            bucket.clear();
        }
        (earned, cap)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Turns {
    agent: InstanceId,
    /// The last seed, and when it first came.
    began: Option<(u64, Duration)>,
}

impl Turns {
    pub(crate) fn new(agent: InstanceId) -> Self {
        Self { agent, began: None }
    }

    /// Whose turn it is `now`.
    pub(crate) fn at(&mut self, arming: Option<&Arming>, now: Duration) -> Turn {
        let Some(arming) = arming else {
            return Turn::Everyone;
        };
        let began = match self.began {
            Some((seed, began)) if seed == arming.seed() => began,
            _ => now,
        };
        self.began = Some((arming.seed(), began));
        if arming.armed(&self.agent, now.saturating_sub(began)) {
            Turn::Armed
        } else {
            Turn::Unarmed
        }
    }
}

#[cfg(test)]
mod fleet;

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn arming(seed: u64) -> Arming {
        Arming::new(Ratio::new(0.1).unwrap(), 10 * S, seed).unwrap()
    }

    #[test]
    fn turns_go_on_from_where_a_seed_first_came_also_after_a_time_without_arming() {
        let agent = InstanceId::from_u128(1);
        let mut turns = Turns::new(agent);
        // The protocol's own example: seed 7 arms it in turns 3, 11, 24, ...
        let armed = |turns: &mut Turns, from: u32, until: u32| -> Vec<_> {
            let mut at = |second: u32| turns.at(Some(&arming(7)), (100 + second) * S);
            (from..until).filter(|it| at(*it) == Turn::Armed).collect()
        };
        assert_eq!(armed(&mut turns, 0, 50), (30..40).collect::<Vec<_>>());
        assert_eq!(turns.at(None, 150 * S), Turn::Everyone);
        assert_eq!(armed(&mut turns, 51, 125), (110..120).collect::<Vec<_>>());
        // Another seed is another beginning.
        turns.at(Some(&arming(8)), 300 * S);
        let turn = |n: u32| arming(8).armed(&agent, n * 10 * S);
        for n in 0..20 {
            let now = turns.at(Some(&arming(8)), (300 + 10 * n) * S);
            assert_eq!(now == Turn::Armed, turn(n));
        }
    }
}
