//! The trie first in real chains of llama.cpp: never an illegal token, greedy always the best, memory flat.

use crate::common::{Applied, Numbers, apply, ids, in_child, in_id_order, shared_rules, tiny_model, trie};
use llama_callbacks::{SamplerHandle, TokenTrieSampler};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_sys_2::{
    llama_model, llama_model_get_vocab, llama_sampler as RawSampler, llama_sampler_accept, llama_sampler_copy,
    llama_sampler_free, llama_sampler_init_grammar_lazy_patterns, llama_vocab,
};
use llama_sampler::IntoLlamaSampler as _;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use trie_core::{After, Mode, Scratch, SpanRules, Status, TokenId};
use trie_text::Vocab;

const VOCAB: usize = 300;
const SEEDS: u32 = 256;
const LEAVES: &[(&str, &[u32])] = &[
    ("a", &[10, 20, 30]),
    ("b", &[10, 20, 31]),
    ("c", &[10, 25]),
    ("d", &[299]),
    ("e", &[0, 1, 2, 3]),
    ("f", &[0, 1]),
];

fn build(
    rules: &Arc<SpanRules>,
    mode: Mode,
    rest: impl IntoIterator<Item = LlamaSampler>,
) -> (LlamaSampler, SamplerHandle) {
    let first = TokenTrieSampler::new(Arc::clone(rules), mode);
    let handle = first.handle();
    (LlamaSampler::chain(std::iter::once(first.into_llama_sampler()).chain(rest), true), handle)
}

/// What may follow the trie in a chain.
fn tails(seed: u32) -> Vec<(&'static str, Vec<LlamaSampler>)> {
    let dist = || LlamaSampler::dist(seed);
    let penalties = || LlamaSampler::penalties(VOCAB as i32, 64, 1.8, 0.5, 0.5);
    vec![
        ("dist", vec![dist()]),
        ("greedy", vec![LlamaSampler::greedy()]),
        ("temp 0", vec![LlamaSampler::temp(0.0), dist()]),
        ("temp 2", vec![LlamaSampler::temp(2.0), dist()]),
        ("top-k 1", vec![LlamaSampler::top_k(1), dist()]),
        ("top-k 40", vec![LlamaSampler::top_k(40), LlamaSampler::temp(2.0), dist()]),
        ("top-p", vec![LlamaSampler::top_p(0.5, 1), LlamaSampler::temp(2.0), dist()]),
        ("top-p 0", vec![LlamaSampler::top_p(0.0, 0), dist()]),
        ("min-p", vec![LlamaSampler::min_p(0.3, 1), LlamaSampler::temp(2.0), dist()]),
        ("penalties", vec![penalties(), LlamaSampler::temp(2.0), dist()]),
        ("typical, xtc", vec![LlamaSampler::typical(0.6, 1), LlamaSampler::xtc(0.9, 0.1, 1, seed), dist()]),
        ("temp ext", vec![LlamaSampler::temp_ext(1.0, 0.5, 1.2), dist()]),
        ("mirostat", vec![LlamaSampler::mirostat_v2(seed, 5.0, 0.1)]),
        (
            "all",
            vec![
                penalties(),
                LlamaSampler::top_n_sigma(1.5),
                LlamaSampler::top_k(40),
                LlamaSampler::top_p(0.9, 1),
                LlamaSampler::min_p(0.05, 1),
                LlamaSampler::temp(2.0),
                dist(),
            ],
        ),
    ]
}

/// A row that no chain may stumble over: some seeds bring infinities and NaN.
fn row(numbers: &mut Numbers, seed: u32) -> Vec<f32> {
    let mut logits = numbers.logits(VOCAB);
    for (share, odd) in [(5, f32::NEG_INFINITY), (7, f32::NAN), (11, f32::INFINITY)] {
        if seed.is_multiple_of(share) {
            (0..VOCAB / 3).for_each(|_| logits[numbers.below(VOCAB)] = odd);
        }
    }
    logits
}

