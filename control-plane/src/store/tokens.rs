//! Credentials of agents that were made on the page, by the API or with `hedgerow agent-token new`.

use std::fmt::Write as _;

use hedgerow_core::effect::AuditRow;
use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::ServiceName;
use sha2::{Digest, Sha256};
use sqlx::Row;

use super::accounts::{millis, recorded};
use super::restore::moment;
use super::{Store, StoreError};

/// A stored credential: what it says, never the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentToken {
    /// SHA-256 of the token. A token has 256 random bits, so a slow hash would add nothing.
    pub sha256: [u8; 32],
    /// The service it speaks for.
    pub service: ServiceName,
}

impl AgentToken {
    /// What lists and the record call it: the first letters of its hash, of which nothing of the
    /// token can be told.
    pub fn id(&self) -> String {
        sha256_hex(&self.sha256)[..ID_LEN].to_owned()
    }
}

/// Letters of a hash that name a credential: 48 bits, so that no two are ever the same by chance.
const ID_LEN: usize = 12;

/// A stored credential, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAgentToken {
    /// What it is.
    pub token: AgentToken,
    /// Since when.
    pub created: Moment,
}

/// Lower-case hexadecimal.
pub fn sha256_hex(hash: &[u8; 32]) -> String {
    hash.iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
            text
        })
}

/// SHA-256 of a token.
pub(crate) fn sha256(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Reads 64 hexadecimal digits.
pub(crate) fn sha256_from_hex(text: &str) -> Option<[u8; 32]> {
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = [pair[0], pair[1]].map(|c| char::from(c).to_digit(16));
        *byte = u8::try_from(high? * 16 + low?).ok()?;
    }
    Some(hash)
}

impl Store {
    /// Keeps a new credential, with its line of the record.
    pub(crate) async fn agent_token_add(
        &self,
        token: &AgentToken,
        audit: &AuditRow,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let added = sqlx::query(
            "INSERT INTO agent_tokens (token_sha256, service, created) VALUES ($1, $2, $3)",
        )
        .bind(sha256_hex(&token.sha256))
        .bind(token.service.as_str())
        .bind(millis(audit.at))
        .execute(&mut *tx)
        .await?
        .rows_affected();
        recorded(tx, added, audit).await?;
        Ok(())
    }

    /// Removes a credential by its [`AgentToken::id`]. False: there is none. The row's target and
    /// `before` are filled in here.
    pub(crate) async fn agent_token_remove(
        &self,
        id: &str,
        mut audit: AuditRow,
    ) -> Result<bool, StoreError> {
        if id.len() != ID_LEN {
            return Ok(false);
        }
        let mut tx = self.pool().begin_with("BEGIN IMMEDIATE").await?;
        let services: Vec<String> = sqlx::query_scalar(
            "DELETE FROM agent_tokens WHERE substr(token_sha256, 1, 12) = $1 RETURNING service",
        )
        .bind(id)
        .fetch_all(&mut *tx)
        .await?;
        audit.target = services.first().cloned().unwrap_or_default();
        audit.before = id.to_owned();
        recorded(tx, services.len() as u64, &audit).await
    }

    /// All credentials.
    pub async fn agent_tokens(&self) -> Result<Vec<AgentToken>, StoreError> {
        let stored = self.stored_agent_tokens().await?;
        Ok(stored.into_iter().map(|it| it.token).collect())
    }

    /// All credentials with their dates, by service.
    pub async fn stored_agent_tokens(&self) -> Result<Vec<StoredAgentToken>, StoreError> {
        let rows = sqlx::query(
            "SELECT token_sha256, service, created FROM agent_tokens ORDER BY service, created",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.iter()
            .map(|row| {
                let (hash, service): (String, String) =
                    (row.try_get("token_sha256")?, row.try_get("service")?);
                let unreadable = |problem: String| StoreError::Unreadable {
                    table: "agent_tokens",
                    row: service.clone(),
                    problem,
                };
                let token = AgentToken {
                    sha256: sha256_from_hex(&hash).ok_or_else(|| {
                        unreadable("token_sha256: expected 64 hexadecimal digits".into())
                    })?,
                    service: ServiceName::new(&service).map_err(|e| unreadable(e.to_string()))?,
                };
                let created = moment("agent_tokens", row, "created")?;
                Ok(StoredAgentToken { token, created })
            })
            .collect()
    }
}
