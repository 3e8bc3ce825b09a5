//! Errors as programs read them: RFC 9457. All status codes of the API are chosen here.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hedgerow_core::effect::OrderError;
use hedgerow_dashboard::backend::ActError;
use hedgerow_protocol::ids::Revision;
use serde::Serialize;

use crate::auth::TokenError;
use crate::store::StoreError;

/// An error.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    /// What kind, for programs: stable.
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    #[serde(serialize_with = "status_number")]
    status: StatusCode,
    /// What happened here and what was expected, for people.
    detail: String,
    /// Each field that cannot stand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldProblem>,
    /// The revision in force, where another one was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<Revision>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

/// A field that cannot stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FieldProblem {
    /// Which.
    pub(super) field: Cow<'static, str>,
    /// What is wrong and what was expected.
    pub(super) message: String,
}

impl FieldProblem {
    pub(super) fn new(field: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn status_number<S: serde::Serializer>(
    status: &StatusCode,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let detail = detail.into();
        Self {
            kind,
            title,
            status,
            detail,
            errors: Vec::new(),
            current: None,
            retry_after: None,
        }
    }

    pub(super) fn nobody() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "urn:hedgerow:problem:nobody",
            "Not signed in",
            "expected `Authorization: Bearer` with an API token (`hedgerow api-token new` makes one), or the dashboard's session cookie; neither was given, or it is over",
        )
    }

    pub(super) fn foreign() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "urn:hedgerow:problem:foreign",
            "Asked for by another site",
            "a change made with the dashboard's session has to come from the dashboard itself: expected `Sec-Fetch-Site: same-origin` or an `Origin` that is this controller's address; programs use an API token instead",
        )
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "urn:hedgerow:problem:not-found",
            "Not found",
            detail,
        )
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "urn:hedgerow:problem:method",
            "Method not allowed",
            "the header `Allow` says which methods this address takes",
        )
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "urn:hedgerow:problem:malformed",
            "Malformed request",
            detail,
        )
    }

    pub(super) fn too_large(most: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "urn:hedgerow:problem:too-large",
            "Body too large",
            format!("expected at most {most} bytes"),
        )
    }

    pub(super) fn timeout(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "urn:hedgerow:problem:timeout",
            "Request too slow",
            detail,
        )
    }

    pub(super) fn media_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "urn:hedgerow:problem:media-type",
            "Unsupported media type",
            "expected a body of `Content-Type: application/json`",
        )
    }

    /// Fields that cannot stand, all at once.
    pub(super) fn invalid(errors: Vec<FieldProblem>) -> Self {
        let detail = errors
            .iter()
            .map(|e| format!("{}: {}", e.field, e.message))
            .collect::<Vec<_>>()
            .join("; ");
        Self {
            errors,
            ..Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "urn:hedgerow:problem:invalid",
                "Invalid values",
                detail,
            )
        }
    }

    fn stale(detail: String, current: Revision) -> Self {
        Self {
            current: Some(current),
            ..Self::new(
                StatusCode::PRECONDITION_FAILED,
                "urn:hedgerow:problem:stale",
                "Changed meanwhile",
                detail,
            )
        }
    }

    /// A fault of ours, which the caller cannot mend.
    pub(super) fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "urn:hedgerow:problem:internal",
            "Internal error",
            "the answer could not be written; the controller's log says why",
        )
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "urn:hedgerow:problem:unavailable",
            "Unavailable",
            detail,
        )
    }
}

impl From<ActError> for Problem {
    fn from(error: ActError) -> Self {
        let detail = error.to_string();
        match error {
            ActError::Forbidden { .. } => Self::new(
                StatusCode::FORBIDDEN,
                "urn:hedgerow:problem:role",
                "Not allowed",
                detail,
            ),
            ActError::Refused(OrderError::Stale { current, .. }) => Self::stale(detail, current),
            ActError::Refused(
                OrderError::UnknownRoute(_)
                | OrderError::UnknownDependency(_)
                | OrderError::NoPolicy(_)
                | OrderError::NoRollout(_)
                | OrderError::UnknownAlert(_)
                | OrderError::UnknownSilence(_),
            ) => Self::not_found(detail),
            ActError::Refused(OrderError::OutOfRange { field, problem })
            | ActError::Invalid { field, problem } => {
                Self::invalid(vec![FieldProblem::new(field, problem)])
            }
            ActError::Unknown(problem) => Self::not_found(problem),
            ActError::Refused(OrderError::PatternInSteps(_)) => {
                Self::invalid(vec![FieldProblem::new("rollout", detail)])
            }
            ActError::Refused(OrderError::NotNow(_) | OrderError::RolloutBeside { .. }) => {
                Self::new(
                    StatusCode::CONFLICT,
                    "urn:hedgerow:problem:not-now",
                    "Not as things stand",
                    detail,
                )
            }
            ActError::Refused(OrderError::NoReason) | ActError::Reason(_) => {
                Self::invalid(vec![FieldProblem::new("reason", detail)])
            }
            ActError::Refused(OrderError::NotPersisted(_)) | ActError::NoAnswer => {
                Self::unavailable(detail)
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(
            error = error.in_full(),
            "the store could not be read for the API"
        );
        Self::unavailable("the store could not be read; the controller's log says why")
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        let detail = error.to_string();
        match error {
            TokenError::Unknown => Self::nobody(),
            TokenError::TooMany { again } => Self {
                retry_after: Some(again),
                ..Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "urn:hedgerow:problem:too-many",
                    "Too many attempts",
                    detail,
                )
            },
            TokenError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).expect("text and numbers are JSON");
        let mut response = (
            self.status,
            [(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/problem+json"),
            )],
            body,
        )
            .into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, wait.as_secs().max(1).into());
        }
        response
    }
}
