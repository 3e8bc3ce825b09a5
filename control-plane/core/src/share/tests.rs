//! Shares, and what they do for the calls.

use std::time::Duration;

use hedgerow_protocol::latency::{Histogram, SurvivalCurve};
use hedgerow_protocol::units::{Budget, Ratio};
use proptest::prelude::*;

use super::{Best, CAP, EVERY, FLOOR, Member, Rescue, share};

const MS: Duration = Duration::from_millis(1);

fn budget(share: f64) -> Budget {
    Budget::new(share).unwrap()
}

fn curve(calls: &[(u64, u32)]) -> SurvivalCurve {
    let mut done = Histogram::new();
    for &(ms, calls) in calls {
        (0..calls).for_each(|_| done.record(Duration::from_millis(ms)));
    }
    SurvivalCurve::estimate(&done, &Histogram::new())
}

fn rescue(calls: &[(u64, u32)], objective: Duration) -> Option<Rescue> {
    let any = Duration::ZERO..=Duration::MAX;
    Rescue::of(&curve(calls), objective, Ratio::ZERO, &any)
}

/// Calls of 10 ms, and some that stall: per thousand.
fn stalling(stalls: u32) -> Option<Rescue> {
    rescue(&[(10, 1000 - stalls), (300, stalls)], 100 * MS)
}

fn member(calls_per_s: f64, own: f64, rescue: Option<Rescue>) -> Member {
    Member {
        calls_per_s,
        own: budget(own),
        before: None,
        rescue,
    }
}

/// Shares it out until nobody moves any more.
fn settle(members: &mut [Member]) -> Vec<f64> {
    for _ in 0..300 {
        let shares = share(members, EVERY);
        for (member, share) in members.iter_mut().zip(shares) {
            member.before = Some(share);
        }
    }
    members.iter().map(|it| it.before.unwrap().get()).collect()
}

#[test]
fn who_has_nothing_to_rescue_lends_to_who_has_and_keeps_the_floor() {
    let mut members = [
        member(100.0, 0.02, stalling(80)),
        member(900.0, 0.02, stalling(0)),
    ];
    let shares = settle(&mut members);
    // Eight stalls a second; the pool is twenty.
    assert!((shares[0] - 0.08).abs() < 1e-6, "{shares:?}");
    assert!((shares[1] - FLOOR).abs() < 1e-9, "{shares:?}");
}

#[test]
fn a_hedge_goes_where_it_rescues_most_whatever_the_traffic() {
    // The second's objective is missed by one in a hundred of those it would have to hedge.
    let poor = rescue(&[(10, 700), (90, 290), (300, 10)], 100 * MS);
    let mut members = [
        member(100.0, 0.01, stalling(50)),
        member(100.0, 0.03, poor),
        member(100.0, 0.01, stalling(40)),
    ];
    let shares = settle(&mut members);
    // Five hedges a second: the steeper stalls first, then the others, hardly any for the poor.
    assert!((shares[2] - 0.04).abs() < 1e-6, "{shares:?}");
    assert!((shares[0] - 0.008).abs() < 1e-6, "{shares:?}");
    assert!((shares[1] - FLOOR).abs() < 1e-6, "{shares:?}");
    let spent: f64 = shares.iter().sum();
    assert!(spent <= 0.05 + 1e-9, "{shares:?}");
}

#[test]
fn none_gets_more_than_the_cap_and_what_nobody_is_helped_by_is_not_spent() {
    let mut members = [
        member(10.0, 0.08, stalling(300)),
        member(1000.0, 0.08, stalling(0)),
    ];
    let shares = settle(&mut members);
    assert!((shares[0] - CAP).abs() < 1e-9, "{shares:?}");
    assert!((shares[1] - FLOOR).abs() < 1e-9, "{shares:?}");
    // Rescues, but less than one in fifty hedges: all that cross take far longer than the objective
    // leaves, or are back by themselves.
    let hardly = rescue(&[(10, 100), (95, 890), (300, 10)], 100 * MS);
    let shares = settle(&mut [member(10.0, 0.08, hardly)]);
    assert!((shares[0] - FLOOR).abs() < 1e-9, "{shares:?}");
}

