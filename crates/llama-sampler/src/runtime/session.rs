//! A context of llama.cpp with its position: feed tokens, read the logits after the last.

use super::backend::{backend, quoted};
use super::error::RuntimeError;
use super::model::Model;
use super::preconditions::{SEQUENCES, fits, in_range, inside_vocabulary, not_empty};
use super::threads::default_threads;
use super::vocab::Vocab;
use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use self_cell::self_cell;
use std::num::NonZeroU32;
use std::sync::Arc;
use trie_core::TokenId;

/// The one sequence that a session uses.
const SEQUENCE: i32 = 0;

/// How large a session is. The default suits choices after prompts of a few pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Tokens of context; `None` takes 4096, or what the model was trained on if that is less.
    pub n_ctx: Option<u32>,
    /// Tokens in one forward pass. Between two of them a long prompt can be stopped.
    pub n_batch: u32,
    /// Threads; `None` takes [`default_threads`].
    pub n_threads: Option<u32>,
}

impl SessionOptions {
    const N_CTX: u32 = 4096;
    const MAX_THREADS: u64 = 512;
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { n_ctx: None, n_batch: 512, n_threads: None }
    }
}

self_cell!(
    // The context borrows the model. `self_cell` keeps both in one heap cell and drops the context first, so no
    // lifetime leaks into `Session` and no unsafe code is needed here; its cell is `Send` because both parts are.
    struct ContextCell {
        owner: Arc<LlamaModel>,
        #[covariant]
        dependent: LlamaContext,
    }
);

/// A context, its key-value cache and the tokens in it. Moves between threads; use it from one at a time.
pub struct Session {
    cell: ContextCell,
    batch: LlamaBatch<'static>,
    vocab: Arc<Vocab>,
    /// The tokens that the cache holds, at positions 0, 1, ….
    held: Vec<TokenId>,
    /// Row of the last batch that has logits.
    row: Option<i32>,
    n_ctx: usize,
    n_batch: usize,
    n_threads: u32,
    forward_passes: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { n_ctx, n_batch, n_threads, .. } = self;
        write!(f, "Session {{ held: {} of {n_ctx}, n_batch: {n_batch}, n_threads: {n_threads} }}", self.held.len())
    }
}

impl Session {
    /// Tokens that are computed at once: work memory grows with it, times the vocabulary.
    const MAX_COMPUTE_BATCH: u32 = 512;

    pub(super) fn new(model: &Model, options: SessionOptions) -> Result<Self, RuntimeError> {
        let trained = model.n_ctx_train();
        let n_ctx = options.n_ctx.unwrap_or(SessionOptions::N_CTX.min(trained));
        let n_threads = options.n_threads.unwrap_or_else(default_threads);
        in_range("n_ctx", n_ctx.into(), 1, trained.into())?;
        in_range("n_batch", options.n_batch.into(), SEQUENCES.into(), i32::MAX as u64)?;
        in_range("n_threads", n_threads.into(), 1, SessionOptions::MAX_THREADS)?;

        // Scoring over a tree of sequences will want `kv_unified` and more sequences: both belong here.
        let n_batch = options.n_batch.min(n_ctx).max(SEQUENCES);
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(n_ctx))
            .with_n_batch(n_batch)
            .with_n_ubatch(n_batch.min(Self::MAX_COMPUTE_BATCH))
            .with_n_seq_max(SEQUENCES)
            .with_n_threads(n_threads as i32)
            .with_n_threads_batch(n_threads as i32);
        let backend = backend()?;
        let make = |llama| ContextCell::try_new(llama, |llama| llama.new_context(backend, params));
        let cell =
            quoted(|| make(Arc::clone(model.llama()))).map_err(|reason| RuntimeError::Context { n_ctx, reason })?;

