//! What was refused on this stream, so that nothing is refused twice (P4).

use std::collections::{BTreeMap, BTreeSet};

use hedgerow_protocol::directive::Stamp;
use hedgerow_protocol::ids::RouteKey;
use hedgerow_protocol::limits::ROUTES_PER_AGENT_MAX;
use hedgerow_protocol::session::{Refused, Text};

/// The refusals already told. One entry a route and a bounded number of others: a controller that
/// sends nonsense for ever costs no memory.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    routes: BTreeMap<RouteKey, Option<Stamp>>,
    others: BTreeSet<Text>,
}

impl Refusals {
    /// Whether the controller is to be told. A route's refusal is told for a stamp newer than the
    /// last one told; without a route (an unreadable name, a whole set) once for each reason.
    pub(super) fn is_news(&mut self, refused: &Refused) -> bool {
        match &refused.route {
            None => {
                self.others.len() < ROUTES_PER_AGENT_MAX
                    && self.others.insert(refused.reason.clone())
            }
            Some(route) => {
                let is_full = self.routes.len() >= ROUTES_PER_AGENT_MAX;
                match self.routes.get_mut(route) {
                    Some(told) if *told >= refused.stamp => return false,
                    Some(told) => *told = refused.stamp,
                    None if is_full => return false,
                    None => {
                        self.routes.insert(route.clone(), refused.stamp);
                    }
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hedgerow_protocol::ids::Revision;

    fn refused(route: Option<&str>, revision: Option<u64>, reason: &str) -> Refused {
        Refused {
            nonce: 1,
            route: route.map(|name| RouteKey::new(name, "get").unwrap()),
            stamp: revision.map(|revision| Stamp {
                revision: Revision(revision),
                ..Stamp::default()
            }),
            reason: Text::lossy(reason),
        }
    }

    #[test]
    fn p04_each_refusal_is_told_once() {
        let mut refusals = Refusals::default();
        for (route, revision, reason, news) in [
            (Some("a"), Some(5), "cap", true),
            (Some("a"), Some(5), "cap", false),
            (Some("a"), Some(4), "older", false),
            (Some("b"), Some(4), "cap", true),
            (Some("a"), Some(6), "cap", true),
            (Some("c"), None, "no stamp", true),
            (Some("c"), None, "no stamp", false),
            (Some("c"), Some(1), "cap", true),
            (None, None, "empty", true),
            (None, None, "empty", false),
            (None, None, "twice", true),
        ] {
            let refused = refused(route, revision, reason);
            assert_eq!(refusals.is_news(&refused), news, "{refused:?}");
        }
    }

    #[test]
    fn p11_nonsense_costs_no_memory() {
        let mut refusals = Refusals::default();
        let told = (0..10_000)
            .map(|n| refused(Some(&format!("d{n}")), Some(1), "cap"))
            .chain((0..10_000).map(|n| refused(None, None, &format!("reason {n}"))))
            .filter(|refused| refusals.is_news(refused))
            .count();
        assert_eq!(told, 2 * ROUTES_PER_AGENT_MAX);
    }
}