fn best_of(logits: &[f32], legal: &[TokenId]) -> i32 {
    let value = |token: &TokenId| Some(logits[token.index()]).filter(|logit| !logit.is_nan());
    let value = |token: &TokenId| value(token).unwrap_or(f32::NEG_INFINITY);
    let best = legal.iter().copied().reduce(|best, next| if value(&next) > value(&best) { next } else { best });
    best.unwrap().as_i32()
}

fn step(chain: &mut LlamaSampler, logits: &[f32]) -> (Applied, i32) {
    let after = apply(chain, &in_id_order(logits), false);
    let token = after.token().unwrap();
    chain.accept(LlamaToken(token));
    (after, token)
}

#[test]
fn it_has_a_name_and_no_seed() {
    let sampler = TokenTrieSampler::new(shared_rules(VOCAB, LEAVES), Mode::Greedy).into_llama_sampler();
    assert_eq!(sampler.name(), Some(c"token-trie"));
    assert_eq!(sampler.get_seed(), u32::MAX);
}

#[test]
fn no_seed_and_no_chain_takes_an_illegal_token() {
    let ends = crate::common::rules(VOCAB, LEAVES).with_end_tokens(ids([7, 20, 299])).unwrap();
    let ends = Arc::new(ends.with_end_of_generation(ids([5])).unwrap().with_after(After::Stop).unwrap());
    for rules in [shared_rules(VOCAB, LEAVES), ends] {
        for seed in 0..SEEDS {
            for mode in [Mode::Sampled, Mode::Greedy] {
                for (name, tail) in tails(seed) {
                    let mut numbers = Numbers(u64::from(seed) + 1);
                    let (mut chain, handle) = build(&rules, mode, tail);
                    for _ in 0..6 {
                        let before = handle.span();
                        let mut scratch = Scratch::default();
                        let allowed = before.allowed(&mut scratch);
                        let legal: Vec<TokenId> = allowed.iter().collect();
                        let logits = match before.status() {
                            // Free text is not ours to protect against NaN.
                            Status::Complete if rules.after_value() == After::Free => break,
                            _ if before.is_open() => numbers.logits(VOCAB),
                            _ => row(&mut numbers, seed),
                        };
                        let (_, token) = step(&mut chain, &logits);
                        let context = format!("{name}, seed {seed}, {mode:?}, token {token} of {legal:?}");
                        assert!(allowed.contains(TokenId::try_from(token).unwrap()), "{context}");
                        if mode == Mode::Greedy {
                            let everything = ids(0..VOCAB as u32);
                            let best = best_of(&logits, if before.is_open() { &everything } else { &legal });
                            assert_eq!(token, best, "{context}");
                        }
                    }
                    assert_ne!(handle.state(), Status::Off, "{name}, seed {seed}");
                    assert_eq!(handle.counts().ignored + handle.counts().turned_off, 0, "{name}, seed {seed}");
                }
            }
        }
    }
}

#[test]
fn a_trie_behind_truncating_samplers_puts_a_legal_token_back() {
    let rules = shared_rules(VOCAB, LEAVES);
    for seed in 0..SEEDS {
        for first in [LlamaSampler::top_k(3), LlamaSampler::temp(0.0), LlamaSampler::top_p(0.1, 1)] {
            let second = TokenTrieSampler::new(Arc::clone(&rules), Mode::Sampled);
            let handle = second.handle();
            let links = [first, second.into_llama_sampler(), LlamaSampler::temp(2.0), LlamaSampler::dist(seed)];
            let mut chain = LlamaSampler::chain(links, true);
            let mut numbers = Numbers(u64::from(seed) + 99);
            while handle.state() == Status::Active && !handle.span().is_open() {
                let before = handle.span();
                let (_, token) = step(&mut chain, &numbers.logits(VOCAB));
                assert!(before.allowed(&mut Scratch::default()).contains(TokenId::try_from(token).unwrap()));
            }
            assert!(handle.leaf().is_some() || handle.span().is_open());
        }
    }
}

