//! The llama.cpp of the process: handed over, or found among what it has loaded. Its `unsafe` is calling functions by
//! their address, each with one argument:
//!
//! - **Named**: the address was found under the name of a function of llama.cpp, in a library whose version says how it
//!   is laid out, or the caller of `tokentrie_bind_llama` has said that it is that function.
//!
//! What is found stays loaded: the handle of its library is never given back.

use crate::abi::{llama_vocab, tokentrie_llama_api};
use crate::error::{Error, Result};
use crate::memory::In;
use crate::status::TOKENTRIE_ERROR_LLAMA;
use ::llama_callbacks::SamplerInit;
use ::llama_callbacks::abi::InitFn;
use bytemuck::{Pod, Zeroable};
use libloading::Library;
use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};
use trie_core::TokenId;

/// Fields that a table of callbacks has had, and their meaning: see `llama_callbacks::abi`.
const KNOWN_FIELDS: [u32; 3] = [6, 10, 12];
/// Versions (`llama_version`) whose table is known to have 12; before there was that function it had 6 or 10.
const KNOWN_VERSIONS: [&str; 2] = ["0.5.", "0.6."];

type CountFn = unsafe extern "C" fn(*const llama_vocab) -> i32;
type EndsFn = unsafe extern "C" fn(*const llama_vocab, i32) -> bool;

/// Functions needed of a llama.cpp.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Llama {
    pub(crate) init: SamplerInit,
    n_tokens: Option<CountFn>,
    is_end: Option<EndsFn>,
}

/// The one that was handed over, or else the one that was found first.
static CHOSEN: Mutex<Option<Llama>> = Mutex::new(None);

#[cold]
fn unknown(message: impl Into<String>) -> Error {
    Error::new(TOKENTRIE_ERROR_LLAMA, message)
}

/// `tokentrie_llama_api` as words: any bits are values.
#[repr(C)]
#[derive(Clone, Copy, Zeroable, Pod)]
struct ApiWords {
    size: u32,
    callback_fields: u32,
    functions: [usize; 3],
}

const _: () = assert!(size_of::<ApiWords>() == size_of::<tokentrie_llama_api>());

/// Reads the functions that a caller gives of its llama.cpp.
pub(crate) fn given(api: &In<tokentrie_llama_api>) -> Result<Option<tokentrie_llama_api>> {
    // SAFETY: the same memory, as words.
    let words = unsafe { In::<ApiWords>::new(api.pointer().cast()) };
    Ok(words.fields("api")?.map(|words| {
        // SAFETY: the same layout; 0 is `None`, and every other address may be that of a function.
        unsafe { std::mem::transmute::<ApiWords, tokentrie_llama_api>(words) }
    }))
}

/// Takes a llama.cpp as its owner describes it; `None` forgets it.
pub(crate) fn bind(api: Option<&tokentrie_llama_api>) -> Result<()> {
    let llama = api.map(handed_over).transpose()?;
    *CHOSEN.lock().unwrap_or_else(PoisonError::into_inner) = llama;
    Ok(())
}

fn handed_over(api: &tokentrie_llama_api) -> Result<Llama> {
    let fields = api.callback_fields;
    if !KNOWN_FIELDS.contains(&fields) {
        let message = format!("a table of {fields} callbacks is unknown to this version: it knows {KNOWN_FIELDS:?}");
        return Err(unknown(message));
    }
    let init = api.sampler_init.ok_or_else(|| Error::argument("api->sampler_init is NULL"))?;
    // SAFETY: Named. The types differ in what they call what the pointers point to.
    let init = unsafe { std::mem::transmute::<*const (), InitFn>(init as *const ()) };
    // SAFETY: Named, with a table of known size; the library stays loaded, as the caller has promised.
    let init = unsafe { SamplerInit::new(init) };
    Ok(Llama { init, n_tokens: api.vocab_n_tokens, is_end: api.vocab_is_eog })
}

/// The llama.cpp to use.
pub(crate) fn llama() -> Result<Llama> {
    let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(llama) = *chosen {
        return Ok(llama);
    }
    let llama = find()?;
    *chosen = Some(llama);
    Ok(llama)
}

/// Looks at what the process has loaded: what all of it sees, then libraries that carry llama in their name.
fn find() -> Result<Llama> {
    let mut found: Vec<(usize, LlamaLibrary)> = Vec::new();
    for library in everywhere().into_iter().chain(loaded()) {
        if let Some(one) = LlamaLibrary::in_(library)
            && !found.iter().any(|(address, _)| *address == one.address())
        {
            found.push((one.address(), one));
        }
    }
    match &found[..] {
        [] => Err(unknown(
            "no llama.cpp is loaded that has llama_sampler_init: load one before, or hand it over with \
             tokentrie_bind_llama",
        )),
        [(_, one)] => one.checked(),
        more => Err(unknown(format!(
            "{} copies of llama.cpp are loaded: hand the one over whose chain it is, with tokentrie_bind_llama",
            more.len()
        ))),
    }
}

/// A library that has `llama_sampler_init`.
struct LlamaLibrary {
    init: InitFn,
    n_tokens: Option<CountFn>,
    is_end: Option<EndsFn>,
    version: Option<String>,
}

