//! `[oidc]` in the settings.

use std::path::Path;

use hedgerow_control_plane::config::{ConfigError, ServeArgs, Settings};
use hedgerow_dashboard::backend::Role;
use tempfile::TempDir;

fn resolved(folder: &Path, file: &str) -> Result<Settings, ConfigError> {
    let config = folder.join("h.toml");
    std::fs::write(&config, file).unwrap();
    Settings::resolve(ServeArgs {
        config: Some(config),
        ..ServeArgs::default()
    })
}

const WHOLE: &str = r#"
public_url = "https://hedgerow.example.com"
[oidc]
issuer = "https://id.example.org/realms/ops"
client_id = "hedgerow"
client_secret_file = "secret"
name = "Example"
scopes = ["groups"]
role_claim = "groups"
default_role = "viewer"
username_claim = "email"
[oidc.roles]
"hedgerow-admins" = "administrator"
"#;

#[test]
fn s09_the_settings_of_single_sign_on_are_read_and_their_secret_is_not_printed() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("secret"), "canary-secret\n").unwrap();
    let settings = resolved(folder.path(), WHOLE).unwrap();
    assert!(!format!("{settings:?}").contains("canary"));
    let oidc = settings.oidc.unwrap();
    assert_eq!(oidc.issuer, "https://id.example.org/realms/ops");
    assert_eq!(oidc.scopes, ["openid", "groups"]);
    assert_eq!(oidc.roles["hedgerow-admins"], Role::Administrator);
    assert_eq!(oidc.default_role, Some(Role::Viewer));
    assert_eq!(oidc.username_claim.as_deref(), Some("email"));
    assert!(!oidc.allow_private);
}

#[test]
fn settings_of_single_sign_on_that_cannot_stand_are_refused_with_what_was_expected() {
    let folder = TempDir::new().unwrap();
    let least =
        "issuer = \"https://id.example.org\"\nclient_id = \"h\"\ndefault_role = \"viewer\"\n";
    let with = |line: &str| format!("[oidc]\n{least}{line}");
    for (file, words) in [
        (with("client_secret = 7"), "expected a text in quotes"),
        (with("client_secret = \"\""), "oidc.client_secret: is empty"),
        (
            with("client_secret = \"a\"\nclient_secret_file = \"b\""),
            "expected one of client_secret and client_secret_file",
        ),
        (with("secret = \"canary\""), "unknown field"),
        (with("name = \"\""), "oidc.name: expected 1 to 40"),
        (with("role_claim = \" \""), "oidc.role_claim: is empty"),
        (with("scopes = [\"a b\"]"), "oidc.scopes: expected a list"),
        (
            with("[oidc.roles]\na = \"root\""),
            "\"root\" is no role: expected viewer",
        ),
        (
            with("").replace("https://id.example.org", "http://id.example.org"),
            "oidc.issuer: expected https://",
        ),
        (
            with("").replace("https://id.example.org", "https://127.0.0.1:1234"),
            "oidc.issuer: it is private or loopback",
        ),
        (
            with("").replace("default_role = \"viewer\"", ""),
            "oidc.roles: is missing, and there is no default_role",
        ),
        (
            format!(
                "http = \"0.0.0.0:1\"\nallow_plaintext_beyond_loopback = true\n{}",
                with("")
            ),
            "public_url (for [oidc]): is missing",
        ),
    ] {
        let error = resolved(folder.path(), &file).unwrap_err().to_string();
        assert!(error.contains(words), "{file}\n{error}");
        assert!(!error.contains("canary"), "{error}");
    }
    assert!(resolved(folder.path(), &with("")).is_ok());
}
