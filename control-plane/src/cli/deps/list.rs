//! All routes, a row each, worst first.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::cli::connect::ConnectArgs;
use crate::cli::output::figures::{number, percent, prefixed, success};
use crate::cli::output::look::{Look as _, mode, route_name};
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::{Colour, Paint, Shown, WatchArgs};
use crate::cli::status::acked;
use crate::client::Path;

/// `hedgerow deps list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only routes whose name has this in it.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl List {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let fleet = client.get(&Path::new(["fleet"])).await?.body;
            let mut routes = routes(&fleet, self.filter.as_deref());
            let text = table(&routes, Paint::for_stdout());
            for route in &mut routes {
                // Ten minutes of points each: `deps show` has them.
                if let Some(fields) = route.as_object_mut() {
                    fields.remove("course");
                }
            }
            Ok(Shown::fine(Value::Array(routes), text))
        };
        self.watch.show(look).await
    }
}

fn routes(fleet: &Value, filter: Option<&str>) -> Vec<Value> {
    let filter = filter.unwrap_or_default().to_lowercase();
    let wanted = |route: &&Value| route_name(&route["route"]).to_lowercase().contains(&filter);
    let mut routes: Vec<_> = fleet
        .list("/routes")
        .iter()
        .filter(wanted)
        .cloned()
        .collect();
    let alerts = fleet.list("/alerts");
    // By name among equals: the order does not change while nothing happens.
    routes.sort_by_cached_key(|route| (rank(route, alerts), route_name(&route["route"])));
    routes
}

/// A route's place, as on the overview: faults, kills, probing, warnings, dull, calm.
fn rank(route: &Value, alerts: &[Value]) -> u8 {
    let alert = |phase: &str| {
        alerts
            .iter()
            .any(|it| it.text("/phase") == Some(phase) && it["route"] == route["route"])
    };
    let named = |replica: &Value| replica.text("/named").is_some();
    match (mode(route), route.text("/mode/reason")) {
        ("off", Some("kill_switch")) => 1,
        ("off", Some("policy")) => 5,
        ("off", _) => 0,
        ("probing", _) => 2,
        _ if alert("firing") => 0,
        _ if alert("pending")
            || !route.list("/refusals").is_empty()
            || route.list("/replicas").iter().any(named) =>
        {
            3
        }
        _ if !route["figures"].is_object() || no_effect(route) => 4,
        _ => 5,
    }
}

fn no_effect(route: &Value) -> bool {
    route
        .text("/words")
        .is_some_and(|words| words.starts_with("no effect"))
}

/// What stands in a mode's colour.
pub(super) fn colour(route: &Value) -> Option<Colour> {
    match (mode(route), route.text("/mode/reason")) {
        ("off", Some("policy")) => Some(Colour::Faint),
        ("off", _) => Some(Colour::Bad),
        ("probing", _) => Some(Colour::Warn),
        ("on", _) if !no_effect(route) => Some(Colour::Good),
        _ => None,
    }
}

/// Why a route has no figures, in words.
pub(super) fn no_data(route: &Value) -> &'static str {
    match route.text("/no_data") {
        Some("just_started") => "the controller has just started",
        Some("no_agents") => "no agents report it",
        Some("agents_stale") => "its agents have gone silent",
        Some("no_traffic") => "no traffic",
        Some("too_few") => "not enough traffic",
        _ if route["figures"].is_object() => "not enough calls for it",
        _ => "no data",
    }
}

fn table(routes: &[Value], paint: Paint) -> String {
    let mut table = Table::new(&[
        "ROUTE",
        "STATE",
        ">CALLS/s",
        ">SUCCESS %",
        ">P50 ms",
        ">P95 ms",
        ">P99 ms",
        ">THRESHOLD ms",
        ">HEDGED %",
        ">TARGET %",
        ">WON %",
        ">ACKED",
        "WHY",
    ]);
    for route in routes {
        let why = no_data(route);
        let figure =
            |pointer, write: fn(f64) -> String| Cell::figure(route.number(pointer), write, why);
        let (n, m) = acked(route);
        let all = if n == m { None } else { Some(Colour::Warn) };
        table.row(vec![
            Cell::new(route_name(&route["route"])),
            Cell::new(mode(route)).coloured(colour(route)),
            figure("/figures/calls_per_s", prefixed),
            figure("/figures/success", success),
            figure("/figures/p50_ms", number),
            figure("/figures/p95_ms", number),
            figure("/figures/p99_ms", number),
            Cell::figure(
                route.number("/figures/threshold_ms"),
                number,
                threshold(route),
            ),
            figure("/figures/hedge_rate", percent),
            figure("/figures/target", percent),
            Cell::figure(route.number("/figures/win_rate"), percent, won(route)),
            Cell::new(format!("{n}/{m}")).coloured(all),
            Cell::new(route.text_or_dash("/words")),
        ]);
    }
    if table.is_empty() {
        return "no route: it appears when an agent reports it".into();
    }
    table.text(paint)
}

fn threshold(route: &Value) -> &'static str {
    if route["figures"].is_object() {
        "no threshold yet"
    } else {
        no_data(route)
    }
}

fn won(route: &Value) -> &'static str {
    if route["figures"].is_object() {
        "no hedges"
    } else {
        no_data(route)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn route(name: &str, mode: &Value, more: &Value) -> Value {
        let mut route = json!({
            "route": {"dependency": name, "operation": "get"}, "mode": mode, "words": "w",
            "figures": {"calls_per_s": 1500.0, "p99_ms": 61.234, "success": 0.9997},
            "acked": {"n": 1, "m": 2}, "course": [1, 2],
        });
        for (field, value) in more.as_object().unwrap() {
            route[field] = value.clone();
        }
        route
    }

    fn fleet() -> Value {
        let on = json!({"mode": "on"});
        json!({
            "routes": [
                route("calm", &on, &json!({})),
                route("fault", &json!({"mode": "off", "reason": "errors"}), &json!({})),
                route("killed", &json!({"mode": "off", "reason": "kill_switch"}), &json!({})),
                route("empty", &on, &json!({"figures": null, "no_data": "no_traffic"})),
                route("named", &on, &json!({"replicas": [{"named": "slow"}]})),
                route("asleep", &json!({"mode": "off", "reason": "policy"}), &json!({})),
                route("alarm", &on, &json!({})),
            ],
            "alerts": [{"phase": "firing", "route": {"dependency": "alarm", "operation": "get"}}],
        })
    }

    #[test]
    fn u01_the_worst_comes_first() {
        let routes = routes(&fleet(), None);
        let names: Vec<_> = routes
            .iter()
            .map(|it| it["route"]["dependency"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "alarm", "fault", "killed", "named", "empty", "asleep", "calm"
            ]
        );
        assert_eq!(super::routes(&fleet(), Some("KILL")).len(), 1);
    }

    #[test]
    fn u03_a_route_without_figures_has_dashes_and_says_why() {
        let text = table(&routes(&fleet(), None), Paint::none());
        let line = text.lines().find(|it| it.starts_with("empty")).unwrap();
        assert!(line.contains('–') && !line.contains(" 0 "), "{text}");
        assert!(text.contains(" no traffic"), "{text}");
        let line = text.lines().find(|it| it.starts_with("calm")).unwrap();
        for said in ["1.5 k", "99.97", "61.2", "1/2"] {
            assert!(line.contains(said), "{said}: {line}");
        }
    }
}
