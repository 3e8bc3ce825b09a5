//! E-mail, to a real mail server.

use std::time::Duration;

use hedgerow_control_plane::alerts::Delivering;
use hedgerow_control_plane::config::{MailSettings, MailTls, ReceiverKind};
use hedgerow_core::effect::AlertState;
use hedgerow_protocol::ids::RouteKey;
use serde_json::Value;
use tempfile::TempDir;

use super::kinds::{PASSWORD, email, made, made_with, mail};
use super::program::Mailbox;
use super::{Post, brisk, firing, hostile, resolved};
use crate::logged::Log;
use crate::standing::eventually;

/// Patient: a process in Python answers.
fn settings() -> Delivering {
    let mut settings = brisk();
    settings.timeout = Duration::from_secs(10);
    settings
}

async fn post(kind: ReceiverKind) -> Post {
    let mut post = Post::new(Vec::new()).await;
    post.restart(settings(), vec![made("mail", kind)]).await;
    post
}

fn header<'a>(letter: &'a Value, name: &str) -> &'a str {
    letter["headers"][name].as_str().unwrap_or_default()
}

async fn first_error(post: &Post) -> String {
    eventually("it was tried", async || {
        post.deliveries().await[0].last_error.is_some()
    })
    .await;
    post.deliveries().await[0].last_error.clone().unwrap()
}

#[tokio::test]
async fn p15_b79_mail_comes_once_for_each_beginning_and_end_also_over_a_restart() {
    let mailbox = Mailbox::start(&["plain"]);
    let mut post = post(email(mailbox.port)).await;
    for (episode, before) in [("e1", 0), ("e2", 2)] {
        let alert = firing(episode);
        post.write(alert.clone(), &["mail"]).await;
        post.until_done().await;
        mailbox.exactly(before + 1).await;
        post.restart(settings(), vec![made("mail", email(mailbox.port))])
            .await;
        post.write(resolved(&alert), &["mail"]).await;
        post.until_done().await;
    }
    let letters = mailbox.exactly(4).await;
    for letter in &letters {
        assert_eq!(letter["from"], "hedgerow@example.com");
        let to: Vec<_> = letter["to"].as_array().unwrap().iter().collect();
        assert_eq!(to, ["ada@example.org", "bob@example.net"]);
        assert_eq!(header(letter, "auto-submitted"), "auto-generated");
        assert!(!header(letter, "date").is_empty());
        for part in ["text", "html"] {
            let part = letter[part].as_str().unwrap();
            assert!(
                part.contains("9 of 10 replicas are slow together"),
                "{part}"
            );
        }
    }
    for pair in letters.chunks(2) {
        let [begun, ended] = pair else { unreachable!() };
        assert_eq!(
            header(begun, "subject"),
            "[firing] SharedSlowdown: catalog get"
        );
        assert_eq!(
            header(ended, "subject"),
            "[resolved] SharedSlowdown: catalog get"
        );
        let thread = header(begun, "message-id");
        assert!(thread.ends_with("@example.com>"), "{thread}");
        assert_eq!(header(ended, "references"), thread);
        assert_eq!(header(ended, "in-reply-to"), thread);
        assert_ne!(header(ended, "message-id"), thread);
    }
    assert_ne!(
        header(&letters[0], "message-id"),
        header(&letters[2], "message-id")
    );
    post.stop().await;
}

#[tokio::test]
async fn p15_what_is_due_of_a_dependency_is_one_mail_and_its_end_is_in_its_thread() {
    let mailbox = Mailbox::start(&["plain"]);
    let mut post = post(email(mailbox.port)).await;
    let elsewhere = AlertState {
        route: RouteKey::new("cart", "add").unwrap(),
        ..firing("e3")
    };
    // Of one subject they would wait for each other.
    let named = AlertState {
        replica: Some("10.0.0.7:8080".into()),
        ..firing("e1")
    };
    post.write_all(&[named, firing("e2"), elsewhere], &["mail"])
        .await;
    post.until_done().await;
    post.write(resolved(&firing("e2")), &["mail"]).await;
    post.until_done().await;
    let letters = mailbox.exactly(3).await;
    let find = |subject: &str| {
        let found = letters.iter().find(|it| header(it, "subject") == subject);
        found.unwrap_or_else(|| panic!("{subject} in {letters:#?}"))
    };
    find("[firing] SharedSlowdown: cart add");
    let both = find("[firing] 2 alerts: catalog");
    let end = find("[resolved] SharedSlowdown: catalog get");
    assert!(header(both, "references").contains(header(end, "references")));
    assert_eq!(both["text"].as_str().unwrap().matches("Since ").count(), 2);
    assert!(end["text"].as_str().unwrap().contains(": 40 s"));
    assert_eq!(
        post.deliveries().await.len(),
        4,
        "each is counted by itself"
    );
    post.stop().await;
}

/// Certificate and key of `localhost` in files, and the certificate.
pub(crate) fn certificate(folder: &TempDir) -> (String, String, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    (text(certificate), text(key), made.cert.pem().into_bytes())
}

fn with_login(port: u16, tls: MailTls, password: &str) -> ReceiverKind {
    ReceiverKind::Email(MailSettings {
        tls,
        login: Some(("hedgerow".into(), password.into())),
        ..mail(port)
    })
}

