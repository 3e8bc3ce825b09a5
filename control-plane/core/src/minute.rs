//! A minute of a route as it is kept for [replay](crate::whatif::replay): what its primaries took,
//! and what else a decision would have known.

use std::time::Duration;

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::latency::SparseHistogram;
use serde::{Deserialize, Serialize};

use crate::controller::Controller;
use crate::effect::Record;
use crate::moment::Moment;
use crate::stagger::stagger;
use crate::window::{Attempts, Slice, Tally};
use crate::writes::Waiting;

/// How long a minute is: agents' seconds and a late tick make it a little longer.
const LENGTH: Duration = Duration::from_mins(1);

/// A minute that is over. Some hundred bytes, whatever the traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Minute {
    /// Its end.
    pub at: Moment,
    /// The time it covers; more than a minute where the controller was held up.
    pub span: Duration,
    /// Eligible calls started.
    pub calls: u64,
    /// Hedges sent.
    pub hedged: u64,
    /// Primaries that answered, each on its own clock.
    pub done: SparseHistogram,
    /// Primaries that were stopped or failed.
    pub censored: SparseHistogram,
    /// The rest.
    pub known: Known,
}

/// What else was known at the end of a [`Minute`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Primary errors / primaries finished, 0 to 1; None where none finished.
    pub errors: Option<f64>,
    /// The share of slowness that calls had in common with their hedges, 0 to 1; None where too
    /// few hedges were sent to tell.
    pub phi: Option<f64>,
    /// Why hedging was off or probing; None where it was neither.
    pub off: Option<OffReason>,
}

impl Minute {
    /// Its primaries, to be added up with those of other minutes.
    pub fn primaries(&self) -> Attempts {
        let mut primaries = Attempts::default();
        // Fails after 2^48 samples only.
        let _ = primaries.done.add(&self.done);
        let _ = primaries.censored.add(&self.censored);
        primaries
    }
}

/// The minute under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Open {
    span: Duration,
    calls: u64,
    hedged: u64,
    finished: u64,
    errors: u64,
    done: Tally,
    censored: Tally,
    /// Whether there was one before.
    follows: bool,
}

impl Open {
    /// Adds a tick's slice, its span set.
    pub(crate) fn add(&mut self, slice: &Slice) {
        self.span += slice.span;
        self.calls = self.calls.saturating_add(slice.totals.started);
        self.hedged = self.hedged.saturating_add(slice.totals.hedges());
        self.finished = self.finished.saturating_add(slice.totals.primary_finished);
        self.errors = self.errors.saturating_add(slice.totals.primary_errors);
        self.done.add(&slice.primary_done);
        self.censored.add(&slice.primary_censored);
    }

    /// The minute, where it is over, and a new one begun. None also where no call was made in it:
    /// silence needs no row. The first one is longer by `late`, so that not all routes' minutes are
    /// over at once.
    pub(crate) fn close(
        &mut self,
        now: Moment,
        late: Duration,
        phi: Option<f64>,
        off: Option<OffReason>,
    ) -> Option<Minute> {
        let late = if self.follows { Duration::ZERO } else { late };
        if self.span < LENGTH + late {
            return None;
        }
        let begun = Self {
            follows: true,
            ..Self::default()
        };
        let over = std::mem::replace(self, begun);
        if over.calls == 0 {
            return None;
        }
        Some(Minute {
            at: now,
            span: over.span,
            calls: over.calls,
            hedged: over.hedged,
            done: over.done.to_sparse(),
            censored: over.censored.to_sparse(),
            known: Known {
                errors: (over.finished > 0)
                    .then(|| (over.errors as f64 / over.finished as f64).min(1.0)),
                phi,
                off,
            },
        })
    }
}

impl Controller {
    /// Gives the minutes that are over to the store; `may_store` is false where it lags behind, and
    /// they are lost: a gap in what can be replayed.
    pub(crate) fn keep_minutes(&mut self, now: Moment, may_store: bool) {
        let tick = self.settings.tick;
        let mut stored = Vec::new();
        for (key, route) in &mut self.routes {
            let decision = route.decision.as_ref();
            let figures = decision.and_then(|it| it.figures);
            let off = decision.and_then(|it| it.mode.reason());
            let phi = figures.and_then(|figures| figures.phi);
            let late = tick * stagger(key) as u32;
            let minute = route.minute.close(now, late, phi, off);
            if let Some(minute) = minute.filter(|_| may_store) {
                stored.push(Record::Minute {
                    route: key.clone(),
                    minute: Box::new(minute),
                });
            }
        }
        if !stored.is_empty() {
            self.persist(Waiting::Points, stored);
        }
    }
}
