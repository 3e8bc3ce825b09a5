//! What a controller sends, directives apart.

use std::time::Duration;

use super::field::{Within as _, as_ms, millis, text};
use super::{WireError, proto};
use crate::ids::{Epoch, Sequence};
use crate::limits::{LEASE_MAX, LEASE_MIN};
use crate::session::{
    COME_BACK_MAX, ComeBack, ComeBackReason, ControllerMessage, DecodedSet, HEARTBEAT_MAX,
    HeartbeatAck, INTERVAL_MIN, REPORT_INTERVAL_MAX, ReceivedControllerMessage, ReportAck, Welcome,
};

/// A controller's message as an agent gets it. None: a kind of a newer version, to be ignored.
///
/// A set that cannot stand is no error of the stream: it comes as the refusal to answer with.
pub fn controller_message(
    message: proto::ControllerMessage,
) -> Result<Option<ReceivedControllerMessage>, WireError> {
    use proto::controller_message::Kind;
    let Some(kind) = message.kind else {
        return Ok(None);
    };
    Ok(Some(match kind {
        Kind::Welcome(welcome) => ControllerMessage::Welcome(welcome.try_into().within("welcome")?),
        Kind::Directives(set) => ControllerMessage::Directives(DecodedSet::try_from(set)),
        Kind::ReportAck(ack) => ControllerMessage::ReportAck(ack.try_into().within("report_ack")?),
        Kind::HeartbeatAck(ack) => ControllerMessage::HeartbeatAck(ack.into()),
        Kind::ComeBack(back) => ControllerMessage::ComeBack(back.try_into().within("come_back")?),
    }))
}

impl From<ControllerMessage> for proto::ControllerMessage {
    fn from(message: ControllerMessage) -> Self {
        use proto::controller_message::Kind;
        let kind = match message {
            ControllerMessage::Welcome(welcome) => Kind::Welcome(welcome.into()),
            ControllerMessage::Directives(set) => Kind::Directives(set.into()),
            ControllerMessage::ReportAck(ack) => Kind::ReportAck(ack.into()),
            ControllerMessage::HeartbeatAck(ack) => Kind::HeartbeatAck(ack.into()),
            ControllerMessage::ComeBack(come_back) => Kind::ComeBack(come_back.into()),
        };
        Self { kind: Some(kind) }
    }
}

impl From<Welcome> for proto::Welcome {
    fn from(welcome: Welcome) -> Self {
        Self {
            controller: welcome.controller.to_string(),
            epoch: welcome.epoch.0,
            report_interval_ms: as_ms(welcome.report_interval),
            heartbeat_ms: as_ms(welcome.heartbeat),
            lease_ms: as_ms(welcome.lease),
            resyncing: welcome.resyncing,
        }
    }
}

impl TryFrom<proto::Welcome> for Welcome {
    type Error = WireError;

    fn try_from(welcome: proto::Welcome) -> Result<Self, WireError> {
        Ok(Self {
            controller: text("controller", &welcome.controller)?,
            epoch: Epoch(welcome.epoch),
            report_interval: millis(
                "report_interval_ms",
                welcome.report_interval_ms,
                INTERVAL_MIN..=REPORT_INTERVAL_MAX,
            )?,
            heartbeat: millis(
                "heartbeat_ms",
                welcome.heartbeat_ms,
                INTERVAL_MIN..=HEARTBEAT_MAX,
            )?,
            lease: millis("lease_ms", welcome.lease_ms, LEASE_MIN..=LEASE_MAX)?,
            resyncing: welcome.resyncing,
        })
    }
}

impl From<ReportAck> for proto::ReportAck {
    fn from(ack: ReportAck) -> Self {
        Self {
            sequence: ack.sequence.0,
            refusal: ack.refusal.map(|reason| reason.to_string()),
        }
    }
}

impl TryFrom<proto::ReportAck> for ReportAck {
    type Error = WireError;

    fn try_from(ack: proto::ReportAck) -> Result<Self, WireError> {
        Ok(Self {
            sequence: Sequence(ack.sequence),
            refusal: ack
                .refusal
                .map(|reason| text("refusal", &reason))
                .transpose()?,
        })
    }
}

impl From<HeartbeatAck> for proto::HeartbeatAck {
    fn from(ack: HeartbeatAck) -> Self {
        Self { number: ack.number }
    }
}

impl From<proto::HeartbeatAck> for HeartbeatAck {
    fn from(ack: proto::HeartbeatAck) -> Self {
        Self { number: ack.number }
    }
}

impl From<ComeBack> for proto::ComeBack {
    fn from(come_back: ComeBack) -> Self {
        let reason = match come_back.reason {
            ComeBackReason::Draining => proto::ComeBackReason::Draining,
            ComeBackReason::Busy => proto::ComeBackReason::Busy,
            ComeBackReason::Rebalance => proto::ComeBackReason::Rebalance,
            ComeBackReason::Unknown => proto::ComeBackReason::Unspecified,
        };
        Self {
            after_ms: as_ms(come_back.after),
            reason: reason.into(),
        }
    }
}

impl TryFrom<proto::ComeBack> for ComeBack {
    type Error = WireError;

    fn try_from(come_back: proto::ComeBack) -> Result<Self, WireError> {
        let reason = match proto::ComeBackReason::try_from(come_back.reason) {
            Ok(proto::ComeBackReason::Draining) => ComeBackReason::Draining,
            Ok(proto::ComeBackReason::Busy) => ComeBackReason::Busy,
            Ok(proto::ComeBackReason::Rebalance) => ComeBackReason::Rebalance,
            Ok(proto::ComeBackReason::Unspecified) | Err(_) => ComeBackReason::Unknown,
        };
        let after = millis(
            "after_ms",
            come_back.after_ms,
            Duration::ZERO..=COME_BACK_MAX,
        )?;
        Ok(Self { after, reason })
    }
}
