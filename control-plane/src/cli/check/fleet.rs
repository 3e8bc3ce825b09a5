//! What the fleet's snapshot says of agents, policies, switches and alerts.

use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::PolicyScope;
use serde_json::Value;

use super::Findings;
use super::running::SKEW_MAX_MS;
use crate::cli::agents::Held;
use crate::cli::output::figures::{clean, span};
use crate::cli::output::look::{Look as _, policy_scope, route_name};
use crate::cli::status::{agents_in_words, needs};

/// Names given of many.
const NAMED: usize = 3;

pub(super) fn examine(fleet: &Value, findings: &mut Findings) {
    agents(fleet, findings);
    refusing(fleet, findings);
    skewed(fleet, findings);
    policies(fleet, findings);
    standing(fleet, findings);
    controller(fleet, findings);
}

/// `a, b, c and 4 more`.
fn named(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn agent_name(agent: &Value) -> String {
    format!(
        "{} {}",
        agent.text_or_dash("/service"),
        agent.text_or_dash("/instance")
    )
}

fn agents(fleet: &Value, findings: &mut Findings) {
    let in_state = |state: &str| -> Vec<String> {
        let agents = fleet.list("/agents").iter();
        let agents = agents.filter(|it| it.text("/state") == Some(state));
        agents.map(agent_name).collect()
    };
    let (live, stale) = (in_state("live"), in_state("stale"));
    if live.is_empty() && stale.is_empty() {
        findings.warn(
            "agents",
            "none is attached",
            "link the library in a service and give it a token: `hedgerow agent-token new --service NAME`",
        );
    } else if stale.is_empty() {
        findings.ok(
            "agents",
            format!("{} attached", agents_in_words(live.len())),
        );
    } else {
        findings.fail(
            "agents",
            format!("{} silent: {}", agents_in_words(stale.len()), named(&stale)),
            "look whether these processes hang, and at the network to them",
        );
    }
    let lost = in_state("lost");
    if !lost.is_empty() {
        findings.warn(
            "agents lost",
            format!(
                "{} gone without a goodbye: {}",
                agents_in_words(lost.len()),
                named(&lost)
            ),
            "restarted or killed: nothing; otherwise look at these processes",
        );
    }
}

fn refusing(fleet: &Value, findings: &mut Findings) {
    let refusing: Vec<_> = fleet
        .list("/agents")
        .iter()
        .filter_map(|agent| {
            let reason = Held::of(agent).reason?;
            Some(format!("{}: {reason}", agent_name(agent)))
        })
        .collect();
    if !refusing.is_empty() {
        findings.fail(
            "agents refusing",
            named(&refusing),
            "bring these services up to a version that knows what they refuse, or mend the policy",
        );
    }
}

fn skewed(fleet: &Value, findings: &mut Findings) {
    let skewed: Vec<_> = fleet
        .list("/agents")
        .iter()
        .filter_map(|agent| {
            let skew = agent.pointer("/skew_ms")?.as_i64()?.unsigned_abs();
            (skew > SKEW_MAX_MS).then(|| format!("{} by {}", agent_name(agent), span(skew)))
        })
        .collect();
    if !skewed.is_empty() {
        findings.warn(
            "agents' clocks",
            format!("off: {}", named(&skewed)),
            "set them by NTP; decisions do not depend on it, logs do",
        );
    }
}

/// Policies that do nothing: their routes say so, or there are none.
fn policies(fleet: &Value, findings: &mut Findings) {
    let without: Vec<_> = fleet
        .list("/routes")
        .iter()
        .filter_map(|route| {
            let words = route.text("/words")?.strip_prefix("no effect: ")?;
            Some(format!(
                "{} ({})",
                route_name(&route["route"]),
                clean(words)
            ))
        })
        .collect();
    if !without.is_empty() {
        findings.warn(
            "policies without effect",
            named(&without),
            "`hedgerow deps explain` says more; mend the policy or remove it",
        );
    }
    let routes: Vec<_> = fleet.list("/routes").iter().filter_map(key).collect();
    let idle: Vec<_> = fleet
        .list("/policies")
        .iter()
        .map(policy_scope)
        // Without any route it is agents that are missing, not names that are wrong.
        .filter(|_| !routes.is_empty())
        .filter(|scope| {
            let scope = scope.parse::<PolicyScope>();
            scope.is_ok_and(|scope| !routes.iter().any(|route| scope.covers(route)))
        })
        .collect();
    if !idle.is_empty() {
        findings.warn(
            "policies for nothing",
            format!("no agent reports {}", named(&idle)),
            "is that how services name it? otherwise remove it",
        );
    }
    if without.is_empty() && idle.is_empty() {
        let n = fleet.list("/policies").len();
        findings.ok("policies", format!("{n} in force"));
    }
}

fn key(route: &Value) -> Option<RouteKey> {
    let part = |pointer| route.text(pointer);
    RouteKey::new(part("/route/dependency")?, part("/route/operation")?).ok()
}

/// What `status` says too, but for what was looked at above.
fn standing(fleet: &Value, findings: &mut Findings) {
    let mut any = false;
    for need in needs(fleet) {
        if matches!(need.kind, "agents" | "refusal") {
            continue;
        }
        any = true;
        let found = format!("{}: {}", need.about, need.words);
        let cure = match need.kind {
            "kill switch" => "`hedgerow kill off` when it is over",
            "alert" => "the runbook in deploy/README.md has a part for each rule",
            "release" => "find out what flaps, then `hedgerow deps release`",
            _ => "look at the controller's log",
        };
        if need.grave {
            findings.fail(need.kind, found, cure);
        } else {
            findings.warn(need.kind, found, cure);
        }
    }
    if !any {
        findings.ok("alerts and switches", "nothing fires, no switch is on");
    }
}

fn controller(fleet: &Value, findings: &mut Findings) {
    let count = |pointer| fleet.whole(pointer).unwrap_or(0);
    let (refused, undecodable) = (
        count("/controller/reports_refused"),
        count("/controller/undecodable"),
    );
    if refused + undecodable > 0 {
        findings.warn(
            "reports",
            format!("{refused} refused and {undecodable} unreadable since the controller started"),
            "`hedgerow agents list --odd`, and `agents show` for the last refusal",
        );
    }
    let beyond = count("/controller/routes_beyond_cap");
    if beyond > 0 {
        findings.fail(
            "routes",
            format!("{beyond} beyond the cap are counted together and not hedged"),
            "a service reports names without end, such as addresses with numbers in them: have it name operations",
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Verdict;
    use super::*;

    #[test]
    fn b23_policies_that_do_nothing_are_named() {
        let fleet = json!({
            "at": 0,
            "routes": [{"route": {"dependency": "catalog", "operation": "get"}, "words": "no effect: one replica"}],
            "policies": [
                {"policy": {"dependency": "catalog"}},
                {"policy": {"dependency": "cat*"}},
                {"policy": {"dependency": "cart"}},
            ],
            "agents": [{"service": "shop", "instance": "a", "state": "live", "skew_ms": -1_200_000,
                "routes": [{"sync": {"sync": "refused", "reason": "too old"}}]}],
        });
        let mut findings = Findings::default();
        examine(&fleet, &mut findings);
        let found = |what: &str| {
            let finding = findings.all.iter().find(|it| it.what == what);
            finding.map(|it| (it.verdict, it.found.as_str()))
        };
        assert_eq!(
            found("policies without effect"),
            Some((Verdict::Warn, "catalog get (one replica)"))
        );
        assert_eq!(
            found("policies for nothing"),
            Some((Verdict::Warn, "no agent reports cart"))
        );
        assert_eq!(
            found("agents refusing"),
            Some((Verdict::Fail, "shop a: too old"))
        );
        assert_eq!(
            found("agents' clocks"),
            Some((Verdict::Warn, "off: shop a by 20 min"))
        );
        assert_eq!(
            found("alerts and switches").map(|it| it.0),
            Some(Verdict::Ok)
        );
    }
}
