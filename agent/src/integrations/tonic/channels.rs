//! One channel a replica, connected when it is first used.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hedgerow_protocol::ids::ReplicaName;
use parking_lot::Mutex;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Error};

use crate::replicas::Replicas;

pub(super) type Configure = dyn Fn(Endpoint) -> Result<Endpoint, Error> + Send + Sync;

/// See the [module](self).
pub(super) struct Channels {
    list: Replicas,
    configure: Box<Configure>,
    open: ArcSwap<Open>,
    /// Held while a channel is added, or those that left the list are dropped; never by a call that
    /// finds its channel.
    changing: Mutex<()>,
}

#[derive(Default, Clone)]
struct Open {
    version: u64,
    by_name: HashMap<ReplicaName, Channel>,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels")
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}

impl Channels {
    /// Checks the addresses that are known now.
    pub(super) fn new(
        list: Replicas,
        configure: Box<Configure>,
    ) -> Result<Self, (ReplicaName, Error)> {
        let channels = Self {
            list,
            configure,
            open: ArcSwap::default(),
            changing: Mutex::new(()),
        };
        for member in channels.list.members().iter() {
            channels
                .endpoint(&member.name)
                .map_err(|error| (member.name.clone(), error))?;
        }
        Ok(channels)
    }

    /// The channel to a replica.
    pub(super) fn to(&self, replica: &ReplicaName) -> Result<Channel, Status> {
        let open = self.open.load();
        if open.version == self.list.version()
            && let Some(channel) = open.by_name.get(replica)
        {
            return Ok(channel.clone());
        }
        drop(open);
        self.connect(replica).map_err(|error| {
            let message = format!("replica {replica} is no address: expected host:port");
            let mut status = Status::unavailable(message);
            status.set_source(Arc::new(error));
            status
        })
    }

    fn connect(&self, replica: &ReplicaName) -> Result<Channel, Error> {
        let _changing = self.changing.lock();
        let mut open = Open::clone(&self.open.load());
        let version = self.list.version();
        if open.version != version {
            let members = self.list.members();
            open.by_name
                .retain(|name, _| members.iter().any(|member| member.name == *name));
            open.version = version;
        }
        let channel = match open.by_name.get(replica) {
            Some(channel) => channel.clone(),
            None => self.endpoint(replica)?.connect_lazy(),
        };
        open.by_name.insert(replica.clone(), channel.clone());
        self.open.store(Arc::new(open));
        Ok(channel)
    }

    fn endpoint(&self, replica: &ReplicaName) -> Result<Endpoint, Error> {
        let address = if replica.as_str().contains("://") {
            replica.to_string()
        } else {
            format!("http://{replica}")
        };
        (self.configure)(Endpoint::from_shared(address)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_list_is_followed() {
        let list = Replicas::new([("a:1", None), ("https://b:1", None)]).unwrap();
        let channels = Channels::new(list.clone(), Box::new(Ok)).unwrap();
        let name = |text: &str| ReplicaName::new(text).unwrap();
        let open = |channels: &Channels| channels.open.load().by_name.len();
        for _ in 0..2 {
            channels.to(&name("a:1")).unwrap();
            channels.to(&name("https://b:1")).unwrap();
        }
        assert_eq!(open(&channels), 2);
        list.replace([("a:1", None), ("c:1", None)]).unwrap();
        channels.to(&name("a:1")).unwrap();
        assert_eq!(open(&channels), 1, "what left the list is let go of");
        channels.to(&name("c:1")).unwrap();
        assert_eq!(open(&channels), 2);
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_refused_at_once_and_later_fails_its_attempt() {
        let bad = Replicas::new([("a@b@c:", None)]).unwrap();
        let (name, _) = Channels::new(bad, Box::new(Ok)).unwrap_err();
        assert_eq!(name.as_str(), "a@b@c:");
        let list = Replicas::new([("a:1", None)]).unwrap();
        let channels = Channels::new(list, Box::new(Ok)).unwrap();
        let status = channels.to(&name).unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (
                tonic::Code::Unavailable,
                "replica a@b@c: is no address: expected host:port"
            )
        );
    }
}
