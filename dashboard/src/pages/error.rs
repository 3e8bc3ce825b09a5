//! Error pages. Each says what happened and leads back.

use askama::Template;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use hedgerow_core::effect::OrderError;

use super::login::Bare;
use crate::backend::{ActError, Backend, StoreError};
use crate::fragment::html;
use crate::router::App;

#[derive(Debug, Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    bare: Bare,
    status: u16,
    title: &'a str,
    words: &'a str,
}

/// A page that needs no session and no snapshot.
pub(crate) fn plain(status: StatusCode, title: &str, words: &str) -> Response {
    html(
        status,
        &ErrorPage {
            bare: Bare::new(),
            status: status.as_u16(),
            title,
            words,
        },
    )
}

/// Whatever no route answers to.
pub(crate) async fn not_found<B: Backend>(State(_): State<App<B>>, uri: Uri) -> Response {
    plain(
        StatusCode::NOT_FOUND,
        "No such page",
        &format!("Nothing is served at {}.", uri.path()),
    )
}

/// The store is away.
pub(crate) fn store(error: &StoreError) -> Response {
    plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "The store does not answer",
        &format!("{error}. Agents go on with what they hold; try again in a moment."),
    )
}

/// An act that was not done, where there is no form to show it beside.
pub(crate) fn act(error: &ActError) -> Response {
    let (status, title) = describe(error);
    plain(status, title, &format!("{error}."))
}

/// An act's status and its title.
pub(crate) fn describe(error: &ActError) -> (StatusCode, &'static str) {
    match error {
        ActError::Forbidden { .. } => (StatusCode::FORBIDDEN, "Not allowed"),
        ActError::Refused(OrderError::Stale { .. }) => (StatusCode::CONFLICT, "Changed meanwhile"),
        ActError::Refused(OrderError::NoPolicy(_)) => (StatusCode::NOT_FOUND, "Not set"),
        ActError::Refused(OrderError::RolloutBeside { .. }) => {
            (StatusCode::CONFLICT, "Not as things stand")
        }
        ActError::Refused(OrderError::PatternInSteps(_)) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "Cannot stand")
        }
        ActError::Refused(
            OrderError::UnknownRoute(_)
            | OrderError::UnknownDependency(_)
            | OrderError::UnknownAlert(_)
            | OrderError::UnknownSilence(_),
        )
        | ActError::Unknown(_) => (StatusCode::NOT_FOUND, "Not known"),
        ActError::Refused(OrderError::NoRollout(_)) => (StatusCode::NOT_FOUND, "Not under way"),
        ActError::Refused(OrderError::OutOfRange { .. }) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "Out of range")
        }
        ActError::Refused(OrderError::NotNow(_)) => (StatusCode::CONFLICT, "Not as things stand"),
        ActError::Refused(OrderError::NoReason) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "A reason is needed")
        }
        ActError::Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "Cannot stand"),
        ActError::Reason(_) => (StatusCode::UNPROCESSABLE_ENTITY, "Another reason is needed"),
        ActError::Refused(OrderError::NotPersisted(_)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "Not saved")
        }
        ActError::NoAnswer => (StatusCode::SERVICE_UNAVAILABLE, "No answer"),
    }
}
