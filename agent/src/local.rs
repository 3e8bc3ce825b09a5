//! The agent's own switch-off: too many failing primaries, or push-back. Pure.
//!
//! It works beside the controller's (the stricter of the two holds) because an agent sees its own
//! errors a second before anybody else does, and it is all there is without a controller.

use std::collections::VecDeque;
use std::time::Duration;

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::limits::ERROR_PRIMARIES_MIN;
use hedgerow_protocol::majority::Count;
use hedgerow_protocol::units::Ratio;

use crate::naming::named;

/// Seconds kept: at 2 primaries a second a verdict takes nearly a minute.
const SECONDS_MAX: usize = 60;
/// Seconds in a row that a verdict needs.
const SECONDS_IN_A_ROW: u32 = 2;
/// Share of push-back answers that is too much.
pub(crate) const PUSH_BACK_LIMIT: f64 = 0.01;
/// Least time off.
const LEAST_STAY: Duration = Duration::from_secs(10);
/// Most times off within [`CHANGES_WINDOW`]; then off until the oldest of them is that old.
const CHANGES_MAX: usize = 12;
const CHANGES_WINDOW: Duration = Duration::from_hours(1);

/// Primaries of one replica in one second.
#[derive(Debug, Clone)]
pub(crate) struct ReplicaErrors {
    pub(crate) replica: ReplicaName,
    pub(crate) finished: u64,
    pub(crate) errors: u64,
}

/// What ended in one second. Losers are in none of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    pub(crate) primaries: u64,
    pub(crate) errors: u64,
    pub(crate) attempts: u64,
    pub(crate) push_back: u64,
    pub(crate) replicas: Vec<ReplicaErrors>,
}

impl Ended {
    fn add(&mut self, other: &Self) {
        self.primaries += other.primaries;
        self.errors += other.errors;
        self.attempts += other.attempts;
        self.push_back += other.push_back;
        for theirs in &other.replicas {
            match self
                .replicas
                .iter_mut()
                .find(|ours| ours.replica == theirs.replica)
            {
                Some(ours) => {
                    ours.finished += theirs.finished;
                    ours.errors += theirs.errors;
                }
                None => self.replicas.push(theirs.clone()),
            }
        }
    }

    /// Takes in what ended by replica, each with primaries finished and failed. Those of `judged`, the
    /// replicas on probation, were judged already: they are taken out of the sums.
    pub(crate) fn with_replicas<'a>(
        mut self,
        each: impl Iterator<Item = (&'a ReplicaName, u64, u64)>,
        judged: &[ReplicaName],
    ) -> Self {
        for (replica, finished, errors) in each {
            if judged.contains(replica) {
                // What ends as the second does may be counted on either side of it.
                self.primaries = self.primaries.saturating_sub(finished);
                self.errors = self.errors.saturating_sub(errors);
            } else if finished > 0 {
                self.replicas.push(ReplicaErrors {
                    replica: replica.clone(),
                    finished,
                    errors,
                });
            }
        }
        self
    }

    fn counts(&self) -> impl Iterator<Item = (&ReplicaName, Count)> {
        self.replicas.iter().map(|own| {
            let count = Count {
                events: own.errors,
                calls: own.finished,
            };
            (&own.replica, count)
        })
    }

    /// The share of failing primaries without the replicas `named` for it. None under 100
    /// primaries: no data, no verdict.
    fn error_share(&self, named: &[ReplicaName]) -> Option<f64> {
        if self.primaries < ERROR_PRIMARIES_MIN {
            return None;
        }
        let (mut primaries, mut errors) = (self.primaries, self.errors);
        let at_fault = |own: &&ReplicaErrors| named.contains(&own.replica);
        for own in self.replicas.iter().filter(at_fault) {
            primaries = primaries.saturating_sub(own.finished);
            errors = errors.saturating_sub(own.errors);
        }
        (primaries > 0).then(|| errors as f64 / primaries as f64)
    }

