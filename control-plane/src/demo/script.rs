//! The demo's course: what goes wrong when, and what is measured of it.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::client::{DEPENDENCY, OPERATION};
use super::controller::{ControllerProcess, RouteState};
use super::fleet::{Fleet, Mark};
use super::phase::{AfterOff, Phase, Seen};
use super::receiver::Notices;
use super::tell;
use super::world::{Fault, World};

/// The demo's policy: a tenth held out, so that there is something to compare within seconds, and
/// probation off, so that hedging alone is seen.
const BUDGET: f64 = 0.08;

/// A healthy minute would be more exact; this many seconds are enough for 5 % of 600 calls a second.
const WARM_UP_S: u64 = 18;
const HEALTHY_S: u64 = 20;
const ONE_SLOW_S: u64 = 24;
const ALL_SLOW_S: u64 = 14;
const FAILING_S: u64 = 10;
/// How long hedging may take to come back.
const RECOVERY_LIMIT_S: u64 = 60;
/// What is still watched after it has come back: a flap would show here.
const SETTLED_S: u64 = 4;
/// How long the controller is away where it is killed.
const AWAY: Duration = Duration::from_secs(20);
/// By when every agent must hold the newest revision after that.
const CONVERGED: Duration = Duration::from_secs(10);
/// What a controller needs before it can tell slow from normal (ALGORITHMS 4: 15 s).
const RELEARN_S: u64 = 16;

/// Everything on stage.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) fleet: Fleet,
    pub(crate) controller: ControllerProcess,
    pub(crate) notices: Notices,
    pub(crate) session: String,
}

/// Phases as they end go to `each`; the error is about the stage itself, not about a verdict.
pub(crate) async fn play(
    stage: &mut Stage,
    kill_controller: bool,
    mut each: impl FnMut(&Phase) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    warm_up(stage).await?;
    each(&healthy(stage).await?)?;
    each(&one_replica_slow(stage).await?)?;
    if kill_controller {
        controller_away(stage).await?;
    }
    each(&fault(stage, Fault::AllSlow, "all_slow", ALL_SLOW_S).await?)?;
    each(&recovery(stage, "all_slow_recovery").await?)?;
    each(&fault(stage, Fault::Failing, "failing", FAILING_S).await?)?;
    each(&recovery(stage, "recovery").await?)?;
    Ok(())
}

fn policy() -> Value {
    json!({
        "intent": "hedge",
        "percentile": 0.95,
        "budget": BUDGET,
        "holdout": 0.1,
        "error_limit": 0.05,
        "probation": false,
    })
}

async fn warm_up(stage: &mut Stage) -> anyhow::Result<()> {
    tell::heading("observing: a new dependency is measured, never hedged, until someone says so");
    stage.fleet.speaking().await?;
    watch(stage, WARM_UP_S).await?;
    let state = stage.controller.route().await?;
    if state.mode() != "observing" {
        bail!(
            "a new dependency should be observing, it is {}: {}",
            state.mode(),
            state.words()
        );
    }
    stage
        .controller
        .set_policy(&policy(), "the demo switches hedging on")
        .await?;
    tell::heading("a policy is set: hedge calls slower than the p95, budget 8 %, a tenth held out");
    until(stage, RECOVERY_LIMIT_S, |state| {
        state.is_on() && state.acked().0 == state.acked().1
    })
    .await
    .context("hedging did not come on after the policy was set")?;
    watch(stage, 3).await.map(|_| ())
}

async fn healthy(stage: &mut Stage) -> anyhow::Result<Phase> {
    tell::heading("healthy: 2 % of calls stall for 300 ms, each replica for itself");
    let from = Beginning::now(stage);
    let state = watch(stage, HEALTHY_S).await?;
    Ok(from.phase(stage, "healthy", &state))
}

