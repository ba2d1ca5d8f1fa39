//! One `apply` of a whole llama.cpp chain over a fresh candidate array: the trie, llama.cpp's own GBNF and llguidance,
//! for the
//! same values at their first token. Building the array, which every chain needs, is timed alone.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use llama_callbacks::TokenTrieSampler;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_sampler::IntoLlamaSampler as _;
use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar};
use std::path::PathBuf;
use std::sync::Arc;
use tokentrie_benches::{ACTIONS, row};
use trie_core::{Mode, Scratch, Span, SpanRules, TokenId, Trie};

/// A large real vocabulary where one is at hand, else the tiny model's.
fn vocabulary() -> PathBuf {
    let wide =
        std::env::var_os("TOKENTRIE_VOCAB_DIR").map(|folder| PathBuf::from(folder).join("ggml-vocab-qwen2.gguf"));
    wide.filter(|path| path.exists()).unwrap_or_else(|| {
        println!("no TOKENTRIE_VOCAB_DIR with ggml-vocab-qwen2.gguf: the tiny model's vocabulary is used");
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../python/tokentrie/models/tiny.gguf"))
    })
}

fn tokens(model: &LlamaModel, name: &str) -> Vec<TokenId> {
    let ids = model.vocab().tokenize(name.as_bytes(), false, false);
    ids.into_iter().filter_map(|id| TokenId::try_from(id.0).ok()).collect()
}

fn rules(model: &LlamaModel) -> Arc<SpanRules> {
    let mut builder = Trie::builder();
    for name in ACTIONS {
        builder.push(Some(name), &tokens(model, name));
    }
    let set = builder.build().expect("names have tokens");
    Arc::new(SpanRules::for_constraint(set, model.n_vocab() as usize).expect("ids of this vocabulary"))
}

fn gbnf(model: &LlamaModel) -> LlamaSampler {
    let values: Vec<String> = ACTIONS.iter().map(|name| format!("\"{name}\"")).collect();
    LlamaSampler::grammar(model, &format!("root ::= {}", values.join(" | ")), "root").expect("a good grammar")
}

fn llguidance(model: &LlamaModel) -> LlamaSampler {
    let factory = ParserFactory::new_simple(&LlamaSampler::llguidance_tok_env(model)).expect("a vocabulary");
    let values: Vec<String> = ACTIONS.iter().map(|name| format!("\"{name}\"")).collect();
    let grammar = TopLevelGrammar::from_lark(format!("start: {}", values.join(" | ")));
    LlamaSampler::from(Matcher::new(factory.create_parser(grammar)))
}

fn chain(criterion: &mut Criterion) {
    let backend = LlamaBackend::init().expect("llama.cpp starts");
    let params = LlamaModelParams::default().with_vocab_only(true);
    let model = LlamaModel::load_from_file(&backend, vocabulary(), &params).expect("a vocabulary");
    let n_vocab = model.n_vocab() as usize;
    let row = row(n_vocab);
    let candidates = || {
        let all = row.iter().enumerate().map(|(id, &logit)| LlamaTokenData::new(LlamaToken(id as i32), logit, 0.0));
        LlamaTokenDataArray::from_iter(all, false)
    };
    let rules = rules(&model);
    let trie = |mode| TokenTrieSampler::new(Arc::clone(&rules), mode).into_llama_sampler();
    let dist =
        || vec![LlamaSampler::top_k(40), LlamaSampler::top_p(0.95, 1), LlamaSampler::temp(0.8), LlamaSampler::dist(7)];
    let with =
        |first: Option<LlamaSampler>, rest: Vec<LlamaSampler>| LlamaSampler::chain(first.into_iter().chain(rest), true);

    let k = Span::new(Arc::clone(&rules)).allowed(&mut Scratch::default()).iter().count();
    let mut group = criterion.benchmark_group(format!("chain/{n_vocab}/k={k}"));
    group.bench_function("build-candidates", |b| b.iter(candidates));
    let cases = [
        ("greedy/free", with(None, vec![LlamaSampler::greedy()])),
        ("greedy/trie", with(Some(trie(Mode::Greedy)), vec![LlamaSampler::greedy()])),
        ("greedy/gbnf", with(Some(gbnf(&model)), vec![LlamaSampler::greedy()])),
        ("greedy/llguidance", with(Some(llguidance(&model)), vec![LlamaSampler::greedy()])),
        ("dist/free", with(None, dist())),
        ("dist/trie", with(Some(trie(Mode::Sampled)), dist())),
        ("dist/gbnf", with(Some(gbnf(&model)), dist())),
        ("dist/llguidance", with(Some(llguidance(&model)), dist())),
    ];
    // Text engines allow every tokenisation of a name, so they may choose another first token: it must begin a name.
    let begins = |token: LlamaToken| {
        let piece = model.vocab().token_to_piece(token, false, None);
        ACTIONS.iter().any(|name| !piece.is_empty() && name.as_bytes().starts_with(&piece))
    };
    for (name, mut chain) in cases {
        let mut array = candidates();
        chain.apply(&mut array);
        let chosen = array.selected_token().expect("the chain ends with a choice");
        assert!(name.ends_with("free") || begins(chosen), "{name} chose {chosen:?}");
        // The array is built outside the timed part.
        group.bench_function(name, |b| {
            b.iter_batched_ref(candidates, |array| chain.apply(array), BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30);
    targets = chain
}
criterion_main!(benches);
