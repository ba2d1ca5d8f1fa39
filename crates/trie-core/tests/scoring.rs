//! Exact scoring over a table of logits, against a twin that lists every sequence and adds up softmaxes in double precision.

mod common;

use common::{Naive, id, ids};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use trie_core::{
    AnyConstraint, ByteTrie, Choice, ChooseError, ChooseOptions, Decoded, FileOptions, FileProblem, LeafId, NotListed,
    OverrunLeaf, PrefixRows, PrefixRowsError, PromptProblem, RowProblem, Sequence, SpelledLeaf, TokenId, TokenTree,
    TreeDecoder, Trie, Unconstrained, VocabularyId, choose, choose_many,
};

const VOCABULARY: usize = 24;

/// A model in a hash: the prefix seeds the row after it.
#[derive(Debug, Clone, Copy)]
struct Model {
    seed: u64,
    /// Whether some logits are NaN or infinite, and some rows hold nothing else.
    odd: bool,
}

impl Model {
    fn row(self, prefix: &[TokenId]) -> Vec<f32> {
        let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let mut state = prefix.iter().fold(mix(self.seed, 77), |state, token| mix(state, u64::from(token.get()) + 1));
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let starved = self.odd && random(6) == 0;
        let certain = self.odd && random(4) == 0;
        (0..VOCABULARY)
            .map(|_| match random(if self.odd { 8 } else { 1 }) {
                _ if starved => [f32::NAN, f32::NEG_INFINITY][random(2) as usize],
                1 => f32::NAN,
                2 => f32::NEG_INFINITY,
                3 if certain => f32::INFINITY,
                _ => random(12_000) as f32 / 1000.0 - 6.0,
            })
            .collect()
    }

    /// The probability of a token, the plain way.
    fn share(self, prefix: &[TokenId], of: impl Fn(TokenId) -> bool) -> f64 {
        let row: Vec<f64> = self.row(prefix).into_iter().map(f64::from).collect();
        let best = row.iter().copied().filter(|logit| !logit.is_nan()).fold(f64::NEG_INFINITY, f64::max);
        let weight = |logit: f64| match best {
            f64::NEG_INFINITY => 0.0,
            f64::INFINITY => f64::from(u8::from(logit == f64::INFINITY)),
            _ if logit.is_nan() => 0.0,
            _ => (logit - best).exp(),
        };
        let part = |(token, logit): (usize, &f64)| if of(id(token as u32)) { weight(*logit) } else { 0.0 };
        let sum: f64 = row.iter().map(|&logit| weight(logit)).sum();
        if sum == 0.0 { 0.0 } else { row.iter().enumerate().map(part).sum::<f64>() / sum }
    }
}

/// The host of that model: decodes trees of tokens, and notes what it was asked.
#[derive(Debug)]
struct Table {
    model: Model,
    room: usize,
    at_once: usize,
    /// The prompt of each call and the paths whose rows were wanted.
    asked: Vec<(Vec<TokenId>, Vec<Vec<TokenId>>)>,
    /// Rows before it says that it cannot go on.
    left: usize,
}

impl Table {
    fn new(model: Model) -> Self {
        Self { model, room: 1000, at_once: 40, asked: Vec::new(), left: usize::MAX }
    }

    fn rows(&self) -> usize {
        self.asked.iter().map(|(_, paths)| paths.len()).sum()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("told to stop")]
struct Stopped;

impl TreeDecoder for Table {
    type Error = Stopped;

    fn n_vocab(&self) -> usize {
        VOCABULARY
    }

    fn room(&self) -> usize {
        self.room
    }

    fn rows_at_once(&self) -> usize {
        self.at_once
    }

    fn n_threads(&self) -> u32 {
        3
    }

