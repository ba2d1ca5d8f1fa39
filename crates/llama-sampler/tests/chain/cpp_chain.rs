//! The chains of `examples/cpp` in another copy of llama.cpp write the same tokens as chains of ours. Its output is in
//! the file that `TOKENTRIE_CPP_CHAIN` names, after a line with what it was asked; `crates/tokentrie-c/check.sh` writes
//! it.

use crate::common::tiny_model;
use llama_cpp_2::sampling::LlamaSampler;
use llama_sampler::{Context, ContextOptions, GenerateOptions, Model, ModelOptions};
use std::sync::Arc;
use trie_core::{After, SpanRules, TokenId, Trie};

/// What one chain wrote.
#[derive(Debug)]
struct Line<'t> {
    chain: &'t str,
    seed: u32,
    tokens: Vec<i32>,
    leaf: &'t str,
}

impl<'t> Line<'t> {
    fn read(line: &'t str) -> Self {
        let (name, rest) = line.split_once(": ").unwrap();
        let (tokens, leaf) = rest.split_once(" = ").unwrap();
        let (chain, seed) = name.split_once(' ').unwrap_or((name, "0"));
        let tokens = tokens.split(' ').map(|token| token.parse().unwrap()).collect();
        Self { chain, seed: seed.parse().unwrap(), tokens, leaf }
    }
}

fn rules(model: &Model, values: &[&str]) -> Arc<SpanRules> {
    let mut builder = Trie::builder();
    for value in values {
        builder.push(Some(value), &model.vocab().tokenize(value, false, false).unwrap());
    }
    let rules = SpanRules::for_constraint(builder.build().unwrap(), model.vocab().len()).unwrap();
    let rules = rules.with_end_of_generation(model.vocab().end_of_generation()).unwrap();
    Arc::new(rules.with_after(After::Stop).unwrap())
}

fn ours(context: &mut Context, prompt: &[TokenId], rules: &Arc<SpanRules>, line: &Line<'_>) -> (Vec<i32>, String) {
    let n_vocab = context.vocab().len() as i32;
    let draw = [LlamaSampler::temp(1.5), LlamaSampler::dist(line.seed)];
    let chain = match line.chain {
        "greedy" => LlamaSampler::greedy(),
        "dist" => LlamaSampler::chain(draw, true),
        "penalties" => {
            let [temp, dist] = draw;
            LlamaSampler::chain([LlamaSampler::penalties(n_vocab, 64, 1.5, 0.5, 0.5), temp, dist], true)
        }
        other => panic!("a chain that this test does not know: {other}"),
    };
    let options = GenerateOptions::default();
    let out = context.generate_with_chain(prompt, rules, chain, &options, &mut ()).unwrap();
    (out.tokens.iter().map(|token| token.as_i32()).collect(), out.leaf.unwrap().name.unwrap())
}

#[test]
fn chains_of_another_llama_cpp_write_the_same() {
    let Some(path) = std::env::var_os("TOKENTRIE_CPP_CHAIN") else {
        println!("skipped: TOKENTRIE_CPP_CHAIN is not set");
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let asked: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let model = Model::load(tiny_model(), ModelOptions::default()).unwrap();
    let options = ContextOptions::default().with_n_ctx(512).with_n_threads(1);
    let mut context = model.context(options).unwrap();
    let (prompt, rules) = (model.vocab().tokenize(asked[0], true, false).unwrap(), rules(&model, &asked[1..]));
    let (mut checked, mut leaves) = (0, std::collections::BTreeSet::new());
    for line in lines {
        let line = Line::read(line);
        let (tokens, leaf) = ours(&mut context, &prompt, &rules, &line);
        assert_eq!(leaf, line.leaf, "{line:?}");
        // A token that ends a value which others go on from is free text: ours leaves it out.
        let open = line.tokens.len() - tokens.len();
        assert!(open <= usize::from(asked.iter().any(|other| *other != leaf && other.starts_with(&leaf))), "{line:?}");
        assert_eq!(tokens, line.tokens[..tokens.len()], "{line:?}");
        (checked, _) = (checked + 1, leaves.insert(leaf));
    }
    assert!(checked >= 41 && leaves.len() > 2, "{checked} chains, {leaves:?}");
    println!("{checked} chains wrote the same tokens: {leaves:?}");
}
