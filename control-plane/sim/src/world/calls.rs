//! The calls under way, in slots that are used again.

use super::weather::{Draws, Shared};

/// A call in its slot, of one use of that slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallId {
    pub(super) slot: u32,
    generation: u32,
}

/// Which copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Primary,
    Hedge,
}

/// One attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copy {
    pub(super) replica: u16,
    pub(super) began: u64,
    /// It has neither ended nor been stopped.
    pub(super) open: bool,
    /// Its place in a replica's queue, where there are queues.
    pub(super) job: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) agent: u32,
    pub(super) began: u64,
    pub(super) shared: Shared,
    pub(super) held_out: bool,
    /// Its loser is let finish.
    pub(super) watched: bool,
    /// Decides whether it is drawn for a hedge.
    pub(super) drawn: f64,
    pub(super) crossed: bool,
    /// Its caller waits.
    pub(super) open: bool,
    /// It is among the agent's watched ones.
    pub(super) watching: bool,
    pub(super) deadline_set: bool,
    pub(super) primary: Copy,
    pub(super) hedge: Option<Copy>,
    /// Where it is among the agent's unanswered primaries.
    pub(super) alive_at: u32,
}

impl Call {
    pub(super) fn copy(&mut self, role: Role) -> Option<&mut Copy> {
        match role {
            Role::Primary => Some(&mut self.primary),
            Role::Hedge => self.hedge.as_mut(),
        }
    }

    /// Whether the copy that is not `role` is under way.
    pub(super) fn other_is_open(&self, role: Role) -> bool {
        match role {
            Role::Primary => self.hedge.is_some_and(|hedge| hedge.open),
            Role::Hedge => self.primary.open,
        }
    }

    fn is_over(&self) -> bool {
        !self.open && !self.primary.open && self.hedge.is_none_or(|hedge| !hedge.open)
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<(u32, Option<Call>)>,
    free: Vec<u32>,
}

impl Calls {
    pub(super) fn add(&mut self, call: Call) -> CallId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let place = &mut self.slots[slot as usize];
        place.1 = Some(call);
        CallId {
            slot,
            generation: place.0,
        }
    }

    pub(super) fn get(&mut self, id: CallId) -> Option<&mut Call> {
        let (generation, call) = &mut self.slots[id.slot as usize];
        call.as_mut().filter(|_| *generation == id.generation)
    }

    /// The call in a slot now.
    pub(super) fn in_slot(&self, slot: u32) -> Option<&Call> {
        self.slots[slot as usize].1.as_ref()
    }

    pub(super) fn in_slot_mut(&mut self, slot: u32) -> Option<&mut Call> {
        self.slots[slot as usize].1.as_mut()
    }

    /// Frees the slot of a call of which nothing is under way any more.
    pub(super) fn let_go(&mut self, id: CallId) {
        let over = self.get(id).is_some_and(|call| call.is_over());
        if over {
            let place = &mut self.slots[id.slot as usize];
            place.0 = place.0.wrapping_add(1);
            place.1 = None;
            self.free.push(id.slot);
        }
    }

    /// Those of the first `agents` agents, by agent; all in one pass, for agents may be many.
    pub(super) fn of_agents_below(&self, agents: u32) -> Vec<CallId> {
        let slots = (0..).zip(&self.slots);
        let mut found: Vec<_> = slots
            .filter_map(|(slot, (generation, call))| {
                let agent = call.as_ref()?.agent;
                let generation = *generation;
                (agent < agents).then_some((agent, CallId { slot, generation }))
            })
            .collect();
        found.sort_by_key(|(agent, _)| *agent);
        found.into_iter().map(|(_, id)| id).collect()
    }
}

/// Work that waits for a worker, or has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) replica: u16,
    pub(super) shared: Shared,
    pub(super) draws: Draws,
    /// Whose it is; None: nobody's any more.
    pub(super) owner: Option<(CallId, Role)>,
}
