//! The naive twin: sets as lists of all their sequences, and the plainest possible sums.

use crate::common::{Naive, id, ids};
use crate::scoring::table::Model;
use std::collections::{BTreeMap, BTreeSet};
use trie_core::{ByteTrie, Choice, NamedLeaf, TokenId, TokenizedLeaf, Trie};

/// What a set is to the twin: every sequence with its leaf.
pub(crate) type Sequences = BTreeMap<Vec<TokenId>, usize>;

pub(crate) fn sequences(naive: &Naive) -> Sequences {
    naive.leaves().into_keys().map(|tokens| ids(&tokens)).zip(0..).collect()
}

pub(crate) fn children(sequences: &Sequences, prefix: &[TokenId]) -> BTreeSet<TokenId> {
    let longer = sequences.keys().filter(|tokens| tokens.len() > prefix.len() && tokens.starts_with(prefix));
    longer.map(|tokens| tokens[prefix.len()]).collect()
}

/// The log-probability of each of `leaves` leaves.
pub(crate) fn exact(
    model: Model,
    prompt: &[TokenId],
    sequences: &Sequences,
    leaves: usize,
    ends: &[TokenId],
) -> Vec<f64> {
    let mut sums = vec![0.0; leaves];
    for (tokens, &leaf) in sequences {
        let after = |length: usize| [prompt, &tokens[..length]].concat();
        let each = tokens.iter().enumerate();
        let path: f64 = each.map(|(depth, &token)| model.share(&after(depth), |other| other == token)).product();
        let below = children(sequences, tokens);
        let whole = after(tokens.len());
        let stops = match (ends, below.is_empty()) {
            ([], true) => 1.0,
            ([], false) => model.share(&whole, |token| !below.contains(&token)),
            _ => model.share(&whole, |token| ends.contains(&token) && !below.contains(&token)),
        };
        sums[leaf] += path * stops;
    }
    sums.into_iter().map(f64::ln).collect()
}

/// Prefixes whose row says something of a value.
pub(crate) fn needed(sequences: &Sequences, ends: &[TokenId]) -> BTreeSet<Vec<TokenId>> {
    let all = sequences.keys().flat_map(|tokens| (0..=tokens.len()).map(|end| tokens[..end].to_vec()));
    all.filter(|prefix| !ends.is_empty() || !children(sequences, prefix).is_empty()).collect()
}

pub(crate) fn close(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() < 2e-5
}

pub(crate) fn all_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(&one, &other)| close(one, other)), "{found:?} and not {expected:?}");
}

pub(crate) fn mass(logprobs: &[f64]) -> f64 {
    logprobs.iter().map(|logprob| logprob.exp()).sum()
}

/// A choice in which every value was scored.
pub(crate) fn check_whole(choice: &Choice, expected: &[f64]) {
    all_close(&choice.logprobs, expected);
    assert!(choice.logprobs_high.is_none() && choice.is_certain);
    assert!((choice.mass_low - mass(expected)).abs() < 1e-5 && choice.mass_low == choice.mass_high);
    let ranked: Vec<f64> = choice.ranking.iter().map(|leaf| choice.logprobs[leaf.index()]).collect();
    assert!(ranked.len() == expected.len() && ranked.is_sorted_by(|a, b| a >= b));
    let shares = choice.probabilities();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
}

/// A choice that may know of bounds only.
pub(crate) fn check_bounds(choice: &Choice, expected: &[f64]) {
    let high = choice.logprobs_high.as_ref().unwrap_or(&choice.logprobs);
    for ((&low, &high), &exact) in choice.logprobs.iter().zip(high).zip(expected) {
        assert!(low <= exact + 2e-5 && exact <= high + 2e-5, "{low} {exact} {high}");
    }
    assert!(choice.mass_low <= mass(expected) + 1e-5 && mass(expected) <= choice.mass_high + 1e-5);
    let best = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if choice.is_certain
        && let Some(first) = choice.ranking.first()
    {
        assert!(close(expected[first.index()], best), "certain of {first:?}, and the best has {best}");
    }
}

/// Tokens with these bytes, by number.
pub(crate) const PIECES: [&str; 9] = ["a", "b", "ab", "ba", "aba", "bab", "aa", "bb", "abab"];

pub(crate) fn vocab() -> ByteTrie {
    ByteTrie::new(PIECES.iter().zip(0..).map(|(text, token)| (text.as_bytes(), id(token)))).unwrap()
}

/// Every sequence of tokens with this text.
pub(crate) fn tokenizations(text: &str) -> Vec<Vec<TokenId>> {
    if text.is_empty() {
        return vec![Vec::new()];
    }
    let begins = PIECES.iter().zip(0..).filter_map(|(piece, token)| Some((id(token), text.strip_prefix(piece)?)));
    begins
        .flat_map(|(token, rest)| tokenizations(rest).into_iter().map(move |rest| [vec![token], rest].concat()))
        .collect()
}

/// The set of these texts in all tokenisations, and a list of them all. The canonical sequences are the longest or the
/// shortest.
pub(crate) fn graph(texts: &BTreeSet<String>, longest: bool) -> (Trie, Sequences) {
    let canonical = |text: &String| {
        let mut all = tokenizations(text);
        all.sort_by_key(|tokens| if longest { usize::MAX - tokens.len() } else { tokens.len() });
        all.swap_remove(0)
    };
    let canonical: Vec<Vec<TokenId>> = texts.iter().map(canonical).collect();
    let mut leaves = Vec::new();
    for (name, canonical) in texts.iter().zip(&canonical) {
        leaves.push(TokenizedLeaf { name, bytes: name.as_bytes(), canonical });
    }
    let trie = Trie::all_tokenizations(&leaves, &vocab(), |texts| vec![None; texts.len()], &|| false).unwrap();
    let all =
        texts.iter().zip(0..).flat_map(|(text, leaf)| tokenizations(text).into_iter().map(move |one| (one, leaf)));
    (trie, all.collect())
}

/// Values whose last token may go on with other text.
pub(crate) fn partial_token() -> Trie {
    let (one, other) = (ids(&[2]), ids(&[2, 0]));
    let leaves = [NamedLeaf { name: "ab", tokens: &one }, NamedLeaf { name: "aba", tokens: &other }];
    Trie::with_partial_tokens(&leaves, &vocab(), |token| PIECES[token.index()].as_bytes(), &|| false).unwrap()
}

/// Every sequence of a set, by walking it.
pub(crate) fn walked(trie: &Trie) -> Sequences {
    let mut open = vec![(Vec::new(), trie.root())];
    let mut sequences = Sequences::new();
    while let Some((tokens, at)) = open.pop() {
        sequences.extend(trie.leaf_at(at).map(|leaf| (tokens.clone(), leaf.index())));
        let below = trie
            .children(at)
            .iter()
            .filter_map(|&token| Some(([&tokens[..], &[token]].concat(), trie.step(at, token)?)));
        open.extend(below);
    }
    sequences
}

pub(crate) fn set(leaves: &[(&str, &[u32])]) -> Trie {
    Naive { rows: leaves.iter().map(|&(name, tokens)| (name.to_owned(), tokens.to_vec())).collect() }.trie()
}
