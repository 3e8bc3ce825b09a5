//! The pages over made-up figures, on loopback, to look at while working on them:
//! `cargo run -p hedgerow-dashboard --example preview`, then open the printed address. Arguments: the
//! port, then `empty` for the start page, or `big` for a thousand dependencies and ten thousand agents
//! (in a release build: each second, all of their figures are made anew).
#![allow(clippy::unwrap_used, reason = "shares its fleet with the tests")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "shares its fleet with the tests, which use more of it"
)]
#![allow(clippy::print_stdout, reason = "prints where to look")]

#[path = "../tests/it/big.rs"]
mod big;
#[path = "../tests/it/clients.rs"]
mod clients;
#[path = "../tests/it/doors.rs"]
mod doors;
#[path = "../tests/it/fleet.rs"]
mod fleet;
#[path = "../tests/it/lately.rs"]
mod lately;
#[path = "../tests/it/stage.rs"]
mod stage;
#[path = "../tests/it/told.rs"]
mod told;

use std::time::Duration;

use hedgerow_core::view::FleetSnapshot;
use hedgerow_dashboard::{Settings, router};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "7490".into());
    let at: fn(u64) -> FleetSnapshot = match std::env::args().nth(2).as_deref() {
        Some("empty") => |seconds| FleetSnapshot {
            at: fleet::snapshot(seconds).at,
            ..FleetSnapshot::default()
        },
        Some("big") => big::snapshot,
        _ => |seconds| fleet::with_wider(fleet::snapshot(seconds)),
    };
    let stage = stage::Stage::new(at(0));
    stage.publish(at(0));
    stage.state(|s| s.access = doors::somebody());
    let clock = stage.clone();
    tokio::spawn(async move {
        for second in 1.. {
            tokio::time::sleep(Duration::from_secs(1)).await;
            clock.publish(at(second));
        }
    });
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!(
        "http://{}/login/link?token={}  (or ada, {:?})",
        listener.local_addr()?,
        stage::LINK,
        stage::PASSWORD
    );
    axum::serve(listener, router(stage, Settings::default())).await
}
