//! The course of a run in a terminal: a line for each figure, a character for each few seconds.

use std::fmt::Write as _;

use hedgerow_sim::{Outcome, Second};

use super::table::{ms, share};

/// Characters of a line.
const WIDTH: usize = 72;
/// From nothing to most.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Modes, hedge rate and what callers waited; the worst of each few seconds, so that nothing short
/// is lost.
pub(super) fn text(outcome: &Outcome) -> String {
    let span = outcome.seconds.len().div_ceil(WIDTH).max(1);
    let chunks: Vec<_> = outcome.seconds.chunks(span).collect();
    let mut text = String::new();
    if let Some((from, to)) = outcome.trouble_s {
        let line = chunks.iter().map(|chunk| {
            let wrong = chunk
                .iter()
                .any(|it| it.second as f64 > from && it.second as f64 <= to);
            if wrong { '×' } else { ' ' }
        });
        put(&mut text, "wrong", &line.collect::<String>(), "");
    }
    if outcome.seconds.iter().any(|it| it.decided.is_some()) {
        let line: String = chunks.iter().map(|chunk| mode(chunk)).collect();
        put(
            &mut text,
            "mode",
            &line,
            "█ on  ▒ probing  · off  o observing",
        );
    }
    let rate = |it: &Second| (it.calls > 0).then(|| it.hedged as f64 / it.calls as f64);
    let (line, most) = bars(&chunks, rate);
    put(&mut text, "hedged", &line, &format!("to {}", share(most)));
    let (line, most) = bars(&chunks, |it| it.waited_p99_ms);
    put(&mut text, "p99", &line, &format!("to {} ms", ms(most)));
    let (line, most) = bars(&chunks, |it| it.agents_threshold_ms);
    if most.is_some() {
        put(
            &mut text,
            "threshold",
            &line,
            &format!("to {} ms", ms(most)),
        );
    }
    if outcome.seconds.iter().any(|it| !it.utilisation.is_empty()) {
        let busy = |it: &Second| it.utilisation.iter().copied().reduce(f64::max);
        let (line, most) = bars(&chunks, busy);
        put(&mut text, "busy", &line, &format!("to {}", share(most)));
    }
    text.push('\n');
    text
}

fn put(text: &mut String, name: &str, line: &str, note: &str) {
    // A `String` takes whatever is written to it.
    let _ = writeln!(text, "{name:<10} {line:<WIDTH$}  {note}");
}

/// What hedged least in those seconds.
fn mode(chunk: &[Second]) -> char {
    let modes = chunk
        .iter()
        .filter_map(|it| it.decided.as_ref())
        .map(|it| it.mode);
    modes
        .map(|mode| match mode {
            "off" => (0, '·'),
            "probing" => (1, '▒'),
            "observing" => (2, 'o'),
            _ => (3, '█'),
        })
        .min()
        .map_or(' ', |(_, sign)| sign)
}

/// Bars up to the most there was, which is returned.
fn bars(chunks: &[&[Second]], figure: impl Fn(&Second) -> Option<f64>) -> (String, Option<f64>) {
    let worst: Vec<Option<f64>> = chunks
        .iter()
        .map(|chunk| chunk.iter().filter_map(&figure).reduce(f64::max))
        .collect();
    let most = worst.iter().flatten().copied().reduce(f64::max);
    let line = worst
        .iter()
        .map(|value| match (value, most) {
            (Some(value), Some(most)) if most > 0.0 => {
                BARS[((value / most * 7.0).round() as usize).min(7)]
            }
            (Some(_), _) => BARS[0],
            _ => ' ',
        })
        .collect();
    (line, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_reach_to_the_most_and_a_gap_is_a_gap() {
        let empty: [&[Second]; 2] = [&[], &[]];
        assert_eq!(bars(&empty, |_| Some(1.0)), ("  ".to_owned(), None));
    }
}
