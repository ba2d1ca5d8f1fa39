//! Chains in the compute graph choose what the same chains choose on the host, bit for bit.

use crate::common::{id, tiny_model};
use llama_callbacks::abi::RawSampler;
use llama_callbacks::{GraphOptions, SamplerHandle, TokenTrieSampler};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_sys_2::llama_sampler_copy;
use llama_sampler::{AttachedChains, DeviceChain, DeviceError, IntoLlamaSampler as _, linked_graph};
use std::mem::ManuallyDrop;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use test_budget::{Random, cases};
use trie_core::{After, AnyConstraint, Mode, Scratch, SpanRules, Status, TokenId, Trie, Unconstrained};
use trie_rules::{ByRule, Regex, Rule};
use trie_schema::{JsonSchema, SchemaOptions};
use trie_text::Vocab;

/// A model, and its vocabulary.
struct Loaded {
    model: LlamaModel,
    vocab: Arc<Vocab>,
}

fn backend() -> &'static LlamaBackend {
    static BACKEND: OnceLock<ManuallyDrop<LlamaBackend>> = OnceLock::new();
    BACKEND.get_or_init(|| {
        let mut backend = ManuallyDrop::new(LlamaBackend::init().unwrap_or(LlamaBackend {}));
        backend.void_logs();
        backend
    })
}

impl Loaded {
    fn open(path: PathBuf) -> Self {
        let model = LlamaModel::load_from_file(backend(), &path, &LlamaModelParams::default()).unwrap();
        Self { model, vocab: llama_sampler::vocab_from_gguf(path).unwrap().into() }
    }

    fn tiny() -> &'static Self {
        static TINY: OnceLock<Loaded> = OnceLock::new();
        TINY.get_or_init(|| Self::open(tiny_model()))
    }

    fn params() -> LlamaContextParams {
        LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(1024))
            .with_n_batch(256)
            .with_n_seq_max(4)
            .with_kv_unified(true)
            .with_n_threads(1)
            .with_n_threads_batch(1)
    }

    fn context(&self) -> LlamaContext<'_> {
        self.model.new_context(backend(), Self::params()).unwrap()
    }

    fn tokens(&self, text: &str) -> Vec<i32> {
        self.vocab.tokenize(text, true, true).unwrap().into_iter().map(TokenId::as_i32).collect()
    }

    fn rules(&self, constraint: impl Into<AnyConstraint>) -> Arc<SpanRules> {
        let rules = SpanRules::for_constraint(constraint, self.vocab.len()).unwrap();
        let end = self.vocab.end_of_generation();
        let rules = rules.with_end_tokens(end).unwrap().with_end_of_generation(end).unwrap();
        Arc::new(rules.with_after(After::Stop).unwrap())
    }

    fn set<'v>(&self, values: impl IntoIterator<Item = &'v str>) -> Arc<SpanRules> {
        let mut builder = Trie::builder();
        for value in values {
            builder.push(Some(value), &self.vocab.tokenize(value, false, false).unwrap());
        }
        self.rules(builder.build().unwrap())
    }

    fn rule(&self, rule: impl Rule) -> Arc<SpanRules> {
        let by_rule = ByRule::new(rule, self.vocab.spelling()).unwrap();
        self.rules(AnyConstraint::new(by_rule))
    }

    fn regex(&self, pattern: &str) -> Arc<SpanRules> {
        self.rule(Regex::new(pattern).unwrap())
    }

    fn schema(&self, schema: &str) -> Arc<SpanRules> {
        self.rule(JsonSchema::new(schema, SchemaOptions::default()).unwrap())
    }

    /// Sets, rules and schemas: few tokens, many, and both in turns.
    fn constraints(&self) -> Vec<(&'static str, Arc<SpanRules>)> {
        let digits: Vec<String> = (0..200).map(|n| format!("{n:03} of 200")).collect();
        vec![
            ("set", self.set(["yes", "no", "maybe", "never", "nobody"])),
            ("wide set", self.set(digits.iter().map(String::as_str))),
            ("regex", self.regex("[0-9]{4}-[0-9]{2}-[0-9]{2}")),
            ("words", self.regex("[a-z]{1,8}( [a-z]{1,8}){2}\\.")),
            ("anything but a quote", self.regex("\"[^\"\\\\\\x00-\\x1f]{0,12}\"")),
            ("schema", self.schema(SCHEMA)),
        ]
    }
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
    "kind": {"enum": ["red", "green"]}, "count": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "kind", "count"], "additionalProperties": false}"#;

type Tail = fn(u32) -> Vec<LlamaSampler>;

