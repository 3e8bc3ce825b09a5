//! What happened, for people: revisions of policies, the record, automatic changes.

use hedgerow_core::effect::{AuditRow, Transition};
use hedgerow_core::event::Actor;
use hedgerow_dashboard::backend::{PolicyRevision, RecordQuery};
use hedgerow_protocol::ids::{Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyDraft, PolicyScope};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row as _, Sqlite, query};

use super::accounts::millis;
use super::restore::{counter, moment, parsed, via};
use super::{Store, StoreError};

/// Most revisions of a policy that are read at once.
const REVISIONS_MAX: i64 = 1000;

impl Store {
    /// All revisions of a policy, newest first, at most a thousand.
    pub async fn policy_history(
        &self,
        scope: &PolicyScope,
    ) -> Result<Vec<PolicyRevision>, StoreError> {
        let rows = query(
            "SELECT revision, json, actor, via, reason, at FROM policies
             WHERE dependency = $1 ORDER BY revision DESC LIMIT $2",
        )
        .bind(scope.to_string())
        .bind(REVISIONS_MAX)
        .fetch_all(self.pool())
        .await?;
        // One that cannot be read was logged at the start; the others are shown all the same.
        Ok(rows
            .iter()
            .filter_map(|row| {
                revision(row)
                    .inspect_err(|error| {
                        tracing::debug!(
                            error = error.in_full(),
                            "a revision is left out of the history"
                        );
                    })
                    .ok()
            })
            .collect())
    }

    /// Whether a policy was ever set for this, also one that was taken away or cannot be read.
    pub(crate) async fn had_policy(&self, scope: &PolicyScope) -> Result<bool, StoreError> {
        let found: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM policies WHERE dependency = $1)")
                .bind(scope.to_string())
                .fetch_one(self.pool())
                .await?;
        Ok(found)
    }

    /// Lines of the record, newest first, each with its number.
    pub async fn record(&self, wanted: &RecordQuery) -> Result<Vec<(i64, AuditRow)>, StoreError> {
        let mut sql = lines_of(wanted);
        let rows = sql.build().fetch_all(self.pool()).await?;
        rows.iter()
            .map(|row| Ok((row.try_get("id")?, audit_row(row)?)))
            .collect()
    }

    /// Automatic changes of a route, newest first, at most `limit`.
    pub async fn transitions(
        &self,
        route: &RouteKey,
        limit: u32,
    ) -> Result<Vec<Transition>, StoreError> {
        let rows = query(
            "SELECT json FROM transitions WHERE dependency = $1 AND operation = $2
             ORDER BY id DESC LIMIT $3",
        )
        .bind(route.dependency.as_str())
        .bind(route.operation.as_str())
        .bind(i64::from(limit))
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| parsed("transitions", &route.to_string(), row.try_get("json")?))
            .collect()
    }
}

/// What is asked for, and nothing else in it: so each filter finds its index.
fn lines_of(wanted: &RecordQuery) -> QueryBuilder<Sqlite> {
    let mut sql = QueryBuilder::new(
        "SELECT id, at, actor, via, action, target, before_value, after_value, reason
         FROM audit WHERE id < ",
    );
    sql.push_bind(wanted.before.unwrap_or(i64::MAX));
    if let Some(name) = &wanted.dependency {
        // A target is a dependency, or a route, which is a dependency, a space and an operation.
        let name = name.as_str();
        sql.push(" AND (target = ").push_bind(name.to_owned());
        sql.push(" OR (target > ").push_bind(format!("{name} "));
        sql.push(" AND target < ").push_bind(format!("{name}!"));
        sql.push("))");
    }
    if let Some(action) = &wanted.action {
        // It is this, or begins with it and a dot; a slash is what follows a dot.
        sql.push(" AND (action = ").push_bind(action.clone());
        sql.push(" OR (action > ").push_bind(format!("{action}."));
        sql.push(" AND action < ").push_bind(format!("{action}/"));
        sql.push("))");
    }
    if let Some(actor) = &wanted.actor {
        sql.push(" AND actor = ").push_bind(actor.clone());
    }
    if let Some(since) = wanted.since {
        sql.push(" AND at >= ").push_bind(millis(since));
    }
    if let Some(until) = wanted.until {
        sql.push(" AND at < ").push_bind(millis(until));
    }
    sql.push(" ORDER BY id DESC LIMIT ");
    sql.push_bind(i64::from(wanted.limit));
    sql
}

fn revision(row: &SqliteRow) -> Result<PolicyRevision, StoreError> {
    const TABLE: &str = "policies";
    let number = counter(TABLE, row, "revision")?;
    let name = || format!("revision {number}");
    let draft: Option<PolicyDraft> = parsed(TABLE, &name(), row.try_get("json")?)?;
    let policy = draft.map(Policy::try_from).transpose();
    let policy = policy.map_err(|e| StoreError::Unreadable {
        table: TABLE,
        row: name(),
        problem: e.to_string(),
    })?;
    Ok(PolicyRevision {
        revision: Revision(number),
        policy,
        actor: Actor {
            name: row.try_get("actor")?,
            via: via(TABLE, row)?,
        },
        reason: row.try_get("reason")?,
        at: moment(TABLE, row, "at")?,
    })
}

fn audit_row(row: &SqliteRow) -> Result<AuditRow, StoreError> {
    const TABLE: &str = "audit";
    Ok(AuditRow {
        at: moment(TABLE, row, "at")?,
        actor: Actor {
            name: row.try_get("actor")?,
            via: via(TABLE, row)?,
        },
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        before: row.try_get("before_value")?,
        after: row.try_get("after_value")?,
        reason: row.try_get("reason")?,
    })
}
