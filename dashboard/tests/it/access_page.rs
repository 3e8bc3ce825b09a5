//! Who may come in: the page for administrators.

use axum::Router;
use axum::http::{StatusCode, header};
use hedgerow_dashboard::backend::{AccessChange, Role};

use crate::ask::{fleet_pages, get, next_message, open_stream, post, post_from};
use crate::doors::{NEW_LINK, TOKEN, somebody};
use crate::fleet;
use crate::stage::{ADMIN, EDITOR, Stage, VIEWER};

fn pages() -> (Stage, Router) {
    let (stage, router) = fleet_pages();
    stage.state(|s| s.access = somebody());
    (stage, router)
}

#[tokio::test]
async fn s12_the_page_is_an_administrators_and_only_they_are_led_to_it() {
    let (stage, router) = pages();
    for session in [VIEWER, EDITOR] {
        let refused = get(&router, "/access", session).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert!(refused.text().contains("Not allowed") && !refused.body.contains("sven"));
        let form = [("act", "remove-operator"), ("name", "ada"), ("reason", "x")];
        let refused = post(&router, "/access", session, &form).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert!(
            !get(&router, "/", session)
                .await
                .body
                .contains("href=\"/access\"")
        );
    }
    assert!(stage.state(|s| s.asked.is_empty()));
    assert!(
        get(&router, "/", ADMIN)
            .await
            .body
            .contains("href=\"/access\"")
    );
    let page = get(&router, "/access", ADMIN).await;
    assert_eq!(page.status, StatusCode::OK);
    let text = page.text();
    for part in [
        "ada",
        "sven@example.org",
        "single sign-on",
        "ci",
        "over",
        "shop",
        "0123456789ab",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let roles = page.body.matches("value=\"set-role\"").count();
    assert_eq!(roles, 1, "the provider decides the other's");
}

/// A form's fields, but for the reason, and what it asks for.
type FormAsks = (&'static [(&'static str, &'static str)], AccessChange);

fn forms() -> Vec<FormAsks> {
    let name = || "bob".to_owned();
    vec![
        (
            &[
                ("act", "add-operator"),
                ("name", " bob "),
                ("role", "editor"),
            ][..],
            AccessChange::AddOperator {
                name: name(),
                role: Role::Editor,
            },
        ),
        (
            &[("act", "set-role"), ("name", "bob"), ("role", "viewer")],
            AccessChange::SetRole {
                name: name(),
                role: Role::Viewer,
            },
        ),
        (
            &[("act", "link"), ("name", "bob")],
            AccessChange::LoginLink { name: name() },
        ),
        (
            &[("act", "remove-operator"), ("name", "bob")],
            AccessChange::RemoveOperator { name: name() },
        ),
        (
            &[
                ("act", "add-token"),
                ("name", "bob"),
                ("role", "operator"),
                ("days", "30"),
            ],
            AccessChange::AddApiToken {
                name: name(),
                role: Role::Operator,
                days: 30,
            },
        ),
        (
            &[("act", "revoke-token"), ("name", "bob")],
            AccessChange::RevokeApiToken { name: name() },
        ),
        (
            &[("act", "add-agent-token"), ("service", "bob")],
            AccessChange::AddAgentToken { service: name() },
        ),
        (
            &[("act", "revoke-agent-token"), ("id", "bob")],
            AccessChange::RevokeAgentToken { id: name() },
        ),
    ]
}

#[tokio::test]
async fn every_form_of_the_page_does_what_it_says_with_its_reason() {
    let (stage, router) = pages();
    for (fields, change) in forms() {
        let form = [fields, &[("reason", " they asked ")]].concat();
        let answer = post(&router, "/access", ADMIN, &form).await;
        let asked = stage.state(|s| s.asked.pop());
        assert_eq!(asked, Some((change.clone(), "they asked".to_owned())));
        let once = ["shown-once", "Shown once"].map(|it| answer.body.contains(it));
        let shows = matches!(
            change,
            AccessChange::AddOperator { .. }
                | AccessChange::LoginLink { .. }
                | AccessChange::AddApiToken { .. }
                | AccessChange::AddAgentToken { .. }
        );
        assert_eq!(once, [shows; 2], "{change:?}");
        let status = if shows {
            StatusCode::OK
        } else {
            StatusCode::SEE_OTHER
        };
        assert_eq!(answer.status, status, "{change:?}");
    }
}

#[tokio::test]
async fn s09_what_is_shown_once_is_shown_once_and_never_kept() {
    let (_, router) = pages();
    let form = [
        ("act", "add-token"),
        ("name", "bot"),
        ("role", "viewer"),
        ("days", "7"),
        ("reason", "builds"),
    ];
    let made = post(&router, "/access", ADMIN, &form).await;
    assert_eq!(made.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(made.body.matches(TOKEN).count(), 1);
    assert!(
        made.body
            .contains(&format!("value=\"{TOKEN}\" size=\"72\" readonly"))
    );
    let form = [("act", "link"), ("name", "ada"), ("reason", "new laptop")];
    let made = post(&router, "/access", ADMIN, &form).await;
    let whole = format!("value=\"http://hedgerow.test{NEW_LINK}\"");
    assert!(made.body.contains(&whole), "{}", made.body);
    let after = get(&router, "/access", ADMIN).await;
    assert!(!after.body.contains("shown-once"));
}

#[tokio::test]
async fn what_was_not_done_is_said_and_what_was_typed_is_kept() {
    let (stage, router) = pages();
    for (fields, status, words) in [
        (
            &[("act", "add-operator"), ("name", "bob"), ("role", "editor")][..],
            422,
            "a reason is needed",
        ),
        (
            &[
                ("act", "add-token"),
                ("name", "bob"),
                ("role", "editor"),
                ("days", "400"),
                ("reason", "y"),
            ],
            422,
            "days: 400 is out of range",
        ),
        (
            &[
                ("act", "add-token"),
                ("name", "bob"),
                ("role", "editor"),
                ("days", "x"),
                ("reason", "y"),
            ],
            422,
            "days: expected a number",
        ),
        (
            &[
                ("act", "add-token"),
                ("name", "bob"),
                ("role", "root"),
                ("reason", "y"),
            ],
            422,
            "role: expected viewer",
        ),
        (
            &[("act", "remove-operator"), ("name", "ada"), ("reason", "y")],
            409,
            "last administrator",
        ),
        (
            &[("act", "fly"), ("reason", "y")],
            422,
            "one of this page&#39;s forms",
        ),
    ] {
        let answer = post(&router, "/access", ADMIN, fields).await;
        assert_eq!(answer.status.as_u16(), status, "{fields:?}");
        assert!(answer.body.contains(words), "{fields:?}: {}", answer.body);
        assert!(answer.text().contains("Nothing was changed"), "{fields:?}");
        if fields[0].1.starts_with("add") {
            assert!(answer.body.contains("value=\"bob\""), "{fields:?}");
            assert!(
                answer.body.contains(" open><summary>"),
                "its form is open: {fields:?}"
            );
        }
    }
    assert!(stage.state(|s| s.asked.is_empty()));
}

#[tokio::test]
async fn s06_another_sites_page_changes_nobody() {
    let (stage, router) = pages();
    for from in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let answer = post_from(&router, "/access", ADMIN, from).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{from:?}");
    }
    get(
        &router,
        "/access?act=remove-operator&name=ada&reason=x",
        ADMIN,
    )
    .await;
    assert!(stage.state(|s| s.asked.is_empty()));
}

#[tokio::test]
async fn s07_hostile_names_are_text() {
    let (stage, router) = pages();
    let hostile = "<img src=x onerror=alert(1)>\"'\u{202e}";
    stage.state(|s| {
        s.access.operators[1].name = hostile.into();
        s.access.api_tokens[0].name = hostile.into();
        s.access.agent_tokens[0].service = hostile.into();
    });
    let page = get(&router, "/access", ADMIN).await;
    assert!(!page.body.contains("<img src=x"), "{}", page.body);
    let form = [
        ("act", "add-operator"),
        ("name", hostile),
        ("role", hostile),
        ("reason", hostile),
    ];
    let page = post(&router, "/access", ADMIN, &form).await;
    assert!(!page.body.contains("<img src=x"), "{}", page.body);
}

#[tokio::test]
async fn every_field_has_a_label_and_every_id_is_there_once() {
    let (_, router) = pages();
    let page = get(&router, "/access", ADMIN).await.body;
    let ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .map(|it| it.split('"').next().unwrap())
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    for id in &ids {
        assert!(seen.insert(*id), "{id} is there twice");
    }
    for label in page
        .split("<label for=\"")
        .skip(1)
        .map(|it| it.split('"').next().unwrap())
    {
        assert!(seen.contains(label), "{label} labels nothing");
    }
    let fields = page.matches("<input id=").count() + page.matches("<select id=").count();
    assert_eq!(fields, page.matches("<label for=").count());
}

#[tokio::test]
async fn s12_another_role_holds_on_a_page_that_is_open_and_a_session_that_is_over_ends_its_stream()
{
    const ACTS: &str = "action=\"/accept-base\"";
    let (stage, router) = pages();
    let path = "/live?page=route&dependency=search&operation=query";
    let mut stream = open_stream(&router, path, EDITOR).await;
    assert!(next_message(&mut stream).await.unwrap().contains(ACTS));
    stage.state(|s| s.demoted.push(EDITOR.into()));
    stage.publish(fleet::snapshot(1));
    let next = next_message(&mut stream).await.unwrap();
    assert!(
        !next.contains(ACTS) && next.contains("hx-target=\"#verdict\""),
        "{next}"
    );
    stage.state(|s| s.signed_out.push(EDITOR.into()));
    stage.publish(fleet::snapshot(2));
    assert_eq!(next_message(&mut stream).await, None);
}
