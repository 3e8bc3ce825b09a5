//! Every limit that both sides must agree on, each with its reason.

use std::time::Duration;

/// Largest budget an agent accepts, whatever is pushed: a controller gone wrong can cost a quarter
/// more load, not double it.
pub const BUDGET_MAX: f64 = 0.25;
/// Shortest threshold: below it a timer's own resolution decides who is hedged.
pub const THRESHOLD_MIN: Duration = Duration::from_micros(100);
/// Longest threshold: the histograms end there.
pub const THRESHOLD_MAX: Duration = Duration::from_hours(1);
/// Most copies of one call.
pub const ATTEMPTS_MAX: u8 = 3;
/// Routes one agent reports; further ones are counted together, as one route more: `__other__`.
pub const ROUTES_PER_AGENT_MAX: usize = 64;
/// Replicas in one route's report: the busiest.
pub const REPLICAS_PER_REPORT_MAX: usize = 16;
/// Replicas kept for a route, by agent and controller.
pub const REPLICAS_PER_ROUTE_MAX: usize = 256;
/// Routes a controller keeps.
pub const ROUTES_PER_CONTROLLER_MAX: usize = 10_000;
/// Largest message either side decodes. A full report of 64 routes with 16 replicas each stays
/// under a quarter of it.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// How long a directive holds without a word from the controller, where nothing else is said.
pub const LEASE_DEFAULT: Duration = Duration::from_secs(30);
/// Shortest and longest lease an agent accepts.
pub const LEASE_MIN: Duration = Duration::from_secs(1);
/// See [`LEASE_MIN`].
pub const LEASE_MAX: Duration = Duration::from_hours(1);
/// How often each side speaks at least.
pub const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(10);
/// How often an agent reports.
pub const REPORT_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// Budget an agent falls back to when its lease is over: min(pushed, this).
pub const FALLBACK_BUDGET: f64 = 0.02;
/// How long the way from the pushed to the fallback budget takes, so that a fleet that loses its
/// controller does not step.
pub const FALLBACK_DECAY: Duration = Duration::from_secs(30);
/// Calls needed for a threshold.
pub const THRESHOLD_CALLS_MIN: u64 = 200;
/// Finished primaries needed for a verdict on errors.
pub const ERROR_PRIMARIES_MIN: u64 = 100;
/// Shortest and longest turn of an armed agent: see [`Arming`](crate::arming::Arming). One shorter
/// than a second is over before an agent looks; one of more than ten minutes leaves nine of ten
/// agents without a hedge for an hour and a half.
pub const ARMING_EPOCH_MIN: Duration = Duration::from_secs(1);
/// See [`ARMING_EPOCH_MIN`].
pub const ARMING_EPOCH_MAX: Duration = Duration::from_mins(10);
/// Most tokens or whole hedges a cap may grant at once, so that a pushed cap cannot be unlimited.
pub const CAP_MAX: f64 = 10_000.0;
