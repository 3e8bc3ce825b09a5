//! Accounts, sessions, links, tokens (S11), and that none of their secrets is kept (S9).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hedgerow_control_plane::auth::{
    self, AccountError, Accounts, Auth, LINK_VALID, TokenError, WallClock,
};
use hedgerow_control_plane::store::Store;
use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::{RecordQuery, Role, SignInError};
use secrecy::{ExposeSecret as _, SecretString};
use tempfile::TempDir;

const PASSWORD: &str = "canary password 7f3a91";

struct Desk {
    folder: TempDir,
    store: Store,
    auth: Auth,
    now: Arc<AtomicU64>,
}

impl Desk {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Store::open(&folder.path().join("hedgerow.db"))
            .await
            .unwrap();
        let began = WallClock::default().now().as_millis();
        let now = Arc::new(AtomicU64::new(began));
        let clock = Arc::clone(&now);
        let clock = WallClock::new(move || Moment::from_millis(clock.load(Ordering::Relaxed)));
        let auth = Auth::with_clock(store.clone(), clock);
        Self {
            folder,
            store,
            auth,
            now,
        }
    }

    fn pass(&self, time: Duration) {
        self.now
            .fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }

    async fn link(&self, name: &str) -> String {
        auth::new_login_link(&self.store, name, LINK_VALID)
            .await
            .unwrap()
    }

    fn accounts(&self) -> Accounts<'_> {
        Accounts::by_command_line(&self.store, "a test")
    }

    async fn actions(&self) -> Vec<String> {
        let query = RecordQuery {
            before: None,
            limit: 100,
            dependency: None,
            ..RecordQuery::default()
        };
        let lines = self.store.record(&query).await.unwrap();
        lines
            .into_iter()
            .rev()
            .map(|(_, row)| format!("{} {}", row.action, row.target))
            .collect()
    }

    async fn sessions(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM sessions")
            .fetch_one(self.store.pool())
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn s11_there_is_no_default_account_and_the_first_administrator_has_no_password() {
    let desk = Desk::new().await;
    assert_eq!(
        desk.auth.sign_in("admin", "admin", None).await.unwrap_err(),
        SignInError::Wrong
    );
    let first = desk.auth.bootstrap().await.unwrap().unwrap();
    assert_eq!(first.name, "admin");
    for password in ["", "admin", "password", first.token.expose_secret()] {
        let refused = desk
            .auth
            .sign_in("admin", password, None)
            .await
            .unwrap_err();
        assert_eq!(refused, SignInError::Wrong, "{password:?}");
    }
    let session = desk
        .auth
        .sign_in_by_link(first.token.expose_secret(), None)
        .await
        .unwrap();
    assert_eq!(session.operator.role, Role::Administrator);
    assert_eq!(
        desk.auth
            .session(&session.cookie)
            .await
            .unwrap()
            .unwrap()
            .name,
        "admin"
    );
    assert!(
        desk.auth.bootstrap().await.unwrap().is_none(),
        "the second start makes nobody"
    );
    assert_eq!(
        desk.actions().await,
        [
            "operator.add admin",
            "login_link.new admin",
            "session.begin admin"
        ]
    );
}

#[tokio::test]
async fn s11_a_login_link_lets_one_in_however_many_use_it_at_once() {
    let desk = Desk::new().await;
    desk.auth.bootstrap().await.unwrap();
    let link = desk.link("admin").await;
    let attempts = (0..16).map(|_| {
        let (auth, link) = (desk.auth.clone(), link.clone());
        tokio::spawn(async move { auth.sign_in_by_link(&link, None).await })
    });
    let outcomes = futures::future::join_all(attempts).await;
    let (let_in, refused): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .map(Result::unwrap)
        .partition(Result::is_ok);
    assert_eq!(let_in.len(), 1);
    assert!(
        refused
            .into_iter()
            .all(|r| r.unwrap_err() == SignInError::LinkSpent)
    );
}

#[tokio::test]
async fn s11_a_login_link_ends_after_15_minutes() {
    let desk = Desk::new().await;
    desk.auth.bootstrap().await.unwrap();
    let (early, late) = (desk.link("admin").await, desk.link("admin").await);
    desk.pass(Duration::from_mins(14));
    assert!(desk.auth.sign_in_by_link(&early, None).await.is_ok());
    desk.pass(Duration::from_mins(2));
    let refused = desk.auth.sign_in_by_link(&late, None).await.unwrap_err();
    assert_eq!(refused, SignInError::LinkSpent);
    let unknown = auth::new_login_link(&desk.store, "nobody", LINK_VALID)
        .await
        .unwrap_err();
    assert!(
        matches!(unknown, AccountError::UnknownOperator { .. }),
        "{unknown}"
    );
}

#[tokio::test]
async fn s11_a_session_ends_after_12_idle_hours_and_after_24_hours_whatever_happens() {
    let desk = Desk::new().await;
    desk.auth.bootstrap().await.unwrap();
    let used = desk
        .auth
        .sign_in_by_link(&desk.link("admin").await, None)
        .await
        .unwrap()
        .cookie;
    let idle = desk
        .auth
        .sign_in_by_link(&desk.link("admin").await, None)
        .await
        .unwrap()
        .cookie;
    for hour in 1..24 {
        desk.pass(Duration::from_hours(1));
        assert!(
            desk.auth.session(&used).await.unwrap().is_some(),
            "hour {hour}"
        );
        if hour == 12 {
            assert!(desk.auth.session(&idle).await.unwrap().is_none());
        }
    }
    desk.pass(Duration::from_hours(1));
    assert!(desk.auth.session(&used).await.unwrap().is_none());
    assert_eq!(desk.sessions().await, 2);
    // The link is dated by the machine's clock, so this sign-in needs the desk's to go back to it.
    desk.now
        .store(WallClock::default().now().as_millis(), Ordering::Relaxed);
    let link = desk.link("admin").await;
    desk.pass(Duration::from_hours(24));
    assert_eq!(
        desk.auth.sign_in_by_link(&link, None).await.unwrap_err(),
        SignInError::LinkSpent
    );
    auth::set_password(&desk.store, "admin", PASSWORD.into())
        .await
        .unwrap();
    desk.auth.sign_in("admin", PASSWORD, None).await.unwrap();
    assert_eq!(
        desk.sessions().await,
        1,
        "those that are over are forgotten"
    );
}

#[tokio::test]
async fn s11_a_session_ends_when_its_owner_signs_out_or_gets_a_new_password_or_is_removed() {
    let desk = Desk::new().await;
    auth::add_operator(&desk.store, "ada", Role::Editor, Some(PASSWORD.into()))
        .await
        .unwrap();
    let signed_in = async || {
        desk.auth
            .sign_in("ada", PASSWORD, None)
            .await
            .unwrap()
            .cookie
    };
    let (one, two) = (signed_in().await, signed_in().await);
    desk.auth.sign_out(&one).await.unwrap();
    assert!(desk.auth.session(&one).await.unwrap().is_none());
    assert!(desk.auth.session(&two).await.unwrap().is_some());
    auth::set_password(&desk.store, "ada", PASSWORD.into())
        .await
        .unwrap();
    assert!(desk.auth.session(&two).await.unwrap().is_none());
    let three = signed_in().await;
    desk.accounts().remove_operator("ada").await.unwrap();
    assert!(desk.auth.session(&three).await.unwrap().is_none());
}

#[tokio::test]
async fn s11_an_operator_has_a_bounded_number_of_sessions() {
    let desk = Desk::new().await;
    desk.auth.bootstrap().await.unwrap();
    let mut cookies = Vec::new();
    for _ in 0..70 {
        desk.pass(Duration::from_millis(1));
        let link = desk.link("admin").await;
        cookies.push(desk.auth.sign_in_by_link(&link, None).await.unwrap().cookie);
    }
    assert_eq!(desk.sessions().await, 64);
    assert!(
        desk.auth.session(&cookies[0]).await.unwrap().is_none(),
        "the oldest went"
    );
    assert!(desk.auth.session(&cookies[69]).await.unwrap().is_some());
}

#[tokio::test]
async fn s11_guessing_is_limited_by_name_and_a_link_still_lets_its_owner_in() {
    let desk = Desk::new().await;
    auth::add_operator(&desk.store, "ada", Role::Editor, Some(PASSWORD.into()))
        .await
        .unwrap();
    for i in 0..10u8 {
        let peer = Some(IpAddr::from([198, 51, 100, i]));
        let refused = desk
            .auth
            .sign_in("ada", "a wrong password", peer)
            .await
            .unwrap_err();
        assert_eq!(refused, SignInError::Wrong);
    }
    let refused = desk.auth.sign_in("ada", PASSWORD, None).await.unwrap_err();
    assert!(matches!(refused, SignInError::TooMany { .. }), "{refused}");
    assert!(
        desk.auth
            .sign_in_by_link(&desk.link("ada").await, None)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn s11_guessing_is_limited_by_address() {
    let desk = Desk::new().await;
    let peer = Some(IpAddr::from([198, 51, 100, 7]));
    let mut refused = 0;
    for i in 0..40 {
        match desk
            .auth
            .sign_in_by_link(&format!("guess-{i}"), peer)
            .await
            .unwrap_err()
        {
            SignInError::LinkSpent => refused += 1,
            SignInError::TooMany { .. } => break,
            other => panic!("{other}"),
        }
    }
    assert_eq!(refused, 30);
    let error = desk.auth.bearer("hgr_guess", peer).await.unwrap_err();
    assert!(
        matches!(error, TokenError::TooMany { .. }),
        "tokens count too: {error}"
    );
    let password = desk.auth.sign_in("ada", PASSWORD, peer).await.unwrap_err();
    assert!(
        matches!(password, SignInError::TooMany { .. }),
        "passwords too: {password}"
    );
    // What cannot be guessed opens all the same: others may be behind the same address.
    let token = auth::new_api_token(&desk.store, "ci", Role::Viewer, None)
        .await
        .unwrap();
    assert!(desk.auth.bearer(token.expose_secret(), peer).await.is_ok());
    desk.auth.bootstrap().await.unwrap();
    assert!(
        desk.auth
            .sign_in_by_link(&desk.link("admin").await, peer)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn an_api_token_ends_and_can_be_taken_back() {
    let desk = Desk::new().await;
    let day = Some(Duration::from_hours(24));
    let token = auth::new_api_token(&desk.store, "ci", Role::Editor, day)
        .await
        .unwrap();
    let taken = auth::new_api_token(&desk.store, "ci", Role::Viewer, day)
        .await
        .unwrap_err();
    assert!(matches!(taken, AccountError::Taken { .. }), "{taken}");
    let operator = desk.auth.bearer(token.expose_secret(), None).await.unwrap();
    assert_eq!(
        (operator.name.as_str(), operator.role),
        ("token:ci", Role::Editor)
    );
    desk.pass(Duration::from_hours(25));
    let over = desk
        .auth
        .bearer(token.expose_secret(), None)
        .await
        .unwrap_err();
    assert!(matches!(over, TokenError::Unknown), "{over}");

    let other = auth::new_api_token(&desk.store, "bot", Role::Viewer, None)
        .await
        .unwrap();
    assert!(desk.auth.bearer(other.expose_secret(), None).await.is_ok());
    desk.accounts().revoke_api_token("bot").await.unwrap();
    assert!(desk.auth.bearer(other.expose_secret(), None).await.is_err());
    assert!(desk.accounts().revoke_api_token("bot").await.is_err());
    let names = desk.store.api_tokens().await.unwrap();
    assert_eq!(
        names.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(),
        ["ci"]
    );
}

#[tokio::test]
async fn s09_the_store_holds_no_secret_as_it_is() {
    let desk = Desk::new().await;
    let first = desk.auth.bootstrap().await.unwrap().unwrap();
    auth::add_operator(&desk.store, "ada", Role::Editor, Some(PASSWORD.into()))
        .await
        .unwrap();
    let by_password = desk.auth.sign_in("ada", PASSWORD, None).await.unwrap();
    let unused = desk.link("ada").await;
    let by_link = desk
        .auth
        .sign_in_by_link(first.token.expose_secret(), None)
        .await
        .unwrap();
    let token = auth::new_api_token(&desk.store, "ci", Role::Viewer, None)
        .await
        .unwrap();
    let secrets: [&str; 6] = [
        PASSWORD,
        &by_password.cookie,
        &by_link.cookie,
        &unused,
        first.token.expose_secret(),
        token.expose_secret(),
    ];
    for debug in [
        format!("{by_password:?}"),
        format!("{first:?}"),
        format!("{:?}", desk.auth),
    ] {
        assert!(
            secrets.iter().all(|secret| !debug.contains(secret)),
            "{debug}"
        );
    }
    desk.store.close().await;
    for file in std::fs::read_dir(desk.folder.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        for secret in secrets {
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{} holds a secret", path.display());
        }
    }
}

#[tokio::test]
async fn s13_the_record_and_old_policies_cannot_be_rewritten() {
    let desk = Desk::new().await;
    desk.auth.bootstrap().await.unwrap();
    let pool = desk.store.pool();
    sqlx::query(
        "INSERT INTO policies (dependency, revision, json, actor, via, reason, at)
         VALUES ('catalog', 1, '{}', 'ada', 'page', 'because', 1)",
    )
    .execute(pool)
    .await
    .unwrap();
    for statement in [
        "UPDATE audit SET actor = 'nobody'",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit
             (id, at, actor, via, action, target, before_value, after_value, reason)
         VALUES (1, 1, 'nobody', 'page', 'x', 'x', '', '', '')",
        "UPDATE policies SET reason = 'another'",
        "DELETE FROM policies",
        "INSERT OR REPLACE INTO policies (dependency, revision, json, actor, via, reason, at)
         VALUES ('catalog', 1, '{}', 'nobody', 'page', '', 2)",
    ] {
        let error = sqlx::query(statement)
            .execute(pool)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("append only"), "{statement}: {error}");
    }
    assert_eq!(
        desk.actions().await,
        ["operator.add admin", "login_link.new admin"]
    );
}

#[tokio::test]
async fn names_and_passwords_that_cannot_be_used_are_refused_with_what_was_expected() {
    let desk = Desk::new().await;
    let short = auth::add_operator(&desk.store, "ada", Role::Viewer, Some("short".into())).await;
    assert!(short.unwrap_err().to_string().contains("at least 12"));
    let name = auth::add_operator(&desk.store, "token:ci", Role::Viewer, None).await;
    assert!(name.unwrap_err().to_string().contains("letters, digits"));
    auth::add_operator(&desk.store, "ada", Role::Viewer, None)
        .await
        .unwrap();
    let twice = auth::add_operator(&desk.store, "ada", Role::Administrator, None).await;
    assert!(matches!(twice.unwrap_err(), AccountError::Taken { .. }));
    let nobody = auth::set_password(&desk.store, "eve", SecretString::from(PASSWORD)).await;
    assert!(matches!(
        nobody.unwrap_err(),
        AccountError::UnknownOperator { .. }
    ));
    let accounts = desk.accounts().operators().await.unwrap();
    assert_eq!(accounts.len(), 1);
    assert_eq!(
        (accounts[0].role, accounts[0].has_password),
        (Role::Viewer, false)
    );
}

#[tokio::test]
async fn a_store_that_takes_no_writes_signs_nobody_out() {
    let desk = Desk::new().await;
    auth::add_operator(&desk.store, "ada", Role::Viewer, None)
        .await
        .unwrap();
    let link = desk.link("ada").await;
    let session = desk.auth.sign_in_by_link(&link, None).await.unwrap();
    sqlx::query(
        "CREATE TRIGGER disk_full BEFORE UPDATE ON sessions \
         BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    )
    .execute(desk.store.pool())
    .await
    .unwrap();
    desk.pass(Duration::from_mins(5));
    assert!(desk.auth.session(&session.cookie).await.unwrap().is_some());
}
