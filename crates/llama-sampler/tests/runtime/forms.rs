//! Forms are filled with legal values and exact literals, and grammars of llama.cpp's give what tries give.

use crate::common::{precise_model, trie};
use llama_cpp_2::sampling::LlamaSampler;
use llama_sampler::{
    Context, ContextOptions, Field, Finish, GenerateOptions, Generated, Model, ModelOptions, RuntimeError, Watch,
};
use std::sync::Arc;
use trie_core::{
    After, AnyConstraint, DrawSettings, LogitBias, Mode, SamplerOptions, SpanRules, TokenId, Unconstrained,
};
use trie_rules::{AnyRule, Read, Regex};
use trie_text::{Form, FormConstraint, FormOptions, Part, SlotValues};

const ACTIONS: [&str; 3] = ["REPLY", "REPLY_THREAD", "STOP"];

fn context() -> Context {
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    model.context(ContextOptions::default().with_n_threads(1).with_precise(true)).unwrap()
}

fn literal(text: &str) -> Part {
    Part::Literal(text.to_owned())
}

fn slot(name: &str, values: &[&str]) -> Part {
    let values = values.iter().map(|&value| value.to_owned()).collect();
    Part::Slot { name: name.to_owned(), values: SlotValues::Texts(values) }
}

fn mail() -> Arc<Form> {
    let people = slot("to", &["ann", "anna", ""]);
    Form::new([literal("{\"action\": \""), slot("action", &ACTIONS), literal("\", \"to\": \""), people, literal("\"}")])
        .unwrap()
        .into()
}

fn prompt(context: &Context) -> Vec<TokenId> {
    context.vocab().tokenize("The next action is ", true, true).unwrap()
}

fn fill(context: &mut Context, form: &Arc<Form>, options: &GenerateOptions) -> Generated {
    let prompt = prompt(context);
    context.fill(&prompt, form, options, &mut ()).unwrap()
}

fn sampled(seed: u32) -> GenerateOptions {
    let draw = DrawSettings { temperature: 20.0, ..Default::default() };
    let sampling = SamplerOptions { mode: Mode::Sampled, draw, seed: Some(seed) };
    GenerateOptions::default().with_sampling(sampling)
}

#[test]
fn literals_and_values_make_the_text_with_the_tokenizers_own_tokens() {
    let (mut context, form) = (context(), mail());
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let filled = fill(&mut context, &form, &sampled(seed));
        let [action, to] = &filled.fields[..] else { panic!("two slots") };
        assert_eq!(filled.text, format!("{{\"action\": \"{}\", \"to\": \"{}\"}}", action.value, to.value));
        assert_eq!(filled.tokens, context.vocab().tokenize(&filled.text, false, false).unwrap());
        assert!(filled.canonical);
        assert_eq!(ACTIONS[action.index.unwrap()], action.value);
        assert_eq!(fill(&mut context, &form, &sampled(seed)).text, filled.text, "seed {seed}");
        seen.insert(filled.text);
    }
    assert_eq!(seen.len(), 9, "every pair of values can come: {seen:?}");
}

#[test]
fn the_exact_mode_takes_the_most_probable_value_of_each_slot() {
    let (mut context, form) = (context(), mail());
    let options = GenerateOptions::default().with_exact(true).with_probabilities(true);
    let filled = fill(&mut context, &form, &options);
    for field in &filled.fields {
        let shares = field.probabilities.as_ref().unwrap();
        assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-6);
        let best = (0..shares.len()).max_by(|&a, &b| shares[a].1.total_cmp(&shares[b].1)).unwrap();
        assert_eq!((field.index, &field.value), (Some(best), &shares[best].0));
    }
    let again = fill(&mut context, &form, &options);
    assert_eq!((&again.fields, &again.tokens), (&filled.fields, &filled.tokens));
}

