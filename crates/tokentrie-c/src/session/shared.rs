//! State shared by sessions of one file: its weights, its vocabulary, numbered slots and engines.

use crate::abi::vocab::Vocab;
use crate::error::{Error, Result};
use crate::status::{TOKENTRIE_ERROR_CANCELLED, TOKENTRIE_ERROR_MODEL};
use ::llama_sampler::{Context, ContextOptions, Model, ModelOptions, supports_graphics_cards};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use tokentrie::chat::{ChatError, ModelFormat};
use tokentrie::engine::{Engine, EngineOptions, ModelDecoder};
use trie_text::ValueSets;

/// Model file that is loaded.
pub(crate) struct SharedModel {
    pub(super) model: Model,
    /// The sets of texts used last.
    pub(super) sets: ValueSets,
    vocab: OnceLock<Arc<Vocab>>,
    /// The format of its chats, and whether its file has no template.
    format: OnceLock<(Arc<ModelFormat>, bool)>,
    slots: Mutex<Vec<(ContextOptions, i32, Weak<Slot>)>>,
    engines: LongLock<Vec<(ContextOptions, EngineOptions, Weak<Engine>)>>,
}

/// A file as it is now: one that was replaced is loaded anew.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    path: PathBuf,
    bytes: u64,
    changed: Option<SystemTime>,
    n_gpu_layers: u32,
}

/// Decoder of a session.
#[derive(Clone)]
pub(super) enum Decoder {
    /// A context that calls use one after another.
    Slot(Arc<Slot>),
    /// An engine, in which calls of all sessions that share it run together.
    Engine(Arc<Engine>),
}

/// A context that is used by one call at a time.
pub(super) struct Slot(LongLock<Option<Context>>);

/// Object that is locked for long. In a process that was forked meanwhile the thread that holds it is missing: there it
/// says so.
struct LongLock<T> {
    held: Mutex<T>,
    /// The process whose thread held it last.
    process: AtomicU32,
}

impl<T> LongLock<T> {
    /// Times to look before the holder counts as missing: whoever takes it says so a moment later.
    const LOOKS: u32 = 100;
    const PAUSE: Duration = Duration::from_micros(200);

    const fn new(held: T) -> Self {
        Self { held: Mutex::new(held), process: AtomicU32::new(0) }
    }

    /// Holds it once nobody else does; false where a fault left it as it may be. `go_on` is asked before each look.
    fn take(&self, what: &str, go_on: impl Fn() -> Result<()>) -> Result<(MutexGuard<'_, T>, bool)> {
        let here = std::process::id();
        let mut looks = 0;
        let (guard, is_whole) = loop {
            match self.held.try_lock() {
                Ok(guard) => break (guard, true),
                Err(TryLockError::Poisoned(guard)) => {
                    self.held.clear_poison();
                    break (guard.into_inner(), false);
                }
                Err(TryLockError::WouldBlock) => {
                    go_on()?;
                    looks = if self.process.load(Ordering::SeqCst) == here { 0 } else { looks + 1 };
                    if looks > Self::LOOKS {
                        return Err(Error::busy(format!(
                            "this process was forked while another thread {what}: that thread is not here to finish; \
                             fork when none does, or start a new process"
                        )));
                    }
                    sleep(Self::PAUSE);
                }
            }
        };
        self.process.store(here, Ordering::SeqCst);
        Ok((guard, is_whole))
    }
}

thread_local! {
    /// Callbacks of ours that this thread is in: it must not wait for a slot, which may be its own.
    static IN_CALLBACK: Cell<u32> = const { Cell::new(0) };
}

/// Until it is dropped this thread is in a callback.
pub(super) struct InCallback(());

impl InCallback {
    pub(super) fn enter() -> Self {
        IN_CALLBACK.set(IN_CALLBACK.get() + 1);
        Self(())
    }
}

impl Drop for InCallback {
    fn drop(&mut self) {
        IN_CALLBACK.set(IN_CALLBACK.get() - 1);
    }
}

