//! A dependency that is said to be busy.

use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::units::Ratio;

use super::setup::{Fate, STALLS, Script, Setup};
use super::world::World;
use crate::decide::Utilisation;
use crate::moment::Moment;

fn busy(second: u64, value: f64) -> Utilisation {
    Utilisation {
        value: Ratio::clamped(value),
        at: Moment::from_millis(second * 1_000),
        valid_for: Duration::from_secs(20),
    }
}

#[test]
fn what_is_shared_and_how_busy_it_is_cut_the_budget_both() {
    let mut setup = Setup::new(91, |_, _, expensive, random| {
        let stall = expensive || random.chance(STALLS);
        Fate {
            ms: 10.0 * random.lognormal(0.5) + if stall { 300.0 } else { 0.0 },
            fails: false,
        }
    });
    setup.calls_per_s = 1_000.0;
    setup.expensive = |_| STALLS / 2.0;
    setup.script = |second, script: &mut Script| {
        if second == 60 {
            script.utilisation = Some(busy(second, 0.7));
        }
    };
    let world = World::run(setup, 85);
    let budget = |second| world.row(second).decision.live.budget.get();
    assert!(budget(59) < 0.9 * 0.08, "phi alone: {}", budget(59));
    // Half of that at a utilisation of 0.7; phi itself moves little in a second.
    let times = budget(60) / budget(59);
    assert!((0.45..0.55).contains(&times), "{times}");
    // The reading holds for 20 s.
    let times = budget(80) / budget(79);
    assert!((1.8..2.2).contains(&times), "{times}");
    assert!(world.offs().is_empty(), "{:?}", world.changes());
}

#[test]
fn at_80_percent_not_even_a_probe_is_sent_and_then_it_comes_back() {
    let mut setup = Setup::new(92, |t, _, _, random| {
        let bad = (40.0..70.0).contains(&t);
        Fate::stalling(random, STALLS).times(if bad { 5.0 } else { 1.0 })
    });
    setup.script = |second, script: &mut Script| {
        if second == 50 {
            script.utilisation = Some(busy(second, 0.8));
        }
    };
    let world = World::run(setup, 150);
    let probing = Mode::Probing(OffReason::SharedSlowdown);
    for row in world.between(50, 68) {
        assert_eq!(row.decision.mode, probing, "second {}", row.second);
        assert_eq!(row.decision.live.probability, Ratio::ZERO);
    }
    // Orders under way are a second old.
    assert_eq!(world.hedge_rate(53, 69), 0.0);
    assert!(world.hedge_rate(71, 76) > 0.0, "probes again");
    assert_eq!(world.row(150).decision.mode, Mode::On);
}
