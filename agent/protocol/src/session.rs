//! What is said on one stream between an agent and a controller, as plain values.
//!
//! `proto/hedgerow/v1/fleet.proto` states who says what when. A message that came in can be partly
//! unusable: a report that is refused but must be acknowledged by its sequence, a directive that is
//! refused while its neighbours stand. The two enums are therefore generic in that part: what is
//! sent is always whole, what was received may be a refusal.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::directive::{Directive, DirectiveSet, Mode, Stamp};
use crate::ids::{Epoch, Incarnation, InstanceId, RouteKey, Sequence, Tick, ZoneName};
use crate::report::Report;
use crate::units::{Budget, Threshold};

/// Longest [`Text`], in bytes: a line on a page, with room for a route's two names.
pub const TEXT_LEN_MAX: usize = 512;
/// Most capabilities an agent may claim: a list of features, not of data.
pub const CAPABILITIES_MAX: usize = 32;
/// Shortest interval a controller may ask for: below it an agent would do little else.
pub const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Longest interval between reports: the controller's windows end there.
pub const REPORT_INTERVAL_MAX: Duration = Duration::from_mins(1);
/// Longest interval between heartbeats: three must fit into the 30 s in which a dead stream is to
/// be noticed.
pub const HEARTBEAT_MAX: Duration = Duration::from_secs(10);
/// Longest time an agent lets itself be sent away: a mistake must not cost the fleet a day.
pub const COME_BACK_MAX: Duration = Duration::from_hours(1);

/// A line for people: a version, a reason. At most 512 bytes, printable ASCII. Cheap to clone.
///
/// ASCII because it comes from the other side and ends up in logs, pages and alerts, where a
/// control or bidirectional character could make it read as something else.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Longer than [`TEXT_LEN_MAX`].
    #[error("is {len} bytes long; at most {TEXT_LEN_MAX} are allowed")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A character that is not printable ASCII.
    #[error("has the character {found:?} at byte {at}; printable ASCII is allowed")]
    Character {
        /// The offending character.
        found: char,
        /// Its byte offset.
        at: usize,
    },
}

const fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~')
}

impl Text {
    /// Checks and keeps `text`. Empty is allowed.
    pub fn new(text: &str) -> Result<Self, TextError> {
        if text.len() > TEXT_LEN_MAX {
            return Err(TextError::TooLong { len: text.len() });
        }
        match text.char_indices().find(|(_, c)| !is_printable(*c)) {
            Some((at, found)) => Err(TextError::Character { found, at }),
            None => Ok(Self(text.into())),
        }
    }

    /// Keeps what can be kept: other characters become `?`, the end is cut off. For texts of our
    /// own making, such as an error's message, never for input.
    pub fn lossy(text: impl fmt::Display) -> Self {
        let kept: String = text
            .to_string()
            .chars()
            .take(TEXT_LEN_MAX)
            .map(|c| if is_printable(c) { c } else { '?' })
            .collect();
        Self(kept.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What an agent says, `R` being the report.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentMessage<R = SentReport> {
    /// The first message of a stream, and only the first.
    Hello(Hello),
    /// What was observed.
    Report(R),
    /// Directives of a set now in force.
    Applied(Applied),
    /// A directive, or a whole set, that was not taken.
    Refused(Refused),
    /// "I am here"; answered.
    Heartbeat(Heartbeat),
    /// The agent leaves: it is not lost.
    Goodbye(Goodbye),
}

/// An agent's message as a controller gets it: the report may be one to refuse.
pub type ReceivedAgentMessage = AgentMessage<Result<SentReport, RefusedReport>>;

/// What a controller says, `S` being the set of directives.
#[derive(Debug, Clone, PartialEq)]
pub enum ControllerMessage<S = DirectiveSet> {
    /// The answer to hello.
    Welcome(Welcome),
    /// The full snapshot of what the agent is to do.
    Directives(S),
    /// The report was taken, or refused for good; either way it is not to be sent again.
    ReportAck(ReportAck),
    /// The answer to a heartbeat.
    HeartbeatAck(HeartbeatAck),
    /// Not here, not now. The last message of a stream.
    ComeBack(ComeBack),
}

/// A controller's message as an agent gets it: the set may be one to refuse, whole or in part.
pub type ReceivedControllerMessage = ControllerMessage<Result<DecodedSet, RefusedSet>>;

/// Who the agent is and what it holds. Its service is not in it: that comes from its credential.
#[derive(Debug, Clone, PartialEq)]
pub struct Hello {
    /// Which agent.
    pub instance: InstanceId,
    /// Which life of its counters.
    pub incarnation: Incarnation,
    /// Its failure domain, where known.
    pub zone: Option<ZoneName>,
    /// The library's release.
    pub version: Text,
    /// The service's own build, for people: which deploy misbehaves.
    pub build: Text,
    /// Features beyond the first release's, by name. Unknown ones are kept and shown.
    pub capabilities: BTreeSet<Text>,
    /// What it holds from an earlier stream, so that a new controller relearns instead of resetting.
    pub held: Vec<Held>,
}

/// A directive as an agent holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The route.
    pub route: RouteKey,
    /// The directive's place in the order.
    pub stamp: Stamp,
    /// Its mode, as directed: not what the agent made of it for itself.
    pub mode: Mode,
    /// Its live values' decision: a controller goes on above the highest it hears, since agents
    /// ignore a lower one.
    pub tick: Tick,
    /// Its threshold, where it had one.
    pub threshold: Option<Threshold>,
    /// Its budget.
    pub budget: Budget,
}

/// A report on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct SentReport {
    /// [`held_hash`] of what the agent holds when it sends this, also where it sends it again.
    pub held_hash: u64,
    /// The report.
    pub report: Report,
}

/// A report that was received and is refused whole: acknowledged with the reason, never again sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedReport {
    /// What to acknowledge.
    pub sequence: Sequence,
    /// What the agent holds: good, whatever the report is worth.
    pub held_hash: u64,
    /// The field and what was expected.
    pub reason: Text,
}

