//! The JSON form of specs against the vectors that all hosts share, and what specs become over a vocabulary.

use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use tokentrie::constraint::{Built, DataOnly, Host, MomentSpec, Object, Over, Spec, SpecCache, SpecProblem};
use trie_core::{AnyConstraint, Constraint, Problem, Scratch, TokenId, Trie};
use trie_text::{TokenKind, Tokenizer, TokenizerError, Vocab};

const VECTORS: &str = include_str!("../../../tests/vectors/specs.json");

/// One token a byte.
#[derive(Debug)]
struct Bytes;

impl Tokenizer for Bytes {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
        Ok(text.bytes().map(|byte| TokenId::new(byte.into()).unwrap()).collect())
    }
}

fn vocab() -> Arc<Vocab> {
    let pieces = (0..=255_u8).map(|byte| ([byte], TokenKind::Text));
    let mut pieces: Vec<(Vec<u8>, TokenKind)> = pieces.map(|(byte, kind)| (byte.to_vec(), kind)).collect();
    pieces.push((b"</s>".to_vec(), TokenKind::Control));
    let ends = vec![TokenId::new(256).unwrap()];
    Arc::new(Vocab::new(pieces, ends, Some(Arc::new(Bytes))).unwrap())
}

fn vectors(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    all[name].as_array().unwrap().clone()
}

fn read(value: &Value) -> Spec {
    let text = value.to_string();
    Spec::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether a whole text is legal, walked byte by byte.
fn takes(constraint: &AnyConstraint, text: &str) -> bool {
    let mut at = constraint.start();
    let mut scratch = Scratch::default();
    for byte in text.bytes() {
        if constraint.advance(&mut at, TokenId::new(byte.into()).unwrap()).is_none() {
            return false;
        }
    }
    constraint.next(&at, &mut scratch).ending != trie_core::Ending::No
}

/// Places inside a spec with the changed specs that are wrong there: a field that nobody knows in each object, and a
/// value of no type that fits in the place of each value. What is not read, such as schemas, stays as it is.
fn spoiled(value: &Value, place: &str, whole: &dyn Fn(Value) -> Value, found: &mut Vec<(String, Value)>) {
    const NOT_READ: [&str; 4] = ["json_schema", "payload", "tools", "response_template"];
    match value {
        Value::Object(fields) => {
            let mut wrong = fields.clone();
            wrong.insert("zzz".to_owned(), Value::from(1));
            found.push((format!("{place}.zzz"), whole(wrong.into())));
            for (name, inside) in fields.iter().filter(|(name, _)| !NOT_READ.contains(&name.as_str())) {
                let put = |inside: Value| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), inside);
                    whole(fields.into())
                };
                spoiled(inside, &format!("{place}.{name}"), &put, found);
            }
        }
        Value::Array(items) => {
            for (index, inside) in items.iter().enumerate() {
                let put = |inside: Value| {
                    let mut items = items.clone();
                    items[index] = inside;
                    whole(items.into())
                };
                spoiled(inside, &format!("{place}[{index}]"), &put, found);
            }
        }
        _ => found.push((place.to_owned(), whole(serde_json::json!([{}, {}])))),
    }
}

#[test]
fn whatever_is_wrong_is_named_where_it_stands() {
    let mut found = Vec::new();
    for case in vectors("valid") {
        let spec = &case["spec"];
        // A schema without the name of a kind has fields of its own.
        if spec.get("json_schema").is_some()
            || Spec::from_json(spec.to_string().as_bytes()).unwrap().kind() != "json_schema"
        {
            spoiled(spec, "$", &|wrong| wrong, &mut found);
        }
    }
    assert!(found.len() > 200, "{}", found.len());
    for (place, wrong) in found {
        let text = wrong.to_string();
        let Err(error) = Spec::from_json(text.as_bytes()) else { panic!("{place}: {text} is read") };
        // Of an array in the place of a text the first item is what is no text.
        let at = error.place();
        assert!(at == place || at == format!("{place}[0]"), "{text}: {error}, not at {place}");
    }
}

