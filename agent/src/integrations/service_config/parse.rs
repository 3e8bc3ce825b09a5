//! From JSON to a checked service config.

use std::time::Duration;

use serde_json::{Map, Value};

use super::fields::{DURATION, Findings, duration, join};
use super::note::{ServiceConfigError, Taken};
use super::{MethodRule, ServiceConfig, hedging, throttling};

/// Fields of a service config that have no meaning for hedging, and why.
const OF_CONFIG: &[(&str, &str)] = &[
    ("loadBalancingPolicy", BALANCING),
    ("loadBalancingConfig", BALANCING),
    (
        "healthCheckConfig",
        "replicas are judged by the answers they give",
    ),
];
const BALANCING: &str = "attempts go to the less loaded of two of the route's replicas";

/// The same for a method.
const OF_METHOD: &[(&str, &str)] = &[
    (
        "retryPolicy",
        "retries after a failure are no hedges, and who retries did not say that a call may run \
         twice at once: name the method idempotent, or give it a hedgingPolicy",
    ),
    ("waitForReady", MESSAGES),
    ("maxRequestMessageBytes", MESSAGES),
    ("maxResponseMessageBytes", MESSAGES),
];
const MESSAGES: &str = "set it on the generated client or on the endpoint";

pub(super) fn parse(json: &str) -> Result<ServiceConfig, ServiceConfigError> {
    let value: Value = serde_json::from_str(json).map_err(ServiceConfigError::Json)?;
    let mut findings = Findings::default();
    let mut config = ServiceConfig::default();
    if let Some(fields) = findings.object("(the whole)", &value) {
        read(&mut findings, &mut config, fields);
    }
    if findings.problems.is_empty() {
        config.notes = findings.notes;
        Ok(config)
    } else {
        Err(ServiceConfigError::Fields(findings.problems))
    }
}

fn read(findings: &mut Findings, config: &mut ServiceConfig, fields: &Map<String, Value>) {
    if let Some(methods) = fields.get("methodConfig")
        && let Some(methods) = findings.array("methodConfig", methods)
    {
        for (nth, entry) in methods.iter().enumerate() {
            method_config(findings, config, &format!("methodConfig[{nth}]"), entry);
        }
    }
    if let Some(value) = fields.get("retryThrottling") {
        config.throttling = throttling::read(findings, "retryThrottling", value);
    }
    let read = ["methodConfig", "retryThrottling"];
    findings.leave_out("", fields, &read, OF_CONFIG);
}

fn method_config(findings: &mut Findings, config: &mut ServiceConfig, path: &str, value: &Value) {
    let Some(fields) = findings.object(path, value) else {
        return;
    };
    let both = fields.contains_key("hedgingPolicy") && fields.contains_key("retryPolicy");
    if both {
        findings.problem(
            path,
            "both hedgingPolicy and retryPolicy",
            "at most one of them",
        );
    }
    let hedging_path = join(path, "hedgingPolicy");
    let hedging = fields
        .get("hedgingPolicy")
        .and_then(|value| hedging::read(findings, &hedging_path, value));
    let timeout = fields
        .get("timeout")
        .and_then(|value| timeout(findings, &join(path, "timeout"), value));
    findings.leave_out(
        path,
        fields,
        &["name", "hedgingPolicy", "timeout"],
        OF_METHOD,
    );
    let rule = MethodRule { timeout, hedging };
    let names_path = join(path, "name");
    let names = findings.required(
        &names_path,
        fields.get("name"),
        "a list of { \"service\": ..., \"method\": ... }",
        Value::as_array,
    );
    let Some(names) = names else { return };
    if names.is_empty() {
        findings.note(&names_path, Taken::NotAtAll, "the entry is for no method");
    }
    for (nth, name) in names.iter().enumerate() {
        let path = format!("{names_path}[{nth}]");
        name_rule(findings, config, &path, name, &rule);
    }
}

fn timeout(findings: &mut Findings, path: &str, value: &Value) -> Option<Duration> {
    findings.expect(path, value, DURATION, duration)
}

/// Puts the rule where its name belongs.
fn name_rule(
    findings: &mut Findings,
    config: &mut ServiceConfig,
    path: &str,
    value: &Value,
    rule: &MethodRule,
) {
    let Some(fields) = findings.object(path, value) else {
        return;
    };
    findings.leave_out(path, fields, &["service", "method"], &[]);
    let before = findings.problems.len();
    let mut text = |name: &str, expected| {
        let value = fields.get(name)?;
        findings.expect(&join(path, name), value, expected, Value::as_str)
    };
    let service = text("service", "a service's name, such as \"shop.Catalog\"");
    let method = text("method", "a method's name, such as \"Get\"");
    if findings.problems.len() > before {
        return;
    }
    let rule = rule.clone();
    // An empty text is what protobuf calls absent.
    let (service, method) = (
        service.filter(|it| !it.is_empty()),
        method.filter(|it| !it.is_empty()),
    );
    let displaced = match (service, method) {
        (Some(service), Some(method)) => {
            config.methods.insert(format!("/{service}/{method}"), rule)
        }
        (Some(service), None) => config.services.insert(service.to_owned(), rule),
        (None, None) => config.default.replace(rule),
        (None, Some(_)) => {
            findings.problem(path, "a method without its service", "both, or neither");
            None
        }
    };
    if displaced.is_some() {
        findings.problem(
            path,
            "named before",
            "each method, service and the default once",
        );
    }
}
