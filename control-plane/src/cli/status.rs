//! `hedgerow status`: what needs a person first, then what is off, and why.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::connect::ConnectArgs;
use super::exit;
use super::output::figures::{clean, date, percent, prefixed, span};
use super::output::look::{Look as _, kill_scope, mode, route_name};
use super::output::table::{Cell, Table};
use super::output::{Colour, Paint, Shown, WatchArgs};
use crate::client::Path;

/// `hedgerow status`.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Status {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let fleet = client.get(&Path::new(["fleet"])).await?.body;
            Ok(shown(&fleet, Paint::for_stdout()))
        };
        self.watch.show(look).await
    }
}

/// Something that a person is to look at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) kind: &'static str,
    pub(super) about: String,
    pub(super) words: String,
    pub(super) grave: bool,
}

impl Need {
    fn data(&self) -> Value {
        json!({"kind": self.kind, "about": self.about, "words": self.words, "grave": self.grave})
    }
}

fn shown(fleet: &Value, paint: Paint) -> Shown {
    let needs = needs(fleet);
    let off: Vec<&Value> = off(fleet).collect();
    let at = fleet.whole("/at").unwrap_or(0);
    let mut text = if needs.is_empty() {
        paint.paint(Colour::Good, "nothing needs a person")
    } else {
        let mut table = Table::new(&["NEEDS A PERSON", "ABOUT", "WHAT"]);
        for need in &needs {
            let colour = if need.grave {
                Colour::Bad
            } else {
                Colour::Warn
            };
            table.row(vec![
                Cell::new(need.kind).coloured(Some(colour)),
                Cell::new(&need.about),
                Cell::new(&need.words),
            ]);
        }
        table.text(paint)
    };
    if !off.is_empty() {
        let mut table = Table::new(&["OFF", "WHY", "SINCE", "TRIES AGAIN"]);
        for route in &off {
            table.row(vec![
                Cell::new(route_name(&route["route"])),
                Cell::new(route.text_or_dash("/words")),
                ago(at, route.whole("/since")),
                again(at, route.whole("/tries_again")),
            ]);
        }
        text = format!("{text}\n\n{}", table.text(paint));
    }
    let data = json!({
        "at": at,
        "needs_a_person": needs.iter().map(Need::data).collect::<Vec<_>>(),
        "off": off.iter().map(|route| json!({
            "route": route["route"],
            "words": route["words"],
            "since": route["since"],
            "tries_again": route["tries_again"],
        })).collect::<Vec<_>>(),
        "modes": modes(fleet),
        "agents": fleet.list("/agents").iter().filter(|it| attached(it)).count(),
    });
    Shown {
        text: format!("{text}\n\n{}", summary(fleet)),
        data,
        code: if needs.is_empty() {
            exit::FINE
        } else {
            exit::PERSON
        },
    }
}

/// `3 min ago`.
pub(super) fn ago(now: u64, then: Option<u64>) -> Cell {
    then.map_or_else(
        || Cell::none(""),
        |then| Cell::new(format!("{} ago", span(now.saturating_sub(then)))),
    )
}

/// `in 40 s`.
fn again(now: u64, at: Option<u64>) -> Cell {
    match at {
        Some(at) => Cell::new(format!("in {}", span(at.saturating_sub(now)))),
        None => Cell::none("not by itself"),
    }
}

fn attached(agent: &Value) -> bool {
    matches!(agent.text("/state"), Some("live" | "stale"))
}

/// Routes that are off for another reason than their policy, and those that try again.
fn off(fleet: &Value) -> impl Iterator<Item = &Value> {
    fleet.list("/routes").iter().filter(|route| {
        matches!(mode(route), "off" | "probing") && route.text("/mode/reason") != Some("policy")
    })
}

fn modes(fleet: &Value) -> Value {
    let count = |wanted: &str| {
        let routes = fleet.list("/routes").iter();
        routes.filter(|route| mode(route) == wanted).count()
    };
    json!({"on": count("on"), "observing": count("observing"), "probing": count("probing"), "off": count("off")})
}

