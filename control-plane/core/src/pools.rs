//! Pools: every ten seconds the routes whose policies name the same one share out their budgets.

use std::collections::BTreeMap;

use hedgerow_protocol::directive::Mode;
use hedgerow_protocol::ids::{PoolName, RouteKey};
use hedgerow_protocol::units::Budget;

use crate::controller::Controller;
use crate::decide::goal::member;
use crate::moment::Moment;
use crate::share::{EVERY, Lent, Member, share};

impl Controller {
    /// Shares out what is due. Only routes that are on put their budgets in and get a share: while
    /// one is off, nobody spends its budget, and it has its last share again when it is back, but no
    /// more than its own: the others have taken theirs again.
    pub(crate) fn share_out(&mut self, now: Moment) {
        let since = now.since(self.shared_out);
        if since < EVERY {
            return;
        }
        self.shared_out = now;
        let mut pools: BTreeMap<PoolName, Vec<(RouteKey, Member)>> = BTreeMap::new();
        for (key, route) in &mut self.routes {
            let policy = self.rules.policy(key);
            let policy = policy.map(|it| &**it);
            let pool = policy.and_then(|policy| policy.pool());
            if let Some((policy, _)) = policy.zip(pool)
                && let Some(lent) = &mut route.lent
                && route.memory.mode() != Mode::On
                && lent.budget > policy.budget()
            {
                lent.budget = policy.budget();
            }
            if let Some((policy, pool)) = policy.zip(pool)
                && route.memory.mode() == Mode::On
            {
                let before = route.lent.as_ref().map(|lent| lent.budget);
                let member = member(&route.windows, policy, &route.memory, before);
                pools
                    .entry(pool.clone())
                    .or_default()
                    .push((key.clone(), member));
            }
        }
        for (pool, members) in pools {
            let (keys, members): (Vec<_>, Vec<_>) = members.into_iter().unzip();
            let shares = share(&members, since);
            for ((key, member), budget) in keys.iter().zip(&members).zip(shares) {
                self.lend(key, &pool, member.own, budget);
            }
        }
    }

    /// Their policies may be others now: what a pool lent that they are not in is nobody's any more,
    /// also on pages and in alerts.
    pub(crate) fn leave_pools(&mut self, keys: &[RouteKey]) {
        for key in keys {
            let policy = self.rules.policy(key);
            let pool = policy.and_then(|it| it.pool());
            if let Some(route) = self.routes.get_mut(key)
                && route.lent_by(pool).is_none()
            {
                route.lent = None;
            }
        }
    }

    fn lend(&mut self, key: &RouteKey, pool: &PoolName, own: Budget, budget: Budget) {
        if let Some(route) = self.routes.get_mut(key) {
            route.lent = Some(Lent {
                pool: pool.clone(),
                budget,
                own,
            });
        }
    }
}
