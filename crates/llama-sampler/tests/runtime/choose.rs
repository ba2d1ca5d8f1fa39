//! Exact probabilities of a set equal those of scoring each value alone, token by token.

use crate::common::{ids, precise_model, tiny_model, trie};
use llama_sampler::{Context, ContextOptions, Model, ModelOptions, RuntimeError, Scorer, Watch};
use std::sync::Arc;
use trie_core::{Choice, ChooseOptions, LeafId, TokenId, Trie};
use trie_text::{Texts, Tokenization, Vocab};

fn context(precise: bool, n_batch: u32) -> Context {
    let path = if precise { precise_model() } else { tiny_model() };
    let model = Model::load(path, ModelOptions::default()).unwrap();
    model.context(ContextOptions::default().with_n_threads(1).with_precise(precise).with_n_batch(n_batch)).unwrap()
}

fn set(vocab: &Vocab, values: &[String]) -> Trie {
    let tokens: Vec<Vec<u32>> = values
        .iter()
        .map(|value| vocab.tokenize(value, false, false).unwrap().iter().map(|token| token.get()).collect())
        .collect();
    let leaves: Vec<(&str, &[u32])> = values.iter().map(String::as_str).zip(tokens.iter().map(Vec::as_slice)).collect();
    trie(&leaves)
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

fn log_softmax(row: &[f32], token: TokenId) -> f64 {
    let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&logit| f64::from(logit - best).exp()).sum();
    f64::from(row[token.index()] - best) - sum.ln()
}

/// What rounding may do: 1e-5 a token of the longest value.
fn rounding(trie: &Trie) -> f64 {
    1e-5 * trie.max_depth() as f64
}

/// One forward pass a token, from an empty context each time.
fn naive(context: &mut Context, prompt: &[TokenId], trie: &Trie, ends: &[TokenId]) -> Vec<f64> {
    let row = |context: &mut Context, after: &[TokenId]| {
        context.clear();
        for token in [prompt, after].concat() {
            context.feed(&[token], &mut || false).unwrap();
        }
        context.logits().unwrap().to_vec()
    };
    trie.leaves()
        .map(|leaf| {
            let mut logprob = 0.0;
            for (depth, &token) in leaf.tokens.iter().enumerate() {
                logprob += log_softmax(&row(context, &leaf.tokens[..depth]), token);
            }
            let at = trie.walk(&leaf.tokens).unwrap();
            let children = trie.children(at);
            if !ends.is_empty() {
                let row = row(context, &leaf.tokens);
                let stops = ends.iter().filter(|end| !children.contains(end));
                logprob += stops.map(|&end| log_softmax(&row, end).exp()).sum::<f64>().ln();
            } else if !children.is_empty() {
                let row = row(context, &leaf.tokens);
                logprob += (1.0 - children.iter().map(|&child| log_softmax(&row, child).exp()).sum::<f64>()).ln();
            }
            logprob
        })
        .collect()
}

