//! One agent's share beside the others'.

use super::figures::{Counts, Figure, Share};
use crate::decide::words::percent;

/// Calls an agent must have had to be quarantined.
pub(super) const CALLS_MIN: u64 = 100;
/// Of these, those that crossed or failed; where it says too few did, those that should have.
pub(super) const EVENTS_MIN: f64 = 10.0;
/// The same for a doubt, which only puts off what it says: one slow call is nothing, two of two are
/// four standard errors.
pub(super) const EVENTS_TO_DOUBT: f64 = 2.0;
/// Times the others' share, or the part of it, beyond which an agent stands out.
const TIMES: f64 = 2.0;
/// The same to be one of them again: the gap keeps it from going in and out.
const TIMES_TO_RETURN: f64 = 1.5;
/// Standard errors beside it.
const ERRORS_BESIDE: f64 = 4.0;
/// Calls that make an agent one the others are compared with.
pub(super) const CALLS_TO_COMPARE: u64 = 20;
/// Agents there must be for any to be judged: of two nobody knows which one lies.
pub(super) const AGENTS_MIN: usize = 3;

/// What an agent is compared with in one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reference {
    /// The lower median of the others' shares.
    pub(super) share: f64,
    /// Calls it rests on.
    pub(super) calls: f64,
}

/// The two shares in the middle: which of them is the others' depends on who is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Middle {
    own: Reference,
    next: Reference,
}

/// What all agents say, by figure.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Medians {
    least: u64,
    middles: [Option<Middle>; Figure::COUNT],
}

impl Medians {
    /// From each agent's counts, of those with at least so many calls; no agent weighs more than
    /// another.
    pub(super) fn of<'a>(all: &(impl Iterator<Item = &'a Counts> + Clone), least: u64) -> Self {
        let middle_of = |figure| {
            let shares = all.clone().map(|counts| counts.get(figure));
            middle(shares.filter(|share| share.calls >= least.max(1)))
        };
        Self {
            least,
            middles: Figure::ALL.map(middle_of),
        }
    }

    /// Whether a share rests on enough to stand out on at least `events`: most do not, which is
    /// told without dividing anything.
    fn may_stand_out(&self, figure: Figure, own: Share, events: f64) -> bool {
        own.events as f64 >= events
            || (figure.may_be_too_low()
                && self.middles[figure as usize]
                    .is_some_and(|it| it.next.share * own.calls as f64 >= EVENTS_MIN))
    }

    /// The others' share, where `own` is left out.
    pub(super) fn beside(&self, figure: Figure, own: Share) -> Option<Reference> {
        let middle = self.middles[figure as usize]?;
        let counted = own.calls >= self.least;
        Some(if counted && own.value() <= middle.own.share {
            middle.next
        } else {
            middle.own
        })
    }
}

fn middle(shares: impl Iterator<Item = Share>) -> Option<Middle> {
    let mut all = Vec::with_capacity(shares.size_hint().1.unwrap_or(0));
    all.extend(shares.map(|share| (share.value(), share.calls)));
    if all.len() < AGENTS_MIN {
        return None;
    }
    // A median of many is known better than one agent's share: by 1.57 of what all their calls
    // would tell where it is in the middle, less where it is the lower of few.
    let agents = (all.len() as f64 / 4.0).max(1.0);
    let at = (all.len() - 2) / 2;
    let (_, own, above) = all.select_nth_unstable_by(at, |a, b| a.0.total_cmp(&b.0));
    let own = *own;
    let next = above
        .iter()
        .copied()
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or(own);
    let reference = |(share, calls): (f64, u64)| Reference {
        share,
        calls: calls as f64 * agents,
    };
    Some(Middle {
        own: reference(own),
        next: reference(next),
    })
}

/// Shares under which nobody stands out, whatever the others say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Floors {
    /// Of crossed calls: half the target.
    pub(crate) crossed: f64,
    /// Of failed primaries: half the limit that switches hedging off.
    pub(crate) failed: f64,
    /// Of pushed-back attempts: the same.
    pub(crate) pushed_back: f64,
}

