//! What a person does about alerts: says that they work on one, and silences.

use axum::Extension;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::effect::SilenceId;
use serde::Deserialize;

use super::silences::{SilenceForm, minutes};
use crate::backend::{ActError, Backend};
use crate::guard::Viewer;
use crate::pages::error;
use crate::router::App;

async fn back<B: Backend>(
    app: &App<B>,
    viewer: &Viewer,
    form: SilenceForm,
    done: Result<(), (StatusCode, String)>,
) -> Response {
    match done {
        Ok(()) => Redirect::to("/alerts").into_response(),
        Err(problem) => super::show(app, viewer, form, Some(problem)).await,
    }
}

fn told(problem: &ActError) -> (StatusCode, String) {
    (error::describe(problem).0, problem.to_string())
}

fn invalid(problem: String) -> (StatusCode, String) {
    (StatusCode::UNPROCESSABLE_ENTITY, problem)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AcknowledgeForm {
    alert: String,
    /// Empty: until the alert resolves.
    minutes: String,
    comment: String,
}

/// POST /alerts/acknowledge
pub(crate) async fn acknowledge<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<AcknowledgeForm>,
) -> Response {
    let lasts = match form.minutes.trim() {
        "" => Ok(None),
        text => minutes(text).map(Some),
    };
    let done = match lasts {
        Err(problem) => Err(invalid(problem)),
        Ok(lasts) => app
            .backend
            .acknowledge(&viewer.operator, &form.alert, lasts, form.comment.trim())
            .await
            .map_err(|problem| told(&problem)),
    };
    back(&app, &viewer, SilenceForm::default(), done).await
}

/// POST /alerts/silence
pub(crate) async fn silence<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<SilenceForm>,
) -> Response {
    let done = match form.draft() {
        Err(problem) => Err(invalid(problem)),
        Ok(draft) => app
            .backend
            .silence(&viewer.operator, draft, form.reason.trim())
            .await
            .map(|_| ())
            .map_err(|problem| told(&problem)),
    };
    back(&app, &viewer, form, done).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EndForm {
    id: u64,
    reason: String,
}

/// POST /alerts/silence/end
pub(crate) async fn end_silence<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Form(form): Form<EndForm>,
) -> Response {
    let done = app
        .backend
        .end_silence(&viewer.operator, SilenceId(form.id), form.reason.trim())
        .await
        .map_err(|problem| told(&problem));
    back(&app, &viewer, SilenceForm::default(), done).await
}
