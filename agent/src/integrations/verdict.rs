//! What an HTTP answer means for hedging.
//!
//! | answer | verdict |
//! |---|---|
//! | 1xx, 2xx, 3xx | [`Good`](Verdict::Good) |
//! | 429; 503 with `Retry-After` | [`PushBack`](Verdict::PushBack): more requests would make it worse |
//! | 408, 425, 5xx | [`Retryable`](Verdict::Retryable): another replica may do better |
//! | any other 4xx | [`NegativeAnswer`](Verdict::NegativeAnswer): every replica would say so |
//! | no answer (connection refused, reset) | [`Retryable`](Verdict::Retryable) |

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};

use crate::eligibility::Verdict;

type Rule = dyn Fn(StatusCode, &HeaderMap) -> Option<Verdict> + Send + Sync;

/// The table of the [module](self), and what the caller says otherwise. Cheap to clone.
///
/// ```
/// use hedgerow_agent::Verdict;
/// use hedgerow_agent::integrations::verdict::HttpVerdicts;
/// use http::{HeaderMap, StatusCode};
///
/// // This dependency answers 404 while it is still reading its index.
/// let verdicts = HttpVerdicts::new().with(|status, _| {
///     (status == StatusCode::NOT_FOUND).then_some(Verdict::Retryable)
/// });
/// let none = HeaderMap::new();
/// assert_eq!(verdicts.of(StatusCode::NOT_FOUND, &none), Verdict::Retryable);
/// assert_eq!(verdicts.of(StatusCode::TOO_MANY_REQUESTS, &none), Verdict::PushBack);
/// ```
#[derive(Clone, Default)]
pub struct HttpVerdicts {
    rule: Option<Arc<Rule>>,
}

impl fmt::Debug for HttpVerdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpVerdicts")
            .field("own_rule", &self.rule.is_some())
            .finish()
    }
}

impl HttpVerdicts {
    /// The table as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// `rule` is asked first; where it says None, the table holds.
    #[must_use]
    pub fn with(
        self,
        rule: impl Fn(StatusCode, &HeaderMap) -> Option<Verdict> + Send + Sync + 'static,
    ) -> Self {
        Self {
            rule: Some(Arc::new(rule)),
        }
    }

    /// What an answer with this status and these headers means.
    pub fn of(&self, status: StatusCode, headers: &HeaderMap) -> Verdict {
        self.rule
            .as_ref()
            .and_then(|rule| rule(status, headers))
            .unwrap_or_else(|| from_table(status, headers))
    }
}

fn from_table(status: StatusCode, headers: &HeaderMap) -> Verdict {
    match status {
        StatusCode::TOO_MANY_REQUESTS => Verdict::PushBack,
        StatusCode::SERVICE_UNAVAILABLE if headers.contains_key(RETRY_AFTER) => Verdict::PushBack,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => Verdict::Retryable,
        status if status.is_server_error() => Verdict::Retryable,
        status if status.is_client_error() => Verdict::NegativeAnswer,
        _ => Verdict::Good,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn c14_push_back_is_told_from_failure_and_from_a_negative_answer() {
        let none = HeaderMap::new();
        let later = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("1"))]);
        for (status, headers, expected) in [
            (200, &none, Verdict::Good),
            (304, &none, Verdict::Good),
            (400, &none, Verdict::NegativeAnswer),
            (404, &later, Verdict::NegativeAnswer),
            (408, &none, Verdict::Retryable),
            (429, &none, Verdict::PushBack),
            (500, &later, Verdict::Retryable),
            (503, &none, Verdict::Retryable),
            (503, &later, Verdict::PushBack),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(
                HttpVerdicts::new().of(status, headers),
                expected,
                "{status}"
            );
        }
    }
}
