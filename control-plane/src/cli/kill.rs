//! `hedgerow kill`: switches hedging off, and waits until the agents hold that.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::connect::{ConnectArgs, ReasonArg};
use super::exit;
use super::output::figures::{clean, date};
use super::output::look::{Look as _, kill_scope};
use super::output::table::{Cell, Table};
use super::output::{OutputArgs, Paint, Shown, WatchArgs, note};
use super::status::{acked, agents_in_words};
use crate::client::{Client, Path};

/// How often it is looked how many agents hold a switch.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Agents named that do not hold it; of more their number is enough to begin with.
const NAMED: usize = 20;

/// `hedgerow kill`.
#[derive(Debug, Subcommand)]
pub(super) enum Kill {
    /// Switch hedging off, and wait until all agents hold that.
    On(On),
    /// Let hedging go on as its policies say.
    Off(Off),
    /// The switches that are on, and how many agents hold them.
    Show(Show),
}

impl Kill {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::On(it) => it.run().await,
            Self::Off(it) => it.run().await,
            Self::Show(it) => it.run().await,
        }
    }
}

/// For what.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Scope {
    /// One dependency, all its operations.
    #[arg(value_name = "DEPENDENCY")]
    dependency: Option<String>,
    /// Every dependency.
    #[arg(long)]
    everything: bool,
}

impl Scope {
    fn name(&self) -> &str {
        self.dependency.as_deref().unwrap_or("everything")
    }

    fn body(&self, engaged: bool, reason: &str) -> Value {
        match &self.dependency {
            None => json!({"scope": "everything", "engaged": engaged, "reason": reason}),
            Some(name) => {
                json!({"scope": "dependency", "dependency": name, "engaged": engaged, "reason": reason})
            }
        }
    }
}

/// `hedgerow kill on`.
#[derive(Debug, Args)]
pub(super) struct On {
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    reason: ReasonArg,
    /// How long to wait for the agents, in seconds; 0: not at all. The switch stands either way.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `hedgerow kill off`.
#[derive(Debug, Args)]
pub(super) struct Off {
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// `hedgerow kill show`.
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl On {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let body = self.scope.body(true, &self.reason.reason);
        let answer = client
            .send(Method::POST, &Path::new(["kill"]), &body, None)
            .await?;
        let name = self.scope.name();
        unknown(&answer.body, name);
        let within = Duration::from_secs(self.timeout);
        let held = wait(&client, name, within).await.with_context(|| {
            format!("the switch on {name} stands; how many agents hold it could not be seen")
        })?;
        self.output
            .show(&held.shown(name, answer.body.is("/changed")))
    }
}

impl Off {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let body = self.scope.body(false, &self.reason.reason);
        let answer = client
            .send(Method::POST, &Path::new(["kill"]), &body, None)
            .await?;
        let name = self.scope.name();
        unknown(&answer.body, name);
        let text = if answer.body.is("/changed") {
            format!("the switch on {name} is off: hedging goes on as policies say")
        } else {
            format!("nothing to change: there was no switch on {name}")
        };
        self.output.show(&Shown::fine(answer.body, text))
    }
}

/// A switch for what nobody knows stands, and may be a slip of the pen.
fn unknown(answer: &Value, name: &str) {
    if answer.pointer("/known").and_then(Value::as_bool) == Some(false) {
        note(&format!(
            "warning: no agent has reported {name} and no policy is for it; is that its name?"
        ));
    }
}

/// How far a switch has got.
#[derive(Debug, Default)]
struct Held {
    n: u64,
    m: u64,
    /// False: somebody has taken the switch off meanwhile.
    engaged: bool,
    /// Agents that do not hold it.
    missing: Vec<String>,
}

impl Held {
    fn of(fleet: &Value, name: &str) -> Self {
        let engaged = fleet
            .list("/kills")
            .iter()
            .filter(|it| it.is("/state/engaged"));
        let Some(kill) = engaged.into_iter().find(|it| kill_scope(it) == name) else {
            return Self::default();
        };
        let (n, m) = acked(kill);
        Self {
            n,
            m,
            engaged: true,
            missing: if n < m {
                missing(fleet, name)
            } else {
                Vec::new()
            },
        }
    }

    fn all(&self) -> bool {
        !self.engaged || self.n >= self.m
    }

