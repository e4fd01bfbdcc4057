//! Who holds how much of what there is only so much of: connections, event streams, waiting calls,
//! bytes of bodies. Nobody's share is the whole, so that one caller's greed is one caller's
//! trouble. Counts what is held, never who asked: whoever holds nothing is not remembered.

use foldhash::fast::RandomState;
use mainspring_kernel::{Principal, TenantId, TokenId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much there is, and how much of it one holder may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For everybody together.
    pub all: usize,
    /// For the tokens of one tenant together.
    pub tenant: usize,
    /// For one token, and for all callers without a token together.
    pub token: usize,
}

impl Bounds {
    /// `all` for everybody, half of it for a tenant, a quarter for a token.
    pub const fn shared(all: usize) -> Self {
        Bounds { all, tenant: at_least_one(all / 2), token: at_least_one(all / 4) }
    }
}

const fn at_least_one(number: usize) -> usize {
    if number == 0 { 1 } else { number }
}

/// Whose share is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The caller's own, or its tenant's: others still get theirs.
    Own,
    /// Everybody's.
    All,
}

/// Whoever holds something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holder {
    /// All callers without a token are one.
    Nobody,
    /// A token and its tenant.
    Token(TokenId, TenantId),
}

impl Holder {
    pub(crate) fn of(who: &Principal) -> Self {
        Holder::Token(who.token, who.tenant.clone())
    }
}

/// What is held of one thing.
#[derive(Debug)]
pub(crate) struct Shares {
    bounds: Bounds,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    nobody: usize,
    tenants: HashMap<TenantId, usize, RandomState>,
    tokens: HashMap<TokenId, usize, RandomState>,
}

/// A share; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    holder: Holder,
    amount: usize,
}

impl Shares {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Shares { bounds, held: Mutex::default() })
    }

    /// Gives `amount` to `holder`, if that leaves everybody else their share.
    pub(crate) fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Result<Share, Full> {
        let mut share = Share { shares: self.clone(), holder, amount: 0 };
        share.grow(amount)?;
        Ok(share)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Makes the share larger by `more`, or leaves it as it is.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Full> {
        if more == 0 {
            return Ok(());
        }
        let bounds = self.shares.bounds;
        let mut held = self.shares.held();
        let is_over = |has: usize, most: usize| has.saturating_add(more) > most;
        let of_own = match &self.holder {
            Holder::Nobody => is_over(held.nobody, bounds.token),
            Holder::Token(token, tenant) => {
                is_over(held.tokens.get(token).copied().unwrap_or(0), bounds.token)
                    || is_over(held.tenants.get(tenant).copied().unwrap_or(0), bounds.tenant)
            }
        };
        if of_own {
            return Err(Full::Own);
        }
        if is_over(held.all, bounds.all) {
            return Err(Full::All);
        }
        held.all += more;
        match &self.holder {
            Holder::Nobody => held.nobody += more,
            Holder::Token(token, tenant) => {
                *held.tokens.entry(*token).or_default() += more;
                *held.tenants.entry(tenant.clone()).or_default() += more;
            }
        }
        drop(held);
        self.amount += more;
        Ok(())
    }

    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// What all holders of the same tenant have together.
    pub(crate) fn of_tenant(&self) -> usize {
        let held = self.shares.held();
        match &self.holder {
            Holder::Nobody => held.nobody,
            Holder::Token(_, tenant) => held.tenants.get(tenant).copied().unwrap_or(0),
        }
    }

    pub(crate) fn holder(&self) -> &Holder {
        &self.holder
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut held = self.shares.held();
        held.all -= self.amount;
        match &self.holder {
            Holder::Nobody => held.nobody -= self.amount,
            Holder::Token(token, tenant) => {
                give_back(&mut held.tokens, token, self.amount);
                give_back(&mut held.tenants, tenant, self.amount);
            }
        }
    }
}

fn give_back<K: Hash + Eq>(held: &mut HashMap<K, usize, RandomState>, who: &K, amount: usize) {
    if let Some(has) = held.get_mut(who) {
        *has -= amount;
        if *has == 0 {
            held.remove(who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(token: u128, tenant: &str) -> Holder {
        Holder::Token(TokenId(token), TenantId::new(tenant).unwrap())
    }

    #[test]
    fn a_token_a_tenant_and_all_have_bounds_of_their_own() {
        let shares = Shares::new(Bounds { all: 8, tenant: 4, token: 3 });
        let ann = shares.take(holder(1, "a"), 3).unwrap();
        assert_eq!(shares.take(holder(1, "a"), 1).unwrap_err(), Full::Own, "the token's");
        let bob = shares.take(holder(2, "a"), 1).unwrap();
        assert_eq!((ann.of_tenant(), bob.of_tenant()), (4, 4));
        assert_eq!(shares.take(holder(2, "a"), 1).unwrap_err(), Full::Own, "the tenant's");
        let _eve = shares.take(holder(3, "b"), 2).unwrap();
        let mut nobody = shares.take(Holder::Nobody, 1).unwrap();
        assert_eq!(nobody.grow(3), Err(Full::Own), "callers without a token share one share");
        nobody.grow(1).unwrap();
        assert_eq!(shares.take(holder(4, "c"), 1).unwrap_err(), Full::All);
        drop(ann);
        let _again = shares.take(holder(1, "a"), 3).unwrap();
    }

    #[test]
    fn whoever_holds_nothing_is_forgotten() {
        let shares = Shares::new(Bounds::shared(100));
        for token in 0..1_000 {
            let share = shares.take(holder(token, &format!("t{token}")), 5).unwrap();
            assert_eq!(share.amount(), 5);
        }
        let held = shares.held();
        assert_eq!((held.all, held.tokens.len(), held.tenants.len()), (0, 0, 0));
    }

    #[test]
    fn a_refusal_takes_nothing() {
        let shares = Shares::new(Bounds { all: 2, tenant: 2, token: 2 });
        let mut one = shares.take(holder(1, "a"), 1).unwrap();
        assert_eq!(one.grow(2), Err(Full::Own));
        assert_eq!((one.amount(), shares.held().all), (1, 1));
        drop(one);
        assert!(shares.take(holder(2, "b"), 3).is_err());
        let held = shares.held();
        assert_eq!((held.all, held.tokens.len()), (0, 0));
    }
}
