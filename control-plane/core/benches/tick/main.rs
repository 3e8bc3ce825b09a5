//! How long a decision tick takes for 10,000 agents with 8 dependencies each, 1,000 in all, and what
//! the reports of the second before it cost.
//!
//! The real controller, honest reports of a fleet that calls and hedges by its directives, a store
//! that answers at once. `cargo bench -p hedgerow-core --bench tick` prints percentiles, keeps them
//! in `target/bench/core.jsonl`, and fails where the tick's p99 is above the bar. Words after `--`:
//! `agents=N`, `dependencies=N`, `ticks=N` for another fleet, which no bar is held to.

mod clock;
mod fleet;
mod rows;

use std::time::Duration;

use hedgerow_core::Controller;
use hedgerow_core::effect::{Effect, Restored};
use hedgerow_core::event::{Event, Settings};
use hedgerow_core::moment::Moment;

use self::clock::{Began, Took};
use self::fleet::{Agent, Called};

/// The longest a tick may take at p99, and what is aimed at.
const BAR: Duration = Duration::from_millis(100);
const AIM: Duration = Duration::from_millis(30);
const ROUTES: usize = 8;
/// Ticks left out of the percentiles: the first, told apart, and those until all routes hedge.
const WARM: usize = 10;

type Failure = Box<dyn std::error::Error>;

#[derive(Debug, Clone, Copy)]
struct Size {
    agents: usize,
    dependencies: usize,
    ticks: usize,
}

const FULL: Size = Size {
    agents: 10_000,
    dependencies: 1_000,
    ticks: 110,
};

impl Size {
    fn chosen() -> Result<Self, Failure> {
        let mut size = FULL;
        for word in std::env::args().skip(1) {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let slot = match name {
                "agents" => &mut size.agents,
                "dependencies" => &mut size.dependencies,
                "ticks" => &mut size.ticks,
                _ => return Err(format!("{name}: expected agents, dependencies, ticks").into()),
            };
            *slot = value.parse()?;
        }
        if size.dependencies < ROUTES || size.ticks <= WARM {
            return Err(format!("{size:?}: expected more").into());
        }
        Ok(size)
    }

    fn is_full(self) -> bool {
        (self.agents, self.dependencies) == (FULL.agents, FULL.dependencies)
    }
}

/// Controller, store and fleet; and how long the controller took for what.
struct World {
    now: Moment,
    controller: Controller,
    dependencies: Vec<Called>,
    agents: Vec<Agent>,
    /// Each tick.
    ticks: Vec<Took>,
    /// Each report.
    reports: Vec<Took>,
    /// Each word that a set is applied.
    applied: Vec<Took>,
    /// Processor seconds for the joins, all together.
    joins: f64,
    pushes: u64,
    refused: u64,
}

impl World {
    fn new(size: Size) -> Result<Self, Failure> {
        let now = Moment::from_millis(1_700_000_000_000);
        let dependencies: Vec<_> = (0..size.dependencies)
            .map(Called::new)
            .collect::<Result<_, _>>()?;
        let restored = Restored {
            policies: fleet::hedging(&dependencies, now)?,
            ..Restored::default()
        };
        let mut world = Self {
            now,
            controller: Controller::new(Settings::default(), restored, now),
            agents: (0..size.agents)
                .map(|number| Agent::new(number as u64, size.dependencies, ROUTES))
                .collect(),
            dependencies,
            ticks: Vec::new(),
            reports: Vec::new(),
            applied: Vec::new(),
            joins: 0.0,
            pushes: 0,
            refused: 0,
        };
        world.drain();
        for number in 0..world.agents.len() {
            let hello = world.agents[number].hello()?;
            world.joins += world.event(hello).cpu;
            world.drain();
        }
        Ok(world)
    }

    /// What the controller takes for an event.
    fn event(&mut self, event: Event) -> Took {
        let began = Began::now();
        self.controller.handle_event(self.now, event);
        began.took()
    }

    /// Does what the controller wants, until it wants nothing.
    fn drain(&mut self) {
        while let Some(effect) = self.controller.poll_effect() {
            match effect {
                Effect::Persist { write, .. } => {
                    self.event(Event::Persisted(write));
                }
                Effect::Push { connection, set } => {
                    self.pushes += 1;
                    let agent = &mut self.agents[connection.0 as usize];
                    let answer = agent.take(&self.dependencies, set);
                    let took = self.event(answer);
                    self.applied.push(took);
                }
                Effect::Acknowledge { refused, .. } => self.refused += u64::from(refused.is_some()),
                Effect::Reply { .. } => {}
            }
        }
    }

