//! Against a real provider.

use hedgerow_control_plane::auth;
use hedgerow_dashboard::backend::{RecordQuery, Role};
use serde_json::{Value, json};

use super::browser::{Browser, controller, field, refused, signed_in};
use super::python::{Provider, with};
use crate::running::Running;

fn ada(role: &str) -> Value {
    json!({"preferred_username": "ada", "roles": ["staff", role]})
}

async fn record(running: &Running) -> Vec<String> {
    let query = RecordQuery {
        limit: 100,
        ..RecordQuery::default()
    };
    let lines = running.app.store().record(&query).await.unwrap();
    let mut told: Vec<_> = lines
        .into_iter()
        .filter(|(_, row)| row.target != "admin")
        .map(|(_, row)| {
            let who = format!("{} {}", row.actor.name, row.actor.via.as_str());
            let change = format!("{} -> {}", row.before, row.after);
            format!(
                "{who}: {} {} {change} ({})",
                row.action, row.target, row.reason
            )
        })
        .collect();
    told.reverse();
    told
}

#[tokio::test]
async fn s11_a_person_of_the_provider_comes_in_with_the_role_their_claims_are_worth_each_time() {
    let provider = Provider::start(&[]).await;
    let running = controller(&provider.issuer(), "").await;
    let mut browser = Browser::at(&running);
    let page = browser
        .get("/login?next=/agents")
        .await
        .text()
        .await
        .unwrap();
    assert!(
        page.contains("href=\"/login/sso?next=%2Fagents\""),
        "{page}"
    );

    provider.person("u-1", &ada("sre")).await;
    let address = browser.begin("%2Fagents%3Fq%3Dcart").await;
    assert_eq!(field(&address, "response_type"), "code");
    assert_eq!(field(&address, "code_challenge_method"), "S256");
    assert_eq!(
        field(&address, "redirect_uri"),
        format!("{}/login/sso/back", browser.base)
    );
    let (code, state) = provider.agree(&address, "u-1").await;
    let (first, leads_to) = signed_in(&browser.back(&code, &state).await);
    assert_eq!(leads_to, "/agents?q=cart");
    let page = browser.page("/", &first).await.text().await.unwrap();
    assert!(page.contains("ada") && page.contains("operator"), "{page}");

    provider.person("u-1", &ada("lead")).await;
    let (code, state) = provider.agree(&browser.begin("/").await, "u-1").await;
    let (second, _) = signed_in(&browser.back(&code, &state).await);
    for session in [&first, &second] {
        let access = browser.page("/access", session).await;
        assert_eq!(
            access.status(),
            200,
            "an administrator now, wherever signed in"
        );
    }
    // Whoever has no role any more is out, everywhere.
    provider.person("u-1", &ada("retired")).await;
    let (code, state) = provider.agree(&browser.begin("/").await, "u-1").await;
    let words = refused(browser.back(&code, &state).await, 403).await;
    assert!(words.contains("ada may not sign in here"), "{words}");
    for session in [&first, &second] {
        assert_eq!(browser.page("/", session).await.status(), 303);
    }
    let how = "(by single sign-on, Example)";
    assert_eq!(
        record(&running).await,
        [
            format!("ada page: operator.add ada  -> operator {how}"),
            format!("ada page: session.begin ada  -> operator {how}"),
            format!("ada page: operator.role ada operator -> administrator {how}"),
            format!("ada page: session.begin ada  -> administrator {how}"),
            format!("ada page: session.end ada 2 sessions ->  {how}"),
        ]
    );
    running.app.stop().await;
}

#[tokio::test]
async fn s11_what_comes_back_is_taken_once_by_the_browser_it_was_begun_in_and_with_its_nonce() {
    let provider = Provider::start(&[]).await;
    let running = controller(&provider.issuer(), "").await;
    provider.person("u-1", &ada("sre")).await;
    let mut browser = Browser::at(&running);

    let address = browser.begin("/").await;
    let (code, state) = provider.agree(&address, "u-1").await;
    let stranger = Browser::at(&running);
    let words = refused(stranger.back(&code, &state).await, 401).await;
    assert!(words.contains("not begun in this browser"), "{words}");
    let words = refused(browser.back(&code, "another-state").await, 401).await;
    assert!(words.contains("not begun in this browser"), "{words}");
    signed_in(&browser.back(&code, &state).await);
    let again = refused(browser.back(&code, &state).await, 401).await;
    assert!(again.contains("used already"), "{again}");

    let address = browser.begin("/").await;
    let (code, state) = provider
        .agree(&with(&address, "nonce", "another"), "u-1")
        .await;
    let words = refused(browser.back(&code, &state).await, 502).await;
    assert!(words.contains("of another sign-in (nonce)"), "{words}");

    // A code that was given out for another client is no good to us.
    let address = browser.begin("/").await;
    let (code, state) = provider
        .agree(&with(&address, "client_id", "another"), "u-1")
        .await;
    let words = refused(browser.back(&code, &state).await, 502).await;
    assert!(words.contains("token endpoint answered 400"), "{words}");

    let address = browser.begin("/").await;
    provider.answer(&address, "action=deny").await;
    let denied = browser
        .get("/login/sso/back?error=access_denied&error_description=%3Cb%3E")
        .await;
    let words = refused(denied, 502).await;
    assert!(
        words.contains("did not let you in") && !words.contains("<b>"),
        "{words}"
    );
    assert_eq!(record(&running).await.len(), 2, "one account, one session");
    running.app.stop().await;
}

