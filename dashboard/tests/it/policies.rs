//! The list of policies.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use hedgerow_protocol::policy::PolicyScope;

use crate::ask::{Answer, get, pages, post, stream_start};
use crate::fleet;
use crate::stage::{EDITOR, Stage, VIEWER};

pub(crate) fn wide_pages() -> (Stage, Router) {
    pages(fleet::with_wider(fleet::snapshot(0)))
}

pub(crate) fn form<'a>(
    budget: &'a str,
    expected: &'a str,
    reason: &'a str,
) -> Vec<(&'a str, &'a str)> {
    vec![
        ("intent", "hedge"),
        ("percentile", "0.95"),
        ("budget", budget),
        ("holdout", "0.01"),
        ("error_limit", "0.05"),
        ("probation", "on"),
        ("expected", expected),
        ("reason", reason),
        ("step", "save"),
    ]
}

/// The last of equal fields counts in a browser's form, the first here: later ones take its place.
pub(crate) fn form_with<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for (name, value) in fields {
        out.retain(|(kept, _)| kept != name);
        out.push((name, value));
    }
    out
}

/// A row of the list, without its tags.
pub(crate) fn row(answer: &Answer, address: &str) -> String {
    let start = answer.body.find(&format!("href=\"{address}\">")).unwrap();
    let rest = &answer.body[start..];
    let end = rest.find("</tr>").unwrap();
    let row = Answer {
        status: answer.status,
        headers: answer.headers.clone(),
        body: format!("<{}", &rest[..end]),
    };
    row.text()
}

#[tokio::test]
async fn u07_the_list_has_every_policy_the_narrowest_last_and_what_it_holds_for() {
    let (_, router) = wide_pages();
    let page = get(&router, "/policies", EDITOR).await;
    assert_eq!(page.status, StatusCode::OK);
    let at = |text: &str| {
        page.body
            .find(&format!("href=\"/policies/{text}\">"))
            .unwrap()
    };
    let order = ["%2A", "pri%2A", "catalog", "catalog%20list", "checkout"].map(at);
    assert!(order.is_sorted(), "{order:?}");
    for (address, said) in [
        ("/policies/%2A", "observe – 5 1 of 13 routes 4"),
        ("/policies/pri%2A", "hedge 4.95 % of calls 4 1 route 6"),
        (
            "/policies/catalog",
            "hedge 4.95 % of calls 8 1 of 2 routes 3 11:49:47 dana (page) after the cache change",
        ),
        (
            "/policies/catalog%20list",
            "list hedge least p99 10 1 route 9",
        ),
        ("/policies/profile", "0 of 1 routes"),
        ("/policies/inventory", "no effect: one replica"),
        (
            "/policies/shipping",
            "no agent has reported this dependency",
        ),
    ] {
        let row = row(&page, address);
        assert!(row.contains(said), "{address}: {row}");
    }
    let text = page.text();
    assert!(text.contains("pri* : hedge Set one for pricing"), "{text}");
    assert!(
        text.contains("hedgerow.v2.Ledger/Balance 1 – no value: no traffic * : observe"),
        "{text}"
    );
}

#[tokio::test]
async fn u07_the_list_is_filtered_and_a_viewer_has_no_form() {
    let (_, router) = wide_pages();
    let page = get(&router, "/policies?q=catalog", VIEWER).await;
    let text = page.text();
    assert!(text.contains("2 of 15 in force"), "{text}");
    assert!(!text.contains("checkout"), "{text}");
    assert!(
        !text.contains("New policy") && text.contains("Look"),
        "{text}"
    );
    let none = get(&router, "/policies?q=nowhere&page=7", VIEWER).await;
    assert!(none.text().contains("No policy matches the filter"));
    assert_eq!(none.status, StatusCode::OK);
}

#[tokio::test]
async fn u07_a_new_policy_is_named_and_leads_to_its_form() {
    let (_, router) = wide_pages();
    for (query, address) in [
        ("dependency=catalog&operation=", "/policies/catalog"),
        (
            "dependency=catalog&operation=get-item",
            "/policies/catalog%20get-item",
        ),
        ("dependency=+cat*&operation=", "/policies/cat%2A"),
    ] {
        let answer = get(&router, &format!("/policies?{query}"), EDITOR).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{query}");
        assert_eq!(answer.location(), address);
    }
    for (query, beside, said) in [
        ("dependency=a+b", "new-dependency-error", "letters, digits"),
        (
            "dependency=cat*&operation=get",
            "new-operation-error",
            "expected no operation beside cat*",
        ),
        ("dependency=&operation=get", "new-dependency-error", "blank"),
        (
            "dependency=c&operation=%3Cb%3E",
            "new-operation-error",
            "&#39;&#60;&#39;",
        ),
    ] {
        let answer = get(&router, &format!("/policies?{query}"), EDITOR).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        let field = answer
            .body
            .split(&format!("id=\"{beside}\">"))
            .nth(1)
            .unwrap();
        let field = field.split("</p>").next().unwrap();
        assert!(field.contains(said), "{query}: {field}");
    }
}

