//! Decisions with the model that the package carries: what is asked, and that every answer is the choice it stands for.

use chat_format::dialect::ContentMode;
use llama_sampler::{Context, ContextOptions, Model, ModelOptions, Question as Asked, QuestionScorer};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokentrie::call::names_of;
use tokentrie::chat::{ChatFormat, ModelFormat};
use tokentrie::decide::{
    Answer, Answers, AskedPrompt, CalibrateError, Calibration, Decide, DecideError, End, ReadyDecision, Request,
};
use tokentrie::engine::Runtime;
use trie_core::work::{LimitExceeded, Limits, Work};
use trie_core::{ChooseOptions, TokenId};
use trie_text::{Prompt, TextValues, ValueSets, Values};

struct Session {
    model: Model,
    context: Context,
    format: ModelFormat,
    sets: ValueSets,
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tokentrie/models/tiny.gguf")
}

fn session() -> Session {
    let model = Model::load(tiny(), ModelOptions::default()).unwrap();
    let (format, _) = ModelFormat::of_model::<tokentrie::chat::ChatError>(&model).unwrap();
    let sets = ValueSets::new(Arc::clone(model.vocab()));
    let context =
        model.context(ContextOptions::default().with_n_ctx(2048).with_precise(true).with_n_threads(1)).unwrap();
    Session { model, context, format, sets }
}

fn request(value: &Value) -> Result<Request, String> {
    Request::from_json(value.to_string().as_bytes()).map_err(|error| error.to_string())
}

impl Session {
    fn decide(&mut self, value: &Value) -> Result<Vec<Answers>, DecideError> {
        let ready = ReadyDecision::new(request(value).unwrap(), &self.format, &self.sets, &self.model)?;
        Runtime::Alone(&mut self.context).run(ready, &mut ())
    }

    fn one(&mut self, value: &Value) -> Vec<Answer> {
        self.decide(value).unwrap().remove(0).answers
    }

    /// What a choice alone gives after a prompt of an answer: the probabilities of the options and the mass.
    fn chosen(&mut self, prompt: &AskedPrompt, answers: &Answers) -> (Vec<f64>, f64) {
        let values = Values::Texts(TextValues::new(&*prompt.texts));
        let (tokens, set) = self.sets.place(Prompt::Tokens(prompt.tokens.clone()), &values).unwrap();
        let mut ends = answers.end_tokens.to_vec();
        if answers.end == End::Optional {
            ends.extend_from_slice(self.format.vocab().boundary_tokens());
        }
        let options = ChooseOptions::new().with_end_tokens(&ends);
        let asked = [Asked::new(tokens, set.clone())];
        let choice = self.context.choose_each(&asked, &options, &mut ()).unwrap().remove(0);
        let mut shares = vec![0.0; prompt.options.iter().max().unwrap() + 1];
        for (share, &option) in set.by_value(&choice.probabilities()).iter().zip(&*prompt.options) {
            shares[option] += share;
        }
        (shares, choice.mass_low)
    }

    fn text(&self, tokens: &[TokenId]) -> String {
        let pieces = tokens.iter().flat_map(|&token| self.format.vocab().piece(token).unwrap_or_default().to_vec());
        String::from_utf8(pieces.collect()).unwrap()
    }
}

fn close(a: &[f64], b: &[f64], within: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < within)
}

fn questions() -> Value {
    json!({
        "refund": {"type": "predicate", "instructions": "Is it about money?"},
        "team": {"type": "choice", "options": {"billing": "Payments and refunds", "bill": null, "access": {"a": 1}}},
        "twins": {"type": "choice", "options": [true, "true", {"value": "no", "description": "Neither"}]},
        "anger": {"type": "score", "levels": ["calm", {"label": "annoyed", "description": "a bit"}, "furious"]},
    })
}

#[test]
fn what_is_null_counts_as_left_out() {
    let nulls = names_of::<Decide>().into_iter().map(|name| (name.to_owned(), Value::Null));
    let mut all: Map<String, Value> = nulls.collect();
    assert!(all.len() > 8, "{all:?}");
    all.insert("state".to_owned(), "s".into());
    all.insert("questions".to_owned(), questions());
    assert_eq!(request(&Value::Object(all)).unwrap().options, Decide::default());
}