#[test]
fn clone_and_reset_inside_a_chain() {
    let rules = shared_rules(VOCAB, LEAVES);
    let (mut chain, handle) = build(&rules, Mode::Greedy, [LlamaSampler::dist(1)]);
    let mut logits = vec![0.0; VOCAB];
    (logits[10], logits[20], logits[25], logits[31]) = (9.0, 1.0, 2.0, 5.0);
    assert_eq!(step(&mut chain, &logits).1, 10);

    let mut copy = chain.clone();
    assert_eq!(step(&mut chain, &logits).1, 25);
    assert_eq!(handle.leaf().unwrap().name.as_deref(), Some("c"));
    logits[20] = 8.0;
    assert_eq!((step(&mut copy, &logits).1, step(&mut copy, &logits).1), (20, 31), "the copy went its own way");
    assert_eq!(handle.counts().accepted, 2, "and left the original alone");

    chain.reset();
    assert_eq!((handle.state(), handle.status().depth), (Status::Active, 0));
    assert_eq!(step(&mut chain, &logits).1, 10);
    copy.reset();
    assert_eq!(step(&mut copy, &logits).1, 10);
}

#[test]
fn llama_sampler_copy_moves_the_state() {
    let rules = shared_rules(VOCAB, LEAVES);
    let start = || {
        let sampler = TokenTrieSampler::new(Arc::clone(&rules), Mode::Greedy);
        (sampler.handle(), sampler.into_raw(llama_sampler::linked_init()).cast::<RawSampler>())
    };
    let ((from_handle, from), (to_handle, to)) = (start(), start());
    from_handle.accept_all(&ids([10])).unwrap();
    // SAFETY: two live samplers of one type.
    unsafe { llama_sampler_copy(from, to) };
    // SAFETY: a live sampler.
    unsafe { llama_sampler_accept(to, 25) };
    assert_eq!((from_handle.status().depth, to_handle.status().depth), (1, 0), "neither sees the copy");
    // SAFETY: one owning pointer each, as in `callbacks/linked.rs`.
    let mut to = unsafe { std::mem::transmute::<*mut RawSampler, LlamaSampler>(to) };
    let row = in_id_order(&vec![0.0; VOCAB]);
    assert_eq!(apply(&mut to, &row, false).kept.len(), VOCAB, "complete: what follows is free");
    // SAFETY: alive until here, and nobody else owns it.
    unsafe { llama_sampler_free(from) };
}

#[test]
fn any_order_of_dropping() {
    let rules = shared_rules(VOCAB, LEAVES);
    let logits = Numbers(3).logits(VOCAB);
    for order in 0..4 {
        let (chain, handle) = build(&rules, Mode::Sampled, [LlamaSampler::dist(order)]);
        let mut copy = chain.clone();
        match order {
            0 => drop(chain),
            1 => {
                drop(handle.clone());
                drop(chain);
            }
            2 => {
                drop(copy);
                copy = chain;
            }
            _ => {
                copy = LlamaSampler::chain([chain, LlamaSampler::greedy()], true);
            }
        }
        let token = step(&mut copy, &logits).1;
        assert!([0, 10, 299].contains(&token));
        drop(copy);
        assert_eq!(handle.status().path, "action", "the status outlives the chain");
    }
    let (mut chain, handle) = build(&rules, Mode::Sampled, [LlamaSampler::dist(1)]);
    drop((handle, rules));
    step(&mut chain, &logits);
    std::thread::spawn(move || step(&mut chain, &logits)).join().unwrap();
}

#[test]
fn memory_stays_flat_over_100_000_steps() {
    in_child(module_path!(), "memory_stays_flat_over_100_000_steps", || {
        let rules = shared_rules(VOCAB, LEAVES);
        let (mut chain, handle) = build(&rules, Mode::Sampled, [LlamaSampler::temp(2.0), LlamaSampler::dist(7)]);
        let mut numbers = Numbers(17);
        let logits: Vec<Vec<f32>> = (0..64).map(|_| numbers.logits(VOCAB)).collect();
        let mut run = |steps: usize| {
            for index in 0..steps {
                step(&mut chain, &logits[index % 64]);
                if handle.state() != Status::Active {
                    chain.reset();
                }
                if index % 16 == 0 {
                    drop(chain.clone());
                }
            }
        };
        run(20_000);
        let before = resident_pages();
        run(100_000);
        let grown = resident_pages().saturating_sub(before);
        assert!(grown < 64, "{grown} pages more after 100,000 steps");
    });
}

