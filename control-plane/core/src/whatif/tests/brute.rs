//! The same by counting: every pair of a primary and a hedge of a small sample, every time, every
//! delay.

use std::collections::BTreeSet;

/// Calls of a sample, one by one, in milliseconds.
pub(super) type Calls = [u64];

/// The share of callers that waits longer than `time`, as a fraction: crossed calls are hedged with
/// the probability `q`, a fraction as well, and nothing is shared.
fn waits_longer(calls: &Calls, delay: u64, q: (u128, u128), time: u64) -> (u128, u128) {
    let mut longer = 0;
    for &primary in calls {
        for &hedge in calls {
            let alone = u128::from(primary > time);
            let raced = u128::from(primary > time && delay + hedge > time);
            longer += if primary > delay {
                q.0 * raced + (q.1 - q.0) * alone
            } else {
                q.1 * alone
            };
        }
    }
    let n = calls.len() as u128;
    (longer, n * n * q.1)
}

/// The first time with at most `tail` thousandths beyond it, of all whole milliseconds.
pub(super) fn percentile(calls: &Calls, delay: u64, q: (u128, u128), tail: u128) -> u64 {
    // Both copies are back by then.
    (0..=delay + calls.iter().max().unwrap())
        .find(|&time| {
            let (longer, all) = waits_longer(calls, delay, q, time);
            longer * 1000 <= tail * all
        })
        .unwrap()
}

/// The best time and its delay under a budget of thousandths.
pub(super) fn best(calls: &Calls, budget: u128, tail: u128) -> Option<(u64, u64)> {
    let values: BTreeSet<u64> = calls.iter().copied().collect();
    let n = calls.len() as u128;
    values
        .into_iter()
        .filter_map(|delay| {
            let crossed = calls.iter().filter(|&&call| call > delay).count() as u128;
            let q = if budget * n >= 1000 * crossed {
                (1, 1)
            } else {
                (budget * n, 1000 * crossed)
            };
            (crossed > 0).then(|| (percentile(calls, delay, q, tail), delay))
        })
        .min_by_key(|&(time, delay)| (time, u64::MAX - delay))
}