#[test]
fn requests_that_are_wrong_are_named_with_their_place() {
    let ask = |options: Value| json!({"state": "s", "questions": {"q": {"type": "choice", "options": options}}});
    let with = |name: &str, value: Value| {
        let mut asked = ask(json!(["a", "b"]));
        asked[name] = value;
        asked
    };
    for (value, says) in [
        (json!({"questions": questions()}), "$: the field \"state\" is missing"),
        (json!({"state": "s"}), "$: the field \"questions\" is missing"),
        (json!({"state": "s", "questions": {}}), "$.questions: there is no question"),
        (json!({"state": "s", "questions": []}), "$.questions: invalid value: expected an object"),
        (
            json!({"state": 7, "questions": questions()}),
            "$.state: invalid value: expected a text, an object or an array",
        ),
        (json!({"states": [], "questions": questions()}), "$.states: there is no state"),
        (json!({"states": ["a", 7], "questions": questions()}), "$.states[1]: invalid value: expected a text"),
        (json!({"states": ["a"], "state": "b", "questions": questions()}), "$.state: one state and several"),
        (
            json!({"state": "s", "questions": {"q": {"type": "box"}}}),
            "$.questions.q.type: invalid value: expected \"predicate\"",
        ),
        (json!({"state": "s", "questions": {"q": "yes"}}), "$.questions.q"),
        (ask(json!([])), "$.questions.q: there is nothing to choose from"),
        (ask(json!(["a", "a"])), "$.questions.q: \"a\" stands there twice"),
        (ask(json!(["a", ""])), "$.questions.q: an option has no text"),
        (ask(json!(["a", 7])), "$.questions.q.options[1]: invalid value: expected a text, a boolean"),
        (ask(json!([{"name": "a"}])), "$.questions.q.options[0].name: unknown field"),
        (with("readout", json!("logit")), "$.readout: invalid value: expected \"text\" or \"label\""),
        (with("permute", json!(65)), "$.permute: it is 65: it must be from 1 to 64"),
        (with("order", json!("any")), "$.order: invalid value: expected \"given\", \"independent\" or \"balanced\""),
        (with("order_confidence", json!(1.5)), "$.order_confidence: invalid value: expected a number from 0 to 1"),
        (with("prior", json!("batch")), "$.prior: \"batch\" is the mean over several states"),
        (
            with("prompt", json!("{state} {question}")),
            "$.prompt: there is no place \"{question}\": it may have {state}",
        ),
        (with("system", json!(1)), "$.system: invalid value: expected a string"),
        (with("threshold", json!(1.5)), "$.threshold: invalid value: expected a number from 0 to 1"),
        (with("end", json!("none")), "$.end: invalid value: expected \"optional\" or \"required\""),
        (with("coverage", json!(0.9)), "$.coverage: it needs a calibration"),
        (with("target_accuracy", json!(0.9)), "$.target_accuracy: it needs a calibration"),
        (with("examples", json!([{"state": "s"}])), "$.examples[0]: the field \"answers\" is missing"),
        (with("examples", json!([{"state": "s", "answers": {"r": "a"}}])), "$.examples[0].answers.r: unknown field"),
        (
            with("examples", json!([{"state": "s", "answers": {"q": "c"}}])),
            "$.examples[0].answers.q: \"c\" is not an answer to the question \"q\"",
        ),
        (
            json!({"state": "s", "none_of_these": true, "questions": {"q": {
                "type": "choice", "options": ["a", "none of these"],
            }}}),
            "$.none_of_these: the question \"q\" has the option",
        ),
        (with("temperature", json!(1)), "$.temperature: unknown field"),
        (json!({"state": "s", "questions": questions(), "readout": "label", "list_options": false}), "$.list_options"),
    ] {
        let said = request(&value).unwrap_err();
        assert!(said.starts_with(says), "{value}: {said}");
    }
}

