//! What an attempt holds its replica by.
//!
//! Two of these come and go with every attempt, and a shared count costs two locked instructions
//! each. So a thread keeps a few counted references at hand for each replica it has calls with:
//! taking one up and laying it down moves it, and the count stays as it is. Attempts that end on
//! other threads than they began on pay the count where one side's few run out.
//!
//! What lies at hand keeps a replica's memory, not its place in any list; it is let go when the
//! thread next meets a changed list, or ends.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use crate::pool::Replica;

/// Replicas a thread has references at hand for.
const STACKS: usize = 64;
/// References of each: twice the attempts whose begins and ends may come out of step.
const SPARES: usize = 8;

/// A counted reference to a replica.
#[derive(Debug)]
pub(crate) struct Hand(Option<Arc<Replica>>);

/// References to one replica, known by its address: while there is one, no other can be there.
#[derive(Debug)]
struct Stack {
    address: usize,
    spares: [Option<Arc<Replica>>; SPARES],
    len: usize,
}

thread_local! {
    static STACKS_HERE: RefCell<[Stack; STACKS]> =
        const { RefCell::new([const { Stack::empty(0) }; STACKS]) };
}

#[inline]
fn address(replica: &Arc<Replica>) -> usize {
    Arc::as_ptr(replica).addr()
}

/// Replicas lie kilobytes apart: which of them, the product's upper bits tell.
#[inline]
fn stack_of(address: usize) -> usize {
    ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % STACKS
}

/// Runs `f` with the replica's stack; not while the thread ends.
#[inline]
fn with_stack<T>(address: usize, f: impl FnOnce(&mut Stack) -> T) -> Option<T> {
    STACKS_HERE
        .try_with(|stacks| {
            let mut stacks = stacks.try_borrow_mut().ok()?;
            Some(f(&mut stacks[stack_of(address)]))
        })
        .ok()?
}

impl Stack {
    const fn empty(address: usize) -> Self {
        Self {
            address,
            spares: [const { None }; SPARES],
            len: 0,
        }
    }

    #[inline]
    fn take(&mut self, address: usize) -> Option<Arc<Replica>> {
        if self.address == address {
            let last = self.len.checked_sub(1)?;
            self.len = last;
            self.spares[last].take()
        } else {
            // Whoever was called last has it.
            *self = Self::empty(address);
            None
        }
    }

    /// Gives back what there is no room for.
    #[inline]
    fn put(&mut self, replica: Arc<Replica>) -> Option<Arc<Replica>> {
        if self.address != address(&replica) || self.len == SPARES {
            return Some(replica);
        }
        self.spares[self.len] = Some(replica);
        self.len += 1;
        None
    }
}

/// Another reference to the same replica.
#[inline]
pub(crate) fn another(replica: &Arc<Replica>) -> Arc<Replica> {
    let address = address(replica);
    with_stack(address, |stack| stack.take(address))
        .flatten()
        .unwrap_or_else(|| replica.clone())
}

/// Lets go of all that this thread has at hand.
pub(crate) fn let_go() {
    let _ = STACKS_HERE.try_with(|stacks| {
        if let Ok(mut stacks) = stacks.try_borrow_mut() {
            stacks.fill_with(|| Stack::empty(0));
        }
    });
}

impl From<Arc<Replica>> for Hand {
    #[inline]
    fn from(replica: Arc<Replica>) -> Self {
        Self(Some(replica))
    }
}

impl Clone for Hand {
    #[inline]
    fn clone(&self) -> Self {
        Self(Some(another(self)))
    }
}

impl Deref for Hand {
    type Target = Arc<Replica>;

    #[inline]
    fn deref(&self) -> &Arc<Replica> {
        self.0.as_ref().expect("emptied by its drop alone")
    }
}

impl Drop for Hand {
    #[inline]
    fn drop(&mut self) {
        if let Some(replica) = self.0.take() {
            let address = address(&replica);
            let mut replica = Some(replica);
            with_stack(address, |stack| {
                replica = replica.take().and_then(|replica| stack.put(replica));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permit::Permits;

    fn replica() -> Arc<Replica> {
        let name = "a:1".parse().unwrap();
        Arc::new(Replica::new(name, None, Arc::new(Permits::new())))
    }

    #[test]
    fn a_reference_laid_down_is_taken_up_again() {
        let replica = replica();
        let hand = Hand::from(another(&replica));
        drop(hand.clone());
        drop(hand);
        assert_eq!(Arc::strong_count(&replica), 3, "two lie at hand");
        let hands: Vec<_> = (0..20).map(|_| Hand::from(another(&replica))).collect();
        assert_eq!(Arc::strong_count(&replica), 21);
        drop(hands);
        assert_eq!(
            Arc::strong_count(&replica),
            1 + SPARES,
            "no more than a few"
        );
        let_go();
        assert_eq!(Arc::strong_count(&replica), 1);
    }

    #[test]
    fn nothing_is_left_of_a_thread_that_ended() {
        let replica = replica();
        let theirs = replica.clone();
        // Not a scoped one: the end of a scope does not wait for what a thread tears down.
        std::thread::spawn(move || drop(Hand::from(theirs)))
            .join()
            .unwrap();
        assert_eq!(Arc::strong_count(&replica), 1);
    }

    #[test]
    fn two_replicas_with_one_stack_do_not_take_each_others_references() {
        let mut replicas = vec![replica()];
        let mut others = Vec::new();
        while replicas.len() < 2 {
            let another = replica();
            if stack_of(address(&another)) == stack_of(address(&replicas[0])) {
                replicas.push(another);
            } else {
                others.push(another);
            }
        }
        for i in 0..100 {
            let replica = &replicas[i % 2];
            let hand = Hand::from(another(replica));
            assert!(Arc::ptr_eq(&hand, replica));
        }
        let_go();
        assert!(
            replicas
                .iter()
                .all(|replica| Arc::strong_count(replica) == 1)
        );
    }
}
