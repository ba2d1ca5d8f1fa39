//! Beam search, against one that lists everything, and against the exact probability of every value.

use crate::batch::kinds::{Numbers, rules, set};
use crate::common::multiples::VOCABULARY;
use crate::common::{Naive, id, ids};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use trie_core::{
    AnyConstraint, BatchError, BeamOptions, BeamSearch, ChooseOptions, Hypothesis, PrefixRows, Rows, ScoreMode,
    SpanRules, TokenId, Unconstrained, choose, log_sum_exp,
};

/// A model whose logits depend on all that came before.
fn row(seed: u64, prefix: &[TokenId]) -> Vec<f32> {
    let mixed = prefix.iter().fold(seed, |mixed, token| (mixed ^ u64::from(token.get())).wrapping_mul(0x9E37_79B9));
    let mut numbers = Numbers(mixed);
    (0..VOCABULARY).map(|_| numbers.below(4000) as f32 / 500.0).collect()
}

fn searched(rules: &Arc<SpanRules>, options: BeamOptions, seed: u64) -> (Vec<Hypothesis>, usize) {
    let mut search = BeamSearch::new(rules.clone(), options).unwrap();
    let mut steps = 0;
    while !search.prefixes().is_empty() {
        let rows: Vec<f32> = search.prefixes().iter().flat_map(|prefix| row(seed, prefix)).collect();
        search.advance(Rows::new(&rows, search.prefixes().len(), VOCABULARY, VOCABULARY).unwrap()).unwrap();
        steps += 1;
    }
    (search.into_hypotheses(), steps)
}

#[derive(Debug, Clone)]
struct Path {
    tokens: Vec<u32>,
    score: f64,
    over: bool,
}

/// The same search over a list of sequences: every continuation of every path, sorted, cut. `None` where two are so
/// close that rounding decides.
fn naive(
    values: &BTreeMap<Vec<u32>, String>,
    ends: &[u32],
    options: &BeamOptions,
    seed: u64,
) -> Option<Vec<(Vec<u32>, f64)>> {
    let rank = |path: &Path| {
        let length = path.tokens.len().max(1) as f64;
        if options.length_penalty == 0.0 { path.score } else { path.score / length.powf(options.length_penalty) }
    };
    let mut paths = vec![Path { tokens: Vec::new(), score: 0.0, over: false }];
    while paths.iter().any(|path| !path.over) {
        let mut next: Vec<Path> = paths.iter().filter(|path| path.over).cloned().collect();
        let mut more = Vec::new();
        for path in paths.iter().filter(|path| !path.over) {
            let begins = |value: &&Vec<u32>| value.len() > path.tokens.len() && value.starts_with(&path.tokens);
            let mut children: Vec<u32> = values.keys().filter(begins).map(|value| value[path.tokens.len()]).collect();
            children.dedup();
            let logits = row(seed, &ids(&path.tokens));
            let logit = |token: u32| logits[token as usize];
            let is_value = values.contains_key(&path.tokens);
            let closing: Vec<u32> =
                if is_value { ends.iter().copied().filter(|end| !children.contains(end)).collect() } else { vec![] };
            let open = is_value && ends.is_empty();
            let competing: Vec<f32> = if options.mode == ScoreMode::Model || open {
                logits.clone()
            } else {
                children.iter().chain(&closing).map(|&token| logit(token)).collect()
            };
            let sum = log_sum_exp(&competing);
            let share = |token: u32| f64::from(logit(token)) - sum;
            if open {
                let on: f64 = children.iter().map(|&token| share(token).exp()).sum();
                more.push(Path { score: path.score + (1.0 - on).max(0.0).ln(), over: true, ..path.clone() });
            } else if !closing.is_empty() {
                let ending: f64 = closing.iter().map(|&token| share(token).exp()).sum();
                more.push(Path { score: path.score + ending.ln(), over: true, ..path.clone() });
            }
            for token in children {
                let tokens = [path.tokens.as_slice(), &[token]].concat();
                let goes_on = values.keys().any(|value| value.len() > tokens.len() && value.starts_with(&tokens));
                more.push(Path { score: path.score + share(token), over: !goes_on && ends.is_empty(), tokens });
            }
        }
        next.extend(more);
        next.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
        if next.windows(2).any(|two| (rank(&two[0]) - rank(&two[1])).abs() < 1e-6) {
            return None;
        }
        next.truncate(options.width);
        paths = next;
    }
    Some(paths.into_iter().map(|path| (path.tokens, path.score)).collect())
}

fn sets() -> impl Strategy<Value = BTreeMap<Vec<u32>, String>> {
    let tokens = prop::collection::vec(0..5u32, 1..4);
    prop::collection::btree_map(tokens, "[a-z]{4}", 1..12)
}

