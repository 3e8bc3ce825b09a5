//! The pages' backend over the real controller.

use futures::StreamExt as _;
use hedgerow_control_plane::auth;
use hedgerow_core::effect::{
    AlertState, AuditRow, OrderError, Record, SilenceDraft, SilenceId, Transition,
};
use hedgerow_core::event::{Actor, KillScope, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::AlertRule;
use hedgerow_dashboard::backend::{
    ActError, Backend as _, Operator, RecordQuery, Role, SignInError,
};
use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::{DependencyName, Revision, RouteKey};
use hedgerow_protocol::policy::{Policy, PolicyDraft};

use crate::standing::Standing;

fn somebody(role: Role) -> Operator {
    Operator {
        name: "ada".into(),
        role,
    }
}

fn policy(budget: f64) -> Policy {
    let draft = PolicyDraft {
        budget,
        ..Policy::observing(DependencyName::new("catalog").unwrap().into()).into()
    };
    Policy::try_from(draft).unwrap()
}

#[tokio::test]
async fn s12_the_role_is_checked_behind_the_pages_too() {
    let standing = Standing::start().await;
    let (viewer, operator) = (somebody(Role::Viewer), somebody(Role::Operator));
    let route = RouteKey::new("catalog", "get").unwrap();
    let ui = &standing.ui;
    let refusals = [
        ui.set_policy(&viewer, policy(0.05), None, None, "x")
            .await
            .map(|_| ()),
        ui.set_policy(&operator, policy(0.05), None, None, "x")
            .await
            .map(|_| ()),
        ui.kill(&viewer, KillScope::Everything, true, "x").await,
        ui.release(&viewer, route.clone(), "x").await,
        ui.accept_base(&operator, route.clone(), "x").await,
        ui.start_switchback(&viewer, route.clone(), 10, "x").await,
        ui.stop_switchback(&viewer, route.clone(), "x").await,
        ui.silence(&viewer, SilenceDraft::default(), "x")
            .await
            .map(|_| ()),
        ui.end_silence(&viewer, SilenceId(1), "x").await,
        ui.acknowledge(&viewer, "e1", None, "x").await,
    ];
    for refusal in refusals {
        assert!(
            matches!(refusal, Err(ActError::Forbidden { .. })),
            "{refusal:?}"
        );
    }
    assert_eq!(standing.count("SELECT count(*) FROM audit").await, 0);
    let unknown = ui.release(&operator, route.clone(), "x").await;
    assert_eq!(
        unknown,
        Err(ActError::Refused(OrderError::UnknownRoute(route)))
    );
    ui.kill(&operator, KillScope::Everything, true, "incident")
        .await
        .unwrap();
    assert_eq!(ui.snapshot().kills.len(), 1);
}

#[tokio::test]
async fn a_saved_policy_is_in_force_in_its_history_and_in_the_record() {
    let standing = Standing::start().await;
    let (ui, editor) = (&standing.ui, somebody(Role::Editor));
    let saved = ui
        .set_policy(&editor, policy(0.05), None, None, " first ")
        .await
        .unwrap();
    assert_eq!((saved.revision, saved.changed), (Revision(1), true));
    let again = ui
        .set_policy(&editor, policy(0.05), Some(Revision(1)), None, "again")
        .await
        .unwrap();
    assert_eq!((again.revision, again.changed), (Revision(1), false), "C20");
    let stale = ui
        .set_policy(&editor, policy(0.06), Some(Revision(0)), None, "late")
        .await;
    let expected = OrderError::Stale {
        expected: Revision(0),
        current: Revision(1),
    };
    assert_eq!(stale, Err(ActError::Refused(expected)));
    let blank = ui.set_policy(&editor, policy(0.07), None, None, "  ").await;
    assert_eq!(blank, Err(ActError::Refused(OrderError::NoReason)));
    ui.set_policy(&editor, policy(0.06), Some(Revision(1)), None, "second")
        .await
        .unwrap();

    let name = DependencyName::new("catalog").unwrap();
    let history = ui.policy_history(&name.clone().into()).await.unwrap();
    let revisions: Vec<_> = history
        .iter()
        .map(|r| (r.revision.0, r.reason.as_str(), r.actor.via))
        .collect();
    assert_eq!(
        revisions,
        [(2, "second", Via::Page), (1, "first", Via::Page)]
    );
    assert_eq!(history[1].policy, Some(policy(0.05)));
    let query = RecordQuery {
        before: None,
        limit: 10,
        dependency: Some(name),
        ..RecordQuery::default()
    };
    let lines = ui.record(query.clone()).await.unwrap();
    assert_eq!(lines.len(), 2);
    let earlier = ui
        .record(RecordQuery {
            before: Some(lines[0].0),
            ..query
        })
        .await
        .unwrap();
    assert_eq!(earlier, lines[1..]);
}

#[tokio::test]
async fn the_record_of_a_dependency_is_its_own_and_its_routes_and_no_others() {
    let standing = Standing::start().await;
    let targets = [
        "cart",
        "cart get",
        "cart put",
        "cart2",
        "cart2 get",
        "car",
        "everything",
    ];
    let rows = targets.map(|target| {
        Record::Audit(AuditRow {
            at: Moment::from_millis(1),
            actor: Actor::controller(),
            action: "mode.off".into(),
            target: target.into(),
            before: String::new(),
            after: String::new(),
            reason: String::new(),
        })
    });
    standing.store.write(&rows, &[]).await.unwrap();
    let about = Some(DependencyName::new("cart").unwrap());
    let query = RecordQuery {
        before: None,
        limit: 100,
        dependency: about,
        ..RecordQuery::default()
    };
    let lines = standing.ui.record(query).await.unwrap();
    let found: Vec<_> = lines.iter().map(|(_, row)| row.target.as_str()).collect();
    assert_eq!(found, ["cart put", "cart get", "cart"]);
}

#[tokio::test]
async fn transitions_and_deliveries_come_newest_first() {
    let standing = Standing::start().await;
    let route = RouteKey::new("catalog", "get").unwrap();
    let transition = |at, words: &str| {
        Record::Transition(Transition {
            route: route.clone(),
            at: Moment::from_millis(at),
            from: Mode::On,
            to: Mode::Observing,
            evidence: Vec::new(),
            words: words.into(),
        })
    };
    let alert = Record::Alert(AlertState {
        id: "e1".into(),
        rule: AlertRule::HedgeRateHigh,
        route: route.clone(),
        replica: None,
        summary: "12 % > 10 %".into(),
        since: Moment::from_millis(5),
        resolved: None,
    });
    let records = [
        transition(1, "one"),
        transition(2, "two"),
        transition(3, "three"),
        alert,
    ];
    standing
        .store
        .write(&records, &["pager".into(), "chat".into()])
        .await
        .unwrap();
    let transitions = standing.ui.transitions(&route, 2).await.unwrap();
    let words: Vec<_> = transitions.iter().map(|t| t.words.as_str()).collect();
    assert_eq!(words, ["three", "two"]);
    let deliveries = standing.ui.deliveries(10).await.unwrap();
    let shown: Vec<_> = deliveries
        .iter()
        .map(|d| (d.receiver.as_str(), d.state.as_str(), d.attempts))
        .collect();
    assert_eq!(shown, [("chat", "waiting", 0), ("pager", "waiting", 0)]);
}

#[tokio::test]
async fn a_person_signs_in_is_known_and_signs_out() {
    let standing = Standing::start().await;
    auth::add_operator(
        &standing.store,
        "ada",
        Role::Editor,
        Some("a long password".into()),
    )
    .await
    .unwrap();
    let ui = &standing.ui;
    let wrong = ui
        .sign_in("ada", "another password", None)
        .await
        .unwrap_err();
    assert_eq!(wrong, SignInError::Wrong);
    let session = ui.sign_in("ada", "a long password", None).await.unwrap();
    assert_eq!(
        ui.operator(&session.cookie).await,
        Some(somebody(Role::Editor))
    );
    assert_eq!(ui.operator("guess").await, None);
    ui.sign_out(&session.cookie).await;
    assert_eq!(ui.operator(&session.cookie).await, None);
}

#[tokio::test]
async fn snapshots_are_published_and_end_with_the_controller() {
    let standing = Standing::start().await;
    let mut snapshots = standing.ui.snapshots();
    let first = snapshots.next().await.unwrap();
    let second = snapshots.next().await.unwrap();
    assert!(second.tick > first.tick);
    standing.stop().await;
    while snapshots.next().await.is_some() {}
}

fn line(at: u64, actor: &str, action: &str, target: &str) -> Record {
    Record::Audit(AuditRow {
        at: Moment::from_millis(at),
        actor: Actor {
            name: actor.into(),
            via: Via::Api,
        },
        action: action.into(),
        target: target.into(),
        before: String::new(),
        after: String::new(),
        reason: String::new(),
    })
}

#[tokio::test]
async fn u12_the_record_is_filtered_by_who_what_and_when() {
    let standing = Standing::start().await;
    let rows = [
        line(1000, "ada", "policy.set", "cart"),
        line(2000, "dana", "policy.remove", "cart get"),
        line(3000, "ada", "policymaker", "cart"),
        line(4000, "ada", "kill.on", "everything"),
        line(5000, "ada' OR '1'='1", "policy", "cart"),
    ];
    standing.store.write(&rows, &[]).await.unwrap();
    let all = || RecordQuery {
        limit: 100,
        ..RecordQuery::default()
    };
    let text = |text: &str| Some(text.to_owned());
    let at = |ms| Some(Moment::from_millis(ms));
    #[rustfmt::skip]
    let table: [(RecordQuery, &[u64]); 9] = [
        (all(), &[5000, 4000, 3000, 2000, 1000]),
        (RecordQuery { action: text("policy"), ..all() }, &[5000, 2000, 1000]),
        (RecordQuery { action: text("policy.set"), ..all() }, &[1000]),
        (RecordQuery { action: text("poli"), ..all() }, &[]),
        (RecordQuery { actor: text("ada"), ..all() }, &[4000, 3000, 1000]),
        (RecordQuery { actor: text("ada' OR '1'='1"), ..all() }, &[5000]),
        (RecordQuery { since: at(2000), until: at(4000), ..all() }, &[3000, 2000]),
        (RecordQuery { actor: text("ada"), action: text("policy"), since: at(1), ..all() }, &[1000]),
        (RecordQuery { dependency: Some(DependencyName::new("cart").unwrap()), until: at(3000), limit: 1, ..all() }, &[2000]),
    ];
    for (query, expected) in table {
        let lines = standing.ui.record(query.clone()).await.unwrap();
        let found: Vec<_> = lines.iter().map(|(_, row)| row.at.as_millis()).collect();
        assert_eq!(found, expected, "{query:?}");
    }
}

#[tokio::test]
async fn u12_no_filter_of_the_record_looks_at_every_line() {
    let standing = Standing::start().await;
    for (filter, index) in [
        ("actor = 'ada'", "audit_by_actor"),
        ("action = 'kill.on'", "audit_by_action"),
    ] {
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT id FROM audit WHERE id < 1000 AND {filter} \
             ORDER BY id DESC LIMIT 50"
        );
        let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .fetch_all(standing.store.pool())
            .await
            .unwrap();
        let used = plan.iter().any(|(_, _, _, detail)| detail.contains(index));
        assert!(used, "{filter}: {plan:?}");
    }
}

#[tokio::test]
async fn u14_the_process_tells_what_it_holds() {
    let standing = Standing::start().await;
    let process = standing.ui.process().await;
    assert_eq!(process.version, env!("CARGO_PKG_VERSION"));
    assert!(process.leader);
    assert!(process.store_bytes.unwrap() > 4096);
    assert_eq!(process.report_lag_ms, None, "nothing has been reported");
    assert_eq!(process.open_pages, 0);
    if cfg!(target_os = "linux") {
        assert!(process.resident_bytes.unwrap() > 1 << 20);
    }
    let alert = Record::Alert(AlertState {
        id: "e1".into(),
        rule: AlertRule::HedgeRateHigh,
        route: RouteKey::new("catalog", "get").unwrap(),
        replica: None,
        summary: "12 % > 10 %".into(),
        since: Moment::from_millis(5),
        resolved: None,
    });
    standing
        .store
        .write(&[alert], &["pager".into(), "chat".into()])
        .await
        .unwrap();
    assert_eq!(standing.ui.process().await.outbox_depth, 2);
}
