//! Contexts and generation on a real model: the one inside the Python package.

use crate::common::{id, ids, tiny_model, trie};
use llama_sampler::{Context, ContextOptions, Finish, GenerateOptions, Model, ModelOptions, RuntimeError, Step, Watch};
use std::sync::Arc;
use trie_core::{After, DrawSettings, Mode, SamplerOptions, SpanRules, TokenId};
use trie_text::{Vocab, VocabError};

fn model() -> Model {
    Model::load(tiny_model(), ModelOptions::default()).unwrap()
}

/// One thread: the tests run side by side, and waiting threads of llama.cpp keep a core busy.
fn context(options: ContextOptions) -> Context {
    model().context(options.with_n_threads(1)).unwrap()
}

fn prompt(context: &Context) -> Vec<TokenId> {
    context.vocab().tokenize("What is the weather in Riga? Answer: ", true, false).unwrap()
}

fn values(vocab: &Vocab, values: &[&str]) -> SpanRules {
    let tokens: Vec<Vec<u32>> = values
        .iter()
        .map(|value| vocab.tokenize(value, false, false).unwrap().iter().map(|token| token.get()).collect())
        .collect();
    let leaves: Vec<(&str, &[u32])> = values.iter().copied().zip(tokens.iter().map(Vec::as_slice)).collect();
    let rules = SpanRules::for_constraint(trie(&leaves), vocab.len()).unwrap();
    rules.with_end_of_generation(vocab.end_of_generation()).unwrap()
}

const NAMES: [&str; 4] = ["get_weather", "get_time", "send_mail", "stop"];

fn stopping(vocab: &Vocab) -> Arc<SpanRules> {
    Arc::new(values(vocab, &NAMES).with_after(After::Stop).unwrap())
}

fn sampled(seed: u32, temperature: f32) -> GenerateOptions {
    let draw = DrawSettings { temperature, top_k: 40, top_p: 0.95, min_p: 0.01, typical_p: 0.97, ..Default::default() };
    GenerateOptions::default()
        .with_sampling(SamplerOptions { mode: Mode::Sampled, draw, seed: Some(seed) })
        .with_max_tokens(32)
        .with_skip_ahead(true)
}

// ---- contexts

#[test]
fn options_out_of_range_are_refused() {
    let model = model();
    let trained = model.n_ctx_train();
    let base = ContextOptions::default();
    for (options, what) in [
        (base.with_n_ctx(0), "n_ctx is 0"),
        (base.with_n_ctx(trained + 1), "n_ctx is"),
        (base.with_n_ctx(u32::MAX), "n_ctx is 4294967295"),
        (base.with_n_batch(0), "n_batch is 0"),
        (base.with_n_batch(u32::MAX), "n_batch is"),
        (base.with_n_threads(0), "n_threads is 0"),
        (base.with_n_threads(1 << 20), "n_threads is 1048576"),
    ] {
        let message = model.context(options).unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
    }
    let context = model.context(base).unwrap();
    assert_eq!(context.n_ctx(), trained.min(4096) as usize);
    assert!(context.n_threads() >= 1);
}

#[test]
fn tokens_that_must_not_reach_llama_cpp() {
    let mut context = context(ContextOptions::default().with_n_ctx(16));
    let n_vocab = context.vocab().len() as u32;
    assert!(matches!(context.logits(), Err(RuntimeError::NoLogits)));
    assert!(matches!(context.feed(&[], &mut || false), Err(RuntimeError::EmptyPrompt)));
    let error = context.feed(&ids([1, n_vocab]), &mut || false).unwrap_err();
    assert!(matches!(error, RuntimeError::Vocab(VocabError::OutsideVocabulary { position: 1, .. })), "{error}");
    let error = context.feed(&ids([1; 17]), &mut || false).unwrap_err();
    assert_eq!(error.to_string(), "17 tokens after 0 do not fit: the context has room for 16");
    assert_eq!((context.forward_passes(), context.room()), (0, 16));
    context.feed(&ids([1; 15]), &mut || false).unwrap();
    assert!(context.feed(&ids([1; 2]), &mut || false).is_err());
    context.feed(&ids([1]), &mut || false).unwrap();
    assert_eq!((context.room(), context.tokens().len()), (0, 16));
    context.clear();
    assert!(matches!(context.logits(), Err(RuntimeError::NoLogits)));
    context.feed(&ids([1; 16]), &mut || false).unwrap();
}

