//! Sessions: a model, a prompt, tries that the next generations follow, and one call at a time.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `shared.rs` | what sessions of one file share: weights, vocabulary, slots |
//! | `generate.rs` | a generation, told to a callback or kept for `next` |
//! | `chat.rs` | a conversation is answered in the format of the model |
//! | `choose.rs` | texts of the model's vocabulary, and the probability of each |
//! | `exit.rs` | the end of the process waits for forward passes (unsafe) |

mod chat;
mod choose;
mod exit;
mod generate;
mod shared;

pub(crate) use generate::{Event, Plan};

use crate::abi::constraint::{Follows, follows};
use crate::abi::{parts, tokentrie_session_info, tokentrie_session_options};
use crate::error::{Error, Result};
use crate::handles::{Kind, Table};
use crate::status::*;
use crate::turn::Turns;
use ::llama_sampler::{Context, ContextOptions, Finish, GenerateStats, RuntimeError};
use generate::Events;
use shared::{SharedModel, Slot};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokentrie::spec::{Built, Spans};
use trie_core::{After, Leaf, Mode, SpanRules, Status, TokenId, TrieCache};
use trie_text::{Prompt, ValuesError, Vocab};

pub(crate) static SESSIONS: Table<Arc<Session>> = Table::new(Kind::Session);

/// The number of the slot that is the session's own.
pub(crate) const OWN_SLOT: i32 = -1;
/// Slots that sessions of one file can share.
const SLOTS: i32 = 64;

/// One session.
pub(crate) struct Session {
    model: Arc<SharedModel>,
    context_options: ContextOptions,
    after: After,
    seed: Option<u32>,
    n_ctx: usize,
    turns: Turns,
    own: Arc<Slot>,
    state: Mutex<State>,
    events: Events,
}

/// What changes between calls.
struct State {
    prompt: Vec<TokenId>,
    /// The text that the prompt was given as, until something was generated after it.
    text: Option<String>,
    slot: Arc<Slot>,
    slot_number: i32,
    following: Following,
    cache: TrieCache,
    last: Last,
    /// The reply of the last chat.
    message: Option<String>,
}

/// What the next generation follows.
enum Following {
    Nothing,
    Rules {
        rules: Arc<SpanRules>,
        mode: Mode,
        /// For a prompt that is text.
        built: Option<Built>,
    },
    /// The payload that was set cannot be used: going on without it would allow every token.
    Refused(Error),
}

/// What is known of the last generation.
struct Last {
    finish: i32,
    state: Status,
    leaf: Option<Leaf>,
    /// The fields of a form by name, as JSON.
    values: Option<String>,
    tokens: usize,
    stats: GenerateStats,
    seconds: f64,
}

impl Default for Last {
    fn default() -> Self {
        let stats = GenerateStats::default();
        Self {
            finish: TOKENTRIE_FINISH_NONE,
            state: Status::Idle,
            leaf: None,
            values: None,
            tokens: 0,
            stats,
            seconds: 0.0,
        }
    }
}

/// How a session is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) context: ContextOptions,
    pub(crate) n_gpu_layers: u32,
    pub(crate) after: After,
    pub(crate) seed: Option<u32>,
    /// Whether a context beyond what the model was trained on becomes that.
    pub(crate) clamp: bool,
}

impl Opening {
    pub(crate) fn of(options: &tokentrie_session_options) -> Result<Self> {
        let some = |number: u32| (number > 0).then_some(number);
        let context = ContextOptions::default().with_n_ctx(some(options.n_ctx)).with_n_threads(some(options.n_threads));
        let context = if options.n_batch > 0 { context.with_n_batch(options.n_batch) } else { context };
        Ok(Self {
            context,
            n_gpu_layers: options.n_gpu_layers,
            after: parts::after(options.after)?,
            seed: (options.has_seed != 0).then_some(options.seed),
            clamp: false,
        })
    }
}