/// Samplers that may follow, on the host.
const TAILS: [(&str, Mode, Tail); 4] = [
    ("greedy", Mode::Greedy, |_| vec![LlamaSampler::greedy()]),
    ("dist", Mode::Sampled, |seed| vec![LlamaSampler::dist(seed)]),
    ("temp", Mode::Sampled, |seed| vec![LlamaSampler::temp(2.0), LlamaSampler::dist(seed)]),
    ("all", Mode::Sampled, |seed| {
        vec![
            LlamaSampler::penalties(300, 64, 1.3, 0.2, 0.2),
            LlamaSampler::top_k(40),
            LlamaSampler::top_p(0.9, 1),
            LlamaSampler::temp(1.5),
            LlamaSampler::dist(seed),
        ]
    }),
];

/// One token for each of these sequences, at these positions; all want logits.
fn batch(tokens: &[(i32, usize, i32)]) -> LlamaBatch<'static> {
    let mut batch = LlamaBatch::new(tokens.len(), 1);
    for &(token, position, sequence) in tokens {
        batch.add(LlamaToken(token), position as i32, &[sequence], true).unwrap();
    }
    batch
}

fn prompt_batch(prompt: &[i32], sequence: i32) -> LlamaBatch<'static> {
    let mut batch = LlamaBatch::new(prompt.len(), 1);
    for (position, &token) in prompt.iter().enumerate() {
        batch.add(LlamaToken(token), position as i32, &[sequence], position + 1 == prompt.len()).unwrap();
    }
    batch
}

/// The chain as any program has it: over the whole row, on the host.
struct OnHost {
    chain: LlamaSampler,
    handle: SamplerHandle,
}

impl OnHost {
    fn new(rules: &Arc<SpanRules>, mode: Mode, tail: Vec<LlamaSampler>) -> Self {
        let first = TokenTrieSampler::new(Arc::clone(rules), mode);
        let handle = first.handle();
        Self { chain: LlamaSampler::chain(std::iter::once(first.into_llama_sampler()).chain(tail), true), handle }
    }

    fn sample(&mut self, row: &[f32]) -> i32 {
        let data = (0..).zip(row).map(|(id, &logit)| LlamaTokenData::new(LlamaToken(id), logit, 0.0));
        let mut candidates = LlamaTokenDataArray::from_iter(data, false);
        self.chain.apply(&mut candidates);
        let token = candidates.selected_token().unwrap();
        self.chain.accept(token);
        token.0
    }

    /// The legal logits of a row.
    fn legal(&self, row: &[f32]) -> Vec<(i32, u32)> {
        let span = self.handle.span();
        let mut scratch = Scratch::default();
        let legal = span.allowed(&mut scratch).to_vec(row.len());
        legal.into_iter().map(|token| (token.as_i32(), row[token.index()].to_bits())).collect()
    }
}

/// What the graph gathered, without the repetitions.
fn gathered(candidates: &LlamaTokenDataArray) -> Vec<(i32, u32)> {
    let kept = candidates.data.iter().filter(|candidate| candidate.logit() > f32::NEG_INFINITY);
    kept.map(|candidate| (candidate.id().0, candidate.logit().to_bits())).collect()
}

const STEPS: usize = 24;

/// A prompt of which no logits are wanted.
fn silent_batch(prompt: &[i32], sequence: i32) -> LlamaBatch<'static> {
    let mut batch = LlamaBatch::new(prompt.len(), 1);
    for (position, &token) in prompt.iter().enumerate() {
        batch.add(LlamaToken(token), position as i32, &[sequence], false).unwrap();
    }
    batch
}

/// The tokens of a generation on the host, with the legal logits before each.
type Steps = Vec<(i32, Vec<(i32, u32)>)>;

fn on_host(context: &mut LlamaContext<'_>, prompt: &[i32], mut chain: OnHost) -> Steps {
    context.clear_kv_cache();
    context.decode(&mut prompt_batch(prompt, 0)).unwrap();
    let (mut row, mut steps) = (prompt.len() as i32 - 1, Vec::new());
    while chain.handle.state() == Status::Active && steps.len() < STEPS {
        let logits = context.get_logits_ith(row).to_vec();
        let legal = chain.legal(&logits);
        let token = chain.sample(&logits);
        context.decode(&mut batch(&[(token, prompt.len() + steps.len(), 0)])).unwrap();
        row = 0;
        steps.push((token, legal));
    }
    steps
}

