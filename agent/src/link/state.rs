//! The agent's side of a stream, as `fleet.proto` states it, without a socket or a clock: inputs
//! and the time go in, what is to be done comes out. The driver in `link` does it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::limits::{HEARTBEAT_DEFAULT, ROUTES_PER_AGENT_MAX};
use hedgerow_protocol::session::{
    AgentMessage, Applied, AppliedRoute, ControllerMessage, DecodedSet, Goodbye, Heartbeat, Hello,
    ReceivedControllerMessage, Refused, SentReport, Text, Welcome, held_hash,
};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::cache::UnderWay;
use super::lost::Lost;
use super::refusals::Refusals;
use crate::host::{Host, NotTaken};

/// From the first packet to the controller's welcome. Bounds a host that accepts and is silent.
pub(crate) const GREETING_MAX: Duration = Duration::from_secs(10);
/// Longest silence on a stream, whatever heartbeat the controller asked for (P9).
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Heartbeats in a silence that ends a stream: two missed, and the third's interval to be heard.
const SILENCE_HEARTBEATS: u32 = 3;
/// A stream that held this long was a good one: the next wait begins anew.
pub(crate) const STEADY: Duration = Duration::from_mins(1);
/// How often the host looks after leases and its own switch-off.
const HOST_TICK: Duration = Duration::from_secs(1);

/// What happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// A deadline of [`Link::poll_timeout`] may have passed.
    Timeout,
    /// The controller spoke. None: something of a newer version, not understood.
    Message(Option<ReceivedControllerMessage>),
    /// The stream ended, or never began.
    Ended(Lost),
    /// The service stops.
    Shutdown,
}

/// What is to be done, in this order.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    /// Open a stream whose first message is this.
    Open(Box<Hello>),
    /// Send on the open stream.
    Send(Box<AgentMessage>),
    /// Drop the stream and its connection.
    Drop,
    /// Close our side, after what was sent; nothing more follows.
    Finish,
    /// Tell people.
    Notice(Notice),
}

/// What people may want to know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Notice {
    /// The controller took us on.
    Up {
        /// Which controller.
        controller: Text,
    },
    /// The link is gone, or could not be made. Once for each kind of reason until it is up again.
    Down(Lost),
    /// A directive or set was refused; what was held stays.
    Refused(Refused),
    /// The controller refused a report, which is lost to it.
    ReportRefused(Text),
}

#[derive(Debug)]
enum Phase {
    Waiting { until: Instant },
    Greeting { deadline: Instant },
    Attached(Attached),
    Finished,
}

#[derive(Debug)]
struct Attached {
    since: Instant,
    heard: Instant,
    silence: Duration,
    heartbeat: Duration,
    heartbeat_due: Instant,
    heartbeats: u64,
    report_interval: Duration,
    report_due: Instant,
    /// When the report under way went out on this stream.
    report_sent: Option<Instant>,
    refusals: Refusals,
}

impl Attached {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            heard: now,
            silence: SILENCE_MAX,
            heartbeat: HEARTBEAT_DEFAULT,
            heartbeat_due: now,
            heartbeats: 0,
            report_interval: Duration::ZERO,
            report_due: now,
            report_sent: None,
            refusals: Refusals::default(),
        }
    }

    fn follow(&mut self, welcome: &Welcome, now: Instant) {
        // A heartbeat slower than the silence allowed would end every stream.
        self.heartbeat = welcome.heartbeat.min(SILENCE_MAX / SILENCE_HEARTBEATS);
        self.silence = (self.heartbeat * SILENCE_HEARTBEATS).min(SILENCE_MAX);
        self.heartbeat_due = now + self.heartbeat;
        self.report_interval = welcome.report_interval;
    }

    fn silent_at(&self) -> Instant {
        self.heard + self.silence
    }

    /// A report unanswered while heartbeats are answered: the next stream sends it again.
    fn unanswered_at(&self) -> Option<Instant> {
        self.report_sent.map(|sent| sent + SILENCE_MAX)
    }
}

/// The link of one agent, over all its streams.
pub(crate) struct Link {
    host: Arc<dyn Host>,
    phase: Phase,
    backoff: Backoff,
    under_way: UnderWay,
    host_tick: Instant,
    /// Kinds of reasons told since the link was last up.
    told: BTreeSet<&'static str>,
    outputs: VecDeque<Output>,
}

