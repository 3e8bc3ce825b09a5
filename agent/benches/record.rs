//! What threads pay for one another: a route's recording and whole calls from 1, 2, 4 and 8
//! threads, beside a recorder of the same figures in atomics that all threads share.
//!
//! `cargo bench -p hedgerow-agent --bench record` prints the least nanoseconds a call of several
//! rounds, and how many times the throughput of one thread that is. More threads than processors
//! take turns: beyond that number, the most one can hope for is as many times as there are
//! processors.

#![allow(
    dead_code,
    unused_imports,
    reason = "the agent's own files are compiled here, as its recorder is no part of its interface"
)]

#[path = "../src/lanes.rs"]
mod lanes;
#[path = "../src/load.rs"]
mod load;
#[path = "../src/stats/recorder.rs"]
mod recorder;
mod rows;
#[path = "../src/sync.rs"]
mod sync;
#[path = "../src/stats/tally.rs"]
mod tally;
#[path = "../src/thread.rs"]
mod thread;

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hedgerow_agent::protocol::latency::{BUCKETS, bucket_of};
use hedgerow_agent::{Agent, Attempt, Call, Replicas, Route};

use self::lanes::PerLane;
use self::load::Load;
use self::recorder::{Counter, Recorder, Series};
use self::tally::Tally;

/// What each thread does in one round, in nanoseconds of one thread: long enough that all threads
/// are at it together, short enough that they are often alone at it.
const ROUND_NS: f64 = 5e5;
const ROUNDS: u32 = 400;
const THREADS: [usize; 4] = [1, 2, 4, 8];

type Failure = Box<dyn std::error::Error>;

/// What a plain call writes, in the agent's own structures.
struct Ours {
    route: Recorder,
    load: Load,
    of_replica: PerLane<Tally>,
}

impl Ours {
    fn new() -> Self {
        Self {
            route: Recorder::new(),
            load: Load::new(),
            of_replica: PerLane::new(),
        }
    }

    fn record(&self, took: Duration) {
        let lane = thread::lane();
        self.route.count(Counter::Started);
        self.load.begins(lane, true);
        let bucket = bucket_of(took);
        let of_replica = self.of_replica.get_or_make(lane, Tally::new);
        of_replica.record(lane, bucket);
        self.load.ends(lane);
        self.route.record_in(Series::Plain, bucket);
    }
}

/// The same in atomics that all threads share.
struct Shared {
    started: AtomicU64,
    load: AtomicU64,
    samples: Vec<AtomicU64>,
    of_replica: Vec<AtomicU64>,
}

impl Shared {
    fn new() -> Self {
        let buckets = || (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self {
            started: AtomicU64::new(0),
            load: AtomicU64::new(0),
            samples: buckets(),
            of_replica: buckets(),
        }
    }

    fn record(&self, took: Duration) {
        self.started.fetch_add(1, Ordering::Release);
        self.load.fetch_add(1, Ordering::Release);
        let bucket = bucket_of(took);
        self.of_replica[bucket].fetch_add(1, Ordering::Release);
        self.load.fetch_sub(1, Ordering::Release);
        self.samples[bucket].fetch_add(1, Ordering::Release);
    }
}

/// Least nanoseconds from the first thread's start to the last one's end, for each call of all.
fn ns_a_call(threads: usize, calls: u32, work: impl Fn(u32) + Sync) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let waited_for = AtomicUsize::new(threads);
        let times = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (waited_for, times, work) = (&waited_for, &times, &work);
                scope.spawn(move || {
                    // What a thread sets up once.
                    work(100);
                    waited_for.fetch_sub(1, Ordering::Relaxed);
                    while waited_for.load(Ordering::Relaxed) > 0 {
                        std::thread::yield_now();
                    }
                    let began = Instant::now();
                    work(calls);
                    let ended = Instant::now();
                    if let Ok(mut times) = times.lock() {
                        times.push((began, ended));
                    }
                });
            }
        });
        let times = times.into_inner().unwrap_or_default();
        let began = times.iter().map(|time| time.0).min();
        let ended = times.iter().map(|time| time.1).max();
        if let (Some(began), Some(ended)) = (began, ended) {
            let all = f64::from(calls) * threads as f64;
            least = least.min((ended - began).as_secs_f64() * 1e9 / all);
        }
    }
    least
}

/// Prints a row: one line for each number of threads.
#[expect(clippy::print_stdout, reason = "a bench says what it found")]
fn tell(row: &str, subject: &str, work: impl Fn(u32) + Sync) -> std::io::Result<()> {
    println!("{row}, {subject}: threads, ns a call, times one thread's throughput");
    let calls = (ROUND_NS / ns_a_call(1, 10_000, &work)) as u32;
    let mut of_one = f64::NAN;
    for threads in THREADS {
        let ns = ns_a_call(threads, calls, &work);
        if threads == 1 {
            of_one = ns;
        }
        println!("  {threads} {ns:8.1} {:6.2}", of_one / ns);
        let fields = [
            ("threads", threads as f64),
            ("ns", ns),
            ("throughput_ratio", of_one / ns),
        ];
        rows::put(&format!("{row}_{threads}"), subject, &fields);
    }
    Ok(())
}

/// Whole calls of a route, answered when first polled.
fn calls(route: &Route, calls: u32) {
    let answers = async {
        for _ in 0..calls {
            let call = route.call(Call::idempotent(), |_: Attempt| {
                std::future::ready(Ok::<_, Infallible>(7))
            });
            let _ = black_box(call.await);
        }
    };
    futures::executor::block_on(answers);
}

#[expect(clippy::print_stdout, reason = "a bench says what it found")]
fn main() -> Result<(), Failure> {
    let processors = std::thread::available_parallelism()?;
    println!("{processors} processors");
    let runtime = tokio::runtime::Runtime::new()?;
    let route = runtime.block_on(async {
        let agent = Agent::builder().service("bench").connect().await?;
        let replicas = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)])?;
        Ok::<_, Failure>(agent.route("catalog", "get").replicas(replicas).build()?)
    })?;
    let took = |i: u32| black_box(Duration::from_micros(u64::from(i % 97) + 50));
    let ours = Ours::new();
    tell("record", "hedgerow", |n| {
        (0..n).for_each(|i| ours.record(took(i)));
    })?;
    let shared = Shared::new();
    tell("record", "shared-atomics", |n| {
        (0..n).for_each(|i| shared.record(took(i)));
    })?;
    tell("calls", "hedgerow", |n| calls(&route, n))?;
    Ok(())
}
