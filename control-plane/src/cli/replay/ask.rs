//! The same, asked of a controller.

use std::time::Duration;

use hedgerow_core::moment::Moment;
use hedgerow_core::whatif::{Percentile, Replay, Row};
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::Policy;
use reqwest::Method;
use serde_json::{Value, json};

use super::table;
use crate::cli::connect::route_path;
use crate::cli::output::look::Look as _;
use crate::client::Client;

/// What the controller says to a policy; without one, to the one in force.
pub(super) async fn text(
    client: &Client,
    route: &RouteKey,
    policy: Option<Policy>,
    hours: f64,
    as_json: bool,
) -> anyhow::Result<String> {
    let mut body = json!({"hours": hours});
    if let Some(policy) = &policy {
        let mut fields = serde_json::to_value(policy)?;
        if let Some(fields) = fields.as_object_mut() {
            // The address says what it is for.
            fields.remove("dependency");
            fields.remove("operation");
        }
        body["policy"] = fields;
    }
    let path = route_path(route, Some("replay"));
    let answer = client.send(Method::POST, &path, &body, None).await?.body;
    if as_json {
        return Ok(serde_json::to_string(&answer)?);
    }
    let replayed = read(&answer);
    anyhow::ensure!(
        !replayed.rows.is_empty(),
        "nothing is stored of {route} in the last {hours} h: expected a route that agents have \
         reported for a minute at least"
    );
    let terms = policy.as_ref().map(table::terms);
    let terms = terms.as_deref().unwrap_or("the policy in force");
    Ok(table::text(route, terms, &replayed))
}

/// The figures, from their JSON.
fn read(answer: &Value) -> Replay {
    let share = |pointer| answer.number(pointer).unwrap_or(0.0);
    let count = |pointer| answer.whole(pointer).unwrap_or(0);
    let percentiles = |of: &str| Percentile::SHOWN.map(|it| ms(answer[of].get(it.to_string())));
    Replay {
        calls: count("/calls"),
        hedge_rate: share("/hedge_rate"),
        hedge_rate_then: share("/hedge_rate_then"),
        unhedged: percentiles("unhedged_ms"),
        hedged: percentiles("hedged_ms"),
        minutes_off: usize::try_from(count("/minutes_off")).unwrap_or(usize::MAX),
        minutes_alerting: usize::try_from(count("/minutes_alerting")).unwrap_or(usize::MAX),
        rows: answer.list("/rows").iter().map(row).collect(),
    }
}

fn row(row: &Value) -> Row {
    Row {
        at: Moment::from_millis(row.whole("/at").unwrap_or(0)),
        calls: row.whole("/calls").unwrap_or(0),
        threshold: ms(row.get("threshold_ms")),
        hedge_rate: row.number("/hedge_rate").unwrap_or(0.0),
        hedge_rate_then: row.number("/hedge_rate_then").unwrap_or(0.0),
        unhedged_p99: ms(row.get("unhedged_p99_ms")),
        hedged_p99: ms(row.get("hedged_p99_ms")),
        off: row
            .get("off")
            .and_then(|off| serde_json::from_value(off.clone()).ok()),
    }
}

fn ms(value: Option<&Value>) -> Option<Duration> {
    let ms = value?.as_f64()?;
    Duration::try_from_secs_f64(ms / 1e3).ok()
}

#[cfg(test)]
mod tests {
    use hedgerow_core::minute::{Known, Minute};
    use hedgerow_core::whatif::replay;
    use hedgerow_protocol::latency::{SparseHistogram, bucket_of};

    use super::*;
    use crate::whatif::replayed::Replayed;

    #[test]
    fn a_replay_reads_as_it_was_written() {
        let bucket = |ms| bucket_of(Duration::from_millis(ms)) as u16;
        let calls = [(bucket(10), 900), (bucket(200), 60)];
        let minute = |at: u64| Minute {
            at: Moment::from_millis(at * 60_000),
            span: Duration::from_mins(1),
            calls: 1_000,
            hedged: 7,
            done: SparseHistogram::try_from_pairs(calls).unwrap(),
            censored: SparseHistogram::default(),
            known: Known {
                errors: Some(0.001),
                phi: None,
                off: None,
            },
        };
        let minutes: Vec<_> = (1..=5).map(minute).collect();
        let policy = Policy::observing("catalog".parse().unwrap());
        let replayed = replay(&minutes, &policy);
        let route = RouteKey::new("catalog", "get").unwrap();
        let read = read(&serde_json::to_value(Replayed::from(&replayed)).unwrap());
        assert_eq!(
            table::text(&route, "x", &read),
            table::text(&route, "x", &replayed)
        );
    }
}
