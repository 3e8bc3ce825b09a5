//! A host that remembers, and a rig that lets time pass.

mod delivery;
mod liveness;

use std::collections::BTreeMap;

use hedgerow_protocol::directive::{Directive, LiveValues, Mode, Stamp, Standing};
use hedgerow_protocol::ids::{
    Epoch, Incarnation, InstanceId, ModeSequence, Revision, Sequence, Tick,
};
use hedgerow_protocol::report::Report;
use hedgerow_protocol::session::{
    ComeBack, ComeBackReason, HeartbeatAck, RefusedDirective, RefusedSet, ReportAck,
};
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio};
use parking_lot::Mutex;

use super::super::backoff::{BASE, CAP};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Holds directives by stamp, as the agent does, and remembers what it was asked.
#[derive(Default)]
struct Fake {
    held: Mutex<BTreeMap<RouteKey, Stamp>>,
    applies: Mutex<u32>,
    delivered: Mutex<Vec<BTreeSet<RouteKey>>>,
    acknowledged: Mutex<Vec<Sequence>>,
    covers: Mutex<Vec<Duration>>,
    not_taken: Mutex<Vec<NotTaken>>,
    ticks: Mutex<u32>,
    heard: Mutex<u32>,
}

impl Host for Fake {
    fn hello(&self) -> Hello {
        Hello {
            instance: InstanceId::from_u128(7),
            incarnation: Incarnation(1),
            zone: None,
            version: Text::lossy("1"),
            build: Text::default(),
            capabilities: BTreeSet::new(),
            held: Vec::new(),
        }
    }

    fn collect(&self, sequence: Sequence, covers: Duration, _now: Instant) -> Report {
        self.covers.lock().push(covers);
        Report {
            sequence,
            covers,
            wall_clock_ms: sequence.0 * 1000,
            routes: Vec::new(),
        }
    }

    fn acknowledged(&self, sequence: Sequence) {
        self.acknowledged.lock().push(sequence);
    }

    fn not_taken(&self, what: NotTaken) {
        self.not_taken.lock().push(what);
    }

    fn apply(&self, directive: Directive, _now: Instant) -> Result<(), String> {
        *self.applies.lock() += 1;
        let mut held = self.held.lock();
        let stamp = held.entry(directive.route).or_default();
        if directive.stamp < *stamp {
            return Err(format!("stamp: {} is older than {stamp}", directive.stamp));
        }
        *stamp = directive.stamp;
        Ok(())
    }

    fn heard(&self, _now: Instant) {
        *self.heard.lock() += 1;
    }

    fn welcomed(&self, _welcome: &Welcome, _now: Instant) {}

    fn delivered(&self, named: &BTreeSet<RouteKey>, _now: Instant) {
        self.delivered.lock().push(named.clone());
    }

    fn held(&self) -> Vec<(RouteKey, Stamp)> {
        self.held
            .lock()
            .iter()
            .map(|(route, stamp)| (route.clone(), *stamp))
            .collect()
    }

    fn tick(&self, _now: Instant) {
        *self.ticks.lock() += 1;
    }
}

struct Rig {
    host: Arc<Fake>,
    link: Link,
    now: Instant,
    entropy: u64,
}

impl Rig {
    fn new() -> Self {
        let host = Arc::new(Fake::default());
        let now = Instant::now();
        Self {
            link: Link::new(host.clone(), now),
            host,
            now,
            entropy: u64::MAX / 2,
        }
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.link.poll_output()).collect()
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.link.handle(input, self.now, self.entropy);
        self.outputs()
    }

    fn message(&mut self, message: ReceivedControllerMessage) -> Vec<Output> {
        self.input(Input::Message(Some(message)))
    }

    /// Lets time pass from one deadline to the next.
    fn pass(&mut self, time: Duration) -> Vec<Output> {
        let end = self.now + time;
        let mut outputs = Vec::new();
        while self.link.poll_timeout() <= end {
            self.now = self.now.max(self.link.poll_timeout());
            outputs.extend(self.input(Input::Timeout));
        }
        self.now = end;
        outputs
    }

    /// Waits until a stream is opened, and says how long that took.
    fn until_open(&mut self) -> Duration {
        let start = self.now;
        loop {
            self.now = self.now.max(self.link.poll_timeout());
            if self
                .input(Input::Timeout)
                .iter()
                .any(|out| matches!(out, Output::Open(_)))
            {
                return self.now - start;
            }
        }
    }

    fn attach(&mut self) -> Vec<Output> {
        self.until_open();
        self.message(welcome(SECOND, 10 * SECOND))
    }

    fn ack(&mut self, sequence: u64) -> Vec<Output> {
        self.message(ControllerMessage::ReportAck(ReportAck {
            sequence: Sequence(sequence),
            refusal: None,
        }))
    }
}

fn welcome(report_interval: Duration, heartbeat: Duration) -> ReceivedControllerMessage {
    ControllerMessage::Welcome(Welcome {
        controller: Text::lossy("c1"),
        epoch: Epoch(1),
        report_interval,
        heartbeat,
        lease: 30 * SECOND,
        resyncing: false,
    })
}

fn stamp(epoch: u64, revision: u64) -> Stamp {
    Stamp {
        epoch: Epoch(epoch),
        revision: Revision(revision),
        mode_sequence: ModeSequence(0),
    }
}

fn route(dependency: &str) -> RouteKey {
    RouteKey::new(dependency, "get").unwrap()
}

fn directive(dependency: &str, stamp: Stamp) -> Directive {
    let ratio = |share| Ratio::new(share).unwrap();
    let (probability, budget) = (Ratio::ONE, Budget::new(0.08).unwrap());
    Directive {
        route: route(dependency),
        stamp,
        mode: Mode::On,
        live: LiveValues::new(Tick(1), None, probability, budget, 3.0).unwrap(),
        standing: Standing {
            percentile: Quantile::new(0.95).unwrap(),
            holdout: ratio(0.01),
            error_limit: ratio(0.05),
            threshold_min: None,
            threshold_max: None,
            lease: 30 * SECOND,
            attempts: AttemptLimit::default(),
            hedge_on_error: false,
        },
        probation: Vec::new(),
        start_credit: 0.0,
    }
}

fn set(nonce: u64, accepted: Vec<Directive>) -> ReceivedControllerMessage {
    let refused = Vec::new();
    ControllerMessage::Directives(Ok(DecodedSet {
        nonce,
        empty_is_meant: accepted.is_empty(),
        accepted,
        refused,
    }))
}

fn sent(outputs: &[Output]) -> Vec<&AgentMessage> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Send(message) => Some(message.as_ref()),
            _ => None,
        })
        .collect()
}

fn reports(outputs: &[Output]) -> Vec<&SentReport> {
    sent(outputs)
        .into_iter()
        .filter_map(|message| match message {
            AgentMessage::Report(report) => Some(report),
            _ => None,
        })
        .collect()
}

fn refusals(outputs: &[Output]) -> Vec<&Refused> {
    sent(outputs)
        .into_iter()
        .filter_map(|message| match message {
            AgentMessage::Refused(refused) => Some(refused),
            _ => None,
        })
        .collect()
}

fn dropped(outputs: &[Output]) -> bool {
    outputs.contains(&Output::Drop)
}
