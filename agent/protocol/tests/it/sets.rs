//! A set stands or falls whole for what concerns the set, and one by one for the rest.

use std::sync::Arc;

use hedgerow_protocol::directive::{Directive, DirectiveSet, Mode, OffReason, Stamp};
use hedgerow_protocol::session::{DecodedSet, Refused};
use hedgerow_protocol::units::Budget;
use hedgerow_protocol::wire::proto;

use crate::good;

fn set(directives: impl IntoIterator<Item = Directive>) -> proto::DirectiveSet {
    let directives = directives.into_iter().map(Arc::new).collect();
    DirectiveSet {
        nonce: 17,
        directives,
        empty_is_meant: false,
    }
    .into()
}

fn refusal(set: proto::DirectiveSet) -> String {
    let refused = DecodedSet::try_from(set).unwrap_err();
    assert_eq!(refused.nonce, 17);
    let answer = Refused::from(refused);
    assert_eq!(
        (answer.route, answer.stamp),
        (None, None),
        "a refusal of the whole"
    );
    answer.reason.to_string()
}

#[test]
fn p03_one_bad_directive_is_refused_alone_with_its_stamp_and_its_field() {
    let mut set = set(["a", "b", "c"].map(good::directive));
    set.directives[1].live.as_mut().unwrap().budget = Some(f64::NAN);
    let decoded = DecodedSet::try_from(set).unwrap();
    assert_eq!(decoded.accepted, ["a", "c"].map(good::directive));
    let refusals: Vec<_> = decoded.refusals().collect();
    let [refused] = refusals.as_slice() else {
        panic!("{refusals:?}")
    };
    assert_eq!(refused.nonce, 17);
    assert_eq!(refused.route, Some(good::directive("b").route));
    assert_eq!(refused.stamp, Some(good::directive("b").stamp));
    assert_eq!(
        refused.reason.as_str(),
        "directives[1].live.budget: NaN is not a budget: \
         expected a number above 0 and at most 0.25, such as 0.08"
    );
}

#[test]
fn b60_a_directive_without_a_name_or_a_stamp_is_refused_alone() {
    let mut set = set(["a", "b"].map(good::directive));
    set.directives[0].route = Some(proto::Route {
        dependency: "<a>".into(),
        ..Default::default()
    });
    set.directives[1].stamp = None;
    let decoded = DecodedSet::try_from(set).unwrap();
    assert_eq!(decoded.accepted, []);
    let [nameless, unstamped] = decoded.refused.as_slice() else {
        panic!("{decoded:?}")
    };
    assert_eq!(nameless.route, None);
    assert_eq!(nameless.stamp, Some(good::directive("a").stamp));
    assert!(
        nameless
            .reason
            .as_str()
            .starts_with("directives[0].route.dependency: ")
    );
    assert_eq!(unstamped.route, Some(good::directive("b").route));
    assert_eq!(unstamped.stamp, None);
    assert!(
        unstamped
            .reason
            .as_str()
            .starts_with("directives[1].stamp: is missing")
    );
}

#[test]
fn b61_a_set_beyond_the_limit_or_with_a_route_twice_is_refused_whole() {
    let many = |n: usize| set((0..n).map(|i| good::directive(&format!("d{i}"))));
    assert_eq!(DecodedSet::try_from(many(64)).unwrap().accepted.len(), 64);
    assert_eq!(
        refusal(many(65)),
        "directives: 65 routes; at most 64 are allowed"
    );

    let twice = "directives: a get is there twice; expected each route once";
    assert_eq!(refusal(set(["a", "b", "a"].map(good::directive))), twice);

    let mut one_is_bad = set(["a", "a"].map(good::directive));
    one_is_bad.directives[0].live = None;
    assert_eq!(refusal(one_is_bad), twice);
}

#[test]
fn b62_an_empty_set_is_refused_unless_it_is_meant() {
    assert_eq!(
        refusal(set([])),
        "directives: the set is empty without empty_is_meant; the last good one is kept"
    );
    let meant = proto::DirectiveSet {
        empty_is_meant: true,
        ..set([])
    };
    let decoded = DecodedSet::try_from(meant).unwrap();
    assert!(decoded.empty_is_meant && decoded.accepted.is_empty() && decoded.refused.is_empty());
}

#[test]
fn a_budget_of_zero_is_a_value_where_it_is_said() {
    let mut directive = proto::Directive::from(good::directive("a"));
    directive.live.as_mut().unwrap().budget = Some(0.0);
    assert_eq!(
        Directive::try_from(directive).unwrap().live.budget,
        Budget::ZERO
    );
}

#[test]
fn p17_an_unknown_enum_value_means_off() {
    use proto::{Mode as M, OffReason as R};
    let unknown = Mode::Off(OffReason::Unknown);
    for (mode, reason, expected) in [
        (99, 0, unknown),
        (-1, R::Errors.into(), unknown),
        (i32::MAX, 99, unknown),
        (M::Off.into(), 99, unknown),
        (M::Off.into(), 0, unknown),
        (M::Probing.into(), 99, unknown),
        (M::Probing.into(), 0, unknown),
        (
            M::Probing.into(),
            R::Errors.into(),
            Mode::Probing(OffReason::Errors),
        ),
        (
            M::Off.into(),
            R::KillSwitch.into(),
            Mode::Off(OffReason::KillSwitch),
        ),
        (M::On.into(), 99, Mode::On),
        (M::Observing.into(), 99, Mode::Observing),
    ] {
        let mut set = set([good::directive("a")]);
        set.directives[0].mode = mode;
        set.directives[0].reason = reason;
        let decoded = DecodedSet::try_from(set).unwrap();
        assert_eq!(
            decoded.accepted[0].mode, expected,
            "mode {mode}, reason {reason}"
        );
    }
}

#[test]
fn an_agent_without_a_directive_says_so() {
    let mut sent = good::sent_report(1);
    sent.report.routes[0].effective.stamp = Stamp::default();
    let wire = proto::Report::from(&sent);
    assert_eq!(wire.routes[0].effective.unwrap().stamp, None);
}
