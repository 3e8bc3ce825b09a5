//! Nothing is wrong: the rate is met and nothing is switched off.

use super::world::{Setup, World, healthy_fate};

fn healthy(seed: u64) -> Setup {
    Setup::new(seed, Box::new(|_, _, _, random| healthy_fate(random)))
}

#[test]
fn dump() {
    for seed in 1..=4 {
        let world = World::run(healthy(seed), 600);
        println!("{seed}: {:?} rate {:.4} over {}", world.changes(), world.hedge_rate(60, 600), world.seconds_over_budget());
        let worst = (60..600).map(|s| (world.hedge_rate(s, s + 1) * 1e4) as u64).max();
        println!("worst second {worst:?} d {:.1}", world.threshold_ms(500));
    }
}
