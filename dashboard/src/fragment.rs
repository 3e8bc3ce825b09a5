//! Parts of pages: which of them a request wants, and how they travel to an open page.

use std::convert::Infallible;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// Whether htmx asks for a part of the page only. Answers that depend on it say so by `Vary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partial(pub(crate) bool);

impl<S: Send + Sync> FromRequestParts<S> for Partial {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let is = |name: &str, value: &str| parts.headers.get(name).is_some_and(|v| v == value);
        // Going back in the history asks for the whole page too.
        Ok(Self(
            is("hx-request", "true") && !is("hx-history-restore-request", "true"),
        ))
    }
}

/// A rendered template as an answer.
pub(crate) fn html(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(body) => {
            let mut response = (status, Html(body)).into_response();
            response
                .headers_mut()
                .insert(header::VARY, HeaderValue::from_static("HX-Request"));
            response
        }
        Err(error) => {
            tracing::error!(error = %error, "page could not be rendered");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the page could not be rendered",
            )
                .into_response()
        }
    }
}

/// A part of an open page that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The element's id.
    pub(crate) id: String,
    /// Whether `html` is the element itself (a table's row) or what is in it.
    pub(crate) outer: bool,
    /// The new content.
    pub(crate) html: String,
    /// Whether it has to be sent.
    pub(crate) when: When,
    /// Put in place whole, not morphed: for what is long, wholly new each time, and holds nothing that
    /// a person could have touched.
    pub(crate) whole: bool,
}

/// Whether a part has to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Where it differs from what was sent last.
    Changed,
    /// In any case: whoever made it has seen to that.
    Always,
}

impl Fragment {
    /// What is in the element `id`.
    pub(crate) fn inner(id: impl Into<String>, template: &impl Template) -> Self {
        Self {
            id: id.into(),
            outer: false,
            html: render(template),
            when: When::Changed,
            whole: false,
        }
    }

    /// What is in the element `id`, rendered already.
    pub(crate) fn inner_html(id: impl Into<String>, html: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            outer: false,
            html: html.into(),
            when: When::Changed,
            whole: false,
        }
    }

    /// What is in the element `id`, put in place whole.
    pub(crate) fn whole(id: impl Into<String>, template: &impl Template) -> Self {
        Self {
            whole: true,
            ..Self::inner(id, template)
        }
    }

    /// The element `id` itself, rendered already.
    pub(crate) fn outer_html(id: impl Into<String>, html: impl Into<String>) -> Self {
        Self {
            outer: true,
            ..Self::inner_html(id, html)
        }
    }

    /// The same, sent when `when` says.
    pub(crate) fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// As htmx takes it from the event stream. Morphing keeps focus, typed text and scroll.
    pub(crate) fn write(&self, out: &mut String) {
        out.push_str("<hx-partial hx-target=\"#");
        out.push_str(&self.id);
        out.push_str(match (self.whole, self.outer) {
            (true, _) => "\" hx-swap=\"innerHTML\">",
            (false, true) => "\" hx-swap=\"outerMorph\">",
            (false, false) => "\" hx-swap=\"innerMorph\">",
        });
        out.push_str(&self.html);
        out.push_str("</hx-partial>\n");
    }
}

/// Templates here write to a string and call nothing that fails.
fn render(template: &impl Template) -> String {
    template.render().unwrap_or_else(|error| {
        tracing::error!(error = %error, "fragment could not be rendered");
        String::new()
    })
}
