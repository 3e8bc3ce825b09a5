//! Alerts over the API: listed in parts, acknowledged, silenced and no longer.

use std::time::Duration;

use hedgerow_control_plane::store::Store;
use hedgerow_core::effect::{AlertState, Record, SilenceDraft};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::AlertRule;
use hedgerow_dashboard::backend::Role;
use reqwest::Response;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{errors, get, problem};
use crate::running::route;
use crate::silences::silence;
use crate::standing::{Standing, eventually};

const SILENCES: &str = "/api/v1/silences";

fn now() -> Moment {
    Moment::from_millis(jiff::Timestamp::now().as_millisecond() as u64)
}

/// An episode that began so many seconds ago.
fn firing(id: &str, seconds: u64) -> AlertState {
    AlertState {
        id: id.into(),
        rule: AlertRule::SharedSlowdown,
        route: route(),
        replica: None,
        summary: "slow together".into(),
        since: Moment::from_millis(now().as_millis() - seconds * 1_000),
        resolved: None,
    }
}

/// A controller that takes up what `records` say. Without agents nothing of it ends (P16).
async fn after(records: &[Record]) -> Standing {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hedgerow.db");
    let store = Store::open(&path).await.unwrap();
    store.write(records, &["pager".into()]).await.unwrap();
    store.close().await;
    Standing::start_in(folder).await
}

async fn send(
    standing: &Standing,
    token: &str,
    (method, path): (&str, &str),
    body: &Value,
) -> Response {
    let request = standing.request(method, path).bearer_auth(token);
    request.json(body).send().await.unwrap()
}

