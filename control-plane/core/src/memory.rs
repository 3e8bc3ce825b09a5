//! What the controller remembers of a route from decision to decision.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::ReplicaName;
use hedgerow_protocol::session::Held;

use crate::decide::all_slow::Base;
use crate::decide::budget::Pushed;
use crate::decide::goal;
use crate::decide::latch::{Findings, Latch, Tripped};
use crate::decide::naming::Entry;
use crate::decide::shared_cause::SharedCause;
use crate::decide::threshold::Track;
use crate::decide::wins_nothing::WinsNothing;
use crate::decide::{Answers, Armed};
use crate::moment::Moment;

/// Automatic changes of mode allowed in [`CHANGES_WITHIN`]; one more, and it is off until a person
/// has looked.
pub const CHANGES_MAX: usize = 12;
/// See [`CHANGES_MAX`].
pub const CHANGES_WITHIN: Duration = Duration::from_hours(1);

/// One route's memory: a value that [`decide`](crate::decide::decide) takes and returns. Bounded,
/// some four kilobytes at most.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Slices that had been pushed at the last decision.
    pub(crate) seen: u64,
    /// What may be hedged, and since when: one value, so that they cannot disagree (B35).
    pub(crate) mode: Mode,
    pub(crate) since: Moment,
    /// Slices that had been pushed when it began.
    pub(crate) mode_from: u64,
    /// Whether the mode was the controller's to choose at the last decision.
    pub(crate) free: bool,
    /// Whether enough calls were ever seen to hedge.
    pub(crate) ready: bool,
    /// Whether anything was decided yet, here or before a restart.
    pub(crate) fresh: bool,
    pub(crate) errors: Latch,
    pub(crate) push_back: Latch,
    pub(crate) shared: SharedCause,
    pub(crate) wins_nothing: WinsNothing,
    /// How often hedges answer, for the alert.
    pub(crate) answers: Answers,
    pub(crate) too_many: Option<Tripped>,
    /// When the mode was changed automatically, newest last.
    pub(crate) changes: VecDeque<Moment>,
    pub(crate) base: Base,
    pub(crate) threshold: Track,
    /// Delay and probability, where a goal or a pool's objective is aimed at.
    pub(crate) goal: goal::Track,
    pub(crate) named: BTreeMap<ReplicaName, Entry>,
    pub(crate) pushed: Pushed,
    /// The share of agents that hedges at a time; None: all of them.
    pub(crate) arming: Option<Armed>,
    /// The share of crossed calls hedged since the last decision.
    pub(crate) probability: f64,
    /// Slices that had been pushed when everything was last well again.
    pub(crate) calm_from: u64,
}

impl Memory {
    /// A route nobody has heard of before: observing.
    pub fn new(now: Moment) -> Self {
        Self {
            seen: 0,
            mode: Mode::Observing,
            since: now,
            mode_from: 0,
            free: false,
            ready: false,
            fresh: true,
            errors: Latch::default(),
            push_back: Latch::default(),
            shared: SharedCause::default(),
            wins_nothing: WinsNothing::default(),
            answers: Answers::default(),
            too_many: None,
            changes: VecDeque::new(),
            base: Base::default(),
            threshold: Track::default(),
            goal: goal::Track::default(),
            named: BTreeMap::new(),
            pushed: Pushed::default(),
            arming: None,
            probability: 0.0,
            calm_from: 0,
        }
    }

    /// A route whose mode was kept over a restart. What was off stays off until it is found well;
    /// what was on stays on, and its agents keep the threshold they have.
    pub fn restore(mode: Mode, since: Moment, now: Moment) -> Self {
        let mut memory = Self::new(now);
        // The machine's clock may have been set back meanwhile: what began in the future would stay
        // for as long as that is ahead (P18).
        memory.take_over(mode, since.min(now), now);
        memory.fresh = false;
        memory
    }

    /// The median that counted as normal speed before a restart, where it is known: a fault under
    /// way is then seen as one, and not learned as the normal.
    pub fn restore_base(&mut self, base: Duration) {
        self.base.restore(base);
    }

    /// The median that counts as normal speed; None: not learned yet.
    pub fn base(&self) -> Option<Duration> {
        self.base.base()
    }

    /// Takes over what an agent holds of it, where nothing better is known: a controller with a new
    /// store does not reset the fleet (an off outlives it, P2).
    pub fn relearn(&mut self, held: &Held) {
        if let Some(threshold) = held.threshold {
            self.threshold.relearn(threshold.get());
        }
        if self.fresh && self.seen == 0 {
            // Off wins over on, whoever speaks first.
            let off = |mode: Mode| mode.reason().is_some();
            if off(held.mode) || !off(self.mode) {
                self.take_over(held.mode, self.since, self.since);
            }
        }
    }

    /// A person lets a route that changed too often decide again.
    pub fn release(&mut self) {
        self.too_many = None;
        self.changes.clear();
    }

    /// A person says that the present speed is the normal one: it becomes the base of the all-slow
    /// test. Without calls to tell it from, nothing changes.
    pub fn accept_base(&mut self) {
        self.base.accept();
    }

    /// The mode decided last.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Since when.
    pub fn since(&self) -> Moment {
        self.since
    }

    fn take_over(&mut self, mode: Mode, since: Moment, now: Moment) {
        self.mode = mode;
        self.since = since;
        let why = |words: &str| Findings {
            words: format!("{words}, kept over a restart"),
            evidence: Vec::new(),
        };
        match mode.reason() {
            Some(OffReason::Errors) => self.errors = Latch::restored(since, why("error rate")),
            Some(OffReason::PushBack) => {
                self.push_back = Latch::restored(since, why("push-back rate"));
            }
            Some(reason @ OffReason::SharedSlowdown) => {
                self.shared = SharedCause::restored(reason, since, now, why("shared slowdown"));
            }
            Some(reason @ OffReason::WinsNothing) => {
                self.shared = SharedCause::restored(reason, since, now, why("wins nothing"));
            }
            Some(OffReason::TooManyChanges | OffReason::Unknown) => {
                self.too_many = Some(Tripped {
                    at: since,
                    why: why("too many changes"),
                });
            }
            // A person's orders are kept where persons' orders are.
            Some(OffReason::KillSwitch | OffReason::Policy) | None => {}
        }
        // What a person held off may never have been on.
        let persons = [OffReason::KillSwitch, OffReason::Policy].map(Some);
        self.ready = mode != Mode::Observing && !persons.contains(&mode.reason());
    }
}
