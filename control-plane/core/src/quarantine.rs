//! Agents that say what no other does: left out before they are believed, and shown (P12, S3).
//!
//! An agent is compared with the lower median of the others on its route, as replicas are compared
//! to be named. What it reports waits from the first second in which it stands out (*held*); where
//! it goes on so and there are calls enough it is *quarantined*, otherwise what waited is counted
//! after all. Out again by itself when it agrees with the others for long enough.
//!
//! Kept for each agent and route are some counters, not what was reported; so a tick looks at no
//! histogram, and memory grows with agents and their routes alone.

mod compare;
mod figures;
mod record;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::Duration;

use hedgerow_protocol::ids::InstanceId;

pub(crate) use self::compare::Floors;
use self::compare::{AGENTS_MIN, CALLS_TO_COMPARE, EVENTS_TO_DOUBT, Medians, worst};
pub(crate) use self::figures::Counts;
use self::record::{Record, Suspicion};
use crate::event::ConnectionId;
use crate::moment::Moment;
use crate::route::Arrival;
use crate::view::{Evidence, QuarantineView};

/// How long a quarantine is remembered of an agent that went: it is no way out to attach anew.
const GONE_KEPT: Duration = Duration::from_hours(1);
/// Most of these on a route.
const GONE_MAX: usize = 1_000;
/// Ticks after which those that went are looked for.
const SWEPT_EACH: u64 = 60;
/// The most an agent weighs among those of whom a majority must be left, in times the median's
/// calls: no agent makes itself the majority by saying much.
const WEIGHT_TIMES_MEDIAN: u64 = 2;

/// What is to become of a report's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reception {
    /// It may be counted at once.
    Counted,
    /// It waits for the tick: it may be held then.
    Doubted,
    /// It is left out.
    Apart,
}

/// An agent was quarantined, or let go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    pub(crate) instance: InstanceId,
    pub(crate) into: bool,
    pub(crate) words: String,
}

/// A tick's outcome.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) changes: Vec<Change>,
    /// What was held and is to be counted after all.
    pub(crate) freed: Vec<Arrival>,
}

/// All agents of one route, and which of them are left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bench {
    records: BTreeMap<ConnectionId, Record>,
    gone: BTreeMap<InstanceId, (Moment, Record)>,
    /// How much those said since the last tick that have gone since.
    parted: Vec<(ConnectionId, f64)>,
    /// What was usual at the last tick.
    medians: Medians,
    floors: Option<Floors>,
    ticks: u64,
}

impl Bench {
    /// An agent reported `counts`, in a report of so many calls and such a load. None: they are not
    /// to be compared. Tells also how much the agent said since the last tick.
    pub(crate) fn hear(
        &mut self,
        connection: ConnectionId,
        instance: InstanceId,
        counts: Option<&Counts>,
        calls: u64,
        load: f64,
    ) -> (Reception, f64) {
        let gone = &mut self.gone;
        let record = self.records.entry(connection).or_insert_with(|| {
            let before = gone.remove(&instance);
            before.map_or_else(|| Record::new(instance), |(_, record)| record)
        });
        if let Some(counts) = counts {
            record.second.add(counts);
        }
        if record.leaves_out(calls) {
            return (Reception::Apart, 0.0);
        }
        let load = record.load.unwrap_or_default() + load;
        record.load = Some(load);
        let stands_out = self.floors.is_some_and(|floors| {
            worst(
                &record.with_second(),
                EVENTS_TO_DOUBT,
                &floors,
                &self.medians,
            )
            .is_some()
        });
        if stands_out || record.doubt.is_some() {
            (Reception::Doubted, load)
        } else {
            (Reception::Counted, load)
        }
    }

