//! `hedgerow`: the controller, its demo, and commands beside it.

use std::process::ExitCode;

use clap::Parser as _;
use hedgerow_control_plane::cli::{Cli, code_of};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    // One provider for every TLS in the process, chosen here rather than guessed from features.
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        return failed(&anyhow::anyhow!(
            "another TLS provider was chosen before this one"
        ));
    }
    cli.run().await.unwrap_or_else(|error| failed(&error))
}

#[expect(clippy::print_stderr, reason = "a person at a terminal reads it")]
fn failed(error: &anyhow::Error) -> ExitCode {
    // With its causes, in one line.
    eprintln!("hedgerow: {error:#}");
    ExitCode::from(code_of(error))
}