impl Link {
    /// Not connected, and to be at once.
    pub(crate) fn new(host: Arc<dyn Host>, now: Instant) -> Self {
        Self {
            host,
            phase: Phase::Waiting { until: now },
            backoff: Backoff::default(),
            under_way: UnderWay::new(now),
            host_tick: now + HOST_TICK,
            told: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// What is to be done next.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Timeout`] is due at the latest.
    pub(crate) fn poll_timeout(&self) -> Instant {
        let phase = match &self.phase {
            Phase::Waiting { until } => Some(*until),
            Phase::Greeting { deadline } => Some(*deadline),
            Phase::Attached(attached) => {
                let report = attached.unanswered_at().unwrap_or(attached.report_due);
                Some(report.min(attached.heartbeat_due).min(attached.silent_at()))
            }
            Phase::Finished => None,
        };
        phase.map_or(self.host_tick, |phase| phase.min(self.host_tick))
    }

    /// Takes what happened at `now`. `entropy` is any evenly drawn number.
    pub(crate) fn handle(&mut self, input: Input, now: Instant, entropy: u64) {
        match input {
            Input::Timeout => self.timeout(now, entropy),
            Input::Message(message) => self.message(message, now, entropy),
            Input::Ended(lost) => self.lost(lost, now, entropy),
            Input::Shutdown => self.shutdown(now),
        }
    }

    fn timeout(&mut self, now: Instant, entropy: u64) {
        if now >= self.host_tick {
            // From now, not from when it was due: a process that stood still owes no ticks.
            self.host_tick = now + HOST_TICK;
            self.host.tick(now);
        }
        match &self.phase {
            Phase::Waiting { until } if now >= *until => {
                self.phase = Phase::Greeting {
                    deadline: now + GREETING_MAX,
                };
                self.outputs
                    .push_back(Output::Open(Box::new(self.host.hello())));
            }
            Phase::Greeting { deadline } if now >= *deadline => {
                self.lost(Lost::NoWelcome, now, entropy);
            }
            Phase::Attached(attached) if now >= attached.silent_at() => {
                self.lost(Lost::Silent(attached.silence), now, entropy);
            }
            Phase::Attached(attached) if attached.unanswered_at().is_some_and(|at| now >= at) => {
                self.lost(Lost::ReportUnanswered, now, entropy);
            }
            Phase::Attached(_) => self.speak(now),
            _ => {}
        }
    }

    /// Report and heartbeat, where due.
    fn speak(&mut self, now: Instant) {
        let Phase::Attached(attached) = &mut self.phase else {
            return;
        };
        if attached.report_sent.is_none() && now >= attached.report_due {
            attached.report_sent = Some(now);
            attached.report_due = now + attached.report_interval;
            let report = self.under_way.collect(self.host.as_ref(), now).clone();
            let sent = SentReport {
                held_hash: hash_of(self.host.as_ref()),
                report,
            };
            self.outputs
                .push_back(Output::Send(Box::new(AgentMessage::Report(sent))));
        }
        if now >= attached.heartbeat_due {
            attached.heartbeat_due = now + attached.heartbeat;
            attached.heartbeats += 1;
            let number = attached.heartbeats;
            let held_hash = hash_of(self.host.as_ref());
            self.send(AgentMessage::Heartbeat(Heartbeat { number, held_hash }));
        }
    }

    fn message(&mut self, message: Option<ReceivedControllerMessage>, now: Instant, entropy: u64) {
        match &mut self.phase {
            Phase::Attached(attached) => attached.heard = now,
            Phase::Greeting { .. } => {}
            // The last words of a stream already dropped.
            Phase::Waiting { .. } | Phase::Finished => return,
        }
        self.host.heard(now);
        match message {
            Some(ControllerMessage::ComeBack(come_back)) => {
                self.lost(Lost::SentAway(come_back), now, entropy);
            }
            Some(ControllerMessage::Welcome(welcome)) => self.welcome(&welcome, now),
            Some(_) if matches!(self.phase, Phase::Greeting { .. }) => {
                self.lost(Lost::OutOfTurn, now, entropy);
            }
            Some(ControllerMessage::Directives(Ok(set))) => self.take(set, now),
            Some(ControllerMessage::Directives(Err(refused))) => {
                self.refuse(refused.into(), NotTaken::Set);
            }
            Some(ControllerMessage::ReportAck(ack)) => {
                if !self.under_way.acknowledge(ack.sequence, self.host.as_ref()) {
                    return;
                }
                if let Phase::Attached(attached) = &mut self.phase {
                    attached.report_sent = None;
                }
                if let Some(reason) = ack.refusal {
                    self.host.not_taken(NotTaken::Report);
                    self.outputs
                        .push_back(Output::Notice(Notice::ReportRefused(reason)));
                }
            }
            // Being heard is all there is to these.
            Some(ControllerMessage::HeartbeatAck(_)) | None => {}
        }
    }

    fn welcome(&mut self, welcome: &Welcome, now: Instant) {
        self.host.welcomed(welcome, now);
        if let Phase::Attached(attached) = &mut self.phase {
            attached.follow(welcome, now);
            return;
        }
        let mut attached = Attached::new(now);
        attached.follow(welcome, now);
        self.phase = Phase::Attached(attached);
        self.told.clear();
        let controller = welcome.controller.clone();
        self.outputs
            .push_back(Output::Notice(Notice::Up { controller }));
        self.speak(now);
    }

    /// Each directive stands or falls alone (P3).
    fn take(&mut self, set: DecodedSet, now: Instant) {
        let nonce = set.nonce;
        let mut refused: Vec<Refused> = set.refusals().collect();
        let mut named: BTreeSet<RouteKey> = refused
            .iter()
            .filter_map(|refused| refused.route.clone())
            .collect();
        let is_release = set.accepted.is_empty() && set.refused.is_empty();
        let mut routes = Vec::with_capacity(set.accepted.len());
        for directive in set.accepted {
            let (route, stamp) = (directive.route.clone(), directive.stamp);
            named.insert(route.clone());
            match self.host.apply(directive, now) {
                Ok(()) => routes.push(AppliedRoute { route, stamp }),
                Err(reason) => refused.push(Refused {
                    nonce,
                    route: Some(route),
                    stamp: Some(stamp),
                    reason: reason_of(&reason),
                }),
            }
        }
        // Where every name was unreadable the set names nothing, and yet is no order to let go.
        if is_release || !named.is_empty() {
            self.host.delivered(&named, now);
        }
        debug_assert!(
            routes.len() <= ROUTES_PER_AGENT_MAX,
            "the wire refuses larger sets whole"
        );
        for refused in refused {
            self.refuse(refused, NotTaken::Directive);
        }
        // Last, so that whoever reads it knows of every directive of the set what became of it.
        self.send(AgentMessage::Applied(Applied { nonce, routes }));
    }

    fn refuse(&mut self, refused: Refused, what: NotTaken) {
        self.host.not_taken(what);
        let Phase::Attached(attached) = &mut self.phase else {
            return;
        };
        if attached.refusals.is_news(&refused) {
            self.outputs
                .push_back(Output::Notice(Notice::Refused(refused.clone())));
            self.send(AgentMessage::Refused(refused));
        }
    }

    fn lost(&mut self, lost: Lost, now: Instant, entropy: u64) {
        match &self.phase {
            Phase::Waiting { .. } | Phase::Finished => return,
            Phase::Greeting { .. } => {}
            Phase::Attached(attached) => {
                if now.saturating_duration_since(attached.since) >= STEADY {
                    self.backoff.reset();
                }
            }
        }
        let wait = match &lost {
            Lost::SentAway(come_back) => self.backoff.wait_at_least(come_back.after, entropy),
            _ => self.backoff.wait(entropy),
        };
        self.phase = Phase::Waiting { until: now + wait };
        self.outputs.push_back(Output::Drop);
        if self.told.insert(lost.kind()) {
            self.outputs.push_back(Output::Notice(Notice::Down(lost)));
        }
    }

    fn shutdown(&mut self, now: Instant) {
        match std::mem::replace(&mut self.phase, Phase::Finished) {
            Phase::Attached(attached) => {
                if attached.report_sent.is_none() {
                    // What the last interval saw. Nobody waits for its acknowledgement.
                    let report = self.under_way.collect(self.host.as_ref(), now).clone();
                    let held_hash = hash_of(self.host.as_ref());
                    self.send(AgentMessage::Report(SentReport { held_hash, report }));
                }
                self.send(AgentMessage::Goodbye(Goodbye {
                    reason: Text::lossy("shutdown"),
                }));
            }
            Phase::Greeting { .. } => self.outputs.push_back(Output::Drop),
            Phase::Waiting { .. } | Phase::Finished => {}
        }
        self.outputs.push_back(Output::Finish);
    }

    fn send(&mut self, message: AgentMessage) {
        self.outputs.push_back(Output::Send(Box::new(message)));
    }
}

fn hash_of(host: &dyn Host) -> u64 {
    let held = host.held();
    held_hash(held.iter().map(|(route, stamp)| (route, *stamp)))
}

/// A refusal always has a reason: its presence is what makes it one.
fn reason_of(reason: &str) -> Text {
    if reason.is_empty() {
        Text::lossy("refused by the agent without a reason")
    } else {
        Text::lossy(reason)
    }
}

#[cfg(test)]
mod tests;
