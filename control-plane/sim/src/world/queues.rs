//! Replicas with so many workers each, and a queue before them: first come, first served.

use std::collections::VecDeque;

use super::calls::Work;

/// Work in its place, of one use of that place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobId {
    place: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// Given up while it waited: its place in the queue is passed over.
    Dropped,
    Running,
}

#[derive(Debug, Default)]
struct Replica {
    running: usize,
    waiting: VecDeque<u32>,
    /// Microseconds of work done, up to `since`.
    busy: u64,
    since: u64,
}

impl Replica {
    fn settle(&mut self, now: u64) {
        self.busy += self.running as u64 * (now - self.since);
        self.since = now;
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Queues {
    workers: usize,
    cancellation: bool,
    replicas: Vec<Replica>,
    jobs: Vec<(u32, Stage, Work)>,
    free: Vec<u32>,
}

impl Queues {
    pub(super) fn new(replicas: usize, workers: usize, cancellation: bool) -> Self {
        Self {
            workers,
            cancellation,
            replicas: (0..replicas).map(|_| Replica::default()).collect(),
            jobs: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts work at the queue's end: its place. [`Queues::next`] says whether it can begin.
    pub(super) fn add(&mut self, work: Work) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.jobs.push((0, Stage::Waiting, work));
            self.jobs.len() as u32 - 1
        });
        let job = &mut self.jobs[place as usize];
        (job.1, job.2) = (Stage::Waiting, work);
        let replica = usize::from(work.replica);
        self.replicas[replica].waiting.push_back(place);
        place
    }

    /// The next work that a free worker of `replica` takes.
    pub(super) fn next(&mut self, replica: usize, now: u64) -> Option<(JobId, Work)> {
        let own = &mut self.replicas[replica];
        while own.running < self.workers {
            let place = own.waiting.pop_front()?;
            let (generation, stage, work) = &mut self.jobs[place as usize];
            if *stage == Stage::Dropped {
                *generation = generation.wrapping_add(1);
                self.free.push(place);
                continue;
            }
            *stage = Stage::Running;
            own.settle(now);
            own.running += 1;
            let id = JobId {
                place,
                generation: *generation,
            };
            return Some((id, *work));
        }
        None
    }

    /// A worker is done: whose work it was. None where it was stopped before.
    pub(super) fn served(&mut self, id: JobId, now: u64) -> Option<Work> {
        let (generation, _, work) = self.jobs[id.place as usize];
        (generation == id.generation).then(|| {
            self.leave(id.place, now);
            work
        })
    }

    /// Its caller has given it up. True where a worker became free.
    pub(super) fn give_up(&mut self, place: u32, now: u64) -> bool {
        let (_, stage, work) = &mut self.jobs[place as usize];
        work.owner = None;
        if !self.cancellation {
            return false;
        }
        if *stage == Stage::Waiting {
            *stage = Stage::Dropped;
            return false;
        }
        self.leave(place, now);
        true
    }

    fn leave(&mut self, place: u32, now: u64) {
        let (generation, _, work) = &mut self.jobs[place as usize];
        *generation = generation.wrapping_add(1);
        let replica = &mut self.replicas[usize::from(work.replica)];
        replica.settle(now);
        replica.running -= 1;
        self.free.push(place);
    }

    /// Each replica's share of its workers that was busy since the last time.
    pub(super) fn utilisation(&mut self, now: u64, seconds: f64) -> Vec<f64> {
        let most = self.workers as f64 * seconds * 1e6;
        let replicas = self.replicas.iter_mut();
        replicas
            .map(|replica| {
                replica.settle(now);
                std::mem::take(&mut replica.busy) as f64 / most
            })
            .collect()
    }

    /// Waiting work, given up or not.
    pub(super) fn waiting(&self) -> u64 {
        let waiting = self.replicas.iter().map(|it| it.waiting.len() as u64);
        waiting.sum()
    }
}
