//! Sets that begin inside the prompt: prompt and leaves together are what the tokenizer writes for the whole text.

use crate::common::{id, ids, tiny_model, trie, vocab_files};
use llama_sampler::{
    Context, ContextOptions, GenerateOptions, Model, ModelOptions, RuntimeError, Scorer, vocab_from_gguf,
};
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Arc;
use trie_core::{ChooseOptions, SpanRules, TokenId, Trie};
use trie_text::{Form, HealingError, Part, Texts, Vocab};

/// What boundaries could get wrong: spaces of all kinds, contractions, digits, letters of several bytes, tokens found
/// before anything else and parts of them.
const PARTS: &[&str] = &[
    "a", "b", "the", "The", "city", "http:", "//", "12", "2048", " ", " ", " ", " ", "  ", "\n", "\n\n", "\r\n", "\t",
    "\u{a0}", "\u{3000}", "'s", "'ll", "'", ".", ":", "!", "-", "_", "(", ")", "\"", "{", "é", "e\u{301}", "ß", "日本",
    "🙂", "\0", "<|tool", "_call>", "<|\"", "|>", "[PAD", "151646]",
];

fn prompts() -> impl Strategy<Value = String> {
    let special = prop::sample::select(&["", "", "", "<s>", "</s>", "<|im_end|>", "<|tool_call>", "<unk>"][..]);
    let parts = || prop::collection::vec(prop::sample::select(PARTS), 0..8).prop_map(|parts| parts.concat());
    (parts(), special, parts()).prop_map(|(before, special, after)| format!("x{before}{special}{after}"))
}

#[test]
fn a_text_prompt_and_its_values_are_one_text() {
    let values = prop::collection::vec(prop::collection::vec(prop::sample::select(PARTS), 1..5), 1..6);
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = vocab_from_gguf(&path).unwrap();
        let [healed, apart, whole] = [const { Cell::new(0) }; 3];
        let count = |counter: &Cell<u32>| counter.set(counter.get() + 1);
        let config =
            ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(test_budget::cases(400)) };
        proptest!(config, |(prompt in prompts(), values in &values)| {
            let values: Vec<String> = values.iter().map(|parts| parts.concat()).collect();
            let tokens = vocab.tokenize(&prompt, true, true).unwrap();
            let prefix = vocab.prompt_end(&tokens, &values);
            prop_assert!(prompt.ends_with(&prefix), "{prefix:?} of {prompt:?}");
            let made = Texts::default().with_prefix(&prefix).with_healing(true).trie(&vocab, &values);
            let Ok(made) = made else { return Err(TestCaseError::reject("a text that does not round-trip")) };
            let before = match vocab.before_set(&tokens, &made.trie) {
                Err(HealingError::AllTakenBack { .. }) => {
                    count(&whole);
                    return Ok(());
                }
                before => before.unwrap(),
            };
            count(if before.len() < tokens.len() { &healed } else { &apart });
            for leaf in made.trie.leaves() {
                let text = format!("{prompt}{}", leaf.name.as_deref().unwrap());
                let expected = vocab.tokenize(&text, true, true).unwrap();
                // A name of a control token that the boundary cuts in two stays text.
                if expected.iter().filter(|token| vocab.control().contains(token)).count()
                    == tokens.iter().filter(|token| vocab.control().contains(token)).count()
                {
                    prop_assert_eq!([before, &leaf.tokens].concat(), expected, "{:?}", text);
                }
            }
        });
        let [healed, apart, whole] = [healed, apart, whole].map(|counter| counter.get());
        println!("{}: {healed} healed, {apart} apart, {whole} all taken back", path.display());
        // A share of the cases may by chance have none.
        let all = test_budget::every() == 1;
        assert!(!all || healed > 4 && apart > 100, "{}: {healed} healed, {apart} apart", path.display());
    }
}

fn tiny() -> Context {
    let model = Model::load(tiny_model(), ModelOptions::default()).unwrap();
    model.context(ContextOptions::default().with_n_threads(1).with_n_ctx(512)).unwrap()
}

fn healed(vocab: &Vocab, prefix: &str, values: &[&str]) -> Trie {
    let made = Texts::default().with_prefix(prefix).with_healing(true).trie(vocab, values).unwrap();
    assert!(made.trie.heal_bytes() > 0);
    made.trie
}

