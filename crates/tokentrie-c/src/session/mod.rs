//! Sessions: a model, a prompt, tries that the next generations follow, and one call at a time.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `shared.rs` | what sessions of one file share: weights, vocabulary, slots, engines |
//! | `turn.rs` | one call at a time: what is said to the others, and what ends it |
//! | `following.rs` | what the next generations follow |
//! | `generate.rs` | a generation: made ready, run, and what came of it |
//! | `events.rs` | a generation or a chat on a thread of its own, kept for `next` |
//! | `chat.rs` | a conversation is answered in the format of the model |
//! | `choose.rs` | texts of the model's vocabulary, and the probability of each |
//! | `probability.rs` | the probability that any text of a constraint is written |
//! | `decide.rs` | typed questions about a state, and the probability of every option |

mod chat;
mod choose;
mod decide;
mod errors;
mod events;
mod following;
mod generate;
mod probability;
mod shared;
mod turn;

pub(crate) use events::Event;
pub(crate) use generate::Plan;

use crate::abi::parts::LeftOut;
use crate::abi::{parts, tokentrie_engine_info, tokentrie_session_info, tokentrie_session_options};
use crate::error::{Error, Result};
use crate::handles::{Kind, Table};
use crate::status::*;
use ::llama_callbacks::exit::{self, NativeCall};
use ::llama_sampler::{ContextOptions, Draft};
use errors::ending;
use events::Events;
use following::Following;
use generate::no_prompt;
use shared::{Decoder, SharedModel};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokentrie::call::{Call, GenerateResult, PrefillRequest, Turns};
use tokentrie::chat::ModelFormat;
use tokentrie::engine::{Batching, EngineOptions, EngineStats, Runtime};
use trie_core::{After, Status, TokenId};
use trie_formats::TrieCache;
use trie_text::Prompt;
use turn::{CHAT, GENERATE, Running, gives_up, refused};

pub(crate) static SESSIONS: Table<Arc<Session>> = Table::new(Kind::Session);

/// The number of the slot that is the session's own.
pub(crate) const OWN_SLOT: i32 = -1;
/// Slots that sessions of one file can share.
const SLOTS: i32 = PrefillRequest::MOST_SLOTS as i32;

/// Model session behind a handle.
pub(crate) struct Session {
    model: Arc<SharedModel>,
    context_options: ContextOptions,
    after: After,
    seed: Option<u32>,
    n_ctx: usize,
    turns: Turns,
    own: Decoder,
    /// Format of its chats, where a response template was set.
    format: Mutex<Option<Arc<ModelFormat>>>,
    /// Source of the drafts of its generations.
    draft: Mutex<Option<Draft>>,
    state: Mutex<State>,
    events: Events,
}

/// State that changes between calls.
struct State {
    prompt: Vec<TokenId>,
    /// The text that the prompt was given as, until something was generated after it.
    text: Option<String>,
    decoder: Decoder,
    slot_number: i32,
    following: Following,
    /// Leaves left out of the payload that was set last, or of the constraint of a later request.
    left_out: LeftOut,
    /// Warnings about the constraint of the last request.
    warnings: Vec<String>,
    cache: TrieCache,
    last: Last,
    /// Result of the last choice, probability, decision or chat, as JSON, unless a generation came after it.
    found: Option<String>,
}

/// Record of the last generation.
struct Last {
    finish: i32,
    state: Status,
    tokens: usize,
    generated: Option<GenerateResult>,
    seconds: f64,
}

impl Default for Last {
    fn default() -> Self {
        Self { finish: TOKENTRIE_FINISH_NONE, state: Status::Idle, tokens: 0, generated: None, seconds: 0.0 }
    }
}

/// Options for opening a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) context: ContextOptions,
    pub(crate) engine: EngineOptions,
    pub(crate) n_gpu_layers: u32,
    pub(crate) after: After,
    pub(crate) seed: Option<u32>,
    /// True to reduce a context beyond the model's training length to that length.
    pub(crate) clamp: bool,
}

