//! The REST API, under `/api/v1`: everything the pages show and do, for programs.
//!
//! Invariant: every path under `/api/v1`, known or not, answers 401 to whoever is nobody (S10). The
//! check is a layer around all of them, not a line in each handler.
//!
//! Fields that end in `_ms` are milliseconds, numbers with digits after the point; moments (`at`,
//! `since`, `started`, ...) are whole milliseconds since 1970, UTC. What cannot be known is null.
//!
//! Every error is `application/problem+json` (RFC 9457) and says what was expected.

mod about;
mod access;
mod alerts;
mod audit;
mod body;
mod caller;
mod duplicates;
mod look;
mod page;
mod policies;
mod problem;
mod receivers;
mod steer;
mod switchback;
mod utilisation;
mod whatif;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{any, delete, get, post, put};

use hedgerow_core::event::Via;
use hedgerow_dashboard::backend::Operator;

use crate::acts::Acting;
use crate::alerts::Receivers;
use crate::auth::Auth;
use crate::engine::Engine;
use crate::store::Store;
use crate::telemetry::Metrics;
use crate::ui::Ui;
use problem::Problem;

/// Largest body taken. The largest honest one, a policy with a reason, is under 2 KB.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// What the API is served from. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ApiState {
    /// The core.
    pub engine: Engine,
    /// What lasts.
    pub store: Store,
    /// Who somebody is.
    pub auth: Auth,
    /// Where alerts go.
    pub receivers: Receivers,
    /// What is counted.
    pub metrics: Metrics,
}

impl ApiState {
    /// The controller as its pages see it, for what both show.
    fn ui(&self) -> Ui {
        let (engine, store) = (self.engine.clone(), self.store.clone());
        Ui::new(engine, store, self.auth.clone(), self.metrics.clone())
            .with_receivers(self.receivers.clone())
    }

    /// Somebody who acts by the API.
    fn acting<'a>(&'a self, operator: &'a Operator) -> Acting<'a> {
        Acting {
            engine: &self.engine,
            operator,
            via: Via::Api,
        }
    }
}

macro_rules! routes {
    ($($($method:ident $path:literal => $handler:expr),+;)*) => {
        /// Every route: method and path. A test walks it (S10).
        pub const ROUTES: &[(&str, &str)] = &[$($((stringify!($method), $path)),+),*];

        fn routes() -> Router<ApiState> {
            Router::new()$($(.route($path, $method($handler)))+)*
        }
    };
}

routes! {
    get "/api/v1/fleet" => look::fleet;
    get "/api/v1/routes" => look::routes;
    get "/api/v1/routes/{dependency}/{operation}" => look::route;
    get "/api/v1/routes/{dependency}/{operation}/history" => look::history;
    get "/api/v1/routes/{dependency}/{operation}/whatif" => whatif::now;
    post "/api/v1/routes/{dependency}/{operation}/replay" => whatif::last_hours;
    get "/api/v1/agents" => look::agents;
    get "/api/v1/agents/{instance}" => look::agent;
    get "/api/v1/audit" => audit::list;
    get "/api/v1/audit/export" => audit::export;
    get "/api/v1/controller" => about::controller;
    get "/api/v1/openapi.json" => about::openapi;
    get "/api/v1/schemas/policy.json" => about::policy_schema;
    get "/api/v1/alerts" => alerts::list;
    post "/api/v1/alerts/{id}/acknowledge" => alerts::acknowledge;
    get "/api/v1/silences" => alerts::silences,
    post "/api/v1/silences" => alerts::silence;
    delete "/api/v1/silences/{id}" => alerts::end_silence;
    get "/api/v1/receivers" => receivers::list;
    post "/api/v1/receivers/{name}/test" => receivers::test;
    get "/api/v1/deliveries" => receivers::deliveries;
    get "/api/v1/policies" => policies::list;
    get "/api/v1/policies/{scope}" => policies::show,
    put "/api/v1/policies/{scope}" => policies::set,
    delete "/api/v1/policies/{scope}" => policies::remove;
    get "/api/v1/policies/{scope}/history" => policies::history;
    post "/api/v1/policies/{scope}/plan" => policies::plan;
    post "/api/v1/policies/{scope}/revert" => policies::revert;
    delete "/api/v1/policies/{scope}/rollout" => policies::take_back;
    post "/api/v1/policies/{scope}/rollout/advance" => policies::advance;
    get "/api/v1/kill" => look::kills,
    post "/api/v1/kill" => steer::kill;
    post "/api/v1/routes/{dependency}/{operation}/release" => steer::release;
    post "/api/v1/routes/{dependency}/{operation}/accept-base" => steer::accept_base;
    post "/api/v1/routes/{dependency}/{operation}/switchback" => switchback::start,
    delete "/api/v1/routes/{dependency}/{operation}/switchback" => switchback::stop;
    put "/api/v1/dependencies/{dependency}/utilisation" => utilisation::set;
    get "/api/v1/operators" => access::operators,
    post "/api/v1/operators" => access::add_operator;
    put "/api/v1/operators/{name}" => access::set_role,
    delete "/api/v1/operators/{name}" => access::remove_operator;
    post "/api/v1/operators/{name}/link" => access::link;
    get "/api/v1/tokens" => access::tokens,
    post "/api/v1/tokens" => access::add_token;
    delete "/api/v1/tokens/{name}" => access::revoke_token;
    get "/api/v1/agent-tokens" => access::agent_tokens,
    post "/api/v1/agent-tokens" => access::add_agent_token;
    delete "/api/v1/agent-tokens/{id}" => access::revoke_agent_token;
    put "/api/v1/routes/{dependency}/{operation}/duplicates" => duplicates::set;
}

/// The API, with its own paths: to be merged into what else is served.
pub fn router(state: ApiState) -> Router {
    routes()
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .route("/api/v1", any(not_found))
        .route("/api/v1/", any(not_found))
        .route("/api/v1/{*rest}", any(not_found))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(state.clone(), caller::demand))
        .layer(map_response(headers))
        .with_state(state)
}

async fn not_found(request: Request) -> Problem {
    Problem::not_found(format!("there is nothing at {}", request.uri().path()))
}

/// Answers are for the caller alone, and are data wherever they end up.
async fn headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
