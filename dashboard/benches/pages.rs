//! How long a page takes to its first byte, and how much it is, over a fleet of 1,000 dependencies and
//! 10,000 agents that is published anew each second: `cargo bench -p hedgerow-dashboard --bench pages`.
//! Fails where the overview's first byte takes longer than the bar, at p99.
#![allow(clippy::unwrap_used, reason = "shares its fleet with the tests")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "shares its fleet with the tests, which use more of it"
)]
#![allow(clippy::print_stdout, reason = "prints what it measured")]

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

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hedgerow_dashboard::{Settings, router};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// PROMISES' bar for a page's first byte.
const BAR: Duration = Duration::from_millis(250);
/// Requests for each page, one after another.
const REQUESTS: usize = 200;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let stage = stage::Stage::new(big::snapshot(0));
    stage.publish(big::snapshot(0));
    let clock = stage.clone();
    // Made beforehand, and apart: making them is not what a controller's pages do.
    let course: Vec<_> = (1..=8).map(big::snapshot).collect();
    std::thread::spawn(move || {
        for snapshot in course.iter().cycle() {
            std::thread::sleep(Duration::from_secs(1));
            clock.publish(snapshot.clone());
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router(stage, Settings::default())).await });

    println!("{} dependencies, {} agents", big::DEPENDENCIES, big::AGENTS);
    println!(
        "{:<38} {:>10} {:>10} {:>10} {:>10}",
        "page", "p50 ms", "p99 ms", "whole ms", "bytes"
    );
    let mut well = true;
    for path in [
        "/",
        "/?q=service-00",
        "/dependencies/service-0000/get-item",
        "/agents",
        "/agents?q=refused",
        "/alerts",
        "/kill",
        "/record",
    ] {
        let measured = measure(address, path).await;
        println!(
            "{path:<38} {:>10.2} {:>10.2} {:>10.2} {:>10}",
            millis(measured.first_p50),
            millis(measured.first_p99),
            millis(measured.whole_p50),
            measured.bytes
        );
        well &= path != "/" || measured.first_p99 <= BAR;
    }
    if well {
        ExitCode::SUCCESS
    } else {
        println!("the overview's first byte is beyond {BAR:?}");
        ExitCode::FAILURE
    }
}

struct Measured {
    first_p50: Duration,
    first_p99: Duration,
    whole_p50: Duration,
    bytes: usize,
}

async fn measure(address: SocketAddr, path: &str) -> Measured {
    let (mut first, mut whole, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..REQUESTS {
        let (to_first, to_end, length) = get(address, path).await;
        first.push(to_first);
        whole.push(to_end);
        bytes = length;
    }
    first.sort_unstable();
    whole.sort_unstable();
    Measured {
        first_p50: first[REQUESTS / 2],
        first_p99: first[REQUESTS * 99 / 100],
        whole_p50: whole[REQUESTS / 2],
        bytes,
    }
}

/// Time to the first byte and to the last one, and how many there were, headers included.
async fn get(address: SocketAddr, path: &str) -> (Duration, Duration, usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\ncookie: hedgerow_session={}\r\nconnection: close\r\n\r\n",
        stage::ADMIN
    );
    let asked = Instant::now();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64 * 1024];
    let mut length = stream.read(&mut answer).await.unwrap();
    let first = asked.elapsed();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{path}");
    loop {
        match stream.read(&mut answer).await.unwrap() {
            0 => return (first, asked.elapsed(), length),
            more => length += more,
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
