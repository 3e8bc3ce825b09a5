//! The store's life: which one this is, and when a higher one must begin.
//!
//! A store that was restored from a copy does not know what happened after the copy. The agents do:
//! where one holds a directive that this controller cannot have given, all it gave since is in
//! doubt, and a new epoch, above everything heard of, begins (P5, B52).

use std::time::Duration;

use hedgerow_protocol::directive::Stamp;
use hedgerow_protocol::ids::Epoch;

use crate::controller::Controller;
use crate::effect::Record;
use crate::moment::Moment;
use crate::writes::Waiting;

/// How far above ours an epoch that an agent holds is believed. An epoch is a start of a controller,
/// or one raise in [`EPOCH_LASTS`] at most: a store that lost a million of them is not restored from
/// a copy but another fleet's. Without such a step one forged word would push the fleet to the
/// highest number there is, above which no new life can begin; with it that takes millions of years.
const EPOCH_STEP_MAX: u64 = 1 << 20;
/// Agents can make a new one begin at most this often: a lying agent must not make the fleet start over in a loop.
const EPOCH_LASTS: Duration = Duration::from_secs(10);

/// Where the controller stands in the order of epochs.
#[derive(Debug, Clone)]
pub(crate) struct Epochs {
    durable: Option<Epoch>,
    wanted: Epoch,
    /// The highest epoch an agent held that was not ours to give.
    foreign: Option<Epoch>,
    /// When a higher one last had to begin because of what an agent held.
    raised: Option<Moment>,
    writing: bool,
    /// Whether any directive of the durable epoch was sent: nobody can hold one before.
    pub(crate) given: bool,
}

/// Where a stamp that an agent holds is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// From this controller, or from one before it.
    Ours,
    /// From one that this one's store does not know of: a higher epoch will begin.
    Foreign,
    /// From nobody that this one can be the successor of: a lie, or another fleet's.
    Lie,
}

impl Epochs {
    pub(crate) fn after(last: Epoch) -> Self {
        let wanted = last.next();
        Self {
            durable: None,
            wanted,
            foreign: None,
            raised: None,
            writing: false,
            given: false,
        }
    }

    /// The epoch that is stored; None: not yet.
    pub(crate) fn durable(&self) -> Option<Epoch> {
        self.durable
    }

    pub(crate) fn wanted(&self) -> Epoch {
        self.wanted
    }

    /// The highest epoch that an agent is believed to hold.
    pub(crate) fn believed_max(&self) -> Epoch {
        Epoch(self.wanted.0.saturating_add(EPOCH_STEP_MAX))
    }

    /// An agent holds `held` where `ours` is wanted.
    pub(crate) fn heard(&mut self, held: Stamp, ours: Stamp) -> Heard {
        if held.epoch > self.believed_max() {
            return Heard::Lie;
        }
        let not_ours =
            held.epoch > self.wanted || (held.epoch == self.wanted && (!self.given || held > ours));
        if !not_ours {
            return Heard::Ours;
        }
        self.foreign = Some(
            self.foreign
                .map_or(held.epoch, |known| known.max(held.epoch)),
        );
        Heard::Foreign
    }
}

impl Controller {
    /// Begins the epoch that is wanted, or a higher one where an agent has heard of such; called at
    /// the start, when an agent joins, and each tick.
    pub(crate) fn begin_epoch(&mut self, now: Moment) {
        let epochs = &mut self.epochs;
        let rested = epochs
            .raised
            .is_none_or(|raised| now.since(raised) >= EPOCH_LASTS);
        if let Some(foreign) = epochs.foreign
            && !epochs.writing
            && rested
        {
            epochs.foreign = None;
            if foreign >= epochs.wanted {
                epochs.wanted = foreign.next();
                epochs.raised = Some(now);
            }
        }
        if epochs.writing || epochs.durable == Some(epochs.wanted) {
            return;
        }
        epochs.writing = true;
        let wanted = epochs.wanted;
        self.persist(Waiting::Epoch(wanted), vec![Record::Epoch(wanted)]);
    }

    /// The epoch is stored: everything gets its stamps from it.
    pub(crate) fn epoch_persisted(&mut self, now: Moment, epoch: Epoch) {
        self.epochs.writing = false;
        self.epochs.durable = Some(epoch);
        self.epochs.given = false;
        self.agents_to_push.extend(self.fleet.attached.keys());
        self.begin_epoch(now);
    }

    /// It is not: tried again with the next tick.
    pub(crate) fn epoch_failed(&mut self) {
        self.epochs.writing = false;
    }
}
