//! Rules in WebAssembly: a module that is called within limits.

mod error;
mod instance;

use crate::rule::{Rule, Walker};
use crate::tokens::lazy_walk::LazyWalk;
use crate::tokens::token_bytes::TokenBytes;
pub use error::WasmError;
use instance::{Code, Instance};
use lru::LruCache;
use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::Problem;
use trie_core::work::{Limits, Work, over, spend};

/// A rule defined by a WebAssembly module, written in any language that compiles to WebAssembly.
///
/// The module imports nothing, has no start section, and exports
///
/// - `start: () -> i64`, the state before the first byte, at least 0;
/// - `step: (state: i64, byte: i32) -> i64`, the state after a byte of 0 to 255; less than 0 where no legal text begins
///   so;
/// - `is_end: (state: i64) -> i32`, not 0 where a legal text ends;
/// - optionally `allowed: (state: i64, word: i32) -> i64`: bit b of word w, from 0 to 3, says whether `step` must be
///   called for the byte `64 * w + b`. All other bytes are refused.
///
/// The state must contain everything that the module knows of a text: instances are replaced, and answers are cached. A
/// module that remembers more breaks the laws of [`Rule`], which [`check_rule`](crate::check_rule) detects.
///
/// [`Limits`] bound its cost: the module has at most a 256th of `bytes`, its memory a 64th. One call takes at most a
/// 400th of `steps` in fuel, about one unit for each instruction. All calls for one mask take at most a quarter of
/// `steps`, where the first 256 units of each call are free. A call that takes more, or traps, is a [`WasmError`]. A
/// clone costs one reference count.
///
/// ```
/// use trie_rules::{Rule, Wasm};
///
/// // Up to three letters a: a state is how many there are.
/// let module = wat::parse_str(
///     r#"(module
///       (func (export "start") (result i64) i64.const 0)
///       (func (export "step") (param i64 i32) (result i64)
///         (select (i64.add (local.get 0) (i64.const 1)) (i64.const -1)
///                 (i32.and (i32.eq (local.get 1) (i32.const 97)) (i64.lt_u (local.get 0) (i64.const 3)))))
///       (func (export "is_end") (param i64) (result i32) (i64.gt_u (local.get 0) (i64.const 0))))"#,
/// )?;
/// let rule = Wasm::new(&module)?;
/// assert_eq!(rule.step(&0, b'a'), Some(1));
/// assert!(rule.is_end(&1) && rule.step(&3, b'a').is_none() && rule.step(&0, b'b').is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Wasm(Arc<LoadedModule>);

struct LoadedModule {
    code: Code,
    start: i64,
    nbytes: usize,
    /// Instances that nobody uses.
    #[expect(clippy::vec_box, reason = "they are large, and would be copied with every call")]
    spare: Mutex<Vec<Box<Instance>>>,
    /// Cached end flags by state: asked with every mask, also when the mask is cached.
    ends: Mutex<LruCache<i64, bool>>,
}

/// For how many states it is kept.
const ENDS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// More are not kept: so many threads seldom ask at once.
const MOST_SPARE: usize = 8;

/// Fuel of about one step of [`trie_core::work`].
const FUEL_OF_A_STEP: u64 = 16;

impl fmt::Debug for Wasm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wasm").field("nbytes", &self.0.nbytes).finish_non_exhaustive()
    }
}

impl Wasm {
    /// Compiles a module from its bytes.
    ///
    /// # Errors
    /// [`WasmError`] for bytes that are not a module, a module that is not a rule, or one that takes more than
    /// [`Limits::default`].
    pub fn new(module: &[u8]) -> Result<Self, WasmError> {
        Self::with_limits(module, Limits::default())
    }

