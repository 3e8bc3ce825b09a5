//! An agent's row.

use hedgerow_core::view::{AgentRouteView, AgentState, AgentView, FleetSnapshot, Sync};
use hedgerow_protocol::units::as_millis;

use super::select::{behind, state_word};
use crate::assets::short_id;
use crate::format::{Figure, Time, date, percent, significant, span};
use crate::pages::state::{Badge, route_address};

/// A wall clock further off than this is worth saying, milliseconds.
const SKEW_NOTABLE_MS: u64 = 2_000;

#[derive(Debug)]
pub(super) struct AgentRow {
    pub(super) id: String,
    pub(super) service: String,
    pub(super) instance: String,
    pub(super) short: String,
    pub(super) zone: String,
    pub(super) version: String,
    pub(super) peer: String,
    pub(super) badge: Badge,
    pub(super) tone: &'static str,
    pub(super) connected: Time,
    pub(super) heard: String,
    pub(super) reported: Figure,
    pub(super) skew: Figure,
    pub(super) skewed: bool,
    /// What it holds, and what is wanted where that differs: of the route furthest behind.
    pub(super) held: String,
    pub(super) wanted: Option<String>,
    /// What stands between them.
    pub(super) standing: Option<String>,
    pub(super) threshold: Figure,
    pub(super) dropped: Figure,
    pub(super) dropped_any: bool,
    pub(super) last_refusal: String,
    pub(super) duplicate: u64,
    pub(super) sync: String,
    pub(super) in_sync: bool,
    pub(super) quarantined: usize,
    pub(super) routes: Vec<AgentRoute>,
}

#[derive(Debug)]
pub(super) struct AgentRoute {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) mode: Badge,
    pub(super) own_off: bool,
    pub(super) held: String,
    pub(super) wanted: String,
    pub(super) sync: String,
    pub(super) applied: bool,
    pub(super) threshold: Figure,
    pub(super) budget: String,
    pub(super) tokens: String,
    pub(super) link: &'static str,
    pub(super) replicas: u32,
    pub(super) quarantine: Option<String>,
}

impl AgentRoute {
    fn new(r: &AgentRouteView, snapshot: &FleetSnapshot) -> Self {
        Self {
            name: r.route.to_string(),
            address: route_address(&r.route),
            mode: Badge::mode(r.mode),
            own_off: r.own_off,
            held: r.held.to_string(),
            wanted: r.wanted.to_string(),
            applied: r.sync == Sync::Applied,
            sync: sync_words(&r.sync),
            threshold: Figure::millis(r.threshold, "no threshold yet"),
            budget: percent(r.budget),
            tokens: significant(r.tokens),
            link: r.link.as_str(),
            replicas: r.replicas,
            quarantine: r.quarantine.as_ref().map(|it| {
                format!(
                    "{} for {}: {}; {} reports of {} calls are left out",
                    if it.held { "held" } else { "in quarantine" },
                    span(snapshot.at.since(it.since)),
                    it.words,
                    it.reports,
                    it.calls
                )
            }),
        }
    }
}

fn sync_words(sync: &Sync) -> String {
    match sync {
        Sync::Applied => "applied".into(),
        Sync::Pending => "pending".into(),
        Sync::Refused(reason) => format!("refused: {reason}"),
    }
}

/// Reports that were not counted: refused, or left out while in quarantine.
pub(super) fn dropped(agent: &AgentView) -> u64 {
    agent.refused_reports + left_out(agent)
}

fn left_out(agent: &AgentView) -> u64 {
    let quarantines = agent.routes.iter().filter_map(|it| it.quarantine.as_ref());
    quarantines.map(|it| it.reports).sum()
}

/// Whether its clock is far off.
pub(super) fn skewed(agent: &AgentView) -> bool {
    let skew = agent.skew_ms.map(i64::unsigned_abs);
    skew.is_some_and(|ms| ms >= SKEW_NOTABLE_MS)
}

