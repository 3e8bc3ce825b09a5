//! S7: whatever a text says, it stays text: in pages, in the event stream, in SVG.

use std::sync::Arc;

use hedgerow_core::effect::{AuditRow, KillState};
use hedgerow_core::event::{Actor, KillScope, Via};
use hedgerow_core::view::{FleetSnapshot, KillView, Mark, MarkKind, Sync};

use crate::ask::{get, pages, post, stream_start};
use crate::fleet;
use crate::stage::{ADMIN, Stage};

const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'\r\n\ndata: <hx-partial hx-target=\"#page\">{{ 7*7 }}</hx-partial>&amp;\u{202e}";

fn hostile_fleet() -> FleetSnapshot {
    let mut snapshot = fleet::snapshot(0);
    let key = fleet::route("catalog", "get-item");
    let mut view = (*snapshot.routes[&key]).clone();
    view.words = HOSTILE.into();
    view.evidence[0].what = HOSTILE.into();
    view.evidence[0].unit = HOSTILE.into();
    view.marks.push(Mark {
        at: fleet::START,
        kind: MarkKind::Alert,
        words: HOSTILE.into(),
    });
    view.refusals
        .push((snapshot.agents[0].instance, HOSTILE.into()));
    snapshot.routes.insert(key, Arc::new(view));
    for alert in &mut snapshot.alerts {
        alert.state.summary = HOSTILE.into();
        alert.state.replica = Some(HOSTILE.into());
    }
    for agent in &mut snapshot.agents {
        agent.version = HOSTILE.into();
        agent.peer = HOSTILE.into();
        agent.last_refusal = Some(HOSTILE.into());
        for route in &mut agent.routes {
            route.sync = Sync::Refused(HOSTILE.into());
        }
    }
    snapshot.controller.write_problem = Some(HOSTILE.into());
    snapshot
}

fn actor() -> Actor {
    Actor {
        name: HOSTILE.into(),
        via: Via::Api,
    }
}

fn dress(stage: &Stage) {
    stage.state(|s| {
        s.kills.push(KillState {
            scope: KillScope::Everything,
            engaged: true,
            actor: actor(),
            reason: HOSTILE.into(),
            at: fleet::START,
        });
        for revision in &mut s.history {
            revision.actor = actor();
            revision.reason = HOSTILE.into();
        }
        for receiver in &mut s.receivers {
            receiver.to = HOSTILE.into();
            receiver.last_error = Some(HOSTILE.into());
        }
        let row = AuditRow {
            at: fleet::START,
            actor: actor(),
            action: HOSTILE.into(),
            target: "catalog".into(),
            before: HOSTILE.into(),
            after: HOSTILE.into(),
            reason: HOSTILE.into(),
        };
        s.record.insert(0, (1000, row));
    });
    let snapshot = hostile_fleet();
    assert!(snapshot.kills.iter().all(|k: &KillView| !k.state.engaged));
    stage.publish(snapshot);
}

fn harmless(what: &str, body: &str) {
    for alive in [
        "<script>",
        "<img src=x",
        "onerror=alert(2)>",
        "<hx-partial hx-target=\"#page\">{{",
    ] {
        assert!(!body.contains(alive), "{what} lets {alive} through");
    }
    assert!(
        body.contains("&#60;script&#62;"),
        "{what} does not show the text at all"
    );
}

#[tokio::test]
async fn s07_hostile_text_is_shown_and_does_nothing_on_every_page() {
    let (stage, router) = pages(hostile_fleet());
    dress(&stage);
    for path in [
        "/",
        "/dependencies/catalog/get-item",
        "/policies",
        "/dependencies/catalog/get-item?range=6h",
        "/policies/catalog",
        "/kill",
        "/agents",
        "/alerts",
        "/record",
        "/receivers",
        "/controller",
    ] {
        harmless(path, &get(&router, path, ADMIN).await.body);
    }
}

#[tokio::test]
async fn s07_hostile_text_cannot_break_out_of_the_event_stream() {
    let (stage, router) = pages(hostile_fleet());
    dress(&stage);
    for query in [
        "page=overview",
        "page=route&dependency=catalog&operation=get-item",
        "page=route&dependency=catalog&operation=get-item&range=24h",
        "page=agents",
        "page=alerts",
        "page=kill",
        "page=policies",
        "page=policy&dependency=catalog",
        "page=receivers",
        "page=controller",
    ] {
        let stream = stream_start(&router, &format!("/live?{query}"), ADMIN, 60).await;
        harmless(query, &stream);
        // Each line is a field of the protocol: none was made by a line break inside a text.
        for line in stream.split(['\r', '\n']).filter(|line| !line.is_empty()) {
            assert!(
                ["data: ", "data:", "retry: ", ":"]
                    .iter()
                    .any(|field| line.starts_with(field)),
                "{query}: {line}"
            );
        }
    }
}

#[tokio::test]
async fn s07_what_was_typed_comes_back_as_text() {
    let (_, router) = pages(fleet::snapshot(0));
    let form = [
        ("intent", "hedge"),
        ("percentile", HOSTILE),
        ("reason", HOSTILE),
    ];
    let answer = post(&router, "/policies/catalog", ADMIN, &form).await;
    harmless("the policy form", &answer.body);
    let answer = post(
        &router,
        "/login",
        "",
        &[("name", HOSTILE), ("password", "x"), ("next", HOSTILE)],
    )
    .await;
    harmless("the login", &answer.body);
    let answer = get(
        &router,
        "/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        ADMIN,
    )
    .await;
    harmless("the filter", &answer.body);
}
