//! Scenario files.

use hedgerow_sim::{Scenario, Variation, shipped};

const LEAST: &str = "title = \"t\"\nabout = \"a\"\nseconds = 10\n";

fn refused(rest: &str) -> String {
    Scenario::parse(&format!("{LEAST}{rest}"))
        .unwrap_err()
        .to_string()
}

#[test]
fn all_that_are_shipped_can_be_read_and_found() {
    for it in shipped() {
        let scenario = Scenario::find(it.name).unwrap();
        assert_eq!(scenario, Scenario::parse(it.text).unwrap(), "{}", it.name);
        assert!(!scenario.title.is_empty() && !scenario.about.is_empty());
    }
}

#[test]
fn what_is_absent_has_a_default() {
    let scenario = Scenario::parse(LEAST).unwrap();
    assert_eq!(scenario.fleet.calls_per_s, 1000.0);
    assert_eq!(
        (scenario.policy.percentile, scenario.policy.budget),
        (0.95, 0.08)
    );
    assert!(scenario.faults.is_empty());
}

#[test]
fn a_field_that_is_not_known_is_refused_with_its_name() {
    for (text, names) in [
        ("workrs = 3\n", "workrs"),
        ("[service]\nworkrs = 3\n", "workrs"),
        ("[fleet]\nagent = 3\n", "agent"),
        ("[policy]\npercentil = 0.9\n", "percentil"),
        (
            "[[fault]]\nkind = \"slow\"\nfactr = 5\nfactor = 5\nfrom_s = 1\n",
            "factr",
        ),
        ("[[fault]]\nkind = \"slower\"\nfrom_s = 1\n", "slower"),
        (
            "[[fault]]\nkind = \"controller_away\"\nfrom_s = 1\nfor_s = 4\n",
            "for_s",
        ),
    ] {
        let said = refused(text);
        assert!(said.contains(names), "{text}: {said}");
    }
}

#[test]
fn a_value_that_means_nothing_is_refused_with_what_was_expected() {
    for (text, said) in [
        (
            "[fleet]\nreplicas = 0\n",
            "fleet.replicas: 0 is out of range: expected a whole number from 1 to 256",
        ),
        (
            "[service]\nstall_share = 1.5\n",
            "service.stall_share: 1.5 is out of range: expected a number from 0 to 1",
        ),
        (
            "[[fault]]\nkind = \"dead\"\nreplicas = [5]\nfrom_s = 1\n",
            "fault[0].replicas: 5 is out of range: expected a whole number from 0 to 4",
        ),
        (
            "[[fault]]\nkind = \"surge\"\nfactor = 2\nfrom_s = 5\nto_s = 4\n",
            "fault[0].to_s: 4 is out of range: expected a number from 5 to 3600",
        ),
        (
            "[policy]\nattempts = 3\n",
            "policy.attempts: 3 is out of range: expected 2: a simulated call has one hedge at most",
        ),
        (
            "[policy]\nbudget = 0.5\n",
            "policy.budget: 0.5 is not a budget: expected a number above 0 and at most 0.25, such as 0.08",
        ),
    ] {
        assert_eq!(refused(text), said);
    }
}

#[test]
fn a_name_that_nobody_knows_is_refused_with_those_there_are() {
    let said = Scenario::find("nowhere.toml").unwrap_err().to_string();
    assert!(said.starts_with("nowhere.toml: "), "{said}");
    assert!(
        said.contains("all-slow") && said.contains("fleet-100k"),
        "{said}"
    );
}

#[test]
fn a_variation_is_held_to_the_same_limits() {
    let one_dead = Scenario::find("one-dead").unwrap();
    let fewer = Variation {
        agents: Some(0),
        ..Variation::default()
    };
    let said = fewer.of(&one_dead).unwrap_err().to_string();
    assert!(said.starts_with("fleet.agents: 0 "), "{said}");
}
