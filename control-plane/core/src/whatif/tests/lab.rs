//! The lab's hundred calls: each figure of the file, and the goals of ALGORITHMS, section 3.

use std::time::Duration;

use hedgerow_protocol::units::Ratio;
use serde_json::Value;

use super::{Distribution, Percentile, goal, ms, plan};
use crate::whatif::latency;

fn file() -> Value {
    serde_json::from_str(include_str!("../../../tests/data/lab_sample.json")).unwrap()
}

pub(super) fn lab() -> Distribution {
    let file = file();
    let counts = file["sample_ms"].as_object().unwrap().iter();
    let counts = counts.map(|(at, count)| {
        let at = latency(at.parse().unwrap()).unwrap();
        (at, count.as_u64().unwrap())
    });
    Distribution::of_counts(counts).unwrap()
}

fn millis(value: &Value) -> Duration {
    ms(value.as_u64().unwrap())
}

#[test]
fn the_unhedged_percentiles_are_the_files() {
    let (file, lab) = (file(), lab());
    let unhedged = file["unhedged_ms"].as_object().unwrap();
    assert_eq!(unhedged.len(), Percentile::SHOWN.len());
    for percentile in Percentile::SHOWN {
        let expected = millis(&unhedged[&percentile.to_string()]);
        assert_eq!(lab.percentile(percentile), Some(expected), "{percentile}");
    }
}

#[test]
fn each_figure_of_the_curve_is_the_files() {
    let (file, lab) = (file(), lab());
    let rows = file["hedged"].as_array().unwrap();
    let curve = lab.curve(Ratio::ZERO, 100);
    assert_eq!(curve.len(), rows.len());
    for (row, hedged) in rows.iter().zip(curve) {
        assert_eq!(hedged.delay, millis(&row["delay_ms"]));
        // Not nearly: the nearest float of the exact share.
        assert_eq!(hedged.extra_load, row["extra_load"].as_f64().unwrap());
        for percentile in Percentile::SHOWN {
            let expected = millis(&row[format!("{percentile}_ms")]);
            assert_eq!(hedged.at(percentile), Some(expected), "{row} {percentile}");
        }
    }
}

#[test]
fn the_goals_are_those_of_the_algorithms() {
    for (budget, reached, delay, probability, extra_load) in [
        (0.02, 62, 50, 0.769, 0.0154),
        (0.03, 50, 30, 0.556, 0.0278),
        (0.04, 50, 30, 0.556, 0.0278),
        (0.05, 45, 30, 1.0, 0.05),
        (0.10, 35, 20, 1.0, 0.1),
    ] {
        let plan = plan(lab().best(&goal(Percentile::P99, budget)));
        assert_eq!(
            (plan.reached, plan.delay),
            (ms(reached), ms(delay)),
            "{budget}"
        );
        assert_eq!(plan.unhedged, Some(ms(120)));
        assert!((plan.probability - probability).abs() < 0.0005, "{plan:?}");
        assert!((plan.extra_load - extra_load).abs() < 0.00005, "{plan:?}");
    }
}
