//! What a person watching the terminal is told. It goes to standard error: standard output is for
//! the phases' JSON.

use std::io::{IsTerminal, Write};

use super::phase::Phase;
use super::receiver::Notice;

/// A line. Nobody listening any more is no reason to end.
pub(crate) fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// A heading.
pub(crate) fn heading(words: &str) {
    say(&format!("\n── {words}"));
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
        say(&format!("   {time}  {words}"));
    }
}

/// What the demo's receiver of alerts got, on a line of its own.
pub(crate) fn notice(notice: &Notice) {
    let clear = if std::io::stderr().is_terminal() {
        "\r\x1b[2K"
    } else {
        ""
    };
    let kind = notice.kind.strip_prefix("alert.").unwrap_or(&notice.kind);
    say(&format!(
        "{clear}   the receiver got: {} {kind}: {}",
        notice.rule, notice.summary
    ));
}

/// Ends a progress line.
pub(crate) fn progress_done() {
    if std::io::stderr().is_terminal() {
        say("");
    }
}

/// What the fleet did in a phase, in words.
pub(crate) fn summary(phase: &Phase) {
    let ms = |value: Option<f64>| value.map_or("–".into(), |v| format!("{v:.0} ms"));
    let percent =
        |value: Option<f64>| value.map_or("–".into(), |v| format!("{:.1} %", v * 100.0));
    say(&format!(
        "   {} calls: {} hedged, of which {} won; p99 {} with hedging, {} without (held out)",
        phase.calls,
        percent(phase.hedge_rate),
        percent(phase.win_rate),
        ms(phase.p99_ms),
        ms(phase.p99_holdout_ms)
    ));
    say(&format!(
        "   the servers saw {} more requests than there were calls",
        percent(phase.seen.extra_load)
    ));
    if let Some(replica) = &phase.replica {
        say(&format!("   named: {replica}"));
    }
    if let Some(after) = phase.off_after_s {
        say(&format!(
            "   hedging went off after {after:.1} s ({})",
            phase.reason
        ));
    }
    if let Some(after) = phase.on_after_s {
        say(&format!(
            "   hedging came back by itself after {after:.1} s"
        ));
    }
}
