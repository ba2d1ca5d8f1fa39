//! Weights of sets, against rows to which they were added beforehand.

use crate::common::{Naive, id, ids};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{
    Allowed, AnyConstraint, Batch, DrawSettings, Mode, Rows, RowsMut, Sampler, SamplerOptions, ScoreMode, Scratch,
    Sequence, SetOperation, SpanRules, TokenId, Trie, Unconstrained, WeightsError, log_sum_exp,
};

const VOCABULARY: usize = 12;

fn plain(rows: &[&[u32]]) -> Trie {
    let mut builder = Trie::builder();
    for row in rows {
        builder.push(None, &ids(row));
    }
    builder.build().unwrap()
}

/// The weight of the token after a prefix, by a rule that both sides can follow; `None` is the end.
fn weight(prefix: &[u32], token: Option<u32>) -> f32 {
    let mixed = prefix.iter().chain(&token).fold(7u32, |mixed, &id| mixed.wrapping_mul(31).wrapping_add(id + 1));
    [0.0, 0.5, -1.25, 3.0, -0.75][mixed as usize % 5]
}

fn weighed(trie: &Trie, ends: bool) -> Trie {
    let (mut edges, mut of_ends) = (vec![f32::NAN; trie.nodes()], Vec::new());
    for leaf in trie.leaves() {
        let tokens: Vec<u32> = leaf.tokens.iter().map(|token| token.get()).collect();
        for end in 0..tokens.len() {
            let node = trie.walk(&leaf.tokens[..=end]).unwrap().node();
            edges[node.index()] = weight(&tokens[..end], Some(tokens[end]));
        }
        of_ends.push(weight(&tokens, None));
    }
    edges[0] = 0.0;
    trie.clone().with_weights(edges, if ends { of_ends } else { Vec::new() }).unwrap()
}

fn sampler(trie: &Trie, ends: &[u32], mode: Mode) -> Sampler {
    let rules = SpanRules::for_constraint(trie.clone(), VOCABULARY).unwrap().with_end_tokens(ids(ends)).unwrap();
    let draw = DrawSettings { temperature: 0.8, top_k: 3, ..DrawSettings::default() };
    Sampler::new(Arc::new(rules), SamplerOptions { mode, draw, seed: Some(5) }).unwrap()
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|logit| logit.to_bits()).collect()
}

/// The row with the weights of what may come here.
fn biased(naive: &Naive, prefix: &[u32], ends: &[u32], with_ends: bool, row: &[f32]) -> Vec<f32> {
    let mut row = row.to_vec();
    let children = naive.children(prefix);
    let mut add = |token: u32, weight: f32| {
        if weight != 0.0 {
            let sum = row[token as usize] + weight;
            row[token as usize] = if sum.is_nan() { f32::NEG_INFINITY } else { sum };
        }
    };
    for &token in &children {
        add(token, weight(prefix, Some(token)));
    }
    if naive.is_leaf(prefix) && with_ends {
        // A token that is both is taken as the child.
        ends.iter().filter(|end| !children.contains(end)).for_each(|&end| add(end, weight(prefix, None)));
    }
    row
}

fn logit() -> impl Strategy<Value = f32> {
    let odd = prop::sample::select(vec![f32::NEG_INFINITY, f32::NAN, f32::INFINITY]);
    prop_oneof![12 => -4.0f32..4.0, 2 => Just(0.0), 3 => odd]
}

fn sets() -> impl Strategy<Value = Naive> {
    let row = vec(0u32..8, 1..4).prop_map(|tokens| (String::new(), tokens));
    vec(row, 1..10).prop_map(|rows| Naive { rows })
}

