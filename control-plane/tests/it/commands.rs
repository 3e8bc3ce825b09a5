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
