//! A whole fleet's first second, with the real bucket and the real turns.

use std::time::Duration;

use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::units::{Budget, Ratio};

use super::{Turn, Turns};
use crate::budget::TokenBucket;
use crate::chance::Dice;
use crate::gate::Further;
use crate::mode::InForce;

const AGENTS: u32 = 20_000;
const SECOND: Duration = Duration::from_secs(1);

struct Agent {
    turns: Turns,
    turn: Turn,
    bucket: TokenBucket,
}

struct Fleet {
    agents: Vec<Agent>,
    in_force: InForce,
    dice: Dice,
    now: Duration,
    calls: u32,
    hedges: u32,
}

impl Fleet {
    fn new(arming: Option<Arming>) -> Self {
        let agent = |n: u32| Agent {
            turns: Turns::new(InstanceId::from_u128(0x0198_u128 << 112 | u128::from(n))),
            turn: Turn::Everyone,
            bucket: TokenBucket::default(),
        };
        Self {
            agents: (0..AGENTS).map(agent).collect(),
            in_force: InForce {
                stamp: Stamp::default(),
                mode: Mode::On,
                own_off: None,
                threshold: None,
                probability: Ratio::ONE,
                budget: Budget::clamped(0.08),
                cap: 1.0,
                arming,
                holdout: Ratio::ZERO,
                further: Further::default(),
            },
            dice: Dice::new(7),
            now: Duration::ZERO,
            calls: 0,
            hedges: 0,
        }
    }

    /// Calls of one agent in a second: one on average, by Poisson's law.
    fn calls_of_one(&mut self) -> u32 {
        let (mut calls, mut left) = (0, self.dice.share());
        while left > (-1f64).exp() {
            calls += 1;
            left *= self.dice.share();
        }
        calls
    }

    /// One second in which a share of calls crosses, and all calls finish or none does.
    fn second(&mut self, crossing: f64, finish: bool) {
        (self.calls, self.hedges) = (0, 0);
        for n in 0..self.agents.len() {
            let agent = &mut self.agents[n];
            let turn = agent.turns.at(self.in_force.arming.as_ref(), self.now);
            let before = std::mem::replace(&mut agent.turn, turn);
            turn.begin(before, &self.in_force, &agent.bucket);
            for _ in 0..self.calls_of_one() {
                self.calls += 1;
                let crosses = self.dice.share() < crossing;
                let bucket = &self.agents[n].bucket;
                if crosses && bucket.take() {
                    self.hedges += 1;
                }
                if finish {
                    bucket.earn();
                }
            }
        }
        self.now += SECOND;
    }

    /// The share of calls hedged in the first second in which everything stands still, after so many
    /// in which a share crossed.
    fn burst(arming: Option<Arming>, calm: u32, crossing: f64) -> f64 {
        let mut fleet = Self::new(arming);
        for _ in 0..calm {
            fleet.second(crossing, true);
        }
        fleet.second(1.0, false);
        f64::from(fleet.hedges) / f64::from(fleet.calls)
    }
}

/// 20,000 agents at a call a second: a tenth of them at a time, for twenty seconds each.
fn a_tenth() -> Arming {
    Arming::new(Ratio::clamped(0.1), 20 * SECOND, 5).unwrap()
}

#[test]
fn the_first_second_of_a_shared_stall_hedges_at_most_a_tenth_of_its_calls() {
    let alone = Fleet::burst(None, 60, 0.0);
    assert!(alone > 0.5, "without arming {alone}");
    // In the middle of a turn, in its last second, in the first of the next.
    for calm in [70, 79, 80] {
        let armed = Fleet::burst(Some(a_tenth()), calm, 0.0);
        assert!(armed <= 0.1, "after {calm} s: {armed}");
        assert!(calm == 80 || armed > 0.05, "after {calm} s only {armed}");
    }
    // Where one in twenty crosses all the time, some have just spent theirs.
    let (alone, armed) = (
        Fleet::burst(None, 60, 0.05),
        Fleet::burst(Some(a_tenth()), 70, 0.05),
    );
    assert!(alone > 0.3 && armed <= 0.1, "{alone}, {armed}");
}

#[test]
fn in_the_long_run_a_share_of_what_crosses_is_hedged() {
    let mut fleet = Fleet::new(Some(a_tenth()));
    let (mut calls, mut hedges) = (0, 0);
    for _ in 0..200 {
        fleet.second(0.05, true);
        calls += fleet.calls;
        hedges += fleet.hedges;
    }
    let rate = f64::from(hedges) / f64::from(calls);
    // A tenth of 5 %, but for the first two calls of each turn, which earn the token, and what
    // crosses just after a hedge.
    assert!((0.004..=0.005).contains(&rate), "{rate}");
}