impl SharedModel {
    /// The model of a file: loaded, unless a session has it.
    pub(super) fn open(path: &Path, n_gpu_layers: u32) -> Result<Arc<Self>> {
        static LOADED: LongLock<Vec<(Key, Weak<SharedModel>)>> = LongLock::new(Vec::new());
        if n_gpu_layers > 0 && !supports_graphics_cards()? {
            let message = format!("n_gpu_layers is {n_gpu_layers}: this library finds no graphics card");
            return Err(Error::new(TOKENTRIE_ERROR_MODEL, message));
        }
        let key = Key::of(path, n_gpu_layers);
        let (mut loaded, _) = LOADED.take("was opening a model", || Ok(()))?;
        loaded.retain(|(_, model)| model.strong_count() > 0);
        let same = |known: &&(Key, Weak<Self>)| Some(&known.0) == key.as_ref();
        if let Some(model) = loaded.iter().find(same).and_then(|(_, model)| model.upgrade()) {
            return Ok(model);
        }
        let model = Model::load(path, ModelOptions::default().with_n_gpu_layers(n_gpu_layers))?;
        let sets = ValueSets::new(Arc::clone(model.vocab()));
        let model = Arc::new(Self {
            model,
            sets,
            vocab: OnceLock::new(),
            format: OnceLock::new(),
            slots: Mutex::default(),
            engines: LongLock::new(Vec::new()),
        });
        loaded.extend(key.map(|key| (key, Arc::downgrade(&model))));
        Ok(model)
    }

    /// The format of its chats; `true` where its file has no template, and this is ChatML.
    pub(super) fn format(&self) -> Result<(Arc<ModelFormat>, bool)> {
        if let Some(known) = self.format.get() {
            return Ok(known.clone());
        }
        let (format, is_missing) = ModelFormat::of_model::<ChatError>(&self.model)?;
        Ok(self.format.get_or_init(|| (Arc::new(format), is_missing)).clone())
    }

    /// The vocabulary as a handle holds it.
    pub(crate) fn vocab(&self) -> Arc<Vocab> {
        let made = || Arc::new(Vocab::of_tokens(Arc::clone(self.model.vocab())));
        Arc::clone(self.vocab.get_or_init(made))
    }

    /// Returns the decoder of a session with these options: a context of its own, or the engine of those with the same
    /// ones. With the tokens of context that a call has.
    pub(super) fn decoder(&self, of_context: ContextOptions, of_engine: EngineOptions) -> Result<(Decoder, usize)> {
        let (mut engines, _) = self.engines.take("was making an engine", || Ok(()))?;
        engines.retain(|(.., engine)| engine.strong_count() > 0);
        let same = engines.iter().find(|known| (known.0, known.1) == (of_context, of_engine));
        if let Some(engine) = same.and_then(|(.., engine)| engine.upgrade()) {
            let n_ctx = engine.host().room;
            return Ok((Decoder::Engine(engine), n_ctx));
        }
        let opened = ModelDecoder::new(&self.model, of_context, of_engine)?;
        let n_ctx = opened.n_ctx();
        let decoder = match opened {
            ModelDecoder::Alone(context) => Decoder::Slot(Arc::new(Slot::new(Some(*context)))),
            ModelDecoder::Shared(engine) => {
                let engine = Arc::new(engine);
                engines.push((of_context, of_engine, Arc::downgrade(&engine)));
                Decoder::Engine(engine)
            }
        };
        Ok((decoder, n_ctx))
    }

    /// The slot of this number, for sessions with these options.
    pub(super) fn slot(&self, options: ContextOptions, number: i32) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|(.., slot)| slot.strong_count() > 0);
        let same = |known: &&(ContextOptions, i32, Weak<Slot>)| (known.0, known.1) == (options, number);
        if let Some(slot) = slots.iter().find(same).and_then(|(.., slot)| slot.upgrade()) {
            return slot;
        }
        let slot = Arc::new(Slot::new(None));
        slots.push((options, number, Arc::downgrade(&slot)));
        slot
    }
}

impl Key {
    /// `None` for anything that is not a file: loading says what is wrong.
    fn of(path: &Path, n_gpu_layers: u32) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let known = path.metadata().ok()?;
        Some(Self { bytes: known.len(), changed: known.modified().ok(), path, n_gpu_layers })
    }
}

impl Slot {
    pub(super) fn new(context: Option<Context>) -> Self {
        Self(LongLock::new(context))
    }

    /// Its context, once nobody else uses it.
    pub(super) fn with<R>(
        &self,
        make: impl FnOnce() -> Result<Context>,
        give_up: impl Fn() -> bool,
        work: impl FnOnce(&mut Context) -> Result<R>,
    ) -> Result<R> {
        let may_wait = || {
            if IN_CALLBACK.get() > 0 {
                return Err(Error::busy("another session uses this slot, and a callback must not wait for it"));
            }
            if give_up() {
                return Err(Error::new(TOKENTRIE_ERROR_CANCELLED, "cancelled while another session used the slot"));
            }
            Ok(())
        };
        let (mut context, is_whole) = self.0.take("used this slot", may_wait)?;
        if !is_whole {
            // A fault while it was used: nobody knows what it holds.
            *context = None;
        }
        if context.is_none() {
            *context = Some(make()?);
        }
        match &mut *context {
            Some(context) => work(context),
            None => Err(Error::new(TOKENTRIE_ERROR_MODEL, "there is no context")),
        }
    }
}
