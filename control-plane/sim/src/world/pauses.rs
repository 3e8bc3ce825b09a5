//! When replicas stand still, drawn before the run begins: an attempt's work goes on only between.

use crate::chance::{Random, Stream};
use crate::scenario::{Fault, FaultKind, Which};

/// One interval, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Pause {
    begin: u64,
    end: u64,
    /// Of pauses before it, in all.
    before: u64,
}

impl Pause {
    /// How much work could be done up to it.
    fn worked(self) -> u64 {
        self.begin - self.before
    }

    /// Of pauses up to its end, in all.
    fn stood(self) -> u64 {
        self.before + (self.end - self.begin)
    }
}

/// For each replica, intervals that ascend and do not touch.
#[derive(Debug)]
pub(super) struct Pauses(Vec<Vec<Pause>>);

impl Pauses {
    pub(super) fn drawn(faults: &[Fault], seed: u64, replicas: usize, end_s: f64) -> Self {
        let mut pauses = vec![Vec::new(); replicas];
        for (number, fault) in (0..).zip(faults) {
            let to_s = fault.to_s.unwrap_or(end_s).min(end_s);
            let draw = |of: u64, ms, share| {
                let mut random = Random::of(seed, Stream::Pauses, number * 1000 + of);
                series(&mut random, (fault.from_s, to_s), ms, share)
            };
            match &fault.kind {
                FaultKind::SharedPauses { ms, share_of_time } => {
                    let together = draw(0, *ms, *share_of_time);
                    for own in &mut pauses {
                        own.extend_from_slice(&together);
                    }
                }
                FaultKind::ReplicaPauses {
                    ms,
                    share_of_time,
                    replicas,
                } => {
                    for (replica, own) in pauses.iter_mut().enumerate() {
                        if Which::has(replicas, replica) {
                            own.extend(draw(1 + replica as u64, *ms, *share_of_time));
                        }
                    }
                }
                _ => {}
            }
        }
        Self(pauses.into_iter().map(merged).collect())
    }

    /// When work of `work` microseconds is done that begins at `from`.
    pub(super) fn done_at(&self, replica: usize, from: u64, work: u64) -> u64 {
        let pauses = &self.0[replica];
        let over = pauses.partition_point(|it| it.end <= from);
        let stood = over.checked_sub(1).map_or(0, |last| pauses[last].stood());
        // As much work as since the beginning: what began in a pause does so as if at its start.
        let within = pauses.get(over).is_some_and(|it| it.begin < from);
        let worked = if within {
            pauses[over].worked()
        } else {
            from - stood
        };
        if work == 0 {
            return from;
        }
        let until = worked.saturating_add(work);
        let passed = pauses.partition_point(|it| it.worked() < until);
        let stood = passed.checked_sub(1).map_or(0, |last| pauses[last].stood());
        until.saturating_add(stood)
    }
}

/// Pauses of `ms` with exponential gaps between them, so that they are a `share` of the time.
fn series(random: &mut Random, (from, to): (f64, f64), ms: f64, share: f64) -> Vec<(u64, u64)> {
    let mut pauses = Vec::new();
    if share <= 0.0 {
        return pauses;
    }
    let gap = ms / 1e3 * (1.0 - share) / share;
    let mut at = from + random.exponential(gap);
    while at < to {
        let end = at + ms / 1e3;
        pauses.push(((at * 1e6) as u64, (end * 1e6) as u64));
        at = end + random.exponential(gap);
    }
    pauses
}

fn merged(mut pauses: Vec<(u64, u64)>) -> Vec<Pause> {
    pauses.sort_unstable();
    let mut merged: Vec<Pause> = Vec::new();
    for (begin, end) in pauses {
        match merged.last_mut() {
            Some(last) if begin <= last.end => last.end = last.end.max(end),
            last => {
                let before = last.map_or(0, |last| last.stood());
                merged.push(Pause { begin, end, before });
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_stands_still_in_pauses() {
        let pauses = Pauses(vec![merged(vec![(100, 200), (150, 250), (400, 500)])]);
        for (from, work, done) in [
            (0, 50, 50),
            (0, 100, 100),
            (0, 101, 251),
            (120, 10, 260),
            (250, 150, 400),
            (250, 151, 501),
            (600, 5, 605),
        ] {
            assert_eq!(pauses.done_at(0, from, work), done, "{work} from {from}");
        }
    }

    #[test]
    fn they_are_the_share_of_time_that_was_asked_for() {
        let mut random = Random::of(1, Stream::Pauses, 0);
        let pauses = series(&mut random, (0.0, 1000.0), 300.0, 0.1);
        let share = pauses.iter().map(|it| it.1 - it.0).sum::<u64>() as f64 / 1e9;
        assert!((share - 0.1).abs() < 0.02, "{share}");
    }
}
