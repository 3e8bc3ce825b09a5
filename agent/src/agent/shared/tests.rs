use hedgerow_protocol::directive::{LiveValues, Mode, OffReason, Standing};
use hedgerow_protocol::ids::{Epoch, ModeSequence, Revision, Tick};
use hedgerow_protocol::report::Refusal;
use hedgerow_protocol::session::held_hash;
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};

use super::*;
use crate::agent::Agent;
use crate::attempt::Attempt;
use crate::eligibility::Call;
use crate::route::Route;

const S: Duration = Duration::from_secs(1);

async fn agent() -> (Agent, Route) {
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let route = agent.route("catalog", "get").build().unwrap();
    (agent, route)
}

fn directive(operation: &str, revision: u64, mode: Mode) -> Directive {
    let budget = Budget::new(0.08).unwrap();
    Directive {
        route: RouteKey::new("catalog", operation).unwrap(),
        stamp: Stamp {
            epoch: Epoch(1),
            revision: Revision(revision),
            mode_sequence: ModeSequence(1),
        },
        mode,
        live: LiveValues::new(
            Tick(revision),
            Threshold::new(S).ok(),
            Ratio::ONE,
            budget,
            3.0,
        )
        .unwrap(),
        standing: Standing {
            percentile: Quantile::new(0.95).unwrap(),
            holdout: Ratio::ZERO,
            error_limit: Ratio::clamped(0.05),
            threshold_min: None,
            threshold_max: None,
            lease: 30 * S,
            attempts: AttemptLimit::default(),
            hedge_on_error: false,
        },
        probation: vec![],
        start_credit: 0.0,
    }
}

