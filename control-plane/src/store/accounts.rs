//! Operators, sessions, login links and API tokens. Secrets arrive here as hashes.
//!
//! Whatever changes who may do what writes its line of the record in the same transaction (S12).

use std::time::Duration;

use hedgerow_core::effect::AuditRow;
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::{Operator, Role};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::restore::moment;
use super::sessions::SessionLimits;
use super::write::write_audit;
use super::{Store, StoreError};

/// An operator's account, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Their name.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Whether they can sign in by password.
    pub has_password: bool,
    /// Whether they come in by single sign-on, which then decides their role.
    pub single_sign_on: bool,
    /// Since when.
    pub created: Moment,
    /// Sessions open.
    pub sessions: u64,
}

/// What became of a change to an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperatorChange {
    /// Done, or it was so already.
    Done,
    /// There is no such operator.
    Unknown,
    /// Nobody would be left to manage who comes in.
    LastAdministrator,
    /// The provider of single sign-on decides that.
    SingleSignOn,
}

/// An API token, as a list shows it. The token itself is known to its owner alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Since when.
    pub created: Moment,
    /// Until when.
    pub expires: Moment,
}

/// A role's name in the store, in forms and on the command line.
pub const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Editor => "editor",
        Role::Administrator => "administrator",
    }
}

/// The role of that name.
pub fn role_named(name: &str) -> Option<Role> {
    [
        Role::Viewer,
        Role::Operator,
        Role::Editor,
        Role::Administrator,
    ]
    .into_iter()
    .find(|role| role_name(*role) == name)
}

impl Store {
    /// How many operators there are.
    pub(crate) async fn operators_count(&self) -> Result<u64, StoreError> {
        let n: i64 = sqlx::query_scalar("SELECT count(*) FROM operators")
            .fetch_one(self.pool())
            .await?;
        Ok(n as u64)
    }

