//! Batches step by step: beams, requests that come and go, draws, memory.

use crate::batch::kinds::{rules, set};
use crate::common::{id, ids};
use std::sync::Arc;
use trie_core::{
    After, Allowed, Batch, BatchMask, DrawSettings, Mode, Rows, RowsMut, SamplerOptions, ScoreMode, Scratch, SpanRules,
    TokenId,
};

fn allowed(batch: &Batch) -> Vec<Vec<u32>> {
    let mut scratch = Scratch::default();
    let of = |row| batch.allowed(row, &mut scratch).unwrap().iter().map(TokenId::get).collect();
    (0..batch.len()).map(of).collect()
}

#[test]
fn beams_are_repeated_left_out_and_become_more() {
    let table = set(&[("p", &[10, 30]), ("q", &[10, 40]), ("r", &[20, 50])]).with_end_tokens(ids(&[60]));
    let rules = rules(table).with_after(After::Stop).unwrap();
    let mut batch = Batch::new(Arc::new(rules), 2, SamplerOptions::default()).unwrap();
    batch.accept(&ids(&[10, 20])).unwrap();
    batch.reorder(&[1, 1, 0]).unwrap();
    assert_eq!(allowed(&batch), [vec![50], vec![50], vec![30, 40]]);
    batch.accept(&ids(&[50, 50, 30])).unwrap();
    assert_eq!(allowed(&batch), [[60], [60], [60]]);
    assert!(batch.leaf(0).unwrap().is_none(), "the end token is missing");
    batch.accept(&ids(&[60, 60, 60])).unwrap();
    batch.accept(&ids(&[60, 60, 60])).unwrap();
    assert!(batch.finished_rows().all(|finished| finished));
    let name = |row| batch.leaf(row).unwrap().unwrap().name.unwrap();
    assert_eq!([name(0), name(1), name(2)], ["r", "r", "p"], "values are kept");
    // Back to before the beams were reordered: each on the way it came.
    batch.rollback(4).unwrap();
    assert_eq!(allowed(&batch), [[10, 20], [10, 20], [10, 20]]);
    batch.reorder(&[]).unwrap();
    assert_eq!((batch.len(), batch.finished_rows().count()), (0, 0));
    let none = Rows::<f32>::new(&[], 0, 70, 70).unwrap();
    assert!(batch.top_children(none, 3, None, ScoreMode::Model).unwrap().is_empty());
    batch.select(none, &mut []).unwrap();
    batch.apply(RowsMut::<f32>::new(&mut [], 0, 70, 70).unwrap()).unwrap();
    batch.accept(&[]).unwrap();
}

#[test]
fn requests_come_and_go() {
    let mut batch = Batch::of_rows([None, None], 70, SamplerOptions::default()).unwrap();
    for token in 0..60 {
        let rules = Arc::new(rules(set(&[("x", &[token])])));
        batch.assign(1, Some(rules.clone())).unwrap();
        assert_eq!(allowed(&batch)[1], [token]);
        let mut scratch = Scratch::default();
        assert_eq!(batch.allowed(0, &mut scratch).unwrap(), Allowed::All);
        // Rules that nobody follows are let go of.
        batch.assign(1, None).unwrap();
        assert_eq!(Arc::strong_count(&rules), 1);
    }
}

#[test]
fn copies_of_a_row_do_not_draw_alike() {
    let many: Vec<(String, Vec<u32>)> = (0..60).map(|token| (token.to_string(), vec![token])).collect();
    let many: Vec<(&str, &[u32])> = many.iter().map(|(name, tokens)| (name.as_str(), tokens.as_slice())).collect();
    let options = |seed| SamplerOptions { mode: Mode::Sampled, draw: DrawSettings::default(), seed: Some(seed) };
    let mut batch = Batch::new(Arc::new(rules(set(&many))), 1, options(5)).unwrap();
    batch.reorder(&[0; 40]).unwrap();
    let logits = [0.0; 70];
    let rows = Rows::new(&logits, 40, 70, 0).unwrap();
    let draw = |batch: &mut Batch| {
        let mut chosen = vec![id(0); 40];
        batch.select(rows, &mut chosen).unwrap();
        chosen
    };
    let first = draw(&mut batch);
    let different: std::collections::BTreeSet<_> = first.iter().collect();
    assert!(different.len() > 15, "{first:?}");
    assert_ne!(first, draw(&mut batch));
    batch.reset();
    assert_eq!(first, draw(&mut batch), "a seed gives the same draws again");
    assert_eq!(batch.seed(0), 5, "a batch of one row draws as a sampler does");
    let mut neighbour = Batch::new(Arc::new(rules(set(&many))), 40, options(6)).unwrap();
    let other = draw(&mut neighbour);
    assert!((0..39).filter(|&row| other[row] == first[row + 1]).count() < 8, "neighbouring seeds share no rows");
}

