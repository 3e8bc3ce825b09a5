//! The real controller in the world: events in, effects carried out. Its store answers at once;
//! what it pushes reaches agents a little later.

mod store;

use std::collections::VecDeque;
use std::time::Duration;

use hedgerow_core::Controller;
use hedgerow_core::decide::Decision;
use hedgerow_core::effect::Effect;
use hedgerow_core::event::{Actor, ConnectionId, Event, Order, RequestId, Settings, Via};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::directive::DirectiveSet;
use hedgerow_protocol::policy::Policy;

pub(crate) use self::store::Store;

/// When each run begins, in milliseconds since 1970: any date will do.
const START_MS: u64 = 1_700_000_000_000;

/// The controller's time at a moment of the run, in microseconds.
pub(crate) fn moment(now: u64) -> Moment {
    Moment::from_millis(START_MS + now / 1000)
}

/// Seconds from the run's beginning.
pub(crate) fn seconds(at: Moment) -> f64 {
    at.since(Moment::from_millis(START_MS)).as_secs_f64()
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Driver {
    settings: Settings,
    /// None while it is gone.
    controller: Option<Controller>,
    pub(crate) store: Store,
    /// Sets to be delivered.
    pub(crate) pushes: Vec<(ConnectionId, DirectiveSet)>,
    /// Streams on which a report was answered.
    pub(crate) heard: Vec<ConnectionId>,
    /// Reports it refused, and the last reason.
    pub(crate) refused: (u64, Option<String>),
}

impl Driver {
    /// A controller whose operator has set `policy`.
    pub(crate) fn new(policy: Policy) -> Self {
        let mut driver = Self {
            settings: Settings::default(),
            controller: None,
            store: Store::default(),
            pushes: Vec::new(),
            heard: Vec::new(),
            refused: (0, None),
        };
        driver.start(0);
        let order = Order::SetPolicy {
            policy: Box::new(policy),
            expected: None,
            rollout: None,
        };
        let ordered = Event::Ordered {
            request: RequestId(1),
            actor: Actor {
                name: "scenario".into(),
                via: Via::Seed,
            },
            reason: "the scenario's policy".into(),
            order,
        };
        driver.event(0, ordered);
        driver
    }

    /// It starts with what its store holds.
    pub(crate) fn start(&mut self, now: u64) {
        let (settings, restored) = (self.settings.clone(), self.store.restored());
        self.controller = Some(Controller::new(settings, restored, moment(now)));
        self.carry_out(now);
    }

    /// It dies.
    pub(crate) fn stop(&mut self) {
        self.controller = None;
    }

    pub(crate) fn is_running(&self) -> bool {
        self.controller.is_some()
    }

    /// How long its directives hold, and how often it wants to be spoken to.
    pub(crate) fn lease(&self) -> (Duration, Duration) {
        (self.settings.lease, self.settings.heartbeat)
    }

    pub(crate) fn event(&mut self, now: u64, event: Event) {
        if let Some(controller) = &mut self.controller {
            controller.handle_event(moment(now), event);
            self.carry_out(now);
        }
    }

    pub(crate) fn tick(&mut self, now: u64) {
        if let Some(controller) = &mut self.controller {
            controller.handle_timeout(moment(now));
            self.carry_out(now);
        }
    }

    /// What it decided last.
    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.controller.as_ref()?.decision(&crate::route())
    }

    /// All that may be known of the fleet; dear with many agents.
    pub(crate) fn snapshot(&self, now: u64) -> Option<FleetSnapshot> {
        let controller = self.controller.as_ref()?;
        Some(controller.snapshot(moment(now)))
    }

    fn carry_out(&mut self, now: u64) {
        let Some(controller) = &mut self.controller else {
            return;
        };
        let mut answers = VecDeque::new();
        loop {
            while let Some(effect) = controller.poll_effect() {
                match effect {
                    Effect::Persist { write, records } => {
                        self.store.commit(records);
                        answers.push_back(Event::Persisted(write));
                    }
                    Effect::Push { connection, set } => self.pushes.push((connection, set)),
                    Effect::Acknowledge {
                        connection,
                        refused,
                        ..
                    } => {
                        self.heard.push(connection);
                        if refused.is_some() {
                            self.refused.0 += 1;
                            self.refused.1 = refused;
                        }
                    }
                    Effect::Reply { .. } => {}
                }
            }
            let Some(answer) = answers.pop_front() else {
                return;
            };
            controller.handle_event(moment(now), answer);
        }
    }
}
