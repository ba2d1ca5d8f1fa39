//! A context of llama.cpp with its position: feed tokens, read the logits after the last.

mod backend;
mod chat_template;
mod embedder;
mod gguf;
mod model;
mod options;
mod preconditions;
mod prefix;
mod sequences;
mod set_threads;
mod special_tokens;
mod thread_choice;
mod threads;
mod tokenizer;

pub use backend::supports_graphics_cards;
pub use chat_template::chat_from_gguf;
pub use embedder::{Embedder, Pooling};
pub use gguf::model_digest;
pub use model::{Model, ModelOptions, Progress};
pub use options::{CacheType, ContextOptions};
pub(super) use preconditions::{fits, in_range, not_empty};
pub use prefix::Prefix;
pub use threads::default_threads;
pub use tokenizer::vocab_from_gguf;

use super::device::GatheredRows;
use super::draft::Draft;
use super::error::RuntimeError;
use backend::{backend, max_sequences, run_with_log};
use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2::{LLAMA_FLASH_ATTN_TYPE_DISABLED, LLAMA_FLASH_ATTN_TYPE_ENABLED};
use preconditions::BRANCHES;
use self_cell::self_cell;
use set_threads::SetThreads;
pub(super) use set_threads::address;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;
use thread_choice::ThreadChoice;
use threads::{is_crowded, startable};
use trie_core::{Span, TokenId, shared_length};
use trie_text::Vocab;

/// The sequence of the held tokens. Other sequences are branches from it.
pub(super) const TRUNK: i32 = 0;

/// A token of a batch over several sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedToken {
    /// Id of the token.
    pub token: TokenId,
    /// Number of tokens before it in its sequences.
    pub position: usize,
    /// The sequences it belongs to.
    pub sequences: std::ops::Range<i32>,
    /// True if the logits after it are requested.
    pub wanted: bool,
}

self_cell!(
    // The context borrows the model. `self_cell` keeps both in one heap cell and drops the context first, so no
    // lifetime leaks into `Context` and no unsafe code is needed here; its cell is `Send` because both parts are.
    struct Cell {
        owner: Arc<LlamaModel>,
        #[covariant]
        dependent: LlamaContext,
    }
);

/// A context, its KV cache and the tokens in it. It may move between threads, but only one may use it at a time.
pub struct Context {
    /// Rows that the device gathers, with [`ContextOptions::device_sampling`].
    gathering: Option<GatheredRows>,
    cell: Cell,
    batch: LlamaBatch<'static>,
    vocab: Arc<Vocab>,
    /// The tokens in the KV cache, at positions 0, 1, …. With slots, the tokens of the first slot.
    held: Vec<TokenId>,
    /// Row of the last batch that has logits.
    row: Option<usize>,
    /// Number of sequences that hold texts. The first is the trunk; the sequences after them are branches.
    slots: usize,
    branches: usize,
    is_recurrent: bool,
    /// True if the cache has all that a branch has seen, as long as the branch is there.
    keeps_branches: bool,
    is_precise: bool,
    /// Tokens that one sequence may have.
    n_ctx: usize,
    n_batch: usize,
    threads: ThreadChoice,
    /// Thread count last passed to llama.cpp.
    n_threads: u32,
    forward_passes: u64,
    gathered_rows: u64,
    /// Source of the drafts of generations.
    pub(in crate::runtime) draft: Option<Draft>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { n_ctx, n_batch, n_threads, .. } = self;
        write!(f, "Context {{ held: {} of {n_ctx}, n_batch: {n_batch}, n_threads: {n_threads} }}", self.held.len())
    }
}

impl Model {
    /// A context: cache and position.
    ///
    /// # Errors
    /// An option out of range, or too little memory.
    pub fn context(&self, options: ContextOptions) -> Result<Context, RuntimeError> {
        Context::open(self, options, Gives::Logits)
    }
}

/// Output of a context for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// Logits, for the tokens that request them.
    Logits,
    /// A vector for every token. Nobody reads the logits.
    Vectors,
}

impl Context {
    /// Most tokens that are computed at once: work memory grows with it, times the vocabulary.
    const MAX_COMPUTE_BATCH: u32 = 512;