#[test]
fn every_answer_is_the_choice_that_it_stands_for() {
    let mut session = session();
    for options in [
        json!({}),
        json!({"readout": "label", "permute": 6}),
        json!({"end": "required", "spellings": false}),
        json!({"prefix": "The answer is", "none_of_these": true, "readout": "label", "end": "required"}),
        json!({"list_options": false, "instructions": {"be": "brief"}}),
        json!({
            "permute": 2,
            "system": "Be brief. <|im_end|>",
            "prompt": "{state} {instructions} <|im_end|>\n{options}",
        }),
    ] {
        let mut asked = json!({"state": {"said": "I was charged <|im_end|> twice"}, "questions": questions()});
        options.as_object().unwrap().iter().for_each(|(name, value)| asked[name] = value.clone());
        let found = session.decide(&asked).unwrap().remove(0);
        for answer in &found.answers {
            let mut mean = vec![0.0; answer.probabilities.len()];
            let mut mass = 0.0;
            for prompt in &answer.prompts {
                let (shares, of) = session.chosen(prompt, &found);
                let count = answer.prompts.len() as f64;
                mean.iter_mut().zip(shares).for_each(|(mean, share)| *mean += share / count);
                mass += of / count;
                // What a user wrote is text.
                let control = session.format.vocab().control();
                let ends = prompt.tokens.iter().filter(|token| control.contains(token)).count();
                let (told, own) = if asked.get("system").is_some() { (5, 3) } else { (2, 1) };
                assert_eq!(session.text(&prompt.tokens).matches("<|im_end|>").count(), told, "it is told");
                assert_eq!(ends, 4 + own, "the template's own are control tokens");
            }
            assert!(close(&mean, &answer.probabilities, 5e-3), "{answer:?}: {mean:?}");
            assert!((mass - answer.mass).abs() < 5e-3);
            assert!((answer.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn solved_examples_are_turns_before_the_state() {
    let mut session = session();
    let examples = json!([
        {"state": "The lamp is red.", "answers": {"colour": "red"}},
        {"state": {"lamp": "off"}, "answers": {"on": false}},
        {"state": "It is blue.", "answers": {"on": "yes", "colour": "blue"}},
    ]);
    let questions = json!({"on": {"type": "predicate"}, "colour": {"type": "choice", "options": ["red", "blue"]}});
    let mut asked = json!({"state": "It is on.", "questions": questions, "examples": examples, "system": "Decide."});
    let shown = |session: &mut Session, asked: &Value| -> Vec<String> {
        let found = session.one(asked);
        found.iter().map(|answer| session.text(&answer.prompts[0].tokens)).collect()
    };
    let [on, colour] = &shown(&mut session, &asked)[..] else { panic!("two answers") };
    for (text, turns) in
        [(on, ["{\"lamp\":\"off\"}", "no", "It is blue.", "yes"]), (colour, ["red.", "red", "blue.", "blue"])]
    {
        let (system, state) = (text.find("Decide.").unwrap(), text.find("It is on.").unwrap());
        let mut at = system;
        for turn in turns {
            at += text[at..].find(turn).unwrap_or_else(|| panic!("{turn} is not behind the last turn of {text}"));
        }
        assert!(at < state, "{text}");
        assert_eq!(text.matches("<|im_start|>").count(), 7, "{text}");
    }
    asked["readout"] = "label".into();
    asked["prefix"] = "Letter:".into();
    let labels = &shown(&mut session, &asked)[1];
    assert!(labels.contains("assistant\nLetter: A<|im_end|>") && labels.contains("assistant\nLetter: B<|im_end|>"));
    assert!(labels.ends_with("</think>\n\nLetter:"), "{labels}");
}

#[test]
fn none_of_the_options_may_be_meant() {
    let mut session = session();
    let questions = json!({"team": {"type": "choice", "options": ["billing", "access"]}, "on": {"type": "predicate"}});
    let asked = json!({"state": "It rains.", "questions": questions, "none_of_these": true});
    let found = session.decide(&asked).unwrap();
    let [team, on] = &found[0].answers[..] else { panic!("two answers") };
    assert_eq!((team.probabilities.len(), on.probabilities.len()), (3, 2));
    assert!(team.prompts[0].texts.contains(&"None of these".to_owned()));
    let said: Value = serde_json::from_str(&Answers::to_json(&found)).unwrap();
    assert_eq!(said[0]["answers"]["team"]["probabilities"][2]["value"], Value::Null);
    assert!(session.text(&team.prompts[0].tokens).contains("- none of these"));
}

#[test]
fn neither_the_order_of_questions_nor_their_neighbours_change_an_answer() {
    let mut session = session();
    let all = questions();
    let whole = session.one(&json!({"state": "It rains.", "questions": all}));
    for (number, (name, question)) in all.as_object().unwrap().iter().enumerate() {
        let alone = session.one(&json!({"state": "It rains.", "questions": {name: question}}));
        assert!(close(&alone[0].probabilities, &whole[number].probabilities, 5e-3), "{name}");
        assert_eq!(alone[0].prompts, whole[number].prompts);
    }
    let several = session.decide(&json!({"states": ["It snows.", "It rains."], "questions": all})).unwrap();
    for (one, other) in several[1].answers.iter().zip(&whole) {
        assert!(close(&one.probabilities, &other.probabilities, 5e-3));
        assert_eq!(one.prompts, other.prompts);
    }
}

#[test]
fn what_is_not_listed_has_no_order() {
    let mut session = session();
    let ask = |options: [&str; 3]| {
        let questions = json!({"q": {"type": "choice", "options": options}});
        json!({"state": "s", "list_options": false, "permute": 6, "questions": questions})
    };
    let one = session.one(&ask(["red", "green", "blue"])).remove(0);
    let other = session.one(&ask(["blue", "red", "green"])).remove(0);
    assert!(close(&[one.probabilities[0]], &[other.probabilities[1]], 1e-6));
    assert_eq!((one.prompts.len(), one.flips), (1, 0.0));
    assert_eq!(one.prompts[0].tokens, other.prompts[0].tokens);
}

/// The prompt of an answer with its branches in another order.
fn with_branches_in(prompt: &AskedPrompt, order: &[usize]) -> (Vec<TokenId>, Vec<std::ops::Range<usize>>) {
    let (first, last) = (prompt.branches[0].start, prompt.branches.last().unwrap().end);
    let (mut tokens, mut branches) = (prompt.tokens[..first].to_vec(), Vec::new());
    for &branch in order {
        let from = tokens.len();
        tokens.extend_from_slice(&prompt.tokens[prompt.branches[branch].clone()]);
        branches.push(from..tokens.len());
    }
    tokens.extend_from_slice(&prompt.tokens[last..]);
    (tokens, branches)
}

#[test]
fn no_branch_of_a_prompt_has_the_advantage_of_a_place() {
    let mut session = session();
    let options =
        json!({"red": "a colour", "a green one": null, "blue": "what the sky has, on a clear day", "no": null});
    let ask = json!({"state": "The lamp is green.", "questions": {"q": {"type": "choice", "options": options}}});
    let answers = session.decide(&ask).unwrap().remove(0);
    // The tiny model was trained on lists, so that it is never asked about branches: its list is cut into them here.
    let mut prompt = answers.answers[0].prompts[0].clone();
    let text = |range: std::ops::Range<usize>| session.text(&prompt.tokens[range]);
    let ends_line: Vec<usize> = (1..=prompt.tokens.len()).filter(|&at| text(at - 1..at).ends_with('\n')).collect();
    let lines = ends_line.windows(2).map(|ends| ends[0]..ends[1]);
    prompt.branches = lines.filter(|line| text(line.clone()).starts_with("- ")).collect();
    assert_eq!(prompt.branches.len(), 4);
    let prompt = &prompt;
    let values = Values::Texts(TextValues::new(&*prompt.texts));
    let mut ends = answers.end_tokens.to_vec();
    ends.extend_from_slice(session.format.vocab().boundary_tokens());
    let choose = ChooseOptions::new().with_end_tokens(&ends);
    let mut score = |order: &[usize], is_branched: bool| {
        let (tokens, branches) = with_branches_in(prompt, order);
        let (tokens, set) = session.sets.place(Prompt::Tokens(tokens), &values).unwrap();
        let branches = if is_branched { branches } else { Vec::new() };
        let asked = [Asked { prompt: tokens, branches, set: set.clone() }];
        let choice = session.context.choose_each(&asked, &choose, &mut ()).unwrap().remove(0);
        set.by_value(&choice.logprobs).iter().map(|logprob| logprob.exp()).collect::<Vec<f64>>()
    };
    let own = score(&[0, 1, 2, 3], true);
    let listed = score(&[0, 1, 2, 3], false);
    assert!(close(&listed, &prompt.probabilities, 1e-6), "without branches it is the prompt of the decision");
    assert!(!close(&own, &listed, 1e-2), "branches are another prompt");
    let mut differs = 0.0f64;
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [0, 3, 1, 2]] {
        assert!(close(&score(&order, true), &own, 1e-3), "{order:?}");
        differs = listed.iter().zip(score(&order, false)).fold(differs, |most, (a, b)| most.max((a - b).abs()));
    }
    assert!(differs > 1e-2, "a list has places: {differs}");
}

#[test]
fn branches_that_are_none_are_refused() {
    let mut session = session();
    let found = session.decide(&json!({"state": "s", "questions": {"q": {"type": "predicate"}}})).unwrap().remove(0);
    let prompt = &found.answers[0].prompts[0];
    let values = Values::Texts(TextValues::new(&*prompt.texts));
    let (tokens, set) = session.sets.place(Prompt::Tokens(prompt.tokens.clone()), &values).unwrap();
    let count = tokens.len();
    for branches in [&[(0, 2)][..], &[(2, 2)], &[(1, 3), (4, 5)], &[(1, 3), (2, 5)], &[(4, count)]] {
        let branches: Vec<_> = branches.iter().map(|&(from, to)| from..to).collect();
        let asked = [Asked { prompt: tokens.clone(), branches: branches.clone(), set: set.clone() }];
        let error = session.context.choose_each(&asked, &ChooseOptions::new(), &mut ()).unwrap_err();
        assert!(error.to_string().contains("are not neighbouring ranges"), "{branches:?}: {error}");
    }
    let (branches, top) = (vec![2..4, 4..5], ChooseOptions::new().with_top(1));
    let asked = [Asked { prompt: tokens, branches, set }];
    let error = session.context.choose_each(&asked, &top, &mut ()).unwrap_err();
    assert!(error.to_string().contains("too large to score each"), "{error}");
}

#[test]
fn priors_divide_out_what_is_said_of_nothing_or_on_average() {
    let mut session = session();
    let questions = json!({"q": {"type": "choice", "options": ["red", "green", "a much longer name"]}});
    let states = ["The sky is red.", "It is green.", "N/A"];
    let mut ask = |prior: &str| session.decide(&json!({"states": states, "questions": questions, "prior": prior}));
    let [plain, divided, batch] = ["none", "content-free", "batch"].map(|prior| ask(prior).unwrap());
    let of = |found: &[Answers], state: usize| found[state].answers[0].probabilities.clone();
    let uniform = vec![1.0 / 3.0; 3];
    assert!(close(&of(&divided, 2), &uniform, 5e-3), "the state without content says nothing");
    let normed = |shares: Vec<f64>| {
        let sum: f64 = shares.iter().sum();
        shares.iter().map(|share| share / sum).collect::<Vec<f64>>()
    };
    for state in 0..2 {
        let nothing = of(&plain, 2);
        let expected = normed(of(&plain, state).iter().zip(&nothing).map(|(share, prior)| share / prior).collect());
        assert!(close(&of(&divided, state), &expected, 1e-2), "{expected:?}");
        let mean = |option: usize| (0..3).map(|state| of(&plain, state)[option]).sum::<f64>() / 3.0;
        let expected = normed((0..3).map(|option| of(&plain, state)[option] / mean(option)).collect());
        assert!(close(&of(&batch, state), &expected, 1e-2), "{expected:?}");
    }
}

#[test]
fn thousands_of_options_have_a_certain_top() {
    let mut session = session();
    let options: Vec<String> = (0..20_000).map(|number| format!("item {number}")).collect();
    let questions = json!({"q": {"type": "choice", "options": options}});
    let mut ask = json!({"state": "s", "questions": questions, "list_options": false, "top": 3});
    let found = session.one(&ask).remove(0);
    let known = found.probabilities.iter().filter(|share| !share.is_nan()).count();
    assert!(known >= 3 && found.probabilities[found.index] > 0.0);
    ask["prior"] = "content-free".into();
    let refused = session.decide(&ask).unwrap_err().to_string();
    assert!(refused.starts_with("the question \"q\": its 20000 options are too many"), "{refused}");
    ask["prior"] = "none".into();
    ask["list_options"] = true.into();
    let refused = session.decide(&ask).unwrap_err().to_string();
    assert!(refused.starts_with("the question \"q\" about state 0: ") && refused.contains("2048"), "{refused}");
}

#[test]
fn below_the_threshold_there_is_no_value_and_a_reason() {
    let mut session = session();
    let questions = json!({"q": {"type": "choice", "options": ["red", "green"]}});
    let found = session.one(&json!({"state": "s", "questions": questions, "threshold": 1})).remove(0);
    assert!(found.value.is_none() && found.reason.unwrap().contains("below the threshold 1"));
    let conversation = json!([{"role": "usr", "content": "Hi"}]);
    let refused = session.decide(&json!({"state": conversation, "questions": questions})).unwrap_err().to_string();
    assert!(refused.starts_with("state 0: message 0: the role \"usr\" is unknown"), "{refused}");
}

#[test]
fn a_calibration_makes_other_probabilities_of_the_same_questions() {
    let mut session = session();
    let questions = json!({"on": {"type": "predicate"}, "size": {"type": "score", "levels": ["small", "large"]}});
    let states: Vec<String> =
        (0..20).map(|number| format!("Lamp {number} is {}.", ["on", "off"][number % 2])).collect();
    let ask = json!({"states": states, "questions": questions, "permute": 2});
    let plain = session.decide(&ask).unwrap();
    let example = |number: usize, question: usize, gold: Value| {
        let answer: &Answer = &plain[number].answers[question];
        json!({"probabilities": answer.probabilities, "gold": gold})
    };
    let on: Vec<Value> = (0..20).map(|number| example(number, 0, ["yes", "no"][number % 2].into())).collect();
    let size: Vec<Value> = (0..20).map(|number| example(number, 1, (number % 2).into())).collect();
    let asked = request(&ask).unwrap();
    let fit = |examples: Value| {
        Calibration::fit(&asked.questions, &asked.options, &tiny(), examples.to_string().as_bytes())
            .map_err(|error| error.to_string())
    };
    let calibration = fit(json!({"on": on, "size": size})).unwrap();
    let document: Value = serde_json::from_str(&calibration.to_json()).unwrap();
    let mut with = ask.clone();
    with["calibration"] = document.clone();
    for (plain, calibrated) in plain.iter().zip(session.decide(&with).unwrap()) {
        for ((plain, calibrated), (_, fitted)) in
            plain.answers.iter().zip(&calibrated.answers).zip(&calibration.questions)
        {
            let weights: Vec<f64> = plain
                .probabilities
                .iter()
                .zip(&fitted.bias)
                .map(|(share, bias)| share.powf(1.0 / fitted.temperature) * bias.exp())
                .collect();
            let sum: f64 = weights.iter().sum();
            let expected: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            assert!(close(&calibrated.probabilities, &expected, 1e-9), "{calibrated:?}, not {expected:?}");
            assert_eq!((calibrated.mass, &calibrated.prompts), (plain.mass, &plain.prompts));
        }
    }
    // It is read as it was written, but for the last digit of a number.
    let read = request(&with).unwrap().calibration.unwrap();
    assert_eq!(read.model, calibration.model);
    for ((of, read), (name, fitted)) in read.questions.iter().zip(&calibration.questions) {
        assert_eq!((of, &read.question, read.examples), (name, &fitted.question, fitted.examples));
        assert!(close(&read.bias, &fitted.bias, 1e-12) && close(&[read.temperature], &[fitted.temperature], 1e-12));
    }

    // What is asked must be the same, and all of it calibrated.
    for (field, value, says) in [
        ("permute", json!(1), None),
        ("instructions", json!("Think."), Some("another question of this name")),
        ("readout", json!("label"), Some("another question of this name")),
        ("prior", json!("content-free"), Some("another question of this name")),
        ("threshold", json!(0.9), None),
        (
            "questions",
            json!({"off": {"type": "predicate"}}),
            Some("$.calibration.questions.off: the calibration does not"),
        ),
    ] {
        let mut other = with.clone();
        other[field] = value.clone();
        match (request(&other), says) {
            (Ok(_), None) if field == "threshold" => {}
            // Of two orders the answer is another one.
            (Err(error), None) if field == "permute" => assert!(error.contains("another question"), "{error}"),
            (Err(error), Some(says)) => assert!(error.contains(says), "{field}: {error}"),
            (outcome, _) => panic!("{field}: {outcome:?}"),
        }
    }
    // So must be the model.
    with["calibration"]["model"] = "another".into();
    let error = session.decide(&with).unwrap_err();
    assert!(matches!(error, DecideError::Calibration(_)) && error.to_string().contains("another model"), "{error}");

    for (examples, says) in [
        (json!({"on": on[..9]}), "the question \"on\": 9 examples are known: a calibration needs at least 10"),
        (json!({"of": on}), "$.of: unknown field"),
        (json!({"on": [{"probabilities": [0.5, 0.5], "gold": "maybe"}]}), "$.on[0].gold: \"maybe\" is not an answer"),
        (json!({"on": [{"probabilities": [0.5, "x"], "gold": "yes"}]}), "$.on[0].probabilities[1]"),
        (json!([]), "$: invalid value: expected an object"),
    ] {
        let error = fit(examples.clone()).unwrap_err();
        assert!(error.contains(says), "{examples}: {error}");
    }
    let missing = Calibration::fit(&asked.questions, &asked.options, Path::new("/nowhere.gguf"), b"{}");
    assert!(matches!(missing, Err(CalibrateError::Model(_))));
}

#[test]
fn a_prompt_goes_up_to_where_content_begins() {
    let model = Model::load(tiny(), ModelOptions::default()).unwrap();
    let turn = "{% for m in messages %}{{ m.role }}: ";
    let rest = "{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: ";
    for (template, ends) in [
        (format!("{turn}{rest}{{% endif %}}"), "assistant: "),
        // A thought is always begun, and content has a marker of its own.
        (format!("{turn}{{% if m.role == 'assistant' %}}<final>{{% endif %}}{rest}<think>{{% endif %}}"), "<final>"),
    ] {
        let template = chat_format::ChatTemplate::new(&template, "", "").unwrap();
        let format = ModelFormat::new(ChatFormat::new(template).unwrap(), Arc::clone(model.vocab()));
        let sets = ValueSets::new(Arc::clone(model.vocab()));
        let ask = request(&json!({"state": "s", "questions": {"q": {"type": "predicate"}}})).unwrap();
        let ready = ReadyDecision::new(ask, &format, &sets, &model).unwrap();
        let tokens = ready.prompts().next().unwrap();
        let text: Vec<u8> = tokens.iter().flat_map(|&token| model.vocab().piece(token).unwrap().to_vec()).collect();
        assert!(String::from_utf8(text.clone()).unwrap().ends_with(ends), "{:?}", String::from_utf8(text));
    }
}

#[test]
fn real_templates_are_asked_where_their_content_begins() {
    let Some(folder) = std::env::var_os("TOKENTRIE_TEMPLATE_DIR").filter(|folder| Path::new(folder).is_dir()) else {
        eprintln!("skipped: TOKENTRIE_TEMPLATE_DIR names no folder");
        return;
    };
    let session = session();
    let vocab = session.format.vocab();
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let template = chat_format::ChatTemplate::new(&text, "", "").unwrap();
        let format = ModelFormat::new(ChatFormat::new(template).unwrap(), Arc::clone(vocab));
        let ask = request(&json!({"state": "s", "questions": {"q": {"type": "predicate"}}})).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ready = match ReadyDecision::new(ask, &format, &session.sets, &session.model) {
            Ok(ready) => ready,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let tokens = ready.prompts().next().unwrap();
        let pieces: Vec<u8> = tokens.iter().flat_map(|&token| vocab.piece(token).unwrap().to_vec()).collect();
        let prompt = String::from_utf8(pieces).unwrap();
        let tail = prompt.rsplit("Answer yes or no.").next().unwrap().to_owned();
        let dialect = &format.format().analysis().dialect;
        let (thought, content) = (dialect.reasoning.start.trim(), dialect.content.start.trim());
        let thinks = !thought.is_empty() && tail.trim_end().ends_with(thought);
        let begins = dialect.content.mode != ContentMode::Wrapped || tail.trim_end().ends_with(content);
        if thinks || !begins {
            wrong.push(format!("{name}: {tail:?} does not end where content begins: {thought:?}, {content:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn many_options_are_read_and_laid_out_within_limits() {
    let options: Vec<String> = (0..100_000).map(|number| format!("option {number}")).collect();
    let text = json!({"state": "s", "questions": {"q": {"type": "choice", "options": options}}}).to_string();
    let within = |steps| Work::new(Limits::NONE.steps(steps));
    for steps in [10_000, 120_000, 220_000] {
        let error = within(steps).run(|| Request::from_json(text.as_bytes())).unwrap_err();
        assert!(error.to_string().contains("it takes more than"), "{error}");
    }
    let request = Request::from_json(text.as_bytes()).unwrap();
    let session = session();
    let made = within(10_000).run(|| ReadyDecision::new(request, &session.format, &session.sets, &session.model));
    assert!(matches!(made, Err(DecideError::Over(LimitExceeded::Steps(10_000)))), "{:?}", made.err());
}
