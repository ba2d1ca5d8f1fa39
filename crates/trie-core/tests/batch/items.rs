//! Rows that write item after item: against sets that are made again without what was written.

use crate::batch::kinds::{Numbers, rules, set};
use crate::common::multiples::{Multiples, VOCABULARY};
use crate::common::{Naive, id, ids};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use trie_core::{
    After, AnyConstraint, Batch, BatchError, LeafId, LeafSet, NoRepeat, SamplerOptions, Scratch, SpanRules, Status,
    TokenId, Trie,
};

/// What a row may still write, and what it has written.
#[derive(Clone)]
struct Twin {
    denied: BTreeSet<Vec<u32>>,
    written: Vec<Vec<u32>>,
    walked: Vec<u32>,
}

fn legal(batch: &Batch, row: usize) -> Vec<u32> {
    batch.allowed(row, &mut Scratch::default()).unwrap().iter().map(TokenId::get).collect()
}

fn batch_of(trie: &Trie, rows: usize) -> Batch {
    let rules = rules(trie.clone()).with_end_tokens(ids(&[60])).unwrap().with_after(After::Stop).unwrap();
    Batch::new(Arc::new(rules), rows, SamplerOptions::default()).unwrap()
}

proptest! {
    #[test]
    fn nothing_is_written_twice(
        rows in prop::collection::vec(prop::collection::vec(0..4u32, 1..4), 2..12), count in 1..5usize,
        banned in any::<u32>(), repeat in prop_oneof![
            Just(None), Just(Some(NoRepeat::Row)), Just(Some(NoRepeat::Siblings))
        ],
        ends in any::<u32>(), seed in any::<u64>(),
    ) {
        let items: BTreeSet<Vec<u32>> = rows.into_iter().collect();
        let trie = Naive { rows: items.iter().map(|item| (String::new(), item.clone())).collect() }.trie();
        // With a filter from the beginning, or without.
        let banned = (banned % 3 == 0 && trie.len() > 1).then_some(LeafId::new(banned % trie.len() as u32));
        let mut batch = match banned {
            None => batch_of(&trie, count),
            Some(leaf) => {
                let left = trie.filter(&!LeafSet::from_leaves(trie.len(), [leaf]).unwrap()).unwrap();
                let rules = rules(left).with_end_tokens(ids(&[60])).unwrap().with_after(After::Stop).unwrap();
                Batch::new(Arc::new(rules), count, SamplerOptions::default()).unwrap()
            }
        };
        let tokens = |leaf: LeafId| trie.leaf(leaf).unwrap().tokens.iter().map(|token| token.get()).collect::<Vec<_>>();
        let first: BTreeSet<Vec<u32>> = banned.map(tokens).into_iter().collect();
        let mut twins = vec![Twin { denied: first.clone(), written: Vec::new(), walked: Vec::new() }; count];
        let mut numbers = Numbers(seed);
        for _ in 0..40 {
            match numbers.below(6) {
                0 => {
                    let parents: Vec<usize> = (0..=numbers.below(5)).map(|_| numbers.below(twins.len())).collect();
                    batch.reorder(&parents).unwrap();
                    twins = parents.iter().map(|&parent| twins[parent].clone()).collect();
                }
                1 if numbers.below(6) == 0 => {
                    batch.reset();
                    let fresh = Twin { denied: first.clone(), written: Vec::new(), walked: Vec::new() };
                    twins.fill(fresh);
                }
                1 | 2 => {
                    let cut = if ends % 2 == 0 { twins.len() } else { numbers.below(twins.len() + 1) };
                    let groups = [cut, twins.len()];
                    let over: Vec<bool> = batch.finished_rows().collect();
                    let mut next = twins.clone();
                    for (from, to) in [(0, cut), (cut, twins.len())] {
                        let own = |row: usize| {
                            let item = over[row].then(|| twins[row].walked.clone());
                            twins[row].written.iter().cloned().chain(item).collect::<BTreeSet<_>>()
                        };
                        let union: BTreeSet<Vec<u32>> = (from..to).flat_map(own).collect();
                        for row in (from..to).filter(|&row| over[row]) {
                            match repeat {
                                None => {}
                                Some(NoRepeat::Siblings) if row > from => next[row].denied = &first | &union,
                                _ => next[row].denied = &first | &own(row),
                            }
                            let walked = std::mem::take(&mut next[row].walked);
                            next[row].written.push(walked);
                        }
                    }
                    let none_left = |(twin, &over): (&Twin, &bool)| over && twin.denied.is_superset(&items);
                    let starved = next.iter().zip(&over).position(none_left);
                    match batch.next_item_of(repeat, &groups) {
                        Ok(begun) => {
                            prop_assert_eq!((begun, starved), (over.iter().filter(|&&over| over).count(), None));
                            twins = next;
                        }
                        Err(error) => {
                            let left = BatchError::NothingLeft { row: starved.unwrap(), leaves: items.len() };
                            prop_assert_eq!(error, left);
                            prop_assert_eq!(batch.finished_rows().collect::<Vec<_>>(), over, "no row has changed");
                        }
                    }
                }
                _ => {
                    let row = numbers.below(twins.len());
                    let legal = legal(&batch, row);
                    let token = legal[numbers.below(legal.len())];
                    batch.accept_in(row, &[id(token)]).unwrap();
                    if token != 60 {
                        twins[row].walked.push(token);
                    }
                }
            }
            for (row, twin) in twins.iter().enumerate() {
                let mut want: BTreeSet<u32> = BTreeSet::new();
                let left = || items.difference(&twin.denied);
                if batch.state(row).unwrap().status() == Status::Active {
                    let below = |item: &&Vec<u32>| item.len() > twin.walked.len() && item.starts_with(&twin.walked);
                    want.extend(left().filter(below).map(|item| item[twin.walked.len()]));
                }
                want.extend(left().any(|item| *item == twin.walked).then_some(60));
                prop_assert_eq!(BTreeSet::from_iter(legal(&batch, row)), want, "row {} after {:?}", row, &twin.walked);
                let written: Vec<Vec<u32>> = batch.items(row).unwrap().iter().map(|&leaf| tokens(leaf)).collect();
                prop_assert_eq!(&written, &twin.written);
            }
        }
    }
}

