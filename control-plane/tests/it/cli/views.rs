//! Alerts, receivers, the record, kill switches and what-if, against a controller that answers as the
//! contract says.

use serde_json::{Value, json};

use super::answering::Answering;

fn alert() -> Value {
    json!({
        "id": "ReplicaSlow-catalog-1", "rule": "ReplicaSlow", "phase": "firing", "since": 1_772_373_787_000_u64,
        "route": {"dependency": "catalog", "operation": "get"}, "replica": "r1",
        "summary": "r1 crosses 40 %", "silenced": null, "acknowledged": null, "resolved": null,
        "deliveries": [{"receiver": "pager", "kind": "firing", "state": "delivered"}],
        "of a newer version": true,
    })
}

#[tokio::test]
async fn u10_alerts_are_listed_silenced_and_acknowledged() {
    let controller = Answering::start().await;
    controller
        .to(
            "GET /api/v1/alerts",
            200,
            json!({"items": [alert()], "next": null}),
        )
        .to(
            "GET /api/v1/silences",
            200,
            json!({"items": [], "next": null}),
        )
        .to("POST /api/v1/silences", 200, json!({"id": 3}))
        .to("DELETE /api/v1/silences/3", 200, json!({"done": true}))
        .to(
            "POST /api/v1/alerts/ReplicaSlow-catalog-1/acknowledge",
            200,
            json!({"done": true}),
        );
    let ran = controller.run(&["alerts", "list"]).await;
    ran.said(
        0,
        &[
            "ReplicaSlow",
            "catalog get r1",
            "pager firing ok",
            "r1 crosses 40 %",
        ],
    );
    let silence = [
        "alerts",
        "silence",
        "--rule",
        "ReplicaSlow",
        "--dependency",
        "catalog",
        "--for",
        "2h",
        "--reason",
        "known",
    ];
    let ran = controller.run(&silence).await;
    ran.said(0, &["silence 3: no notices of ReplicaSlow catalog for 2 h"]);
    assert_eq!(
        controller.asked("POST /api/v1/silences")[0].body,
        json!({"rule": "ReplicaSlow", "dependency": "catalog", "minutes": 120, "reason": "known"})
    );
    let ran = controller
        .run(&["alerts", "unsilence", "3", "--reason", "mended"])
        .await;
    ran.said(0, &["silence 3 is over"]);
    let ack = [
        "alerts",
        "ack",
        "ReplicaSlow-catalog-1",
        "--comment",
        "on it",
        "--for",
        "30m",
    ];
    controller
        .run(&ack)
        .await
        .said(0, &["acknowledged for 30 min"]);
    assert_eq!(
        controller.asked("POST /api/v1/alerts/ReplicaSlow-catalog-1/acknowledge")[0].body,
        json!({"comment": "on it", "minutes": 30})
    );
    for refused in [
        &["alerts", "silence", "--for", "2h", "--reason", "x"][..],
        &["alerts", "silence", "--every", "--for", "2h"],
        &[
            "alerts", "silence", "--every", "--for", "2 hours", "--reason", "x",
        ],
        &[
            "alerts",
            "silence",
            "--operation",
            "get",
            "--for",
            "2h",
            "--reason",
            "x",
        ],
        &["alerts", "ack", "a"],
    ] {
        controller.run(refused).await.complained(2, &["error: "]);
    }
}

#[tokio::test]
async fn u11_a_receivers_test_ends_as_it_went() {
    let controller = Answering::start().await;
    controller
        .to(
            "GET /api/v1/receivers",
            200,
            json!([{"name": "pager", "kind": "webhook", "to": "example.com", "waiting": 0,
                "given_up": 2, "delivered": null, "last_error": "timed out"}]),
        )
        .to(
            "POST /api/v1/receivers/pager/test",
            200,
            json!({"delivered": false, "status": "503", "took_ms": 12}),
        )
        .to(
            "POST /api/v1/receivers/pager/test",
            200,
            json!({"delivered": true, "status": "204", "took_ms": 8}),
        );
    let ran = controller.run(&["receivers", "list"]).await;
    ran.said(0, &["pager", "example.com", "timed out", "–¹ nothing yet"]);
    let test = ["receivers", "test", "pager"];
    controller
        .run(&test)
        .await
        .said(1, &["pager: not delivered (503) after 12 ms"]);
    controller
        .run(&test)
        .await
        .said(0, &["pager: delivered (204) after 8 ms"]);
}