/// A route and a directive's place in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRoute {
    /// The route.
    pub route: RouteKey,
    /// The directive now in force.
    pub stamp: Stamp,
}

/// The directives of a delivered set that are now in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The set's delivery.
    pub nonce: u64,
    /// Its routes that stand, whether they changed anything or were held already.
    pub routes: Vec<AppliedRoute>,
}

/// A directive, or a set, that was not taken; what was held before stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The set's delivery.
    pub nonce: u64,
    /// The directive's route. None: its name was unusable, or the whole set is refused.
    pub route: Option<RouteKey>,
    /// The refused directive's stamp, where it had one: not sent again until it changes.
    pub stamp: Option<Stamp>,
    /// The field and what was expected. Never empty: its presence is what makes it a refusal.
    pub reason: Text,
}

/// "I am here."
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Counts on this stream; the answer repeats it.
    pub number: u64,
    /// [`held_hash`] of what the agent holds: a lost push heals within one heartbeat.
    pub held_hash: u64,
}

/// The agent leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Goodbye {
    /// Why, for people. May be empty.
    pub reason: Text,
}

/// The controller takes the agent on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// Which controller, for people and logs.
    pub controller: Text,
    /// Its store's life.
    pub epoch: Epoch,
    /// How often to report.
    pub report_interval: Duration,
    /// How often to send a heartbeat.
    pub heartbeat: Duration,
    /// How long what the agent already holds stays good without a word, until a directive that
    /// brings its own.
    pub lease: Duration,
    /// The controller is still learning what its agents hold: no set comes until it knows, and
    /// what is held stays.
    pub resyncing: bool,
}

/// A report was dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportAck {
    /// Which.
    pub sequence: Sequence,
    /// Why it was refused. None: it was counted.
    pub refusal: Option<Text>,
}

/// A heartbeat was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatAck {
    /// Which.
    pub number: u64,
}

/// Not here, not now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComeBack {
    /// The least time to stay away; drawn by the controller for each agent, so that they spread.
    pub after: Duration,
    /// Why.
    pub reason: ComeBackReason,
}

/// Why an agent is sent away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComeBackReason {
    /// The controller shuts down.
    Draining,
    /// It admits at a bounded rate, or has as many agents as it takes.
    Busy,
    /// The stream is old: a new one may land on another controller.
    Rebalance,
    /// A reason of a newer version. The same is to be done.
    Unknown,
}

impl ComeBackReason {
    /// Its name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Busy => "busy",
            Self::Rebalance => "rebalance",
            Self::Unknown => "unknown",
        }
    }
}

/// A set of directives as it was received: each stands or falls alone.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedSet {
    /// Its delivery.
    pub nonce: u64,
    /// What the set says it is: with no directive at all, "let go of everything".
    pub empty_is_meant: bool,
    /// Those that can stand; whether they are newer than what is held is for the agent to judge.
    pub accepted: Vec<Directive>,
    /// Those that cannot.
    pub refused: Vec<RefusedDirective>,
}

