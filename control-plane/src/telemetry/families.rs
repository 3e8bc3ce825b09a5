//! The vocabulary: every metric of the controller, by name. Nothing is shown on `/metrics` that is
//! not declared here. `deploy/METRICS.md` has the table for readers; a test keeps the two alike.

use prometheus::core::Desc;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One metric.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
    /// What is counted, or `s` for seconds, `1` for a share, nothing for a state.
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

macro_rules! families {
    ($($id:ident = $kind:ident $name:literal $labels:tt $unit:literal, $help:literal;)*) => {
        $(pub(super) const $id: Family = Family {
            name: concat!("hedgerow_controller_", $name),
            kind: Kind::$kind,
            labels: &$labels,
            unit: $unit,
            help: $help,
        };)*

        /// All of them.
        #[cfg(test)]
        pub(super) const ALL: &[Family] = &[$($id),*];
    };
}

families! {
    // Of each route.
    CALLS = Counter "calls_total" ["dependency", "operation"] "calls",
        "Eligible calls started.";
    FINISHED = Counter "calls_finished_total" ["dependency", "operation"] "calls",
        "Eligible calls that ended, abandoned ones among them: what the budget is earned by.";
    FAILED = Counter "calls_failed_total" ["dependency", "operation"] "calls",
        "Eligible calls that ended with an error.";
    CROSSED = Counter "crossed_total" ["dependency", "operation"] "calls",
        "Eligible calls unanswered at the threshold, hedged or not.";
    HEDGES = Counter "hedges_total" ["dependency", "operation"] "hedges",
        "Hedges sent.";
    WON = Counter "hedges_won_total" ["dependency", "operation"] "hedges",
        "Hedges that answered first.";
    WASTED = Counter "hedges_wasted_total" ["dependency", "operation"] "hedges",
        "Hedges that did not answer first: load that bought nothing. One under way counts until it wins.";
    REFUSED = Counter "hedges_refused_total" ["dependency", "operation", "reason"] "calls",
        "Crossed calls that were not hedged, by reason.";
    PUSH_BACK = Counter "push_back_total" ["dependency", "operation"] "attempts",
        "Attempts answered with push-back.";
    OVER_BUDGET = Counter "over_budget_seconds_total" ["dependency", "operation"] "s",
        "Seconds in which more hedges were sent than the budget allows.";
    HEDGE_RATE = Gauge "hedge_rate" ["dependency", "operation"] "1",
        "Hedges sent / eligible calls started.";
    DEMAND = Gauge "demand" ["dependency", "operation"] "1",
        "Calls that crossed on replicas not named, times the share hedged / eligible calls started.";
    WIN_RATE = Gauge "win_rate" ["dependency", "operation"] "1",
        "Hedges that answered first / hedges sent.";
    WIN_RATE_EXPECTED = Gauge "win_rate_expected" ["dependency", "operation"] "1",
        "What the win rate would be if replicas were slow independently.";
    ERROR_RATE = Gauge "error_rate" ["dependency", "operation"] "1",
        "Primaries that failed / primaries that ended.";
    LATENCY = Gauge "latency_seconds" ["dependency", "operation", "of", "quantile"] "s",
        "Latency: of primaries by themselves, and what callers of treated and of held-out calls waited.";
    THRESHOLD = Gauge "threshold_seconds" ["dependency", "operation"] "s",
        "How long a call may stay unanswered before it may be hedged.";
    BUDGET = Gauge "budget" ["dependency", "operation"] "1",
        "Hedges allowed as a share of finished calls.";
    CALLS_PER_SECOND = Gauge "calls_per_second" ["dependency", "operation"] "calls/s",
        "Eligible calls started a second.";
    MODE = Gauge "mode" ["dependency", "operation", "mode", "reason"] "",
        "1 for the mode in force, with its reason where it is off or probing.";
    AGENTS_REPORTING = Gauge "agents_reporting" ["dependency", "operation"] "agents",
        "Agents that report the route: those its directive is for.";
    AGENTS_HOLDING = Gauge "agents_holding" ["dependency", "operation"] "agents",
        "Of these, agents that hold the newest directive.";
    AGENTS_REFUSING = Gauge "agents_refusing" ["dependency", "operation"] "agents",
        "Agents that refused the newest directive.";
    REPLICA_NAMED = Gauge "replica_named" ["dependency", "operation", "replica", "why"] "",
        "1 for each replica that is what is slow or failing.";

    // Of the fleet.
    AGENTS = Gauge "agents" ["state"] "agents",
        "Agents, by how they stand.";
    ALERTS_FIRING = Gauge "alerts_firing" ["rule"] "alerts",
        "Alerts that fire, by rule.";
    KILL_SWITCHES = Gauge "kill_switches" ["scope"] "switches",
        "Kill switches that are thrown, by scope.";
    ROUTES_BEYOND_CAP = Gauge "routes_beyond_cap" [] "routes",
        "Routes beyond the most that are kept apart, counted under the dependency __other__.";

    // Of the controller.
    INFO = Gauge "info" ["version"] "",
        "1, with the controller's version.";
    STARTED = Gauge "started_seconds" [] "s",
        "When this controller started, in seconds since 1970.";
    EPOCH = Gauge "epoch" [] "epochs",
        "The life of the store: one more with each start.";
    REPORTS = Counter "reports_total" ["outcome"] "reports",
        "Reports of agents, by outcome.";
    INTAKE_DROPPED = Counter "intake_dropped_total" [] "messages",
        "Messages of agents that sent more than allowed, dropped while the engine was busy.";
    STREAMS_REFUSED = Counter "streams_refused_total" ["reason"] "streams",
        "Streams and connections of agents refused or ended by the controller, by reason.";
    PUSHES = Counter "pushes_total" [] "sets",
        "Sets of directives handed to agents' streams.";
    TICK = Histogram "tick_seconds" [] "s",
        "How long a tick took to decide.";
    WRITES = Counter "writes_total" ["outcome"] "writes",
        "Writes to the store, by outcome: stored, failed, no_room.";
    WRITES_PENDING = Gauge "writes_pending" [] "writes",
        "Writes that are not durable yet.";
    DELIVERIES = Counter "deliveries_total" ["receiver", "outcome"] "attempts",
        "Attempts to hand a notice to a receiver, by outcome: delivered, failed, given_up.";
    NOTICES_WAITING = Gauge "notices_waiting" ["receiver"] "notices",
        "Notices in the outbox that wait for their receiver.";
    PAGES_OPEN = Gauge "pages_open" [] "streams",
        "Event streams of pages that are open in browsers.";
}

