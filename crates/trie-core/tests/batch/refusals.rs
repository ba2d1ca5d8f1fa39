//! What a batch refuses, and that nothing has changed then.

use crate::batch::kinds::{rules, set};
use crate::common::multiples::VOCABULARY;
use crate::common::{id, ids};
use std::sync::Arc;
use trie_core::{Batch, BatchError, DrawSettings, Rows, RowsMut, SamplerOptions, ScoreMode, SpanRules, TokenId};

fn batch() -> Batch {
    let rules = Arc::new(rules(set(&[("a", &[1, 2]), ("b", &[1, 3]), ("c", &[9])])));
    let mut batch = Batch::of_rows([Some(rules.clone()), None, Some(rules)], VOCABULARY, SamplerOptions::default());
    batch.as_mut().unwrap().accept(&ids(&[1, 1, 1])).unwrap();
    batch.unwrap()
}

/// Everything that a refusal must leave as it was.
fn snapshot(batch: &Batch) -> String {
    let states: Vec<_> = (0..batch.len()).map(|row| batch.state(row).unwrap()).collect();
    format!("{states:?} {} {:?}", batch.starved_count(), batch.finished_rows().collect::<Vec<_>>())
}

fn refuses(what: impl FnOnce(&mut Batch) -> BatchError) -> String {
    let mut batch = batch();
    let before = snapshot(&batch);
    let error = what(&mut batch);
    assert_eq!(snapshot(&batch), before, "{error}");
    // And rollback finds its way.
    batch.rollback(1).unwrap();
    batch.accept(&ids(&[1, 1, 1])).unwrap();
    assert_eq!(snapshot(&batch), before, "{error}");
    error.to_string()
}

#[test]
fn a_token_that_one_row_does_not_allow() {
    let error = refuses(|batch| {
        let error = batch.accept(&ids(&[2, 50, 9])).unwrap_err();
        assert_eq!((error.row(), error.token()), (Some(2), Some(id(9))));
        error
    });
    assert_eq!(error, "row 2: token 9 at position 1 is not allowed there: only [2, 3] may follow");
    let error = refuses(|batch| batch.accept(&ids(&[2, 70, 3])).unwrap_err());
    assert_eq!(error, "row 1: token id 70 is outside the vocabulary of 70 tokens");
    let error = refuses(|batch| batch.accept_in(0, &ids(&[2, 71])).unwrap_err());
    assert!(error.starts_with("row 0: token id 71"), "a complete row is free: {error}");
}

#[test]
fn counts_that_do_not_fit() {
    let error = refuses(|batch| batch.accept(&ids(&[2, 2])).unwrap_err());
    assert_eq!(error, "2 tokens for a batch of 3 rows: there must be one a row");
    let row = [0.0; 4 * VOCABULARY];
    let rows = |count, width| Rows::new(&row, count, width, width).unwrap();
    let mut out = [id(7); 3];
    refuses(|batch| batch.select(rows(4, VOCABULARY), &mut out).unwrap_err());
    let error = refuses(|batch| batch.select(rows(3, VOCABULARY - 1), &mut out).unwrap_err());
    assert_eq!(error, "rows of logits are 69 entries wide: a vocabulary of 70 tokens needs at least 70");
    refuses(|batch| batch.select(rows(3, VOCABULARY), &mut [TokenId::default(); 2]).unwrap_err());
    assert_eq!(out, [id(7); 3], "nothing was written");
    let mut words = [77; 20];
    refuses(|batch| batch.fill_bitmask(RowsMut::new(&mut words, 3, 2, 2).unwrap()).unwrap_err());
    refuses(|batch| batch.fill_bitmask(RowsMut::new(&mut words, 2, 3, 3).unwrap()).unwrap_err());
    refuses(|batch| batch.verify(0, &ids(&[2]), RowsMut::new(&mut words, 1, 3, 3).unwrap()).unwrap_err());
    refuses(|batch| batch.verify(3, &ids(&[2]), RowsMut::new(&mut words, 2, 3, 3).unwrap()).unwrap_err());
    assert_eq!(words, [77; 20]);
    let mut logits = [1.0; 3 * VOCABULARY];
    refuses(|batch| batch.apply(RowsMut::new(&mut logits, 2, VOCABULARY, VOCABULARY).unwrap()).unwrap_err());
    assert_eq!(logits, [1.0; 3 * VOCABULARY]);
}

#[test]
fn rows_that_are_none() {
    let error = refuses(|batch| batch.reorder(&[0, 3]).unwrap_err());
    assert_eq!(error, "parent 3 is out of range: the batch has 3 rows, numbered from 0");
    refuses(|batch| batch.leaf(3).unwrap_err());
    refuses(|batch| batch.assign(3, None).unwrap_err());
    refuses(|batch| batch.rollback_in(9, 0).unwrap_err());
    let error = refuses(|batch| batch.rollback(2).unwrap_err());
    assert_eq!(error, "row 0: cannot roll back 2 tokens: 1 were accepted since the span was armed");
}

#[test]
fn scores_and_groups_that_are_none() {
    let logits = [0.0; 3 * VOCABULARY];
    let rows = Rows::new(&logits, 3, VOCABULARY, VOCABULARY).unwrap();
    let top = |batch: &mut Batch, scores: &[f64], ends: &[usize]| {
        batch.top_children_of(rows, 2, Some(scores), ScoreMode::Model, ends).unwrap_err()
    };
    assert_eq!(
        refuses(|b| top(b, &[0.0, f64::NAN, 0.0], &[3])),
        "row 1: its score is NaN: it must be a number or -inf"
    );
    refuses(|b| top(b, &[0.0, 0.0, f64::INFINITY], &[3]));
    refuses(|b| top(b, &[0.0; 2], &[3]));
    for ends in [&[][..], &[2], &[4], &[2, 1, 3], &[3, 4]] {
        let error = refuses(|b| top(b, &[0.0; 3], ends));
        assert!(error.contains("ends must ascend up to the 3 rows"), "{error}");
    }
}

#[test]
fn rules_that_do_not_fit_together() {
    let other = Arc::new(SpanRules::for_constraint(set(&[("a", &[1])]), VOCABULARY + 1).unwrap());
    let error = refuses(|batch| batch.push(Some(other.clone())).unwrap_err());
    assert_eq!(error, "row 3: its rules are for a vocabulary of 71 tokens, those of the batch for 70");
    refuses(|batch| batch.assign(0, Some(other.clone())).unwrap_err());
    assert!(Batch::of_rows([None, Some(other)], VOCABULARY, SamplerOptions::default()).is_err());
    assert!(Batch::of_rows([], 0, SamplerOptions::default()).is_err());
    let draw = DrawSettings { top_p: 1.5, ..DrawSettings::default() };
    let options = SamplerOptions { draw, ..SamplerOptions::default() };
    assert!(matches!(Batch::of_rows([], 5, options), Err(BatchError::Draw(_))));
}
