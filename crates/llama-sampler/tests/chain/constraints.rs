//! Kinds of constraints other than sets, in real chains and in the runtime; and questions with values of their own.

use crate::common::{Numbers, apply, id, ids, in_id_order, precise_model, trie};
use llama_callbacks::TokenTrieSampler;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_sampler::IntoLlamaSampler as _;
use llama_sampler::{
    Answers, Context, ContextOptions, Finish, GenerateOptions, Model, ModelOptions, Question, QuestionScorer,
    RuntimeError, Scorer,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use trie_core::{
    After, AnyConstraint, Budget, ChooseOptions, Constraint, DrawSettings, Mode, SamplerOptions, Sequence, SpanRules,
    Status, ThinkGate, ThinkOptions, TokenId, Trie, Unconstrained,
};
use trie_text::{Form, Part, Prompt, SlotValues, TextValues, ValueSets, Values};

const VOCAB: usize = 40;
const FIRST: &[(&str, &[u32])] = &[("a", &[1, 2]), ("b", &[1, 2, 3]), ("c", &[9])];
const SECOND: &[(&str, &[u32])] = &[("x", &[3, 4]), ("y", &[30]), ("z", &[5, 6, 7])];

fn sequence(parts: impl IntoIterator<Item = AnyConstraint>) -> AnyConstraint {
    AnyConstraint::new(Sequence::new(parts).unwrap())
}

/// Every token after `walked` that some value of the two sets together begins with. "a" and then "x" begins as "b": a
/// longer value of the first set comes first, so that such a value is none.
fn legal(walked: &[u32]) -> BTreeSet<u32> {
    let together = FIRST.iter().flat_map(|(first, begin)| {
        SECOND
            .iter()
            .filter(move |&&(second, _)| (*first, second) != ("a", "x"))
            .map(|(_, end)| [*begin, *end].concat())
    });
    together.filter(|value| value.len() > walked.len() && value.starts_with(walked)).map(|v| v[walked.len()]).collect()
}

#[test]
fn a_sequence_in_a_chain() {
    let rules = SpanRules::for_constraint(sequence([trie(FIRST).into(), trie(SECOND).into()]), VOCAB).unwrap();
    let rules = Arc::new(rules.with_end_of_generation(ids([39])).unwrap().with_after(After::Stop).unwrap());
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut numbers = Numbers(u64::from(seed) + 1);
        let first = TokenTrieSampler::new(Arc::clone(&rules), Mode::Sampled);
        let handle = first.handle();
        let tail = [LlamaSampler::temp(3.0), LlamaSampler::dist(seed)];
        let mut chain = LlamaSampler::chain(std::iter::once(first.into_llama_sampler()).chain(tail), true);
        let mut walked = Vec::new();
        while handle.span().status() == Status::Active {
            let row: Vec<f32> = (0..VOCAB).map(|_| numbers.below(100) as f32 / 10.0).collect();
            let applied = apply(&mut chain, &in_id_order(&row), false);
            let (token, expected) = (applied.token().unwrap() as u32, legal(&walked));
            assert!(expected.contains(&token), "{token} after {walked:?}");
            let kept: BTreeSet<u32> =
                applied.kept.iter().filter(|kept| kept.1 > f32::NEG_INFINITY).map(|k| k.0 as u32).collect();
            assert!(kept.is_subset(&expected), "{kept:?} after {walked:?}");
            chain.accept(LlamaToken(token as i32));
            walked.push(token);
        }
        assert!(legal(&walked).is_empty());
        let names: Vec<_> = handle.span().leaves().into_iter().map(|leaf| leaf.name.unwrap()).collect();
        assert_eq!(names.len(), 2);
        seen.insert(names.concat());
        let after = apply(&mut chain, &in_id_order(&[0.0; VOCAB]), false);
        assert_eq!(after.token(), Some(39), "only the end of the output follows");
    }
    assert_eq!(seen.len(), 8, "all values come: {seen:?}");
}

