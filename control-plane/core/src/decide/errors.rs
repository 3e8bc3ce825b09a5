//! Off where too many primaries fail, or the dependency pushes back: more requests help neither.

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::limits::ERROR_PRIMARIES_MIN;

use super::latch::{Seen, Verdict};
use super::naming::Entry;
use super::primaries::{Healthy, share};
use crate::window::{Lookback, WINDOW_CALLS, WINDOW_MAX, WINDOW_MIN, Windows};

/// Share of pushed-back attempts above which hedging goes off.
pub(crate) const PUSH_BACK_LIMIT: f64 = 0.01;
/// Share under which push-back counts as gone: a tenth of it.
const PUSH_BACK_GONE: f64 = 0.001;
/// Share of the error limit under which hedging may go on again.
const WELL: f64 = 0.5;

/// Primary errors / primaries finished, failing replicas left out.
///
/// Over: on the present window, which is robust, and on the shortest with a hundred primaries, so
/// that what is over is not acted on. Well: on the short one, so that it is seen within seconds.
pub(crate) fn errors(
    windows: &Windows,
    named: &BTreeMap<ReplicaName, Entry>,
    limit: f64,
) -> Verdict {
    if windows.over(1).sum(|totals| totals.primary_finished) == 0 {
        return Verdict::Unknown;
    }
    let primaries = |window: &Lookback<'_>| Healthy::count(window, named).finished;
    let short = windows.grown(WINDOW_MIN, WINDOW_MAX, |w| {
        primaries(w) >= ERROR_PRIMARIES_MIN
    });
    let long = windows.grown(WINDOW_MIN, WINDOW_MAX, |w| primaries(w) >= WINDOW_CALLS);
    let rate = |window: &Lookback<'_>| {
        let seen = Healthy::count(window, named);
        (seen.finished >= ERROR_PRIMARIES_MIN)
            .then(|| share(seen.errors, seen.finished))
            .flatten()
            .map(|rate| (rate, window.span()))
    };
    let (Some(now), Some((lasting, _))) = (rate(&short), rate(&long)) else {
        return Verdict::Unknown;
    };
    judge("error rate", now, lasting, limit, limit * WELL)
}

/// Attempts answered by push-back / attempts ended.
pub(crate) fn push_back(windows: &Windows) -> Verdict {
    let attempts = |window: &Lookback<'_>| {
        window.sum(|t| t.primary_finished) + window.sum(|t| t.hedge_finished)
    };
    if attempts(&windows.over(1)) == 0 {
        return Verdict::Unknown;
    }
    let short = windows.grown(WINDOW_MIN, WINDOW_MAX, |w| {
        attempts(w) >= ERROR_PRIMARIES_MIN
    });
    let long = windows.grown(WINDOW_MIN, WINDOW_MAX, |w| attempts(w) >= WINDOW_CALLS);
    let rate = |window: &Lookback<'_>| {
        let ended = attempts(window);
        (ended >= ERROR_PRIMARIES_MIN)
            .then(|| share(window.sum(|t| t.push_back), ended))
            .flatten()
            .map(|rate| (rate, window.span()))
    };
    let (Some(now), Some((lasting, _))) = (rate(&short), rate(&long)) else {
        return Verdict::Unknown;
    };
    judge(
        "push-back rate",
        now,
        lasting,
        PUSH_BACK_LIMIT,
        PUSH_BACK_GONE,
    )
}

fn judge(
    what: &'static str,
    (now, window): (f64, Duration),
    lasting: f64,
    limit: f64,
    well: f64,
) -> Verdict {
    let seen = |limit: f64| Seen {
        what,
        value: now,
        limit,
        window,
    };
    if now > limit && lasting > limit {
        Verdict::Over(seen(limit))
    } else if now < well {
        Verdict::Well(seen(well))
    } else {
        Verdict::Between
    }
}
