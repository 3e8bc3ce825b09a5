//! `hedgerow check`: examines an installation and says what to do. A running controller by its API;
//! its files without one.

mod files;
mod fleet;
mod running;
mod store;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::connect::ConnectArgs;
use super::exit;
use super::output::table::{Cell, Table};
use super::output::{Colour, Paint, Shown, WatchArgs};

/// `hedgerow check`.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Look at the files that this configuration names, without a controller.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Look at this store, without a controller; one may be running on it.
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// End with 5 for warnings too.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Check {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let files = self.config.is_some() || self.store.is_some();
        let client = self.connect.client()?;
        let look = async || {
            let findings = if files {
                files::examine(self.config.as_deref(), self.store.as_deref()).await
            } else {
                running::examine(&client).await
            };
            Ok(findings.shown(self.strict, Paint::for_stdout()))
        };
        self.watch.show(look).await
    }
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// Something that was looked at.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    verdict: Verdict,
    found: String,
    /// What to do; empty: nothing.
    cure: String,
}

/// Everything that was looked at.
#[derive(Debug, Default)]
struct Findings {
    all: Vec<Finding>,
    /// Nobody answers: nothing else could be looked at.
    unreachable: bool,
}

impl Findings {
    fn add(&mut self, what: &'static str, verdict: Verdict, found: impl Into<String>, cure: &str) {
        self.all.push(Finding {
            what,
            verdict,
            found: found.into(),
            cure: cure.to_owned(),
        });
    }

    fn ok(&mut self, what: &'static str, found: impl Into<String>) {
        self.add(what, Verdict::Ok, found, "");
    }

    fn warn(&mut self, what: &'static str, found: impl Into<String>, cure: &str) {
        self.add(what, Verdict::Warn, found, cure);
    }

    fn fail(&mut self, what: &'static str, found: impl Into<String>, cure: &str) {
        self.add(what, Verdict::Fail, found, cure);
    }

    fn shown(&self, strict: bool, paint: Paint) -> Shown {
        let worst = self.all.iter().map(|it| it.verdict).max();
        let code = match worst {
            _ if self.unreachable => exit::UNREACHABLE,
            Some(Verdict::Fail) => exit::PERSON,
            Some(Verdict::Warn) if strict => exit::PERSON,
            _ => exit::FINE,
        };
        Shown {
            data: json!({
                "verdict": worst.unwrap_or(Verdict::Ok).as_str(),
                "findings": self.all.iter().map(Finding::data).collect::<Vec<_>>(),
            }),
            text: self.text(paint),
            code,
        }
    }

    fn text(&self, paint: Paint) -> String {
        let mut table = Table::new(&["CHECK", "IS", "FOUND", "WHAT TO DO"]);
        for finding in &self.all {
            let colour = match finding.verdict {
                Verdict::Ok => Colour::Good,
                Verdict::Warn => Colour::Warn,
                Verdict::Fail => Colour::Bad,
            };
            table.row(vec![
                Cell::new(finding.what),
                Cell::new(finding.verdict.as_str()).coloured(Some(colour)),
                Cell::new(&finding.found),
                Cell::new(&finding.cure),
            ]);
        }
        let count = |verdict| self.all.iter().filter(|it| it.verdict == verdict).count();
        format!(
            "{}\n\n{} ok, {} to look at, {} to mend",
            table.text(paint),
            count(Verdict::Ok),
            count(Verdict::Warn),
            count(Verdict::Fail)
        )
    }
}

impl Finding {
    fn data(&self) -> Value {
        json!({
            "check": self.what,
            "verdict": self.verdict.as_str(),
            "found": self.found,
            "what_to_do": self.cure,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_is_what_it_ends_with() {
        let mut findings = Findings::default();
        findings.ok("a", "x");
        let code = |findings: &Findings, strict| findings.shown(strict, Paint::none()).code;
        assert_eq!(code(&findings, true), exit::FINE);
        findings.warn("b", "y", "do");
        assert_eq!(code(&findings, false), exit::FINE);
        assert_eq!(code(&findings, true), exit::PERSON);
        findings.fail("c", "z", "do that");
        let shown = findings.shown(false, Paint::none());
        assert_eq!(shown.code, exit::PERSON);
        assert!(
            shown.text.ends_with("1 ok, 1 to look at, 1 to mend"),
            "{}",
            shown.text
        );
        assert_eq!(shown.data["findings"][2]["what_to_do"], "do that");
        findings.unreachable = true;
        assert_eq!(code(&findings, false), exit::UNREACHABLE);
    }
}