/// What a choice is scored by, from the definition.
fn adds(mode: ScoreMode, row: &[f32], legal: &[u32], token: u32, of_token: f32) -> f64 {
    let raw = f64::from(row[token as usize]);
    match mode {
        ScoreMode::Model => match log_sum_exp(row) {
            f64::INFINITY => {
                if raw == f64::INFINITY {
                    f64::from(of_token)
                } else {
                    f64::NEG_INFINITY
                }
            }
            sum => (raw - sum).min(0.0) + f64::from(of_token),
        },
        ScoreMode::Renormalised => {
            let values: Vec<f32> = legal.iter().map(|&token| row[token as usize]).collect();
            match log_sum_exp(&values) {
                f64::INFINITY => {
                    if raw == f64::INFINITY {
                        0.0
                    } else {
                        f64::NEG_INFINITY
                    }
                }
                sum => (raw - sum).min(0.0),
            }
        }
        _ => raw + f64::from(of_token),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(600)))]

    #[test]
    fn choosing_is_as_if_they_had_been_added(
        naive in sets(),
        ends in prop::sample::select(vec![&[][..], &[9][..], &[3, 9][..]]),
        with_ends: bool,
        row in vec(logit(), VOCABULARY),
    ) {
        let unweighted = naive.trie();
        let trie = weighed(&unweighted, with_ends);
        for prefix in naive.prefixes() {
            let added = biased(&naive, &prefix, ends, with_ends, &row);
            let tokens = ids(&prefix);
            for mode in [Mode::Greedy, Mode::Sampled] {
                let (mut one, mut other) = (sampler(&trie, ends, mode), sampler(&unweighted, ends, mode));
                one.span_mut().accept_all(&tokens).unwrap();
                other.span_mut().accept_all(&tokens).unwrap();
                for _ in 0..4 {
                    prop_assert_eq!(one.sample(&row).unwrap(), other.sample(&added).unwrap());
                }
                prop_assert_eq!(one.starved_count(), other.starved_count());
                let (mut masked, mut expected) = (row.clone(), added.clone());
                one.mask(&mut masked).unwrap();
                other.mask(&mut expected).unwrap();
                prop_assert_eq!(bits(&masked), bits(&expected), "after {:?}", prefix);
                let (mut words, mut same) = ([0; 1], [0; 1]);
                one.fill_bitmask(&mut words).unwrap();
                other.fill_bitmask(&mut same).unwrap();
                prop_assert_eq!(words, same);
                prop_assert!(one.span().forced().eq(other.span().forced()));
            }
        }
    }

    #[test]
    fn batches_do_as_samplers(naive in sets(), with_ends: bool, row in vec(logit(), VOCABULARY)) {
        let ends = [9];
        let trie = weighed(&naive.trie(), with_ends);
        let rules = SpanRules::for_constraint(trie.clone(), VOCABULARY).unwrap().with_end_tokens(ids(&ends)).unwrap();
        for prefix in naive.prefixes() {
            let mut batch = Batch::new(Arc::new(rules.clone()), 1, SamplerOptions::default()).unwrap();
            batch.accept_in(0, &ids(&prefix)).unwrap();
            let mut one = sampler(&trie, &ends, Mode::Greedy);
            one.span_mut().accept_all(&ids(&prefix)).unwrap();
            let rows = || Rows::new(&row, 1, VOCABULARY, VOCABULARY).unwrap();
            let mut chosen = [TokenId::default()];
            batch.select(rows(), &mut chosen).unwrap();
            prop_assert_eq!(chosen[0], one.sample(&row).unwrap());
            let (mut masked, mut same) = (row.clone(), row.clone());
            batch.apply(RowsMut::new(&mut masked, 1, VOCABULARY, VOCABULARY).unwrap()).unwrap();
            one.mask(&mut same).unwrap();
            prop_assert_eq!(bits(&masked), bits(&same));

            let added = biased(&naive, &prefix, &ends, with_ends, &row);
            let legal: Vec<u32> = one.allowed().iter().map(TokenId::get).collect();
            let usable = |token: u32| added[token as usize] > f32::NEG_INFINITY;
            for mode in [ScoreMode::Model, ScoreMode::Renormalised, ScoreMode::AsGiven] {
                let of = if mode == ScoreMode::Renormalised { &added } else { &row };
                let of_token = |token: u32| {
                    let end = !naive.children(&prefix).contains(&token);
                    let own = weight(&prefix, (!end).then_some(token));
                    if end && !with_ends { 0.0 } else { own }
                };
                let score = |token: u32| 1.5 + adds(mode, of, &legal, token, of_token(token));
                let mut expected: Vec<(u32, f64)> =
                    legal.iter().filter(|&&t| usable(t)).map(|&t| (t, score(t))).collect();
                expected.retain(|(_, score)| *score > f64::NEG_INFINITY);
                expected.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
                if !legal.iter().any(|&token| usable(token)) {
                    expected = vec![(legal[0], f64::NEG_INFINITY)];
                }
                expected.truncate(3);
                let found = batch.top_children(rows(), 3, Some(&[1.5]), mode).unwrap();
                let found: Vec<(u32, f64)> = found.iter().map(|child| (child.token.get(), child.score)).collect();
                prop_assert_eq!(found.len(), expected.len(), "{:?} {:?} {:?}", mode, found, expected);
                for (found, expected) in found.iter().zip(&expected) {
                    let close = found.1 == expected.1 || (found.1 - expected.1).abs() < 1e-9;
                    prop_assert!(close, "{:?} {:?} {:?}", mode, found, expected);
                }
            }
        }
    }

    #[test]
    fn set_operations_keep_them(one in sets(), other in sets()) {
        let (left, right) = (weighed(&one.trie(), true), other.trie());
        let check = |made: &Trie| {
            for leaf in made.leaves() {
                let tokens: Vec<u32> = leaf.tokens.iter().map(|token| token.get()).collect();
                let mut at = made.root();
                for (depth, &token) in leaf.tokens.iter().enumerate() {
                    let nth = made.children(at).binary_search(&token).unwrap();
                    let known = left.walk(&leaf.tokens[..=depth]).is_ok();
                    let expected = if known { weight(&tokens[..depth], Some(tokens[depth])) } else { 0.0 };
                    assert_eq!(made.weights(at)[nth], expected);
                    at = made.step(at, token).unwrap();
                }
                let expected = if left.find(&leaf.tokens).is_some() { weight(&tokens, None) } else { 0.0 };
                assert_eq!(made.end_weight(at), expected);
            }
        };
        for operation in [SetOperation::Union, SetOperation::Intersection, SetOperation::Difference] {
            if let Ok(made) = left.combine(operation, &right) {
                check(&made);
            }
            if let Ok(made) = right.combine(operation, &left) && operation != SetOperation::Difference {
                prop_assert!(made.is_weighted());
            }
        }
        check(&left.select(|leaf| leaf.index() == 0).unwrap());
        prop_assert!(!right.combine(SetOperation::Union, &right).unwrap().is_weighted());
    }
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let trie = plain(&[&[1], &[1, 2]]);
    let refused = |edges: &[f32], ends: &[f32]| trie.clone().with_weights(edges.to_vec(), ends.to_vec()).unwrap_err();
    assert_eq!(refused(&[0.0; 2], &[]), WeightsError::Count { what: "nodes", got: 2, need: 3 });
    assert_eq!(refused(&[0.0; 3], &[1.0]), WeightsError::Count { what: "leaves", got: 1, need: 2 });
    for weight in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(matches!(refused(&[0.0, 0.0, weight], &[]), WeightsError::NotFinite { what: "nodes", at: 2, .. }));
        assert!(matches!(refused(&[0.0; 3], &[0.0, weight]), WeightsError::NotFinite { what: "leaves", at: 1, .. }));
    }
    let zero = trie.clone().with_weights(vec![0.0; 3], vec![0.0; 2]).unwrap();
    assert!(zero.is_weighted() && zero != trie);
    assert_eq!(zero, trie.clone().with_weights(vec![9.0, 0.0, 0.0], Vec::new()).unwrap(), "the root has none");
}

