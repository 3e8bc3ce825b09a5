//! The engine: persist, then tell; what cannot be stored does not happen; restarts.

use hedgerow_control_plane::app::{App, AppError};
use hedgerow_control_plane::engine::EngineError;
use hedgerow_control_plane::store::Store;
use hedgerow_core::effect::{Done, OrderError, Record};
use hedgerow_core::event::{Actor, KillScope, Order, Via};
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::RecordQuery;
use hedgerow_protocol::directive::{Mode, OffReason};
use hedgerow_protocol::ids::{DependencyName, Revision};
use hedgerow_protocol::policy::{Intent, Policy};

use crate::raw_agent::RawAgent;
use crate::running::{Running, SHOP_TOKEN, hedging, route, settings};

fn ada() -> Actor {
    Actor {
        name: "ada".into(),
        via: Via::Api,
    }
}

#[tokio::test]
async fn b69_policies_kills_and_modes_are_the_same_after_a_restart_and_the_epoch_is_higher() {
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    running.set_policy(hedging(0.05)).await;
    running.kill_everything(true).await;
    let mut agent = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;
    agent.report(1, &[route()], 0).await;
    let killed = Mode::Off(OffReason::KillSwitch);
    let before = agent.until(&route(), |it| it.mode == killed).await;
    assert_eq!(before.stamp.revision, Revision(2));
    let (epoch, held) = (running.snapshot().epoch, agent.held.clone());
    drop(agent);

    let running = running.restarted().await;
    let snapshot = running.snapshot();
    assert!(snapshot.epoch > epoch);
    let policy = &snapshot.policies[&"catalog".parse().unwrap()];
    assert_eq!(
        (policy.revision, &policy.policy),
        (Revision(2), &hedging(0.05))
    );
    assert_eq!(snapshot.kills.len(), 1);
    let hello = crate::raw_agent::hello(hedgerow_protocol::ids::InstanceId::generate(), held);
    let mut agent = RawAgent::attach_as(&running.grpc(), SHOP_TOKEN, hello).await;
    let after = agent.until(&route(), |it| it.stamp > before.stamp).await;
    assert_eq!((after.mode, after.standing), (before.mode, before.standing));
    running.app.stop().await;
}

#[tokio::test]
async fn c20_a_save_that_changes_nothing_makes_no_revision_and_no_line() {
    let running = Running::start().await;
    let order = || Order::SetPolicy {
        policy: Box::new(hedging(0.08)),
        expected: None,
        rollout: None,
    };
    let first = running.order(order()).await;
    assert_eq!(
        first,
        Done::Policy {
            revision: Revision(1),
            changed: true
        }
    );
    let again = running.order(order()).await;
    assert_eq!(
        again,
        Done::Policy {
            revision: Revision(1),
            changed: false
        }
    );
    let query = RecordQuery {
        before: None,
        limit: 100,
        dependency: None,
        ..RecordQuery::default()
    };
    let lines = running.app.store().record(&query).await.unwrap();
    assert_eq!(
        lines
            .iter()
            .filter(|(_, row)| row.action == "policy.set")
            .count(),
        1
    );
    running.app.stop().await;
}

