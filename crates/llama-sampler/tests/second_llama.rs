//! The sampler inside the chains of a llama.cpp that was built apart and is loaded by name, as a host in another
//! language does. `tools/second_llama.py` builds one; `TOKENTRIE_SECOND_LLAMA` names any other `libllama`.
#![cfg(unix)]

#[path = "../../llama-callbacks/tests/common/plain.rs"]
mod plain;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use llama_callbacks::{
    SamplerHandle, SamplerInit, TokenTrieSampler,
    abi::{InitFn, RawSampler, Token, TokenData, TokenDataArray},
};
use llama_sampler::IntoLlamaSampler as _;
use plain::{Numbers, ids, shared_rules};
use std::ffi::{CStr, c_char};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use trie_core::{Mode, Span, SpanRules, Status};

const VOCAB: usize = 300;
const SEEDS: u32 = 200;
const LEAVES: &[(&str, &[u32])] =
    &[("a", &[10, 20, 30]), ("b", &[10, 20, 31]), ("c", &[10, 25]), ("d", &[299]), ("e", &[0, 1, 2, 3])];

/// `llama_sampler_chain_params`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ChainParams {
    no_perf: bool,
}

/// Into the test's output also where it passes: what the printing macros say the harness swallows then.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A loaded library: the functions that a host needs.
struct Llama {
    /// Newer versions only.
    #[cfg_attr(not(feature = "llama"), expect(dead_code, reason = "compared with the linked one"))]
    version: Option<String>,
    init: InitFn,
    chain_init: unsafe extern "C" fn(ChainParams) -> *mut RawSampler,
    chain_add: unsafe extern "C" fn(*mut RawSampler, *mut RawSampler),
    chain_get: unsafe extern "C" fn(*mut RawSampler, i32) -> *mut RawSampler,
    greedy: unsafe extern "C" fn() -> *mut RawSampler,
    dist: unsafe extern "C" fn(u32) -> *mut RawSampler,
    temp: unsafe extern "C" fn(f32) -> *mut RawSampler,
    name: unsafe extern "C" fn(*const RawSampler) -> *const c_char,
    apply: unsafe extern "C" fn(*mut RawSampler, *mut TokenDataArray),
    accept: unsafe extern "C" fn(*mut RawSampler, Token),
    reset: unsafe extern "C" fn(*mut RawSampler),
    clone: unsafe extern "C" fn(*const RawSampler) -> *mut RawSampler,
    free: unsafe extern "C" fn(*mut RawSampler),
    /// Newer versions only.
    copy: Option<unsafe extern "C" fn(*const RawSampler, *mut RawSampler)>,
}