#[test]
fn moves_are_thirty_percent_a_minute_and_a_route_without_data_keeps_its_share() {
    let mut members = vec![
        member(100.0, 0.02, stalling(80)),
        member(900.0, 0.05, stalling(0)),
        member(50.0, 0.03, None),
    ];
    for _ in 0..6 {
        let shares = share(&members, EVERY);
        for (member, share) in members.iter_mut().zip(shares) {
            member.before = Some(share);
        }
    }
    let shares: Vec<_> = members.iter().map(|it| it.before.unwrap().get()).collect();
    assert!((shares[0] / 0.02 - 1.3).abs() < 1e-6, "{shares:?}");
    assert!((shares[1] / 0.05 - 0.7).abs() < 1e-6, "{shares:?}");
    assert!((shares[2] - 0.03).abs() < 1e-9, "{shares:?}");
    // Held up for an hour: no more than a minute's worth.
    let shares = share(&members, Duration::from_hours(1));
    assert!((shares[0].get() / 0.02 - 1.69).abs() < 1e-6, "{shares:?}");
}

#[test]
fn who_takes_waits_for_who_gives_and_a_pool_that_shrank_binds_at_once() {
    // Both want more than there is: the first, whose hedges help most, gets what the second gives up.
    let mut members = vec![
        member(1000.0, 0.01, stalling(60)),
        member(100.0, 0.05, stalling(0)),
    ];
    let pool = 15.0;
    for _ in 0..30 {
        let shares = share(&members, EVERY);
        let spent = shares[0].get() * 1000.0 + shares[1].get() * 100.0;
        assert!(spent <= pool + 1e-9, "{shares:?}");
        for (member, share) in members.iter_mut().zip(shares) {
            member.before = Some(share);
        }
    }
    assert!(members[0].before.unwrap().get() > 0.0135);
    // The lender loses its calls.
    members[1].calls_per_s = 1.0;
    let shares = share(&members, EVERY);
    let spent = shares[0].get() * 1000.0 + shares[1].get();
    assert!(spent <= 10.05 + 1e-9, "{shares:?}");
}

prop_compose! {
    fn any_member()(
        calls_per_s in 0.0_f64..5000.0,
        own in 0.0005_f64..0.25,
        before in prop::option::of(0.0005_f64..0.25),
        stalls in 0_u32..400,
        slow in 0_u32..300,
        stall_ms in 50_u64..1000,
        known in prop::bool::weighted(0.9),
    ) -> Member {
        let calls = [(10, 1000 - stalls.max(slow)), (40, slow), (stall_ms, stalls)];
        Member {
            calls_per_s,
            own: budget(own),
            before: before.map(budget),
            rescue: rescue(&calls, 100 * MS).filter(|_| known),
        }
    }
}

proptest! {
    #[test]
    fn p08_shares_stay_within_pool_floor_and_cap_and_move_slowly(
        members in prop::collection::vec(any_member(), 1..8),
        seconds in 1_u64..200,
    ) {
        let rates = || members.iter().map(|it| it.calls_per_s);
        let calls: f64 = rates().sum();
        let pool: f64 = members.iter().map(|it| it.own.get() * it.calls_per_s).sum();
        let shares = share(&members, Duration::from_secs(seconds));
        let spent: f64 = shares.iter().zip(rates()).map(|(it, rate)| it.get() * rate).sum();
        prop_assert!(spent <= pool * (1.0 + 1e-9) + 1e-9, "{spent} of {pool}");
        let floor = FLOOR.min(pool / calls);
        let minutes = seconds.min(60) as f64 / 60.0;
        let before: Vec<_> = members
            .iter()
            .map(|it| it.before.unwrap_or(it.own).get().clamp(floor, CAP))
            .collect();
        let fits = before.iter().zip(rates()).map(|(it, rate)| it * rate).sum::<f64>() <= pool;
        for (share, before) in shares.iter().zip(before) {
            let share = share.get();
            prop_assert!(share >= floor * (1.0 - 1e-9) && share <= CAP + 1e-12, "{share}");
            let (most, least) = (1.3_f64.powf(minutes), 0.7_f64.powf(minutes));
            prop_assert!(share <= before * most * (1.0 + 1e-9), "{share} after {before}");
            // Less only where the pool shrank.
            prop_assert!(!fits || share >= before * least * (1.0 - 1e-9), "{share} after {before}");
        }
    }
}

/// A service of the set below.
struct Service {
    calls_per_s: f64,
    /// Median of a usual answer, milliseconds, and how far it spreads (lognormal).
    usual: (f64, f64),
    /// Share of independent stalls of 300 ms.
    stalls: f64,
    objective: Duration,
}