/// The same in the graph; for each step also how many logits were gathered.
fn on_device(context: &mut LlamaContext<'_>, prompt: &[i32], chain: DeviceChain) -> (Steps, Vec<Option<usize>>) {
    let mut attached = AttachedChains::attach(context, [(0, chain)]).unwrap();
    attached.clear_kv_cache();
    attached.decode(&mut prompt_batch(prompt, 0)).unwrap();
    let (mut row, mut steps, mut sizes) = (prompt.len() as i32 - 1, Vec::new(), Vec::new());
    while attached.handle(0).unwrap().state() == Status::Active && steps.len() < STEPS {
        let legal = attached.candidates(row).map(|candidates| gathered(&candidates)).unwrap_or_default();
        sizes.push(attached.selection_len(0).unwrap());
        let token = attached.sample(0, row).unwrap().0;
        attached.decode(&mut batch(&[(token, prompt.len() + steps.len(), 0)])).unwrap();
        row = 0;
        steps.push((token, legal));
    }
    (steps, sizes)
}

fn sampler(rules: &Arc<SpanRules>, mode: Mode) -> TokenTrieSampler {
    TokenTrieSampler::new(Arc::clone(rules), mode)
}

fn assert_same(host: &Steps, device: &Steps, sizes: &[Option<usize>], what: &str) {
    let tokens = |steps: &Steps| steps.iter().map(|(token, _)| *token).collect::<Vec<_>>();
    assert_eq!(tokens(host), tokens(device), "{what}");
    for (at, (((_, legal), (_, gathered)), size)) in host.iter().zip(device).zip(sizes).enumerate() {
        let Some(size) = size else { continue };
        assert!(*size >= legal.len(), "{what}, step {at}");
        // A logit of -inf is legal, and cannot be told from a repetition.
        let legal: Vec<_> = legal.iter().filter(|(_, bits)| f32::from_bits(*bits) > f32::NEG_INFINITY).collect();
        assert_eq!(gathered.iter().collect::<Vec<_>>(), legal, "{what}, step {at}");
    }
}

fn compare_all(loaded: &Loaded, seeds: u32) {
    let (mut plain, mut other) = (loaded.context(), loaded.context());
    let prompt = loaded.tokens("The next action is ");
    let (mut in_graph, mut all) = (0, 0);
    for (name, rules) in loaded.constraints() {
        for (tail_name, mode, tail) in TAILS {
            for seed in 0..seeds {
                let what = format!("{name}, {tail_name}, seed {seed}");
                let host = on_host(&mut plain, &prompt, OnHost::new(&rules, mode, tail(seed)));
                let chain = DeviceChain::new(sampler(&rules, mode), tail(seed));
                let (device, sizes) = on_device(&mut other, &prompt, chain);
                assert_same(&host, &device, &sizes, &what);
                in_graph += sizes.iter().flatten().count();
                all += sizes.len();
            }
        }
    }
    assert!(in_graph * 2 > all, "{in_graph} of {all} steps were in the graph");
}

#[test]
fn a_chain_that_chooses_on_the_host_gives_the_same_tokens_from_the_same_bits() {
    compare_all(Loaded::tiny(), cases(20));
}

#[test]
fn a_real_model_too() {
    // Where `./dev real` keeps it.
    let folder = std::env::var_os("TOKENTRIE_CACHE").map(|cache| PathBuf::from(cache).join("models"));
    let files = folder.into_iter().flat_map(std::fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let is_real = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("SmolLM2"));
    let Some(path) = files.into_iter().find(is_real) else {
        println!("skipped: TOKENTRIE_CACHE has no SmolLM2");
        return;
    };
    compare_all(&Loaded::open(path), 1);
}

#[test]
fn random_sets_and_seeds() {
    let loaded = Loaded::tiny();
    let (mut plain, mut other) = (loaded.context(), loaded.context());
    let mut random = Random(58);
    for case in 0..cases(300) {
        let n = loaded.vocab.len();
        let mut builder = Trie::builder();
        let most = if random.one_in(3) { 400 } else { 6 };
        for _ in 0..=random.below(most) {
            let value: Vec<TokenId> = (0..=random.below(4)).map(|_| id(random.below(n) as u32)).collect();
            builder.push(None, &value);
        }
        let rules = loaded.rules(builder.build().unwrap());
        let prompt: Vec<i32> = (0..=random.below(9)).map(|_| random.below(n) as i32).collect();
        let (_, mode, tail) = TAILS[random.below(TAILS.len())];
        let host = on_host(&mut plain, &prompt, OnHost::new(&rules, mode, tail(case)));
        let (device, sizes) = on_device(&mut other, &prompt, DeviceChain::new(sampler(&rules, mode), tail(case)));
        assert_same(&host, &device, &sizes, &format!("case {case}"));
        assert!(sizes.iter().all(Option::is_some), "case {case}: {sizes:?}");
        if case % 7 == 0 {
            // What was attached leaves no trace in the context.
            let again = on_host(&mut other, &prompt, OnHost::new(&rules, mode, tail(case)));
            assert_eq!(again, host, "case {case}");
        }
    }
}

