//! What a call tells the span it is made in, by the layer and the exporter that hosts use.

use std::collections::BTreeMap;

use hedgerow_agent::{Agent, Call, Policy, PolicyDraft, Replicas, Route};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tokio::time::timeout;
use tracing::field::Empty;
use tracing::subscriber::DefaultGuard;
use tracing::{Instrument, Span, info_span};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::catalog::hedging_policy;
use crate::paused::{Does, MS, call, warm, warm_by};

/// Exports spans to memory, for this thread.
struct Host {
    exporter: InMemorySpanExporter,
    _provider: SdkTracerProvider,
    _guard: DefaultGuard,
}

impl Host {
    fn new() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
        let guard = tracing_subscriber::registry().with(layer).set_default();
        Self {
            exporter,
            _provider: provider,
            _guard: guard,
        }
    }

    /// What the call told the one span named `basket`.
    fn told(&self) -> BTreeMap<String, String> {
        let spans = self.exporter.get_finished_spans().unwrap();
        let mut baskets = spans.into_iter().filter(|span| span.name == "basket");
        let basket = baskets.next().expect("the span ended");
        assert!(baskets.next().is_none(), "one span");
        self.exporter.reset();
        basket
            .attributes
            .into_iter()
            .filter(|attribute| attribute.key.as_str().starts_with("hedgerow."))
            .map(|attribute| (attribute.key.to_string(), attribute.value.to_string()))
            .collect()
    }
}

/// A span that declares everything a call may tell.
fn declared() -> Span {
    info_span!(
        "basket",
        hedgerow.dependency = Empty,
        hedgerow.operation = Empty,
        hedgerow.crossed = Empty,
        hedgerow.attempts = Empty,
        hedgerow.winner = Empty,
        hedgerow.refused = Empty,
        hedgerow.threshold_ms = Empty,
        hedgerow.replicas = Empty,
    )
}

async fn agent() -> Agent {
    Agent::builder().service("shop").connect().await.unwrap()
}

const ROUTE: [(&str, &str); 2] = [
    ("hedgerow.dependency", "catalog"),
    ("hedgerow.operation", "get"),
];

/// Takes the threshold and the replicas out, whose values are nobody's choice, and compares the rest.
fn assert_told(mut told: BTreeMap<String, String>, replicas: usize, rest: &[(&str, &str)]) {
    let went_to = told.remove("hedgerow.replicas").unwrap();
    let names: Vec<_> = went_to.split(',').collect();
    assert_eq!(names.len(), replicas, "{went_to}");
    assert!(names.iter().all(|name| ["a:1", "b:1"].contains(name)));
    assert!(replicas < 2 || names[0] != names[1], "{went_to}");
    let threshold = told.remove("hedgerow.threshold_ms");
    let threshold: Option<f64> = threshold.map(|ms| ms.parse().unwrap());
    let crossed = told["hedgerow.crossed"] == "true";
    assert_eq!(threshold.is_some(), crossed);
    assert!(threshold.is_none_or(|ms| (10.0..25.0).contains(&ms)));
    let expected = ROUTE.iter().chain(rest);
    let expected: BTreeMap<_, _> = expected
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(told, expected);
}

/// What becomes of a call, and what it tells.
async fn case(
    (host, route): (&Host, &Route),
    (asked, primary, hedge): (Call, Does, Does),
    replicas: usize,
    told: &[(&str, &str)],
) {
    let _ = call(route, asked, primary, hedge)
        .instrument(declared())
        .await;
    assert_told(host.told(), replicas, told);
}