        // llama.cpp rounds sizes: what it reports is the law, and what was asked for is the promise.
        let context = cell.borrow_dependent();
        let n_batch = context.n_batch().min(n_batch) as usize;
        let n_ctx = context.n_ctx().min(n_ctx) as usize;
        Ok(Self {
            cell,
            batch: LlamaBatch::new(n_batch, SEQUENCES as i32),
            vocab: Arc::clone(model.vocab()),
            held: Vec::new(),
            row: None,
            n_ctx,
            n_batch,
            n_threads,
            forward_passes: 0,
        })
    }

    /// Appends tokens, in pieces of at most [`Session::n_batch`]. Before each forward pass `stop` is asked whether to
    /// give up.
    ///
    /// # Errors
    /// No tokens, a token outside the vocabulary, or no room for all of them: nothing is decoded then. A failed forward
    /// pass, or `stop` said so: the tokens of the passes before stay.
    pub fn feed(&mut self, tokens: &[TokenId], stop: &mut dyn FnMut() -> bool) -> Result<(), RuntimeError> {
        not_empty(tokens)?;
        inside_vocabulary(tokens, self.vocab.len())?;
        fits(self.held.len(), tokens.len(), self.n_ctx)?;
        for (index, piece) in tokens.chunks(self.n_batch).enumerate() {
            let done = index * self.n_batch;
            if stop() {
                return Err(RuntimeError::Stopped { what: "tokens", done, of: tokens.len() });
            }
            self.decode(piece, done + piece.len() == tokens.len())?;
        }
        Ok(())
    }

    /// One forward pass over tokens that were checked.
    fn decode(&mut self, tokens: &[TokenId], want_logits: bool) -> Result<(), RuntimeError> {
        let position = self.held.len();
        let failed = |reason: String| RuntimeError::Decode { position, tokens: tokens.len(), reason };
        self.row = None;
        self.batch.clear();
        let last = tokens.len() - 1;
        for (index, token) in tokens.iter().enumerate() {
            let output = want_logits && index == last;
            self.batch
                .add(LlamaToken(token.as_i32()), (position + index) as i32, &[SEQUENCE], output)
                .map_err(|error| failed(error.to_string()))?;
        }
        let batch = &mut self.batch;
        let decoded = self.cell.with_dependent_mut(|_, context| context.decode(batch));
        self.forward_passes += 1;
        if let Err(error) = decoded {
            self.truncate_cache(position);
            return Err(failed(match error {
                DecodeError::NoKvCacheSlot => "the cache has no free place".to_owned(),
                // −1 stands for any batch that llama.cpp does not take, whatever the safe crate calls it.
                DecodeError::NTokensZero => "llama.cpp refused the batch".to_owned(),
                DecodeError::Unknown(code) => format!("llama.cpp gave the code {code}"),
            }));
        }
        self.held.extend_from_slice(tokens);
        self.row = want_logits.then_some(last as i32);
        Ok(())
    }

    /// After a failed pass the cache may hold part of it; a cache that cannot be cut is cleared.
    fn truncate_cache(&mut self, position: usize) {
        let cut =
            self.cell.with_dependent_mut(|_, context| context.kv_cache_seq_rm(SEQUENCE, Some(position as u32), None));
        if cut.is_err() {
            self.clear();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.cell.with_dependent_mut(|_, context| context.clear_kv_cache());
        self.held.clear();
        self.row = None;
    }

    /// The logits after the last token, one for each token of the vocabulary.
    ///
    /// # Errors
    /// Nothing was fed yet, or the last feeding failed.
    pub fn logits(&self) -> Result<&[f32], RuntimeError> {
        let row = self.row.ok_or(RuntimeError::NoLogits)?;
        Ok(self.cell.borrow_dependent().get_logits_ith(row))
    }

    /// Samples after the last token. The chain accepts the token by itself.
    ///
    /// `chain` must end with a sampler that selects: llama.cpp aborts otherwise.
    pub(super) fn sample(&self, chain: &mut LlamaSampler) -> Result<TokenId, RuntimeError> {
        let row = self.row.ok_or(RuntimeError::NoLogits)?;
        let token = chain.sample(self.cell.borrow_dependent(), row);
        TokenId::try_from(token.0).map_err(|error| RuntimeError::Decode {
            position: self.held.len(),
            tokens: 0,
            reason: error.to_string(),
        })
    }

    /// The vocabulary.
    pub fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    /// The tokens in the cache.
    pub fn tokens(&self) -> &[TokenId] {
        &self.held
    }

    /// Tokens for which there is room.
    pub fn room(&self) -> usize {
        self.n_ctx - self.held.len()
    }

    /// Tokens of context.
    pub fn n_ctx(&self) -> usize {
        self.n_ctx
    }

    /// The most tokens in one forward pass.
    pub fn n_batch(&self) -> usize {
        self.n_batch
    }

    /// Threads in use.
    pub fn n_threads(&self) -> u32 {
        self.n_threads
    }

    /// Forward passes since the session was made.
    pub fn forward_passes(&self) -> u64 {
        self.forward_passes
    }
}
