//! What cannot be done is said with what was expected, and ends with the same number each time.

use serde_json::json;
use tempfile::TempDir;

use super::answering::Answering;
use super::hedgerow;

#[tokio::test]
async fn a_refusals_fields_are_one_a_line_and_each_kind_has_its_number() {
    let controller = Answering::start().await;
    let fields = json!({
        "title": "Invalid values", "detail": "x",
        "errors": [{"field": "reason", "message": "is odd"}, {"field": "scope", "message": "is none"}],
    });
    let cases = [
        (
            422,
            fields,
            3,
            &["(422 Invalid values)\n  reason: is odd\n  scope: is none"][..],
        ),
        (
            403,
            json!({"title": "Not allowed", "detail": "it needs Operator, you are Viewer"}),
            3,
            &[
                "(403 Not allowed): it needs Operator, you are Viewer",
                "a role that may do this",
            ],
        ),
        (
            409,
            json!({"title": "Not as things stand", "detail": "later"}),
            3,
            &["(409 Not as things stand): later"],
        ),
        (
            404,
            json!({"title": "Not found", "detail": "nobody"}),
            1,
            &["(404 Not found): nobody"],
        ),
        (
            503,
            json!({"title": "Unavailable", "detail": "shutting down"}),
            4,
            &["shutting down"],
        ),
        (500, json!({}), 1, &["(500)"]),
    ];
    for (status, body, code, said) in cases {
        let controller = Answering::start().await;
        controller.to("POST /api/v1/kill", status, body);
        let ran = controller
            .run(&["kill", "off", "--everything", "--reason", "x"])
            .await;
        ran.complained(code, said);
        assert_eq!(ran.out, "", "{ran:?}");
    }
    // An alert's id from another's mouth cannot become another path.
    let ran = controller
        .run(&["alerts", "ack", "../kill", "--comment", "x"])
        .await;
    ran.complained(1, &["/api/v1/alerts/..%2Fkill/acknowledge"]);
}

#[tokio::test]
async fn s11_a_token_that_is_missing_or_wrong_is_said_with_where_to_give_one() {
    let controller = Answering::start().await;
    controller.to("GET /api/v1/alerts", 200, json!([]));
    controller
        .file("token", "hat_token\n")
        .file("wrong", "hat_other")
        .file("empty", "\n");
    let run = async |arguments: &[&str], token: &str| {
        let url = controller.url();
        hedgerow(&url, token, controller.folder.path(), arguments).await
    };
    let list = ["alerts", "list"];
    for (arguments, token) in [
        (&list[..], ""),
        (
            &[&list[..], &["--token-file", "wrong"]].concat(),
            "hat_token",
        ),
    ] {
        let ran = run(arguments, token).await;
        ran.complained(3, &["401", "--token-file FILE or HEDGEROW_API_TOKEN"]);
    }
    let by_file = [&list[..], &["--token-file", "token"]].concat();
    run(&by_file, "").await.said(0, &["no alert fires"]);
    let ran = run(&[&list[..], &["--token-file", "empty"]].concat(), "").await;
    ran.complained(1, &["empty is empty: expected an API token"]);
    let ran = run(&[&list[..], &["--token-file", "none"]].concat(), "").await;
    ran.complained(1, &["the token none cannot be read"]);
}

#[tokio::test]
async fn nobody_there_and_somebody_else_there_are_told_apart() {
    let folder = TempDir::new().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let run =
        async |url: &str, arguments: &[&str]| hedgerow(url, "t", folder.path(), arguments).await;
    let nobody = format!("http://{address}");
    let ran = run(&nobody, &["status"]).await;
    ran.complained(4, &["no controller can be reached at", "refused"]);
    let ran = run(&nobody, &["check"]).await;
    ran.said(4, &["fail", "systemctl status hedgerow"]);
    run("localhost:7410", &["status"])
        .await
        .complained(2, &["expected an address such as"]);
    run(&nobody, &["status", "--ca", "none.pem"])
        .await
        .complained(2, &["none.pem cannot be used"]);

    // A server that is no controller.
    let app = axum::Router::new().fallback(async || "<html>hello</html>");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let ran = run(&other, &["status"]).await;
    ran.complained(
        1,
        &[
            "does not answer as a controller does",
            "the answer is no JSON",
        ],
    );
}
