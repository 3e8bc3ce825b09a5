//! What became of a call, on the span of whoever made it.
//!
//! Only of calls that have something to tell: they crossed, were hedged, or their primary failed. A
//! plain call pays for one empty word, one that nobody traces for no more than that.
//!
//! The span is the caller's current one when there is first something to tell, and is told when the
//! call ends, also where its caller gives it up. Fields that the span declared are recorded. With the
//! feature `tracing-opentelemetry` those that it did not declare become attributes of the
//! OpenTelemetry span.
//!
//! Attempts get no spans here: the service's client makes one for each request already, below the
//! call's, and a second one would say the same again. What tells a hedge's from a primary's is in the
//! [`Attempt`](crate::Attempt), for that client to put there.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::report::Refusal;
use tracing::Span;

use super::families::attribute;
use crate::attempt::AttemptKind;
use crate::pool::Replica;
use crate::route::RouteState;

/// What there is to tell of one call. Dropped, it is told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// None as long as there is nothing to tell, or nobody to tell it to.
    story: Option<Box<Story>>,
}

#[derive(Debug)]
struct Story {
    span: Span,
    route: RouteKey,
    primary: Option<Arc<Replica>>,
    hedges: Vec<Arc<Replica>>,
    /// The threshold in force when it crossed.
    crossed: Option<Duration>,
    refused: Option<Refusal>,
    winner: Option<AttemptKind>,
}

impl Told {
    /// Unanswered at the threshold. Twice is once.
    pub(crate) fn crossed(&mut self, route: &RouteState, primary: &Arc<Replica>) {
        if let Some(story) = self.begin(route, Some(primary)) {
            story.crossed = story.crossed.or_else(|| route.gate.threshold());
        }
    }

    /// No hedge, or no further one.
    pub(crate) fn refused(&mut self, reason: Refusal) {
        if let Some(story) = &mut self.story {
            story.refused = Some(reason);
        }
    }

    /// A hedge was sent.
    pub(crate) fn hedged(&mut self, to: &Arc<Replica>) {
        if let Some(story) = &mut self.story {
            story.hedges.push(to.clone());
        }
    }

    /// The primary failed, or the call ended without an answer.
    pub(crate) fn failed(&mut self, route: &RouteState, primary: Option<&Arc<Replica>>) {
        self.begin(route, primary);
    }

    /// Whose answer the call's is.
    pub(crate) fn won(&mut self, winner: AttemptKind) {
        if let Some(story) = &mut self.story {
            story.winner = Some(winner);
        }
    }

    fn begin(&mut self, route: &RouteState, primary: Option<&Arc<Replica>>) -> Option<&mut Story> {
        if self.story.is_none() {
            let span = Span::current();
            if span.is_disabled() {
                return None;
            }
            self.story = Some(Box::new(Story {
                span,
                route: route.key.clone(),
                primary: None,
                hedges: Vec::new(),
                crossed: None,
                refused: None,
                winner: None,
            }));
        }
        let story = self.story.as_deref_mut()?;
        if story.primary.is_none() {
            story.primary = primary.cloned();
        }
        Some(story)
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(story) = self.story.take() {
            tell(*story);
        }
    }
}

fn tell(mut story: Story) {
    let span = mem::replace(&mut story.span, Span::none());
    let attempts = i64::try_from(1 + story.hedges.len()).unwrap_or(i64::MAX);
    let sent = story.primary.iter().chain(&story.hedges);
    let replicas: Vec<_> = sent.map(|replica| replica.name.as_str()).collect();
    let text = |text: &str| Some(Figure::Text(text.to_owned()));
    for (name, figure) in [
        (attribute::DEPENDENCY, text(story.route.dependency.as_str())),
        (attribute::OPERATION, text(story.route.operation.as_str())),
        (
            attribute::CROSSED,
            Some(Figure::Flag(story.crossed.is_some())),
        ),
        (attribute::ATTEMPTS, Some(Figure::Count(attempts))),
        (
            attribute::WINNER,
            story.winner.and_then(|winner| text(winner.as_str())),
        ),
        (
            attribute::REFUSED,
            story.refused.and_then(|reason| text(reason.as_str())),
        ),
        (
            attribute::THRESHOLD_MS,
            story.crossed.map(|d| Figure::Level(d.as_secs_f64() * 1e3)),
        ),
        // No name may have a comma.
        (attribute::REPLICAS, text(&replicas.join(","))),
    ] {
        if let Some(figure) = figure {
            set(&span, name, figure);
        }
    }
}

enum Figure {
    Text(String),
    Flag(bool),
    Count(i64),
    Level(f64),
}

fn set(span: &Span, name: &'static str, figure: Figure) {
    if !span.has_field(name) {
        return undeclared(span, name, figure);
    }
    match figure {
        Figure::Text(text) => span.record(name, text.as_str()),
        Figure::Flag(flag) => span.record(name, flag),
        Figure::Count(count) => span.record(name, count),
        Figure::Level(level) => span.record(name, level),
    };
}

#[cfg(feature = "tracing-opentelemetry")]
fn undeclared(span: &Span, name: &'static str, figure: Figure) {
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    match figure {
        Figure::Text(text) => span.set_attribute(name, text),
        Figure::Flag(flag) => span.set_attribute(name, flag),
        Figure::Count(count) => span.set_attribute(name, count),
        Figure::Level(level) => span.set_attribute(name, level),
    }
}

/// A span takes no fields that it did not declare.
#[cfg(not(feature = "tracing-opentelemetry"))]
fn undeclared(_: &Span, _: &'static str, _: Figure) {}
