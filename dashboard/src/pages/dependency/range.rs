//! How far back a page's charts reach: in its address, so that it can be linked to.

use std::time::Duration;

use hedgerow_core::moment::Moment;

/// Points of a chart: about one for each two pixels.
pub(crate) const POINTS: u32 = 300;

/// A span of time that ends now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Range {
    /// What the controller itself remembers, as it happens.
    #[default]
    Live,
    Hour,
    SixHours,
    Day,
    Week,
}

impl Range {
    pub(crate) const ALL: [Self; 5] = [
        Self::Live,
        Self::Hour,
        Self::SixHours,
        Self::Day,
        Self::Week,
    ];

    /// As the address has it; anything else is the live one.
    pub(crate) fn parse(text: &str) -> Self {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.unwrap_or_default()
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "10m",
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    /// On its link.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Live => "10 min, live",
            Self::Hour => "1 h",
            Self::SixHours => "6 h",
            Self::Day => "24 h",
            Self::Week => "7 d",
        }
    }

    /// In a sentence.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Live => "the last 10 minutes",
            Self::Hour => "the last hour",
            Self::SixHours => "the last 6 hours",
            Self::Day => "the last 24 hours",
            Self::Week => "the last 7 days",
        }
    }

    pub(crate) const fn span(self) -> Duration {
        match self {
            Self::Live => Duration::from_mins(10),
            Self::Hour => Duration::from_hours(1),
            Self::SixHours => Duration::from_hours(6),
            Self::Day => Duration::from_hours(24),
            Self::Week => Duration::from_hours(7 * 24),
        }
    }

    pub(crate) fn since(self, now: Moment) -> Moment {
        let span = self.span().as_millis() as u64;
        Moment::from_millis(now.as_millis().saturating_sub(span))
    }

    /// An open page reads the store again after so long: about when there is a new point.
    pub(crate) const fn read_again(self) -> Duration {
        match self {
            Self::Live | Self::Hour => Duration::from_secs(15),
            Self::SixHours => Duration::from_mins(1),
            Self::Day => Duration::from_mins(5),
            Self::Week => Duration::from_mins(30),
        }
    }

    /// What one point stands for, where that is not a point of the course.
    pub(crate) fn each(self) -> Option<Duration> {
        let each = self.span() / POINTS;
        (self != Self::Live && each > Duration::from_secs(15)).then_some(each)
    }
}

/// A link to another span.
#[derive(Debug)]
pub(super) struct RangeLink {
    pub(super) label: &'static str,
    pub(super) href: String,
    pub(super) current: bool,
}

/// Links to all of them, for a page.
pub(super) fn links(current: Range, address: &str) -> Vec<RangeLink> {
    Range::ALL
        .into_iter()
        .map(|range| RangeLink {
            label: range.label(),
            href: match range {
                Range::Live => format!("{address}#charts-title"),
                _ => format!("{address}?range={}#charts-title", range.as_str()),
            },
            current: range == current,
        })
        .collect()
}
