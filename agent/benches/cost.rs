//! What hedging adds to a call that is not hedged, in time and allocations, beside others in the
//! same run: `tower::hedge` and `tower-resilience-hedge`.
//!
//! Two kinds of call: one that is answered when first polled, so that no timer need be armed, and
//! one that is answered when polled again. `cargo bench -p hedgerow-agent --bench cost` prints for
//! each subject the least nanoseconds a call of many short rounds, taken in turn, and fails where
//! ours adds more than tower's. Words after `--` choose among rows and subjects, for a profiler.

mod rows;

use std::convert::Infallible;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hedgerow_agent::{Agent, Attempt, Call, Intent, Policy, PolicyDraft, Replicas, Route};
use tokio::runtime::Runtime;
use tower::{Layer, Service, ServiceExt};

/// Few enough that a round often ends before anything else gets the processor.
const CALLS: u32 = 2_000;
const ROUNDS: u32 = 600;
const THRESHOLD: Duration = Duration::from_millis(50);

type Failure = Box<dyn std::error::Error>;

/// Answers at once, or when polled again.
#[derive(Clone, Copy)]
struct Answer {
    polls_left: u32,
}

impl Future for Answer {
    type Output = Result<u64, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls_left == 0 {
            return Poll::Ready(Ok(7));
        }
        self.polls_left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[derive(Clone)]
struct Always;

impl tower::hedge::Policy<u32> for Always {
    fn clone_request(&self, request: &u32) -> Option<u32> {
        Some(*request)
    }
    fn can_retry(&self, _: &u32) -> bool {
        true
    }
}

async fn hedging_route() -> Result<Route, Failure> {
    let agent = Agent::builder().service("bench").connect().await?;
    let observing = Policy::observing("catalog".parse()?);
    let policy = Policy::try_from(PolicyDraft {
        intent: Intent::Hedge,
        threshold_min_ms: Some(THRESHOLD.as_secs_f64() * 1e3),
        ..observing.into()
    })?;
    let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)])?;
    let route = agent
        .route("catalog", "get")
        .replicas(replicas)
        .hedge_standalone(policy)
        .build()?;
    for _ in 0..300 {
        let call = route.call(Call::idempotent(), |_: Attempt| Answer { polls_left: 1 });
        call.await.map_err(|e| e.to_string())?;
    }
    // A second goes by, and the route has its threshold.
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert!(
        route.snapshot().effective.threshold.is_some(),
        "the route hedges"
    );
    Ok(route)
}

/// One way of calling.
struct Subject<'a> {
    name: &'static str,
    /// Runs so many calls, polled so often each, and says how long that took.
    round: Box<dyn FnMut(u32, u32) -> Duration + 'a>,
}

/// A subject whose calls are made by `call`.
fn subject<'a, F: Future>(
    name: &'static str,
    runtime: &'a Runtime,
    mut call: impl FnMut(u32) -> F + 'a,
) -> Subject<'a> {
    let round = move |calls: u32, polls_left: u32| {
        runtime.block_on(async {
            let began = Instant::now();
            for _ in 0..calls {
                black_box(call(black_box(polls_left)).await);
            }
            began.elapsed()
        })
    };
    Subject {
        name,
        round: Box::new(round),
    }
}

fn subjects<'a>(runtime: &'a Runtime, route: &'a Route) -> Vec<Subject<'a>> {
    let service = || tower::service_fn(|polls_left: u32| Answer { polls_left });
    // With enough latencies to hedge by, as in a service that has run for a while.
    let towers = tower::hedge::Hedge::new_with_mock_latencies(
        service(),
        Always,
        1000,
        0.95,
        Duration::from_hours(1),
        &[THRESHOLD.as_millis() as u64; 2000],
    );
    let layer = tower_resilience_hedge::HedgeLayer::builder()
        .delay(THRESHOLD)
        .max_hedged_attempts(2)
        .build();
    vec![
        subject("bare", runtime, |polls_left| Answer { polls_left }),
        subject("hedgerow", runtime, |polls_left| {
            route.call(Call::idempotent(), move |_: Attempt| Answer { polls_left })
        }),
        of_service("tower", runtime, towers),
        of_service("tower-resilience", runtime, layer.layer(service())),
    ]
}