impl Llama {
    /// The second llama.cpp, or `None`, and it says so, where nobody has built one.
    fn second() -> Option<&'static Self> {
        static LOADED: std::sync::OnceLock<Option<Llama>> = std::sync::OnceLock::new();
        LOADED.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        let named = std::env::var_os("TOKENTRIE_SECOND_LLAMA").map(PathBuf::from);
        let file = if cfg!(target_os = "macos") { "libllama.dylib" } else { "libllama.so" };
        // The folder of this test binary is `<target>/<profile>/deps`.
        let binary = std::env::current_exe().unwrap();
        let usual = binary.ancestors().nth(3).unwrap().join("second-llama/lib").join(file);
        if named.is_none() && !usual.exists() {
            let (path, tool) = (usual.display(), "tools/second_llama.py");
            say(&format!("NOT RUN: no second llama.cpp at {path}; {tool} builds it"));
            return None;
        }
        let path = named.unwrap_or(usual);
        // SAFETY: initialisers of llama.cpp only fill its own tables.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        // It stays loaded, as every sampler of it needs.
        let library = ManuallyDrop::new(library.unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field that takes it has the type that llama.cpp's header gives to that name.
                *unsafe { library.get($name) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            };
        }
        // SAFETY: as above.
        let version = unsafe { library.get::<unsafe extern "C" fn() -> *const c_char>(b"llama_version") }.ok();
        // SAFETY: it takes nothing and answers with a static string.
        let version = version.map(|version| unsafe { version() });
        // SAFETY: that string.
        let version = version.map(|version| unsafe { CStr::from_ptr(version) }.to_str().unwrap().to_owned());
        say(&format!("second llama.cpp: {}, version {version:?}", path.display()));
        Some(Self {
            version,
            init: function!(b"llama_sampler_init"),
            chain_init: function!(b"llama_sampler_chain_init"),
            chain_add: function!(b"llama_sampler_chain_add"),
            chain_get: function!(b"llama_sampler_chain_get"),
            greedy: function!(b"llama_sampler_init_greedy"),
            dist: function!(b"llama_sampler_init_dist"),
            temp: function!(b"llama_sampler_init_temp"),
            name: function!(b"llama_sampler_name"),
            apply: function!(b"llama_sampler_apply"),
            accept: function!(b"llama_sampler_accept"),
            reset: function!(b"llama_sampler_reset"),
            clone: function!(b"llama_sampler_clone"),
            free: function!(b"llama_sampler_free"),
            // SAFETY: as above.
            copy: unsafe { library.get(b"llama_sampler_copy") }.ok().map(|copy| *copy),
        })
    }

    fn chain(&'static self, samplers: impl IntoIterator<Item = *mut RawSampler>) -> Chain {
        // SAFETY: it takes any parameters.
        let raw = unsafe { (self.chain_init)(ChainParams { no_perf: true }) };
        for sampler in samplers {
            // SAFETY: a new chain takes over a new sampler of the same library.
            unsafe { (self.chain_add)(raw, sampler) };
        }
        Chain { llama: self, raw }
    }

    /// The trie first, then what chooses.
    fn with_trie(
        &'static self,
        rules: &Arc<SpanRules>,
        mode: Mode,
        rest: &[*mut RawSampler],
    ) -> (Chain, SamplerHandle) {
        let trie = TokenTrieSampler::new(Arc::clone(rules), mode);
        let handle = trie.handle();
        // SAFETY: this library's own function, and it stays loaded.
        let first = trie.into_raw(unsafe { SamplerInit::new(self.init) });
        assert!(!first.is_null());
        (self.chain(std::iter::once(first).chain(rest.iter().copied())), handle)
    }

    fn greedy(&self) -> *mut RawSampler {
        // SAFETY: it takes nothing.
        unsafe { (self.greedy)() }
    }

    fn dist(&self, seed: u32) -> *mut RawSampler {
        // SAFETY: it takes any seed.
        unsafe { (self.dist)(seed) }
    }

    fn temp(&self, temperature: f32) -> *mut RawSampler {
        // SAFETY: it takes any temperature.
        unsafe { (self.temp)(temperature) }
    }
}

/// A chain of that library, owned.
struct Chain {
    llama: &'static Llama,
    raw: *mut RawSampler,
}

impl Chain {
    /// What the chain selects among these, not yet accepted.
    fn select(&mut self, candidates: &[TokenData]) -> Token {
        let mut data = candidates.to_vec();
        let mut array = TokenDataArray { data: data.as_mut_ptr(), size: data.len(), selected: -1, sorted: false };
        // SAFETY: a live chain and an array that is ours.
        unsafe { (self.llama.apply)(self.raw, &raw mut array) };
        // llama.cpp may let the array point elsewhere, so what it left is read through the array.
        assert!(array.size <= candidates.len() && (0..array.size as i64).contains(&array.selected));
        // SAFETY: the array holds `size` candidates, which stay where they are until the chain is used again.
        let left = unsafe { std::slice::from_raw_parts(array.data, array.size) };
        left[array.selected as usize].id
    }

    fn accept(&mut self, token: Token) {
        // SAFETY: a live chain.
        unsafe { (self.llama.accept)(self.raw, token) };
    }

    /// Our sampler in it.
    fn first(&self) -> *mut RawSampler {
        // SAFETY: a live chain with at least one sampler.
        unsafe { (self.llama.chain_get)(self.raw, 0) }
    }

    fn reset(&mut self) {
        // SAFETY: a live chain.
        unsafe { (self.llama.reset)(self.raw) };
    }
}

impl Clone for Chain {
    fn clone(&self) -> Self {
        // SAFETY: a live chain.
        Self { llama: self.llama, raw: unsafe { (self.llama.clone)(self.raw) } }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // SAFETY: alive until here, and nobody else owns it.
        unsafe { (self.llama.free)(self.raw) };
    }
}

