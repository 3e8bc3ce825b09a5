//! The receivers of the configuration, for pages and programs: how they do, and whether a notice
//! arrives.

use std::sync::Arc;
use std::time::Instant;

use hedgerow_dashboard::backend::{ReceiverView, TestOutcome};
use hedgerow_protocol::ids::RouteKey;
use uuid::Uuid;

use super::attempt::{AttemptError, Taken};
use super::deliver::Delivering;
use super::notice::{Notice, link};
use super::receiver::Receiver;
use crate::store::{Store, StoreError};

/// The rule that test notices name.
const TEST_RULE: &str = "TestNotice";

/// The receivers of the configuration. Cheap to clone; by default there are none.
#[derive(Debug, Clone, Default)]
pub struct Receivers {
    all: Arc<[Receiver]>,
    settings: Delivering,
}

impl Receivers {
    /// These, spoken to as `settings` say.
    pub fn new(all: &[Receiver], settings: Delivering) -> Self {
        Self {
            all: all.into(),
            settings,
        }
    }

    /// The receiver of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Receiver> {
        self.all.iter().find(|it| it.name() == name)
    }

    /// How each does, by name.
    pub(crate) async fn views(&self, store: &Store) -> Result<Vec<ReceiverView>, StoreError> {
        let mut states = store.outbox_states().await?;
        let mut views: Vec<_> = self
            .all
            .iter()
            .map(|receiver| {
                let state = states.remove(receiver.name()).unwrap_or_default();
                ReceiverView {
                    name: receiver.name().to_owned(),
                    kind: receiver.kind().to_owned(),
                    to: receiver.to(),
                    waiting: state.waiting,
                    given_up: state.given_up,
                    delivered: state.delivered,
                    last_error: state.last_error,
                }
            })
            .collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(views)
    }

    /// Sends a notice made up for the purpose, the way all go, and says what came of it. A program
    /// that would keep its beginning open is told its end right after.
    pub(crate) async fn test(&self, receiver: &Receiver, asked_by: &str) -> TestOutcome {
        let mut notice = self.made_up(asked_by);
        let began = Instant::now();
        let mut outcome = self.send(receiver, notice.clone(), false).await;
        let mut what = "";
        if outcome.is_ok() && receiver.keeps_open() {
            notice.ended = Some(self.settings.clock.now());
            if let Err(error) = self.send(receiver, notice, true).await {
                what = "it took the beginning, but its end: ";
                outcome = Err(error);
            }
        }
        let delivered = outcome.is_ok();
        let status = match outcome {
            Ok(Taken(status)) => status.to_string(),
            Err(error) => format!("{what}{error}"),
        };
        tracing::info!(receiver = receiver.name(), delivered, status, "test notice");
        TestOutcome {
            delivered,
            status,
            took: began.elapsed(),
        }
    }

    async fn send(
        &self,
        receiver: &Receiver,
        notice: Notice,
        resolved: bool,
    ) -> Result<Taken, AttemptError> {
        let mut message = self.settings.message(receiver, vec![notice], resolved);
        message.test = true;
        receiver.attempt(&message).await
    }

    fn made_up(&self, asked_by: &str) -> Notice {
        let dashboard = self.settings.dashboard.as_ref();
        Notice {
            // Each test is an episode of its own: a receiver must not take it for the last one.
            episode: format!("{TEST_RULE}/{}", Uuid::now_v7()),
            rule: TEST_RULE,
            route: RouteKey::new("hedgerow", "test").expect("two short words"),
            replica: None,
            summary: format!("A test, asked for by {asked_by}. Nothing is wrong."),
            since: self.settings.clock.now(),
            ended: None,
            link: dashboard.and_then(|base| link(base, &["receivers"])),
        }
    }
}
