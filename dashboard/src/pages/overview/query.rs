//! Filter and sort, as they stand in the address.

use std::fmt;

use serde::Deserialize;

use crate::format::url_part;

/// Filter and sort.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct OverviewQuery {
    pub(crate) q: String,
    pub(crate) state: String,
    pub(crate) sort: String,
}

impl OverviewQuery {
    pub(super) fn order(&self) -> Sort {
        Sort::parse(&self.sort)
    }

    pub(super) fn states(&self) -> StateFilter {
        StateFilter::parse(&self.state)
    }

    /// As a part of an address, without what is as it is by itself.
    pub(super) fn address(&self, sort: Sort) -> String {
        let mut parts = Vec::new();
        if !self.q.is_empty() {
            parts.push(format!("q={}", url_part(&self.q)));
        }
        let state = self.states().as_str();
        if !state.is_empty() {
            parts.push(format!("state={state}"));
        }
        parts.push(format!("sort={sort}"));
        parts.join("&")
    }
}

/// What rows can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Worst,
    Name,
    Calls,
    Success,
    P99,
    HedgeRate,
    WinRate,
}

impl Sort {
    const ALL: [Self; 7] = [
        Self::Worst,
        Self::Name,
        Self::Calls,
        Self::Success,
        Self::P99,
        Self::HedgeRate,
        Self::WinRate,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Name => "name",
            Self::Calls => "calls",
            Self::Success => "success",
            Self::P99 => "p99",
            Self::HedgeRate => "hedge-rate",
            Self::WinRate => "win-rate",
        }
    }

    /// Anything unknown is the default: an old bookmark still opens.
    fn parse(text: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str() == text)
            .unwrap_or(Self::Worst)
    }

    /// Which way its column runs, as `aria-sort` says it.
    pub(super) const fn way(self) -> &'static str {
        match self {
            Self::Name | Self::Success | Self::WinRate => "ascending",
            Self::Calls | Self::P99 | Self::HedgeRate => "descending",
            Self::Worst => "other",
        }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which states are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateFilter {
    Any,
    /// An alert fires or is pending.
    Alerting,
    /// Whatever is not as it should be.
    Needs,
    /// The badge's word.
    Word(&'static str),
}

impl StateFilter {
    /// Each with what the list of choices says.
    pub(super) const CHOICES: [(Self, &'static str); 8] = [
        (Self::Any, "any state"),
        (Self::Needs, "not as it should be"),
        (Self::Alerting, "with an alert"),
        (Self::Word("off"), "off"),
        (Self::Word("probing"), "probing"),
        (Self::Word("observing"), "observing"),
        (Self::Word("no effect"), "no effect"),
        (Self::Word("on"), "on"),
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Alerting => "alert",
            Self::Needs => "needs",
            Self::Word("no effect") => "no-effect",
            Self::Word(word) => word,
        }
    }

    fn parse(text: &str) -> Self {
        Self::CHOICES
            .into_iter()
            .map(|(it, _)| it)
            .find(|it| it.as_str() == text)
            .unwrap_or(Self::Any)
    }
}
