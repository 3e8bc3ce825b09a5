//! A policy file that changes while calls go on.

use std::path::Path;

use hedgerow_protocol::directive::{Mode, OffReason};

use super::load::{S, Service, percent, policy, usual};
use crate::agent::Agent;

fn hedge(dependency: &str, budget: f64) -> String {
    format!("[[policy]]\ndependency = \"{dependency}\"\nintent = \"hedge\"\nbudget = {budget}\n")
}

fn rename_into(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

async fn seconds(service: &mut Service, seconds: u32) -> Mode {
    let takes = || if percent(5) { usual() * 10 } else { usual() };
    service.offer(100, seconds, |_| takes()).await;
    service.last().mode
}

fn budget(service: &Service) -> f64 {
    service.route.snapshot().effective.budget.get()
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_is_taken_and_loses_nothing_that_was_learned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    std::fs::write(&path, "policy = []").unwrap();
    let agent = Agent::builder().service("shop").policy_file(&path);
    let mut service = Service::build(agent, 3, |route| route.deadline(10 * S)).await;
    assert_eq!(seconds(&mut service, 10).await, Mode::Observing);
    let learned = service.threshold();

    rename_into(&path, &hedge("catalog", 0.08));
    assert_eq!(seconds(&mut service, 4).await, Mode::On);
    let kept = service
        .since(10)
        .iter()
        .map(|second| second.threshold.unwrap());
    assert!(
        kept.into_iter().all(|threshold| threshold > learned / 3),
        "never without a threshold"
    );
    assert!(
        service.last().totals.hedged > 0,
        "at once, by what was learned while observing"
    );

    let off = hedge("catalog", 0.08).replace("hedge", "off");
    rename_into(&path, &off);
    assert_eq!(seconds(&mut service, 4).await, Mode::Off(OffReason::Policy));
    let hedged = service.last().totals.hedged;
    seconds(&mut service, 10).await;
    assert_eq!(service.last().totals.hedged, hedged);
    service.assert_within_budget();
}

#[tokio::test(start_paused = true)]
async fn p03_a_bad_partial_or_vanished_file_is_refused_whole_and_the_last_good_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    let good = format!("{}{}", hedge("catalog", 0.1), hedge("search", 0.2));
    std::fs::write(&path, &good).unwrap();
    let agent = Agent::builder().service("shop").policy_file(&path);
    let mut service = Service::build(agent, 3, |route| route).await;
    let file = service.agent.keeper.shared.policy_file.clone().unwrap();
    assert_eq!((budget(&service), file.policies().len()), (0.1, 2));
    let bad = [
        // Good but for one value in the other policy: refused whole.
        Some(format!("{}{}", hedge("catalog", 0.2), hedge("search", 0.9))),
        // Half of it, and none of it: a writer that died.
        Some(good[..40].to_owned()),
        Some(String::new()),
        None,
    ];
    for (refused, content) in (1..).zip(bad) {
        match &content {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        assert_eq!(seconds(&mut service, 10).await, Mode::On, "{content:?}");
        assert_eq!(
            (budget(&service), file.policies().len()),
            (0.1, 2),
            "{content:?}"
        );
        assert_eq!(
            file.refused(),
            refused,
            "once for each content, not each look"
        );
    }
    rename_into(&path, &good);
    seconds(&mut service, 5).await;
    assert_eq!((budget(&service), file.refused()), (0.1, 4));
    rename_into(&path, &hedge("catalog", 0.2));
    seconds(&mut service, 5).await;
    assert_eq!((budget(&service), file.policies().len()), (0.2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_file_being_written_is_not_taken_for_the_part_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    std::fs::write(&path, hedge("catalog", 0.08)).unwrap();
    let agent = Agent::builder().service("shop").policy_file(&path);
    let mut service = Service::build(agent, 3, |route| route).await;
    // Cut between two policies it is good TOML, without the second one.
    let (first, second) = (hedge("search", 0.05), hedge("catalog", 0.08));
    for end in (1..=first.len() + second.len()).step_by(7) {
        let text = format!("{first}{second}");
        std::fs::write(&path, &text[..end]).unwrap();
        tokio::time::sleep(S / 4).await;
        assert_eq!(service.route.snapshot().effective.mode, Mode::On);
    }
    std::fs::write(&path, format!("{first}{second}")).unwrap();
    seconds(&mut service, 5).await;
    let file = service.agent.keeper.shared.policy_file.clone().unwrap();
    assert_eq!((file.policies().len(), file.refused()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn the_file_goes_before_the_code_and_without_its_word_the_code_holds_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policies.toml");
    std::fs::write(&path, hedge("catalog", 0.2)).unwrap();
    let agent = Agent::builder().service("shop").policy_file(&path);
    let code = policy(|draft| draft.budget = 0.05);
    let mut service = Service::build(agent, 3, |route| route.hedge_standalone(code)).await;
    let other = service.agent.route("catalog", "list").build().unwrap();
    let others = || other.snapshot().effective;
    assert_eq!(
        (budget(&service), others().budget.get()),
        (0.2, 0.2),
        "all operations"
    );
    rename_into(&path, &hedge("search", 0.1));
    seconds(&mut service, 5).await;
    assert_eq!((budget(&service), service.last().mode), (0.05, Mode::On));
    assert_eq!(
        others().mode,
        Mode::Observing,
        "the code said nothing about it"
    );
    rename_into(&path, &hedge("catalog", 0.2));
    seconds(&mut service, 5).await;
    assert_eq!((budget(&service), others().mode), (0.2, Mode::On));
}
