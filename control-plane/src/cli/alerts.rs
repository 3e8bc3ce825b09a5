//! `hedgerow alerts`: what fires, and keeping it quiet while somebody works on it.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::connect::{ConnectArgs, ReasonArg, reason};
use super::output::figures::{date, now, span};
use super::output::look::{Look as _, route_name};
use super::output::table::{Cell, Table};
use super::output::{Colour, OutputArgs, Paint, Shown, WatchArgs};
use super::status::ago;
use crate::client::{Client, Path};

/// `hedgerow alerts`.
#[derive(Debug, Subcommand)]
pub(super) enum Alerts {
    /// Alerts that fire or are pending, those of the last hour, and silences.
    List(List),
    /// Keep notices of matching alerts from receivers, for a time.
    Silence(Silence),
    /// End a silence before its time.
    Unsilence(Unsilence),
    /// Say that somebody works on an alert.
    Ack(Ack),
}

impl Alerts {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List(it) => it.run().await,
            Self::Silence(it) => it.run().await,
            Self::Unsilence(it) => it.run().await,
            Self::Ack(it) => it.run().await,
        }
    }
}

/// `hedgerow alerts list`.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only those that fire.
    #[arg(long)]
    firing: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl List {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let mut alerts = client.list(&Path::new(["alerts"])).await?;
            if self.firing {
                alerts.retain(|alert| alert.text("/phase") == Some("firing"));
            }
            let silences = silences(&client).await?;
            let text = text(&alerts, &silences, now(), Paint::for_stdout());
            Ok(Shown::fine(
                json!({"alerts": alerts, "silences": silences}),
                text,
            ))
        };
        self.watch.show(look).await
    }
}

