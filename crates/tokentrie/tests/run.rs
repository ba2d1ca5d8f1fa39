//! Generations and choices: options by name, and what a request gives beside what the runtime gives.

use llama_sampler::{Context, ContextOptions, Finish, GenerateOptions, Model, ModelOptions};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use tokentrie::call::{
    CallOptions, Choose, ChooseRequest, Generate, GenerateError, GenerateRequest, GenerateResult, names_of,
};
use tokentrie::constraint::{DataOnly, Over, Spec};
use tokentrie::engine::Runtime;
use trie_core::{After, Mode, SpanRules};
use trie_text::{Prompt, ValueSets};

fn model() -> Model {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tokentrie/models/tiny.gguf");
    Model::load(file, ModelOptions::default()).unwrap()
}

fn asked(value: &Value) -> Result<GenerateRequest, String> {
    GenerateRequest::from_json(value.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn ran(context: &mut Context, sets: &ValueSets, value: &Value) -> Result<GenerateResult, GenerateError> {
    let GenerateRequest { prompt, constraint, options, .. } = asked(value).unwrap();
    let over = Over::vocab(sets.vocab());
    let built = constraint.map(|spec| spec.build(&over, &DataOnly).unwrap());
    let ready = options.ready(prompt.unwrap(), built.into(), None, sets)?;
    Ok(Runtime::Alone(context).run(&ready, &mut ()).unwrap().remove(0))
}

/// The names of the options of a call.
fn names<T: serde::de::DeserializeOwned>() -> Vec<&'static str> {
    [names_of::<T>(), names_of::<CallOptions>()].concat()
}

#[test]
fn what_is_null_counts_as_left_out() {
    let nulls = |names: Vec<&str>| Value::Object(names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect());
    let read = asked(&nulls(names::<Generate>())).unwrap();
    assert_eq!((read.options, read.call), (Generate::default(), CallOptions::default()));
    let read = ChooseRequest::from_json(nulls(names::<Choose>()).to_string().as_bytes()).unwrap();
    assert_eq!((read.options, read.call), (Choose::default(), CallOptions::default()));
}

/// A value of each option that is not its default.
fn other(name: &str) -> Value {
    match name {
        "sampling" | "free_sampling" => json!({"temperature": 0.5, "seed": 7}),
        "max_tokens" | "top" | "max_rows" | "beam" | "correct" | "priority" => json!(5),
        "end_tokens" => json!([3]),
        "after" => json!("free"),
        "skip_ahead" => json!(false),
        "logprobs" => json!(2),
        "timeout" => json!(1.5),
        "stop" => json!("x"),
        "logit_bias" => json!({"5": -100}),
        _ => json!(true),
    }
}

#[test]
fn every_option_is_read_and_no_other() {
    let all = names::<Generate>();
    assert!(all.len() > 12, "{all:?}");
    for option in all {
        let read = asked(&json!({option: other(option)})).unwrap();
        assert!(read.options != Generate::default() || read.call != CallOptions::default(), "{option}");
        let said = asked(&json!({option: [[]]})).unwrap_err();
        assert!(said.starts_with(&format!("$.{option}")), "{said}");
    }
    for option in names::<Choose>() {
        let json = json!({option: other(option)}).to_string();
        let read = ChooseRequest::from_json(json.as_bytes()).unwrap();
        assert!(read.options != Choose::default() || read.call != CallOptions::default(), "{}", option);
    }
    for (value, says) in [
        (json!({"max_token": 1}), "$.max_token: unknown field"),
        (json!({"max_tokens": 0}), "$.max_tokens: it is 0: it must be from 1 to"),
        (json!({"timeout": -1}), "$.timeout: invalid value: expected a number of seconds"),
        (
            json!({"priority": 2_147_483_648_u32}),
            "$.priority: invalid value: expected an integer from -2147483648 to 2147483647",
        ),
        (json!({"logit_bias": {"05": 1}}), "$.logit_bias: invalid value: expected an object whose keys are token ids"),
        (json!({"logit_bias": {"5": "x"}}), "$.logit_bias.5: invalid value: expected a number"),
        (json!({"logit_bias": {"5": 1e39}}), "$.logit_bias.5: invalid value: expected a number"),
        (json!({"stop": 7}), "$.stop: invalid value: expected a text, or an array of texts"),
        (json!({"stop": ["a", 7]}), "$.stop[1]: invalid value: expected a string"),
        (json!({"stop": ["a", ""]}), "$.stop: stop[1] is empty"),
        (json!({"prompt": 7}), "$.prompt: invalid value: expected a text or an array of token ids"),
        (json!({"prompt": [1, -1]}), "$.prompt[1]: invalid value: expected a token id"),
        (json!({"constraint": {"regx": "a"}}), "$.constraint: unknown kind of spec: expected an object with one of"),
        (
            json!({"constraint": {"regex": "a"}, "after": "end"}),
            "$.after: invalid value: expected \"stop\" or \"free\"",
        ),
        (json!({"sampling": {"top_k": 2.5}}), "$.sampling.top_k: top_k is 2.5"),
    ] {
        let said = asked(&value).unwrap_err();
        assert!(said.starts_with(says), "{value}: {said}");
    }
    let said = ChooseRequest::from_json(br#"{"choices": ["a", 7]}"#).unwrap_err().to_string();
    assert_eq!(said, "$.choices[1]: invalid value: expected a string, got 7");
}

#[test]
fn a_request_gives_what_the_runtime_gives() {
    let model = model();
    let vocab = model.vocab();
    let sets = ValueSets::new(vocab.clone());
    let mut context = model.context(ContextOptions::default().with_n_threads(1)).unwrap();
    let prompt = "The sky is ";
    let regex = Spec::from_json(br#"{"regex": "[a-f]{2,9}"}"#).unwrap();
    for (sampling, after) in [(json!({}), After::Stop), (json!({"temperature": 2, "seed": 3}), After::Free)] {
        let word = if after == After::Free { "free" } else { "stop" };
        let value = json!({
            "prompt": vocab.tokenize(prompt, true, true).unwrap().iter().map(|token| token.get()).collect::<Vec<_>>(),
            "constraint": {"regex": "[a-f]{2,9}"}, "sampling": sampling, "after": word, "max_tokens": 20,
        });
        let result = ran(&mut context, &sets, &value).unwrap();
        let got = &result.generated;
        let spans = regex.constraint(&Over::vocab(vocab), &DataOnly).unwrap();
        let rules = SpanRules::new(spans, vocab.len()).unwrap().with_end_of_generation(vocab.end_of_generation());
        let rules = rules.unwrap().with_after(after).unwrap();
        let sampling = asked(&value).unwrap().options.sampling;
        assert_eq!(sampling.mode == Mode::Sampled, after == After::Free);
        let options = GenerateOptions::default().with_sampling(sampling).with_max_tokens(20);
        let tokens = vocab.tokenize(prompt, true, true).unwrap();
        let wanted = context.generate(&tokens, Some(&rules.into()), &options, &mut ()).unwrap();
        assert_eq!((&got.tokens, &got.text, got.finish), (&wanted.tokens, &wanted.text, wanted.finish));
        let json: Value = serde_json::from_str(&result.to_json(&[])).unwrap();
        assert_eq!(json["text"], got.text.as_str());
        assert_eq!(json["finish"], got.finish.name());
        assert!(json["stats"]["seconds"].as_f64().unwrap() > 0.0);
        assert_eq!(json["tokens"].as_array().unwrap().len(), got.tokens.len());
    }
}

#[test]
fn options_that_do_not_go_with_a_constraint_are_refused() {
    let model = model();
    let sets = ValueSets::new(model.vocab().clone());
    let mut context = model.context(ContextOptions::default().with_n_threads(1)).unwrap();
    let form = json!({"form": ["a ", {"slot": "b", "value": {"choice": ["c", "d"]}}]});
    let cats = json!({"choice": ["cat", "dog"]});
    for (value, says) in [
        (json!({"constraint": form, "after": "free"}), "not for forms"),
        (json!({"constraint": form, "end_tokens": [1]}), "not for forms"),
        (json!({"constraint": cats, "exact": true}), "for forms: use `choose`"),
        (json!({"constraint": cats, "probabilities": true}), "for forms: use `choose`"),
        (json!({"end_tokens": [1]}), "free text has none"),
        (json!({"constraint": cats, "free_sampling": {}, "after": "stop"}), "give after=\"free\""),
        (json!({"constraint": cats, "free_sampling": {}, "after": "free", "skip_ahead": false}), "needs skip_ahead"),
    ] {
        let mut value = value;
        value["prompt"] = "A pet: ".into();
        let said = ran(&mut context, &sets, &value).unwrap_err().to_string();
        assert!(said.contains(says), "{value}: {said}");
    }
    let exact = json!({"prompt": "A pet: ", "constraint": form, "exact": true, "probabilities": true});
    let filled = ran(&mut context, &sets, &exact).unwrap();
    assert_eq!(filled.generated.finish, Finish::Span);
    let json: Value = serde_json::from_str(&filled.to_json(&[])).unwrap();
    assert_eq!(json["values"]["b"], filled.generated.fields[0].value.as_str());
    let shares = json["probabilities"]["b"].as_object().unwrap();
    assert_eq!(shares.len(), 2);
    assert!(shares.contains_key(&filled.generated.fields[0].value));
}

#[test]
fn a_choice_has_the_values_of_its_spec_in_their_order() {
    let model = model();
    let vocab = model.vocab();
    let sets = ValueSets::new(vocab.clone());
    let mut context = model.context(ContextOptions::default().with_n_threads(1)).unwrap();
    for (choices, names) in [
        (json!(["dog", "cat", "a dog"]), vec!["dog", "cat", "a dog"]),
        (json!({"choice": ["b", "a"]}), vec!["b", "a"]),
        (json!({"integer": {"min": 8, "max": 11}}), vec!["10", "11", "8", "9"]),
    ] {
        let request = json!({"prompt": "It is ", "choices": choices}).to_string();
        let ChooseRequest { prompt, choices, options, .. } = ChooseRequest::from_json(request.as_bytes()).unwrap();
        let spec = choices.unwrap();
        let values = spec.list_values(&Over::vocab(vocab), &DataOnly).unwrap();
        let ready = options.ready(prompt.unwrap(), &values, &sets).unwrap();
        let chosen = Runtime::Alone(&mut context).run(ready, &mut ()).unwrap();
        let json = chosen.json(Some(&spec), &DataOnly, &["once".to_owned()]).unwrap();
        let mut given: Vec<&str> =
            json["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        // Texts of a rule come in an order of its own.
        if names.contains(&"10") {
            given.sort_unstable();
        }
        assert_eq!(given, names);
        let best = json["index"].as_u64().unwrap() as usize;
        assert_eq!(json["name"], json["names"][best]);
        assert_eq!(json["warnings"], json!(["once"]));
        let name = json["name"].as_str().unwrap();
        assert_eq!(
            json["value"],
            if spec.kind() == "integer" { json!(name.parse::<u8>().unwrap()) } else { name.into() }
        );
        let shares: HashMap<String, f64> = serde_json::from_value(json["probabilities"].clone()).unwrap();
        assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(shares.values().all(|&share| share <= shares[name]));
    }
    let values = Spec::choice(["a", "b"]).list_values(&Over::vocab(vocab), &DataOnly).unwrap();
    let mut few = Choose::default();
    few.max_rows = Some(1);
    let ready = few.ready(Prompt::Text("It is ".to_owned()), &values, &sets).unwrap();
    let top = Runtime::Alone(&mut context).run(ready, &mut ()).unwrap();
    let json = top.json(None, &DataOnly, &[]).unwrap();
    assert!(json["mass_bounds"][0].as_f64() <= json["mass_bounds"][1].as_f64());
}

/// What stands between two lines.
fn part<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let from = text.find(begin).unwrap_or_else(|| panic!("{begin:?} is nowhere"));
    let length = text[from..].find(end).unwrap();
    &text[from..from + length]
}

#[test]
fn every_host_has_every_option_by_its_name() {
    let docs = include_str!("../../../docs/c-sessions.md");
    let python = include_str!("../../../python/tokentrie/options.py");
    let typescript = include_str!("../../../hosts/typescript/src/session/session.ts");
    let calls = [("Generate", names::<Generate>(), "a generation"), ("Choose", names::<Choose>(), "a choice")];
    for (call, options, of) in calls {
        let in_c = part(docs, &format!("| field of {of}"), "\n\n");
        let in_python = part(python, &format!("class {call}Options("), "\n\n\n");
        let in_typescript = part(typescript, &format!("export interface {call}Options {{"), "\n}\n");
        for name in options {
            assert!(in_c.contains(&format!("`{name}`")), "docs/c-sessions.md: {name}");
            // There it is a mode.
            assert!(name == "exact" || in_python.contains(&format!("    {name}:")), "Python: {name}");
            let mut words = name.split('_');
            let first = words.next().unwrap().to_owned();
            let camel = words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..]);
            // There it is a signal.
            assert!(name == "timeout" || in_typescript.contains(&format!("readonly {camel}?:")), "TypeScript: {name}");
        }
    }
}
