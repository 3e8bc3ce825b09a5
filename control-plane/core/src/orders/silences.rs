//! Orders about alerts: silences, and who works on one. Stored with their line in the record; the
//! alerts themselves go on as they are.

use std::time::Duration;

use hedgerow_protocol::ids::ReplicaName;

use super::{Outcome, Wanted};
use crate::alert::{AlertBook, SILENCES_MAX};
use crate::controller::Controller;
use crate::effect::{AuditRow, Done, OrderError, Record, SilenceDraft, SilenceId};
use crate::event::Order;
use crate::moment::Moment;
use crate::view::{Acknowledgement, AlertPhase, SilenceView};

/// How long a silence, or somebody's work, may last. Under a minute it is over before it is seen;
/// after 30 days nobody remembers why.
const LASTS: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(30 * 24));

/// What such an order does once it is stored.
#[derive(Debug, Clone)]
pub(crate) enum Quiet {
    Silence(Box<SilenceView>),
    End(SilenceId),
    Acknowledge(String, Acknowledgement),
}

impl Quiet {
    pub(super) fn done(&self) -> Done {
        match self {
            Self::Silence(it) => Done::Silenced(it.id),
            Self::End(_) => Done::SilenceEnded,
            Self::Acknowledge(..) => Done::Acknowledged,
        }
    }

    pub(super) fn apply(&self, alerts: &mut AlertBook) {
        match self {
            Self::Silence(it) => alerts.begin_silence((**it).clone()),
            Self::End(id) => alerts.end_silence(*id),
            Self::Acknowledge(alert, by) => alerts.acknowledge(alert, by.clone()),
        }
    }
}

/// What is stored of an order, and what it does then.
type Begun = Result<(Vec<Record>, Quiet), OrderError>;

impl Controller {
    /// Begins to store one; returns the answer where it may not be.
    pub(super) fn begin_quiet(
        &mut self,
        now: Moment,
        wanted: Wanted,
    ) -> Option<Result<Done, OrderError>> {
        let begun = match &wanted.order {
            Order::Silence(draft) => self.silence(now, &wanted, draft.clone()),
            Order::EndSilence { silence } => self.end_silence(now, &wanted, *silence),
            Order::Acknowledge { alert, lasts } => self.acknowledge(now, &wanted, alert, *lasts),
            _ => return None,
        };
        match begun {
            Ok((records, quiet)) => {
                self.store_order(now, wanted, Outcome::Quiet(quiet), records);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn silence(&mut self, now: Moment, wanted: &Wanted, draft: SilenceDraft) -> Begun {
        check(&draft)?;
        if self.alerts.silences(now).len() >= SILENCES_MAX {
            return Err(OrderError::NotNow(format!(
                "{SILENCES_MAX} silences are in force already: end one, or make one wider"
            )));
        }
        let silence = SilenceView {
            id: self.alerts.next_silence(),
            ends: now.plus(draft.lasts),
            matches: draft,
            actor: wanted.actor.clone(),
            reason: wanted.reason.clone(),
            since: now,
        };
        let row = AuditRow {
            after: silence.matches.words(),
            ..row(now, wanted, "silence.begin", silence.matches.target())
        };
        let records = vec![Record::Silence(silence.clone()), Record::Audit(row)];
        Ok((records, Quiet::Silence(Box::new(silence))))
    }

    fn end_silence(&self, now: Moment, wanted: &Wanted, id: SilenceId) -> Begun {
        let silence = self.alerts.silence(id, now);
        let silence = silence.ok_or(OrderError::UnknownSilence(id))?;
        let row = AuditRow {
            before: silence.matches.words(),
            ..row(now, wanted, "silence.end", silence.matches.target())
        };
        let ended = Record::SilenceEnded { id, at: now };
        Ok((vec![ended, Record::Audit(row)], Quiet::End(id)))
    }

    fn acknowledge(
        &self,
        now: Moment,
        wanted: &Wanted,
        id: &str,
        lasts: Option<Duration>,
    ) -> Begun {
        if let Some(lasts) = lasts {
            check_lasts(lasts)?;
        }
        let unknown = || OrderError::UnknownAlert(id.to_owned());
        let alert = self.alerts.view(now, id).ok_or_else(unknown)?;
        let not_now = |problem: &str| Err(OrderError::NotNow(format!("{id} {problem}")));
        match alert.phase {
            AlertPhase::Firing => {}
            AlertPhase::Pending => return not_now("does not fire yet: wait, or silence it"),
            AlertPhase::Resolved => return not_now("is over: there is nothing to work on"),
        }
        let by = Acknowledgement {
            actor: wanted.actor.clone(),
            comment: wanted.reason.clone(),
            at: now,
            until: lasts.map(|lasts| now.plus(lasts)),
        };
        let words = |lasts: Option<Duration>| match lasts {
            Some(lasts) => format!("{id} for {}", span(lasts)),
            None => format!("{id} until it is over"),
        };
        let before = alert.acknowledged;
        let before = before.map_or_else(String::new, |it| it.actor.name);
        let target = alert.state.route.to_string();
        let row = AuditRow {
            before,
            after: words(lasts),
            ..row(now, wanted, "alert.acknowledge", target)
        };
        let record = Record::Acknowledged {
            alert: id.to_owned(),
            by: by.clone(),
        };
        let quiet = Quiet::Acknowledge(id.to_owned(), by);
        Ok((vec![record, Record::Audit(row)], quiet))
    }
}

fn row(now: Moment, wanted: &Wanted, action: &str, target: String) -> AuditRow {
    AuditRow {
        at: now,
        actor: wanted.actor.clone(),
        action: action.into(),
        target,
        before: String::new(),
        after: String::new(),
        reason: wanted.reason.clone(),
    }
}

fn check(draft: &SilenceDraft) -> Result<(), OrderError> {
    check_lasts(draft.lasts)?;
    if draft.operation.is_some() && draft.dependency.is_none() {
        return Err(OrderError::OutOfRange {
            field: "operation",
            problem: "an operation is one of a dependency: expected that one beside it".into(),
        });
    }
    let replica = draft.replica.as_deref().map(ReplicaName::new).transpose();
    replica
        .map(|_| ())
        .map_err(|problem| OrderError::OutOfRange {
            field: "replica",
            problem: problem.to_string(),
        })
}

fn check_lasts(lasts: Duration) -> Result<(), OrderError> {
    let (least, most) = LASTS;
    if (least..=most).contains(&lasts) {
        return Ok(());
    }
    let minutes = |it: Duration| it.as_secs_f64() / 60.0;
    Err(OrderError::OutOfRange {
        field: "minutes",
        problem: format!(
            "{} is out of range: expected {} to {}",
            minutes(lasts),
            minutes(least),
            minutes(most)
        ),
    })
}

impl SilenceDraft {
    /// As the record has it: a dependency or a route, by which its lines are found.
    fn target(&self) -> String {
        match (&self.dependency, &self.operation) {
            (Some(dependency), Some(operation)) => format!("{dependency} {operation}"),
            (Some(dependency), None) => dependency.to_string(),
            (None, _) => "everything".into(),
        }
    }

    /// What of its target, and how long.
    fn words(&self) -> String {
        let rule = self.rule.map_or("every rule", |rule| rule.as_str());
        let replica = self.replica.as_ref();
        let replica = replica.map_or_else(String::new, |name| format!(" of replica {name}"));
        format!("{rule}{replica} for {}", span(self.lasts))
    }
}

/// A length of time in words, to the minute.
fn span(lasts: Duration) -> String {
    let minutes = lasts.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
