//! The REST side: lists, what is made, and what is shown once.

use hedgerow_dashboard::backend::Role;
use serde_json::{Value, json};

use crate::logged::Log;
use crate::standing::Standing;

struct Caller<'a> {
    standing: &'a Standing,
    token: String,
}

impl Caller<'_> {
    async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = self.standing.request(method, path).bearer_auth(&self.token);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "no-store");
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send("get", path, Value::Null).await;
        assert_eq!(status, 200, "{body}");
        body
    }
}

#[tokio::test]
async fn an_operator_is_made_let_in_by_a_link_given_another_role_and_removed() {
    let standing = Standing::start().await;
    let token = standing.token("root", Role::Administrator).await;
    let standing = &standing;
    let root = Caller { standing, token };
    let body = json!({"name": "ada", "role": "viewer", "reason": "new here"});
    let (status, made) = root.send("post", "/api/v1/operators", body.clone()).await;
    assert_eq!(status, 201, "{made}");
    let link = made["link"].as_str().unwrap();
    let token = link.strip_prefix("/login/link?token=").unwrap();
    let session = standing.auth.sign_in_by_link(token, None).await.unwrap();
    assert_eq!(session.operator.role, Role::Viewer);
    let (status, taken) = root.send("post", "/api/v1/operators", body).await;
    assert_eq!(
        (status, &taken["type"]),
        (409, &json!("urn:hedgerow:problem:not-now"))
    );

    let list = root.get("/api/v1/operators").await;
    assert_eq!(list["next"], Value::Null);
    let ada = &list["items"][0];
    assert_eq!(
        (&ada["name"], &ada["role"]),
        (&json!("ada"), &json!("viewer"))
    );
    assert_eq!(
        (&ada["sessions"], &ada["has_password"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(ada["single_sign_on"], json!(false));
    assert!(ada["created"].as_u64().unwrap() > 1_700_000_000_000);

    let role = json!({"role": "editor", "reason": "grew"});
    let (status, _) = root.send("put", "/api/v1/operators/ada", role).await;
    assert_eq!(status, 200);
    let operator = standing.auth.session(&session.cookie).await.unwrap();
    assert_eq!(operator.unwrap().role, Role::Editor);
    let reason = || json!({"reason": "left"});
    let (status, made) = root
        .send("post", "/api/v1/operators/ada/link", reason())
        .await;
    assert_eq!(status, 201, "{made}");
    let (status, _) = root.send("delete", "/api/v1/operators/ada", reason()).await;
    assert_eq!(status, 200);
    assert!(
        standing
            .auth
            .session(&session.cookie)
            .await
            .unwrap()
            .is_none()
    );
    let (status, gone) = root.send("delete", "/api/v1/operators/ada", reason()).await;
    assert_eq!(
        (status, &gone["type"]),
        (404, &json!("urn:hedgerow:problem:not-found"))
    );
}

#[tokio::test]
async fn tokens_are_shown_once_and_open_nothing_once_revoked() {
    let standing = Standing::start().await;
    let token = standing.token("root", Role::Administrator).await;
    let standing = &standing;
    let root = Caller { standing, token };
    let body = json!({"name": "ci", "role": "viewer", "days": 7, "reason": "builds"});
    let (status, made) = root.send("post", "/api/v1/tokens", body).await;
    assert_eq!(status, 201, "{made}");
    let token = made["token"].as_str().unwrap().to_owned();
    let ci = Caller {
        standing,
        token: token.clone(),
    };
    ci.get("/api/v1/fleet").await;
    let (status, _) = ci.send("get", "/api/v1/tokens", Value::Null).await;
    assert_eq!(status, 403, "a viewer's");
    let first = root.get("/api/v1/tokens?limit=1").await;
    assert_eq!(
        (&first["items"][0]["name"], &first["next"]),
        (&json!("ci"), &json!("ci"))
    );
    let second = root.get("/api/v1/tokens?limit=1&after=ci").await;
    assert_eq!(
        (&second["items"][0]["name"], &second["next"]),
        (&json!("root"), &Value::Null)
    );
    assert!(!format!("{first}{second}").contains(&token));
    let reason = || json!({"reason": "done"});
    let (status, _) = root.send("delete", "/api/v1/tokens/ci", reason()).await;
    assert_eq!(status, 200);
    let (status, _) = ci.send("get", "/api/v1/fleet", Value::Null).await;
    assert_eq!(status, 401);

    let body = json!({"service": "shop", "reason": "new service"});
    let (status, made) = root.send("post", "/api/v1/agent-tokens", body).await;
    assert_eq!(status, 201, "{made}");
    let list = root.get("/api/v1/agent-tokens").await;
    let shop = &list["items"][0];
    assert_eq!(shop["service"], json!("shop"));
    assert!(!list.to_string().contains(made["token"].as_str().unwrap()));
    let path = format!("/api/v1/agent-tokens/{}", shop["id"].as_str().unwrap());
    let (status, _) = root.send("delete", &path, reason()).await;
    assert_eq!(status, 200);
    assert_eq!(root.get("/api/v1/agent-tokens").await["items"], json!([]));
}

/// Method, path, body, and the status and words it is refused with.
type Refused = (&'static str, &'static str, Value, u16, &'static str);

fn refused() -> Vec<Refused> {
    vec![
        ("post", "operators", json!({}), 422, "name: is missing"),
        (
            "post",
            "operators",
            json!({"name": "a", "role": "root", "reason": "x"}),
            422,
            "\"root\" is no role",
        ),
        (
            "post",
            "operators",
            json!({"name": "a b", "role": "viewer", "reason": "x"}),
            422,
            "is not a name",
        ),
        (
            "put",
            "operators/ada",
            json!({"role": "viewer"}),
            422,
            "reason: is missing",
        ),
        (
            "post",
            "tokens",
            json!({"name": "a", "role": "viewer", "days": 400, "reason": "x"}),
            422,
            "1 to 366",
        ),
        (
            "post",
            "tokens",
            json!({"name": "a", "role": "viewer", "days": "7", "reason": "x"}),
            422,
            "days: ",
        ),
        (
            "post",
            "agent-tokens",
            json!({"service": "", "reason": "x"}),
            422,
            "service: ",
        ),
        (
            "post",
            "agent-tokens",
            json!({"service": "a", "reason": "x", "x": 1}),
            422,
            "is not a field here",
        ),
        (
            "get",
            "operators?limit=0",
            Value::Null,
            422,
            "expected 1 to 1000",
        ),
        (
            "get",
            "operators?before=1",
            Value::Null,
            400,
            "expected |limit|after",
        ),
    ]
}

#[tokio::test]
async fn bodies_and_queries_that_cannot_stand_are_refused_by_their_fields() {
    let standing = Standing::start().await;
    let token = standing.token("root", Role::Administrator).await;
    let standing = &standing;
    let root = Caller { standing, token };
    for (method, path, body, status, words) in refused() {
        let (got, problem) = root.send(method, &format!("/api/v1/{path}"), body).await;
        assert_eq!(got, status, "{method} {path}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        let said = words.split('|').all(|words| detail.contains(words));
        assert!(said, "{method} {path}: {detail}");
    }
    assert_eq!(standing.count("SELECT count(*) FROM operators").await, 0);
}

#[tokio::test]
async fn s09_what_is_made_shows_in_no_log_and_no_other_answer() {
    let log = Log::default();
    let _guard = log.capture();
    let standing = Standing::start().await;
    let token = standing.token("root", Role::Administrator).await;
    let session = standing.session("ada", Role::Administrator).await;
    let root = Caller {
        standing: &standing,
        token,
    };
    let mut secrets = Vec::new();
    for (path, body) in [
        (
            "operators",
            json!({"name": "bob", "role": "viewer", "reason": "x"}),
        ),
        ("operators/bob/link", json!({"reason": "x"})),
        (
            "tokens",
            json!({"name": "ci", "role": "viewer", "days": 7, "reason": "x"}),
        ),
        ("agent-tokens", json!({"service": "shop", "reason": "x"})),
    ] {
        let (status, made) = root.send("post", &format!("/api/v1/{path}"), body).await;
        assert_eq!(status, 201, "{made}");
        let secret = made["link"].as_str().or(made["token"].as_str()).unwrap();
        secrets.push(secret.rsplit('=').next().unwrap().to_owned());
    }
    let form = "act=add-token&name=bot&role=viewer&days=7&reason=x";
    let made = standing
        .request("post", "/access")
        .header("cookie", format!("hedgerow_session={session}"))
        .header("origin", format!("http://{}", standing.address))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    let page = made.send().await.unwrap().text().await.unwrap();
    let (_, rest) = page.split_once("value=\"hgr_").unwrap();
    secrets.push(format!("hgr_{}", rest.split('"').next().unwrap()));
    let mut shown = String::new();
    for path in [
        "/access",
        "/record",
        "/",
        "/api/v1/operators",
        "/api/v1/tokens",
        "/api/v1/agent-tokens",
        "/api/v1/audit",
    ] {
        let request = standing
            .request("get", path)
            .header("cookie", format!("hedgerow_session={session}"));
        shown += &request.send().await.unwrap().text().await.unwrap();
    }
    let log = log.text();
    assert!(shown.contains("agent_token.new") && shown.contains("bot"));
    for secret in secrets {
        assert!(secret.len() > 40, "{secret}");
        assert!(!log.contains(&secret), "the log holds {secret}");
        assert!(!shown.contains(&secret), "an answer holds {secret}");
    }
}
