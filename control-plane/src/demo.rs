//! `hedgerow demo`: the whole product on an empty machine, in three minutes.
//!
//! A controller (a process of its own, on a store in a temporary folder), five replica servers,
//! three client processes that link the real agent and call over HTTP, and a webhook receiver. It
//! walks through what goes wrong in a fleet and tells what the fleet did about it. With `--check`
//! nobody is needed: each phase is one JSON object on standard output, and the exit status says
//! whether every promise held.

mod client;
mod controller;
mod fleet;
mod line;
mod phase;
mod receiver;
mod script;
mod tell;
mod world;

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use dashboard::backend::Role;
use hedgerow_dashboard as dashboard;
use secrecy::{ExposeSecret, SecretString};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use client::{ClientArgs, run as run_client};

use crate::auth;
use crate::store::Store;
use controller::ControllerProcess;
use fleet::Fleet;
use phase::Phase;
use receiver::Notices;
use script::Stage;
use world::World;

/// Settings of the demo.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Run without a person: one JSON object per phase on standard output, exit status 0 only if
    /// every promise held.
    #[arg(long)]
    check: bool,
    /// Kill the controller by signal 9 for 20 s in the middle.
    #[arg(long)]
    kill_controller: bool,
    /// Calls a second of each of the three client processes.
    #[arg(long, default_value_t = 200.0, value_parser = rate)]
    rate: f64,
    /// The dashboard's port on loopback; a free one where nothing is said.
    #[arg(long)]
    port: Option<u16>,
    /// Seed of the replicas' latencies.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// After the walk, keep everything running until interrupted. The default without --check.
    #[arg(long)]
    stay: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (10.0..=1_000.0).contains(&rate) => Ok(rate),
        _ => Err(format!(
            "{text:?} is not a rate: expected 10 to 1000 calls a second"
        )),
    }
}

/// Runs the demo. Gives false where a promise did not hold.
pub async fn run(args: DemoArgs) -> anyhow::Result<bool> {
    let folder = tempfile::Builder::new()
        .prefix("hedgerow-demo-")
        .tempdir()
        .with_context(|| {
            let folder = std::env::temp_dir();
            format!("a folder in {} (TMPDIR says where)", folder.display())
        })?;
    let shutdown = CancellationToken::new();
    let (stage, broken) = tokio::select! {
        walked = walk(&args, folder.path(), &shutdown) => walked?,
        // What has been started ends with the values that are dropped here.
        _ = interrupted() => anyhow::bail!("interrupted"),
    };
    if args.stay || !args.check {
        tell::say("\nEverything keeps running; the dashboard stays live. Ctrl-C ends it.");
        interrupted().await?;
    }
    shutdown.cancel();
    stage.controller.stop().await;
    Ok(broken.is_empty())
}

/// The whole course. Gives the stage, still running, and every promise that did not hold.
async fn walk(
    args: &DemoArgs,
    folder: &Path,
    shutdown: &CancellationToken,
) -> anyhow::Result<(Stage, Vec<String>)> {
    let mut stage = set_up(args, folder, shutdown).await?;
    let mut broken: Vec<String> = Vec::new();
    script::play(&mut stage, args.kill_controller, |phase| {
        tell::summary(phase);
        let failures = phase.failures();
        for failure in &failures {
            tell::say(&format!("   NOT AS PROMISED: {failure}"));
        }
        broken.extend(failures);
        if args.check {
            print_phase(phase)
        } else {
            Ok(())
        }
    })
    .await?;
    broken.extend(notices_as_promised(&stage.notices).await);
    conclude(&broken);
    Ok((stage, broken))
}