    /// How much each agent said since the last tick, by connection, and whether it is left out. The
    /// next tick's begins with nothing.
    pub(crate) fn take_loads(&mut self) -> Vec<(ConnectionId, f64, bool)> {
        let parted = std::mem::take(&mut self.parted);
        let gone = !parted.is_empty();
        let mut loads = Vec::with_capacity(parted.len() + self.records.len());
        loads.extend(parted.into_iter().map(|(who, load)| (who, load, false)));
        loads.extend(self.records.iter_mut().filter_map(|(connection, record)| {
            let load = record.load.take()?;
            Some((*connection, load, record.is_out()))
        }));
        if gone {
            loads.sort_by_key(|(connection, ..)| *connection);
            // Gone, and there again under the same number.
            loads.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    (kept.1, kept.2) = (kept.1 + next.1, next.2);
                }
                same
            });
        }
        loads
    }

    /// Keeps an arrival of an agent that is held or quarantined, and tells so; gives it back where
    /// the agent is neither.
    pub(crate) fn keep(&mut self, arrival: Arrival) -> Option<Arrival> {
        match self.records.get_mut(&arrival.connection) {
            Some(record) => record.keep(arrival),
            None => Some(arrival),
        }
    }

    /// What agents are told was not alike for all and now is: they are compared by what comes from
    /// here on. Who is left out stays so.
    pub(crate) fn begin_anew(&mut self) {
        for record in self.records.values_mut() {
            record.begin_anew();
        }
    }

    /// Whether what the agent says is left out.
    pub(crate) fn is_out(&self, connection: ConnectionId) -> bool {
        self.records.get(&connection).is_some_and(Record::is_out)
    }

    /// The agent's stream ended.
    pub(crate) fn leave(&mut self, connection: ConnectionId, now: Moment) {
        let Some(mut record) = self.records.remove(&connection) else {
            return;
        };
        self.parted
            .extend(record.load.map(|load| (connection, load)));
        record.part();
        if record.to_remember() && self.gone.len() < GONE_MAX {
            self.gone.insert(record.instance, (now, record));
        }
    }

    /// Why an agent is left out, for people.
    pub(crate) fn view(&self, connection: ConnectionId) -> Option<QuarantineView> {
        self.records.get(&connection)?.view()
    }

    /// A tick: who stands out, who is like the others again. The worst first; at most half of the
    /// agents, by number and by weight, are left out.
    pub(crate) fn tick(
        &mut self,
        now: Moment,
        floors: Floors,
        attached: impl Fn(ConnectionId) -> bool,
    ) -> Outcome {
        self.ticks += 1;
        self.floors = Some(floors);
        if self.ticks.is_multiple_of(SWEPT_EACH) {
            // An agent that holds 64 routes is not known to report others.
            let parted = &mut self.parted;
            self.records.retain(|connection, record| {
                let attached = attached(*connection);
                if !attached {
                    parted.extend(record.load.map(|load| (*connection, load)));
                }
                attached
            });
        }
        self.gone.retain(|_, (at, _)| now.since(*at) < GONE_KEPT);
        for record in self.records.values_mut() {
            record.advance(self.ticks);
        }
        // Side by side: each figure's median walks over them.
        let recent: Vec<_> = self.records.values().map(|it| &it.recent).collect();
        self.medians = Medians::of(&recent.iter().copied(), CALLS_TO_COMPARE);
        let all = self.records.values();
        let newest = OnceCell::new();
        let newest = || *newest.get_or_init(|| Medians::of(&all.clone().map(|it| &it.latest), 1));
        let mut suspects = Vec::new();
        for (connection, record) in &self.records {
            let suspicion = record.look(&floors, &self.medians, newest);
            suspects.extend(suspicion.map(|it| (it, *connection)));
        }
        let out = self.most(suspects);
        let mut outcome = Outcome::default();
        for (connection, record) in &mut self.records {
            let suspicion = out.get(connection);
            record.settle(now, suspicion, &floors, &self.medians, &mut outcome);
        }
        outcome
    }

    /// The worst of `suspects`, as many as may be left out.
    fn most(
        &self,
        mut suspects: Vec<(Suspicion, ConnectionId)>,
    ) -> BTreeMap<ConnectionId, Suspicion> {
        if suspects.is_empty() {
            return BTreeMap::new();
        }
        let mut calls: Vec<_> = self.records.values().map(Record::weight).collect();
        calls.retain(|calls| *calls > 0);
        if calls.len() < AGENTS_MIN {
            return BTreeMap::new();
        }
        let half = calls.len() / 2;
        let at = (calls.len() - 1) / 2;
        let (_, median, _) = calls.select_nth_unstable(at);
        let most = median.saturating_mul(WEIGHT_TIMES_MEDIAN);
        let all: u64 = calls.iter().map(|calls| (*calls).min(most)).sum();
        suspects.sort_by(|(x, a), (y, b)| y.times.total_cmp(&x.times).then_with(|| a.cmp(b)));
        let mut weight = 0;
        let mut out = BTreeMap::new();
        for (suspicion, connection) in suspects.into_iter().take(half) {
            weight += self.records[&connection].weight().min(most);
            if weight * 2 > all {
                break;
            }
            out.insert(connection, suspicion);
        }
        out
    }
}

/// A finding as a figure.
fn evidence(finding: &compare::Finding) -> Vec<Evidence> {
    vec![Evidence {
        what: finding.figure.words().into(),
        value: finding.own.value() * 100.0,
        limit: finding.limit() * 100.0,
        unit: "%".into(),
        window: record::WINDOW,
    }]
}
