//! How many streams, how fast. Newcomers are told when to come back; nobody is put out for another
//! (P7).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::config::AgentLimits;

/// Least time to stay away.
const AWAY_MIN: Duration = Duration::from_millis(500);
/// Most time to stay away: longer would outlast the lease for no reason.
const AWAY_MAX: Duration = Duration::from_secs(30);
/// How long a place that was refused for its number stays away, on average: places come free
/// seldom.
const AWAY_FULL: Duration = Duration::from_secs(15);

/// Admits streams.
#[derive(Debug)]
pub(super) struct Admission {
    limits: AgentLimits,
    places: Arc<Semaphore>,
    rate: Mutex<Rate>,
}

/// A place among the streams, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

/// Not now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotNow {
    pub(super) after: Duration,
    /// For the counter: `rate` or `full`.
    pub(super) why: &'static str,
}

/// A bucket of a second's admissions, and how many have been sent away lately.
#[derive(Debug)]
struct Rate {
    tokens: f64,
    /// Expected to come back: leaks at the admitted rate.
    away: f64,
    at: Instant,
}

impl Admission {
    pub(super) fn new(limits: AgentLimits) -> Self {
        Self {
            limits,
            places: Arc::new(Semaphore::new(limits.streams_max as usize)),
            rate: Mutex::new(Rate {
                tokens: f64::from(limits.admitted_per_s),
                away: 0.0,
                at: Instant::now(),
            }),
        }
    }

    /// A place, or when to come back.
    pub(super) fn admit(&self) -> Result<Place, NotNow> {
        let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(NotNow {
                after: drawn(AWAY_FULL.mul_f64(2.0)),
                why: "full",
            });
        };
        let per_s = f64::from(self.limits.admitted_per_s);
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let earned = now.duration_since(rate.at).as_secs_f64() * per_s;
        rate.at = now;
        rate.tokens = (rate.tokens + earned).min(per_s.max(1.0));
        rate.away = (rate.away - earned).max(0.0);
        if rate.tokens >= 1.0 {
            rate.tokens -= 1.0;
            return Ok(Place { _permit: permit });
        }
        rate.away += 1.0;
        // Those away need away / rate seconds to be admitted: spread over twice that.
        let spread = Duration::from_secs_f64((2.0 * rate.away / per_s).min(3600.0));
        Err(NotNow {
            after: drawn(spread),
            why: "rate",
        })
    }

    /// How long an agent that is sent away by a shutdown stays away: spread so that all of them can
    /// be admitted at the rate (P20).
    pub(super) fn drained(&self) -> Duration {
        let attached =
            (self.limits.streams_max as usize).saturating_sub(self.places.available_permits());
        let seconds = 2.0 * attached as f64 / f64::from(self.limits.admitted_per_s);
        drawn(Duration::from_secs_f64(seconds.max(1.0)))
    }
}

/// Between the least time and `spread` more.
fn drawn(spread: Duration) -> Duration {
    (AWAY_MIN + spread.mul_f64(rand::random::<f64>())).min(AWAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn b57_newcomers_beyond_the_rate_are_sent_away_spread_out() {
        let limits = AgentLimits {
            streams_max: 100_000,
            admitted_per_s: 100,
            ..AgentLimits::default()
        };
        let admission = Admission::new(limits);
        let mut places = Vec::new();
        let mut away = Vec::new();
        for _ in 0..1_000 {
            match admission.admit() {
                Ok(place) => places.push(place),
                Err(not_now) => away.push(not_now.after),
            }
        }
        assert_eq!(places.len(), 100);
        assert_eq!(away.len(), 900);
        let late = away
            .iter()
            .filter(|after| **after > Duration::from_secs(5))
            .count();
        let early = away
            .iter()
            .filter(|after| **after < Duration::from_secs(5))
            .count();
        assert!(late > 100 && early > 100, "{late} late, {early} early");

        tokio::time::advance(Duration::from_millis(500)).await;
        let again = (0..100)
            .filter_map(|_| admission.admit().ok())
            .collect::<Vec<_>>();
        assert_eq!(again.len(), 50);
    }

    #[tokio::test(start_paused = true)]
    async fn p07_a_full_controller_refuses_and_never_evicts() {
        let limits = AgentLimits {
            streams_max: 2,
            ..AgentLimits::default()
        };
        let admission = Admission::new(limits);
        let places = [admission.admit(), admission.admit()];
        assert!(places.iter().all(Result::is_ok));
        assert_eq!(
            admission.admit().map(|_| ()).map_err(|e| e.why),
            Err("full")
        );
        drop(places);
        assert!(admission.admit().is_ok());
    }
}
