//! Agents of the realistic fleet: most well, one stale, one lost, one that refuses, one whose clock
//! is off.

use std::collections::BTreeMap;
use std::sync::Arc;

use hedgerow_core::event::ConnectionId;
use hedgerow_core::moment::Moment;
use hedgerow_core::view::{AgentRouteView, AgentState, AgentView, RouteView, Sync};
use hedgerow_protocol::directive::{Mode, OffReason, Stamp};
use hedgerow_protocol::ids::{InstanceId, ModeSequence, RouteKey, ServiceName, ZoneName};
use hedgerow_protocol::report::LinkState;

pub(crate) fn agents(at: Moment, routes: &BTreeMap<RouteKey, Arc<RouteView>>) -> Vec<AgentView> {
    let services = ["storefront", "cart", "mobile-gateway"];
    (0..12u64)
        .map(|i| {
            let state = match i {
                10 => AgentState::Stale,
                11 => AgentState::Lost,
                _ => AgentState::Live,
            };
            let routes = routes
                .values()
                .enumerate()
                .filter(|(n, _)| n % 3 == (i % 3) as usize || i % 3 == 0)
                .map(|(_, view)| AgentRouteView {
                    route: view.route.clone(),
                    held: Stamp {
                        mode_sequence: ModeSequence(if i == 10 { 6 } else { 7 }),
                        ..view.stamp
                    },
                    wanted: view.stamp,
                    sync: match i {
                        10 => Sync::Pending,
                        4 => Sync::Refused(
                            "lease: 2s is out of range: expected from 1s to 3600s".into(),
                        ),
                        _ => Sync::Applied,
                    },
                    mode: view.mode,
                    own_off: i == 7 && view.mode == Mode::Off(OffReason::Errors),
                    threshold: view.figures.and_then(|f| f.threshold),
                    budget: 0.08,
                    tokens: 2.4,
                    link: if i == 10 {
                        LinkState::Stale
                    } else {
                        LinkState::Live
                    },
                    replicas: 5,
                    quarantine: None,
                })
                .collect();
            let ago = |s: u64| Moment::from_millis(at.as_millis() - s * 1000);
            AgentView {
                connection: ConnectionId(40 + i),
                service: ServiceName::new(services[(i % 3) as usize]).unwrap(),
                instance: InstanceId::from_u128(
                    0x0194_c0de_7000_8000_0000_0000_0000_0000 + u128::from(i) * 0x1111,
                ),
                zone: Some(ZoneName::new(["eu-1a", "eu-1b", "eu-1c"][(i % 3) as usize]).unwrap()),
                version: "0.1.0".into(),
                peer: format!("10.0.{}.{}:51{:03}", i % 3, 10 + i, 100 + i),
                state,
                connected: ago(3600 + i * 61),
                heard: ago(if state == AgentState::Live { 0 } else { 24 }),
                reported: Some(ago(if state == AgentState::Live { 1 } else { 25 })),
                skew_ms: Some(if i == 5 { 1_201_000 } else { 12 }),
                refused_reports: u64::from(i == 4) * 2,
                last_refusal: (i == 4)
                    .then(|| "routes[0].totals: hedged is 9, more than crossed (3)".into()),
                duplicate_reports: u64::from(i == 2),
                routes,
            }
        })
        .collect()
}
