//! The command line against a real controller, with a real agent where one is needed.

use hedgerow_agent::{Agent, Replicas};
use hedgerow_control_plane::auth;
use hedgerow_control_plane::config::TlsFiles;
use hedgerow_dashboard::backend::Role;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tempfile::TempDir;

use super::{Ran, hedgerow};
use crate::running::{Running, SHOP_TOKEN, route};

struct Real {
    running: Running,
    files: TempDir,
    token: String,
}

impl Real {
    async fn start(role: Role) -> Self {
        let running = Running::start().await;
        let token = auth::new_api_token(running.app.store(), "ci", role, None);
        let token = token.await.unwrap().expose_secret().to_owned();
        Self {
            running,
            files: TempDir::new().unwrap(),
            token,
        }
    }

    fn file(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.files.path().join(name), text).unwrap();
        self
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        let url = format!("http://{}", self.running.app.http_address());
        hedgerow(&url, &self.token, self.files.path(), arguments).await
    }

    async fn agent(&self) -> (Agent, hedgerow_agent::Route) {
        let agent = Agent::builder()
            .service("shop")
            .controller(self.running.grpc())
            .token(SHOP_TOKEN.into())
            .connect()
            .await
            .unwrap();
        let replicas = Replicas::new([("a", None::<&str>), ("b", None)]).unwrap();
        let made = agent.route("catalog", "get").replicas(replicas).build();
        self.running
            .until("it reports", |it| it.route(&route()))
            .await;
        (agent, made.unwrap())
    }
}

