//! What an agent says, as the few shares it is judged by.

use std::time::Duration;

use hedgerow_protocol::latency::{SparseHistogram, bucket_of};
use hedgerow_protocol::report::{RouteReport, Totals};

/// What a share is of. All that moves a fleet's threshold or switches it off is among them: a liar
/// need not lie in the one figure that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    /// Calls its own counter says crossed, where it has a threshold to cross.
    Crossed,
    /// Primaries in its histograms and in flight beyond the fleet's threshold.
    Slow,
    /// Primaries that failed.
    Failed,
    /// Attempts that were pushed back.
    PushedBack,
    /// Primaries that crossed, by its replicas' counters.
    ReplicasCrossed,
    /// Primaries that failed, by its replicas' counters.
    ReplicasFailed,
}

impl Figure {
    /// How many there are.
    pub(super) const COUNT: usize = 6;
    /// In the order of [`Counts`].
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Crossed,
        Self::Slow,
        Self::Failed,
        Self::PushedBack,
        Self::ReplicasCrossed,
        Self::ReplicasFailed,
    ];

    /// For people.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Crossed => "calls crossed",
            Self::Slow => "primaries beyond the threshold",
            Self::Failed => "primaries failed",
            Self::PushedBack => "attempts pushed back",
            Self::ReplicasCrossed => "replicas' calls crossed",
            Self::ReplicasFailed => "replicas' calls failed",
        }
    }

    /// Whether too little of it is a lie too: nothing ever crosses. Too few failures only put an off
    /// off, by what an agent weighs.
    pub(super) const fn may_be_too_low(self) -> bool {
        matches!(self, Self::Crossed | Self::Slow | Self::ReplicasCrossed)
    }
}

/// Events among calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) events: u64,
    pub(super) calls: u64,
}

impl Share {
    /// From 0 to 1; 0 of nothing is 0.
    pub(super) fn value(self) -> f64 {
        if self.calls == 0 {
            return 0.0;
        }
        (self.events as f64 / self.calls as f64).min(1.0)
    }
}

/// One agent's figures on one route: 48 bytes, whatever it reports; there are three of them for each
/// agent and route, and a tick looks at all. A count saturates at `u32::MAX`, beyond what `plausible`
/// lets through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    events: [u32; Figure::COUNT],
    calls: [u32; Figure::COUNT],
}

impl Counts {
    /// Those of a report: `delta` is what its totals grew by, `threshold` the fleet's.
    pub(crate) fn of(delta: &Totals, report: &RouteReport, threshold: Option<Duration>) -> Self {
        let each = |events: u64, calls: u64| Share { events, calls };
        let crossed = match report.effective.threshold {
            Some(_) => each(delta.crossed, delta.started),
            None => Share::default(),
        };
        let replicas = report.replicas.iter().fold([0_u64; 4], |sums, it| {
            let more = [it.crossed, it.started, it.errors, it.finished];
            std::array::from_fn(|n| sums[n].saturating_add(more[n]))
        });
        let attempts = delta.primary_finished.saturating_add(delta.hedge_finished);
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let shares = [
            crossed,
            threshold.map_or_else(Share::default, |it| slow(report, it)),
            each(delta.primary_errors, delta.primary_finished),
            each(delta.push_back, attempts),
            // Where replicas' crossed calls are not told, as without a threshold, nothing is judged.
            match report.effective.threshold {
                Some(_) => each(replicas[0], replicas[1]),
                None => Share::default(),
            },
            each(replicas[2], replicas[3]),
        ];
        Self {
            events: shares.map(|share| count(share.events)),
            calls: shares.map(|share| count(share.calls)),
        }
    }

    pub(super) fn get(&self, figure: Figure) -> Share {
        Share {
            events: self.events[figure as usize].into(),
            calls: self.calls[figure as usize].into(),
        }
    }

    /// Adds others.
    pub(super) fn add(&mut self, other: &Self) {
        for n in 0..Figure::COUNT {
            self.events[n] = self.events[n].saturating_add(other.events[n]);
            self.calls[n] = self.calls[n].saturating_add(other.calls[n]);
        }
    }

    /// The past counts half from now on.
    pub(super) fn halve(&mut self) {
        self.events = self.events.map(|events| events / 2);
        self.calls = self.calls.map(|calls| calls / 2);
    }

    /// The most calls that any figure rests on.
    pub(super) fn calls(&self) -> u64 {
        self.calls.into_iter().fold(0, u32::max).into()
    }
}

fn slow(report: &RouteReport, threshold: Duration) -> Share {
    let last = bucket_of(threshold);
    let beyond = |histogram: &SparseHistogram| {
        histogram
            .iter()
            .fold((0_u64, 0_u64), |(beyond, all), (bucket, count)| {
                let counts = if usize::from(bucket) > last { count } else { 0 };
                (beyond.saturating_add(counts), all.saturating_add(count))
            })
    };
    let parts = [
        beyond(&report.primary.done),
        beyond(&report.primary.censored),
        beyond(&report.in_flight),
    ];
    parts
        .into_iter()
        .fold(Share::default(), |sum, (events, calls)| Share {
            events: sum.events.saturating_add(events),
            calls: sum.calls.saturating_add(calls),
        })
}
