//! Probabilities are those of the twin, whatever is asked for.

use crate::common::{Naive, ids};
use crate::scoring::table::{Model, Stopped, Table, VOCABULARY};
use crate::scoring::twin::{
    Sequences, all_close, check_bounds, check_whole, children, close, exact, graph, mass, needed, partial_token,
    sequences, walked,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::convert::Infallible;
use trie_core::{
    AnyConstraint, Choice, ChooseError, ChooseOptions, Host, LeafId, PrefixRows, Scoring, ScoringRequest, TokenId,
    choose, choose_many, run,
};

fn sets() -> impl Strategy<Value = Naive> {
    let tokens = prop::collection::vec(prop_oneof![3 => 0..4u32, 1 => 0..20u32], 1..6);
    prop::collection::vec(("[a-d]{0,3}", tokens), 1..25).prop_map(|rows| Naive { rows })
}

fn models() -> impl Strategy<Value = Model> {
    (any::<u64>(), prop_oneof![3 => Just(false), 1 => Just(true)]).prop_map(|(seed, odd)| Model {
        seed,
        odd,
        starved: false,
    })
}

fn ends() -> impl Strategy<Value = Vec<TokenId>> {
    prop_oneof![Just(Vec::new()), prop::collection::vec(0..VOCABULARY as u32, 1..4).prop_map(|ends| ids(&ends))]
}

fn prompts() -> impl Strategy<Value = Vec<TokenId>> {
    prop::collection::vec(0..VOCABULARY as u32, 1..5).prop_map(|tokens| ids(&tokens))
}

fn texts() -> impl Strategy<Value = BTreeSet<String>> {
    prop::collection::btree_set("[ab]{1,6}", 1..6)
}

/// The values that a beam found are as probable as it says, and those that it passed over are within the bounds.
fn check_bounds_of_found(choice: &Choice, expected: &[f64], is_graph: bool) {
    if is_graph {
        return check_bounds(choice, expected);
    }
    for (&found, &exact) in choice.logprobs.iter().zip(expected) {
        assert!(found.is_nan() || close(found, exact), "{found} {exact}");
    }
    assert!(choice.mass_low <= mass(expected) + 1e-5 && mass(expected) <= choice.mass_high + 1e-5);
    let best = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let first = choice.ranking.first().map_or(f64::NEG_INFINITY, |first| expected[first.index()]);
    assert!(!choice.is_certain || close(first, best), "{first} is certain, and the best has {best}");
}

/// The leaves that a beam of this width finds, the best `top` of them, best first.
fn beam_twin(
    model: Model,
    prompt: &[TokenId],
    all: &Sequences,
    ends: &[TokenId],
    (width, top): (usize, usize),
) -> Vec<usize> {
    let leaves = all.values().max().map_or(0, |&last| last + 1);
    let known = exact(model, prompt, all, leaves, ends);
    let (mut found, mut open) = (Vec::<(f64, usize)>::new(), vec![(0.0, Vec::new())]);
    while !open.is_empty() {
        let mut next: Vec<(f64, Vec<TokenId>)> = Vec::new();
        for (logprob, prefix) in open {
            found.extend(all.get(&prefix).map(|&leaf| (known[leaf], leaf)));
            let before = [prompt, &prefix].concat();
            for token in children(all, &prefix) {
                let path = [&prefix[..], &[token]].concat();
                let logprob = logprob + model.share(&before, |other| other == token).ln();
                if ends.is_empty() && children(all, &path).is_empty() {
                    found.push((known[all[&path]], all[&path]));
                } else {
                    next.push((logprob, path));
                }
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let bar = found.get(top - 1).map_or(f64::NEG_INFINITY, |&(logprob, _)| logprob);
        next.retain(|&(logprob, _)| logprob > bar);
        next.sort_by(|a, b| b.0.total_cmp(&a.0));
        next.truncate(width);
        open = next;
    }
    found.into_iter().take(top).map(|(_, leaf)| leaf).collect()
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
        let none = ChooseOptions::new().with_end_tokens(&[]);
        let without = choose(&mut Table::new(model), &prompt, &own, &none).unwrap();
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
    fn the_best_of_a_tree(
        naive in sets(),
        model in models(),
        prompt in prompts(),
        ends in ends(),
        top in 1..30usize,
        at_once in 1..50usize,
    ) {
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
        prop_assert_eq!((once.len(), table.twice), (asked, 0), "no row twice, and no token twice in a tree");
        prop_assert!(table.asked.iter().all(|(before, paths)| *before == prompt && paths.len() <= at_once.max(32)));
    }

    /// The first row that says nothing though its prefix may come is named; what never comes may have any.
    #[test]
    fn rows_that_say_nothing(
        naive in sets(),
        seed in any::<u64>(),
        odd in any::<bool>(),
        prompt in prompts(),
        ends in ends(),
        top in prop::option::of(1..4usize),
    ) {
        let model = Model { seed, odd, starved: true };
        let (trie, all) = (naive.trie(), sequences(&naive));
        let options = ChooseOptions::new().with_end_tokens(&ends).with_top(top);
        let may_come = |prefix: &[TokenId]| {
            (prompt.len()..prefix.len()).all(|end| model.share(&prefix[..end], |token| token == prefix[end]) > 0.0)
        };
        let empty = |prefix: &[TokenId]| model.row(prefix).iter().all(|&logit| !trie_core::logits::is_usable(logit));
        match choose(&mut Table::new(model), &prompt, &trie, &options) {
            Err(ChooseError::NoLogits(row)) => {
                prop_assert!(row.prefix.starts_with(&prompt) && may_come(&row.prefix) && empty(&row.prefix), "{}", row);
            }
            whole => {
                let found = whole.unwrap();
                for (&found, exact) in found.logprobs.iter().zip(exact(model, &prompt, &all, trie.len(), &ends)) {
                    prop_assert!(found.is_nan() || close(found, exact));
                }
                let prefixes = needed(&all, &ends).into_iter().map(|path| [&prompt[..], &path].concat());
                let said = |prefix: Vec<TokenId>| !(may_come(&prefix) && empty(&prefix));
                prop_assert!(top.is_some() || prefixes.into_iter().all(said));
            }
        }
    }

    #[test]
    fn bounds_of_a_tree(
        naive in sets(),
        model in models(),
        prompt in prompts(),
        ends in ends(),
        max_rows in 1..20usize,
        top in prop::option::of(1..4usize),
    ) {
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

    /// A beam goes on from the best positions of each depth, as its twin does over a list of sequences.
    #[test]
    fn beams(
        naive in sets(),
        texts in texts(),
        is_graph in any::<bool>(),
        model in models(),
        prompt in prompts(),
        ends in ends(),
        width in prop_oneof![1..8usize, Just(1000)],
        top in prop::option::of(1..4usize),
    ) {
        let (trie, all) = if is_graph { graph(&texts, true) } else { (naive.trie(), sequences(&naive)) };
        let expected = exact(model, &prompt, &all, trie.len(), &ends);
        let mut table = Table::new(model);
        let options = ChooseOptions::new().with_end_tokens(&ends).with_beam(width).with_top(top);
        let choice = choose(&mut table, &prompt, &trie, &options).unwrap();
        check_bounds_of_found(&choice, &expected, is_graph);
        prop_assert!(choice.ranking.len() <= top.unwrap_or(width));
        let longest = all.keys().map(Vec::len).max().unwrap();
        prop_assert!(table.asked.len() <= longest + 1, "one call for each depth");
        prop_assert!(table.asked.iter().all(|(_, paths)| paths.len() <= width));
        if width == 1000 && top.is_none() {
            prop_assert!(choice.is_certain);
            let possible = expected.iter().filter(|logprob| logprob.is_finite()).count();
            prop_assert!(choice.ranking.len() >= possible);
            let exactly = |leaf: &LeafId| close(choice.logprobs[leaf.index()], expected[leaf.index()]);
            prop_assert!(choice.ranking.iter().all(exactly));
        }
        if !is_graph && !model.odd {
            let found = beam_twin(model, &prompt, &all, &ends, (width, top.unwrap_or(width)));
            let possible = |leaf: &usize| expected[*leaf].is_finite();
            let ranked: Vec<usize> = choice.ranking.iter().map(|leaf| leaf.index()).filter(possible).collect();
            prop_assert_eq!(ranked, found.into_iter().filter(possible).collect::<Vec<_>>());
        }
    }

    #[test]
    fn all_tokenizations_together(
        texts in texts(),
        longest in any::<bool>(),
        model in models(),
        prompt in prompts(),
        ends in ends(),
        max_rows in 1..60usize,
        top in prop::option::of(1..4usize),
    ) {
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

        // With rows enough the first is certain, and reading ends early.
        let mut table = Table::new(model);
        let choice = choose(&mut table, &prompt, &trie, &options.with_max_rows(None).with_top(1)).unwrap();
        check_bounds(&choice, &expected);
        prop_assert!(choice.is_certain || model.odd);
        prop_assert!(table.rows() <= needed(&all, &ends).len() && table.twice == 0);

        // Paths that are too long stay in the bounds, as long as the canonical ones fit.
        let need = trie.leaves().map(|leaf| leaf.tokens.len()).max().unwrap() - usize::from(ends.is_empty());
        for room in [need, need + 1] {
            let mut table = Table { room: prompt.len() + room, ..Table::new(model) };
            check_bounds(&choose(&mut table, &prompt, &trie, &options).unwrap(), &expected);
            let all = options.with_top(None).with_max_rows(None);
            check_bounds(&choose(&mut table, &prompt, &trie, &all).unwrap(), &expected);
        }
    }

    #[test]
    fn several_prompts_are_as_each_alone(
        naive in sets(),
        model in models(),
        shared in prompts(),
        tails in prop::collection::vec(prompts(), 1..5),
        ends in ends(),
        top in prop::option::of(1..4usize),
    ) {
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
            let bits = |logprobs: &[f64]| logprobs.iter().map(|logprob| logprob.to_bits()).collect::<Vec<u64>>();
            prop_assert_eq!(bits(&alone.logprobs), bits(&choice.logprobs));
            prop_assert_eq!((&alone.ranking, alone.stats.rows), (&choice.ranking, choice.stats.rows));
        }
    }

    #[test]
    fn several_prompts_with_sets_of_their_own_are_as_each_alone(
        naive in prop::collection::vec(sets(), 1..5),
        model in models(),
        shared in prompts(),
        ends in ends(),
        most in prop::option::of(1..6usize),
    ) {
        let constraints: Vec<AnyConstraint> = naive.iter().map(|naive| naive.trie().into()).collect();
        let prompts: Vec<Vec<TokenId>> =
            (0..naive.len()).map(|number| [&shared[..], &ids(&[number as u32])].concat()).collect();
        let asked = prompts.iter().zip(&constraints).map(|(prompt, constraint)| ScoringRequest {
            prompt,
            branches: &[],
            constraint,
        });
        let asked: Vec<ScoringRequest<'_>> = asked.collect();
        // With few rows large sets are searched beside small ones that are scored as a whole.
        let options = ChooseOptions::new().with_end_tokens(&ends).with_max_rows(most);
        let mut table = Table::new(model);
        let mut scoring = Scoring::per_prompt::<Infallible>(Host::from_decoder(&table), &asked, &options).unwrap();
        run(&mut scoring, &mut table).unwrap();
        let together = scoring.finish(0);
        prop_assert_eq!(together.len(), prompts.len());
        for (&ScoringRequest { prompt, constraint, .. }, choice) in asked.iter().zip(&together) {
            let alone = choose(&mut Table::new(model), prompt, constraint.clone(), &options).unwrap();
            let bits = |logprobs: &[f64]| logprobs.iter().map(|logprob| logprob.to_bits()).collect::<Vec<u64>>();
            prop_assert_eq!(bits(&alone.logprobs), bits(&choice.logprobs));
            prop_assert_eq!((&alone.ranking, alone.stats.rows), (&choice.ranking, choice.stats.rows));
        }
    }

    #[test]
    fn a_host_that_stops_is_usable_afterwards(
        naive in sets(),
        seed in any::<u64>(),
        top in prop::option::of(1..4usize),
    ) {
        let (trie, prompt, model) = (naive.trie(), ids(&[5, 6]), Model { seed, odd: false, starved: false });
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
    let trie = partial_token();
    assert!(!trie.is_tree());
    for seed in 0..50 {
        let (model, prompt) = (Model { seed, odd: seed % 2 == 1, starved: false }, ids(&[8, 1]));
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
    let model = Model { seed: 4, odd: false, starved: false };
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

/// Where several sequences stand for one value a search ends long before all are read.
#[test]
fn a_search_of_sums_ends_early() {
    let (trie, all) = graph(&["ababababab".to_owned(), "bbbbbbbbbb".to_owned()].into(), true);
    let rows = needed(&all, &[]).len();
    let read = |liked: &[u32], by: f32, options: &ChooseOptions<'_>| {
        let mut row = [0.0; VOCABULARY];
        for &token in liked {
            row[token as usize] = by;
        }
        row[0] += 1.0;
        let mut table = PrefixRows::new(VOCABULARY, |prefixes: &[&[TokenId]]| {
            Ok::<_, Infallible>(prefixes.iter().flat_map(|_| row).collect::<Vec<f32>>())
        });
        let choice = choose(&mut table, &ids(&[5]), &trie, options).unwrap();
        assert!(choice.is_certain && trie.name(choice.ranking[0]).as_deref() == Some("ababababab"));
        choice.stats.rows
    };
    // What is not canonical has nothing left; then one value is ahead of all that the other can have.
    let nothing_left = read(&[0, 1], 40.0, &ChooseOptions::new().with_max_rows(rows - 1));
    assert!(nothing_left < 30, "{nothing_left} of {rows} rows");
    let ahead = read(&[0, 1, 2, 8], 3.0, &ChooseOptions::new().with_top(1));
    assert!(ahead < rows / 2, "{ahead} of {rows} rows");
}
