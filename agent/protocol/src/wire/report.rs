//! Reports.

use std::collections::BTreeSet;
use std::time::Duration;

use super::field::{
    At as _, Within as _, as_us, at_most, budget, count, each, histogram, message, threshold, zone,
};
use super::values::{mode_from_wire, mode_to_wire};
use super::{WireError, proto};
use crate::directive::Stamp;
use crate::ids::{ReplicaName, Sequence};
use crate::latency::{LAYOUT_ID, accept_layout};
use crate::limits::{REPLICAS_PER_REPORT_MAX, ROUTES_PER_AGENT_MAX};
use crate::report::{Attempts, Effective, Refusal, ReplicaReport, Report, RouteReport, Totals};
use crate::session::{RefusedReport, SentReport, Text};
use crate::units::Ratio;

/// Longest time a report may cover: an agent that was alone for a year has no news to tell.
const COVERS_MAX: Duration = Duration::from_hours(366 * 24);
/// Most tokens an agent may say it has. Beyond `CAP_MAX`, since a bucket always holds what half a
/// second earns, but finite: they are summed for the page.
const TOKENS_MAX: f64 = 1e9;

impl From<&SentReport> for proto::Report {
    fn from(sent: &SentReport) -> Self {
        Self {
            sequence: sent.report.sequence.0,
            covers_us: as_us(sent.report.covers),
            wall_clock_ms: sent.report.wall_clock_ms,
            histogram_layout: LAYOUT_ID,
            held_hash: sent.held_hash,
            routes: sent.report.routes.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<proto::Report> for SentReport {
    type Error = RefusedReport;

    fn try_from(report: proto::Report) -> Result<Self, RefusedReport> {
        let (sequence, held_hash) = (Sequence(report.sequence), report.held_hash);
        Report::try_from(report)
            .map(|report| Self { held_hash, report })
            .map_err(|error| RefusedReport {
                sequence,
                held_hash,
                reason: Text::lossy(error),
            })
    }
}

impl TryFrom<proto::Report> for Report {
    type Error = WireError;

    fn try_from(report: proto::Report) -> Result<Self, WireError> {
        // Before anything that only makes sense in a layout we know.
        accept_layout(report.histogram_layout).at("histogram_layout")?;
        let covers = Duration::from_micros(report.covers_us);
        if covers.is_zero() || covers > COVERS_MAX {
            let problem = format_args!(
                "{covers:?} is out of range: expected above 0 and at most {COVERS_MAX:?}"
            );
            return Err(WireError::new("covers_us", problem));
        }
        // One more may be `__other__`; that it is, and how many others there are, is checked below.
        if report.routes.len() > ROUTES_PER_AGENT_MAX + 1 {
            at_most("routes", &report.routes, ROUTES_PER_AGENT_MAX)?;
        }
        let read = Self {
            sequence: Sequence(report.sequence),
            covers,
            wall_clock_ms: report.wall_clock_ms,
            routes: each("routes", report.routes, RouteReport::try_from)?,
        };
        // What is left for it: the sequence, a route that is there twice, and one too many.
        read.check()
            .map_err(|error| WireError::from_check(&error))?;
        Ok(read)
    }
}

impl From<&RouteReport> for proto::RouteReport {
    fn from(report: &RouteReport) -> Self {
        Self {
            route: Some(report.route.clone().into()),
            totals: Some((&report.totals).into()),
            primary: attempts_to_wire(&report.primary),
            hedge: attempts_to_wire(&report.hedge),
            treated: report.treated.to_bytes(),
            holdout: report.holdout.to_bytes(),
            in_flight: report.in_flight.to_bytes(),
            replicas: report.replicas.iter().map(Into::into).collect(),
            effective: Some((&report.effective).into()),
            over_budget_seconds: report.over_budget_seconds,
        }
    }
}

impl TryFrom<proto::RouteReport> for RouteReport {
    type Error = WireError;

    fn try_from(report: proto::RouteReport) -> Result<Self, WireError> {
        at_most("replicas", &report.replicas, REPLICAS_PER_REPORT_MAX)?;
        let replicas = each("replicas", report.replicas, ReplicaReport::try_from)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = replicas
            .iter()
            .find(|replica| !seen.insert(&replica.replica))
        {
            let problem = format_args!(
                "{} is there twice; expected each replica once",
                twice.replica
            );
            return Err(WireError::new("replicas", problem));
        }
        Ok(Self {
            route: message("route", report.route)?,
            totals: message("totals", report.totals)?,
            primary: attempts("primary", report.primary)?,
            hedge: attempts("hedge", report.hedge)?,
            treated: histogram("treated", &report.treated)?,
            holdout: histogram("holdout", &report.holdout)?,
            in_flight: histogram("in_flight", &report.in_flight)?,
            replicas,
            effective: message("effective", report.effective)?,
            over_budget_seconds: count("over_budget_seconds", report.over_budget_seconds)?,
        })
    }
}

fn attempts_to_wire(attempts: &Attempts) -> Option<proto::Attempts> {
    let (done, censored) = (attempts.done.to_bytes(), attempts.censored.to_bytes());
    // Two bytes saved for each role of each replica that did nothing.
    (!done.is_empty() || !censored.is_empty()).then_some(proto::Attempts { done, censored })
}

/// Absent: none.
fn attempts(field: &str, attempts: Option<proto::Attempts>) -> Result<Attempts, WireError> {
    let Some(attempts) = attempts else {
        return Ok(Attempts::default());
    };
    let read = || {
        Ok(Attempts {
            done: histogram("done", &attempts.done)?,
            censored: histogram("censored", &attempts.censored)?,
        })
    };
    read().within(field)
}

impl From<&ReplicaReport> for proto::ReplicaReport {
    fn from(report: &ReplicaReport) -> Self {
        Self {
            replica: report.replica.to_string(),
            zone: report
                .zone
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            started: report.started,
            crossed: report.crossed,
            finished: report.finished,
            errors: report.errors,
            hedged: report.hedged,
            won: report.won,
            primary: attempts_to_wire(&report.primary),
        }
    }
}

impl TryFrom<proto::ReplicaReport> for ReplicaReport {
    type Error = WireError;

    fn try_from(report: proto::ReplicaReport) -> Result<Self, WireError> {
        if report.errors > report.finished {
            let problem = format_args!("{} is above finished ({})", report.errors, report.finished);
            return Err(WireError::new("errors", problem));
        }
        Ok(Self {
            replica: ReplicaName::new(&report.replica).at("replica")?,
            zone: zone("zone", &report.zone)?,
            started: count("started", report.started)?,
            crossed: count("crossed", report.crossed)?,
            finished: count("finished", report.finished)?,
            errors: report.errors,
            hedged: count("hedged", report.hedged)?,
            won: count("won", report.won)?,
            primary: attempts("primary", report.primary)?,
        })
    }
}

impl From<&Effective> for proto::Effective {
    fn from(effective: &Effective) -> Self {
        let (mode, reason) = mode_to_wire(effective.mode);
        Self {
            stamp: (effective.stamp != Stamp::default()).then(|| effective.stamp.into()),
            mode,
            reason,
            own_off: effective.own_off,
            threshold_us: effective.threshold.map(|threshold| as_us(threshold.get())),
            probability: effective.probability.get(),
            budget: effective.budget.get(),
            cap: effective.cap,
            tokens: effective.tokens,
            replicas: effective.replicas,
            watched_losers: effective.watched_losers,
        }
    }
}

impl TryFrom<proto::Effective> for Effective {
    type Error = WireError;

    fn try_from(effective: proto::Effective) -> Result<Self, WireError> {
        Ok(Self {
            stamp: effective.stamp.map(Stamp::from).unwrap_or_default(),
            mode: mode_from_wire(effective.mode, effective.reason)?,
            own_off: effective.own_off,
            threshold: threshold("threshold_us", effective.threshold_us)?,
            probability: Ratio::new(effective.probability).at("probability")?,
            budget: budget("budget", effective.budget)?,
            cap: tokens("cap", effective.cap)?,
            tokens: tokens("tokens", effective.tokens)?,
            replicas: effective.replicas,
            watched_losers: effective.watched_losers,
        })
    }
}

fn tokens(field: &str, value: f64) -> Result<f64, WireError> {
    if (0.0..=TOKENS_MAX).contains(&value) {
        Ok(value)
    } else {
        let problem =
            format_args!("{value} is out of range: expected a number from 0 to {TOKENS_MAX}");
        Err(WireError::new(field, problem))
    }
}

/// The counters have one name on both sides, so a list is all there is to say; a counter left out
/// does not compile.
macro_rules! totals {
    ($($field:ident,)*) => {
        impl From<&Totals> for proto::Totals {
            fn from(totals: &Totals) -> Self {
                Self {
                    $($field: totals.$field,)*
                    refused: totals
                        .refused
                        .iter()
                        .any(|count| *count > 0)
                        .then(|| refusals_to_wire(totals)),
                }
            }
        }

        impl TryFrom<proto::Totals> for Totals {
            type Error = WireError;

            fn try_from(totals: proto::Totals) -> Result<Self, WireError> {
                let read = Self {
                    $($field: count(stringify!($field), totals.$field)?,)*
                    refused: refusals(&totals.refused.unwrap_or_default()).within("refused")?,
                };
                // Their order is a property of all of them together: an error of the whole.
                read.check().map_err(|error| {
                    WireError::new("", WireError::from_check(&error).problem)
                })?;
                Ok(read)
            }
        }
    };
}

totals! {
    started, not_eligible, finished, failed, abandoned, crossed, hedged, won, primary_finished,
    primary_errors, hedge_finished, hedge_errors, push_back, holdout_finished, holdout_failed,
    treated_finished, treated_failed, failed_despite_primary, probation_skipped,
    threshold_past_deadline, hedged_again, hedged_on_error, won_on_error, further_refused,
}

fn refusals_to_wire(totals: &Totals) -> proto::Refusals {
    proto::Refusals {
        mode: totals.refused_for(Refusal::Mode),
        holdout: totals.refused_for(Refusal::Holdout),
        unarmed: totals.refused_for(Refusal::Unarmed),
        not_drawn: totals.refused_for(Refusal::NotDrawn),
        deadline: totals.refused_for(Refusal::Deadline),
        no_replica: totals.refused_for(Refusal::NoReplica),
        no_permit: totals.refused_for(Refusal::NoPermit),
        budget: totals.refused_for(Refusal::Budget),
        already_hedge: totals.refused_for(Refusal::AlreadyHedge),
        answered: totals.refused_for(Refusal::Answered),
    }
}

fn refusals(refusals: &proto::Refusals) -> Result<[u64; Refusal::ALL.len()], WireError> {
    let mut counts = [0; Refusal::ALL.len()];
    for reason in Refusal::ALL {
        let value = match reason {
            Refusal::Mode => refusals.mode,
            Refusal::Holdout => refusals.holdout,
            Refusal::Unarmed => refusals.unarmed,
            Refusal::NotDrawn => refusals.not_drawn,
            Refusal::Deadline => refusals.deadline,
            Refusal::NoReplica => refusals.no_replica,
            Refusal::NoPermit => refusals.no_permit,
            Refusal::Budget => refusals.budget,
            Refusal::AlreadyHedge => refusals.already_hedge,
            Refusal::Answered => refusals.answered,
        };
        counts[reason as usize] = count(reason.as_str(), value)?;
    }
    Ok(counts)
}