#[test]
fn draws_in_the_graph_are_those_of_the_host() {
    let loaded = Loaded::tiny();
    let (mut plain, mut other) = (loaded.context(), loaded.context());
    let prompt = loaded.tokens("The next action is ");
    let plain_draws: [Tail; 3] = [
        |seed| vec![LlamaSampler::dist(seed)],
        |seed| vec![LlamaSampler::temp(1.5), LlamaSampler::dist(seed)],
        // llama.cpp has no nodes for it: it and what follows run on the host.
        |seed| vec![LlamaSampler::typical(0.9, 1), LlamaSampler::dist(seed)],
    ];
    let (mut alone, mut compared, mut other_tokens) = (0, 0, 0);
    for (name, rules) in loaded.constraints() {
        for (tail, seed) in plain_draws.iter().flat_map(|tail| (0..cases(60)).map(move |seed| (tail, seed))) {
            let host = on_host(&mut plain, &prompt, OnHost::new(&rules, Mode::Sampled, tail(seed)));
            let chain = DeviceChain::with_graph_draw(&sampler(&rules, Mode::Sampled), tail(seed)).unwrap();
            let (device, sizes) = on_device(&mut other, &prompt, chain);
            compared += host.len();
            if let Some(((a, legal), (b, _))) = host.iter().zip(&device).find(|(host, device)| host.0 != device.0) {
                // The number fell on the border of two tokens, which the sums of f32 put elsewhere.
                let place = |token| legal.iter().position(|(id, _)| *id == token).unwrap();
                assert!(place(*a).abs_diff(place(*b)) <= 2, "{name}, seed {seed}: {a} and {b} of {}", legal.len());
                other_tokens += 1;
            }
            // Where the graph draws, the token alone is copied: there are no candidates to look at.
            for (at, ((_, candidates), size)) in device.iter().zip(&sizes).enumerate() {
                alone += usize::from(size.is_some() && candidates.is_empty());
                assert!(size.is_none_or(|size| candidates.len() <= size), "{name}, step {at}: {candidates:?}");
            }
        }
    }
    assert!(alone > 100, "{alone}");
    assert!(other_tokens * 1000 <= compared, "{other_tokens} of {compared}");
}

#[test]
fn whatever_draws_in_the_graph_draws_legal_tokens() {
    let loaded = Loaded::tiny();
    let mut context = loaded.context();
    let prompt = loaded.tokens("The next action is ");
    for (_, rules) in loaded.constraints() {
        for seed in 0..cases(40) {
            // `top_p` alone would abort behind another that sorts.
            let tail = [
                LlamaSampler::top_k(5),
                LlamaSampler::top_p(0.9, 1),
                LlamaSampler::top_p(0.8, 1),
                LlamaSampler::min_p(0.05, 1),
                LlamaSampler::temp(3.0),
                LlamaSampler::dist(seed),
            ];
            // `sample` refuses a token that is not legal.
            let chain = DeviceChain::with_graph_draw(&sampler(&rules, Mode::Sampled), tail).unwrap();
            assert!(!on_device(&mut context, &prompt, chain).0.is_empty());
        }
    }
}

#[test]
fn weights_are_added_once() {
    let loaded = Loaded::tiny();
    let (mut plain, mut other) = (loaded.context(), loaded.context());
    let prompt = loaded.tokens("The next action is ");
    let values: Vec<Vec<TokenId>> =
        ["yes", "no", "maybe"].iter().map(|value| loaded.vocab.tokenize(value, false, false).unwrap()).collect();
    let mut builder = Trie::builder();
    for value in &values {
        builder.push(None, value);
    }
    let set = builder.build().unwrap();
    let edges = (0..set.nodes()).map(|node| (node % 7) as f32 - 3.0).collect();
    let rules = loaded.rules(set.with_weights(edges, Vec::new()).unwrap());
    for seed in 0..cases(100) {
        let tail = || vec![LlamaSampler::dist(seed)];
        let host = on_host(&mut plain, &prompt, OnHost::new(&rules, Mode::Sampled, tail()));
        let chain = DeviceChain::new(sampler(&rules, Mode::Sampled), tail());
        let (device, sizes) = on_device(&mut other, &prompt, chain);
        assert_same(&host, &device, &sizes, &format!("seed {seed}"));
        let chain = DeviceChain::with_graph_draw(&sampler(&rules, Mode::Sampled), tail()).unwrap();
        let (drawn, _) = on_device(&mut other, &prompt, chain);
        assert!(drawn.iter().zip(&host).all(|(a, b)| a.0 == b.0), "seed {seed}");
    }
}

