//! What is told and begun over the API, with a real agent that makes calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_agent::{Agent, Call, Replicas};
use hedgerow_control_plane::auth;
use hedgerow_core::view::RouteView;
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::directive::Mode;
use reqwest::{Method, Response};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{errors, problem};
use crate::running::{Running, SHOP_TOKEN, hedging, route};

const UTILISATION: &str = "/api/v1/dependencies/catalog/utilisation";
const DUPLICATES: &str = "/api/v1/routes/catalog/get/duplicates";
const SWITCHBACK: &str = "/api/v1/routes/catalog/get/switchback";

/// A controller, an agent whose calls are hedged, and a way to ask.
pub(super) struct Steered {
    pub(super) running: Running,
    token: String,
    http: reqwest::Client,
    calls: Vec<JoinHandle<()>>,
}

impl Steered {
    pub(super) async fn start() -> Self {
        let running = Running::start().await;
        running.set_policy(hedging(0.08)).await;
        let agent = Agent::builder()
            .service("shop")
            .controller(running.grpc())
            .token(SHOP_TOKEN.into())
            .connect()
            .await
            .unwrap();
        let replicas = Replicas::new([("a", None::<&str>), ("b", None)]).unwrap();
        let calls = agent.route("catalog", "get").replicas(replicas);
        let calls = calls.build().unwrap();
        let attempts = Arc::new(AtomicU64::new(0));
        let callers = (0..4).map(|_| {
            let (calls, attempts) = (calls.clone(), Arc::clone(&attempts));
            tokio::spawn(async move {
                loop {
                    let attempts = Arc::clone(&attempts);
                    let _ = calls
                        .call(Call::idempotent(), move |_| {
                            // One attempt in twenty is slow, a call's or its hedge's.
                            let number = attempts.fetch_add(1, Ordering::Relaxed);
                            let ms = if number.is_multiple_of(20) { 20 } else { 2 };
                            async move {
                                tokio::time::sleep(Duration::from_millis(ms)).await;
                                Ok::<(), std::io::Error>(())
                            }
                        })
                        .await;
                }
            })
        });
        let token = auth::new_api_token(running.app.store(), "ci", Role::Operator, None)
            .await
            .unwrap();
        let steered = Self {
            calls: callers.collect(),
            token: token.expose_secret().to_owned(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            running,
        };
        steered.until("it hedges", |it| it.mode == Mode::On).await;
        steered
    }

    pub(super) async fn send(&self, method: Method, path: &str, body: &Value) -> Response {
        let address = self.running.app.http_address();
        self.http
            .request(method, format!("http://{address}{path}"))
            .bearer_auth(&self.token)
            .json(body)
            .send()
            .await
            .unwrap()
    }

    async fn route(&self) -> Value {
        let path = "/api/v1/routes/catalog/get";
        let answer = self.send(Method::GET, path, &json!({})).await;
        answer.json().await.unwrap()
    }

    async fn until(&self, what: &str, holds: impl Fn(&RouteView) -> bool) {
        self.running
            .until(what, |it| {
                it.route(&route()).filter(|view| holds(view)).map(|_| ())
            })
            .await;
    }

    pub(super) async fn stop(self) {
        for caller in self.calls {
            caller.abort();
        }
        self.running.app.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_utilisation_told_over_the_api_cuts_the_budget_for_as_long_as_it_holds() {
    let steered = Steered::start().await;
    let tell = async |value: Value, valid: f64| {
        let body = json!({"utilisation": value, "valid_s": valid});
        let answer = steered.send(Method::PUT, UTILISATION, &body).await;
        assert_eq!(answer.status(), 200);
    };
    let budget = |view: &RouteView| view.figures.map(|it| it.budget);
    tell(json!(0.72), 3_600.0).await;
    steered
        .until("two fifths of the budget at most", |it| {
            budget(it).is_some_and(|budget| budget <= 0.0321)
        })
        .await;
    let view = steered.route().await;
    assert_eq!(view["utilisation"]["value"], 0.72);
    assert_eq!(view["figures"]["utilisation"], 0.72);
    tell(json!(0.9), 3.0).await;
    steered
        .until("nothing", |it| {
            budget(it) == Some(0.0) && it.words.contains("nothing is hedged: utilisation 0.90")
        })
        .await;
    steered
        .until("it is forgotten", |it| {
            it.words.contains("utilisation unknown since ") && budget(it) > Some(0.0)
        })
        .await;
    tell(Value::Null, 60.0).await;
    steered
        .until("taken back", |it| it.utilisation.is_none())
        .await;
    steered.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_executed_twice_is_put_beside_the_hedges_or_refused_with_the_field() {
    let steered = Steered::start().await;
    let body = json!({"executed": 3, "over_s": 10});
    let answer = steered.send(Method::PUT, DUPLICATES, &body).await;
    assert_eq!(answer.status(), 200);
    let told: Value = answer.json().await.unwrap();
    assert_eq!(
        (&told["executed"], &told["over_ms"]),
        (&json!(3), &json!(10_000.0))
    );
    assert_eq!(steered.route().await["duplicates"], told);
    for (body, field) in [
        (json!({"executed": -1, "over_s": 10}), "executed"),
        (json!({"over_s": 10}), "executed"),
        (json!({"executed": 3, "over_s": 9}), "over_s"),
        (json!({"executed": 3, "over_s": 301}), "over_s"),
        (json!({"executed": 3}), "over_s"),
        (json!({"executed": 3, "over_s": 10, "hedges": 1}), "hedges"),
    ] {
        let answer = steered.send(Method::PUT, DUPLICATES, &body).await;
        let problem = problem(answer, 422).await;
        assert_eq!(errors(&problem)[0].0, field, "{body}");
    }
    let nowhere = "/api/v1/routes/catalog/put/duplicates";
    problem(steered.send(Method::PUT, nowhere, &body).await, 404).await;
    steered.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switchback_begins_over_the_api_shows_in_its_route_and_ends_by_an_order() {
    let steered = Steered::start().await;
    let body = json!({"rounds": 3, "reason": "is it the load?"});
    let answer = steered.send(Method::POST, SWITCHBACK, &body).await;
    assert_eq!(answer.status(), 200);
    let started: Value = answer.json().await.unwrap();
    assert_eq!(started["rounds"], 3);
    let view = &steered.route().await["switchback"];
    assert_eq!(view["ends"], started["ends"]);
    assert_eq!(view["by"]["name"], "token:ci");
    assert_eq!(view["reason"], "is it the load?");
    assert_eq!(
        (&view["rounds_done"], &view["hedging"]),
        (&json!(0), &json!(true))
    );
    assert_eq!(
        (&view["ended"], &view["result"]),
        (&Value::Null, &Value::Null)
    );
    let twice = problem(steered.send(Method::POST, SWITCHBACK, &body).await, 409).await;
    assert_eq!(twice["type"], "urn:hedgerow:problem:not-now");

    let reason = json!({"reason": "seen enough"});
    let answer = steered.send(Method::DELETE, SWITCHBACK, &reason).await;
    assert_eq!(answer.status(), 200);
    let view = &steered.route().await["switchback"];
    assert_eq!(view["ended"], "stopped by token:ci");
    problem(steered.send(Method::DELETE, SWITCHBACK, &reason).await, 409).await;
    let path = "/api/v1/audit?dependency=catalog";
    let audit = steered.send(Method::GET, path, &json!({})).await;
    let lines: Value = audit.json().await.unwrap();
    let actions: Vec<&str> = lines["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["action"].as_str().unwrap())
        .filter(|action| action.starts_with("switchback."))
        .collect();
    // Newest first; the end itself may be on its way to the store.
    assert!(
        actions.ends_with(&["switchback.stop", "switchback.start"]),
        "{actions:?}"
    );
    steered.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switchback_that_a_controller_left_behind_is_ended_in_the_record() {
    let steered = Steered::start().await;
    let body = json!({"reason": "is it the load?"});
    let answer = steered.send(Method::POST, SWITCHBACK, &body).await;
    let started: Value = answer.json().await.unwrap();
    assert_eq!(started["rounds"], 10, "where nothing is said");
    for caller in &steered.calls {
        caller.abort();
    }
    let running = steered.running.restarted().await;
    let store = running.app.store();
    crate::standing::eventually("the record says so", async || {
        let row = sqlx::query_scalar::<_, String>(
            "SELECT after_value FROM audit WHERE action = 'switchback.end' \
             AND target = 'catalog get'",
        )
        .fetch_optional(store.pool())
        .await
        .unwrap();
        row.as_deref() == Some("lost")
    })
    .await;
    running.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_stand_is_refused_field_by_field() {
    let steered = Steered::start().await;
    for (body, field) in [
        (json!({"valid_s": 60}), "utilisation"),
        (json!({"utilisation": "much", "valid_s": 60}), "utilisation"),
        (json!({"utilisation": 1.1, "valid_s": 60}), "utilisation"),
        (json!({"utilisation": -0.1, "valid_s": 60}), "utilisation"),
        (json!({"utilisation": 0.5}), "valid_s"),
        (json!({"utilisation": 0.5, "valid_s": 0.5}), "valid_s"),
        (json!({"utilisation": 0.5, "valid_s": 3601}), "valid_s"),
        (json!({"utilisation": 0.5, "valid_s": 60, "x": 1}), "x"),
    ] {
        let refused = problem(steered.send(Method::PUT, UTILISATION, &body).await, 422).await;
        let found = errors(&refused);
        assert!(found.len() == 1 && found[0].0 == field, "{body}: {found:?}");
        assert!(found[0].1.contains("expected"), "{found:?}");
    }
    for (body, field) in [
        (json!({"rounds": 10}), "reason"),
        (json!({"rounds": 2, "reason": "x"}), "rounds"),
        (json!({"rounds": 61, "reason": "x"}), "rounds"),
        (json!({"rounds": -1, "reason": "x"}), "rounds"),
        (json!({"rounds": null, "reason": "x"}), "rounds"),
        (json!({"round": 3, "reason": "x"}), "round"),
    ] {
        let refused = problem(steered.send(Method::POST, SWITCHBACK, &body).await, 422).await;
        let found = errors(&refused);
        assert!(found.len() == 1 && found[0].0 == field, "{body}: {found:?}");
        assert!(found[0].1.contains("expected"), "{found:?}");
    }
    let nobody = json!({"utilisation": 0.5, "valid_s": 60});
    let path = "/api/v1/dependencies/nobody/utilisation";
    problem(steered.send(Method::PUT, path, &nobody).await, 404).await;
    steered.stop().await;
}
