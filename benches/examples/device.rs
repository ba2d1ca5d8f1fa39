//! Chains of llama.cpp on the host and in the compute graph: the time of a token, and the bytes that leave the device.
//!
//! `device MODEL.gguf [THREADS]` checks that all ways write the same tokens, then prints the table of a record.

use llama_callbacks::TokenTrieSampler;
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
use llama_sampler::{AttachedChains, DeviceChain, IntoLlamaSampler as _, vocab_from_gguf};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{After, Mode, RowChooser, SamplerOptions, Scratch, Span, SpanRules, Status, TokenId, Trie};

/// Tokens of one run.
const TOKENS: usize = 200;
/// Runs of each way, in turns.
const RUNS: usize = 5;
const SEED: u32 = 58;

/// A way from the logits of a pass to a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A chain over the whole row, as any program has it.
    HostChain,
    /// The sampler of `Model`, which reads the legal logits in the row.
    HostRow,
    /// The graph gathers, the chain chooses on the host.
    Gathered,
    /// The graph draws, and the token alone is copied.
    Drawn,
}

const WAYS: [(Way, &str); 4] = [
    (Way::HostChain, "chain on the host"),
    (Way::HostRow, "row on the host, as in `Model`"),
    (Way::Gathered, "gathered in the graph, chosen on the host"),
    (Way::Drawn, "drawn in the graph"),
];

/// The tokens of a run, and for each the microseconds of the pass and of the choice.
#[derive(Default)]
struct Run {
    tokens: Vec<i32>,
    passes: Vec<f64>,
    choices: Vec<f64>,
}

/// The least of some times: what else the machine did is not in it.
fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn one(token: i32, position: usize) -> LlamaBatch<'static> {
    let mut batch = LlamaBatch::new(1, 1);
    batch.add(LlamaToken(token), position as i32, &[0], true).expect("room for one");
    batch
}

/// Writes values after each other. `decode` runs a pass, `choose` chooses after it.
fn run<S>(
    state: &mut S,
    clear: impl Fn(&mut S),
    decode: impl Fn(&mut S, &mut LlamaBatch<'_>),
    mut choose: impl FnMut(&mut S) -> i32,
) -> Run {
    let mut run = Run::default();
    let mut token = 1;
    clear(state);
    for position in 0..TOKENS {
        let began = Instant::now();
        decode(state, &mut one(token, position));
        let decoded = Instant::now();
        token = choose(state);
        let (pass, choice) = (decoded - began, decoded.elapsed());
        run.tokens.push(token);
        run.passes.push(pass.as_secs_f64() * 1e6);
        run.choices.push(choice.as_secs_f64() * 1e6);
    }
    run
}

fn measure(context: &mut LlamaContext<'_>, rules: &Arc<SpanRules>, way: Way) -> Run {
    let tail = || vec![LlamaSampler::dist(SEED)];
    let sampler = TokenTrieSampler::new(Arc::clone(rules), Mode::Sampled);
    let handle = sampler.handle();
    let again = move || {
        if handle.state() != Status::Active {
            handle.reset();
        }
    };
    let clear = |context: &mut LlamaContext<'_>| context.clear_kv_cache();
    let pass = |context: &mut LlamaContext<'_>, batch: &mut LlamaBatch<'_>| {
        context.decode(batch).expect("a forward pass");
    };
    match way {
        Way::HostChain => {
            let first = std::iter::once(sampler.into_llama_sampler());
            let mut chain = LlamaSampler::chain(first.chain(tail()), true);
            run(context, clear, pass, |context| {
                let row = context.get_logits_ith(0);
                let data = (0..).zip(row).map(|(id, &logit)| LlamaTokenData::new(LlamaToken(id), logit, 0.0));
                let mut candidates = LlamaTokenDataArray::from_iter(data, false);
                chain.apply(&mut candidates);
                let token = candidates.selected_token().expect("a token");
                chain.accept(token);
                again();
                token.0
            })
        }
        Way::HostRow => {
            let options = SamplerOptions { mode: Mode::Sampled, seed: Some(SEED), ..SamplerOptions::default() };
            let mut chooser = RowChooser::new(options).expect("good options");
            let (mut span, mut scratch) = (Span::new(Arc::clone(rules)), Scratch::default());
            run(context, clear, pass, |context| {
                let token = chooser.choose(context.get_logits_ith(0), span.allowed(&mut scratch)).expect("a token");
                chooser.wrote(token);
                span.accept(token).expect("a legal token");
                if span.status() != Status::Active {
                    span.reset();
                }
                token.as_i32()
            })
        }
        Way::Gathered | Way::Drawn => {
            let chain = match way {
                Way::Drawn => DeviceChain::with_graph_draw(&sampler, tail()).expect("a tail that draws"),
                _ => DeviceChain::new(sampler, tail()),
            };
            let mut attached = AttachedChains::attach(context, [(0, chain)]).expect("a sequence");
            let clear = |attached: &mut AttachedChains<'_, '_>| attached.clear_kv_cache();
            let pass = |attached: &mut AttachedChains<'_, '_>, batch: &mut LlamaBatch<'_>| {
                attached.decode(batch).expect("a forward pass");
            };
            run(&mut attached, clear, pass, |attached| {
                let token = attached.sample(0, 0).expect("a legal token").0;
                again();
                token
            })
        }
    }
}

