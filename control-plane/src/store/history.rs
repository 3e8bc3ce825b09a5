//! The course of a route over hours and days.

use hedgerow_core::effect::AlertState;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{Point, Thinner};
use hedgerow_protocol::ids::RouteKey;
use sqlx::{Row as _, query};

use super::restore::{alert, parsed};
use super::write::time;
use super::{Store, StoreError};

/// Most points of an answer, whatever is asked for: more than a screen has pixels.
pub(crate) const POINTS_MAX: u32 = 2_000;

/// Rows in one statement: some milliseconds. Between two of them nothing is held open, so that a week
/// of one route (60,000 rows) keeps no write-ahead log from being cut back (B75).
const ROWS: u32 = 1_000;

impl Store {
    /// A route's course after a moment, up to another one, oldest first, thinned to at most `points`
    /// (see [`Thinner`]) and never more than [`POINTS_MAX`]. A point that cannot be read is left out.
    pub async fn history(
        &self,
        route: &RouteKey,
        since: Moment,
        until: Moment,
        points: u32,
    ) -> Result<Vec<Point>, StoreError> {
        let mut thinner = Thinner::new(since, until, points.clamp(1, POINTS_MAX));
        let until = time(until)?;
        let mut after = time(since)?;
        loop {
            let rows = query(
                "SELECT at, json FROM history WHERE dependency = $1 AND operation = $2 \
                     AND at > $3 AND at <= $4 ORDER BY at LIMIT $5",
            )
            .bind(route.dependency.as_str())
            .bind(route.operation.as_str())
            .bind(after)
            .bind(until)
            .bind(ROWS)
            .fetch_all(self.pool())
            .await?;
            for row in &rows {
                after = row.try_get("at")?;
                let text: &str = row.try_get("json")?;
                match parsed::<Point>("history", &route.to_string(), text) {
                    Ok(point) => thinner.push(&point),
                    Err(error) => {
                        tracing::debug!(error = error.in_full(), "a point is left out");
                    }
                }
            }
            if rows.len() < ROWS as usize {
                return Ok(thinner.finish());
            }
            tokio::task::yield_now().await;
        }
    }

    /// Alerts of a route that began after a moment, or ended after it, or still fire; newest first, at
    /// most `limit`.
    pub async fn past_alerts(
        &self,
        route: &RouteKey,
        since: Moment,
        limit: u32,
    ) -> Result<Vec<AlertState>, StoreError> {
        let rows = query(
            "SELECT id, rule, dependency, operation, replica, summary, since, resolved FROM alerts \
             WHERE dependency = $1 AND operation = $2 AND (resolved IS NULL OR resolved > $3) \
             ORDER BY since DESC, id LIMIT $4",
        )
        .bind(route.dependency.as_str())
        .bind(route.operation.as_str())
        .bind(time(since)?)
        .bind(i64::from(limit))
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| {
                let resolved: Option<i64> = row.try_get("resolved")?;
                let resolved = resolved.and_then(|ms| u64::try_from(ms).ok());
                Ok(AlertState {
                    resolved: resolved.map(Moment::from_millis),
                    ..alert(row)?
                })
            })
            .collect()
    }
}