#[test]
fn a_context_takes_the_end_of_the_prompt_back() {
    let mut context = tiny();
    let vocab = Arc::clone(context.vocab());
    let values = ["yes", "no", "cancel"];
    let set = healed(&vocab, " ", &values);
    let prompt = vocab.tokenize_before("Is it? ", &set).unwrap();
    let before = vocab.before_set(&prompt, &set).unwrap().to_vec();
    assert_eq!(vocab.join(&before).unwrap(), b"Is it?");

    let plain = set.clone().with_heal_bytes(0);
    let options = ChooseOptions::default();
    let choice = context.choose(&prompt, &set, &options, &mut ()).unwrap();
    let expected = context.choose(&before, &plain, &options, &mut ()).unwrap();
    assert_eq!((choice.logprobs, choice.stats.healed_bytes), (expected.logprobs.clone(), 1));
    assert_eq!(expected.stats.healed_bytes, 0);
    let best = options.with_top(1);
    assert_eq!(context.choose(&prompt, &set, &best, &mut ()).unwrap().ranking[0], expected.ranking[0]);
    let both = context.choose_many(&[&prompt, &prompt], &set, &options, &mut ()).unwrap();
    assert!(both.iter().all(|choice| choice.ranking == expected.ranking && choice.stats.healed_bytes == 1));

    for skip_ahead in [true, false] {
        let rules = |set: &Trie| Arc::new(SpanRules::for_constraint(set.clone(), vocab.len()).unwrap());
        let options = GenerateOptions::default().with_skip_ahead(skip_ahead).with_max_tokens(3);
        let out = context.generate(&prompt, Some(&rules(&set)), &options, &mut ()).unwrap();
        let expected = context.generate(&before, Some(&rules(&plain)), &options, &mut ()).unwrap();
        assert_eq!((&out.tokens, &out.leaf, out.finish), (&expected.tokens, &expected.leaf, expected.finish));
        assert_eq!(expected.text, format!(" {}", out.text));
        assert!(out.text.starts_with(out.leaf.unwrap().name.as_deref().unwrap()));
        assert_eq!((out.stats.healed_bytes, expected.stats.healed_bytes), (1, 0));
        // Nothing of the value is written yet.
        let options = options.with_max_tokens(1);
        let out = context.generate(&prompt, Some(&rules(&trie_of_spaces(&vocab))), &options, &mut ()).unwrap();
        assert_eq!((out.tokens.len(), out.text.as_str()), (1, ""));
    }
}

/// A space and a value as tokens of their own.
fn trie_of_spaces(vocab: &Vocab) -> Trie {
    let space = vocab.prefix_tokens(b" ")[0].get();
    let word = vocab.prefix_tokens(b"y")[0].get();
    trie(&[("y", &[space, word]), ("yy", &[space, word, word])]).with_heal_bytes(1)
}

#[test]
fn a_prompt_that_the_set_does_not_begin_in() {
    let mut context = tiny();
    let vocab = Arc::clone(context.vocab());
    let set = healed(&vocab, "ye", &["s", "t"]);
    let rules = Arc::new(SpanRules::for_constraint(set.clone(), vocab.len()).unwrap());
    let passes = context.forward_passes();
    for (text, last) in [("Is it?", "?"), ("the eye ", " "), ("", "")] {
        let prompt = vocab.tokenize_before(text, &set).unwrap();
        let error = context.choose(&prompt, &set, &ChooseOptions::default(), &mut ()).unwrap_err();
        let RuntimeError::Healing(HealingError::NotHealed { spelled, found }) = &error else { panic!("{error}") };
        assert_eq!((spelled.as_str(), found.last().map_or("", String::as_str)), ("ye", last));
        assert!(context.generate(&prompt, Some(&rules), &GenerateOptions::default(), &mut ()).is_err());
    }
    let good = vocab.tokenize_before("say ye", &set).unwrap();
    let bad = vocab.tokenize_before("say no", &set).unwrap();
    let error = context.choose_many(&[&good, &bad], &set, &ChooseOptions::default(), &mut ()).unwrap_err();
    let RuntimeError::Prompt { number: 1, error } = error else { panic!("{error}") };
    assert!(matches!(*error, RuntimeError::Healing(HealingError::NotHealed { .. })), "{error}");
    let alone = vocab.tokenize("ye", false, false).unwrap();
    let error = context.choose(&alone, &set, &ChooseOptions::default(), &mut ()).unwrap_err();
    assert!(
        matches!(&error, RuntimeError::Healing(HealingError::AllTakenBack { spelled }) if spelled == "ye"),
        "{error}"
    );
    // The name of a control token is not its text.
    let names = ids([5, vocab.control()[0].get()]);
    let first = String::from_utf8(vocab.piece(names[1]).unwrap().to_vec()).unwrap();
    let again = trie(&[("x", &[names[1].get(), 7])]).with_heal_bytes(first.len() as u32);
    assert!(matches!(vocab.before_set(&names, &again), Err(HealingError::NotHealed { .. })));
    assert_eq!(context.forward_passes(), passes, "refused before anything was decoded");
    assert!(vocab.before_set(&[], &set).is_err());
    let broken = trie(&[("x", &[5])]).with_heal_bytes(1 << 30);
    assert!(vocab.before_set(&[id(5), id(5)], &broken).is_err());
}

