//! Receivers of each kind, as they are configured.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hedgerow_control_plane::alerts::Receiver;
use hedgerow_control_plane::config::{self, MailSettings, MailTls, ReceiverKind};

pub(crate) const ROUTING_KEY: &str = "canary0routing0key00000000000000";
pub(crate) const PASSWORD: &str = "canary-password";

pub(crate) fn made(name: &str, kind: ReceiverKind) -> Receiver {
    made_with(name, kind, true, None)
}

pub(crate) fn made_with(
    name: &str,
    kind: ReceiverKind,
    allow_private: bool,
    ca: Option<Vec<u8>>,
) -> Receiver {
    let configured = config::Receiver {
        name: name.into(),
        kind,
        allow_private,
        ca,
    };
    Receiver::try_from(&configured).unwrap()
}

pub(crate) fn alertmanager(address: impl std::fmt::Display) -> ReceiverKind {
    ReceiverKind::Alertmanager {
        url: format!("http://{address}/").into(),
        token: Some("canary-token".into()),
        labels: BTreeMap::from([("severity".into(), "page".into())]),
    }
}

pub(crate) fn slack(address: impl std::fmt::Display) -> ReceiverKind {
    ReceiverKind::Slack {
        url: format!("http://{address}/services/canary-path").into(),
    }
}

pub(crate) fn pagerduty(address: impl std::fmt::Display) -> ReceiverKind {
    ReceiverKind::PagerDuty {
        url: format!("http://{address}/v2/enqueue").into(),
        routing_key: ROUTING_KEY.into(),
        severity: "critical".into(),
    }
}

pub(crate) fn webhook(address: SocketAddr) -> ReceiverKind {
    use base64::Engine as _;
    let key = base64::engine::general_purpose::STANDARD.encode(super::KEY);
    ReceiverKind::Webhook {
        url: format!("http://{address}/canary-path").into(),
        secret: format!("whsec_{key}").into(),
    }
}

pub(crate) fn mail(port: u16) -> MailSettings {
    MailSettings {
        host: "localhost".into(),
        port,
        tls: MailTls::None,
        from: "Hedgerow <hedgerow@example.com>".into(),
        to: vec!["ada@example.org".into(), "bob@example.net".into()],
        login: None,
    }
}

pub(crate) fn email(port: u16) -> ReceiverKind {
    ReceiverKind::Email(mail(port))
}