#[tokio::test]
async fn b23_a_policy_that_can_do_nothing_says_so_in_the_editor_and_in_the_list() {
    let (_, router) = wide_pages();
    let kill = [
        ("scope", "dependency"),
        ("dependency", "pricing"),
        ("engaged", "on"),
        ("reason", "drill"),
    ];
    post(&router, "/kill", EDITOR, &kill).await;
    let pattern = get(&router, "/policies/pri%2A", EDITOR).await.text();
    let said = "no effect on pricing while its kill switch is on, by dana";
    assert!(pattern.contains(said), "{pattern}");
    let list = get(&router, "/policies", EDITOR).await;
    assert!(row(&list, "/policies/pri%2A").contains(said));
    let operation = get(&router, "/policies/pricing%20quote", EDITOR)
        .await
        .text();
    assert!(
        operation.contains("no effect while its kill switch is on"),
        "{operation}"
    );
    let unknown = get(&router, "/policies/pricing%20sell", EDITOR)
        .await
        .text();
    assert!(
        unknown.contains("no agent has reported this operation"),
        "{unknown}"
    );
    let mut late = form("0.08", "3", "x");
    late.extend([
        ("threshold_min_ms", "100000"),
        ("step", "review"),
        ("route", "catalog get-item"),
    ]);
    let late = post(&router, "/policies/catalog", EDITOR, &form_with(&late))
        .await
        .text();
    assert!(
        late.contains("No effect, because no call lasts longer than 100 s"),
        "{late}"
    );
}

#[tokio::test]
async fn s07_hostile_scopes_are_refused_and_shown_as_text() {
    let (_, router) = wide_pages();
    let long = "a".repeat(10_000);
    for scope in [
        "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E",
        "%22%27",
        "a%E2%80%AEb",
        "cat*%20get",
        "%20",
        "a%00b",
        &long,
    ] {
        for path in [
            format!("/policies/{scope}"),
            format!("/policies?dependency={scope}"),
            format!("/policies?q={scope}"),
        ] {
            let answer = get(&router, &path, EDITOR).await;
            assert!(answer.status.as_u16() < 500, "{path}: {}", answer.status);
            assert!(!answer.body.contains("<img src=x"), "{path}");
        }
        let answer = post(
            &router,
            &format!("/policies/{scope}/remove"),
            EDITOR,
            &[("reason", "x")],
        )
        .await;
        assert!(
            answer.status.is_client_error(),
            "{scope}: {}",
            answer.status
        );
    }
}

#[tokio::test]
async fn u07_the_open_list_says_when_it_is_not_the_newest() {
    let (stage, router) = wide_pages();
    let page = get(&router, "/policies", EDITOR).await;
    let live = page.body.split("hx-sse:connect=\"").nth(1).unwrap();
    let live = live.split('"').next().unwrap().replace("&#38;", "&");
    let same = stream_start(&router, &live, EDITOR, 60).await;
    assert!(!same.contains("since this page was opened"), "{same}");
    // What is sent stands in the page.
    assert!(
        same.contains("id=\"policy-") || same.contains("#policy-"),
        "{same}"
    );
    let mut snapshot = fleet::with_wider(fleet::snapshot(1));
    let key = fleet::route("geo", "lookup");
    let mut view = (*snapshot.routes[&key]).clone();
    view.words = "no effect: one replica".into();
    snapshot.routes.insert(key, Arc::new(view));
    stage.publish(snapshot);
    post(&router, "/policies/geo", EDITOR, &form("0.07", "3", "x")).await;
    let later = stream_start(&router, &live, EDITOR, 60).await;
    assert!(later.contains("since this page was opened"), "{later}");
    assert!(later.contains("lookup: no effect: one replica"), "{later}");
}

#[tokio::test]
async fn u07_a_thousand_policies_are_paged_and_found_by_the_filter() {
    let mut snapshot = fleet::with_wider(fleet::snapshot(0));
    let view = snapshot.routes[&fleet::route("geo", "lookup")].clone();
    let own = snapshot.policies[&fleet::dependency("geo").into()].clone();
    for i in 0..1000 {
        let key = fleet::route(&format!("dep-{i:04}"), "get");
        let scope: PolicyScope = key.dependency.clone().into();
        let mut own = own.clone();
        own.policy = own.policy.for_scope(scope.clone());
        snapshot.policies.insert(scope, own);
        let mut view = (*view).clone();
        view.route = key.clone();
        snapshot.routes.insert(key, Arc::new(view));
    }
    let (_, router) = pages(snapshot);
    let first = get(&router, "/policies", VIEWER).await;
    assert_eq!(first.body.matches("class=\"holds\"").count(), 60);
    assert!(first.text().contains("1015 in force"));
    assert!(
        first
            .body
            .contains("href=\"/policies?q=&#38;page=1\">Further")
    );
    let last = get(&router, "/policies?q=dep&page=16", VIEWER).await;
    assert_eq!(last.body.matches("class=\"holds\"").count(), 40);
    assert!(last.body.contains("page=15\">Before") && !last.body.contains(">Further"));
    let one = get(&router, "/policies?q=dep-0999", VIEWER).await;
    assert!(row(&one, "/policies/dep-0999").contains("1 route"));
    assert_eq!(one.body.matches("class=\"holds\"").count(), 1);
}