impl LlamaLibrary {
    fn in_(library: Library) -> Option<Self> {
        // It stays loaded, as every sampler of it needs.
        let library = ManuallyDrop::new(library);
        macro_rules! named {
            ($name:literal) => {
                // SAFETY: Named: the type is that of llama.cpp's header, the same in all versions that have the name.
                unsafe { library.get($name) }.ok().map(|function| *function)
            };
        }
        let version: Option<unsafe extern "C" fn() -> *const c_char> = named!(b"llama_version\0");
        Some(Self {
            init: named!(b"llama_sampler_init\0")?,
            n_tokens: named!(b"llama_vocab_n_tokens\0"),
            is_end: named!(b"llama_vocab_is_eog\0"),
            version: version.map(|version| {
                // SAFETY: Named: it takes nothing and gives a static string.
                let text = unsafe { version() };
                // SAFETY: Named: that string; an empty one where there is none.
                if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into() }
            }),
        })
    }

    fn address(&self) -> usize {
        self.init as usize
    }

    fn checked(&self) -> Result<Llama> {
        if let Some(version) = &self.version
            && !KNOWN_VERSIONS.iter().any(|known| version.starts_with(known))
        {
            return Err(unknown(format!(
                "the size of the callback table of llama.cpp {version} is unknown to this version: look it up and hand \
                 it over with tokentrie_bind_llama"
            )));
        }
        // SAFETY: Named, in a version whose table is known; it stays loaded.
        let init = unsafe { SamplerInit::new(self.init) };
        Ok(Llama { init, n_tokens: self.n_tokens, is_end: self.is_end })
    }
}

#[cfg(unix)]
fn everywhere() -> [Library; 1] {
    [libloading::os::unix::Library::this().into()]
}

#[cfg(windows)]
fn everywhere() -> Option<Library> {
    libloading::os::windows::Library::this().ok().map(Into::into)
}

#[cfg(unix)]
fn loaded() -> impl Iterator<Item = Library> {
    use libloading::os::unix::{Library as Unix, RTLD_LOCAL, RTLD_NOW};
    #[cfg(any(target_os = "macos", target_os = "ios"))]
    const ONLY_LOADED: i32 = 0x10;
    #[cfg(not(any(target_os = "macos", target_os = "ios")))]
    const ONLY_LOADED: i32 = 4;
    names().into_iter().filter_map(|name| {
        // SAFETY: it is loaded already, so nothing of it runs.
        unsafe { Unix::open(Some(name), RTLD_NOW | RTLD_LOCAL | ONLY_LOADED) }.ok().map(Into::into)
    })
}

#[cfg(windows)]
fn loaded() -> impl Iterator<Item = Library> {
    ["llama.dll"]
        .into_iter()
        .filter_map(|name| libloading::os::windows::Library::open_already_loaded(name).ok())
        .map(Into::into)
}

/// Names under which a llama.cpp may be loaded: files that are mapped, and the usual one.
#[cfg(unix)]
fn names() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_llama =
        |file: &&str| file.rsplit('/').next().is_some_and(|name| name.contains("llama") && name.contains(".so"));
    let mut names: Vec<String> = files.filter(is_llama).map(str::to_owned).collect();
    names.extend(["libllama.so", "libllama.so.0", "libllama.dylib"].map(str::to_owned));
    names.sort_unstable();
    names.dedup();
    names
}

impl Llama {
    /// Size and end-of-generation tokens of a vocabulary; nothing without one, or without the functions to ask.
    pub(crate) fn vocabulary(&self, vocab: *const llama_vocab) -> Result<Option<(usize, Vec<TokenId>)>> {
        let Some(n_tokens) = self.n_tokens.filter(|_| !vocab.is_null()) else { return Ok(None) };
        // SAFETY: Named; the vocabulary is one of that library, as whoever gave it has promised.
        let count = unsafe { n_tokens(vocab) };
        let size = usize::try_from(count).ok().filter(|&size| size > 0);
        let size = size.ok_or_else(|| unknown(format!("the vocabulary says that it has {count} tokens")))?;
        let mut ends = Vec::new();
        if let Some(is_end) = self.is_end {
            // SAFETY: as above, and the id is inside.
            ends.extend(TokenId::all(size).filter(|token| unsafe { is_end(vocab, token.as_i32()) }));
        }
        Ok(Some((size, ends)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::llama_callbacks::abi::{Callbacks, RawSampler};
    use std::ffi::c_void;

    unsafe extern "C" fn init(_: *mut Callbacks, _: *mut c_void) -> *mut RawSampler {
        std::ptr::null_mut()
    }

    #[test]
    fn versions_that_nobody_has_looked_at_are_refused() {
        let found = |version: Option<&str>| {
            LlamaLibrary { init, n_tokens: None, is_end: None, version: version.map(str::to_owned) }.checked()
        };
        assert!(found(Some("0.5.0")).is_ok() && found(Some("0.6.3")).is_ok());
        assert!(found(None).is_ok(), "before there were versions the table had 6 or 10 fields");
        for unknown in ["0.7.0", "1.0.0", "0.60.1", "", "b9999"] {
            let error = found(Some(unknown)).unwrap_err();
            assert_eq!(error.status, TOKENTRIE_ERROR_LLAMA);
            assert!(error.message.contains("tokentrie_bind_llama"), "{error}");
        }
    }
}