#[test]
fn only_branch_points_cost_a_pass() {
    let (mut context, form) = (context(), mail());
    let stats = fill(&mut context, &form, &GenerateOptions::default()).stats;
    assert_eq!(stats.forward_passes as usize, stats.sampled_tokens);
    assert_eq!(stats.forward_passes_saved, stats.forced_tokens);
    let fixed = Form::new([literal("a "), slot("b", &["c"]), literal(" d")]).map(Arc::new).unwrap();
    let stats = fill(&mut context, &fixed, &GenerateOptions::default()).stats;
    assert_eq!((stats.forward_passes, stats.sampled_tokens), (0, 0));
}

#[test]
fn a_chain_of_llama_cpps_walks_a_form() {
    let (mut context, form) = (context(), mail());
    let filled = fill(&mut context, &form, &GenerateOptions::default());
    let vocab = Arc::clone(context.vocab());
    let walked = FormConstraint::new(form, &vocab, FormOptions::default()).unwrap();
    let rules = SpanRules::for_constraint(AnyConstraint::new(walked), vocab.len()).unwrap();
    let rules = rules.with_end_of_generation(vocab.end_of_generation()).unwrap().with_after(After::Stop).unwrap();
    let (rules, prompt) = (Arc::new(rules), prompt(&context));
    for skip_ahead in [true, false] {
        let options = GenerateOptions::default().with_max_tokens(200).with_skip_ahead(skip_ahead);
        let out = context.generate(&prompt, Some(&rules), &options, &mut ()).unwrap();
        let finish = Finish::Span;
        assert_eq!((&out.tokens, &out.text, out.finish), (&filled.tokens, &filled.text, finish));
        let names: Vec<_> = out.leaves.iter().map(|leaf| leaf.name.clone().unwrap()).collect();
        assert_eq!(names, [filled.fields[0].value.clone(), filled.fields[1].value.clone()]);
        let said =
            |fields: &[Field]| fields.iter().map(|field| (field.name.clone(), field.value.clone())).collect::<Vec<_>>();
        assert_eq!(said(&out.fields), said(&filled.fields));
    }
}

#[test]
fn free_text_ends_at_its_stop_or_its_limit() {
    let mut context = context();
    let form = Form::new([literal("\""), Part::text("note", ["\""], 6), literal("\"}"), slot("x", &["1", "2"])])
        .map(Arc::new)
        .unwrap();
    for seed in 0..40 {
        let filled = fill(&mut context, &form, &sampled(seed));
        let (note, x) = (&filled.fields[0], &filled.fields[1]);
        assert_eq!(filled.text, format!("\"{}\"}}{}", note.value, x.value));
        assert!(!note.value.contains(['"', '\\', '\n']), "{:?}", note.value);
        assert_eq!(context.vocab().join(&filled.tokens).unwrap(), filled.text.as_bytes());
    }
}

/// Stops before the second forward pass.
struct Stop(usize);

impl Watch for Stop {
    fn stop(&mut self) -> bool {
        self.0 += 1;
        self.0 > 1
    }
}

#[test]
fn a_form_that_does_not_fit_leaves_the_context_usable() {
    let mut context = context();
    let long = Form::new([literal(&"far too long ".repeat(2000)), slot("x", &["1", "2"])]).map(Arc::new).unwrap();
    let prompt = prompt(&context);
    let refused = context.fill(&prompt, &long, &GenerateOptions::default(), &mut ()).unwrap_err();
    assert!(matches!(refused, RuntimeError::ContextFull { .. }), "{refused}");

    let stopped = context.fill(&prompt, &mail(), &GenerateOptions::default(), &mut Stop(0)).unwrap();
    assert!(stopped.finish == Finish::Cancelled && stopped.fields.len() < 2, "{stopped:?}");
    let filled = fill(&mut context, &mail(), &GenerateOptions::default());
    context.clear();
    assert_eq!(fill(&mut context, &mail(), &GenerateOptions::default()).text, filled.text);
}

