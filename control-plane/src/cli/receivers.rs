//! `hedgerow receivers`: where notices go, and whether they arrive.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::alerts::moment;
use super::connect::ConnectArgs;
use super::exit;
use super::output::figures::span;
use super::output::look::Look as _;
use super::output::table::{Cell, Table};
use super::output::{Colour, OutputArgs, Paint, Shown, WatchArgs};
use crate::client::Path;

/// `hedgerow receivers`.
#[derive(Debug, Subcommand)]
pub(super) enum Receivers {
    /// All receivers, and how they do.
    List(List),
    /// Send a test notice the real way and show the answer's status.
    Test(Test),
}

impl Receivers {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List(it) => it.run().await,
            Self::Test(it) => it.run().await,
        }
    }
}

/// `hedgerow receivers list`.
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl List {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let look = async || {
            let receivers = client.list(&Path::new(["receivers"])).await?;
            let text = table(&receivers, Paint::for_stdout());
            Ok(Shown::fine(Value::Array(receivers), text))
        };
        self.watch.show(look).await
    }
}

fn table(receivers: &[Value], paint: Paint) -> String {
    let mut table = Table::new(&[
        "RECEIVER",
        "KIND",
        "TO",
        ">WAITING",
        ">GIVEN UP",
        "DELIVERED",
        "LAST ERROR",
    ]);
    for receiver in receivers {
        let count = |pointer| receiver.whole(pointer).unwrap_or(0);
        let bad = |n: u64| (n > 0).then_some(Colour::Bad);
        let delivered = match receiver.whole("/delivered") {
            None => Cell::none("nothing yet"),
            Some(_) => moment(receiver, "/delivered"),
        };
        table.row(vec![
            Cell::new(receiver.text_or_dash("/name")),
            Cell::new(receiver.text_or_dash("/kind")),
            Cell::new(receiver.text_or_dash("/to")),
            Cell::new(count("/waiting").to_string()),
            Cell::new(count("/given_up").to_string()).coloured(bad(count("/given_up"))),
            delivered,
            Cell::new(receiver.text("/last_error").unwrap_or_default()),
        ]);
    }
    if table.is_empty() {
        return "no receiver: alerts are on the page only; [[receiver]] in the controller's settings makes one".into();
    }
    table.text(paint)
}

/// `hedgerow receivers test`.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Its name.
    #[arg(value_name = "RECEIVER")]
    name: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Test {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.connect.client()?;
        let path = Path::new(["receivers", &self.name, "test"]);
        let answer = client
            .send(Method::POST, &path, &json!({}), None)
            .await?
            .body;
        self.output.show(&outcome(&self.name, answer))
    }
}

fn outcome(name: &str, answer: Value) -> Shown {
    let delivered = answer.is("/delivered");
    let took = answer.whole("/took_ms").map(|ms| {
        if ms < 1000 {
            format!(" after {ms} ms")
        } else {
            format!(" after {}", span(ms))
        }
    });
    let text = format!(
        "{name}: {} ({}){}",
        if delivered {
            "delivered"
        } else {
            "not delivered"
        },
        answer.text_or_dash("/status"),
        took.unwrap_or_default()
    );
    Shown {
        data: answer,
        text,
        code: if delivered { exit::FINE } else { exit::ERROR },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u11_a_test_that_does_not_arrive_is_an_error_with_the_answers_status() {
        let shown = outcome(
            "pager",
            json!({"delivered": false, "status": "503", "took_ms": 12}),
        );
        assert_eq!(shown.text, "pager: not delivered (503) after 12 ms");
        assert_eq!(shown.code, exit::ERROR);
        let shown = outcome(
            "pager",
            json!({"delivered": true, "status": "204", "took_ms": 2000}),
        );
        assert_eq!(shown.text, "pager: delivered (204) after 2 s");
        assert_eq!(shown.code, exit::FINE);
    }
}
