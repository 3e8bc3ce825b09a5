//! The whole process's HTTP side: that limits see real addresses (S11), and that secrets of the
//! settings show nowhere (S9).

use std::sync::Arc;
use std::time::Duration;

use hedgerow_control_plane::app::App;
use hedgerow_control_plane::auth;
use hedgerow_control_plane::store::Store;
use hedgerow_core::effect::{AlertState, Record};
use hedgerow_core::moment::Moment;
use hedgerow_core::view::AlertRule;
use hedgerow_dashboard::backend::Role;
use hedgerow_protocol::ids::RouteKey;
use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::alerts::sink::Sink;
use crate::logged::Log;
use crate::running::{Running, SHOP_TOKEN, settings};
use crate::standing::eventually;

/// Base64 of `canary-secret-of-thirty-two-byte`.
const SECRET: &str = "whsec_Y2FuYXJ5LXNlY3JldC1vZi10aGlydHktdHdvLWJ5dGU=";

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn s11_the_limit_by_address_holds_at_the_real_listener() {
    let running = Running::start().await;
    let base = format!("http://{}", running.app.http_address());
    let mut wrong = 0;
    loop {
        let request = client()
            .get(format!("{base}/api/v1/fleet"))
            .bearer_auth("hgr_guess");
        let response = request.send().await.unwrap();
        match response.status().as_u16() {
            401 => wrong += 1,
            429 => {
                let wait: u64 = response.headers()["retry-after"]
                    .to_str()
                    .unwrap()
                    .parse()
                    .unwrap();
                assert!((1..=10).contains(&wait), "{wait}");
                break;
            }
            other => panic!("{other}"),
        }
        assert!(wrong < 1000, "never limited");
    }
    // 30, and one more for each 10 s that the machine took.
    assert!(wrong >= 30, "{wrong}");
    running.app.stop().await;
}

/// A store in which an alert waits for the receiver `pager`.
async fn with_an_alert() -> TempDir {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("hedgerow.db"))
        .await
        .unwrap();
    let alert = AlertState {
        id: "e1".into(),
        rule: AlertRule::HedgingDisabled,
        route: RouteKey::new("catalog", "get").unwrap(),
        replica: None,
        summary: "off: error rate 6.1 % > 5 %".into(),
        since: Moment::from_millis(jiff::Timestamp::now().as_millisecond() as u64),
        resolved: None,
    };
    store
        .write(&[Record::Alert(alert)], &["pager".into()])
        .await
        .unwrap();
    store.close().await;
    folder
}

/// Signs in by a link, as a browser does; gives the cookie.
async fn cookie(base: &str, link: &str) -> String {
    let redirected = reqwest::redirect::Policy::none();
    let plain = reqwest::Client::builder()
        .no_proxy()
        .redirect(redirected)
        .build()
        .unwrap();
    let sign_in = plain
        .post(format!("{base}/login/link"))
        .header("origin", base)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={link}"));
    let response = sign_in.send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

/// A running controller with that store and a receiver that takes connections and closes them.
async fn with_a_hostile_receiver(folder: TempDir) -> (Running, String) {
    let hostile = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let receiver = format!(
        "[[receiver]]\nname = \"pager\"\nkind = \"webhook\"\nallow_private = true\n\
         url = \"http://{}/canary-path\"\nsecret = \"{SECRET}\"\n",
        hostile.local_addr().unwrap()
    );
    tokio::spawn(async move { while hostile.accept().await.is_ok() {} });
    let settings = settings(folder.path(), &receiver);
    let shown = format!("{settings:?}");
    let app = App::start(settings).await.unwrap();
    (
        Running {
            app,
            folder: Arc::new(folder),
        },
        shown,
    )
}

#[tokio::test]
async fn a_notice_links_to_the_listener_where_no_public_address_is_set() {
    let pager = Sink::new();
    let receiver = format!(
        "[[receiver]]\nname = \"pager\"\nkind = \"webhook\"\nallow_private = true\n\
         url = \"http://{}/\"\nsecret = \"{SECRET}\"\n",
        pager.serve().await
    );
    let folder = with_an_alert().await;
    let app = App::start(settings(folder.path(), &receiver))
        .await
        .unwrap();
    eventually("the notice came", async || !pager.got().is_empty()).await;
    let expected = format!("http://{}/dependencies/catalog/get", app.http_address());
    assert_eq!(pager.got()[0].body["data"]["link"], expected);
    app.stop().await;
}

#[tokio::test]
async fn s09_secrets_of_the_settings_show_in_no_log_page_answer_metric_or_alert() {
    let log = Log::default();
    let _guard = log.capture();
    let (running, mut shown) = with_a_hostile_receiver(with_an_alert().await).await;
    let base = format!("http://{}", running.app.http_address());
    let store = running.app.store();
    eventually("the notice was refused", async || {
        store.deliveries(1).await.unwrap()[0].last_error.is_some()
    })
    .await;
    let token = auth::new_api_token(store, "ci", Role::Viewer, None)
        .await
        .unwrap();
    auth::add_operator(store, "ada", Role::Administrator, None)
        .await
        .unwrap();
    let link = auth::new_login_link(store, "ada", Duration::from_mins(1))
        .await
        .unwrap();
    let cookie = cookie(&base, &link).await;
    for path in [
        "/api/v1/fleet",
        "/api/v1/alerts",
        "/api/v1/audit",
        "/alerts",
        "/record",
        "/agents",
        "/",
        "/metrics",
        "/readyz",
        "/healthz",
        "/nothing",
    ] {
        let by_token = client()
            .get(format!("{base}{path}"))
            .bearer_auth(token.expose_secret());
        let by_session = client()
            .get(format!("{base}{path}"))
            .header("cookie", &cookie);
        for request in [by_token, by_session] {
            shown.push_str(&request.send().await.unwrap().text().await.unwrap());
        }
    }
    running.app.stop().await;
    let log = log.text();
    assert!(log.contains("notice refused") && shown.contains("HedgingDisabled"));
    let session = cookie.split_once('=').unwrap().1;
    for secret in [
        "canary",
        &SECRET[6..],
        SHOP_TOKEN,
        token.expose_secret(),
        &link,
        session,
    ] {
        assert!(!log.contains(secret), "the log holds {secret}");
        assert!(!shown.contains(secret), "an answer holds {secret}");
    }
}
