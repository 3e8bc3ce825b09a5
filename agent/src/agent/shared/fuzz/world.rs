//! An agent with its link, but for the socket; and what must hold of it after every frame.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::directive::{Mode, Stamp};
use hedgerow_protocol::ids::{ReplicaName, RouteKey};
use hedgerow_protocol::limits::{
    ATTEMPTS_MAX, BUDGET_MAX, CAP_MAX, MESSAGE_BYTES_MAX, REPLICAS_PER_ROUTE_MAX, THRESHOLD_MAX,
    THRESHOLD_MIN,
};
use hedgerow_protocol::session::{AgentMessage, ControllerMessage, Text};
use hedgerow_protocol::units::Threshold;
use hedgerow_protocol::wire::{codec, controller_message, proto};
use prost::Message as _;
use tokio::time::Instant;

use super::frames::Frame;
use super::messages::ROUTES;
use crate::agent::Shared;
use crate::host::Host;
use crate::link::lost::Lost;
use crate::link::state::{Input, Link, Notice, Output};
use crate::mode::RouteMode;
use crate::replicas::Replicas;
use crate::route::{Limits, RouteState};

/// Most that one frame may make an agent say: a refusal and its notice for each of 64 directives,
/// and a report, a heartbeat, an answer beside them.
const OUTPUTS_MAX: usize = 140;

/// What a route holds.
type Holds = Option<(Stamp, Mode)>;

pub(super) struct World {
    shared: Arc<Shared>,
    routes: Vec<Arc<RouteState>>,
    link: Link,
    now: Instant,
    attached: bool,
    last: u64,
    outcomes: BTreeSet<u64>,
}

impl World {
    pub(super) fn new() -> Self {
        let shared = Arc::new(Shared::new(None, Text::lossy("fuzz"), true, None));
        let limits = Limits {
            deadline: Duration::from_secs(1),
            attempts_alive: 64,
            hedges_alive: 16,
        };
        let add = |(dependency, operation)| {
            let key = RouteKey::new(dependency, operation).unwrap();
            let replicas = Replicas::new([("r5:80", None), ("r6:80", None)]).unwrap();
            let mode = RouteMode::default();
            shared.add(&key, limits, Some(replicas), mode).unwrap()
        };
        let routes = ROUTES.map(add).to_vec();
        let now = shared.birth;
        let host: Arc<dyn Host> = shared.clone();
        let mut world = Self {
            link: Link::new(host, now),
            shared,
            routes,
            now,
            attached: false,
            last: 0,
            outcomes: BTreeSet::new(),
        };
        world.wait(0);
        world
    }

    pub(super) fn into_outcomes(self) -> BTreeSet<u64> {
        self.outcomes
    }

    pub(super) fn play(&mut self, frame: &Frame) {
        let before = self.held();
        match frame {
            Frame::Message(bytes) => self.message(bytes, &before),
            Frame::Wait(ms) => self.wait(*ms),
            Frame::Break => self.input(Input::Ended(Lost::Closed)),
        }
        self.check(&before);
    }

    fn held(&self) -> Vec<Holds> {
        let held = |route: &Arc<RouteState>| route.held().map(|held| (held.stamp, held.mode));
        self.routes.iter().map(held).collect()
    }

    /// The way of a message from the socket: as `link` has it.
    fn message(&mut self, bytes: &[u8], before: &[Holds]) {
        let decoded = codec::decode::<proto::ControllerMessage>(bytes);
        let raw = decoded.clone().ok();
        let input = match decoded.and_then(controller_message) {
            Ok(message) => Input::Message(message),
            Err(error) => Input::Ended(Lost::Unreadable(error.to_string())),
        };
        let stands = matches!(
            &input,
            Input::Message(Some(ControllerMessage::Directives(Ok(_))))
        );
        let listens = self.attached && stands;
        self.input(input);
        if let Some(proto::controller_message::Kind::Directives(set)) = raw.and_then(|it| it.kind) {
            self.check_taken(&set, before, listens);
        }
    }