#[tokio::test]
async fn u12_the_record_is_asked_for_what_is_wanted_and_read_page_by_page() {
    let controller = Answering::start().await;
    let line = |id: u64| {
        json!({"id": id, "at": 1_772_373_787_000_u64, "actor": {"name": "ada", "via": "api"},
            "action": "kill.on", "target": "catalog", "before": "", "after": "", "reason": format!("no. {id}")})
    };
    controller.to(
        "GET /api/v1/audit?action=kill&actor=ada&dependency=catalog&limit=2",
        200,
        json!({"items": [line(9), line(8)], "next": "8"}),
    );
    let tail = [
        "audit",
        "tail",
        "-n",
        "2",
        "--action",
        "kill",
        "--actor",
        "ada",
        "--dependency",
        "catalog",
    ];
    let ran = controller.run(&tail).await;
    ran.said(0, &["ada by api  kill.on catalog (no. 8)"]);
    assert!(ran.out.find("no. 8") < ran.out.find("no. 9"), "{ran:?}");
    let ran = controller.run(&[&tail[..], &["-o", "json"]].concat()).await;
    let ids: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, [8, 9]);
}

#[tokio::test]
async fn lists_are_followed_to_their_end() {
    let controller = Answering::start().await;
    let agent =
        |name: &str| json!({"service": "shop", "instance": name, "state": "live", "routes": []});
    controller
        .to(
            "GET /api/v1/agents",
            200,
            json!({"items": [agent("a1")], "next": "c/1"}),
        )
        .to(
            "GET /api/v1/agents?after=c%2F1&limit=500",
            200,
            json!({"items": [agent("b2")], "next": null}),
        );
    let ran = controller.run(&["agents", "list", "-o", "json"]).await;
    assert_eq!(ran.said(0, &[]).json().as_array().unwrap().len(), 2);
    let ran = controller.run(&["agents", "show", "b"]).await;
    ran.said(0, &["shop b2: live", "it has reported no route"]);
    controller
        .run(&["agents", "show", "c"])
        .await
        .complained(1, &["no agent c is known"]);
}

fn fleet(n: u64) -> Value {
    json!({
        "at": 1_772_373_787_000_u64,
        "kills": [{"state": {"scope": {"scope": "dependency", "dependency": "catalog"}, "engaged": true,
            "actor": {"name": "ada"}, "reason": "4711", "at": 1}, "acked": {"n": n, "m": 2}}],
        "agents": [{"service": "shop", "instance": "b2", "state": "stale",
            "routes": [{"route": {"dependency": "catalog", "operation": "get"}, "held": 1, "wanted": 2}]}],
    })
}

#[tokio::test]
async fn u08_a_kill_switch_waits_for_the_agents_and_names_those_that_do_not_hold_it() {
    let controller = Answering::start().await;
    controller
        .to(
            "POST /api/v1/kill",
            200,
            json!({"changed": true, "acked": {"n": 0, "m": 2}, "known": true}),
        )
        .to("GET /api/v1/fleet", 200, fleet(0))
        .to("GET /api/v1/fleet", 200, fleet(1))
        .to("GET /api/v1/fleet", 200, fleet(2))
        .to("GET /api/v1/fleet", 200, fleet(1));
    let on = ["kill", "on", "catalog", "--reason", "4711"];
    let ran = controller.run(&on).await;
    ran.said(0, &["the switch on catalog is on: 2 of 2 agents hold it"])
        .complained(
            0,
            &["0 of 2 agents hold it ...", "1 of 2 agents hold it ..."],
        );
    assert_eq!(
        controller.asked("POST /api/v1/kill")[0].body,
        json!({"scope": "dependency", "dependency": "catalog", "engaged": true, "reason": "4711"})
    );
    let ran = controller
        .run(&[&on[..], &["--timeout", "0"]].concat())
        .await;
    ran.said(5, &["1 of 2 agents hold it; it stands", "shop b2 (stale)"]);
    controller
        .run(&["kill", "show"])
        .await
        .said(0, &["catalog", "1/2", "ada", "4711"]);
    for refused in [
        &["kill", "on", "catalog"][..],
        &["kill", "on", "--reason", "x"],
        &["kill", "off", "--reason", "x"],
        &["kill", "on", "catalog", "--everything", "--reason", "x"],
    ] {
        controller.run(refused).await.complained(2, &["error: "]);
    }
    let off = ["kill", "off", "--everything", "--reason", "over"];
    controller.to(
        "POST /api/v1/kill",
        200,
        json!({"changed": false, "known": true}),
    );
    controller
        .run(&off)
        .await
        .said(0, &["the switch on everything is off"]);
    controller
        .run(&off)
        .await
        .said(0, &["nothing to change: there was no switch on everything"]);
}

