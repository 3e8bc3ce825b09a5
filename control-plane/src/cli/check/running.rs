//! A running controller, by its API.

use http::StatusCode;
use serde_json::Value;

use super::{Findings, fleet};
use crate::cli::output::figures::{bytes, clean, now, span};
use crate::cli::output::look::Look as _;
use crate::client::{Client, ClientError, Path};

/// How far two clocks may be apart, in milliseconds, until somebody is confused by it.
pub(super) const SKEW_MAX_MS: u64 = 5_000;

/// What this program is.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Looks at everything that can be seen from here.
pub(super) async fn examine(client: &Client) -> Findings {
    let mut findings = Findings::default();
    if !reachable(client, &mut findings).await {
        findings.unreachable = true;
        return findings;
    }
    transport(client, &mut findings);
    ready(client, &mut findings).await;
    metrics(client, &mut findings).await;
    let asked = now();
    match client.get(&Path::new(["fleet"])).await {
        Ok(answer) => {
            findings.ok("API token", "the controller knows it");
            clock(&answer.body, asked, now(), &mut findings);
            fleet::examine(&answer.body, &mut findings);
        }
        Err(error) => {
            findings.fail(
                "API token",
                first_line(&error),
                "give a token by --token-file or HEDGEROW_API_TOKEN: nothing else can be looked at without",
            );
            return findings;
        }
    }
    process(client, &mut findings).await;
    receivers(client, &mut findings).await;
    findings
}

fn first_line(error: &ClientError) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

async fn reachable(client: &Client, findings: &mut Findings) -> bool {
    match client.plain("healthz").await {
        Ok((status, _)) if status.is_success() => {
            findings.ok("reachable", client.base().as_str());
            true
        }
        Ok((status, _)) => {
            findings.fail(
                "reachable",
                format!("{} answers {status} for healthz", client.base()),
                "is that a controller's address? --url, or HEDGEROW_URL",
            );
            false
        }
        Err(error) => {
            findings.fail(
                "reachable",
                first_line(&error),
                "does it run (`systemctl status hedgerow`)? is the address right (--url)? with a certificate of your own: --ca",
            );
            false
        }
    }
}

fn transport(client: &Client, findings: &mut Findings) {
    let url = client.base();
    if url.scheme() == "https" {
        findings.ok("TLS", "the certificate is good for this address");
    } else if crate::client::is_loopback(url) {
        findings.ok(
            "TLS",
            "none, and none is needed: it does not leave this machine",
        );
    } else {
        findings.warn(
            "TLS",
            "none: tokens and passwords cross the network readable",
            "give the controller a certificate (http_tls in its settings), or use the address of the proxy that ends TLS",
        );
    }
}

/// What `readyz` knows: the store takes writes, the last decision is fresh.
async fn ready(client: &Client, findings: &mut Findings) {
    match client.plain("readyz").await {
        Ok((StatusCode::OK, _)) => {
            findings.ok("store", "takes writes, and the last decision is fresh");
        }
        Ok((_, text)) => findings.fail(
            "store",
            clean(text.trim()),
            "look at the disk's room and rights, and at the controller's log; until then nothing is changed",
        ),
        Err(error) => findings.fail("store", first_line(&error), "look at the controller's log"),
    }
}

async fn metrics(client: &Client, findings: &mut Findings) {
    match client.plain("metrics").await {
        Ok((StatusCode::OK, text)) => {
            let lines = text.lines().filter(|line| !line.starts_with('#')).count();
            findings.ok("metrics", format!("{lines} series are served here"));
        }
        Ok((StatusCode::FORBIDDEN, _)) => findings.warn(
            "metrics",
            "served to the controller's own machine only",
            "if Prometheus is on another: metrics_public = true under [telemetry]",
        ),
        Ok((status, _)) => findings.fail(
            "metrics",
            format!("answered {status}"),
            "look at the controller's log",
        ),
        Err(error) => findings.fail(
            "metrics",
            first_line(&error),
            "look at the controller's log",
        ),
    }
}

/// The snapshot is a second old at most; and it was taken between the question and the answer.
fn clock(fleet: &Value, asked: u64, answered: u64, findings: &mut Findings) {
    let Some(at) = fleet.whole("/at") else {
        return;
    };
    let skew = if at > answered {
        at - answered
    } else {
        asked.saturating_sub(at)
    };
    if skew > SKEW_MAX_MS {
        findings.warn(
            "clock",
            format!(
                "this machine's and the controller's are {} apart",
                span(skew)
            ),
            "set both by NTP: times on pages and in the record are the controller's",
        );
    } else {
        findings.ok("clock", "agrees with this machine's");
    }
}

async fn process(client: &Client, findings: &mut Findings) {
    let process = match client.get(&Path::new(["controller"])).await {
        Ok(answer) => answer.body,
        Err(error) => {
            findings.warn(
                "version",
                first_line(&error),
                "is the controller older than this program?",
            );
            return;
        }
    };
    let field = |name: &str| {
        process
            .get(name)
            .or_else(|| process.get("process")?.get(name))
    };
    match field("version").and_then(Value::as_str) {
        Some(VERSION) => findings.ok("version", VERSION),
        Some(other) => findings.warn(
            "version",
            format!("the controller is {}, this program {VERSION}", clean(other)),
            "use the program of the controller's version: fields may be missing",
        ),
        None => {}
    }
    if let Some(size) = field("store_bytes").and_then(Value::as_u64) {
        findings.ok("store's size", bytes(size));
    }
    let waiting = field("outbox_depth").and_then(Value::as_u64).unwrap_or(0);
    if waiting > 0 {
        findings.warn(
            "notices",
            format!("{waiting} wait to be sent"),
            "`hedgerow receivers list` shows for which receiver",
        );
    }
}

async fn receivers(client: &Client, findings: &mut Findings) {
    let receivers = match client.list(&Path::new(["receivers"])).await {
        Ok(receivers) => receivers,
        Err(error) => {
            findings.warn("receivers", first_line(&error), "");
            return;
        }
    };
    if receivers.is_empty() {
        findings.warn(
            "receivers",
            "none: alerts are on the page only",
            "add a [[receiver]] to the controller's settings",
        );
    }
    for receiver in receivers {
        let name = receiver.text_or_dash("/name");
        let given_up = receiver.whole("/given_up").unwrap_or(0);
        match receiver.text("/last_error") {
            Some(error) => findings.fail(
                "receiver",
                format!("{name} fails: {}", clean(error)),
                "mend it, then `hedgerow receivers test`",
            ),
            None if given_up > 0 => findings.fail(
                "receiver",
                format!("{name} takes notices now; {given_up} were given up before"),
                "look at those alerts: `hedgerow alerts list`",
            ),
            None => findings.ok("receiver", format!("{name} takes notices")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Verdict;
    use super::*;

    #[test]
    fn c19_a_clock_that_is_off_is_a_warning_and_a_slow_answer_is_not() {
        for (at, asked, answered, expected) in [
            (100_000, 100_000, 100_100, Verdict::Ok),
            // A snapshot of a second ago; an answer that took a minute.
            (99_000, 100_000, 100_100, Verdict::Ok),
            (130_000, 100_000, 160_000, Verdict::Ok),
            (110_000, 100_000, 100_100, Verdict::Warn),
            (90_000, 100_000, 100_100, Verdict::Warn),
        ] {
            let mut findings = Findings::default();
            clock(&json!({"at": at}), asked, answered, &mut findings);
            assert_eq!(findings.all[0].verdict, expected, "{at}");
        }
    }
}
