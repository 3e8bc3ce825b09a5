//! Scenarios that broke a run once: each ends, in bounded memory, and says what is so.

use hedgerow_sim::outcome::{Outcome, PhaseName};
use hedgerow_sim::{Client, Scenario, Variation, run};

fn scenario(rest: &str) -> Result<Scenario, String> {
    let text = format!("title = \"t\"\nabout = \"a\"\n{rest}");
    Scenario::parse(&text).map_err(|it| it.to_string())
}

fn ran(rest: &str, client: Client) -> Outcome {
    let variation = Variation::seed(1).client(client);
    run(&scenario(rest).unwrap(), &variation, |_| ()).unwrap()
}

fn fault(kind: &str, from: u64, to: u64) -> String {
    format!("[[fault]]\nkind = \"{kind}\"\nfrom_s = {from}\nto_s = {to}\n")
}

#[test]
fn x62_hardly_any_call_is_a_run_that_ends() {
    for rate in ["1e-300", "1e-13", "0", "-0.0"] {
        let outcome = ran(
            &format!("seconds = 5\n[fleet]\ncalls_per_s = {rate}\n"),
            Client::Bare,
        );
        let calls: u64 = outcome.seconds.iter().map(|it| it.calls).sum();
        assert!(calls <= 1, "{rate}: {calls}");
    }
}

#[test]
fn x63_after_a_lull_calls_come_as_before() {
    for factor in ["0", "1e-6", "1e-300"] {
        let lull = format!("{}factor = {factor}\n", fault("surge", 5, 10));
        let outcome = ran(&format!("seconds = 20\n{lull}"), Client::Bare);
        let calls = |from, to| outcome.between(from, to).map(|it| it.calls).sum::<u64>();
        assert!(calls(5, 10) <= 2, "{factor}: {}", calls(5, 10));
        let after = calls(10, 20);
        assert!((9_000..11_000).contains(&after), "{factor}: {after}");
    }
}

#[test]
fn x64_a_controller_that_dies_while_it_is_gone_comes_back_once() {
    let deaths = fault("controller_restart", 10, 20) + &fault("controller_restart", 15, 30);
    let outcome = ran(&format!("seconds = 60\n{deaths}"), Client::Hedgerow);
    for second in outcome.between(10, 30) {
        let gone = second.decided.is_none() && second.agents_attached == 0;
        assert!(gone || second.second == 30, "{second:?}");
    }
    // What it measures shows that it hears agents, and not only that they have a stream.
    for second in outcome.between(50, 60) {
        assert_eq!(second.agents_attached, 5);
        let heard = second.decided.as_ref().and_then(|it| it.window_s);
        assert!(heard.is_some(), "{second:?}");
    }
}

#[test]
fn x65_two_cuts_that_overlap_are_over_with_the_longer() {
    let cuts = fault("controller_away", 10, 15) + &fault("controller_away", 12, 30);
    let outcome = ran(&format!("seconds = 40\n{cuts}"), Client::Hedgerow);
    let attached: u64 = outcome.between(10, 29).map(|it| it.agents_attached).sum();
    assert_eq!(attached, 0);
    let last = outcome.seconds.last().unwrap();
    assert_eq!(last.agents_attached, 5);
}

#[test]
fn x66_what_begins_after_the_end_is_no_trouble() {
    let late = format!("seconds = 30\n{}factor = 5\n", fault("slow", 40, 50));
    let outcome = ran(&late, Client::Bare);
    assert_eq!(outcome.trouble_s, None);
    let before = outcome.phase(PhaseName::Before).unwrap();
    assert_eq!((before.from_s, before.to_s), (20.0, 30.0));
}

#[test]
fn x67_more_than_a_machine_holds_is_refused_before_the_run() {
    let surge = format!("{}factor = 1000\n", fault("surge", 1, 5));
    let pauses = "[[fault]]\nkind = \"shared_pauses\"\nms = 1\nshare_of_time = 0.9\nfrom_s = 0\n";
    for (rest, field) in [
        (
            "[fleet]\nagents = 1000000\nreplicas = 256\n",
            "fleet.agents",
        ),
        (
            "[fleet]\ncalls_per_s = 1e6\ndeadline_ms = 60000\n",
            "fleet.deadline_ms",
        ),
        (&surge.repeat(2), "fleet.calls_per_s"),
        (&surge.repeat(200), "fleet.calls_per_s"),
        (&format!("{pauses}[fleet]\nreplicas = 256\n"), "fault[0].ms"),
        (
            &pauses.replace("ms = 1\n", "ms = 10\n").repeat(4),
            "fault[3].ms",
        ),
    ] {
        let seconds = if field.starts_with("fault") { 3600 } else { 60 };
        let said = scenario(&format!("seconds = {seconds}\n{rest}")).unwrap_err();
        assert!(said.starts_with(field), "{field}: {said}");
    }
}

#[test]
fn x68_all_of_many_agents_can_start_anew_each_second() {
    let each = |t| format!("[[fault]]\nkind = \"agents_restart\"\nshare = 1\nfrom_s = {t}\n");
    let faults: String = (1..6).map(each).collect();
    let outcome = ran(
        &format!("seconds = 6\n[fleet]\nagents = 20000\ncalls_per_s = 5000\n{faults}"),
        Client::Bare,
    );
    let sum = |of: fn(&hedgerow_sim::Second) -> u64| outcome.seconds.iter().map(of).sum::<u64>();
    assert!(sum(|it| it.abandoned) > 0);
    assert!(sum(|it| it.finished) + sum(|it| it.abandoned) <= sum(|it| it.calls));
}
