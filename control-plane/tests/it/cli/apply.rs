//! Policies from files: planned whole, asked about, changed over what was planned against, and not
//! twice.

use serde_json::json;

use super::answering::Answering;

const TWO: &str = "\
dependency: catalog
budget: 0.05
---
dependency: cart
operation: add
intent: off
";

const PLAN_CATALOG: &str = "POST /api/v1/policies/catalog/plan";
const PLAN_CART: &str = "POST /api/v1/policies/cart%20add/plan";
const PUT_CATALOG: &str = "PUT /api/v1/policies/catalog";
const PUT_CART: &str = "PUT /api/v1/policies/cart%20add";

fn differs(revision: u64) -> serde_json::Value {
    json!({
        "before": {"budget": 0.08}, "after": {"budget": 0.05}, "revision": revision,
        "changes": [{"field": "budget", "before": 0.08, "after": 0.05}],
        "notes": ["no effect: one replica"],
    })
}

fn same(revision: u64) -> serde_json::Value {
    json!({"before": {}, "after": {}, "changes": [], "notes": [], "revision": revision})
}

fn new() -> serde_json::Value {
    json!({"before": null, "after": {"intent": "off"}, "revision": 0,
        "changes": [{"field": "intent", "before": null, "after": "off"}], "notes": []})
}

const APPLY: [&str; 6] = ["policy", "apply", "-f", "p.yaml", "--reason", "ticket 7"];

#[tokio::test]
async fn u07_it_says_what_would_change_and_changes_that_over_what_it_planned_against() {
    let controller = Answering::start().await;
    controller
        .file("p.yaml", TWO)
        .to(PLAN_CATALOG, 200, differs(7))
        .to(PLAN_CART, 200, new())
        .to(PUT_CATALOG, 200, json!({"revision": 9, "changed": true}))
        .to(PUT_CART, 200, json!({"revision": 10, "changed": true}));
    let ran = controller.run(&[&APPLY[..], &["--yes"]].concat()).await;
    ran.said(
        0,
        &[
            "catalog (p.yaml:1, revision 7 is in force)",
            "budget  0.08 -> 0.05",
            "note: no effect: one replica",
            "cart add (p.yaml:4, new)",
            "2 policies to change",
            "catalog: in force as revision 9",
            "cart add: in force as revision 10",
        ],
    );
    let sent = controller.asked(PUT_CATALOG).remove(0);
    assert_eq!(sent.over.as_deref(), Some("\"7\""));
    assert_eq!(sent.body, json!({"budget": 0.05, "reason": "ticket 7"}));
    let sent = controller.asked(PUT_CART).remove(0);
    assert_eq!(sent.over.as_deref(), Some("\"0\""));
    assert_eq!(sent.body, json!({"intent": "off", "reason": "ticket 7"}));
}

#[tokio::test]
async fn c20_what_is_in_force_already_is_nothing_to_change() {
    let controller = Answering::start().await;
    controller
        .file("p.yaml", TWO)
        .to(PLAN_CATALOG, 200, same(9))
        .to(PLAN_CART, 200, same(10));
    // Without --yes: where nothing changes there is nothing to ask.
    let ran = controller.run(&APPLY).await;
    ran.said(0, &["nothing to change: 2 policies as in the files"]);
    assert_eq!(controller.changes(), Vec::<String>::new());
    let ran = controller.run(&["policy", "diff", "-f", "p.yaml"]).await;
    ran.said(0, &["nothing to change"]);
    let ran = controller
        .run(&[&APPLY[..], &["-o", "json"]].concat())
        .await;
    assert_eq!(ran.json()["unchanged"], 2);
    assert_eq!(ran.json()["applied"], json!([]));
}

