//! What is written: headers, text and HTML.
//!
//! The message of an episode's beginning has an identity made of the episode, and that of its end
//! refers to it, so that readers show them as one thread. A message about several refers to all of
//! theirs.

use std::time::{Duration, UNIX_EPOCH};

use lettre::Message as Mail;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};

use crate::alerts::attempt::AttemptError;
use crate::alerts::notice::{Message, Notice, identity, timestamp};
use crate::alerts::plain::{as_is, plain};

/// Longest name in the subject, in characters.
const SUBJECT_CHARS_MAX: usize = 100;
/// Longest text, in characters: whatever is in it can be read, and the message stays small.
const TEXT_CHARS_MAX: usize = 20_000;

/// A letter, ready to be handed in.
#[derive(Debug)]
pub(super) struct Letter {
    /// Headers and body.
    pub(super) text: Vec<u8>,
}

/// Writes it.
pub(super) fn write(
    message: &Message,
    from: &Mailbox,
    to: &[Mailbox],
) -> Result<Letter, AttemptError> {
    let domain = from.email.domain();
    let now = UNIX_EPOCH + Duration::from_millis(message.now.as_millis());
    let mut builder = Mail::builder()
        .from(from.clone())
        .date(now)
        .subject(subject(message))
        .message_id(Some(message_id(message, domain)));
    for mailbox in to {
        builder = builder.to(mailbox.clone());
    }
    let references = references(message, domain);
    if !references.is_empty() {
        builder = builder.references(references.join(" "));
        if message.resolved {
            builder = builder.in_reply_to(references[0].clone());
        }
    }
    let parts = MultiPart::alternative_plain_html(text(message), html(message));
    let mut mail = builder
        .multipart(parts)
        .map_err(|error| AttemptError::Unwritable(error.to_string()))?;
    // Nobody's holiday is to answer it.
    let name = HeaderName::new_from_ascii_str("Auto-Submitted");
    let value = HeaderValue::new(name, "auto-generated".into());
    mail.headers_mut().insert_raw(value);
    Ok(Letter {
        text: mail.formatted(),
    })
}

/// The beginning of an episode's thread.
fn root(notice: &Notice, message: &Message, domain: &str) -> String {
    let id = identity(&[&notice.episode, "firing", &message.receiver]);
    format!("<{id}@{domain}>")
}

/// The same for every attempt at the same message; another where anything else is in it, since mail
/// servers keep only one message of an identity.
fn message_id(message: &Message, domain: &str) -> String {
    match message.notices.as_slice() {
        [only] if !message.resolved => root(only, message, domain),
        notices => {
            let kind = if message.resolved {
                "resolved"
            } else {
                "firing"
            };
            let mut parts = vec![kind, message.receiver.as_str()];
            parts.extend(notices.iter().map(|it| it.episode.as_str()));
            format!("<{}@{domain}>", identity(&parts))
        }
    }
}

fn references(message: &Message, domain: &str) -> Vec<String> {
    if message.notices.len() == 1 && !message.resolved {
        return Vec::new();
    }
    let roots = message.notices.iter();
    roots.map(|it| root(it, message, domain)).collect()
}

fn state(message: &Message) -> &'static str {
    match (message.test, message.resolved) {
        (true, _) => "test",
        (_, false) => "firing",
        (_, true) => "resolved",
    }
}

fn subject(message: &Message) -> String {
    let name = |text: &str| plain(text, SUBJECT_CHARS_MAX, as_is);
    let state = state(message);
    match message.notices.as_slice() {
        [only] => format!(
            "[{state}] {}: {} {}",
            only.rule,
            name(only.route.dependency.as_str()),
            name(only.route.operation.as_str())
        ),
        several => {
            let first = several.first();
            let dependency = first.map_or("", |it| it.route.dependency.as_str());
            format!("[{state}] {} alerts: {}", several.len(), name(dependency))
        }
    }
}

/// The lines of a notice: what, in words, when, and where to look.
fn lines(notice: &Notice, write: impl Fn(char, &mut String) + Copy) -> [String; 3] {
    let text = |text: &str| plain(text, TEXT_CHARS_MAX, write);
    let replica = notice.replica.as_deref();
    let replica = replica.map_or_else(String::new, |it| format!(", replica {}", text(it)));
    let what = format!(
        "{}: {} {}{replica}",
        notice.rule,
        text(notice.route.dependency.as_str()),
        text(notice.route.operation.as_str())
    );
    let date = |at| timestamp(at).strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let since = date(notice.since);
    let when = match (notice.ended, notice.lasted()) {
        (Some(ended), Some(lasted)) => {
            format!(
                "Since {since}, until {}: {} s",
                date(ended),
                lasted.as_secs()
            )
        }
        _ => format!("Since {since}"),
    };
    [what, text(&notice.summary), when]
}

fn text(message: &Message) -> String {
    let about = |notice: &Notice| {
        let link = notice.link.as_deref().map(str::to_owned);
        let lines: Vec<_> = lines(notice, as_is).into_iter().chain(link).collect();
        format!("{}\n\n", lines.join("\n"))
    };
    let notices: String = message.notices.iter().map(about).collect();
    let receiver = &message.receiver;
    format!("{notices}Sent by Hedgerow to its receiver {receiver}.\n")
}

fn html(message: &Message) -> String {
    let about = |notice: &Notice| {
        let [what, summary, when] = lines(notice, escape);
        let link = notice.link.as_deref().map_or_else(String::new, |link| {
            let link = plain(link, TEXT_CHARS_MAX, escape);
            format!("<br>\n<a href=\"{link}\">Open in Hedgerow</a>")
        });
        format!("<p><strong>{what}</strong><br>\n{summary}<br>\n{when}{link}</p>\n")
    };
    let notices: String = message.notices.iter().map(about).collect();
    let receiver = plain(&message.receiver, TEXT_CHARS_MAX, escape);
    format!(
        "<!doctype html>\n<html><body>\n{notices}<p>Sent by Hedgerow to its receiver {receiver}.</p>\n</body></html>\n"
    )
}

fn escape(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        other => out.push(other),
    }
}
