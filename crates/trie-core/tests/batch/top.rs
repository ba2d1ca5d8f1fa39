//! The best continuations, against every token of every masked row.

use crate::batch::kinds::{Numbers, batch, rules, set};
use crate::common::multiples::VOCABULARY;
use crate::common::{id, ids};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{
    Allowed, Batch, Child, Children, Rows, RowsMut, SamplerOptions, ScoreMode, Scratch, Status, TokenId, log_sum_exp,
};

const MODES: [ScoreMode; 3] = [ScoreMode::Model, ScoreMode::Renormalised, ScoreMode::AsGiven];

fn clean(logit: f32) -> f64 {
    if logit.is_nan() { f64::NEG_INFINITY } else { f64::from(logit) }
}

/// What a token adds, by the definition: its logit, without the log of the sum of all that compete.
fn adds(logit: f32, competing: &[f32]) -> f64 {
    match (clean(logit), log_sum_exp(competing)) {
        (f64::NEG_INFINITY, _) => f64::NEG_INFINITY,
        (logit, f64::INFINITY) => {
            if logit == f64::INFINITY {
                0.0
            } else {
                f64::NEG_INFINITY
            }
        }
        (logit, sum) => (logit - sum).min(0.0),
    }
}

/// Masks a copy of the rows, lists all that is left of it, sorts, and cuts.
fn naive(batch: &mut Batch, logits: &[f32], scores: &[f64], k: usize, mode: ScoreMode) -> Vec<Child> {
    let mut masked = logits.to_vec();
    let rows = batch.len();
    let starved_before = batch.starved_count();
    batch.apply(RowsMut::new(&mut masked, rows, VOCABULARY, VOCABULARY).unwrap()).unwrap();
    let mut all = Vec::new();
    for parent in 0..rows {
        let mut scratch = Scratch::default();
        let allowed = batch.allowed(parent, &mut scratch).unwrap();
        let (before, after) =
            (&logits[parent * VOCABULARY..][..VOCABULARY], &masked[parent * VOCABULARY..][..VOCABULARY]);
        // Where everything may come, only what goes on counts.
        let legal: Vec<TokenId> = match allowed {
            Allowed::Only { .. } => TokenId::all(VOCABULARY).filter(|t| after[t.index()] > f32::NEG_INFINITY).collect(),
            _ => allowed.iter().collect(),
        };
        if batch.state(parent).unwrap().status() == Status::Complete || scores[parent] == f64::NEG_INFINITY {
            continue;
        }
        let competing: Vec<f32> = allowed.iter().map(|token| before[token.index()]).collect();
        let dead = competing.iter().all(|&logit| clean(logit) == f64::NEG_INFINITY);
        for token in legal {
            let logit = before[token.index()];
            let adds = match mode {
                ScoreMode::Model => adds(logit, before),
                // Where everything may come, everything competes.
                ScoreMode::Renormalised if matches!(allowed, Allowed::Open { .. }) => adds(logit, before),
                ScoreMode::Renormalised => adds(logit, &competing),
                _ => clean(logit),
            };
            let stands_for_all = dead && Some(token) == allowed.first();
            if adds > f64::NEG_INFINITY || stands_for_all {
                all.push(Child { parent, token, score: scores[parent] + adds });
            }
        }
    }
    assert!(batch.starved_count() >= starved_before);
    all.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap().then((a.parent, a.token).cmp(&(b.parent, b.token))));
    all.truncate(k);
    all
}

proptest! {
    #[test]
    fn the_best_of_the_masked_rows(of in batch(), seed in any::<u64>()) {
        let mut batch = Batch::of_rows(of, VOCABULARY, SamplerOptions::default()).unwrap();
        let mut numbers = Numbers(seed);
        for _ in 0..6 {
            let (rows, k) = (batch.len(), numbers.below(12));
            let logits = numbers.logits(rows * VOCABULARY);
            let some = [f64::NEG_INFINITY, 0.0, -1.5, -1.5, -3.25];
            let scores: Vec<f64> = (0..rows).map(|_| some[numbers.below(some.len())]).collect();
            let view = Rows::new(&logits, rows, VOCABULARY, VOCABULARY).unwrap();
            for mode in MODES {
                let got = batch.top_children(view, k, Some(&scores), mode).unwrap();
                let want = naive(&mut batch, &logits, &scores, k, mode);
                prop_assert_eq!(&got, &want, "{:?}", mode);
                // Groups are batches of their own.
                let cut = numbers.below(rows + 1);
                let got = batch.top_children_of(view, k, Some(&scores), mode, &[cut, cut, rows]).unwrap();
                let part = |from: usize, to: usize| {
                    let dead: Vec<f64> = (0..rows)
                        .map(|row| if (from..to).contains(&row) { scores[row] } else { f64::NEG_INFINITY })
                        .collect();
                    naive(&mut batch.clone(), &logits, &dead, k, mode)
                };
                prop_assert_eq!(got, [part(0, cut), part(cut, rows)].concat());
            }
            lists(&mut batch)?;
            let mut chosen = vec![TokenId::default(); rows];
            batch.select(view, &mut chosen).unwrap();
            batch.accept(&chosen).unwrap();
            let parents: Vec<usize> = (0..=numbers.below(6)).map(|_| numbers.below(rows)).collect();
            batch.reorder(&parents).unwrap();
        }
    }
}

