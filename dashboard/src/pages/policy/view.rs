//! What the editor's page shows, put together.

use askama::Template;
use hedgerow_protocol::policy::PolicyScope;

use super::checking::{Checking, Removal};
use super::covered::Covered;
use super::diff::{Change, aim_words, changes};
use super::draft::{Checked, Typed};
use super::fields::{Beside, Field, fields, rollout_hints};
use super::news::{News, seen};
use super::notes::no_effect;
use super::replay::{self, HOURS, Replayed};
use super::rollout::Rollout;
use super::standing::Standing;
use super::versions::{self, SHOWN, Version, versions};
use super::whatif::WhatIf;
use crate::backend::{Backend, PolicyRevision, Role};
use crate::format::{percent, url_part};
use crate::guard::Viewer;
use crate::pages::frame::Frame;
use crate::pages::state::{policy_address, route_address};
use crate::router::App;

#[derive(Debug, Template)]
#[template(path = "policy.html", blocks = ["page", "review"])]
pub(super) struct PolicyPage {
    frame: Frame,
    scope: PolicyScope,
    address: String,
    record_href: String,
    /// Its routes, to go back to.
    routes: Vec<(String, String)>,
    more_routes: usize,
    standing: Standing,
    news: News,
    typed: Typed,
    checked: Checked,
    fields: Vec<Field>,
    choices: Choices,
    rollout_hints: (String, String),
    /// The revision the form was filled from; 0: there never was one.
    expected: u64,
    in_force: Option<u64>,
    /// Against what the typed policy is compared, as `in force` or `cat*`.
    against: String,
    changes: Vec<Change>,
    /// Why the last attempt did not succeed.
    problem: Option<String>,
    /// What somebody else changed meanwhile.
    meanwhile: Vec<Change>,
    /// Nothing was saved, as nothing differed.
    unchanged: bool,
    no_effect: Vec<String>,
    history: Vec<Version>,
    more_history: usize,
    history_problem: Option<String>,
    removal: Removal,
    can_edit: bool,
    /// How far the newest revision has got, where it is put in force in steps.
    rollout: Rollout,
    offered: Vec<(String, bool)>,
    whatif: WhatIf,
    replayed: Replayed,
}

/// What stands beside the choices of the form.
#[derive(Debug)]
struct Choices {
    intent: Beside,
    goal: Beside,
    probation: Beside,
    hedge_on_error: Beside,
}

/// What the page is built from, beside the snapshot.
pub(super) struct Parts {
    pub(super) typed: Typed,
    pub(super) expected: u64,
    pub(super) problem: Option<String>,
    pub(super) meanwhile: Vec<Change>,
    pub(super) unchanged: bool,
    pub(super) all_versions: bool,
}

impl Parts {
    pub(super) fn new(typed: Typed, expected: u64) -> Self {
        Self {
            typed,
            expected,
            problem: None,
            meanwhile: Vec::new(),
            unchanged: false,
            all_versions: false,
        }
    }
}

impl PolicyPage {
    pub(super) async fn load<B: Backend>(
        app: &App<B>,
        viewer: &Viewer,
        scope: PolicyScope,
        parts: Parts,
    ) -> Self {
        let snapshot = app.backend.snapshot();
        let history = app.backend.policy_history(&scope).await;
        let (history, history_problem) = match history {
            Ok(history) => (history, None),
            Err(problem) => (Vec::new(), Some(problem.to_string())),
        };
        let checked = parts.typed.check(&scope);
        let checking = Checking::new(&snapshot, &scope, &parts.typed);
        let (route, policy) = (checking.route.as_ref(), checked.policy.as_ref());
        let whatif = WhatIf::load(&app.backend, &snapshot, route, policy).await;
        let replayed = if parts.typed.step == "replay" {
            let holds = route.and_then(|it| snapshot.policy_for(it));
            let holds = holds.map(|it| &it.policy);
            Replayed::load(&app.backend, route, policy, holds, &parts.typed.hours).await
        } else {
            Replayed::not_asked()
        };
        let page = Self::of(viewer, &checking, parts, checked, &history);
        Self {
            history_problem,
            whatif,
            replayed,
            ..page
        }
    }

