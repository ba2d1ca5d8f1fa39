//! Sets whose arrays nobody looked at when they were opened, and what is wrong with them.

use crate::set::storage::store::Store;
use crate::set::trie::Trie;
use std::fmt;
use std::sync::OnceLock;

/// A part of a set that does not hold what it must.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("damaged: {part}: {reason}")]
pub struct Damage {
    /// The part, and the place in it.
    pub part: String,
    /// Description of the defect.
    pub reason: String,
}

crate::error_kind!(Damage, File);

impl Damage {
    /// Damage of this part.
    pub fn new(part: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { part: part.into(), reason: reason.into() }
    }
}

/// Reads the whole of what a set was opened from.
pub trait Verify: fmt::Debug + Send + Sync {
    /// Checks everything that a walk relies on; `store` holds its arrays.
    ///
    /// # Errors
    /// The first damage.
    fn verify(&self, store: &Store) -> Result<(), Damage>;
}

/// Contents that were not looked at when they were opened, and the result once they were.
#[derive(Debug)]
pub struct PendingCheck {
    contents: Box<dyn Verify>,
    result: OnceLock<Result<(), Damage>>,
}

impl PendingCheck {
    /// Contents that nobody looked at yet.
    pub fn new(contents: impl Verify + 'static) -> Self {
        Self { contents: Box::new(contents), result: OnceLock::new() }
    }
}

impl Trie {
    /// Reads the whole set once where it is from a file that nobody verified: checksums, and everything that a walk
    /// relies on. The answer is remembered, for its clones as well. `O(nodes)` the first time; a set that was built, or
    /// verified when it was opened, costs nothing.
    ///
    /// # Errors
    /// What is damaged.
    pub fn verify(&self) -> Result<(), Damage> {
        let store = self.store();
        let Some(unread) = &store.unread else { return Ok(()) };
        unread.result.get_or_init(|| unread.contents.verify(store)).clone()
    }
}
