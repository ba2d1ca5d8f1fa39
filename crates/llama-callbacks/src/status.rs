//! State shared by a sampler inside a chain and its owner: the position, the counts and whether it still works.

use super::abi::RawSampler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::{Allowed, Leaf, Mode, Observation, Scratch, Span, SpanError, Status, TokenId};

/// Event counts of one sampler since it was created. A reset does not clear it.
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
    /// The path of the trie it walks.
    pub path: String,
    /// The value, once complete.
    pub leaf: Option<Leaf>,
    /// Tokens walked from the root.
    pub depth: usize,
    /// Event counts so far.
    pub counts: SamplerCounts,
    /// A callback panicked: the sampler lets one token through and nothing else, for ever.
    pub poisoned: bool,
    /// The set is damaged where the span stands: nothing may come, and one token alone is let through.
    pub damaged: bool,
}

/// The owner's end of a sampler that a chain has taken: reads and steers it between samples, also after the chain
/// is gone. Clones are the same sampler; a *clone of the chain* has its own state and is not seen here.
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

/// The part that moves.
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

    /// Its own state, at the same place; a closed one stays closed.
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
    /// The owner's end of a sampler that [`into_raw`](super::TokenTrieSampler::into_raw) made; `None` for null, and for
    /// samplers of others.
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

    /// Returns the number of owners of the sampler: handles, and the chain until it is freed. A number of a moment.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// A copy of the span: what is allowed next, what is forced, where it stands. `O(1)`.
    pub fn span(&self) -> Span {
        self.0.lock().span.clone()
    }

    /// Takes tokens that the chain did not sample, such as a forced run: all or none.
    ///
    /// The other samplers of the chain (penalties, grammar) do not see them; use `llama_sampler_accept` where they
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