/// Microseconds of a forward pass after a chain was attached, when llama.cpp plans its graphs anew.
fn attach(context: &mut LlamaContext<'_>, rules: &Arc<SpanRules>) -> f64 {
    let times = (0..9).map(|_| {
        context.clear_kv_cache();
        let chain = DeviceChain::new(TokenTrieSampler::new(Arc::clone(rules), Mode::Sampled), []);
        let mut attached = AttachedChains::attach(context, [(0, chain)]).expect("a sequence");
        let began = Instant::now();
        attached.decode(&mut one(1, 0)).expect("a forward pass");
        began.elapsed().as_secs_f64() * 1e6
    });
    times.fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("usage: device MODEL.gguf [THREADS]");
    let threads = arguments.next().map_or(1, |threads| threads.parse().expect("a number of threads"));
    let mut backend = LlamaBackend::init().expect("llama.cpp starts");
    backend.void_logs();
    let model = LlamaModel::load_from_file(&backend, &path, &LlamaModelParams::default()).expect("a model");
    let vocab = vocab_from_gguf(&path).expect("a vocabulary");
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(1024))
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let mut context = model.new_context(&backend, params).expect("a context");
    println!("| set | way | bytes from the device | pass, µs | choice, µs |");
    println!("| ---: | --- | ---: | ---: | ---: |");
    let mut attached = Vec::new();
    for values in [30u32, 4000] {
        let mut builder = Trie::builder();
        let n_vocab = vocab.len() as u32;
        // Every value begins with a token of its own: the widest place is the whole set.
        for value in 0..values {
            let ids = [value * 7919 % n_vocab, 2 + value % 5, 9].map(|id| TokenId::new(id).expect("an id"));
            builder.push(None, &ids);
        }
        let rules = SpanRules::for_constraint(builder.build().expect("a set"), vocab.len()).expect("ids in range");
        let rules = rules.with_end_of_generation(vocab.end_of_generation()).expect("ids in range");
        let rules = Arc::new(rules.with_after(After::Stop).expect("an end"));
        let expected = measure(&mut context, &rules, Way::HostChain).tokens;
        let mut runs: [Run; WAYS.len()] = std::array::from_fn(|_| Run::default());
        let mut same = [true; WAYS.len()];
        for _ in 0..RUNS {
            for (at, &(way, name)) in WAYS.iter().enumerate() {
                let Run { tokens, passes, choices } = measure(&mut context, &rules, way);
                same[at] &= tokens == expected;
                assert!(same[at] || way == Way::Drawn, "{name} writes other tokens");
                runs[at].passes.extend(passes);
                runs[at].choices.extend(choices);
            }
        }
        for ((Run { passes, choices, .. }, same), (way, name)) in runs.into_iter().zip(same).zip(WAYS) {
            let bytes = match way {
                Way::HostChain | Way::HostRow => 4 * vocab.len(),
                Way::Gathered => 8 * (values as usize).next_power_of_two().max(DeviceChain::LEAST),
                Way::Drawn => 4,
            };
            let other = if same { "" } else { ", other tokens from the same seed" };
            let (pass, choice) = (least(&passes), least(&choices));
            println!("| {values} | {name}{other} | {bytes} | {pass:.0} | {choice:.2} |");
        }
        attached.push((values, attach(&mut context, &rules)));
    }
    println!();
    for (values, pass) in attached {
        println!("- the pass after {values} values were attached: {pass:.0} µs at best");
    }
}
