//! `retryThrottling`.

use hedgerow_protocol::limits::BUDGET_MAX;
use serde_json::Value;

use super::fields::{Findings, join};
use super::note::Taken;

/// gRPC's own bounds.
const MAX_TOKENS: std::ops::RangeInclusive<u64> = 1..=1000;

/// How gRPC would hold retries and hedges back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryThrottling {
    max_tokens: u32,
    token_ratio: f64,
}

impl RetryThrottling {
    /// Tokens to begin with, 1 to 1000. Not taken here.
    pub fn max_tokens(&self) -> u32 {
        self.max_tokens
    }

    /// Tokens earned by each success, above 0, in thousandths. Here: the budget, at most a quarter.
    pub fn token_ratio(&self) -> f64 {
        self.token_ratio
    }
}

/// Reads it; None where it has problems.
pub(super) fn read(findings: &mut Findings, path: &str, value: &Value) -> Option<RetryThrottling> {
    let fields = findings.object(path, value)?;
    let tokens_path = join(path, "maxTokens");
    let tokens = findings.required(
        &tokens_path,
        fields.get("maxTokens"),
        "a whole number above 0 and at most 1000",
        |value| value.as_u64().filter(|tokens| MAX_TOKENS.contains(tokens)),
    );
    let ratio_path = join(path, "tokenRatio");
    let ratio = findings.required(
        &ratio_path,
        fields.get("tokenRatio"),
        "a number above 0, with three decimals, such as 0.1",
        |value| value.as_f64().filter(|ratio| thousandths(*ratio) > 0.0),
    );
    findings.leave_out(path, fields, &["maxTokens", "tokenRatio"], &[]);
    let (tokens, ratio) = (tokens?, ratio?);
    findings.note(
        &tokens_path,
        Taken::NotAtAll,
        "the agent's bucket has a cap of its own: a few hedges, or half a second's worth",
    );
    let cut = thousandths(ratio);
    let mut message = "the budget, as hedges to finished calls: drained by hedges sent, where \
                       gRPC's tokens are drained by failures; failures switch hedging off by the \
                       policy's error limit"
        .to_owned();
    if cut != ratio {
        message = format!("{message}; {ratio} is cut to {cut}, as gRPC does");
    }
    if cut > BUDGET_MAX {
        message = format!("{message}; {cut} is held to {BUDGET_MAX}");
    }
    findings.note(&ratio_path, Taken::Differently, message);
    Some(RetryThrottling {
        max_tokens: tokens as u32,
        token_ratio: cut,
    })
}

/// Further decimals are left out, as gRPC does. The small addend is for numbers that have no exact
/// binary form: 0.29 times a thousand is less than 290.
fn thousandths(ratio: f64) -> f64 {
    (ratio * 1000.0 + 1e-6).floor() / 1000.0
}
