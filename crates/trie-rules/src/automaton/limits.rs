//! How large an automaton may become, and what cannot be made one.

use trie_core::work::Over;

/// How large an automaton may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AutomatonLimits {
    /// Bytes of the automaton, and of the memory in which it is made, each.
    pub bytes: usize,
}

impl Default for AutomatonLimits {
    /// 32 MiB.
    fn default() -> Self {
        Self { bytes: 32 << 20 }
    }
}

impl AutomatonLimits {
    /// The most that a limit can be: 1 GiB.
    pub const MOST: usize = 1 << 30;

    /// So many bytes, or [`AutomatonLimits::MOST`].
    pub const fn bytes(bytes: usize) -> Self {
        Self { bytes: if bytes < Self::MOST { bytes } else { Self::MOST } }
    }
}

/// What cannot be made an automaton.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AutomatonError {
    /// It grew beyond its limit.
    #[error(
        "the automaton needs more than {limit} bytes: raise the limit (max_bytes, AutomatonLimits::bytes), or repeat \
         less, such as .{{1,50}} for .{{1,500}}"
    )]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Something that automata do not have.
    #[error("{what} cannot be decided byte by byte")]
    Unsupported {
        /// What it is.
        what: String,
    },
    /// It takes more work than it may.
    #[error("{over}")]
    TooMuch {
        /// What was spent.
        #[from]
        over: Over,
    },
    /// No text is legal.
    #[error("no text matches")]
    Nothing,
}

trie_core::error_kind!(AutomatonError, Rule);
