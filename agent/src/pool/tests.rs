use super::*;

fn pool(members: &[(&str, Option<&str>)]) -> Pool {
    let list = Replicas::new(members.iter().copied()).unwrap();
    Pool::new(
        Some(list),
        ReplicaName::new("catalog").unwrap(),
        Arc::new(Permits::new()),
    )
}

fn name(text: &str) -> ReplicaName {
    ReplicaName::new(text).unwrap()
}

fn primaries(pool: &Pool, n: usize) -> BTreeMap<String, u64> {
    let mut seen = BTreeMap::new();
    for _ in 0..n {
        let replica = pool.primary().replica;
        replica.attempt_begins(true);
        replica.attempt_ends();
        *seen.entry(replica.name.to_string()).or_default() += 1;
    }
    seen
}

#[test]
fn a_hedge_never_goes_where_the_call_waits() {
    chance::seed(3);
    let pool = pool(&[("a:1", None), ("b:1", None), ("c:1", None)]);
    for _ in 0..1000 {
        let primary = pool.primary().replica;
        let hedge = pool.hedge(&[Some(&*primary)], 0.08).unwrap();
        assert_ne!(primary.name, hedge.name);
    }
}

#[test]
fn one_replica_or_none_leaves_nowhere_to_hedge() {
    let one = pool(&[("a:1", None)]);
    let primary = one.primary().replica;
    assert!(one.hedge(&[Some(&*primary)], 0.25).is_none());
    let none = Pool::new(None, name("catalog"), Arc::new(Permits::new()));
    let pinned = none.pinned(&name("x:1"));
    assert!(none.hedge(&[Some(&*pinned)], 0.25).is_none());
    assert_eq!(none.primary().replica.name.as_str(), "catalog");
}

#[test]
fn the_most_loaded_of_any_number_gets_nothing() {
    let members = ["a:1", "b:1", "c:1", "d:1", "e:1"].map(|name| (name, None));
    for n in 2..=members.len() {
        chance::seed(n as u64);
        let pool = pool(&members[..n]);
        let busy = pool.pinned(&name("a:1"));
        (0..5).for_each(|_| busy.attempt_begins(false));
        let seen = primaries(&pool, 4000);
        assert_eq!(seen.get("a:1"), None, "{seen:?}");
        // The others evenly.
        let even = 4000 / (n as u64 - 1);
        let others = seen
            .values()
            .all(|got| (even * 9 / 10..=even * 11 / 10).contains(got));
        assert!(others && seen.len() == n - 1, "{seen:?}");
        if n > 2 {
            let waits_on = pool.pinned(&name("b:1"));
            for _ in 0..500 {
                let hedge = pool.hedge(&[Some(&*waits_on)], 0.08).unwrap();
                assert_ne!(hedge.name, busy.name);
            }
        }
    }
}

#[test]
fn pairs_come_out_evenly() {
    let mut seen = BTreeMap::<_, u32>::new();
    chance::seed(17);
    for _ in 0..60_000 {
        let bits = chance::draw();
        let first = below(bits as u32, 4);
        let second = another(below((bits >> 32) as u32, 3), first);
        *seen.entry((first, second)).or_default() += 1;
    }
    assert_eq!(seen.len(), 12, "each of the others after each: {seen:?}");
    assert!(seen.iter().all(|((first, second), _)| first != second));
    assert!(
        seen.values().all(|n| (4_700..5_300).contains(n)),
        "{seen:?}"
    );
}

#[test]
fn another_zone_is_preferred_until_it_has_its_share() {
    chance::seed(5);
    let pool = pool(&[("a:1", Some("x")), ("b:1", Some("x")), ("c:1", Some("y"))]);
    primaries(&pool, 3000);
    let a = pool.pinned(&name("a:1"));
    let mut to_c = 0;
    for _ in 0..300 {
        let hedge = pool.hedge(&[Some(&*a)], 0.08).unwrap();
        hedge.hedged.fetch_add(1, Ordering::Relaxed);
        to_c += u32::from(hedge.name.as_str() == "c:1");
    }
    // A thousand primaries at 8 % and two more; the rest goes to b:1, then to either.
    assert!((70..=190).contains(&to_c), "{to_c}");
}

#[test]
fn b31_a_new_replica_gets_its_share_and_no_more() {
    chance::seed(7);
    let list = Replicas::new([("a:1", None), ("b:1", None), ("c:1", None)]).unwrap();
    let pool = Pool::new(
        Some(list.clone()),
        name("catalog"),
        Arc::new(Permits::new()),
    );
    primaries(&pool, 3000);
    list.replace([("a:1", None), ("b:1", None), ("c:1", None), ("d:1", None)])
        .unwrap();
    let a = pool.pinned(&name("a:1"));
    assert!(a.started() > 0, "what is known stays known");
    let mut to_d = 0;
    for _ in 0..100 {
        let hedge = pool.hedge(&[Some(&*a)], 0.08).unwrap();
        hedge.hedged.fetch_add(1, Ordering::Relaxed);
        to_d += u32::from(hedge.name.as_str() == "d:1");
    }
    assert!(to_d <= 33, "no samples, {to_d} of 100 hedges");
    let seen = primaries(&pool, 4000);
    assert!((800..1200).contains(&seen["d:1"]), "{seen:?}");
}

#[test]
fn probation_leaves_a_tenth_of_the_primaries_and_no_hedges() {
    chance::seed(9);
    let pool = pool(&[("a:1", None), ("b:1", None), ("c:1", None), ("d:1", None)]);
    pool.set_probation(&[name("d:1")]);
    let seen = primaries(&pool, 40_000);
    assert!((800..1200).contains(&seen["d:1"]), "{seen:?}");
    let a = pool.pinned(&name("a:1"));
    assert!((0..500).all(|_| pool.hedge(&[Some(&*a)], 0.08).unwrap().name.as_str() != "d:1"));
    pool.set_probation(&[]);
    assert!(primaries(&pool, 4000)["d:1"] > 800);
}

#[test]
fn probation_is_a_tenth_also_where_the_replica_would_win_each_comparison() {
    chance::seed(13);
    let pool = pool(&[("a:1", None), ("b:1", None), ("c:1", None)]);
    for busy in ["a:1", "b:1"] {
        let replica = pool.pinned(&name(busy));
        (0..9).for_each(|_| replica.attempt_begins(true));
    }
    pool.set_probation(&[name("c:1")]);
    let seen = primaries(&pool, 30_000);
    assert!((850..1150).contains(&seen["c:1"]), "{seen:?}");
}

#[test]
fn b30_probation_of_all_is_probation_of_none() {
    for n in 1..=3 {
        let members: Vec<_> = [("a:1", None), ("b:1", None), ("c:1", None)]
            .into_iter()
            .take(n)
            .collect();
        let pool = pool(&members);
        let names: Vec<_> = members.iter().map(|(n, _)| name(n)).collect();
        pool.set_probation(&names);
        assert_eq!(primaries(&pool, 300).len(), n);
    }
}

#[test]
fn p11_pinned_names_are_bounded() {
    let pool = Pool::new(None, name("catalog"), Arc::new(Permits::new()));
    for i in 0..1000 {
        assert_eq!(
            pool.pinned(&name(&format!("r{i}:1"))).name.as_str(),
            format!("r{i}:1")
        );
    }
    assert_eq!(pool.known().len(), REPLICAS_PER_ROUTE_MAX);
    let before = pool.snapshot.load_full();
    pool.pinned(&name("r999:1"));
    assert!(
        Arc::ptr_eq(&before, &pool.snapshot.load_full()),
        "a name without room does not make the list anew with each call"
    );
}