#[test]
fn a_boundary_inside_a_token_of_the_prompt() {
    let vocab = vocab_from_gguf(tiny_model()).unwrap();
    let set = healed(&vocab, "ye", &["s", "t"]);
    // Where "ye" is the end of a longer token, the text is parted there.
    let mut parted = 0;
    for text in ["say ye", "aye", "say goodye", "yeyeye"] {
        let tokens = vocab.tokenize_before(text, &set).unwrap();
        parted += usize::from(tokens != vocab.tokenize(text, true, true).unwrap());
        assert_eq!(vocab.join(&tokens).unwrap(), text.as_bytes());
        let before = vocab.before_set(&tokens, &set).unwrap();
        assert_eq!(vocab.join(before).unwrap(), &text.as_bytes()[..text.len() - 2]);
    }
    assert!(parted > 0);
}

fn slot(set: &Trie) -> Part {
    Part::Slot { name: "slot".to_owned(), values: set.clone().into() }
}

#[test]
fn slots_of_healed_sets() {
    let mut context = tiny();
    let vocab = Arc::clone(context.vocab());
    let set = healed(&vocab, "is ", &["blue", "red"]);
    assert_eq!(set.heal_bytes(), 1);
    for exact in [false, true] {
        let options = GenerateOptions::default().with_exact(exact).with_probabilities(true);
        let prompt: Vec<TokenId> = vocab.tokenize("The sky. ", true, true).unwrap();
        let literal = |text: &str| Part::Literal(text.to_owned());
        let form = Form::new([literal("It is "), slot(&set), literal(", I think.")]).map(Arc::new).unwrap();
        let out = context.fill(&prompt, &form, &options, &mut ()).unwrap();
        assert_eq!(out.text, format!("It is {}, I think.", out.fields[0].value));
        assert_eq!(out.text.as_bytes(), vocab.join(&out.tokens).unwrap());
        assert!(out.canonical && out.stats.healed_bytes == 0);

        // At the beginning of the form it is the prompt that ends so.
        let form = Form::new([slot(&set), literal(", I think.")]).map(Arc::new).unwrap();
        let prompt = vocab.tokenize_before("The sky is ", form.begins_with().unwrap()).unwrap();
        let out = context.fill(&prompt, &form, &options, &mut ()).unwrap();
        assert_eq!(out.text, format!("{}, I think.", out.fields[0].value));
        assert_eq!(vocab.join(&out.tokens).unwrap(), format!(" {}", out.text).as_bytes());
        assert!(out.canonical && out.stats.healed_bytes == 1);
        let shares = out.fields[0].probabilities.as_ref().unwrap();
        let choice = context.choose(&prompt, &set, &ChooseOptions::default(), &mut ()).unwrap();
        assert!(shares.iter().zip(choice.probabilities()).all(|((_, a), b)| (a - b).abs() < 0.05));

        let form = Form::new([literal("It is"), slot(&set)]).map(Arc::new).unwrap();
        let error = context.fill(&prompt, &form, &options, &mut ()).unwrap_err().to_string();
        assert_eq!(
            error,
            "slot \"slot\" begins inside the text before it and spells \" \" again (heal_bytes), \
             but \"It is\" stands there"
        );
    }
}