const APPLY: [&str; 7] = [
    "policy", "apply", "-f", "p.yaml", "--yes", "--reason", "a test",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c20_b69_applying_a_file_twice_makes_one_revision_each_and_no_more() {
    let real = Real::start(Role::Editor).await;
    real.file(
        "p.yaml",
        "policies:\n- dependency: '*'\n- {dependency: catalog, intent: hedge, budget: 0.05}\n- {dependency: catalog, operation: report, intent: off}\n",
    );
    let ran = real.run(&["policy", "diff", "-f", "p.yaml"]).await;
    ran.said(
        6,
        &[
            "* (p.yaml:2, new)",
            "budget  0.08 -> 0.05",
            "intent  observe -> hedge",
            "3 policies to change",
        ],
    );
    real.run(&APPLY)
        .await
        .said(0, &["catalog report: in force as revision 3"]);
    for _ in 0..2 {
        real.run(&APPLY)
            .await
            .said(0, &["nothing to change: 3 policies as in the files"]);
    }
    let revisions: Vec<_> = real
        .running
        .snapshot()
        .policies
        .values()
        .map(|it| it.revision.0)
        .collect();
    assert_eq!(revisions.iter().max(), Some(&3), "{revisions:?}");

    // What is got as YAML is a file, and changes nothing.
    let got = real
        .run(&["policy", "get", "catalog", "report", "-o", "yaml"])
        .await;
    got.said(0, &["operation: report", "intent: \"off\""]);
    real.file("p.yaml", &got.out);
    real.run(&APPLY)
        .await
        .said(0, &["nothing to change: 1 policy as in the files"]);

    real.running.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u07_u12_revisions_come_and_go_and_each_is_in_the_record() {
    let real = Real::start(Role::Editor).await;
    real.file(
        "p.yaml",
        "dependency: catalog\nintent: hedge\nbudget: 0.05\n",
    );
    real.run(&APPLY)
        .await
        .said(0, &["catalog: in force as revision 1"]);
    real.file(
        "p.yaml",
        "dependency: catalog\nintent: hedge\nbudget: 0.06\n",
    );
    real.run(&APPLY).await.said(
        0,
        &["budget  0.05 -> 0.06", "catalog: in force as revision 2"],
    );
    real.run(&["policy", "list"])
        .await
        .said(0, &["catalog", "calls beyond p95"]);
    real.run(&["policy", "history", "catalog"])
        .await
        .said(0, &["budget 0.05 -> 0.06", "a test"]);
    let revert = [
        "policy", "revert", "catalog", "--to", "1", "--reason", "worse",
    ];
    let stale = [&revert[..], &["--over", "1"]].concat();
    real.run(&stale)
        .await
        .complained(3, &["412", "changed meanwhile"]);
    real.run(&revert)
        .await
        .said(0, &["catalog: revision 3 is in force, as 1 was"]);
    let remove = ["policy", "remove", "catalog", "--reason", "not needed"];
    real.run(&remove).await.said(0, &["its policy is gone"]);
    real.run(&["policy", "history", "catalog"])
        .await
        .said(0, &["taken away"]);
    real.run(&APPLY)
        .await
        .said(0, &["catalog: in force as revision 5"]);
    let tail = [
        "audit", "tail", "--action", "policy", "--actor", "token:ci", "-o", "json",
    ];
    let ran = real.run(&tail).await;
    let rows: Vec<Value> = ran
        .out
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(rows.len(), 5, "{ran:?}");
    assert!(
        rows.iter().all(|row| row["actor"]["via"] == "api"),
        "{ran:?}"
    );
    real.running.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u07_what_the_controller_refuses_is_said_at_its_line() {
    let real = Real::start(Role::Editor).await;
    real.file(
        "p.yaml",
        "dependency: catalog\nrollout:\n  stages: [0.5, 0.1]\n",
    );
    let ran = real.run(&APPLY).await;
    ran.complained(3, &["p.yaml:3:11: rollout.stages: "]);
    let viewer = Real::start(Role::Viewer).await;
    viewer.file("p.yaml", "dependency: catalog\nbudget: 0.05\n");
    // Looking is a viewer's right, changing is not.
    viewer
        .run(&["policy", "diff", "-f", "p.yaml"])
        .await
        .said(6, &[]);
    viewer
        .run(&APPLY)
        .await
        .complained(3, &["catalog (p.yaml:1) was not applied", "403"]);
    real.running.app.stop().await;
    viewer.running.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u08_a_kill_switch_is_held_by_a_real_agent_before_the_command_ends() {
    let real = Real::start(Role::Operator).await;
    let (agent, _route) = real.agent().await;
    let on = ["kill", "on", "catalog", "--reason", "4711"];
    real.run(&on)
        .await
        .said(0, &["the switch on catalog is on: 1 of 1 agents hold it"]);
    real.run(&on).await.said(0, &["was on already"]);
    real.run(&["status"]).await.said(
        5,
        &["kill switch", "by token:ci: 4711 (1 of 1 agents hold it)"],
    );
    let ran = real.run(&["deps", "explain", "catalog", "get"]).await;
    ran.said(
        0,
        &[
            "catalog get: off",
            "the switch on catalog, by token:ci: 4711",
        ],
    );
    real.run(&["deps", "list"])
        .await
        .said(0, &["catalog get", "off", "1/1"]);
    real.run(&["deps", "show", "catalog", "get"])
        .await
        .said(0, &["1 of 1 hold the newest directive"]);
    let listed = real.run(&["agents", "list", "-o", "json"]).await;
    let instance = listed.json()[0]["instance"].as_str().unwrap().to_owned();
    real.run(&["agents", "show", &instance[..13]])
        .await
        .said(0, &[&instance, "catalog get"]);
    let off = ["kill", "off", "catalog", "--reason", "over"];
    real.run(&off)
        .await
        .said(0, &["the switch on catalog is off"]);
    real.run(&off).await.said(0, &["nothing to change"]);
    let odd = ["kill", "off", "catalgo", "--reason", "x"];
    real.run(&odd)
        .await
        .complained(0, &["no agent has reported catalgo"]);
    real.run(&["status"])
        .await
        .said(0, &["nothing needs a person"]);
    let tail = real
        .run(&[
            "audit",
            "tail",
            "--action",
            "kill",
            "--dependency",
            "catalog",
        ])
        .await;
    tail.said(
        0,
        &["token:ci by api", "kill.on catalog", "(4711)", "kill.off"],
    );
    agent.shutdown().await;
    real.running.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_and_what_may_not_be_done_end_with_their_numbers() {
    let real = Real::start(Role::Viewer).await;
    real.run(&["deps", "explain", "nobody", "get"])
        .await
        .complained(1, &["404", "no route nobody get is known"]);
    real.run(&["policy", "get", "nobody"])
        .await
        .complained(1, &["404"]);
    real.run(&["policy", "get", "no<body"])
        .await
        .complained(2, &["'<'"]);
    real.run(&["kill", "on", "--everything", "--reason", "x"])
        .await
        .complained(3, &["403", "Operator"]);
    real.run(&["whatif", "nobody", "get"])
        .await
        .complained(1, &["404"]);
    real.run(&["deps", "list"]).await.said(0, &["no route"]);
    real.run(&["agents", "list"]).await.said(0, &["no agents"]);
    real.run(&["alerts", "list"])
        .await
        .said(0, &["no alert fires"]);
    real.run(&["audit", "tail", "--since", "yesterday"])
        .await
        .complained(3, &["since: "]);
    let ran = real.run(&["check", "-o", "json"]).await;
    let reachable = &ran.json()["findings"][0];
    assert_eq!(reachable["verdict"], "ok", "{ran:?}");
    real.running.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u10_a_silence_begins_is_listed_and_ends() {
    let real = Real::start(Role::Operator).await;
    let silence = [
        "alerts",
        "silence",
        "--rule",
        "ReplicaSlow",
        "--dependency",
        "catalog",
        "--for",
        "2h",
        "--reason",
        "known",
    ];
    let ran = real.run(&[&silence[..], &["-o", "json"]].concat()).await;
    let id = ran.said(0, &[]).json()["id"].as_u64().unwrap().to_string();
    real.run(&["alerts", "list"])
        .await
        .said(0, &["ReplicaSlow catalog", "in 1 h ", "token:ci", "known"]);
    let end = ["alerts", "unsilence", &id, "--reason", "mended"];
    real.run(&end).await.said(0, &["is over"]);
    let listed = real.run(&["alerts", "list", "-o", "json"]).await.json();
    assert_eq!(
        listed["silences"].as_array().map(Vec::len),
        Some(0),
        "{listed}"
    );
    let ack = ["alerts", "ack", "nothing", "--comment", "x"];
    real.run(&ack).await.complained(1, &["404"]);
    let long = [
        "alerts",
        "silence",
        "--rule",
        "NoSuchRule",
        "--for",
        "2h",
        "--reason",
        "x",
    ];
    real.run(&long).await.complained(3, &["  rule: "]);
    real.running.app.stop().await;
}

/// Follows by the first lines, which are there, and one that comes while it looks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u12_the_record_is_followed_line_by_line() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    let real = Real::start(Role::Operator).await;
    real.run(&[
        "kill",
        "on",
        "catalog",
        "--timeout",
        "0",
        "--reason",
        "first",
    ])
    .await;
    let mut following = tokio::process::Command::from(crate::process::command());
    let mut child = following
        .args(["audit", "tail", "--follow", "--action", "kill"])
        .env(
            "HEDGEROW_URL",
            format!("http://{}", real.running.app.http_address()),
        )
        .env("HEDGEROW_API_TOKEN", &real.token)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(crate::running::SOON, lines.next_line());
        line.await.unwrap().unwrap().unwrap()
    };
    assert!(next().await.contains("(first)"));
    real.run(&["kill", "off", "catalog", "--reason", "second"])
        .await;
    real.run(&[
        "kill",
        "on",
        "catalog",
        "--timeout",
        "0",
        "--reason",
        "third",
    ])
    .await;
    assert!(next().await.contains("(second)"));
    assert!(next().await.contains("(third)"));
    child.kill().await.unwrap();
    real.running.app.stop().await;
}

/// On a pipe, `--watch` is a JSON object a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_by_a_pipe_is_a_json_object_a_line_and_outlives_the_controller() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    let real = Real::start(Role::Viewer).await;
    let mut watching = tokio::process::Command::from(crate::process::command());
    let mut child = watching
        .args(["status", "--watch"])
        .env(
            "HEDGEROW_URL",
            format!("http://{}", real.running.app.http_address()),
        )
        .env("HEDGEROW_API_TOKEN", &real.token)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line = tokio::time::timeout(crate::running::SOON, lines.next_line());
        let line = line.await.unwrap().unwrap().unwrap();
        let status: Value = serde_json::from_str(&line).unwrap();
        assert!(status["needs_a_person"].is_array(), "{line}");
    }
    real.running.app.stop().await;
    let said = tokio::time::timeout(crate::running::SOON, errors.next_line());
    let said = said.await.unwrap().unwrap().unwrap();
    assert!(said.contains("trying again"), "{said}");
    assert!(child.try_wait().unwrap().is_none(), "it goes on looking");
    child.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_ones_own_is_taken_by_its_authority_and_by_nothing_else() {
    let folder = TempDir::new().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = TlsFiles {
        certificate: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
    };
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    let running = Running::start_with("", |settings| settings.http.tls = Some(tls.clone())).await;
    let token = auth::new_api_token(running.app.store(), "ci", Role::Viewer, None);
    let token = token.await.unwrap().expose_secret().to_owned();
    let port = running.app.http_address().port();
    let run = async |url: &str, more: &[&str]| {
        let arguments = [&["status"], more].concat();
        hedgerow(url, &token, folder.path(), &arguments).await
    };
    let url = format!("https://localhost:{port}");
    run(&url, &["--ca", "certificate.pem"])
        .await
        .said(0, &["nothing needs a person"]);
    run(&url, &[])
        .await
        .complained(4, &["no controller can be reached", "ertificate"]);
    // By another name than the certificate's.
    let url = format!("https://127.0.0.1:{port}");
    run(&url, &["--ca", "certificate.pem"])
        .await
        .complained(4, &["ertificate"]);
    run(&url, &["--ca", "key.pem"])
        .await
        .complained(2, &["key.pem cannot be used"]);
    running.app.stop().await;
}
