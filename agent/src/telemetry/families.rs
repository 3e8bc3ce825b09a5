//! The vocabulary: every metric of the agent and every attribute it puts on a span, by name.
//!
//! Whoever shows the metrics, shows this table: names, labels and values cannot differ between
//! Prometheus and OpenTelemetry. Counters end in `_total`, times are in seconds.
//! The README has the table for readers; a test keeps the two alike.

use hedgerow_protocol::directive::OffReason;
use hedgerow_protocol::latency::Histogram;
use hedgerow_protocol::report::{LinkState, Refusal};

use super::figures::{Figures, OfAgent, OfRoute};
use crate::route::NO_CONTROLLER;

/// Label and attribute: what is called.
pub(super) const DEPENDENCY: &str = "dependency";
/// Label and attribute: which of its methods.
pub(super) const OPERATION: &str = "operation";
/// Attribute of an OpenTelemetry metric: which agent of the process, as on the controller's pages.
#[cfg(feature = "opentelemetry")]
pub(super) const AGENT_INSTANCE: &str = "hedgerow.agent.instance";
/// Label and attribute: the upper edge of a cumulative bucket, in seconds.
#[cfg(feature = "opentelemetry")]
pub(super) const LE: &str = "le";

/// Attributes of a call's span.
pub(super) mod attribute {
    /// What is called.
    pub(crate) const DEPENDENCY: &str = "hedgerow.dependency";
    /// Which of its methods.
    pub(crate) const OPERATION: &str = "hedgerow.operation";
    /// Whether it was unanswered at the threshold.
    pub(crate) const CROSSED: &str = "hedgerow.crossed";
    /// Attempts sent.
    pub(crate) const ATTEMPTS: &str = "hedgerow.attempts";
    /// Whose answer it was: `primary` or `hedge`; absent where nobody answered.
    pub(crate) const WINNER: &str = "hedgerow.winner";
    /// Why a crossed call was not hedged, or a call not once more.
    pub(crate) const REFUSED: &str = "hedgerow.refused";
    /// The threshold it crossed, in milliseconds.
    pub(crate) const THRESHOLD_MS: &str = "hedgerow.threshold_ms";
    /// Where its attempts went, in the order they were sent, with commas between.
    pub(crate) const REPLICAS: &str = "hedgerow.replicas";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// What a family says of one set of labels.
pub(super) enum Value<'a> {
    Count(u64),
    Level(f64),
    Latencies(&'a Histogram),
}

type Labels<'a> = &'a [(&'static str, &'a str)];
type Emit<'a> = &'a mut dyn FnMut(Labels<'_>, Value<'_>);

/// Whose figures a family shows.
enum Of {
    Routes(fn(&OfRoute, Emit<'_>)),
    Agent(fn(&OfAgent, Emit<'_>)),
}

pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// In UCUM's spelling, as OpenTelemetry wants it.
    #[cfg_attr(
        not(any(test, feature = "opentelemetry")),
        expect(dead_code, reason = "shown by meters only")
    )]
    pub(super) unit: &'static str,
    pub(super) kind: Kind,
    /// Beside those of the route.
    labels: &'static [&'static str],
    of: Of,
}

impl Family {
    pub(super) fn labels(&self) -> impl Iterator<Item = &'static str> {
        let of_route = match self.of {
            Of::Routes(_) => &[DEPENDENCY, OPERATION][..],
            Of::Agent(_) => &[],
        };
        of_route.iter().chain(self.labels).copied()
    }

    /// Hands over each set of labels with its value.
    pub(super) fn show(&self, figures: &Figures, emit: Emit<'_>) {
        match self.of {
            Of::Agent(show) => show(&figures.agent, emit),
            Of::Routes(show) => {
                for route in &figures.routes {
                    show(route, &mut |labels, value| {
                        let mut all = Vec::with_capacity(labels.len() + 2);
                        all.push((DEPENDENCY, route.key.dependency.as_str()));
                        all.push((OPERATION, route.key.operation.as_str()));
                        all.extend_from_slice(labels);
                        emit(&all, value);
                    });
                }
            }
        }
    }
}

