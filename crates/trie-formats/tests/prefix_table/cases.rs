//! The cases of `tests/vectors/tree_decode.json`, with rows of a batch; Python runs them with samplers.

use crate::common::vectors::{cases_of, tokens};
use crate::common::{id, ids};
use serde_json::Value;
use std::sync::Arc;
use trie_core::{After, Batch, RowsMut, SamplerOptions, Scratch, SpanRules, Status, TokenId, Trie};
use trie_formats::{PrefixTable, PrefixTableError, Strictness};

/// More than any id of the cases.
const VOCABULARY: usize = 65_536;

fn cases(kind: &str) -> Vec<Value> {
    cases_of("tree_decode", kind)
}

fn rows(trie: Trie, n_vocab: usize, count: usize) -> Batch {
    let rules = SpanRules::for_constraint(trie, n_vocab).unwrap().with_after(After::Stop).unwrap();
    Batch::new(Arc::new(rules), count, SamplerOptions::default()).unwrap()
}

fn allowed(batch: &Batch, row: usize) -> Vec<u32> {
    let mut scratch = Scratch::default();
    batch.allowed(row, &mut scratch).unwrap().iter().map(TokenId::get).collect()
}

#[test]
fn traces() {
    for case in cases("tree_trace") {
        let (what, text) = (&case["id"], case["config"].to_string());
        let strict = PrefixTable::from_json(text.as_bytes(), Strictness::Strict);
        match case["strict_error"].as_str() {
            Some(part) => assert!(strict.unwrap_err().to_string().contains(part), "{what}"),
            None => assert_eq!(strict.unwrap().report.skipped_count(), 0, "{what}"),
        }
        let table = PrefixTable::read(text.as_bytes(), Strictness::Repair).unwrap();
        let mut batch = rows(table.trie, VOCABULARY, 1);
        for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            if let Some(token) = step["feed"].as_u64() {
                let refused = batch.accept(&[id(token as u32)]).is_err();
                assert_eq!(refused, step["refused"].as_bool().unwrap(), "{what}, step {at}");
            }
            assert_eq!(allowed(&batch, 0), tokens(&step["allowed"]), "{what}, step {at}");
            let finished = batch.state(0).unwrap().status() == Status::Complete;
            assert_eq!(finished, step["finished"].as_bool().unwrap(), "{what}, step {at}");
        }
    }
}

#[test]
fn what_is_no_table_is_refused() {
    for case in cases("config_load") {
        let (what, text) = (&case["id"], case["json_text"].as_str().unwrap());
        for strictness in [Strictness::Strict, Strictness::Repair] {
            let error = PrefixTable::from_json(text.as_bytes(), strictness).unwrap_err();
            let read = PrefixTable::read(text.as_bytes(), strictness).unwrap_err();
            // Where a text is at hand, a column may be one further back than where it is read as it comes.
            let alike = |one: &PrefixTableError| one.to_string().replace(|c: char| c.is_ascii_digit(), "");
            assert_eq!(alike(&error), alike(&read), "{what}");
            let malformed = matches!(error, PrefixTableError::Malformed { line: 1, column: 1.., .. });
            assert_eq!(malformed, case["malformed"].as_bool().unwrap(), "{what}: {error}");
            let unreachable = match error {
                PrefixTableError::NoRoot { keys, .. } => keys,
                PrefixTableError::NoValues { report } => report.unreachable,
                PrefixTableError::Malformed { .. } => continue,
                other => panic!("{what}: {other}"),
            };
            assert_eq!(unreachable as u64, case["unreachable"].as_u64().unwrap_or(0), "{what}");
        }
    }
}

#[test]
fn masks() {
    for case in cases("vocab_mask") {
        let n_vocab = case["vocab_size"].as_u64().unwrap() as usize;
        let listed = case["candidates"].as_array().unwrap().iter().map(tokens);
        for (list, expected) in listed.zip(case["allowed_per_row"].as_array().unwrap().iter().map(tokens)) {
            let mut builder = Trie::builder();
            for &token in &list {
                builder.push(None, &[id(token)]);
            }
            let Ok(trie) = builder.build() else {
                assert!(expected.is_empty());
                continue;
            };
            let mut batch = rows(trie.with_end_tokens([id(0)]), n_vocab, 1);
            let mut words = vec![-1; batch.mask_words()];
            let width = words.len();
            batch.fill_bitmask(RowsMut::new(&mut words, 1, width, width).unwrap()).unwrap();
            let set: Vec<u32> =
                (0..n_vocab as u32).filter(|&bit| words[bit as usize / 32] >> (bit % 32) & 1 == 1).collect();
            assert_eq!(set, expected);
        }
    }
}

#[test]
fn beams() {
    for case in cases("beam") {
        let text = case["config"].to_string();
        let table = PrefixTable::from_json(text.as_bytes(), Strictness::Strict).unwrap();
        let fed: Vec<Vec<u32>> = case["beam_feed"].as_array().unwrap().iter().map(tokens).collect();
        let mut batch = rows(table.trie, VOCABULARY, fed.len());
        for (row, fed) in fed.iter().enumerate() {
            batch.accept_in(row, &ids(fed)).unwrap();
        }
        let parents: Vec<usize> = tokens(&case["src_indices"]).iter().map(|&row| row as usize).collect();
        batch.reorder(&parents).unwrap();
        let check = |batch: &Batch, expected: &Value| {
            let of_each: Vec<Vec<u32>> = (0..batch.len()).map(|row| allowed(batch, row)).collect();
            assert_eq!(of_each, expected.as_array().unwrap().iter().map(tokens).collect::<Vec<_>>());
        };
        check(&batch, &case["expect_allowed"]);
        batch.accept(&ids(&tokens(&case["then_feed"]))).unwrap();
        check(&batch, &case["expect_after_allowed"]);
    }
}

#[test]
fn weighted_masks() {
    for case in cases("weighted_mask") {
        let text = case["config"].to_string();
        let table = PrefixTable::from_json(text.as_bytes(), Strictness::Strict).unwrap();
        assert!(table.report.weighted && table.report.ignored_keys == 1);
        let n_vocab = case["vocab_size"].as_u64().unwrap() as usize;
        let number = |value: &Value| value.as_f64().map_or(f32::NEG_INFINITY, |number| number as f32);
        let mut row: Vec<f32> = case["logits"].as_array().unwrap().iter().map(number).collect();
        let mut batch = rows(table.trie, n_vocab, 1);
        batch.apply(RowsMut::new(&mut row, 1, n_vocab, n_vocab).unwrap()).unwrap();
        assert_eq!(row, case["expect"].as_array().unwrap().iter().map(number).collect::<Vec<_>>());
    }
}