/// A synthetic set: one service in trouble, one with some stalls, a busy one with few, and one whose
/// usual answers are near its objective, where a hedge hardly helps.
const SERVICES: [Service; 4] = [
    Service {
        calls_per_s: 150.0,
        usual: (10.0, 0.5),
        stalls: 0.08,
        objective: Duration::from_millis(100),
    },
    Service {
        calls_per_s: 200.0,
        usual: (10.0, 0.5),
        stalls: 0.03,
        objective: Duration::from_millis(100),
    },
    Service {
        calls_per_s: 1500.0,
        usual: (15.0, 0.4),
        stalls: 0.003,
        objective: Duration::from_millis(120),
    },
    Service {
        calls_per_s: 50.0,
        usual: (60.0, 0.4),
        stalls: 0.0,
        objective: Duration::from_millis(100),
    },
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn latency(&mut self, service: &Service) -> Duration {
        let (u, v) = (self.unit().max(1e-300), self.unit());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let stall = if self.unit() < service.stalls {
            300.0
        } else {
            0.0
        };
        MS.mul_f64(service.usual.0 * (service.usual.1 * normal).exp() + stall)
    }
}

impl Service {
    fn curve(&self, random: &mut Random) -> SurvivalCurve {
        let mut done = Histogram::new();
        (0..60_000).for_each(|_| done.record(random.latency(self)));
        SurvivalCurve::estimate(&done, &Histogram::new())
    }

    /// Of so many calls, the shares that miss the objective without and with hedging, and hedges.
    fn play(&self, random: &mut Random, (delay, probability): (Duration, f64)) -> [f64; 3] {
        const CALLS: u32 = 200_000;
        let (mut alone, mut with, mut hedges) = (0_u32, 0_u32, 0_u32);
        for _ in 0..CALLS {
            let mut took = random.latency(self);
            alone += u32::from(took > self.objective);
            if took > delay && random.unit() < probability {
                hedges += 1;
                took = took.min(delay + random.latency(self));
            }
            with += u32::from(took > self.objective);
        }
        [alone, with, hedges].map(|count| f64::from(count) / f64::from(CALLS))
    }
}

/// Misses removed, as a share of all there are, and hedges a second, of all services together.
fn removed(seed: u64, hedged: impl Fn(usize) -> (Duration, f64)) -> (f64, f64) {
    let mut random = Random(seed);
    let (mut missed, mut left, mut hedges) = (0.0, 0.0, 0.0);
    for (at, service) in SERVICES.iter().enumerate() {
        let [alone, with, sent] = service.play(&mut random, hedged(at));
        missed += alone * service.calls_per_s;
        left += with * service.calls_per_s;
        hedges += sent * service.calls_per_s;
    }
    (1.0 - left / missed, hedges)
}

/// Misses of the objective removed at 2 % each: some 17 % with a percentile, 43 % with the best
/// delay and probability for each, 80 % with one budget for all, which is what was found on another
/// set when the method was chosen.
#[test]
fn sharing_removes_several_times_the_misses_that_percentiles_do_at_the_same_load() {
    const OWN: f64 = 0.02;
    let mut random = Random(7);
    let curves = SERVICES.each_ref().map(|it| it.curve(&mut random));
    let any = Duration::ZERO..=Duration::MAX;
    let rescues: Vec<_> = SERVICES
        .iter()
        .zip(&curves)
        .map(|(it, curve)| Rescue::of(curve, it.objective, Ratio::ZERO, &any))
        .collect();
    let best = |at: usize, share: f64| {
        let Best {
            delay, probability, ..
        } = rescues[at].as_ref().unwrap().best(share).unwrap();
        (delay, probability)
    };
    let mut members: Vec<_> = SERVICES
        .iter()
        .zip(&rescues)
        .map(|(it, rescue)| member(it.calls_per_s, OWN, rescue.clone()))
        .collect();
    let shares = settle(&mut members);

    let (percentile, load) = removed(1, |at| (curves[at].quantile(1.0 - OWN).unwrap(), 1.0));
    let (each, each_load) = removed(2, |at| best(at, OWN));
    let (shared, shared_load) = removed(3, |at| best(at, shares[at]));
    let words = format!(
        "{percentile:.3} {each:.3} {shared:.3} of misses at {load:.1} {each_load:.1} {shared_load:.1} hedges/s; shares {shares:?}"
    );
    assert!((0.10..0.25).contains(&percentile), "{words}");
    assert!((0.35..0.52).contains(&each), "{words}");
    assert!((0.72..0.90).contains(&shared), "{words}");
    let pool = OWN * SERVICES.iter().map(|it| it.calls_per_s).sum::<f64>();
    assert!(shared_load < 1.03 * pool, "{words}");
}
