//! What the controller holds on to in a day of 1,000 dependencies: the real controller, a fleet that
//! calls and hedges by its directives, agents that leave and others that come, and a tick each half
//! minute.
//!
//! `cargo bench -p hedgerow-core --bench day` takes some minutes, tells of each hour what was
//! allocated and not given back in it, and fails where the last twelve hours together hold on to more
//! than a hundredth of what there was at noon. The same at a reduced size is a test (`tests/it/day.rs`).

#[path = "../tick/fleet.rs"]
mod fleet;

use std::time::{Duration, Instant};

use hedgerow_core::Controller;
use hedgerow_core::effect::{Effect, Restored};
use hedgerow_core::event::{ConnectionId, Departure, Event, Settings};
use hedgerow_core::moment::Moment;

use self::fleet::{Agent, Called};

/// Agents draw theirs: a thousand of these are called by anybody.
const DEPENDENCIES: usize = 1_160;
const ROUTES: usize = 8;
/// Attached at a time: each dependency is called by two.
const AGENTS: usize = DEPENDENCIES * 2 / ROUTES;
const TICK: Duration = Duration::from_secs(30);
const TICKS_AN_HOUR: usize = 120;
const HOURS: usize = 24;
/// Most that the second half of the day may hold on to, as a share of what there is at noon.
const GROWS_AT_MOST: f64 = 0.01;

type Failure = Box<dyn std::error::Error>;

struct World {
    now: Moment,
    controller: Controller,
    dependencies: Vec<Called>,
    agents: Vec<Agent>,
    refused: u64,
}

impl World {
    fn new() -> Result<Self, Failure> {
        let now = Moment::from_millis(1_700_000_000_000);
        let dependencies: Vec<_> = (0..DEPENDENCIES)
            .map(Called::new)
            .collect::<Result<_, _>>()?;
        let settings = Settings {
            tick: TICK,
            ..Settings::default()
        };
        let restored = Restored {
            policies: fleet::hedging(&dependencies, now)?,
            ..Restored::default()
        };
        let mut world = Self {
            now,
            controller: Controller::new(settings, restored, now),
            agents: (0..AGENTS)
                .map(|number| Agent::new(number as u64, DEPENDENCIES, ROUTES))
                .collect(),
            dependencies,
            refused: 0,
        };
        world.drain();
        for number in 0..AGENTS {
            world.join(number)?;
        }
        Ok(world)
    }

    fn join(&mut self, number: usize) -> Result<(), Failure> {
        let hello = self.agents[number].hello()?;
        self.controller.handle_event(self.now, hello);
        self.drain();
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(effect) = self.controller.poll_effect() {
            let answer = match effect {
                Effect::Persist { write, .. } => Event::Persisted(write),
                Effect::Push { connection, set } => {
                    self.agents[connection.0 as usize].take(&self.dependencies, set)
                }
                Effect::Acknowledge { refused, .. } => {
                    self.refused += u64::from(refused.is_some());
                    continue;
                }
                Effect::Reply { .. } => continue,
            };
            self.controller.handle_event(self.now, answer);
        }
    }

    /// Half a minute goes by, in which each agent reports a second of calls, and one of them loses its
    /// stream and comes back.
    fn tick(&mut self, number: usize) -> Result<(), Failure> {
        self.now = self.now.plus(TICK);
        for agent in 0..AGENTS {
            let report = self.agents[agent].report(&self.dependencies, self.now.as_millis());
            self.controller.handle_event(self.now, report);
            self.drain();
        }
        let lost = number % AGENTS;
        let gone = Event::Gone {
            connection: ConnectionId(lost as u64),
            departure: Departure::Lost,
        };
        self.controller.handle_event(self.now, gone);
        self.join(lost)?;
        self.controller.handle_timeout(self.now);
        self.drain();
        Ok(())
    }

    fn hour(&mut self, number: usize) -> Result<(), Failure> {
        (0..TICKS_AN_HOUR).try_for_each(|tick| self.tick(number * TICKS_AN_HOUR + tick))
    }
}

#[expect(clippy::print_stdout, reason = "a bench says what it found")]
fn main() -> Result<(), Failure> {
    let mut outcome = Ok(());
    let mut began = None;
    let mut held = allocation_counter::measure(|| match World::new() {
        Ok(world) => began = Some(world),
        Err(error) => outcome = Err(error),
    })
    .bytes_current as f64;
    outcome?;
    let mut world = began.ok_or("no world")?;
    let mut noon = 0.0;
    for number in 0..HOURS {
        let from = Instant::now();
        let mut outcome = Ok(());
        let kept =
            allocation_counter::measure(|| outcome = world.hour(number)).bytes_current as f64;
        outcome?;
        held += kept;
        if number + 1 == HOURS / 2 {
            noon = held;
        }
        println!(
            "hour {:2}: {:8.1} MB, {:+7.2} MB; {:.0} s for {TICKS_AN_HOUR} ticks",
            number + 1,
            held / 1e6,
            kept / 1e6,
            from.elapsed().as_secs_f64()
        );
    }
    let views = world.controller.snapshot(world.now).routes;
    let hedging = views.values().filter(|it| it.mode.hedges()).count();
    let grown = held / noon - 1.0;
    println!(
        "{} dependencies, {hedging} hedging, {} reports refused; since noon {:+.2} %",
        views.len(),
        world.refused,
        grown * 100.0
    );
    if world.refused > 0 || hedging < views.len() {
        return Err("expected every report taken and every dependency hedging".into());
    }
    if grown > GROWS_AT_MOST {
        return Err(format!("grew by {grown:.3} in the second half of the day").into());
    }
    Ok(())
}