#[test]
fn sequences_with_and_without_a_chain_in_one_batch() {
    let loaded = Loaded::tiny();
    let (mut plain, mut other) = (loaded.context(), loaded.context());
    let prompt = loaded.tokens("The next action is ");
    let (set, regex) = (loaded.set(["yes", "no", "maybe", "never"]), loaded.regex("[a-z]{3}-[0-9]{3}-[a-z]{3}"));
    for seed in 0..cases(60) {
        let dist = || vec![LlamaSampler::temp(2.0), LlamaSampler::dist(seed)];
        let mut hosts = [
            OnHost::new(&set, Mode::Sampled, dist()),
            OnHost::new(&regex, Mode::Sampled, dist()),
            OnHost::new(&regex, Mode::Sampled, dist()),
        ];
        let chains = [
            (0, DeviceChain::new(sampler(&set, Mode::Sampled), dist())),
            (2, DeviceChain::with_graph_draw(&sampler(&regex, Mode::Sampled), dist()).unwrap()),
        ];
        let mut attached = AttachedChains::attach(&mut other, chains).unwrap();
        plain.clear_kv_cache();
        attached.clear_kv_cache();
        for sequence in 0..3 {
            plain.decode(&mut silent_batch(&prompt, sequence)).unwrap();
            attached.decode(&mut silent_batch(&prompt, sequence)).unwrap();
        }
        // Each sequence goes on from the last token of its prompt, again, at the next position.
        let mut last = [*prompt.last().unwrap(); 3];
        for step in 0..8 {
            // Sequences end at different times; their order in the batch changes.
            let active: Vec<usize> =
                (0..3).map(|at| (at + step) % 3).filter(|&at| hosts[at].handle.state() == Status::Active).collect();
            if active.is_empty() {
                break;
            }
            let tokens: Vec<(i32, usize, i32)> =
                active.iter().map(|&at| (last[at], prompt.len() + step, at as i32)).collect();
            plain.decode(&mut batch(&tokens)).unwrap();
            attached.decode(&mut batch(&tokens)).unwrap();
            for (row, &at) in active.iter().enumerate() {
                let logits = plain.get_logits_ith(row as i32).to_vec();
                if at == 1 {
                    let raw = attached.context().get_logits_ith(row as i32);
                    assert_eq!(raw, logits, "seed {seed}, step {step}");
                    last[at] = hosts[at].sample(&logits);
                    continue;
                }
                last[at] = hosts[at].sample(&logits);
                let token = attached.sample(at as i32, row as i32).unwrap().0;
                assert_eq!(token, last[at], "seed {seed}, step {step}, sequence {at}");
            }
        }
    }
}

#[test]
fn nodes_grow_and_give_way_to_the_whole_row() {
    let loaded = Loaded::open(tiny_model());
    let mut context = loaded.context();
    let prompt = loaded.tokens("The next action is ");
    let values: Vec<String> = (0..loaded.vocab.len() as u32 - 1).map(|n| n.to_string()).collect();
    let mut builder = Trie::builder();
    for (at, value) in values.iter().enumerate() {
        // One child, then many, then few.
        builder.push(Some(value), &[id(7), id(at as u32 + 1), id(3)]);
    }
    let rules = loaded.rules(builder.build().unwrap());
    let chain = DeviceChain::new(sampler(&rules, Mode::Greedy), []);
    let (_, sizes) = on_device(&mut context, &prompt, chain);
    let wide = values.len().next_power_of_two().min(loaded.vocab.len());
    assert!(wide <= DeviceChain::MOST && wide > DeviceChain::LEAST);
    assert_eq!(sizes[..3], [Some(DeviceChain::LEAST), Some(wide), Some(wide)], "nodes do not shrink");

    // Everything is allowed: the whole row is copied.
    let free = loaded.rules(AnyConstraint::new(Unconstrained));
    let chain = DeviceChain::new(sampler(&free, Mode::Sampled), [LlamaSampler::greedy()]);
    let (free, sizes) = on_device(&mut context, &prompt, chain);
    assert!(sizes.iter().all(Option::is_none) && free.len() == STEPS);
}

#[test]
fn a_chain_that_left_the_graph_waits_for_longer_each_time() {
    let loaded = Loaded::tiny();
    let mut context = loaded.context();
    let chain = DeviceChain::new(sampler(&loaded.set(["yes", "no"]), Mode::Greedy), []);
    let handle = chain.handle().clone();
    let mut attached = AttachedChains::attach(&mut context, [(0, chain)]).unwrap();
    for pass in 0..64 {
        match pass {
            3 | 20 | 60 => handle.deactivate(),
            _ => handle.reset(),
        }
        attached.decode(&mut batch(&[(5, pass, 0)])).unwrap();
        let is_in_graph = attached.selection_len(0).unwrap().is_some();
        assert_eq!(is_in_graph, matches!(pass, 0..3 | 12..20 | 37..60), "pass {pass}");
        assert_eq!(is_in_graph, attached.candidates(0).unwrap().data.len() < loaded.vocab.len(), "pass {pass}");
    }
}