impl Floors {
    const fn of(&self, figure: Figure) -> f64 {
        match figure {
            Figure::Crossed | Figure::Slow | Figure::ReplicasCrossed => self.crossed,
            Figure::Failed | Figure::ReplicasFailed => self.failed,
            Figure::PushedBack => self.pushed_back,
        }
    }
}

/// An agent that stands out, in the figure where it does most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Finding {
    pub(super) figure: Figure,
    pub(super) own: Share,
    /// The others' share, at least the floor where the agent says more.
    pub(super) others: f64,
    pub(super) high: bool,
    /// How far apart the shares are, from 2 up.
    pub(super) times: f64,
}

impl Finding {
    /// As `calls crossed 95 % of 120, others' 5 %`.
    pub(super) fn words(&self) -> String {
        format!(
            "{} {} of {}, others' {}",
            self.figure.words(),
            percent(self.own.value()),
            self.own.calls,
            percent(self.others)
        )
    }

    /// The share beyond which it stands out.
    pub(super) fn limit(&self) -> f64 {
        if self.high {
            TIMES * self.others
        } else {
            self.others / TIMES
        }
    }
}

/// Where `counts` stand out most beside the others', on at least `events`.
pub(super) fn worst(
    counts: &Counts,
    events: f64,
    floors: &Floors,
    others: &Medians,
) -> Option<Finding> {
    Figure::ALL
        .into_iter()
        .filter_map(|figure| {
            let own = counts.get(figure);
            if own.calls == 0 || !others.may_stand_out(figure, own, events) {
                return None;
            }
            stands_out(
                figure,
                own,
                &others.beside(figure, own)?,
                floors.of(figure),
                events,
            )
        })
        .max_by(|a, b| a.times.total_cmp(&b.times))
}

fn stands_out(
    figure: Figure,
    own: Share,
    others: &Reference,
    floor: f64,
    events: f64,
) -> Option<Finding> {
    let share = own.value();
    let calls = own.calls as f64;
    let beyond = |reference: f64| {
        // The larger of the two variances: few events make their own look smaller than it is.
        let theirs = reference * (1.0 - reference);
        let variance = (share * (1.0 - share)).max(theirs) / calls + theirs / others.calls.max(1.0);
        (share - reference).abs() > ERRORS_BESIDE * variance.sqrt()
    };
    let most = others.share.max(floor);
    let finding = |others: f64, high: bool, times: f64| Finding {
        figure,
        own,
        others,
        high,
        times,
    };
    if share > TIMES * most && own.events as f64 >= events && beyond(most) {
        return Some(finding(most, true, share / most));
    }
    let expected = others.share * calls;
    let too_low = figure.may_be_too_low()
        && share * TIMES < others.share
        && expected >= events.max(EVENTS_MIN)
        && beyond(others.share);
    // An event and a half at most: so that 0 is as far off as it can be told from the others'.
    too_low.then(|| {
        let times = others.share / share.max(1.5 / calls);
        finding(others.share, false, times)
    })
}

/// Whether `counts` agree with the others' in each figure that enough calls tell of.
pub(super) fn agrees(counts: &Counts, floors: &Floors, others: &Medians) -> bool {
    Figure::ALL.into_iter().all(|figure| {
        let own = counts.get(figure);
        let reference = others.beside(figure, own);
        let Some(others) = reference.filter(|_| own.calls >= CALLS_TO_COMPARE) else {
            return true;
        };
        let expected = others.share * own.calls as f64;
        let low = figure.may_be_too_low()
            && expected >= EVENTS_MIN
            && own.value() * TIMES_TO_RETURN < others.share;
        own.value() <= TIMES_TO_RETURN * others.share.max(floors.of(figure)) && !low
    })
}

/// Whether what an agent said in the newest second agrees with the others again in what it was found
/// to stand out in: then the past is what does, and the past is over.
pub(super) fn contradicts(second: &Counts, finding: &Finding) -> bool {
    let now = second.get(finding.figure);
    if now.calls < CALLS_TO_COMPARE {
        return false;
    }
    if finding.high {
        now.value() <= TIMES_TO_RETURN * finding.others
    } else {
        now.value() * TIMES_TO_RETURN >= finding.others
    }
}
