//! What one life of one agent has told so far: each report is counted once, in order, or not at all.

mod plausible;

use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::ids::{RouteKey, Sequence};
use hedgerow_protocol::limits::ROUTES_PER_AGENT_MAX;
use hedgerow_protocol::report::{Report, ReportError, RouteReport, Totals};

use self::plausible::Sums;
use crate::moment::Moment;

/// What an agent's reports add up to, by the name it gives a route.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// The highest sequence counted.
    last: Sequence,
    /// Where the counting began.
    origin: Origin,
    /// What refused reports since the last counted one covered: the next one's counters have grown
    /// in that time too.
    uncounted: Duration,
    /// When the last one was counted; before that, when the first was refused. What came after it
    /// covers no more time than has gone by since, whatever it says.
    since: Option<Since>,
    routes: BTreeMap<RouteKey, Counted>,
}

/// From when a ledger knows how much time there was.
#[derive(Debug, Clone, Copy)]
struct Since {
    at: Moment,
    /// What was covered then and is not counted.
    before: Duration,
}

/// Where a ledger's counting began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Origin {
    /// Nothing heard yet.
    #[default]
    Unknown,
    /// With the agent's first report: a route not seen before started from 0.
    First,
    /// In the middle of its life (the controller is newer than the agent): what a route says when
    /// it is first seen is where it is counted from.
    Middle,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    totals: Totals,
    /// What came in parts since the counting began.
    sums: Sums,
}

/// What became of a report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// Counted before: acknowledged, nothing added (B45, P13).
    Duplicate,
    /// Counted. For each route, in the report's order, what came since the last one; None where
    /// this report is what later ones are counted from.
    Counted(Vec<Option<Totals>>),
    /// Refused whole, with the reason (P12).
    Refused(String),
}

impl Ledger {
    /// Checks `report`, which came at `now`, against everything counted before; counts it where it
    /// can stand.
    pub(crate) fn take(&mut self, report: &Report, now: Moment) -> Verdict {
        if let Err(problem) = report.check() {
            return self.refuse(report, now, problem.to_string());
        }
        if report.sequence <= self.last {
            return Verdict::Duplicate;
        }
        let covers = report.covers.saturating_add(self.uncounted);
        let covers = self.since.map_or(covers, |since| {
            covers.min(now.since(since.at).saturating_add(since.before))
        });
        let origin = match self.origin {
            Origin::Unknown if report.sequence.0 == 1 => Origin::First,
            Origin::Unknown => Origin::Middle,
            known => known,
        };
        let mut deltas = Vec::with_capacity(report.routes.len());
        let mut counted = Vec::with_capacity(report.routes.len());
        let mut known = self.routes.keys().filter(|it| !it.is_other()).count();
        for route in &report.routes {
            let before = self.routes.get(&route.route);
            // `__other__` is one more than the agent's 64.
            known += usize::from(before.is_none() && !route.route.is_other());
            match count(before, route, origin, covers) {
                Ok((delta, now)) => {
                    deltas.push(delta);
                    counted.push(now);
                }
                Err(reason) => return self.refuse(report, now, reason),
            }
        }
        if known > ROUTES_PER_AGENT_MAX {
            let reason = format!(
                "routes: {known} in the agent's life; at most {ROUTES_PER_AGENT_MAX} are kept, \
                 further ones belong under `__other__`"
            );
            return self.refuse(report, now, reason);
        }
        self.last = report.sequence;
        self.uncounted = Duration::ZERO;
        self.since = Some(Since {
            at: now,
            before: Duration::ZERO,
        });
        self.origin = origin;
        for (route, now) in report.routes.iter().zip(counted) {
            self.routes.insert(route.route.clone(), now);
        }
        Verdict::Counted(deltas)
    }

    fn refuse(&mut self, report: &Report, now: Moment, reason: String) -> Verdict {
        self.since.get_or_insert(Since {
            at: now,
            before: report.covers,
        });
        self.uncounted = self.uncounted.saturating_add(report.covers);
        Verdict::Refused(reason)
    }

    /// Two agents turned out to have shared it: what each says next is where it is counted from.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// What `route` adds to what was counted `before`, in the time that `covers` says.
fn count(
    before: Option<&Counted>,
    route: &RouteReport,
    origin: Origin,
    covers: Duration,
) -> Result<(Option<Totals>, Counted), String> {
    let base = match before {
        Some(before) => Some(*before),
        None if origin == Origin::First => Some(Counted::default()),
        None => None,
    };
    let Some(base) = base else {
        return Ok((
            None,
            Counted {
                totals: route.totals,
                sums: Sums::default(),
            },
        ));
    };
    let delta = route
        .totals
        .since(&base.totals)
        .ok_or_else(|| ReportError::WentBack.to_string())?;
    let named = |problem: String| format!("{}: {problem}", route.route);
    plausible::rate(&delta, covers).map_err(named)?;
    plausible::growth(&base.totals, &delta, route).map_err(named)?;
    let sums = base.sums.plus(route);
    sums.check(&route.totals).map_err(named)?;
    plausible::in_flight(route).map_err(named)?;
    Ok((
        Some(delta),
        Counted {
            totals: route.totals,
            sums,
        },
    ))
}