    pub(super) fn of(
        viewer: &Viewer,
        checking: &Checking<'_>,
        parts: Parts,
        checked: Checked,
        history: &[PolicyRevision],
    ) -> Self {
        let (snapshot, scope) = (checking.snapshot, checking.scope);
        let wide = checking.wide();
        let live = format!(
            "page=policy&dependency={}&seen={}",
            url_part(&scope.to_string()),
            seen(snapshot, scope)
        );
        let title = format!("Policy of {scope}");
        let shown = if parts.all_versions {
            usize::MAX
        } else {
            SHOWN
        };
        let standing = versions::standing(snapshot, scope, history);
        let beside = |name| Beside::new(name, scope, wide, &checked);
        let policy = checked.policy.as_ref();
        Self {
            frame: Frame::new(title, "policies", viewer, snapshot, &live),
            address: policy_address(scope),
            record_href: record_address(scope),
            routes: links(&checking.covered),
            more_routes: checking.covered.routes.len().saturating_sub(LINKS),
            standing: Standing::new(snapshot, scope),
            news: News::new(snapshot, scope, ""),
            fields: fields(&parts.typed, &checked, scope, wide),
            choices: Choices {
                intent: beside("intent"),
                goal: beside("goal"),
                probation: beside("probation"),
                hedge_on_error: beside("hedge_on_error"),
            },
            rollout_hints: rollout_hints(),
            expected: parts.expected,
            in_force: snapshot.policies.get(scope).map(|it| it.revision.0),
            against: checking.against(),
            changes: policy.map_or_else(Vec::new, |it| changes(&checking.base, it)),
            problem: parts.problem,
            meanwhile: parts.meanwhile,
            unchanged: parts.unchanged,
            no_effect: no_effect(snapshot, scope, policy),
            history: versions(scope, history, standing, shown),
            more_history: history.len().saturating_sub(shown),
            history_problem: None,
            removal: Removal::new(checking),
            can_edit: viewer.operator.role >= Role::Editor,
            rollout: Rollout::new(snapshot, scope, viewer.operator.role),
            offered: checking.offered(),
            whatif: WhatIf::none(),
            replayed: Replayed::not_asked(),
            scope: scope.clone(),
            typed: parts.typed,
            checked,
        }
    }

    fn percentile_means(&self) -> String {
        let Some(policy) = &self.checked.policy else {
            return String::new();
        };
        match (policy.pool(), policy.goal()) {
            (Some(pool), _) => format!("hedges what its share of pool {pool} allows"),
            (None, Some(_)) => format!("hedges at most {}", percent(policy.budget().get())),
            (None, None) => format!("aims at {} of calls hedged", percent(policy.target_rate())),
        }
    }

    /// A goal that the form has no choice of its own for, and its name.
    fn other_goal(&self) -> Option<(&str, String)> {
        let typed = self.typed.goal.trim();
        let other = !["", "0.99", "0.999"].contains(&typed);
        other.then(|| {
            let words = typed.parse().ok().map(|goal| aim_words(Some(goal)));
            (typed, words.unwrap_or_else(|| typed.to_owned()))
        })
    }

    /// The share of the agents that has the newest revision, where that is not all of them.
    fn share(&self) -> Option<&str> {
        self.rollout.share_now()
    }

    fn hours(&self) -> [(u64, bool); 3] {
        let chosen = replay::hours(&self.typed.hours).unwrap_or(24);
        HOURS.map(|hours| (hours, hours == chosen))
    }
}

/// Routes linked at the page's head.
const LINKS: usize = 8;

fn links(covered: &Covered<'_>) -> Vec<(String, String)> {
    let mut dependencies = covered.routes.iter().map(|it| &it.route.dependency);
    let first = dependencies.next();
    let many = dependencies.any(|it| Some(it) != first);
    let routes = covered.routes.iter().take(LINKS).map(|it| &it.route);
    routes
        .map(|it| {
            let name = if many {
                it.to_string()
            } else {
                it.operation.to_string()
            };
            (name, route_address(it))
        })
        .collect()
}

fn record_address(scope: &PolicyScope) -> String {
    scope.dependency().map_or_else(
        || "/record?action=policy".into(),
        |name| format!("/record?dependency={}", url_part(name.as_str())),
    )
}
