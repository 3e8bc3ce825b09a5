use std::time::Instant;
use hedgerow_protocol::ids::RouteKey;
use crate::{agent::Agent, traffic::Traffic, world::{World, policy, set}};
#[test]
fn scale() {
    let n = 10_000u64; 
    let mut world = World::new();
    for i in 1..=n { world.join(Agent::new(i)); }
    world.ordered(set(policy())).unwrap();
    for sec in 0..25 {
        world.now = world.now.plus(std::time::Duration::from_secs(1));
        let t = Instant::now();
        for i in 1..=n {
            let routes: Vec<_> = (0..8).map(|r| (RouteKey::new("catalog", &format!("op{}", (i*8+r*131)%1000)).unwrap(), Traffic{calls: 8, ..Traffic::HEALTHY})).collect();
            world.report(hedgerow_core::event::ConnectionId(i), &routes);
        }
        let rep = t.elapsed();
        let t = Instant::now();
        world.controller.handle_timeout(world.now);
        let tick = t.elapsed();
        let t = Instant::now();
        let s = world.controller.snapshot(world.now);
        let snap = t.elapsed();
        let p = world.pushes.len();
        let t = Instant::now();
        world.drain();
        println!("{sec}: reports {rep:?} tick {tick:?} snapshot {snap:?} drain {:?} pushes {} routes {}", t.elapsed(), world.pushes.len()-p, s.routes.len());
        world.pushes.clear(); world.acks.clear();
        for a in world.agents.values_mut() { a.sets.clear(); }
    }
    let t = Instant::now();
    world.kill(true).unwrap();
    println!("kill {:?}", t.elapsed());
    println!("{:?}", world.snapshot().kills[0].acked);
}