fn summary(fleet: &Value) -> String {
    let modes = modes(fleet);
    let count = |pointer| modes.whole(pointer).unwrap_or(0);
    let agents = fleet
        .list("/agents")
        .iter()
        .filter(|it| attached(it))
        .count();
    let rate: f64 = fleet
        .list("/routes")
        .iter()
        .filter_map(|route| route.number("/figures/calls_per_s"))
        .sum();
    let rate = if agents == 0 {
        "no agents are attached".to_owned()
    } else {
        format!("{}, {} calls/s", agents_in_words(agents), prefixed(rate))
    };
    format!(
        "{} routes hedging, {} observing, {} probing, {} off; {rate}; {}",
        count("/on"),
        count("/observing"),
        count("/probing"),
        count("/off"),
        fleet.whole("/at").map(date).unwrap_or_default()
    )
}

/// What needs a person, gravest first, as on the overview.
pub(super) fn needs(fleet: &Value) -> Vec<Need> {
    let mut needs = Vec::new();
    store(fleet, &mut needs);
    alerts(fleet, &mut needs);
    stuck(fleet, &mut needs);
    kills(fleet, &mut needs);
    refusals(fleet, &mut needs);
    agents(fleet, &mut needs);
    needs
}

fn store(fleet: &Value, needs: &mut Vec<Need>) {
    if let Some(problem) = fleet.text("/controller/write_problem") {
        needs.push(Need {
            kind: "store",
            about: "the controller".into(),
            words: format!("does not take writes: {}", clean(problem)),
            grave: true,
        });
    }
}

fn alerts(fleet: &Value, needs: &mut Vec<Need>) {
    let firing = |alert: &&Value| alert.text("/phase") == Some("firing");
    let inhibited =
        |route: &Value| {
            fleet.list("/alerts").iter().filter(firing).any(|alert| {
                alert.text("/rule") == Some("SharedSlowdown") && alert["route"] == *route
            })
        };
    for alert in fleet.list("/alerts").iter().filter(firing) {
        let rule = alert.text_or_dash("/rule");
        let inhibited = rule == "HedgingDisabled" && inhibited(&alert["route"]);
        // Somebody has said that they know.
        let known = alert["silenced"].is_number() || alert["acknowledged"].is_object();
        if !inhibited && !known {
            needs.push(Need {
                kind: "alert",
                about: format!("{rule} {}", route_name(&alert["route"])),
                words: alert.text_or_dash("/summary"),
                grave: true,
            });
        }
    }
}

fn stuck(fleet: &Value, needs: &mut Vec<Need>) {
    for route in fleet.list("/routes") {
        if route.text("/mode/reason") == Some("too_many_changes") {
            needs.push(Need {
                kind: "release",
                about: route_name(&route["route"]),
                words: "changed too often by itself and stays off until a person releases it (`hedgerow deps release`)".into(),
                grave: true,
            });
        }
    }
}

fn kills(fleet: &Value, needs: &mut Vec<Need>) {
    for kill in fleet
        .list("/kills")
        .iter()
        .filter(|it| it.is("/state/engaged"))
    {
        let (n, m) = acked(kill);
        needs.push(Need {
            kind: "kill switch",
            about: kill_scope(kill),
            words: format!(
                "by {}: {} ({n} of {m} agents hold it)",
                kill.text_or_dash("/state/actor/name"),
                kill.text_or_dash("/state/reason"),
            ),
            grave: false,
        });
    }
}

/// n of m.
pub(super) fn acked(view: &Value) -> (u64, u64) {
    let count = |pointer| view.whole(pointer).unwrap_or(0);
    (count("/acked/n"), count("/acked/m"))
}

