//! Every operation of a trie against the naive twin, over random sets and walks.

use crate::common::{Naive, id, ids, naive_best};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{Allowed, LeafId, Sampler, SamplerOptions, Scratch, SpanRules, TokenId, argmax};

const VOCABULARY: u32 = 40;

/// Sets that share many prefixes, hold duplicates and contain leaves that are prefixes of leaves.
fn sets() -> impl Strategy<Value = Naive> {
    let tokens = prop::collection::vec(prop_oneof![3 => 0..4u32, 1 => 0..VOCABULARY], 1..6);
    prop::collection::vec(("[a-d]{1,2}", tokens), 1..60).prop_map(|rows| Naive { rows })
}

fn rows() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        6 => -3.0..3.0f32,
        2 => Just(1.0f32),
        1 => Just(f32::NAN),
        1 => Just(f32::NEG_INFINITY),
        1 => Just(-0.0f32),
        1 => Just(0.0f32),
    ];
    prop::collection::vec(logit, VOCABULARY as usize)
}

fn rules(naive: &Naive, ends: &[u32]) -> Arc<SpanRules> {
    Arc::new(SpanRules::for_constraint(naive.trie(), VOCABULARY as usize).unwrap().with_end_tokens(ids(ends)).unwrap())
}

proptest! {
    #[test]
    fn every_node_agrees(naive in sets()) {
        let trie = naive.trie();
        let prefixes = naive.prefixes();
        prop_assert_eq!(trie.nodes(), prefixes.len());
        for prefix in prefixes {
            let at = trie.walk(&ids(&prefix)).unwrap();
            let children: Vec<u32> = naive.children(&prefix).into_iter().collect();
            prop_assert_eq!(trie.children(at).to_vec(), ids(&children));
            prop_assert_eq!(trie.is_terminal(at), naive.is_leaf(&prefix));
            prop_assert_eq!(trie.forced(at).collect::<Vec<_>>(), ids(&naive.forced(&prefix, &[])));
            for token in 0..VOCABULARY {
                prop_assert_eq!(trie.step(at, id(token)).is_some(), children.contains(&token));
            }
            for up in 0..=prefix.len() {
                let expected = trie.walk(&ids(&prefix[..prefix.len() - up])).unwrap();
                prop_assert_eq!(trie.ancestor(at, up), Some(expected));
            }
        }
    }

    #[test]
    fn leaves_agree(naive in sets()) {
        let trie = naive.trie();
        let leaves = naive.leaves();
        prop_assert_eq!(trie.len(), leaves.len());
        for (index, (tokens, (name, row))) in leaves.iter().enumerate() {
            let leaf = LeafId::new(index as u32);
            prop_assert_eq!(trie.find(&ids(tokens)), Some(leaf));
            prop_assert_eq!(trie.leaf(leaf).unwrap().tokens, ids(tokens));
            prop_assert_eq!(trie.name(leaf), Some(name.as_str().into()));
            prop_assert_eq!(trie.input_row(leaf), Some(*row));
        }
        prop_assert!(trie.leaf(LeafId::new(leaves.len() as u32)).is_none());
        for prefix in naive.prefixes() {
            let below = leaves.keys().enumerate().filter(|(_, leaf)| leaf.starts_with(&prefix));
            let below: Vec<_> = below.map(|(at, _)| at as u32).collect();
            let range = trie.leaves_below(trie.walk(&ids(&prefix)).unwrap());
            prop_assert_eq!(range.collect::<Vec<_>>(), below);
        }
    }

    #[test]
    fn order_of_the_input_does_not_matter(naive in sets(), seed in any::<u64>()) {
        let mut shuffled = naive.clone();
        let mut state = seed | 1;
        for at in (1..shuffled.rows.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.rows.swap(at, (state >> 33) as usize % (at + 1));
        }
        prop_assert_eq!(naive.trie(), shuffled.trie());
    }

    #[test]
    fn a_walk_agrees(
        naive in sets(),
        row in rows(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 8),
        // None, one that few leaves have, one that many go on with, and two: a choice.
        ends in prop::sample::select(vec![vec![], vec![39], vec![2], vec![7, 39]]),
    ) {
        let (ends, with_end) = (&ends[..], !ends.is_empty());
        let mut sampler = Sampler::new(rules(&naive, ends), SamplerOptions::default()).unwrap();
        let mut prefix: Vec<u32> = Vec::new();
        for pick in picks {
            let (children, leaf) = (naive.children(&prefix), naive.is_leaf(&prefix));
            let open = leaf && !with_end;
            if open && children.is_empty() {
                prop_assert_eq!(sampler.span().leaf().unwrap().tokens, ids(&prefix));
                return Ok(());
            }
            let mut legal = children.clone();
            legal.extend(if leaf { ends } else { &[] });
            prop_assert_eq!(matches!(sampler.allowed(), Allowed::Open { .. }), open);
            let allowed: Vec<u32> = sampler.allowed().iter().map(TokenId::get).collect();
            prop_assert_eq!(&allowed, &legal.iter().copied().collect::<Vec<_>>());

            let best = if open { naive_best(&row, 0..VOCABULARY) } else { naive_best(&row, legal.iter().copied()) };
            let alive = |token: &u32| row[*token as usize] > f32::NEG_INFINITY;
            let starved = if open { !(0..VOCABULARY).any(|token| alive(&token)) } else { !legal.iter().any(alive) };
            let expected = if starved { *legal.first().unwrap() } else { best.unwrap() };
            prop_assert_eq!(sampler.sample(&row).unwrap(), id(expected));

            let mut masked = row.clone();
            masked.extend([5.0; 3]);
            sampler.mask(&mut masked).unwrap();
            let mut words = [123i32; 2];
            sampler.fill_bitmask(&mut words).unwrap();
            for token in 0..VOCABULARY {
                let legal_here = open || legal.contains(&token);
                let (before, after) = (row[token as usize], masked[token as usize]);
                if legal_here && !starved {
                    prop_assert_eq!(before.to_bits(), after.to_bits());
                } else if !open {
                    prop_assert_eq!(after, if starved && token == expected { 0.0 } else { f32::NEG_INFINITY });
                }
                prop_assert_eq!(words[token as usize / 32] >> (token % 32) & 1 == 1, legal_here);
            }
            prop_assert_eq!(masked[VOCABULARY as usize] == f32::NEG_INFINITY, !open);

            prop_assert_eq!(sampler.span().forced().collect::<Vec<_>>(), ids(&naive.forced(&prefix, ends)));

            for token in (0..VOCABULARY).filter(|token| !legal.contains(token) && !open) {
                let before = sampler.span().state().clone();
                prop_assert!(sampler.span_mut().accept(id(token)).is_err());
                prop_assert_eq!(sampler.span().state(), &before);
            }
            let legal: Vec<u32> = legal.into_iter().collect();
            let token = legal[pick.index(legal.len())];
            sampler.span_mut().accept(id(token)).unwrap();
            if !children.contains(&token) {
                prop_assert_eq!(sampler.span().leaf().unwrap().tokens, ids(&prefix));
                return Ok(());
            }
            prefix.push(token);
        }
    }

    #[test]
    fn rollback_is_the_state_before(naive in sets(), row in rows(), back in 0..6usize) {
        let mut sampler = Sampler::new(rules(&naive, &[39]), SamplerOptions::default()).unwrap();
        let mut history = vec![sampler.span().clone()];
        while history.len() < 8 {
            let token = sampler.sample(&row).unwrap();
            sampler.span_mut().accept(token).unwrap();
            history.push(sampler.span().clone());
        }
        let mut span = sampler.span().clone();
        span.rollback(back).unwrap();
        let expected = &history[history.len() - 1 - back];
        prop_assert_eq!(span.status(), expected.status());
        prop_assert_eq!(span.state(), expected.state());
        prop_assert_eq!(span.accepted(), expected.accepted());
        let (mut one, mut other) = (Scratch::default(), Scratch::default());
        prop_assert_eq!(span.allowed(&mut one), expected.allowed(&mut other));
        prop_assert!(span.rollback(expected.accepted() + 1).is_err());
    }

    #[test]
    fn argmax_of_any_size(
        values in prop::collection::vec(prop_oneof![Just(f32::NAN), Just(0.5f32), -1.0..1.0f32], 1..700),
    ) {
        let all: Vec<u32> = (0..values.len() as u32).collect();
        let expected = naive_best(&values, all.iter().copied()).unwrap();
        prop_assert_eq!(argmax(&values, &ids(&all)).unwrap().token, id(expected));
    }
}
