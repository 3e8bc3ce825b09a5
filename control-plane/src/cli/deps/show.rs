//! One route, whole.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::list::no_data;
use crate::cli::connect::{ConnectArgs, RouteArgs, route_path};
use crate::cli::output::figures::{NONE, date, number, percent, prefixed, span, success};
use crate::cli::output::look::{Look as _, mode, route_name};
use crate::cli::output::table::{Cell, Table, lines};
use crate::cli::output::{Colour, Paint, Shown, WatchArgs};
use crate::cli::status::acked;

/// What happened last, so many lines.
const MARKS: usize = 10;

/// `hedgerow deps show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    #[command(flatten)]
    route: RouteArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Show {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let key = self.route.key()?;
        let client = self.connect.client()?;
        let look = async || {
            let route = client.get(&route_path(&key, None)).await?.body;
            let text = text(&route, Paint::for_stdout());
            Ok(Shown::fine(route, text))
        };
        self.watch.show(look).await
    }
}

fn text(route: &Value, paint: Paint) -> String {
    let head = format!("{}: {}", route_name(&route["route"]), mode(route));
    let parts = [
        format!("{}\n{}", paint.paint(Colour::Strong, &head), figures(route)),
        replicas(route, paint),
        happened(route, paint),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

fn figures(route: &Value) -> String {
    let figure = |pointer, write: fn(f64) -> String, unit: &str| {
        route.number(pointer).map_or_else(
            || format!("{NONE} ({})", no_data(route)),
            |value| format!("{} {unit}", write(value)),
        )
    };
    let (n, m) = acked(route);
    let window = route.number("/figures/window_ms").map(|ms| span(ms as u64));
    lines([
        ("why", route.text_or_dash("/words")),
        ("since", route.whole("/since").map(date).unwrap_or_default()),
        ("figures over", window.unwrap_or_default()),
        ("calls", figure("/figures/calls_per_s", prefixed, "/s")),
        ("success", figure("/figures/success", success, "%")),
        ("p50", figure("/figures/p50_ms", number, "ms")),
        ("p95", figure("/figures/p95_ms", number, "ms")),
        ("p99", figure("/figures/p99_ms", number, "ms")),
        (
            "p99 hedged",
            figure("/figures/treated_p99_ms", number, "ms"),
        ),
        (
            "p99 held out",
            figure("/figures/holdout_p99_ms", number, "ms"),
        ),
        ("threshold", figure("/figures/threshold_ms", number, "ms")),
        ("hedged", figure("/figures/hedge_rate", percent, "%")),
        ("target", figure("/figures/target", percent, "%")),
        ("budget", figure("/figures/budget", percent, "%")),
        ("hedges won", figure("/figures/win_rate", percent, "%")),
        (
            "expected",
            figure("/figures/win_rate_expected", percent, "%"),
        ),
        ("slowness shared", figure("/figures/phi", percent, "%")),
        ("errors", figure("/figures/error_rate", percent, "%")),
        (
            "refused by budget",
            figure("/figures/refused_by_budget", percent, "%"),
        ),
        ("agents", format!("{n} of {m} hold the newest directive")),
    ])
}

fn replicas(route: &Value, paint: Paint) -> String {
    let mut table = Table::new(&[
        "REPLICA",
        "ZONE",
        "NAMED",
        ">CALLS/s",
        ">P50 ms",
        ">P95 ms",
        ">CROSSED %",
        ">ERRORS %",
        ">HEDGES WON %",
    ]);
    for replica in route.list("/replicas") {
        let named = replica.text("/named");
        let figure = |pointer, write: fn(f64) -> String| {
            Cell::figure(replica.number(pointer), write, "too few calls")
        };
        table.row(vec![
            Cell::new(replica.text_or_dash("/replica")),
            Cell::new(replica.text_or_dash("/zone")),
            Cell::new(named.unwrap_or("")).coloured(Some(Colour::Bad)),
            figure("/calls_per_s", prefixed),
            figure("/p50_ms", number),
            figure("/p95_ms", number),
            figure("/crossed", percent),
            figure("/error_rate", percent),
            figure("/win_rate", percent),
        ]);
    }
    if table.is_empty() {
        String::new()
    } else {
        table.text(paint)
    }
}

fn happened(route: &Value, paint: Paint) -> String {
    let mut table = Table::new(&["WHEN", "KIND", "WHAT HAPPENED"]);
    for mark in route.list("/marks").iter().rev().take(MARKS) {
        let when = mark.whole("/at").map(date);
        table.row(vec![
            when.map_or_else(|| Cell::none(""), Cell::new),
            Cell::new(mark.text_or_dash("/kind")),
            Cell::new(mark.text_or_dash("/words")),
        ]);
    }
    if table.is_empty() {
        String::new()
    } else {
        table.text(paint)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn u06_a_named_replica_is_said_beside_its_figures() {
        let route = json!({
            "route": {"dependency": "catalog", "operation": "get"}, "mode": {"mode": "on"}, "words": "on",
            "figures": {"calls_per_s": 120.0, "p99_ms": null},
            "replicas": [{"replica": "r1", "zone": null, "named": "slow", "calls_per_s": 1.0, "p95_ms": 210.6}],
            "marks": [{"at": 0, "kind": "mode", "words": "first"}, {"at": 1, "kind": "alert", "words": "last"}],
        });
        let text = text(&route, Paint::none());
        for said in [
            "p99                – (not enough calls for it)",
            "r1",
            "slow",
            "211",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(text.find("last") < text.find("first"), "{text}");
    }
}
