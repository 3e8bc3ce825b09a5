//! Operators whom a provider of single sign-on vouches for.
//!
//! Invariant: such an account belongs to an issuer and its subject, never to a name. A name that is
//! in use by another account is not handed over.

use hedgerow_core::effect::AuditRow;
use hedgerow_dashboard::backend::{Operator, Role};
use sqlx::SqliteConnection;

use super::accounts::{millis, operator, role_name};
use super::sessions::{self, SessionLimits};
use super::write::write_audit;
use super::{Store, StoreError};

/// Somebody a provider vouches for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vouched<'a> {
    /// The issuer and its name for them.
    pub(crate) identity: &'a str,
    /// What they are to be called; an account that is there already keeps its name.
    pub(crate) name: &'a str,
    /// What the provider says they may do.
    pub(crate) role: Role,
}

/// What became of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignedOn {
    /// They are in, by their name here.
    Done(Operator),
    /// The name belongs to another account.
    NameTaken,
}

impl Store {
    /// Makes, or brings up to date, the account of somebody vouched for, and begins a session. Each
    /// change has its line: `row` makes one of action, target, before and after.
    pub(crate) async fn sign_on(
        &self,
        who: Vouched<'_>,
        token_sha256: &str,
        limits: SessionLimits,
        row: impl Fn(&str, &str, &str, &str) -> AuditRow,
    ) -> Result<SignedOn, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let known = sqlx::query("SELECT name, role FROM operators WHERE sso_identity = $1")
            .bind(who.identity)
            .fetch_optional(&mut *tx)
            .await?;
        let name = if let Some(known) = known.as_ref().map(operator).transpose()? {
            if known.role != who.role {
                sqlx::query("UPDATE operators SET role = $2 WHERE name = $1")
                    .bind(&known.name)
                    .bind(role_name(who.role))
                    .execute(&mut *tx)
                    .await?;
                let (before, after) = (role_name(known.role), role_name(who.role));
                let line = row("operator.role", &known.name, before, after);
                write_audit(&mut tx, &line).await?;
            }
            known.name
        } else {
            let line = row("operator.add", who.name, "", role_name(who.role));
            if !insert(&mut tx, who, &line).await? {
                return Ok(SignedOn::NameTaken);
            }
            who.name.to_owned()
        };
        let line = row("session.begin", &name, "", role_name(who.role));
        sessions::insert(&mut tx, token_sha256, &name, limits, &line).await?;
        tx.commit().await?;
        let role = who.role;
        Ok(SignedOn::Done(Operator { name, role }))
    }

    /// Ends the sessions of somebody whom the provider gives no role any more. None: they are not
    /// known here.
    pub(crate) async fn sign_on_refused(
        &self,
        identity: &str,
        row: impl Fn(&str, &str, &str, &str) -> AuditRow,
    ) -> Result<Option<String>, StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let known = sqlx::query("SELECT name, role FROM operators WHERE sso_identity = $1")
            .bind(identity)
            .fetch_optional(&mut *tx)
            .await?;
        let Some(known) = known.as_ref().map(operator).transpose()? else {
            return Ok(None);
        };
        let ended = sqlx::query("DELETE FROM sessions WHERE operator = $1")
            .bind(&known.name)
            .execute(&mut *tx)
            .await?
            .rows_affected();
        if ended > 0 {
            let before = format!("{ended} sessions");
            write_audit(&mut tx, &row("session.end", &known.name, &before, "")).await?;
        }
        tx.commit().await?;
        Ok(Some(known.name))
    }
}

/// Makes the account. False: the name is another one's.
async fn insert(
    connection: &mut SqliteConnection,
    who: Vouched<'_>,
    line: &AuditRow,
) -> Result<bool, StoreError> {
    let added = sqlx::query(
        "INSERT INTO operators (name, role, created, sso_identity)
         VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING",
    )
    .bind(who.name)
    .bind(role_name(who.role))
    .bind(millis(line.at))
    .bind(who.identity)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if added == 1 {
        write_audit(connection, line).await?;
    }
    Ok(added == 1)
}
