//! The same calls by three clients.

use std::fmt::Write as _;

use hedgerow_sim::outcome::{Phase, PhaseName};
use hedgerow_sim::{Client, Outcome};

use super::table::{ms, share};

/// Head of the Markdown table.
pub(super) const HEAD: &str = "\
| scenario (`hedgerow simulate NAME --compare`) | without hedging: p99 | live p95 alone: p99, hedged | Hedgerow: p99, hedged | what it did |\n\
|---|---|---|---|---|";

/// One scenario's row: while things are wrong, or all of it where nothing is.
pub(super) fn row(name: &str, [bare, plain, hedgerow]: &[Outcome; 3]) -> String {
    let p99 = |outcome: &Outcome| {
        telling(outcome).map_or_else(
            || "-".into(),
            |phase| format!("{} ms", ms(phase.waited.p99_ms)),
        )
    };
    let hedged = |outcome: &Outcome| share(telling(outcome).and_then(|phase| phase.hedge_rate));
    format!(
        "| `{name}`: {} | {} | {}, {} | {}, {} | {} |",
        hedgerow.title,
        p99(bare),
        p99(plain),
        hedged(plain),
        p99(hedgerow),
        hedged(hedgerow),
        did(hedgerow)
    )
}

/// The phase that tells: during what goes wrong where something does.
fn telling(outcome: &Outcome) -> Option<&Phase> {
    outcome
        .phase(PhaseName::During)
        .or_else(|| outcome.phases.first())
}

/// What the controller did, in a few words.
fn did(outcome: &Outcome) -> String {
    let it = &outcome.summary;
    let mut said = Vec::new();
    if let Some(after) = it.off_after_s {
        said.push(format!("off after {after:.0} s"));
    }
    if let Some(after) = it.on_after_s {
        said.push(format!("on {after:.0} s after the end"));
    }
    if it.offs == 0 {
        said.push("stays on".into());
    } else if it.offs > 1 {
        said.push(format!("{} offs", it.offs));
    }
    let mut named: Vec<_> = outcome.named.iter().map(|it| it.replica.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    match named.as_slice() {
        [] => {}
        [one] => said.push(format!("names {one}")),
        many => said.push(format!("names {} replicas", many.len())),
    }
    if !outcome.quarantine.is_empty() {
        said.push("leaves agents out".into());
    }
    said.join(", ")
}

/// One scenario, phase by phase.
pub(super) fn text(outcomes: &[Outcome; 3]) -> String {
    let [.., hedgerow] = outcomes;
    let mut text = format!("{}\n{}\n\n", hedgerow.title, hedgerow.about);
    // A `String` takes whatever is written to it.
    let _ = writeln!(
        text,
        "{:<9} {:<18} {:>8} {:>9} {:>8} {:>8} {:>9}",
        "phase", "client", "hedged", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms"
    );
    for phase in &hedgerow.phases {
        for outcome in outcomes {
            let Some(own) = outcome.phase(phase.name) else {
                continue;
            };
            let _ = writeln!(
                text,
                "{:<9} {:<18} {:>8} {:>9} {:>8} {:>8} {:>9}",
                phase.name.as_str(),
                client(outcome.client),
                share(own.hedge_rate),
                ms(own.waited.p50_ms),
                ms(own.waited.p95_ms),
                ms(own.waited.p99_ms),
                ms(own.waited.p999_ms),
            );
        }
    }
    let _ = write!(text, "\nHedgerow: {}", did(hedgerow));
    text
}

fn client(client: Client) -> &'static str {
    match client {
        Client::Bare => "without hedging",
        Client::PlainP95 => "live p95 alone",
        Client::Hedgerow => "Hedgerow",
    }
}