    /// A second goes by.
    fn second(&mut self) {
        self.now = self.now.plus(Duration::from_secs(1));
        for number in 0..self.agents.len() {
            let report = self.agents[number].report(&self.dependencies, self.now.as_millis());
            let took = self.event(report);
            self.reports.push(took);
            self.drain();
        }
        let began = Began::now();
        self.controller.handle_timeout(self.now);
        self.ticks.push(began.took());
        self.drain();
    }
}

/// A percentile of what was measured; what is `sorted` is not empty.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1).min(last))
        .copied()
        .unwrap_or(f64::NAN)
}

fn sorted(all: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<_> = all.collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[expect(clippy::print_stdout, reason = "a bench says what it found")]
fn tell(row: &str, figures: &[(&str, f64)]) -> Result<(), Failure> {
    let words: Vec<_> = figures
        .iter()
        .map(|(name, value)| format!("{name} {value:.3}"))
        .collect();
    println!("{row:9} {}", words.join(", "));
    rows::put(row, figures)?;
    Ok(())
}

/// Percentiles by the wall, and of the time that a processor was spent on it. Returns the p99 by the
/// wall in seconds.
fn tell_times(row: &str, all: &[Took], seconds: f64, unit: (&str, f64)) -> Result<f64, Failure> {
    let wall = sorted(all.iter().map(|took| took.wall));
    let cpu = sorted(all.iter().map(|took| took.cpu));
    let (name, times) = unit;
    let names = ["p50", "p99", "max", "cpu_p50", "cpu_p99"].map(|it| format!("{it}_{name}"));
    let p99 = percentile(&wall, 0.99);
    tell(
        row,
        &[
            (&names[0], percentile(&wall, 0.5) * times),
            (&names[1], p99 * times),
            (&names[2], percentile(&wall, 1.0) * times),
            (&names[3], percentile(&cpu, 0.5) * times),
            (&names[4], percentile(&cpu, 0.99) * times),
            ("measured", all.len() as f64),
            (
                "cpu_ms_in_a_second",
                cpu.iter().sum::<f64>() / seconds * 1e3,
            ),
        ],
    )?;
    Ok(p99)
}

/// Prints and keeps every row; returns the tick's p99 in seconds.
fn tell_all(size: Size, world: World) -> Result<f64, Failure> {
    let seconds = size.ticks as f64;
    let warm = &world.ticks[WARM..];
    let p99 = tell_times("tick", warm, warm.len() as f64, ("ms", 1e3))?;
    tell(
        "first",
        &[
            ("cpu_ms", world.ticks[0].cpu * 1e3),
            ("second_cpu_ms", world.ticks[1].cpu * 1e3),
        ],
    )?;
    tell_times("report", &world.reports, seconds, ("us", 1e6))?;
    tell_times("applied", &world.applied, seconds, ("us", 1e6))?;
    tell(
        "join",
        &[
            ("cpu_us_each", world.joins * 1e6 / size.agents as f64),
            ("cpu_ms_all", world.joins * 1e3),
        ],
    )?;
    let pushes = world.pushes as f64 / seconds;
    let controller = world.controller;
    let held = allocation_counter::measure(|| drop(controller)).bytes_current;
    let bytes = -(held as f64);
    tell(
        "memory",
        &[
            ("mb", bytes / 1e6),
            ("kb_an_agent", bytes / 1e3 / size.agents as f64),
            ("pushes_in_a_second", pushes),
        ],
    )?;
    tell(
        "bar",
        &[
            ("must_ms", BAR.as_secs_f64() * 1e3),
            ("aim_ms", AIM.as_secs_f64() * 1e3),
        ],
    )?;
    Ok(p99)
}

fn main() -> Result<(), Failure> {
    let size = Size::chosen()?;
    let mut world = World::new(size)?;
    for _ in 0..size.ticks {
        world.second();
    }
    let hedging = {
        let views = world.controller.snapshot(world.now).routes;
        views.values().filter(|it| it.mode.hedges()).count()
    };
    if world.refused > 0 || hedging < size.dependencies {
        let refused = world.refused;
        return Err(format!("{refused} reports refused, {hedging} routes hedging").into());
    }
    let p99 = tell_all(size, world)?;
    if size.is_full() && p99 > BAR.as_secs_f64() {
        return Err(
            format!("the tick takes {p99:.3} s at p99, which must be {BAR:?} at most").into(),
        );
    }
    Ok(())
}
