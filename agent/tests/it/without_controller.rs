//! Nothing the controller does, or fails to do, makes a call fail or wait.

use std::time::{Duration, Instant};

use hedgerow_agent::{Agent, Attempt, Call, ConfigError};
use tokio::net::TcpListener;

use crate::catalog::hedging_policy;

async fn calls_work(agent: &Agent) {
    let route = agent.route("catalog", "get").build().unwrap();
    let began = Instant::now();
    for i in 0..1000 {
        let attempts = move |_: Attempt| async move { Ok::<_, ()>(i) };
        assert_eq!(route.call(Call::idempotent(), attempts).await, Ok(i));
    }
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn p01_a_controller_that_is_away_is_no_error_and_nothing_waits_for_it() {
    // Nobody listens here, and somebody who never says a word there.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = nobody.local_addr().unwrap();
    drop(nobody);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for address in [away, silent.local_addr().unwrap()] {
        let began = Instant::now();
        let agent = Agent::builder()
            .service("shop")
            .controller(format!("http://{address}"))
            .token("token".to_owned().into())
            .connect()
            .await
            .unwrap();
        assert!(began.elapsed() < Duration::from_secs(2));
        calls_work(&agent).await;
        agent.shutdown().await;
        agent.shutdown().await;
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

#[tokio::test]
async fn settings_that_cannot_stand_say_what_was_expected() {
    let plain = Agent::builder()
        .controller("http://controller.example:7420")
        .token("token".to_owned().into());
    let refused = plain.connect().await.unwrap_err().to_string();
    assert!(refused.contains("in the clear"), "{refused}");

    let agent = Agent::builder().service("shop").connect().await.unwrap();
    for (built, message) in [
        (agent.route("", "get").build(), "must not be blank"),
        (
            agent.route("catalog", "get").max_in_flight(0).build(),
            "from 1 to 1000000",
        ),
        (
            agent
                .route("catalog", "get")
                .deadline(Duration::ZERO)
                .build(),
            "from 1 ms to 24 h",
        ),
        (
            agent
                .route("search", "get")
                .hedge_standalone(hedging_policy())
                .build(),
            "another",
        ),
    ] {
        let refused = built.unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
    }
    let first = agent.route("catalog", "get").build().unwrap();
    let second = agent.route("catalog", "get").build();
    assert!(matches!(second, Err(ConfigError::DuplicateRoute(key)) if key == *first.key()));
}

#[tokio::test]
async fn p11_routes_beyond_the_reported_ones_still_work() {
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let routes: Vec<_> = (0..70)
        .map(|i| agent.route("catalog", &format!("op-{i}")).build().unwrap())
        .collect();
    for route in &routes {
        let attempts = |_: Attempt| async { Ok::<_, ()>(()) };
        assert_eq!(route.call(Call::idempotent(), attempts).await, Ok(()));
    }
    assert_eq!(routes[63].snapshot().totals.started, 1);
    // The six that are too many are counted together.
    assert_eq!(routes[69].snapshot().totals.started, 6);
}
