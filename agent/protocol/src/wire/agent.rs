//! What an agent sends, reports apart.

use std::collections::BTreeSet;

use super::field::{At as _, Within as _, as_us};
use super::field::{at_most, budget, each, message, required, text, threshold, zone};
use super::values::{mode_from_wire, mode_to_wire, stamp};
use super::{WireError, proto};
use crate::directive::Stamp;
use crate::ids::{Incarnation, InstanceId, RouteKey, Tick};
use crate::limits::ROUTES_PER_AGENT_MAX;
use crate::session::{
    AgentMessage, Applied, AppliedRoute, CAPABILITIES_MAX, Goodbye, Heartbeat, Held, Hello,
    ReceivedAgentMessage, Refused, SentReport,
};

/// An agent's message as a controller gets it. None: a kind of a newer version, to be ignored.
///
/// A report that cannot stand is no error of the stream: it comes as the refusal to answer with.
pub fn agent_message(
    message: proto::AgentMessage,
) -> Result<Option<ReceivedAgentMessage>, WireError> {
    use proto::agent_message::Kind;
    let Some(kind) = message.kind else {
        return Ok(None);
    };
    Ok(Some(match kind {
        Kind::Hello(hello) => AgentMessage::Hello(hello.try_into().within("hello")?),
        Kind::Report(report) => AgentMessage::Report(SentReport::try_from(report)),
        Kind::Applied(applied) => AgentMessage::Applied(applied.try_into().within("applied")?),
        Kind::Refused(refused) => AgentMessage::Refused(refused.try_into().within("refused")?),
        Kind::Heartbeat(heartbeat) => AgentMessage::Heartbeat(heartbeat.into()),
        Kind::Goodbye(goodbye) => AgentMessage::Goodbye(goodbye.try_into().within("goodbye")?),
    }))
}

impl From<AgentMessage> for proto::AgentMessage {
    fn from(message: AgentMessage) -> Self {
        use proto::agent_message::Kind;
        let kind = match message {
            AgentMessage::Hello(hello) => Kind::Hello(hello.into()),
            AgentMessage::Report(report) => Kind::Report((&report).into()),
            AgentMessage::Applied(applied) => Kind::Applied(applied.into()),
            AgentMessage::Refused(refused) => Kind::Refused(refused.into()),
            AgentMessage::Heartbeat(heartbeat) => Kind::Heartbeat(heartbeat.into()),
            AgentMessage::Goodbye(goodbye) => Kind::Goodbye(goodbye.into()),
        };
        Self { kind: Some(kind) }
    }
}

