//! Every route, once: the same table builds the router and is walked by the test of S10.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::{get, post};

use crate::backend::Backend;
use crate::pages::{
    access, agents, alerts, controller, dependency, error, kill, login, overview, policies, policy,
    receivers, record,
};
use crate::{assets, guard, live};

/// Largest form taken. The largest honest one is a policy with a reason, under 2 KB.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// How the pages are served.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Whether the session cookie is for TLS only. False only where the pages are served without.
    pub secure_cookies: bool,
    /// Names (and ports) the pages may be asked for under, as `hedgerow.example:8443`; a request for
    /// another is refused, which keeps a name that was bound anew from reaching them. Empty: any.
    pub hosts: Vec<String>,
    /// Where agents are served; None: where nothing else is said, see [`AgentsAt`].
    pub agents: Option<AgentsAt>,
}

/// Where agents are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentsAt {
    /// The port.
    pub port: u16,
    /// Whether by TLS.
    pub tls: bool,
}

impl Default for AgentsAt {
    fn default() -> Self {
        Self {
            port: 7420,
            tls: false,
        }
    }
}

/// What handlers share.
#[derive(Debug, Clone)]
pub(crate) struct App<B> {
    pub(crate) backend: B,
    pub(crate) settings: Arc<Settings>,
    pub(crate) rows: Arc<overview::RowCache>,
}

macro_rules! routes {
    ($($name:ident in $table:ident, $doc:literal { $($method:ident $path:literal => $handler:path,)* })*) => {$(
        #[doc = $doc]
        pub const $table: &[(&str, &str)] = &[$((stringify!($method), $path)),*];

        fn $name<B: Backend>() -> Router<App<B>> {
            Router::new()$(.route($path, $method($handler)))*
        }
    )*};
}

routes! {
    protected in PROTECTED_ROUTES, "Routes that need a session: method and path." {
        get "/" => overview::page::<B>,
        get "/live" => live::stream::<B>,
        get "/dependencies/{dependency}/{operation}" => dependency::page::<B>,
        get "/dependencies/{dependency}/{operation}/course" => dependency::course::data::<B>,
        post "/release" => dependency::release::<B>,
        post "/accept-base" => dependency::accept_base::<B>,
        post "/switchback" => dependency::switchback::start::<B>,
        post "/switchback/stop" => dependency::switchback::stop::<B>,
        get "/policies" => policies::page::<B>,
        get "/policies/{scope}" => policy::page::<B>,
        post "/policies/{scope}" => policy::save::<B>,
        post "/policies/{scope}/check" => policy::check::<B>,
        post "/policies/{scope}/replay" => policy::replayed::<B>,
        post "/policies/{scope}/revert" => policy::revert::<B>,
        post "/policies/{scope}/remove" => policy::remove::<B>,
        post "/policies/{scope}/rollout" => policy::rollout::step::<B>,
        get "/kill" => kill::page::<B>,
        post "/kill" => kill::throw::<B>,
        get "/agents" => agents::page::<B>,
        get "/alerts" => alerts::page::<B>,
        post "/alerts/acknowledge" => alerts::acts::acknowledge::<B>,
        post "/alerts/silence" => alerts::acts::silence::<B>,
        post "/alerts/silence/end" => alerts::acts::end_silence::<B>,
        get "/receivers" => receivers::page::<B>,
        post "/receivers/test" => receivers::test::<B>,
        get "/record" => record::page::<B>,
        get "/record/export" => record::export::file::<B>,
        get "/controller" => controller::page::<B>,
        get "/access" => access::page::<B>,
        post "/access" => access::change::<B>,
        post "/logout" => login::sign_out::<B>,
    }
    open in OPEN_ROUTES, "Routes anybody may ask for: method and path." {
        get "/login" => login::page::<B>,
        post "/login" => login::sign_in::<B>,
        get "/login/link" => login::link::<B>,
        post "/login/link" => login::sign_in_by_link::<B>,
        get "/login/sso" => login::sso::begin::<B>,
        get "/login/sso/back" => login::sso::back::<B>,
        get "/assets/{name}" => assets::serve,
    }
}

/// The operator's pages over a controller.
pub fn router<B: Backend>(backend: B, settings: Settings) -> Router {
    let app = App {
        backend,
        settings: Arc::new(settings),
        rows: Arc::default(),
    };
    // Deny by default: the session is demanded around everything that is not expressly open, and
    // that includes what is not found.
    let inside = protected::<B>()
        .fallback(error::not_found::<B>)
        .layer(from_fn_with_state(app.clone(), guard::demand_session::<B>));
    open::<B>()
        .fallback_service(inside.with_state(app.clone()))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(from_fn_with_state(app.clone(), guard::refuse_foreign::<B>))
        .layer(map_response(guard::security_headers))
        .with_state(app)
}