#[test]
fn an_open_leaf_needs_the_whole_row() {
    let loaded = Loaded::tiny();
    let (mut plain, mut other) = (loaded.context(), loaded.context());
    let prompt = loaded.tokens("The next action is ");
    let mut builder = Trie::builder();
    builder.push(Some("a"), &[id(5)]);
    builder.push(Some("b"), &[id(5), id(6)]);
    let rules = SpanRules::for_constraint(builder.build().unwrap(), loaded.vocab.len()).unwrap();
    let rules = Arc::new(rules.with_end_of_generation(loaded.vocab.end_of_generation()).unwrap());
    for (name, mode, tail) in TAILS {
        let host = on_host(&mut plain, &prompt, OnHost::new(&rules, mode, tail(1)));
        let (device, sizes) = on_device(&mut other, &prompt, DeviceChain::new(sampler(&rules, mode), tail(1)));
        assert_same(&host, &device, &sizes, name);
        assert_eq!(sizes[..2], [Some(DeviceChain::LEAST), None], "{name}");
    }
}

#[test]
fn bad_chains_and_sequences_are_refused() {
    let loaded = Loaded::tiny();
    let mut context = loaded.context();
    let rules = loaded.set(["yes", "no"]);
    let chain = || DeviceChain::new(sampler(&rules, Mode::Greedy), []);
    let drawing =
        |tail: Vec<LlamaSampler>| DeviceChain::with_graph_draw(&sampler(&rules, Mode::Sampled), tail).map(drop);
    let greedy = drawing(vec![LlamaSampler::greedy()]).unwrap_err();
    assert_eq!(
        greedy.to_string(),
        "\"greedy\" after a constraint in the graph is not supported: in a graph it selects an index, not a token"
    );
    let nested = drawing(vec![LlamaSampler::chain([LlamaSampler::dist(1)], true)]).unwrap_err();
    assert!(nested.to_string().contains("\"chain\""), "{nested}");
    assert_eq!(drawing(vec![LlamaSampler::dist(1)]), Ok(()));

    for sequence in [-1, 4, i32::MAX] {
        let error = AttachedChains::attach(&mut context, [(sequence, chain())]).unwrap_err();
        assert_eq!(error, DeviceError::Sequence { sequence, most: 3 });
    }
    let twice = AttachedChains::attach(&mut context, [(1, chain()), (1, chain())]).unwrap_err();
    assert_eq!(twice, DeviceError::RepeatedSequence { sequence: 1 });
    let n_vocab = loaded.vocab.len();
    let wide = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), n_vocab + 1).unwrap();
    let wide = DeviceChain::new(sampler(&Arc::new(wide), Mode::Greedy), []);
    let error = AttachedChains::attach(&mut context, [(0, wide)]).unwrap_err();
    assert_eq!(error, DeviceError::Vocabulary { rules: n_vocab + 1, n_vocab });

    let mut attached = AttachedChains::attach(&mut context, [(0, chain())]).unwrap();
    let unknown = DeviceError::UnknownSequence { sequence: 2 };
    assert_eq!(attached.sample(2, 0).unwrap_err(), unknown);
    assert_eq!(attached.handle(2).unwrap_err(), unknown);
    assert_eq!(attached.selection_len(2).unwrap_err(), unknown);
    assert_eq!(unknown.to_string(), "unknown sequence: 2; no chain is attached to it");
    let prompt = loaded.tokens("The next");
    attached.decode(&mut prompt_batch(&prompt, 0)).unwrap();
    for row in [0, prompt.len() as i32, -7] {
        assert_eq!(attached.sample(0, row).unwrap_err(), DeviceError::Row { row });
    }
    assert_eq!(attached.handle(0).unwrap().counts().accepted, 0);
    // Two rows of one sequence: llama.cpp refuses them, and the context goes on.
    let two = [(5, prompt.len(), 0), (6, prompt.len() + 1, 0)];
    assert!(attached.decode(&mut batch(&two)).is_err());
    attached.decode(&mut batch(&two[..1])).unwrap();
    attached.sample(0, 0).unwrap();
}

