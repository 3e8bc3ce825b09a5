//! What is to be sent on one stream: the latest only.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hedgerow_protocol::directive::DirectiveSet;
use hedgerow_protocol::ids::Sequence;
use hedgerow_protocol::session::{ControllerMessage, ReportAck, Text};
use tokio::sync::Notify;

/// Acknowledgements kept for a slow agent. It has one report under way at most; one that sends more
/// without reading breaks the contract, and loses the oldest.
const ACKS_MAX: usize = 8;

/// A slot for the newest set of directives and a few acknowledgements. The engine puts in, the
/// session takes out as fast as its agent reads; neither waits for the other (B56).
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    slot: Mutex<Slot>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    set: Option<DirectiveSet>,
    acks: VecDeque<ReportAck>,
}

impl Outbox {
    /// Puts a set in; an unsent older one is forgotten.
    pub(crate) fn push(&self, set: DirectiveSet) {
        self.slot().set = Some(set);
        self.filled.notify_one();
    }

    /// Puts an acknowledgement in.
    pub(crate) fn acknowledge(&self, sequence: Sequence, refused: Option<String>) {
        let mut slot = self.slot();
        if slot.acks.len() == ACKS_MAX {
            slot.acks.pop_front();
        }
        slot.acks.push_back(ReportAck {
            sequence,
            refusal: refused.map(Text::lossy),
        });
        drop(slot);
        self.filled.notify_one();
    }

    /// Waits until there is something. There is one waiter: the session.
    pub(crate) async fn filled(&self) {
        loop {
            if !self.slot().is_empty() {
                return;
            }
            self.filled.notified().await;
        }
    }

    /// The next message; directives first, since they may be an order to stop.
    pub(crate) fn take(&self) -> Option<ControllerMessage> {
        let mut slot = self.slot();
        slot.set
            .take()
            .map(ControllerMessage::Directives)
            .or_else(|| slot.acks.pop_front().map(ControllerMessage::ReportAck))
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        // Nothing panics while it is held, and a half-filled slot is a filled slot.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.set.is_none() && self.acks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nonce: u64) -> DirectiveSet {
        DirectiveSet {
            nonce,
            directives: Vec::new(),
            empty_is_meant: true,
        }
    }

    #[test]
    fn b56_an_agent_that_does_not_read_gets_the_latest_set_and_a_few_acks() {
        let outbox = Outbox::default();
        for n in 1..=10_000 {
            outbox.push(set(n));
            outbox.acknowledge(Sequence(n), None);
        }
        assert_eq!(
            outbox.take(),
            Some(ControllerMessage::Directives(set(10_000)))
        );
        let acks: Vec<_> = std::iter::from_fn(|| outbox.take()).collect();
        assert_eq!(acks.len(), ACKS_MAX);
        assert!(
            matches!(&acks[ACKS_MAX - 1], ControllerMessage::ReportAck(ack) if ack.sequence == Sequence(10_000))
        );
    }
}
