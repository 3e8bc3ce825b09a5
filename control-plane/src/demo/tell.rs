//! What a person watching the terminal is told. It goes to standard error: standard output is for
//! the phases' JSON.

#![expect(clippy::print_stderr, reason = "this is the demo's voice")]

use std::io::{IsTerminal, Write};

use super::phase::Phase;

/// A line.
pub(crate) fn say(words: &str) {
    eprintln!("{words}");
}

/// A heading.
pub(crate) fn heading(words: &str) {
    eprintln!("\n── {words}");
}

/// The present state, overwritten each second on a terminal and kept to every fifth elsewhere.
pub(crate) fn progress(second: u64, of: Option<u64>, words: &str) {
    let time = of.map_or_else(
        || format!("{second:>3} s"),
        |of| format!("{second:>3}/{of} s"),
    );
    let mut output = std::io::stderr();
    if output.is_terminal() {
        let _ = write!(output, "\r\x1b[2K   {time}  {words}");
        let _ = output.flush();
    } else if second.is_multiple_of(5) {
        eprintln!("   {time}  {words}");
    }
}

/// Ends a progress line.
pub(crate) fn progress_done() {
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
}

/// What the fleet did in a phase, in words.
pub(crate) fn summary(phase: &Phase) {
    let ms = |value: Option<f64>| value.map_or("–".into(), |v| format!("{v:.0} ms"));
    let percent =
        |value: Option<f64>| value.map_or("–".into(), |v| format!("{:.1} %", v * 100.0));
    eprintln!(
        "   {} calls: {} hedged, of which {} won; p99 {} with hedging, {} without (held out)",
        phase.calls,
        percent(phase.hedge_rate),
        percent(phase.win_rate),
        ms(phase.p99_ms),
        ms(phase.p99_holdout_ms),
    );
    eprintln!(
        "   the servers saw {} more requests than there were calls",
        percent(phase.seen.extra_load)
    );
    if let Some(replica) = &phase.replica {
        eprintln!("   named: {replica}");
    }
    if let Some(after) = phase.off_after_s {
        eprintln!("   hedging went off after {after:.1} s ({})", phase.reason);
    }
    if let Some(after) = phase.on_after_s {
        eprintln!("   hedging came back by itself after {after:.1} s");
    }
}
