//! The command line against a controller: a real one, and one that answers as the contract says.

mod answering;
mod apply;
mod checks;
mod real;
mod refusals;
mod schema;
mod shells;
mod views;

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::process::command;

/// What a run came to.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It ended with this, and said this on standard output.
    #[track_caller]
    fn said(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        for part in parts {
            assert!(self.out.contains(part), "{part}: {self:?}");
        }
        self
    }

    /// It ended with this, and complained of this.
    #[track_caller]
    fn complained(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "{part}: {self:?}");
        }
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// The program with these arguments, on the controller at this address.
async fn hedgerow(url: &str, token: &str, folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = command();
    command
        .args(arguments)
        .env("HEDGEROW_URL", url)
        .env("HEDGEROW_API_TOKEN", token)
        .current_dir(folder)
        .stdout(Stdio::piped());
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    Ran::new(run.await.unwrap())
}