#[test]
fn a_sequence_adds_those_of_the_part_that_takes_the_token() {
    let first = plain(&[&[1], &[1, 2]]).with_weights(vec![0.0, 0.5, 2.0], vec![7.0, 0.0]).unwrap();
    let second = plain(&[&[2], &[3]]).with_weights(vec![0.0, 10.0, -1.0], Vec::new()).unwrap();
    let listed = |parts: [AnyConstraint; 2]| {
        let rules = SpanRules::for_constraint(AnyConstraint::new(Sequence::new(parts).unwrap()), VOCABULARY).unwrap();
        let mut sampler = Sampler::new(Arc::new(rules), SamplerOptions::default()).unwrap();
        sampler.span_mut().accept(id(1)).unwrap();
        let row = [0.0; VOCABULARY];
        sampler.allowed().logits(&row).map(|(token, logit)| (token.get(), logit)).take(4).collect::<Vec<_>>()
    };
    assert_eq!(listed([first.clone().into(), second.clone().into()]), [(2, 2.0), (3, -1.0)]);
    let unweighted = plain(&[&[2], &[3]]);
    assert_eq!(listed([first.clone().into(), unweighted.clone().into()]), [(2, 2.0), (3, 0.0)]);
    assert_eq!(listed([first.clone().without_weights().into(), second.into()]), [(2, 0.0), (3, -1.0)]);
    assert_eq!(listed([first.clone().without_weights().into(), unweighted.into()]), [(2, 0.0), (3, 0.0)]);
    let free = AnyConstraint::new(Unconstrained);
    assert_eq!(listed([first.into(), free])[..3], [(0, 0.0), (1, 0.0), (2, 0.0)], "everything may come");
}

#[test]
fn each_token_has_one() {
    let trie = plain(&[&[1], &[1, 2], &[1, 4]]).with_weights(vec![0.0, 0.5, 2.0, -2.0], vec![7.0, 0.0, 0.0]).unwrap();
    let mut sampler = sampler(&trie, &[2, 9], Mode::Greedy);
    sampler.span_mut().accept(id(1)).unwrap();
    let mut scratch = Scratch::default();
    let allowed = sampler.span().allowed(&mut scratch);
    assert!(matches!(allowed, Allowed::Only { .. }));
    let weights: Vec<f32> = [1, 2, 4, 9].map(|token| allowed.weight_of(id(token))).to_vec();
    assert_eq!(weights, [0.0, 2.0, -2.0, 7.0], "what is both a child and an end is the child");
}