pub(super) static FAMILIES: [Family; 24] = [
    Family {
        name: "hedgerow_calls_total",
        help: "Calls, by arm and how they ended.",
        unit: "{call}",
        kind: Kind::Counter,
        labels: &["arm", "outcome"],
        of: Of::Routes(calls),
    },
    Family {
        name: "hedgerow_crossed_total",
        help: "Eligible calls still unanswered at the threshold, hedged or not.",
        unit: "{call}",
        kind: Kind::Counter,
        labels: &[],
        of: Of::Routes(|route, emit| emit(&[], Value::Count(route.totals.crossed))),
    },
    Family {
        name: "hedgerow_attempts_total",
        help: "Attempts of eligible calls, by kind and outcome; hedges on error are sent and won only.",
        unit: "{attempt}",
        kind: Kind::Counter,
        labels: &["kind", "outcome"],
        of: Of::Routes(attempts),
    },
    Family {
        name: "hedgerow_hedges_total",
        help: "Hedges sent, by what for: the call crossed, crossed again, or its attempts failed.",
        unit: "{hedge}",
        kind: Kind::Counter,
        labels: &["cause"],
        of: Of::Routes(hedges),
    },
    Family {
        name: "hedgerow_further_refused_total",
        help: "Second hedges, and hedges on error, that were not admitted, by reason.",
        unit: "{hedge}",
        kind: Kind::Counter,
        labels: &["reason"],
        of: Of::Routes(further_refused),
    },
    Family {
        name: "hedgerow_refused_total",
        help: "Crossed calls that were not hedged, by reason.",
        unit: "{call}",
        kind: Kind::Counter,
        labels: &["reason"],
        of: Of::Routes(refused),
    },
    Family {
        name: "hedgerow_threshold_past_deadline_total",
        help: "Eligible calls whose deadline came no later than the threshold: never hedged.",
        unit: "{call}",
        kind: Kind::Counter,
        labels: &[],
        of: Of::Routes(|route, emit| {
            emit(&[], Value::Count(route.totals.threshold_past_deadline));
        }),
    },
    Family {
        name: "hedgerow_push_back_total",
        help: "Attempts answered with push-back.",
        unit: "{attempt}",
        kind: Kind::Counter,
        labels: &[],
        of: Of::Routes(|route, emit| emit(&[], Value::Count(route.totals.push_back))),
    },
    Family {
        name: "hedgerow_probation_skipped_total",
        help: "Picks of a replica that its probation turned away.",
        unit: "{attempt}",
        kind: Kind::Counter,
        labels: &[],
        of: Of::Routes(|route, emit| emit(&[], Value::Count(route.totals.probation_skipped))),
    },
    Family {
        name: "hedgerow_call_seconds",
        help: "What callers waited for eligible calls, by arm.",
        unit: "s",
        kind: Kind::Histogram,
        labels: &["arm"],
        of: Of::Routes(|route, emit| {
            for (arm, latencies) in [("treated", &route.treated), ("holdout", &route.holdout)] {
                // Bounds of nothing are twenty series that say nothing.
                if !latencies.is_empty() {
                    emit(&[("arm", arm)], Value::Latencies(latencies));
                }
            }
        }),
    },
    Family {
        name: "hedgerow_threshold_seconds",
        help: "How long a call may stay unanswered before it may be hedged.",
        unit: "s",
        kind: Kind::Gauge,
        labels: &[],
        of: Of::Routes(|route, emit| {
            if let Some(threshold) = route.threshold {
                emit(&[], Value::Level(threshold.as_secs_f64()));
            }
        }),
    },
    Family {
        name: "hedgerow_budget_ratio",
        help: "Hedges earned by each eligible finished call.",
        unit: "1",
        kind: Kind::Gauge,
        labels: &[],
        of: Of::Routes(|route, emit| emit(&[], Value::Level(route.budget))),
    },
    Family {
        name: "hedgerow_tokens",
        help: "Hedges the budget has saved up.",
        unit: "{hedge}",
        kind: Kind::Gauge,
        labels: &[],
        of: Of::Routes(|route, emit| emit(&[], Value::Level(route.tokens))),
    },
    Family {
        name: "hedgerow_mode",
        help: "1 for the mode in force, with its reason.",
        unit: "",
        kind: Kind::Gauge,
        labels: &["mode", "reason"],
        of: Of::Routes(|route, emit| {
            let reason = route.mode.reason().map_or("", OffReason::as_str);
            let labels = [("mode", route.mode.as_str()), ("reason", reason)];
            emit(&labels, Value::Level(1.0));
        }),
    },
    Family {
        name: "hedgerow_no_effect",
        help: "1 where hedging is on and can do nothing, with the reason.",
        unit: "",
        kind: Kind::Gauge,
        labels: &["because"],
        of: Of::Routes(|route, emit| {
            if let Some(because) = route.no_effect {
                emit(&[("because", because.as_str())], Value::Level(1.0));
            }
        }),
    },
    Family {
        name: "hedgerow_replica_named",
        help: "1 for each replica that is what is slow or failing, by the agent's own figures.",
        unit: "",
        kind: Kind::Gauge,
        labels: &["replica", "why"],
        of: Of::Routes(|route, emit| {
            for named in &route.named {
                let (replica, why) = (named.replica.as_str(), named.why.as_str());
                emit(&[("replica", replica), ("why", why)], Value::Level(1.0));
            }
        }),
    },
    Family {
        name: "hedgerow_attempts_in_flight",
        help: "Attempts alive, held permits among them.",
        unit: "{attempt}",
        kind: Kind::Gauge,
        labels: &[],
        of: Of::Routes(|route, emit| emit(&[], Value::Level(route.attempts_in_flight as f64))),
    },
    Family {
        name: "hedgerow_watched_losers",
        help: "Losers let finish, to know the joint tail.",
        unit: "{attempt}",
        kind: Kind::Gauge,
        labels: &[],
        of: Of::Routes(|route, emit| emit(&[], Value::Level(f64::from(route.watched_losers)))),
    },
    Family {
        name: "hedgerow_link_state",
        help: "1 for how the agent stands towards its controller.",
        unit: "",
        kind: Kind::Gauge,
        labels: &["state"],
        of: Of::Agent(|agent, emit| {
            let states = [LinkState::Live, LinkState::Stale, LinkState::Fallback].map(Some);
            for state in states.into_iter().chain([None]) {
                let holds = f64::from(u8::from(state == agent.link));
                let name = state.map_or(NO_CONTROLLER, LinkState::as_str);
                emit(&[("state", name)], Value::Level(holds));
            }
        }),
    },
    Family {
        name: "hedgerow_unreported_routes",
        help: "Routes beyond the most that an agent reports.",
        unit: "{route}",
        kind: Kind::Gauge,
        labels: &[],
        of: Of::Agent(|agent, emit| emit(&[], Value::Level(agent.unreported_routes as f64))),
    },
    Family {
        name: "hedgerow_policy_file_policies",
        help: "Policies of the policy file that hold.",
        unit: "{policy}",
        kind: Kind::Gauge,
        labels: &[],
        of: Of::Agent(|agent, emit| {
            if let Some((policies, _)) = agent.policy_file {
                emit(&[], Value::Level(policies as f64));
            }
        }),
    },
    Family {
        name: "hedgerow_policy_file_refused_total",
        help: "Contents of the policy file that were refused; the last good one holds.",
        unit: "{file}",
        kind: Kind::Counter,
        labels: &[],
        of: Of::Agent(|agent, emit| {
            if let Some((_, refused)) = agent.policy_file {
                emit(&[], Value::Count(refused));
            }
        }),
    },
    Family {
        name: "hedgerow_directives_refused_total",
        help: "Directives, and sets of them, that the agent did not take; what was held stays.",
        unit: "{refusal}",
        kind: Kind::Counter,
        labels: &["scope"],
        of: Of::Agent(|agent, emit| {
            emit(
                &[("scope", "directive")],
                Value::Count(agent.directives_refused),
            );
            emit(&[("scope", "set")], Value::Count(agent.sets_refused));
        }),
    },
    Family {
        name: "hedgerow_reports_refused_total",
        help: "Reports the controller did not take.",
        unit: "{report}",
        kind: Kind::Counter,
        labels: &[],
        of: Of::Agent(|agent, emit| emit(&[], Value::Count(agent.reports_refused))),
    },
];