#[tokio::test]
async fn s09_mail_goes_encrypted_with_a_password_to_a_server_that_proves_who_it_is() {
    let folder = TempDir::new().unwrap();
    let (certificate, key, pem) = certificate(&folder);
    for (mode, tls) in [("starttls", MailTls::StartTls), ("tls", MailTls::Tls)] {
        let mailbox = Mailbox::start(&[mode, &certificate, &key, "hedgerow", PASSWORD]);
        let log = Log::default();
        let _guard = log.capture();
        let kind = |password| with_login(mailbox.port, tls, password);
        let known = made_with("known", kind(PASSWORD), true, Some(pem.clone()));
        let stranger = made_with("stranger", kind(PASSWORD), true, None);
        let wrong = made_with("wrong", kind("canary-wrong"), true, Some(pem.clone()));
        let names = ["known", "stranger", "wrong"];
        assert!(!format!("{known:?}{wrong:?}").contains("canary"));
        let mut post = Post::new(Vec::new()).await;
        post.restart(settings(), vec![known, stranger, wrong]).await;
        post.write(firing("e1"), &names).await;
        let letters = mailbox.exactly(1).await;
        assert_eq!(letters[0]["tls"], true, "{mode}");
        assert_eq!(letters[0]["login"], "hedgerow", "{mode}");
        eventually("all were tried", async || {
            let all = post.deliveries().await;
            all.iter()
                .all(|it| it.state == "delivered" || it.last_error.is_some())
        })
        .await;
        let errors: Vec<_> = post
            .deliveries()
            .await
            .into_iter()
            .map(|it| it.last_error.unwrap_or_default())
            .collect();
        assert_eq!(errors[0], "");
        assert!(errors[1].contains("certificate"), "{mode}: {}", errors[1]);
        assert_eq!(errors[2], "answered 535", "{mode}");
        let said = format!("{errors:?}{}", log.text());
        assert!(!said.contains("canary"), "{said}");
        post.stop().await;
    }
}

#[tokio::test]
async fn s09_a_server_without_starttls_is_told_nothing() {
    let mailbox = Mailbox::start(&["plain"]);
    let post = post(with_login(mailbox.port, MailTls::StartTls, PASSWORD)).await;
    post.write(firing("e1"), &["mail"]).await;
    let error = first_error(&post).await;
    assert!(error.contains("STARTTLS"), "{error}");
    assert!(mailbox.letters().is_empty());
}

#[tokio::test]
async fn p15_a_recipient_who_is_refused_keeps_no_other_from_the_mail() {
    let mailbox = Mailbox::start(&["plain"]);
    let to = |names: &[&str]| {
        let to = names.iter().map(|it| format!("{it}@example.org")).collect();
        ReceiverKind::Email(MailSettings {
            to,
            ..mail(mailbox.port)
        })
    };
    let mut post = Post::new(Vec::new()).await;
    let receivers = vec![
        made("some", to(&["gone", "ada"])),
        made("none", to(&["gone", "gone2"])),
        made("later", to(&["ada", "later"])),
    ];
    post.restart(settings(), receivers).await;
    post.write(firing("e1"), &["some", "none", "later"]).await;
    eventually("all were tried", async || {
        let all = post.deliveries().await;
        all.iter()
            .all(|it| it.state == "delivered" || it.last_error.is_some())
    })
    .await;
    let letters = mailbox.exactly(1).await;
    assert_eq!(letters[0]["to"], serde_json::json!(["ada@example.org"]));
    let errors: Vec<_> = post
        .deliveries()
        .await
        .into_iter()
        .map(|it| it.last_error)
        .collect();
    let answered = |code: u16| Some(format!("answered {code}"));
    assert_eq!(errors, [None, answered(550), answered(450)]);
    post.stop().await;
}

#[tokio::test]
async fn s08_mail_shows_hostile_text_as_text() {
    let mailbox = Mailbox::start(&["plain"]);
    let post = post(email(mailbox.port)).await;
    for (i, text) in hostile().into_iter().enumerate() {
        let alert = AlertState {
            replica: Some(text.clone()),
            summary: text,
            ..firing(&format!("e{i}"))
        };
        post.write(alert, &["mail"]).await;
        post.until_done().await;
    }
    let letters = mailbox.exactly(hostile().len()).await;
    for (letter, hostile) in letters.iter().zip(hostile()) {
        assert_eq!(
            letter["to"].as_array().unwrap().len(),
            2,
            "nobody was added"
        );
        assert!(letter["longest_line"].as_u64().unwrap() <= 998);
        let (text, html) = (
            letter["text"].as_str().unwrap(),
            letter["html"].as_str().unwrap(),
        );
        for part in [text, html] {
            assert!(!part.contains(['\u{202E}', '\u{2067}']), "{part}");
        }
        assert!(!html.contains("<img"), "{html}");
        if hostile.contains("<img") {
            assert!(text.contains("<img src=x onerror=alert(1)>"), "{text}");
            assert!(
                html.contains("&lt;img src=x onerror=alert(1)&gt;"),
                "{html}"
            );
        }
        if hostile.len() >= 10_000 {
            assert!(text.contains(&hostile), "all of it");
        }
    }
}