#[test]
fn the_token_alone_leaves_no_candidates() {
    let loaded = Loaded::tiny();
    let mut context = loaded.context();
    let chain =
        DeviceChain::with_graph_draw(&sampler(&loaded.set(["yes", "no"]), Mode::Sampled), [LlamaSampler::dist(1)]);
    let mut attached = AttachedChains::attach(&mut context, [(0, chain.unwrap())]).unwrap();
    attached.decode(&mut prompt_batch(&loaded.tokens("The next"), 0)).unwrap();
    let row = loaded.tokens("The next").len() as i32 - 1;
    // llama.cpp has a row of logits there, which nobody has written.
    assert_eq!(attached.candidates(row).unwrap_err(), DeviceError::Row { row });
    attached.sample(0, row).unwrap();
}

#[test]
fn a_row_of_another_sequence_gives_no_illegal_token() {
    let loaded = Loaded::tiny();
    let mut context = loaded.context();
    let prompt = loaded.tokens("The next action is ");
    let (set, regex) = (loaded.set(["yes", "no"]), loaded.regex("[0-9]{9}"));
    let dist = |seed| vec![LlamaSampler::dist(seed)];
    let chains = [
        (0, DeviceChain::new(sampler(&set, Mode::Sampled), dist(1))),
        (1, DeviceChain::with_graph_draw(&sampler(&regex, Mode::Sampled), dist(1)).unwrap()),
    ];
    let mut attached = AttachedChains::attach(&mut context, chains).unwrap();
    attached.decode(&mut batch(&[(prompt[0], 0, 0), (prompt[0], 0, 1)])).unwrap();
    assert!(matches!(attached.sample(0, 1), Err(DeviceError::Illegal { .. })), "the token of another chain");
    let token = attached.sample(0, 0).unwrap();
    assert!(set_begins(&loaded.set(["yes", "no"]), token), "{token}");
}

fn set_begins(rules: &Arc<SpanRules>, token: LlamaToken) -> bool {
    let span = sampler(rules, Mode::Greedy).handle().span();
    TokenId::try_from(token.0).is_ok_and(|token| span.allowed(&mut Scratch::default()).contains(token))
}

#[test]
fn everything_is_given_back_in_any_order() {
    let loaded = Loaded::tiny();
    let prompt = loaded.tokens("The next action is ");
    let rules = loaded.set(["yes", "no", "maybe"]);
    let tail = || vec![LlamaSampler::dist(3)];
    for draws in [false, true] {
        let make = || {
            let sampler = sampler(&rules, Mode::Sampled);
            let handle = sampler.handle();
            let chain = if draws {
                DeviceChain::with_graph_draw(&sampler, tail()).unwrap()
            } else {
                DeviceChain::new(sampler, tail())
            };
            (handle, chain)
        };
        // The chains first, then the context; the context is used between.
        let (handle, chain) = make();
        let mut context = loaded.context();
        let mut attached = AttachedChains::attach(&mut context, [(0, chain)]).unwrap();
        attached.decode(&mut prompt_batch(&prompt, 0)).unwrap();
        drop(attached);
        assert_eq!(handle.holders(), 1, "{draws}");
        context.decode(&mut batch(&[(5, prompt.len(), 0)])).unwrap();
        assert_eq!(context.get_logits_ith(0).len(), loaded.vocab.len());
        drop(context);

        // Forgotten chains are never freed, and stay in the graph.
        let (handle, chain) = make();
        let mut context = loaded.context();
        let mut attached = AttachedChains::attach(&mut context, [(0, chain)]).unwrap();
        attached.decode(&mut prompt_batch(&prompt, 0)).unwrap();
        std::mem::forget(attached);
        context.decode(&mut batch(&[(5, prompt.len(), 0)])).unwrap();
        drop(context);
        assert!(handle.holders() > 1);

        // A chain that was never attached.
        let (handle, chain) = make();
        drop(chain);
        assert_eq!(handle.holders(), 1);
    }
}

/// A sampler in the graph, without anything of ours around it.
fn in_graph(rules: &Arc<SpanRules>, most: usize) -> (LlamaSampler, SamplerHandle) {
    let options = GraphOptions { functions: linked_graph(), most, weighed: true };
    let sampler = sampler(rules, Mode::Sampled);
    let handle = sampler.handle();
    // SAFETY: `LlamaSampler` is one pointer that it owns, as in `linked.rs`.
    let sampler = unsafe { std::mem::transmute::<*mut RawSampler, LlamaSampler>(sampler.into_raw_in_graph(options)) };
    (sampler, handle)
}