fn refusals(fleet: &Value, needs: &mut Vec<Need>) {
    for route in fleet.list("/routes") {
        let refusals = route.list("/refusals");
        if let Some(first) = refusals.first() {
            needs.push(Need {
                kind: "refusal",
                about: route_name(&route["route"]),
                words: format!(
                    "{} refused the newest directive: {}",
                    agents_in_words(refusals.len()),
                    first.text_or_dash("/1")
                ),
                grave: false,
            });
        }
    }
}

fn agents(fleet: &Value, needs: &mut Vec<Need>) {
    for (state, words) in [
        ("stale", "attached but silent for two heartbeats"),
        (
            "lost",
            "gone without a goodbye; they fall back to a small budget of their own",
        ),
    ] {
        let agents = fleet.list("/agents").iter();
        let n = agents.filter(|it| it.text("/state") == Some(state)).count();
        if n > 0 {
            needs.push(Need {
                kind: "agents",
                about: agents_in_words(n),
                words: words.into(),
                grave: false,
            });
        }
    }
}

pub(super) fn agents_in_words(n: usize) -> String {
    match n {
        1 => "1 agent".into(),
        n => format!("{n} agents"),
    }
}

/// A share with its sign.
pub(super) fn share(value: f64) -> String {
    format!("{} %", percent(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> Value {
        json!({
            "at": 1_772_373_787_000_u64,
            "routes": [
                {"route": {"dependency": "catalog", "operation": "get"},
                 "mode": {"mode": "off", "reason": "errors"}, "words": "off: error rate 6.1 % > 5 %",
                 "since": 1_772_373_600_000_u64, "tries_again": 1_772_373_827_000_u64, "refusals": []},
                {"route": {"dependency": "cart", "operation": "add"},
                 "mode": {"mode": "off", "reason": "policy"}, "words": "off: by its policy"},
                {"route": {"dependency": "search", "operation": "q"}, "mode": {"mode": "on"},
                 "figures": {"calls_per_s": 1250.0}, "refusals": [["id", "too old"]]},
            ],
            "kills": [{"state": {"scope": {"scope": "dependency", "dependency": "cart"},
                "engaged": true, "actor": {"name": "ada"}, "reason": "4711"}, "acked": {"n": 1, "m": 2}}],
            "alerts": [
                {"phase": "firing", "rule": "HedgingDisabled", "summary": "s",
                 "route": {"dependency": "catalog", "operation": "get"}, "silenced": null},
                {"phase": "firing", "rule": "ReplicaSlow", "silenced": 3,
                 "route": {"dependency": "catalog", "operation": "get"}},
            ],
            "agents": [{"state": "live"}, {"state": "stale"}, {"state": "left"}],
            "controller": {"write_problem": null},
        })
    }

    #[test]
    fn u01_what_needs_a_person_comes_first() {
        let shown = shown(&fleet(), Paint::none());
        assert_eq!(shown.code, exit::PERSON);
        let kinds: Vec<_> = shown.data["needs_a_person"]
            .as_array()
            .unwrap()
            .iter()
            .map(|need| need["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["alert", "kill switch", "refusal", "agents"]);
        for said in [
            "HedgingDisabled catalog get",
            "by ada: 4711 (1 of 2 agents hold it)",
            "catalog get  off: error rate 6.1 % > 5 %  3 min 7 s ago  in 40 s",
            "1 routes hedging, 0 observing, 0 probing, 2 off; 2 agents, 1.25 k calls/s",
        ] {
            assert!(shown.text.contains(said), "{said}: {}", shown.text);
        }
        assert!(!shown.text.contains("by its policy"), "{}", shown.text);
    }

    #[test]
    fn u01_a_calm_fleet_says_so() {
        let shown = shown(&json!({"at": 0}), Paint::none());
        assert_eq!(shown.code, exit::FINE);
        assert!(
            shown.text.starts_with("nothing needs a person"),
            "{}",
            shown.text
        );
        assert!(
            shown.text.contains("no agents are attached"),
            "{}",
            shown.text
        );
    }
}