    fn decode(
        &mut self,
        prompt: &[TokenId],
        tree: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<Decoded, Stopped> {
        assert!(prompt.len() + tree.depth() <= self.room, "more than there is room for");
        assert!(!tree.wants_root() || !prompt.is_empty(), "no row before the first token");
        assert!(tree.rows() > 0, "asked for nothing");
        let mut path: Vec<usize> = Vec::new();
        for (number, node) in tree.nodes().iter().enumerate() {
            path.truncate(node.depth - 1);
            assert_eq!(path.last().copied(), node.parent, "depth first");
            path.push(number);
            assert!(node.wanted || node.has_children, "decoded for nothing");
        }
        self.asked.push((prompt.to_vec(), Vec::new()));
        let wanted = (0..tree.nodes().len()).filter(|&node| tree.nodes()[node].wanted).map(Some);
        for node in tree.wants_root().then_some(None).into_iter().chain(wanted) {
            self.left = self.left.checked_sub(1).ok_or(Stopped)?;
            let path = node.map_or_else(Vec::new, |node| tree.path(node));
            each(node, &self.model.row(&[prompt, &path].concat()));
            self.asked.last_mut().unwrap().1.push(path);
        }
        Ok(Decoded { forward_passes: 1, tokens: tree.nodes().len() })
    }
}

/// What a set is to the twin: every sequence with its leaf.
type Sequences = BTreeMap<Vec<TokenId>, usize>;

fn sequences(naive: &Naive) -> Sequences {
    naive.leaves().into_keys().map(|tokens| ids(&tokens)).zip(0..).collect()
}

fn children(sequences: &Sequences, prefix: &[TokenId]) -> BTreeSet<TokenId> {
    let longer = sequences.keys().filter(|tokens| tokens.len() > prefix.len() && tokens.starts_with(prefix));
    longer.map(|tokens| tokens[prefix.len()]).collect()
}

/// The log-probability of each of `leaves` leaves.
fn exact(model: Model, prompt: &[TokenId], sequences: &Sequences, leaves: usize, ends: &[TokenId]) -> Vec<f64> {
    let mut sums = vec![0.0; leaves];
    for (tokens, &leaf) in sequences {
        let after = |length: usize| [prompt, &tokens[..length]].concat();
        let steps = tokens.iter().enumerate();
        let path: f64 = steps.map(|(depth, &token)| model.share(&after(depth), |other| other == token)).product();
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
fn needed(sequences: &Sequences, ends: &[TokenId]) -> BTreeSet<Vec<TokenId>> {
    let all = sequences.keys().flat_map(|tokens| (0..=tokens.len()).map(|end| tokens[..end].to_vec()));
    all.filter(|prefix| !ends.is_empty() || !children(sequences, prefix).is_empty()).collect()
}

fn close(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() < 2e-5
}

fn all_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(&one, &other)| close(one, other)), "{found:?} and not {expected:?}");
}

fn mass(logprobs: &[f64]) -> f64 {
    logprobs.iter().map(|logprob| logprob.exp()).sum()
}

/// A choice in which every value was scored.
fn check_whole(choice: &Choice, expected: &[f64]) {
    all_close(&choice.logprobs, expected);
    assert!(choice.logprobs_high.is_none() && choice.is_certain);
    assert!((choice.mass_low - mass(expected)).abs() < 1e-5 && choice.mass_low == choice.mass_high);
    let ranked: Vec<f64> = choice.ranking.iter().map(|leaf| choice.logprobs[leaf.index()]).collect();
    assert!(ranked.len() == expected.len() && ranked.is_sorted_by(|a, b| a >= b));
    let shares = choice.probabilities();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
}

/// A choice that may know of bounds only.
fn check_bounds(choice: &Choice, expected: &[f64]) {
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

fn sets() -> impl Strategy<Value = Naive> {
    let tokens = prop::collection::vec(prop_oneof![3 => 0..4u32, 1 => 0..20u32], 1..6);
    prop::collection::vec(("[a-d]{0,3}", tokens), 1..25).prop_map(|rows| Naive { rows })
}

fn models() -> impl Strategy<Value = Model> {
    (any::<u64>(), prop_oneof![3 => Just(false), 1 => Just(true)]).prop_map(|(seed, odd)| Model { seed, odd })
}

fn ends() -> impl Strategy<Value = Vec<TokenId>> {
    prop_oneof![Just(Vec::new()), prop::collection::vec(0..VOCABULARY as u32, 1..4).prop_map(|ends| ids(&ends))]
}

fn prompts() -> impl Strategy<Value = Vec<TokenId>> {
    prop::collection::vec(0..VOCABULARY as u32, 1..5).prop_map(|tokens| ids(&tokens))
}

/// Tokens with these bytes, by number.
const PIECES: [&str; 9] = ["a", "b", "ab", "ba", "aba", "bab", "aa", "bb", "abab"];

fn vocab() -> ByteTrie {
    ByteTrie::new(PIECES.iter().zip(0..).map(|(text, token)| (text.as_bytes(), id(token)))).unwrap()
}

/// Every sequence of tokens with this text.
fn tokenizations(text: &str) -> Vec<Vec<TokenId>> {
    if text.is_empty() {
        return vec![Vec::new()];
    }
    let begins = PIECES.iter().zip(0..).filter_map(|(piece, token)| Some((id(token), text.strip_prefix(piece)?)));
    begins
        .flat_map(|(token, rest)| tokenizations(rest).into_iter().map(move |rest| [vec![token], rest].concat()))
        .collect()
}

/// The set of these texts in all tokenisations, and a list of them all. The canonical sequences are the longest or the shortest.
fn graph(texts: &BTreeSet<String>, longest: bool) -> (Trie, Sequences) {
    let canonical = |text: &String| {
        let mut all = tokenizations(text);
        all.sort_by_key(|tokens| if longest { usize::MAX - tokens.len() } else { tokens.len() });
        all.swap_remove(0)
    };
    let canonical: Vec<Vec<TokenId>> = texts.iter().map(canonical).collect();
    let mut leaves = Vec::new();
    for (name, canonical) in texts.iter().zip(&canonical) {
        leaves.push(SpelledLeaf { name, bytes: name.as_bytes(), canonical });
    }
    let trie = Trie::spellings(&leaves, &vocab(), |texts| vec![None; texts.len()], &|| false).unwrap();
    let all =
        texts.iter().zip(0..).flat_map(|(text, leaf)| tokenizations(text).into_iter().map(move |one| (one, leaf)));
    (trie, all.collect())
}

/// Values of which the last token may go on with other text.
fn overrun() -> Trie {
    let (one, other) = (ids(&[2]), ids(&[2, 0]));
    let leaves = [OverrunLeaf { name: "ab", tokens: &one }, OverrunLeaf { name: "aba", tokens: &other }];
    Trie::with_overrun(&leaves, &vocab(), |token| PIECES[token.index()].as_bytes(), &|| false).unwrap()
}

/// Every sequence of a set, by walking it.
fn walked(trie: &Trie) -> Sequences {
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

fn texts() -> impl Strategy<Value = BTreeSet<String>> {
    prop::collection::btree_set("[ab]{1,6}", 1..6)
}

proptest! {
    #[test]
    fn every_value_of_a_tree(naive in sets(), model in models(), prompt in prompts(), ends in ends()) {
        let (trie, all) = (naive.trie(), sequences(&naive));
        let expected = exact(model, &prompt, &all, trie.len(), &ends);
        let mut table = Table::new(model);
        let options = ChooseOptions::new().with_end_tokens(&ends);
        let choice = choose(&mut table, &prompt, &trie, &options).unwrap();
        check_whole(&choice, &expected);

        // One call, and every row once: that after the prompt is the last token's.
        let (held, last) = prompt.split_at(prompt.len() - 1);
        let [(before, paths)] = &table.asked[..] else { panic!("{:?}", table.asked) };
        prop_assert_eq!(before, held);
        let rows: BTreeSet<Vec<TokenId>> = needed(&all, &ends).into_iter().map(|path| [last, &path].concat()).collect();
        prop_assert_eq!(paths.len(), rows.len());
        prop_assert_eq!(&paths.iter().cloned().collect::<BTreeSet<_>>(), &rows);
        let stats = choice.stats;
        prop_assert_eq!((stats.rows, stats.forward_passes, stats.n_threads, stats.healed_bytes), (rows.len(), 1, 3, 0));

        // A set's own end tokens count where none are given, and an empty list is none.
        let own = trie.with_end_tokens(ends.clone());
        let again = choose(&mut Table::new(model), &prompt, &own, &ChooseOptions::new()).unwrap();
        prop_assert_eq!(&again.logprobs, &choice.logprobs);
        let without = choose(&mut Table::new(model), &prompt, &own, &ChooseOptions::new().with_end_tokens(&[])).unwrap();
        all_close(&without.logprobs, &exact(model, &prompt, &all, own.len(), &[]));

        // A function of prefixes is as good a host.
        let mut rows = PrefixRows::new(VOCABULARY, |prefixes: &[&[TokenId]]| {
            assert!(prefixes.len() <= 7);
            Ok::<_, Infallible>(prefixes.iter().flat_map(|prefix| model.row(prefix)).collect::<Vec<f32>>())
        }).with_rows_at_once(7);
        let other = choose(&mut rows, &prompt, &own, &ChooseOptions::new()).unwrap();
        prop_assert_eq!(other.logprobs, choice.logprobs);
        prop_assert_eq!(other.stats.forward_passes as usize, stats.rows.div_ceil(7));
    }

    #[test]
    fn the_best_of_a_tree(naive in sets(), model in models(), prompt in prompts(), ends in ends(), top in 1..30usize, at_once in 1..50usize) {
        let (trie, all) = (naive.trie(), sequences(&naive));
        let expected = exact(model, &prompt, &all, trie.len(), &ends);
        let mut table = Table { at_once, ..Table::new(model) };
        let options = ChooseOptions::new().with_end_tokens(&ends).with_top(top);
        let choice = choose(&mut table, &prompt, &trie, &options).unwrap();
        let mut falling = expected.clone();
        falling.sort_by(|a, b| b.total_cmp(a));
        prop_assert!(choice.is_certain && choice.logprobs_high.is_none());
        let possible = falling.iter().filter(|logprob| logprob.is_finite()).count();
        prop_assert!((top.min(possible)..=top).contains(&choice.ranking.len()), "{:?}", choice.ranking);
        for (leaf, best) in choice.ranking.iter().zip(falling) {
            prop_assert!(close(choice.logprobs[leaf.index()], best) && close(expected[leaf.index()], best));
        }
        for (&found, &exact) in choice.logprobs.iter().zip(&expected) {
            prop_assert!(found.is_nan() || close(found, exact));
        }
        prop_assert!(choice.mass_low <= mass(&expected) + 1e-5 && mass(&expected) <= choice.mass_high + 1e-5);
        let (asked, rows) = (table.rows(), needed(&all, &ends).len());
        prop_assert!(asked == choice.stats.rows && asked <= rows, "{asked} of {rows}");
        let once: BTreeSet<&Vec<TokenId>> = table.asked.iter().flat_map(|(_, paths)| paths).collect();
        prop_assert_eq!(once.len(), asked, "no row twice");
        prop_assert!(table.asked.iter().all(|(before, paths)| *before == prompt && paths.len() <= at_once.max(32)));
    }

    #[test]
    fn bounds_of_a_tree(naive in sets(), model in models(), prompt in prompts(), ends in ends(), max_rows in 1..20usize, top in prop::option::of(1..4usize)) {
        let (trie, all) = (naive.trie(), sequences(&naive));
        let expected = exact(model, &prompt, &all, trie.len(), &ends);
        let mut table = Table::new(model);
        let options = ChooseOptions::new().with_end_tokens(&ends).with_max_rows(max_rows).with_top(top);
        let choice = choose(&mut table, &prompt, &trie, &options).unwrap();
        prop_assert!(table.rows() <= max_rows);
        check_bounds(&choice, &expected);
        if top.is_none() && max_rows >= needed(&all, &ends).len() {
            check_whole(&choice, &expected);
        }
    }

    #[test]
    fn all_tokenizations_together(texts in texts(), longest in any::<bool>(), model in models(), prompt in prompts(), ends in ends(), max_rows in 1..60usize, top in prop::option::of(1..4usize)) {
        let (trie, all) = graph(&texts, longest);
        let expected = exact(model, &prompt, &all, trie.len(), &ends);
        let mut table = Table::new(model);
        let options = ChooseOptions::new().with_end_tokens(&ends);
        let choice = choose(&mut table, &prompt, &trie, &options).unwrap();
        check_whole(&choice, &expected);
        prop_assert_eq!((table.asked.len(), table.rows()), (1, needed(&all, &ends).len()));

        let options = options.with_max_rows(max_rows).with_top(top);
        let mut table = Table::new(model);
        let choice = choose(&mut table, &prompt, &trie, &options).unwrap();
        prop_assert!(table.rows() <= max_rows);
        check_bounds(&choice, &expected);
        prop_assert!(choice.ranking.len() <= top.unwrap_or(usize::MAX));

        // Paths that are too long stay in the bounds, as long as the canonical ones fit.
        let need = trie.leaves().map(|leaf| leaf.tokens.len()).max().unwrap() - usize::from(ends.is_empty());
        for room in [need, need + 1] {
            let mut table = Table { room: prompt.len() + room, ..Table::new(model) };
            check_bounds(&choose(&mut table, &prompt, &trie, &options).unwrap(), &expected);
            check_bounds(&choose(&mut table, &prompt, &trie, &options.with_top(None).with_max_rows(None)).unwrap(), &expected);
        }
    }

    #[test]
    fn several_prompts_are_as_each_alone(naive in sets(), model in models(), shared in prompts(), tails in prop::collection::vec(prompts(), 1..5), ends in ends(), top in prop::option::of(1..4usize)) {
        let trie = naive.trie();
        let prompts: Vec<Vec<TokenId>> = tails.iter().map(|tail| [&shared[..], tail].concat()).collect();
        let slices: Vec<&[TokenId]> = prompts.iter().map(Vec::as_slice).collect();
        let options = ChooseOptions::new().with_end_tokens(&ends).with_top(top);
        let mut table = Table::new(model);
        let together = choose_many(&mut table, &slices, &trie, &options).unwrap();
        prop_assert_eq!(together.len(), prompts.len());
        if top.is_none() {
            let [(held, _)] = &table.asked[..] else { panic!("{:?}", table.asked) };
            prop_assert!(held.starts_with(&shared), "what all begin with is held");
            let shortest = prompts.iter().map(Vec::len).min().unwrap();
            prop_assert!(held.len() < shortest && prompts.iter().all(|prompt| prompt.starts_with(held)));
        }
        for (prompt, choice) in slices.iter().zip(&together) {
            let alone = choose(&mut Table::new(model), prompt, &trie, &options).unwrap();
            prop_assert!(alone.logprobs.iter().zip(&choice.logprobs).all(|(one, other)| one.to_bits() == other.to_bits()));
            prop_assert_eq!((&alone.ranking, alone.stats.rows), (&choice.ranking, choice.stats.rows));
        }
    }

    #[test]
    fn a_host_that_stops_is_usable_afterwards(naive in sets(), seed in any::<u64>(), top in prop::option::of(1..4usize)) {
        let (trie, prompt, model) = (naive.trie(), ids(&[5, 6]), Model { seed, odd: false });
        let options = ChooseOptions::new().with_top(top);
        let whole = choose(&mut Table::new(model), &prompt, &trie, &options).unwrap();
        let mut table = Table { at_once: 1, ..Table::new(model) };
        for rows in 0..whole.stats.rows {
            table.left = rows;
            let error = choose(&mut table, &prompt, &trie, &options).unwrap_err();
            prop_assert_eq!(error, ChooseError::Host(Stopped));
        }
        table.left = whole.stats.rows;
        let after = choose(&mut table, &prompt, &trie, &options).unwrap();
        prop_assert_eq!(&after.ranking, &whole.ranking);
        prop_assert_eq!(format!("{:?}", after.logprobs), format!("{:?}", whole.logprobs));
    }
}

#[test]
fn values_whose_last_token_may_go_on() {
    let trie = overrun();
    assert!(!trie.is_tree());
    for seed in 0..50 {
        let (model, prompt) = (Model { seed, odd: seed % 2 == 1 }, ids(&[8, 1]));
        for ends in [ids(&[]), ids(&[7, 20])] {
            let expected = exact(model, &prompt, &walked(&trie), trie.len(), &ends);
            let options = ChooseOptions::new().with_end_tokens(&ends);
            check_whole(&choose(&mut Table::new(model), &prompt, &trie, &options).unwrap(), &expected);
        }
    }
}

/// Over 4096 rows the best is searched for, without being asked.
#[test]
fn a_large_set_is_searched() {
    let rows: Vec<(String, Vec<u32>)> =
        (0..8000u32).map(|row| (row.to_string(), vec![row % 20, row / 20 % 20, row / 400])).collect();
    let naive = Naive { rows };
    let (trie, prompt, ends) = (naive.trie(), ids(&[3]), ids(&[23]));
    let model = Model { seed: 4, odd: false };
    let all: Vec<f64> = trie
        .leaves()
        .map(|leaf| {
            let after = |length: usize| [&prompt, &leaf.tokens[..length]].concat();
            let steps = leaf.tokens.iter().enumerate();
            let path: f64 = steps.map(|(depth, &token)| model.share(&after(depth), |other| other == token)).product();
            (path * model.share(&after(leaf.tokens.len()), |token| token == ends[0])).ln()
        })
        .collect();
    let mut table = Table::new(model);
    let choice = choose(&mut table, &prompt, &trie, &ChooseOptions::new().with_end_tokens(&ends)).unwrap();
    let best = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(choice.ranking.len(), 1);
    assert!(choice.is_certain && close(all[choice.ranking[0].index()], best));
    assert!(close(choice.logprobs[choice.ranking[0].index()], best));
    assert!(table.rows() < 2000, "{} of 8421 rows", table.rows());
    assert!(choice.logprobs.iter().any(|logprob| logprob.is_nan()));
    // Without end tokens 421 rows say all.
    let choice = choose(&mut table, &prompt, &trie, &ChooseOptions::new()).unwrap();
    assert_eq!((choice.stats.rows, choice.ranking.len()), (421, 8000));
}

/// What one row says where logits are no numbers.
#[test]
fn logits_that_are_no_numbers() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let trie = Naive { rows: vec![("a".into(), vec![0]), ("ab".into(), vec![0, 1]), ("c".into(), vec![2])] }.trie();
    let logprobs = |first: [f32; 4], second: [f32; 4], ends: &[TokenId]| {
        let mut rows = PrefixRows::new(4, |prefixes: &[&[TokenId]]| {
            let row = |prefix: &&[TokenId]| if prefix.len() == 1 { first } else { second };
            Ok::<_, Infallible>(prefixes.iter().flat_map(row).collect::<Vec<f32>>())
        });
        let options = ChooseOptions::new().with_end_tokens(ends);
        let choice = choose(&mut rows, &[id(3)], &trie, &options).unwrap();
        let shares: f64 = choice.probabilities().iter().sum();
        assert!((shares - 1.0).abs() < 1e-9 && choice.mass_high <= 1.0);
        choice.logprobs.iter().map(|logprob| logprob.exp()).collect::<Vec<f64>>()
    };
    // An infinite logit is certainty, shared by all that have it; the second row matters after "a" alone.
    all_close(&logprobs([inf, 0.0, 0.0, 0.0], [nan, inf, 0.0, 5.0], &[]), &[0.0, 1.0, 0.0]);
    all_close(&logprobs([inf, nan, inf, 0.0], [nan, 0.0, inf, 5.0], &[]), &[0.5, 0.0, 0.5]);
    all_close(&logprobs([inf, 0.0, 0.0, inf], [inf, inf, 0.0, -inf], &[]), &[0.25, 0.25, 0.0]);
    all_close(&logprobs([inf, 0.0, 0.0, 0.0], [0.0, inf, inf, 0.0], &[id(2), id(3)]), &[0.5, 0.25, 0.0]);
    // A row without a usable logit makes nothing probable, not even to stop.
    all_close(&logprobs([inf, 0.0, 0.0, 0.0], [nan; 4], &[]), &[0.0; 3]);
    all_close(&logprobs([-inf; 4], [0.0; 4], &[]), &[0.0; 3]);
    all_close(&logprobs([nan; 4], [0.0; 4], &[id(3)]), &[0.0; 3]);
}

fn set(leaves: &[(&str, &[u32])]) -> Trie {
    Naive { rows: leaves.iter().map(|&(name, tokens)| (name.to_owned(), tokens.to_vec())).collect() }.trie()
}

#[test]
fn constraints_of_other_kinds_become_sets() {
    let model = Model { seed: 9, odd: false };
    let prompt = ids(&[3, 3]);
    let choose = |constraint: AnyConstraint| choose(&mut Table::new(model), &prompt, constraint, &ChooseOptions::new());
    let verbs = set(&[("get", &[1]), ("set", &[2, 2])]);
    let objects = set(&[(" name", &[7]), (" names", &[7, 1]), (" color", &[9, 1])]).with_end_tokens(ids(&[20, 21]));
    let parts = Sequence::new([AnyConstraint::from(&verbs), AnyConstraint::from(&objects)]).unwrap();
    let choice = choose(AnyConstraint::new(parts)).unwrap();
    let joined = [[1, 7].as_slice(), &[1, 7, 1], &[1, 9, 1], &[2, 2, 7], &[2, 2, 7, 1], &[2, 2, 9, 1]];
    let all = joined.iter().map(|tokens| ids(tokens));
    let all: Sequences = all.zip(0..).collect();
    check_whole(&choice, &exact(model, &prompt, &all, 6, &ids(&[20, 21])));

    // Alone, each part is as before.
    let alone = AnyConstraint::new(Sequence::new([AnyConstraint::from(&verbs)]).unwrap());
    assert_eq!(choose(alone).unwrap().logprobs, choose(verbs.into()).unwrap().logprobs);

    let endless = choose(AnyConstraint::new(Unconstrained)).unwrap_err();
    assert_eq!(endless, ChooseError::NotListed(NotListed::Endless));
    let many =
        Naive { rows: (0..20 * 60).map(|row| (String::new(), vec![row / 60, row % 20, row / 20 % 20])).collect() };
    let many = AnyConstraint::from(many.trie());
    let parts = Sequence::new([many.clone(), many.clone(), many]).unwrap();
    let too_many = choose(AnyConstraint::new(parts)).unwrap_err();
    assert_eq!(too_many, ChooseError::NotListed(NotListed::TooMany { limit: 1 << 20 }));
    let parts = Sequence::new([AnyConstraint::from(&overrun()), AnyConstraint::from(&objects)]).unwrap();
    assert_eq!(choose(AnyConstraint::new(parts)).unwrap_err(), ChooseError::ManySequences);
}

#[test]
fn refused_before_anything_is_asked() {
    let trie = set(&[("short", &[1]), ("long", &[1, 2, 3])]);
    let far = ids(&[24]);
    let plain = ChooseOptions::new();
    let mut table = Table { room: 6, left: 0, ..Table::new(Model { seed: 1, odd: false }) };
    let mut refused = |prompt: &[u32], trie: &Trie, options: &ChooseOptions<'_>| {
        choose(&mut table, &ids(prompt), trie, options).unwrap_err()
    };
    let of_prompt = |problem| ChooseError::Prompt { number: 0, problem };
    assert_eq!(refused(&[], &trie, &plain), of_prompt(PromptProblem::Empty));
    let outside = PromptProblem::OutsideVocabulary { position: 1, token: far[0], n_vocab: VOCABULARY };
    assert_eq!(refused(&[3, 24], &trie, &plain), of_prompt(outside));
    assert_eq!(refused(&[3; 7], &trie, &plain), of_prompt(PromptProblem::TooLong { tokens: 7, room: 6 }));
    let value =
        |prompt| of_prompt(PromptProblem::ValueTooLong { value: Some("long".into()), tokens: 3, prompt, room: 6 });
    assert_eq!(refused(&[3; 5], &trie, &plain), value(5));
    // An end token must have room as well.
    assert_eq!(refused(&[3; 4], &trie, &plain.with_end_tokens(&ids(&[5]))), value(4));
    assert_eq!(refused(&[3; 4], &trie, &plain), ChooseError::Host(Stopped), "there is room");
    let position = ChooseError::EndTokenOutsideVocabulary { position: 0, token: far[0], n_vocab: VOCABULARY };
    assert_eq!(refused(&[3], &trie, &plain.with_end_tokens(&far)), position);
    assert_eq!(refused(&[3], &trie.clone().with_end_tokens(far.clone()), &plain), position);
    let outside = ChooseError::SetOutsideVocabulary { max_token: far[0], n_vocab: VOCABULARY };
    assert_eq!(refused(&[3], &set(&[("far", &[24])]), &plain), outside);
    assert_eq!(refused(&[3], &trie, &plain.with_top(0)), ChooseError::Zero { what: "top" });
    assert_eq!(refused(&[3], &trie, &plain.with_max_rows(0)), ChooseError::Zero { what: "max_rows" });
    let (good, bad) = (ids(&[3]), ids(&[]));
    let error = choose_many(&mut table, &[&good, &good, &bad], &trie, &plain).unwrap_err();
    assert_eq!(error, ChooseError::Prompt { number: 2, problem: PromptProblem::Empty });
    assert!(choose_many(&mut table, &[], &trie, &plain).unwrap().is_empty());
    assert_eq!(table.asked.len(), 1, "the one with room");
    assert_eq!(ChooseError::Host(Stopped).to_string(), "told to stop");
    assert!(value(5).to_string().contains("no room for a value of 3 tokens (\"long\") after the 5 of the prompt"));
}

/// A host that gives rows as it likes.
struct Careless(Vec<(Option<usize>, usize)>);

impl TreeDecoder for Careless {
    type Error = Infallible;

