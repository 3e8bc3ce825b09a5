//! What operators' own tools get, with the real ones: Prometheus scrapes a running controller and a
//! service with an agent, reads the rules that are shipped, and answers what the dashboards ask.

mod fleet;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use fleet::Fleet;
use server::Server;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

/// Runs a program of Debian's package `prometheus`.
fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(deploy().join("prometheus"))
        .output()
        .unwrap_or_else(|error| panic!("promtool: {error}; {}", server::INSTALL));
    assert!(
        output.status.success(),
        "promtool {}\n{}{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn promtool_accepts_the_rules_their_tests_and_the_example() {
    promtool(&["check", "rules", "hedgerow.rules.yml"]);
    let tests = ["hedgerow.rules.test.yml", "hedgerow.rules.day.test.yml"];
    promtool(&["test", "rules", tests[0], tests[1]]);
    promtool(&["check", "config", "prometheus.example.yml"]);
}

/// What begins with `hedgerow_` and could be a metric.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|it| it.starts_with("hedgerow_")).collect()
}

/// A family's name, of one of its series'.
fn family(series: &str) -> &str {
    let parts = ["_bucket", "_count", "_sum"];
    parts
        .iter()
        .find_map(|part| series.strip_suffix(part))
        .unwrap_or(series)
}

/// Each query of a dashboard, with what it stands for in place of its variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let asked = variables
        .iter()
        .filter_map(|it| it["query"]["query"].as_str())
        .map(|it| {
            // label_values(SERIES, LABEL) asks for a label of some series.
            let inner = it.strip_prefix("label_values(").unwrap();
            inner.rsplit_once(',').unwrap().0
        });
    targets
        .map(|target| target["expr"].as_str().unwrap())
        .chain(asked)
        .map(|it| {
            it.replace("$dependency", "catalog")
                .replace("$operation", ".*")
                .replace("$__rate_interval", "5s")
        })
        .collect()
}

fn dashboards() -> BTreeMap<&'static str, Value> {
    ["fleet.json", "dependency.json"]
        .map(|name| {
            let text = std::fs::read_to_string(deploy().join("grafana").join(name)).unwrap();
            (name, serde_json::from_str(&text).unwrap())
        })
        .into()
}

