//! Room in the budget for the calls that need it most. Pure.
//!
//! Calls on a replica on probation are few, a thirtieth with three replicas, but where it is dead
//! each of them waits for its deadline unless it is hedged. Beside a target of 5 % they are more than
//! a budget of 8 % carries for sure, and a token spent on a call that would have been answered in
//! some milliseconds is the one that is missing then. So the healthy majority's tail makes room.

/// Of the budget, what may be planned with: the rest is for chance.
const PLANNED: f64 = 0.9;
/// Of the target, what is left to the healthy majority in any case.
const LEFT: f64 = 0.5;
/// Weight of a new second in the mean.
const WEIGHT: f64 = 0.3;
/// A share too small to make room for.
const NEGLIGIBLE: f64 = 1e-3;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Crossed calls on replicas on probation, as a share of all calls.
    needed: f64,
}

impl Room {
    /// A second is over in which so many calls started, and so many crossed on replicas on probation.
    pub(crate) fn second(&mut self, started: u64, crossed: u64) {
        if started > 0 {
            let share = (crossed as f64 / started as f64).min(1.0);
            self.needed += WEIGHT * (share - self.needed);
        }
    }

    /// What of the `tail` there is room for.
    pub(crate) fn within(&self, tail: f64, target: f64, budget: f64) -> f64 {
        if self.needed < NEGLIGIBLE {
            return tail;
        }
        tail.min((PLANNED * budget - self.needed).max(LEFT * target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_makes_room_for_what_crosses_on_probation_and_no_more() {
        for (crossed, budget, expected) in [
            (0, 0.08, 0.05),
            // 0.072 less what is needed.
            (20, 0.08, 0.05),
            (33, 0.08, 0.039),
            (60, 0.08, 0.025),
            (33, 0.25, 0.05),
        ] {
            let mut room = Room::default();
            (0..60).for_each(|_| room.second(1000, crossed));
            let tail = room.within(0.05, 0.05, budget);
            assert!((tail - expected).abs() < 1e-6, "{crossed}: {tail}");
            room.second(0, 0);
            assert_eq!(
                room.within(0.05, 0.05, budget),
                tail,
                "silence changes nothing"
            );
            (0..30).for_each(|_| room.second(1000, 0));
            assert_eq!(room.within(0.05, 0.05, budget), 0.05);
        }
    }
}
