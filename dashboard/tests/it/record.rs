//! U12: the record, its filters and its export.

use axum::http::{StatusCode, header};
use hedgerow_core::effect::AuditRow;
use hedgerow_core::event::{Actor, Via};

use crate::ask::{fleet_pages, get};
use crate::fleet;
use crate::stage::VIEWER;

#[tokio::test]
async fn u12_who_when_what_from_where_and_why() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/record", VIEWER).await;
    let text = page.text();
    assert!(
        text.contains("2026-03-01 14:01:53 UTC controller controller mode.off search query median"),
        "{text}"
    );
    assert!(text.contains("ada command line kill.off everything the drill is over"));
    // Times of the record are the same for everybody.
    let times = page
        .body
        .split("<table class=\"sheet record\">")
        .nth(1)
        .unwrap();
    let times = times.split("</table>").next().unwrap();
    assert_eq!(
        times.matches("<time ").count(),
        times.matches("class=\"abs\"").count()
    );
    assert!(page.body.contains("href=\"/record?before="));
}

#[tokio::test]
async fn u12_filters_live_in_the_address_and_go_along() {
    let (_, router) = fleet_pages();
    for (query, lines) in [
        ("dependency=catalog", 12),
        ("action=kill", 24),
        ("action=kill.on", 12),
        ("actor=dana", 12),
        ("actor=nobody", 0),
        ("since=2026-03-01T13:50", 3),
        ("since=2026-03-01T12:36&until=2026-03-01T13:58", 2),
        ("action=mode&actor=controller&dependency=search", 12),
    ] {
        let page = get(&router, &format!("/record?{query}"), VIEWER).await;
        let found = page.body.matches("<tr id=\"line-").count();
        assert_eq!(found, lines, "{query}");
    }
    let page = get(
        &router,
        "/record?action=kill&actor=ada&since=2026-01-01",
        VIEWER,
    )
    .await;
    let export = "/record/export?format=csv&#38;action=kill&#38;actor=ada&#38;since=2026-01-01";
    assert!(page.body.contains(export), "{}", page.body);
    let odd = get(&router, "/record?since=yesterday&dependency=a%20b", VIEWER).await;
    assert_eq!(odd.status, StatusCode::OK);
    assert!(odd.text().contains("expected a date or time in UTC"));
    assert!(
        odd.body.contains("value=\"yesterday\""),
        "what was typed is kept"
    );
}

#[tokio::test]
async fn u12_pages_go_on_where_the_last_one_ended() {
    let (_, router) = fleet_pages();
    let first = get(&router, "/record", VIEWER).await;
    assert_eq!(first.body.matches("<tr id=\"line-").count(), 50);
    let older = first.body.split("href=\"/record?before=").nth(1).unwrap();
    let before = older.split('"').next().unwrap();
    let second = get(&router, &format!("/record?before={before}"), VIEWER).await;
    assert_eq!(second.body.matches("<tr id=\"line-").count(), 10);
    assert!(second.body.contains("id=\"line-10\"") && !first.body.contains("id=\"line-10\""));
}

fn hostile() -> AuditRow {
    AuditRow {
        at: fleet::START,
        actor: Actor {
            name: "=cmd|'/c calc'!A1".into(),
            via: Via::Api,
        },
        action: "+SUM(1)".into(),
        target: "-2+3".into(),
        before: "@import".into(),
        after: "\t=1".into(),
        reason: "a \"quote\", a comma\r\nand <script>alert(1)</script>\u{202e}".into(),
    }
}

/// Cells of the lines of a CSV file, by the rules of RFC 4180.
fn parse(csv: &str) -> Vec<Vec<String>> {
    let mut lines = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        let line = lines.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                line.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(String::new()),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {
                chars.next();
                lines.push(vec![String::new()]);
            }
            c => line.last_mut().unwrap().push(c),
        }
    }
    lines.retain(|line| line.len() > 1 || !line[0].is_empty());
    lines
}

#[tokio::test]
async fn u12_csv_holds_hostile_text_as_text() {
    let (stage, router) = fleet_pages();
    stage.state(|s| s.record.insert(0, (1000, hostile())));
    let answer = get(
        &router,
        "/record/export?format=csv&actor=%3Dcmd%7C%27%2Fc%20calc%27%21A1",
        VIEWER,
    )
    .await;
    assert_eq!(answer.status, StatusCode::OK);
    let head = |name| answer.headers[name].to_str().unwrap();
    assert!(head(header::CONTENT_TYPE).starts_with("text/csv"));
    assert!(head(header::CONTENT_DISPOSITION).contains("hedgerow-record.csv"));
    let lines = parse(&answer.body);
    assert_eq!(
        lines[0],
        [
            "number", "at", "actor", "via", "action", "target", "before", "after", "reason"
        ]
    );
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[1][..8],
        [
            "1000",
            "2026-03-01T14:03:07.000Z",
            "'=cmd|'/c calc'!A1",
            "api",
            "'+SUM(1)",
            "'-2+3",
            "'@import",
            "'\t=1",
        ]
    );
    assert_eq!(lines[1][8], hostile().reason);
}

#[tokio::test]
async fn u12_the_export_holds_every_line_once_however_many() {
    let (stage, router) = fleet_pages();
    stage.state(|s| {
        let row = s.record[0].1.clone();
        s.record = (1..=1234).rev().map(|n| (n, row.clone())).collect();
    });
    let csv = get(&router, "/record/export?format=csv", VIEWER).await;
    let lines = parse(&csv.body);
    assert_eq!(lines.len(), 1235);
    let numbers: Vec<i64> = lines[1..].iter().map(|it| it[0].parse().unwrap()).collect();
    assert_eq!(numbers, (1..=1234).rev().collect::<Vec<_>>());
    let json = get(&router, "/record/export?format=json", VIEWER).await;
    let items: Vec<serde_json::Value> = serde_json::from_str(&json.body).unwrap();
    assert_eq!(items.len(), 1234);
    assert_eq!(items[0]["via"], "controller");
    assert_eq!(items[0]["at"], "2026-03-01T14:01:53.000Z");
    stage.state(|s| s.record.clear());
    let none = get(&router, "/record/export?format=json", VIEWER).await;
    let items: Vec<serde_json::Value> = serde_json::from_str(&none.body).unwrap();
    assert!(items.is_empty());
}

#[tokio::test]
async fn u12_an_export_that_cannot_be_made_says_so_instead_of_a_file() {
    let (stage, router) = fleet_pages();
    for query in [
        "format=xml",
        "format=csv&since=yesterday",
        "dependency=a%20b",
    ] {
        let answer = get(&router, &format!("/record/export?{query}"), VIEWER).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(answer.text().contains("expected") || query.contains("dependency"));
        assert!(!answer.headers.contains_key(header::CONTENT_DISPOSITION));
    }
    stage.state(|s| s.store_away = true);
    let answer = get(&router, "/record/export", VIEWER).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text().contains("The store does not answer"));
}
