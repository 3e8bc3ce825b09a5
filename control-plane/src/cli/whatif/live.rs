//! On a route, over the last minutes, as a controller computes it: the same table as of a file.

use std::time::Duration;

use hedgerow_core::whatif::Percentile;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::units::Budget;
use serde_json::Value;

use super::TABLE_ROWS;
use super::table::{bar, line, padded};
use crate::cli::connect::route_path;
use crate::cli::output::figures::{number, span};
use crate::cli::output::look::Look as _;
use crate::cli::output::{Format, yaml};
use crate::cli::status::share;
use crate::client::Client;
use crate::whatif::figures::column;

/// What is asked.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) dependency: &'a str,
    pub(super) operation: &'a str,
    pub(super) goal: Option<(Percentile, Budget)>,
}

/// The controller's answer.
pub(super) async fn text(
    client: &Client,
    asked: &Asked<'_>,
    format: Format,
) -> anyhow::Result<String> {
    let route = RouteKey::new(asked.dependency, asked.operation)?;
    let mut path = route_path(&route, Some("whatif"));
    if let Some((goal, budget)) = asked.goal {
        path = path
            .with("goal", &goal.to_string())
            .with("budget", &budget.get().to_string());
    }
    let answer = client.get(&path).await?.body;
    Ok(match format {
        Format::Json => serde_json::to_string(&answer)?,
        Format::Yaml => yaml::text(&answer),
        Format::Table => table(&route, &answer, asked.goal),
    })
}

fn table(route: &RouteKey, answer: &Value, goal: Option<(Percentile, Budget)>) -> String {
    let rows = answer.list("/hedged");
    let phi = answer.number("/phi").map_or_else(
        || "not known to share its slowness: too few hedges to tell".to_owned(),
        |phi| format!("found to share {} of its slowness", share(phi)),
    );
    let window = answer.number("/window_ms").map(|ms| span(ms as u64));
    let mut text = format!(
        "{route}: {} attempts over {}, in milliseconds. A call that lasts longer than the delay is hedged;\n\
         its hedge is as slow as any call, and {phi}. What the extra load does is not in it.\n\
         {}\n\n",
        number(answer.number("/attempts").unwrap_or(0.0)),
        window.unwrap_or_default(),
        today(answer),
    );
    line(
        &mut text,
        "delay",
        "extra load",
        &Percentile::SHOWN.map(|percentile| percentile.to_string()),
        [&padded("extra load"), "p99"],
    );
    let alone = Percentile::SHOWN.map(|it| ms(answer["unhedged_ms"].get(it.to_string())));
    line(&mut text, "none", "", &alone, [&bar(0.0), &bar(1.0)]);
    let unhedged = answer["unhedged_ms"]["p99"].as_f64();
    for row in thinned(rows) {
        let load = row.number("/extra_load").unwrap_or(0.0);
        let left = match (row.number("/p99_ms"), unhedged) {
            (Some(hedged), Some(unhedged)) if unhedged > 0.0 => hedged / unhedged,
            // Nothing to compare with.
            _ => 0.0,
        };
        line(
            &mut text,
            &ms(row.get("delay_ms")),
            &share(load),
            &Percentile::SHOWN.map(|it| ms(row.get(format!("{it}_ms")))),
            [&bar(load), &bar(left)],
        );
    }
    if rows.is_empty() {
        text.push_str("\nAll calls take the same: there is no delay that some exceed.");
    }
    let mut text = text.trim_end().to_owned();
    if let Some(goal) = goal {
        text.push_str(&best(answer, goal));
    }
    text
}

/// As many as fit a screen, the first and the last among them.
fn thinned(rows: &[Value]) -> impl Iterator<Item = &Value> {
    let last = rows.len().saturating_sub(1);
    let shown = rows.len().min(TABLE_ROWS);
    (0..shown).map(move |i| &rows[i * last / shown.saturating_sub(1).max(1)])
}

fn today(answer: &Value) -> String {
    let Some(threshold) = answer.number("/threshold_ms") else {
        return "Today nothing is hedged: there is no threshold.".into();
    };
    format!(
        "Today: {} of the calls beyond {} ms, {} of all calls.",
        share(answer.number("/probability").unwrap_or(0.0)),
        number(threshold),
        answer
            .number("/hedge_rate")
            .map_or_else(|| "an unknown share".into(), share)
    )
}

fn best(answer: &Value, (goal, budget): (Percentile, Budget)) -> String {
    let budget = share(budget.get());
    let told = match answer.number("/goal/delay_ms") {
        Some(delay) => format!(
            "{} ms instead of {}.\nHedge {} of the calls that last longer than {} ms: {} extra load.",
            ms(answer.pointer("/goal/goal_ms")),
            ms(answer["unhedged_ms"].get(goal.to_string())),
            share(answer.number("/goal/probability").unwrap_or(0.0)),
            number(delay),
            share(answer.number("/goal/extra_load").unwrap_or(0.0)),
        ),
        None => format!("do not hedge.\n{}.", answer.text_or_dash("/goal/reason")),
    };
    format!("\n\n{goal} at {budget} extra load at most: {told}")
}

fn ms(value: Option<&Value>) -> String {
    let ms = value.and_then(Value::as_f64);
    column(ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn u05_the_live_curve_says_what_it_rests_on_and_where_today_is() {
        let route = RouteKey::new("catalog", "get").unwrap();
        let rows: Vec<_> = (1..=100)
            .map(|i| json!({"delay_ms": i, "extra_load": 0.5 / f64::from(i), "p99_ms": 50 + i, "p99.9_ms": null}))
            .collect();
        let answer = json!({
            "attempts": 12_345, "window_ms": 300_000, "phi": 0.2, "threshold_ms": 21.0,
            "probability": 1.0, "hedge_rate": 0.041,
            "unhedged_ms": {"p50": 10, "p99": 150}, "hedged": rows,
            "goal": {"delay_ms": 30, "probability": 0.556, "extra_load": 0.0278, "goal_ms": 50},
        });
        let goal = ("p99".parse().unwrap(), Budget::new(0.03).unwrap());
        let text = table(&route, &answer, Some(goal));
        for said in [
            "over 5 min",
            "share 20 % of its slowness",
            "Today: 100 % of the calls beyond 21 ms, 4.1 % of all calls.",
            "p99 at 3 % extra load at most: 50 ms instead of 150.",
            "Hedge 55.6 % of the calls that last longer than 30 ms: 2.78 % extra load.",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let delays: Vec<_> = text
            .lines()
            .filter_map(|it| it.split_whitespace().next()?.parse::<u32>().ok())
            .collect();
        assert_eq!(delays.len(), TABLE_ROWS);
        assert_eq!((delays[0], delays[TABLE_ROWS - 1]), (1, 100));
        assert!(text.contains("unknown"), "{text}");
    }
}