#[test]
fn anything_in_a_chain_leaves_logits_alone() {
    let rules = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), VOCAB).unwrap();
    let first = TokenTrieSampler::new(Arc::new(rules), Mode::Sampled);
    let handle = first.handle();
    let mut chain = LlamaSampler::chain([first.into_llama_sampler(), LlamaSampler::greedy()], true);
    let row: Vec<f32> = (0..VOCAB).map(|token| (token * 7 % 40) as f32).collect();
    for _ in 0..20 {
        let applied = apply(&mut chain, &in_id_order(&row), false);
        assert_eq!(applied.kept, in_id_order(&row));
        assert_eq!(applied.token(), Some(17));
        chain.accept(LlamaToken(17));
    }
    assert_eq!((handle.span().status(), handle.span().accepted()), (Status::Active, 20));
}

fn context() -> Context {
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    model.context(ContextOptions::default().with_n_threads(1).with_precise(true)).unwrap()
}

fn alone(context: &Context, values: &[&str]) -> Trie {
    TextValues::new(values.iter().copied()).set(context.vocab()).unwrap().trie().clone()
}

const VERBS: [&str; 3] = ["get", "get all", "set"];
const NOUNS: [&str; 2] = ["name", "colour"];

fn sampled(seed: u32) -> SamplerOptions {
    SamplerOptions {
        mode: Mode::Sampled,
        draw: DrawSettings { temperature: 4.0, ..Default::default() },
        seed: Some(seed),
    }
}

#[test]
fn both_loops_walk_a_sequence_alike() {
    let mut context = context();
    let vocab = Arc::clone(context.vocab());
    let prompt = vocab.tokenize("The next action is ", true, true).unwrap();
    let parts = [alone(&context, &VERBS), alone(&context, &NOUNS)];
    let rules = SpanRules::for_constraint(sequence(parts.map(AnyConstraint::from)), vocab.len()).unwrap();
    let rules = rules.with_end_of_generation(vocab.end_of_generation()).unwrap().with_after(After::Stop).unwrap();
    let rules = Arc::new(rules);
    for seed in 0..12 {
        let [ahead, chained] = [true, false].map(|skip_ahead| {
            let options = GenerateOptions::default().with_sampling(sampled(seed)).with_skip_ahead(skip_ahead);
            context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap()
        });
        assert_eq!((&ahead.tokens, &ahead.leaves, &ahead.text), (&chained.tokens, &chained.leaves, &chained.text));
        assert_eq!((ahead.finish, ahead.leaves.len()), (Finish::Span, 2));
        let names: Vec<_> = ahead.leaves.iter().map(|leaf| leaf.name.clone().unwrap()).collect();
        assert!(VERBS.contains(&names[0].as_str()) && NOUNS.contains(&names[1].as_str()));
        assert_eq!(ahead.text, names.concat());
        assert!(ahead.stats.forward_passes <= chained.stats.forward_passes);
    }
}