#[test]
fn many_rows_on_many_threads() {
    // Enough memory for several threads, and rows in every state.
    let (rows, n_vocab) = (65, 40_000);
    let wide: Vec<Vec<u32>> = (0..30_000).map(|token| vec![token, 5, 6]).collect();
    let wide: Vec<(&str, &[u32])> = wide.iter().map(|tokens| ("", tokens.as_slice())).collect();
    let rules = Arc::new(SpanRules::for_constraint(set(&wide), n_vocab).unwrap());
    let of = (0..rows).map(|row| (row % 7 != 3).then(|| rules.clone()));
    let mut batch = Batch::of_rows(of, n_vocab, SamplerOptions::default()).unwrap();
    for row in (0..rows).step_by(5) {
        batch.accept_in(row, &ids(&[row as u32, 5])).unwrap();
    }
    let logits: Vec<f32> =
        (0..rows * n_vocab).map(|at| ((at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44) as f32).collect();
    let view = Rows::new(&logits, rows, n_vocab, n_vocab).unwrap();
    let (mut masked, words) = (logits.clone(), n_vocab.div_ceil(32));
    let mut bits = vec![0; rows * words];
    batch.apply(RowsMut::new(&mut masked, rows, n_vocab, n_vocab).unwrap()).unwrap();
    batch.fill_bitmask(RowsMut::new(&mut bits, rows, words, words).unwrap()).unwrap();
    let mut chosen = vec![id(0); rows];
    batch.select(view, &mut chosen).unwrap();
    let best = batch.top_children(view, 10, None, ScoreMode::Model).unwrap();
    let mut mask = BatchMask::default();
    batch.update(&mut mask).unwrap();
    assert_eq!(mask.words(), bits);
    let mut one = Vec::new();
    for row in 0..rows {
        let mut single = batch.clone();
        single.reorder(&[row]).unwrap();
        let range = row * n_vocab..(row + 1) * n_vocab;
        let view = Rows::new(&logits[range.clone()], 1, n_vocab, n_vocab).unwrap();
        let mut token = [id(0)];
        single.select(view, &mut token).unwrap();
        assert_eq!(token[0], chosen[row]);
        let mut want = logits[range.clone()].to_vec();
        single.apply(RowsMut::new(&mut want, 1, n_vocab, n_vocab).unwrap()).unwrap();
        assert!(want == masked[range]);
        let set = (0..n_vocab).filter(|at| bits[row * words + at / 32] >> (at % 32) & 1 == 1).count();
        assert_eq!(set, want.iter().filter(|&&logit| logit > f32::NEG_INFINITY).count());
        let best = single.top_children(view, 10, None, ScoreMode::Model).unwrap();
        one.extend(best.into_iter().map(|child| trie_core::Child { parent: row, ..child }));
    }
    one.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap().then((a.parent, a.token).cmp(&(b.parent, b.token))));
    one.truncate(10);
    assert_eq!(best, one);
}

#[test]
fn steps_allocate_nothing() {
    let rules = Arc::new(rules(set(&[("a", &[1, 2, 3]), ("b", &[1, 3, 4]), ("c", &[9])])));
    let mut batch = Batch::new(rules, 8, SamplerOptions::default()).unwrap();
    let logits = [0.0; 8 * 70];
    let view = Rows::new(&logits, 8, 70, 70).unwrap();
    let mut mask = BatchMask::default();
    let mut chosen = [id(0); 8];
    let mut step = |batch: &mut Batch| {
        batch.update(&mut mask).unwrap();
        batch.select(view, &mut chosen).unwrap();
        batch.accept(&chosen).unwrap();
        batch.reorder(&[7, 0, 1, 2, 3, 4, 5, 5]).unwrap();
    };
    step(&mut batch);
    let counted = allocation_counter::measure(|| step(&mut batch));
    // The list of parts for the threads, and of what they say: two a call, whatever the rows.
    assert!(counted.count_total <= 2, "{counted:?}");
}
