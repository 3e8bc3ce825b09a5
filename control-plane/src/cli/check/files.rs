//! A controller's files, without one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Findings, store};
use crate::alerts;
use crate::config::{ServeArgs, Settings};
use crate::listen::PemPair;

/// Looks at what a configuration names, or at a store alone.
pub(super) async fn examine(config: Option<&Path>, named: Option<&Path>) -> Findings {
    let mut findings = Findings::default();
    let mut file = named.map(Path::to_owned);
    if let Some(config) = config {
        let of_settings = settings(config, &mut findings);
        file = file.or(of_settings);
    }
    if let Some(file) = file {
        store::examine(&file, &mut findings).await;
    }
    findings
}

/// The store that the settings name, where they can be read.
fn settings(config: &Path, findings: &mut Findings) -> Option<PathBuf> {
    let args = ServeArgs {
        config: Some(config.to_owned()),
        ..ServeArgs::default()
    };
    let settings = match Settings::resolve(args) {
        Ok(settings) => settings,
        Err(error) => {
            let error = format!("{:#}", anyhow::Error::from(error));
            findings.fail(
                "configuration",
                error,
                "mend that line: the controller does not start with it",
            );
            return None;
        }
    };
    findings.ok(
        "configuration",
        format!(
            "{} can be read: {} policies, {} receivers, {} agents' tokens",
            config.display(),
            settings.policies.len(),
            settings.receivers.len(),
            settings.agent_tokens.len()
        ),
    );
    // Receivers' addresses and agents' tokens may be written in it.
    private("configuration's rights", config, findings);
    certificates(&settings, findings);
    receivers(&settings, findings);
    Some(settings.store)
}

fn certificates(settings: &Settings, findings: &mut Findings) {
    for (what, listen) in [
        ("certificate for HTTP", &settings.http),
        ("certificate for agents", &settings.grpc),
    ] {
        let Some(tls) = &listen.tls else {
            if listen.address.ip().is_loopback() {
                findings.ok(what, "none, and none is needed on loopback");
            } else {
                findings.warn(
                    what,
                    format!("none, though {} is not loopback", listen.address),
                    "fine where something in front encrypts; otherwise give it one",
                );
            }
            continue;
        };
        match PemPair::read(tls) {
            Ok(_) => findings.ok(what, "fits its key"),
            Err(error) => findings.fail(
                what,
                error.to_string(),
                "the controller does not start with it",
            ),
        }
        private("key's rights", &tls.key, findings);
    }
}

fn receivers(settings: &Settings, findings: &mut Findings) {
    for receiver in &settings.receivers {
        let made = alerts::Receiver::try_from(receiver);
        if let Err(problem) = made {
            findings.fail(
                "receiver",
                format!("{}: {problem}", receiver.name),
                "mend it: the controller does not start with it",
            );
        }
    }
}

/// Whether others may read a file with secrets in it.
pub(super) fn private(what: &'static str, path: &Path, findings: &mut Findings) {
    let mode = match std::fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o777,
        Err(error) => {
            findings.fail(
                what,
                format!("{}: {error}", path.display()),
                "is the path right?",
            );
            return;
        }
    };
    if mode & 0o007 != 0 {
        findings.fail(
            what,
            format!(
                "{} may be read or written by everybody on this machine ({mode:03o})",
                path.display()
            ),
            "chmod o-rwx; what it holds opens the fleet",
        );
    } else if mode & 0o020 != 0 {
        findings.warn(
            what,
            format!(
                "{} may be written by its group ({mode:03o})",
                path.display()
            ),
            "chmod g-w",
        );
    } else {
        findings.ok(
            what,
            format!("{} is its owner's ({mode:03o})", path.display()),
        );
    }
}
