//! Batches over a set that is damaged and that nobody verified.

use crate::common::{Naive, id, ids};
use std::sync::Arc;
use trie_core::{Batch, BatchError, Rows, RowsMut, SamplerOptions, ScoreMode, SpanError, SpanRules, Trie};
use trie_formats::{FileOptions, TrieFile as _};

const VOCABULARY: usize = 70;

fn set(rows: &[(&str, &[u32])]) -> Trie {
    Naive { rows: rows.iter().map(|&(name, tokens)| (name.to_owned(), tokens.to_vec())).collect() }.trie()
}

/// A file with a damaged leaf table: after its only token nothing follows, and no leaf is known there.
fn damaged() -> Option<Trie> {
    let mut bytes = Vec::new();
    set(&[("deep", &[1, 2, 3]), ("b", &[1, 2, 4])]).write_to(&mut bytes, None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.ttrie");
    (64..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))).find_map(|(at, bit)| {
        let mut forged = bytes.clone();
        forged[at] ^= 1 << bit;
        std::fs::write(&path, &forged).unwrap();
        let trie = Trie::open(&path, FileOptions::default()).ok()?;
        let mut batch =
            Batch::new(Arc::new(SpanRules::for_constraint(&trie, VOCABULARY).ok()?), 1, SamplerOptions::default())
                .unwrap();
        batch.accept(&ids(&[1])).ok()?;
        let mut chosen = [id(0)];
        let row = [0.0; VOCABULARY];
        let stuck = batch.select(Rows::new(&row, 1, VOCABULARY, VOCABULARY).unwrap(), &mut chosen).is_err();
        stuck.then_some(trie)
    })
}

#[test]
fn a_damaged_set_stops_the_whole_call() {
    let Some(trie) = damaged() else { panic!("no flipped bit takes the children of a node away") };
    let good = Arc::new(SpanRules::for_constraint(set(&[("a", &[1, 2])]), VOCABULARY).unwrap());
    let bad = Arc::new(SpanRules::for_constraint(&trie, VOCABULARY).unwrap());
    let mut batch = Batch::of_rows([Some(good), Some(bad)], VOCABULARY, SamplerOptions::default()).unwrap();
    batch.accept(&ids(&[1, 1])).unwrap();
    let mut logits = [1.0; 2 * VOCABULARY];
    let mut words = [77; 6];
    let mut chosen = [id(7); 2];
    let shape = |data| Rows::new(data, 2, VOCABULARY, VOCABULARY).unwrap();
    let errors = [
        batch.select(shape(&logits), &mut chosen).unwrap_err(),
        batch.top_children(shape(&logits), 2, None, ScoreMode::Model).unwrap_err(),
        batch.apply(RowsMut::new(&mut logits, 2, VOCABULARY, VOCABULARY).unwrap()).unwrap_err(),
        batch.fill_bitmask(RowsMut::new(&mut words, 2, 3, 3).unwrap()).unwrap_err(),
        batch.update(&mut trie_core::BatchMask::default()).unwrap_err(),
        batch.children(&mut trie_core::Children::default()).unwrap_err(),
        batch.verify(1, &[], RowsMut::new(&mut words[..3], 1, 3, 3).unwrap()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error, BatchError::Refused { row: 1, source: SpanError::Damaged { path: String::new(), depth: 1 } });
    }
    assert_eq!((logits, words, chosen), ([1.0; 2 * VOCABULARY], [77; 6], [id(7); 2]), "nothing was written");
}
