//! A dependency's page: why it does what it does, its figures over time, its replicas.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{StatusCode, header};
use hedgerow_core::effect::KillState;
use hedgerow_core::event::{Actor, KillScope, Via};
use hedgerow_core::view::{
    DuplicatesView, FleetSnapshot, NoData, NoGain, RouteView, UtilisationView,
};
use hedgerow_protocol::directive::{Mode, OffReason};

use crate::ask::{fleet_pages, get, pages, stream_start};
use crate::fleet;
use crate::stage::{ADMIN, VIEWER};

const PAGE: &str = "/dependencies/catalog/get-item";

/// An answer's text as a person reads it.
async fn text(router: &axum::Router, path: &str) -> String {
    let text = get(router, path, ADMIN).await.text();
    text.replace("&#62;", ">").replace("&#39;", "'")
}

fn with(change: impl FnOnce(&mut RouteView)) -> FleetSnapshot {
    let mut snapshot = fleet::snapshot(0);
    let key = fleet::route("catalog", "get-item");
    let mut view = (*snapshot.routes[&key]).clone();
    change(&mut view);
    snapshot.routes.insert(key, Arc::new(view));
    snapshot
}

/// In a state's words at once; how a route is in it; what one click more says.
type State = (&'static str, fn(&mut RouteView), &'static [&'static str]);

/// Off by itself, for want of something, or by a person.
const OFF: [State; 5] = [
    (
        "error rate 6.1 % > 5 %",
        |v| {
            v.mode = Mode::Off(OffReason::Errors);
            v.words = "off: error rate 6.1 % > 5 %".into();
            v.tries_again = Some(fleet::START.plus(Duration::from_secs(9)));
        },
        &["tries again in 9 s", "Tries again in 9 s, at 14:03:16 UTC"],
    ),
    (
        "observing not enough traffic",
        |v| {
            v.mode = Mode::Observing;
            v.words = "observing: not enough traffic".into();
            v.no_data = Some(NoData::TooFew);
        },
        &[
            "a verdict takes 200 calls a minute at least",
            "once there is enough traffic",
        ],
    ),
    (
        "off policy, by dana",
        |v| {
            v.mode = Mode::Off(OffReason::Policy);
            v.words = "off: policy, by dana".into();
        },
        &["not by itself: the policy has to say something else"],
    ),
    (
        "off too_many_changes",
        |v| {
            v.mode = Mode::Off(OffReason::TooManyChanges);
            v.words = "off: too_many_changes".into();
        },
        &["a person has to release it", "Why it may decide again"],
    ),
    (
        "hedging 2 % of crossed calls",
        |v| {
            v.mode = Mode::Probing(OffReason::SharedSlowdown);
            v.words = "probing: hedging 2 % of crossed calls to see whether it helps".into();
        },
        &["it is trying now"],
    ),
];

/// On, but for less than all that it could be.
const ON: [State; 4] = [
    (
        "no effect one replica",
        |v| v.words = "no effect: one replica".into(),
        &["No effect one replica: no agent knows a second replica"],
    ),
    (
        "no gain: p99 would be 60 ms for 61 ms at best, not worth the load",
        |v| {
            v.words = "no gain: p99 would be 60 ms for 61 ms at best, not worth the load".into();
            v.no_gain = Some(NoGain::Small {
                percentile: 0.99,
                unhedged: Duration::from_millis(61),
                best: Duration::from_millis(60),
            });
        },
        &["Goal p99 is 61.0 ms as it is and 60.0 ms at best"],
    ),
    (
        "armed: 40 % of agents at a time",
        |v| {
            v.words = "on: hedging calls slower than 21 ms; armed: 40 % of agents at a time; \
                           steady rate about 2 %"
                .into();
        },
        &["Armed 40 % of agents at a time, steady rate about 2 %, in turns"],
    ),
    (
        "budget 3.2 % of 8 %: utilisation 0.72",
        |v| {
            v.words =
                "on: hedging calls slower than 21 ms; budget 3.2 % of 8 %: utilisation 0.72".into();
            v.utilisation = Some(UtilisationView {
                value: 0.72,
                at: fleet::START,
                until: fleet::START.plus(Duration::from_mins(1)),
            });
        },
        &[
            "Utilisation 72.0 % of capacity, told until 14:04:07 UTC",
            "from 80 % nothing",
        ],
    ),
];

/// What is answered without a click, and what one click more says, for each state.
#[tokio::test]
async fn u02_why_is_answered_at_once_and_whole_after_one_click() {
    for (at_once, change, whole) in OFF.into_iter().chain(ON) {
        let (_, router) = pages(with(change));
        let verdict = text(&router, PAGE).await;
        assert!(verdict.contains(at_once), "{at_once}: {verdict}");
        assert!(verdict.contains("Policy catalog, revision 3: hedge, budget 8 %"));
        for words in whole {
            assert!(verdict.contains(words), "{at_once}: {words}: {verdict}");
        }
    }
}

#[tokio::test]
async fn u02_a_kill_switch_says_by_whom_and_why_and_how_far_it_got() {
    let snapshot = with(|view| {
        view.mode = Mode::Off(OffReason::KillSwitch);
        view.words = "off: kill switch, by ada".into();
    });
    let (stage, router) = pages(snapshot.clone());
    stage.state(|s| {
        s.kills.push(KillState {
            scope: KillScope::Dependency(fleet::dependency("catalog")),
            engaged: true,
            actor: Actor {
                name: "ada".into(),
                via: Via::CommandLine,
            },
            reason: "it doubles the load".into(),
            at: fleet::START,
        });
    });
    stage.publish(snapshot);
    let text = get(&router, PAGE, VIEWER).await.text();
    assert!(text.contains("off kill switch, by ada"), "{text}");
    assert!(
        text.contains(
            "Kill switch catalog, by ada (command line): it doubles the load; 10 of 12 agents have it"
        ),
        "{text}"
    );
    assert!(text.contains("not by itself: the switch has to be released"));
}

#[tokio::test]
async fn u04_the_charts_show_both_arms_with_counts_limits_and_refusals() {
    let snapshot = with(|view| {
        view.duplicates = Some(DuplicatesView {
            at: fleet::START,
            over: Duration::from_mins(1),
            executed: 41,
            hedges: Some(60),
        });
    });
    let (_, router) = pages(snapshot);
    let text = get(&router, PAGE, VIEWER).await.text();
    for words in [
        "in the last minute callers waited",
        "(71.9 k calls, 95 % sure of",
        "held out (744 calls, 95 % sure of",
        "call a person 10 %",
        "budget 8 %",
        "independent 74.0 %",
        "off above 5 %",
        "mostly budget from",
        "Duplicates at server 41 executed in 1 min; 60 hedges explain one each",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (_, router) = fleet_pages();
    let text = get(&router, PAGE, VIEWER).await.text();
    assert!(
        text.contains("no value: no server of it has reported duplicates"),
        "{text}"
    );
}

/// Each `<a>` of a chart's marks: its address and whether Tab stops at it.
fn marks(body: &str, chart: &str) -> Vec<(String, bool)> {
    let figure = body.split(&format!("id=\"chart-{chart}\"")).nth(1).unwrap();
    let figure = figure.split("</figure>").next().unwrap();
    figure
        .split("<a href=\"")
        .skip(1)
        .map(|link| {
            let tag = link.split('>').next().unwrap();
            (
                link.split('"').next().unwrap().to_owned(),
                !tag.contains("tabindex"),
            )
        })
        .collect()
}

#[tokio::test]
async fn u04_marks_lead_to_their_record_or_alert_on_every_chart() {
    let (_, router) = fleet_pages();
    let body = get(&router, "/dependencies/search/query", VIEWER)
        .await
        .body;
    let first = marks(&body, "latency");
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first[0].0.starts_with("/record?since="), "{first:?}");
    // The record's line of the very act.
    assert!(
        first[1].0.starts_with("/record?before=61#line-60"),
        "{first:?}"
    );
    let (alerts, anchor) = first[2].0.split_once('#').unwrap();
    let there = get(&router, alerts, VIEWER).await.body;
    assert!(there.contains(&format!("id=\"{anchor}\"")), "{first:?}");
    assert!(first.iter().all(|(_, stop)| *stop), "reached by keyboard");
    for chart in [
        "holdout",
        "hedge-rate",
        "refusals",
        "win-rate",
        "error-rate",
        "calls",
    ] {
        let others = marks(&body, chart);
        assert!(
            others.iter().zip(&first).all(|(a, b)| a.0 == b.0),
            "{chart}"
        );
        assert!(
            others.iter().all(|(_, stop)| !stop),
            "{chart}: one way in is enough"
        );
    }
    let happened = body.split("id=\"happened\"").nth(1).unwrap();
    assert!(happened.contains("href=\"/record?before=61#line-60\""));
}

#[tokio::test]
async fn u04_longer_ranges_are_links_and_come_from_the_store() {
    let (stage, router) = fleet_pages();
    let live = get(&router, PAGE, VIEWER).await.body;
    for range in ["1h", "6h", "24h", "7d"] {
        assert!(
            live.contains(&format!("href=\"{PAGE}?range={range}#charts-title\"")),
            "{range}"
        );
        let page = get(&router, &format!("{PAGE}?range={range}"), VIEWER).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(
            page.body
                .contains(&format!("operation=get-item&#38;range={range}\"")),
            "{range}"
        );
        assert!(page.body.contains("aria-current=\"true\""));
        // The policy's change of 480 s ago, by its line of the record.
        let marks = marks(&page.body, "latency");
        assert!(
            marks
                .iter()
                .any(|(href, _)| href.starts_with("/record?before=")),
            "{range}"
        );
    }
    let day = get(&router, &format!("{PAGE}?range=24h"), VIEWER)
        .await
        .text();
    assert!(day.contains("over the last 24 hours"), "{day}");
    assert!(day.contains("A point stands for 4 min 48 s"), "{day}");
    // Nonsense is the live one.
    let odd = get(&router, &format!("{PAGE}?range=%3Cb%3E"), VIEWER).await;
    assert!(odd.text().contains("over the last 10 minutes"));
    stage.state(|s| s.store_away = true);
    let away = get(&router, &format!("{PAGE}?range=6h"), VIEWER)
        .await
        .text();
    assert!(
        away.contains("The stored course cannot be shown: the store could not be read"),
        "{away}"
    );
    assert!(away.contains("no values in the last 6 hours"), "{away}");
}

#[tokio::test]
async fn u04_a_line_breaks_where_nothing_was_known() {
    let (_, router) = fleet_pages();
    let body = get(&router, &format!("{PAGE}?range=24h"), VIEWER)
        .await
        .body;
    let line = body.split("class=\"line s-p99\" d=\"").nth(1).unwrap();
    let line = line.split('"').next().unwrap();
    assert_eq!(line.matches('M').count(), 2, "{line}");
}

#[tokio::test]
async fn u04_zooming_has_its_own_figures_and_loads_only_here() {
    let (_, router) = fleet_pages();
    let page = get(&router, PAGE, VIEWER).await.body;
    for file in ["/assets/uplot.", "/assets/zoom."] {
        assert!(page.contains(file), "{file}");
        assert!(
            !get(&router, "/", VIEWER).await.body.contains(file),
            "{file}"
        );
    }
    assert!(page.contains(&format!("data-course=\"{PAGE}/course\" data-range=\"10m\"")));
    let ask = async |query: &str| get(&router, &format!("{PAGE}/course?{query}"), VIEWER).await;
    let whole = ask("range=10m").await;
    assert_eq!(whole.headers[header::CONTENT_TYPE], "application/json");
    let json: serde_json::Value = serde_json::from_str(&whole.body).unwrap();
    let charts = json["charts"].as_array().unwrap();
    assert_eq!(charts.len(), 7);
    for chart in charts {
        let points = chart["at"].as_array().unwrap().len();
        assert!(points >= 299, "{points}");
        for series in chart["series"].as_array().unwrap() {
            assert_eq!(series["values"].as_array().unwrap().len(), points);
        }
    }
    assert_eq!(json["marks"][0]["class"], "policy");
    // A part of a day is finer than the day, and ends where it was asked to.
    let end = fleet::START.as_millis() - 3_600_000;
    let part = ask(&format!("range=24h&from={}&to={end}", end - 3_600_000)).await;
    let json: serde_json::Value = serde_json::from_str(&part.body).unwrap();
    let at = json["charts"][0]["at"].as_array().unwrap();
    assert!(at.len() > 100, "{}", at.len());
    assert!(at.iter().all(|it| it.as_u64().unwrap() <= end));
    // Backwards, and out of range: an empty chart, no error.
    assert_eq!(
        ask("range=1h&from=99999999999999&to=5").await.status,
        StatusCode::OK
    );
    let unknown = get(&router, "/dependencies/no/such/course", VIEWER).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn u04_an_open_page_sends_stored_charts_only_when_they_were_read_again() {
    let (stage, router) = fleet_pages();
    let later = stage.clone();
    let clock = tokio::spawn(async move {
        for second in 1..=3 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            later.publish(fleet::snapshot(second));
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
        later.publish(fleet::snapshot(61));
    });
    let path = "/live?page=route&dependency=catalog&operation=get-item&range=6h";
    let first = stream_start(&router, path, ADMIN, 60).await;
    let sent = |stream: &str, id: &str| stream.matches(&format!("hx-target=\"#{id}\"")).count();
    assert_eq!((sent(&first, "charts"), sent(&first, "heat")), (1, 1));
    let mut all = first.clone();
    let mut wanted = first.len();
    while sent(&all, "charts") < 2 {
        wanted += 2_000;
        all = stream_start(&router, path, ADMIN, wanted).await;
        assert!(wanted < 4_000_000, "the charts never came again");
        if clock.is_finished() {
            break;
        }
    }
    clock.await.unwrap();
    assert!(sent(&all, "figures") >= sent(&all, "charts"));
}

#[tokio::test]
async fn u06_a_bad_row_is_a_bad_replica_and_a_bad_column_a_shared_cause() {
    let (_, router) = fleet_pages();
    let page = get(&router, "/dependencies/catalog/list", VIEWER).await;
    let text = page.text();
    let cure = "A bad row: catalog-4 is slow by itself, 40 of 90 times. Eject it: hedging can carry at \
                most 13 % of slow traffic.";
    assert!(text.contains(cure), "{text}");
    assert!(text.contains("◀ bad row"));
    let heat = page.body.split("id=\"heat-p95\"").nth(1).unwrap();
    let heat = heat.split("</figure>").next().unwrap();
    assert_eq!(
        heat.matches("<rect class=\"q").count(),
        5 * 90 + 5,
        "cells, and the key"
    );
    assert!(heat.contains(" catalog-4: p95 "), "a value on each cell");
    // Not by colour alone: strokes over what is bad, and a table.
    assert!(heat.contains("class=\"strokes\""));
    assert!(heat.contains("<details id=\"table-heat-p95\">"));

    let text = get(&router, "/dependencies/search/query", VIEWER)
        .await
        .text();
    let shared = "A bad column: all 5 replicas have been slow together since 14:01:40. That is a cause \
                  they share, and ejecting one of them is no cure.";
    assert!(text.contains(shared), "{text}");
    assert!(!text.contains("◀ bad row"));
}

#[tokio::test]
async fn u06_many_replicas_are_bounded_and_those_that_stand_out_come_first() {
    use hedgerow_core::view::{BadReplica, ReplicaColumn, ReplicaCourse, Unlike};
    use hedgerow_protocol::ids::ReplicaName;
    let name = |i: usize| ReplicaName::new(&format!("catalog-with-a-long-name-{i:03}")).unwrap();
    let snapshot = with(|view| {
        let old = &view.replica_course.columns;
        let names = Arc::new((0..256).map(name).collect::<Vec<_>>());
        let column = |it: &Arc<ReplicaColumn>| ReplicaColumn {
            replicas: Arc::clone(&names),
            cells: vec![it.cells[0]; 256],
            ..(**it).clone()
        };
        view.replica_course = Arc::new(ReplicaCourse {
            columns: old.iter().map(|it| Arc::new(column(it))).collect(),
            slow: Some(Unlike {
                usual: 10.0,
                limit: 20.0,
                rows: vec![BadReplica {
                    replica: name(200),
                    bad: 9,
                    known: 90,
                }],
                columns: Vec::new(),
            }),
            losing: None,
        });
    });
    let (_, router) = pages(snapshot);
    let page = get(&router, PAGE, VIEWER).await;
    let heat = page.body.split("id=\"heat-p95\"").nth(1).unwrap();
    let heat = heat.split("</figure>").next().unwrap();
    let cells = heat.matches("<rect class=\"q").count();
    assert!(cells <= 1_200 + 5, "{cells}");
    assert!(heat.contains("232 more replicas are not drawn"));
    assert!(heat.contains("A box is the worst of 2 times of 10 s"));
    let first = heat.split("<title>").nth(1).unwrap();
    assert!(first.starts_with("catalog-with-a-long-name-200"), "{first}");
}

#[tokio::test]
async fn u06_without_replicas_the_page_says_why() {
    let (_, router) = pages(with(|view| {
        view.replica_course = Arc::default();
        view.replicas.clear();
    }));
    let text = get(&router, PAGE, VIEWER).await.text();
    assert!(
        text.contains("No replica has been called for 15 minutes"),
        "{text}"
    );
}