    /// By the contract's own words, read from the raw message: what is not lawful is not held, and
    /// what is lawful and newer is.
    fn check_taken(&self, set: &proto::DirectiveSet, before: &[Holds], listens: bool) {
        for ((route, before), after) in self.routes.iter().zip(before).zip(self.held()) {
            let named = set.directives.iter().find(|directive| {
                directive.route.as_ref().is_some_and(|it| {
                    it.dependency == route.key.dependency.as_str()
                        && it.operation == route.key.operation.as_str()
                })
            });
            let stamp = named.and_then(|it| it.stamp).map(Stamp::from);
            match (named, stamp) {
                (Some(directive), Some(stamp)) if listens && is_lawful(directive) => {
                    let newer = before.is_none_or(|(held, _)| stamp > held);
                    assert!(!newer || after.is_some_and(|(held, _)| held == stamp));
                }
                _ => assert_eq!(after, *before, "{}: {named:?}", route.key),
            }
        }
    }

    fn wait(&mut self, ms: u32) {
        let until = self.now + Duration::from_millis(ms.into());
        // Whatever is due in the time: an hour's seconds are like the first of them.
        for _ in 0..6 {
            let due = self.link.poll_timeout();
            if due > until {
                break;
            }
            self.now = self.now.max(due);
            self.input(Input::Timeout);
        }
        self.now = until;
        self.input(Input::Timeout);
    }

    fn input(&mut self, input: Input) {
        let entropy = self.last;
        self.link.handle(input, self.now, entropy);
        let mut outputs = 0;
        while let Some(output) = self.link.poll_output() {
            outputs += 1;
            self.output(output);
        }
        assert!(outputs <= OUTPUTS_MAX, "{outputs} things said at once");
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Open(hello) => self.say(&AgentMessage::Hello(*hello)),
            Output::Send(message) => self.say(&message),
            Output::Drop => self.attached = false,
            Output::Finish => {}
            Output::Notice(Notice::Up { .. }) => {
                self.attached = true;
                self.outcome("up");
            }
            Output::Notice(Notice::Down(lost)) => {
                self.outcome(&format!("down {}", in_general(&lost.to_string())));
            }
            Output::Notice(Notice::Refused(refused)) => {
                self.outcome(&format!("refused {}", in_general(refused.reason.as_str())));
            }
            Output::Notice(Notice::ReportRefused(_)) => self.outcome("report refused"),
        }
    }

    fn say(&mut self, message: &AgentMessage) {
        let kind = match message {
            AgentMessage::Applied(applied) => format!("applied {}", applied.routes.len()),
            AgentMessage::Hello(hello) => format!("hello {}", hello.held.len()),
            _ => String::new(),
        };
        if !kind.is_empty() {
            self.outcome(&kind);
        }
        let bytes = proto::AgentMessage::from(message.clone()).encoded_len();
        assert!(bytes <= MESSAGE_BYTES_MAX, "{bytes} bytes");
    }

    /// Something happened after something else.
    fn outcome(&mut self, what: &str) {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let this = hasher.finish();
        self.outcomes.insert(this ^ self.last.rotate_left(1));
        self.last = this;
    }

    /// P8, P5 and P11 on every route.
    fn check(&mut self, before: &[Holds]) {
        let after = self.held();
        for ((route, before), after) in self.routes.clone().iter().zip(before).zip(after) {
            if let Some((stamp, mode)) = before {
                let (now_stamp, now_mode) = after.expect("what is held is never forgotten");
                assert!(now_stamp >= *stamp, "from {stamp} back to {now_stamp}");
                assert!(
                    now_stamp > *stamp || now_mode == *mode,
                    "{mode:?} became {now_mode:?} under the same stamp"
                );
            }
            let state = check_limits(route, after);
            self.outcome(&state);
        }
        assert_eq!(self.shared.routes().len(), ROUTES.len());
        assert!(self.shared.held().len() <= ROUTES.len());
    }
}

