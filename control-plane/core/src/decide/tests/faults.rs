use super::world::*;

fn stall(random: &mut Random, share: f64) -> f64 {
    10.0 * random.lognormal(0.5) + if random.chance(share) { 300.0 } else { 0.0 }
}

fn show(what: &str, world: &World) {
    println!("--- {what}");
    for (s, mode, words) in world.changes() {
        println!("  {s} {mode:?} {words}");
    }
    println!("  over {} offs {:?} ons {:?}", world.seconds_over_budget(), world.offs(), world.ons());
    let mut last = None;
    for row in &world.rows {
        if last.as_ref() != Some(&row.decision.named) {
            println!("  {} named {:?}", row.second, row.decision.named);
            last = Some(row.decision.named.clone());
        }
    }
    let line: Vec<String> = world.rows.iter().step_by(5).map(|r| format!("{}:{:.0}", r.second, r.decision.live.threshold.map_or(0.0, |d| d.get().as_secs_f64()*1e3))).collect();
    println!("  d {}", line.join(" "));
}

#[test]
fn dump_all() {
    for rate in [600.0, 200.0] {
    for seed in 1..=2 {
        let mut s = Setup::new(seed, Box::new(|t, r, _, random| {
            let bad = r == 1 && (40.0..80.0).contains(&t);
            Fate { ms: stall(random, if bad { 0.2 } else { 0.02 }), fails: false }
        }));
        s.calls_per_s = rate;
        show(&format!("one slow {rate}"), &World::run(s, 120));
        let mut s = Setup::new(seed, Box::new(|t, r, _, random| {
            let bad = r == 1 && (40.0..80.0).contains(&t);
            Fate { ms: if bad { 60_000.0 } else { stall(random, 0.02) }, fails: false }
        }));
        s.replicas = 3;
        s.calls_per_s = rate;
        show(&format!("one dead of 3 {rate}"), &World::run(s, 120));
        let mut s = Setup::new(seed, Box::new(|t, _, _, random| {
            let k = if (40.0..70.0).contains(&t) { 5.0 } else { 1.0 };
            Fate { ms: k * stall(random, 0.02), fails: false }
        }));
        s.calls_per_s = rate;
        show(&format!("all 5x {rate}"), &World::run(s, 140));
        let mut s = Setup::new(seed, Box::new(|t, _, _, random| {
            let bad = (40.0..60.0).contains(&t);
            Fate { ms: stall(random, 0.02), fails: bad && random.chance(0.6) }
        }));
        s.calls_per_s = rate;
        show(&format!("failing {rate}"), &World::run(s, 120));
        let mut s = Setup::new(seed, Box::new(|t, r, _, random| {
            let bad = r == 2 && (40.0..80.0).contains(&t);
            Fate { ms: stall(random, 0.02), fails: bad && random.chance(0.6) }
        }));
        s.calls_per_s = rate;
        show(&format!("one failing {rate}"), &World::run(s, 120));
        let mut s = Setup::new(seed, Box::new(|t, _, _, random| {
            let k = if t > 60.0 { 2.2 } else { 1.0 };
            Fate { ms: k * stall(random, 0.02), fails: false }
        }));
        s.calls_per_s = rate;
        show(&format!("2.2x {rate}"), &World::run(s, 300));
        let mut s = Setup::new(seed, Box::new(|_, _, e, random| {
            Fate { ms: if e {300.0 + stall(random, 0.0) } else { stall(random, 0.02) }, fails: false }
        }));
        s.calls_per_s = if rate == 600.0 { 1000.0 } else { 100.0 };
        s.expensive = |t| if (40.0..100.0).contains(&t) { 0.03 } else { 0.0 };
        show(&format!("expensive {rate}"), &World::run(s, 200));
        let mut s = Setup::new(seed, Box::new(|t, _, _, random| {
            let k = if t > 60.0 { f64::exp((t - 60.0) / 60.0 * 0.02_f64.ln_1p()) } else { 1.0 };
            Fate { ms: k * stall(random, 0.02), fails: false }
        }));
        s.calls_per_s = 50.0;
        if seed == 1 { show("creep", &World::run(s, 3700)); }
    }}
}
#[test]
fn trace() {
    for seed in 1..=6 {
        let mut s = Setup::new(seed, Box::new(|_, _, e, random| {
            Fate { ms: if e {300.0 + stall(random, 0.0) } else { stall(random, 0.02) }, fails: false }
        }));
        s.calls_per_s = 1000.0;
        s.expensive = |t| if (40.0..100.0).contains(&t) { 0.03 } else { 0.0 };
        let w = World::run(s, 160);
        println!("{:?}", w.changes());
        for r in &w.rows[100..130] {
            let f = r.decision.figures.unwrap();
            print!(" {}:{:.2}/{:.0}/q{:.2}/h{}", r.second, f.hedges_answered_ratio.unwrap_or(9.0), f.log_rank_z.unwrap_or(0.0), f.probability, r.totals.hedged);
        }
        println!();
    }
}
#[test]
fn long() {
    let t0 = std::time::Instant::now();
    for (what, share, sigma, rate, secs) in [
        ("2%", 0.02, 0.5, 600.0, 3600), ("2%", 0.02, 0.5, 200.0, 3600), ("2%", 0.02, 0.5, 50.0, 7200), ("2%", 0.02, 0.5, 20.0, 7200),
        ("8%", 0.08, 0.5, 600.0, 1800), ("8%", 0.08, 0.5, 100.0, 3600), ("8%", 0.08, 0.5, 20.0, 7200),
        ("heavy", 0.01, 1.2, 600.0, 1800), ("heavy", 0.01, 1.2, 50.0, 3600),
        ("none", 0.0, 0.3, 600.0, 1800),("none", 0.0, 0.3, 20.0, 7200),("2%", 0.02, 0.5, 5.0, 7200),
    ] {
        for seed in 1..=2 {
            let mut s = Setup::new(seed, Box::new(move |_, _, _, random| Fate { ms: 10.0 * random.lognormal(sigma) + if random.chance(share) { 300.0 } else { 0.0 }, fails: false }));
            s.calls_per_s = rate;
            let w = World::run(s, secs);
            let names = w.rows.windows(2).filter(|p| p[0].decision.named.len() < p[1].decision.named.len()).count();
            println!("{what} {sigma} {rate} offs {:?} ons {:?} rate {:.4} names {names} over {} budget {:.3}", w.offs(), w.ons(), w.hedge_rate(60, secs), w.seconds_over_budget(),
               w.rows[60..].iter().map(|r| r.decision.live.budget.get()).sum::<f64>() / (secs - 60) as f64);
            for c in w.changes().iter().skip(1) { println!("   {c:?}"); }
        }
    }
    println!("{:?}", t0.elapsed());
}
#[test]
fn names() {
    for (share, rate, secs) in [(0.02, 50.0, 7200), (0.02, 20.0, 7200), (0.08, 100.0, 3600)] {
            let mut s = Setup::new(1, Box::new(move |_, _, _, random| Fate { ms: 10.0 * random.lognormal(0.5) + if random.chance(share) { 300.0 } else { 0.0 }, fails: false }));
            s.calls_per_s = rate;
            let w = World::run(s, secs);
            for p in w.rows.windows(2) { if p[0].decision.named.len() != p[1].decision.named.len() { println!("{rate} {} {:?} d {:?}", p[1].second, p[1].decision.named, p[1].decision.live.threshold); 
               if p[1].decision.named.len() > 0 { for q in &w.rows[p[1].second as usize - 40..p[1].second as usize+2] { print!("{} ", q.decision.live.threshold.unwrap()); } println!(); } } }
    }
}
