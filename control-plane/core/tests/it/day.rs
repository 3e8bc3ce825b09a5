//! A day goes by, and memory does not grow: neither with time, nor with agents, routes and replicas
//! that come and go.

use std::time::Duration;

use hedgerow_core::Controller;
use hedgerow_core::effect::{Effect, Restored, RestoredPolicy};
use hedgerow_core::event::{ConnectionId, Departure, Event, Settings};
use hedgerow_core::moment::Moment;
use hedgerow_protocol::ids::{Revision, RouteKey};

use crate::agent::Agent;
use crate::traffic::Traffic;
use crate::world::{START, policy};

/// Half a minute a tick makes a day of 2,880: slices and courses are then full after three hours,
/// and what is kept by the clock after one. Of what is kept by the tick only the levels of the base
/// are not, which are four bytes for ten ticks.
const TICK: Duration = Duration::from_secs(30);
const TICKS_AN_HOUR: usize = 120;
const AGENTS: u64 = 2;
const ROUTES: usize = 2;

struct Day {
    now: Moment,
    controller: Controller,
    agents: Vec<Agent>,
    joined: u64,
    ticks: usize,
    counted: u64,
}

impl Day {
    fn new() -> Self {
        let settings = Settings {
            tick: TICK,
            // Few enough that routes which come and go meet the cap too.
            routes_max: ROUTES + 2,
            ..Settings::default()
        };
        let restored = Restored {
            policies: vec![RestoredPolicy {
                scope: policy().scope().clone(),
                revision: Revision(1),
                policy: Some(policy()),
                since: START,
            }],
            ..Restored::default()
        };
        let mut day = Self {
            now: START,
            controller: Controller::new(settings, restored, START),
            agents: Vec::new(),
            joined: 0,
            ticks: 0,
            counted: 0,
        };
        day.drain();
        for _ in 0..AGENTS {
            day.join();
        }
        day
    }

    fn join(&mut self) {
        self.joined += 1;
        let agent = Agent::new(self.joined);
        let hello = Event::Joined(agent.hello());
        self.agents.push(agent);
        self.event(hello);
    }

    fn event(&mut self, event: Event) {
        self.controller.handle_event(self.now, event);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.controller.poll_effect() {
            let answers = match effect {
                Effect::Persist { write, .. } => vec![Event::Persisted(write)],
                Effect::Push { connection, set } => {
                    let mut agents = self.agents.iter_mut();
                    let agent = agents.find(|agent| agent.connection == connection);
                    agent.map_or_else(Vec::new, |agent| {
                        let answers = agent.take(set);
                        agent.sets.clear();
                        answers
                    })
                }
                Effect::Acknowledge { refused, .. } => {
                    assert_eq!(refused, None);
                    self.counted += 1;
                    Vec::new()
                }
                Effect::Reply { .. } => Vec::new(),
            };
            for answer in answers {
                self.controller.handle_event(self.now, answer);
            }
        }
    }

    /// The routes called now: those that stay, and one that is another each half hour.
    fn traffic(&self) -> Vec<(RouteKey, Traffic)> {
        // Latencies wander, so that thresholds do; and an hour in four has errors.
        let hour = self.ticks / TICKS_AN_HOUR;
        let traffic = Traffic {
            usual_ms: 10 + (self.ticks as u64 / 30) % 5,
            errors: if hour % 4 == 3 && self.ticks.is_multiple_of(3) {
                0.2
            } else {
                0.0
            },
            ..Traffic::HEALTHY
        };
        let stay = (0..ROUTES).map(|number| format!("get{number}"));
        let passing = format!("passing{}", self.ticks * 2 / TICKS_AN_HOUR);
        stay.chain([passing])
            .map(|operation| (RouteKey::new("catalog", &operation).unwrap(), traffic))
            .collect()
    }

    fn tick(&mut self) {
        self.now = self.now.plus(TICK);
        self.ticks += 1;
        // Each half hour an agent goes, and another comes.
        if self.ticks.is_multiple_of(TICKS_AN_HOUR / 2) {
            let gone = self.agents.remove(0);
            self.event(Event::Gone {
                connection: gone.connection,
                departure: Departure::Left,
            });
            self.join();
        }
        let traffic = self.traffic();
        let wall_clock = self.now.as_millis();
        for number in 0..self.agents.len() {
            let reported = self.agents[number].reported(&traffic, wall_clock);
            self.event(reported);
        }
        self.controller.handle_timeout(self.now);
        self.drain();
    }

    fn hours(&mut self, hours: usize) {
        for _ in 0..hours * TICKS_AN_HOUR {
            self.tick();
        }
    }

    fn connections(&self) -> Vec<ConnectionId> {
        self.agents.iter().map(|agent| agent.connection).collect()
    }
}

#[test]
fn p11_a_day_of_routes_and_agents_that_come_and_go_is_held_in_bounded_memory() {
    let mut day = None;
    let bytes = |run: &mut dyn FnMut()| allocation_counter::measure(run).bytes_current;
    let half = bytes(&mut || {
        let mut new = Day::new();
        new.hours(12);
        day = Some(new);
    });
    let mut day = day.unwrap();
    let later = bytes(&mut || day.hours(12));
    assert!(half > 100_000, "{half} bytes are held after twelve hours");
    assert!(
        later < half / 20,
        "{half} bytes after twelve hours, {later} more after a day"
    );
    // The day was one: all was counted, routes were decided, agents changed.
    assert_eq!(day.counted, AGENTS * 24 * TICKS_AN_HOUR as u64);
    assert!(day.connections()[0].0 > 40);
    let view = day.controller.snapshot(day.now);
    assert!(view.routes.len() <= ROUTES + 3, "{}", view.routes.len());
    for route in view.routes.values() {
        assert!(route.course.len() <= 300 && route.marks.len() <= 50);
        assert!(route.transitions.len() <= 50);
    }
    let stays = &view.routes[&RouteKey::new("catalog", "get0").unwrap()];
    assert!(stays.figures.is_some() && !stays.transitions.is_empty());
}