async fn one_replica_slow(stage: &mut Stage) -> anyhow::Result<Phase> {
    let slow = stage.world.slow_replica().to_owned();
    tell::heading(&format!(
        "one replica of five slow: {slow} stalls on a fifth of its calls"
    ));
    stage.world.set(Fault::OneSlow);
    let from = Beginning::now(stage);
    let state = watch(stage, ONE_SLOW_S).await?;
    let mut phase = from.phase(stage, "one_replica_slow", &state);
    let page = stage
        .controller
        .page(
            &format!("/dependencies/{DEPENDENCY}/{OPERATION}"),
            &stage.session,
        )
        .await?;
    phase.seen.page_names_replica =
        phase.replica.as_deref() == Some(slow.as_str()) && page.contains(&slow);
    let alerts = stage.controller.alerts().await?.to_string();
    phase.seen.alert_names_replica = alerts.contains("ReplicaSlow")
        && stage
            .notices
            .all()
            .iter()
            .any(|n| n.rule == "ReplicaSlow" && n.kind == "alert.firing" && n.replica == slow);
    stage.world.set(Fault::None);
    tell::heading("the replica is well again");
    watch(stage, 6).await?;
    Ok(phase)
}

async fn fault(
    stage: &mut Stage,
    fault: Fault,
    name: &'static str,
    seconds: u64,
) -> anyhow::Result<Phase> {
    tell::heading(match fault {
        Fault::AllSlow => "all replicas slow together: every call takes five times longer",
        _ => "the dependency fails: 60 % of attempts answer 500, on every replica",
    });
    stage.world.set(fault);
    let from = Beginning::now(stage);
    let mut off: Option<(Mark, Instant)> = None;
    let mut state = stage.controller.route().await?;
    for second in 1..=seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        state = look(stage, second, Some(seconds)).await?;
        if off.is_none() && !state.is_on() {
            off = Some((stage.fleet.mark(), Instant::now()));
        }
    }
    tell::progress_done();
    let mut phase = from.phase(stage, name, &state);
    phase.seen.after_off = off.map(|(mark, at)| {
        let course = stage.fleet.since(&mark);
        AfterOff {
            seconds: at.elapsed().as_secs_f64(),
            crossed: course.totals.crossed,
            hedged: course.totals.hedged,
        }
    });
    Ok(phase)
}

async fn recovery(stage: &mut Stage, name: &'static str) -> anyhow::Result<Phase> {
    tell::heading("everything is well again; nobody touches anything");
    stage.world.set(Fault::None);
    let from = Beginning::now(stage);
    // A recovery that does not come is a verdict, not an error of the demo.
    let _ = until(stage, RECOVERY_LIMIT_S, RouteState::is_on).await;
    let state = watch(stage, SETTLED_S).await?;
    Ok(from.phase(stage, name, &state))
}

/// Signal 9 for the controller, 20 s without one, and its return.
async fn controller_away(stage: &mut Stage) -> anyhow::Result<()> {
    tell::heading("the controller is killed by signal 9; agents go on at what they hold");
    let before = stage.controller.policy().await?;
    let from = stage.fleet.mark();
    stage.controller.kill().await?;
    for second in 1..=AWAY.as_secs() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let course = stage.fleet.since(&from);
        tell::progress(
            second,
            Some(AWAY.as_secs()),
            &format!(
                "{} calls, {} failed",
                course.caller.calls, course.caller.failed
            ),
        );
    }
    tell::progress_done();
    stage.controller.restart().await?;
    let back = Instant::now();
    tell::heading("the controller is back, on the same store");
    let mut converged = None;
    while converged.is_none() && back.elapsed() < CONVERGED {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let state = stage.controller.route().await;
        let all = |s: &RouteState| {
            s.acked() == (super::fleet::CLIENTS as u64, super::fleet::CLIENTS as u64)
        };
        if state.is_ok_and(|s| all(&s)) {
            converged = Some(back.elapsed());
        }
    }
    let course = stage.fleet.since(&from);
    if course.caller.failed > 0 {
        bail!(
            "{} calls failed while the controller was away",
            course.caller.failed
        );
    }
    let Some(converged) = converged else {
        bail!(
            "agents did not hold the newest revision within {} s",
            CONVERGED.as_secs()
        );
    };
    let after = stage.controller.policy().await?;
    if after["policy"] != before["policy"] || after["revision"] != before["revision"] {
        bail!("the policy changed over the restart: {before} became {after}");
    }
    tell::say(&format!(
        "   {} calls in that time, none failed; every agent holds revision {} after {:.1} s",
        course.caller.calls,
        after["revision"],
        converged.as_secs_f64()
    ));
    watch(stage, RELEARN_S).await.map(|_| ())
}

