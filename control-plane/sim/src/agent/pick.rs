//! Where attempts go: as an agent's pool of replicas picks, by its own attempts in flight.

/// A replica on probation is taken in a tenth of the draws that fall on it.
const PROBATION_SHARE: f64 = 0.1;
/// Hedges a replica may have beyond its share before that is a reason to prefer another one.
const HEDGES_FREE: f64 = 2.0;

/// What is drawn for a primary's replica: always as much, so that a call's other draws are the same
/// whatever its agent knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws {
    pub(crate) first: f64,
    pub(crate) second: f64,
    pub(crate) spared: f64,
    pub(crate) instead: f64,
}

/// What may be picked.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// First those that are not on probation, `healthy` of them.
    order: Box<[u16]>,
    healthy: usize,
}

/// What an agent knows of a replica's load.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    /// Attempts alive on it.
    pub(crate) in_flight: u32,
    /// Hedges and primaries in the present stretch.
    pub(crate) hedged: u32,
    /// See `hedged`.
    pub(crate) started: u32,
}

impl Load {
    /// Whether one more hedge stays within `budget` times its share of the primaries.
    fn within_share(self, budget: f64) -> bool {
        f64::from(self.hedged) + 1.0 <= budget * f64::from(self.started) + HEDGES_FREE
    }
}

fn at(unit: f64, n: usize) -> usize {
    ((unit * n as f64) as usize).min(n.saturating_sub(1))
}

/// An index below `n` that is not `first`, from a draw.
fn another(unit: f64, n: usize, first: usize) -> usize {
    let drawn = at(unit, n - 1);
    drawn + usize::from(drawn >= first)
}

impl Places {
    pub(crate) fn new(replicas: usize) -> Self {
        Self {
            order: (0..replicas as u16).collect(),
            healthy: replicas,
        }
    }

    /// Puts exactly these on probation; of all of them is of none.
    pub(crate) fn set_probation(&mut self, held_back: impl Fn(u16) -> bool) {
        self.order
            .sort_by_key(|replica| (held_back(*replica), *replica));
        let healthy = self.order.partition_point(|replica| !held_back(*replica));
        self.healthy = if healthy == 0 {
            self.order.len()
        } else {
            healthy
        };
    }

    /// A primary's replica: the less loaded of two, or, where loads do not count, the first. And
    /// whether probation turned another one away.
    pub(crate) fn primary(
        &self,
        draws: Draws,
        load: Option<impl Fn(usize) -> Load>,
    ) -> (usize, bool) {
        let mut first = at(draws.first, self.order.len());
        let skipped = first >= self.healthy;
        if skipped {
            if draws.spared < PROBATION_SHARE {
                return (self.replica(first), false);
            }
            first = at(draws.instead, self.healthy);
        }
        let Some(load) = load.filter(|_| self.healthy > 1) else {
            return (self.replica(first), skipped);
        };
        let second = another(draws.second, self.healthy, first);
        let (first, second) = (self.replica(first), self.replica(second));
        let less = load(second).in_flight < load(first).in_flight;
        (if less { second } else { first }, skipped)
    }

    /// Another replica than `avoid` for a hedge, within its share of hedges if there is one; of two,
    /// the less loaded.
    pub(crate) fn hedge(
        &self,
        avoid: usize,
        budget: f64,
        mut unit: impl FnMut() -> f64,
        load: impl Fn(usize) -> Load,
    ) -> Option<usize> {
        let others = || self.healthy().filter(|it| *it != avoid);
        let mut among: Vec<_> = others()
            .filter(|it| load(*it).within_share(budget))
            .collect();
        if among.is_empty() {
            among = others().collect();
        }
        if among.len() < 2 {
            return among.pop();
        }
        let first = at(unit(), among.len());
        let second = another(unit(), among.len(), first);
        let (first, second) = (among[first], among[second]);
        let less = load(second).in_flight < load(first).in_flight;
        Some(if less { second } else { first })
    }

    fn healthy(&self) -> impl Iterator<Item = usize> {
        self.order[..self.healthy].iter().map(|it| usize::from(*it))
    }

    fn replica(&self, place: usize) -> usize {
        usize::from(self.order[place])
    }
}
