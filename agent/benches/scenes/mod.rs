//! The rows: what happens to the dependency, and who calls.

pub(crate) mod drive;
pub(crate) mod figures;
mod real;
mod simulated;

use std::time::Duration;

use tower::BoxError;

use self::figures::Fields;
use crate::subjects::Subject;

/// One row of the results.
pub(crate) struct Row {
    /// The contract's name.
    pub(crate) name: &'static str,
    /// What a reader has to know.
    pub(crate) about: &'static str,
    /// Figures beyond the usual ones, by field and column.
    pub(crate) extra: &'static [(&'static str, &'static str)],
    pub(crate) run: fn(&Asked) -> Result<Fields, BoxError>,
}

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) subject: Subject,
    pub(crate) length: Length,
    /// What the row's run of [`Subject::Bare`] found, which comes first.
    pub(crate) plain_p95: Option<Duration>,
}

/// How long runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Whole,
    /// A look, not a result.
    Quick,
}

impl Length {
    fn or(self, whole: u64, quick: u64) -> u64 {
        match self {
            Self::Whole => whole,
            Self::Quick => quick,
        }
    }
}

const BUDGET: (&str, &str) = ("seconds_over_budget", "s over budget");
const LONG: (&str, &str) = ("over_1s", "over 1 s");
const SUCCESS: (&str, &str) = ("success", "answered");
const BUSY: (&str, &str) = ("busy_ratio", "replicas' work ÷ bare");

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "healthy",
        about: "5 % stragglers, ten times slower; ten minutes, 500 calls/s",
        extra: &[BUSY, BUDGET],
        run: simulated::healthy,
    },
    Row {
        name: "slow_x3",
        about: "1 % stragglers; then everything takes three times as long: the minute from then on",
        extra: &[BUSY, BUDGET],
        run: simulated::slow_x3,
    },
    Row {
        name: "dead_one",
        about: "1 % stragglers; then one of three replicas answers nobody; 30 callers, each with one call at a \
                time and a deadline of 1 s: a minute from the tenth second on, throughput as a \
                share of what it was before",
        extra: &[
            ("throughput_ratio", "throughput"),
            SUCCESS,
            ("threshold_before_ms", "threshold before, ms"),
            ("threshold_after_ms", "after"),
            BUDGET,
        ],
        run: simulated::dead_one,
    },
    Row {
        name: "errors",
        about: "1 % stragglers; then 30 % of attempts fail within 5 ms: the minute from then on",
        extra: &[("extra_load", "extra load"), SUCCESS, BUDGET],
        run: simulated::errors,
    },
    Row {
        name: "drift",
        about: "p95 goes from 180 to 400 ms within a second: the minute from then on",
        extra: &[
            ("under_10_after_s", "under 10 % again after, s"),
            BUSY,
            BUDGET,
        ],
        run: simulated::drift,
    },
    Row {
        name: "fan_out_10",
        about: "a user's request waits for 10 calls (5 to 15 ms, 1 % stalled for a second); \
                latencies are the requests'",
        extra: &[("share_over_1s", "over 1 s"), BUSY, BUDGET],
        run: simulated::fan_out_10,
    },
    Row {
        name: "fan_out_100",
        about: "the same, for 100 calls",
        extra: &[("share_over_1s", "over 1 s"), BUSY, BUDGET],
        run: simulated::fan_out_100,
    },
    Row {
        name: "grpc_4",
        about: "real gRPC over loopback, three servers (5 to 15 ms, 1 % stalled for a second): 500 \
                calls to warm up, then 4,000, 4 in flight",
        extra: &[LONG, ("extra_load", "extra load")],
        run: real::grpc_4,
    },
    Row {
        name: "grpc_40",
        about: "the same, 40 in flight",
        extra: &[LONG, ("extra_load", "extra load")],
        run: real::grpc_40,
    },
];