/// Where a phase begins.
struct Beginning {
    mark: Mark,
    served: u64,
    at: Timestamp,
}

impl Beginning {
    fn now(stage: &Stage) -> Self {
        Self {
            mark: stage.fleet.mark(),
            served: stage.world.served(),
            at: Timestamp::now(),
        }
    }

    fn phase(&self, stage: &Stage, name: &'static str, state: &RouteState) -> Phase {
        let changes = state.changes_since(self.at);
        let after = |on: bool| {
            changes
                .iter()
                .find(|(_, is_on)| *is_on == on)
                .map(|(at, _)| (at.as_millisecond() - self.at.as_millisecond()) as f64 / 1e3)
        };
        let course = stage.fleet.since(&self.mark);
        let served = (stage.world.served() - self.served) as f64;
        let started = course.totals.started as f64;
        let seen = Seen {
            extra_load: (started > 0.0).then(|| (served / started - 1.0).max(0.0)),
            ..Seen::default()
        };
        let count = |on: bool| changes.iter().filter(|(_, is_on)| *is_on == on).count() as u64;
        Phase {
            phase: name,
            demand: state.figure("demand"),
            threshold_ms: state.threshold_ms(),
            budget: BUDGET,
            seconds_over_budget: stage.fleet.seconds_over_budget(&self.mark),
            mode: state.mode().to_owned(),
            reason: state.reason().to_owned(),
            replica: state.named_replica(),
            off_after_s: after(false),
            on_after_s: after(true),
            offs: count(false),
            ons: count(true),
            seen,
            ..Phase::default()
        }
        .with_course(&course)
    }
}

/// Lets `seconds` pass, telling each; gives the last state.
async fn watch(stage: &mut Stage, seconds: u64) -> anyhow::Result<RouteState> {
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    for second in 1..=seconds {
        ticks.tick().await;
        look(stage, second, Some(seconds)).await?;
    }
    tell::progress_done();
    stage.controller.route().await
}

/// Waits until `is` holds of the route, at most `limit` seconds.
async fn until(
    stage: &mut Stage,
    limit: u64,
    is: impl Fn(&RouteState) -> bool,
) -> anyhow::Result<RouteState> {
    let begun = Instant::now();
    let mut second = 0;
    loop {
        let state = look(stage, second, None).await?;
        if is(&state) {
            tell::progress_done();
            return Ok(state);
        }
        if begun.elapsed().as_secs() >= limit {
            tell::progress_done();
            bail!("it did not come within {limit} s; last: {}", state.words());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        second += 1;
    }
}

async fn look(stage: &mut Stage, second: u64, of: Option<u64>) -> anyhow::Result<RouteState> {
    stage.fleet.all_alive()?;
    // Before the first report there is no route yet.
    let state = match stage.controller.route().await {
        Ok(state) => state,
        Err(_) if second < 5 => return Ok(RouteState::none()),
        Err(error) => return Err(error),
    };
    let percent = |v: Option<f64>| v.map_or("–".into(), |v| format!("{:.1} %", v * 100.0));
    tell::progress(
        second,
        of,
        &format!(
            "{}  [{:.0} calls/s, hedge rate {}, errors {}]",
            state.words(),
            state.figure("calls_per_s").unwrap_or(0.0),
            percent(state.figure("hedge_rate")),
            percent(state.figure("error_rate")),
        ),
    );
    Ok(state)
}
