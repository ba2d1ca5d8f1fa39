//! Rules of every kind that a row may follow.

use crate::common::multiples::{Multiples, VOCABULARY};
use crate::common::{Naive, ids};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{
    After, AnyConstraint, Budget, ByteTrie, NamedLeaf, Sequence, SpanRules, ThinkGate, ThinkOptions, Trie,
    Unconstrained,
};

/// Rules, or none for a free row.
pub(crate) type Rules = Option<Arc<SpanRules>>;

pub(crate) fn set(rows: &[(&str, &[u32])]) -> Trie {
    Naive { rows: rows.iter().map(|&(name, tokens)| (name.to_owned(), tokens.to_vec())).collect() }.trie()
}

pub(crate) fn rules(constraint: impl Into<AnyConstraint>) -> SpanRules {
    SpanRules::for_constraint(constraint, VOCABULARY).unwrap()
}

/// A set in which several sequences stand for one leaf: its states do not say how they were reached.
fn graph() -> Trie {
    let tokens = ["a", "b", "ab", "aba", "bb", "abab"];
    let vocab = ByteTrie::new(tokens.iter().zip(0..).map(|(text, token)| (text.as_bytes(), crate::common::id(token))));
    let (one, other) = (ids(&[2]), ids(&[2, 0]));
    let leaves = [NamedLeaf { name: "ab", tokens: &one }, NamedLeaf { name: "aba", tokens: &other }];
    Trie::with_partial_tokens(&leaves, &vocab.unwrap(), |token| tokens[token.index()].as_bytes(), &|| false).unwrap()
}

fn constraint(kind: u32, naive: &Naive) -> AnyConstraint {
    match kind {
        0..=2 => naive.trie().into(),
        3 => graph().into(),
        4 => AnyConstraint::new(Multiples::new(7, 2)),
        8 | 9 => {
            let options = ThinkOptions {
                begin: ids(&[1]),
                end: ids(&[2, 3]),
                budget: Some(Budget::tokens(3)),
                at_once: kind == 8,
                ..ThinkOptions::default()
            };
            AnyConstraint::new(ThinkGate::new(options, naive.trie().into()).unwrap())
        }
        5 => {
            let parts = [naive.trie().into(), set(&[("x", &[1]), ("y", &[1, 2])]).into()];
            AnyConstraint::new(Sequence::new(parts).unwrap())
        }
        _ => AnyConstraint::new(Sequence::new([naive.trie().into(), AnyConstraint::new(Unconstrained)]).unwrap()),
    }
}

fn naive() -> impl Strategy<Value = Naive> {
    let tokens = prop::collection::vec(prop_oneof![3 => 0..4u32, 1 => 0..60u32], 1..4);
    prop::collection::vec(("[a-d]{1,2}", tokens), 1..6).prop_map(|rows| Naive { rows })
}

fn one() -> impl Strategy<Value = Rules> {
    let ends = prop_oneof![Just(&[][..]), Just(&[3][..]), Just(&[5, 60][..])];
    let after = prop_oneof![Just(After::Free), Just(After::Stop)];
    (0..10u32, naive(), ends, after).prop_map(|(kind, naive, ends, after)| {
        if kind == 7 {
            return None;
        }
        let rules = rules(constraint(kind, &naive)).with_end_tokens(ids(ends)).unwrap();
        let rules = rules.with_end_of_generation(ids(&[69])).unwrap().with_after(after).unwrap();
        Some(Arc::new(rules))
    })
}

/// One to five rows, each of its own kind or all of one.
pub(crate) fn batch() -> impl Strategy<Value = Vec<Rules>> {
    let same = (one(), 1..6usize).prop_map(|(rules, rows)| vec![rules; rows]);
    prop_oneof![same, prop::collection::vec(one(), 1..6)]
}

/// Numbers that look random; the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }

    /// Logits with everything odd among them, and many ties.
    pub(crate) fn logits(&mut self, count: usize) -> Vec<f32> {
        const SOME: [f32; 8] = [f32::NAN, f32::NEG_INFINITY, 0.0, -0.0, 1.0, 2.0, 3.5, f32::INFINITY];
        // Infinity is rare: where it is, nothing else counts.
        (0..count).map(|_| SOME[if self.below(20) == 0 { 7 } else { self.below(7) }]).collect()
    }
}
