//! What an order says to a route's memory.

use super::Outcome;
use crate::memory::Memory;
use crate::route::Route;

impl Outcome {
    /// The route's memory once it is stored.
    pub(super) fn remembered(&self, route: &Route) -> Memory {
        let taken_over = self.taken_over(route);
        let mut memory = taken_over
            .map_or(&route.memory, |trial| &trial.memory)
            .clone();
        self.tell(&mut memory);
        memory
    }

    /// A person's word on the route itself, whichever policy the memory goes by.
    pub(super) fn tell(&self, memory: &mut Memory) {
        match self {
            Self::Release(_) => memory.release(),
            Self::AcceptBase(_) => memory.accept_base(),
            Self::Policy(_)
            | Self::Kill(..)
            | Self::Rollout(_)
            | Self::StartSwitchback(..)
            | Self::StopSwitchback(_)
            | Self::Quiet(_) => {}
        }
    }
}
