//! Rows in real time: gRPC over loopback, servers on a thread of their own.

use std::time::Duration;

use tower::BoxError;

use super::Asked;
use super::drive::{Caller, Record, Run};
use super::figures::{self, Fields};
use super::simulated::{STALLING, profile, settings};
use crate::subjects::Client;
use crate::world::World;
use crate::world::grpc::Servers;
use crate::world::profile::Change;

/// Calls before anything is measured.
const WARM_UP: u64 = 500;
const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) fn grpc_4(asked: &Asked) -> Result<Fields, BoxError> {
    grpc(asked, 4)
}

pub(crate) fn grpc_40(asked: &Asked) -> Result<Fields, BoxError> {
    grpc(asked, 40)
}

fn grpc(asked: &Asked, in_flight: usize) -> Result<Fields, BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let calls = asked.length.or(4_000, 1_000);
    let profile = profile(STALLING, Change::Nothing, 0);
    // The network's share is in what was measured, not in the profile.
    let p95 = asked.plain_p95.unwrap_or_else(|| profile.usual(0.95));
    let world = World::new(profile);
    let ledger = world.ledger.clone();
    let servers = Servers::start(&world)?;
    runtime.block_on(async {
        let users = servers.connect().await?;
        let client = Client::new(asked.subject, users, &settings(p95, DEADLINE)).await?;
        let caller = Caller::new(client, ledger.clone());
        let calling = async {
            caller.closed(in_flight, |_, begun| begun < WARM_UP).await;
            let from = ledger.now();
            caller
                .closed(in_flight, |_, begun| begun < WARM_UP + calls)
                .await;
            (from, ledger.now())
        };
        let (from, until) = tokio::select! {
            span = calling => span,
            () = caller.watch() => unreachable!("it watches until dropped"),
        };
        Ok(of(&caller.finish(), from, until))
    })
}

/// The figures of what came after the warm-up.
fn of(run: &Run, from: Duration, until: Duration) -> Fields {
    let calls: Vec<&Record> = run.calls.iter().filter(|call| call.began >= from).collect();
    let n = calls.len() as f64;
    let extra = run.books.extra(WARM_UP) as f64 / n;
    let worst = figures::worst_second(run, &(from.as_secs()..until.as_secs() + 1));
    let mut fields = vec![
        ("calls", n),
        ("hedge_rate", extra),
        ("worst_second_hedge_rate", worst),
        ("extra_load", extra),
        (
            "answered_per_s",
            n / until.saturating_sub(from).as_secs_f64(),
        ),
    ];
    fields.extend(figures::waits(&calls));
    // Where the warm-up was over before there was a threshold, the first calls measured have none.
    let first = run.samples.iter().find(|(_, s)| s.threshold_ms.is_finite());
    if let Some((at, _)) = first {
        let late = at.as_secs_f64() - from.as_secs_f64();
        fields.push(("threshold_late_ms", late.max(0.0) * 1e3));
    }
    if let Some((_, last)) = run.samples.last() {
        fields.push(("threshold_after_ms", last.threshold_ms));
        fields.push(("refused_budget", last.refused_budget as f64));
    }
    fields
}