/// The token that a chain of a program draws in the graph of a context of its own, if any.
fn drawn(loaded: &Loaded, chain: Vec<LlamaSampler>) -> Option<i32> {
    let chain = LlamaSampler::chain(chain, true);
    let mut context = loaded.model.new_context_with_samplers(backend(), Loaded::params(), [(0, chain)]).unwrap();
    let prompt = loaded.tokens("The next action is ");
    context.decode(&mut prompt_batch(&prompt, 0)).unwrap();
    context.sampled_token_ith(prompt.len() as i32 - 1).map(|token| token.0)
}

/// Texts of `a`, until it is armed. The state is their length: each has a mask of its own.
#[derive(Debug)]
struct Panics(Arc<AtomicBool>);

impl Rule for Panics {
    type State = u32;

    fn start(&self) -> u32 {
        0
    }

    fn step(&self, length: &u32, byte: u8) -> Option<u32> {
        if self.0.load(Ordering::Relaxed) {
            std::panic::panic_any("as if a rule had failed");
        }
        (byte == b'a').then_some(length + 1)
    }

    fn is_end(&self, _: &u32) -> bool {
        true
    }
}

#[test]
fn a_chain_of_a_program_fails_closed() {
    let loaded = Loaded::tiny();
    let end = loaded.vocab.end_of_generation();
    let is_end = |token: i32| end.contains(&TokenId::try_from(token).unwrap());
    let set = loaded.set(["yes", "no", "maybe"]);
    let dist = || LlamaSampler::dist(9);

    let legal = drawn(loaded, vec![in_graph(&set, 16).0, dist()]).unwrap();
    assert!(set_begins(&set, LlamaToken(legal)));
    // Too few places, everything allowed, not the first of the chain: each allows the end of generation alone.
    let wide = loaded.set(["yes", "no", "maybe"]);
    let few = drawn(loaded, vec![in_graph(&wide, 1).0, dist()]).unwrap();
    assert!(is_end(few), "{few}");
    let free = loaded.rules(AnyConstraint::new(Unconstrained));
    let free = drawn(loaded, vec![in_graph(&free, 16).0, dist()]).unwrap();
    assert!(is_end(free), "{free}");
    let second = vec![LlamaSampler::top_k(3), in_graph(&set, 16).0, dist()];
    let second = drawn(loaded, second).unwrap();
    assert!(is_end(second), "{second}");
    // No place at all: the host is asked.
    assert_eq!(drawn(loaded, vec![in_graph(&set, 0).0, dist()]), None);
}

#[test]
fn a_panic_in_a_rule_does_not_leave_the_graph() {
    let loaded = Loaded::tiny();
    let end = loaded.vocab.end_of_generation();
    let armed = Arc::new(AtomicBool::new(false));
    let rules = loaded.rule(Panics(Arc::clone(&armed)));
    let (sampler, handle) = in_graph(&rules, 16);
    handle.accept_all(&loaded.vocab.tokenize("a", false, false).unwrap()).unwrap();
    armed.store(true, Ordering::Relaxed);
    let token = drawn(loaded, vec![sampler, LlamaSampler::dist(9)]).unwrap();
    assert!(end.contains(&TokenId::try_from(token).unwrap()), "{token}");
    assert!(handle.is_poisoned() || handle.status().damaged);
}

#[test]
fn copies_of_samplers_in_a_graph_are_independent() {
    let loaded = Loaded::tiny();
    let set = loaded.set(["yes", "no", "maybe"]);
    let values = ["yes", "no"].map(|value| loaded.vocab.tokenize(value, false, false).unwrap());
    let ((mut from, from_handle), (to, to_handle)) = (in_graph(&set, 16), in_graph(&set, 16));
    from.accept(LlamaToken(values[0][0].as_i32()));

    // A clone has a state of its own, and works on the host.
    let mut copy = from.clone();
    from_handle.reset();
    copy.accept(LlamaToken(values[0].get(1).map_or(0, |token| token.as_i32())));
    assert_eq!((from_handle.status().depth, from_handle.holders()), (0, 2));

    // `llama_sampler_copy` leaves the other in its graph, and moves its position.
    from.accept(LlamaToken(values[1][0].as_i32()));
    let raw = |sampler: &LlamaSampler| {
        // SAFETY: one pointer each, as in `linked.rs`.
        unsafe { std::mem::transmute_copy::<LlamaSampler, *mut RawSampler>(sampler) }
    };
    // SAFETY: two living samplers with one table.
    unsafe { llama_sampler_copy(raw(&from).cast(), raw(&to).cast()) };
    assert_eq!(to_handle.status().depth, 1, "the handle follows");
    to_handle.reset();
    assert_eq!((from_handle.status().depth, to_handle.status().depth), (1, 0));
    drop((from, to, copy));
    assert_eq!((from_handle.holders(), to_handle.holders()), (1, 1));
}
