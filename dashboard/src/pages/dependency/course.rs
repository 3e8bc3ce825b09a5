//! The charts' figures, for zooming.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use hedgerow_core::moment::Moment;
use serde::Deserialize;

use super::range::{POINTS, Range};
use super::watch::Watched;
use super::{events, named, policy_of};
use crate::backend::Backend;
use crate::chart::{Course, CourseData, route_plots};
use crate::guard::Viewer;
use crate::router::App;

/// Points for a part of a range are at most so many times as fine as for the whole of it.
const FINER_MAX: u64 = 6;

/// Which part of which range.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CourseQuery {
    range: String,
    /// Milliseconds since 1970; absent: where the range begins.
    from: Option<u64>,
    /// As `from`; absent: now.
    to: Option<u64>,
}

/// GET /dependencies/{dependency}/{operation}/course?range=&from=&to=
pub(crate) async fn data<B: Backend>(
    State(app): State<App<B>>,
    Extension(_viewer): Extension<Viewer>,
    Path((dependency, operation)): Path<(String, String)>,
    Query(query): Query<CourseQuery>,
) -> Response {
    let route = match named(&dependency, &operation) {
        Ok(route) => route,
        Err(response) => return *response,
    };
    let snapshot = app.backend.snapshot();
    let Some(view) = snapshot.routes.get(&route) else {
        return (StatusCode::NOT_FOUND, "no agent has reported this route").into_response();
    };
    let range = Range::parse(&query.range);
    let begin = range.since(snapshot.at);
    let from = Moment::from_millis(query.from.unwrap_or(0)).clamp(begin, snapshot.at);
    let to = query.to.map_or(snapshot.at, Moment::from_millis);
    let to = to.clamp(from, snapshot.at);
    let mut watched = Watched::new(route.clone(), range);
    let told = watched.told(&app.backend, &snapshot, view).await;
    let mut events = events(view, &snapshot, &told, range);
    events.retain(|event| event.at >= from && event.at <= to);
    let course = if range == Range::Live {
        Course::new(from, to, &view.course, events, range.words())
    } else {
        // The store thins up to now: for a part of that, as much finer as the part is shorter.
        let (whole, part) = (snapshot.at.since(from), to.since(from));
        let finer = whole.as_millis() as u64 / (part.as_millis() as u64).max(1);
        let points = POINTS * finer.clamp(1, FINER_MAX) as u32;
        match app.backend.history(&route, from, points).await {
            Ok(points) => Course::new(from, to, &points, events, range.words()),
            Err(problem) => {
                return (StatusCode::SERVICE_UNAVAILABLE, problem.to_string()).into_response();
            }
        }
    };
    let policy = policy_of(&snapshot, &route);
    let plots = route_plots(
        &course,
        view,
        policy.error_limit().get(),
        policy.budget().get(),
    );
    Json(CourseData::new(plots)).into_response()
}
