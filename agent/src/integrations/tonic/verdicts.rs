//! What a gRPC status means for hedging.

use tonic::Code;

use crate::eligibility::Verdict;

/// Trailer by which a server asks clients to hold back further attempts (gRFC A6), whatever its
/// value.
pub const PUSH_BACK_HEADER: &str = "grpc-retry-pushback-ms";

/// What each status means, [push-back](PUSH_BACK_HEADER) beside it:
///
/// | status | verdict |
/// |---|---|
/// | OK | [`Good`](Verdict::Good) |
/// | any other, with `grpc-retry-pushback-ms` | [`PushBack`](Verdict::PushBack) |
/// | RESOURCE_EXHAUSTED | [`PushBack`](Verdict::PushBack): more requests would make it worse |
/// | UNAVAILABLE, DEADLINE_EXCEEDED, UNKNOWN, INTERNAL, DATA_LOSS | [`Retryable`](Verdict::Retryable): another replica may do better |
/// | NOT_FOUND, ALREADY_EXISTS, INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE, PERMISSION_DENIED, UNAUTHENTICATED, ABORTED | [`NegativeAnswer`](Verdict::NegativeAnswer): every replica would say so |
/// | UNIMPLEMENTED | [`Fatal`](Verdict::Fatal): the wrong thing is being called |
/// | CANCELLED | [`Dropped`](Verdict::Dropped): somebody on the way gave up |
///
/// An attempt that got no status (no connection, a reset) has the one that tonic makes of it,
/// UNAVAILABLE mostly; an endpoint's own timeout counts as DEADLINE_EXCEEDED. Answers of proxies
/// that are not gRPC count by their HTTP status: 429 as RESOURCE_EXHAUSTED, 502, 503 and 504 as
/// UNAVAILABLE, others as tonic takes them.
///
/// ```
/// use hedgerow_agent::Verdict;
/// use hedgerow_agent::integrations::tonic::GrpcVerdicts;
/// use tonic::Code;
///
/// // This dependency's replicas catch up at different times.
/// let verdicts = GrpcVerdicts::new().with(Code::NotFound, Verdict::Retryable);
/// assert_eq!(verdicts.of(Code::NotFound, false), Verdict::Retryable);
/// assert_eq!(verdicts.of(Code::Unavailable, true), Verdict::PushBack);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrpcVerdicts {
    by_code: [Verdict; CODES],
}

/// Codes are the numbers below this.
const CODES: usize = 17;

impl Default for GrpcVerdicts {
    fn default() -> Self {
        let mut by_code = [Verdict::NegativeAnswer; CODES];
        for (verdict, codes) in [
            (Verdict::Good, &[Code::Ok][..]),
            (Verdict::PushBack, &[Code::ResourceExhausted]),
            (
                Verdict::Retryable,
                &[
                    Code::Unavailable,
                    Code::DeadlineExceeded,
                    Code::Unknown,
                    Code::Internal,
                    Code::DataLoss,
                ],
            ),
            (Verdict::Fatal, &[Code::Unimplemented]),
            (Verdict::Dropped, &[Code::Cancelled]),
        ] {
            for code in codes {
                by_code[*code as usize] = verdict;
            }
        }
        Self { by_code }
    }
}

impl GrpcVerdicts {
    /// The table as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another verdict for one status. OK stays what it is.
    #[must_use]
    pub fn with(mut self, code: Code, verdict: Verdict) -> Self {
        if code != Code::Ok {
            self.by_code[code as usize] = verdict;
        }
        self
    }

    /// What an attempt that ended with this status means. `push_back`: the server asked to hold back.
    pub fn of(&self, code: Code, push_back: bool) -> Verdict {
        if push_back && code != Code::Ok {
            return Verdict::PushBack;
        }
        self.by_code[code as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_verdict() {
        let expected = [
            Verdict::Good,           // OK
            Verdict::Dropped,        // CANCELLED
            Verdict::Retryable,      // UNKNOWN
            Verdict::NegativeAnswer, // INVALID_ARGUMENT
            Verdict::Retryable,      // DEADLINE_EXCEEDED
            Verdict::NegativeAnswer, // NOT_FOUND
            Verdict::NegativeAnswer, // ALREADY_EXISTS
            Verdict::NegativeAnswer, // PERMISSION_DENIED
            Verdict::PushBack,       // RESOURCE_EXHAUSTED
            Verdict::NegativeAnswer, // FAILED_PRECONDITION
            Verdict::NegativeAnswer, // ABORTED
            Verdict::NegativeAnswer, // OUT_OF_RANGE
            Verdict::Fatal,          // UNIMPLEMENTED
            Verdict::Retryable,      // INTERNAL
            Verdict::Retryable,      // UNAVAILABLE
            Verdict::Retryable,      // DATA_LOSS
            Verdict::NegativeAnswer, // UNAUTHENTICATED
        ];
        for (number, expected) in (0..).zip(expected) {
            let code = Code::from_i32(number);
            assert_eq!(GrpcVerdicts::new().of(code, false), expected, "{code:?}");
            let pushed_back = GrpcVerdicts::new().of(code, true);
            assert_eq!(pushed_back == Verdict::PushBack, code != Code::Ok);
        }
    }
}
