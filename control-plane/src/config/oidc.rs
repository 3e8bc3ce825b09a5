//! `[oidc]`: single sign-on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::secret::{self, InFile};
use super::{ConfigError, file};
use crate::auth::{Oidc, SingleSignOn};
use crate::store::role_named;

/// What is asked for where nothing is said.
const SCOPES: [&str; 3] = ["openid", "profile", "email"];
/// The claim that decides the role where nothing is said.
const ROLE_CLAIM: &str = "roles";
/// Longest name of the button, in characters.
const NAME_CHARS_MAX: usize = 40;

/// As it is in the file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OidcTable {
    issuer: String,
    client_id: String,
    client_secret: Option<InFile>,
    client_secret_file: Option<PathBuf>,
    name: Option<String>,
    scopes: Option<Vec<String>>,
    role_claim: Option<String>,
    #[serde(default)]
    roles: BTreeMap<String, String>,
    default_role: Option<String>,
    username_claim: Option<String>,
    #[serde(default)]
    allow_private: bool,
}

impl OidcTable {
    /// `reachable`: whether it is known where the provider is to send people back to.
    pub(super) fn check(self, folder: &Path, reachable: bool) -> Result<Oidc, ConfigError> {
        if !reachable {
            let problem = "is missing: expected the address people reach the dashboard by, since the provider sends them back to it";
            return Err(ConfigError::value("public_url (for [oidc])", problem));
        }
        SingleSignOn::check_issuer(&self.issuer, self.allow_private)
            .map_err(|e| ConfigError::value("oidc.issuer", e))?;
        let roles = self
            .roles
            .iter()
            .map(|(value, name)| {
                let key = format!("oidc.roles.{value:?}");
                Ok((value.clone(), role(&key, name)?))
            })
            .collect::<Result<BTreeMap<_, _>, ConfigError>>()?;
        let default_role = self
            .default_role
            .as_deref()
            .map(|name| role("oidc.default_role", name))
            .transpose()?;
        if roles.is_empty() && default_role.is_none() {
            let problem = "is missing, and there is no default_role, so nobody could come in: expected such as { \"hedgerow-admins\" = \"administrator\" }";
            return Err(ConfigError::value("oidc.roles", problem));
        }
        Ok(Oidc {
            client_secret: client_secret(self.client_secret, self.client_secret_file, folder)?,
            client_id: text("oidc.client_id", self.client_id)?,
            name: button(self.name)?,
            scopes: scopes(self.scopes)?,
            role_claim: text(
                "oidc.role_claim",
                self.role_claim.unwrap_or(ROLE_CLAIM.into()),
            )?,
            roles,
            default_role,
            username_claim: self
                .username_claim
                .map(|claim| text("oidc.username_claim", claim))
                .transpose()?,
            allow_private: self.allow_private,
            issuer: self.issuer,
        })
    }
}

fn client_secret(
    in_file: Option<InFile>,
    path: Option<PathBuf>,
    folder: &Path,
) -> Result<Option<SecretString>, ConfigError> {
    let secret = match (in_file, path) {
        (None, None) => return Ok(None),
        (Some(InFile(secret)), None) => secret,
        (None, Some(path)) => secret::from_file(
            "the client's secret of single sign-on",
            &file::beside(folder, &path),
        )?,
        (Some(_), Some(_)) => {
            let problem = "expected one of client_secret and client_secret_file, or neither for a public client";
            return Err(ConfigError::value("oidc.client_secret", problem));
        }
    };
    if secret.expose_secret().is_empty() {
        let problem = "is empty: expected the secret, or no such line for a public client";
        return Err(ConfigError::value("oidc.client_secret", problem));
    }
    Ok(Some(secret))
}

fn role(key: &str, name: &str) -> Result<hedgerow_dashboard::backend::Role, ConfigError> {
    role_named(name).ok_or_else(|| {
        let problem =
            format!("{name:?} is no role: expected viewer, operator, editor or administrator");
        ConfigError::value(key, problem)
    })
}

fn text(key: &str, text: String) -> Result<String, ConfigError> {
    if text.trim().is_empty() {
        Err(ConfigError::value(key, "is empty: expected a text"))
    } else {
        Ok(text)
    }
}

fn button(name: Option<String>) -> Result<String, ConfigError> {
    let name = name.unwrap_or_else(|| "single sign-on".into());
    let chars = name.trim().chars().count();
    if (1..=NAME_CHARS_MAX).contains(&chars) && !name.chars().any(char::is_control) {
        Ok(name.trim().to_owned())
    } else {
        let problem = format!("expected 1 to {NAME_CHARS_MAX} characters in one line");
        Err(ConfigError::value("oidc.name", problem))
    }
}

fn scopes(scopes: Option<Vec<String>>) -> Result<Vec<String>, ConfigError> {
    let mut scopes = scopes.unwrap_or_else(|| SCOPES.map(String::from).to_vec());
    let good = |scope: &String| !scope.is_empty() && scope.bytes().all(|b| b.is_ascii_graphic());
    if !scopes.iter().all(good) {
        let problem = "expected a list such as [\"openid\", \"profile\", \"groups\"]";
        return Err(ConfigError::value("oidc.scopes", problem));
    }
    if !scopes.iter().any(|it| it == "openid") {
        scopes.insert(0, "openid".into());
    }
    Ok(scopes)
}
