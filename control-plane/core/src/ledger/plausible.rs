//! What an agent that counts can report, and what only a liar can (P12).
//!
//! A call may begin in one report and end in another, and an agent reads its figures one after the
//! other while calls go on. So what comes in parts is held to the counters of the whole life, and
//! where figures are read after the counters there is room for a second's standstill in between. The
//! room is small beside a fleet's traffic, and what lies within it is still weighed (`weigh`).

use std::time::Duration;

use hedgerow_protocol::report::{Attempts, IN_FLIGHT_MAX, ReplicaReport, RouteReport, Totals};

/// Most calls an agent is believed to begin in a second, on one route: counting alone keeps a
/// processor busy at a tenth of it.
const CALLS_PER_SECOND_MAX: f64 = 1e6;
/// Time an agent is granted beside what it says it covers: it may have counted calls before the task
/// that reports had its first turn.
const COVERS_SLACK: Duration = Duration::from_secs(10);
/// How far histograms may lie above counters. An agent reads them first, so that none does; this is
/// for agents of another make.
const SAMPLES_SLACK_SHARE: f64 = 0.01;
/// The same for agents with hardly any calls.
const SAMPLES_SLACK_MIN: u64 = 100;
/// What an agent reads after its counters may lie above twice these by so much: its thread stood
/// still in between, while the others went on.
const LATER_SLACK: u64 = 10_000;

/// What reports bring in parts, added up since the counting began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    primary: u64,
    hedge: u64,
    treated: u64,
    holdout: u64,
    replicas: Replicas,
}

/// The same of all replicas together. A report has the busiest alone, so it is never more than all.
#[derive(Debug, Clone, Copy, Default)]
struct Replicas {
    started: u64,
    crossed: u64,
    finished: u64,
    errors: u64,
    hedged: u64,
    won: u64,
    samples: u64,
}

impl Sums {
    pub(super) fn plus(mut self, route: &RouteReport) -> Self {
        for (sum, more) in [
            (&mut self.primary, samples(&route.primary)),
            (&mut self.hedge, samples(&route.hedge)),
            (&mut self.treated, route.treated.count()),
            (&mut self.holdout, route.holdout.count()),
        ] {
            *sum = sum.saturating_add(more);
        }
        for replica in &route.replicas {
            self.replicas.add(replica);
        }
        self
    }

    /// Holds them to the counters.
    pub(super) fn check(&self, totals: &Totals) -> Result<(), String> {
        for (what, sum, of, counted) in [
            ("primaries", self.primary, "started", totals.started),
            (
                "hedges",
                self.hedge,
                "hedged or hedged_again",
                totals.hedged.saturating_add(totals.hedged_again),
            ),
            (
                "treated calls",
                self.treated,
                "treated_finished",
                totals.treated_finished,
            ),
            (
                "held out calls",
                self.holdout,
                "holdout_finished",
                totals.holdout_finished,
            ),
        ] {
            let slack = SAMPLES_SLACK_MIN.max((counted as f64 * SAMPLES_SLACK_SHARE) as u64);
            if sum > counted.saturating_add(slack) {
                return Err(format!(
                    "{sum} {what} in histograms, but only {counted} {of}; expected no more than that"
                ));
            }
        }
        self.replicas.check(totals)
    }
}

impl Replicas {
    fn add(&mut self, replica: &ReplicaReport) {
        for (sum, more) in [
            (&mut self.started, replica.started),
            (&mut self.crossed, replica.crossed),
            (&mut self.finished, replica.finished),
            (&mut self.errors, replica.errors),
            (&mut self.hedged, replica.hedged),
            (&mut self.won, replica.won),
            (&mut self.samples, samples(&replica.primary)),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    fn check(&self, totals: &Totals) -> Result<(), String> {
        for (what, sum, counted) in [
            ("started", self.started, totals.started),
            ("crossed", self.crossed, totals.crossed),
            ("finished", self.finished, totals.primary_finished),
            ("errors", self.errors, totals.primary_errors),
            ("hedged", self.hedged, totals.hedges()),
            (
                "won",
                self.won,
                totals.won.saturating_add(totals.won_on_error),
            ),
            ("primaries in histograms", self.samples, totals.started),
        ] {
            let most = later(counted);
            if sum > most {
                return Err(format!(
                    "replicas: {sum} {what}, but {counted} in all; expected at most {most}"
                ));
            }
        }
        Ok(())
    }
}

fn samples(attempts: &Attempts) -> u64 {
    let (done, censored) = (attempts.done.count(), attempts.censored.count());
    done.saturating_add(censored)
}

/// The most of something that was read after it was `counted`.
fn later(counted: u64) -> u64 {
    counted.saturating_mul(2).saturating_add(LATER_SLACK)
}

/// Refuses more calls than anybody can begin in the time.
pub(super) fn rate(delta: &Totals, covers: Duration) -> Result<(), String> {
    let begun = delta.started.saturating_add(delta.not_eligible);
    let most = covers.saturating_add(COVERS_SLACK).as_secs_f64() * CALLS_PER_SECOND_MAX;
    if begun as f64 > most {
        return Err(format!(
            "{begun} calls begun in {covers:?}; expected at most {most:.0}"
        ));
    }
    Ok(())
}

/// Refuses more of anything than there were calls for: those that had not ended at the last report,
/// and those begun since. What a life once counted is no credit to spend in a later second.
pub(super) fn growth(base: &Totals, delta: &Totals, route: &RouteReport) -> Result<(), String> {
    let calls = route.totals.started.saturating_sub(base.finished);
    // Twice: push-back counts attempts. The rest is for the order in which an agent reads.
    let most = later(calls);
    for (what, grown) in [
        ("finished", delta.finished),
        ("crossed", delta.crossed),
        ("hedged, hedged_again or hedged_on_error", delta.hedges()),
        ("primary_finished", delta.primary_finished),
        ("primary_errors", delta.primary_errors),
        ("push_back", delta.push_back),
        ("treated_finished", delta.treated_finished),
        ("holdout_finished", delta.holdout_finished),
        ("primaries in histograms", samples(&route.primary)),
        ("hedges in histograms", samples(&route.hedge)),
        ("treated calls in histograms", route.treated.count()),
        ("held out calls in histograms", route.holdout.count()),
    ] {
        if grown > most {
            return Err(format!(
                "{grown} {what} since the last report, with {calls} calls alive; expected at most \
                 {most}"
            ));
        }
    }
    Ok(())
}

/// Refuses more calls in flight than began, or than anybody can have.
pub(super) fn in_flight(route: &RouteReport) -> Result<(), String> {
    let count = route.in_flight.count();
    let most = later(route.totals.started).min(IN_FLIGHT_MAX);
    if count > most {
        return Err(format!(
            "{count} calls in flight, with {} started; expected at most {most}",
            route.totals.started
        ));
    }
    Ok(())
}
