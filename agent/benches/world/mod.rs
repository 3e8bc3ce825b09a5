//! The world that all subjects are put into: three replicas whose answers depend on nothing but the
//! seed, the call, the replica and the time, so that each subject meets the same luck. What a
//! subject costs them is counted here, not by the subject.

pub(crate) mod chance;
pub(crate) mod grpc;
pub(crate) mod ledger;
pub(crate) mod profile;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use self::ledger::Ledger;
use self::profile::{Profile, Reaction};

/// How many replicas there are.
pub(crate) const REPLICAS: usize = 3;

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The replica said so.
    #[error("the replica failed")]
    Replica,
    /// Something between it and the caller.
    #[error("the replica could not be asked")]
    Transport,
}

/// What subjects ask: a replica, for a call.
pub(crate) trait Backend: Clone + Send + Sync + 'static {
    fn ask(&self, replica: usize, call: u64) -> BoxFuture<'static, Result<(), Failure>>;
}

/// Replicas without a network, as exact as the clock.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) profile: Profile,
    pub(crate) ledger: Arc<Ledger>,
}

impl World {
    pub(crate) fn new(profile: Profile) -> Self {
        let ledger = Arc::new(Ledger::new());
        Self { profile, ledger }
    }

    /// A replica receives an attempt and carries it out. Dropped, it stops at once.
    pub(crate) async fn receive(&self, replica: usize, call: u64) -> Result<(), Failure> {
        let (ask, _busy) = self.ledger.receive(replica, call);
        match self.profile.reaction(&ask) {
            Reaction::Answers(after) => {
                tokio::time::sleep(after).await;
                Ok(())
            }
            Reaction::Fails(after) => {
                tokio::time::sleep(after).await;
                Err(Failure::Replica)
            }
            Reaction::Silent => std::future::pending().await,
        }
    }
}

impl Backend for World {
    fn ask(&self, replica: usize, call: u64) -> BoxFuture<'static, Result<(), Failure>> {
        let world = self.clone();
        Box::pin(async move { world.receive(replica, call).await })
    }
}

/// One attempt as its replica sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) replica: usize,
    pub(crate) call: u64,
    /// Whether this replica was asked before for the same call: then it draws anew.
    pub(crate) times_before: u8,
    /// Since the world began.
    pub(crate) at: Duration,
}
