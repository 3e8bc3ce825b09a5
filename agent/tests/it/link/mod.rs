//! The link against real servers on loopback.

mod connection;
mod controller;
mod delivery;
mod proxy;
mod reconnect;

use std::time::Duration;

use hedgerow_agent::{Agent, Route};
use hedgerow_protocol::directive::{Directive, LiveValues, Mode, Stamp, Standing};
use hedgerow_protocol::ids::{Epoch, ModeSequence, Revision, RouteKey, Tick};
use hedgerow_protocol::session::{AgentMessage, Applied, ReceivedAgentMessage, Refused, held_hash};
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio};

const TOKEN: &str = "token-7f3a";

async fn agent(url: &str) -> Agent {
    Agent::builder()
        .service("shop")
        .controller(url)
        .token(TOKEN.to_owned().into())
        .connect()
        .await
        .unwrap()
}

/// A route of dependency `name`.
fn route(agent: &Agent, name: &str) -> Route {
    agent.route(name, "get").build().unwrap()
}

fn key(name: &str) -> RouteKey {
    RouteKey::new(name, "get").unwrap()
}

fn stamp(epoch: u64, revision: u64, mode_sequence: u64) -> Stamp {
    Stamp {
        epoch: Epoch(epoch),
        revision: Revision(revision),
        mode_sequence: ModeSequence(mode_sequence),
    }
}

fn directive(name: &str, stamp: Stamp, mode: Mode) -> Directive {
    let budget = Budget::new(0.08).unwrap();
    Directive {
        route: key(name),
        stamp,
        mode,
        live: LiveValues::new(Tick(1), None, Ratio::ONE, budget, 3.0).unwrap(),
        standing: Standing {
            percentile: Quantile::new(0.95).unwrap(),
            holdout: Ratio::new(0.01).unwrap(),
            error_limit: Ratio::new(0.05).unwrap(),
            threshold_min: None,
            threshold_max: None,
            lease: Duration::from_secs(30),
            attempts: AttemptLimit::default(),
            hedge_on_error: false,
        },
        probation: Vec::new(),
        start_credit: 0.0,
    }
}

/// The stamp in force, and the mode as the agent sees it.
fn held(route: &Route) -> (Stamp, Mode) {
    let effective = route.snapshot().effective;
    (effective.stamp, effective.mode)
}

fn hash(routes: &[(&str, Stamp)]) -> u64 {
    let routes: Vec<_> = routes
        .iter()
        .map(|(name, stamp)| (key(name), *stamp))
        .collect();
    held_hash(routes.iter().map(|(route, stamp)| (route, *stamp)))
}

fn applied(message: &ReceivedAgentMessage) -> Option<Applied> {
    match message {
        AgentMessage::Applied(applied) => Some(applied.clone()),
        _ => None,
    }
}

fn refused(message: &ReceivedAgentMessage) -> Option<Refused> {
    match message {
        AgentMessage::Refused(refused) => Some(refused.clone()),
        _ => None,
    }
}

fn refusals(messages: &[ReceivedAgentMessage]) -> Vec<Refused> {
    messages.iter().filter_map(refused).collect()
}
