//! What the controller keeps for one route.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hedgerow_protocol::directive::{LiveValues, Mode, Stamp};
use hedgerow_protocol::ids::{Epoch, ModeSequence, PoolName, ReplicaName, Revision, RouteKey};
use hedgerow_protocol::report::{RouteReport, Totals};

use crate::alert::duplicates::{Duplicates, Sent};
use crate::brief::Brief;
use crate::decide::Decision;
use crate::effect::{ModeState, Transition};
use crate::event::ConnectionId;
use crate::memory::Memory;
use crate::minute::Open;
use crate::moment::Moment;
use crate::quarantine::Bench;
use crate::rollout::{Share, Trial};
use crate::share::Lent;
use crate::start::Starters;
use crate::switchback::Switchbacks;
use crate::view::{Mark, Point, ReplicaCourse, ReplicaView, RouteView};
use crate::window::{Slice, Windows};

/// Points of a course kept: 10 minutes of one each 2 s.
pub(crate) const COURSE_MAX: usize = 300;
/// Automatic changes shown.
pub(crate) const TRANSITIONS_MAX: usize = 50;
/// Marks kept; they also end with the course they are drawn on.
pub(crate) const MARKS_MAX: usize = 50;

/// A place in a route's order of directives: everything that a stamp stands for beside the policy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    /// What may be hedged.
    pub(crate) mode: Mode,
    /// Since when.
    pub(crate) since: Moment,
    /// Its number. 0: nothing was ever decided; observing, and known without being stored.
    pub(crate) sequence: ModeSequence,
    /// Replicas kept from primaries. A change of them is a new number too: two directives of one
    /// stamp differ in nothing but live values.
    pub(crate) probation: Vec<ReplicaName>,
}

impl Place {
    pub(crate) fn record(&self, route: &RouteKey) -> ModeState {
        ModeState {
            route: route.clone(),
            mode: self.mode,
            since: self.since,
            sequence: self.sequence,
        }
    }
}

/// A report's part for this route, waiting for the tick.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) connection: ConnectionId,
    pub(crate) delta: Totals,
    pub(crate) report: RouteReport,
}

/// What the agents are, as far as one route is concerned: counted once a tick.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census {
    /// What they should hold; None: nothing can be told yet.
    pub(crate) wanted: Option<Stamp>,
    /// Attached and have reported it.
    pub(crate) reporting: u64,
    /// Of these, those that are not silent.
    pub(crate) live: u64,
    /// Attached, in all.
    pub(crate) attached: u64,
    /// Attached and holding what is wanted.
    pub(crate) holding: u64,
    /// The most replicas any of them can pick from.
    pub(crate) replicas_max: u32,
    /// Which of them are to hold a rollout's new policy, and what then.
    pub(crate) trial: Option<(Share, Option<Stamp>)>,
    /// Attached, and silent for two heartbeats.
    pub(crate) silent: u64,
    /// Attached and speaking, and neither holding what is wanted nor refusing it.
    pub(crate) behind: u64,
    /// Refusing what is wanted, in all.
    pub(crate) refusing: u64,
    /// Those that refused what is wanted, the first of them.
    pub(crate) refusals: Vec<(hedgerow_protocol::ids::InstanceId, String)>,
}

