//! Set operations against the naive twin: ordered maps from sequences to names.

use crate::common::{Naive, ids};
use proptest::prelude::*;
use std::collections::BTreeMap;
use trie_core::{SetError, SetOperation, TokenId, Trie};

type Named = BTreeMap<Vec<u32>, String>;

fn sets() -> impl Strategy<Value = Naive> {
    let tokens = prop::collection::vec(0..3u32, 1..5);
    prop::collection::vec(("[a-d]{1,2}", tokens), 1..40).prop_map(|rows| Naive { rows })
}

fn named(naive: &Naive) -> Named {
    naive.leaves().into_iter().map(|(tokens, (name, _))| (tokens, name)).collect()
}

fn trie(leaves: &Named) -> Trie {
    Naive { rows: leaves.iter().map(|(tokens, name)| (name.clone(), tokens.clone())).collect() }.trie()
}

fn unnamed(naive: &Naive) -> Trie {
    let mut builder = Trie::builder();
    for (_, tokens) in &naive.rows {
        builder.push(None, &ids(tokens));
    }
    builder.build().unwrap()
}

/// The same, the plain way.
fn combined(operation: SetOperation, left: &Named, right: &Named) -> Named {
    let mut all = left.clone();
    for (tokens, name) in right {
        let kept = all.entry(tokens.clone()).or_insert_with(|| name.clone());
        *kept = kept.clone().min(name.clone());
    }
    all.retain(|tokens, _| {
        let (left, right) = (left.contains_key(tokens), right.contains_key(tokens));
        match operation {
            SetOperation::Union => true,
            SetOperation::Intersection => left && right,
            SetOperation::Difference => left && !right,
            SetOperation::SymmetricDifference => left != right,
        }
    });
    all
}

const OPERATIONS: [SetOperation; 4] =
    [SetOperation::Union, SetOperation::Intersection, SetOperation::Difference, SetOperation::SymmetricDifference];

proptest! {
    #[test]
    fn leaves_by_their_names(naive in sets(), other in "[a-e]{0,3}") {
        let trie = naive.trie();
        for name in naive.rows.iter().map(|(name, _)| name).chain([&other]) {
            let named: Vec<_> = trie.leaves_named(name).collect();
            let has_it = trie.leaves().filter(|leaf| leaf.name.as_ref() == Some(name));
            let plain: Vec<_> = has_it.map(|leaf| leaf.index).collect();
            prop_assert_eq!(named, plain);
        }
        prop_assert_eq!(unnamed(&naive).leaves_named("a").count(), 0);
        prop_assert_eq!(&trie, &naive.trie(), "an index is no content");
    }

    #[test]
    fn operations_agree(left in sets(), right in sets()) {
        let (a, b) = (left.trie(), right.trie());
        let (x, y) = (named(&left), named(&right));
        for operation in OPERATIONS {
            let expected = combined(operation, &x, &y);
            match a.combine(operation, &b) {
                Ok(found) => {
                    prop_assert_eq!(&found, &trie(&expected));
                    prop_assert!(found.leaves().all(|leaf| found.input_row(leaf.index) == Some(leaf.index.index())));
                }
                Err(error) => {
                    prop_assert!(expected.is_empty());
                    let is_empty = matches!(error, SetError::Empty { .. });
                    prop_assert!(is_empty);
                }
            }
        }
        prop_assert_eq!(a.is_subset(&b), x.keys().all(|tokens| y.contains_key(tokens)));
        prop_assert_eq!(a.is_disjoint(&b), !x.keys().any(|tokens| y.contains_key(tokens)));
    }

    #[test]
    fn names_of_one_side_only(left in sets(), right in sets()) {
        let (a, b) = (left.trie(), unnamed(&right));
        for operation in [SetOperation::Union, SetOperation::SymmetricDifference] {
            for (a, b) in [(&a, &b), (&b, &a)] {
                let refused = matches!(a.combine(operation, b), Err(SetError::HalfNamed { .. }));
                prop_assert!(refused);
            }
        }
        let expected: Named = named(&left).into_iter().filter(|(tokens, _)| b.find(&ids(tokens)).is_some()).collect();
        for found in [a.combine(SetOperation::Intersection, &b), b.combine(SetOperation::Intersection, &a)] {
            prop_assert_eq!(found.ok(), (!expected.is_empty()).then(|| trie(&expected)));
        }
        if let Ok(difference) = a.combine(SetOperation::Difference, &b) {
            prop_assert!(difference.has_names());
        }
        if let Ok(difference) = b.combine(SetOperation::Difference, &a) {
            prop_assert!(!difference.has_names());
        }
    }

    #[test]
    fn a_walk_gives_all_leaves(naive in sets(), wanted in prop::collection::vec(any::<bool>(), 40)) {
        let trie = naive.trie();
        let mut walk = trie.in_order();
        let mut found: Vec<(usize, Vec<TokenId>)> = Vec::new();
        while let Some(leaf) = walk.advance() {
            found.push((leaf.index(), walk.tokens().to_vec()));
        }
        prop_assert!(walk.advance().is_none());
        let expected: Vec<_> = trie.leaves().map(|leaf| (leaf.index.index(), leaf.tokens)).collect();
        prop_assert_eq!(found, expected);

        let kept = named(&naive).into_iter().zip(&wanted).filter(|(_, wanted)| **wanted);
        let kept: Named = kept.map(|(row, _)| row).collect();
        let selected = trie.select(|leaf| wanted[leaf.index()]);
        prop_assert_eq!(selected.ok(), (!kept.is_empty()).then(|| self::trie(&kept)));
    }
}

#[test]
fn where_leaves_begin_is_kept() {
    let trie = |rows: &[u32]| Naive { rows: rows.iter().map(|&row| (row.to_string(), vec![row])).collect() }.trie();
    let (a, b) = (trie(&[1, 2]).with_heal_bytes(3), trie(&[2, 3]).with_heal_bytes(3));
    assert_eq!(a.select(|leaf| leaf.index() == 0).unwrap(), trie(&[1]).with_heal_bytes(3));
    for operation in OPERATIONS {
        assert_eq!(a.combine(operation, &b).unwrap().heal_bytes(), 3);
        let error = a.combine(operation, &trie(&[2, 3])).unwrap_err().to_string();
        assert!(
            error.ends_with("whose leaves spell 3 bytes of the prompt again and one whose leaves spell 0"),
            "{error}"
        );
    }
}

#[test]
fn nothing_left_is_said() {
    let trie = Naive { rows: vec![("a".to_owned(), vec![1])] }.trie();
    let error = trie.combine(SetOperation::Difference, &trie).unwrap_err();
    assert_eq!(error.to_string(), "the difference is empty: a trie has at least one leaf");
}
