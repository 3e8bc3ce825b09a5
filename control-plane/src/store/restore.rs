//! Reading back what a controller must know when it starts.

use hedgerow_core::effect::{AlertState, KillState, ModeState, Restored, RestoredPolicy};
use hedgerow_core::event::{Actor, KillScope, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{AlertRule, Point};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::{DependencyName, Epoch, ModeSequence, Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyDraft, PolicyScope};
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::store::{Store, StoreError};

impl Store {
    /// Everything the core needs to go on where the last controller ended.
    pub async fn restore(&self) -> Result<Restored, StoreError> {
        Ok(Restored {
            epoch: self.epoch().await?,
            policies: self.newest_policies().await?,
            kills: self.kills().await?,
            modes: self.modes().await?,
            alerts: self.firing_alerts().await?,
            untold: self.untold().await?,
            acknowledgements: self.acknowledgements().await?,
            silences: self.silences().await?,
            last_silence: self.last_silence().await?,
            points: self.newest_points().await?,
            switchbacks: self.open_switchbacks().await?,
            rollouts: self.rollouts().await?,
        })
    }

    async fn epoch(&self) -> Result<Epoch, StoreError> {
        let row = sqlx::query("SELECT epoch FROM meta")
            .fetch_optional(&self.pool)
            .await?;
        row.map_or(Ok(Epoch(0)), |row| {
            Ok(Epoch(counter("meta", &row, "epoch")?))
        })
    }

    async fn newest_policies(&self) -> Result<Vec<RestoredPolicy>, StoreError> {
        let rows = sqlx::query(
            "SELECT dependency, max(revision) AS revision, json, at FROM policies \
             GROUP BY dependency ORDER BY dependency",
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.iter().filter_map(policy_or_observing).collect())
    }

    async fn kills(&self) -> Result<Vec<KillState>, StoreError> {
        let rows = sqlx::query(
            "SELECT scope, dependency, engaged, actor, via, reason, at FROM kills \
             ORDER BY scope, dependency",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(kill).collect()
    }

    async fn modes(&self) -> Result<Vec<ModeState>, StoreError> {
        let rows = sqlx::query(
            "SELECT dependency, operation, mode, since, sequence FROM modes \
             ORDER BY dependency, operation",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(mode).collect()
    }

    /// The newest point of the history of each route that has a mode.
    async fn newest_points(&self) -> Result<Vec<(RouteKey, Point)>, StoreError> {
        // By the index for each route: the history is long, the routes are few beside it.
        let rows = sqlx::query(
            "SELECT m.dependency, m.operation, h.json FROM modes m JOIN history h ON h.id = ( \
                 SELECT id FROM history \
                 WHERE dependency = m.dependency AND operation = m.operation \
                 ORDER BY at DESC LIMIT 1) \
             ORDER BY m.dependency, m.operation",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(point).collect()
    }

    /// Routes whose newest line about a switchback does not say that it ended.
    async fn open_switchbacks(&self) -> Result<Vec<RouteKey>, StoreError> {
        // By the index for each route that has a mode: only such a one can have had one.
        let rows = sqlx::query(
            "SELECT m.dependency, m.operation FROM modes m JOIN audit a ON a.id = ( \
                 SELECT id FROM audit \
                 WHERE target = m.dependency || ' ' || m.operation \
                     AND action IN ('switchback.start', 'switchback.stop', 'switchback.end') \
                 ORDER BY id DESC LIMIT 1) \
             WHERE a.action <> 'switchback.end' ORDER BY m.dependency, m.operation",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(|row| route("modes", row)).collect()
    }

    async fn firing_alerts(&self) -> Result<Vec<AlertState>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, rule, dependency, operation, replica, summary, since, resolved \
             FROM alerts WHERE resolved IS NULL ORDER BY since, id",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(alert).collect()
    }
}

/// The policy; where it does not read as one, that its dependency is observed: nothing unread is put
/// in force, and one bad row does not keep the whole fleet without its controller. The revision
/// stays, so that the next policy gets a higher one.
pub(super) fn policy_or_observing(row: &SqliteRow) -> Option<RestoredPolicy> {
    let error = match policy(row) {
        Ok(policy) => return Some(policy),
        Err(error) => error.in_full(),
    };
    let observed = named_scope(row).zip(row.try_get::<i64, _>("revision").ok());
    let Some((scope, revision)) = observed else {
        tracing::error!(error, "a policy in the store is passed over");
        return None;
    };
    tracing::error!(
        dependency = %scope, revision, error,
        "a policy in the store cannot be read: what it is for is observed until a new policy is set"
    );
    let at = row.try_get::<i64, _>("at").unwrap_or_default();
    Some(RestoredPolicy {
        revision: Revision(revision.max(0).unsigned_abs()),
        policy: Some(Policy::observing(scope.clone())),
        since: Moment::from_millis(at.max(0).unsigned_abs()),
        scope,
    })
}

fn named_scope(row: &SqliteRow) -> Option<PolicyScope> {
    let name: String = row.try_get("dependency").ok()?;
    name.parse().ok()
}

fn policy(row: &SqliteRow) -> Result<RestoredPolicy, StoreError> {
    const TABLE: &str = "policies";
    let name: String = row.try_get("dependency")?;
    let scope: PolicyScope = name.parse().map_err(|e| unreadable(TABLE, &name, &e))?;
    // null: it was taken away.
    let draft: Option<PolicyDraft> = parsed(TABLE, &name, row.try_get("json")?)?;
    let policy = draft.map(Policy::try_from).transpose();
    let policy = policy.map_err(|e| unreadable(TABLE, &name, &e))?;
    Ok(RestoredPolicy {
        // A row's scope is what its column says, also of a policy from before there were scopes.
        policy: policy.map(|it| it.for_scope(scope.clone())),
        scope,
        revision: Revision(counter(TABLE, row, "revision")?),
        since: moment(TABLE, row, "at")?,
    })
}

fn kill(row: &SqliteRow) -> Result<KillState, StoreError> {
    const TABLE: &str = "kills";
    let dependency: String = row.try_get("dependency")?;
    let scope: String = row.try_get("scope")?;
    let scope = if scope == "everything" {
        KillScope::Everything
    } else {
        let name =
            DependencyName::new(&dependency).map_err(|e| unreadable(TABLE, &dependency, &e))?;
        KillScope::Dependency(name)
    };
    Ok(KillState {
        scope,
        engaged: row.try_get("engaged")?,
        actor: Actor {
            name: row.try_get("actor")?,
            via: via(TABLE, row)?,
        },
        reason: row.try_get("reason")?,
        at: moment(TABLE, row, "at")?,
    })
}

pub(super) fn mode(row: &SqliteRow) -> Result<ModeState, StoreError> {
    const TABLE: &str = "modes";
    let route = route(TABLE, row)?;
    let mode: Mode = parsed(TABLE, &route.to_string(), row.try_get("mode")?)?;
    Ok(ModeState {
        mode,
        since: moment(TABLE, row, "since")?,
        sequence: ModeSequence(counter(TABLE, row, "sequence")?),
        route,
    })
}

fn point(row: &SqliteRow) -> Result<(RouteKey, Point), StoreError> {
    const TABLE: &str = "history";
    let route = route(TABLE, row)?;
    let point = parsed(TABLE, &route.to_string(), row.try_get("json")?)?;
    Ok((route, point))
}

pub(super) fn alert(row: &SqliteRow) -> Result<AlertState, StoreError> {
    const TABLE: &str = "alerts";
    let id: String = row.try_get("id")?;
    let rule: AlertRule = named(TABLE, &id, row.try_get("rule")?)?;
    Ok(AlertState {
        rule,
        route: route(TABLE, row)?,
        replica: row.try_get("replica")?,
        summary: row.try_get("summary")?,
        since: moment(TABLE, row, "since")?,
        resolved: None,
        id,
    })
}

fn route(table: &'static str, row: &SqliteRow) -> Result<RouteKey, StoreError> {
    let (dependency, operation): (String, String) =
        (row.try_get("dependency")?, row.try_get("operation")?);
    RouteKey::new(&dependency, &operation)
        .map_err(|e| unreadable(table, &format!("{dependency} {operation}"), &e))
}

pub(crate) fn via(table: &'static str, row: &SqliteRow) -> Result<Via, StoreError> {
    let text: String = row.try_get("via")?;
    named(table, &text.clone(), text)
}

pub(crate) fn moment(
    table: &'static str,
    row: &SqliteRow,
    column: &'static str,
) -> Result<Moment, StoreError> {
    Ok(Moment::from_millis(counter(table, row, column)?))
}

pub(crate) fn counter(
    table: &'static str,
    row: &SqliteRow,
    column: &'static str,
) -> Result<u64, StoreError> {
    let value: i64 = row.try_get(column)?;
    u64::try_from(value).map_err(|_| StoreError::Unreadable {
        table,
        row: column.into(),
        problem: format!("{value} is negative; expected 0 or more"),
    })
}

/// A column that holds JSON.
pub(crate) fn parsed<T: DeserializeOwned>(
    table: &'static str,
    row: &str,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| unreadable(table, row, &e))
}

/// A column that holds one of an enum's names.
pub(super) fn named<T: DeserializeOwned>(
    table: &'static str,
    row: &str,
    name: String,
) -> Result<T, StoreError> {
    serde_json::from_value(name.into()).map_err(|e| unreadable(table, row, &e))
}

pub(super) fn unreadable(table: &'static str, row: &str, problem: &impl ToString) -> StoreError {
    StoreError::Unreadable {
        table,
        row: row.into(),
        problem: problem.to_string(),
    }
}