fn in_id_order(logits: &[f32]) -> Vec<TokenData> {
    (0..).zip(logits).map(|(id, &logit)| TokenData { id, logit, p: 0.0 }).collect()
}

/// The candidates that may come next, by the definition: those that a leaf goes on with.
fn legal(walked: &[u32], logits: &[f32]) -> Vec<TokenData> {
    let next = |leaf: &[u32]| leaf.strip_prefix(walked).and_then(|rest| rest.first().copied());
    let next: Vec<Token> = LEAVES.iter().filter_map(|(_, leaf)| next(leaf)).map(|id| id as Token).collect();
    in_id_order(logits).into_iter().filter(|candidate| next.contains(&candidate.id)).collect()
}

#[test]
fn it_is_another_llama_cpp() {
    let Some(llama) = Llama::second() else { return };
    assert_ne!(llama.init as usize, llama_cpp_sys_2::llama_sampler_init as *const () as usize);
    let (chain, handle) = llama.with_trie(&shared_rules(VOCAB, LEAVES), Mode::Greedy, &[]);
    // SAFETY: a live sampler.
    let name = unsafe { (llama.name)(chain.first()) };
    // SAFETY: it answers with a static string.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"token-trie");
    drop(chain);
    assert_eq!(handle.state(), Status::Active, "the status outlives the chain");
}

#[test]
fn greedy_picks_the_best_that_is_legal() {
    let Some(llama) = Llama::second() else { return };
    let rules = shared_rules(VOCAB, LEAVES);
    for seed in 0..SEEDS {
        for (mode, rest) in [(Mode::Greedy, llama.greedy()), (Mode::Sampled, llama.greedy())] {
            let (mut chain, handle) = llama.with_trie(&rules, mode, &[rest]);
            let (mut numbers, mut walked) = (Numbers(u64::from(seed) + 1), Vec::new());
            while handle.state() == Status::Active {
                let logits = numbers.logits(VOCAB);
                let legal = legal(&walked, &logits);
                let best = legal.iter().copied().reduce(|best, next| if next.logit > best.logit { next } else { best });
                let token = chain.select(&in_id_order(&logits));
                assert_eq!(token, best.unwrap().id, "seed {seed}, after {walked:?}");
                chain.accept(token);
                walked.push(token as u32);
            }
            assert_eq!(handle.leaf().unwrap().tokens, ids(walked));
        }
    }
}

/// The library's own draw over candidates that were filtered by hand.
#[test]
fn seeded_draws_are_those_among_the_legal() {
    let Some(llama) = Llama::second() else { return };
    let rules = shared_rules(VOCAB, LEAVES);
    let mut drawn = std::collections::BTreeMap::<Token, u32>::new();
    for seed in 0..SEEDS {
        let (mut chain, handle) = llama.with_trie(&rules, Mode::Sampled, &[llama.temp(2.0), llama.dist(seed)]);
        let mut naive = llama.chain([llama.temp(2.0), llama.dist(seed)]);
        let (mut numbers, mut walked) = (Numbers(u64::from(seed) + 7), Vec::new());
        while handle.state() == Status::Active {
            let logits: Vec<f32> = numbers.logits(VOCAB).iter().map(|logit| logit / 10.0).collect();
            let token = chain.select(&in_id_order(&logits));
            assert_eq!(token, naive.select(&legal(&walked, &logits)), "seed {seed}, after {walked:?}");
            chain.accept(token);
            naive.accept(token);
            walked.push(token as u32);
        }
        assert!(LEAVES.iter().any(|(_, leaf)| *leaf == walked));
        *drawn.entry(walked[0] as Token).or_default() += 1;
    }
    assert!(drawn.keys().eq(&[0, 10, 299]) && drawn.values().all(|&times| times > 20), "{drawn:?}");
}