#[test]
fn pieces_give_the_same_logits_as_one_pass() {
    let tokens = prompt(&context(ContextOptions::default()));
    let row = |n_batch| {
        let mut context = context(ContextOptions::default().with_n_batch(n_batch));
        context.feed(&tokens, &mut || false).unwrap();
        assert_eq!(context.forward_passes(), (tokens.len() as u64).div_ceil(context.n_batch() as u64));
        context.logits().unwrap().to_vec()
    };
    let (whole, pieces, single) = (row(512), row(3), row(1));
    assert_eq!(whole.len(), model().vocab().len());
    for other in [pieces, single] {
        let most = whole.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 0.25, "differs by {most}");
    }
}

#[test]
fn a_long_prompt_can_be_stopped_between_two_passes() {
    let mut context = context(ContextOptions::default().with_n_batch(4));
    let tokens = ids((0..20).map(|n| n + 1));
    let mut asked = 0;
    let error = context
        .feed(&tokens, &mut || {
            asked += 1;
            asked == 3
        })
        .unwrap_err();
    assert!(matches!(error, RuntimeError::Stopped { done: 8, of: 20, .. }), "{error}");
    assert_eq!((context.forward_passes(), context.tokens()), (2, &tokens[..8]));
    assert!(context.logits().is_err());
    context.feed(&tokens[8..], &mut || false).unwrap();
    assert!(context.logits().unwrap().iter().all(|logit| logit.is_finite()));
}

#[test]
fn a_context_moves_between_threads_and_outlives_its_model() {
    let mut context = context(ContextOptions::default());
    let tokens = prompt(&context);
    context.feed(&tokens, &mut || false).unwrap();
    let before = context.logits().unwrap().to_vec();
    let after = std::thread::spawn(move || {
        context.clear();
        context.feed(&tokens, &mut || false).unwrap();
        context.logits().unwrap().to_vec()
    });
    assert_eq!(before, after.join().unwrap());
    let model = model();
    let contexts: Vec<_> = (0..4)
        .map(|_| {
            let model = model.clone();
            std::thread::spawn(move || model.context(ContextOptions::default()).unwrap().n_ctx())
        })
        .collect();
    for thread in contexts {
        assert!(thread.join().unwrap() > 0);
    }
}

// ---- generation