impl Opening {
    pub(crate) fn of(options: &tokentrie_session_options) -> Result<Self> {
        let some = |number: u32| (number > 0).then_some(number);
        let context = ContextOptions::default().with_n_ctx(some(options.n_ctx)).with_n_threads(some(options.n_threads));
        let context = if options.n_batch > 0 { context.with_n_batch(options.n_batch) } else { context };
        let context = context.with_slots(options.slots.max(1));
        let engine = EngineOptions::default().with_batching(match options.batching {
            TOKENTRIE_BATCHING_FREE => Batching::Free,
            TOKENTRIE_BATCHING_FIXED => Batching::Fixed,
            other => return Err(Error::argument(format!("batching is {other}: it must be 0 (free) or 1 (fixed)"))),
        });
        if options.max_queue > 0 && context.slots == 1 && engine.batching == Batching::Free {
            let message = format!("max_queue is {}: without slots or fixed batching no call waits", options.max_queue);
            return Err(Error::argument(message));
        }
        let engine = some(options.max_queue).map_or(engine, |most| engine.with_max_queue(most as usize));
        Ok(Self {
            context,
            engine,
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
        let _working = exit::Working::begin().ok_or_else(ending)?;
        let model = SharedModel::open(path, opening.n_gpu_layers)?;
        let mut options = opening.context;
        if opening.clamp {
            options.n_ctx = options.n_ctx.map(|n_ctx| n_ctx.min(model.model.n_ctx_train()));
        }
        let (own, n_ctx) = model.decoder(options, opening.engine)?;
        exit::wait_at_exit(NativeCall::Opening);
        let state = State {
            prompt: Vec::new(),
            text: None,
            decoder: own.clone(),
            slot_number: OWN_SLOT,
            following: Following::Nothing,
            left_out: LeftOut::default(),
            warnings: Vec::new(),
            cache: TrieCache::default(),
            last: Last::default(),
            found: None,
        };
        Ok(Self {
            context_options: options,
            after: opening.after,
            seed: opening.seed,
            n_ctx,
            turns: Turns::default(),
            own,
            format: Mutex::default(),
            draft: Mutex::default(),
            state: Mutex::new(state),
            events: Events::default(),
            model,
        })
    }

    /// Sets the source of the drafts of its generations; `None` turns them off.
    pub(crate) fn set_draft(self: &Arc<Self>, source: Option<&Path>) -> Result<()> {
        let _turn = self.turn("set_draft")?;
        let draft = source.map(|source| Draft::open(source, &self.model.model, self.context_options)).transpose()?;
        if let (Decoder::Engine(engine), Some(draft)) = (&self.own, &draft) {
            engine.check_draft(draft)?;
        }
        *self.draft.lock().unwrap_or_else(PoisonError::into_inner) = draft;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock leaves a state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes: with the context of a slot, once it is free, or in an engine.
    fn with_runtime<R, E>(
        &self,
        decoder: &Decoder,
        call: &Call,
        work: impl FnOnce(&mut Runtime<'_>) -> std::result::Result<R, E>,
    ) -> Result<R>
    where
        Error: From<E>,
    {
        let _working = exit::Working::begin().ok_or_else(ending)?;
        let draft = self.draft.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let done = match decoder {
            Decoder::Slot(slot) => {
                let make = || Ok(self.model.model.context(self.context_options)?);
                slot.with(
                    make,
                    || gives_up(call),
                    |context| {
                        // Other sessions may use the slot, with drafts of their own.
                        context.set_draft(draft);
                        Ok(work(&mut Runtime::Alone(context))?)
                    },
                )
            }
            Decoder::Engine(engine) => work(&mut Runtime::Shared(engine, draft.as_ref())).map_err(Error::from),
        };
        exit::wait_at_exit(NativeCall::Pass);
        done
    }

    /// Takes a prompt, and computes what the slot does not hold of it.
    pub(crate) fn prefill(self: &Arc<Self>, prompt: Prompt, slot_number: i32) -> Result<usize> {
        if !(OWN_SLOT..SLOTS).contains(&slot_number) {
            let message = format!("slot is {slot_number}: it must be from 0 to {}, or -1 for its own", SLOTS - 1);
            return Err(Error::argument(message));
        }
        let turn = self.turn("prefill")?;
        let call = Call::default().with(turn.cancel());
        let text = if let Prompt::Text(text) = &prompt { Some(text.clone()) } else { None };
        let tokens = prompt.tokens(self.model.model.vocab(), None)?;
        let decoder = match (&self.own, slot_number) {
            (own, OWN_SLOT) => own.clone(),
            (Decoder::Slot(_), number) => Decoder::Slot(self.model.slot(self.context_options, number)),
            (Decoder::Engine(_), number) => {
                let message = format!("slot is {number}: the engine of this session shares beginnings itself; give -1");
                return Err(Error::argument(message));
            }
        };
        // If this fails, no generation goes on after another prompt than the one that was wanted.
        self.state().prompt.clear();
        self.with_runtime(&decoder, &call, |runtime| runtime.prefill(&tokens, &mut Running::new(&call)))?;
        let mut state = self.state();
        let taken = tokens.len();
        (state.prompt, state.text, state.decoder, state.slot_number) = (tokens, text, decoder, slot_number);
        Ok(taken)
    }

    /// Writes what the cache holds of the prompt to a file.
    pub(crate) fn save_prefix(self: &Arc<Self>, path: &Path) -> Result<()> {
        let turn = self.turn("save_prefix")?;
        let call = Call::default().with(turn.cancel());
        let (tokens, decoder) = {
            let state = self.state();
            (state.prompt.clone(), state.decoder.clone())
        };
        if tokens.is_empty() {
            return Err(no_prompt());
        }
        let model = &self.model.model;
        self.with_runtime(&decoder, &call, |runtime| {
            runtime.save_prefix(model, path, &tokens, &mut Running::new(&call))
        })
    }

    /// Takes what a file holds as the prompt. Returns its tokens.
    pub(crate) fn load_prefix(self: &Arc<Self>, path: &Path) -> Result<usize> {
        let turn = self.turn("load_prefix")?;
        let call = Call::default().with(turn.cancel());
        // As in `prefill`.
        self.state().prompt.clear();
        let tokens = self.with_runtime(&self.own, &call, |runtime| runtime.load_prefix(&self.model.model, path))?;
        let mut state = self.state();
        let taken = tokens.len();
        (state.prompt, state.text, state.decoder, state.slot_number) = (tokens, None, self.own.clone(), OWN_SLOT);
        Ok(taken)
    }

    /// Ends what runs as soon as its forward pass is over.
    pub(crate) fn cancel(&self) {
        self.turns.cancel();
    }

    /// Ends the session, unless a call runs.
    pub(crate) fn close(&self) -> Result<()> {
        self.turns.close().map_err(|refusal| refused("close", refusal))
    }

    /// Returns the result of the last call, as JSON.
    pub(crate) fn result(&self) -> Option<String> {
        let state = self.state();
        let generated = || state.last.generated.as_ref().map(|result| result.to_json(&state.warnings));
        state.found.clone().or_else(generated)
    }

    pub(crate) fn model(&self) -> &SharedModel {
        &self.model
    }

    /// Returns the load and statistics of the engine of the session, if it has one.
    pub(crate) fn engine_info(&self) -> Option<tokentrie_engine_info> {
        let Decoder::Engine(engine) = &self.own else { return None };
        let EngineStats {
            slots,
            running,
            queued,
            calls,
            passes,
            tokens,
            tokens_reused,
            cells,
            failed_passes,
            decoding,
            own,
            ..
        } = engine.stats();
        Some(tokentrie_engine_info {
            size: 0,
            slots: slots as u32,
            running: running as u64,
            queued: queued as u64,
            calls,
            passes,
            tokens,
            tokens_reused,
            cells: cells as u64,
            failed_passes,
            decode_seconds: decoding.as_secs_f64(),
            own_seconds: own.as_secs_f64(),
        })
    }

    pub(crate) fn info(&self) -> tokentrie_session_info {
        let is_running = matches!(self.turns.running(), Some(GENERATE | CHAT));
        let state = self.state();
        let last = &state.last;
        let took = last.generated.as_ref().map(|result| result.generated.stats).unwrap_or_default();
        tokentrie_session_info {
            size: 0,
            generating: is_running.into(),
            has_trie: matches!(state.following, Following::Rules { .. }).into(),
            state: parts::state(last.state),
            finish: last.finish,
            slot: state.slot_number,
            n_ctx: self.n_ctx as u32,
            n_vocab: self.model.model.vocab().len() as u32,
            prompt_tokens: state.prompt.len() as u64,
            tokens: last.tokens as u64,
            forced_tokens: took.forced_tokens as u64,
            sampled_tokens: took.sampled_tokens as u64,
            forward_passes: took.forward_passes,
            forward_passes_saved: took.forward_passes_saved as u64,
            prompt_tokens_reused: took.prompt_tokens_reused as u64,
            starved: took.starved,
            seconds: last.seconds,
            empty_leaves: state.left_out.empty as u64,
            outside_vocabulary: state.left_out.outside as u64,
        }
    }
}
