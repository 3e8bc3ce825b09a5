//! No bytes panic, and none unfold to more than a bounded amount.

use hedgerow_protocol::limits::MESSAGE_BYTES_MAX;
use hedgerow_protocol::wire::codec::{Bounded, decode};
use hedgerow_protocol::wire::{agent_message, controller_message, proto};
use proptest::prelude::*;
use prost::Message as _;
use prost::bytes::Buf as _;

use crate::{arbitrary, good};

fn read_all(bytes: &[u8]) {
    // Refused or not: it returns.
    let _ = decode::<proto::AgentMessage>(bytes).and_then(agent_message);
    let _ = decode::<proto::ControllerMessage>(bytes).and_then(controller_message);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        read_all(&bytes);
    }

    #[test]
    fn so_are_good_ones_that_were_damaged(
        message in arbitrary::agent_message(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut: prop::sample::Index,
    ) {
        let mut bytes = proto::AgentMessage::from(message).encode_to_vec();
        for (at, byte) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        read_all(&bytes);
        read_all(&bytes[..cut.index(bytes.len() + 1)]);
    }

    #[test]
    fn and_damaged_sets(
        message in arbitrary::controller_message(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = proto::ControllerMessage::from(message).encode_to_vec();
        for (at, byte) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        read_all(&bytes);
    }
}

/// `count` empty elements of field `number`, two bytes each.
fn empties(number: u8, count: usize) -> Vec<u8> {
    [number << 3 | 2, 0].repeat(count)
}

/// `inner` as field `number`.
fn field(number: u8, inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    prost::encode_length_delimiter(inner.len(), &mut bytes).unwrap();
    bytes.extend_from_slice(inner);
    bytes
}

fn refused<M: Bounded>(bytes: &[u8]) -> String {
    assert!(
        bytes.len() <= MESSAGE_BYTES_MAX,
        "would be refused by its size"
    );
    decode::<M>(bytes).err().unwrap().to_string()
}

#[test]
fn p11_two_bytes_an_element_do_not_become_hundreds_of_megabytes() {
    const MANY: usize = 400_000;
    for (number, inner) in [
        (1, empties(6, MANY)),
        (1, empties(7, MANY)),
        (2, empties(6, MANY)),
        (2, field(6, &empties(8, MANY))),
        (3, empties(2, MANY)),
    ] {
        let error = refused::<proto::AgentMessage>(&field(number, &inner));
        assert!(error.contains("400000 elements"), "{error}");
    }
    for inner in [empties(2, MANY), field(2, &empties(7, MANY))] {
        let error = refused::<proto::ControllerMessage>(&field(2, &inner));
        assert!(error.contains("400000 elements"), "{error}");
    }
    // The same field again adds to the same message, and so to the same count.
    let split = field(2, &empties(6, 1500)).repeat(2);
    let error = refused::<proto::AgentMessage>(&split);
    assert!(error.contains("3000 elements"), "{error}");
}

#[test]
fn a_message_over_the_size_limit_is_refused_unread() {
    let bytes = vec![0; MESSAGE_BYTES_MAX + 1];
    let error = decode::<proto::AgentMessage>(bytes.as_slice()).unwrap_err();
    assert!(error.problem.contains("at most 1048576"), "{error}");
}

#[test]
fn b61_a_little_too_many_is_read_so_that_it_can_be_refused_by_name() {
    let message = proto::AgentMessage::from(hedgerow_protocol::session::AgentMessage::Report(
        good::sent_report(65),
    ));
    let bytes = message.encode_to_vec();
    let received = agent_message(decode(bytes.as_slice()).unwrap())
        .unwrap()
        .unwrap();
    let hedgerow_protocol::session::AgentMessage::Report(Err(refused)) = received else {
        panic!("{received:?}")
    };
    assert_eq!(
        refused.reason.as_str(),
        "routes: 65; at most 64 are allowed"
    );
}

#[test]
fn b72_what_is_counted_together_is_one_route_more_than_64_and_no_way_around_them() {
    use hedgerow_protocol::ids::RouteKey;
    use hedgerow_protocol::session::AgentMessage;

    let read = |named: usize, others: &[(&str, &str)]| {
        let mut sent = good::sent_report(named);
        for (dependency, operation) in others {
            let mut other = sent.report.routes[0].clone();
            other.route = RouteKey::new(dependency, operation).unwrap();
            sent.report.routes.push(other);
        }
        let bytes = proto::AgentMessage::from(AgentMessage::Report(sent)).encode_to_vec();
        match agent_message(decode(bytes.as_slice()).unwrap()) {
            Ok(Some(AgentMessage::Report(report))) => report.map_err(|it| it.reason.to_string()),
            other => panic!("{other:?}"),
        }
    };
    let other = ("__other__", "__other__");
    assert_eq!(read(64, &[other]).unwrap().report.routes.len(), 65);
    for (named, others) in [
        (65, &[other][..]),
        (64, &[other, ("__other__", "get")]),
        (64, &[("__other__", "get")]),
    ] {
        let refused = read(named, others).unwrap_err();
        assert!(refused.contains("at most 64 are allowed"), "{refused}");
    }
    assert!(read(63, &[other, other]).unwrap_err().contains("twice"));
}

#[test]
fn a_message_in_pieces_is_the_same_message() {
    let message = proto::AgentMessage::from(hedgerow_protocol::session::AgentMessage::Hello(
        good::hello(),
    ));
    let bytes = message.encode_to_vec();
    let (a, b) = bytes.split_at(bytes.len() / 2);
    assert_eq!(decode::<proto::AgentMessage>(a.chain(b)), Ok(message));
}