#[test]
fn a_grammar_of_llama_cpps_gives_the_same_value() {
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    let mut context = model.context(ContextOptions::default().with_n_threads(1).with_precise(true)).unwrap();
    let prompt = prompt(&context);
    let vocab = Arc::clone(context.vocab());
    let values = ["cancel", "book", "x"];
    let grammar = format!("root ::= {}", values.map(|value| format!("\"{value}\"")).join(" | "));
    let tokens: Vec<Vec<u32>> = values
        .iter()
        .map(|value| vocab.tokenize(value, false, false).unwrap().iter().map(|token| token.get()).collect())
        .collect();
    let leaves: Vec<(&str, &[u32])> = values.iter().copied().zip(tokens.iter().map(Vec::as_slice)).collect();
    let rules = SpanRules::for_constraint(trie(&leaves), vocab.len()).unwrap();
    let rules = rules.with_end_of_generation(vocab.end_of_generation()).unwrap().with_after(After::Stop).unwrap();

    let ours = context.generate(&prompt, Some(&Arc::new(rules)), &GenerateOptions::default(), &mut ()).unwrap();
    let everything = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), vocab.len()).unwrap();
    let everything = Arc::new(everything.with_end_of_generation(vocab.end_of_generation()).unwrap());
    let gbnf = LlamaSampler::grammar(model.llama(), &grammar, "root").unwrap();
    let chain = LlamaSampler::chain([gbnf, LlamaSampler::greedy()], true);
    let options = GenerateOptions::default();
    let theirs = context.generate_with_chain(&prompt, &everything, chain, &options, &mut ()).unwrap();
    assert_eq!(theirs.finish, Finish::EndOfGeneration);
    assert!(values.contains(&theirs.text.as_str()), "{:?}", theirs.text);
    assert!(values.contains(&ours.text.as_str()));
    assert!(theirs.stats.forward_passes >= ours.stats.forward_passes);

    // What a grammar forbade is never accepted: llama.cpp would throw.
    let gbnf = LlamaSampler::grammar(model.llama(), "root ::= \"book\"", "root").unwrap();
    let chain = LlamaSampler::chain([gbnf, LlamaSampler::greedy()], true);
    let stop = SpanRules::for_constraint(trie(&[("x", &tokens[2])]), vocab.len()).unwrap();
    let refused = context.generate_with_chain(&prompt, &Arc::new(stop), chain, &options, &mut ()).unwrap_err();
    assert!(matches!(refused, RuntimeError::NothingSelected), "{refused}");
}

fn rule(name: &str, pattern: &str) -> Part {
    Part::Slot { name: name.to_owned(), values: SlotValues::Rule(Arc::new(Regex::new(pattern).unwrap())) }
}

/// A context of few tokens, and a bias by which the model never ends what may go on.
fn narrow(n_ctx: u32, wanted: &[&str]) -> (Context, LogitBias) {
    let model = Model::load(precise_model(), ModelOptions::default()).unwrap();
    let options = ContextOptions::default().with_n_threads(1).with_precise(true).with_n_ctx(n_ctx);
    let context = model.context(options).unwrap();
    let vocab = context.vocab();
    let ids = (0..vocab.len() as u32).filter_map(TokenId::new);
    let begins =
        |token: &TokenId| vocab.piece(*token).is_some_and(|piece| wanted.iter().any(|w| piece == w.as_bytes()));
    let bias = LogitBias::new(ids.filter(begins).map(|token| (token, 100.0)));
    (context, bias)
}