    /// All operators, by name, with their sessions that are not over.
    pub(crate) async fn accounts_at(
        &self,
        now: Moment,
        limits: SessionLimits,
    ) -> Result<Vec<Account>, StoreError> {
        let rows = sqlx::query(
            "SELECT name, role, password_hash IS NOT NULL AS has_password,
                 sso_identity IS NOT NULL AS single_sign_on, created,
                 (SELECT count(*) FROM sessions s
                  WHERE s.operator = name AND s.seen > $1 AND s.created > $2) AS sessions
             FROM operators ORDER BY name",
        )
        .bind(ago(now, limits.idle))
        .bind(ago(now, limits.absolute))
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| {
                Ok(Account {
                    name: row.try_get("name")?,
                    role: role(row)?,
                    has_password: row.try_get("has_password")?,
                    single_sign_on: row.try_get("single_sign_on")?,
                    created: moment("operators", row, "created")?,
                    sessions: row.try_get::<i64, _>("sessions")? as u64,
                })
            })
            .collect()
    }

    /// Adds an operator; false: the name is taken.
    pub(crate) async fn operator_add(
        &self,
        name: &str,
        role: Role,
        password_hash: Option<&str>,
        audit: &AuditRow,
    ) -> Result<bool, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let added = sqlx::query(
            "INSERT INTO operators (name, role, password_hash, created) VALUES ($1, $2, $3, $4)
             ON CONFLICT (name) DO NOTHING",
        )
        .bind(name)
        .bind(role_name(role))
        .bind(password_hash)
        .bind(millis(audit.at))
        .execute(&mut *tx)
        .await?
        .rows_affected();
        recorded(tx, added, audit).await
    }

    /// Gives an operator a password and ends their sessions: whoever held one by the old password
    /// is out.
    pub(crate) async fn operator_set_password(
        &self,
        name: &str,
        password_hash: &str,
        audit: &AuditRow,
    ) -> Result<OperatorChange, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        match standing(&mut tx, name).await? {
            None => return Ok(OperatorChange::Unknown),
            Some(it) if it.single_sign_on => return Ok(OperatorChange::SingleSignOn),
            Some(_) => {}
        }
        sqlx::query("UPDATE operators SET password_hash = $2 WHERE name = $1")
            .bind(name)
            .bind(password_hash)
            .execute(&mut *tx)
            .await?;
        sqlx::query("DELETE FROM sessions WHERE operator = $1")
            .bind(name)
            .execute(&mut *tx)
            .await?;
        write_audit(&mut tx, audit).await?;
        tx.commit().await?;
        Ok(OperatorChange::Done)
    }

    /// Gives an operator another role. The row's `before` is filled in here.
    pub(crate) async fn operator_set_role(
        &self,
        name: &str,
        role: Role,
        mut audit: AuditRow,
    ) -> Result<OperatorChange, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let Some(it) = standing(&mut tx, name).await? else {
            return Ok(OperatorChange::Unknown);
        };
        if it.single_sign_on {
            return Ok(OperatorChange::SingleSignOn);
        }
        if it.role == role {
            return Ok(OperatorChange::Done);
        }
        if it.role == Role::Administrator && !others_administer(&mut tx, name).await? {
            return Ok(OperatorChange::LastAdministrator);
        }
        sqlx::query("UPDATE operators SET role = $2 WHERE name = $1")
            .bind(name)
            .bind(role_name(role))
            .execute(&mut *tx)
            .await?;
        audit.before = role_name(it.role).into();
        write_audit(&mut tx, &audit).await?;
        tx.commit().await?;
        Ok(OperatorChange::Done)
    }

    /// Removes an operator with their sessions and links. The row's `before` is filled in here.
    pub(crate) async fn operator_remove(
        &self,
        name: &str,
        mut audit: AuditRow,
    ) -> Result<OperatorChange, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let Some(it) = standing(&mut tx, name).await? else {
            return Ok(OperatorChange::Unknown);
        };
        if it.role == Role::Administrator && !others_administer(&mut tx, name).await? {
            return Ok(OperatorChange::LastAdministrator);
        }
        sqlx::query("DELETE FROM operators WHERE name = $1")
            .bind(name)
            .execute(&mut *tx)
            .await?;
        audit.before = role_name(it.role).into();
        write_audit(&mut tx, &audit).await?;
        tx.commit().await?;
        Ok(OperatorChange::Done)
    }

    /// An operator and the hash of their password.
    pub(crate) async fn operator_by_name(
        &self,
        name: &str,
    ) -> Result<Option<(Operator, Option<String>)>, StoreError> {
        let row = sqlx::query("SELECT name, role, password_hash FROM operators WHERE name = $1")
            .bind(name)
            .fetch_optional(self.pool())
            .await?;
        row.map(|row| Ok((operator(&row)?, row.try_get("password_hash")?)))
            .transpose()
    }

    /// Keeps a login link.
    pub(crate) async fn link_add(
        &self,
        token_sha256: &str,
        name: &str,
        expires: Moment,
        audit: &AuditRow,
    ) -> Result<OperatorChange, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        match standing(&mut tx, name).await? {
            None => return Ok(OperatorChange::Unknown),
            // A link would go around whatever the provider demands of them.
            Some(it) if it.single_sign_on => return Ok(OperatorChange::SingleSignOn),
            Some(_) => {}
        }
        sqlx::query(
            "INSERT INTO login_links (token_sha256, operator, expires) VALUES ($1, $2, $3)",
        )
        .bind(token_sha256)
        .bind(name)
        .bind(millis(expires))
        .execute(&mut *tx)
        .await?;
        write_audit(&mut tx, audit).await?;
        tx.commit().await?;
        Ok(OperatorChange::Done)
    }

    /// Uses a login link up: of many at once, one gets the operator. None: unknown, used or over.
    pub(crate) async fn link_take(
        &self,
        token_sha256: &str,
        now: Moment,
    ) -> Result<Option<Operator>, StoreError> {
        let name: Option<String> = sqlx::query_scalar(
            "DELETE FROM login_links WHERE token_sha256 = $1 AND expires > $2 RETURNING operator",
        )
        .bind(token_sha256)
        .bind(millis(now))
        .fetch_optional(self.pool())
        .await?;
        match name {
            Some(name) => Ok(self
                .operator_by_name(&name)
                .await?
                .map(|(operator, _)| operator)),
            None => Ok(None),
        }
    }

    /// Keeps an API token. False: the name is taken.
    pub(crate) async fn api_token_add(
        &self,
        token: &ApiToken,
        token_sha256: &str,
        audit: &AuditRow,
    ) -> Result<bool, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        // A token that is over gives its name back: renewing one needs no second name.
        sqlx::query("DELETE FROM api_tokens WHERE name = $1 AND expires <= $2")
            .bind(&token.name)
            .bind(millis(token.created))
            .execute(&mut *tx)
            .await?;
        let added = sqlx::query(
            "INSERT INTO api_tokens (name, token_sha256, role, created, expires)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO NOTHING",
        )
        .bind(&token.name)
        .bind(token_sha256)
        .bind(role_name(token.role))
        .bind(millis(token.created))
        .bind(millis(token.expires))
        .execute(&mut *tx)
        .await?
        .rows_affected();
        recorded(tx, added, audit).await
    }

    /// Removes an API token. False: there is none of that name. The row's `before` is filled in here.
    pub(crate) async fn api_token_remove(
        &self,
        name: &str,
        mut audit: AuditRow,
    ) -> Result<bool, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let role: Option<String> =
            sqlx::query_scalar("DELETE FROM api_tokens WHERE name = $1 RETURNING role")
                .bind(name)
                .fetch_optional(&mut *tx)
                .await?;
        audit.before = role.clone().unwrap_or_default();
        recorded(tx, u64::from(role.is_some()), &audit).await
    }

    /// The API token of this hash that is not over yet.
    pub(crate) async fn api_token(
        &self,
        token_sha256: &str,
        now: Moment,
    ) -> Result<Option<ApiToken>, StoreError> {
        let row = sqlx::query(
            "SELECT name, role, created, expires FROM api_tokens
             WHERE token_sha256 = $1 AND expires > $2",
        )
        .bind(token_sha256)
        .bind(millis(now))
        .fetch_optional(self.pool())
        .await?;
        row.as_ref().map(api_token).transpose()
    }

    /// All API tokens, by name.
    pub async fn api_tokens(&self) -> Result<Vec<ApiToken>, StoreError> {
        let rows = sqlx::query("SELECT name, role, created, expires FROM api_tokens ORDER BY name")
            .fetch_all(self.pool())
            .await?;
        rows.iter().map(api_token).collect()
    }
}