fn worst(choice: &Choice, naive: &[f64]) -> f64 {
    choice.logprobs.iter().zip(naive).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn checked(choice: &Choice) {
    let mass: f64 = choice.logprobs.iter().map(|p| p.exp()).sum();
    assert!((choice.mass_low - mass).abs() < 1e-12);
    assert_eq!(choice.mass_low.to_bits(), choice.mass_high.to_bits());
    let order: Vec<f64> = choice.ranking.iter().map(|leaf| choice.logprobs[leaf.index()]).collect();
    assert!(order.is_sorted_by(|a, b| a >= b) && order.len() == choice.logprobs.len());
}

const MIXED: [&str; 9] = [
    "REPLY",
    "REPLY_THREAD",
    "REPLY_THREAD_ALL",
    "yes",
    "no",
    "a value that shares everything but the end A",
    "a value that shares everything but the end B",
    "cancel_meeting",
    "Übersetze",
];

#[test]
fn equals_scoring_each_value_token_by_token() {
    let mut context = context(true, 512);
    let vocab = Arc::clone(context.vocab());
    let trie = set(&vocab, &strings(&MIXED));
    for text in ["The next action is ", "Is it?", "x"] {
        let prompt = vocab.tokenize(text, true, false).unwrap();
        for ends in [&[][..], vocab.end_of_generation()] {
            let expected = naive(&mut context, &prompt, &trie, ends);
            let options = ChooseOptions::new().with_end_tokens(ends);
            let choice = context.choose(&prompt, &trie, &options, &mut ()).unwrap();
            assert!(worst(&choice, &expected) < rounding(&trie), "differs by {}", worst(&choice, &expected));
            checked(&choice);
        }
    }
}

#[test]
fn llama_cpps_defaults_are_less_exact() {
    let mut context = context(false, 512);
    let vocab = Arc::clone(context.vocab());
    let trie = set(&vocab, &strings(&MIXED));
    let prompt = vocab.tokenize("The next action is ", true, false).unwrap();
    let expected = naive(&mut context, &prompt, &trie, &[]);
    let choice = context.choose(&prompt, &trie, &ChooseOptions::default(), &mut ()).unwrap();
    println!("with llama.cpp's defaults the log-probabilities differ by {}", worst(&choice, &expected));
    assert!(worst(&choice, &expected) < 0.1, "differs by {}", worst(&choice, &expected));
}

#[test]
fn waves_and_pieces_change_nothing() {
    let values: Vec<String> = (0..300).map(|n| format!("value number {} of {}", n * 7, n)).collect();
    let mut whole = context(true, 512);
    let vocab = Arc::clone(whole.vocab());
    let trie = set(&vocab, &values);
    let prompt = vocab.tokenize("Choose a value: ", true, false).unwrap();
    let options = ChooseOptions::new().with_end_tokens(vocab.end_of_generation());
    let expected = whole.choose(&prompt, &trie, &options, &mut ()).unwrap();
    checked(&expected);
    assert!(expected.stats.forward_passes >= 300_u64.div_ceil(127));
    for n_batch in [1, 7, 128] {
        let mut pieces = context(true, n_batch);
        let choice = pieces.choose(&prompt, &trie, &options, &mut ()).unwrap();
        let most = worst(&choice, &expected.logprobs);
        assert!(most < rounding(&trie), "batches of {n_batch} differ by {most}");
        assert_eq!(pieces.tokens(), &prompt[..prompt.len() - 1], "the set is gone from the context");
    }
}

#[test]
fn a_hundred_labels_take_one_pass_after_the_prompt() {
    let values: Vec<String> = (0..100).map(|n| format!("label{n}")).collect();
    let mut context = context(true, 512);
    let vocab = Arc::clone(context.vocab());
    let trie = set(&vocab, &values);
    let prompt = vocab.tokenize("The label of this text is ", true, false).unwrap();
    let choice = context.choose(&prompt, &trie, &ChooseOptions::default(), &mut ()).unwrap();
    assert_eq!(choice.stats.forward_passes, 2, "the prompt and the set");
    let again = context.choose(&prompt, &trie, &ChooseOptions::default(), &mut ()).unwrap();
    assert_eq!(again.stats.forward_passes, 1, "the set alone");
    assert_eq!(again.logprobs, choice.logprobs);
}

#[test]
fn the_best_few_of_many_without_scoring_all() {
    let many = test_budget::cases(600).max(150) as usize;
    let values: Vec<String> = (0..many).map(|n| format!("{} {} title", ["the", "a", "my"][n % 3], n * 31)).collect();
    let mut context = context(true, 512);
    let vocab = Arc::clone(context.vocab());
    let trie = set(&vocab, &values);
    let prompt = vocab.tokenize("The title is ", true, false).unwrap();
    for ends in [&[][..], vocab.end_of_generation()] {
        let all = context.choose(&prompt, &trie, &ChooseOptions::new().with_end_tokens(ends), &mut ()).unwrap();
        checked(&all);
        for top in [1, 5, 1000] {
            let few = ChooseOptions::new().with_end_tokens(ends).with_top(Some(top));
            let found = context.choose(&prompt, &trie, &few, &mut ()).unwrap();
            assert_eq!(found.ranking, all.ranking[..top.min(many)]);
            for leaf in &found.ranking {
                assert!((found.logprobs[leaf.index()] - all.logprobs[leaf.index()]).abs() < rounding(&trie));
            }
            assert!(found.mass_low <= all.mass_low + 1e-6 && found.mass_high >= all.mass_low - 1e-6);
            if top == 1 {
                assert!(found.stats.rows < all.stats.rows, "{} of {} rows", found.stats.rows, all.stats.rows);
            }
        }
    }
}

#[test]
fn several_prompts_share_what_they_begin_with() {
    let mut context = context(true, 512);
    let vocab = Arc::clone(context.vocab());
    let trie = set(&vocab, &strings(&["positive", "negative", "neutral"]));
    let shared = "Label the review: positive, negative or neutral. ";
    let texts = ["I loved it", "It was a terrible movie", "ok", "I loved it", ""].map(|text| format!("{shared}{text}"));
    let prompts: Vec<Vec<TokenId>> = texts.iter().map(|text| vocab.tokenize(text, true, false).unwrap()).collect();
    let slices: Vec<&[TokenId]> = prompts.iter().map(Vec::as_slice).collect();
    let together = context.choose_many(&slices, &trie, &ChooseOptions::default(), &mut ()).unwrap();
    for (prompt, choice) in prompts.iter().zip(&together) {
        context.clear();
        let alone = context.choose(prompt, &trie, &ChooseOptions::default(), &mut ()).unwrap();
        assert!(worst(choice, &alone.logprobs) < rounding(&trie));
        checked(choice);
    }
    assert!(worst(&together[0], &together[3].logprobs) < rounding(&trie));
    assert_eq!(together[0].stats.forward_passes, 2);
    assert!(context.choose_many(&[], &trie, &ChooseOptions::default(), &mut ()).unwrap().is_empty());
}

#[test]
fn refused_before_anything_is_decoded() {
    struct Stop;
    impl Watch for Stop {
        fn stop(&mut self) -> bool {
            true
        }
    }
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    let options = ContextOptions::default().with_n_ctx(256).with_n_threads(1);
    let mut context = model.context(options).unwrap();
    let vocab = Arc::clone(context.vocab());
    let small = set(&vocab, &strings(&["yes", "no"]));
    let prompt = vocab.tokenize("Yes or no? ", true, false).unwrap();
    let plain = ChooseOptions::default();
    let refused = |context: &mut Context, prompt: &[TokenId], trie: &Trie, options: &ChooseOptions<'_>| {
        let before = context.forward_passes();
        let error = context.choose(prompt, trie, options, &mut ()).unwrap_err();
        assert_eq!(context.forward_passes(), before);
        error
    };
    assert!(matches!(refused(&mut context, &[], &small, &plain), RuntimeError::EmptyPrompt));
    let long = ids((0..257).map(|n| n % 200 + 40));
    assert!(matches!(refused(&mut context, &long, &small, &plain), RuntimeError::ContextFull { .. }));
    let outside = trie(&[("far", &[vocab.len() as u32])]);
    assert!(matches!(refused(&mut context, &prompt, &outside, &plain), RuntimeError::VocabularyMismatch { .. }));
    let none = plain.with_top(0);
    assert!(matches!(refused(&mut context, &prompt, &small, &none), RuntimeError::OutOfRange { .. }));
    let ends = ids([vocab.len() as u32]);
    let far = plain.with_end_tokens(&ends);
    let error = refused(&mut context, &prompt, &small, &far).to_string();
    assert!(error.starts_with("end_tokens: token id") && error.contains("outside the vocabulary"), "{error}");
    let error = context.choose(&prompt, &small, &plain, &mut Stop).unwrap_err();
    assert!(matches!(error, RuntimeError::Stopped { .. }), "{error}");

    // A value longer than the context, and one that is too long together with the prompt.
    for length in [300, 256] {
        let long: Vec<u32> = (0..length).map(|n| n % 200 + 40).collect();
        let long = trie(&[("long", &long), ("short", &[7])]);
        let error = context.choose(&prompt, &long, &plain, &mut ()).unwrap_err();
        assert!(matches!(error, RuntimeError::ValueTooLong { .. }), "{error}");
        let top = plain.with_top(1);
        assert!(context.choose(&prompt, &long, &top, &mut ()).is_err());
    }
    // All cells are free again.
    assert!(context.choose(&prompt, &small, &plain, &mut ()).is_ok());
    context.clear();
    context.feed(&long[..256], &mut || false).unwrap();
    let choice = context.choose(&long[..256], &small, &plain, &mut ()).unwrap();
    assert_eq!(choice.ranking.len(), 2, "single tokens need no room of their own");
}

