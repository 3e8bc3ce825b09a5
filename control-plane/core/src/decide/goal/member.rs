//! What a route brings to its pool.

use hedgerow_protocol::policy::Policy;
use hedgerow_protocol::units::{Budget, Ratio};

use super::search::delays;
use crate::decide::phi;
use crate::decide::primaries::healthy;
use crate::memory::Memory;
use crate::share::{Member, Rescue};
use crate::window::{WINDOW_CALLS_MIN, WINDOW_MAX, Windows};

/// A route as its pool sees it: over the last minute, as what misses an objective is rare.
pub(crate) fn member(
    windows: &Windows,
    policy: &Policy,
    memory: &Memory,
    before: Option<Budget>,
) -> Member {
    let window = windows.over(WINDOW_MAX);
    let seconds = window.span().as_secs_f64();
    let enough = window.calls() >= WINDOW_CALLS_MIN;
    let rescue = policy.objective().filter(|_| enough).and_then(|objective| {
        let curve = healthy(windows, &window, &memory.named).curve();
        let shared = phi(windows, policy, memory).map_or(Ratio::ZERO, |phi| phi.at_least());
        Rescue::of(&curve, objective, shared, &delays(policy, &curve))
    });
    Member {
        calls_per_s: if seconds > 0.0 {
            window.calls() as f64 / seconds
        } else {
            0.0
        },
        own: policy.budget(),
        before,
        rescue,
    }
}
