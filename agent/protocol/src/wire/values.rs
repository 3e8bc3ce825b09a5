//! Routes, stamps and modes: what several messages are made of.

use super::field::{At as _, required};
use super::{WireError, proto};
use crate::directive::{Mode, OffReason, Stamp};
use crate::ids::{DependencyName, Epoch, ModeSequence, OperationName, Revision, RouteKey};

impl From<RouteKey> for proto::Route {
    fn from(route: RouteKey) -> Self {
        Self {
            dependency: route.dependency.into(),
            operation: route.operation.into(),
        }
    }
}

impl TryFrom<proto::Route> for RouteKey {
    type Error = WireError;

    fn try_from(route: proto::Route) -> Result<Self, WireError> {
        Ok(Self {
            dependency: DependencyName::new(&route.dependency).at("dependency")?,
            operation: OperationName::new(&route.operation).at("operation")?,
        })
    }
}

impl From<Stamp> for proto::Stamp {
    fn from(stamp: Stamp) -> Self {
        Self {
            epoch: stamp.epoch.0,
            revision: stamp.revision.0,
            mode_sequence: stamp.mode_sequence.0,
        }
    }
}

impl From<proto::Stamp> for Stamp {
    fn from(stamp: proto::Stamp) -> Self {
        Self {
            epoch: Epoch(stamp.epoch),
            revision: Revision(stamp.revision),
            mode_sequence: ModeSequence(stamp.mode_sequence),
        }
    }
}

pub(super) fn stamp(field: &str, stamp: Option<proto::Stamp>) -> Result<Stamp, WireError> {
    required(field, stamp).map(Stamp::from)
}

/// A mode as its two fields.
pub(super) fn mode_to_wire(mode: Mode) -> (i32, i32) {
    let wire = match mode {
        Mode::Off(_) => proto::Mode::Off,
        Mode::Observing => proto::Mode::Observing,
        Mode::Probing(_) => proto::Mode::Probing,
        Mode::On => proto::Mode::On,
    };
    (
        wire.into(),
        mode.reason()
            .map_or(proto::OffReason::Unspecified, reason_to_wire)
            .into(),
    )
}

/// What is missing is refused, what is not known is off (P17): no version ever sends 0, so a 0 is
/// a partial message, while another number is a newer release's.
pub(super) fn mode_from_wire(mode: i32, reason: i32) -> Result<Mode, WireError> {
    let reason = reason_from_wire(reason);
    Ok(match proto::Mode::try_from(mode) {
        Ok(proto::Mode::Unspecified) => {
            let problem = "is missing: expected off, observing, probing or on";
            return Err(WireError::new("mode", problem));
        }
        Ok(proto::Mode::Off) => Mode::Off(reason),
        Ok(proto::Mode::Observing) => Mode::Observing,
        // Probing sends hedges: not for a reason nobody here understands.
        Ok(proto::Mode::Probing) if reason != OffReason::Unknown => Mode::Probing(reason),
        Ok(proto::Mode::On) => Mode::On,
        Ok(proto::Mode::Probing) | Err(_) => Mode::Off(OffReason::Unknown),
    })
}

fn reason_to_wire(reason: OffReason) -> proto::OffReason {
    match reason {
        OffReason::Errors => proto::OffReason::Errors,
        OffReason::SharedSlowdown => proto::OffReason::SharedSlowdown,
        OffReason::PushBack => proto::OffReason::PushBack,
        OffReason::WinsNothing => proto::OffReason::WinsNothing,
        OffReason::KillSwitch => proto::OffReason::KillSwitch,
        OffReason::Policy => proto::OffReason::Policy,
        OffReason::TooManyChanges => proto::OffReason::TooManyChanges,
        OffReason::Unknown => proto::OffReason::Unspecified,
    }
}

fn reason_from_wire(reason: i32) -> OffReason {
    match proto::OffReason::try_from(reason) {
        Ok(proto::OffReason::Errors) => OffReason::Errors,
        Ok(proto::OffReason::SharedSlowdown) => OffReason::SharedSlowdown,
        Ok(proto::OffReason::PushBack) => OffReason::PushBack,
        Ok(proto::OffReason::WinsNothing) => OffReason::WinsNothing,
        Ok(proto::OffReason::KillSwitch) => OffReason::KillSwitch,
        Ok(proto::OffReason::Policy) => OffReason::Policy,
        Ok(proto::OffReason::TooManyChanges) => OffReason::TooManyChanges,
        Ok(proto::OffReason::Unspecified) | Err(_) => OffReason::Unknown,
    }
}
