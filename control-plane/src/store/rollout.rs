//! Policies that are put in force in steps: how far each has got.

use std::str::FromStr as _;

use hedgerow_core::effect::{ModeState, RestoredRollout, RolloutState};
use hedgerow_core::event::Actor;
use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::{DependencyName, OperationName, Revision};
use hedgerow_protocol::policy::{Policy, PolicyScope};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection, query};

use super::restore::{counter, mode, moment, parsed, policy_or_observing, unreadable, via};
use super::write::{integer, json, time};
use super::{Store, StoreError};

const TABLE: &str = "rollouts";

/// Begun, or a stage further. What is left of an earlier one of the dependency goes.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    state: &RolloutState,
) -> Result<(), StoreError> {
    let revision = integer("a revision", state.revision.0)?;
    query(
        "INSERT INTO rollouts (dependency, revision, base, plan, stage, since, actor, via) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (dependency) DO UPDATE SET revision = $2, base = $3, plan = $4, stage = $5, \
         since = $6, actor = $7, via = $8",
    )
    .bind(state.scope.to_string())
    .bind(revision)
    .bind(integer("a revision", state.base.0)?)
    .bind(json(TABLE, &state.plan)?)
    .bind(integer("a stage", state.stage as u64)?)
    .bind(time(state.since)?)
    .bind(&state.actor.name)
    .bind(state.actor.via.as_str())
    .execute(&mut *connection)
    .await?;
    forget_modes(connection, &state.scope, revision).await
}

/// A route's mode for the agents that hold the new policy.
pub(super) async fn write_mode(
    connection: &mut SqliteConnection,
    revision: Revision,
    mode: &ModeState,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO trial_modes (dependency, operation, revision, mode, since, sequence) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (dependency, operation, revision) \
         DO UPDATE SET mode = $4, since = $5, sequence = $6",
    )
    .bind(mode.route.dependency.as_str())
    .bind(mode.route.operation.as_str())
    .bind(integer("a revision", revision.0)?)
    .bind(json("trial_modes", &mode.mode)?)
    .bind(time(mode.since)?)
    .bind(integer("a mode's number", mode.sequence.0)?)
    .execute(connection)
    .await?;
    Ok(())
}

/// Over, whichever way.
pub(super) async fn end(
    connection: &mut SqliteConnection,
    scope: &PolicyScope,
) -> Result<(), StoreError> {
    query("DELETE FROM rollouts WHERE dependency = $1")
        .bind(scope.to_string())
        .execute(&mut *connection)
        .await?;
    forget_modes(connection, scope, NO_REVISION).await
}

/// No rollout has it: revisions begin with 1.
const NO_REVISION: i64 = 0;

/// Modes of a scope's routes under another revision than `kept`.
async fn forget_modes(
    connection: &mut SqliteConnection,
    scope: &PolicyScope,
    kept: i64,
) -> Result<(), StoreError> {
    query(
        "DELETE FROM trial_modes WHERE dependency = $1 AND ($2 IS NULL OR operation = $2) \
         AND revision <> $3",
    )
    .bind(scope.dependency().map(DependencyName::as_str))
    .bind(scope.operation().map(OperationName::as_str))
    .bind(kept)
    .execute(connection)
    .await?;
    Ok(())
}

impl Store {
    /// Rollouts under way. One that cannot be read keeps the controller from starting: whether the
    /// newest policy is for all agents or for a few must not be guessed.
    pub(super) async fn rollouts(&self) -> Result<Vec<RestoredRollout>, StoreError> {
        let rows = query(
            "SELECT dependency, revision, base, plan, stage, since, actor, via FROM rollouts \
             ORDER BY dependency",
        )
        .fetch_all(&self.pool)
        .await?;
        let mut rollouts = Vec::with_capacity(rows.len());
        for row in &rows {
            let state = state(row)?;
            rollouts.push(RestoredRollout {
                base: self.base(&state).await?,
                modes: self.trial_modes(&state).await?,
                state,
            });
        }
        Ok(rollouts)
    }

    async fn base(
        &self,
        state: &RolloutState,
    ) -> Result<Option<(Option<Policy>, Moment)>, StoreError> {
        let row = query(
            "SELECT dependency, revision, json, at FROM policies \
             WHERE dependency = $1 AND revision = $2",
        )
        .bind(state.scope.to_string())
        .bind(integer("a revision", state.base.0)?)
        .fetch_optional(&self.pool)
        .await?;
        let read = row.as_ref().and_then(policy_or_observing);
        Ok(read.map(|it| (it.policy, it.since)))
    }

    async fn trial_modes(&self, state: &RolloutState) -> Result<Vec<ModeState>, StoreError> {
        let rows = query(
            "SELECT dependency, operation, mode, since, sequence FROM trial_modes \
             WHERE dependency = $1 AND revision = $2 ORDER BY operation",
        )
        .bind(state.scope.dependency().map(DependencyName::as_str))
        .bind(integer("a revision", state.revision.0)?)
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(mode).collect()
    }
}

fn state(row: &SqliteRow) -> Result<RolloutState, StoreError> {
    let name: String = row.try_get("dependency")?;
    let scope = PolicyScope::from_str(&name).map_err(|e| unreadable(TABLE, &name, &e))?;
    let stage = counter(TABLE, row, "stage")?;
    Ok(RolloutState {
        scope,
        revision: Revision(counter(TABLE, row, "revision")?),
        base: Revision(counter(TABLE, row, "base")?),
        plan: parsed(TABLE, &name, row.try_get("plan")?)?,
        stage: usize::try_from(stage).map_err(|e| unreadable(TABLE, &name, &e))?,
        since: moment(TABLE, row, "since")?,
        actor: Actor {
            name: row.try_get("actor")?,
            via: via(TABLE, row)?,
        },
    })
}
