//! Every `sampler_script` of the shared vectors, run through the callbacks in real chains.

use crate::common::{apply, repository};
use llama_callbacks::{SamplerHandle, TokenTrieSampler};
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_sampler::IntoLlamaSampler as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use trie_core::{Mode, SpanRules, Status};
use trie_formats::Payload;

/// The ids in the vectors are below this.
const VOCAB: usize = 1_000_000;

struct Script {
    mode: Mode,
    sampler: LlamaSampler,
    handle: SamplerHandle,
}

fn start(input: &Value, options: Option<&Value>) -> (Option<Script>, bool) {
    let text = input["payload_text"].as_str().map_or_else(|| input["payload"].to_string(), str::to_owned);
    let mode = if input["mode"] == 0 { Mode::Greedy } else { Mode::Sampled };
    let n_vocab = options.and_then(|options| options["n_vocab"].as_u64()).map_or(VOCAB, |n| n as usize);
    let Ok(payload) = Payload::from_json(text.as_bytes(), Some(n_vocab)) else { return (None, false) };
    let warned = payload.report.out_of_vocabulary > 0;
    let sampler = TokenTrieSampler::new(Arc::new(SpanRules::new(payload.constraints, n_vocab).unwrap()), mode);
    let handle = sampler.handle();
    (Some(Script { mode, sampler: LlamaSampler::chain([sampler.into_llama_sampler()], true), handle }), warned)
}

fn candidates(step: &Value) -> Vec<(i32, f32)> {
    let pairs = step["candidates"].as_array().unwrap().iter();
    pairs.map(|pair| (pair[0].as_i64().unwrap() as i32, pair[1].as_f64().unwrap() as f32)).collect()
}

fn link(name: &str, seed: u32) -> LlamaSampler {
    match name.split_once(':') {
        None if name == "dist" => LlamaSampler::dist(seed),
        Some(("temp", value)) => LlamaSampler::temp(value.parse().unwrap()),
        _ => panic!("a sampler that this test does not know: {name}"),
    }
}

fn expect_logits(case: &str, step: &Value, script: &mut Script) {
    let array = candidates(step);
    let after = apply(&mut script.sampler, &array, step["sorted_in"] == true);
    for (id, expected) in step["expect_logit_by_id"].as_object().unwrap() {
        let expected = expected.as_f64().map_or(f32::NEG_INFINITY, |logit| logit as f32);
        assert_eq!(after.logit(id.parse().unwrap()).to_bits(), expected.to_bits(), "{case}: token {id}");
    }
    let legal = array.iter().filter(|(id, _)| step["expect_logit_by_id"][id.to_string()].is_number());
    assert_eq!(after.kept.len(), if script.mode == Mode::Greedy { 1 } else { legal.count() }, "{case}");
    assert!(!after.sorted || after.kept.is_sorted_by(|a, b| a.1 >= b.1), "{case}: a stale sorted flag");
}

fn expect_samples(case: &str, step: &Value, script: &Script) {
    let names: Vec<&str> = step["chain"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names[0], "token_trie", "{case}");
    let array = candidates(step);
    let mut counts = BTreeMap::<i64, u64>::new();
    for seed in 0..step["seeds"].as_u64().unwrap() as u32 {
        let trie = TokenTrieSampler::from_span(script.handle.span(), script.mode).into_llama_sampler();
        let links = std::iter::once(trie).chain(names[1..].iter().map(|name| link(name, seed)));
        let after = apply(&mut LlamaSampler::chain(links, true), &array, false);
        *counts.entry(after.token().unwrap().into()).or_default() += 1;
    }
    if let Some(only) = step["expect_all"].as_i64() {
        assert_eq!(counts.keys().collect::<Vec<_>>(), [&only], "{case}");
    }
    if let Some(support) = step["expect_support"].as_array() {
        assert!(counts.keys().all(|token| support.contains(&Value::from(*token))), "{case}: {counts:?}");
        let least = step["expect_min_count_each"].as_u64().unwrap_or(1);
        assert!(support.iter().all(|token| counts[&token.as_i64().unwrap()] >= least), "{case}: {counts:?}");
    }
}

fn run(case: &str, input: &Value) {
    let mut running: Option<Script> = None;
    for step in input["steps"].as_array().unwrap() {
        let op = step["op"].as_str().unwrap();
        if op == "init" {
            let (script, warned) = start(input, step.get("options"));
            assert_eq!(script.is_some(), step["expect"] == "non_null", "{case}");
            assert_eq!(warned, step["expect_warning"] == true, "{case}");
            running = script;
            continue;
        }
        let script = running.as_mut().unwrap();
        match op {
            "apply" => expect_logits(case, step, script),
            "chain_sample" => expect_samples(case, step, script),
            "accept" => script.sampler.accept(LlamaToken(step["token"].as_i64().unwrap() as i32)),
            "reset" => script.sampler.reset(),
            "activate" => script.handle.activate(step["path"].as_str().unwrap()).unwrap(),
            "state" => {
                let expected = step["expect"]["completed_leaf"].as_str();
                assert_eq!(script.handle.leaf().and_then(|leaf| leaf.name).as_deref(), expected, "{case}");
                let active = script.handle.state() == Status::Active;
                assert_eq!(active, step["expect"]["active"] == true, "{case}");
            }
            other => panic!("{case}: an operation that this test does not know: {other}"),
        }
    }
}

#[test]
fn every_script_runs_through_real_chains() {
    let text = std::fs::read_to_string(repository().join("tests/vectors/payload_and_sampler.json")).unwrap();
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let scripts = vectors["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "sampler_script");
    let mut ran = 0;
    for case in scripts {
        run(case["id"].as_str().unwrap(), &case["input"]);
        ran += 1;
    }
    assert!(ran >= 19, "only {ran} scripts");
}
