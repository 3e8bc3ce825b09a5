//! Minutes of routes, for replay.

use std::time::Duration;

use hedgerow_core::minute::Minute;
use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::latency::{LAYOUT_ID, SparseHistogram, accept_layout};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection, query};

use super::restore::{counter, moment};
use super::write::{integer, json, time};
use super::{Store, StoreError};

/// How long minutes are kept: a day, some 0.7 MB for a busy route.
pub const MINUTES_KEPT: Duration = Duration::from_hours(24);

impl Store {
    /// A route's minutes that ended after a moment, oldest first. One that cannot be read is left
    /// out, and logged.
    pub async fn minutes(
        &self,
        route: &RouteKey,
        since: Moment,
    ) -> Result<Vec<Minute>, StoreError> {
        let rows = query(
            "SELECT at, span_ms, calls, hedged, layout, done, censored, json FROM minutes \
             WHERE dependency = $1 AND operation = $2 AND at > $3 ORDER BY at",
        )
        .bind(route.dependency.as_str())
        .bind(route.operation.as_str())
        .bind(time(since)?)
        .fetch_all(self.pool())
        .await?;
        Ok(rows
            .iter()
            .filter_map(|row| {
                minute(row)
                    .inspect_err(|error| {
                        tracing::warn!(error = error.in_full(), "a minute is left out");
                    })
                    .ok()
            })
            .collect())
    }
}

pub(super) async fn write_minute(
    connection: &mut SqliteConnection,
    route: &RouteKey,
    minute: &Minute,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO minutes (dependency, operation, at, span_ms, calls, hedged, layout, done, \
         censored, json) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(route.dependency.as_str())
    .bind(route.operation.as_str())
    .bind(time(minute.at)?)
    .bind(i64::try_from(minute.span.as_millis()).unwrap_or(i64::MAX))
    .bind(integer("calls", minute.calls)?)
    .bind(integer("hedges", minute.hedged)?)
    .bind(i64::from(LAYOUT_ID))
    .bind(minute.done.to_bytes())
    .bind(minute.censored.to_bytes())
    .bind(json("minutes", &minute.known)?)
    .execute(connection)
    .await?;
    Ok(())
}

fn minute(row: &SqliteRow) -> Result<Minute, StoreError> {
    let at = moment("minutes", row, "at")?;
    let unreadable = |problem: String| StoreError::Unreadable {
        table: "minutes",
        row: at.as_millis().to_string(),
        problem,
    };
    let layout = counter("minutes", row, "layout")?;
    let layout = u32::try_from(layout).map_err(|error| unreadable(error.to_string()))?;
    accept_layout(layout).map_err(|error| unreadable(error.to_string()))?;
    let histogram = |column: &str| {
        let bytes = row
            .try_get::<&[u8], _>(column)
            .map_err(|error| unreadable(error.to_string()))?;
        SparseHistogram::from_bytes(bytes).map_err(|error| unreadable(format!("{column}: {error}")))
    };
    let known = row
        .try_get::<&str, _>("json")
        .map_err(|error| unreadable(error.to_string()))?;
    Ok(Minute {
        at,
        span: Duration::from_millis(counter("minutes", row, "span_ms")?),
        calls: counter("minutes", row, "calls")?,
        hedged: counter("minutes", row, "hedged")?,
        done: histogram("done")?,
        censored: histogram("censored")?,
        known: serde_json::from_str(known).map_err(|error| unreadable(error.to_string()))?,
    })
}