#[test]
fn what_is_read_is_written_the_same() {
    let mut seen = HashSet::new();
    for case in vectors("valid") {
        let spec = read(&case["spec"]);
        let canonical = case.get("canonical").unwrap_or(&case["spec"]);
        assert_eq!(spec.to_json().unwrap(), canonical.to_string());
        let again = read(canonical);
        assert_eq!(again, spec);
        seen.insert(spec.kind().to_owned());
    }
    assert_eq!(seen.len(), 24, "every kind: {seen:?}");
}

#[test]
#[expect(clippy::mutable_key_type, reason = "what vocabularies and sets keep does not change what they compare as")]
fn equal_specs_are_one_key_and_others_differ() {
    let specs: Vec<Spec> = vectors("valid").iter().map(|case| read(&case["spec"])).collect();
    let texts: HashSet<String> = specs.iter().map(|spec| spec.to_json().unwrap()).collect();
    let all: HashSet<Spec> = specs.into_iter().collect();
    assert_eq!(all.len(), texts.len());
}

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    for case in vectors("invalid") {
        let text = case["text"].as_str().unwrap();
        let error = Spec::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.place(), case["place"].as_str().unwrap(), "{text}: {error}");
        assert!(error.to_string().contains(case["says"].as_str().unwrap()), "{text}: {error}");
    }
}

#[test]
fn what_cannot_be_used_is_named_with_its_place() {
    let vocab = vocab();
    for case in vectors("unusable") {
        let spec = read(&case["spec"]);
        let error = spec.build(&Over::vocab(&vocab), &DataOnly).unwrap_err();
        assert_eq!(error.place(), case["place"].as_str().unwrap(), "{spec:?}: {error}");
        assert!(error.to_string().contains(case["says"].as_str().unwrap()), "{spec:?}: {error}");
    }
}

#[test]
fn texts_are_legal_as_the_vectors_say() {
    let vocab = vocab();
    for case in vectors("valid") {
        let Some(legal) = case["legal"].as_array() else { continue };
        let spans = read(&case["spec"]).constraint(&Over::vocab(&vocab), &DataOnly).unwrap();
        for text in legal {
            assert!(takes(&spans[0].1, text.as_str().unwrap()), "{} should take {text}", case["spec"]);
        }
        for text in case["illegal"].as_array().unwrap() {
            assert!(!takes(&spans[0].1, text.as_str().unwrap()), "{} should refuse {text}", case["spec"]);
        }
    }
}

#[test]
fn a_bare_size_is_enough_only_for_tokens() {
    let over = Over::size(256);
    for case in vectors("valid") {
        let spec = read(&case["spec"]);
        let built = spec.constraint(&over, &DataOnly);
        match spec.kind() {
            "any" | "payload" => assert!(built.is_ok(), "{spec:?}"),
            "choice" | "regex" | "grammar" | "lark" | "gbnf" | "wasm" | "json_schema" | "date" => {
                let error = built.unwrap_err();
                assert!(matches!(error.problem(), SpecProblem::NeedsVocab { n_vocab: 256, .. }), "{error}");
            }
            _ => {}
        }
    }
}

struct Names(Vec<(&'static str, &'static str)>);

impl Host for Names {
    fn named_spec(&self, name: &str) -> Result<Option<Spec>, Problem> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, spec)| Spec::from_json(spec.as_bytes()).map_err(Problem::new)).transpose()
    }

    fn set(&self, name: &str) -> Result<Option<Trie>, Problem> {
        if name != "letters" {
            return Ok(None);
        }
        let mut builder = Trie::builder();
        builder.push(Some("x"), &[TokenId::new(120).unwrap()]);
        Ok(Some(builder.build().map_err(Problem::new)?))
    }
}