#[test]
fn greedy_takes_the_best_of_the_allowed_at_every_step() {
    type Sight = (Vec<(TokenId, f32)>, TokenId, bool);
    struct Seen(Vec<Sight>);
    impl Watch for Seen {
        fn wants_steps(&self) -> bool {
            true
        }
        fn step(&mut self, step: &Step) {
            assert_eq!((step.index, step.depth), (self.0.len(), self.0.len()));
            self.0.push((step.allowed.clone(), step.token, step.forced));
        }
    }
    let mut context = context(ContextOptions::default());
    let rules = stopping(context.vocab());
    let prompt = prompt(&context);
    let mut seen = Seen(Vec::new());
    let out = context.generate(&prompt, Some(&rules), &GenerateOptions::default(), &mut seen).unwrap();
    let leaf = out.leaf.unwrap();
    assert_eq!((out.finish, Some(out.text.as_str())), (Finish::Span, leaf.name.as_deref()));
    assert_eq!(out.tokens, leaf.tokens);
    assert_eq!(seen.0.len(), out.tokens.len());
    for (allowed, token, forced) in &seen.0 {
        let best = allowed.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap();
        assert_eq!((best.0, *forced), (*token, allowed.len() == 1));
        assert!((allowed.iter().map(|(_, share)| share).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let stats = out.stats;
    assert_eq!(stats.forced_tokens + stats.sampled_tokens, out.tokens.len());
    assert_eq!(stats.forced_tokens, seen.0.iter().filter(|step| step.2).count());
    assert_eq!(stats.forward_passes_saved, stats.forced_tokens);
    assert_eq!(stats.forward_passes, stats.sampled_tokens as u64, "the prompt's pass serves the first choice");
    assert!(stats.prompt_seconds > 0.0 && stats.n_threads >= 1 && stats.starved == 0);
    // The same again: what the context held is replaced.
    let again = context.generate(&prompt, Some(&rules), &GenerateOptions::default(), &mut ()).unwrap();
    assert_eq!(again.tokens, out.tokens);
}

#[test]
fn every_seed_gives_a_legal_value_and_the_same_one_again() {
    let mut context = context(ContextOptions::default());
    let rules = stopping(context.vocab());
    let prompt = prompt(&context);
    for seed in [0, 1, 2, 3, u32::MAX] {
        for temperature in [0.0, 1.0, 2.0] {
            let options = sampled(seed, temperature);
            let out = context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap();
            assert!(NAMES.contains(&out.text.as_str()), "{}", out.text);
            let again = context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap();
            assert_eq!((again.tokens, again.stats.seed), (out.tokens, out.stats.seed));
        }
    }
    let random = GenerateOptions::default()
        .with_sampling(SamplerOptions { seed: None, ..sampled(0, 1.0).sampling })
        .with_max_tokens(32)
        .with_skip_ahead(true);
    let out = context.generate(&prompt, Some(&rules), &random, &mut ()).unwrap();
    let known = sampled(out.stats.seed, 1.0);
    assert_eq!(context.generate(&prompt, Some(&rules), &known, &mut ()).unwrap().tokens, out.tokens);
}

#[test]
fn the_end_of_a_span() {
    let mut context = context(ContextOptions::default());
    let vocab = Arc::clone(context.vocab());
    let prompt = prompt(&context);
    let options = GenerateOptions::default().with_max_tokens(12);

    // With an end token: it is part of the output, not of the value.
    let quote = vocab.tokenize("\"", false, false).unwrap();
    let rules = values(&vocab, &NAMES).with_end_tokens(quote.clone()).unwrap().with_after(After::Stop).unwrap();
    let out = context.generate(&prompt, Some(&Arc::new(rules)), &options, &mut ()).unwrap();
    let leaf = out.leaf.unwrap();
    assert_eq!((out.finish, &out.tokens[leaf.tokens.len()..]), (Finish::Span, &quote[..]));

    // With end of generation as end token: it is in neither.
    let ends = vocab.end_of_generation().to_vec();
    let rules = values(&vocab, &NAMES).with_end_tokens(ends).unwrap().with_after(After::Stop).unwrap();
    let out = context.generate(&prompt, Some(&Arc::new(rules)), &options, &mut ()).unwrap();
    assert_eq!((out.finish, out.tokens), (Finish::Span, out.leaf.unwrap().tokens));

    // Free text after the value, up to the limit or the model's own end.
    let rules = Arc::new(values(&vocab, &NAMES));
    let out = context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap();
    let leaf = out.leaf.unwrap();
    assert_eq!(out.tokens[..leaf.tokens.len()], leaf.tokens);
    assert_ne!(out.finish, Finish::Span);
    assert!(out.finish != Finish::MaxTokens || out.tokens.len() == 12);

    // A limit inside the value.
    let one = GenerateOptions::default().with_max_tokens(1);
    let long = Arc::new(values(&vocab, &["extraordinarily long value", "extraordinary"]));
    let out = context.generate(&prompt, Some(&long), &one, &mut ()).unwrap();
    assert_eq!((out.finish, out.tokens.len(), out.leaf), (Finish::MaxTokens, 1, None));
}

#[test]
fn an_open_leaf_ends_with_a_token_that_is_dropped() {
    let mut context = context(ContextOptions::default());
    let vocab = Arc::clone(context.vocab());
    let prompt = prompt(&context);
    context.feed(&prompt, &mut || false).unwrap();
    let best = |logits: &[f32]| (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32;
    let first = best(context.logits().unwrap());
    context.feed(&ids([first]), &mut || false).unwrap();
    let second = best(context.logits().unwrap());
    let other = (0..vocab.len() as u32).find(|&token| token != second && token != first).unwrap();

    // The value may go on with `other`, but the model wants `second`: that ends the value.
    let rules = |leaves: &[(&str, &[u32])], after| {
        let rules = SpanRules::for_constraint(trie(leaves), vocab.len()).unwrap();
        Arc::new(rules.with_end_of_generation(vocab.end_of_generation()).unwrap().with_after(after).unwrap())
    };
    let leaves: &[(&str, &[u32])] = &[("short", &[first]), ("long", &[first, other])];
    let two = GenerateOptions::default().with_max_tokens(2);
    let out = context.generate(&prompt, Some(&rules(leaves, After::Stop)), &two, &mut ()).unwrap();
    assert_eq!((out.finish, out.tokens), (Finish::Span, ids([first])));
    assert_eq!(out.leaf.unwrap().name.as_deref(), Some("short"));
    let out = context.generate(&prompt, Some(&rules(leaves, After::Free)), &two, &mut ()).unwrap();
    assert_eq!(out.leaf.unwrap().name.as_deref(), Some("short"));
    if vocab.is_end_of_generation(id(second)) {
        assert_eq!((out.finish, out.tokens), (Finish::EndOfGeneration, ids([first])));
    } else {
        assert_eq!((out.finish, out.tokens), (Finish::MaxTokens, ids([first, second])));
    }
    // Where the model's own token goes on, the value does.
    let leaves: &[(&str, &[u32])] = &[("short", &[first]), ("long", &[first, second])];
    let out = context.generate(&prompt, Some(&rules(leaves, After::Stop)), &two, &mut ()).unwrap();
    assert_eq!(out.leaf.unwrap().name.as_deref(), Some("long"));
}

#[test]
fn a_generation_can_be_stopped_and_refused() {
    struct StopAt(u32);
    impl Watch for StopAt {
        fn stop(&mut self) -> bool {
            self.0 -= 1;
            self.0 == 0
        }
    }
    let mut context = context(ContextOptions::default().with_n_ctx(32));
    let vocab = Arc::clone(context.vocab());
    let rules = stopping(&vocab);
    let prompt = prompt(&context);
    let options = GenerateOptions::default();
    // A row for each token of a long value.
    let (long, each) =
        (Arc::new(values(&vocab, &["a name of several tokens"])), options.clone().with_skip_ahead(false));
    for passes in 1..3 {
        let stopped = context.generate(&prompt, Some(&long), &each, &mut StopAt(passes)).unwrap();
        assert_eq!((stopped.finish, stopped.tokens.is_empty()), (Finish::Cancelled, passes == 1));
    }
    let refused = |context: &mut Context, prompt: &[TokenId], rules: &Arc<SpanRules>, options: &GenerateOptions| {
        context.generate(prompt, Some(rules), options, &mut ()).unwrap_err()
    };
    assert!(matches!(refused(&mut context, &[], &rules, &options), RuntimeError::EmptyPrompt));
    let error = refused(&mut context, &ids([1; 33]), &rules, &options);
    assert!(matches!(error, RuntimeError::ContextFull { held: 0, asked: 33, n_ctx: 32 }), "{error}");
    let none = options.clone().with_max_tokens(0);
    assert!(matches!(refused(&mut context, &prompt, &rules, &none), RuntimeError::OutOfRange { .. }));
    let hot = sampled(1, f32::NAN);
    assert!(matches!(refused(&mut context, &prompt, &rules, &hot), RuntimeError::Draw(_)));
    let wide = Arc::new(crate::common::rules(vocab.len() + 1, &[("a", &[1])]));
    assert!(matches!(refused(&mut context, &prompt, &wide, &options), RuntimeError::VocabularyMismatch { .. }));

    // A prompt that fills the context leaves room for one sampled token.
    let long = Arc::new(values(&vocab, &["extraordinarily long value", "extraordinary"]));
    let out = context.generate(&ids([1; 32]), Some(&long), &options, &mut ()).unwrap();
    assert_eq!((out.finish, out.tokens.len()), (Finish::ContextFull, 1));
    // Without rules: plain text.
    let out = context.generate(&prompt, None, &options.with_max_tokens(4), &mut ()).unwrap();
    assert!(out.leaf.is_none() && out.tokens.len() <= 4);
    assert_eq!(out.stats.forced_tokens, 0);
}
