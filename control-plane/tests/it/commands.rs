//! Commands beside `serve`, by the real binary.

use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use hedgerow_control_plane::auth::Auth;
use hedgerow_control_plane::store::Store;
use hedgerow_core::event::Via;
use hedgerow_dashboard::backend::RecordQuery;
use tempfile::TempDir;

use crate::process::command;

fn hedgerow(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = command()
        .args(arguments)
        .args(["--store", "hedgerow.db"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

async fn store(folder: &Path) -> Store {
    Store::open(&folder.join("hedgerow.db")).await.unwrap()
}

#[tokio::test]
async fn s11_a_password_is_set_from_standard_input_and_opens_the_dashboard() {
    let folder = TempDir::new().unwrap();
    store(folder.path()).await.close().await;
    let run = |arguments: &[&str], input: &str| hedgerow(folder.path(), arguments, input);
    assert!(
        run(&["operator", "add", "ada", "--role", "editor"], "")
            .status
            .success()
    );
    let set = ["operator", "set-password", "ada"];
    let short = run(&set, "short\n");
    assert!(!short.status.success());
    let error = String::from_utf8(short.stderr).unwrap();
    assert!(error.contains("at least 12 are needed"), "{error}");
    let nobody = run(&["operator", "set-password", "bob"], "a long password\n");
    assert!(!nobody.status.success());
    assert!(run(&set, "a long password\n").status.success());

    let store = store(folder.path()).await;
    let auth = Auth::new(store.clone());
    let session = auth.sign_in("ada", "a long password", None).await.unwrap();
    assert_eq!(session.operator.name, "ada");
}

#[tokio::test]
async fn s12_a_new_agents_token_is_in_the_record_and_is_not_written_there() {
    let folder = TempDir::new().unwrap();
    store(folder.path()).await.close().await;
    let made = hedgerow(
        folder.path(),
        &["agent-token", "new", "--service", "shop"],
        "",
    );
    assert!(made.status.success());
    let token = String::from_utf8(made.stdout).unwrap();
    let store = store(folder.path()).await;
    let tokens = store.agent_tokens().await.unwrap();
    assert_eq!(tokens[0].service.as_str(), "shop");
    let query = RecordQuery {
        before: None,
        limit: 10,
        dependency: None,
        ..RecordQuery::default()
    };
    let lines = store.record(&query).await.unwrap();
    let (_, row) = &lines[0];
    assert_eq!(
        (row.action.as_str(), row.target.as_str(), row.actor.via),
        ("agent_token.new", "shop", Via::CommandLine)
    );
    assert!(!format!("{row:?}").contains(token.trim()));
}

#[test]
fn s11_no_command_makes_a_store_beside_the_controllers() {
    let folder = TempDir::new().unwrap();
    for arguments in [
        &["agent-token", "new", "--service", "shop"][..],
        &["api-token", "new", "--name", "ci", "--role", "viewer"],
        &["operator", "add", "ada", "--role", "editor"],
        &["login-link"],
    ] {
        let refused = hedgerow(folder.path(), arguments, "");
        assert!(!refused.status.success(), "{arguments:?}");
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(error.contains("there is no store at"), "{error}");
        assert!(!folder.path().join("hedgerow.db").exists());
    }
}

/// A store with two people, a program's token and a service's.
async fn peopled() -> TempDir {
    let folder = TempDir::new().unwrap();
    store(folder.path()).await.close().await;
    for made in [
        &["operator", "add", "ada", "--role", "administrator"][..],
        &["operator", "add", "bob", "--role", "viewer"],
        &[
            "api-token",
            "new",
            "--name",
            "ci",
            "--role",
            "viewer",
            "--days",
            "7",
        ],
        &["agent-token", "new", "--service", "shop"],
    ] {
        let (done, said) = run(folder.path(), made);
        assert!(done, "{made:?}: {said}");
    }
    folder
}

/// Whether a command did what it was told, and everything it said.
fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = hedgerow(folder, arguments, "");
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.success(), text.concat())
}

const WHY: [&str; 2] = ["--reason", "she left"];

#[tokio::test]
async fn accounts_and_tokens_are_listed_and_taken_back_from_the_command_line() {
    let folder = peopled().await;
    let (_, people) = run(folder.path(), &["operator", "list"]);
    assert!(
        people.contains("ada") && people.contains("by link"),
        "{people}"
    );
    let (_, tokens) = run(folder.path(), &["api-token", "list"]);
    assert!(
        tokens.contains("ci") && tokens.contains("until 20"),
        "{tokens}"
    );
    let (_, agents) = run(folder.path(), &["agent-token", "list"]);
    assert!(
        agents.contains("shop") && agents.contains("since 20"),
        "{agents}"
    );
    let id = agents.split_whitespace().next().unwrap();
    for done in [
        &["operator", "set-role", "bob", "--role", "administrator"][..],
        &["operator", "remove", "ada"],
        &["api-token", "revoke", "--name", "ci"],
        &["agent-token", "revoke", id],
    ] {
        let (done, said) = run(folder.path(), &[done, &WHY].concat());
        assert!(done, "{said}");
    }
    let (_, left) = run(folder.path(), &["operator", "list"]);
    assert!(
        !left.contains("ada") && left.contains("administrator"),
        "{left}"
    );
    let store = store(folder.path()).await;
    assert!(store.api_tokens().await.unwrap().is_empty());
    assert!(store.agent_tokens().await.unwrap().is_empty());
    let query = RecordQuery {
        limit: 4,
        ..RecordQuery::default()
    };
    for (_, row) in store.record(&query).await.unwrap() {
        assert_eq!(
            (row.reason.as_str(), row.actor.via),
            ("she left", Via::CommandLine)
        );
    }
}

#[tokio::test]
async fn s12_the_command_line_needs_a_reason_and_leaves_an_administrator_too() {
    let folder = peopled().await;
    let with_reason = |arguments: &[&'static str]| [arguments, &WHY].concat();
    let demote = ["operator", "set-role", "ada", "--role", "viewer"];
    for (arguments, words) in [
        (vec!["operator", "remove", "ada"], "--reason"),
        (
            vec!["operator", "remove", "bob", "--reason", " "],
            "a reason is needed",
        ),
        (
            vec!["operator", "remove", "bob", "--reason", "a\nb"],
            "U+000A",
        ),
        (
            with_reason(&["operator", "remove", "ada"]),
            "last administrator",
        ),
        (with_reason(&demote), "last administrator"),
        (with_reason(&["operator", "remove", "eve"]), "no operator"),
        (
            with_reason(&["agent-token", "revoke", "0123456789ab"]),
            "no agents' token",
        ),
    ] {
        let (done, said) = run(folder.path(), &arguments);
        assert!(!done && said.contains(words), "{arguments:?}: {said}");
    }
    let (_, people) = run(folder.path(), &["operator", "list"]);
    assert_eq!(people.lines().count(), 2, "{people}");
}

#[tokio::test]
async fn a_login_link_leads_to_where_the_controller_of_the_store_listens() {
    let running = crate::running::Running::start().await;
    let folder = running.folder.path();
    let link = |more: &[&str]| {
        let output = hedgerow(folder, &[&["login-link"], more].concat(), "");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let told = format!("http://{}/login/link?token=", running.app.http_address());
    assert!(link(&[]).starts_with(&told), "{told}");
    // The settings say port 0, so only the running controller knows.
    assert!(
        link(&["--config", "hedgerow.toml"]).starts_with(&told),
        "{told}"
    );
    let named = link(&["--dashboard-url", "https://h.example/"]);
    assert!(
        named.starts_with("https://h.example/login/link?token="),
        "{named}"
    );
    std::fs::write(
        folder.join("public.toml"),
        "public_url = \"https://ops.example.com\"\nstore = \"hedgerow.db\"\n",
    )
    .unwrap();
    let public = link(&["--config", "public.toml"]);
    assert!(
        public.starts_with("https://ops.example.com/login/link?token="),
        "{public}"
    );
    running.app.stop().await;
}