#[tokio::test]
async fn p10_what_cannot_be_stored_is_not_done_and_its_sender_is_told() {
    let running = Running::start().await;
    running.set_policy(hedging(0.08)).await;
    let store = running.app.store().clone();
    sqlx::query(
        "CREATE TRIGGER disk_full BEFORE INSERT ON audit \
         BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    )
    .execute(store.pool())
    .await
    .unwrap();
    let kill = || Order::Kill {
        scope: KillScope::Everything,
        engaged: true,
    };
    let refused = running
        .app
        .engine()
        .order(ada(), "fire".into(), kill())
        .await
        .unwrap_err();
    let EngineError::Refused(OrderError::NotPersisted(problem)) = &refused else {
        panic!("{refused:?}");
    };
    assert!(problem.contains("the disk is full"), "{problem}");
    assert!(running.snapshot().kills.is_empty());
    assert!(
        store.restore().await.unwrap().kills.is_empty(),
        "nor half of it"
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/readyz", running.app.http_address());
    let ready = client.get(&url).send().await.unwrap();
    assert_eq!(ready.status(), 503);
    assert!(ready.text().await.unwrap().contains("store"));

    sqlx::query("DROP TRIGGER disk_full")
        .execute(store.pool())
        .await
        .unwrap();
    running
        .app
        .engine()
        .order(ada(), "fire".into(), kill())
        .await
        .unwrap();
    running
        .until("ready again", |it| {
            it.snapshot()
                .controller
                .write_problem
                .is_none()
                .then_some(())
        })
        .await;
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
    running.app.stop().await;
}

#[tokio::test]
async fn a_policy_in_the_settings_is_a_seed_and_never_overrides_what_people_decided() {
    let seed = "[[policy]]\ndependency = \"catalog\"\nintent = \"hedge\"\nbudget = 0.08\n";
    let running = Running::start_with(seed, |_| {}).await;
    let catalog = DependencyName::new("catalog").unwrap();
    let seeded = running.snapshot().policies[&catalog.clone().into()].clone();
    assert_eq!(
        (seeded.revision, seeded.policy.intent()),
        (Revision(1), Intent::Hedge)
    );
    let history = running
        .app
        .store()
        .policy_history(&catalog.clone().into())
        .await
        .unwrap();
    assert_eq!(history[0].actor.via, Via::Seed);

    running.set_policy(hedging(0.03)).await;
    let folder = running.folder.clone();
    running.app.stop().await;
    let app = App::start(settings(folder.path(), seed)).await.unwrap();
    let policy = app.engine().snapshot().policies[&catalog.clone().into()].clone();
    assert_eq!(
        (policy.revision, policy.policy),
        (Revision(2), hedging(0.03))
    );
    app.stop().await;
}

#[tokio::test]
async fn a_second_controller_on_the_same_store_is_refused() {
    let running = Running::start().await;
    let error = App::start(settings(running.folder.path(), ""))
        .await
        .unwrap_err();
    assert!(matches!(error, AppError::Store(_)), "{error:?}");
    assert!(
        error.to_string().contains("in use by another controller"),
        "{error}"
    );
    running.app.stop().await;
}

#[tokio::test]
async fn an_address_in_use_is_named_with_what_was_expected() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let mut settings = settings(folder.path(), "");
    settings.grpc.address = taken.local_addr().unwrap();
    let error = App::start(settings).await.unwrap_err().to_string();
    assert!(
        error.contains(&taken.local_addr().unwrap().to_string()),
        "{error}"
    );
    assert!(error.contains("expected a free address"), "{error}");
}

/// Many policies, so that publishing takes a while.
async fn many_policies() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let policy = |n: u32| {
        let name = DependencyName::new(&format!("dependency-{n}")).unwrap();
        Record::Policy {
            revision: Revision(1),
            policy: Box::new(Policy::observing(name.into())),
            actor: ada(),
            reason: "a test".into(),
            at: Moment::from_millis(1),
        }
    };
    let policies: Vec<_> = (0..3_000).map(policy).collect();
    store.write(&policies, &[]).await.unwrap();
    store.close().await;
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_ordered_shows_before_its_sender_is_answered() {
    let folder = many_policies().await;
    let running = Running {
        app: App::start(settings(folder.path(), "")).await.unwrap(),
        folder: folder.into(),
    };
    let catalog = DependencyName::new("catalog").unwrap();
    for n in 1..=20 {
        let revision = running.set_policy(hedging(0.001 * f64::from(n))).await;
        let shown = running
            .snapshot()
            .policies
            .get(&catalog.clone().into())
            .map(|it| it.revision);
        assert_eq!(shown, Some(revision));
    }
    running.app.stop().await;
}
