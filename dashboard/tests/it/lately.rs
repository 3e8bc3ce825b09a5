//! What the fleet's calls took lately, and over the day: latencies and minutes as a controller would
//! have them.

use std::time::Duration;

use hedgerow_core::minute::{Known, Minute};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::RouteView;
use hedgerow_core::whatif::Latencies;
use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::latency::{Histogram, SurvivalCurve, bucket_of};
use hedgerow_protocol::units::{Ratio, as_millis};

/// How many times the median a call takes, by the powers of ten of those that take longer.
const TAIL: [(f64, f64); 7] = [
    (0.0, 0.6),
    (0.301, 1.0),
    (1.0, 1.8),
    (1.301, 2.4),
    (2.0, 6.3),
    (3.0, 18.0),
    (4.5, 60.0),
];
const STEPS: u64 = 400;

/// The time that a share `beyond` of the calls takes longer than.
fn quantile(beyond: f64) -> f64 {
    let powers = -beyond.log10();
    let after = TAIL.partition_point(|(at, _)| *at < powers).clamp(1, 6);
    let ((x0, y0), (x1, y1)) = (TAIL[after - 1], TAIL[after]);
    let part = ((powers - x0) / (x1 - x0)).clamp(0.0, 1.0);
    (y0.ln() + part * (y1 / y0).ln()).exp()
}

/// Some `calls` around a median, in milliseconds, a share of them `stalled` for ten times as long.
fn histogram(p50_ms: f64, calls: u64, stalled: f64) -> Histogram {
    let mut histogram = Histogram::new();
    let mut add = |times: f64, count: f64| {
        let latency = Duration::from_secs_f64(p50_ms * times / 1e3);
        let _ = histogram.add_to_bucket(bucket_of(latency), count.round() as u64);
    };
    // Steps of equal numbers, and the far tail in steps of equal factors.
    for step in 0..STEPS {
        let beyond = 1.0 - (step as f64 + 0.5) / STEPS as f64;
        if beyond > 0.01 {
            add(quantile(beyond), calls as f64 / STEPS as f64);
        }
    }
    for step in 0..30 {
        let beyond = 0.01 * 10f64.powf(-f64::from(step) / 10.0);
        let next = beyond * 10f64.powf(-0.1);
        add(quantile(beyond), calls as f64 * (beyond - next));
    }
    add(10.0, calls as f64 * stalled);
    histogram
}

/// The last five minutes of a route; None: it has no figures.
pub(crate) fn latencies(view: &RouteView) -> Option<Latencies> {
    let figures = view.figures?;
    let p50 = figures.p50?;
    let calls = (figures.calls_per_s * 300.0) as u64;
    let done = histogram(as_millis(p50), calls, 0.0);
    let mut stopped = Histogram::new();
    let _ = stopped.add_to_bucket(bucket_of(p50.mul_f64(2.6)), calls / 60);
    Some(Latencies {
        curve: SurvivalCurve::estimate(&done, &stopped),
        attempts: done.count() + stopped.count(),
        window: Duration::from_mins(5),
        phi: figures.phi.map(Ratio::clamped),
        threshold: figures.threshold,
        probability: Ratio::clamped(if view.mode.hedges() { 1.0 } else { 0.0 }),
        hedge_rate: figures.hedge_rate,
    })
}

/// The stored minutes of a route up to `now`: a day with a slow evening, half an hour without the
/// controller, and ten minutes of a slowness that all replicas shared.
pub(crate) fn minutes(view: &RouteView, now: Moment, last: Duration) -> Vec<Minute> {
    let Some((figures, p50)) = view.figures.and_then(|it| Some((it, it.p50?))) else {
        return Vec::new();
    };
    let count = (last.as_secs() / 60).min(1440);
    let ago = (0..count).rev();
    ago.filter(|ago| !(500..530).contains(ago))
        .map(|ago| {
            let at = Moment::from_millis(now.as_millis() - ago * 60_000);
            let slow = 1.0 + 0.35 * ((ago as f64) / 1440.0 * std::f64::consts::TAU).sin();
            let shared = (200..210).contains(&ago);
            let slow = if shared { slow * 4.0 } else { slow };
            let calls = (figures.calls_per_s * 60.0 / slow) as u64;
            let done = histogram(as_millis(p50) * slow, calls, 0.004 * (ago % 7) as f64);
            let hedged = if shared { 0.0 } else { 0.048 };
            Minute {
                at,
                span: Duration::from_mins(1),
                calls: done.count(),
                hedged: (done.count() as f64 * hedged) as u64,
                done: done.to_sparse(),
                censored: Histogram::new().to_sparse(),
                known: Known {
                    errors: Some(0.001),
                    phi: Some(0.02),
                    off: shared.then_some(OffReason::SharedSlowdown),
                },
            }
        })
        .collect()
}
