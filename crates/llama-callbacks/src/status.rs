//! State shared by a sampler inside a chain and its owner: the position, the counts and whether it still works.

use super::abi::RawSampler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::{Allowed, Leaf, Mode, Observation, Scratch, Span, SpanError, Status, TokenId, Tokens};

/// Event counts of one sampler since it was created. A reset does not clear them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplerCounts {
    /// Candidate arrays that were constrained or looked at.
    pub applied: u64,
    /// Number of accepted tokens.
    pub accepted: u64,
    /// Illegal tokens at the root, ignored.
    pub ignored: u64,
    /// Times that an illegal token, or too many of them, turned the span off.
    pub turned_off: u64,
    /// Times that no legal candidate had a usable logit: the lowest legal id was put back.
    pub starved: u64,
}

/// A snapshot of a sampler: see [`SamplerHandle::status`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplerStatus {
    /// Phase in the life of the span.
    pub state: Status,
    /// The path of the trie that the span walks.
    pub path: String,
    /// The value, once complete.
    pub leaf: Option<Leaf>,
    /// Tokens walked from the root.
    pub depth: usize,
    /// Event counts so far.
    pub counts: SamplerCounts,
    /// True if a callback panicked. From then on the sampler lets one token through and no other.
    pub poisoned: bool,
    /// True if the set is damaged at the position of the span. Nothing is allowed there, and one token alone is let
    /// through.
    pub damaged: bool,
}

/// The handle of a sampler that a chain has taken. It reads and controls the sampler between samples, also after the
/// chain is gone. Clones of a handle are for the same sampler. A *clone of the chain* has a state of its own, which
/// this handle does not show.
///
/// Every call takes an uncontended lock for some ten nanoseconds; the chain takes the same lock for the length of a
/// callback.
#[derive(Debug, Clone)]
pub struct SamplerHandle(pub(super) Arc<SharedState>);

/// State shared by the handle and the callbacks.
#[derive(Debug)]
pub(super) struct SharedState {
    inner: Mutex<Inner>,
    poisoned: AtomicBool,
}

/// The state that changes with each token.
#[derive(Debug, Clone)]
pub(super) struct Inner {
    pub(super) span: Span,
    pub(super) mode: Mode,
    pub(super) counts: SamplerCounts,
    /// Outcome of the last token.
    pub(super) last: Option<Observation>,
    pub(super) scratch: Scratch,
}

impl Inner {
    pub(super) fn new(span: Span, mode: Mode) -> Self {
        Self { span, mode, counts: SamplerCounts::default(), last: None, scratch: Scratch::default() }
    }

    /// Takes a token that cannot be refused.
    pub(super) fn observe(&mut self, token: i32) {
        // A negative id is not a token; the largest id is in no vocabulary, so the span answers by the same rule.
        let observed = self.span.observe(TokenId::try_from(token).unwrap_or(TokenId::MAX));
        self.last = Some(observed);
        let counter = match observed {
            Observation::Accepted(_) => &mut self.counts.accepted,
            Observation::Ignored => &mut self.counts.ignored,
            Observation::TurnedOff => &mut self.counts.turned_off,
        };
        *counter += 1;
    }
}

impl SharedState {
    pub(super) fn new(inner: Inner) -> Self {
        Self { inner: Mutex::new(inner), poisoned: AtomicBool::new(false) }
    }

    /// A copy with a state of its own, at the same position. A closed sampler stays closed.
    pub(super) fn copy(&self) -> Self {
        #[cfg(test)]
        super::tests::panic_where_asked();
        Self { inner: Mutex::new(self.lock().clone()), poisoned: AtomicBool::new(self.is_poisoned()) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic under the lock is remembered in `poisoned`, which closes the sampler; reading it stays possible.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }
}

impl SamplerHandle {
    /// The handle of a sampler that [`into_raw`](super::TokenTrieSampler::into_raw) made; `None` for null, and for
    /// samplers from elsewhere.
    ///
    /// # Safety
    /// `sampler` is null or a sampler of any llama.cpp that stays alive during the call.
    pub unsafe fn of_raw(sampler: *const RawSampler) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe { super::table::shared_of(sampler) }.map(Self)
    }

    /// Everything about the sampler at this moment.
    pub fn status(&self) -> SamplerStatus {
        let inner = self.0.lock();
        SamplerStatus {
            damaged: inner.span.allowed(&mut Scratch::default()) == Allowed::Nothing,
            state: inner.span.status(),
            path: inner.span.path().to_owned(),
            leaf: inner.span.leaf(),
            depth: inner.span.depth(),
            counts: inner.counts,
            poisoned: self.0.is_poisoned(),
        }
    }

    /// Returns the phase of the span.
    pub fn state(&self) -> Status {
        self.0.lock().span.status()
    }

    /// The value, once complete.
    pub fn leaf(&self) -> Option<Leaf> {
        self.0.lock().span.leaf()
    }

    /// Returns the outcome of the token that the chain accepted last.
    pub fn last_token(&self) -> Option<Observation> {
        self.0.lock().last
    }

    /// Returns the event counts so far.
    pub fn counts(&self) -> SamplerCounts {
        self.0.lock().counts
    }

    /// Returns whether a callback panicked, which closed the sampler for ever.
    pub fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    /// Returns the number of owners of the sampler at this moment: handles, and the chain until it is freed.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Returns the number of allowed tokens; `None` if more than `most` are allowed, or all. `O(most)`.
    pub fn count_allowed(&self, most: usize) -> Option<usize> {
        let mut inner = self.0.lock();
        let Inner { span, scratch, .. } = &mut *inner;
        let allowed = span.allowed(scratch);
        match allowed {
            Allowed::All | Allowed::Open { .. } | Allowed::Only { tokens: Tokens::Except(_), .. } => return None,
            Allowed::Only { .. } | Allowed::Nothing => {}
        }
        let count = allowed.iter().take(most.saturating_add(1)).count();
        (count <= most).then_some(count)
    }

    /// Replaces the span: the sampler goes on where it stands.
    pub fn set_span(&self, span: Span) {
        self.0.lock().span = span;
    }

    /// A copy of the span: its allowed tokens, its forced tokens and its position. `O(1)`.
    pub fn span(&self) -> Span {
        self.0.lock().span.clone()
    }

    /// Accepts tokens that the chain did not sample, such as forced tokens: all of them or none.
    ///
    /// The other samplers of the chain (penalties, grammar) do not see these tokens. Use `llama_sampler_accept` if they
    /// must.
    ///
    /// # Errors
    /// The first token that is not allowed.
    pub fn accept_all(&self, tokens: &[TokenId]) -> Result<(), SpanError> {
        let mut inner = self.0.lock();
        inner.span.accept_all(tokens)?;
        inner.counts.accepted += tokens.len() as u64;
        Ok(())
    }

    /// Arms the root of the first trie again.
    pub fn reset(&self) {
        self.0.lock().span.reset();
    }

    /// Arms the root of the trie with this path.
    ///
    /// # Errors
    /// No trie has that path.
    pub fn activate(&self, path: &str) -> Result<(), SpanError> {
        self.0.lock().span.activate(path)
    }

    /// Stops constraining until a path is activated or the sampler is reset.
    pub fn deactivate(&self) {
        self.0.lock().span.deactivate();
    }
}