#[tokio::test(start_paused = true)]
async fn a_call_tells_its_span_what_became_of_it() {
    let host = Host::new();
    let route = warm(&agent().await).await;
    let rig = (&host, &route);
    let (soon, slow) = (Does::Answers(MS), Does::Answers(200 * MS));
    let hedged = [("hedgerow.crossed", "true"), ("hedgerow.attempts", "2")];

    let by_hedge = [&hedged[..], &[("hedgerow.winner", "hedge")]].concat();
    case(rig, (Call::idempotent(), Does::Never, soon), 2, &by_hedge).await;

    let by_primary = [&hedged[..], &[("hedgerow.winner", "primary")]].concat();
    case(rig, (Call::idempotent(), slow, Does::Never), 2, &by_primary).await;

    let by_nobody = (
        Call::idempotent().deadline(300 * MS),
        Does::Never,
        Does::Never,
    );
    // The bucket keeps few tokens: earn one.
    for _ in 0..20 {
        call(&route, Call::idempotent(), soon, soon).await.unwrap();
    }
    case(rig, by_nobody, 2, &hedged).await;

    let refused = [
        ("hedgerow.crossed", "true"),
        ("hedgerow.attempts", "1"),
        ("hedgerow.refused", "already_hedge"),
        ("hedgerow.winner", "primary"),
    ];
    let marked = Call::idempotent().already_hedge(true);
    case(rig, (marked, slow, soon), 1, &refused).await;

    let failed = [("hedgerow.crossed", "false"), ("hedgerow.attempts", "1")];
    case(rig, (Call::idempotent(), Does::Fails, soon), 1, &failed).await;
    case(rig, (Call::not_idempotent(), Does::Fails, soon), 1, &failed).await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_tells_nothing() {
    let host = Host::new();
    let route = warm(&agent().await).await;
    let soon = Does::Answers(MS);
    call(&route, Call::idempotent(), soon, soon)
        .instrument(declared())
        .await
        .unwrap();
    assert_eq!(host.told(), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_tells_its_own_span() {
    let host = Host::new();
    let route = warm(&agent().await).await;
    let given_up = call(&route, Call::idempotent(), Does::Never, Does::Never);
    // The span is not the current one when the call's future is dropped.
    let mut given_up = Box::pin(given_up);
    timeout(200 * MS, given_up.as_mut())
        .instrument(declared())
        .await
        .unwrap_err();
    info_span!("another").in_scope(|| drop(given_up));
    let told = [("hedgerow.crossed", "true"), ("hedgerow.attempts", "2")];
    assert_told(host.told(), 2, &told);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_does_not_know_where_else_to_go_says_so() {
    let host = Host::new();
    let agent = agent().await;
    let replicas = Replicas::new([("a:1", None)]).unwrap();
    let route = agent
        .route("catalog", "list")
        .replicas(replicas)
        .hedge_standalone(hedging_policy())
        .build()
        .unwrap();
    for nth in 0..600 {
        let answers = Does::Answers(10 * MS + nth % 20 * MS / 2);
        let _ = call(&route, Call::idempotent(), answers, answers).await;
    }
    let slow = Does::Answers(200 * MS);
    call(&route, Call::idempotent(), slow, slow)
        .instrument(declared())
        .await
        .unwrap();
    assert_eq!(host.told()["hedgerow.refused"], "no_replica");
}

#[tokio::test(start_paused = true)]
async fn a_call_says_why_it_was_not_hedged_once_more() {
    let host = Host::new();
    let draft = PolicyDraft {
        attempts: 3,
        hedge_on_error: true,
        ..hedging_policy().into()
    };
    let route = warm_by(&agent().await, Policy::try_from(draft).unwrap()).await;
    let rig = (&host, &route);
    let slow = Does::Answers(200 * MS);
    let told = [
        ("hedgerow.crossed", "true"),
        ("hedgerow.attempts", "2"),
        ("hedgerow.refused", "no_replica"),
        ("hedgerow.winner", "primary"),
    ];
    case(rig, (Call::idempotent(), slow, Does::Never), 2, &told).await;
    let told = [
        ("hedgerow.crossed", "false"),
        ("hedgerow.attempts", "1"),
        ("hedgerow.refused", "already_hedge"),
    ];
    let marked = Call::idempotent().already_hedge(true);
    case(rig, (marked, Does::Fails, slow), 1, &told).await;
}

#[cfg(feature = "tracing-opentelemetry")]
#[tokio::test(start_paused = true)]
async fn a_span_that_declared_nothing_is_told_the_same() {
    let host = Host::new();
    let route = warm(&agent().await).await;
    call(&route, Call::idempotent(), Does::Never, Does::Answers(MS))
        .instrument(info_span!("basket"))
        .await
        .unwrap();
    let told = [
        ("hedgerow.crossed", "true"),
        ("hedgerow.attempts", "2"),
        ("hedgerow.winner", "hedge"),
    ];
    assert_told(host.told(), 2, &told);
}
