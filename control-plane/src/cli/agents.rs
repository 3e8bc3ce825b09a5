//! `hedgerow agents`: who is attached, and what they hold.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::connect::ConnectArgs;
use super::output::figures::{date, now, number, percent};
use super::output::look::{Look as _, route_name};
use super::output::table::{Cell, Table, lines};
use super::output::{Colour, Paint, Shown, WatchArgs};
use super::status::ago;
use crate::client::{Client, Path};

/// `hedgerow agents`.
#[derive(Debug, Subcommand)]
pub(super) enum Agents {
    /// All agents attached, or lost in the last minutes.
    List(List),
    /// One agent: what it holds for each route, and what it should.
    Show(Show),
}

impl Agents {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List(it) => it.run().await,
            Self::Show(it) => it.run().await,
        }
    }
}

/// `hedgerow agents list`.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only those of this service.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Only those that are not as they should be: stale, lost, refusing or behind.
    #[arg(long)]
    odd: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl List {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let mut agents = client.list(&Path::new(["agents"])).await?;
            agents.retain(|agent| {
                let service = self.service.as_deref();
                service.is_none_or(|name| agent.text("/service") == Some(name))
                    && (!self.odd || is_odd(agent))
            });
            let text = table(&agents, now(), Paint::for_stdout());
            Ok(Shown::fine(Value::Array(agents), text))
        };
        self.watch.show(look).await
    }
}

fn is_odd(agent: &Value) -> bool {
    agent.text("/state") != Some("live") || Held::of(agent).applied < agent.list("/routes").len()
}

/// How much of what is wanted an agent holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) applied: usize,
    pub(super) refused: usize,
    /// The first refusal's reason.
    pub(super) reason: Option<String>,
}

impl Held {
    pub(super) fn of(agent: &Value) -> Self {
        let mut held = Self::default();
        for route in agent.list("/routes") {
            match route.text("/sync/sync") {
                Some("applied") => held.applied += 1,
                Some("refused") => {
                    held.refused += 1;
                    held.reason
                        .get_or_insert_with(|| route.text_or_dash("/sync/reason"));
                }
                _ => {}
            }
        }
        held
    }
}

fn colour(state: &str) -> Option<Colour> {
    match state {
        "live" => Some(Colour::Good),
        "stale" => Some(Colour::Warn),
        "lost" => Some(Colour::Bad),
        _ => Some(Colour::Faint),
    }
}

fn table(agents: &[Value], now: u64, paint: Paint) -> String {
    let mut table = Table::new(&[
        "SERVICE", "INSTANCE", "ZONE", "VERSION", "STATE", "HEARD", "REPORTED", ">HOLDS",
        ">SKEW ms", "REFUSED",
    ]);
    for agent in agents {
        let held = Held::of(agent);
        let routes = agent.list("/routes").len();
        let behind = (held.applied < routes).then_some(Colour::Warn);
        let state = agent.text_or_dash("/state");
        let reported = match agent.whole("/reported") {
            None => Cell::none("nothing yet"),
            reported => ago(now, reported),
        };
        table.row(vec![
            Cell::new(agent.text_or_dash("/service")),
            Cell::new(agent.text_or_dash("/instance")),
            Cell::new(agent.text_or_dash("/zone")),
            Cell::new(agent.text_or_dash("/version")),
            Cell::new(&state).coloured(colour(&state)),
            ago(now, agent.whole("/heard")),
            reported,
            Cell::new(format!("{}/{routes}", held.applied)).coloured(behind),
            Cell::figure(agent.number("/skew_ms"), number, "not told"),
            Cell::new(held.reason.unwrap_or_default()).coloured(Some(Colour::Bad)),
        ]);
    }
    if table.is_empty() {
        return "no agents: services link the library and present a token (`hedgerow agent-token new`)".into();
    }
    table.text(paint)
}

/// `hedgerow agents show`.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Its instance, or the beginning of it that no other has.
    #[arg(value_name = "INSTANCE")]
    instance: String,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Show {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let agent = find(&client, &self.instance).await?;
            let text = text(&agent, Paint::for_stdout());
            Ok(Shown::fine(agent, text))
        };
        self.watch.show(look).await
    }
}

