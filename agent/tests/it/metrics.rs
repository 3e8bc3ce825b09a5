//! What a scrape of the host's registry shows.

use hedgerow_agent::{Agent, Attempt, Call};
use prometheus::{Registry, TextEncoder};

/// What the README says a route costs.
const SERIES_WITHOUT_CALLS: usize = 46;
const SERIES_OF_AN_ARM: usize = 23;

#[test]
fn the_readme_says_what_a_route_costs() {
    let readme = include_str!("../../README.md");
    let said = format!(
        "{SERIES_WITHOUT_CALLS} series, and {SERIES_OF_AN_ARM} more for each arm that had calls"
    );
    assert!(readme.contains(&said), "{said}");
}

#[tokio::test]
async fn b86_the_hosts_registry_shows_the_agents_counters() {
    let registry = Registry::new();
    let agent = Agent::builder()
        .service("shop")
        .registry(registry.clone())
        .connect()
        .await
        .unwrap();
    let route = agent.route("catalog", "get").build().unwrap();
    for _ in 0..7 {
        let attempts = |_: Attempt| async { Ok::<_, ()>(()) };
        route.call(Call::idempotent(), attempts).await.unwrap();
    }
    let _ = route
        .call(Call::idempotent(), |_: Attempt| async {
            Err::<(), _>("no")
        })
        .await;
    let _ = route
        .call(Call::not_idempotent(), |_: Attempt| async {
            Ok::<_, ()>(())
        })
        .await;

    let text = TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let route = r#"dependency="catalog",operation="get""#;
    for line in [
        format!(r#"hedgerow_calls_total{{{route},arm="treated",outcome="answered"}} 7"#),
        format!(r#"hedgerow_calls_total{{{route},arm="treated",outcome="failed"}} 1"#),
        format!(r#"hedgerow_calls_total{{{route},arm="not_eligible",outcome="started"}} 1"#),
        format!(r#"hedgerow_attempts_total{{{route},kind="primary",outcome="sent"}} 8"#),
        format!(r#"hedgerow_attempts_total{{{route},kind="hedge",outcome="won"}} 0"#),
        format!(r#"hedgerow_refused_total{{{route},reason="budget"}} 0"#),
        format!(r#"hedgerow_call_seconds_count{{{route},arm="treated"}} 8"#),
        format!(r#"hedgerow_mode{{{route},mode="observing",reason=""}} 1"#),
        format!("hedgerow_attempts_in_flight{{{route}}} 0"),
        format!("hedgerow_watched_losers{{{route}}} 0"),
        r#"hedgerow_link_state{state="none"} 1"#.to_owned(),
        r#"hedgerow_link_state{state="fallback"} 0"#.to_owned(),
        format!(r#"hedgerow_further_refused_total{{{route},reason="budget"}} 0"#),
        "hedgerow_unreported_routes 0".to_owned(),
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    assert!(
        !text.contains("hedgerow_threshold_seconds{"),
        "no threshold is no zero"
    );
    let lines = |part: &str| text.lines().filter(|line| line.contains(part)).count();
    assert_eq!(
        lines("hedgerow_call_seconds_bucket{"),
        21,
        "an octave apart and +Inf; nobody was held out"
    );
    assert_eq!(
        lines("{dependency=\"catalog\""),
        SERIES_WITHOUT_CALLS - 1 + SERIES_OF_AN_ARM,
        "no threshold yet"
    );
}

#[tokio::test]
async fn a_second_agent_in_the_same_registry_is_an_error_that_says_so() {
    let registry = Registry::new();
    let build = || {
        Agent::builder()
            .service("shop")
            .registry(registry.clone())
            .connect()
    };
    let _first = build().await.unwrap();
    assert!(
        build()
            .await
            .unwrap_err()
            .to_string()
            .starts_with("registry:")
    );
}

#[tokio::test]
async fn settings_that_were_refused_and_an_agent_that_ended_leave_the_registry_as_it_was() {
    let registry = Registry::new();
    let builder = || Agent::builder().registry(registry.clone());
    let no_link = builder().controller("nowhere").token("t".to_owned().into());
    let refused = no_link.connect().await.unwrap_err().to_string();
    assert!(refused.starts_with("controller address:"), "{refused}");
    for _ in 0..2 {
        let agent = builder().connect().await.unwrap();
        let route = agent.route("catalog", "get").build().unwrap();
        drop(agent);
        assert!(!registry.gather().is_empty(), "a route keeps its agent");
        drop(route);
        assert!(registry.gather().is_empty());
    }
}
