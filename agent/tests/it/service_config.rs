//! gRPC service configs, read as policies.

use std::time::Duration;

use hedgerow_agent::integrations::service_config::{ServiceConfig, ServiceConfigError, Taken};
use hedgerow_agent::integrations::tonic::GrpcVerdicts;
use hedgerow_agent::{Intent, Verdict};
use tonic::Code;

const MS: Duration = Duration::from_millis(1);

/// One of each.
const WHOLE: &str = r#"{
    "loadBalancingConfig": [{ "round_robin": {} }],
    "methodConfig": [
        {
            "name": [{ "service": "shop.Catalog", "method": "Get" }],
            "timeout": "1.5s",
            "hedgingPolicy": {
                "maxAttempts": 4,
                "hedgingDelay": "0.015s",
                "nonFatalStatusCodes": ["UNAVAILABLE", "internal", 10]
            }
        },
        {
            "name": [{ "service": "shop.Catalog" }],
            "waitForReady": true,
            "hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": ".5s" }
        },
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"]
            }
        }
    ],
    "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1239 }
}"#;

fn problems(json: &str) -> Vec<String> {
    match ServiceConfig::parse(json) {
        Err(ServiceConfigError::Fields(problems)) => {
            problems.iter().map(ToString::to_string).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_method_has_the_entry_that_fits_it_best() {
    let config = ServiceConfig::parse(WHOLE).unwrap();
    let get = config.method("/shop.Catalog/Get").unwrap();
    assert_eq!(get.timeout(), Some(1500 * MS));
    let hedging = get.hedging().unwrap();
    assert_eq!((hedging.attempts().get(), hedging.delay()), (3, 15 * MS));
    assert_eq!(
        hedging.non_fatal(),
        [Code::Unavailable, Code::Internal, Code::Aborted]
    );
    let others = config.method("/shop.Catalog/List").unwrap();
    assert_eq!(others.hedging().unwrap().delay(), 500 * MS);
    assert_eq!(others.timeout(), None, "an entry is taken whole");
    let elsewhere = config.method("/shop.Basket/Add").unwrap();
    assert_eq!(
        elsewhere.hedging(),
        None,
        "who retries did not say it may run twice"
    );
}

#[test]
fn the_policy_says_what_can_be_said() {
    let config = ServiceConfig::parse(WHOLE).unwrap();
    let policy = config.policy("catalog").unwrap();
    assert_eq!(policy.intent(), Intent::Hedge);
    assert_eq!(policy.budget().get(), 0.123);
    assert_eq!(policy.threshold_min(), Some(15 * MS));
    assert_eq!(policy.threshold_max(), Some(500 * MS));
    assert_eq!(
        (policy.attempts().get(), policy.hedge_on_error()),
        (3, true)
    );
    let list = config.policy_for("catalog", "/shop.Catalog/List").unwrap();
    assert_eq!((list.attempts().get(), list.hedge_on_error()), (2, false));
    let get = config.policy_for("catalog", "/shop.Catalog/Get").unwrap();
    assert_eq!(get.threshold_max(), Some(15 * MS), "a route of its own");
    let other = config.policy_for("catalog", "/shop.Basket/Add").unwrap();
    assert_eq!(other.intent(), Intent::Observe);
    assert!(config.policy("not a name").is_err());
    assert_eq!(config.retry_throttling().unwrap().max_tokens(), 10);

    let at_once = r#"{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 2}}],
        "retryThrottling": {"maxTokens": 1000, "tokenRatio": 2}}"#;
    let policy = ServiceConfig::parse(at_once).unwrap().policy("a").unwrap();
    assert_eq!(
        (policy.threshold_min(), policy.threshold_max()),
        (None, None)
    );
    assert_eq!(policy.budget().get(), 0.25);

    let nothing = ServiceConfig::parse("{}").unwrap();
    assert_eq!(nothing.policy("a").unwrap().intent(), Intent::Observe);
    assert!(nothing.notes().is_empty());
}

#[test]
fn what_is_not_taken_as_it_is_meant_is_named_and_nothing_else() {
    let config = ServiceConfig::parse(WHOLE).unwrap();
    let notes: Vec<_> = config
        .notes()
        .iter()
        .map(|note| (note.path.as_str(), note.taken))
        .collect();
    let first = "methodConfig[0].hedgingPolicy";
    assert_eq!(
        notes,
        [
            (&*format!("{first}.maxAttempts"), Taken::Differently),
            (&*format!("{first}.hedgingDelay"), Taken::Differently),
            (&*format!("{first}.nonFatalStatusCodes"), Taken::Differently),
            (
                "methodConfig[1].hedgingPolicy.hedgingDelay",
                Taken::Differently
            ),
            ("methodConfig[1].waitForReady", Taken::NotAtAll),
            ("methodConfig[2].retryPolicy", Taken::NotAtAll),
            ("retryThrottling.maxTokens", Taken::NotAtAll),
            ("retryThrottling.tokenRatio", Taken::Differently),
            ("loadBalancingConfig", Taken::NotAtAll),
        ]
    );
    let shown: Vec<_> = config.notes().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown[0],
        "methodConfig[0].hedgingPolicy.maxAttempts: taken differently: 4 attempts are held to 3"
    );
    assert!(
        shown[7].ends_with("; 0.1239 is cut to 0.123, as gRPC does"),
        "{}",
        shown[7]
    );
}

#[test]
fn non_fatal_statuses_let_other_attempts_go_on_and_others_end_the_call() {
    let config = ServiceConfig::parse(WHOLE).unwrap();
    let get = config.method("/shop.Catalog/Get").unwrap();
    let verdicts = get.hedging().unwrap().verdicts(GrpcVerdicts::new());
    for (code, expected) in [
        (Code::Ok, Verdict::Good),
        (Code::Unavailable, Verdict::Retryable),
        (Code::Aborted, Verdict::Retryable),
        (Code::Unknown, Verdict::Fatal),
        (Code::NotFound, Verdict::NegativeAnswer),
        (Code::ResourceExhausted, Verdict::PushBack),
        (Code::Cancelled, Verdict::Dropped),
    ] {
        assert_eq!(verdicts.of(code, false), expected, "{code:?}");
    }
}

#[test]
fn what_cannot_stand_is_named_by_its_path_all_at_once() {
    let bad = r#"{
        "methodConfig": [
            {
                "name": [{ "method": "Get" }, 7, { "service": 5 }],
                "timeout": "2 s",
                "hedgingPolicy": {
                    "maxAttempts": 1,
                    "hedgingDelay": "15ms",
                    "nonFatalStatusCodes": ["SORRY", 0]
                },
                "retryPolicy": {}
            },
            { "hedgingPolicy": { "hedgingDelay": 0.015 } },
            { "name": [{ "service": "a", "method": "b" }, { "service": "a", "method": "b" }] }
        ],
        "retryThrottling": { "maxTokens": 1001, "tokenRatio": 0.0001 }
    }"#;
    let code = "expected a gRPC status other than OK, by name or number, such as \"UNAVAILABLE\"";
    let duration = "expected a duration of 0 s or more in seconds, with at most nine decimals, such \
                    as \"0.015s\"";
    let policy = "methodConfig[0].hedgingPolicy";
    assert_eq!(
        problems(bad),
        [
            "methodConfig[0]: both hedgingPolicy and retryPolicy; expected at most one of them"
                .to_owned(),
            format!("{policy}.maxAttempts: 1; expected a whole number of at least 2"),
            format!("{policy}.hedgingDelay: \"15ms\"; {duration}"),
            format!("{policy}.nonFatalStatusCodes[0]: \"SORRY\"; {code}"),
            format!("{policy}.nonFatalStatusCodes[1]: 0; {code}"),
            format!("methodConfig[0].timeout: \"2 s\"; {duration}"),
            "methodConfig[0].name[0]: a method without its service; expected both, or neither"
                .to_owned(),
            "methodConfig[0].name[1]: 7; expected an object".to_owned(),
            "methodConfig[0].name[2].service: 5; expected a service's name, such as \
             \"shop.Catalog\""
                .to_owned(),
            "methodConfig[1].hedgingPolicy.maxAttempts: missing; expected a whole number of at \
             least 2"
                .to_owned(),
            format!("methodConfig[1].hedgingPolicy.hedgingDelay: 0.015; {duration}"),
            "methodConfig[1].name: missing; expected a list of { \"service\": ..., \"method\": \
             ... }"
                .to_owned(),
            "methodConfig[2].name[1]: named before; expected each method, service and the default \
             once"
                .to_owned(),
            "retryThrottling.maxTokens: 1001; expected a whole number above 0 and at most 1000"
                .to_owned(),
            "retryThrottling.tokenRatio: 0.0001; expected a number above 0, with three decimals, \
             such as 0.1"
                .to_owned(),
        ]
    );
    assert_eq!(problems("[]"), ["(the whole): []; expected an object"]);
    assert!(matches!(
        ServiceConfig::parse("{"),
        Err(ServiceConfigError::Json(_))
    ));
}
