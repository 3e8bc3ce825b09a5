//! Rows under tokio's paused clock: the same each time, whatever else the machine does.
//!
//! All subjects take their time from tokio: tower::hedge its latencies, delays and the turns of its
//! histogram, tower-resilience its delay (std's clock only stamps its events, which nobody reads
//! here), the agent everything. Timers tick in milliseconds, so answers come at whole ones.

use std::ops::Range;
use std::time::Duration;

use tower::BoxError;

use super::Asked;
use super::drive::{Caller, Run};
use super::figures::{self, Fields, set};
use crate::subjects::{Client, Outcome, Settings, Subject};
use crate::world::World;
use crate::world::profile::{Base, Change, Profile};

const SEED: u64 = 20_261_022;
/// Calls a second where they come by themselves.
const RATE: f64 = 500.0;
/// What subjects may learn from before anything is measured.
const WARM_UP: u64 = 20;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// p95 falls into the gap between usual answers and stragglers, where it is hardest to find.
const STRAGGLING: Base = Base::Stragglers {
    median: ms(50),
    sigma: 0.3,
    share: 0.05,
};
/// p95, 120 ms, is among usual answers.
const USUAL: Base = Base::Stragglers {
    median: ms(50),
    sigma: 0.5,
    share: 0.01,
};
/// Lognormal with p95 at 1.8 times its median, 180 ms.
const STEADY: Base = Base::Stragglers {
    median: ms(100),
    sigma: 0.357_35,
    share: 0.0,
};
/// The experiment's.
pub(crate) const STALLING: Base = Base::Stalls {
    least: ms(5),
    most: ms(15),
    share: 0.01,
};

pub(crate) fn profile(base: Base, change: Change, from: u64) -> Profile {
    Profile {
        seed: SEED,
        base,
        change,
        from: Duration::from_secs(from),
    }
}

pub(crate) fn settings(p95: Duration, deadline: Duration) -> Settings {
    Settings {
        percentile: 0.95,
        tower_period: crate::TOWER_PERIOD,
        tower_data_points: crate::TOWER_DATA_POINTS,
        resilience_delay: p95,
        deadline,
    }
}

/// How calls come.
#[derive(Clone, Copy)]
enum Calls {
    Open { per_second: f64, width: usize },
    Closed { workers: usize, deadline: Duration },
}

const OPEN: Calls = Calls::Open {
    per_second: RATE,
    width: 1,
};
const DEADLINE: Duration = Duration::from_secs(10);

fn simulate(subject: Subject, profile: Profile, calls: Calls, until: u64) -> Result<Run, BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(async {
        let deadline = match calls {
            Calls::Open { .. } => DEADLINE,
            Calls::Closed { deadline, .. } => deadline,
        };
        let world = World::new(profile);
        let ledger = world.ledger.clone();
        let client = Client::new(subject, world, &settings(profile.usual(0.95), deadline)).await?;
        let caller = Caller::new(client, ledger);
        let until = Duration::from_secs(until);
        let calling = async {
            match calls {
                Calls::Open { per_second, width } => caller.open(per_second, width, until).await,
                Calls::Closed { workers, .. } => {
                    caller
                        .closed(workers, |ledger, _| ledger.now() < until)
                        .await;
                }
            }
        };
        tokio::select! {
            () = calling => {}
            () = caller.watch() => {}
        }
        Ok(caller.finish())
    })
}

pub(crate) fn healthy(asked: &Asked) -> Result<Fields, BoxError> {
    let window = WARM_UP..WARM_UP + asked.length.or(600, 60);
    let profile = profile(STRAGGLING, Change::Nothing, 0);
    let run = simulate(asked.subject, profile, OPEN, window.end)?;
    Ok(figures::usual(&run, &window))
}

