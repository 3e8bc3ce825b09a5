//! Readings from outside: taken at once, for they are news and not anybody's decision.

use std::time::Duration;

use hedgerow_protocol::ids::{DependencyName, RouteKey};
use hedgerow_protocol::units::Ratio;

use crate::alert::duplicates::{Duplicates, OVER};
use crate::controller::Controller;
use crate::decide::Utilisation;
use crate::effect::{Done, OrderError};
use crate::moment::Moment;

/// How long a reading may hold. Shorter than a tick it would never act; for longer than an hour
/// nobody knows.
const VALID_FOR: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(1));
/// How long after its end it is still said that there was one.
const SAID_FOR: Duration = Duration::from_hours(1);

impl Controller {
    /// Takes a reading, in force with the next tick.
    pub(super) fn take_utilisation(
        &mut self,
        now: Moment,
        dependency: DependencyName,
        utilisation: Option<Ratio>,
        valid_for: Duration,
    ) -> Result<Done, OrderError> {
        let (least, most) = VALID_FOR;
        if !(least..=most).contains(&valid_for) {
            return Err(OrderError::OutOfRange {
                field: "valid_for",
                problem: format!(
                    "{} s is out of range: expected {} to {}",
                    valid_for.as_secs_f64(),
                    least.as_secs(),
                    most.as_secs()
                ),
            });
        }
        // Of known ones only: memory depends on what agents report, not on what names are sent.
        let known = self
            .rules
            .policies
            .keys()
            .any(|scope| scope.dependency() == Some(&dependency))
            || self.routes.keys().any(|key| key.dependency == dependency);
        if !known {
            return Err(OrderError::UnknownDependency(dependency));
        }
        match utilisation {
            Some(value) => {
                let reading = Utilisation {
                    value,
                    at: now,
                    valid_for,
                };
                self.utilisation.insert(dependency, reading);
            }
            None => {
                self.utilisation.remove(&dependency);
            }
        }
        Ok(Done::Utilisation)
    }

    /// Takes a server's count of what it executed twice, and puts beside it what was hedged.
    pub(super) fn take_duplicates(
        &mut self,
        now: Moment,
        route: RouteKey,
        executed: u64,
        over: Duration,
    ) -> Result<Done, OrderError> {
        let (least, most) = OVER;
        if !(least..=most).contains(&over) {
            return Err(OrderError::OutOfRange {
                field: "over",
                problem: format!(
                    "{} s is out of range: expected {} to {}",
                    over.as_secs_f64(),
                    least.as_secs(),
                    most.as_secs()
                ),
            });
        }
        let Some(known) = self.routes.get_mut(&route) else {
            return Err(OrderError::UnknownRoute(route));
        };
        let reading = Duplicates::read(now, over, executed, &known.sent);
        known.duplicates = Some(reading);
        self.publish_route(now, &route);
        Ok(Done::Utilisation)
    }

    /// Forgets readings that ended long ago.
    pub(crate) fn forget_utilisation(&mut self, now: Moment) {
        self.utilisation
            .retain(|_, reading| now.since(reading.until()) < SAID_FOR);
        for route in self.routes.values_mut() {
            route.duplicates = route.duplicates.filter(|it| now.since(it.at) < SAID_FOR);
        }
    }
}