/// The first row is held back by its own items only, the others by those of all.
#[test]
fn siblings_receive_the_union() {
    let trie = set(&[("a", &[1, 2, 3]), ("b", &[4, 5, 6]), ("c", &[7, 8, 9])]);
    let rules = Arc::new(rules(trie.clone()));
    let mut batch = Batch::new(rules, 2, SamplerOptions::default()).unwrap();
    for tokens in [[1, 4], [2, 5], [3, 6]] {
        batch.accept(&ids(&tokens)).unwrap();
    }
    assert_eq!(batch.next_item(Some(NoRepeat::Siblings)).unwrap(), 2);
    assert_eq!([legal(&batch, 0), legal(&batch, 1)], [vec![4, 7], vec![7]]);
    // Each carries its own set.
    batch.reorder(&[1, 0, 1]).unwrap();
    assert_eq!([0, 1, 2].map(|row| legal(&batch, row)), [vec![7], vec![4, 7], vec![7]]);
    batch.reset();
    assert_eq!([0, 1, 2].map(|row| legal(&batch, row)), [[1, 4, 7]; 3].map(Vec::from));
}

/// A row that no place has any more holds nobody back.
#[test]
fn what_nobody_has_written_any_more_is_free() {
    let mut batch = batch_of(&set(&[("one", &[1]), ("two", &[2]), ("three", &[3])]), 2);
    batch.accept(&ids(&[1, 2])).unwrap();
    batch.accept(&ids(&[60, 60])).unwrap();
    batch.next_item(Some(NoRepeat::Siblings)).unwrap();
    batch.reorder(&[1, 1]).unwrap();
    batch.accept(&ids(&[3, 3])).unwrap();
    batch.accept(&ids(&[60, 60])).unwrap();
    assert_eq!(batch.next_item(Some(NoRepeat::Siblings)).unwrap(), 2);
    assert_eq!([legal(&batch, 0), legal(&batch, 1)], [[1], [1]]);
}

#[test]
fn rows_without_items() {
    let numbers = rules(AnyConstraint::new(Multiples::new(7, 1)));
    let rows = [Some(Arc::new(rules(set(&[("a", &[1])])))), Some(Arc::new(numbers)), None];
    let mut batch = Batch::of_rows(rows, VOCABULARY, SamplerOptions::default()).unwrap();
    batch.accept(&ids(&[1, 7, 3])).unwrap();
    let error = batch.next_item(Some(NoRepeat::Row)).unwrap_err();
    assert!(matches!(error, BatchError::NothingLeft { row: 0, leaves: 1 }), "{error}");
    batch.assign(0, None).unwrap();
    let error = batch.next_item(Some(NoRepeat::Row)).unwrap_err();
    assert!(matches!(error, BatchError::NoItems { row: 1, .. }), "{error}");
    assert_eq!(batch.next_item(None).unwrap(), 1, "without it, every finished row begins again");
    assert_eq!(legal(&batch, 1).len(), 10);
    assert!(matches!(batch.next_item_of(None, &[1]), Err(BatchError::Groups { .. })));
    let _: Arc<SpanRules> = batch.rules(0).unwrap().clone();
}