#[tokio::test]
async fn u02_why_hedging_is_off_is_answered_without_a_second_question() {
    let controller = Answering::start().await;
    let route = json!({
        "route": {"dependency": "catalog", "operation": "Fleet/Get"},
        "mode": {"mode": "off", "reason": "kill_switch"}, "words": "off: kill switch, by ada",
        "since": 1_772_373_787_000_u64, "tries_again": null, "evidence": [], "refusals": [],
    });
    controller
        .to("GET /api/v1/routes/catalog/Fleet%2FGet", 200, route)
        .to("GET /api/v1/fleet", 200, fleet(2));
    let explain = ["deps", "explain", "catalog", "Fleet/Get"];
    let ran = controller.run(&explain).await;
    ran.said(
        0,
        &[
            "catalog Fleet/Get: off",
            "the switch on catalog, by ada: 4711",
            "not by itself",
            "hedgerow kill off",
        ],
    );
    let ran = controller
        .run(&[&explain[..], &["-o", "yaml"]].concat())
        .await;
    ran.said(
        0,
        &[
            "mode: \"off\"\n",
            "reason: kill_switch\n",
            "tries_again: null\n",
        ],
    );
}

#[tokio::test]
async fn u05_what_if_is_asked_of_a_route_with_its_goal() {
    let controller = Answering::start().await;
    let answer = json!({
        "attempts": 1000, "window_ms": 60_000, "phi": null, "threshold_ms": null, "probability": 0.0,
        "hedge_rate": null, "unhedged_ms": {"p50": 10, "p90": 12, "p95": 20, "p99": 74, "p99.9": null},
        "hedged": [{"delay_ms": 20, "extra_load": 0.05, "p50_ms": 10, "p90_ms": 12, "p95_ms": 20,
            "p99_ms": 61, "p99.9_ms": null}],
        "goal": {"delay_ms": null, "probability": 0, "extra_load": 0, "goal_ms": 74,
            "reason": "p99 would stay at 74 ms"},
    });
    let path = "GET /api/v1/routes/catalog/get/whatif?goal=p99&budget=0.03";
    controller.to(path, 200, answer);
    let whatif = [
        "whatif", "catalog", "get", "--goal", "p99", "--budget", "0.03",
    ];
    let ran = controller.run(&whatif).await;
    ran.said(
        0,
        &[
            "catalog get: 1000 attempts over 1 min",
            "Today nothing is hedged: there is no threshold.",
            "p99 at 3 % extra load at most: do not hedge.\np99 would stay at 74 ms.",
        ],
    );
    let ran = controller
        .run(&[&whatif[..], &["-o", "json"]].concat())
        .await;
    assert_eq!(ran.json()["hedged"][0]["p99_ms"], 61);
    for refused in [
        &["whatif"][..],
        &["whatif", "catalog"],
        &["whatif", "catalog", "get", "--sample", "x"],
        &["whatif", "catalog", "get", "--phi", "0.1"],
        &["whatif", "catalog", "get", "--goal", "p99"],
    ] {
        controller.run(refused).await.complained(2, &["error: "]);
    }
}
