//! An attempt's end, in its agent's books.

use crate::agent::{Series, What, bucket};
use crate::world::World;
use crate::world::calls::{CallId, Copy, Role};

impl World<'_> {
    /// An attempt is no longer alive.
    pub(super) fn close(&mut self, id: CallId, role: Role, copy: Copy) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let (agent, alive_at) = (call.agent, call.alive_at);
        let own = &mut self.agents[agent as usize];
        own.attempts_alive -= 1;
        own.loads[usize::from(copy.replica)].in_flight -= 1;
        if role == Role::Hedge {
            own.hedges_alive -= 1;
            return;
        }
        own.alive.swap_remove(alive_at as usize);
        if let Some(moved) = own.alive.get(alive_at as usize).copied()
            && let Some(call) = self.calls.in_slot_mut(moved)
        {
            call.alive_at = alive_at;
        }
    }

    /// Puts an attempt's end in the books, on its own clock. `counted`: while its call went on.
    pub(super) fn record(
        &mut self,
        id: CallId,
        role: Role,
        copy: Copy,
        answered: bool,
        counted: bool,
    ) {
        let now = self.now();
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let own = &mut self.agents[call.agent as usize];
        let (bucket, replica) = (bucket(now - copy.began), usize::from(copy.replica));
        let totals = &mut own.books.totals;
        if role == Role::Hedge {
            if counted {
                totals.hedge_finished += 1;
                totals.hedge_errors += u64::from(!answered);
                own.log.add(What::HedgeEnded, replica, 0);
            }
            let series = if answered {
                Series::HedgeDone
            } else {
                Series::HedgeCensored
            };
            own.books.record(series, bucket);
            return;
        }
        if counted {
            totals.primary_finished += 1;
            totals.primary_errors += u64::from(!answered);
            own.books.replicas[replica].finished += 1;
            own.books.replicas[replica].errors += u32::from(!answered);
        }
        let (what, series) = match (answered, counted) {
            (true, true) => (What::Answered, Series::PrimaryDone),
            (true, false) => (What::AnsweredLate, Series::PrimaryDone),
            (false, true) => (What::Failed, Series::PrimaryCensored),
            (false, false) => (What::Stopped, Series::PrimaryCensored),
        };
        own.books.record(series, bucket);
        let samples = &mut own.books.replicas[replica];
        if answered {
            samples.done.add(bucket);
        } else {
            samples.censored.add(bucket);
        }
        own.log.add(what, replica, bucket);
    }
}
