//! What the process ends with: for scripts, and stable.

use crate::client::ClientError;

/// As it should be.
pub(super) const FINE: u8 = 0;
/// Something is wrong that has no number of its own.
pub(super) const ERROR: u8 = 1;
/// The command cannot be understood; clap uses the same.
pub(super) const USAGE: u8 = 2;
/// The controller refused it.
pub(super) const REFUSED: u8 = 3;
/// No controller can be reached, or it cannot answer now.
pub(super) const UNREACHABLE: u8 = 4;
/// Something needs a person.
pub(super) const PERSON: u8 = 5;
/// The files and the controller differ.
pub(super) const DIFFERS: u8 = 6;

/// Shown below the help.
pub(super) const HELP: &str = "\
Ends with:
  0  fine
  1  an error that has no number of its own
  2  the command cannot be understood
  3  the controller refused it: not allowed, changed meanwhile, a value that cannot stand
  4  no controller can be reached, or it cannot answer now
  5  something needs a person (status, check, kill on)
  6  files and controller differ (policy diff)";

/// The command cannot be carried out as it was given.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);

/// A refusal whose text was made elsewhere, as one of several.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(pub(super) String);

/// What an error ends the process with.
pub fn code_of(error: &anyhow::Error) -> u8 {
    error
        .chain()
        .find_map(|cause| {
            if let Some(error) = cause.downcast_ref::<ClientError>() {
                return Some(client(error));
            }
            if cause.is::<Refused>() {
                return Some(REFUSED);
            }
            cause.is::<Usage>().then_some(USAGE)
        })
        .unwrap_or(ERROR)
}

fn client(error: &ClientError) -> u8 {
    match error {
        ClientError::Address { .. } | ClientError::Authority { .. } => USAGE,
        ClientError::Unreachable { .. } => UNREACHABLE,
        ClientError::Odd { .. } => ERROR,
        ClientError::Refused(problem) => match problem.status {
            401 | 403 | 409 | 412 | 422 | 429 => REFUSED,
            502..=504 => UNREACHABLE,
            _ => ERROR,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Problem;

    #[test]
    fn every_error_has_its_number() {
        let refused = |status| {
            ClientError::Refused(Box::new(Problem {
                status,
                ..Problem::default()
            }))
        };
        let away = ClientError::Unreachable {
            url: String::new(),
            problem: String::new(),
        };
        for (error, code) in [
            (anyhow::anyhow!("x"), 1),
            (Usage("x".into()).into(), 2),
            (Refused("x".into()).into(), 3),
            (refused(401).into(), 3),
            (refused(403).into(), 3),
            (refused(404).into(), 1),
            (refused(409).into(), 3),
            (refused(412).into(), 3),
            (refused(422).into(), 3),
            (refused(500).into(), 1),
            (refused(503).into(), 4),
            (away.into(), 4),
        ] {
            assert_eq!(code_of(&error), code, "{error}");
            assert_eq!(code_of(&error.context("while")), code);
            assert!(HELP.contains(&format!("\n  {code}  ")));
        }
    }
}