/// What Grafana's own import would stumble over.
#[test]
fn dashboards_are_whole_and_their_data_source_is_chosen_on_import() {
    for (name, dashboard) in dashboards() {
        for field in ["title", "uid", "description"] {
            let text = dashboard[field].as_str();
            assert!(text.is_some_and(|it| !it.is_empty()), "{name}: {field}");
        }
        assert!(dashboard["id"].is_null(), "{name}: an id is one server's");
        assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36, "{name}");
        let first = &dashboard["templating"]["list"][0];
        assert_eq!(first["name"], "datasource", "{name}");
        assert_eq!(first["query"], "prometheus", "{name}");
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(
                ids.insert(panel["id"].as_u64().unwrap()),
                "{name}: {title}: id"
            );
            let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
            for (x, y) in (0..at("w")).flat_map(|x| (0..at("h")).map(move |y| (x, y))) {
                let cell = (at("x") + x, at("y") + y);
                assert!(cell.0 < 24 && cells.insert(cell), "{name}: {title}: place");
            }
            if panel["type"] == "row" {
                continue;
            }
            let described = panel["description"].as_str();
            assert!(
                described.is_some_and(|it| !it.is_empty()),
                "{name}: {title}"
            );
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty(), "{name}: {title}");
            for source in targets.iter().chain([panel]) {
                let source = &source["datasource"];
                assert_eq!(source["uid"], "${datasource}", "{name}: {title}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b86_a_real_prometheus_scrapes_reads_the_rules_and_answers_the_dashboards() {
    let fleet = Fleet::start().await;
    let prometheus = Server::start(&fleet.targets(), &deploy()).await;
    fleet.until_everything_has_happened().await;

    let targets = prometheus.get("/api/v1/targets?state=active", &[]).await;
    for target in targets["activeTargets"].as_array().unwrap() {
        assert_eq!(target["health"], "up", "{target}");
    }
    counters_arrive(&prometheus).await;
    names_exist(&fleet).await;
    kinds_are_as_the_text_says(&prometheus).await;
    rules_are_loaded_and_say_what_to_do(&prometheus).await;
    for (name, dashboard) in dashboards() {
        for query in queries(&dashboard) {
            let answer = prometheus
                .get("/api/v1/query", &[("query", query.as_str())])
                .await;
            assert!(answer["result"].is_array(), "{name}: {query}: {answer}");
        }
    }
    prometheus.stop().await;
    fleet.stop().await;
}

/// Each of B86's counters, as a query finds it.
async fn counters_arrive(prometheus: &Server) {
    let series = r#"{dependency="catalog",operation="get"}"#;
    for name in ["calls_total", "hedges_total", "hedges_won_total"] {
        let query = format!("hedgerow_controller_{name}{series} > 0");
        prometheus.until_some(&query).await;
    }
    prometheus
        .until_some(&format!("hedgerow_controller_hedges_wasted_total{series}"))
        .await;
    prometheus
        .until_some(r#"count(hedgerow_controller_hedges_refused_total{operation="get"}) == 10"#)
        .await;
    prometheus
        .until_some(r#"hedgerow_controller_deliveries_total{outcome="failed"} > 0"#)
        .await;
    // What the rules record is there, and what is now true of the fleet would be told.
    prometheus
        .until_some("dependency_operation:hedgerow_hedges:ratio_rate5m > 0")
        .await;
    prometheus
        .until_some(r#"ALERTS{alertname="HedgerowReplicaNamed",replica="catalog-4"}"#)
        .await;
}

/// Every name in rules and dashboards is one that was really scraped, or that a rule records.
async fn names_exist(fleet: &Fleet) {
    let scraped = fleet.scrape().await;
    let mut texts: Vec<(String, String)> = dashboards()
        .into_iter()
        .map(|(name, it)| (name.to_owned(), queries(&it).join("\n")))
        .collect();
    let rules = std::fs::read_to_string(deploy().join("prometheus/hedgerow.rules.yml")).unwrap();
    let comments_aside = rules
        .lines()
        .filter(|it| !it.trim_start().starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n");
    let groups = comments_aside.replace("name: hedgerow-", "");
    texts.push(("rules".into(), groups));
    for (name, text) in &texts {
        let unknown: Vec<_> = names(text)
            .into_iter()
            .filter(|it| !it.contains(':'))
            .filter(|it| !scraped.contains(&format!("# TYPE {} ", family(it))))
            .collect();
        assert!(
            unknown.is_empty(),
            "{name}: {unknown:?} are not in\n{scraped}"
        );
    }
}

/// What Prometheus knows of a metric is what `METRICS.md` says of it.
async fn kinds_are_as_the_text_says(prometheus: &Server) {
    let text = std::fs::read_to_string(deploy().join("METRICS.md")).unwrap();
    let metadata = prometheus.get("/api/v1/metadata", &[]).await;
    for row in text.lines().filter(|it| it.starts_with("| `hedgerow_")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].trim_matches('`');
        if let Some(known) = metadata.get(name) {
            assert_eq!(known[0]["type"], cells[1], "{name}");
            assert_eq!(known[0]["help"], cells[4], "{name}");
        }
    }
    let unknown: Vec<_> = metadata
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| name.starts_with("hedgerow_") && !text.contains(&format!("| `{name}` |")))
        .collect();
    assert!(unknown.is_empty(), "METRICS.md does not have {unknown:?}");
}

async fn rules_are_loaded_and_say_what_to_do(prometheus: &Server) {
    let readme = std::fs::read_to_string(deploy().join("README.md")).unwrap();
    let headings: BTreeSet<_> = readme
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
        .collect();
    let answer = prometheus.get("/api/v1/rules", &[]).await;
    let groups = answer["groups"].as_array().unwrap();
    let mut alerts = 0;
    for rule in groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
    {
        assert_eq!(rule["health"], "ok", "{rule}");
        if rule["type"] != "alerting" {
            continue;
        }
        alerts += 1;
        let annotation = |name: &str| {
            let text = rule["annotations"][name].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{}: {name}", rule["name"]);
            text
        };
        annotation("summary");
        annotation("description");
        let section = annotation("runbook")
            .strip_prefix("deploy/README.md, ")
            .unwrap();
        assert!(
            headings.contains(section),
            "{}: no heading {section:?} in deploy/README.md",
            rule["name"]
        );
        let severity = rule["labels"]["severity"].as_str();
        assert!(
            matches!(severity, Some("page" | "ticket")),
            "{}",
            rule["name"]
        );
    }
    assert!(alerts > 20, "{alerts} alerting rules");
}
