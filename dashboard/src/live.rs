//! One event stream for each open page: as the controller publishes, the parts that changed are
//! sent, and nothing else.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, BoxStream, StreamExt as _};
use hedgerow_core::view::FleetSnapshot;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::policy::PolicyScope;
use serde::Deserialize;

use crate::backend::Backend;
use crate::fragment::{Fragment, When};
use crate::guard::Viewer;
use crate::pages::agents::AgentsQuery;
use crate::pages::kill::KillQuery;
use crate::pages::overview::{Overview, OverviewQuery};
use crate::pages::{agents, alerts, dependency, frame, kill, policy};
use crate::router::App;

/// How often a comment is sent where nothing else is, so that a dead connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// A first word for the browser: try again after so long when the stream ends.
const RETRY: Duration = Duration::from_secs(1);

/// What the stream's page is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LiveQuery {
    page: String,
    q: String,
    sort: String,
    dependency: String,
    operation: String,
    scope: String,
}

/// A page that is open somewhere.
enum Open {
    Overview {
        query: OverviewQuery,
        order: Vec<RouteKey>,
    },
    Route(RouteKey),
    /// A route that no agent had reported when its page was opened.
    Awaited(RouteKey),
    Kill(KillQuery),
    Agents(AgentsQuery),
    Alerts,
    Policy(PolicyScope),
    /// Only what every page has.
    Frame,
}

impl Open {
    fn new(query: LiveQuery) -> Option<Self> {
        Some(match query.page.as_str() {
            "overview" => Self::Overview {
                query: OverviewQuery {
                    q: query.q,
                    sort: query.sort,
                },
                order: Vec::new(),
            },
            "route" => Self::Route(RouteKey::new(&query.dependency, &query.operation).ok()?),
            "awaited" => Self::Awaited(RouteKey::new(&query.dependency, &query.operation).ok()?),
            "kill" => Self::Kill(KillQuery {
                scope: query.scope,
                dependency: query.dependency,
            }),
            "agents" => Self::Agents(AgentsQuery { q: query.q }),
            "alerts" => Self::Alerts,
            "policy" => Self::Policy(query.dependency.parse().ok()?),
            "" | "frame" => Self::Frame,
            _ => return None,
        })
    }

    async fn fragments<B: Backend>(
        &mut self,
        backend: &B,
        snapshot: &FleetSnapshot,
        viewer: &Viewer,
    ) -> Vec<Fragment> {
        let mut out = frame::fragments(snapshot);
        match self {
            Self::Overview { query, order } => {
                let overview = Overview::new(snapshot, query);
                // The rows' order is kept while the same rows are there: nothing moves under the
                // pointer because a figure changed a little.
                if overview.same_rows(order) {
                    out.extend(overview.row_fragments());
                } else {
                    *order = overview.order();
                    out.push(overview.fleet_fragment().when(When::Always));
                    out.extend(
                        overview
                            .row_fragments()
                            .into_iter()
                            .map(|row| row.when(When::Covered)),
                    );
                }
            }
            Self::Route(route) => {
                out.extend(dependency::fragments(backend, snapshot, route, viewer).await);
            }
            Self::Awaited(route) => {
                out.extend(dependency::arrived(backend, snapshot, route, viewer).await);
            }
            Self::Kill(query) => out.extend(kill::fragments(snapshot, query)),
            Self::Agents(query) => out.extend(agents::fragments(snapshot, query)),
            Self::Alerts => out.extend(alerts::fragments(backend, snapshot).await),
            Self::Policy(scope) => {
                out.extend(policy::rollout::fragments(snapshot, scope));
            }
            Self::Frame => {}
        }
        out
    }
}

struct Stream<B> {
    backend: B,
    viewer: Viewer,
    snapshots: BoxStream<'static, Arc<FleetSnapshot>>,
    open: Open,
    /// Hash of what was last sent for each element.
    sent: HashMap<String, u64>,
}

impl<B: Backend> Stream<B> {
    /// The next message; None ends the stream: the controller stops, or the session is over.
    async fn next(&mut self) -> Option<String> {
        loop {
            let snapshot = self.snapshots.next().await?;
            // Before anything is sent: a stream ends with its session, and another role holds from
            // the next message on (S12).
            self.viewer.operator = self.backend.operator(&self.viewer.session).await?;
            let fragments = self
                .open
                .fragments(&self.backend, &snapshot, &self.viewer)
                .await;
            let mut message = String::new();
            for fragment in fragments {
                let mut hasher = DefaultHasher::new();
                fragment.html.hash(&mut hasher);
                let hash = hasher.finish();
                let differs = self.sent.insert(fragment.id.clone(), hash) != Some(hash);
                if fragment.when == When::Always || (fragment.when == When::Changed && differs) {
                    fragment.write(&mut message);
                }
            }
            if !message.is_empty() {
                return Some(message);
            }
        }
    }
}

/// GET /live?page=...
pub(crate) async fn stream<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<LiveQuery>,
) -> Response {
    let Some(open) = Open::new(query) else {
        return (
            StatusCode::BAD_REQUEST,
            "page: expected overview, route, kill, agents, alerts or frame, with the page's own query",
        )
            .into_response();
    };
    let stream = Stream {
        // The present one first: a page that was away for a while is put right at once.
        snapshots: stream::iter([app.backend.snapshot()])
            .chain(app.backend.snapshots())
            .boxed(),
        backend: app.backend,
        viewer,
        open,
        sent: HashMap::new(),
    };
    let hello = stream::iter([Ok::<_, Infallible>(
        Event::default().retry(RETRY).comment("hello"),
    )]);
    let messages = stream::unfold(stream, |mut stream| async move {
        let message = stream.next().await?;
        Some((Ok(Event::default().data(message)), stream))
    });
    let sse = Sse::new(hello.chain(messages))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still here"));
    // Proxies that collect an answer before they pass it on would make it anything but live.
    ([("x-accel-buffering", "no")], sse).into_response()
}
