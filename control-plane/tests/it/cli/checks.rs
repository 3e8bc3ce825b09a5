//! `hedgerow check`, on files without a controller, and on what a controller says.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use hedgerow_control_plane::store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Ran;
use super::answering::Answering;
use crate::process::command;

async fn check(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = command();
    command
        .arg("check")
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped());
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    Ran::new(run.await.unwrap())
}

/// A finding's verdict and what was found.
#[track_caller]
fn found(ran: &Ran, what: &str) -> (String, String) {
    let data = ran.json();
    let findings = data["findings"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|it| it["check"] == what)
        .unwrap_or_else(|| panic!("{what}: {data:#}"));
    let text = |name: &str| finding[name].as_str().unwrap().to_owned();
    (text("verdict"), text("found"))
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn files_are_looked_at_without_changing_them() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("h.toml"), "store = \"hedgerow.db\"\n").unwrap();
    mode(&at("h.toml"), 0o600);
    let ran = check(folder.path(), &["--config", "h.toml", "-o", "json"]).await;
    assert_eq!(found(&ran, "store").0, "warn", "{ran:?}");
    assert!(!at("hedgerow.db").exists(), "looking makes no store");

    Store::open(&at("hedgerow.db")).await.unwrap().close().await;
    let before = std::fs::read(at("hedgerow.db")).unwrap();
    let ran = check(folder.path(), &["--config", "h.toml", "-o", "json"]).await;
    ran.said(0, &[]);
    for what in [
        "configuration",
        "configuration's rights",
        "store",
        "store's rights",
        "migrations",
    ] {
        assert_eq!(found(&ran, what).0, "ok", "{what}: {ran:?}");
    }
    assert!(found(&ran, "disk").1.contains("free"), "{ran:?}");
    assert_eq!(std::fs::read(at("hedgerow.db")).unwrap(), before);
}

#[tokio::test]
async fn what_is_wrong_with_files_is_said_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("h.toml"), "stor = \"hedgerow.db\"\n").unwrap();
    let ran = check(folder.path(), &["--config", "h.toml", "-o", "json"]).await;
    assert_eq!(ran.code, 5);
    assert!(
        found(&ran, "configuration").1.contains("h.toml line 1"),
        "{ran:?}"
    );

    std::fs::write(
        at("hedgerow.db"),
        "no database at all, but long enough to look like one",
    )
    .unwrap();
    mode(&at("hedgerow.db"), 0o644);
    let ran = check(folder.path(), &["--store", "hedgerow.db", "-o", "json"]).await;
    assert_eq!(ran.code, 5);
    assert_eq!(found(&ran, "store").0, "fail");
    assert!(found(&ran, "store's rights").1.contains("644"), "{ran:?}");

    std::fs::remove_file(at("hedgerow.db")).unwrap();
    let store = Store::open(&at("hedgerow.db")).await.unwrap();
    sqlx::query("UPDATE _sqlx_migrations SET version = 99999999999999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .execute(store.pool())
        .await
        .unwrap();
    store.close().await;
    let ran = check(folder.path(), &["--store", "hedgerow.db", "-o", "json"]).await;
    assert_eq!(found(&ran, "migrations").0, "fail", "{ran:?}");
    let ran = check(folder.path(), &["--store", "hedgerow.db"]).await;
    ran.said(5, &["CHECK", "migrations", "fail", "to mend"]);
}

fn fleet(more: &Value) -> Value {
    let now = jiff::Timestamp::now().as_millisecond();
    let mut fleet = json!({"at": now, "routes": [], "policies": [], "kills": [], "alerts": [],
        "agents": [{"service": "shop", "instance": "a", "state": "live", "skew_ms": 3, "routes": []}],
        "controller": {"write_problem": null}});
    for (field, value) in more.as_object().unwrap() {
        fleet[field] = value.clone();
    }
    fleet
}

fn healthy(controller: &Answering, fleet: Value) {
    let version = env!("CARGO_PKG_VERSION");
    controller
        .to("GET /api/v1/fleet", 200, fleet)
        .to(
            "GET /api/v1/controller",
            200,
            json!({"version": version, "store_bytes": 4_200_000, "outbox_depth": 0}),
        )
        .to(
            "GET /api/v1/receivers",
            200,
            json!({"items": [{"name": "pager", "given_up": 0, "last_error": null}]}),
        );
    controller.open();
}

#[tokio::test]
async fn a_healthy_installation_is_all_ok() {
    let controller = Answering::start().await;
    healthy(&controller, fleet(&json!({})));
    let ran = controller.run(&["check", "--strict", "-o", "json"]).await;
    ran.said(0, &[]);
    assert_eq!(ran.json()["verdict"], "ok", "{ran:?}");
    assert!(found(&ran, "store's size").1.contains("4.2 MB"), "{ran:?}");
}

#[tokio::test]
async fn c19_b23_what_needs_a_person_is_said_with_what_to_do() {
    let controller = Answering::start().await;
    controller
        .to(
            "GET /api/v1/receivers",
            200,
            json!([{"name": "chat", "given_up": 3, "last_error": "timed out"}]),
        )
        .to("GET /api/v1/controller", 200, json!({"version": "9.9.9"}))
        .to(
            "GET /readyz",
            503,
            json!("not ready: the store does not take writes"),
        );
    let fleet = fleet(&json!({
        "at": 1_772_373_787_000_u64,
        "agents": [
            {"service": "shop", "instance": "a", "state": "stale", "skew_ms": -1_200_000,
             "routes": [{"sync": {"sync": "refused", "reason": "too old"}}]},
        ],
        "policies": [{"policy": {"dependency": "cart"}}],
    }));
    healthy(&controller, fleet);
    let ran = controller.run(&["check", "-o", "json"]).await;
    assert_eq!(ran.code, 5);
    for (what, verdict, said) in [
        ("store", "fail", "does not take writes"),
        ("agents", "fail", "shop a"),
        ("agents refusing", "fail", "too old"),
        ("agents' clocks", "warn", "20 min"),
        ("policies for nothing", "warn", "cart"),
        ("receiver", "fail", "chat fails: timed out"),
        ("clock", "warn", "apart"),
        ("version", "warn", "9.9.9"),
    ] {
        let (is, words) = found(&ran, what);
        assert_eq!(is, verdict, "{what}: {words}");
        assert!(words.contains(said), "{what}: {words}");
    }
    // Without a token nothing else can be seen, and that is said.
    let url = controller.url();
    let ran = super::hedgerow(&url, "wrong", controller.folder.path(), &["check"]).await;
    ran.said(5, &["API token", "fail", "--token-file"]);
}
