//! What a heatmap shows, in words: which row, which column, and what helps.

use hedgerow_core::view::{Together, Unlike};

use crate::format::{clock, percent, percent_set, significant};

/// Share of slow traffic that hedging carries beyond its budget, at most.
pub(crate) const CARRIED_BEYOND: f64 = 0.05;

/// `9 of 10 replicas`, or all of them.
pub(super) fn of(it: &Together) -> String {
    if it.bad == it.known {
        format!("all {} replicas", it.known)
    } else {
        format!("{} of {} replicas", it.bad, it.known)
    }
}

/// The bad replicas' names; how many of whose cells are bad.
fn rows_words(unlike: &Unlike) -> Option<(String, String)> {
    let first = unlike.rows.first()?;
    let shown = unlike.rows.iter().take(3);
    let names: Vec<&str> = shown.map(|it| it.replica.as_str()).collect();
    let more = unlike.rows.len() - names.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let names = format!("{}{more}", names.join(", "));
    Some((names, format!("{} of {} times", first.bad, first.known)))
}

pub(super) fn slow_words(unlike: Option<&Unlike>, budget: f64) -> String {
    let Some(unlike) = unlike else {
        return "Too little is known to say what is usual.".into();
    };
    let mut out = Vec::new();
    if let Some(now) = unlike.lasting() {
        out.push(format!(
            "A bad column: {} have been slow together since {}. That is a cause they share, and \
             ejecting one of them is no cure.",
            of(now),
            clock(now.from)
        ));
    }
    if let Some((names, times)) = rows_words(unlike) {
        let (is, itself, it) = match unlike.rows.len() {
            1 => ("is", "itself", "it"),
            _ => ("are", "themselves", "them"),
        };
        out.push(format!(
            "A bad row: {names} {is} slow by {itself}, {times}. Eject {it}: hedging can carry at most \
             {} of slow traffic.",
            percent_set(budget + CARRIED_BEYOND)
        ));
    }
    if let Some(over) = unlike.columns.last().filter(|it| !it.lasts) {
        out.push(format!(
            "{} were slow together from {} to {}, by a cause they shared; that is over.",
            capital(&of(over)),
            clock(over.from),
            clock(over.until)
        ));
    }
    if out.is_empty() {
        out.push("No replica stands out, and at no time were most of them slow together.".into());
    }
    out.push(format!(
        "Usual is {} ms; beyond {} ms it is marked.",
        significant(unlike.usual),
        significant(unlike.limit)
    ));
    out.join(" ")
}

pub(super) fn losing_words(unlike: Option<&Unlike>) -> String {
    let Some(unlike) = unlike else {
        return "Too few hedges to say what is usual.".into();
    };
    let mut out = Vec::new();
    if let Some(now) = unlike.lasting() {
        out.push(format!(
            "A bad column: since {} hedges have lost on {}. A second replica is as slow as the first: \
             a cause they share.",
            clock(now.from),
            of(now)
        ));
    }
    if let Some((names, times)) = rows_words(unlike) {
        out.push(format!(
            "A bad row: hedges sent to {names} lose, {times}, where those sent to others win."
        ));
    }
    if let Some(over) = unlike.columns.last().filter(|it| !it.lasts) {
        out.push(format!(
            "Hedges lost on {} from {} to {}; that is over.",
            of(over),
            clock(over.from),
            clock(over.until)
        ));
    }
    if out.is_empty() {
        out.push("Hedges win alike on every replica.".into());
    }
    out.push(format!(
        "Usual is {}; under {} it is marked.",
        percent(unlike.usual),
        percent(unlike.limit)
    ));
    out.join(" ")
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
