//! Whatever a good peer sends arrives as it was.

use std::sync::Arc;

use hedgerow_protocol::session::{AgentMessage, ControllerMessage};
use hedgerow_protocol::wire::codec::decode;
use hedgerow_protocol::wire::{agent_message, controller_message, proto};
use proptest::prelude::*;
use prost::Message as _;

use crate::arbitrary;

proptest! {
    #[test]
    fn every_agent_message_arrives_as_it_was_sent(sent in arbitrary::agent_message()) {
        let bytes = proto::AgentMessage::from(sent.clone()).encode_to_vec();
        let received = agent_message(decode(bytes.as_slice()).unwrap()).unwrap().unwrap();
        let received = match received {
            AgentMessage::Hello(hello) => AgentMessage::Hello(hello),
            AgentMessage::Report(report) => AgentMessage::Report(report.unwrap()),
            AgentMessage::Applied(applied) => AgentMessage::Applied(applied),
            AgentMessage::Refused(refused) => AgentMessage::Refused(refused),
            AgentMessage::Heartbeat(heartbeat) => AgentMessage::Heartbeat(heartbeat),
            AgentMessage::Goodbye(goodbye) => AgentMessage::Goodbye(goodbye),
        };
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn every_controller_message_arrives_as_it_was_sent(sent in arbitrary::controller_message()) {
        let bytes = proto::ControllerMessage::from(sent.clone()).encode_to_vec();
        let received = controller_message(decode(bytes.as_slice()).unwrap()).unwrap().unwrap();
        let received = match received {
            ControllerMessage::Welcome(welcome) => ControllerMessage::Welcome(welcome),
            ControllerMessage::Directives(set) => {
                let set = set.unwrap();
                prop_assert_eq!(&set.refused, &[]);
                ControllerMessage::Directives(hedgerow_protocol::directive::DirectiveSet {
                    nonce: set.nonce,
                    directives: set.accepted.into_iter().map(Arc::new).collect(),
                    empty_is_meant: set.empty_is_meant,
                })
            }
            ControllerMessage::ReportAck(ack) => ControllerMessage::ReportAck(ack),
            ControllerMessage::HeartbeatAck(ack) => ControllerMessage::HeartbeatAck(ack),
            ControllerMessage::ComeBack(back) => ControllerMessage::ComeBack(back),
        };
        prop_assert_eq!(received, sent);
    }
}

#[test]
fn p17_a_kind_of_message_of_a_newer_version_is_ignored() {
    // Field 99, a message of three bytes.
    let bytes = [0x9a, 0x06, 0x03, 1, 2, 3];
    assert_eq!(agent_message(decode(bytes.as_slice()).unwrap()), Ok(None));
    assert_eq!(
        controller_message(decode(bytes.as_slice()).unwrap()),
        Ok(None)
    );
}