#[tokio::test]
async fn s11_a_token_that_has_expired_is_refused() {
    let provider = Provider::start(&["--token-max-age", "-120"]).await;
    let running = controller(&provider.issuer(), "").await;
    provider.person("u-1", &ada("sre")).await;
    let mut browser = Browser::at(&running);
    let (code, state) = provider.agree(&browser.begin("/").await, "u-1").await;
    let words = refused(browser.back(&code, &state).await, 502).await;
    assert!(words.contains("it has expired"), "{words}");
    running.app.stop().await;
}

#[tokio::test]
async fn a_provider_may_change_its_keys_and_may_be_away() {
    let provider = Provider::start(&[]).await;
    let running = controller(&provider.issuer(), "").await;
    let mut browser = Browser::at(&running);
    provider.person("u-1", &ada("sre")).await;
    let (code, state) = provider.agree(&browser.begin("/").await, "u-1").await;
    signed_in(&browser.back(&code, &state).await);
    let port = provider.port;
    drop(provider);

    // Its document is known: one is sent there, and cannot come back with anything good.
    let away = browser.begin("/").await;
    let words = refused(browser.back("code", &field(&away, "state")).await, 502).await;
    assert!(
        words.contains("token endpoint could not be connected to"),
        "{words}"
    );

    let provider = Provider::start_at(port, &[]).await;
    provider.person("u-1", &ada("lead")).await;
    let (code, state) = provider.agree(&browser.begin("/").await, "u-1").await;
    signed_in(&browser.back(&code, &state).await);
    running.app.stop().await;
}

#[tokio::test]
async fn s11_a_name_that_another_account_has_is_not_handed_over() {
    let provider = Provider::start(&[]).await;
    let running = controller(&provider.issuer(), "").await;
    let store = running.app.store();
    auth::add_operator(store, "ada", Role::Viewer, None)
        .await
        .unwrap();
    provider.person("u-1", &ada("lead")).await;
    provider
        .person(
            "u-2",
            &json!({"preferred_username": "<b>", "roles": "lead"}),
        )
        .await;
    let mut browser = Browser::at(&running);
    let (code, state) = provider.agree(&browser.begin("/").await, "u-1").await;
    let words = refused(browser.back(&code, &state).await, 403).await;
    assert!(
        words.contains("the name ada belongs to another account"),
        "{words}"
    );
    let (code, state) = provider.agree(&browser.begin("/").await, "u-2").await;
    let words = refused(browser.back(&code, &state).await, 502).await;
    assert!(
        words.contains("is not a name") && !words.contains("<b>"),
        "{words}"
    );

    // Of two people of the provider, one cannot take the other's name either.
    provider
        .person("u-3", &json!({"preferred_username": "bob", "roles": "sre"}))
        .await;
    let (code, state) = provider.agree(&browser.begin("/").await, "u-3").await;
    signed_in(&browser.back(&code, &state).await);
    provider
        .person(
            "u-4",
            &json!({"preferred_username": "bob", "roles": "lead"}),
        )
        .await;
    let (code, state) = provider.agree(&browser.begin("/").await, "u-4").await;
    refused(browser.back(&code, &state).await, 403).await;
    // Nor does a link or a password lead around the provider.
    let link = auth::new_login_link(store, "bob", auth::LINK_VALID).await;
    assert!(
        link.unwrap_err()
            .to_string()
            .contains("comes in by single sign-on")
    );
    let password = auth::set_password(store, "bob", "a long password".into()).await;
    assert!(
        password
            .unwrap_err()
            .to_string()
            .contains("comes in by single sign-on")
    );
    running.app.stop().await;
}
