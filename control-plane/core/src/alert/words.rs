//! What an alert says: value, limit, what to do.

use hedgerow_protocol::ids::ReplicaName;

use super::Observed;
use super::rules::{ANSWERED_LOW, RATE_LINE, REFUSED_HIGH, STALE_LINE, rate_line};
use super::track::Subject;
use crate::view::AlertRule;

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// In one line.
pub(super) fn summary(subject: &Subject, it: &Observed<'_>) -> String {
    let route = &subject.route;
    let decided = &it.decision.words;
    match subject.rule {
        AlertRule::HedgeRateHigh => rate(subject, it),
        AlertRule::SharedSlowdown => format!(
            "{route}: its replicas are slow together, so that a hedge is as slow as the call it is \
             for; hedging is off until they are well. {decided}"
        ),
        AlertRule::HedgingDisabled => {
            format!("{route}: the controller switched hedging off. {decided}")
        }
        AlertRule::ReplicaSlow | AlertRule::ReplicaFailing => replica(subject, it),
        AlertRule::RolloutReverted => format!(
            "{}: the rollout of its policy was taken back, the old policy is in force for all \
             agents again. {}",
            route.dependency,
            it.reverted.unwrap_or_default()
        ),
        AlertRule::LowWinRate => answers(subject, it),
        AlertRule::BudgetExhausted => refused(subject, it),
        AlertRule::AgentsStale => agents(subject, it),
        AlertRule::PolicyRefused => refusing(subject, it),
        AlertRule::DuplicateEffects => duplicates(subject, it),
    }
}

fn rate(subject: &Subject, it: &Observed<'_>) -> String {
    let line = rate_line(it.budget, it.lent);
    let conditions = it.decision.conditions;
    let (what, rate, cure) = match (conditions.hedge_rate, conditions.demand) {
        (Some(rate), _) if rate > line => {
            ("hedges sent are", rate, "an agent or a policy is broken")
        }
        (_, demand) => (
            "calls beyond the threshold are",
            demand.unwrap_or_default(),
            "the dependency is slower than its threshold; the budget holds the load",
        ),
    };
    let moved = match it.lent.or(it.budget) {
        Some(budget) if line > RATE_LINE => {
            format!(" (1.25 times its budget of {})", percent(budget))
        }
        _ => String::new(),
    };
    format!(
        "{}: {what} {} of eligible calls, over {}{moved}; {cure}",
        subject.route,
        percent(rate),
        percent(line)
    )
}

fn replica(subject: &Subject, it: &Observed<'_>) -> String {
    let name = subject.replica.as_ref().map_or("?", ReplicaName::as_str);
    let slow = subject.rule == AlertRule::ReplicaSlow;
    let seen = it
        .replicas
        .iter()
        .find(|view| view.replica.as_str() == name);
    let share = seen.and_then(|view| if slow { view.crossed } else { view.error_rate });
    let share = share.map_or_else(String::new, |share| {
        let what = if slow {
            "of its calls cross the threshold"
        } else {
            "of its calls fail"
        };
        format!(" ({} {what})", percent(share))
    });
    let fault = if slow { "slow" } else { "failing" };
    let carried = match it.lent.or(it.budget) {
        Some(budget) => format!("hedging can carry at most {} of the calls", percent(budget)),
        None => "nothing is hedged here".to_owned(),
    };
    format!(
        "{}: replica {name} is what is {fault}{share}; ejecting it is the cure, {carried}",
        subject.route
    )
}

fn answers(subject: &Subject, it: &Observed<'_>) -> String {
    let decision = it.decision;
    let ratio = decision.conditions.answered.unwrap_or_default();
    let won = decision.figures.and_then(|figures| figures.win_rate);
    let won = won.map_or_else(String::new, |won| {
        format!(", and {} of them win", percent(won))
    });
    format!(
        "{}: hedges answer {ratio:.2} times as often as independent ones would, under \
         {ANSWERED_LOW}{won}; what makes calls slow is shared between replicas, and hedges carry \
         load for little",
        subject.route
    )
}

fn refused(subject: &Subject, it: &Observed<'_>) -> String {
    let share = it.decision.conditions.refused_by_budget.unwrap_or_default();
    let budget = match it.lent.or(it.budget) {
        Some(budget) => format!(" of {}", percent(budget)),
        None => String::new(),
    };
    format!(
        "{}: the budget{budget} refuses {} of the calls that cross the threshold, over {}; what is \
         slow stays slow: look at the dependency, or allow a larger budget",
        subject.route,
        percent(share),
        percent(REFUSED_HIGH)
    )
}

fn agents(subject: &Subject, it: &Observed<'_>) -> String {
    let census = it.census;
    let all = census.attached + it.lost;
    let parts = [
        (it.lost, "lost without a goodbye"),
        (census.silent, "silent"),
        (census.behind, "holding an old revision"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(agents, _)| *agents > 0)
        .map(|(agents, what)| format!("{agents} {what}"))
        .collect();
    format!(
        "{}: of {all} agents {}, over {}; what is ordered does not reach them, and when their lease \
         is over they go by their own figures",
        subject.route,
        parts.join(", "),
        percent(STALE_LINE)
    )
}

fn refusing(subject: &Subject, it: &Observed<'_>) -> String {
    let census = it.census;
    let reason = census.refusals.first();
    let reason = reason.map_or_else(String::new, |(_, reason)| format!(": {reason}"));
    format!(
        "{}: {} of {} agents refuse what they are to hold, and keep what they have{reason}",
        subject.route, census.refusing, census.attached
    )
}

fn duplicates(subject: &Subject, it: &Observed<'_>) -> String {
    let reading = it.duplicates.copied().unwrap_or_default();
    format!(
        "{}: its servers executed {} duplicates in {} s, for which agents sent {} hedges; something \
         else sends calls twice, as retries or a client without an agent",
        subject.route,
        reading.executed,
        reading.over.as_secs(),
        reading.hedges.unwrap_or_default()
    )
}