#[tokio::test]
async fn u07_nothing_is_changed_unless_everything_can_stand() {
    let controller = Answering::start().await;
    controller.file("p.yaml", TWO).to(PLAN_CATALOG, 200, differs(7)).to(
        PLAN_CART,
        422,
        json!({"title": "Invalid values", "errors": [{"field": "intent", "message": "cannot stand"}]}),
    );
    let ran = controller.run(&[&APPLY[..], &["--yes"]].concat()).await;
    ran.complained(
        3,
        &[
            "1 problem in the files, nothing was changed",
            "p.yaml:6:9: document 2: intent: cannot stand",
        ],
    );
    // What can be seen without a controller is not even asked.
    controller.file("p.yaml", "dependency: catalog\nbudget: 3\npercentil: 0.9\n");
    let ran = controller.run(&[&APPLY[..], &["--yes"]].concat()).await;
    ran.complained(
        1,
        &[
            "1 problem in the files",
            "p.yaml:3:1: percentil: is no field here",
        ],
    );
    controller.file("p.yaml", "dependency: catalog\nbudget: 3\n");
    let ran = controller.run(&[&APPLY[..], &["--yes"]].concat()).await;
    ran.complained(1, &["p.yaml:2:9: budget: 3 is not a budget"]);
    assert_eq!(controller.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn b71_a_change_meanwhile_is_refused_and_said_and_what_follows_is_left() {
    let controller = Answering::start().await;
    controller
        .file("p.yaml", TWO)
        .to(PLAN_CATALOG, 200, differs(7))
        .to(PLAN_CART, 200, new())
        .to(
            PUT_CATALOG,
            412,
            json!({"title": "Changed meanwhile", "detail": "x", "current": 8}),
        );
    let ran = controller.run(&[&APPLY[..], &["--yes"]].concat()).await;
    ran.complained(
        3,
        &[
            "catalog (p.yaml:1) was not applied; 0 policies before it are in force, 1 after it not tried",
            "planned over revision 7, revision 8 is in force now",
        ],
    );
    assert_eq!(controller.changes(), [PUT_CATALOG]);
}

#[tokio::test]
async fn u07_nobody_is_asked_where_nobody_is_and_a_reason_is_demanded() {
    let controller = Answering::start().await;
    controller
        .file("p.yaml", "dependency: catalog\nbudget: 0.05\n")
        .to(PLAN_CATALOG, 200, differs(7));
    let ran = controller.run(&APPLY).await;
    ran.complained(2, &["expected --yes, or --dry-run"]);
    let ran = controller
        .run(&["policy", "apply", "-f", "p.yaml", "--yes"])
        .await;
    ran.complained(2, &["--reason <WORDS>"]);
    let ran = controller
        .run(&["policy", "apply", "-f", "p.yaml", "--yes", "--reason", " "])
        .await;
    ran.complained(2, &["expected a few words that say why"]);
    let ran = controller
        .run(&["policy", "apply", "-f", "p.yaml", "--dry-run"])
        .await;
    ran.said(0, &["budget  0.08 -> 0.05", "1 policy to change"]);
    let ran = controller
        .run(&["policy", "diff", "-f", "p.yaml", "-o", "json"])
        .await;
    ran.said(6, &[]);
    assert_eq!(ran.json()[0]["changes"][0]["after"], 0.05);
    assert_eq!(controller.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_and_standard_input_are_read_too() {
    let controller = Answering::start().await;
    controller
        .file("b.yaml", "dependency: catalog\n")
        .file("a.yml", "policies: [{dependency: cart, operation: add}]\n")
        .file("notes.txt", "not: [yaml")
        .to(PLAN_CATALOG, 200, same(1))
        .to(PLAN_CART, 200, same(2));
    let ran = controller.run(&["policy", "diff", "-f", "."]).await;
    ran.said(0, &["2 policies as in the files"]);
    // Nothing comes by standard input in these tests.
    let ran = controller.run(&["policy", "diff", "-f", "-"]).await;
    ran.complained(1, &["there is no policy in -"]);
    controller.file("c.yaml", "dependency: catalog\n");
    let ran = controller.run(&["policy", "diff", "-f", "."]).await;
    ran.complained(1, &["catalog is there twice, first in ./b.yaml:1"]);
}

#[tokio::test]
async fn u07_revisions_are_looked_at_gone_back_to_and_taken_away() {
    let controller = Answering::start().await;
    let revision = |n: u64, budget: f64| {
        json!({"revision": n, "at": 1_772_373_787_000_u64, "policy": {"budget": budget},
            "actor": {"name": "ada", "via": "api"}, "reason": "r"})
    };
    controller
        .to(
            "GET /api/v1/policies/catalog/history",
            200,
            json!({"items": [revision(7, 0.05), revision(3, 0.08)], "next": null}),
        )
        .to(
            "POST /api/v1/policies/catalog/revert",
            200,
            json!({"revision": 8, "changed": true}),
        )
        .to(
            "DELETE /api/v1/policies/cat%2A",
            200,
            json!({"revision": 9, "changed": true}),
        );
    let ran = controller.run(&["policy", "history", "catalog"]).await;
    ran.said(0, &["budget 0.08 -> 0.05", "everything: the first"]);
    let revert = [
        "policy", "revert", "catalog", "--to", "3", "--over", "7", "--reason", "worse",
    ];
    controller
        .run(&revert)
        .await
        .said(0, &["catalog: revision 8 is in force, as 3 was"]);
    let sent = controller
        .asked("POST /api/v1/policies/catalog/revert")
        .remove(0);
    assert_eq!(sent.over.as_deref(), Some("\"7\""));
    assert_eq!(sent.body, json!({"revision": 3, "reason": "worse"}));
    let remove = ["policy", "remove", "cat*", "--reason", "not needed"];
    controller
        .run(&remove)
        .await
        .said(0, &["cat*: its policy is gone"]);
    controller
        .run(&["policy", "remove", "cat*"])
        .await
        .complained(2, &["--reason"]);
}