fn rules_of(values: &BTreeMap<Vec<u32>, String>, ends: &[u32]) -> Arc<SpanRules> {
    let rows = values.iter().map(|(tokens, name)| (name.clone(), tokens.clone())).collect();
    Arc::new(rules(Naive { rows }.trie()).with_end_tokens(ids(ends)).unwrap())
}

const ENDS: [&[u32]; 3] = [&[], &[60], &[2, 60]];

proptest! {
    #[test]
    fn the_beams_of_a_list(
        values in sets(), ends in 0..3usize, width in 1..14usize, model in any::<bool>(), penalty in 0..3u32,
        seed in any::<u64>(),
    ) {
        let mode = if model { ScoreMode::Model } else { ScoreMode::Renormalised };
        let options = BeamOptions::new(width).mode(mode).length_penalty(f64::from(penalty) * 0.75);
        let (found, _) = searched(&rules_of(&values, ENDS[ends]), options, seed);
        let Some(want) = naive(&values, ENDS[ends], &options, seed) else { return Ok(()) };
        prop_assert_eq!(found.len(), want.len());
        prop_assert!(found.len() <= width.min(values.len()), "no filler");
        for (found, (tokens, score)) in found.iter().zip(&want) {
            prop_assert_eq!(&found.tokens, &ids(tokens));
            prop_assert_eq!(found.leaf.name.as_ref(), values.get(tokens));
            prop_assert!((found.logprob - score).abs() < 1e-5, "{} is not {}", found.logprob, score);
        }
    }

    #[test]
    fn a_wide_beam_knows_every_probability(values in sets(), ends in 0..3usize, seed in any::<u64>()) {
        let (found, _) = searched(&rules_of(&values, ENDS[ends]), BeamOptions::new(values.len()), seed);
        prop_assert_eq!(found.len(), values.len());
        let mut host = PrefixRows::new(VOCABULARY, |prefixes: &[&[TokenId]]| {
            Ok::<_, Infallible>(prefixes.iter().flat_map(|prefix| row(seed, &prefix[1..])).collect::<Vec<f32>>())
        });
        let rows = values.iter().map(|(tokens, name)| (name.clone(), tokens.clone())).collect();
        let ends = ids(ENDS[ends]);
        let options = ChooseOptions::new().with_end_tokens(&ends);
        let choice = choose(&mut host, &[id(0)], Naive { rows }.trie(), &options).unwrap();
        for found in found {
            let exact = choice.logprobs[found.leaf.index.index()];
            prop_assert!((found.logprob - exact).abs() < 1e-5, "{} is not {}", found.logprob, exact);
        }
    }

    #[test]
    fn draws_are_values_and_none_comes_twice(values in sets(), ends in 0..3usize, width in 1..14usize, seed: u32) {
        let options = BeamOptions::new(width).mode(ScoreMode::Renormalised).without_replacement(seed);
        let (found, _) = searched(&rules_of(&values, ENDS[ends]), options, 5);
        prop_assert_eq!(found.len(), width.min(values.len()));
        let mut drawn: Vec<_> = found.iter().map(|found| found.leaf.index).collect();
        drawn.sort();
        drawn.dedup();
        prop_assert_eq!(drawn.len(), found.len());
        // What is reported is the score, not what was drawn.
        let (all, _) = searched(&rules_of(&values, ENDS[ends]), BeamOptions::new(99).mode(options.mode), 5);
        for found in found {
            let same = all.iter().find(|other| other.leaf == found.leaf).unwrap();
            prop_assert!((same.logprob - found.logprob).abs() < 1e-9);
        }
    }
}