#[test]
fn clone_reset_copy_and_free() {
    let Some(llama) = Llama::second() else { return };
    let rules = shared_rules(VOCAB, LEAVES);
    let mut logits = vec![0.0; VOCAB];
    (logits[10], logits[20], logits[25], logits[31]) = (9.0, 1.0, 2.0, 5.0);
    let step = |chain: &mut Chain, logits: &[f32]| {
        let token = chain.select(&in_id_order(logits));
        chain.accept(token);
        token
    };
    let (mut chain, handle) = llama.with_trie(&rules, Mode::Greedy, &[llama.greedy()]);
    assert_eq!(step(&mut chain, &logits), 10);
    let mut copy = chain.clone();
    assert_eq!(step(&mut chain, &logits), 25);
    assert_eq!(handle.leaf().unwrap().name.as_deref(), Some("c"));
    logits[20] = 8.0;
    assert_eq!((step(&mut copy, &logits), step(&mut copy, &logits)), (20, 31), "the copy went its own way");
    assert_eq!(handle.counts().accepted, 2);
    chain.reset();
    assert_eq!((handle.state(), handle.status().depth), (Status::Active, 0));
    assert_eq!(step(&mut chain, &logits), 10);

    if let Some(sampler_copy) = llama.copy {
        let (mut other, other_handle) = llama.with_trie(&rules, Mode::Greedy, &[llama.greedy()]);
        // SAFETY: two live samplers of one type.
        unsafe { sampler_copy(chain.first(), other.first()) };
        assert_eq!(step(&mut other, &logits), 20, "it goes on where the original stands");
        assert_eq!((handle.status().depth, other_handle.counts().accepted), (1, 0));
    }
    drop(chain);
    copy.reset();
    assert_eq!(step(&mut copy, &logits), 10, "a clone outlives the original");
    // Span and rules may be in use on either side.
    let mut span = Span::new(rules);
    span.accept(ids([10])[0]).unwrap();
    let from_there = TokenTrieSampler::from_span(span, Mode::Greedy);
    // SAFETY: this library's own function, and it stays loaded.
    let mut chain = llama.chain([from_there.into_raw(unsafe { SamplerInit::new(llama.init) }), llama.greedy()]);
    assert_eq!(step(&mut chain, &logits), 20);
}

/// The same rules in the llama.cpp that is linked in, at the same time: the same tokens.
#[test]
fn the_linked_llama_cpp_agrees() {
    use llama_cpp_2::sampling::LlamaSampler;
    use llama_cpp_2::token::data::LlamaTokenData;
    use llama_cpp_2::token::{LlamaToken, data_array::LlamaTokenDataArray};

    let Some(llama) = Llama::second() else { return };
    // SAFETY: it takes nothing.
    let linked = unsafe { llama_cpp_sys_2::llama_version() };
    // SAFETY: it answers with a static string.
    let linked = unsafe { CStr::from_ptr(linked) }.to_str().unwrap();
    let same_version = llama.version.as_deref() == Some(linked);
    let rules = shared_rules(VOCAB, LEAVES);
    for seed in 0..SEEDS {
        for mode in [Mode::Greedy, Mode::Sampled] {
            // How `dist` draws is each version's own business; the best token is not.
            let (theirs, ours) = if same_version {
                (llama.dist(seed), LlamaSampler::dist(seed))
            } else {
                (llama.greedy(), LlamaSampler::greedy())
            };
            let (mut second, second_handle) = llama.with_trie(&rules, mode, &[theirs]);
            let trie = TokenTrieSampler::new(Arc::clone(&rules), mode);
            let handle = trie.handle();
            let mut chain = LlamaSampler::chain([trie.into_llama_sampler(), ours], true);
            let mut numbers = Numbers(u64::from(seed) + 3);
            while handle.state() == Status::Active {
                let logits: Vec<f32> = numbers.logits(VOCAB).iter().map(|logit| logit / 10.0).collect();
                let data = (0..).zip(&logits).map(|(id, &logit)| LlamaTokenData::new(LlamaToken(id), logit, 0.0));
                let mut array = LlamaTokenDataArray::from_iter(data, false);
                array.apply_sampler(&mut chain);
                let token = array.selected_token().unwrap();
                assert_eq!(second.select(&in_id_order(&logits)), token.0, "seed {seed}, {mode:?}");
                chain.accept(token);
                second.accept(token.0);
                assert_eq!(second_handle.status(), handle.status());
            }
        }
    }
}
