//! The receivers of the configuration, for pages and programs: how they do, and whether a notice
//! arrives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hedgerow_dashboard::backend::{ReceiverView, TestOutcome};
use hedgerow_protocol::ids::RouteKey;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::attempt::{AttemptError, Taken};
use super::deliver::Delivering;
use super::notice::{Notice, link};
use super::receiver::Receiver;
use crate::store::outbox::OutboxState;
use crate::store::{Store, StoreError};

/// How receivers do is read from the store this often at most: it means reading the outbox, and each
/// open page asks every second.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// The rule that test notices name.
const TEST_RULE: &str = "TestNotice";

/// The receivers of the configuration. Cheap to clone; by default there are none.
#[derive(Debug, Clone, Default)]
pub struct Receivers {
    all: Arc<[Receiver]>,
    settings: Delivering,
    read: Arc<Mutex<Option<Read>>>,
}

/// How receivers do, and when that was read.
#[derive(Debug)]
struct Read {
    at: Instant,
    states: BTreeMap<String, OutboxState>,
}

impl Receivers {
    /// These, spoken to as `settings` say.
    pub fn new(all: &[Receiver], settings: Delivering) -> Self {
        Self {
            all: all.into(),
            settings,
            read: Arc::default(),
        }
    }

    /// The receiver of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Receiver> {
        self.all.iter().find(|it| it.name() == name)
    }

    /// How each does, by name; as of 5 s ago at most.
    pub(crate) async fn views(&self, store: &Store) -> Result<Vec<ReceiverView>, StoreError> {
        let mut states = self.states(store, FRESH_FOR).await?;
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

    /// As read last, where that is less than `fresh_for` ago. Who asks meanwhile waits for the one
    /// who reads.
    async fn states(
        &self,
        store: &Store,
        fresh_for: Duration,
    ) -> Result<BTreeMap<String, OutboxState>, StoreError> {
        let mut read = self.read.lock().await;
        if let Some(read) = read.as_ref().filter(|it| it.at.elapsed() < fresh_for) {
            return Ok(read.states.clone());
        }
        let states = store.outbox_states().await?;
        *read = Some(Read {
            at: Instant::now(),
            states: states.clone(),
        });
        Ok(states)
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

#[cfg(test)]
mod tests {
    use hedgerow_core::effect::{AlertState, Record};
    use hedgerow_core::moment::Moment;
    use hedgerow_core::view::AlertRule;
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn u11_how_receivers_do_is_not_read_anew_for_each_who_asks() {
        let folder = TempDir::new().unwrap();
        let store = Store::open(&folder.path().join("hedgerow.db"))
            .await
            .unwrap();
        let receivers = Receivers::default();
        let hour = Duration::from_hours(1);
        assert!(receivers.states(&store, hour).await.unwrap().is_empty());
        let alert = AlertState {
            id: "e1".into(),
            rule: AlertRule::SharedSlowdown,
            route: RouteKey::new("catalog", "get").unwrap(),
            replica: None,
            summary: "slow".into(),
            since: Moment::from_millis(1_700_000_000_000),
            resolved: None,
        };
        let chat = ["chat".to_owned()];
        store.write(&[Record::Alert(alert)], &chat).await.unwrap();
        let asked_too = receivers.clone();
        assert!(asked_too.states(&store, hour).await.unwrap().is_empty());
        let anew = receivers.states(&store, Duration::ZERO).await.unwrap();
        assert_eq!(anew["chat"].waiting, 1);
        assert_eq!(asked_too.states(&store, hour).await.unwrap(), anew);
    }
}