/// The ragged lists hold what may come in each row, and the states are those that the rows would be in.
fn lists(batch: &mut Batch) -> Result<(), TestCaseError> {
    let mut children = Children::default();
    batch.children(&mut children).unwrap();
    prop_assert_eq!(children.offsets().len(), batch.len() + 1);
    prop_assert_eq!(children.offsets().last(), Some(&children.tokens().len()));
    for row in 0..batch.len() {
        let mut scratch = Scratch::default();
        let range = children.offsets()[row]..children.offsets()[row + 1];
        let legal: Vec<TokenId> = batch.allowed(row, &mut scratch).unwrap().iter().collect();
        prop_assert_eq!(&children.tokens()[range.clone()], &legal);
        for entry in range {
            let mut after = batch.clone();
            after.accept_in(row, &children.tokens()[entry..=entry]).unwrap();
            prop_assert_eq!(&children.next()[entry], after.state(row).unwrap());
        }
    }
    Ok(())
}

#[test]
fn ties_go_to_the_row_and_then_to_the_token() {
    let items = rules(set(&[("a", &[1]), ("b", &[2]), ("c", &[3])]));
    let mut batch = Batch::new(Arc::new(items), 3, SamplerOptions::default()).unwrap();
    let logits = [0.5; 3 * VOCABULARY];
    let best = |batch: &mut Batch, k| {
        let rows = Rows::new(&logits, 3, VOCABULARY, VOCABULARY).unwrap();
        let best = batch.top_children(rows, k, None, ScoreMode::Renormalised).unwrap();
        best.into_iter().map(|child| (child.parent, child.token.get())).collect::<Vec<_>>()
    };
    assert_eq!(best(&mut batch, 4), [(0, 1), (0, 2), (0, 3), (1, 1)]);
    assert_eq!(best(&mut batch, 100).len(), 9, "no fillers");
    assert_eq!(best(&mut batch, usize::MAX).len(), 9);
    assert!(best(&mut batch, 0).is_empty());
    batch.accept_in(0, &ids(&[1])).unwrap();
    assert_eq!(best(&mut batch, 1), [(1, 1)], "a finished row has no children");
}

#[test]
fn shares_are_those_of_double_precision() {
    let items = rules(set(&[("a", &[1]), ("b", &[2]), ("c", &[60])]));
    let mut batch = Batch::new(Arc::new(items), 1, SamplerOptions::default()).unwrap();
    let logits: Vec<f32> = (0..VOCABULARY).map(|token| (token as f32 * 0.37).sin() * 4.0).collect();
    let rows = Rows::new(&logits, 1, VOCABULARY, VOCABULARY).unwrap();
    let legal = [1usize, 2, 60];
    let all: Vec<usize> = (0..VOCABULARY).collect();
    for (mode, competing) in [(ScoreMode::Model, &all[..]), (ScoreMode::Renormalised, &legal[..])] {
        let sum: f64 = competing.iter().map(|&token| f64::from(logits[token]).exp()).sum();
        for child in batch.top_children(rows, 3, Some(&[-2.0]), mode).unwrap() {
            let want = f64::from(logits[child.token.index()]) - sum.ln() - 2.0;
            assert!((child.score - want).abs() < 1e-6, "{mode:?}: {} is not {want}", child.score);
        }
    }
    assert_eq!(
        batch.top_children(rows, 1, None, ScoreMode::AsGiven).unwrap()[0].score,
        f64::from(logits[2].max(logits[60]).max(logits[1]))
    );
    assert_eq!(id(2), batch.top_children(rows, 1, None, ScoreMode::Model).unwrap()[0].token);
}
