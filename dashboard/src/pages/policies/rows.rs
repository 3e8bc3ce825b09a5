//! A row for each policy, and one for each dependency that has none.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use askama::filters::HtmlSafe;
use hedgerow_core::view::{FleetSnapshot, PolicyView};
use hedgerow_protocol::ids::DependencyName;
use hedgerow_protocol::policy::{Intent, Policy, PolicyScope};

use crate::assets::short_id;
use crate::backend::PolicyRevision;
use crate::format::{Figure, Time, percent_set};
use crate::pages::policy::covered::pattern_for;
use crate::pages::policy::notes::no_effect;
use crate::pages::state::{Badge, policy_address};

/// How many routes a scope covers and governs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reach {
    covers: usize,
    governs: usize,
}

/// Of every policy in force, in one walk over the routes.
pub(super) fn reach(snapshot: &FleetSnapshot) -> BTreeMap<&PolicyScope, Reach> {
    let mut reach: BTreeMap<&PolicyScope, Reach> = BTreeMap::new();
    let patterns: Vec<_> = snapshot
        .policies
        .keys()
        .filter(|it| it.pattern().is_some())
        .collect();
    for key in snapshot.routes.keys() {
        let own = [
            PolicyScope::Operation(key.clone()),
            PolicyScope::Dependency(key.dependency.clone()),
        ];
        let direct = own
            .iter()
            .filter_map(|it| snapshot.policies.get_key_value(it));
        let direct = direct.map(|(scope, _)| scope);
        let fitting = patterns.iter().copied().filter(|it| it.covers(key));
        for scope in direct.chain(fitting) {
            reach.entry(scope).or_default().covers += 1;
        }
        if let Some(holder) = snapshot.policy_for(key) {
            let holder = snapshot.policies.get_key_value(holder.policy.scope());
            if let Some((scope, _)) = holder {
                reach.entry(scope).or_default().governs += 1;
            }
        }
    }
    reach
}

/// Policies that are for the same kind of thing.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) rows: Vec<Row>,
}

impl Group {
    /// Patterns first, as the narrower ones hold.
    pub(super) fn all(rows: Vec<Row>) -> Vec<Self> {
        let (patterns, others) = rows.into_iter().partition(|row| row.kind == "pattern");
        let patterns = Self {
            title: "Patterns: for dependencies without a policy of their own",
            rows: patterns,
        };
        let others = Self {
            title: "Dependencies, and operations with a policy of their own",
            rows: others,
        };
        let all = [patterns, others].into_iter();
        all.filter(|it| !it.rows.is_empty()).collect()
    }
}

/// One policy.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// An operation's dependency, which stands in the row above or is named here.
    pub(super) operation: Option<String>,
    pub(super) kind: &'static str,
    pub(super) address: String,
    pub(super) intent: Badge,
    pub(super) target: String,
    pub(super) budget: Figure,
    pub(super) revision: u64,
    pub(super) since: Time,
    pub(super) by: Option<By>,
    pub(super) progress: Progress,
}

/// Who set it, and why.
#[derive(Debug)]
pub(super) struct By {
    pub(super) name: String,
    pub(super) via: &'static str,
    pub(super) reason: String,
}

impl Row {
    /// `newest`: of its revisions.
    pub(super) fn new(
        snapshot: &FleetSnapshot,
        scope: &PolicyScope,
        reach: &BTreeMap<&PolicyScope, Reach>,
        newest: Option<PolicyRevision>,
    ) -> Self {
        let view = snapshot.policies.get(scope);
        let policy = view.map_or_else(|| Policy::observing(scope.clone()), |it| it.policy.clone());
        let revision = view.map(|it| it.revision).unwrap_or_default();
        // The store may be ahead of the snapshot, or away.
        let newest = newest.filter(|it| it.revision == revision);
        Self {
            name: match scope {
                PolicyScope::Operation(route) => route.dependency.to_string(),
                other => other.to_string(),
            },
            operation: scope.operation().map(ToString::to_string),
            kind: match scope {
                PolicyScope::Pattern(_) => "pattern",
                PolicyScope::Dependency(_) => "dependency",
                PolicyScope::Operation(_) => "operation",
            },
            address: policy_address(scope),
            intent: badge(policy.intent()),
            target: target(&policy),
            budget: Figure::new(
                percent_set(policy.budget().get()).trim_end_matches(" %"),
                format!("{} of finished calls", percent_set(policy.budget().get())),
            ),
            revision: revision.0,
            since: Time::near(view.map(|it| it.since).unwrap_or_default(), snapshot.at),
            by: newest.map(|it| By {
                name: it.actor.name,
                via: it.actor.via.as_str(),
                reason: it.reason,
            }),
            progress: Progress::new(snapshot, scope, reach).unwrap_or_default(),
        }
    }
}