fn api_token(row: &SqliteRow) -> Result<ApiToken, StoreError> {
    Ok(ApiToken {
        name: row.try_get("name")?,
        role: role(row)?,
        created: moment("api_tokens", row, "created")?,
        expires: moment("api_tokens", row, "expires")?,
    })
}

/// An operator, as a change finds them.
struct Standing {
    role: Role,
    single_sign_on: bool,
}

async fn standing(
    connection: &mut SqliteConnection,
    name: &str,
) -> Result<Option<Standing>, StoreError> {
    let row = sqlx::query(
        "SELECT name, role, sso_identity IS NOT NULL AS single_sign_on
         FROM operators WHERE name = $1",
    )
    .bind(name)
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(Standing {
            role: role(&row)?,
            single_sign_on: row.try_get("single_sign_on")?,
        })
    })
    .transpose()
}

/// Whether another account of the controller's own administers: a provider of single sign-on may
/// demote those it vouches for, or be gone, at any time.
async fn others_administer(
    connection: &mut SqliteConnection,
    name: &str,
) -> Result<bool, StoreError> {
    let others: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM operators
         WHERE role = 'administrator' AND name <> $1 AND sso_identity IS NULL",
    )
    .bind(name)
    .fetch_one(connection)
    .await?;
    Ok(others > 0)
}

/// The columns `name` and `role` of a row.
pub(super) fn operator(row: &SqliteRow) -> Result<Operator, StoreError> {
    Ok(Operator {
        name: row.try_get("name")?,
        role: role(row)?,
    })
}

pub(super) fn role(row: &SqliteRow) -> Result<Role, StoreError> {
    let name: String = row.try_get("role")?;
    role_named(&name).ok_or_else(|| StoreError::Unreadable {
        table: "operators or api_tokens",
        row: row.try_get("name").unwrap_or_default(),
        problem: format!("role {name}: expected viewer, operator, editor or administrator"),
    })
}

/// A moment as the store keeps it.
pub(super) fn millis(at: Moment) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}

/// `time` before `now`, as the store keeps it.
pub(super) fn ago(now: Moment, time: Duration) -> i64 {
    millis(now).saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// Writes the line of the record of a change of one row, in the change's own transaction. False:
/// nothing was changed, and nothing is written.
pub(super) async fn recorded(
    mut transaction: sqlx::Transaction<'_, sqlx::Sqlite>,
    changed: u64,
    audit: &AuditRow,
) -> Result<bool, StoreError> {
    if changed == 1 {
        write_audit(&mut transaction, audit).await?;
        transaction.commit().await?;
    }
    Ok(changed == 1)
}
