//! Prints a scenario's course, second by second: `course NAME [SEED] [CLIENT]`, or, without a name,
//! one line for each shipped scenario.

#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use hedgerow_sim::outcome::{Outcome, PhaseName};
use hedgerow_sim::{Client, Scenario, Second, Variation, run, shipped};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next();
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let client = match arguments.next().as_deref() {
        Some("bare") => Client::Bare,
        Some("plain_p95") => Client::PlainP95,
        _ => Client::Hedgerow,
    };
    let variation = Variation::seed(seed).client(client);
    if let Some(name) = name {
        let scenario = Scenario::find(&name)?;
        let outcome = run(&scenario, &variation, second)?;
        println!("{:#?}\n{:#?}", outcome.summary, outcome.changes);
        println!("{:#?}\n{:#?}", outcome.named, outcome.alerts);
        for phase in &outcome.phases {
            println!("{phase:?}");
        }
        return Ok(());
    }
    for scenario in shipped() {
        let parsed = Scenario::parse(scenario.text)?;
        let began = std::time::Instant::now();
        let ours = run(&parsed, &variation, |_| ())?;
        let took = began.elapsed();
        let bare = run(&parsed, &Variation::seed(seed).client(Client::Bare), |_| ())?;
        line(scenario.name, &ours, &bare);
        println!("    {took:.1?}");
    }
    Ok(())
}

fn line(name: &str, ours: &Outcome, bare: &Outcome) {
    let it = &ours.summary;
    println!(
        "{name:24} offs {} ons {} off {:?} on {:?} recovered {:?} (bare {:?}) worst {:.3} over {} refused {}",
        it.offs,
        it.ons,
        it.off_after_s,
        it.on_after_s,
        it.recovered_after_s,
        bare.summary.recovered_after_s,
        it.hedge_rate_worst.unwrap_or_default(),
        it.seconds_over_budget,
        it.reports_refused,
    );
    for name in [PhaseName::Before, PhaseName::During, PhaseName::After] {
        let (Some(ours), Some(bare)) = (ours.phase(name), bare.phase(name)) else {
            continue;
        };
        println!(
            "    {:7} hedged {:5.2} % won {:5} failed {} (bare {}) p99 {:7.1} (bare {:7.1}) p99.9 {:7.1} (bare {:7.1})",
            name.as_str(),
            100.0 * ours.hedge_rate.unwrap_or_default(),
            ours.won,
            ours.failed,
            bare.failed,
            ours.waited.p99_ms.unwrap_or_default(),
            bare.waited.p99_ms.unwrap_or_default(),
            ours.waited.p999_ms.unwrap_or_default(),
            bare.waited.p999_ms.unwrap_or_default(),
        );
    }
}

fn second(row: &Second) {
    let decided = row.decided.as_ref();
    let millis = |it: Option<f64>| it.map_or("-".to_owned(), |it| format!("{it:.1}"));
    println!(
        "{:4} calls {:6} crossed {:5} hedged {:4} won {:4} failed {:4} {:9} d {:>6} B {:.3} cap {:.1} p99 {:>6} true {:>6} waited {:>6} fb {} q {:?} named {:?} refused {:?} util {:.2?} w {:?}",
        row.second,
        row.calls,
        row.crossed,
        row.hedged,
        row.won,
        row.failed,
        decided.map_or("-", |it| it.mode),
        millis(row.agents_threshold_ms),
        decided.map_or(0.0, |it| it.budget),
        decided.map_or(0.0, |it| it.cap),
        millis(decided.and_then(|it| it.p99_ms)),
        millis(row.true_p99_window_ms),
        millis(row.waited_p99_ms),
        row.agents_fallback,
        row.agents_quarantined,
        decided.map(|it| it.named.iter().map(|it| &it.replica).collect::<Vec<_>>()),
        row.refused,
        row.utilisation,
        row.waiting,
    );
}
