//! One event stream for each open page: as the controller publishes, the parts that changed are
//! sent, and nothing else.

mod open;

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, BoxStream, StreamExt as _};
use hedgerow_core::view::FleetSnapshot;

use crate::backend::Backend;
use crate::fragment::{Fragment, When};
use crate::guard::Viewer;
use crate::pages::overview::Start;
use crate::router::App;
use open::{LiveQuery, Open};

/// How often a comment is sent where nothing else is, so that a dead connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// A first word for the browser: try again after so long when the stream ends.
const RETRY: Duration = Duration::from_secs(1);
/// The event that tells a page that what it is about is gone: it does not come back for more.
const GONE: &str = "gone";

struct Stream<B> {
    app: App<B>,
    viewer: Viewer,
    snapshots: BoxStream<'static, Arc<FleetSnapshot>>,
    open: Open,
    /// Hash of what was last sent for each element.
    sent: HashMap<String, u64>,
    /// Messages of one snapshot that are not out yet.
    messages: VecDeque<String>,
    ended: bool,
}

impl<B: Backend> Stream<B> {
    /// The next event; None ends the stream: the controller stops, the session is over, or what the
    /// page is about is gone.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(Event::default().data(message));
            }
            if self.ended {
                return None;
            }
            let snapshot = self.snapshots.next().await?;
            // Before anything is sent: a stream ends with its session, and another role holds from
            // the next message on (S12).
            let backend = &self.app.backend;
            self.viewer.operator = backend.operator(&self.viewer.session).await?;
            if let Some(words) = self.open.gone(&snapshot) {
                self.ended = true;
                return Some(Event::default().event(GONE).data(words));
            }
            let parts = self
                .open
                .fragments(&self.app, &snapshot, &self.viewer)
                .await;
            self.messages = parts.into_iter().filter_map(|it| self.write(it)).collect();
        }
    }

    /// Those of a message that have to be sent; None: nothing has.
    fn write(&mut self, fragments: Vec<Fragment>) -> Option<String> {
        let mut message = String::new();
        for fragment in fragments {
            if fragment.when == When::Changed {
                let mut hasher = DefaultHasher::new();
                fragment.html.hash(&mut hasher);
                let hash = hasher.finish();
                if self.sent.insert(fragment.id.clone(), hash) == Some(hash) {
                    continue;
                }
            }
            fragment.write(&mut message);
        }
        Some(message).filter(|message| !message.is_empty())
    }
}

/// GET /live?page=...
pub(crate) async fn stream<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<LiveQuery>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let start = Start::new(&app.settings, &headers, &uri);
    let Some(mut open) = Open::new(query, start) else {
        return (
            StatusCode::BAD_REQUEST,
            "page: expected overview, route, kill, agents, alerts, receivers, controller, policy \
             or frame, with the page's own query",
        )
            .into_response();
    };
    let now = app.backend.snapshot();
    if open.gone(&now).is_some() {
        // What an event source takes for the end, and does not ask again after.
        return StatusCode::NO_CONTENT.into_response();
    }
    let stream = Stream {
        // The present one first: a page that was away for a while is put right at once.
        snapshots: stream::iter([now]).chain(app.backend.snapshots()).boxed(),
        app,
        viewer,
        open,
        sent: HashMap::new(),
        messages: VecDeque::new(),
        ended: false,
    };
    let hello = stream::iter([Ok::<_, Infallible>(
        Event::default().retry(RETRY).comment("hello"),
    )]);
    let messages = stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok(event), stream))
    });
    let sse = Sse::new(hello.chain(messages))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("still here"));
    // Proxies that collect an answer before they pass it on would make it anything but live.
    ([("x-accel-buffering", "no")], sse).into_response()
}