fn calls(route: &OfRoute, emit: Emit<'_>) {
    let t = &route.totals;
    for (arm, outcome, count) in [
        (
            "treated",
            "answered",
            t.treated_finished.saturating_sub(t.treated_failed),
        ),
        ("treated", "failed", t.treated_failed),
        (
            "holdout",
            "answered",
            t.holdout_finished.saturating_sub(t.holdout_failed),
        ),
        ("holdout", "failed", t.holdout_failed),
        ("eligible", "started", t.started),
        ("eligible", "abandoned", t.abandoned),
        ("not_eligible", "started", t.not_eligible),
    ] {
        emit(&[("arm", arm), ("outcome", outcome)], Value::Count(count));
    }
}

fn attempts(route: &OfRoute, emit: Emit<'_>) {
    let t = &route.totals;
    for (kind, outcome, count) in [
        ("primary", "sent", t.started),
        ("primary", "finished", t.primary_finished),
        ("primary", "failed", t.primary_errors),
        ("hedge", "sent", t.hedges()),
        ("hedge", "finished", t.hedge_finished),
        ("hedge", "failed", t.hedge_errors),
        ("hedge", "won", t.hedges_won()),
    ] {
        emit(&[("kind", kind), ("outcome", outcome)], Value::Count(count));
    }
}

fn hedges(route: &OfRoute, emit: Emit<'_>) {
    let t = &route.totals;
    for (cause, count) in [
        ("crossed", t.hedged),
        ("again", t.hedged_again),
        ("error", t.hedged_on_error),
    ] {
        emit(&[("cause", cause)], Value::Count(count));
    }
}

fn refused(route: &OfRoute, emit: Emit<'_>) {
    for reason in Refusal::ALL {
        let count = route.totals.refused_for(reason);
        emit(&[("reason", reason.as_str())], Value::Count(count));
    }
}

fn further_refused(route: &OfRoute, emit: Emit<'_>) {
    for reason in Refusal::ALL {
        // The hot path counts it of crossed calls only, which a further hedge cannot be refused for.
        if reason != Refusal::Answered {
            let count = route.further_refused[reason as usize];
            emit(&[("reason", reason.as_str())], Value::Count(count));
        }
    }
}

#[cfg(test)]
mod tests;
