//! The parser's stack: nodes that share what lies below them. Equal stacks are one node, so that comparing, hashing and
//! cloning cost the same at any depth.

use super::bits::Bits;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

static NODES: AtomicU64 = AtomicU64::new(0);

/// The top of a stack.
#[derive(Clone)]
pub(super) struct Stack(Arc<Node>);

pub(super) struct Node {
    state: u32,
    below: Option<Stack>,
    /// Number that no other node has, for hashes.
    number: u64,
    /// The stacks with one state more that are in use.
    above: Mutex<Vec<(u32, Weak<Node>)>>,
    /// Allowed terminals, computed on first use.
    pub(super) live: OnceLock<Live>,
    pub(super) ends: Option<Ends>,
}

/// Allowed terminals on top of a stack.
#[derive(Debug)]
pub(super) struct Live {
    /// Kinds of ends that the next terminal, or SKIP, may have.
    pub(super) kinds: Bits,
    /// True if the text may end.
    pub(super) end: bool,
}

/// Ends with which a stack can be completed; only for grammars whose neighbours can run into each other.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) here: Bits,
    /// And with a rule on top of it.
    pub(super) with_rule: Vec<(u32, Bits)>,
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Stack {}

impl Hash for Stack {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.number);
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let states: Vec<u32> = std::iter::successors(Some(self), |stack| stack.parent()).map(Self::state).collect();
        let top: Vec<_> = states.iter().take(SHOWN).rev().collect();
        write!(
            f,
            "{top:?}{}",
            if states.len() > SHOWN { format!(" on {} more", states.len() - SHOWN) } else { String::new() }
        )
    }
}

impl std::ops::Deref for Stack {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        &self.0
    }
}

impl Stack {
    pub(super) fn bottom(state: u32, ends: Option<Ends>) -> Self {
        Self(Arc::new(Node::new(state, None, ends)))
    }

    #[inline]
    pub(super) fn state(&self) -> u32 {
        self.0.state
    }

    #[inline]
    pub(super) fn parent(&self) -> Option<&Self> {
        self.0.below.as_ref()
    }

    /// Without so many states.
    pub(super) fn without_top(&self, count: usize) -> Option<&Self> {
        (0..count).try_fold(self, |stack, _| stack.parent())
    }

    /// Returns the stack with one more state: the same node for every caller while it is in use.
    pub(super) fn with(&self, state: u32, ends: impl FnOnce() -> Option<Ends>) -> Self {
        let known = |above: &[(u32, Weak<Node>)]| {
            let at = above.iter().position(|(known, _)| *known == state);
            (at, at.and_then(|at| above[at].1.upgrade()).map(Self))
        };
        let locked = || self.0.above.lock().unwrap_or_else(PoisonError::into_inner);
        if let (_, Some(known)) = known(&locked()) {
            return known;
        }
        // Not under the lock: it may take long, and another thread may do the same meanwhile.
        let made = Arc::new(Node::new(state, Some(self.clone()), ends()));
        let mut above = locked();
        let (at, meanwhile) = known(&above);
        if let Some(known) = meanwhile {
            return known;
        }
        let entry = (state, Arc::downgrade(&made));
        match at {
            Some(at) => above[at] = entry,
            None => above.push(entry),
        }
        Self(made)
    }
}

impl Node {
    fn new(state: u32, below: Option<Stack>, ends: Option<Ends>) -> Self {
        let number = NODES.fetch_add(1, Ordering::Relaxed);
        Self { state, below, number, above: Mutex::default(), live: OnceLock::new(), ends }
    }
}

impl Drop for Node {
    /// Drops nodes one by one: a recursive drop of a deep stack would overflow the thread's stack.
    fn drop(&mut self) {
        let mut next = self.below.take();
        while let Some(Stack(node)) = next {
            next = Arc::into_inner(node).and_then(|mut node| node.below.take());
        }
    }
}