/// A route.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) windows: Windows,
    pub(crate) memory: Memory,
    /// What was decided last; None before the first tick.
    pub(crate) decision: Option<Decision>,
    /// What was decided, stored or not.
    pub(crate) believed: Place,
    /// What is stored: the only thing agents are told (DESIGN: persist, persisted, push).
    pub(crate) durable: Place,
    /// The highest sequence that may ever have reached the store. It is never used twice, also
    /// where a write failed: a store may say so and have written all the same.
    pub(crate) sequence_used: ModeSequence,
    /// What its pool lends it.
    pub(crate) lent: Option<Lent>,
    /// Live values of the last decision, held back where the stored mode is not what was decided.
    pub(crate) live: Option<LiveValues>,
    /// Live values agents were last sent, and when.
    pub(crate) told: Option<(LiveValues, Moment)>,
    /// When the probation list last changed.
    pub(crate) probation_changed: Option<Moment>,
    /// The best that was relearned from agents: by stamp and tick.
    pub(crate) relearned: Option<(Stamp, u64)>,
    /// What was reported since the last tick and may count in full.
    pub(crate) slice: Slice,
    /// What was reported besides, to be weighed at the tick.
    pub(crate) heavy: Vec<Arrival>,
    /// What may count in full without knowing what others say.
    pub(crate) light: f64,
    /// How much each agent said since the last tick, and whose words are left out.
    pub(crate) bench: Bench,
    /// Agents that start with an empty bucket.
    pub(crate) starters: Starters,
    pub(crate) census: Census,
    /// What agents that hold a rollout's new policy are told, while one runs.
    pub(crate) trial: Option<Box<Trial>>,
    /// Hedges sent in the last minutes.
    pub(crate) sent: Sent,
    /// What a server last said it executed twice.
    pub(crate) duplicates: Option<Duplicates>,
    /// When the controller last took a rollout back, and why: for the alert.
    pub(crate) reverted: Option<(Moment, String)>,
    /// When an agent last reported it, or asked for it.
    pub(crate) used: Moment,
    /// All that was counted since this controller started.
    pub(crate) totals: Totals,
    pub(crate) seconds_over_budget: u64,
    pub(crate) course: Arc<Vec<Point>>,
    pub(crate) brief: Brief,
    /// When a point was last given to the store.
    pub(crate) stored_point: Option<Moment>,
    /// The minute under way, for replay.
    pub(crate) minute: Open,
    pub(crate) replicas: Vec<ReplicaView>,
    pub(crate) replica_course: Arc<ReplicaCourse>,
    pub(crate) marks: VecDeque<Mark>,
    pub(crate) transitions: VecDeque<Transition>,
    pub(crate) switchbacks: Switchbacks,
    pub(crate) view: Option<Arc<RouteView>>,
}

impl Route {
    /// One that nothing is known of.
    pub(crate) fn new(now: Moment) -> Self {
        let place = Place {
            mode: Mode::Observing,
            since: now,
            sequence: ModeSequence::default(),
            probation: Vec::new(),
        };
        Self::with(place, Memory::new(now), now)
    }

    /// One whose mode was stored: what was off stays off.
    pub(crate) fn restore(state: &ModeState, now: Moment) -> Self {
        let place = Place {
            mode: state.mode,
            since: state.since.min(now),
            sequence: state.sequence,
            probation: Vec::new(),
        };
        Self::with(place, Memory::restore(state.mode, state.since, now), now)
    }

    fn with(place: Place, memory: Memory, now: Moment) -> Self {
        Self {
            windows: Windows::new(),
            memory,
            decision: None,
            sequence_used: place.sequence,
            believed: place.clone(),
            durable: place,
            lent: None,
            live: None,
            told: None,
            probation_changed: None,
            relearned: None,
            slice: Slice::default(),
            heavy: Vec::new(),
            light: 0.0,
            bench: Bench::default(),
            starters: Starters::default(),
            census: Census::default(),
            trial: None,
            sent: Sent::default(),
            duplicates: None,
            reverted: None,
            used: now,
            totals: Totals::default(),
            seconds_over_budget: 0,
            course: Arc::default(),
            brief: Brief::default(),
            stored_point: None,
            minute: Open::default(),
            replicas: Vec::new(),
            replica_course: Arc::default(),
            marks: VecDeque::new(),
            transitions: VecDeque::new(),
            switchbacks: Switchbacks::default(),
            view: None,
        }
    }

    /// What a pool lends it, if it is this one that did.
    pub(crate) fn lent_by(&self, pool: Option<&PoolName>) -> Option<&Lent> {
        self.lent.as_ref().filter(|lent| Some(&lent.pool) == pool)
    }

    /// The next sequence, never used before.
    pub(crate) fn next_sequence(&mut self) -> ModeSequence {
        self.sequence_used = self.sequence_used.max(self.believed.sequence).next();
        self.sequence_used
    }

    /// What agents should hold: only what is stored.
    pub(crate) fn stamp(&self, epoch: Epoch, revision: Revision) -> Stamp {
        Stamp {
            epoch,
            revision,
            mode_sequence: self.durable.sequence,
        }
    }

    /// A place became durable. An older one that comes late changes nothing.
    pub(crate) fn settle(&mut self, place: Place) -> bool {
        let newer = place.sequence > self.durable.sequence;
        if newer {
            self.durable = place;
        }
        newer
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        if self.marks.len() >= MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    pub(crate) fn keep_transition(&mut self, transition: Transition) {
        if self.transitions.len() >= TRANSITIONS_MAX {
            self.transitions.pop_front();
        }
        self.transitions.push_back(transition);
    }
}

/// All routes, by name.
pub(crate) type Routes = BTreeMap<RouteKey, Route>;
