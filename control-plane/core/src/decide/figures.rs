//! The present figures of a route, as pages and programs see them.

use std::time::Duration;

use hedgerow_protocol::latency::{SurvivalCurve, bucket_of};
use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::report::{Refusal, Totals};
use hedgerow_protocol::units::Threshold;

use super::goal::InForce;
use super::primaries::{Healthy, Present, share};
use super::{Live, Situation};
use crate::memory::Memory;
use crate::view::{Figures, Interval, NoData};
use crate::window::{WINDOW_MAX, Windows};

/// How long the controller counts as just started.
const JUST_STARTED: Duration = Duration::from_secs(15);

/// Everything over the present window, but for what needs a minute to be seen.
pub(crate) fn figures(
    windows: &Windows,
    present: &Present<'_>,
    memory: &Memory,
    live: &Live,
    policy: Option<&Policy>,
    phi: Option<f64>,
) -> Figures {
    let curve = present.primary.curve();
    let present = &present.window;
    let totals = present.totals();
    let minute = windows.over(WINDOW_MAX);
    let holdout = minute.holdout();
    let treated = minute.treated();
    let ended = totals.finished.saturating_sub(totals.abandoned);
    let seconds = present.span().as_secs_f64();
    let healthy = Healthy::count(present, &memory.named);
    let threshold = live.threshold.map(Threshold::get);
    Figures {
        window: present.span(),
        calls: totals.started,
        calls_per_s: if seconds > 0.0 {
            totals.started as f64 / seconds
        } else {
            0.0
        },
        success: share(totals.failed, ended).map(|failed| (1.0 - failed).max(0.0)),
        p50: curve.quantile(0.5),
        p95: curve.quantile(0.95),
        p99: curve.quantile(0.99),
        treated_p99: treated.quantile(0.99),
        holdout_p99: holdout.quantile(0.99),
        holdout_calls: holdout.count(),
        treated_calls: treated.count(),
        treated_p95: treated.quantile(0.95),
        holdout_p95: holdout.quantile(0.95),
        treated_p99_within: Interval::of(&treated, 0.99),
        holdout_p99_within: Interval::of(&holdout, 0.99),
        hedge_rate: share(totals.hedges(), totals.started),
        demand: share(healthy.crossed, totals.started).map(|crossed| crossed * memory.probability),
        win_rate: share(totals.won, totals.hedged),
        win_rate_expected: threshold.and_then(|d| expected_wins(&curve, d)),
        error_rate: share(totals.primary_errors, totals.primary_finished),
        refused_by_budget: share(totals.refused_for(Refusal::Budget), totals.crossed),
        refused: refused(&totals),
        threshold,
        probability: live.probability.get(),
        budget: live.budget.get(),
        target: policy.map_or(0.0, |policy| target(memory, policy, live)),
        hedges_answered_ratio: memory.shared.test().and_then(|(test, _)| test.ratio),
        log_rank_z: memory.shared.test().and_then(|(test, _)| test.z),
        phi,
        median_ratio: memory.base.ratio(),
        utilisation: None,
    }
}

/// Why crossed calls were not hedged; None: none crossed.
fn refused(totals: &Totals) -> Option<[f32; Refusal::ALL.len()]> {
    (totals.crossed > 0).then(|| {
        let crossed = totals.crossed as f64;
        // To a hundredth of a per cent: a point of the history is short.
        let share = |count: u64| ((count as f64 / crossed).min(1.0) * 1e4).round() / 1e4;
        totals.refused.map(|count| share(count) as f32)
    })
}

/// Hedges aimed at, as a share of eligible calls: of those that cross at an armed agent.
pub(crate) fn target(memory: &Memory, policy: &Policy, live: &Live) -> f64 {
    let armed = live.arming.map_or(1.0, |armed| armed.share.get());
    InForce::of(memory, policy).load * (1.0 - policy.holdout().get()) * armed
}

/// The share of hedges sent at `threshold` that would answer first, were they independent of the
/// primaries they are sent for: P(Y < X - d | X > d). What is longer than the curve is known counts
/// as won.
fn expected_wins(curve: &SurvivalCurve, threshold: Duration) -> Option<f64> {
    let crossed = curve
        .survival_at(threshold)
        .filter(|&crossed| crossed > 0.0)?;
    let mut wins = 0.0;
    let mut before = crossed;
    // Up to the threshold nobody was hedged.
    for step in curve.steps_from(bucket_of(threshold)) {
        // Nothing ended in most buckets.
        if step.survival >= before {
            continue;
        }
        let end = Duration::from_nanos((step.upper_edge_us * 1e3) as u64);
        let Some(hedged_for) = end.checked_sub(threshold) else {
            continue;
        };
        let ended = (before - step.survival).max(0.0);
        before = before.min(step.survival);
        if ended > 0.0 {
            let hedge_alive = curve.survival_at(hedged_for).unwrap_or(0.0);
            wins += ended * (1.0 - hedge_alive);
        }
    }
    Some(((wins + before) / crossed).clamp(0.0, 1.0))
}

/// Why there are no figures.
pub(crate) fn no_data(windows: &Windows, situation: &Situation<'_>) -> NoData {
    if situation.now.since(situation.started) < JUST_STARTED {
        NoData::JustStarted
    } else if situation.agents == 0 {
        if situation.agents_stale > 0 {
            NoData::AgentsStale
        } else {
            NoData::NoAgents
        }
    } else if windows.over(WINDOW_MAX).calls() == 0 {
        NoData::NoTraffic
    } else {
        NoData::TooFew
    }
}
