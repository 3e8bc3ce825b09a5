//! A reqwest client, hedged.
//!
//! GET, HEAD and OPTIONS are taken for idempotent, other methods only where the caller says so with
//! [`execute_as`](HedgedClient::execute_as). A request whose body is a stream cannot be sent twice
//! and is not hedged. The race ends when a response's head is there; the loser is dropped then. The
//! response is reqwest's own, with its body as a stream that keeps the permit until it is read. What
//! a head means is told by [`verdict`](super::verdict).
//!
//! ```
//! use hedgerow_agent::integrations::reqwest::HedgedClient;
//! use hedgerow_agent::{Agent, Call, Replicas};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder().service("checkout").connect().await?;
//! let replicas = Replicas::new([("10.0.0.1:80", Some("eu-1")), ("10.0.0.2:80", Some("eu-2"))])?;
//! let route = agent.route("catalog", "search").replicas(replicas).build()?;
//! let catalog = HedgedClient::new(reqwest::Client::new(), route);
//!
//! let read = catalog.request(reqwest::Method::GET, "/item/7").build()?;
//! // Searching by POST changes nothing: it may run twice.
//! let search = catalog.request(reqwest::Method::POST, "/search").body("shoes").build()?;
//! # if false {
//! let item = catalog.execute(read).await?.text().await?;
//! let found = catalog.execute_as(Call::idempotent(), search).await?;
//! # let _ = (item, found);
//! # }
//! # Ok(())
//! # }
//! ```

use http::{Response, Uri};
use reqwest::{Body, Client, Method, Request, RequestBuilder, ResponseBuilderExt, Url};

use super::address::{AttemptError, at_replica, no_address, verdict_of};
use super::body::HeldBody;
use super::mark::{call_of, mark};
use super::verdict::HttpVerdicts;
use crate::attempt::Attempt;
use crate::eligibility::Call;
use crate::error::CallError;
use crate::route::Route;

/// A hedged reqwest client: see the [module](self). Cheap to clone.
#[derive(Debug, Clone)]
pub struct HedgedClient {
    client: Client,
    route: Route,
    verdicts: HttpVerdicts,
    stream_past_deadline: bool,
}

/// What a call failed with: the primary's own error, word for word, or the deadline.
pub type Error = CallError<AttemptError<reqwest::Error>>;

impl HedgedClient {
    /// `route` has [`Replicas`](crate::Replicas) whose names are base URLs: `host:port`,
    /// `http://host:port` or `https://host:port`, with a path of their own where they need one.
    /// A redirect is followed as `client` is told to, also away from the replica.
    pub fn new(client: Client, route: Route) -> Self {
        Self {
            client,
            route,
            verdicts: HttpVerdicts::new(),
            stream_past_deadline: false,
        }
    }

    /// What answers mean, where the [table](super::verdict) is not right for this dependency.
    #[must_use]
    pub fn verdicts(mut self, verdicts: HttpVerdicts) -> Self {
        self.verdicts = verdicts;
        self
    }

    /// Whether a body that began in time may be read for as long as it takes. Not so unless set: the
    /// deadline covers the whole answer. A body keeps its attempt's permit until it ends: where many
    /// are long, the route's limits have to allow for them.
    #[must_use]
    pub fn stream_past_deadline(mut self, past: bool) -> Self {
        self.stream_past_deadline = past;
        self
    }

    /// Begins a request to whichever replica is picked, for `path` and its query; a `/` that it does
    /// not begin with is put before it. To be finished with reqwest's `build`, not `send`, which knows
    /// of no replica.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let slash = if path.starts_with('/') { "" } else { "/" };
        // `invalid` is a domain that never resolves: what goes there was not executed here.
        self.client
            .request(method, format!("http://replica.invalid{slash}{path}"))
    }

    /// Runs a request: hedged where its method changes nothing. Only path and query of its URL
    /// count. Its timeout, if it has one, is the call's deadline, over all attempts.
    ///
    /// # Errors
    /// [`CallError::Failed`] with the primary's own error, [`CallError::DeadlineExceeded`]. An answer
    /// with an error status is an answer, as with reqwest itself.
    pub async fn execute(&self, request: Request) -> Result<reqwest::Response, Error> {
        self.run(None, request).await
    }

    /// Runs a request, `call` saying whether it may run twice, its deadline, its replica.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn execute_as(
        &self,
        call: Call,
        request: Request,
    ) -> Result<reqwest::Response, Error> {
        self.run(Some(call), request).await
    }

    async fn run(
        &self,
        own: Option<Call>,
        mut request: Request,
    ) -> Result<reqwest::Response, Error> {
        let mut call = call_of(own, request.method(), request.headers());
        // The timeout would be each attempt's own, and a hedge's begins later.
        let timeout = request.timeout_mut().take();
        call.deadline = call.deadline.or(timeout);
        let mut requests = Requests::new(&mut call, request);
        let (client, past_deadline) = (self.client.clone(), self.stream_past_deadline);
        let attempts = move |attempt: Attempt| {
            let sent = requests
                .next()
                .map(|request| send(client.clone(), request, attempt, past_deadline));
            async move {
                match sent {
                    Some(sent) => sent.await,
                    None => std::future::pending().await,
                }
            }
        };
        let verdicts = self.verdicts.clone();
        let classify = move |result: &Result<reqwest::Response, _>| match result {
            Ok(answer) => verdicts.of(answer.status(), answer.headers()),
            Err(error) => verdict_of(error),
        };
        self.route.call_with(call, classify, attempts).await
    }
}

/// What a call's attempts are made of.
enum Requests {
    /// Its body is a stream, or it must not run twice: there is one attempt.
    Once(Option<Request>),
    Again(Request),
}

impl Requests {
    fn new(call: &mut Call, request: Request) -> Self {
        if call.idempotent && request.body().is_none_or(|body| body.as_bytes().is_some()) {
            return Self::Again(request);
        }
        call.idempotent = false;
        Self::Once(Some(request))
    }

    fn next(&mut self) -> Option<Request> {
        match self {
            Self::Once(request) => request.take(),
            Self::Again(request) => request.try_clone(),
        }
    }
}

/// Carries one attempt out, up to its answer's head.
async fn send(
    client: Client,
    mut request: Request,
    attempt: Attempt,
    past_deadline: bool,
) -> Result<reqwest::Response, AttemptError<reqwest::Error>> {
    *request.url_mut() = url_at(request.url(), &attempt)?;
    mark(request.headers_mut(), &attempt);
    let answer = client
        .execute(request)
        .await
        .map_err(AttemptError::Failed)?;
    let until = (!past_deadline).then(|| attempt.deadline());
    let url = answer.url().clone();
    let (mut head, body) = Response::<Body>::from(answer).into_parts();
    // reqwest keeps the URL beside the head, where the conversion drops it.
    if let Ok(with_url) = Response::builder().url(url).body(()) {
        head.extensions.extend(with_url.into_parts().0.extensions);
    }
    let body = Body::wrap(HeldBody::new(body, attempt.hold(), until));
    Ok(Response::from_parts(head, body).into())
}

fn url_at(asked: &Url, attempt: &Attempt) -> Result<Url, AttemptError<reqwest::Error>> {
    let replica = attempt.replica();
    let path = match asked.query() {
        Some(query) => format!("{}?{query}", asked.path()),
        None => asked.path().to_owned(),
    };
    let path = Uri::try_from(path).map_err(|error| no_address(replica, error))?;
    let at = at_replica(&path, replica)?;
    Url::parse(&at.to_string()).map_err(|error| no_address(replica, error))
}