    fn open(model: &Model, options: ContextOptions, gives: Gives) -> Result<Self, RuntimeError> {
        let trained = model.n_ctx_train();
        let n_ctx = options.n_ctx.unwrap_or(ContextOptions::N_CTX.min(trained));
        let wanted = options.n_threads.unwrap_or_else(default_threads);
        in_range("n_ctx", n_ctx.into(), 1, trained.into())?;
        in_range("n_batch", options.n_batch.into(), 1, i32::MAX as u64)?;
        in_range("n_threads", wanted.into(), 1, ContextOptions::MAX_THREADS)?;
        options.check_cache()?;
        in_range("slots", options.slots.into(), 1, ContextOptions::MAX_SLOTS.min(u64::from(max_sequences() - 1)))?;
        let cells = u64::from(n_ctx) * u64::from(options.slots);
        in_range("n_ctx times slots", cells, 1, i32::MAX as u64)?;
        let most = startable(wanted);
        let threads = match options.n_threads {
            Some(_) => ThreadChoice::with_threads(most),
            None => ThreadChoice::new(most, model.llama().size()),
        };
        let n_threads = threads.threads();

        // A recurrent state cannot be shared by branches, only copied: there one branch at a time is decoded, and each
        // sequence would cost a whole state.
        let is_recurrent = model.is_recurrent();
        let branches = match gives {
            Gives::Vectors => 0,
            Gives::Logits if is_recurrent => 1,
            Gives::Logits => BRANCHES.min(max_sequences() - options.slots),
        };
        // llama.cpp wants a batch, which is no longer than the context, to have room for every sequence.
        let sequences = (branches + options.slots).min(cells as u32);
        let n_batch = options.n_batch.min(cells as u32).max(sequences);
        let mut params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(cells as u32))
            .with_n_batch(n_batch)
            .with_n_ubatch(n_batch.min(Self::MAX_COMPUTE_BATCH))
            .with_n_seq_max(sequences)
            .with_kv_unified(true)
            .with_n_threads(n_threads as i32)
            .with_n_threads_batch(n_threads as i32);
        if gives == Gives::Vectors {
            // One for each token: llama.cpp pools only what is in one pass, which would have to hold the whole text.
            params = params.with_embeddings(true).with_pooling_type(LlamaPoolingType::None);
        }
        if let Some(numbers) = options.cache_type.or(options.precise.then_some(CacheType::F32)) {
            params = params.with_type_k(numbers.of_llama()).with_type_v(numbers.of_llama());
        }
        match options.flash_attention {
            Some(true) => params = params.with_flash_attention_policy(LLAMA_FLASH_ATTN_TYPE_ENABLED),
            None if !options.precise => {}
            Some(false) | None => params = params.with_flash_attention_policy(LLAMA_FLASH_ATTN_TYPE_DISABLED),
        }
        let backend = backend()?;
        let make = |llama| Cell::try_new(llama, |llama| llama.new_context(backend, params));
        let cell = run_with_log(|| make(Arc::clone(model.llama())))
            .map_err(|reason| RuntimeError::Context { n_ctx, reason })?;

