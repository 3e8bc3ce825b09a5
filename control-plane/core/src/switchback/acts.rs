//! How a switchback begins and ends.

use std::sync::Arc;

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::RouteKey;

use super::{ROUNDS, Switchback};
use crate::controller::Controller;
use crate::decide::words::{latency, percent};
use crate::effect::{AuditRow, OrderError, Record};
use crate::event::Actor;
use crate::moment::Moment;
use crate::orders::mode_words;
use crate::view::{ArmView, Mark, MarkKind, SwitchbackResult};

/// Switchbacks at one time: each keeps some 40 KB, and a fleet that is half of the time without
/// hedging on more routes is no longer steered by its policies.
const RUNNING_MAX: usize = 32;

impl Controller {
    /// Whether a switchback may begin on `key`; the record's line where it may.
    pub(crate) fn switchback_may_start(
        &self,
        now: Moment,
        key: &RouteKey,
        rounds: u32,
        (actor, reason): (&Actor, &str),
    ) -> Result<Record, OrderError> {
        let Some(route) = self.routes.get(key) else {
            return Err(OrderError::UnknownRoute(key.clone()));
        };
        let (least, most) = ROUNDS;
        if !(least..=most).contains(&rounds) {
            return Err(OrderError::OutOfRange {
                field: "rounds",
                problem: format!("{rounds} is out of range: expected {least} to {most}"),
            });
        }
        if route.switchbacks.running.is_some() {
            let problem = format!("a switchback runs on {key} already; stop it first");
            return Err(OrderError::NotNow(problem));
        }
        if route.believed.mode != Mode::On {
            let problem = format!(
                "a switchback compares with hedging, and {key} is {}: expected it to be on",
                mode_words(route.believed.mode)
            );
            return Err(OrderError::NotNow(problem));
        }
        if self.rules.rollout(key).is_some() {
            let problem = format!(
                "a policy of {} is put in force in steps, so that not all agents hedge alike: \
                 expected that to be over",
                key.dependency
            );
            return Err(OrderError::NotNow(problem));
        }
        let running = |route: &&crate::route::Route| route.switchbacks.running.is_some();
        if self.routes.values().filter(running).count() >= RUNNING_MAX {
            let problem =
                format!("{RUNNING_MAX} switchbacks run already: wait until one has ended");
            return Err(OrderError::NotNow(problem));
        }
        let after = format!("{rounds} rounds of 30 s with hedging and 30 s without");
        let (actor, reason) = (actor.clone(), reason.to_owned());
        Ok(row(
            now,
            key,
            actor,
            "switchback.start",
            (String::new(), after),
            reason,
        ))
    }

    /// Whether one is there to be stopped; the record's line where it is.
    pub(crate) fn switchback_may_stop(
        &self,
        now: Moment,
        key: &RouteKey,
        (actor, reason): (&Actor, &str),
    ) -> Result<Record, OrderError> {
        let Some(route) = self.routes.get(key) else {
            return Err(OrderError::UnknownRoute(key.clone()));
        };
        let Some(job) = &route.switchbacks.running else {
            return Err(OrderError::NotNow(format!("no switchback runs on {key}")));
        };
        let before = format!("{} of {} rounds done", job.done.len(), job.rounds);
        let (actor, reason) = (actor.clone(), reason.to_owned());
        let words = (before, String::from("stopped"));
        Ok(row(now, key, actor, "switchback.stop", words, reason))
    }

    /// One begins: the order for it is stored.
    pub(crate) fn start_switchback(
        &mut self,
        now: Moment,
        key: &RouteKey,
        rounds: u32,
        by: (Actor, String),
    ) {
        let revision = self.rules.newest(key);
        if let Some(route) = self.routes.get_mut(key) {
            let under = (revision, route.believed.since);
            let job = Switchback::new(by, rounds, under, now);
            route.switchbacks.last = Some(Arc::new(job.view(now, None)));
            route.switchbacks.running = Some(Box::new(job));
        }
    }

    /// One tick: takes in the newest slice, and ends what is over.
    pub(crate) fn run_switchback(&mut self, now: Moment, key: &RouteKey) {
        let revision = self.rules.newest(key);
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let Some(job) = &mut route.switchbacks.running else {
            return;
        };
        let on_since = (route.believed.mode == Mode::On).then_some(route.believed.since);
        let ended = if revision != job.revision {
            Some("the policy was changed".to_owned())
        } else if job.stands(revision, on_since) {
            if let Some(slice) = route.windows.last() {
                job.observe(now, slice);
            }
            let over = now >= job.ends();
            over.then(|| format!("all {} rounds are done", job.rounds))
        } else {
            let mode = mode_words(route.believed.mode);
            Some(format!("hedging did not stay on: the mode is {mode}"))
        };
        match ended {
            Some(why) => self.end_switchback(now, key, why),
            None => route.switchbacks.last = Some(Arc::new(job.view(now, None))),
        }
    }

    /// One ends, and the record says what came of it.
    pub(crate) fn end_switchback(&mut self, now: Moment, key: &RouteKey, why: String) {
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let Some(mut job) = route.switchbacks.running.take() else {
            return;
        };
        if now >= job.ends() {
            job.close_half();
        }
        let view = job.view(now, Some(why.clone()));
        let after = view.result.as_ref().map_or_else(
            || "no round was complete".to_owned(),
            |result| result.words.clone(),
        );
        let recorded = view.result.as_ref().map_or_else(String::new, in_full);
        route.mark(Mark {
            at: now,
            kind: MarkKind::Policy,
            words: format!("switchback ended, {why}: {after}"),
        });
        route.switchbacks.last = Some(Arc::new(view));
        let words = (String::new(), format!("{after}{recorded}"));
        let row = row(now, key, Actor::controller(), "switchback.end", words, why);
        self.writes.note([row]);
    }

    /// Those that ran when the last controller ended: their figures went with it.
    pub(crate) fn lose_switchbacks(&mut self, now: Moment, keys: &[RouteKey]) {
        let lost = keys.iter().map(|key| {
            let why = "the controller started anew, and what was measured is lost".to_owned();
            let words = (String::new(), "lost".to_owned());
            row(now, key, Actor::controller(), "switchback.end", words, why)
        });
        self.writes.note(lost.collect::<Vec<_>>());
    }
}

/// Both arms in figures, for the record.
fn in_full(result: &SwitchbackResult) -> String {
    let time = |it: Option<std::time::Duration>| it.map_or_else(|| "unknown".into(), latency);
    let arm = |it: &ArmView| {
        format!(
            "p50 {}, p95 {}, p99 {}, errors {}, {:.1} calls/s",
            time(it.p50),
            time(it.p95),
            time(it.p99),
            it.error_rate.map_or_else(|| "unknown".into(), percent),
            it.calls_per_s.unwrap_or_default()
        )
    };
    format!(". On: {}. Off: {}", arm(&result.on), arm(&result.off))
}

fn row(
    at: Moment,
    key: &RouteKey,
    actor: Actor,
    action: &str,
    (before, after): (String, String),
    reason: String,
) -> Record {
    Record::Audit(AuditRow {
        at,
        actor,
        action: action.into(),
        target: key.to_string(),
        before,
        after,
        reason,
    })
}