async fn set_up(
    args: &DemoArgs,
    folder: &Path,
    shutdown: &CancellationToken,
) -> anyhow::Result<Stage> {
    tell::say("Starting a controller, five replicas and three client processes ...");
    let world = World::start(args.seed, shutdown)
        .await
        .context("the replicas did not start")?;
    let (notices, receiver) = Notices::receive(shutdown)
        .await
        .context("the receiver did not start")?;
    let http = SocketAddr::from(([127, 0, 0, 1], args.port.map_or_else(free_port, Ok)?));
    let grpc = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let agent_token = SecretString::from(random_token());
    let store_path = folder.join("hedgerow.db");
    let config = folder.join("hedgerow.toml");
    std::fs::write(
        &config,
        config_text(http, grpc, &store_path, &agent_token, receiver),
    )?;

    let store = Store::open(&store_path).await.context("the demo's store")?;
    let api_token = auth::new_api_token(
        &store,
        "demo",
        Role::Administrator,
        Some(Duration::from_hours(24)),
    )
    .await
    .context("the demo's API token")?;
    let token_file = folder.join("api-token");
    secret_file(&token_file, &api_token)?;
    let log = folder.join("controller.log");
    let controller = ControllerProcess::start(&config, &log, http, api_token).await?;
    let fleet = Fleet::start(
        &format!("http://{grpc}"),
        &agent_token,
        &world.replicas,
        args.rate,
    )?;

    let for_person = auth::new_login_link(&store, "admin", Duration::from_hours(1)).await?;
    let for_check = auth::new_login_link(&store, "admin", Duration::from_mins(5)).await?;
    let session = controller.sign_in(&for_check).await?;
    tell::say(&format!("Dashboard:      http://{http}/"));
    tell::say(&format!(
        "One-time login: http://{http}/login/link?token={for_person}"
    ));
    tell::say(&format!(
        "Command line:   export HEDGEROW_URL=http://{http} HEDGEROW_API_TOKEN=$(cat {})",
        token_file.display()
    ));
    tell::say(&format!("Controller log: {}", log.display()));
    Ok(Stage {
        world,
        fleet,
        controller,
        notices,
        session,
    })
}

/// A secret for commands beside the demo, readable by its owner alone.
fn secret_file(path: &Path, secret: &SecretString) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(secret.expose_secret().as_bytes())?;
    Ok(())
}

fn config_text(
    http: SocketAddr,
    grpc: SocketAddr,
    store: &Path,
    agent_token: &SecretString,
    receiver: SocketAddr,
) -> String {
    format!(
        r#"http = "{http}"
grpc = "{grpc}"
store = "{}"

[[agent_token]]
service = "{}"
token = "{}"

[[receiver]]
name = "demo"
kind = "webhook"
url = "http://{receiver}/alerts"
secret = "whsec_{}"
allow_private = true
"#,
        store.display(),
        client::SERVICE,
        agent_token.expose_secret(),
        random_token(),
    )
}

/// A port that is free now. Another program could take it before it is used: then the demo says so
/// and can be started again.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn random_token() -> String {
    use base64::Engine as _;
    let bytes: [u8; 32] = rand::random();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn print_phase(phase: &Phase) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{}", serde_json::to_string(phase)?)
        .context("standard output was closed before the last phase")
}

/// A command of this program that knows nothing of the settings in the caller's environment: the
/// demo is alone with its temporary folder, whatever controller this machine is set up for.
fn own_command(arguments: &[&str]) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HEDGEROW_") {
            command.env_remove(name);
        }
    }
    Ok(command)
}

/// Nothing is ever written to the standard input of the demo's processes: a read of it returns when
/// the demo is gone, however it went. It blocks, so it has a thread of its own, which the process
/// does not wait for when it leaves.
pub async fn until_stdin_ends() {
    let (gone, ended) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0_u8; 1]);
        drop(gone);
    });
    let _ = ended.await;
}

/// Ctrl-C, a polite order to end, or a closed terminal.
async fn interrupted() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        done = tokio::signal::ctrl_c() => done,
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    }
}

/// The all-slow fault is one episode: exactly one firing and one resolved notice of it.
async fn notices_as_promised(notices: &Notices) -> Vec<String> {
    const RULE: &str = "SharedSlowdown";
    for _ in 0..50 {
        if notices.count("alert.resolved", RULE) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut broken = Vec::new();
    for kind in ["alert.firing", "alert.resolved"] {
        let count = notices.count(kind, RULE);
        if count != 1 {
            broken.push(format!(
                "{count} {kind} notices of {RULE}, expected exactly one"
            ));
        }
    }
    tell::heading("what the webhook receiver got");
    for notice in notices.all() {
        tell::say(&format!(
            "   {:<15} {:<16} {}",
            notice.kind, notice.rule, notice.summary
        ));
    }
    broken
}

fn conclude(broken: &[String]) {
    if broken.is_empty() {
        tell::heading("every promise held");
    } else {
        tell::heading("NOT AS PROMISED");
        for words in broken {
            tell::say(&format!("   {words}"));
        }
    }
}
