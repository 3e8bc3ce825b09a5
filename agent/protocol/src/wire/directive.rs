//! Directives, one by one and in sets.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::field::{
    At as _, Within as _, as_ms, as_us, budget, each, message, millis, required, threshold,
};
use super::values::{mode_from_wire, mode_to_wire, stamp};
use super::{WireError, proto};
use crate::arming::Arming;
use crate::directive::{Directive, DirectiveError, DirectiveSet, LiveValues, Stamp, Standing};
use crate::ids::{ReplicaName, RouteKey, Tick};
use crate::limits::{
    ARMING_EPOCH_MAX, ARMING_EPOCH_MIN, LEASE_MAX, LEASE_MIN, REPLICAS_PER_ROUTE_MAX,
    ROUTES_PER_AGENT_MAX,
};
use crate::session::{DecodedSet, RefusedDirective, RefusedSet, Text};
use crate::units::{AttemptLimit, Quantile, Ratio};

impl From<DirectiveSet> for proto::DirectiveSet {
    fn from(set: DirectiveSet) -> Self {
        Self {
            nonce: set.nonce,
            directives: set
                .directives
                .into_iter()
                .map(|directive| Arc::unwrap_or_clone(directive).into())
                .collect(),
            empty_is_meant: set.empty_is_meant,
        }
    }
}

impl TryFrom<proto::DirectiveSet> for DecodedSet {
    type Error = RefusedSet;

    fn try_from(set: proto::DirectiveSet) -> Result<Self, RefusedSet> {
        let refuse = |error: DirectiveError| RefusedSet {
            nonce: set.nonce,
            reason: Text::lossy(error),
        };
        if set.directives.is_empty() && !set.empty_is_meant {
            return Err(refuse(DirectiveError::Empty));
        }
        if set.directives.len() > ROUTES_PER_AGENT_MAX {
            return Err(refuse(DirectiveError::TooManyRoutes(set.directives.len())));
        }
        let mut decoded = Self {
            nonce: set.nonce,
            empty_is_meant: set.empty_is_meant,
            accepted: Vec::with_capacity(set.directives.len()),
            refused: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for (i, directive) in set.directives.into_iter().enumerate() {
            let route = directive
                .route
                .clone()
                .and_then(|route| RouteKey::try_from(route).ok());
            // Also where one of the two is to be refused: which of them is meant is not known.
            if let Some(route) = &route
                && !seen.insert(route.clone())
            {
                return Err(refuse(DirectiveError::Duplicate(route.clone())));
            }
            let stamp = directive.stamp.map(Stamp::from);
            match Directive::try_from(directive).within(format_args!("directives[{i}]")) {
                Ok(directive) => decoded.accepted.push(directive),
                Err(error) => {
                    let reason = Text::lossy(error);
                    decoded.refused.push(RefusedDirective {
                        route,
                        stamp,
                        reason,
                    });
                }
            }
        }
        Ok(decoded)
    }
}

impl From<Directive> for proto::Directive {
    fn from(directive: Directive) -> Self {
        let (mode, reason) = mode_to_wire(directive.mode);
        Self {
            route: Some(directive.route.into()),
            stamp: Some(directive.stamp.into()),
            mode,
            reason,
            live: Some(directive.live.into()),
            standing: Some(directive.standing.into()),
            probation: directive.probation.into_iter().map(String::from).collect(),
            start_credit: directive.start_credit,
        }
    }
}

impl TryFrom<proto::Directive> for Directive {
    type Error = WireError;

    fn try_from(directive: proto::Directive) -> Result<Self, WireError> {
        if directive.probation.len() > REPLICAS_PER_ROUTE_MAX {
            let error = DirectiveError::TooManyReplicas(directive.probation.len());
            return Err(WireError::from_check(&error));
        }
        let read = Self {
            route: message("route", directive.route)?,
            stamp: stamp("stamp", directive.stamp)?,
            mode: mode_from_wire(directive.mode, directive.reason)?,
            live: message("live", directive.live)?,
            standing: message("standing", directive.standing)?,
            probation: each("probation", directive.probation, |name| {
                ReplicaName::new(&name).at("")
            })?,
            // 0 also from a controller from before there was one.
            start_credit: directive.start_credit,
        };
        // All of it is checked above, by field; what the domain adds later is checked here.
        read.check()
            .map_err(|error| WireError::from_check(&error))?;
        Ok(read)
    }
}

impl From<LiveValues> for proto::LiveValues {
    fn from(live: LiveValues) -> Self {
        Self {
            tick: live.tick.0,
            threshold_us: live.threshold.map(|threshold| as_us(threshold.get())),
            probability: Some(live.probability.get()),
            budget: Some(live.budget.get()),
            cap: Some(live.cap),
            arming: live.arming.map(Into::into),
        }
    }
}

impl TryFrom<proto::LiveValues> for LiveValues {
    type Error = WireError;