/// Thinking before a value, in the real model: forced closing tokens are skipped ahead, and both loops agree.
#[test]
fn both_loops_think_alike() {
    let mut context = context();
    let vocab = Arc::clone(context.vocab());
    let prompt = vocab.tokenize("Where do I go? <think>", true, true).unwrap();
    let text = |text: &str| vocab.tokenize(text, false, false).unwrap();
    let (end, message) = (text("</think>"), text(" Enough."));
    let mut cut_short = 0;
    for (seed, budget) in (0..4u32).flat_map(|seed| [0, 1, 7].map(|budget| (seed, budget))) {
        let options = ThinkOptions {
            begin: text("<think>"),
            end: end.clone(),
            message: message.clone(),
            budget: Some(Budget::tokens(budget)),
            at_once: seed % 2 == 0,
            masked: vocab.end_of_generation().to_vec(),
            ..ThinkOptions::default()
        };
        let gate = AnyConstraint::new(ThinkGate::new(options, alone(&context, &VERBS).into()).unwrap());
        let rules = SpanRules::for_constraint(gate, vocab.len())
            .unwrap()
            .with_end_of_generation(vocab.end_of_generation())
            .unwrap();
        let rules = Arc::new(rules.with_after(After::Stop).unwrap());
        let [ahead, chained] = [true, false].map(|skip_ahead| {
            let options = GenerateOptions::default().with_sampling(sampled(seed)).with_skip_ahead(skip_ahead);
            context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap()
        });
        assert_eq!((&ahead.tokens, &ahead.leaf, &ahead.text), (&chained.tokens, &chained.leaf, &chained.text));
        let value = ahead.leaf.as_ref().and_then(|leaf| leaf.name.clone()).unwrap();
        assert!(VERBS.contains(&value.as_str()) && ahead.text.ends_with(&format!("</think>{value}")), "{}", ahead.text);
        let thought = ahead.stats.thinking_tokens;
        assert_eq!(thought, chained.stats.thinking_tokens);
        assert!(thought <= budget as usize);
        if ahead.tokens[thought..].starts_with(&message) {
            cut_short += 1;
            assert_eq!(thought, budget as usize);
            assert!(ahead.stats.forward_passes_saved >= message.len() + end.len());
            // None of the closing tokens took a forward pass: one for each token thought, those of the value, and one
            // that tells that it ends there.
            let value = ahead.tokens.len() - thought - message.len() - end.len();
            assert!(ahead.stats.forward_passes as usize <= thought + value + 1, "{:?}", ahead.stats);
        }
    }
    assert!(cut_short >= 4, "a budget of 0 always cuts short: {cut_short}");
}

#[test]
fn a_gate_in_a_chain() {
    let budget = Some(Budget::tokens(2));
    let options = ThinkOptions { begin: ids([7]), end: ids([8, 9]), budget, ..ThinkOptions::default() };
    let gate = AnyConstraint::new(ThinkGate::new(options, trie(FIRST).into()).unwrap());
    let rules = Arc::new(SpanRules::for_constraint(gate, VOCAB).unwrap());
    let first = TokenTrieSampler::new(rules, Mode::Sampled);
    let handle = first.handle();
    let mut chain = LlamaSampler::chain([first.into_llama_sampler(), LlamaSampler::greedy()], true);
    let row: Vec<f32> = (0..VOCAB).map(|token| if token == 7 { 90.0 } else { token as f32 }).collect();
    let mut tokens = Vec::new();
    for _ in 0..6 {
        let applied = apply(&mut chain, &in_id_order(&row), false);
        if tokens.is_empty() {
            assert_eq!(applied.kept.len(), VOCAB - 1, "all but the begin marker");
            assert!(applied.kept.iter().all(|kept| kept.0 != 7));
        }
        let token = applied.token().unwrap();
        chain.accept(LlamaToken(token));
        tokens.push(token as u32);
    }
    assert_eq!(tokens, [39, 39, 8, 9, 9, 39], "two tokens, the marker, the best value, free text");
    assert_eq!(handle.leaf().unwrap().name.as_deref(), Some("c"));

    // A host that goes against a forced marker cannot be refused: the sampler turns itself off, and says so.
    chain.reset();
    for token in [1, 2, 3] {
        chain.accept(LlamaToken(token));
    }
    assert_eq!(handle.span().status(), Status::Off);
}

