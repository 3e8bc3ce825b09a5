//! What an administrator may do and nobody else, and what not even they may.

use hedgerow_core::effect::OrderError;
use hedgerow_core::event::Via;
use hedgerow_dashboard::backend::{
    AccessChange, AccessChanged, ActError, Backend as _, Operator, RecordQuery, Role,
};

use crate::standing::Standing;

fn somebody(role: Role) -> Operator {
    Operator {
        name: "root".into(),
        role,
    }
}

/// Each kind of change, on what `stand` makes.
fn changes() -> Vec<AccessChange> {
    let name = |name: &str| name.to_owned();
    vec![
        AccessChange::AddOperator {
            name: name("eve"),
            role: Role::Viewer,
        },
        AccessChange::SetRole {
            name: name("eve"),
            role: Role::Editor,
        },
        AccessChange::LoginLink { name: name("eve") },
        AccessChange::RemoveOperator { name: name("eve") },
        AccessChange::AddApiToken {
            name: name("ci"),
            role: Role::Editor,
            days: 7,
        },
        AccessChange::RevokeApiToken { name: name("ci") },
        AccessChange::AddAgentToken {
            service: name("shop"),
        },
    ]
}

#[tokio::test]
async fn s12_only_an_administrator_sees_or_changes_who_may_come_in() {
    let standing = Standing::start().await;
    let ui = &standing.ui;
    for role in [Role::Viewer, Role::Operator, Role::Editor] {
        let operator = somebody(role);
        let refused = ui.access(&operator).await.unwrap_err();
        assert!(matches!(refused, ActError::Forbidden { .. }), "{refused}");
        for change in changes() {
            let refused = ui.change_access(&operator, change, "x").await.unwrap_err();
            assert!(matches!(refused, ActError::Forbidden { .. }), "{refused}");
        }
    }
    assert_eq!(standing.count("SELECT count(*) FROM audit").await, 0);
    assert_eq!(standing.count("SELECT count(*) FROM operators").await, 0);
}

#[tokio::test]
async fn s12_each_change_of_access_is_on_record_with_its_reason_and_without_its_secret() {
    let standing = Standing::start().await;
    let (ui, root) = (&standing.ui, somebody(Role::Administrator));
    let mut secrets = Vec::new();
    for change in changes() {
        for reason in ["", "  ", "a\nb"] {
            let refused = ui.change_access(&root, change.clone(), reason).await;
            let refused = refused.unwrap_err();
            let named = matches!(
                refused,
                ActError::Refused(OrderError::NoReason) | ActError::Reason(_)
            );
            assert!(named, "{refused}");
        }
        match ui
            .change_access(&root, change, " they asked ")
            .await
            .unwrap()
        {
            AccessChanged::Done => {}
            AccessChanged::Link(path) => {
                secrets.push(path.strip_prefix("/login/link?token=").unwrap().to_owned());
            }
            AccessChanged::Token(token) => secrets.push(token),
        }
    }
    assert_eq!(secrets.len(), 4);
    let id = ui.access(&root).await.unwrap().agent_tokens[0].id.clone();
    let revoke = AccessChange::RevokeAgentToken { id: id.clone() };
    ui.change_access(&root, revoke, "they asked").await.unwrap();
    let query = RecordQuery {
        limit: 100,
        ..RecordQuery::default()
    };
    let lines = ui.record(query).await.unwrap();
    let told: Vec<_> = lines
        .iter()
        .rev()
        .map(|(_, row)| {
            assert_eq!(
                (row.actor.name.as_str(), row.actor.via),
                ("root", Via::Page)
            );
            assert_eq!(row.reason, "they asked");
            format!(
                "{} {}: {} -> {}",
                row.action, row.target, row.before, row.after
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "operator.add eve:  -> viewer",
            "login_link.new eve:  -> valid for 15 min",
            "operator.role eve: viewer -> editor",
            "login_link.new eve:  -> valid for 15 min",
            "operator.remove eve: editor -> ",
            "api_token.new ci:  -> editor, 7 d",
            "api_token.revoke ci: editor -> ",
            &format!("agent_token.new shop:  -> {id}"),
            &format!("agent_token.revoke shop: {id} -> "),
        ]
    );
    let told = format!("{lines:?} {:?}", ui.access(&root).await.unwrap());
    for secret in secrets {
        assert!(!told.contains(&secret), "{told}");
    }
}

#[tokio::test]
async fn s12_the_last_administrator_is_neither_removed_nor_demoted() {
    let standing = Standing::start().await;
    standing.session("ada", Role::Administrator).await;
    standing.session("bob", Role::Editor).await;
    let (ui, root) = (&standing.ui, somebody(Role::Administrator));
    let set = |name: &str, role| AccessChange::SetRole {
        name: name.into(),
        role,
    };
    let remove = |name: &str| AccessChange::RemoveOperator { name: name.into() };
    // One whom a provider made an administrator, and may demote, does not count.
    sqlx::query(
        "INSERT INTO operators (name, role, created, sso_identity)
         VALUES ('eve', 'administrator', 0, 'https://provider.example u-1')",
    )
    .execute(standing.store.pool())
    .await
    .unwrap();
    let before = standing.count("SELECT count(*) FROM audit").await;
    for change in [set("ada", Role::Editor), remove("ada")] {
        let refused = ui.change_access(&root, change, "x").await.unwrap_err();
        let words = refused.to_string();
        assert!(words.contains("ada is the last administrator"), "{words}");
    }
    assert_eq!(standing.count("SELECT count(*) FROM audit").await, before);
    ui.change_access(&root, set("bob", Role::Administrator), "x")
        .await
        .unwrap();
    ui.change_access(&root, remove("eve"), "x").await.unwrap();
    // Two at once, each removing the other: one of them stays.
    let (one, other) = tokio::join!(
        ui.change_access(&root, remove("ada"), "x"),
        ui.change_access(&root, remove("bob"), "x"),
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1);
    let left = ui.access(&root).await.unwrap().operators;
    assert_eq!((left.len(), left[0].role), (1, Role::Administrator));
}

#[tokio::test]
async fn what_cannot_stand_is_refused_by_its_field() {
    let standing = Standing::start().await;
    let (ui, root) = (&standing.ui, somebody(Role::Administrator));
    let token = |name: &str, days| AccessChange::AddApiToken {
        name: name.into(),
        role: Role::Viewer,
        days,
    };
    for (change, words) in [
        (token("ci", 0), "days: 0 is out of range: expected 1 to 366"),
        (token("ci", 367), "days: 367 is out of range"),
        (token("a b", 1), "name: \"a b\" is not a name"),
        (
            AccessChange::AddOperator {
                name: "controller".into(),
                role: Role::Viewer,
            },
            "name: \"controller\" is not a name",
        ),
        (
            AccessChange::AddAgentToken {
                service: "a\u{7}".into(),
            },
            "service: ",
        ),
        (
            AccessChange::RevokeApiToken { name: "ci".into() },
            "no API token \"ci\"",
        ),
        (
            AccessChange::RevokeAgentToken { id: "%".into() },
            "no agents' token \"%\"",
        ),
        (
            AccessChange::LoginLink { name: "bob".into() },
            "no operator \"bob\"",
        ),
    ] {
        let refused = ui.change_access(&root, change, "x").await.unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
    assert_eq!(standing.count("SELECT count(*) FROM audit").await, 0);
}
