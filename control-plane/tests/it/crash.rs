//! Signal 9 at any instant (P19).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_control_plane::auth;
use hedgerow_control_plane::store::Store;
use hedgerow_dashboard::backend::{RecordQuery, Role};
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, Revision};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::Process;
use crate::raw_agent::RawAgent;
use crate::running::{SHOP_TOKEN, route};

/// Policies are saved as fast as they are answered, and in the middle of it the process is killed.
/// Whatever was answered is there; whatever is there is whole: with each revision, its line of the
/// record.
#[tokio::test]
async fn p19_b69_a_kill_in_the_middle_of_writes_leaves_the_store_before_or_after_each_of_them() {
    let folder = Arc::new(TempDir::new().unwrap());
    let path = folder.path().join("hedgerow.db");
    let token = new_token(&path).await;
    let answered = Arc::new(AtomicU64::new(0));
    for life in 1..=5_u64 {
        let process = Process::start_in(Arc::clone(&folder), "").await;
        let base = format!("{}api/v1/policies", process.http);
        let writers: Vec<_> = ["catalog", "search"]
            .map(|name| {
                let (base, token) = (base.clone(), token.clone());
                tokio::spawn(save_forever(base, token, name, life, Arc::clone(&answered)))
            })
            .into();
        let before = answered.load(Ordering::Relaxed);
        while answered.load(Ordering::Relaxed) < before + 25 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        // Somewhere in a write, each time somewhere else.
        tokio::time::sleep(Duration::from_micros(rand::random_range(0..5_000))).await;
        process.kill();
        for writer in writers {
            writer.await.unwrap();
        }
        assert_whole(&path, answered.load(Ordering::Relaxed)).await;
    }
}

/// What people laid down is the same after signal 9 and a start: by the API, and for agents.
#[tokio::test]
async fn b69_policies_and_kill_switches_are_the_same_after_signal_9_and_a_start() {
    let folder = Arc::new(TempDir::new().unwrap());
    let token = new_token(&folder.path().join("hedgerow.db")).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let process = Process::start_in(Arc::clone(&folder), "").await;
    let api = |process: &Process, path: &str| format!("{}api/v1/{path}", process.http);
    for (path, body) in [
        (
            "policies/catalog",
            json!({"intent": "hedge", "percentile": 0.97, "reason": "a test"}),
        ),
        (
            "policies/catalog",
            json!({"intent": "hedge", "percentile": 0.98, "reason": "a test"}),
        ),
    ] {
        let request = client.put(api(&process, path)).bearer_auth(&token);
        let answer = request.json(&body).send().await.unwrap();
        assert!(answer.status().is_success());
    }
    let kill = json!({"scope": "everything", "engaged": true, "reason": "a test"});
    let request = client.post(api(&process, "kill")).bearer_auth(&token);
    assert!(
        request
            .json(&kill)
            .send()
            .await
            .unwrap()
            .status()
            .is_success()
    );
    let look = async |process: &Process| {
        let mut seen = Vec::new();
        for path in ["policies/catalog", "policies/catalog/history", "fleet"] {
            let request = client.get(api(process, path)).bearer_auth(&token);
            seen.push(request.send().await.unwrap().json::<Value>().await.unwrap());
        }
        let fleet = seen.pop().unwrap();
        seen.push(fleet["kills"].clone());
        seen
    };
    let before = look(&process).await;
    process.kill();

    let process = Process::start_in(folder, "").await;
    assert_eq!(look(&process).await, before);
    let mut agent = RawAgent::attach(&process.grpc, SHOP_TOKEN).await;
    agent.report(1, &[route()], 0).await;
    let killed = Mode::Off(OffReason::KillSwitch);
    let told = agent.until(&route(), |it| it.mode == killed).await;
    assert_eq!(told.stamp.revision, Revision(2));
    assert!((told.standing.percentile.get() - 0.98).abs() < 1e-12);
    process.kill();
}

async fn new_token(path: &Path) -> String {
    let store = Store::open(path).await.unwrap();
    let token = auth::new_api_token(&store, "test", Role::Administrator, None)
        .await
        .unwrap();
    store.close().await;
    token.expose_secret().to_owned()
}

/// Until the connection breaks; each saved policy differs from the one before.
async fn save_forever(
    base: String,
    token: String,
    name: &str,
    life: u64,
    answered: Arc<AtomicU64>,
) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for n in 0_u32.. {
        let budget = 0.01 + 0.000_1 * f64::from(n % 900) + 0.1 * (life % 2) as f64;
        let body = json!({"intent": "hedge", "budget": budget, "reason": "a test"});
        let request = client
            .put(format!("{base}/{name}"))
            .bearer_auth(&token)
            .json(&body);
        let Ok(answer) = request.send().await else {
            return;
        };
        assert!(
            answer.status().is_success(),
            "{}",
            answer.text().await.unwrap()
        );
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

async fn assert_whole(path: &Path, answered: u64) {
    let store = Store::open(path).await.unwrap();
    let restored = store.restore().await.unwrap();
    let mut revisions = 0;
    for name in ["catalog", "search"] {
        let dependency = DependencyName::new(name).unwrap();
        let history = store
            .policy_history(&dependency.clone().into())
            .await
            .unwrap();
        let numbers: Vec<u64> = history.iter().map(|it| it.revision.0).collect();
        let expected: Vec<u64> = (1..=history.len() as u64).rev().collect();
        assert_eq!(numbers, expected, "without a gap");
        let newest = restored
            .policies
            .iter()
            .find(|it| it.scope.dependency() == Some(&dependency))
            .unwrap();
        assert_eq!(
            (newest.revision, &newest.policy),
            (history[0].revision, &history[0].policy)
        );
        let record = RecordQuery {
            before: None,
            limit: 100_000,
            dependency: Some(dependency),
            ..RecordQuery::default()
        };
        let lines = store.record(&record).await.unwrap();
        let saves = lines
            .iter()
            .filter(|(_, row)| row.action == "policy.set")
            .count();
        assert_eq!(
            saves,
            history.len(),
            "each revision with its line of the record"
        );
        revisions += history.len() as u64;
    }
    assert!(
        revisions >= answered,
        "{answered} were answered, {revisions} are there"
    );
    let check: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(check, "ok");
    store.close().await;
}