#[test]
fn draws_follow_the_shares() {
    let values: BTreeMap<Vec<u32>, String> = [vec![1, 2], vec![1, 3], vec![2], vec![4, 1], vec![4, 1, 3]]
        .into_iter()
        .zip('a'..)
        .map(|(t, n)| (t, n.into()))
        .collect();
    let rules = rules_of(&values, &[]);
    let wide = BeamOptions::new(9).mode(ScoreMode::Renormalised);
    let share: BTreeMap<usize, f64> =
        searched(&rules, wide, 3).0.iter().map(|found| (found.leaf.index.index(), found.logprob.exp())).collect();
    assert!((share.values().sum::<f64>() - 1.0).abs() < 1e-6, "an open value ends or goes on: {share:?}");
    let draws = 40_000u32;
    let mut pairs: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for seed in 0..draws {
        let options =
            BeamOptions::new(2).mode(ScoreMode::Renormalised).without_replacement(seed.wrapping_mul(2_654_435_761));
        let found = searched(&rules, options, 3).0;
        *pairs.entry((found[0].leaf.index.index(), found[1].leaf.index.index())).or_default() += 1;
    }
    for (&first, p) in &share {
        for (&second, q) in share.iter().filter(|&(&second, _)| second != first) {
            // Without replacement: the second by its share among what is left.
            let expected = p * q / (1.0 - p);
            let got = f64::from(*pairs.get(&(first, second)).unwrap_or(&0)) / f64::from(draws);
            let tolerance = 5.0 * (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!((got - expected).abs() < tolerance, "({first}, {second}): {got} is not {expected}");
        }
    }
}

#[test]
fn forced_tokens_need_no_rows() {
    let values: BTreeMap<Vec<u32>, String> =
        [(vec![1, 2, 3, 4], "a".to_owned()), (vec![1, 2, 9, 8], "b".to_owned())].into();
    let rules = rules_of(&values, &[]);
    let steps = |mode| searched(&rules, BeamOptions::new(4).mode(mode), 1).1;
    assert_eq!(steps(ScoreMode::Model), 4, "every token has its probability");
    assert_eq!(steps(ScoreMode::Renormalised), 1, "one choice");
    let single = rules_of(&[(vec![1, 2], "only".to_owned())].into(), &[]);
    let (found, steps) = searched(&single, BeamOptions::new(4).mode(ScoreMode::Renormalised), 1);
    assert_eq!((found[0].logprob, steps), (0.0, 0));
}

#[test]
fn what_cannot_be_searched() {
    let new = |rules: SpanRules, options| BeamSearch::new(Arc::new(rules), options);
    let items = || rules(set(&[("a", &[1])]));
    assert_eq!(new(items(), BeamOptions::new(0)).unwrap_err(), BatchError::NoWidth);
    let penalty = new(items(), BeamOptions::new(1).length_penalty(f64::NAN)).unwrap_err();
    assert!(penalty.to_string().contains("must be a finite number"), "{penalty}");
    let mut free = new(rules(AnyConstraint::new(Unconstrained)), BeamOptions::new(2)).unwrap();
    let logits = [0.0; VOCABULARY];
    let one = Rows::new(&logits, 1, VOCABULARY, VOCABULARY).unwrap();
    assert_eq!(free.advance(one).unwrap_err(), BatchError::Endless { row: 0 });
    let mut narrow = new(items(), BeamOptions::new(2)).unwrap();
    assert!(narrow.advance(Rows::new(&logits, 1, 3, 3).unwrap()).is_err());
    assert!(narrow.advance(Rows::new(&logits, 0, VOCABULARY, 0).unwrap()).is_err());
    narrow.advance(one).unwrap();
    assert!(narrow.prefixes().is_empty() && narrow.parents().is_empty());
    assert_eq!(narrow.into_hypotheses()[0].leaf.name.as_deref(), Some("a"));
}

#[test]
fn what_a_row_calls_impossible_is_not_found() {
    let mut search = BeamSearch::new(Arc::new(rules(set(&[("a", &[1]), ("b", &[2])]))), BeamOptions::new(2)).unwrap();
    let mut logits = [0.0; VOCABULARY];
    logits[2] = f32::NEG_INFINITY;
    search.advance(Rows::new(&logits, 1, VOCABULARY, VOCABULARY).unwrap()).unwrap();
    assert_eq!(search.into_hypotheses().len(), 1);
}

#[test]
fn rows_that_say_nothing_are_refused() {
    let ways =
        [ScoreMode::Model, ScoreMode::Renormalised, ScoreMode::AsGiven].map(|mode| BeamOptions::new(2).mode(mode));
    for options in ways.into_iter().flat_map(|options| [options, options.without_replacement(1)]) {
        for (nothing, found) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "-inf")] {
            let set = set(&[("a", &[1, 2]), ("b", &[1, 3]), ("c", &[2, 2]), ("d", &[2, 4])]);
            let mut search = BeamSearch::new(Arc::new(rules(set)), options).unwrap();
            search.advance(Rows::new(&[0.0; VOCABULARY], 1, VOCABULARY, VOCABULARY).unwrap()).unwrap();
            let mut logits = [0.0; 2 * VOCABULARY];
            logits[VOCABULARY..].fill(nothing);
            let error = search.advance(Rows::new(&logits, 2, VOCABULARY, VOCABULARY).unwrap()).unwrap_err();
            let after = search.prefixes()[1].iter().map(|token| token.get()).collect::<Vec<_>>();
            let said = format!(
                "row 1: the row of logits after {after:?} says nothing: all of its {VOCABULARY} entries are {found}"
            );
            assert_eq!((error.to_string(), error.row()), (said, Some(1)));
        }
    }
}
