//! The last minute of an agent, call by call: what its own figures are made of when they are asked
//! for. An agent works them out each second; here they wait until they decide something, since
//! while a controller is heard they do not, and then come out the same.

use std::collections::VecDeque;

use hedgerow_agent::sim::{ReplicaSeen, Seen};
use hedgerow_protocol::ids::ReplicaName;

use super::counts::Counts;

/// Seconds that any of an agent's own figures looks back.
const KEPT: u32 = 60;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A primary began.
    Started,
    /// Its call crossed.
    Crossed,
    /// A primary answered before its call ended.
    Answered,
    /// A watched one answered after it.
    AnsweredLate,
    /// A primary failed.
    Failed,
    /// One was stopped.
    Stopped,
    /// A hedge ended by itself.
    HedgeEnded,
    /// A call ended.
    Finished,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    second: u32,
    what: What,
    replica: u8,
    bucket: u16,
}

/// See the [module](self).
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// The second under way.
    second: u32,
    /// The first one that was not looked at.
    next: u32,
    /// When a primary failed last.
    failed: Option<u32>,
    /// Nobody will ask.
    off: bool,
}

impl Log {
    /// For a client that has no figures of its own.
    pub(crate) fn nothing() -> Self {
        Self {
            off: true,
            ..Self::default()
        }
    }

    /// For the same client in a new life.
    pub(crate) fn begun_anew(&self) -> Self {
        Self {
            off: self.off,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, what: What, replica: usize, bucket: u16) {
        if self.off {
            return;
        }
        if what == What::Failed {
            self.failed = Some(self.second);
        }
        self.entries.push_back(Entry {
            second: self.second,
            what,
            replica: replica as u8,
            bucket,
        });
    }

    /// A second is over.
    pub(crate) fn end_second(&mut self) {
        self.second += 1;
        let oldest = self.second.saturating_sub(KEPT);
        self.next = self.next.max(oldest);
        while self.entries.front().is_some_and(|it| it.second < self.next) {
            self.entries.pop_front();
        }
    }

    /// Whether a primary failed within the last minute.
    pub(crate) fn failed_lately(&self) -> bool {
        self.failed.is_some_and(|at| at + KEPT >= self.second)
    }

    /// The oldest second that is over and was not looked at, and how long ago it ended.
    pub(crate) fn take(&mut self, names: &[ReplicaName]) -> Option<(Seen, u32)> {
        if self.next >= self.second {
            return None;
        }
        let taken = self.next;
        self.next += 1;
        let mut seen = Summed::new(names.len());
        while let Some(entry) = self
            .entries
            .front()
            .copied()
            .filter(|it| it.second <= taken)
        {
            seen.add(entry);
            self.entries.pop_front();
        }
        Some((seen.seen(names), self.second - self.next))
    }
}

/// A second being added up.
struct Summed {
    all: Seen,
    done: Counts,
    censored: Counts,
    replicas: Vec<OfReplica>,
}

#[derive(Clone, Default)]
struct OfReplica {
    started: u64,
    crossed: u64,
    answered: u64,
    errors: u64,
    done: Counts,
    censored: Counts,
}

impl Summed {
    fn new(replicas: usize) -> Self {
        Self {
            all: Seen::default(),
            done: Counts::default(),
            censored: Counts::default(),
            replicas: vec![OfReplica::default(); replicas],
        }
    }

    fn add(&mut self, entry: Entry) {
        let own = &mut self.replicas[usize::from(entry.replica)];
        match entry.what {
            What::Started => {
                self.all.started += 1;
                own.started += 1;
            }
            What::Crossed => {
                self.all.crossed += 1;
                own.crossed += 1;
            }
            What::Answered => {
                self.all.primaries += 1;
                own.answered += 1;
            }
            What::Failed => {
                self.all.primaries += 1;
                self.all.errors += 1;
                own.errors += 1;
            }
            What::HedgeEnded => self.all.hedges += 1,
            What::Finished => self.all.finished += 1,
            What::AnsweredLate | What::Stopped => {}
        }
        match entry.what {
            What::Answered | What::AnsweredLate => {
                self.done.add(entry.bucket);
                own.done.add(entry.bucket);
            }
            What::Failed | What::Stopped => {
                self.censored.add(entry.bucket);
                own.censored.add(entry.bucket);
            }
            What::Started | What::Crossed | What::HedgeEnded | What::Finished => {}
        }
    }

    fn seen(mut self, names: &[ReplicaName]) -> Seen {
        self.all.done = self.done.take();
        self.all.censored = self.censored.take();
        // One alone is the dependency: there is nothing to tell apart.
        if names.len() >= 2 {
            let replicas = names.iter().zip(self.replicas);
            self.all.replicas = replicas.map(|(name, own)| own.seen(name)).collect();
        }
        self.all
    }
}

impl OfReplica {
    fn seen(mut self, name: &ReplicaName) -> ReplicaSeen {
        ReplicaSeen {
            replica: name.clone(),
            started: self.started,
            crossed: self.crossed,
            answered: self.answered,
            errors: self.errors,
            done: self.done.take(),
            censored: self.censored.take(),
        }
    }
}