fn badge(intent: Intent) -> Badge {
    match intent {
        Intent::Hedge => Badge::new("on", "hedge"),
        Intent::Observe => Badge::new("observing", "observe"),
        Intent::Off => Badge::new("quiet", "off"),
    }
}

/// What it aims at, in a few words.
fn target(policy: &Policy) -> String {
    if policy.intent() != Intent::Hedge {
        return "–".into();
    }
    match (policy.pool(), policy.goal()) {
        (Some(pool), _) => format!("pool {pool}"),
        (None, Some(goal)) => {
            // Nine digits: a share written as 0.999 is p99.9.
            format!("least p{}", (goal.get() * 1e9).round() / 1e7)
        }
        (None, None) => format!("{} of calls", percent_set(policy.target_rate())),
    }
}

/// What changes by itself of a row: its reach, how far a rollout has got, and that it does nothing.
#[derive(Debug, Default, Template)]
#[template(path = "parts/policy_progress.html")]
pub(super) struct Progress {
    id: String,
    covers: usize,
    governs: usize,
    steps: Option<Steps>,
    no_effect: Option<String>,
    more: usize,
}

impl HtmlSafe for Progress {}

#[derive(Debug)]
struct Steps {
    share: String,
    stage: usize,
    of: usize,
    holding: u64,
    agents: u64,
    words: String,
}

impl Progress {
    pub(super) fn new(
        snapshot: &FleetSnapshot,
        scope: &PolicyScope,
        reach: &BTreeMap<&PolicyScope, Reach>,
    ) -> Option<Self> {
        let view = snapshot.policies.get(scope)?;
        let reach = reach.get(scope).copied().unwrap_or_default();
        let mut notes = no_effect(snapshot, scope, Some(&view.policy)).into_iter();
        Some(Self {
            id: format!("policy-{}", short_id(&scope.to_string())),
            covers: reach.covers,
            governs: reach.governs,
            steps: steps(view),
            no_effect: notes.next(),
            more: notes.len(),
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

fn steps(view: &PolicyView) -> Option<Steps> {
    let rollout = view.rollout.as_ref()?;
    Some(Steps {
        share: percent_set(rollout.share),
        stage: rollout.stage,
        of: rollout.stages.len(),
        holding: rollout.agents_holding,
        agents: rollout.agents_in,
        words: rollout.words.clone(),
    })
}

/// A dependency that agents report and nobody set a policy for.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) routes: usize,
    pub(super) calls: Figure,
    /// The pattern that holds: name, address, and what it wants.
    pub(super) pattern: Option<(String, String, &'static str)>,
    /// Operations of it with a policy of their own.
    pub(super) own: usize,
}

/// By name.
pub(super) fn observed(snapshot: &FleetSnapshot, shows: impl Fn(&str) -> bool) -> Vec<Observed> {
    let mut all: BTreeMap<&DependencyName, (usize, Option<f64>, usize)> = BTreeMap::new();
    for (key, view) in &snapshot.routes {
        let (routes, calls, own) = all.entry(&key.dependency).or_default();
        *routes += 1;
        if let Some(figures) = view.figures {
            *calls = Some(calls.unwrap_or(0.0) + figures.calls_per_s);
        }
        let operation = PolicyScope::Operation(key.clone());
        *own += usize::from(snapshot.policies.contains_key(&operation));
    }
    all.into_iter()
        .filter_map(|(name, (routes, calls, own))| {
            let scope = PolicyScope::Dependency(name.clone());
            if name.is_other() || snapshot.policies.contains_key(&scope) || !shows(name.as_str()) {
                return None;
            }
            let pattern = pattern_for(snapshot, name).map(|it| {
                let scope = it.policy.scope();
                let intent = it.policy.intent().as_str();
                (scope.to_string(), policy_address(scope), intent)
            });
            Some(Observed {
                name: name.to_string(),
                address: policy_address(&scope),
                routes,
                calls: Figure::rate(calls, "a second", "no traffic"),
                pattern,
                own,
            })
        })
        .collect()
}

/// Names of dependencies and operations, to choose from.
pub(super) fn names(snapshot: &FleetSnapshot, most: usize) -> (Vec<String>, Vec<String>) {
    let keys = || snapshot.routes.keys().filter(|key| !key.is_other());
    let dependencies: BTreeSet<_> = keys().map(|key| key.dependency.as_str()).collect();
    let operations: BTreeSet<_> = keys().map(|key| key.operation.as_str()).collect();
    let few = |names: BTreeSet<&str>| names.into_iter().take(most).map(str::to_owned).collect();
    (few(dependencies), few(operations))
}