impl DecodedSet {
    /// The messages that tell the controller what was not taken.
    pub fn refusals(&self) -> impl Iterator<Item = Refused> + '_ {
        self.refused.iter().map(|refused| Refused {
            nonce: self.nonce,
            route: refused.route.clone(),
            stamp: refused.stamp,
            reason: refused.reason.clone(),
        })
    }
}

/// A directive that cannot stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDirective {
    /// Its route, where that could be read.
    pub route: Option<RouteKey>,
    /// Its stamp, where that could be read.
    pub stamp: Option<Stamp>,
    /// The field and what was expected.
    pub reason: Text,
}

/// A set that is refused whole: empty without being meant, too large, or naming a route twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSet {
    /// Its delivery.
    pub nonce: u64,
    /// What was expected.
    pub reason: Text,
}

impl From<RefusedSet> for Refused {
    fn from(set: RefusedSet) -> Self {
        Self {
            nonce: set.nonce,
            route: None,
            stamp: None,
            reason: set.reason,
        }
    }
}

/// One number for what an agent holds, computed alike on both sides: where they differ, the
/// controller sends the whole set again.
///
/// FNV-1a, 64 bits, over the routes sorted by dependency, then operation, as bytes; for each: the
/// dependency, a zero byte, the operation, a zero byte, then epoch, revision and mode sequence,
/// eight bytes each, little end first. Live values are not in it: they change with every decision,
/// and a heartbeat crossing one on its way would always look like a loss.
///
/// ```
/// use hedgerow_protocol::session::held_hash;
/// assert_eq!(held_hash([]), 0xcbf2_9ce4_8422_2325);
/// ```
pub fn held_hash<'a>(held: impl IntoIterator<Item = (&'a RouteKey, Stamp)>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    fn eat(hash: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(hash, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
        })
    }

    let mut held: Vec<_> = held.into_iter().collect();
    held.sort_unstable();
    held.iter().fold(OFFSET, |hash, (route, stamp)| {
        let hash = eat(hash, route.dependency.as_str().as_bytes());
        let hash = eat(hash, &[0]);
        let hash = eat(hash, route.operation.as_str().as_bytes());
        let hash = eat(hash, &[0]);
        let hash = eat(hash, &stamp.epoch.0.to_le_bytes());
        let hash = eat(hash, &stamp.revision.0.to_le_bytes());
        eat(hash, &stamp.mode_sequence.0.to_le_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ModeSequence, Revision};

    fn stamp(epoch: u64, revision: u64, mode_sequence: u64) -> Stamp {
        Stamp {
            epoch: Epoch(epoch),
            revision: Revision(revision),
            mode_sequence: ModeSequence(mode_sequence),
        }
    }

    #[test]
    fn the_hash_is_the_one_the_proto_file_specifies() {
        // Computed by the loop in fleet.proto's comment, in another language.
        let catalog = RouteKey::new("catalog", "get").unwrap();
        let search = RouteKey::new("search", "query").unwrap();
        let expected = 0x955f_f983_d7be_a18c;
        assert_eq!(
            held_hash([(&catalog, stamp(1, 2, 3)), (&search, stamp(1, 0, 1))]),
            expected
        );
        assert_eq!(
            held_hash([(&search, stamp(1, 0, 1)), (&catalog, stamp(1, 2, 3))]),
            expected
        );
    }

    #[test]
    fn the_hash_tells_every_part_apart() {
        let ab_c = RouteKey::new("ab", "c").unwrap();
        let a_bc = RouteKey::new("a", "bc").unwrap();
        let hashes: BTreeSet<u64> = [
            held_hash([]),
            held_hash([(&ab_c, stamp(1, 1, 1))]),
            held_hash([(&a_bc, stamp(1, 1, 1))]),
            held_hash([(&ab_c, stamp(2, 1, 1))]),
            held_hash([(&ab_c, stamp(1, 2, 1))]),
            held_hash([(&ab_c, stamp(1, 1, 2))]),
        ]
        .into();
        assert_eq!(hashes.len(), 6);
    }

    #[test]
    fn a_text_holds_nothing_that_could_be_mistaken() {
        assert_eq!(
            Text::new("a\u{202e}b"),
            Err(TextError::Character {
                found: '\u{202e}',
                at: 1
            })
        );
        assert_eq!(
            Text::new("a\nb"),
            Err(TextError::Character { found: '\n', at: 1 })
        );
        assert_eq!(
            Text::new(&"x".repeat(513)),
            Err(TextError::TooLong { len: 513 })
        );
        assert_eq!(Text::lossy("a\u{202e}\nb").as_str(), "a??b");
        let lossy = Text::lossy("\u{e4}".repeat(600));
        assert_eq!(Text::new(lossy.as_str()), Ok(lossy));
    }
}
