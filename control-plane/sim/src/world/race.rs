//! One call from its beginning to its end, by the rules of the agent's race: a timer at the
//! threshold, at most one hedge, the first answer wins, losers are stopped or watched.

mod attempt;

use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::units::Threshold;

use super::calls::{Call, CallId, Copy, Role, Work};
use super::queues::JobId;
use super::weather::{Draws, Shared};
use super::{Event, World, setting};
use crate::agent::{Asked, Draws as PickDraws, Series, What, bucket};
use crate::chance::{Random, Stream};
use crate::client::Client;
use crate::scenario::Pick;

/// One hedged call in ten lets its loser finish.
const WATCHED_SHARE: f64 = 0.1;

impl World<'_> {
    pub(super) fn arrive(&mut self) {
        let t = self.t();
        if self.rate() <= 0.0 {
            return self.next_arrival();
        }
        self.next_arrival();
        let number = self.calls_made;
        self.calls_made += 1;
        let mut random = Random::of(self.variation.seed, Stream::Call, number);
        let agent = random.below(self.agents.len()) as u32;
        let pick = PickDraws {
            first: random.unit(),
            second: random.unit(),
            spared: random.unit(),
            instead: random.unit(),
        };
        let (for_holdout, for_watch, drawn) = (random.unit(), random.unit(), random.unit());
        let draws = Draws::of(&mut random);
        let shared = self.weather.shared(t, &mut random);
        self.call(
            number,
            agent,
            pick,
            (for_holdout, for_watch, drawn),
            shared,
            draws,
        );
    }

    fn call(
        &mut self,
        number: u64,
        agent: u32,
        pick: PickDraws,
        (for_holdout, for_watch, drawn): (f64, f64, f64),
        shared: Shared,
        draws: Draws,
    ) {
        let now = self.now();
        let pinned = self.scenario.fleet.pick;
        let own = &mut self.agents[agent as usize];
        let replica = match pinned {
            Pick::TwoChoices => own.pick_primary(pick, true),
            Pick::Random => own.pick_primary(pick, false),
            Pick::Pinned => (pick.first * self.names.len() as f64) as usize,
        };
        let held_out = for_holdout < own.in_force.holdout.get();
        let may_hedge = own.in_force.mode.hedges() && !held_out;
        own.books.totals.started += 1;
        own.books.replicas[replica].started += 1;
        own.loads[replica].started += 1;
        own.log.add(What::Started, replica, 0);
        let alive_at = own.alive.len() as u32;
        let id = self.calls.add(Call {
            number,
            agent,
            began: now,
            shared,
            held_out,
            watched: may_hedge && for_watch < WATCHED_SHARE,
            drawn,
            crossed: false,
            open: true,
            watching: false,
            deadline_set: false,
            primary: Copy {
                replica: replica as u16,
                began: now,
                open: true,
                job: None,
            },
            hedge: None,
            alive_at,
        });
        let own = &mut self.agents[agent as usize];
        own.alive.push(id.slot);
        self.meter.began();
        let done_at = self.begin_attempt(id, Role::Primary, shared, draws);
        self.set_timers(id, agent, now, done_at);
    }

    /// Only those that can fire: what ends by itself before needs none.
    fn set_timers(&mut self, id: CallId, agent: u32, now: u64, done_at: Option<u64>) {
        let deadline = now + self.deadline;
        let after = |at: u64| done_at.is_none_or(|done| done > at);
        if let Some(threshold) = self.threshold(agent) {
            let at = now + threshold;
            if at >= deadline {
                let totals = &mut self.agents[agent as usize].books.totals;
                totals.threshold_past_deadline += 1;
            } else if after(at) {
                self.clock.at(at, Event::Timer(id));
            }
        }
        if after(deadline) {
            self.set_deadline(id, deadline);
        }
    }

    fn set_deadline(&mut self, id: CallId, at: u64) {
        if let Some(call) = self.calls.get(id)
            && !std::mem::replace(&mut call.deadline_set, true)
        {
            self.clock.at(at, Event::Deadline(id));
        }
    }

    /// When a call of this agent crosses, in microseconds after its beginning.
    fn threshold(&self, agent: u32) -> Option<u64> {
        let own = &self.agents[agent as usize];
        let threshold = match self.variation.client {
            Client::Hedgerow => own.in_force.threshold.map(Threshold::get),
            Client::PlainP95 => own.plain.as_ref().and_then(|it| it.threshold()),
            Client::Bare => None,
        };
        threshold.map(|it| it.as_micros() as u64)
    }

    /// An attempt begins: when it will be done, where that is known (none: not before others are).
    fn begin_attempt(
        &mut self,
        id: CallId,
        role: Role,
        shared: Shared,
        draws: Draws,
    ) -> Option<u64> {
        let now = self.now();
        let call = self.calls.get(id)?;
        let agent = call.agent as usize;
        let replica = call.copy(role)?.replica;
        self.agents[agent].attempts_alive += 1;
        self.agents[agent].loads[usize::from(replica)].in_flight += 1;
        if let Some(queues) = &mut self.queues {
            let job = queues.add(Work {
                replica,
                shared,
                draws,
                owner: Some((id, role)),
            });
            if let Some(copy) = self.calls.get(id).and_then(|call| call.copy(role)) {
                copy.job = Some(job);
            }
            self.work(usize::from(replica));
            return None;
        }
        let replica = usize::from(replica);
        let fate = self.weather.fate(self.t(), replica, &shared, &draws);
        let done_at = fate
            .work
            .map(|work| self.weather.done_at(replica, now, work));
        if role == Role::Primary {
            self.meter.would_take(done_at.map(|done| done - now));
        }
        let ended = if fate.fails {
            Event::Failed
        } else {
            Event::Ended
        };
        match done_at {
            Some(done) => self.clock.at(done, ended(id, role)),
            None => return Some(u64::MAX),
        }
        done_at
    }

    /// Free workers of a replica take what waits.
    fn work(&mut self, replica: usize) {
        let (now, t) = (self.now(), self.t());
        let Some(queues) = &mut self.queues else {
            return;
        };
        while let Some((job, work)) = queues.next(replica, now) {
            let fate = self.weather.fate(t, replica, &work.shared, &work.draws);
            if let Some(work) = fate.work {
                let done = self.weather.done_at(replica, now, work);
                self.clock.at(done, Event::Served(job, fate.fails));
            }
        }
    }

    pub(super) fn served(&mut self, job: JobId, fails: bool) {
        let now = self.now();
        let Some(queues) = &mut self.queues else {
            return;
        };
        let Some(work) = queues.served(job, now) else {
            return;
        };
        if let Some((id, role)) = work.owner {
            self.ended(id, role, fails);
        }
        self.work(usize::from(work.replica));
    }

    /// Unanswered at the threshold.
    pub(super) fn timer(&mut self, id: CallId) {
        let now = self.now();
        let Some(call) = self.calls.get(id) else {
            return;
        };
        if !call.open || !call.primary.open {
            return;
        }
        call.crossed = true;
        let asked = Asked {
            held_out: call.held_out,
            drawn: call.drawn,
            age: now - call.began,
            waits_on: usize::from(call.primary.replica),
        };
        let (number, agent, deadline) = (call.number, call.agent, call.began + self.deadline);
        let (shared, replica) = (call.shared, asked.waits_on);
        self.crossed(agent, replica);
        let mut picks = Random::of(self.variation.seed, Stream::HedgePick, number);
        let setting = setting(&self.names, self.deadline, self.variation);
        let own = &self.agents[agent as usize];
        let admitted = match self.variation.client {
            Client::Hedgerow => own.admit(&asked, setting, || picks.unit()),
            Client::PlainP95 | Client::Bare => own
                .pick_hedge(replica, || picks.unit())
                .ok_or(Refusal::NoReplica),
        };
        let replica = match admitted {
            Ok(replica) => replica,
            Err(refusal) => return self.refused(agent, refusal),
        };
        let own = &mut self.agents[agent as usize];
        own.books.totals.hedged += 1;
        own.books.replicas[replica].hedged += 1;
        own.loads[replica].hedged += 1;
        own.hedges_alive += 1;
        self.meter.hedged();
        if let Some(call) = self.calls.get(id) {
            call.hedge = Some(Copy {
                replica: replica as u16,
                began: now,
                open: true,
                job: None,
            });
        }
        let mut random = Random::of(self.variation.seed, Stream::Hedge, number);
        let draws = Draws::of(&mut random);
        self.begin_attempt(id, Role::Hedge, shared, draws);
        self.set_deadline(id, deadline);
    }

    fn crossed(&mut self, agent: u32, replica: usize) {
        let own = &mut self.agents[agent as usize];
        own.books.totals.crossed += 1;
        own.books.replicas[replica].crossed += 1;
        own.log.add(What::Crossed, replica, 0);
        self.meter.crossed();
    }

    fn refused(&mut self, agent: u32, refusal: Refusal) {
        self.agents[agent as usize].books.totals.refuse(refusal);
        self.meter.refused(refusal);
    }

    /// A copy ended by itself.
    pub(super) fn ended(&mut self, id: CallId, role: Role, fails: bool) {
        let now = self.now();
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let (open, other_open) = (call.open, call.other_is_open(role));
        let Some(copy) = call.copy(role).filter(|copy| copy.open) else {
            return;
        };
        copy.open = false;
        let copy = *copy;
        self.close(id, role, copy);
        self.record(id, role, copy, !fails, open);
        if !open {
            self.unwatch(id);
            self.calls.let_go(id);
            return;
        }
        if fails {
            if !other_open {
                self.finish(id, true);
            }
            return;
        }
        if role == Role::Primary {
            self.primary_answered(id);
        } else {
            let agent = self.calls.get(id).map_or(0, |call| call.agent);
            let own = &mut self.agents[agent as usize];
            own.books.totals.won += 1;
            own.books.replicas[usize::from(copy.replica)].won += 1;
            self.meter.won();
        }
        if let Some(plain) = self.plain_of(id) {
            plain.record(std::time::Duration::from_micros(now - copy.began));
        }
        self.finish(id, false);
    }

    fn plain_of(&mut self, id: CallId) -> Option<&mut crate::client::PlainP95> {
        let agent = self.calls.get(id)?.agent;
        self.agents[agent as usize].plain.as_deref_mut()
    }

    /// A threshold that came down meanwhile was crossed all the same.
    fn primary_answered(&mut self, id: CallId) {
        let now = self.now();
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let (crossed, agent, took) = (call.crossed, call.agent, now - call.began);
        let replica = usize::from(call.primary.replica);
        if self.variation.client == Client::Hedgerow
            && !crossed
            && self.threshold(agent).is_some_and(|it| took > it)
        {
            self.crossed(agent, replica);
            self.refused(agent, Refusal::Answered);
        }
    }

    pub(super) fn deadline(&mut self, id: CallId) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        if call.open {
            call.watched = false;
            self.finish(id, true);
        } else {
            self.stop(id);
        }
    }

    /// The caller has its answer, or an error.
    fn finish(&mut self, id: CallId, failed: bool) {
        let now = self.now();
        let Some(call) = self.calls.get(id) else {
            return;
        };
        call.open = false;
        let (waited, held_out, watched) = (now - call.began, call.held_out, call.watched);
        let loser = call.primary.open || call.hedge.is_some_and(|hedge| hedge.open);
        let agent = call.agent as usize;
        let own = &mut self.agents[agent];
        let totals = &mut own.books.totals;
        totals.finished += 1;
        totals.failed += u64::from(failed);
        let (finished_in_arm, failed_in_arm, series) = if held_out {
            let (finished, failed) = (&mut totals.holdout_finished, &mut totals.holdout_failed);
            (finished, failed, Series::Holdout)
        } else {
            let (finished, failed) = (&mut totals.treated_finished, &mut totals.treated_failed);
            (finished, failed, Series::Treated)
        };
        *finished_in_arm += 1;
        *failed_in_arm += u64::from(failed);
        own.books.record(series, bucket(waited));
        own.bucket.earn();
        own.log.add(What::Finished, 0, 0);
        self.meter.finished(waited, failed);
        if loser && watched && !failed && own.may_watch() {
            own.watched += 1;
            if let Some(call) = self.calls.get(id) {
                call.watching = true;
            }
            return;
        }
        self.stop(id);
    }

    /// Stops what is still under way.
    pub(super) fn stop(&mut self, id: CallId) {
        for role in [Role::Primary, Role::Hedge] {
            let Some(copy) = self.take_open(id, role) else {
                continue;
            };
            self.close(id, role, copy);
            self.record(id, role, copy, false, false);
            self.give_up(copy);
        }
        self.unwatch(id);
        self.calls.let_go(id);
    }

    fn take_open(&mut self, id: CallId, role: Role) -> Option<Copy> {
        let call = self.calls.get(id)?;
        let copy = call.copy(role).filter(|copy| copy.open)?;
        copy.open = false;
        Some(*copy)
    }

    fn give_up(&mut self, copy: Copy) {
        let now = self.now();
        if let (Some(queues), Some(job)) = (&mut self.queues, copy.job)
            && queues.give_up(job, now)
        {
            self.work(usize::from(copy.replica));
        }
    }

    fn unwatch(&mut self, id: CallId) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        if std::mem::replace(&mut call.watching, false) {
            self.agents[call.agent as usize].watched -= 1;
        }
    }

    /// Its process has died: nobody waits, and nobody counts.
    pub(super) fn forget(&mut self, id: CallId) {
        for role in [Role::Primary, Role::Hedge] {
            if let Some(copy) = self.take_open(id, role) {
                self.give_up(copy);
            }
        }
        if let Some(call) = self.calls.get(id) {
            call.open = false;
            self.meter.abandoned();
        }
        self.calls.let_go(id);
    }
}
