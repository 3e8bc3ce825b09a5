//! What is changed holds at once, also for what is open already.

use std::time::Duration;

use hedgerow_control_plane::auth::{self, Accounts};
use hedgerow_control_plane::store::Store;
use hedgerow_dashboard::backend::{AccessChange, Backend as _, Operator, Role};
use hedgerow_protocol::ids::ServiceName;
use reqwest::Response;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tonic::Code;

use crate::raw_agent::RawAgent;
use crate::running::{Running, SHOP_TOKEN, SOON};
use crate::standing::Standing;

fn root() -> Operator {
    Operator {
        name: "root".into(),
        role: Role::Administrator,
    }
}

/// A page's event stream, opened with a session.
async fn stream(standing: &Standing, page: &str, session: &str) -> Response {
    let request = standing
        .request("get", &format!("/live?{page}"))
        .header("cookie", format!("hedgerow_session={session}"));
    request.send().await.unwrap()
}

/// Reads on until the stream ends.
async fn ends(mut stream: Response) {
    let rest = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(SOON, rest)
        .await
        .expect("the stream ends");
}

#[tokio::test]
async fn s12_another_role_holds_at_once_for_a_session_that_is_open() {
    let standing = Standing::start().await;
    let session = standing.session("eve", Role::Operator).await;
    let kill = async |engaged: bool| {
        let request = standing
            .request("post", "/api/v1/kill")
            .header("cookie", format!("hedgerow_session={session}"))
            .header("sec-fetch-site", "same-origin")
            .json(&json!({"scope": "everything", "engaged": engaged, "reason": "x"}));
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(kill(true).await, 200);
    let role = |role| AccessChange::SetRole {
        name: "eve".into(),
        role,
    };
    let ui = &standing.ui;
    ui.change_access(&root(), role(Role::Viewer), "x")
        .await
        .unwrap();
    assert_eq!(kill(false).await, 403);
    ui.change_access(&root(), role(Role::Editor), "x")
        .await
        .unwrap();
    assert_eq!(kill(false).await, 200);
}

#[tokio::test]
async fn s12_an_event_stream_ends_when_whoever_opened_it_is_removed_or_signs_out() {
    let standing = Standing::start().await;
    let removed = standing.session("eve", Role::Editor).await;
    let signed_out = standing.session("bob", Role::Editor).await;
    let (first, second) = (
        stream(&standing, "page=overview", &removed).await,
        stream(&standing, "page=agents", &signed_out).await,
    );
    assert_eq!(
        (first.status().as_u16(), second.status().as_u16()),
        (200, 200)
    );
    let gone = AccessChange::RemoveOperator { name: "eve".into() };
    standing.ui.change_access(&root(), gone, "x").await.unwrap();
    standing.ui.sign_out(&signed_out).await;
    ends(first).await;
    ends(second).await;
    assert_eq!(
        stream(&standing, "page=overview", &removed).await.status(),
        401
    );
}

async fn refused_with(agent: &mut RawAgent) -> Code {
    let ended = async {
        loop {
            match agent.try_next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended well"),
                Err(status) => return status.code(),
            }
        }
    };
    tokio::time::timeout(SOON, ended).await.expect("it ends")
}

#[tokio::test]
async fn s12_a_token_of_agents_that_is_taken_back_ends_its_streams_and_no_others() {
    let running = Running::start().await;
    let store = running.app.store().clone();
    let address = format!("http://{}", running.app.http_address());
    let new = async |service: &str| {
        let service = ServiceName::new(service).unwrap();
        let token = auth::new_agent_token(&store, service).await.unwrap();
        token.expose_secret().to_owned()
    };
    let (by_api, by_command, stays) = (new("a").await, new("b").await, new("c").await);
    let mut first = RawAgent::attach(&running.grpc(), &by_api).await;
    let mut second = RawAgent::attach(&running.grpc(), &by_command).await;
    let mut third = RawAgent::attach(&running.grpc(), &stays).await;
    let mut of_settings = RawAgent::attach(&running.grpc(), SHOP_TOKEN).await;

    let admin = auth::new_api_token(&store, "root", Role::Administrator, None).await;
    let admin = admin.unwrap().expose_secret().to_owned();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ids: Vec<String> = store
        .stored_agent_tokens()
        .await
        .unwrap()
        .iter()
        .map(|it| it.token.id())
        .collect();
    let revoke = client
        .delete(format!("{address}/api/v1/agent-tokens/{}", ids[0]))
        .bearer_auth(&admin)
        .json(&json!({"reason": "leaked"}));
    assert_eq!(revoke.send().await.unwrap().status(), 200);
    assert_eq!(refused_with(&mut first).await, Code::Unauthenticated);

    // A command beside the controller, on the same file.
    let beside = Store::open(&running.folder.path().join("hedgerow.db")).await;
    let beside = beside.unwrap();
    let accounts = Accounts::by_command_line(&beside, "leaked");
    accounts.revoke_agent_token(&ids[1]).await.unwrap();
    beside.close().await;
    assert_eq!(refused_with(&mut second).await, Code::Unauthenticated);

    for agent in [&mut third, &mut of_settings] {
        agent.beat(0).await;
        let answered = agent.next_within(Duration::from_secs(10)).await;
        assert!(answered.is_some(), "the others go on");
    }
    running.app.stop().await;
}