#[test]
fn every_cell_is_given_back() {
    struct StopAt(usize);
    impl Watch for StopAt {
        fn stop(&mut self) -> bool {
            self.0 = self.0.saturating_sub(1);
            self.0 == 0
        }
    }
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    let options = ContextOptions::default().with_n_ctx(160).with_n_threads(1);
    let mut context = model.context(options).unwrap();
    let vocab = Arc::clone(context.vocab());
    let values: Vec<String> = (0..200).map(|n| format!("value {n} of {}", n * 7)).collect();
    let trie = set(&vocab, &values);
    let prompt = vocab.tokenize("Choose a value: ", true, false).unwrap();
    for (top, passes) in [(None, usize::MAX), (None, 3), (Some(2), usize::MAX), (Some(2), 3)] {
        let options = ChooseOptions::new().with_top(top);
        let chosen = context.choose(&prompt, &trie, &options, &mut StopAt(passes));
        assert_eq!(chosen.is_ok(), passes == usize::MAX, "{chosen:?}");
        // No call to clear: a cell that a branch kept would be missing now.
        let filler = ids((0..context.room() as u32).map(|n| n % 200 + 40));
        context.feed(&filler, &mut || false).unwrap();
        assert_eq!(context.room(), 0);
    }
}

/// Every sequence of a set that is no tree, scored alone, and summed for each value.
fn naive_sums(context: &mut Context, prompt: &[TokenId], set: &Trie) -> Vec<f64> {
    let mut sums = vec![0.0; set.len()];
    let mut open = vec![(Vec::new(), set.root())];
    let (mut leaves, mut rows) = (Vec::new(), Vec::new());
    while let Some((tokens, at)) = open.pop() {
        for &token in set.children(at) {
            open.push(([&tokens[..], &[token]].concat(), set.step(at, token).unwrap()));
        }
        if let Some(leaf) = set.leaf_at(at) {
            leaves.push(leaf);
            rows.push(tokens);
        }
    }
    let rows: Vec<Vec<u32>> =
        rows.iter().map(|row: &Vec<TokenId>| row.iter().map(|token| token.get()).collect()).collect();
    let names: Vec<String> = (0..rows.len()).map(|row| row.to_string()).collect();
    let tree = trie(&names.iter().map(String::as_str).zip(rows.iter().map(Vec::as_slice)).collect::<Vec<_>>());
    for (leaf, logprob) in tree.leaves().zip(naive(context, prompt, &tree, &[])) {
        sums[leaves[leaf.name.unwrap().parse::<usize>().unwrap()].index()] += logprob.exp();
    }
    sums.iter().map(|sum| sum.ln()).collect()
}