/// The hard limits on what is in force and on what calls read. Says in which state the route is.
fn check_limits(route: &RouteState, holds: Holds) -> String {
    let effective = route.effective();
    let (budget, cap) = (effective.budget.get(), effective.cap);
    assert!((0.0..=BUDGET_MAX).contains(&budget), "budget {budget}");
    assert!((0.0..=CAP_MAX).contains(&cap), "cap {cap}");
    assert!((0.0..=1.0).contains(&effective.probability.get()));
    assert!((0.0..=1.0).contains(&route.bucket.earned()));
    assert!((0.0..=CAP_MAX).contains(&route.bucket.tokens()));
    let threshold = effective.threshold.map(Threshold::get);
    for threshold in [threshold, route.gate.threshold()].into_iter().flatten() {
        let range = THRESHOLD_MIN..=THRESHOLD_MAX;
        assert!(range.contains(&threshold), "threshold {threshold:?}");
    }
    let gate = route.gate.read();
    assert!(gate.probability() <= 1 << 24 && gate.holdout() <= 1 << 24);
    assert!(gate.attempts() <= ATTEMPTS_MAX, "{}", gate.attempts());
    let (earned, tokens) = (route.bucket.earned(), route.bucket.tokens());
    assert!(
        gate.armed() || earned.max(tokens) <= 0.0,
        "{earned} {tokens}"
    );
    let may_hedge = holds.is_some_and(|(_, mode)| mode.hedges());
    assert!(!gate.open() || may_hedge, "open, and held is {holds:?}");
    assert_eq!(gate.open(), effective.mode.hedges());
    assert!(route.pool.probation().len() <= REPLICAS_PER_ROUTE_MAX);
    assert!(route.pool.known().len() <= REPLICAS_PER_ROUTE_MAX);
    let octave = threshold.map_or(0, |it| it.as_micros().ilog2());
    let steps = (budget * 40.0) as u32;
    let attempts = gate.attempts();
    format!("{:?} {octave} {steps} {attempts}", effective.mode)
}

/// The contract's HARD LIMITS, word for word and without our own types.
fn is_lawful(directive: &proto::Directive) -> bool {
    let (Some(live), Some(standing)) = (&directive.live, &directive.standing) else {
        return false;
    };
    let within = |value: Option<f64>, most: f64| value.is_some_and(|it| it >= 0.0 && it <= most);
    let threshold = |us: Option<u64>| us.is_none_or(|us| (100..=3_600_000_000).contains(&us));
    let ordered = match (standing.threshold_min_us, standing.threshold_max_us) {
        (Some(min), Some(max)) => min <= max,
        _ => true,
    };
    let percentile = standing.percentile.is_some_and(|it| it > 0.0 && it < 1.0);
    let names = directive
        .probation
        .iter()
        .all(|it| ReplicaName::new(it).is_ok());
    directive.mode != 0
        && within(live.budget, 0.25)
        && within(live.cap, 10_000.0)
        && within(live.probability, 1.0)
        && live.arming.is_none_or(|arming| {
            arming.share > 0.0 && arming.share < 1.0 && (1000..=600_000).contains(&arming.epoch_ms)
        })
        && within(Some(directive.start_credit), 10_000.0)
        && within(standing.holdout, 1.0)
        && within(standing.error_limit, 1.0)
        && percentile
        && threshold(live.threshold_us)
        && threshold(standing.threshold_min_us)
        && threshold(standing.threshold_max_us)
        && ordered
        && (1000..=3_600_000).contains(&standing.lease_ms)
        && matches!(standing.attempts, 0 | 2 | 3)
        && directive.probation.len() <= 256
        && names
}

/// A text without its numbers and names: what kind of thing it says.
fn in_general(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '.' | '_'))
        .take(60)
        .collect()
}