impl AgentRow {
    pub(super) fn new(a: &AgentView, snapshot: &FleetSnapshot) -> Self {
        let (class, tone) = match a.state {
            AgentState::Live => ("on", "ok"),
            AgentState::Stale => ("probing", "warn"),
            AgentState::Lost => ("off", "bad"),
            AgentState::Left => ("quiet", "quiet"),
        };
        let behind = behind(a);
        let worst = worst(a);
        let instance = a.instance.to_string();
        Self {
            id: format!("a-{}", short_id(&format!("{instance} {}", a.connection.0))),
            service: a.service.to_string(),
            // The random end tells instances apart; the beginning is the time they were made.
            short: instance.rsplit('-').next().unwrap_or_default().to_owned(),
            instance,
            zone: a
                .zone
                .as_ref()
                .map_or_else(|| "–".into(), ToString::to_string),
            version: a.version.clone(),
            peer: a.peer.clone(),
            badge: Badge::new(class, state_word(a.state)),
            tone,
            connected: Time::near(a.connected, snapshot.at),
            heard: span(snapshot.at.since(a.heard)),
            reported: a.reported.map_or_else(
                || Figure::none("no report yet"),
                |at| Figure::new(span(snapshot.at.since(at)), date(at)),
            ),
            skew: skew(a.skew_ms),
            skewed: skewed(a),
            held: worst.map_or_else(|| "–".into(), |it| it.held.to_string()),
            wanted: worst
                .filter(|it| it.sync != Sync::Applied)
                .map(|it| it.wanted.to_string()),
            standing: standing(a, worst),
            threshold: threshold(a),
            dropped: Figure::new(
                dropped(a).to_string(),
                format!("{} refused, {} left out", a.refused_reports, left_out(a)),
            ),
            dropped_any: dropped(a) > 0,
            last_refusal: a.last_refusal.clone().unwrap_or_default(),
            duplicate: a.duplicate_reports,
            sync: format!("{}/{}", a.routes.len() - behind, a.routes.len()),
            in_sync: behind == 0,
            quarantined: a.routes.iter().filter(|it| it.quarantine.is_some()).count(),
            routes: a
                .routes
                .iter()
                .map(|it| AgentRoute::new(it, snapshot))
                .collect(),
        }
    }
}

/// The route that is furthest from what is wanted: a refusal before what is pending.
fn worst(agent: &AgentView) -> Option<&AgentRouteView> {
    agent.routes.iter().min_by_key(|it| match it.sync {
        Sync::Refused(_) => 0,
        Sync::Pending => 1,
        Sync::Applied => 2,
    })
}

/// Applied, pending, refused with the reason; stale where it has not been heard of: what it holds may
/// have changed since.
fn standing(agent: &AgentView, worst: Option<&AgentRouteView>) -> Option<String> {
    let sync = sync_words(&worst?.sync);
    Some(match agent.state {
        AgentState::Live => sync,
        AgentState::Stale | AgentState::Lost => format!("stale; last known: {sync}"),
        AgentState::Left => format!("gone; last known: {sync}"),
    })
}

/// One threshold, or from the least to the highest of its routes.
fn threshold(agent: &AgentView) -> Figure {
    let all = || {
        agent
            .routes
            .iter()
            .filter_map(|it| it.threshold)
            .map(as_millis)
    };
    let Some(least) = all().reduce(f64::min) else {
        return Figure::none("no threshold yet");
    };
    let most = all().fold(least, f64::max);
    let (least, most) = (significant(least), significant(most));
    if least == most {
        let exact = format!("{least} ms");
        Figure::new(least, exact)
    } else {
        Figure::new(
            format!("{least}–{most}"),
            format!("{least} to {most} ms over its routes"),
        )
    }
}

/// Clock skew: seconds, or a dash where the agent does not say.
fn skew(ms: Option<i64>) -> Figure {
    match ms {
        None => Figure::none("the agent has not told its time"),
        Some(ms) if ms.unsigned_abs() < SKEW_NOTABLE_MS => {
            Figure::new(format!("{:+.1}", ms as f64 / 1000.0), format!("{ms} ms"))
        }
        Some(ms) => Figure::new(
            format!("{:+.0}", ms as f64 / 1000.0),
            format!("{ms} ms; shown only, nothing is decided by it"),
        ),
    }
}