#[test]
fn a_string_is_as_probable_as_all_of_its_tokenizations() {
    let mut context = context(true, 512);
    let vocab = Arc::clone(context.vocab());
    let prompt = vocab.tokenize("The answer is ", true, false).unwrap();
    for (tokenization, values) in [
        (Tokenization::All, &["yes", "no", "reply", "yesno"][..]),
        (Tokenization::OpenEnd, &["yes", "no", "reply", "list_files"][..]),
    ] {
        let set = Texts::default().with_tokenization(tokenization).trie(&vocab, values).unwrap().trie;
        let expected = naive_sums(&mut context, &prompt, &set);
        let rows = context.choose(&prompt, &set, &ChooseOptions::default(), &mut ()).unwrap();
        assert!(worst(&rows, &expected) < 1e-4, "{tokenization:?} differs by {}", worst(&rows, &expected));
        assert!(rows.is_certain && rows.logprobs_high.is_none());
        checked(&rows);
        let both = context.choose_many(&[&prompt, &prompt[..3]], &set, &ChooseOptions::default(), &mut ()).unwrap();
        assert!(worst(&both[0], &expected) < 1e-4);

        // Bounds hold whatever the budget is, and close as it grows.
        let mut before = f64::INFINITY;
        for max_rows in [1, 2, 5, 20, 200, 4000] {
            let options = ChooseOptions::new().with_max_rows(Some(max_rows));
            let choice = context.choose(&prompt, &set, &options, &mut ()).unwrap();
            assert!(choice.stats.rows <= max_rows.max(1), "{} rows of {max_rows}", choice.stats.rows);
            let high = choice.logprobs_high.clone().unwrap_or_else(|| choice.logprobs.clone());
            for ((low, high), exact) in choice.logprobs.iter().zip(&high).zip(&expected) {
                assert!(*low <= exact + 1e-4 && *high >= exact - 1e-4, "{low} {exact} {high} with {max_rows} rows");
            }
            let gap = choice.mass_high - choice.mass_low;
            assert!(gap <= before + 1e-9, "{gap} after {before}");
            before = gap;
            let best = |logprobs: &[f64]| (0..logprobs.len()).max_by(|&a, &b| logprobs[a].total_cmp(&logprobs[b]));
            if choice.is_certain {
                assert_eq!(Some(choice.ranking[0].index()), best(&expected));
            }
        }
        assert!(before < 1e-6, "{before}");

        // The best alone takes fewer rows than all.
        let best = ChooseOptions::new().with_top(Some(1));
        let choice = context.choose(&prompt, &set, &best, &mut ()).unwrap();
        assert!(choice.is_certain && choice.stats.rows <= rows.stats.rows);
        assert_eq!(choice.ranking, rows.ranking[..1]);
    }
}