impl Session {
    /// Loads a model, or shares that of another session, and makes a context.
    pub(crate) fn open(path: &Path, opening: Opening) -> Result<Self> {
        let _working = exit::Working::begin()?;
        let model = SharedModel::open(path, opening.n_gpu_layers)?;
        let mut options = opening.context;
        if opening.clamp {
            options.n_ctx = options.n_ctx.map(|n_ctx| n_ctx.min(model.model.n_ctx_train()));
        }
        let context = model.model.context(options)?;
        exit::wait_before_losing(exit::After::Opening);
        let n_ctx = context.n_ctx();
        let own = Arc::new(Slot::new(Some(context)));
        let state = State {
            prompt: Vec::new(),
            text: None,
            slot: Arc::clone(&own),
            slot_number: OWN_SLOT,
            following: Following::Nothing,
            cache: TrieCache::default(),
            last: Last::default(),
            message: None,
        };
        Ok(Self {
            context_options: options,
            after: opening.after,
            seed: opening.seed,
            n_ctx,
            turns: Turns::default(),
            own,
            state: Mutex::new(state),
            events: Events::default(),
            model,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock leaves a state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The context of a slot, once it is free.
    fn with_context<R>(
        &self,
        slot: &Slot,
        work: impl FnOnce(&mut Context) -> std::result::Result<R, RuntimeError>,
    ) -> Result<R> {
        let _working = exit::Working::begin()?;
        let make = || Ok(self.model.model.context(self.context_options)?);
        let done = slot.with(make, || self.gives_up(), |context| Ok(work(context)?));
        exit::wait_before_losing(exit::After::Pass);
        done
    }

    /// Takes a prompt, and computes what the slot does not hold of it.
    pub(crate) fn prefill(self: &Arc<Self>, prompt: Prompt, slot_number: i32) -> Result<usize> {
        if !(OWN_SLOT..SLOTS).contains(&slot_number) {
            let message = format!("slot is {slot_number}: it must be from 0 to {}, or -1 for its own", SLOTS - 1);
            return Err(Error::argument(message));
        }
        let _turn = self.turns.begin("prefill")?;
        let text = if let Prompt::Text(text) = &prompt { Some(text.clone()) } else { None };
        let tokens = prompt.tokens(self.model.model.vocab(), None)?;
        let slot = match slot_number {
            OWN_SLOT => Arc::clone(&self.own),
            number => self.model.slot(self.context_options, number),
        };
        // If this fails, no generation goes on after another prompt than the one that was wanted.
        self.state().prompt.clear();
        self.with_context(&slot, |context| context.prefill(&tokens, &mut || self.gives_up()))?;
        let mut state = self.state();
        let taken = tokens.len();
        (state.prompt, state.text, state.slot, state.slot_number) = (tokens, text, slot, slot_number);
        Ok(taken)
    }

    /// Whether nobody waits for what runs any more; asked between two forward passes.
    fn gives_up(&self) -> bool {
        self.turns.is_cancelled() || exit::is_ending()
    }

    /// Ends what runs as soon as its forward pass is over.
    pub(crate) fn cancel(&self) {
        self.turns.cancel();
    }

    /// Ends the session, unless a call runs.
    pub(crate) fn close(&self) -> Result<()> {
        self.turns.close()
    }

    /// What the next generations follow: a payload in JSON.
    pub(crate) fn set_token_trie(self: &Arc<Self>, json: &[u8], mode: i32) -> Result<()> {
        self.follow(mode, |state, vocab| {
            let spans = Arc::clone(&state.cache.payload(json, Some(vocab.len()))?.constraints);
            Ok(Follows { spans, built: None })
        })
    }

    /// The same: tries or a constraint that were made before.
    pub(crate) fn set_trie(self: &Arc<Self>, trie: u64, mode: i32) -> Result<()> {
        self.follow(mode, |_, vocab| follows(trie, vocab))
    }

    /// The same, refused before it was read.
    pub(crate) fn refuse_token_trie(&self, error: &Error) {
        if let Ok(_turn) = self.turns.begin("set_token_trie") {
            self.state().following = Following::Refused(error.clone());
        }
    }

    fn follow(self: &Arc<Self>, mode: i32, follows: impl FnOnce(&mut State, &Vocab) -> Result<Follows>) -> Result<()> {
        let _turn = self.turns.begin("set_token_trie")?;
        let mut state = self.state();
        let following = parts::mode(mode).and_then(|mode| {
            let Follows { spans, built } = follows(&mut state, self.model.model.vocab())?;
            Ok(Following::Rules { rules: self.rules(spans)?, mode, built })
        });
        let failed = following.as_ref().err().cloned();
        state.following = following.unwrap_or_else(Following::Refused);
        failed.map_or(Ok(()), Err)
    }

    /// What a generation inside these constraints follows.
    fn rules(&self, spans: Spans) -> Result<Arc<SpanRules>> {
        let vocab = self.model.model.vocab();
        let rules = SpanRules::new(spans, vocab.len())?;
        Ok(Arc::new(rules.with_end_of_generation(vocab.end_of_generation())?.with_after(self.after)?))
    }

    pub(crate) fn clear_token_trie(self: &Arc<Self>) -> Result<()> {
        let _turn = self.turns.begin("clear_token_trie")?;
        self.state().following = Following::Nothing;
        Ok(())
    }

    pub(crate) fn leaf(&self) -> Option<Leaf> {
        self.state().last.leaf.clone()
    }

    /// What the last generation filled into a form, by name, as JSON.
    pub(crate) fn values(&self) -> Option<String> {
        self.state().last.values.clone()
    }

    pub(crate) fn model(&self) -> &SharedModel {
        &self.model
    }

    pub(crate) fn info(&self) -> tokentrie_session_info {
        let generating = self.turns.is_generating();
        let state = self.state();
        let Last { finish, state: at, tokens, stats, seconds, .. } = &state.last;
        tokentrie_session_info {
            size: 0,
            generating: generating.into(),
            has_trie: matches!(state.following, Following::Rules { .. }).into(),
            state: parts::state(*at),
            finish: *finish,
            slot: state.slot_number,
            n_ctx: self.n_ctx as u32,
            n_vocab: self.model.model.vocab().len() as u32,
            prompt_tokens: state.prompt.len() as u64,
            tokens: *tokens as u64,
            forced_tokens: stats.forced_tokens as u64,
            sampled_tokens: stats.sampled_tokens as u64,
            forward_passes: stats.forward_passes,
            forward_passes_saved: stats.forward_passes_saved as u64,
            prompt_tokens_reused: stats.prompt_tokens_reused as u64,
            starved: stats.starved,
            seconds: *seconds,
        }
    }
}

fn finish(finish: Finish) -> i32 {
    match finish {
        Finish::Span => TOKENTRIE_FINISH_SPAN,
        Finish::EndOfGeneration => TOKENTRIE_FINISH_END_OF_GENERATION,
        Finish::MaxTokens => TOKENTRIE_FINISH_MAX_TOKENS,
        Finish::ContextFull => TOKENTRIE_FINISH_CONTEXT_FULL,
        Finish::Stopped => TOKENTRIE_FINISH_CANCELLED,
    }
}

#[deny(clippy::wildcard_enum_match_arm)]
impl From<RuntimeError> for Error {
    fn from(error: RuntimeError) -> Self {
        fn status(error: &RuntimeError) -> tokentrie_status {
            match error {
                RuntimeError::Vocab(_) | RuntimeError::VocabularyMismatch { .. } => TOKENTRIE_ERROR_VOCAB,
                RuntimeError::Stopped { .. } => TOKENTRIE_ERROR_CANCELLED,
                RuntimeError::OutOfRange { .. } | RuntimeError::Draw(_) => TOKENTRIE_ERROR_ARGUMENT,
                RuntimeError::DamagedSet | RuntimeError::DamagedFile(_) | RuntimeError::Problem(_) => {
                    TOKENTRIE_ERROR_DAMAGED
                }
                RuntimeError::NotListed(_) | RuntimeError::Healing(_) => TOKENTRIE_ERROR_SET,
                RuntimeError::Form(_) => TOKENTRIE_ERROR_SPEC,
                RuntimeError::Prompt { error, .. } | RuntimeError::Argument { error, .. } => status(error),
                RuntimeError::Backend { .. }
                | RuntimeError::File { .. }
                | RuntimeError::Path { .. }
                | RuntimeError::NotGguf { .. }
                | RuntimeError::Metadata { .. }
                | RuntimeError::VocabularyOnly { .. }
                | RuntimeError::NoVocabulary { .. }
                | RuntimeError::NotADecoder { .. }
                | RuntimeError::Load { .. }
                | RuntimeError::Context { .. }
                | RuntimeError::EmptyPrompt
                | RuntimeError::ContextFull { .. }
                | RuntimeError::ValueTooLong { .. }
                | RuntimeError::NoLogits
                | RuntimeError::Decode { .. }
                | RuntimeError::NoTemplate { .. }
                | RuntimeError::Template(_)
                | RuntimeError::NothingSelected
                | RuntimeError::Sampler(_)
                | RuntimeError::Rules(_)
                | RuntimeError::Unscored { .. } => TOKENTRIE_ERROR_MODEL,
            }
        }
        Self::new(status(&error), error.to_string())
    }
}

impl From<ValuesError> for Error {
    fn from(error: ValuesError) -> Self {
        Self::new(TOKENTRIE_ERROR_SET, error.to_string())
    }
}