#[test]
fn a_sequence_in_a_slot() {
    let mut context = context();
    let vocab = Arc::clone(context.vocab());
    let prompt = vocab.tokenize("An order: ", true, true).unwrap();
    let values = sequence([alone(&context, &VERBS), alone(&context, &NOUNS)].map(AnyConstraint::from));
    let listed = values.to_trie(100).unwrap();
    assert_eq!(listed.len(), 6);
    let form = |values: SlotValues| {
        let slot = Part::Slot { name: "what".to_owned(), values };
        Form::new([Part::Literal("<".to_owned()), slot, Part::Literal(">".to_owned())]).map(Arc::new).unwrap()
    };
    let (one, other) = (form(SlotValues::Tokens(values)), form(listed.into()));
    for seed in 0..12 {
        let options = GenerateOptions::default().with_sampling(sampled(seed));
        let [one, other] = [&one, &other].map(|form| context.fill(&prompt, form, &options, &mut ()).unwrap());
        assert_eq!(
            (&one.text, &one.tokens, &one.fields[0].value),
            (&other.text, &other.tokens, &other.fields[0].value)
        );
        assert_eq!(one.text, format!("<{}>", one.fields[0].value));
        assert_eq!((one.fields[0].index, other.fields[0].index.is_some()), (None, true));
    }
    let exact = GenerateOptions::default().with_exact(true).with_probabilities(true);
    let [one, other] = [&one, &other].map(|form| context.fill(&prompt, form, &exact, &mut ()).unwrap());
    assert_eq!(one.fields[0].value, other.fields[0].value);
    let [one, other] = [one, other].map(|filled| filled.fields[0].probabilities.clone().unwrap());
    let near = |(a, b): (&(String, f64), &(String, f64))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-3;
    assert!(one.iter().zip(&other).all(near), "{one:?} {other:?}");
}

/// Prompts with values of their own: the answers are those of one choice at a time, whatever is grouped.
#[test]
fn questions_are_answered_in_order_up_to_the_bad_one() {
    let mut context = context();
    let sets = ValueSets::new(Arc::clone(context.vocab()));
    let texts = |values: &[&str]| Values::Texts(TextValues::new(values.iter().copied()).with_distinct(true));
    let (colours, answers) = (texts(&["blue", "red"]), texts(&["yes", "no", "maybe"]));
    let asked = [
        ("The sky is ", &colours),
        ("Is it?", &answers),
        ("The sea is ", &colours),
        ("Roses are", &colours),
        ("Is it so? ", &answers),
    ];
    let mut questions: Vec<Question> = asked
        .map(|(prompt, values)| {
            let (prompt, set) = sets.place(Prompt::Text(prompt.to_owned()), values).unwrap();
            Question::new(prompt, set)
        })
        .to_vec();
    let options = ChooseOptions::new();
    let one_by_one: Vec<Vec<f64>> = questions
        .iter()
        .map(|asked| context.choose(&asked.prompt, asked.set.trie().clone(), &options, &mut ()).unwrap().logprobs)
        .collect();
    let near = |found: &[trie_core::Choice]| {
        found.iter().zip(&one_by_one).all(|(choice, alone)| {
            choice.logprobs.len() == alone.len() && choice.logprobs.iter().zip(alone).all(|(a, b)| (a - b).abs() < 1e-3)
        })
    };
    let together = context.choose_each(&questions, &options, &mut ()).unwrap();
    assert!(together.len() == 5 && near(&together));

    let outside = TokenId::new(context.vocab().len() as u32).unwrap();
    questions[3].prompt.push(outside);
    let refused = context.choose_each(&questions, &options, &mut ()).unwrap_err();
    assert!(matches!(refused, RuntimeError::Prompt { number: 3, .. }), "{refused}");
    questions[4].prompt.clear();
    let Answers { choices, refused, .. } = context.choose_until_bad(&questions, 64, &options, &mut ()).unwrap();
    assert!(choices.len() == 3 && near(&choices));
    assert!(matches!(refused, Some(RuntimeError::Prompt { number: 67, .. })), "{refused:?}");
    assert!(context.choose_each(&[], &options, &mut ()).unwrap().is_empty());

    // What is wrong with all of them is no prompt's.
    let mut builder = Trie::builder();
    builder.push(None, &[outside]);
    let other = Question::new(vec![id(1)], builder.build().unwrap().into());
    let refused = context.choose_until_bad(&[other], 0, &options, &mut ()).unwrap_err();
    assert!(matches!(refused, RuntimeError::VocabularyMismatch { .. }), "{refused}");
}