    fn try_from(live: proto::LiveValues) -> Result<Self, WireError> {
        // Absent also from a controller from before there was any: everyone is armed.
        let arming = live.arming.map(Arming::try_from).transpose();
        let read = Self::new(
            Tick(live.tick),
            threshold("threshold_us", live.threshold_us)?,
            number("probability", live.probability, Ratio::new)?,
            budget("budget", required("budget", live.budget)?)?,
            required("cap", live.cap)?,
        )
        .map_err(|error| WireError::from_check(&error))?;
        Ok(read.with_arming(arming.within("arming")?))
    }
}

impl From<Arming> for proto::Arming {
    fn from(arming: Arming) -> Self {
        Self {
            share: arming.share().get(),
            epoch_ms: as_ms(arming.epoch()),
            seed: arming.seed(),
        }
    }
}

impl TryFrom<proto::Arming> for Arming {
    type Error = WireError;

    fn try_from(arming: proto::Arming) -> Result<Self, WireError> {
        let share = Ratio::new(arming.share).ok();
        let share = share.filter(|it| it.get() > 0.0 && it.get() < 1.0);
        let epoch = millis(
            "epoch_ms",
            arming.epoch_ms,
            ARMING_EPOCH_MIN..=ARMING_EPOCH_MAX,
        )?;
        let Some(share) = share else {
            let error = DirectiveError::ArmingShare(arming.share);
            return Err(WireError::new(
                "share",
                WireError::from_check(&error).problem,
            ));
        };
        Self::new(share, epoch, arming.seed).map_err(|error| WireError::from_check(&error))
    }
}

impl From<Standing> for proto::Standing {
    fn from(standing: Standing) -> Self {
        Self {
            percentile: Some(standing.percentile.get()),
            holdout: Some(standing.holdout.get()),
            error_limit: Some(standing.error_limit.get()),
            threshold_min_us: standing
                .threshold_min
                .map(|threshold| as_us(threshold.get())),
            threshold_max_us: standing
                .threshold_max
                .map(|threshold| as_us(threshold.get())),
            lease_ms: as_ms(standing.lease),
            attempts: u32::from(standing.attempts.get()),
            hedge_on_error: standing.hedge_on_error,
        }
    }
}

impl TryFrom<proto::Standing> for Standing {
    type Error = WireError;

    fn try_from(standing: proto::Standing) -> Result<Self, WireError> {
        let read = Self {
            percentile: number("percentile", standing.percentile, Quantile::new)?,
            holdout: number("holdout", standing.holdout, Ratio::new)?,
            error_limit: number("error_limit", standing.error_limit, Ratio::new)?,
            threshold_min: threshold("threshold_min_us", standing.threshold_min_us)?,
            threshold_max: threshold("threshold_max_us", standing.threshold_max_us)?,
            lease: millis("lease_ms", standing.lease_ms, LEASE_MIN..=LEASE_MAX)?,
            attempts: match standing.attempts {
                // A controller from before there was a third attempt.
                0 => AttemptLimit::default(),
                most => AttemptLimit::new(most.into()).at("attempts")?,
            },
            hedge_on_error: standing.hedge_on_error,
        };
        if let (Some(min), Some(max)) = (read.threshold_min, read.threshold_max)
            && min > max
        {
            let problem =
                format_args!("{max} is below threshold_min_us ({min}): expected at least that");
            return Err(WireError::new("threshold_max_us", problem));
        }
        Ok(read)
    }
}

/// A number that must be there and be in its type's range.
fn number<T, E: fmt::Display>(
    field: &str,
    value: Option<f64>,
    check: impl FnOnce(f64) -> Result<T, E>,
) -> Result<T, WireError> {
    check(required(field, value)?).at(field)
}
