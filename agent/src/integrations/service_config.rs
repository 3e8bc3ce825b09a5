//! Reads a gRPC service config as policies: the JSON that gRPC clients get from a resolver or a
//! channel's option, as gRFC A6 describes its `hedgingPolicy` and `retryThrottling`.
//!
//! ```
//! use hedgerow_agent::integrations::service_config::ServiceConfig;
//!
//! let config = ServiceConfig::parse(
//!     r#"{
//!         "methodConfig": [{
//!             "name": [{ "service": "shop.Catalog", "method": "Get" }],
//!             "hedgingPolicy": {
//!                 "maxAttempts": 2,
//!                 "hedgingDelay": "0.015s",
//!                 "nonFatalStatusCodes": ["UNAVAILABLE"]
//!             }
//!         }],
//!         "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
//!     }"#,
//! )?;
//! let policy = config.policy("catalog")?;
//! assert_eq!(policy.budget().get(), 0.1);
//! assert_eq!(policy.threshold_min(), policy.threshold_max());
//! assert!(config.method("/shop.Catalog/Get").unwrap().hedging().is_some());
//! assert!(config.method("/shop.Catalog/Put").is_none());
//! for note in config.notes() {
//!     println!("{note}"); // what is taken differently, or not at all
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | service config | here |
//! |---|---|
//! | `name` | the methods: exact before service before default, as in gRPC |
//! | `hedgingPolicy` | its methods are idempotent: whoever wrote it said that they may run twice |
//! | `maxAttempts` | the most attempts of a call; above 3 it is held to 3 |
//! | `hedgingDelay` | the threshold's floor and ceiling; zero or absent is not taken: the percentile alone decides |
//! | `nonFatalStatusCodes` | those let the other attempts go on, and send the next one at once where none is left; others end the call |
//! | `timeout` | the deadline of the method's calls |
//! | `retryThrottling.tokenRatio` | the budget, at most a quarter: drained by hedges sent, where gRPC's tokens are drained by failures |
//! | `retryThrottling.maxTokens` | not taken: the agent knows its bucket's cap |
//! | everything else | not taken, each named in [`notes`](ServiceConfig::notes) |

mod fields;
mod hedging;
mod note;
mod parse;
mod throttling;

use std::collections::HashMap;
use std::time::Duration;

use hedgerow_protocol::limits::{BUDGET_MAX, THRESHOLD_MAX, THRESHOLD_MIN};
use hedgerow_protocol::policy::{Intent, Policy, PolicyDraft, PolicyErrors};
use hedgerow_protocol::units::as_millis;

pub use self::hedging::Hedging;
pub use self::note::{FieldProblem, Note, ServiceConfigError, Taken};
pub use self::throttling::RetryThrottling;

/// A checked service config: see the [module](self).
#[derive(Debug, Clone, Default)]
pub struct ServiceConfig {
    /// By `/service/method`.
    methods: HashMap<String, MethodRule>,
    /// By service.
    services: HashMap<String, MethodRule>,
    /// For all that have none of their own.
    default: Option<MethodRule>,
    throttling: Option<RetryThrottling>,
    notes: Vec<Note>,
}

/// What a service config says of a method.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MethodRule {
    timeout: Option<Duration>,
    hedging: Option<Hedging>,
}

impl MethodRule {
    /// The deadline of its calls, where it has one.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// How it is hedged. None: nobody said that it may run twice.
    pub fn hedging(&self) -> Option<&Hedging> {
        self.hedging.as_ref()
    }
}

impl ServiceConfig {
    /// Reads and checks a service config.
    ///
    /// # Errors
    /// [`ServiceConfigError::Json`] where it is no JSON; [`ServiceConfigError::Fields`] with every
    /// field that cannot stand, by its path, and what was expected.
    pub fn parse(json: &str) -> Result<Self, ServiceConfigError> {
        parse::parse(json)
    }

    /// What it says of a method, given as `/package.Service/Method`: the entry for the method, or
    /// else for its service, or else the default. One entry is taken whole, as in gRPC.
    pub fn method(&self, path: &str) -> Option<&MethodRule> {
        let service = path.strip_prefix('/').and_then(|it| it.split_once('/'));
        self.methods
            .get(path)
            .or_else(|| self.services.get(service?.0))
            .or(self.default.as_ref())
    }

    /// Its throttling of retries and hedges, where it has one.
    pub fn retry_throttling(&self) -> Option<RetryThrottling> {
        self.throttling
    }

    /// The policy for the whole dependency: to hedge, where any method is hedged, between the
    /// shortest and the longest delay of them, with the most attempts of any, and the budget of its
    /// throttling. It hedges on errors where any method has statuses that are not fatal: which ones
    /// those are is for each method to say, by [`Hedging::non_fatal`].
    ///
    /// # Errors
    /// Where `dependency` is no name of one. All else was checked before.
    pub fn policy(&self, dependency: &str) -> Result<Policy, PolicyErrors> {
        let rules = self.methods.values().chain(self.services.values());
        let hedging = rules
            .chain(self.default.as_ref())
            .filter_map(MethodRule::hedging);
        policy_of(dependency, hedging, self.throttling)
    }

    /// The policy for a route of one method's own, given as `/package.Service/Method`: its delay is
    /// its threshold, whatever those of others are. Observing, where it is not hedged.
    ///
    /// # Errors
    /// As [`policy`](Self::policy).
    pub fn policy_for(&self, dependency: &str, method: &str) -> Result<Policy, PolicyErrors> {
        let hedging = self.method(method).and_then(MethodRule::hedging);
        policy_of(dependency, hedging.into_iter(), self.throttling)
    }

    /// What is taken differently here, and what is not taken at all, in the order it was found.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

fn policy_of<'a>(
    dependency: &str,
    hedging: impl Iterator<Item = &'a Hedging>,
    throttling: Option<RetryThrottling>,
) -> Result<Policy, PolicyErrors> {
    let mut draft = PolicyDraft {
        dependency: dependency.to_owned(),
        ..default_draft()
    };
    let mut at_once = false;
    let mut delays = Vec::new();
    for hedging in hedging {
        draft.intent = Intent::Hedge;
        draft.attempts = draft.attempts.max(hedging.attempts().into());
        draft.hedge_on_error |= !hedging.non_fatal().is_empty();
        match hedging.delay() {
            Duration::ZERO => at_once = true,
            delay => delays.push(delay.clamp(THRESHOLD_MIN, THRESHOLD_MAX)),
        }
    }
    // A method hedged at once has no floor, so that all of them together have none.
    draft.threshold_min_ms = delays
        .iter()
        .min()
        .filter(|_| !at_once)
        .map(|it| as_millis(*it));
    draft.threshold_max_ms = delays.iter().max().map(|it| as_millis(*it));
    if let Some(throttling) = throttling {
        draft.budget = throttling.token_ratio().min(BUDGET_MAX);
    }
    Policy::try_from(draft)
}

fn default_draft() -> PolicyDraft {
    let any = "any".parse().expect("three letters are a name");
    Policy::observing(any).into()
}