/// The newest agent of an instance, or of its beginning.
async fn find(client: &Client, instance: &str) -> anyhow::Result<Value> {
    let wanted = instance.to_lowercase();
    let agents = client.list(&Path::new(["agents"])).await?;
    let fits = |agent: &&Value| {
        let instance = agent.text("/instance").unwrap_or_default();
        instance.to_lowercase().starts_with(&wanted)
    };
    let mut fitting: Vec<_> = agents.iter().filter(fits).collect();
    fitting.sort_by_key(|agent| agent.whole("/connected"));
    let Some(last) = fitting.last() else {
        bail!("no agent {instance} is known: `hedgerow agents list` shows those there are");
    };
    let other = fitting.iter().find(|it| it["instance"] != last["instance"]);
    if let Some(other) = other {
        bail!(
            "{instance} is the beginning of several, {} and {} among them: expected more of it",
            last.text_or_dash("/instance"),
            other.text_or_dash("/instance")
        );
    }
    Ok((*last).clone())
}

fn text(agent: &Value, paint: Paint) -> String {
    let head = format!(
        "{} {}: {}",
        agent.text_or_dash("/service"),
        agent.text_or_dash("/instance"),
        agent.text_or_dash("/state")
    );
    let moment = |pointer| agent.whole(pointer).map(date).unwrap_or_default();
    let count = |pointer| agent.whole(pointer).unwrap_or(0).to_string();
    let skew = agent
        .number("/skew_ms")
        .map(|ms| format!("{} ms", number(ms)));
    let facts = lines([
        ("zone", agent.text_or_dash("/zone")),
        ("version", agent.text_or_dash("/version")),
        ("from", agent.text_or_dash("/peer")),
        ("connected", moment("/connected")),
        ("heard", moment("/heard")),
        ("reported", moment("/reported")),
        ("clock skew", skew.unwrap_or_default()),
        ("reports refused", count("/refused_reports")),
        (
            "last refusal",
            agent.text("/last_refusal").unwrap_or_default().to_owned(),
        ),
        ("reports twice", count("/duplicate_reports")),
    ]);
    let mut table = Table::new(&[
        "ROUTE",
        "DOES",
        "HOLDS",
        ">THRESHOLD ms",
        ">BUDGET %",
        ">REPLICAS",
        "LINK",
        "NOTE",
    ]);
    for route in agent.list("/routes") {
        let sync = route.text_or_dash("/sync/sync");
        let well = (sync != "applied").then_some(Colour::Warn);
        table.row(vec![
            Cell::new(route_name(&route["route"])),
            Cell::new(route.text_or_dash("/mode/mode")),
            Cell::new(sync).coloured(well),
            Cell::figure(route.number("/threshold_ms"), number, "no threshold yet"),
            Cell::figure(route.number("/budget"), percent, ""),
            Cell::figure(route.number("/replicas"), number, ""),
            Cell::new(route.text_or_dash("/link")),
            Cell::new(note(route)),
        ]);
    }
    let head = paint.paint(Colour::Strong, &head);
    if table.is_empty() {
        return format!("{head}\n{facts}\n\nit has reported no route");
    }
    format!("{head}\n{facts}\n\n{}", table.text(paint))
}

fn note(route: &Value) -> String {
    if let Some(reason) = route.text("/sync/reason") {
        return format!("refused: {reason}");
    }
    if let Some(words) = route.text("/quarantine/words") {
        let held = route.is("/quarantine/held");
        let how = if held { "put off" } else { "left out" };
        return format!("{how}: {words}");
    }
    if route.is("/own_off") {
        return "off by its own rule".into();
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent() -> Value {
        json!({
            "service": "shop", "instance": "0192", "state": "live", "version": "1\u{1b}[2J",
            "heard": 1_000, "reported": null, "skew_ms": -1_200_000,
            "routes": [
                {"route": {"dependency": "catalog", "operation": "get"}, "sync": {"sync": "applied"},
                 "mode": {"mode": "on"}, "budget": 0.08, "replicas": 3},
                {"route": {"dependency": "cart", "operation": "add"},
                 "sync": {"sync": "refused", "reason": "too old"}, "own_off": true},
            ],
        })
    }

    #[test]
    fn u09_an_agent_that_refuses_is_said_with_its_reason() {
        let table = table(&[agent()], 3_000, Paint::none());
        for said in [
            "1/2",
            "too old",
            "2 s ago",
            "-1200000",
            "–¹ nothing yet",
            "1\u{FFFD}[2J",
        ] {
            assert!(table.contains(said), "{said}: {table}");
        }
        assert!(is_odd(&agent()));
        let text = text(&agent(), Paint::none());
        assert!(text.contains("refused: too old"), "{text}");
    }
}