    fn push_back_share(&self) -> Option<f64> {
        (self.attempts >= ERROR_PRIMARIES_MIN).then(|| self.push_back as f64 / self.attempts as f64)
    }
}

/// Off, and why.
#[derive(Debug, Clone, Copy)]
struct Off {
    reason: OffReason,
    since: Duration,
}

/// What a verdict rests on; None: too few calls to tell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shares {
    /// Of primaries that failed, without the replicas that alone are at fault.
    pub(crate) errors: Option<f64>,
    /// Of attempts that were answered with push-back.
    pub(crate) push_back: Option<f64>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct OwnSwitch {
    seconds: VecDeque<Ended>,
    /// At the end of the last second.
    shares: Shares,
    off: Option<Off>,
    in_a_row: u32,
    /// When it went off, within the last hour.
    offs: VecDeque<Duration>,
}

impl OwnSwitch {
    pub(crate) fn off(&self) -> Option<OffReason> {
        self.off.map(|off| off.reason)
    }

    /// What was found at the end of the last second.
    pub(crate) fn shares(&self) -> Shares {
        self.shares
    }

    /// The shortest window with enough of what `count` counts.
    fn window(&self, count: impl Fn(&Ended) -> u64) -> Ended {
        let mut window = Ended::default();
        for second in &self.seconds {
            window.add(second);
            if count(&window) >= ERROR_PRIMARIES_MIN {
                break;
            }
        }
        window
    }

    /// Replicas that alone are at fault: a majority that fails is the dependency failing.
    fn failing(&self, limit: Ratio) -> Vec<ReplicaName> {
        named(self.seconds.iter().map(Ended::counts), limit.get() / 2.0)
    }