async fn call(route: &Route) {
    let attempts = |_: Attempt| async { Ok::<_, ()>(()) };
    route.call(Call::idempotent(), attempts).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn b45_a_report_is_the_same_until_it_is_acknowledged() {
    let (agent, route) = agent().await;
    let shared = &agent.keeper.shared;
    let collect = |sequence| shared.collect(Sequence(sequence), S, Instant::now());
    call(&route).await;
    let first = collect(1);
    assert_eq!(first.routes[0].treated.count(), 1);
    call(&route).await;
    assert_eq!(collect(1), first, "sent again word for word");
    shared.acknowledged(Sequence(7));
    assert_eq!(collect(1), first, "an answer to something else");
    shared.acknowledged(Sequence(1));
    let second = collect(2);
    assert_eq!(second.routes[0].treated.count(), 1, "what came since");
    assert_eq!(
        second.routes[0].totals.started, 2,
        "counters are cumulative"
    );
}

#[tokio::test(start_paused = true)]
async fn p03_a_refused_directive_says_why_and_the_last_good_one_stays() {
    let (agent, route) = agent().await;
    let shared = &agent.keeper.shared;
    let off = Mode::Off(OffReason::KillSwitch);
    shared
        .apply(directive("get", 5, off), Instant::now())
        .unwrap();
    let mut invalid = directive("get", 6, Mode::On);
    invalid.standing.lease = Duration::ZERO;
    for (refused, reason) in [
        (invalid, "lease:"),
        (
            directive("get", 4, Mode::On),
            "stamp: 1.4.1 is older than 1.5.1",
        ),
        (
            directive("unheard-of", 1, Mode::On),
            "route: catalog unheard-of",
        ),
    ] {
        let told = shared.apply(refused, Instant::now()).unwrap_err();
        assert!(told.starts_with(reason), "{told}");
    }
    assert_eq!(route.snapshot().effective.mode, off);
}

#[tokio::test(start_paused = true)]
async fn p06_what_is_held_is_told_at_every_connect_and_hashed_alike() {
    let (agent, route) = agent().await;
    let shared = &agent.keeper.shared;
    assert_eq!((shared.hello().held.len(), shared.held().len()), (0, 0));
    let on = directive("get", 5, Mode::On);
    shared.apply(on.clone(), Instant::now()).unwrap();
    let held = shared.hello().held;
    assert_eq!(held[0].route, *route.key());
    assert_eq!(
        (held[0].stamp, held[0].mode, held[0].tick),
        (on.stamp, Mode::On, Tick(5))
    );
    let hash = held_hash(shared.held().iter().map(|(route, stamp)| (route, *stamp)));
    assert_eq!(hash, held_hash([(route.key(), on.stamp)]));
}

#[tokio::test(start_paused = true)]
async fn c18_two_agents_in_one_process_are_two() {
    let (first, _route) = agent().await;
    let (second, _other) = agent().await;
    assert_ne!(first.instance(), second.instance());
}

#[tokio::test(start_paused = true)]
async fn c20_the_same_directive_twice_changes_nothing() {
    let (agent, route) = agent().await;
    let shared = &agent.keeper.shared;
    shared
        .apply(directive("get", 5, Mode::On), Instant::now())
        .unwrap();
    let once = route.snapshot().effective;
    shared
        .apply(directive("get", 5, Mode::On), Instant::now())
        .unwrap();
    assert_eq!(route.snapshot().effective, once);
}

#[tokio::test(start_paused = true)]
async fn b62_letting_go_ends_probation() {
    let (agent, route) = agent().await;
    let shared = &agent.keeper.shared;
    let replica: hedgerow_protocol::ids::ReplicaName = "a:1".parse().unwrap();
    let mut on = directive("get", 5, Mode::On);
    on.probation = vec![replica.clone()];
    shared.apply(on, Instant::now()).unwrap();
    assert_eq!(route.state.pool.probation(), [replica]);
    shared.delivered(&BTreeSet::new(), Instant::now());
    assert!(route.state.pool.probation().is_empty());
}

#[tokio::test(start_paused = true)]
async fn s09_routes_and_attempts_print_names_and_not_their_insides() {
    let (_agent, route) = agent().await;
    let attempts = |attempt: Attempt| {
        let printed = format!("{attempt:?}");
        async move { Ok::<_, ()>(printed) }
    };
    let attempt = route.call(Call::idempotent(), attempts).await.unwrap();
    assert!(
        attempt.contains("catalog") && attempt.len() < 500,
        "{attempt}"
    );
    let route = format!("{route:?}");
    assert!(route.contains("catalog") && route.len() < 500, "{route}");
}

/// An agent with 64 routes, all of one dependency.
async fn full_agent() -> (Agent, Vec<Route>) {
    let agent = Agent::builder().service("shop").connect().await.unwrap();
    let route = |n: usize| agent.route("catalog", &format!("get-{n}")).build().unwrap();
    let routes = (0..ROUTES_PER_AGENT_MAX).map(route).collect();
    (agent, routes)
}

#[tokio::test(start_paused = true)]
async fn b72_beyond_64_routes_all_are_counted_together() {
    let (agent, named) = full_agent().await;
    let shared = &agent.keeper.shared;
    assert_eq!(
        shared.routes().len(),
        64,
        "no `__other__` before there is any"
    );
    for n in 0..1000 {
        let beyond = agent.route(&format!("user-{n}"), "get").build().unwrap();
        call(&beyond).await;
        call(&beyond).await;
        assert!(
            beyond.key().is_other(),
            "what its snapshot shows is not its own"
        );
    }
    call(&named[7]).await;
    assert_eq!(shared.unreported_routes(), 1000);
    assert_eq!(shared.routes().len(), 65, "however many names");

    let report = shared.collect(Sequence(1), S, Instant::now());
    assert_eq!(report.check(), Ok(()));
    let of = |key: &RouteKey| report.routes.iter().find(|it| it.route == *key).unwrap();
    let other = of(&RouteKey::other());
    assert_eq!((other.totals.started, other.totals.finished), (2000, 2000));
    assert_eq!(other.treated.count(), 2000);
    assert_eq!(other.effective.mode, Mode::Observing);
    assert_eq!(of(named[7].key()).totals.started, 1);
    shared.acknowledged(Sequence(1));
    let next = shared.collect(Sequence(2), S, Instant::now());
    let other = next.routes.iter().find(|it| it.route.is_other()).unwrap();
    assert_eq!(
        (other.totals.started, other.treated.count()),
        (2000, 0),
        "once"
    );
}

#[tokio::test(start_paused = true)]
async fn b72_beyond_64_routes_calls_go_where_they_are_meant_to_and_are_never_hedged() {
    let (agent, _named) = full_agent().await;
    let replicas = Replicas::new([("a:1", None), ("b:1", None)]).unwrap();
    let policy = hedgerow_protocol::policy::PolicyDraft {
        intent: hedgerow_protocol::policy::Intent::Hedge,
        ..hedgerow_protocol::policy::Policy::observing("search".parse().unwrap()).into()
    };
    let listed = agent
        .route("search", "query")
        .replicas(replicas)
        .deadline(7 * S)
        .hedge_standalone(policy.try_into().unwrap())
        .build()
        .unwrap();
    let unlisted = agent.route("mail", "send").build().unwrap();
    let seen = |route: Route| async move {
        let began = Instant::now();
        let attempts = |attempt: Attempt| {
            let (replica, deadline) = (attempt.replica().clone(), attempt.deadline());
            async move { Ok::<_, ()>((replica, deadline.duration_since(began))) }
        };
        route.call(Call::idempotent(), attempts).await.unwrap()
    };
    let (replica, deadline) = seen(listed.clone()).await;
    assert!(["a:1", "b:1"].contains(&replica.as_str()) && deadline == 7 * S);
    assert_eq!(seen(unlisted).await.0.as_str(), "mail");

    // Known well enough for a threshold, and still nothing is hedged.
    for n in 0..500_u64 {
        let slow = Duration::from_millis(if n % 20 == 19 { 400 } else { 10 });
        let attempts = move |attempt: Attempt| async move {
            assert_eq!(attempt.kind(), crate::AttemptKind::Primary);
            tokio::time::sleep(slow).await;
            Ok::<_, ()>(())
        };
        listed.call(Call::idempotent(), attempts).await.unwrap();
    }
    let totals = listed.snapshot().totals;
    assert!(totals.crossed > 0, "measured all the same: {totals:?}");
    assert_eq!(totals.hedged, 0);
    // One may have been under way when the threshold came.
    let refused = [Refusal::Mode, Refusal::Answered].map(|reason| totals.refused_for(reason));
    assert_eq!(totals.crossed, refused.iter().sum::<u64>());
    assert!(refused[1] <= 1, "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn b72_what_is_counted_together_can_be_neither_named_nor_directed() {
    let (agent, _named) = full_agent().await;
    let refused = agent.route("__other__", "get").build().unwrap_err();
    let expected =
        "route: \"__other__ get\" is kept for what is counted together; expected another name";
    assert_eq!(refused.to_string(), expected);
    let beyond = agent.route("mail", "send").build().unwrap();
    let mut on = directive("get", 9, Mode::On);
    on.route = RouteKey::other();
    let shared = &agent.keeper.shared;
    assert!(shared.apply(on, Instant::now()).is_err());
    assert!(shared.held().is_empty());
    assert_eq!(beyond.snapshot().effective.mode, Mode::Observing);
    let again = agent.route("catalog", "get-3").build().unwrap_err();
    assert!(matches!(again, ConfigError::DuplicateRoute(_)), "{again}");
}
