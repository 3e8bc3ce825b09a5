//! One of each message that can stand, for tests that break one thing of it.

use std::time::Duration;

use hedgerow_protocol::arming::Arming;
use hedgerow_protocol::directive::{Directive, LiveValues, Mode, Stamp, Standing};
use hedgerow_protocol::ids::{
    Epoch, Incarnation, InstanceId, ModeSequence, ReplicaName, Revision, RouteKey, Sequence, Tick,
    ZoneName,
};
use hedgerow_protocol::latency::SparseHistogram;
use hedgerow_protocol::report::{Attempts, Effective, ReplicaReport, Report, RouteReport, Totals};
use hedgerow_protocol::session::{Held, Hello, SentReport, Text, Welcome};
use hedgerow_protocol::units::{AttemptLimit, Budget, Quantile, Ratio, Threshold};

/// A directive that can stand.
pub(crate) fn directive(dependency: &str) -> Directive {
    let share = Ratio::new(0.1).unwrap();
    let arming = Arming::new(share, Duration::from_secs(20), 0xfeed).unwrap();
    Directive {
        route: RouteKey::new(dependency, "get").unwrap(),
        stamp: Stamp {
            epoch: Epoch(3),
            revision: Revision(2),
            mode_sequence: ModeSequence(5),
        },
        mode: Mode::On,
        live: LiveValues::new(
            Tick(99),
            Some(Threshold::new(Duration::from_millis(80)).unwrap()),
            Ratio::ONE,
            Budget::new(0.08).unwrap(),
            3.0,
        )
        .unwrap()
        .with_arming(Some(arming)),
        standing: Standing {
            percentile: Quantile::new(0.95).unwrap(),
            holdout: Ratio::new(0.01).unwrap(),
            error_limit: Ratio::new(0.05).unwrap(),
            threshold_min: Some(Threshold::new(Duration::from_millis(5)).unwrap()),
            threshold_max: Some(Threshold::new(Duration::from_millis(500)).unwrap()),
            lease: Duration::from_secs(30),
            attempts: AttemptLimit::new(3).unwrap(),
            hedge_on_error: true,
        },
        probation: vec![ReplicaName::new("10.0.0.7:8080").unwrap()],
        start_credit: 1.5,
    }
}

/// A report that can stand, with `routes` routes.
pub(crate) fn sent_report(routes: usize) -> SentReport {
    SentReport {
        held_hash: 7,
        report: Report {
            sequence: Sequence(42),
            covers: Duration::from_secs(1),
            wall_clock_ms: 1_764_486_000_000,
            routes: (0..routes)
                .map(|i| route_report(&format!("dependency-{i}")))
                .collect(),
        },
    }
}

fn route_report(dependency: &str) -> RouteReport {
    let directive = directive(dependency);
    RouteReport {
        route: directive.route,
        totals: Totals {
            started: 10,
            finished: 9,
            crossed: 3,
            hedged: 2,
            won: 1,
            ..Totals::default()
        },
        primary: Attempts {
            done: SparseHistogram::try_from_pairs([(500, 8)]).unwrap(),
            censored: SparseHistogram::try_from_pairs([(540, 1)]).unwrap(),
        },
        hedge: Attempts::default(),
        treated: SparseHistogram::try_from_pairs([(500, 9)]).unwrap(),
        holdout: SparseHistogram::default(),
        in_flight: SparseHistogram::default(),
        replicas: vec![ReplicaReport {
            replica: ReplicaName::new("10.0.0.7:8080").unwrap(),
            zone: Some(ZoneName::new("eu-1a").unwrap()),
            started: 10,
            crossed: 3,
            finished: 9,
            errors: 1,
            hedged: 0,
            won: 0,
            primary: Attempts::default(),
        }],
        effective: Effective {
            stamp: directive.stamp,
            mode: directive.mode,
            own_off: false,
            threshold: directive.live.threshold,
            probability: directive.live.probability,
            budget: directive.live.budget,
            cap: directive.live.cap,
            tokens: 1.5,
            replicas: 3,
            watched_losers: 0,
        },
        over_budget_seconds: 0,
    }
}

/// A hello that can stand.
pub(crate) fn hello() -> Hello {
    let held = directive("catalog");
    Hello {
        instance: InstanceId::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0001),
        incarnation: Incarnation(1),
        zone: Some(ZoneName::new("eu-1a").unwrap()),
        version: Text::new("0.1.0").unwrap(),
        build: Text::new("checkout 2025-11-30+abc").unwrap(),
        capabilities: [Text::new("probation").unwrap()].into(),
        held: vec![Held {
            route: held.route,
            stamp: held.stamp,
            mode: held.mode,
            tick: held.live.tick,
            threshold: held.live.threshold,
            budget: held.live.budget,
        }],
    }
}

/// A welcome that can stand.
pub(crate) fn welcome() -> Welcome {
    Welcome {
        controller: Text::new("hedgerow-0").unwrap(),
        epoch: Epoch(3),
        report_interval: Duration::from_secs(1),
        heartbeat: Duration::from_secs(10),
        lease: Duration::from_secs(30),
        resyncing: true,
    }
}
