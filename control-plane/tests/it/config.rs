//! Settings: precedence, and what a mistake is answered with.

use std::path::Path;

use hedgerow_control_plane::config::{LogFormat, ServeArgs, Settings};
use tempfile::TempDir;

use crate::process::{command, refused};

/// Also base64 of 24 bytes, as a receiver's secret has to be.
const CANARY: &str = "canaryCANARYcanary6f1d2c9b7a5e40";

fn resolve(folder: &Path, text: &str) -> Result<Settings, String> {
    resolve_with(folder, text, ServeArgs::default())
}

fn resolve_with(folder: &Path, text: &str, args: ServeArgs) -> Result<Settings, String> {
    let config = folder.join("hedgerow.toml");
    std::fs::write(&config, text).unwrap();
    Settings::resolve(ServeArgs {
        config: Some(config),
        ..args
    })
    .map_err(|error| {
        let error = anyhow::Error::from(error);
        format!("{error:#}")
    })
}

/// A file, and what its error says.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "htpp = \"127.0.0.1:1\"",
        &["line 1", "htpp", "expected", "http"],
    ),
    (
        "\n\n[log]\nformt = \"json\"",
        &["line 4", "formt", "format"],
    ),
    (
        "[log]\nformat = \"xml\"",
        &["line 2", "xml", "text", "json"],
    ),
    ("http = \"127.0.0.1\"", &["line 1", "socket address"]),
    ("http = \"127.0.0.1:1", &["line 1"]),
    (
        "[[policy]]\ndependency = \"catalog\"\npercentile = 0.95\n\
             [[policy]]\ndependency = \"search\"\npercentile = 95",
        &[
            "number 2",
            "search",
            "percentile",
            "95",
            "from 0.92 to 0.999",
        ],
    ),
    (
        "[[policy]]\ndependency = \" \"\nbudget = 25",
        &["number 1", "dependency", "blank", "budget", "at most 0.25"],
    ),
    (
        "[[policy]]\ndependency = \"a\"\npercentil = 0.95",
        &["line 3", "percentil", "percentile"],
    ),
    (
        "[[policy]]\ndependency = \"a\"\n[[policy]]\ndependency = \"a\"",
        &["number 2", "twice", "expected one for each"],
    ),
    (
        "[[agent_token]]\nservice = \"a\"",
        &["number 1", "exactly one of token, token_file"],
    ),
    (
        "[[agent_token]]\nservice = \"a b\"\ntoken = \"0123456789abcdef\"",
        &["number 1", "service"],
    ),
    (
        "[[agent_token]]\nservice = \"a\"\ntoken = \"short\"",
        &["number 1", "at least 16"],
    ),
    (
        "[[agent_token]]\nservice = \"a\"\ntoken_sha256 = \"ab\"",
        &["64 hexadecimal digits"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"webhook\"\nurl = \"ftp://h/\"\nsecret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\"",
        &["number 1", "url", "https://"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"carrier-pigeon\"\nurl = \"a\"",
        &["number 1", "carrier-pigeon", "webhook", "email"],
    ),
    ("[[receiver]]\nkind = \"slack\"", &["number 1", "name"]),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"slack\"",
        &["number 1", "exactly one of url and url_file"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"slack\"\nurl = \"https://h/\"\nrouting_key = \"k\"",
        &[
            "number 1",
            "routing_key: is no key of the kind slack, which takes name",
            "url_file",
        ],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"alertmanager\"\nurl = \"http://h:9093\"\nlabels = { alertname = \"a\" }",
        &["number 1", "labels", "other than alertname"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"pagerduty\"\nrouting_key = \"short\"",
        &["number 1", "routing_key", "integration key"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"pagerduty\"\nrouting_key = \"0123456789abcdef0123456789abcdef\"\nseverity = \"loud\"",
        &["number 1", "severity", "critical, error, warning, info"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"email\"\nhost = \"mail.example\"\nfrom = \"nobody\"\nto = [\"a@example.com\"]",
        &["number 1", "from", "hedgerow@example.com"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"email\"\nhost = \"mail.example\"\nfrom = \"h@example.com\"\nto = []",
        &["number 1", "to", "1 to 50"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"email\"\nhost = \"mail.example\"\nport = 22\nfrom = \"h@example.com\"\nto = \"a@example.com\"",
        &["number 1", "port", "25, 465, 587"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"email\"\nhost = \"10.0.0.1\"\nfrom = \"h@example.com\"\nto = \"a@example.com\"",
        &["number 1", "host", "allow_private"],
    ),
    (
        "[[receiver]]\nname = \"x\"\nkind = \"email\"\ntls = \"none\"\nusername = \"u\"\npassword = \"p\"",
        &["number 1", "tls", "not sent readable"],
    ),
    ("[http_tls]\ncertificate = \"a.pem\"", &["key"]),
    (
        "[agents]\nstreams_max = 0",
        &["agents.streams_max", "1 or more"],
    ),
    (
        "public_url = \"hedgerow\"",
        &["public_url", "expected an address"],
    ),
];

#[test]
fn every_mistake_says_where_and_what_was_expected() {
    let folder = TempDir::new().unwrap();
    for (text, parts) in MISTAKES {
        let error = resolve(folder.path(), text).unwrap_err();
        for part in *parts {
            assert!(
                error.contains(part),
                "{part:?} is not in {error:?}, for\n{text}"
            );
        }
    }
}

#[test]
fn plaintext_beyond_loopback_has_to_be_asked_for_in_so_many_words() {
    let folder = TempDir::new().unwrap();
    for listener in ["http", "grpc"] {
        let text = format!("{listener} = \"0.0.0.0:7000\"");
        let error = resolve(folder.path(), &text).unwrap_err();
        let tls = format!("{listener}_tls.certificate");
        for part in [
            listener,
            "0.0.0.0:7000",
            &tls,
            "allow_plaintext_beyond_loopback = true",
        ] {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
        let asked_for = format!("allow_plaintext_beyond_loopback = true\n{text}");
        assert!(resolve(folder.path(), &asked_for).is_ok());
        let with_tls = format!("{text}\n[{listener}_tls]\ncertificate = \"a\"\nkey = \"b\"");
        assert!(resolve(folder.path(), &with_tls).is_ok());
    }
    assert!(resolve(folder.path(), "http = \"[::1]:7000\"").is_ok());
}

#[test]
fn flags_go_before_the_file_and_the_file_before_defaults() {
    let folder = TempDir::new().unwrap();
    let text = "http = \"127.0.0.1:1001\"\ngrpc = \"127.0.0.1:1002\"\nname = \"from-file\"";
    let args = ServeArgs {
        http: Some("127.0.0.1:2001".parse().unwrap()),
        log_format: Some(LogFormat::Json),
        ..ServeArgs::default()
    };
    let settings = resolve_with(folder.path(), text, args).unwrap();
    assert_eq!(settings.http.address.port(), 2001);
    assert_eq!(settings.grpc.address.port(), 1002);
    assert_eq!(settings.name, "from-file");
    assert_eq!(settings.telemetry.log_format, LogFormat::Json);
    assert_eq!(settings.telemetry.log_filter, "info");
    assert_eq!(settings.agents.streams_max, 20_000);
}

#[test]
fn the_environment_goes_before_the_file_and_flags_before_the_environment() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("hedgerow.toml");
    std::fs::write(&config, "http = \"127.0.0.1:1\"").unwrap();
    for (environment, flags, expected) in [
        ("not-an-address", &[][..], "not-an-address"),
        ("0.0.0.0:7001", &[], "0.0.0.0:7001"),
        ("0.0.0.0:7001", &["--http", "0.0.0.0:7002"], "0.0.0.0:7002"),
    ] {
        let output = command()
            .args(["serve", "--config"])
            .arg(&config)
            .args(flags)
            .env("HEDGEROW_HTTP", environment)
            .output()
            .unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(expected), "{expected} in {error}");
    }
}

#[test]
fn paths_in_the_file_are_relative_to_it_and_secrets_can_have_files_of_their_own() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("token"), "0123456789abcdef\n").unwrap();
    std::fs::write(
        folder.path().join("tokens"),
        "# agents\nsearch 0123456789abcdef0\n\n",
    )
    .unwrap();
    let text = "store = \"here.db\"\n[[agent_token]]\nservice = \"shop\"\ntoken_file = \"token\"\n\
                [[agent_token]]\nservice = \"cart\"\n\
                token_sha256 = \"9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f\"";
    let args = ServeArgs {
        agent_token_file: Some(folder.path().join("tokens")),
        ..ServeArgs::default()
    };
    let settings = resolve_with(folder.path(), text, args).unwrap();
    assert_eq!(settings.store, folder.path().join("here.db"));
    let services: Vec<_> = settings
        .agent_tokens
        .iter()
        .map(|it| it.service.as_str())
        .collect();
    assert_eq!(services, ["shop", "cart", "search"]);
    // The same token, once in the clear and once as its hash.
    assert_eq!(
        settings.agent_tokens[0].sha256,
        settings.agent_tokens[1].sha256
    );
}

#[test]
fn s09_no_secret_shows_in_an_error_or_in_what_is_printed() {
    let folder = TempDir::new().unwrap();
    let receiver = format!(
        "[[receiver]]\nname = \"pager\"\nkind = \"webhook\"\nurl = \"https://h/{CANARY}\"\nsecret = \"whsec_{CANARY}\"\n"
    );
    let token = format!("[[agent_token]]\nservice = \"shop\"\ntoken = \"{CANARY}\"\n");
    let settings = resolve(folder.path(), &format!("{receiver}{token}")).unwrap();
    assert!(!format!("{settings:?}").contains(CANARY));
    for text in [
        format!("{token}\ntokn = \"{CANARY}\""),
        format!("[[agent_token]]\nservice = \"shop\"\ntoken = [\"{CANARY}\"]"),
        format!("[[agent_token]]\nservice = \"shop\"\ntoken = \"{CANARY}"),
        format!("[[agent_token]]\nservice = \"shop\"\ntoken = \"{CANARY} with a space\""),
        format!("{receiver}\nkind = \"webhook\""),
        receiver.replace("https://h/", "nothing://h/"),
        receiver.replace("url = ", "url_file = \"x\"\nurl = "),
        receiver.replace("webhook", "slack"),
        receiver
            .replace("webhook", "pagerduty")
            .replace("secret", "routing_key"),
        format!("{receiver}allow_private = \"{CANARY}\""),
        format!(
            "[[receiver]]\nname = \"m\"\nkind = \"email\"\nhost = \"h\"\npassword = \"{CANARY}\""
        ),
        receiver.replace("https://h/", "no address "),
    ] {
        let error = resolve(folder.path(), &text).unwrap_err();
        assert!(!error.contains(CANARY), "{error}");
    }
}

#[test]
fn the_command_ends_with_one_line_that_says_what_was_expected() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("h.toml"), "colour = \"green\"").unwrap();
    let error = refused(&["serve", "--config", "h.toml"], folder.path());
    assert!(error.starts_with("hedgerow: h.toml line 1"), "{error}");
    assert!(
        error.contains("colour") && error.contains("expected"),
        "{error}"
    );
    let error = refused(&["serve", "--config", "missing.toml"], folder.path());
    assert!(error.contains("missing.toml cannot be read"), "{error}");
    let error = refused(&["login-link", "--store", "missing.db"], folder.path());
    assert!(error.contains("there is no store"), "{error}");
    assert!(!folder.path().join("missing.db").exists());
}

#[test]
fn receivers_in_the_manual_and_in_the_example_can_be_used_as_they_are() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("secrets")).unwrap();
    for (file, secret) in [
        ("on-call", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"),
        ("alertmanager", "a-token"),
        ("slack", "https://hooks.example.com/services/T0/B0/x"),
        ("pagerduty", "0123456789abcdef0123456789abcdef"),
        ("mail", "a-password"),
    ] {
        std::fs::write(folder.path().join("secrets").join(file), secret).unwrap();
    }
    let manual = std::fs::read_to_string(deploy.join("README.md")).unwrap();
    let in_manual = manual.split("```toml\n[[receiver]]").nth(1).unwrap();
    let in_manual = format!("[[receiver]]{}", in_manual.split("```").next().unwrap());
    let example = std::fs::read_to_string(deploy.join("config.example.toml")).unwrap();
    let (_, in_example) = example.split_once("# [[receiver]]\n").unwrap();
    let lines: Vec<_> = in_example
        .lines()
        .filter_map(|it| it.strip_prefix("# "))
        .collect();
    let in_example = format!("[[receiver]]\n{}", lines.join("\n"));
    for text in [in_manual, in_example] {
        let settings = resolve(folder.path(), &text).unwrap();
        let kinds: Vec<_> = settings
            .receivers
            .iter()
            .map(|it| it.kind.as_str())
            .collect();
        let all = ["webhook", "alertmanager", "slack", "pagerduty", "email"];
        assert_eq!(kinds, all);
    }
}

#[test]
fn the_example_in_deploy_can_be_used_as_it_is() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/config.example.toml");
    let folder = TempDir::new().unwrap();
    resolve(folder.path(), &std::fs::read_to_string(example).unwrap()).unwrap();
}

#[test]
fn links_lead_to_the_public_address_or_else_to_where_the_dashboard_listens() {
    let folder = TempDir::new().unwrap();
    let plaintext = "allow_plaintext_beyond_loopback = true";
    let public = format!("{plaintext}\npublic_url = \"https://h.example/x\"");
    for (text, listens, expected) in [
        ("", "127.0.0.1:7410", Some("http://127.0.0.1:7410/")),
        ("", "[::1]:7410", Some("http://[::1]:7410/")),
        (plaintext, "10.1.2.3:80", Some("http://10.1.2.3/")),
        (plaintext, "0.0.0.0:7410", None),
        (&public, "0.0.0.0:7410", Some("https://h.example/x/")),
    ] {
        let settings = resolve(folder.path(), text).unwrap();
        let base = settings.link_base(listens.parse().unwrap());
        assert_eq!(
            base.as_ref().map(reqwest::Url::as_str),
            expected,
            "{listens}"
        );
    }
}
