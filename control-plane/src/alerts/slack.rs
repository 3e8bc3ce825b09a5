//! A Slack incoming webhook: one message for what is due of a dependency.
//!
//! Foreign text is escaped as mrkdwn demands (`&`, `<`, `>`), and stands in code where a mark of
//! formatting is in it: there Slack formats nothing, and backticks, which would end it, are replaced.

use serde_json::{Value, json};

use super::attempt::{AttemptError, Taken};
use super::endpoint::Endpoint;
use super::notice::{Message, Notice, timestamp};
use super::plain::plain;

/// Longest name, in characters as written. A block's text has 3,000, and there are three names and
/// a summary in it.
const NAME_CHARS_MAX: usize = 300;
/// Longest summary, likewise.
const SUMMARY_CHARS_MAX: usize = 1_500;
/// Longest link, likewise; a longer one is left out.
const LINK_CHARS_MAX: usize = 500;

/// A channel of Slack, or of what understands the same.
#[derive(Debug, Clone)]
pub(super) struct Slack {
    endpoint: Endpoint,
}

impl Slack {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    pub(super) fn host(&self) -> &str {
        self.endpoint.host()
    }

    /// Tries once.
    pub(super) async fn attempt(&self, message: &Message) -> Result<Taken, AttemptError> {
        self.endpoint.post_json(&body(message), message).await
    }
}

fn body(message: &Message) -> Value {
    let heading = heading(message);
    let blocks = std::iter::once(section(&format!("*{heading}*")))
        .chain(message.notices.iter().map(|it| section(&about(it))))
        .collect::<Vec<_>>();
    // Without blocks, as in a notification on a telephone.
    json!({ "text": heading, "blocks": blocks })
}

fn section(text: &str) -> Value {
    // `verbatim`: names such as #general or addresses are not made into links.
    let text = json!({ "type": "mrkdwn", "text": text, "verbatim": true });
    json!({ "type": "section", "text": text })
}

fn heading(message: &Message) -> String {
    let state = match (message.test, message.resolved) {
        (true, _) => "Test",
        (_, false) => "Firing",
        (_, true) => "Resolved",
    };
    let dependency = message
        .notices
        .first()
        .map_or("", |it| it.route.dependency.as_str());
    let dependency = code(dependency, NAME_CHARS_MAX);
    let [only] = message.notices.as_slice() else {
        return format!("{state}: {} alerts, {dependency}", message.notices.len());
    };
    format!("{state}: {}, {dependency}", only.rule)
}

fn about(notice: &Notice) -> String {
    let replica = notice.replica.as_deref();
    let replica = replica.map_or_else(String::new, |it| {
        format!(", replica {}", code(it, NAME_CHARS_MAX))
    });
    let operation = code(notice.route.operation.as_str(), NAME_CHARS_MAX);
    let mut lines = vec![format!("{} {operation}{replica}", notice.rule)];
    lines.push(words(&notice.summary, SUMMARY_CHARS_MAX));
    let since = timestamp(notice.since).strftime("%Y-%m-%d %H:%M:%S UTC");
    lines.push(match notice.lasted() {
        None => format!("since {since}"),
        Some(lasted) => format!("since {since}, for {} s", lasted.as_secs()),
    });
    if let Some(link) = &notice.link {
        // An address from `Url` has none of `<`, `>`, `|` and spaces.
        let link = plain(link, LINK_CHARS_MAX, escape);
        if !link.ends_with('…') {
            lines.push(format!("<{link}|Open in Hedgerow>"));
        }
    }
    lines.join("\n")
}

fn escape(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        other => out.push(other),
    }
}

/// As code, in which nothing is formatted.
fn code(text: &str, most: usize) -> String {
    let inner = plain(text, most, |c, out| match c {
        '`' => out.push('\u{2CB}'),
        other => escape(other, out),
    });
    format!("`{inner}`")
}

/// As words; as code where a mark of formatting is among them.
fn words(text: &str, most: usize) -> String {
    if text.contains(['*', '_', '~', '`']) {
        code(text, most)
    } else {
        plain(text, most, escape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s08_foreign_text_cannot_format_link_or_call_anybody() {
        for (text, expected) in [
            ("9 of 10 are slow", "9 of 10 are slow"),
            ("<!channel> & <@U1>", "&lt;!channel&gt; &amp; &lt;@U1&gt;"),
            ("*bold* `code`", "`*bold* \u{2CB}code\u{2CB}`"),
            ("r\u{202E}1", "r\\u{202e}1"),
        ] {
            assert_eq!(words(text, 100), expected);
        }
        assert_eq!(code("a`b", 100), "`a\u{2CB}b`");
    }
}
