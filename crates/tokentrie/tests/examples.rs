//! The examples that all hosts share, in Rust.

use llama_sampler::{ContextOptions, GenerateOptions, Model, ModelOptions};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tokentrie::call::{ChooseRequest, Follows, GenerateRequest, ProbabilityRequest};
use tokentrie::chat::{ChatError, ChatRequest, ModelFormat};
use tokentrie::constraint::{AfterPrompt, DataOnly, Over, Spec};
use tokentrie::decide::{Answers, ReadyDecision, Request};
use tokentrie::engine::Runtime;
use trie_core::{After, SpanRules};
use trie_text::{Prompt, ValueSets};

const VECTORS: &str = include_str!("../../../tests/vectors/examples.json");

#[test]
fn every_example_gives_the_same_tokens() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tokentrie/models/tiny.gguf");
    let model = Model::load(&path, ModelOptions::default())?;
    let mut context = model.context(ContextOptions::default().with_n_threads(Some(1)))?;
    let vocab = Arc::clone(model.vocab());
    let sets = ValueSets::new(Arc::clone(&vocab));
    let vectors: Value = serde_json::from_str(VECTORS)?;
    for example in vectors["generations"].as_array().unwrap() {
        let text = |name: &str| example[name].as_str().unwrap();
        let spec = Spec::from_json(example["constraint"].to_string().as_bytes())?;
        let built = spec.build(&Over::vocab(&vocab), &DataOnly)?;
        let AfterPrompt { prompt, healed_bytes, spans, .. } =
            built.after_prompt(Prompt::Text(text("prompt").into()), &sets)?;
        let rules = SpanRules::new(spans, vocab.len())?;
        let rules = rules.with_end_of_generation(vocab.end_of_generation())?.with_after(After::Stop)?;
        let options = GenerateOptions::default().with_healed_bytes(healed_bytes);
        let out = context.generate(&prompt, Some(&Arc::new(rules)), &options, &mut ())?;
        let tokens: Vec<u32> = out.tokens.iter().map(|token| token.get()).collect();
        assert_eq!((out.text.as_str(), Value::from(tokens)), (text("text"), example["tokens"].clone()));
        let values: Map<String, Value> = out.fields.into_iter().map(|field| (field.name, field.value.into())).collect();
        assert_eq!(
            Value::from(values),
            example.get("values").cloned().unwrap_or(Map::new().into()),
            "{}",
            text("name")
        );
    }

    let near = vectors["near"].as_f64().unwrap();
    let assert_near = |found: &Value, expected: &Value| {
        let (found, expected) = (found.as_object().unwrap(), expected.as_object().unwrap());
        assert!(found.keys().eq(expected.keys()), "{found:?} {expected:?}");
        for (name, share) in found {
            let (share, wanted) = (share.as_f64().unwrap(), expected[name].as_f64().unwrap());
            assert!((share - wanted).abs() < near, "{name}: {share}, not {wanted}");
        }
    };
    for example in vectors["choices"].as_array().unwrap() {
        let ChooseRequest { prompt, choices, options, .. } =
            ChooseRequest::from_json(example["request"].to_string().as_bytes())?;
        let spec = choices.unwrap();
        let values = spec.list_values(&Over::vocab(&vocab), &DataOnly)?;
        let ready = options.ready(prompt.unwrap(), &values, &sets)?;
        let choice = Runtime::Alone(&mut context).run(ready, &mut ())?.json(Some(&spec), &DataOnly, &[])?;
        assert_eq!((&choice["name"], &choice["value"]), (&example["chosen"], &example["value"]), "{}", example["name"]);
        assert_near(&choice["probabilities"], &example["probabilities"]);
    }
    for example in vectors["probabilities"].as_array().unwrap() {
        let ProbabilityRequest { prompt, constraint, options, .. } =
            ProbabilityRequest::from_json(example["request"].to_string().as_bytes())?;
        let built = constraint.unwrap().build(&Over::vocab(&vocab), &DataOnly)?;
        let ready = options.ready(prompt.unwrap(), built, &sets)?;
        let found = Runtime::Alone(&mut context).run(ready, &mut ())?.to_json(&[]);
        let found: Value = serde_json::from_str(&found)?;
        assert_eq!((&found["exact"], &found["timed_out"]), (&example["exact"], &Value::Bool(false)));
        assert_near(&json!({"lower": found["lower"], "upper": found["upper"]}), &example["found"]);
        if let Some(share) = example.get("share") {
            assert_near(&json!({"share": found["text"]["share"]}), &json!({ "share": share }));
        }
    }
    let (format, _) = ModelFormat::of_model::<ChatError>(&model)?;
    for example in vectors["forms"].as_array().unwrap() {
        let GenerateRequest { prompt, constraint, options, .. } =
            GenerateRequest::from_json(example["request"].to_string().as_bytes())?;
        let built = constraint.unwrap().build(&Over::vocab(&vocab), &DataOnly)?;
        let ready = options.ready(prompt.unwrap(), Follows::Built(built), None, &sets)?;
        let out = Runtime::Alone(&mut context).run(&ready, &mut ())?.remove(0);
        let out: Value = serde_json::from_str(&out.to_json(&[]))?;
        for (slot, shares) in example["probabilities"].as_object().unwrap() {
            assert_near(&out["probabilities"][slot], shares);
        }
    }
    for example in vectors["decisions"].as_array().unwrap() {
        let request = Request::from_json(example["request"].to_string().as_bytes())?;
        let ready = ReadyDecision::new(request, &format, &sets, &model)?;
        let answers = Runtime::Alone(&mut context).run(ready, &mut ())?;
        let answers: Value = serde_json::from_str(&Answers::to_json(&answers))?;
        for (question, expected) in example["answers"].as_object().unwrap() {
            let found = answers[0]["answers"][question]["probabilities"].as_array().unwrap();
            let expected = expected["probabilities"].as_array().unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!(found["value"], expected["value"]);
                let shares = [found, expected].map(|one| one["probability"].as_f64().unwrap());
                assert!((shares[0] - shares[1]).abs() < near, "{found} {expected}");
            }
        }
    }

    let request = vectors["chat"]["request"].to_string();
    let request = ChatRequest::from_json(request.as_bytes(), format.format().template().text())?;
    let reply = Runtime::Alone(&mut context).run(request.ready(&format)?, &mut ())?.remove(0);
    let reply: Value = serde_json::from_str(&reply.to_json(&[]))?;
    let wanted = vectors["chat"]["tool_calls"].as_array().unwrap();
    let calls = reply["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), wanted.len());
    for (call, wanted) in calls.iter().zip(wanted) {
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap())?;
        assert_eq!((&call["function"]["name"], &arguments), (&wanted["name"], &wanted["arguments"]));
    }
    Ok(())
}
