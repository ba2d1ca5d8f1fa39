//! State of a span, as a value: everything that changes while it is walked.

/// Phase in the life of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Constraining: at the start or on the way to the end of a value.
    Active,
    /// The value is known; the span is over.
    Complete,
    /// Switched off by the host, until the host activates a path.
    Idle,
    /// Switched off because a token that was not allowed was accepted.
    Off,
}

impl Status {
    /// The name that hosts see: `active`, `complete`, `idle` or `off`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Idle => "idle",
            Self::Off => "off",
        }
    }
}

/// State of a span. `Copy` where the constraint's own state is: clones, drafts and beams copy a few integers.
///
/// The accepted tokens are *ignored tokens, then the walk, then a tail*. So three counts and one position describe all
/// of them, and rollback in a trie needs no history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanState<S> {
    pub(super) at: S,
    pub(super) status: Status,
    /// Index of the constraint that is walked.
    pub(super) constraint: u32,
    /// Tokens of the walk.
    pub(super) depth: u32,
    /// Tokens after the walk: an end token and whatever followed the span.
    pub(super) tail: u32,
    /// Tokens before the walk that were not allowed, from a host that cannot be refused.
    pub(super) ignored: u32,
    /// The number of accepted tokens when the span turned itself off.
    pub(super) off_at: u32,
}

impl<S: Clone> SpanState<S> {
    /// Becomes a clone of another one, in place.
    #[inline]
    pub(crate) fn copy_from(&mut self, source: &Self) {
        let Self { at, status, constraint, depth, tail, ignored, off_at } = self;
        at.clone_from(&source.at);
        *status = source.status;
        *constraint = source.constraint;
        *depth = source.depth;
        *tail = source.tail;
        *ignored = source.ignored;
        *off_at = source.off_at;
    }
}

impl<S> SpanState<S> {
    /// Returns the phase of the span.
    #[inline]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The state of the constraint that is walked.
    #[inline]
    pub fn position(&self) -> &S {
        &self.at
    }

    /// Puts the walk at another state of the constraint that it is in.
    pub fn set_position(&mut self, at: S) {
        self.at = at;
    }

    /// Returns the index of the constraint that is walked.
    pub fn constraint_number(&self) -> usize {
        self.constraint as usize
    }

    /// Tokens walked in the constraint.
    pub fn depth(&self) -> usize {
        self.depth as usize
    }

    /// Tokens accepted since the span was armed, ignored and free ones included.
    pub fn accepted(&self) -> usize {
        self.ignored as usize + self.depth() + self.tail as usize
    }
}