async fn done(response: Response) -> Value {
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

fn ids(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|it| it["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn alerts_come_in_parts_with_what_their_receivers_got() {
    let records: Vec<_> = [("a", 30), ("b", 10), ("c", 20)]
        .map(|(id, seconds)| Record::Alert(firing(id, seconds)))
        .into();
    // Two of one subject cannot fire at once: each is of its own rule.
    let mut records = records;
    for (record, rule) in records.iter_mut().zip(AlertRule::ALL) {
        let Record::Alert(state) = record else {
            unreachable!()
        };
        state.rule = rule;
    }
    let standing = after(&records).await;
    let token = standing.token("ci", Role::Viewer).await;
    let whole = get(&standing, &token, "/api/v1/alerts").await;
    assert_eq!(ids(&whole), ["b", "c", "a"], "the newest first");
    assert_eq!(whole["next"], Value::Null);
    let one = &whole["items"][0];
    assert_eq!(one["phase"], "firing");
    assert_eq!(one["deliveries"][0]["receiver"], "pager");
    assert_eq!(one["deliveries"][0]["kind"], "firing");
    assert_eq!(
        (&one["silenced"], &one["acknowledged"]),
        (&Value::Null, &Value::Null)
    );
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/api/v1/alerts?limit=1&after={after}");
        let part = get(&standing, &token, &path).await;
        seen.extend(ids(&part).into_iter().map(str::to_owned));
        match part["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => break,
        }
    }
    assert_eq!(seen, ["b", "c", "a"]);
    for (query, status) in [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("after=nowhere", 422),
        ("limit=x", 400),
        ("before=1", 400),
    ] {
        let path = format!("/api/v1/alerts?{query}");
        let response = send(&standing, &token, ("get", &path), &json!({})).await;
        problem(response, status).await;
    }
}

#[tokio::test]
async fn an_acknowledgement_is_shown_recorded_and_kept_over_a_restart() {
    let standing = after(&[Record::Alert(firing("e1", 5))]).await;
    let viewer = standing.token("look", Role::Viewer).await;
    let token = standing.token("ci", Role::Operator).await;
    let act = ("post", "/api/v1/alerts/e1/acknowledge");
    let body = json!({"comment": "I look at it", "minutes": 30});
    let refused = problem(send(&standing, &viewer, act, &body).await, 403).await;
    assert_eq!(refused["type"], "urn:hedgerow:problem:role");
    done(send(&standing, &token, act, &body).await).await;
    let check = async |standing: &Standing| {
        let list = get(standing, &token, "/api/v1/alerts").await;
        let by = &list["items"][0]["acknowledged"];
        assert_eq!(by["comment"], "I look at it");
        assert_eq!(by["actor"]["name"], "token:ci");
        let lasts = by["until"].as_u64().unwrap() - by["at"].as_u64().unwrap();
        assert_eq!(lasts, 30 * 60_000);
        assert_eq!(list["items"][0]["phase"], "firing");
    };
    check(&standing).await;
    let lines = get(&standing, &token, "/api/v1/audit?dependency=catalog").await;
    let line = lines.to_string();
    assert!(
        line.contains("alert.acknowledge") && line.contains("I look at it"),
        "{line}"
    );
    let standing = Standing::start_in(standing.stop().await).await;
    check(&standing).await;
    for (body, field) in [
        (json!({"minutes": 30}), "comment"),
        (json!({"comment": "x", "minutes": 0}), "minutes"),
        (json!({"comment": "x", "minutes": 43_201}), "minutes"),
        (json!({"comment": "x", "minutes": -1}), "minutes"),
        (json!({"comment": "x", "minutes": "soon"}), "minutes"),
        (json!({"comment": "x", "reason": "y"}), "reason"),
    ] {
        let problem = problem(send(&standing, &token, act, &body).await, 422).await;
        assert_eq!(errors(&problem)[0].0, field, "{body}: {problem}");
    }
    let nobody = ("post", "/api/v1/alerts/e2/acknowledge");
    let body = json!({"comment": "x", "minutes": null});
    problem(send(&standing, &token, nobody, &body).await, 404).await;
    let odd = ("post", "/api/v1/alerts/%FF/acknowledge");
    problem(send(&standing, &token, odd, &body).await, 400).await;
}

/// A silence over everything, of an hour, and an alert that began under it.
async fn silenced() -> Standing {
    let draft = SilenceDraft {
        lasts: Duration::from_hours(1),
        ..SilenceDraft::default()
    };
    after(&[
        Record::Silence(silence(4, draft, now())),
        Record::AlertSilenced(firing("e1", 5)),
    ])
    .await
}

#[tokio::test]
async fn a_silence_is_made_by_an_operator_and_listed_for_all() {
    let standing = silenced().await;
    let viewer = standing.token("look", Role::Viewer).await;
    let token = standing.token("ci", Role::Operator).await;
    let body = json!({"rule": "SharedSlowdown", "dependency": "catalog", "operation": "get",
        "minutes": 90, "reason": "known, being worked on"});
    let act = ("post", SILENCES);
    problem(send(&standing, &viewer, act, &body).await, 403).await;
    let made = done(send(&standing, &token, act, &body).await).await;
    assert_eq!(made, json!({"id": 5}), "no number twice");
    let list = get(&standing, &viewer, SILENCES).await;
    let last = &list["items"][1];
    for (field, value) in [
        ("id", json!(5)),
        ("rule", json!("SharedSlowdown")),
        ("dependency", json!("catalog")),
        ("operation", json!("get")),
        ("replica", Value::Null),
        ("lasts_ms", json!(5_400_000.0)),
        ("reason", json!("known, being worked on")),
    ] {
        assert_eq!(last[field], value, "{field}");
    }
    let first = get(&standing, &viewer, &format!("{SILENCES}?limit=1")).await;
    assert_eq!(first["next"], "4");
    let rest = get(&standing, &viewer, &format!("{SILENCES}?after=4")).await;
    assert_eq!(ids_of(&rest), [5]);
    assert_eq!(rest["next"], Value::Null);
    let alerts = get(&standing, &viewer, "/api/v1/alerts").await;
    let by = &alerts["items"][0]["silenced"];
    assert_eq!(by, 5, "the one that lasts longer");
}

fn ids_of(list: &Value) -> Vec<u64> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|it| it["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn p15_only_when_the_silence_is_ended_is_anybody_told_also_after_a_restart() {
    let standing = silenced().await;
    let viewer = standing.token("look", Role::Viewer).await;
    let token = standing.token("ci", Role::Operator).await;
    let reason = json!({"reason": "it is mended"});
    let act = ("delete", "/api/v1/silences/4");
    problem(send(&standing, &viewer, act, &reason).await, 403).await;
    let standing = Standing::start_in(standing.stop().await).await;
    assert!(standing.store.deliveries(9).await.unwrap().is_empty());
    done(send(&standing, &token, act, &reason).await).await;
    problem(send(&standing, &token, act, &reason).await, 404).await;
    let told = async || {
        let written = standing.store.deliveries(9).await.unwrap();
        let kinds = written.iter().map(|it| it.kind.clone());
        kinds.collect::<Vec<_>>() == ["firing"]
    };
    eventually("the firing notice is written", told).await;
    let list = get(&standing, &viewer, SILENCES).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn a_silence_that_cannot_be_is_a_problem_that_names_the_field() {
    let standing = Standing::start().await;
    let token = standing.token("ci", Role::Operator).await;
    let table = [
        (json!({"reason": "x"}), "minutes"),
        (json!({"minutes": 0, "reason": "x"}), "minutes"),
        (json!({"minutes": 0.5, "reason": "x"}), "minutes"),
        (json!({"minutes": 43_201, "reason": "x"}), "minutes"),
        (json!({"minutes": 1e300, "reason": "x"}), "minutes"),
        (json!({"minutes": "5", "reason": "x"}), "minutes"),
        (json!({"minutes": 5}), "reason"),
        (
            json!({"minutes": 5, "reason": "x", "rule": "Nothing"}),
            "rule",
        ),
        (json!({"minutes": 5, "reason": "x", "rule": 7}), "rule"),
        (
            json!({"minutes": 5, "reason": "x", "dependency": "<b>"}),
            "dependency",
        ),
        (
            json!({"minutes": 5, "reason": "x", "operation": "get"}),
            "operation",
        ),
        (
            json!({"minutes": 5, "reason": "x", "replica": ""}),
            "replica",
        ),
        (json!({"minutes": 5, "reason": "x", "for": "ever"}), "for"),
    ];
    for (body, field) in table {
        let problem = problem(
            send(&standing, &token, ("post", SILENCES), &body).await,
            422,
        )
        .await;
        let named = errors(&problem);
        assert_eq!((named.len(), named[0].0), (1, field), "{body}: {problem}");
        assert!(named[0].1.contains("expected") || field == "dependency" || field == "replica");
    }
    assert!(standing.engine.snapshot().silences.is_empty());
    let reason = json!({"reason": "x"});
    for (id, status) in [("7", 404), ("x", 422), ("-1", 422)] {
        let path = format!("{SILENCES}/{id}");
        problem(
            send(&standing, &token, ("delete", &path), &reason).await,
            status,
        )
        .await;
    }
}