#[test]
fn names_stand_wherever_a_spec_does() {
    let names = Names(vec![
        ("digit", r#"{"regex": "[0-9]"}"#),
        ("pair", r#"{"then": [{"name": "digit"}, {"name": "digit"}]}"#),
        ("round", r#"{"name": "about"}"#),
        ("about", r#"{"name": "round"}"#),
        ("circle", r#"{"one_of": ["x", {"name": "circle"}]}"#),
        ("broken", r#"{"regex": "("}"#),
    ]);
    let vocab = vocab();
    let over = Over::vocab(&vocab);
    let spans = read(&serde_json::json!({"name": "pair"})).constraint(&over, &names).unwrap();
    assert!(takes(&spans[0].1, "42") && !takes(&spans[0].1, "4"));
    for (name, place) in [("round", "$.name"), ("broken", "$.regex")] {
        let error = Spec::Name(name.into()).build(&over, &names).unwrap_err();
        assert_eq!(error.place(), place, "{error}");
    }
    let error = Spec::Name("circle".into()).build(&over, &names).unwrap_err();
    assert!(matches!(error.problem(), SpecProblem::TooDeep { .. }), "{error}");
    let spans = Spec::Set("letters".into()).constraint(&over, &names).unwrap();
    assert!(takes(&spans[0].1, "x") && !takes(&spans[0].1, "y"));
}

#[test]
fn a_resolved_spec_needs_no_host() {
    let names = Names(vec![("digit", r#"{"regex": "[0-9]"}"#)]);
    let form = r#"{"form": [{"slot": "a", "value": {"name": "digit"}}, {"text": "t", "stop": ".", "pattern":
        {"then": ["n", {"name": "digit"}]}}, {"slot": "s", "value": {"set": "letters"}}]}"#;
    let form = Spec::from_json(form.as_bytes()).unwrap();
    let vocab = vocab();
    let error = form.build(&Over::vocab(&vocab), &DataOnly).unwrap_err();
    assert_eq!(error.place(), "$.form[0].value.name");
    let resolved = form.resolve(&names).unwrap();
    assert!(matches!(resolved.build(&Over::vocab(&vocab), &DataOnly), Ok(Built::Form(_))));
    assert_eq!(resolved.to_json().unwrap_err().place(), "$.form[2].value");
    let think = r#"{"think": {"end": [1], "then": {"sequence": [{"any": {}}, {"name": "letter"}]}}}"#;
    let error = Spec::from_json(think.as_bytes()).unwrap().resolve(&names).unwrap_err();
    assert_eq!(error.place(), "$.think.then.sequence[1].name");
}

#[test]
fn a_text_says_what_it_stands_for() {
    use trie_rules::Value;
    let value = |spec: &str, text: &str| Spec::from_json(spec.as_bytes()).unwrap().value(text, &DataOnly).unwrap();
    assert_eq!(value(r#"{"integer": {}}"#, "12"), Some(Value::Integer(12)));
    assert_eq!(value(r#"{"integer": {}}"#, "x"), None);
    assert_eq!(value(r#"{"choice": ["x"]}"#, "x"), None);
    assert_eq!(value(r#"{"date": {}}"#, "2024-02-29"), Some(Value::Date { year: 2024, month: 2, day: 29 }));
}

#[test]
fn a_deep_spec_is_an_error_and_no_overflow() {
    let deep = |n: usize| format!("{}{}{}", r#"{"one_of": ["#.repeat(n), r#""a""#, "]}".repeat(n));
    assert!(Spec::from_json(deep(30).as_bytes()).is_ok());
    let error = Spec::from_json(deep(40).as_bytes()).unwrap_err();
    assert!(matches!(error.problem(), SpecProblem::TooDeep { .. }), "{error}");
    let mut spec = Spec::from(MomentSpec::unbounded(trie_rules::Moment::Date));
    for _ in 0..100 {
        spec = Spec::OneOf(vec![tokentrie::constraint::Piece::Spec(spec)]);
    }
    let vocab = vocab();
    assert!(spec.build(&Over::vocab(&vocab), &DataOnly).is_err());
    assert!(spec.to_json().is_err());
}

#[test]
fn one_spec_over_one_vocabulary_is_built_once() {
    let (cache, vocab, other) = (SpecCache::default(), self::vocab(), self::vocab());
    let spec = || read(&serde_json::json!({"regex": "[a-z]+"}));
    let built = |vocab: &Arc<Vocab>| match cache.build(&spec(), &Over::vocab(vocab), &DataOnly).unwrap() {
        Built::Rule(rule) => rule,
        other => panic!("{other:?}"),
    };
    let first = built(&vocab);
    assert!(Arc::ptr_eq(&first, &built(&vocab)));
    assert!(!Arc::ptr_eq(&first, &built(&other)));
    cache.clear();
    assert!(!Arc::ptr_eq(&first, &built(&vocab)));
}

#[test]
fn objects_are_no_data() {
    let mut builder = Trie::builder();
    builder.push(Some("x"), &[TokenId::new(120).unwrap()]);
    let set = builder.build().unwrap();
    let spec = Spec::Sequence(vec![Spec::Any, Spec::Object(Object::Set(set.clone()))]);
    let error = spec.to_json().unwrap_err();
    assert_eq!(
        error.to_string(),
        "$.sequence[1]: a ready-made set is an object of this program and cannot be written as JSON"
    );
    assert_eq!(Spec::Object(Object::Set(set.clone())), Spec::Object(Object::Set(set)));
}

#[test]
fn finite_rules_are_listed() {
    let listed = |text: &str| Spec::from_json(text.as_bytes()).unwrap().texts(&DataOnly, 100);
    assert_eq!(listed(r#"{"integer": {"min": 8, "max": 11}}"#).unwrap().unwrap().len(), 4);
    assert_eq!(listed(r#"{"choice": ["b", "a"]}"#).unwrap().unwrap(), ["b", "a"]);
    assert!(listed(r#"{"any": {}}"#).unwrap().is_none());
    assert!(listed(r#"{"integer": {}}"#).is_err());
}

#[test]
fn constraints_with_few_values_are_listed() {
    let (vocab, host) = (vocab(), DataOnly);
    let names = |spec: &str| -> Result<Vec<String>, String> {
        let set = read(&serde_json::from_str(spec).unwrap()).values(&Over::vocab(&vocab), &host);
        let set = set.map_err(|error| error.to_string())?;
        let mut names: Vec<String> = set.leaves().map(|leaf| leaf.name.unwrap()).collect();
        assert!(set.leaves().all(|leaf| vocab.join(&leaf.tokens).unwrap() == leaf.name.unwrap().as_bytes()));
        names.sort_unstable();
        Ok(names)
    };
    assert_eq!(names(r#"{"choice": ["no", "yes"]}"#).unwrap(), ["no", "yes"]);
    assert_eq!(names(r#"{"then": [{"integer": {"min": 8, "max": 10}}, " kg"]}"#).unwrap(), ["10 kg", "8 kg", "9 kg"]);
    let form = r#"{"form": ["<", {"slot": "a", "value": {"regex": "x|yy?"}}, ":", {"slot": "b", "value":
        {"choice": ["1", "2"]}}, ">"]}"#;
    assert_eq!(names(form).unwrap(), ["<x:1>", "<x:2>", "<y:1>", "<y:2>", "<yy:1>", "<yy:2>"]);
    assert_eq!(names(r#"{"sequence": [{"choice": ["a"]}, {"choice": ["b", "c"]}]}"#).unwrap(), ["ab", "ac"]);
    for endless in [r#"{"regex": "a+"}"#, r#"{"any": {}}"#, r#"{"form": [{"text": "t", "stop": "."}]}"#] {
        assert!(names(endless).is_err(), "{endless}");
    }
}
