//! What surrounds every page: navigation, kill switch, the foot, and what works without JavaScript.

use hedgerow_dashboard::{AgentsAt, PROTECTED_ROUTES, Settings, router};

use crate::ask::{fleet_pages, get, pages};
use crate::stage::{ADMIN, VIEWER};
use crate::{big, fleet};

const PAGES: [&str; 8] = [
    "/",
    "/agents",
    "/alerts",
    "/receivers",
    "/record",
    "/controller",
    "/kill",
    "/dependencies/search/query",
];

#[tokio::test]
async fn every_page_has_the_frame() {
    let (_, router) = fleet_pages();
    for path in PAGES {
        let body = get(&router, path, VIEWER).await.body;
        for part in [
            "<html lang=\"en\">",
            "class=\"skip\" href=\"#page\"",
            "<main id=\"page\"",
            "class=\"kill\" href=\"/kill\"",
            "id=\"pill\"",
            "<dialog id=\"keys\" aria-labelledby=\"keys-title\">",
            "id=\"stalenote\" class=\"stalenote\" role=\"status\"",
        ] {
            assert!(body.contains(part), "{path} has no {part}");
        }
        assert_eq!(body.matches("<h1").count(), 1, "{path}");
        assert_eq!(body.matches("hx-sse:connect").count(), 1, "{path}");
        for th in body
            .split("<th")
            .skip(1)
            .filter(|it| !it.starts_with("ead"))
        {
            assert!(
                th.starts_with(" scope="),
                "{path}: a heading without a scope"
            );
        }
    }
}

#[tokio::test]
async fn the_navigation_marks_the_page_and_access_is_for_administrators() {
    let (_, router) = fleet_pages();
    let viewer = get(&router, "/receivers", VIEWER).await.body;
    assert!(viewer.contains("<a href=\"/receivers\" data-key=\"v\" aria-current=\"page\">"));
    assert_eq!(viewer.matches("aria-current=\"page\"").count(), 1);
    assert!(!viewer.contains("href=\"/access\""));
    let admin = get(&router, "/", ADMIN).await.body;
    assert!(admin.contains("href=\"/access\" data-key=\"x\""));
    // Keys of the navigation are told apart.
    let mut keys: Vec<_> = admin
        .split("data-key=\"")
        .skip(1)
        .map(|k| &k[..1])
        .collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all);
}

#[tokio::test]
async fn every_field_has_a_label() {
    let (_, router) = fleet_pages();
    for path in PAGES {
        let body = get(&router, path, ADMIN).await.body;
        for field in ["<input ", "<select "] {
            for part in body.split(field).skip(1) {
                let tag = part.split('>').next().unwrap();
                let wrapped = ["radio", "checkbox"].iter().any(|it| tag.contains(it));
                if tag.contains("type=\"hidden\"") || wrapped {
                    continue;
                }
                let id = tag
                    .split("id=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap();
                let label = format!("for=\"{id}\"");
                assert!(body.contains(&label), "{path}: no label for {id}");
            }
        }
    }
}

#[tokio::test]
async fn u13_the_start_page_names_this_controller_for_agents() {
    let empty = hedgerow_core::view::FleetSnapshot {
        at: fleet::START,
        ..hedgerow_core::view::FleetSnapshot::default()
    };
    let (stage, plain) = pages(empty);
    let text = get(&plain, "/", VIEWER).await.text();
    assert!(text.contains("hedgerow agent-token new --service checkout"));
    assert!(text.contains("http://hedgerow.test:7420"), "{text}");
    let settings = Settings {
        agents: Some(AgentsAt {
            port: 9443,
            tls: true,
        }),
        ..Settings::default()
    };
    let text = get(&router(stage, settings), "/", VIEWER).await.text();
    assert!(text.contains("https://hedgerow.test:9443"), "{text}");
    assert!(text.contains("certificate authority"), "{text}");
}

#[tokio::test]
async fn u08_the_kill_switch_of_any_dependency_is_found_by_its_name() {
    let (stage, _) = fleet_pages();
    stage.publish(big::snapshot(0));
    let router = router(stage, Settings::default());
    let page = get(&router, "/kill", ADMIN).await;
    assert!(page.body.contains("<option>service-0150</option>"));
    assert!(page.text().contains("more: type the name above"));
    let found = get(
        &router,
        "/kill?scope=dependency&dependency=service-0150",
        ADMIN,
    )
    .await;
    assert!(found.text().contains("Kill switch for service-0150"));
}

#[tokio::test]
async fn u01_states_are_chosen_in_the_address() {
    let (_, router) = fleet_pages();
    for (state, rows) in [
        ("off", 3),
        ("probing", 1),
        ("observing", 2),
        ("no-effect", 1),
        ("alert", 4),
        ("needs", 5),
        ("moon", fleet::ROUTES.len()),
    ] {
        let page = get(&router, &format!("/?state={state}&sort=p99"), VIEWER).await;
        assert_eq!(page.body.matches("<tr id=\"r-").count(), rows, "{state}");
        let kept = page
            .body
            .contains(&format!("<option value=\"{state}\" selected>"));
        assert_eq!(kept, state != "moon", "{state}");
    }
    let page = get(&router, "/?state=off", VIEWER).await;
    assert!(page.body.contains("href=\"/?state=off&#38;sort=p99\""));
}

#[test]
fn every_change_is_a_post() {
    for (method, path) in PROTECTED_ROUTES {
        assert!(["get", "post"].contains(method), "{method} {path}");
    }
}
