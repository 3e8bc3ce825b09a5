mod brute;
mod goals;
mod hostile;
mod lab;
mod live;
mod planned;
mod properties;
mod replayed;

use std::time::Duration;

use hedgerow_protocol::units::{Budget, Ratio};

use super::{Advice, Distribution, Goal, Percentile, Plan};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sample(counts: &[(u64, u64)]) -> Distribution {
    Distribution::of_counts(counts.iter().map(|&(at, count)| (ms(at), count))).unwrap()
}

fn goal(percentile: Percentile, budget: f64) -> Goal {
    Goal::new(percentile, Budget::new(budget).unwrap())
}

fn ratio(share: f64) -> Ratio {
    Ratio::new(share).unwrap()
}

#[track_caller]
fn plan(advice: Advice) -> Plan {
    match advice {
        Advice::Hedge(plan) => plan,
        Advice::Leave(why) => panic!("{why}"),
    }
}

#[track_caller]
fn why_not(advice: Advice) -> String {
    match advice {
        Advice::Hedge(plan) => panic!("{plan:?}"),
        Advice::Leave(why) => why.to_string(),
    }
}
