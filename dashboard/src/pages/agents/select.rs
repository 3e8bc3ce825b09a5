//! Which agents, and in which order: over the views themselves, without making rows of them all.

use std::cmp::Reverse;

use hedgerow_core::view::{AgentState, AgentView, Sync};

use super::row::{dropped, skewed};

/// How an agent has to stand to be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Which {
    #[default]
    All,
    Live,
    Stale,
    Lost,
    Left,
    /// Sent something that it has not confirmed.
    Pending,
    /// Refused something.
    Refused,
    /// Left out on a route.
    Quarantined,
    /// Its clock is far off.
    Skewed,
}

impl Which {
    pub(super) const ALL: [Self; 9] = [
        Self::All,
        Self::Live,
        Self::Stale,
        Self::Lost,
        Self::Left,
        Self::Pending,
        Self::Refused,
        Self::Quarantined,
        Self::Skewed,
    ];

    /// As the address has it; anything else is all.
    pub(super) fn parse(text: &str) -> Self {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.unwrap_or_default()
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Lost => "lost",
            Self::Left => "left",
            Self::Pending => "pending",
            Self::Refused => "refused",
            Self::Quarantined => "quarantined",
            Self::Skewed => "skewed",
        }
    }

    /// Behind a number.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::All => "in all",
            Self::Refused => "refuse",
            Self::Skewed => "with another time",
            Self::Quarantined => "in quarantine",
            other => other.as_str(),
        }
    }

    pub(super) fn takes(self, agent: &AgentView) -> bool {
        match self {
            Self::All => true,
            Self::Live => agent.state == AgentState::Live,
            Self::Stale => agent.state == AgentState::Stale,
            Self::Lost => agent.state == AgentState::Lost,
            Self::Left => agent.state == AgentState::Left,
            Self::Pending => agent.routes.iter().any(|it| it.sync == Sync::Pending),
            Self::Refused => refuses(agent),
            Self::Quarantined => agent.routes.iter().any(|it| it.quarantine.is_some()),
            Self::Skewed => skewed(agent),
        }
    }
}

/// What the rows are in order of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Trouble,
    Service,
    Zone,
    Version,
    Connected,
    Reported,
    Sync,
    Skew,
    Dropped,
}

impl Sort {
    const ALL: [Self; 9] = [
        Self::Trouble,
        Self::Service,
        Self::Zone,
        Self::Version,
        Self::Connected,
        Self::Reported,
        Self::Sync,
        Self::Skew,
        Self::Dropped,
    ];

    /// As the address has it; anything else is those in trouble first.
    pub(super) fn parse(text: &str) -> Self {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.unwrap_or_default()
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Trouble => "",
            Self::Service => "service",
            Self::Zone => "zone",
            Self::Version => "version",
            Self::Connected => "connected",
            Self::Reported => "reported",
            Self::Sync => "sync",
            Self::Skew => "skew",
            Self::Dropped => "dropped",
        }
    }

    /// What is worth a look comes first: the newest stream, the oldest report, the most behind, the
    /// furthest clock, the most dropped.
    pub(super) fn apply(self, agents: &mut [&AgentView]) {
        // Names settle what is equal, so that a row keeps its place from second to second.
        agents.sort_unstable_by(|a, b| {
            (&a.service, a.instance, a.connection).cmp(&(&b.service, b.instance, b.connection))
        });
        match self {
            Self::Trouble => agents.sort_by_key(|it| gravity(it)),
            Self::Service => {}
            Self::Zone => agents.sort_by(|a, b| a.zone.cmp(&b.zone)),
            Self::Version => agents.sort_by(|a, b| a.version.cmp(&b.version)),
            Self::Connected => agents.sort_by_key(|it| Reverse(it.connected)),
            Self::Reported => agents.sort_by_key(|it| it.reported),
            Self::Sync => agents.sort_by_key(|it| Reverse(behind(it))),
            Self::Skew => {
                agents.sort_by_key(|it| Reverse(it.skew_ms.map(i64::unsigned_abs)));
            }
            Self::Dropped => agents.sort_by_key(|it| Reverse(dropped(it))),
        }
    }
}

fn refuses(agent: &AgentView) -> bool {
    let refused = |sync: &Sync| matches!(sync, Sync::Refused(_));
    agent.routes.iter().any(|it| refused(&it.sync))
}

/// Routes on which it does not hold what is wanted.
pub(super) fn behind(agent: &AgentView) -> usize {
    let applied = |sync: &Sync| *sync == Sync::Applied;
    agent.routes.iter().filter(|it| !applied(&it.sync)).count()
}

/// 0 is the gravest.
fn gravity(agent: &AgentView) -> u8 {
    let quarantined = || agent.routes.iter().any(|it| it.quarantine.is_some());
    match agent.state {
        AgentState::Lost => 0,
        AgentState::Stale => 1,
        _ if refuses(agent) || agent.refused_reports > 0 || quarantined() => 2,
        _ if behind(agent) > 0 => 3,
        AgentState::Live => 4,
        AgentState::Left => 5,
    }
}

/// Whether every word is found in what the agent is called, or in one of its routes.
pub(super) fn matches(agent: &AgentView, words: &[&str]) -> bool {
    if words.is_empty() {
        return true;
    }
    let instance = agent.instance.to_string();
    let zone = agent.zone.as_ref().map_or("", |it| it.as_str());
    let own = [
        agent.service.as_str(),
        instance.as_str(),
        zone,
        agent.version.as_str(),
        agent.peer.as_str(),
        state_word(agent.state),
    ];
    words.iter().all(|word| {
        own.iter().any(|text| contains(text, word))
            || agent.routes.iter().any(|route| {
                contains(route.route.dependency.as_str(), word)
                    || contains(route.route.operation.as_str(), word)
                    || match &route.sync {
                        Sync::Applied => contains("applied", word),
                        Sync::Pending => contains("pending", word),
                        Sync::Refused(reason) => {
                            contains("refused", word) || contains(reason, word)
                        }
                    }
            })
    })
}

pub(super) const fn state_word(state: AgentState) -> &'static str {
    match state {
        AgentState::Live => "live",
        AgentState::Stale => "stale",
        AgentState::Lost => "lost",
        AgentState::Left => "left",
    }
}

/// Without regard to the case of ASCII letters.
fn contains(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    word.is_empty()
        || text
            .windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word))
}
