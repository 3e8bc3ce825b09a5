//! `hedgingPolicy`.

use std::time::Duration;

use hedgerow_protocol::limits::{ATTEMPTS_MAX, THRESHOLD_MAX, THRESHOLD_MIN};
use hedgerow_protocol::units::AttemptLimit;
use serde_json::Value;
use tonic::Code;

use super::fields::{DURATION, Findings, duration, join};
use super::note::Taken;
#[cfg(feature = "tonic")]
use crate::eligibility::Verdict;
#[cfg(feature = "tonic")]
use crate::integrations::tonic::GrpcVerdicts;

/// How a method is hedged.
#[derive(Debug, Clone, PartialEq)]
pub struct Hedging {
    attempts: AttemptLimit,
    delay: Duration,
    non_fatal: Vec<Code>,
}

impl Hedging {
    /// Most attempts of a call, the primary among them.
    pub fn attempts(&self) -> AttemptLimit {
        self.attempts
    }

    /// How long a call stays unanswered before the next attempt. Zero: gRPC would send all at once.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Statuses with which an attempt may fail without ending its call.
    pub fn non_fatal(&self) -> &[Code] {
        &self.non_fatal
    }

    /// What statuses mean for this method: those that are not fatal let other attempts go on, and
    /// those that would otherwise do so end the call. Push-back stays push-back, and answers that
    /// are no fault of the dependency stay answers.
    #[cfg(feature = "tonic")]
    pub fn verdicts(&self, usual: GrpcVerdicts) -> GrpcVerdicts {
        NAMES.iter().fold(usual, |verdicts, (_, code)| {
            let verdict = match (self.non_fatal.contains(code), usual.of(*code, false)) {
                (_, Verdict::PushBack) => Verdict::PushBack,
                (true, _) => Verdict::Retryable,
                (false, Verdict::Retryable) => Verdict::Fatal,
                (false, usual) => usual,
            };
            verdicts.with(*code, verdict)
        })
    }
}

/// Reads one; None where it has problems.
pub(super) fn read(findings: &mut Findings, path: &str, value: &Value) -> Option<Hedging> {
    let fields = findings.object(path, value)?;
    let attempts = attempts(
        findings,
        &join(path, "maxAttempts"),
        fields.get("maxAttempts"),
    );
    let delay = delay(
        findings,
        &join(path, "hedgingDelay"),
        fields.get("hedgingDelay"),
    );
    let codes_path = join(path, "nonFatalStatusCodes");
    let non_fatal = match fields.get("nonFatalStatusCodes") {
        Some(value) => codes(findings, &codes_path, value),
        None => Some(Vec::new()),
    };
    let read = ["maxAttempts", "hedgingDelay", "nonFatalStatusCodes"];
    findings.leave_out(path, fields, &read, &[]);
    Some(Hedging {
        attempts: attempts?,
        delay: delay?,
        non_fatal: non_fatal?,
    })
}

fn attempts(findings: &mut Findings, path: &str, value: Option<&Value>) -> Option<AttemptLimit> {
    let expected = "a whole number of at least 2";
    let whole = |value: &Value| {
        let attempts = value.as_u64()?;
        let held = AttemptLimit::new(attempts.min(ATTEMPTS_MAX.into())).ok()?;
        Some((attempts, held))
    };
    let (attempts, held) = findings.required(path, value, expected, whole)?;
    if attempts > held.into() {
        let message = format!("{attempts} attempts are held to {ATTEMPTS_MAX}");
        findings.note(path, Taken::Differently, message);
    }
    Some(held)
}

fn delay(findings: &mut Findings, path: &str, value: Option<&Value>) -> Option<Duration> {
    let delay = match value {
        Some(value) => findings.expect(path, value, DURATION, duration)?,
        None => Duration::ZERO,
    };
    if delay.is_zero() {
        findings.note(
            path,
            Taken::NotAtAll,
            "gRPC would send every attempt at once; here a call is hedged when it is slower than \
             the policy's percentile",
        );
    } else if (THRESHOLD_MIN..=THRESHOLD_MAX).contains(&delay) {
        findings.note(
            path,
            Taken::Differently,
            "floor and ceiling of the threshold, which begins once 200 calls were seen; of a \
             dependency whose methods differ, the shortest and the longest; hedges beyond the \
             budget are not sent",
        );
    } else {
        let message = format!(
            "a threshold is from {THRESHOLD_MIN:?} to {THRESHOLD_MAX:?}; {delay:?} is held to that"
        );
        findings.note(path, Taken::Differently, message);
    }
    Some(delay)
}

fn codes(findings: &mut Findings, path: &str, value: &Value) -> Option<Vec<Code>> {
    let listed = findings.array(path, value)?;
    let codes: Vec<_> = listed
        .iter()
        .enumerate()
        .filter_map(|(nth, value)| {
            let expected =
                "a gRPC status other than OK, by name or number, such as \"UNAVAILABLE\"";
            findings.expect(&format!("{path}[{nth}]"), value, expected, code)
        })
        .collect();
    if codes.len() < listed.len() {
        return None;
    }
    if codes.contains(&Code::ResourceExhausted) {
        findings.note(
            path,
            Taken::Differently,
            "RESOURCE_EXHAUSTED is push-back: no hedge is sent for it, and it counts toward \
             switching hedging off",
        );
    }
    if !codes.is_empty() {
        findings.note(
            path,
            Taken::Differently,
            "the next attempt is sent at once where none is in flight any more, and the budget \
             allows it; where others are, they go on, and it is sent at its time",
        );
    }
    Some(codes)
}

fn code(value: &Value) -> Option<Code> {
    let named = |text: &str| {
        let (_, code) = NAMES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))?;
        Some(*code)
    };
    let numbered = |number: u64| {
        let mut codes = NAMES.iter().map(|(_, code)| *code);
        codes.find(|code| *code as u64 == number)
    };
    match value {
        Value::String(text) => named(text),
        value => value.as_u64().and_then(numbered),
    }
}

/// All but OK, which is no failure.
const NAMES: [(&str, Code); 16] = [
    ("CANCELLED", Code::Cancelled),
    ("UNKNOWN", Code::Unknown),
    ("INVALID_ARGUMENT", Code::InvalidArgument),
    ("DEADLINE_EXCEEDED", Code::DeadlineExceeded),
    ("NOT_FOUND", Code::NotFound),
    ("ALREADY_EXISTS", Code::AlreadyExists),
    ("PERMISSION_DENIED", Code::PermissionDenied),
    ("RESOURCE_EXHAUSTED", Code::ResourceExhausted),
    ("FAILED_PRECONDITION", Code::FailedPrecondition),
    ("ABORTED", Code::Aborted),
    ("OUT_OF_RANGE", Code::OutOfRange),
    ("UNIMPLEMENTED", Code::Unimplemented),
    ("INTERNAL", Code::Internal),
    ("UNAVAILABLE", Code::Unavailable),
    ("DATA_LOSS", Code::DataLoss),
    ("UNAUTHENTICATED", Code::Unauthenticated),
];