/// A run in which `change` happens, and the window from then on.
fn changed(asked: &Asked, base: Base, change: Change) -> Result<(Run, Range<u64>), BoxError> {
    let from = asked.length.or(60, 30);
    let window = from..from + asked.length.or(60, 30);
    let run = simulate(asked.subject, profile(base, change, from), OPEN, window.end)?;
    Ok((run, window))
}

pub(crate) fn slow_x3(asked: &Asked) -> Result<Fields, BoxError> {
    let change = Change::Slower {
        factor: 3.0,
        over: Duration::ZERO,
    };
    let (run, window) = changed(asked, USUAL, change)?;
    Ok(figures::usual(&run, &window))
}

pub(crate) fn errors(asked: &Asked) -> Result<Fields, BoxError> {
    let (run, window) = changed(asked, USUAL, Change::Errors { share: 0.3 })?;
    Ok(figures::usual(&run, &window))
}

pub(crate) fn drift(asked: &Asked) -> Result<Fields, BoxError> {
    let change = Change::Slower {
        factor: 400.0 / 180.0,
        over: Duration::from_secs(1),
    };
    let (run, window) = changed(asked, STEADY, change)?;
    let mut fields = figures::usual(&run, &window);
    let under = figures::seconds_until_under_10(&run, &window);
    set(&mut fields, "under_10_after_s", under);
    Ok(fields)
}

pub(crate) fn dead_one(asked: &Asked) -> Result<Fields, BoxError> {
    /// Seconds until a dead replica has to be dealt with.
    const NOTICED: u64 = 10;
    let from = asked.length.or(60, 30);
    let (before, after) = (
        from / 2..from,
        from + NOTICED..from + NOTICED + asked.length.or(60, 30),
    );
    let calls = Calls::Closed {
        workers: 30,
        deadline: Duration::from_secs(1),
    };
    let run = simulate(
        asked.subject,
        profile(USUAL, Change::DeadReplica, from),
        calls,
        after.end,
    )?;
    let mut fields = figures::usual(&run, &after);
    let answered = |window: &Range<u64>| {
        let span = (window.end - window.start) as f64;
        figures::ended(&run, window, Outcome::Answered) / span
    };
    set(
        &mut fields,
        "throughput_ratio",
        answered(&after) / answered(&before),
    );
    set(&mut fields, "answered_per_s_before", answered(&before));
    set(&mut fields, "threshold_before_ms", threshold_at(&run, from));
    set(
        &mut fields,
        "threshold_after_ms",
        threshold_at(&run, after.end),
    );
    Ok(fields)
}

/// The threshold last seen before that second.
fn threshold_at(run: &Run, second: u64) -> f64 {
    let mut before = run.samples.iter().filter(|(at, _)| at.as_secs() < second);
    before
        .next_back()
        .map_or(f64::NAN, |(_, sample)| sample.threshold_ms)
}

fn fan_out(asked: &Asked, width: usize, per_second: f64, seconds: u64) -> Result<Fields, BoxError> {
    let window = WARM_UP..WARM_UP + seconds;
    let calls = Calls::Open { per_second, width };
    let profile = profile(STALLING, Change::Nothing, 0);
    let run = simulate(asked.subject, profile, calls, window.end)?;
    let mut fields = figures::usual(&run, &window);
    let requests: Vec<_> = figures::within(&run.requests, &window).collect();
    for (name, value) in figures::waits(&requests) {
        set(&mut fields, name, value);
    }
    let over = figures::get(&fields, "over_1s");
    set(&mut fields, "requests", requests.len() as f64);
    set(&mut fields, "share_over_1s", over / requests.len() as f64);
    Ok(fields)
}

pub(crate) fn fan_out_10(asked: &Asked) -> Result<Fields, BoxError> {
    fan_out(asked, 10, 50.0, asked.length.or(120, 30))
}

pub(crate) fn fan_out_100(asked: &Asked) -> Result<Fields, BoxError> {
    fan_out(asked, 100, 10.0, asked.length.or(240, 30))
}
