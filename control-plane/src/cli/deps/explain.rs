//! Why hedging is off: answered in a few lines.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::connect::{ConnectArgs, RouteArgs, route_path};
use crate::cli::output::figures::{clean, date, number, span};
use crate::cli::output::look::{Look as _, kill_scope, mode, route_name};
use crate::cli::output::table::{Cell, Table, lines};
use crate::cli::output::{Paint, Shown, WatchArgs};
use crate::client::Path;

/// `hedgerow deps explain`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Explain {
    #[command(flatten)]
    route: RouteArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Explain {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let key = self.route.key()?;
        let client = self.connect.client()?;
        let look = async || {
            let route = client.get(&route_path(&key, None)).await?.body;
            // Who threw the switch stands with the fleet, and nowhere else.
            let kill = if route.text("/mode/reason") == Some("kill_switch") {
                let fleet = client.get(&Path::new(["fleet"])).await?.body;
                kill_of(&fleet, key.dependency.as_str())
            } else {
                None
            };
            let now = crate::cli::output::figures::now();
            let text = text(&route, kill.as_ref(), now, Paint::for_stdout());
            Ok(Shown::fine(data(&route, kill), text))
        };
        self.watch.show(look).await
    }
}

/// The switch that is in the way of a dependency, the widest first.
fn kill_of(fleet: &Value, dependency: &str) -> Option<Value> {
    let engaged = fleet
        .list("/kills")
        .iter()
        .filter(|it| it.is("/state/engaged"));
    let mut matching: Vec<_> = engaged
        .filter(|kill| ["everything", dependency].contains(&kill_scope(kill).as_str()))
        .collect();
    matching.sort_by_key(|kill| kill_scope(kill) != "everything");
    matching.first().map(|kill| (*kill).clone())
}

fn data(route: &Value, kill: Option<Value>) -> Value {
    json!({
        "route": route["route"],
        "mode": route["mode"],
        "words": route["words"],
        "since": route["since"],
        "tries_again": route["tries_again"],
        "evidence": route["evidence"],
        "refusals": route["refusals"],
        "no_data": route["no_data"],
        "no_gain": route["no_gain"],
        "kill": kill,
        "what_to_do": what_to_do(route),
    })
}

fn text(route: &Value, kill: Option<&Value>, now: u64, paint: Paint) -> String {
    let when = |at: u64| format!("{} ({} ago)", date(at), span(now.saturating_sub(at)));
    let tries_again = match route.whole("/tries_again") {
        Some(at) => format!("in {} ({})", span(at.saturating_sub(now)), date(at)),
        None if mode(route) == "off" => "not by itself".into(),
        None => String::new(),
    };
    let by = kill.map(|kill| {
        format!(
            "the switch on {}, by {}: {}",
            kill_scope(kill),
            kill.text_or_dash("/state/actor/name"),
            kill.text_or_dash("/state/reason")
        )
    });
    let refused = route.list("/refusals").len();
    let refused = (refused > 0).then(|| {
        format!(
            "{} refuse the newest directive: {}",
            crate::cli::status::agents_in_words(refused),
            route.text_or_dash("/refusals/0/1")
        )
    });
    let head = format!("{}: {}", route_name(&route["route"]), mode(route));
    let mut text = format!(
        "{}\n{}",
        paint.paint(crate::cli::output::Colour::Strong, &head),
        lines([
            ("why", route.text_or_dash("/words")),
            ("by", by.unwrap_or_default()),
            ("since", route.whole("/since").map(when).unwrap_or_default()),
            ("tries again", tries_again),
            ("agents", refused.unwrap_or_default()),
            (
                "what to do",
                what_to_do(route).unwrap_or_default().to_owned()
            ),
        ])
    );
    let figures = evidence(route, paint);
    if !figures.is_empty() {
        text = format!("{text}\n\n{figures}");
    }
    text
}