    /// A second is over.
    pub(crate) fn tick(&mut self, now: Duration, ended: Ended, limit: Ratio) {
        self.seconds.push_front(ended);
        self.seconds.truncate(SECONDS_MAX);
        self.offs
            .retain(|at| now.saturating_sub(*at) < CHANGES_WINDOW);
        let failing = self.failing(limit);
        let errors = self.window(|window| window.primaries).error_share(&failing);
        let push_back = self.window(|window| window.attempts).push_back_share();
        self.shares = Shares { errors, push_back };
        match self.off {
            None => {
                let failed = errors.is_some_and(|share| share > limit.get());
                let pushed = push_back.is_some_and(|share| share > PUSH_BACK_LIMIT);
                self.in_a_row = if failed || pushed {
                    self.in_a_row + 1
                } else {
                    0
                };
                if self.in_a_row >= SECONDS_IN_A_ROW {
                    let reason = if pushed {
                        OffReason::PushBack
                    } else {
                        OffReason::Errors
                    };
                    self.off = Some(Off { reason, since: now });
                    self.offs.push_back(now);
                }
            }
            Some(Off { reason, since }) => {
                let calm = match reason {
                    OffReason::PushBack => push_back.is_some_and(|share| share <= PUSH_BACK_LIMIT),
                    _ => errors.is_some_and(|share| share < limit.get() / 2.0),
                };
                let stayed = now.saturating_sub(since) >= LEAST_STAY;
                if calm && stayed && self.offs.len() < CHANGES_MAX {
                    self.off = None;
                    self.in_a_row = 0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(primaries: u64, errors: u64) -> Ended {
        Ended {
            primaries,
            errors,
            attempts: primaries,
            ..Ended::default()
        }
    }

    fn limit() -> Ratio {
        Ratio::new(0.05).unwrap()
    }

    /// One second for each entry, from second `from` on.
    fn run(switch: &mut OwnSwitch, from: u64, seconds: &[Ended]) {
        for (second, ended) in (from..).zip(seconds) {
            switch.tick(Duration::from_secs(second), ended.clone(), limit());
        }
    }

    #[test]
    fn two_seconds_over_the_limit_switch_off_one_does_not() {
        let mut switch = OwnSwitch::default();
        run(
            &mut switch,
            0,
            &[ended(1000, 600), ended(1000, 0), ended(1000, 600)],
        );
        assert_eq!(switch.off(), None);
        run(&mut switch, 3, &[ended(1000, 600)]);
        assert_eq!(switch.off(), Some(OffReason::Errors));
    }

    #[test]
    fn p16_under_a_hundred_primaries_there_is_no_verdict() {
        let mut switch = OwnSwitch::default();
        run(
            &mut switch,
            0,
            &[ended(30, 30), ended(30, 30), ended(30, 30)],
        );
        assert_eq!(switch.off(), None);
        run(&mut switch, 3, &[ended(30, 30), ended(30, 30)]);
        assert_eq!(switch.off(), Some(OffReason::Errors));
        // Silence switches nothing on.
        run(&mut switch, 5, &vec![Ended::default(); 300]);
        assert_eq!(switch.off(), Some(OffReason::Errors));
    }

    #[test]
    fn p14_on_again_under_half_the_limit_after_the_least_stay() {
        let mut switch = OwnSwitch::default();
        run(&mut switch, 0, &[ended(1000, 600), ended(1000, 600)]);
        run(&mut switch, 2, &vec![ended(1000, 0); 9]);
        assert_eq!(switch.off(), Some(OffReason::Errors), "10 s are not over");
        run(&mut switch, 11, &[ended(1000, 40)]);
        assert_eq!(
            switch.off(),
            Some(OffReason::Errors),
            "4 % is not under half of 5 %"
        );
        run(&mut switch, 12, &[ended(1000, 10)]);
        assert_eq!(switch.off(), None);
    }

    #[test]
    fn c14_push_back_over_one_percent_switches_off() {
        let mut switch = OwnSwitch::default();
        let pushed = |push_back| Ended {
            push_back,
            ..ended(1000, 0)
        };
        run(&mut switch, 0, &vec![pushed(9); 5]);
        assert_eq!(switch.off(), None);
        run(&mut switch, 5, &[pushed(11), pushed(11)]);
        assert_eq!(switch.off(), Some(OffReason::PushBack));
        run(&mut switch, 7, &vec![pushed(0); 12]);
        assert_eq!(switch.off(), None);
    }

    /// Three replicas with so many calls each.
    fn three(calls: u64, errors: [u64; 3]) -> Ended {
        Ended {
            replicas: errors
                .iter()
                .enumerate()
                .map(|(i, errors)| ReplicaErrors {
                    replica: ReplicaName::new(&format!("r{i}")).unwrap(),
                    finished: calls,
                    errors: *errors,
                })
                .collect(),
            ..ended(3 * calls, errors.iter().sum())
        }
    }

    #[test]
    fn one_failing_replica_is_not_the_dependency_failing() {
        for calls in [10, 30, 50, 300] {
            let mut switch = OwnSwitch::default();
            run(&mut switch, 0, &vec![three(calls, [0, 0, 0]); 30]);
            for second in 30..60 {
                run(&mut switch, second, &[three(calls, [calls, 0, 0])]);
                assert_eq!(
                    switch.off(),
                    None,
                    "{calls} calls a second, second {second}"
                );
            }
            run(&mut switch, 60, &vec![three(calls, [calls, calls, 0]); 20]);
            assert_eq!(
                switch.off(),
                Some(OffReason::Errors),
                "two of three are the majority"
            );
        }
    }

    #[test]
    fn p14_no_more_than_twelve_times_an_hour() {
        let mut switch = OwnSwitch::default();
        let mut offs = 0;
        for cycle in 0..100u64 {
            let was = switch.off().is_none();
            run(
                &mut switch,
                cycle * 30,
                &[ended(1000, 600), ended(1000, 600)],
            );
            offs += u32::from(was && switch.off().is_some());
            run(&mut switch, cycle * 30 + 2, &vec![ended(1000, 0); 28]);
        }
        assert_eq!(offs, 12);
        run(&mut switch, 3_700, &vec![ended(1000, 0); 12]);
        assert_eq!(switch.off(), None, "the hour is over");
    }
}
