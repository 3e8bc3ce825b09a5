//! How many connections one peer may have: nobody takes the places of all others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// Bits of an IPv6 address that tell one network from another: its owner has all addresses in it.
const NETWORK_BITS: u32 = 64;

/// Connections by peer. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Places {
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    /// For an address, or an IPv6 network.
    each: usize,
    /// For this machine itself: a proxy on it speaks for many.
    loopback: usize,
}

/// A connection's place, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    peer: IpAddr,
}

impl Places {
    pub(super) fn new(each: usize, loopback: usize) -> Self {
        Self {
            taken: Arc::default(),
            each,
            loopback,
        }
    }

    /// A place, unless this peer has all that it may have.
    pub(super) fn enter(&self, address: IpAddr) -> Option<Place> {
        let peer = network(address.to_canonical());
        let most = if peer.is_loopback() {
            self.loopback
        } else {
            self.each
        };
        let mut taken = self.taken.lock();
        let count = taken.entry(peer).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place {
            places: self.clone(),
            peer,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        if let Some(count) = taken.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.peer);
            }
        }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let host = u128::MAX >> NETWORK_BITS;
            Ipv6Addr::from_bits(v6.to_bits() & !host).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(places: &Places, address: &str) -> Option<Place> {
        places.enter(address.parse().unwrap())
    }

    #[test]
    fn s05_a_peer_gets_its_share_and_no_more() {
        let places = Places::new(2, 3);
        let held: Vec<_> = ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2"]
            .iter()
            .map(|address| enter(&places, address).unwrap())
            .collect();
        assert!(enter(&places, "10.0.0.1").is_none());
        assert!(enter(&places, "2001:db8::3").is_none());
        assert!(enter(&places, "2001:db8:0:1::3").is_some());
        assert!(enter(&places, "10.0.0.2").is_some());
        drop(held);
        assert!(enter(&places, "10.0.0.1").is_some());
        assert!(places.taken.lock().is_empty(), "who has left is forgotten");

        let own: Vec<_> = (0..3).map(|_| enter(&places, "127.0.0.1")).collect();
        assert!(own.iter().all(Option::is_some));
        assert!(enter(&places, "127.0.0.1").is_none());
    }
}
