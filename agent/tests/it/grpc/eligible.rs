//! What is hedged at all, and what each attempt is told of the deadline.

use std::time::Duration;

use hedgerow_agent::integrations::service_config::ServiceConfig;
use hedgerow_agent::integrations::tonic::{HedgedChannel, HedgedChannelBuilder};
use hedgerow_agent::{Agent, PolicyDraft, Replicas, Route};
use tonic::{Code, Request};

use super::shop::{Failing, GetRequest, Item, Plan, Replica, list};
use super::{CatalogClient, DEADLINE, Rig};
use crate::warm::{self, THRESHOLD, all_freed, answered, eventually};

const MS: Duration = Duration::from_millis(1);

/// Far beyond the threshold.
fn slow(rig: &Rig) {
    for replica in &rig.replicas {
        replica.does(Plan {
            takes: 3 * THRESHOLD,
            ..Plan::default()
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_a_method_that_is_not_listed_is_never_hedged() {
    let mut rig = Rig::reads(DEADLINE).await;
    slow(&rig);
    for _ in 0..3 {
        rig.client.put(Item::default()).await.unwrap();
    }
    let totals = rig.route.snapshot().totals;
    assert_eq!((totals.not_eligible, totals.hedged), (3, 0), "{totals:?}");
    assert_eq!(rig.requests(), 3, "one request a call");
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_what_cannot_be_sent_again_is_never_hedged_though_listed() {
    let set = |channel: HedgedChannelBuilder| channel.all_idempotent().request_bytes_max(1024);
    let mut rig = Rig::with(DEADLINE, set).await;
    slow(&rig);
    let item = |id| Item {
        id,
        ..Item::default()
    };
    let several = tokio_stream::iter([item(1), item(2), item(3)]);
    let answer = rig.client.import(several).await.unwrap();
    assert_eq!(answer.into_inner().id, 3, "the stream arrived whole");
    // One that the client itself does not know the end of yet.
    let later = async_stream(vec![item(4), item(5)]);
    let answer = rig.client.import(later).await.unwrap();
    assert_eq!(answer.into_inner().id, 5);
    let large = GetRequest {
        id: 7,
        padding: vec![1; 2000],
    };
    assert_eq!(rig.client.get(large).await.unwrap().into_inner().id, 7);
    let totals = rig.route.snapshot().totals;
    assert_eq!((totals.not_eligible, totals.hedged), (3, 0), "{totals:?}");
    assert_eq!(rig.requests(), 3, "one request a call");
    all_freed(&rig.route).await;
}

/// A stream with a pause before each item.
fn async_stream(items: Vec<Item>) -> impl tokio_stream::Stream<Item = Item> + Send + 'static {
    futures::stream::unfold(items.into_iter(), |mut items| async {
        tokio::time::sleep(20 * MS).await;
        let item = items.next()?;
        Some((item, items))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_config_says_what_is_hedged_and_for_how_long() {
    let config = r#"{ "methodConfig": [{
        "name": [{ "service": "shop.v1.Catalog", "method": "Get" }],
        "timeout": "5s",
        "hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "0.1s" }
    }] }"#;
    let config = ServiceConfig::parse(config).unwrap();
    let set = |channel: HedgedChannelBuilder| channel.service_config(config);
    let mut rig = Rig::with(DEADLINE, set).await;
    slow(&rig);
    rig.client.get(GetRequest::default()).await.unwrap();
    rig.client.put(Item::default()).await.unwrap();
    let totals = rig.route.snapshot().totals;
    assert_eq!((totals.not_eligible, totals.hedged), (1, 1), "{totals:?}");
    let mut timeouts = timeouts(&rig);
    timeouts.sort_unstable();
    // The hedge's, the primary's, and the other method's: the route's own.
    let [hedge, primary, other] = timeouts.as_slice() else {
        panic!("{timeouts:?}");
    };
    assert!(*hedge + 100 * MS <= *primary, "{timeouts:?}");
    assert!(*primary <= Duration::from_secs(5), "{timeouts:?}");
    assert!(*other > Duration::from_secs(5) && *other <= DEADLINE);
    all_freed(&rig.route).await;
}

/// Three attempts, and another at once for UNAVAILABLE.
const THREE: &str = r#"{
    "methodConfig": [{
        "name": [{ "service": "shop.v1.Catalog" }],
        "hedgingPolicy": {
            "maxAttempts": 3,
            "hedgingDelay": "0.300s",
            "nonFatalStatusCodes": ["UNAVAILABLE"]
        }
    }],
    "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.25 }
}"#;

async fn by_three() -> Rig {
    let config = ServiceConfig::parse(THREE).unwrap();
    let draft = PolicyDraft {
        holdout: 0.0,
        error_limit: 0.5,
        ..config.policy("catalog").unwrap().into()
    };
    let policy = draft.try_into().unwrap();
    Rig::by(policy, DEADLINE, |channel| channel.service_config(config)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_config_of_three_attempts_sends_three() {
    let mut rig = by_three().await;
    for replica in &rig.replicas {
        replica.does(Plan {
            takes: Duration::from_secs(2),
            ..Plan::default()
        });
    }
    rig.client.get(GetRequest::default()).await.unwrap();
    assert_eq!((rig.requests(), rig.hedges()), (3, 2));
    assert!(rig.replicas.iter().all(|it| it.seen().len() == 1));
    eventually("two losers saw their reset", || {
        rig.resets() + u64::from(rig.route.snapshot().effective.watched_losers) >= 2
    })
    .await;
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_is_not_fatal_sends_the_next_attempt_and_others_do_not() {
    let mut rig = by_three().await;
    for (code, requests) in [(Code::Unavailable, 2), (Code::Internal, 1)] {
        let before = rig.requests();
        answered(&rig.route, 20).await;
        for replica in &rig.replicas {
            let fails = Failing {
                code,
                message: "the primary",
                push_back: false,
            };
            let primary = Plan {
                fails: Some(fails),
                ..Plan::default()
            };
            replica.does_each(primary, Plan::default());
        }
        let answer = rig.client.get(GetRequest::default()).await;
        assert_eq!(answer.is_ok(), code == Code::Unavailable, "{answer:?}");
        assert_eq!(rig.requests() - before, requests);
    }
    all_freed(&rig.route).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requests_own_timeout_is_the_deadline_of_all_its_attempts() {
    let mut rig = Rig::reads(DEADLINE).await;
    slow(&rig);
    let mut request = Request::new(GetRequest::default());
    request.set_timeout(Duration::from_secs(3));
    rig.client.get(request).await.unwrap();
    let timeouts = timeouts(&rig);
    assert_eq!(timeouts.len(), 2, "{timeouts:?}");
    let longest = timeouts.iter().max().unwrap();
    let shortest = timeouts.iter().min().unwrap();
    assert!(*longest <= Duration::from_secs(3), "{timeouts:?}");
    assert!(*shortest + 100 * MS <= *longest, "{timeouts:?}");
}

/// What was left of the deadline when each request was sent.
fn timeouts(rig: &Rig) -> Vec<Duration> {
    let seen = rig.replicas.iter().flat_map(Replica::seen);
    seen.map(|seen| {
        let text = seen.timeout.expect("every attempt is told");
        let micros = text.strip_suffix('u').expect("under 100 seconds");
        Duration::from_micros(micros.parse().unwrap())
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_can_have_a_route_of_its_own() {
    let rig = Rig::reads(DEADLINE).await;
    let replicas = list(&rig.replicas);
    let own = warm::route(&replicas, DEADLINE).await;
    let others = warm::route(&replicas, DEADLINE).await;
    let started = own.snapshot().totals.started;
    let channel = HedgedChannel::builder(others.clone(), replicas)
        .all_idempotent()
        .method_route("/shop.v1.Catalog/Get", own.clone())
        .build()
        .unwrap();
    let mut client = CatalogClient::new(channel);
    let before = others.snapshot().totals.started;
    client.get(GetRequest::default()).await.unwrap();
    client.put(Item::default()).await.unwrap();
    assert_eq!(own.snapshot().totals.started - started, 1);
    assert_eq!(others.snapshot().totals.started - before, 1);
}

#[tokio::test]
async fn a_method_that_is_no_path_is_refused() {
    let list = Replicas::new([("a:1", None)]).unwrap();
    let agent = Agent::builder().connect().await.unwrap();
    let route = agent.route("catalog", "get").build().unwrap();
    for method in ["Get", "shop.v1.Catalog/Get", "/shop.v1.Catalog", "/shop/"] {
        let built = HedgedChannel::builder(route.clone(), list.clone())
            .idempotent([method])
            .build();
        assert_eq!(
            built.unwrap_err().to_string(),
            format!("method {method:?}: expected its path, as in \"/package.Service/Method\"")
        );
    }
}

/// Its route would send calls where the channel knows nobody, or the channel follow a list that
/// nobody picks from.
#[tokio::test]
async fn a_route_that_picks_from_another_list_is_refused() {
    let names = || Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
    let list = names();
    let agent = Agent::builder().connect().await.unwrap();
    let with = |operation, list: Option<&Replicas>| {
        let route = agent.route("catalog", operation);
        match list {
            Some(list) => route.replicas(list.clone()),
            None => route,
        }
        .build()
        .unwrap()
    };
    let (right, none, looks_alike) = (
        with("right", Some(&list)),
        with("none", None),
        with("looks-alike", Some(&names())),
    );
    let built = |route: &Route, of_method: &Route| {
        HedgedChannel::builder(route.clone(), list.clone())
            .method_route("/shop.v1.Catalog/Get", of_method.clone())
            .build()
    };
    assert!(built(&right, &right).is_ok());
    for wrong in [none, looks_alike] {
        for refused in [built(&wrong, &right), built(&right, &wrong)] {
            let message = refused.unwrap_err().to_string();
            let expected = format!("route {}: picks from other replicas", wrong.key());
            assert!(message.starts_with(&expected), "{message}");
        }
    }
}