fn resident_pages() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Words, their trie and a grammar over the same words, for the model's own tokenizer.
fn words(vocab: &Vocab) -> Arc<SpanRules> {
    let words = ["yes", "no", "maybe", "never", "nobody"];
    let tokens: Vec<Vec<u32>> = words
        .iter()
        .map(|word| vocab.tokenize(word, false, false).unwrap().iter().map(|token| token.get()).collect())
        .collect();
    let leaves: Vec<(&str, &[u32])> = words.iter().copied().zip(tokens.iter().map(Vec::as_slice)).collect();
    let rules = SpanRules::for_constraint(trie(&leaves), vocab.len()).unwrap();
    let rules = rules.with_end_of_generation(vocab.end_of_generation()).unwrap();
    Arc::new(rules.with_end_tokens(vocab.end_of_generation()).unwrap().with_after(After::Stop).unwrap())
}

fn vocabulary_of(model: &LlamaModel) -> *const llama_vocab {
    const { assert!(size_of::<LlamaModel>() == size_of::<*const llama_model>()) };
    // SAFETY: `LlamaModel` is `repr(transparent)` over its pointer.
    let raw = unsafe { std::mem::transmute_copy::<LlamaModel, *const llama_model>(model) };
    // SAFETY: the model is alive.
    unsafe { llama_model_get_vocab(raw) }
}

/// The safe crate offers this only with its feature `common`.
fn lazy_grammar(model: &LlamaModel, grammar: &std::ffi::CStr, trigger: &std::ffi::CStr) -> LlamaSampler {
    let mut triggers = [trigger.as_ptr()];
    let (vocab, grammar, root) = (vocabulary_of(model), grammar.as_ptr(), c"root".as_ptr());
    // SAFETY: the strings end with zero and are copied; the vocabulary outlives the sampler in these tests.
    let raw = unsafe {
        llama_sampler_init_grammar_lazy_patterns(vocab, grammar, root, triggers.as_mut_ptr(), 1, std::ptr::null(), 0)
    };
    assert!(!raw.is_null());
    // SAFETY: one owning pointer each, as in `callbacks/linked.rs`.
    unsafe { std::mem::transmute::<*mut RawSampler, LlamaSampler>(raw) }
}

#[test]
fn with_grammars_eager_and_lazy() {
    // Started here, as by a program that uses llama.cpp by itself, unless another test was first. Never ended: the
    // runtime joins in.
    let mut backend = ManuallyDrop::new(LlamaBackend::init().unwrap_or(LlamaBackend {}));
    backend.void_logs();
    let params = llama_cpp_2::model::params::LlamaModelParams::default().with_vocab_only(true);
    let model = LlamaModel::load_from_file(&backend, tiny_model(), &params).unwrap();
    let vocab = llama_sampler::vocab_from_gguf(tiny_model()).unwrap();
    let rules = words(&vocab);
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    for seed in 0..SEEDS {
        for lazy in [false, true] {
            let grammar = if lazy {
                // Once "no" was said it must become a longer word.
                lazy_grammar(&model, c"root ::= \"nobody\"", c"^(no)")
            } else {
                LlamaSampler::grammar(&model, "root ::= \"no\" | \"never\" | \"maybe\"", "root").unwrap()
            };
            let tail = [grammar, LlamaSampler::temp(2.0), LlamaSampler::dist(seed)];
            let (mut chain, handle) = build(&rules, Mode::Sampled, tail);
            let mut numbers = Numbers(u64::from(seed) + 5);
            while handle.state() == Status::Active {
                let before = handle.span();
                let (_, token) = step(&mut chain, &numbers.logits(vocab.len()));
                assert!(
                    before.allowed(&mut Scratch::default()).contains(TokenId::try_from(token).unwrap()),
                    "seed {seed}"
                );
            }
            seen[usize::from(lazy)].insert(handle.leaf().unwrap().name.unwrap());
        }
    }
    assert_eq!(seen[0].iter().map(String::as_str).collect::<Vec<_>>(), ["maybe", "never", "no"]);
    assert!(seen[1].contains("yes") && seen[1].contains("nobody"), "{:?}", seen[1]);
}
