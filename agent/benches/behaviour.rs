//! What hedging does to callers and to replicas: the same seeded replicas called bare, by this agent
//! without a controller, by `tower::hedge` and by `tower-resilience-hedge`.
//!
//! ```text
//! cargo bench -p hedgerow-agent --bench behaviour                   all rows
//! cargo bench -p hedgerow-agent --bench behaviour -- drift grpc_4   these
//! cargo bench -p hedgerow-agent --bench behaviour -- --quick        all, shorter: a look, not a result
//! cargo bench -p hedgerow-agent --bench behaviour -- --markdown     the tables of what was found last
//! cargo bench -p hedgerow-agent --bench behaviour -- --readme       the same, into the README
//! ```

mod rows;
mod scenes;
mod subjects;
mod table;
mod world;

use std::time::Duration;

use tower::BoxError;

use self::scenes::figures::{Fields, get, set};
use self::scenes::{Asked, Length, ROWS, Row};
use self::subjects::Subject;

/// The setting of its two that is best for tower in these rows: a longer one follows changes later,
/// and in a run of two seconds has nothing to hedge by.
const TOWER_PERIOD: Duration = Duration::from_secs(1);
const TOWER_DATA_POINTS: u64 = 100;

fn measure(row: &Row, length: Length) -> Result<(), BoxError> {
    let mut bare = Fields::new();
    for subject in Subject::ALL {
        let p95 = get(&bare, "p95_ms") / 1e3;
        let mut found = (row.run)(&Asked {
            subject,
            length,
            plain_p95: Duration::try_from_secs_f64(p95).ok(),
        })?;
        if subject == Subject::Bare {
            bare.clone_from(&found);
        }
        let ratio = |name| get(&found, name) / get(&bare, name);
        let (busy, answered) = (ratio("busy_ms_per_call"), ratio("answered_per_s"));
        set(&mut found, "busy_ratio", busy);
        if get(&found, "throughput_ratio").is_nan() {
            set(&mut found, "throughput_ratio", answered);
        }
        if length == Length::Quick {
            set(&mut found, "quick", 1.0);
        }
        rows::put(row.name, subject.as_str(), &found);
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a bench says what it found")]
fn main() -> Result<(), BoxError> {
    // Cargo adds `--bench`.
    let given: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| given.iter().any(|given| given == flag);
    if asked("--markdown") {
        print!("{}", table::all()?);
        return Ok(());
    }
    if asked("--readme") {
        return Ok(table::into_readme()?);
    }
    let length = if asked("--quick") {
        Length::Quick
    } else {
        Length::Whole
    };
    let names: Vec<_> = given
        .iter()
        .filter(|given| !given.starts_with('-'))
        .collect();
    println!(
        "Simulated rows run under a paused clock; grpc rows in real time. tower::hedge: percentile \
         0.95, period {TOWER_PERIOD:?}, {TOWER_DATA_POINTS} data points; tower-resilience: a fixed \
         delay equal to the p95 without hedging, 2 attempts; hedgerow: its defaults. Hedge rates and extra \
         load are counted at the replicas."
    );
    for row in ROWS {
        if names.is_empty() || names.iter().any(|name| *name == row.name) {
            let began = std::time::Instant::now();
            measure(row, length)?;
            print!("{}", table::one(row)?);
            println!("({:.0?})", began.elapsed());
        }
    }
    println!("\nkept in {}", rows::file().display());
    Ok(())
}