impl From<Hello> for proto::Hello {
    fn from(hello: Hello) -> Self {
        Self {
            instance: hello.instance.to_string(),
            incarnation: hello.incarnation.0,
            zone: hello.zone.map(String::from).unwrap_or_default(),
            version: hello.version.to_string(),
            build: hello.build.to_string(),
            capabilities: hello.capabilities.iter().map(ToString::to_string).collect(),
            held: hello.held.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<proto::Hello> for Hello {
    type Error = WireError;

    fn try_from(hello: proto::Hello) -> Result<Self, WireError> {
        at_most("capabilities", &hello.capabilities, CAPABILITIES_MAX)?;
        at_most("held", &hello.held, ROUTES_PER_AGENT_MAX)?;
        let instance: InstanceId = hello
            .instance
            .parse()
            .map_err(|error| format!("{error}: expected a UUID"))
            .at("instance")?;
        let capabilities = each("capabilities", hello.capabilities, |name| text("", &name))?;
        let held = each("held", hello.held, Held::try_from)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = held.iter().find(|held| !seen.insert(&held.route)) {
            let problem = format_args!("{} is there twice; expected each route once", twice.route);
            return Err(WireError::new("held", problem));
        }
        Ok(Self {
            instance,
            incarnation: Incarnation(hello.incarnation),
            zone: zone("zone", &hello.zone)?,
            version: text("version", &hello.version)?,
            build: text("build", &hello.build)?,
            capabilities: capabilities.into_iter().collect(),
            held,
        })
    }
}

impl From<Held> for proto::Held {
    fn from(held: Held) -> Self {
        let (mode, reason) = mode_to_wire(held.mode);
        Self {
            route: Some(held.route.into()),
            stamp: Some(held.stamp.into()),
            mode,
            reason,
            tick: held.tick.0,
            threshold_us: held.threshold.map(|threshold| as_us(threshold.get())),
            budget: Some(held.budget.get()),
        }
    }
}

impl TryFrom<proto::Held> for Held {
    type Error = WireError;

    fn try_from(held: proto::Held) -> Result<Self, WireError> {
        Ok(Self {
            route: message("route", held.route)?,
            stamp: stamp("stamp", held.stamp)?,
            mode: mode_from_wire(held.mode, held.reason)?,
            tick: Tick(held.tick),
            threshold: threshold("threshold_us", held.threshold_us)?,
            budget: budget("budget", required("budget", held.budget)?)?,
        })
    }
}

impl From<AppliedRoute> for proto::AppliedRoute {
    fn from(applied: AppliedRoute) -> Self {
        Self {
            route: Some(applied.route.into()),
            stamp: Some(applied.stamp.into()),
        }
    }
}

impl TryFrom<proto::AppliedRoute> for AppliedRoute {
    type Error = WireError;

    fn try_from(applied: proto::AppliedRoute) -> Result<Self, WireError> {
        Ok(Self {
            route: message("route", applied.route)?,
            stamp: stamp("stamp", applied.stamp)?,
        })
    }
}

impl From<Applied> for proto::Applied {
    fn from(applied: Applied) -> Self {
        Self {
            nonce: applied.nonce,
            routes: applied.routes.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<proto::Applied> for Applied {
    type Error = WireError;

    fn try_from(applied: proto::Applied) -> Result<Self, WireError> {
        at_most("routes", &applied.routes, ROUTES_PER_AGENT_MAX)?;
        Ok(Self {
            nonce: applied.nonce,
            routes: each("routes", applied.routes, AppliedRoute::try_from)?,
        })
    }
}

impl From<Refused> for proto::Refused {
    fn from(refused: Refused) -> Self {
        Self {
            nonce: refused.nonce,
            route: refused.route.map(Into::into),
            stamp: refused.stamp.map(Into::into),
            reason: refused.reason.to_string(),
        }
    }
}

impl TryFrom<proto::Refused> for Refused {
    type Error = WireError;

    fn try_from(refused: proto::Refused) -> Result<Self, WireError> {
        if refused.reason.is_empty() {
            return Err(WireError::new(
                "reason",
                "is missing: expected why it was not taken",
            ));
        }
        Ok(Self {
            nonce: refused.nonce,
            route: refused
                .route
                .map(RouteKey::try_from)
                .transpose()
                .within("route")?,
            stamp: refused.stamp.map(Stamp::from),
            reason: text("reason", &refused.reason)?,
        })
    }
}

impl From<Heartbeat> for proto::Heartbeat {
    fn from(heartbeat: Heartbeat) -> Self {
        Self {
            number: heartbeat.number,
            held_hash: heartbeat.held_hash,
        }
    }
}

impl From<proto::Heartbeat> for Heartbeat {
    fn from(heartbeat: proto::Heartbeat) -> Self {
        Self {
            number: heartbeat.number,
            held_hash: heartbeat.held_hash,
        }
    }
}

impl From<Goodbye> for proto::Goodbye {
    fn from(goodbye: Goodbye) -> Self {
        Self {
            reason: goodbye.reason.to_string(),
        }
    }
}

impl TryFrom<proto::Goodbye> for Goodbye {
    type Error = WireError;

    fn try_from(goodbye: proto::Goodbye) -> Result<Self, WireError> {
        Ok(Self {
            reason: text("reason", &goodbye.reason)?,
        })
    }
}