    fn shown(&self, name: &str, changed: bool) -> Shown {
        let Self {
            n,
            m,
            engaged,
            missing,
        } = self;
        let text = if !engaged {
            format!("the switch on {name} was taken off again meanwhile")
        } else {
            let how = if changed { "is on" } else { "was on already" };
            let mut text = format!("the switch on {name} {how}: {n} of {m} agents hold it");
            if n < m {
                text.push_str("; it stands, and these hear of it when they answer again:");
            }
            for agent in missing.iter().take(NAMED) {
                text.push_str(&format!("\n  {agent}"));
            }
            if missing.len() > NAMED {
                let more = agents_in_words(missing.len() - NAMED);
                text.push_str(&format!("\n  and {more} more"));
            }
            text
        };
        Shown {
            data: json!({
                "scope": name, "changed": changed, "engaged": engaged,
                "acked": {"n": n, "m": m}, "missing": missing,
            }),
            text,
            code: if *engaged && n >= m {
                exit::FINE
            } else {
                exit::PERSON
            },
        }
    }
}

/// Agents that should hold a switch and do not.
fn missing(fleet: &Value, name: &str) -> Vec<String> {
    let concerned =
        |route: &&Value| name == "everything" || route.text("/route/dependency") == Some(name);
    let lacks = |agent: &&Value| {
        matches!(agent.text("/state"), Some("live" | "stale"))
            && agent
                .list("/routes")
                .iter()
                .filter(concerned)
                .any(|route| route["held"] != route["wanted"])
    };
    let agents = fleet.list("/agents").iter().filter(lacks);
    agents
        .map(|agent| {
            format!(
                "{} {} ({})",
                agent.text_or_dash("/service"),
                agent.text_or_dash("/instance"),
                agent.text_or_dash("/state")
            )
        })
        .collect()
}

/// Looks until all agents hold it, or time is up.
async fn wait(client: &Client, name: &str, within: Duration) -> anyhow::Result<Held> {
    let begun = Instant::now();
    let mut told = None;
    loop {
        let fleet = client.get(&Path::new(["fleet"])).await?.body;
        let held = Held::of(&fleet, name);
        if held.all() || begun.elapsed() >= within {
            return Ok(held);
        }
        if told != Some(held.n) {
            note(&format!("{} of {} agents hold it ...", held.n, held.m));
            told = Some(held.n);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Show {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let fleet = client.get(&Path::new(["fleet"])).await?.body;
            let kills = fleet.list("/kills").to_vec();
            let text = table(&kills, Paint::for_stdout());
            Ok(Shown::fine(Value::Array(kills), text))
        };
        self.watch.show(look).await
    }
}

fn table(kills: &[Value], paint: Paint) -> String {
    let mut table = Table::new(&["SWITCH ON", ">ACKED", "SINCE", "WHO", "WHY"]);
    for kill in kills.iter().filter(|it| it.is("/state/engaged")) {
        let (n, m) = acked(kill);
        let since = kill.whole("/state/at").map(date);
        table.row(vec![
            Cell::new(kill_scope(kill)),
            Cell::new(format!("{n}/{m}")),
            since.map_or_else(|| Cell::none(""), Cell::new),
            Cell::new(kill.text_or_dash("/state/actor/name")),
            Cell::new(clean(kill.text("/state/reason").unwrap_or_default())),
        ]);
    }
    if table.is_empty() {
        return "no switch is on".into();
    }
    table.text(paint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u08_those_that_do_not_hold_it_are_named() {
        let route = |name: &str, held: u64| json!({"route": {"dependency": name}, "held": held, "wanted": 2});
        let fleet = json!({
            "kills": [{"state": {"scope": {"scope": "dependency", "dependency": "catalog"},
                "engaged": true}, "acked": {"n": 1, "m": 2}}],
            "agents": [
                {"service": "shop", "instance": "a", "state": "live", "routes": [route("catalog", 2), route("cart", 1)]},
                {"service": "shop", "instance": "b", "state": "stale", "routes": [route("catalog", 1)]},
                {"service": "shop", "instance": "c", "state": "lost", "routes": [route("catalog", 1)]},
            ],
        });
        let held = Held::of(&fleet, "catalog");
        assert!(!held.all());
        let shown = held.shown("catalog", true);
        assert_eq!(shown.code, exit::PERSON);
        assert_eq!(
            shown.text,
            "the switch on catalog is on: 1 of 2 agents hold it; it stands, and these hear of it when they answer again:\n  shop b (stale)"
        );
        let gone = Held::of(&fleet, "everything");
        assert!(gone.all() && gone.shown("everything", true).text.contains("meanwhile"));
    }
}