        // llama.cpp rounds sizes: what it reports is the law, and what was asked for is the promise.
        let context = cell.borrow_dependent();
        let n_batch = context.n_batch().min(options.n_batch) as usize;
        let n_ctx = (context.n_ctx() / options.slots).min(n_ctx) as usize;
        let gathers = options.device_sampling && gives == Gives::Logits;
        let gathering = gathers.then(|| GatheredRows::new(TRUNK, model.vocab().len()));
        Ok(Self {
            gathering,
            cell,
            batch: LlamaBatch::new(n_batch, sequences as i32),
            vocab: Arc::clone(model.vocab()),
            held: Vec::new(),
            row: None,
            slots: options.slots as usize,
            branches: (sequences - options.slots) as usize,
            is_recurrent,
            keeps_branches: !is_recurrent && !model.has_window(),
            is_precise: options.precise,
            n_ctx,
            n_batch,
            threads,
            n_threads,
            forward_passes: 0,
            gathered_rows: 0,
            draft: None,
        })
    }

    /// Appends tokens, in pieces of at most [`Context::n_batch`]. `stop` is called before each forward pass, and ends
    /// the call by returning `true`.
    ///
    /// # Errors
    /// No tokens, a token outside the vocabulary, or no room for all of them: then nothing is decoded. A failed forward
    /// pass, or a stop by `stop`: then the tokens of the earlier passes stay.
    pub fn feed(&mut self, tokens: &[TokenId], stop: &mut dyn FnMut() -> bool) -> Result<(), RuntimeError> {
        not_empty(tokens)?;
        self.vocab.check_tokens(tokens)?;
        fits(self.held.len(), tokens.len(), self.n_ctx)?;
        for (index, piece) in tokens.chunks(self.n_batch).enumerate() {
            let done = index * self.n_batch;
            if stop() {
                return Err(RuntimeError::Stopped { what: "tokens", done, of: tokens.len() });
            }
            let (last, is_end) = (piece.len() - 1, done + piece.len() == tokens.len());
            self.decode(piece, |index| is_end && index == last, None)?;
        }
        Ok(())
    }

    /// One forward pass that appends tokens to the trunk. `wants` tells at which indices logits are requested, and
    /// `span` that only what it allows is read of the last.
    fn decode(
        &mut self,
        tokens: &[TokenId],
        wants: impl Fn(usize) -> bool,
        span: Option<&Span>,
    ) -> Result<(), RuntimeError> {
        let held = self.held.len();
        let last = tokens.len() - 1;
        let placed: Vec<PlacedToken> = tokens
            .iter()
            .enumerate()
            .map(|(index, &token)| PlacedToken {
                token,
                position: held + index,
                sequences: TRUNK..TRUNK + 1,
                wanted: wants(index),
            })
            .collect();
        if let Err(error) = self.decode_gathering(&placed, |sequence| sequence, span) {
            self.truncate(held);
            return Err(error);
        }
        self.held.extend_from_slice(tokens);
        self.row = wants(last).then_some(last);
        if let Some(gathering) = self.gathering.as_mut().filter(|rows| span.is_some() && rows.is_attached())
            && wants(last)
        {
            let has_row = gathering.read(self.cell.borrow_dependent(), last);
            self.row = self.row.filter(|_| has_row);
            self.gathered_rows += u64::from(has_row);
        }
        Ok(())
    }

    /// One forward pass over at most [`Context::n_batch`] tokens that were checked. `sequence` gives the sequence of
    /// each number in their ranges.
    pub(in crate::runtime) fn decode_placed(
        &mut self,
        placed: &[PlacedToken],
        sequence: impl Fn(i32) -> i32,
    ) -> Result<(), RuntimeError> {
        self.decode_gathering(placed, sequence, None)
    }

    /// [`Context::decode_placed`], where of the only row what the span allows is read.
    fn decode_gathering(
        &mut self,
        placed: &[PlacedToken],
        sequence: impl Fn(i32) -> i32,
        span: Option<&Span>,
    ) -> Result<(), RuntimeError> {
        let position = placed.first().map_or(0, |first| first.position);
        let failed = |reason: String| RuntimeError::Decode { position, tokens: placed.len(), reason };
        self.row = None;
        if let Some(gathering) = &mut self.gathering {
            gathering.begin_pass();
            if placed.iter().any(|token| token.wanted) {
                self.cell.with_dependent_mut(|_, context| gathering.prepare(context, span));
            }
        }
        self.batch.clear();
        for PlacedToken { token, position, sequences, wanted } in placed {
            let sequences: Vec<i32> = sequences.clone().map(&sequence).collect();
            self.batch
                .add(LlamaToken(token.as_i32()), *position as i32, &sequences, *wanted)
                .map_err(|error| failed(error.to_string()))?;
        }
        let began = Instant::now();
        let threads = self.threads.choose(placed.len(), began, is_crowded);
        self.use_threads(threads);
        let batch = &mut self.batch;
        let decoded = self.cell.with_dependent_mut(|_, context| context.decode(batch));
        self.threads.record_pass(placed.len(), began.elapsed(), Instant::now());
        self.forward_passes += 1;
        decoded.map_err(|error| {
            failed(match error {
                DecodeError::NoKvCacheSlot => "the cache has no free place".to_owned(),
                // −1 stands for any batch that llama.cpp does not take, whatever the safe crate calls it.
                DecodeError::NTokensZero => "llama.cpp refused the batch".to_owned(),
                DecodeError::Unknown(code) => format!("llama.cpp gave the code {code}"),
            })
        })
    }

    fn use_threads(&mut self, threads: u32) {
        if threads != self.n_threads
            && self.cell.with_dependent_mut(|_, context| context.set_n_threads(threads, threads))
        {
            self.n_threads = threads;
        }
    }

    /// The logits after the token at this index of the last forward pass. That pass must have requested them.
    ///
    /// # Panics
    /// The pass did not request the logits of this token.
    pub fn row(&self, index: usize) -> &[f32] {
        if let Some(gathering) = self.gathering.as_ref().filter(|rows| rows.is_last()) {
            return gathering.row();
        }
        self.cell.borrow_dependent().get_logits_ith(index as i32)
    }

    /// Removes the tokens at and after a position from the KV cache. A cache that cannot be cut there is cleared.
    fn truncate(&mut self, position: usize) {
        if self.cut_sequence(TRUNK, position) < position {
            self.clear();
        }
    }

    /// Keeps the first `n` tokens, or none if the model's memory cannot be cut (recurrent models).
    pub fn keep(&mut self, n: usize) {
        if n < self.held.len() {
            self.row = None;
            self.truncate(n);
            self.held.truncate(n);
        }
    }

    /// Makes the context hold exactly `tokens`. A beginning that it already holds is not decoded again. Returns the
    /// number of tokens that were decoded.
    ///
    /// # Errors
    /// As [`Context::feed`], but `tokens` may be empty.
    pub fn hold(&mut self, tokens: &[TokenId], stop: &mut dyn FnMut() -> bool) -> Result<usize, RuntimeError> {
        self.vocab.check_tokens(tokens)?;
        fits(0, tokens.len(), self.n_ctx)?;
        self.keep(shared_length(&self.held, tokens));
        let rest = &tokens[self.held.len()..];
        if !rest.is_empty() {
            self.feed(rest, stop)?;
        }
        Ok(rest.len())
    }

    /// Drops held tokens from the first one on that differs from `tokens`. Returns how many of `tokens` must still be
    /// decoded. `with_row` includes the last one unless its [`Context::logits`] are there.
    pub(in crate::runtime) fn keep_common_prefix(&mut self, tokens: &[TokenId], with_row: bool) -> usize {
        let mut shared = shared_length(&self.held, tokens);
        if with_row && shared == tokens.len() && (self.row.is_none() || self.held.len() > shared) {
            shared = shared.saturating_sub(1);
        }
        self.keep(shared);
        tokens.len() - self.held.len()
    }

    /// Runs one forward pass towards holding these tokens, which begin with the held ones. Returns its number of
    /// tokens. Of the row, only what `span` allows is read.
    pub(in crate::runtime) fn approach(
        &mut self,
        tokens: &[TokenId],
        with_row: bool,
        span: Option<&Span>,
    ) -> Result<usize, RuntimeError> {
        let rest = &tokens[self.held.len()..];
        let piece = &rest[..rest.len().min(self.n_batch)];
        let last = piece.len() - 1;
        self.decode(piece, |index| with_row && piece.len() == rest.len() && index == last, span)?;
        Ok(piece.len())
    }

    /// Sets the source of the drafts of generations; `None` turns them off.
    pub fn set_draft(&mut self, draft: Option<Draft>) {
        self.draft = draft;
    }

    /// The same as [`Context::hold`], with the [`Context::logits`] after the last token.
    ///
    /// # Errors
    /// As [`Context::feed`].
    pub fn prefill(&mut self, tokens: &[TokenId], stop: &mut dyn FnMut() -> bool) -> Result<usize, RuntimeError> {
        not_empty(tokens)?;
        self.forget_gathered();
        if self.row.is_none() || self.held != tokens {
            self.keep(tokens.len() - 1);
        }
        self.hold(tokens, stop)
    }

    /// Returns whether the last row has only the tokens that a span allows.
    fn is_gathered(&self) -> bool {
        self.gathering.as_ref().is_some_and(GatheredRows::is_last)
    }

    /// Forgets the last row if it has only some tokens.
    pub(in crate::runtime) fn forget_gathered(&mut self) {
        if self.is_gathered() {
            self.row = None;
        }
    }

    /// Returns whether the last pass should have gathered a row, and has none.
    pub(in crate::runtime) fn has_gathered_nothing(&self) -> bool {
        self.is_gathered() && self.row.is_none()
    }

    /// Returns the row after the last token, of which the span of the pass may be all that there is.
    pub(in crate::runtime) fn last_row(&self) -> Result<&[f32], RuntimeError> {
        Ok(self.row(self.row.ok_or(RuntimeError::NoLogits)?))
    }

    /// Removes all tokens from the KV cache.
    pub fn clear(&mut self) {
        self.cell.with_dependent_mut(|_, context| context.clear_kv_cache());
        self.held.clear();
        self.row = None;
    }

    /// The logits after the last token, one for each token of the vocabulary.
    ///
    /// # Errors
    /// Nothing was fed yet, or the last feeding failed, or the last row was gathered for a generation.
    pub fn logits(&self) -> Result<&[f32], RuntimeError> {
        if self.is_gathered() { Err(RuntimeError::NoLogits) } else { self.last_row() }
    }

    /// Returns the vocabulary of the model.
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

    /// Returns the context size in tokens.
    pub fn n_ctx(&self) -> usize {
        self.n_ctx
    }

    /// The most tokens in one forward pass.
    pub fn n_batch(&self) -> usize {
        self.n_batch
    }

    /// Threads of the last forward pass: the requested number, or one or all of [`default_threads`], whichever is
    /// faster.
    pub fn n_threads(&self) -> u32 {
        self.n_threads
    }

    /// Returns whether the context was made with [`ContextOptions::precise`].
    pub fn is_precise(&self) -> bool {
        self.is_precise
    }

    /// The most threads that a forward pass may get.
    pub fn most_threads(&self) -> u32 {
        self.threads.max_threads()
    }

    /// Rows since the context was made of which only the logits of allowed tokens left the device.
    pub fn gathered_rows(&self) -> u64 {
        self.gathered_rows
    }

    /// Forward passes since the context was made.
    pub fn forward_passes(&self) -> u64 {
        self.forward_passes
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(gathering) = &mut self.gathering {
            self.cell.with_dependent_mut(|_, context| gathering.leave(context));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_pass_that_fails_changes_nothing() {
        let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tokentrie/models/tiny.gguf");
        let options = ContextOptions { n_ctx: Some(256), n_threads: Some(1), ..Default::default() };
        let mut context = Model::load(tiny, ModelOptions::default()).unwrap().context(options).unwrap();
        let tokens: Vec<TokenId> = (40..240).map(|id| TokenId::new(id).unwrap()).collect();
        context.feed(&tokens, &mut || false).unwrap();
        let expected = context.logits().unwrap().to_vec();

        // More than there are cells for: what the checks in front of every public call rule out.
        context.fork(1).unwrap();
        let place = |(index, &token)| PlacedToken { token, position: 200 + index, sequences: 1..2, wanted: true };
        let placed: Vec<PlacedToken> = tokens[..100].iter().enumerate().map(place).collect();
        let error = context.decode_placed(&placed, |sequence| sequence).unwrap_err();
        context.join(1);
        let said = "the forward pass over 100 tokens at position 200 failed: the cache has no free place";
        assert_eq!(error.to_string(), said);
        assert!(matches!(context.logits(), Err(RuntimeError::NoLogits)));

        assert_eq!(context.tokens(), tokens);
        context.prefill(&tokens, &mut || false).unwrap();
        let again = context.logits().unwrap();
        assert!(again.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.05));
        context.feed(&tokens[..56], &mut || false).unwrap();
        assert_eq!(context.room(), 0);
    }
}