    /// [`Wasm::new`] with limits on compiling and calling the module.
    ///
    /// # Errors
    /// As [`Wasm::new`].
    pub fn with_limits(module: &[u8], limits: Limits) -> Result<Self, WasmError> {
        Work::run_bounded(limits, || {
            let code = Code::new(module, limits)?;
            let mut instance = Box::new(code.instance()?);
            spend(module.len())?;
            let start = instance.start()?;
            if start < 0 {
                return Err(WasmError::Start { state: start });
            }
            let (spare, ends) = (Mutex::new(vec![instance]), Mutex::new(LruCache::new(ENDS)));
            Ok(Self(Arc::new(LoadedModule { code, start, nbytes: module.len(), spare, ends })))
        })
    }

    /// Asks an instance, unless an answer failed already that somebody waits for.
    fn ask<T>(&self, call: impl FnOnce(&mut Instance) -> Result<T, WasmError>) -> Option<T> {
        let loaded = &*self.0;
        if over().is_some() {
            return None;
        }
        Question::run_metered(self.key(), loaded.code.most_fuel(), || {
            let spare = || lock(&loaded.spare);
            let kept = spare().pop();
            let mut instance = kept.map_or_else(|| loaded.code.instance().map(Box::new), Ok)?;
            let answer = call(&mut instance);
            let fuel = instance.used();
            // Who walks sees by itself that the work is over.
            _ = spend((fuel / FUEL_OF_A_STEP) as usize + 1);
            // What failed may have been left half changed.
            if answer.is_ok() && spare().len() < MOST_SPARE {
                spare().push(instance);
            }
            answer.map(|answer| (answer, fuel))
        })
    }

    /// Returns a key that identifies the rule as long as it lives.
    fn key(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// Whole entries stand behind these locks.
fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rule for Wasm {
    type State = i64;

    fn start(&self) -> i64 {
        self.0.start
    }

    fn step(&self, &state: &i64, byte: u8) -> Option<i64> {
        self.ask(|instance| instance.step(state, byte)).filter(|after| *after >= 0)
    }

    fn is_end(&self, &state: &i64) -> bool {
        if let Some(&known) = lock(&self.0.ends).get(&state) {
            return known;
        }
        let end = self.ask(|instance| instance.is_end(state));
        end.is_some_and(|end| {
            lock(&self.0.ends).put(state, end);
            end
        })
    }

    fn failure(&self) -> Option<Problem> {
        Question::end(self.key()).or_else(|| over().map(Problem::new))
    }

    fn failing(&self) -> bool {
        Question::failing(self.key()) || over().is_some()
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<i64>>> {
        Some(Arc::new(LazyWalk::new(Arc::new(self.clone()), Arc::clone(tokens))))
    }
}

/// Fuel of each call that does not count: what a rule needs that looks at its state and nothing else.
const FREE: u64 = 256;

#[derive(Default)]
struct Question {
    /// Key of the rule.
    rule: usize,
    fuel: u64,
    failed: Option<Problem>,
}

thread_local! {
    static ASKED: RefCell<Question> = RefCell::default();
}

impl Question {
    /// An answer of a rule and the fuel that it took; nothing where one has failed that nobody heard of yet.
    fn run_metered<T>(rule: usize, most: u64, answer: impl FnOnce() -> Result<(T, u64), WasmError>) -> Option<T> {
        let open = ASKED.with_borrow_mut(|asked| {
            if asked.rule != rule {
                *asked = Self { rule, ..Self::default() };
            }
            asked.failed.is_none()
        });
        let found = open.then(answer)?;
        ASKED.with_borrow_mut(|asked| {
            let found = found.and_then(|(answer, fuel)| {
                asked.fuel += fuel.saturating_sub(FREE);
                if asked.fuel > most { Err(WasmError::Slow { fuel: most }) } else { Ok(answer) }
            });
            found.map_err(|error| asked.failed = Some(Problem::new(error))).ok()
        })
    }

    fn failing(rule: usize) -> bool {
        ASKED.with_borrow(|asked| asked.rule == rule && asked.failed.is_some())
    }

    /// Takes the error of a rule. The next question begins anew.
    fn end(rule: usize) -> Option<Problem> {
        ASKED.with_borrow_mut(|asked| if asked.rule == rule { std::mem::take(asked).failed } else { None })
    }
}