/// Value and limit side by side, as they were when it was decided.
fn evidence(route: &Value, paint: Paint) -> String {
    let mut table = Table::new(&["MEASURED", ">VALUE", ">LIMIT", ">OVER"]);
    for figure in route.list("/evidence") {
        let unit = figure.text("/unit").map(clean).unwrap_or_default();
        let with_unit = |value: f64| format!("{} {unit}", number(value)).trim().to_owned();
        let window = figure.number("/window_ms").filter(|ms| *ms > 0.0);
        table.row(vec![
            Cell::new(figure.text_or_dash("/what")),
            Cell::figure(figure.number("/value"), with_unit, ""),
            Cell::figure(figure.number("/limit"), with_unit, ""),
            Cell::figure(window, |ms| span(ms as u64), ""),
        ]);
    }
    if table.is_empty() {
        String::new()
    } else {
        table.text(paint)
    }
}

/// A sentence for who is woken; the runbook has more.
fn what_to_do(route: &Value) -> Option<&'static str> {
    let known = match (mode(route), route.text("/mode/reason")) {
        ("off" | "probing", Some(reason)) => match reason {
            "errors" => {
                "mend the dependency: hedging comes back by itself where errors are under half the limit"
            }
            "shared_slowdown" => {
                "look at what the replicas share; hedging comes back by itself; if this speed is to stay, `hedgerow deps accept-base`"
            }
            "push_back" => {
                "the dependency says that it is overloaded: give it room; hedging comes back by itself"
            }
            "wins_nothing" => {
                "nothing is broken: what is slow there is slow for a second copy too; it is probed and comes back where that ends"
            }
            "kill_switch" => "a person switched it off: ask them, then `hedgerow kill off`",
            "policy" => "its policy says off: `hedgerow policy get` shows it",
            "too_many_changes" => "find out what flaps, then `hedgerow deps release`",
            _ => return None,
        },
        ("observing", _) => {
            "nothing is hedged until a policy says so and there is enough traffic: `hedgerow policy get` shows the policy"
        }
        _ => return None,
    };
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u02_why_value_limit_window_since_and_when_it_tries_again() {
        let route = json!({
            "route": {"dependency": "catalog", "operation": "get"},
            "mode": {"mode": "off", "reason": "errors"},
            "words": "off: error rate 6.1 % > 5 %",
            "since": 1_772_373_787_000_u64,
            "tries_again": 1_772_373_907_000_u64,
            "evidence": [{"what": "error rate", "value": 6.1, "limit": 5.0, "unit": "%", "window_ms": 10_000.0}],
            "refusals": [],
        });
        let text = text(&route, None, 1_772_373_867_000, Paint::none());
        let expected = "\
catalog get: off
  why          off: error rate 6.1 % > 5 %
  since        2026-03-01 14:03:07 UTC (1 min 20 s ago)
  tries again  in 40 s (2026-03-01 14:05:07 UTC)
  what to do   mend the dependency: hedging comes back by itself where errors are under half the limit

MEASURED    VALUE  LIMIT  OVER
error rate  6.1 %    5 %  10 s";
        assert_eq!(text, expected);
    }

    #[test]
    fn u02_a_kill_switch_is_named_with_who_threw_it() {
        let fleet = json!({"kills": [
            {"state": {"scope": {"scope": "dependency", "dependency": "cart"}, "engaged": true}},
            {"state": {"scope": {"scope": "dependency", "dependency": "catalog"}, "engaged": true,
                "actor": {"name": "ada"}, "reason": "4711"}},
        ]});
        let kill = kill_of(&fleet, "catalog").unwrap();
        let route =
            json!({"mode": {"mode": "off", "reason": "kill_switch"}, "words": "off: kill switch"});
        let text = text(&route, Some(&kill), 0, Paint::none());
        assert!(
            text.contains("the switch on catalog, by ada: 4711"),
            "{text}"
        );
        assert!(text.contains("not by itself"), "{text}");
        assert!(kill_of(&fleet, "search").is_none());
    }
}