#[test]
fn tokenizations_too_long_for_the_context_stay_in_the_bounds() {
    let path = precise_model();
    let model = Model::load(path, ModelOptions::default()).unwrap();
    let options = ContextOptions::default().with_n_threads(1).with_precise(true).with_n_ctx(16);
    let mut context = model.context(options).unwrap();
    let vocab = Arc::clone(context.vocab());
    let prompt = vocab.tokenize("The answer is ", true, false).unwrap();
    let set = Texts::default().with_tokenization(Tokenization::All);
    let set = set.trie(&vocab, &["a rather long value", "no"]).unwrap().trie;
    assert!(prompt.len() + set.max_depth() > context.n_ctx());
    let choice = context.choose(&prompt, &set, &ChooseOptions::default(), &mut ()).unwrap();
    assert!(choice.logprobs.iter().all(|low| low.is_finite()));
    assert!(choice.mass_low > 0.0 && choice.mass_high >= choice.mass_low);
    let long = Texts::default().with_tokenization(Tokenization::All);
    let long = long.trie(&vocab, &["one two three four five six seven eight nine ten eleven twelve"]).unwrap().trie;
    let error = context.choose(&prompt, &long, &ChooseOptions::default(), &mut ()).unwrap_err();
    assert!(error.to_string().contains("eleven"), "{error}");
}

/// What is open above an improbable value is far below what is open elsewhere.
#[test]
fn bounds_of_the_improbable_hold_beside_the_probable() {
    let mut context = context(true, 512);
    let vocab = Arc::clone(context.vocab());
    let prompt = vocab.tokenize("Once upon a time", true, false).unwrap();
    let all = Texts::default().with_tokenization(Tokenization::All);
    for value in ["zq7#@ plumbus%$ xj", "~~{}^^\\|zzq", "qqqqjjjjxxxx"] {
        let alone = all.trie(&vocab, &[value]).unwrap().trie;
        let options = ChooseOptions::new().with_max_rows(Some(3000));
        let least = context.choose(&prompt, &alone, &options, &mut ()).unwrap().logprobs[0];
        let both = all.trie(&vocab, &["the city", value]).unwrap().trie;
        let leaf = (0..2).find(|&leaf| both.name(LeafId::new(leaf)).as_deref() == Some(value)).unwrap() as usize;
        for max_rows in [2, 8, 20, 100, 800] {
            let options = ChooseOptions::new().with_max_rows(Some(max_rows));
            let choice = context.choose(&prompt, &both, &options, &mut ()).unwrap();
            let high = choice.logprobs_high.as_ref().unwrap_or(&choice.logprobs)[leaf];
            // Rows of other batches differ by rounding.
            assert!(high >= least - 0.01, "{value}: {high} with {max_rows} rows, and at least {least}");
            assert!(high >= choice.logprobs[leaf]);
        }
    }
}
