//! A policy that is put in force in steps: how far it is, the share and the rest side by side, and
//! the way back.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use hedgerow_core::view::{FleetSnapshot, RolloutView};
use hedgerow_protocol::ids::Revision;
use hedgerow_protocol::policy::PolicyScope;
use serde::Deserialize;

use super::acts::{refused, untouched};
use super::scope_of;
use crate::backend::{Backend, Role, RolloutStep};
use crate::format::{Figure, Time};
use crate::guard::Viewer;
use crate::pages::state::policy_address;
use crate::router::App;

/// How far a rollout has got; empty where none is under way.
#[derive(Debug, Template)]
#[template(path = "parts/rollout.html")]
pub(crate) struct Rollout {
    steps: Option<Steps>,
    address: String,
    can_take_back: bool,
    can_go_on: bool,
}

impl HtmlSafe for Rollout {}

#[derive(Debug)]
struct Steps {
    revision: u64,
    base: u64,
    /// Each share, and whether it is over, the present one, or to come.
    stages: Vec<(String, &'static str)>,
    last: bool,
    /// The present share.
    present: String,
    by: String,
    via: &'static str,
    since: Time,
    next: Time,
    holding: u64,
    share: u64,
    agents: u64,
    calls: u64,
    words: String,
    figures: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    route: String,
    what: String,
    unit: String,
    new: Figure,
    old: Figure,
}

impl Rollout {
    pub(super) fn new(snapshot: &FleetSnapshot, scope: &PolicyScope, role: Role) -> Self {
        let policy = snapshot.policies.get(scope);
        let steps = policy.and_then(|policy| {
            let view = policy.rollout.as_ref()?;
            Some(Steps {
                revision: policy.revision.0,
                base: view.base.0,
                stages: stages(view),
                present: share_words(view.share),
                last: view.stage >= view.stages.len(),
                by: view.actor.name.clone(),
                via: view.actor.via.as_str(),
                since: Time::near(view.since, snapshot.at),
                next: Time::near(view.next_at, snapshot.at),
                holding: view.agents_holding,
                share: view.agents_in,
                agents: view.agents,
                calls: view.calls,
                words: view.words.clone(),
                figures: view
                    .guard
                    .iter()
                    .map(|figure| Row {
                        route: figure.route.operation.to_string(),
                        what: figure.what.clone(),
                        unit: figure.unit.clone(),
                        new: Figure::number(figure.new, "too few calls"),
                        old: Figure::number(figure.old, "too few calls"),
                    })
                    .collect(),
            })
        });
        Self {
            steps,
            address: policy_address(scope),
            can_take_back: role >= Role::Operator,
            can_go_on: role >= Role::Editor,
        }
    }

    /// The same, of this one.
    pub(super) fn share_now(&self) -> Option<&str> {
        self.steps.as_ref().map(|it| it.present.as_str())
    }

    /// The share that has the new policy, as `5 %`.
    pub(super) fn share(snapshot: &FleetSnapshot, scope: &PolicyScope) -> Option<String> {
        let view = snapshot.policies.get(scope)?.rollout.as_ref()?;
        Some(share_words(view.share))
    }
}

/// As it was planned: `5 %`, `12.5 %`.
fn share_words(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

fn stages(view: &RolloutView) -> Vec<(String, &'static str)> {
    let place = |number: usize| match number.cmp(&view.stage) {
        std::cmp::Ordering::Less => "over",
        std::cmp::Ordering::Equal => "now",
        std::cmp::Ordering::Greater => "to come",
    };
    let each = view.stages.iter().enumerate();
    each.map(|(i, share)| (share_words(*share), place(i + 1)))
        .collect()
}

#[derive(Debug, Deserialize)]
pub(crate) struct StepForm {
    /// `back`, or `on`.
    #[serde(default)]
    step: String,
    /// The revision that is rolled out.
    #[serde(default)]
    expected: String,
    #[serde(default)]
    reason: String,
}

/// POST /policies/{scope}/rollout
pub(crate) async fn step<B: Backend>(
    State(app): State<App<B>>,
    Extension(viewer): Extension<Viewer>,
    Path(scope): Path<String>,
    Form(form): Form<StepForm>,
) -> Response {
    let scope = match scope_of(&scope) {
        Ok(name) => name,
        Err(response) => return *response,
    };
    // What is not clearly on is back: the safe side.
    let step = match form.step.as_str() {
        "on" => RolloutStep::On,
        _ => RolloutStep::Back,
    };
    let expected = form.expected.trim().parse().ok();
    let stepped = app
        .backend
        .step_rollout(
            &viewer.operator,
            scope.clone(),
            expected.map(Revision),
            step,
            form.reason.trim(),
        )
        .await;
    match stepped {
        Ok(_) => Redirect::to(&policy_address(&scope)).into_response(),
        Err(problem) => {
            let parts = untouched(&app, &scope).await;
            refused(&app, &viewer, scope, parts, &problem).await
        }
    }
}
