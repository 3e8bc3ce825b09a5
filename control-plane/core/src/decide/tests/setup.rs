//! What a run is made of: latencies, policy, script.

use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft};

use crate::decide::Utilisation;
use crate::memory::Memory;

/// SplitMix64: small, seeded, good enough for arrivals and latencies.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }

    /// Median 1.
    pub(super) fn lognormal(&mut self, sigma: f64) -> f64 {
        let (u, v) = (self.unit().max(1e-300), self.unit());
        (sigma * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()).exp()
    }
}

/// What one attempt meets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    pub(super) ms: f64,
    pub(super) fails: bool,
}

/// What decides it: seconds since the start, the replica, whether the call itself is expensive.
pub(super) type Service = Box<dyn Fn(f64, usize, bool, &mut Random) -> Fate>;

impl Fate {
    /// 10 ms in the median, and a share of independent stalls of 300 ms.
    pub(super) fn stalling(random: &mut Random, share: f64) -> Self {
        let stall = if random.chance(share) { 300.0 } else { 0.0 };
        Self {
            ms: 10.0 * random.lognormal(0.5) + stall,
            fails: false,
        }
    }

    pub(super) fn times(self, slower: f64) -> Self {
        Self {
            ms: self.ms * slower,
            ..self
        }
    }

    pub(super) fn failing(self, fails: bool) -> Self {
        Self { fails, ..self }
    }
}

/// What a healthy service has: 2 % stalls.
pub(super) const STALLS: f64 = 0.02;

pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) calls_per_s: f64,
    pub(super) agents: usize,
    pub(super) replicas: usize,
    /// Share of calls that are expensive whoever answers them.
    pub(super) expensive: fn(f64) -> f64,
    pub(super) service: Service,
    pub(super) draft: PolicyDraft,
    /// Whether and when calls are made at all.
    pub(super) traffic: fn(f64) -> f64,
    /// Replicas that get calls, of those there are.
    pub(super) replicas_at: fn(f64) -> usize,
    /// Live and silent agents the controller sees, where not all are live.
    pub(super) agents_seen: (u64, u64),
    /// Whether each decision is made a second time, to be the same.
    pub(super) twice: bool,
    /// What happens beside the traffic, each second before the decision.
    pub(super) script: fn(u64, &mut Script),
}

/// What a script may change.
pub(super) struct Script {
    pub(super) killed_by: Option<&'static str>,
    pub(super) policy: Option<Policy>,
    pub(super) replicas_per_agent_max: u32,
    /// Done to the memory before the next decision.
    pub(super) order: Option<fn(&mut Memory)>,
    /// The controller starts anew, with what its store kept.
    pub(super) restart: bool,
    /// Whether that store had no base to give.
    pub(super) base_lost: bool,
    pub(super) utilisation: Option<Utilisation>,
}

impl Setup {
    /// 600 calls a second by five agents on five replicas, under a policy that hedges.
    pub(super) fn new(
        seed: u64,
        service: impl Fn(f64, usize, bool, &mut Random) -> Fate + 'static,
    ) -> Self {
        let mut draft: PolicyDraft =
            Policy::observing(DependencyName::new("catalog").unwrap().into()).into();
        draft.intent = Intent::Hedge;
        draft.probation = false;
        Self {
            seed,
            calls_per_s: 600.0,
            agents: 5,
            replicas: 5,
            expensive: |_| 0.0,
            service: Box::new(service),
            draft,
            traffic: |_| 1.0,
            replicas_at: |_| usize::MAX,
            agents_seen: (5, 0),
            twice: false,
            script: |_, _| (),
        }
    }
}