/// Why none of these can fail.
const VALID: &str = "the names in this file are valid";

impl Family {
    fn opts(&self) -> Opts {
        Opts::new(self.name, self.help)
    }

    pub(super) fn desc(&self) -> Desc {
        let labels = self.labels.iter().map(|&it| it.to_owned()).collect();
        let none = std::collections::HashMap::new();
        Desc::new(self.name.into(), self.help.into(), labels, none).expect(VALID)
    }

    pub(super) fn counter(&self) -> IntCounter {
        IntCounter::with_opts(self.opts()).expect(VALID)
    }

    pub(super) fn counters(&self) -> IntCounterVec {
        IntCounterVec::new(self.opts(), self.labels).expect(VALID)
    }

    pub(super) fn whole(&self) -> IntGauge {
        IntGauge::with_opts(self.opts()).expect(VALID)
    }

    pub(super) fn wholes(&self) -> IntGaugeVec {
        IntGaugeVec::new(self.opts(), self.labels).expect(VALID)
    }

    pub(super) fn levels(&self) -> GaugeVec {
        GaugeVec::new(self.opts(), self.labels).expect(VALID)
    }

    pub(super) fn histogram(&self, edges: &[f64]) -> Histogram {
        let opts = HistogramOpts::new(self.name, self.help).buckets(edges.to_vec());
        Histogram::with_opts(opts).expect(VALID)
    }
}

#[cfg(test)]
mod tests;