/// A subject that is a service, called when it says that it is ready.
fn of_service<'a, S: Service<u32> + 'a>(
    name: &'static str,
    runtime: &'a Runtime,
    mut service: S,
) -> Subject<'a> {
    let round = move |calls: u32, polls_left: u32| {
        runtime.block_on(async {
            let began = Instant::now();
            for _ in 0..calls {
                if let Ok(ready) = service.ready().await {
                    let _ = black_box(ready.call(black_box(polls_left)).await);
                }
            }
            began.elapsed()
        })
    };
    Subject {
        name,
        round: Box::new(round),
    }
}

struct Cost {
    subject: &'static str,
    ns: f64,
    allocations: f64,
}

/// Least time and allocations of each subject's calls, in turn.
fn measure(subjects: &mut [Subject<'_>], polls_left: u32) -> Vec<Cost> {
    let mut costs: Vec<_> = subjects
        .iter_mut()
        .map(|subject| {
            let counted = allocation_counter::measure(|| {
                (subject.round)(CALLS, polls_left);
            });
            Cost {
                subject: subject.name,
                ns: f64::MAX,
                allocations: counted.count_total as f64 / f64::from(CALLS),
            }
        })
        .collect();
    for _ in 0..ROUNDS {
        for (subject, cost) in subjects.iter_mut().zip(&mut costs) {
            let took = (subject.round)(CALLS, polls_left).as_secs_f64() * 1e9;
            cost.ns = cost.ns.min(took / f64::from(CALLS));
        }
    }
    costs
}

/// Prints a row; how much ours adds for what tower's adds, where both were measured.
#[expect(clippy::print_stdout, reason = "a bench says what it found")]
fn tell(row: &str, costs: &[Cost]) -> std::io::Result<Option<f64>> {
    let of = |name| costs.iter().find(|cost| cost.subject == name);
    let bare = of("bare").map_or(0.0, |bare| bare.ns);
    println!("{row}: ns a call, beyond bare, allocations a call");
    for cost in costs {
        let beyond = cost.ns - bare;
        println!(
            "  {:17} {:6.1} {beyond:6.1} {:5.2}",
            cost.subject, cost.ns, cost.allocations
        );
        let fields = [
            ("ns", cost.ns),
            ("ns_beyond_bare", beyond),
            ("allocs", cost.allocations),
        ];
        rows::put(row, cost.subject, &fields);
    }
    let ratio = of("hedgerow")
        .zip(of("tower"))
        .map(|(ours, towers)| (ours.ns - bare) / (towers.ns - bare));
    if let Some(ratio) = ratio {
        println!("  hedgerow / tower, beyond bare: {ratio:.2}");
    }
    Ok(ratio)
}

fn main() -> Result<(), Failure> {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let is_chosen = |name: &str, all: &[&str]| {
        chosen.iter().any(|word| word == name)
            || !chosen.iter().any(|word| all.contains(&word.as_str()))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let route = runtime.block_on(hedging_route())?;
    let mut subjects = subjects(&runtime, &route);
    let names: Vec<_> = subjects.iter().map(|subject| subject.name).collect();
    subjects.retain(|subject| is_chosen(subject.name, &names));
    let rows = ["ready_call", "yielding_call"];
    let mut worse = false;
    for (polls_left, row) in (0..).zip(rows) {
        if is_chosen(row, &rows) {
            let ratio = tell(row, &measure(&mut subjects, polls_left))?;
            worse |= ratio.is_some_and(|ratio| ratio >= 1.0);
        }
    }
    assert!(
        !worse,
        "a call that is not hedged must cost less than with tower::hedge"
    );
    Ok(())
}
