//! Against a provider that lies, or is not what it was set up to be.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Url;
use serde_json::{Value, json};

use super::browser::{Browser, controller, field, refused, signed_in};
use super::liar::{Key, Liar};
use crate::logged::Log;

/// An ID token of a sign-in that was begun with this address.
type Token = Box<dyn Fn(&Liar, &Url) -> String>;

fn changed(mut claims: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

/// Tokens that open nothing, each with what is said of it.
fn lies(key: std::sync::Arc<Key>) -> Vec<(Token, &'static str)> {
    let now = jiff::Timestamp::now().as_second();
    let mut lies: Vec<(Token, &'static str)> = Vec::new();
    for (changes, words) in [
        (json!({"nonce": "another"}), "of another sign-in (nonce)"),
        (json!({"nonce": null}), "of another sign-in (nonce)"),
        (json!({"aud": "another"}), "for another audience"),
        (json!({"aud": ["another", "third"]}), "for another audience"),
        (json!({"azp": "another"}), "given to another party (azp)"),
        (json!({"aud": ["hedgerow", "another"]}), "for several"),
        (json!({"exp": now - 120}), "it has expired"),
        (json!({"exp": null}), "a claim it needs is missing"),
        (json!({"iat": now + 600}), "of the future"),
        (json!({"iss": "https://id.example.org"}), "another issuer"),
    ] {
        let key = key.clone();
        let token = move |liar: &Liar, address: &Url| {
            key.sign("k", &changed(liar.claims(address), &changes))
        };
        lies.push((Box::new(token), words));
    }
    let unsigned = |liar: &Liar, address: &Url| {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let claims = liar.claims(address).to_string();
        format!("{}.{}.", part(r#"{"alg":"none","kid":"k"}"#), part(&claims))
    };
    lies.push((Box::new(unsigned), "does not begin as one does"));
    let by_our_secret = |liar: &Liar, address: &Url| {
        let key = EncodingKey::from_secret(b"canary-client-secret").unwrap();
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("k".into());
        encode(&header, &liar.claims(address), &key).unwrap()
    };
    lies.push((Box::new(by_our_secret), "none of RS256, ES256 and EdDSA"));
    let stranger = Key::p256("k");
    let by_a_stranger = move |liar: &Liar, address: &Url| stranger.sign("k", &liar.claims(address));
    lies.push((Box::new(by_a_stranger), "its signature is wrong"));
    let unknown = key.clone();
    let by_an_unknown = move |liar: &Liar, address: &Url| unknown.sign("z", &liar.claims(address));
    lies.push((Box::new(by_an_unknown), "none of the provider"));
    let other = Key::ed25519("k");
    let of_another_kind = move |liar: &Liar, address: &Url| other.sign("k", &liar.claims(address));
    lies.push((Box::new(of_another_kind), "none of the provider"));
    let altered = move |liar: &Liar, address: &Url| {
        let token = key.sign("k", &liar.claims(address));
        let parts: Vec<_> = token.split('.').collect();
        let claims = changed(liar.claims(address), &json!({"roles": "lead"}));
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        format!("{}.{claims}.{}", parts[0], parts[2])
    };
    lies.push((Box::new(altered), "its signature is wrong"));
    lies.push((
        Box::new(|_, _| "canary-token".into()),
        "does not begin as one does",
    ));
    lies
}

#[tokio::test]
async fn s11_a_token_that_lies_in_anything_lets_nobody_in() {
    let liar = Liar::start().await;
    let key = std::sync::Arc::new(Key::p256("k"));
    liar.says.lock().keys = vec![json!({"kty": "new", "kid": "n"}), key.public.clone()];
    let running = controller(&liar.issuer, "").await;
    let mut browser = Browser::at(&running);
    for (token, words) in lies(key.clone()) {
        let address = browser.begin("/").await;
        liar.gives(&address, &token(&liar, &address));
        let answer = browser.back("canary-code", &field(&address, "state")).await;
        let page = refused(answer, 502).await;
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(
        liar.says.lock().keys_asked <= 3,
        "an invented key is not looked for each time"
    );
    let accounts: i64 = sqlx::query_scalar("SELECT count(*) FROM operators WHERE name = 'ada'")
        .fetch_one(running.app.store().pool())
        .await
        .unwrap();
    assert_eq!(accounts, 0);
    let address = browser.begin("/").await;
    liar.gives(&address, &key.sign("k", &liar.claims(&address)));
    signed_in(&browser.back("canary-code", &field(&address, "state")).await);
    running.app.stop().await;
}

#[tokio::test]
async fn s11_whoever_did_not_begin_a_sign_in_cannot_hand_its_code_in() {
    let liar = Liar::start().await;
    let key = Key::ed25519("k");
    liar.says.lock().keys = vec![key.public.clone()];
    let running = controller(&liar.issuer, "").await;
    let (mut victim, mut thief) = (Browser::at(&running), Browser::at(&running));
    let address = victim.begin("/").await;
    liar.gives(&address, &key.sign("k", &liar.claims(&address)));
    // The thief has the code, and a sign-in of their own: its verifier is another.
    let own = thief.begin("/").await;
    let words = refused(thief.back("canary-code", &field(&own, "state")).await, 502).await;
    assert!(words.contains("answered 400 (invalid_grant)"), "{words}");
    signed_in(&victim.back("canary-code", &field(&address, "state")).await);
    running.app.stop().await;
}

#[tokio::test]
async fn s08_a_provider_cannot_send_us_elsewhere_nor_its_people_away() {
    let liar = Liar::start().await;
    let honest = liar.says.lock().document.clone();
    let running = controller(&liar.issuer, "").await;
    let mut browser = Browser::at(&running);
    let address = browser.begin("https%3A%2F%2Fevil.example").await;
    let key = Key::p256("k");
    liar.says.lock().keys = vec![key.public.clone()];
    liar.gives(&address, &key.sign("k", &liar.claims(&address)));
    let (_, leads_to) = signed_in(&browser.back("canary-code", &field(&address, "state")).await);
    assert_eq!(leads_to, "/", "and not where the address said");
    for (answer, words) in [
        (
            (302, format!("{}/keys", liar.issuer), Vec::new()),
            "answered 302",
        ),
        (
            (200, String::new(), vec![b' '; 300_000]),
            "more than 262144 bytes",
        ),
        (
            (200, String::new(), b"{}".to_vec()),
            "did not read as expected",
        ),
        ((500, String::new(), b"canary".to_vec()), "answered 500"),
    ] {
        let address = browser.begin("/").await;
        liar.gives(&address, "");
        liar.says.lock().token = answer;
        let page = refused(
            browser.back("canary-code", &field(&address, "state")).await,
            502,
        )
        .await;
        assert!(
            page.contains(words) && !page.contains("canary"),
            "{words}: {page}"
        );
    }
    running.app.stop().await;
    for (field, value, words) in [
        ("issuer", "https://id.example.org", "of another issuer"),
        (
            "token_endpoint",
            "http://169.254.169.254/",
            "never connected to",
        ),
        ("jwks_uri", "http://127.0.0.1:25/", "expected port"),
        ("jwks_uri", "file:///etc/passwd", "expected an address"),
        (
            "authorization_endpoint",
            "javascript:alert(1)",
            "expected an address",
        ),
    ] {
        liar.says.lock().document = honest.clone();
        liar.says.lock().document[field] = value.into();
        let running = controller(&liar.issuer, "").await;
        let asked = liar.says.lock().documents_asked;
        for _ in 0..3 {
            let page = refused(Browser::at(&running).get("/login/sso").await, 502).await;
            assert!(page.contains(words), "{field}: {page}");
        }
        assert_eq!(
            liar.says.lock().documents_asked,
            asked + 1,
            "asked once for all"
        );
        running.app.stop().await;
    }
}

#[tokio::test]
async fn s11_coming_back_is_limited_by_address() {
    let liar = Liar::start().await;
    let running = controller(&liar.issuer, "").await;
    let browser = Browser::at(&running);
    let mut tries = 0;
    loop {
        match browser.back("code", "state").await.status().as_u16() {
            401 => tries += 1,
            429 => break,
            other => panic!("{other}"),
        }
        assert!(tries < 1000, "never limited");
    }
    assert!(tries >= 30, "{tries}");
    running.app.stop().await;
}

#[tokio::test]
async fn s11_somebody_without_a_role_is_limited_by_account_too() {
    let liar = Liar::start().await;
    let key = Key::p256("k");
    liar.says.lock().keys = vec![key.public.clone()];
    let running = controller(&liar.issuer, "").await;
    let mut browser = Browser::at(&running);
    let mut tries = 0;
    loop {
        let address = browser.begin("/").await;
        let claims = changed(liar.claims(&address), &json!({"roles": "retired"}));
        liar.gives(&address, &key.sign("k", &claims));
        let answer = browser.back("canary-code", &field(&address, "state")).await;
        match answer.status().as_u16() {
            403 => tries += 1,
            429 => break,
            other => panic!("{other}"),
        }
        assert!(tries < 30, "only the address was limited");
    }
    assert!(tries >= 10, "{tries}");
    running.app.stop().await;
}

#[tokio::test]
async fn s09_nothing_of_a_sign_in_shows_in_log_page_metric_or_record() {
    let log = Log::default();
    let _guard = log.capture();
    let liar = Liar::start().await;
    let key = Key::p256("k");
    liar.says.lock().keys = vec![key.public.clone()];
    let running = controller(&liar.issuer, "").await;
    let mut browser = Browser::at(&running);
    let mut secrets = vec!["canary".to_owned()];
    let address = browser.begin("/").await;
    let token = key.sign("k", &changed(liar.claims(&address), &json!({"exp": 1})));
    liar.gives(&address, &token);
    let wrong = browser
        .back("canary-wrong", &field(&address, "state"))
        .await;
    let mut shown = refused(wrong, 502).await;
    let address = browser.begin("/").await;
    liar.gives(&address, &token);
    let expired = browser.back("canary-code", &field(&address, "state")).await;
    shown += &refused(expired, 502).await;
    let address = browser.begin("/").await;
    let claims = changed(liar.claims(&address), &json!({"roles": ["lead"]}));
    let good = key.sign("k", &claims);
    liar.gives(&address, &good);
    let (session, _) = signed_in(&browser.back("canary-code", &field(&address, "state")).await);
    secrets.extend([token, good, session.clone(), field(&address, "state")]);
    secrets.extend([field(&address, "nonce"), browser.kept.clone()]);
    for path in [
        "/",
        "/access",
        "/record",
        "/login",
        "/metrics",
        "/api/v1/audit",
        "/readyz",
    ] {
        shown += &browser.page(path, &session).await.text().await.unwrap();
    }
    running.app.stop().await;
    let log = log.text();
    assert!(log.contains("single sign-on refused") && shown.contains("session.begin"));
    for secret in secrets {
        assert!(!log.contains(&secret), "the log holds {secret}");
        assert!(!shown.contains(&secret), "an answer holds {secret}");
    }
}

#[tokio::test]
async fn a_provider_that_is_down_is_said_plainly_and_a_password_still_works() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let issuer = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let running = controller(&issuer, "").await;
    let page = refused(
        Browser::at(&running).get("/login/sso?next=%2Fagents").await,
        502,
    )
    .await;
    assert!(
        page.contains("discovery document could not be connected to"),
        "{page}"
    );
    assert!(page.contains("name=\"next\" value=\"/agents\""), "{page}");
    running.app.stop().await;
}