/// None where the controller knows of no such thing.
async fn silences(client: &Client) -> anyhow::Result<Vec<Value>> {
    match client.list(&Path::new(["silences"])).await {
        Err(error) if error.status() == Some(404) => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}

fn text(alerts: &[Value], silences: &[Value], now: u64, paint: Paint) -> String {
    let mut table = Table::new(&["PHASE", "RULE", "ABOUT", "SINCE", "TOLD", "WHAT", "ALERT"]);
    for alert in alerts {
        table.row(vec![
            phase(alert),
            Cell::new(alert.text_or_dash("/rule")),
            Cell::new(about(alert)),
            ago(now, alert.whole("/since")),
            Cell::new(told(alert)),
            Cell::new(alert.text_or_dash("/summary")),
            Cell::new(alert.text_or_dash("/id")),
        ]);
    }
    let mut text = if table.is_empty() {
        "no alert fires or is pending, and none was in the last hour".into()
    } else {
        table.text(paint)
    };
    let mut table = Table::new(&[">SILENCE", "FOR", "ENDS", "WHO", "WHY"]);
    for silence in silences {
        let ends = silence.whole("/ends");
        let ends = ends.map(|at| format!("in {}", span(at.saturating_sub(now))));
        table.row(vec![
            Cell::new(silence.whole("/id").unwrap_or(0).to_string()),
            Cell::new(matches(silence)),
            ends.map_or_else(|| Cell::none(""), Cell::new),
            Cell::new(silence.text_or_dash("/actor/name")),
            Cell::new(silence.text_or_dash("/reason")),
        ]);
    }
    if !table.is_empty() {
        text = format!("{text}\n\n{}", table.text(paint));
    }
    text
}

fn phase(alert: &Value) -> Cell {
    let phase = alert.text_or_dash("/phase");
    let colour = match phase.as_str() {
        "firing" => Colour::Bad,
        "pending" => Colour::Warn,
        _ => Colour::Faint,
    };
    let quiet = if alert["acknowledged"].is_object() {
        let who = alert.text_or_dash("/acknowledged/actor/name");
        format!(", {who} is on it")
    } else if let Some(id) = alert.whole("/silenced") {
        format!(", silence {id}")
    } else {
        String::new()
    };
    Cell::new(format!("{phase}{quiet}")).coloured(Some(colour))
}

fn about(alert: &Value) -> String {
    let route = route_name(&alert["route"]);
    match alert.text("/replica") {
        Some(replica) => format!("{route} {replica}"),
        None => route,
    }
}

/// What receivers got: `pager ok, chat waits`.
fn told(alert: &Value) -> String {
    let mut said: Vec<String> = Vec::new();
    for delivery in alert.list("/deliveries") {
        let how = match delivery.text("/state") {
            Some("delivered") => "ok",
            Some("waiting") => "waits",
            Some("given_up") => "given up",
            _ => "?",
        };
        let one = format!(
            "{} {} {how}",
            delivery.text_or_dash("/receiver"),
            delivery.text_or_dash("/kind")
        );
        if !said.contains(&one) {
            said.push(one);
        }
    }
    said.join(", ")
}

fn matches(silence: &Value) -> String {
    let said: Vec<_> = ["/rule", "/dependency", "/operation", "/replica"]
        .iter()
        .filter_map(|pointer| silence.text(pointer))
        .collect();
    if said.is_empty() {
        "every alert".into()
    } else {
        said.join(" ")
    }
}

/// `hedgerow alerts silence`.
#[derive(Debug, Args)]
pub(super) struct Silence {
    #[command(flatten)]
    which: Which,
    /// How long, such as 30m, 2h or 1d; a minute to 30 days.
    #[arg(long = "for", value_name = "TIME", value_parser = minutes)]
    minutes: u64,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Which alerts: all of what is named has to fit.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Which {
    /// Only of this rule, such as ReplicaSlow.
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only about this dependency.
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,
    /// Only about this operation of it.
    #[arg(long, value_name = "NAME", requires = "dependency")]
    operation: Option<String>,
    /// Only about this replica.
    #[arg(long, value_name = "NAME")]
    replica: Option<String>,
    /// Every alert there is.
    #[arg(long, conflicts_with_all = ["rule", "dependency", "replica"])]
    every: bool,
}

impl Silence {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let mut body = Map::new();
        for (field, value) in [
            ("rule", self.which.rule),
            ("dependency", self.which.dependency),
            ("operation", self.which.operation),
            ("replica", self.which.replica),
        ] {
            if let Some(value) = value {
                body.insert(field.into(), value.into());
            }
        }
        let what = matches(&Value::Object(body.clone()));
        body.insert("minutes".into(), self.minutes.into());
        body.insert("reason".into(), self.reason.reason.into());
        let client = self.connect.client()?;
        let path = Path::new(["silences"]);
        let answer = client
            .send(Method::POST, &path, &Value::Object(body), None)
            .await?;
        let id = answer.body.whole("/id").unwrap_or_default();
        let text = format!(
            "silence {id}: no notices of {what} for {}; `hedgerow alerts unsilence {id}` ends it",
            span(self.minutes * 60_000)
        );
        self.output.show(&Shown::fine(answer.body, text))
    }
}

/// `hedgerow alerts unsilence`.
#[derive(Debug, Args)]
pub(super) struct Unsilence {
    /// Its number, as `alerts list` shows it.
    #[arg(value_name = "SILENCE")]
    id: u64,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Unsilence {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let id = self.id.to_string();
        let path = Path::new(["silences", &id]);
        let body = json!({"reason": self.reason.reason});
        let answer = client.send(Method::DELETE, &path, &body, None).await?;
        let text = format!("silence {id} is over");
        self.output.show(&Shown::fine(answer.body, text))
    }
}

/// `hedgerow alerts ack`.
#[derive(Debug, Args)]
pub(super) struct Ack {
    /// The alert, as `alerts list` shows it.
    #[arg(value_name = "ALERT")]
    id: String,
    /// What is being done, in a few words.
    #[arg(long, visible_alias = "reason", value_name = "WORDS", value_parser = reason)]
    comment: String,
    /// How long, such as 30m or 2h; without it, until the alert resolves.
    #[arg(long = "for", value_name = "TIME", value_parser = minutes)]
    minutes: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Ack {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let path = Path::new(["alerts", &self.id, "acknowledge"]);
        let mut body = json!({"comment": self.comment});
        if let Some(minutes) = self.minutes {
            body["minutes"] = minutes.into();
        }
        let answer = client.send(Method::POST, &path, &body, None).await?;
        let until = self.minutes.map_or_else(
            || "until it resolves".to_owned(),
            |minutes| format!("for {}", span(minutes * 60_000)),
        );
        let text = format!("{}: acknowledged {until}", self.id);
        self.output.show(&Shown::fine(answer.body, text))
    }
}

/// `30m`, `2h`, `1d`, as minutes.
fn minutes(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "expected a time such as 30m, 2h or 1d, from 1m to 30d";
    let text = text.trim();
    let (number, minutes) = match text.char_indices().next_back() {
        Some((at, 'm')) => (&text[..at], 1),
        Some((at, 'h')) => (&text[..at], 60),
        Some((at, 'd')) => (&text[..at], 24 * 60),
        _ => return Err(EXPECTED.into()),
    };
    let number: u64 = number.trim().parse().map_err(|_| EXPECTED.to_owned())?;
    let minutes = number.saturating_mul(minutes);
    if (1..=30 * 24 * 60).contains(&minutes) {
        Ok(minutes)
    } else {
        Err(EXPECTED.into())
    }
}

/// When something was, for tables that look back on days.
pub(super) fn moment(view: &Value, pointer: &str) -> Cell {
    let at = view.whole(pointer).map(date);
    at.map_or_else(|| Cell::none(""), Cell::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in [("30m", 30), ("2h", 120), ("1d", 1440), ("30d", 43_200)] {
            assert_eq!(minutes(text), Ok(expected));
        }
        for text in [
            "",
            "30",
            "0m",
            "31d",
            "-1h",
            "2 weeks",
            "é",
            "99999999999999999999d",
        ] {
            assert!(minutes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn u10_who_works_on_an_alert_and_what_receivers_got() {
        let alert = |more: Value| {
            let mut alert = json!({"id": "a1", "phase": "firing", "rule": "ReplicaSlow", "since": 0,
                "route": {"dependency": "catalog", "operation": "get"}, "replica": "r1",
                "deliveries": [{"receiver": "pager", "kind": "firing", "state": "given_up"}]});
            alert
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            alert
        };
        let alerts = [
            alert(json!({"acknowledged": {"actor": {"name": "ada"}}})),
            alert(json!({"silenced": 3})),
        ];
        let silences = [
            json!({"id": 3, "rule": "ReplicaSlow", "ends": 60_000, "actor": {"name": "bob"}, "reason": "w"}),
        ];
        let text = text(&alerts, &silences, 0, Paint::none());
        for said in [
            "firing, ada is on it",
            "firing, silence 3",
            "catalog get r1",
            "pager firing given up",
            "3  ReplicaSlow  in 1 min  bob  w",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