    fn n_vocab(&self) -> usize {
        VOCABULARY
    }

    fn room(&self) -> usize {
        100
    }

    fn rows_at_once(&self) -> usize {
        1
    }

    fn decode(
        &mut self,
        _: &[TokenId],
        _: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<Decoded, Infallible> {
        self.0.iter().for_each(|&(node, length)| each(node, &vec![0.0; length]));
        Ok(Decoded::default())
    }
}

#[test]
fn rows_that_were_not_asked_for_are_no_probabilities() {
    // The last token of the prompt, 1, 2 and 3 below it: of each a row is wanted, and of no more.
    let trie = set(&[("a", &[1, 2, 3, 4])]);
    let with = |rows: &[(Option<usize>, usize)], top: Option<usize>| {
        choose(&mut Careless(rows.to_vec()), &ids(&[5, 6]), &trie, &ChooseOptions::new().with_top(top))
    };
    let row = |node| (Some(node), VOCABULARY);
    assert!(with(&[row(0), row(1), row(2), row(3)], None).is_ok());
    let problem = |rows: &[(Option<usize>, usize)], top| match with(rows, top) {
        Err(ChooseError::Rows(problem)) => problem,
        other => panic!("{other:?}"),
    };
    let n_vocab = VOCABULARY;
    assert_eq!(problem(&[row(0), row(1), row(2)], None), RowProblem::Missing { missing: 1 });
    assert_eq!(problem(&[], None), RowProblem::Missing { missing: 4 });
    assert_eq!(problem(&[row(0), row(0)], None), RowProblem::Unwanted { node: Some(0) });
    assert_eq!(problem(&[row(4)], None), RowProblem::Unwanted { node: Some(4) });
    assert_eq!(problem(&[(None, n_vocab)], None), RowProblem::Unwanted { node: None });
    assert_eq!(problem(&[row(1), row(0)], None), RowProblem::BeforeParent { node: 1 });
    for found in [0, n_vocab - 1, n_vocab + 1] {
        assert_eq!(problem(&[row(0), (Some(1), found), row(2), row(3)], None), RowProblem::Length { found, n_vocab });
    }
    // A search asks for the row after the prompt first.
    assert_eq!(problem(&[row(0)], Some(1)), RowProblem::Unwanted { node: Some(0) });
    assert_eq!(problem(&[], Some(1)), RowProblem::Missing { missing: 1 });
    assert_eq!(problem(&[(None, n_vocab), (None, n_vocab)], Some(1)), RowProblem::Unwanted { node: None });
    let trie = graph(&["ab".to_owned()].into(), true).0;
    let early = Careless(vec![row(0), (None, n_vocab)]);
    let early = choose(&mut { early }, &ids(&[5]), &trie, &ChooseOptions::new().with_top(1)).unwrap_err();
    assert_eq!(early, ChooseError::Rows(RowProblem::BeforeParent { node: 0 }));

    let mut short = PrefixRows::new(VOCABULARY, |prefixes: &[&[TokenId]]| {
        Ok::<_, Infallible>(vec![0.0; prefixes.len() * (VOCABULARY + 1)])
    });
    let error = choose(&mut short, &ids(&[5]), set(&[("a", &[1])]), &ChooseOptions::new()).unwrap_err();
    let length = PrefixRowsError::Length { found: VOCABULARY + 1, prefixes: 1, n_vocab: VOCABULARY };
    assert_eq!(error, ChooseError::Host(length));
    let mut refuses = PrefixRows::new(VOCABULARY, |_: &[&[TokenId]]| Err::<Vec<f32>, _>(Stopped)).with_room(2);
    let error = choose(&mut refuses, &ids(&[5]), set(&[("a", &[1])]), &ChooseOptions::new()).unwrap_err();
    assert_eq!(error, ChooseError::Host(PrefixRowsError::Function(Stopped)));
    let error = choose(&mut refuses, &ids(&[5, 5, 5]), set(&[("a", &[1])]), &ChooseOptions::new()).unwrap_err();
    assert!(matches!(error, ChooseError::Prompt { problem: PromptProblem::TooLong { tokens: 3, room: 2 }, .. }));
}

fn bytes(trie: &Trie, fingerprint: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let vocabulary = fingerprint.map(|text| VocabularyId { size: VOCABULARY, fingerprint: Some(text) });
    trie.write_to(&mut bytes, vocabulary).unwrap();
    bytes
}

/// The header's checksum, as somebody would compute it who forges a file.
fn sign(bytes: &mut [u8]) {
    let sections = u32::from_le_bytes(bytes[44..48].try_into().unwrap()) as usize;
    let table = 64 + 32 * sections.min(16);
    if bytes.len() >= table {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[..60]);
        hasher.update(&bytes[64..table]);
        bytes[60..64].copy_from_slice(&hasher.finalize().to_le_bytes());
    }
}

/// Small sets of every shape that a file has.
fn files() -> Vec<Vec<u8>> {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<BTreeSet<String>>();
    vec![
        bytes(&set(&[("one", &[7])]), None),
        bytes(&set(&[("REPLY", &[1, 2]), ("REPLY_THREAD", &[1, 2, 3]), ("STÖP", &[9])]), None),
        bytes(&set(&[("a", &[1, 2]), ("b", &[1, 3]), ("c", &[4, 5])]), None),
        bytes(&set(&[("a", &[1]), ("b", &[1, 1]), ("c", &[1, 1, 1])]), Some("f00d")),
        bytes(&set(&[("", &[1, 2, 3, 4]), ("x", &[23])]).with_heal_bytes(3), None),
        bytes(&set(&[("a", &[0]), ("b", &[2]), ("c", &[4]), ("d", &[8]), ("e", &[16])]), None),
        bytes(&unnamed(&[&[1, 2], &[1, 2, 3], &[5]]), None),
        bytes(&unnamed(&[&[3, 3], &[4, 4]]), Some("x")),
        bytes(&graph(&texts(&["ab", "aba"]), true).0, None),
        bytes(&graph(&texts(&["abab", "bab"]), false).0, Some("y")),
        bytes(&graph(&texts(&["a", "b", "ab"]), false).0.with_heal_bytes(1), None),
        bytes(&overrun(), None),
    ]
}

fn unnamed(leaves: &[&[u32]]) -> Trie {
    let mut builder = Trie::builder();
    leaves.iter().for_each(|tokens| builder.push(None, &ids(tokens)));
    builder.build().unwrap()
}

/// Every bit of a dozen files is flipped, the header signed again, and nobody verifies.
#[test]
fn a_damaged_file_gives_an_error_or_the_same_probabilities() {
    let model = Model { seed: 5, odd: false };
    let prompt = ids(&[2, 3]);
    let ends = ids(&[11, 12]);
    let options = [
        ChooseOptions::new(),
        ChooseOptions::new().with_end_tokens(&ends),
        ChooseOptions::new().with_top(1),
        ChooseOptions::new().with_max_rows(3),
    ];
    let answers = |trie: &Trie| {
        let choice = |options| {
            let choice = choose(&mut Table::new(model), &prompt, trie, options)?;
            // All but the time that it took.
            let Choice { logprobs, logprobs_high, ranking, is_certain, mass_low, mass_high, stats, .. } = choice;
            let known = format!("{logprobs:?} {logprobs_high:?} {ranking:?} {is_certain} {mass_low} {mass_high}");
            Ok::<_, ChooseError<Stopped>>(format!("{known} {} {}", stats.rows, stats.healed_bytes))
        };
        options.iter().map(choice).collect::<Result<Vec<String>, _>>()
    };
    let (mut refused, mut noticed, mut wrong, mut same) = (0, 0, 0, 0);
    for original in files() {
        let expected = answers(&Trie::from_bytes(&original, FileOptions::default()).unwrap()).unwrap();
        let built = Trie::from_bytes(&original, FileOptions { verify: true, ..FileOptions::default() }).unwrap();
        assert_eq!(answers(&built).unwrap(), expected);
        for bit in 0..8 * original.len() {
            let mut file = original.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            sign(&mut file);
            let Ok(trie) = Trie::from_bytes(&file, FileOptions::default()) else {
                refused += 1;
                continue;
            };
            match answers(&trie) {
                Ok(found) => {
                    assert_eq!(found, expected, "bit {bit} of a file of {} bytes", original.len());
                    same += 1;
                }
                Err(error) => {
                    assert!(matches!(error, ChooseError::Damaged(_)), "{error}");
                    noticed += 1;
                    wrong += usize::from(!trie.leaves().eq(built.leaves()));
                }
            }
        }
    }
    assert!(refused > 3000 && noticed > 3000 && wrong > 1000 && same > 1000, "{refused} {noticed} {wrong} {same}");
}

#[test]
fn a_file_is_read_whole_once() {
    let trie = set(&[("a", &[1, 2]), ("b", &[3])]);
    assert_eq!(trie.verified(), Ok(()));
    let good = bytes(&trie, None);
    for verify in [true, false] {
        let opened = Trie::from_bytes(&good, FileOptions { verify, ..FileOptions::default() }).unwrap();
        assert_eq!((opened.verified(), opened.verified()), (Ok(()), Ok(())));
    }
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    let opened = Trie::from_bytes(&bad, FileOptions::default()).unwrap();
    let said = opened.verified().unwrap_err();
    assert!(matches!(said, FileProblem::Damaged { .. }));
    assert_eq!(opened.clone().with_heal_bytes(2).verified(), Err(said.clone()), "clones know it, too");
    let part = Sequence::new([AnyConstraint::from(&trie), AnyConstraint::from(&opened)]).unwrap();
    let mut table = Table::new(Model { seed: 1, odd: false });
    for constraint in [AnyConstraint::from(&opened), AnyConstraint::new(part)] {
        let error = choose(&mut table, &ids(&[1]), constraint, &ChooseOptions::new()).unwrap_err();
        assert_eq!(error, ChooseError::Damaged(said.clone()));
    }
    assert!(table.asked.is_empty());
    assert_eq!(
        opened.leaf(LeafId::new(0)).map(|leaf| leaf.tokens),
        Some(ids(&[1, 2])),
        "what is not read is not refused"
    );
}
