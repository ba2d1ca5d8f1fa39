//! Sets whose arrays were not checked when they were opened, and the damage that is found in them.

use crate::set::storage::store::Store;
use crate::set::trie::Trie;
use std::fmt;
use std::sync::OnceLock;

/// A part of a set with invalid contents.
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

/// Check of the whole file or memory that a set was opened from.
pub trait Verify: fmt::Debug + Send + Sync {
    /// Checks everything that a walk relies on; `store` holds its arrays.
    ///
    /// # Errors
    /// The first damage.
    fn verify(&self, store: &Store) -> Result<(), Damage>;
}

/// Contents that were not checked when they were opened, and the result of the check once it is done.
#[derive(Debug)]
pub struct PendingCheck {
    contents: Box<dyn Verify>,
    result: OnceLock<Result<(), Damage>>,
}

impl PendingCheck {
    /// Contents that are still to be checked.
    pub fn new(contents: impl Verify + 'static) -> Self {
        Self { contents: Box::new(contents), result: OnceLock::new() }
    }
}

impl Trie {
    /// Reads the whole set once if it comes from a file that was never verified, and checks its checksums and
    /// everything that a walk relies on. The answer is remembered, also for clones. `O(nodes)` the first time. A set
    /// that was built here, or verified when it was opened, costs nothing.
    ///
    /// # Errors
    /// The first damage that is found.
    pub fn verify(&self) -> Result<(), Damage> {
        let store = self.store();
        let Some(unread) = &store.unread else { return Ok(()) };
        unread.result.get_or_init(|| unread.contents.verify(store)).clone()
    }
}