#[test]
fn slots_that_would_go_on_for_ever_end_where_the_room_does() {
    let (mut context, bias) = narrow(128, &["ab", "a", "c", "7", "z"]);
    let parts = [
        literal("{\"a\": \""),
        rule("a", "(ab|c)+x?"),
        literal("\", \"n\": "),
        rule("n", "-?[0-9]+"),
        literal(", \"b\": \""),
        slot("b", &["yes", "no"]),
        literal("\", \"z\": \""),
        rule("z", "[a-z]+!"),
    ];
    let form = Arc::new(Form::new(parts).unwrap());
    let pattern =
        Regex::new("\\{\"a\": \"(ab|c)+x?\", \"n\": -?[0-9]+, \"b\": \"(yes|no)\", \"z\": \"[a-z]+!").unwrap();
    let prompt = prompt(&context);
    let ways = [GenerateOptions::default(), sampled(1), sampled(2)];
    for options in ways.map(|options| options.with_logit_bias(bias.clone())) {
        let filled = context.fill(&prompt, &form, &options, &mut ()).unwrap();
        assert_eq!(AnyRule::read(&pattern, filled.text.as_bytes()), Read::Whole, "{}", filled.text);
        assert_eq!(filled.finish, Finish::Span);
        assert!(filled.completed && filled.fields[0].completed, "{filled:?}");
        assert!(filled.fields[0].value.len() > 20, "{filled:?}");
        assert!(prompt.len() + filled.tokens.len() <= 128 + 8, "{filled:?}");
        assert_eq!(context.vocab().join(&filled.tokens).unwrap(), filled.text.as_bytes());
        // Whoever hears of probabilities changes nothing.
        let heard = context.fill(&prompt, &form, &options.with_logprobs(2).with_trail(true), &mut ()).unwrap();
        assert_eq!((&heard.tokens, &heard.text), (&filled.tokens, &filled.text));
        assert_eq!(heard.logprobs.len(), heard.tokens.len());
    }
}

#[test]
fn a_slot_alone_and_a_text_end_where_the_room_does() {
    let (mut context, bias) = narrow(64, &["ab", "a", "c", "7", "z"]);
    let prompt = prompt(&context);
    let options = GenerateOptions::default().with_logit_bias(bias);
    for (part, pattern) in [
        (rule("v", "(ab|c)+x?"), "(ab|c)+x?"),
        (rule("v", "[0-9]+"), "[0-9]+"),
        (rule("v", "([a-z]{3})+[.]"), "([a-z]{3})+[.]"),
        (Part::text("v", ["\n"], 500), "[^\n]*"),
    ] {
        let filled = context.fill(&prompt, &Arc::new(Form::new([part]).unwrap()), &options, &mut ()).unwrap();
        assert_eq!(AnyRule::read(&Regex::new(pattern).unwrap(), filled.text.as_bytes()), Read::Whole, "{filled:?}");
        assert!(filled.completed && filled.text.len() > 20, "{filled:?}");
    }
}

#[test]
fn a_form_with_room_is_filled_as_ever() {
    let (mut wide, _) = narrow(2048, &[]);
    let (mut near, _) = narrow(192, &[]);
    let parts = [literal("\""), rule("a", "[a-z]{1,12}"), literal("\", \""), slot("b", &["yes", "no"]), literal("\"")];
    let form = Arc::new(Form::new(parts).unwrap());
    for seed in 0..20 {
        let (one, other) = (fill(&mut wide, &form, &sampled(seed)), fill(&mut near, &form, &sampled(seed)));
        assert_eq!((one.tokens, one.stats.sampled_tokens), (other.tokens, other.stats.sampled_tokens));
        assert!(!one.completed && !other.completed);
    }
}

#[test]
fn a_slot_without_a_way_out_says_what_to_do() {
    let (mut context, bias) = narrow(64, &["a"]);
    let form = Arc::new(Form::new([rule("v", "a{2000,}")]).unwrap());
    let options = GenerateOptions::default().with_logit_bias(bias);
    let prompt = prompt(&context);
    let error = context.fill(&prompt, &form, &options, &mut ()).unwrap_err();
    assert!(matches!(&error, RuntimeError::FieldTooLong { name, n_ctx: 64, .. } if name == "v"), "{error}");
    assert!(error.to_string().contains("n_ctx"), "{error}");
}
