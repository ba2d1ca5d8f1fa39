//! Weights in files.

use crate::common::{Naive, ids};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{DrawSettings, Mode, Sampler, SamplerOptions, SetError, SpanRules, Trie};
use trie_formats::{FileOptions, TrieFile as _};

const VOCABULARY: usize = 12;

fn plain(rows: &[&[u32]]) -> Trie {
    let mut builder = Trie::builder();
    for row in rows {
        builder.push(None, &ids(row));
    }
    builder.build().unwrap()
}

fn sampler(trie: &Trie, ends: &[u32], mode: Mode) -> Sampler {
    let rules = SpanRules::for_constraint(trie.clone(), VOCABULARY).unwrap().with_end_tokens(ids(ends)).unwrap();
    Sampler::new(Arc::new(rules), SamplerOptions { mode, draw: DrawSettings::default(), seed: Some(5) }).unwrap()
}

fn sets() -> impl Strategy<Value = Naive> {
    let row = vec(0u32..8, 1..4).prop_map(|tokens| (String::new(), tokens));
    vec(row, 1..10).prop_map(|rows| Naive { rows })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(600)))]

    #[test]
    fn files_keep_them(naive in sets(), with_ends: bool) {
        let trie = naive.trie();
        let weights = |count: usize| (0..count).map(|n| n as f32 * 0.5 - 1.0).collect::<Vec<_>>();
        let ends = if with_ends { weights(trie.len()) } else { Vec::new() };
        let trie = trie.clone().with_weights(weights(trie.nodes()), ends).unwrap().with_end_tokens(ids(&[9]));
        let mut file = Vec::new();
        trie.write_to(&mut file, None).unwrap();
        let opened = Trie::from_bytes(&file, FileOptions::default().with_verify(true)).unwrap();
        prop_assert!(opened == trie && opened.is_weighted());
        prop_assert!(opened != trie.clone().without_weights());
        let mut without = Vec::new();
        trie.clone().without_weights().write_to(&mut without, None).unwrap();
        prop_assert!(without.len() < file.len());
        prop_assert_eq!(trie.nbytes() - trie.clone().without_weights().nbytes() >= 4 * trie.nodes(), true);
    }
}

#[test]
fn a_damaged_weight_neither_verifies_nor_allows_anything_else() {
    let trie = plain(&[&[1], &[2]]).with_weights(vec![0.0, 0.5, 1.5], vec![0.25, 0.0]).unwrap();
    let mut file = Vec::new();
    trie.write_to(&mut file, None).unwrap();
    for (from, odd) in [(0.5f32, f32::NAN), (1.5, f32::INFINITY), (1.5, f32::NEG_INFINITY), (0.25, f32::NAN)] {
        let mut damaged = file.clone();
        let at = damaged.windows(4).rposition(|bytes| bytes == from.to_le_bytes()).unwrap();
        damaged[at..at + 4].copy_from_slice(&odd.to_le_bytes());
        assert!(Trie::from_bytes(&damaged, FileOptions::default().with_verify(true)).is_err());
        let opened = Trie::from_bytes(&damaged, FileOptions::default()).unwrap();
        let mut sampler = sampler(&opened, &[9], Mode::Greedy);
        let mut row = [5.0; VOCABULARY];
        sampler.mask(&mut row).unwrap();
        assert!(row.iter().enumerate().all(|(token, &logit)| logit == f32::NEG_INFINITY || [1, 2].contains(&token)));
        assert!(!row.iter().any(|logit| logit.is_nan()));
        assert!([1, 2].contains(&sampler.sample(&[5.0; VOCABULARY]).unwrap().get()));
        assert!(matches!(opened.select(|_| true), Err(SetError::Damaged(_))));
    }
}
