//! The way in for agents' sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hedgerow_core::event::{ConnectionId, Event, Joined};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Permit};

use crate::agents::Outbox;

/// What a session tells the engine.
#[derive(Debug)]
pub(crate) enum Intake {
    /// An agent said hello; what is for it goes into the outbox.
    Attach(Box<Joined>, Arc<Outbox>),
    /// It said something else, or its stream ended.
    Event(Event),
}

/// The engine is gone: the process is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the engine has ended")]
pub(crate) struct EngineEnded;

/// The sending side, with numbers for new streams.
#[derive(Debug, Clone)]
pub(crate) struct IntakeSender {
    events: mpsc::Sender<Intake>,
    connections: Arc<AtomicU64>,
}

impl IntakeSender {
    pub(super) fn new(events: mpsc::Sender<Intake>) -> Self {
        Self {
            events,
            connections: Arc::default(),
        }
    }

    /// A number that no stream of this process has had.
    pub(crate) fn next_connection(&self) -> ConnectionId {
        ConnectionId(self.connections.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Waits for room and sends.
    pub(crate) async fn send(&self, message: Intake) -> Result<(), EngineEnded> {
        self.events.send(message).await.map_err(|_| EngineEnded)
    }

    /// Waits for room.
    pub(crate) async fn reserve(&self) -> Result<Permit<'_, Intake>, EngineEnded> {
        self.events.reserve().await.map_err(|_| EngineEnded)
    }

    /// Sends where there is room now; gives the event back where there is not.
    pub(crate) fn try_send(&self, event: Event) -> Option<Event> {
        match self.events.try_send(Intake::Event(event)) {
            Err(TrySendError::Full(Intake::Event(event))) => Some(event),
            // Closed: nobody is there to hear it.
            _ => None,
        }
    }
}
