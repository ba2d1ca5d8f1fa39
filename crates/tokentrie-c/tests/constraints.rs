//! Constraints from specs, by the vectors that all hosts share: tests/vectors/specs.json.

use crate::common::{input, one, output, put, said, text};
use bytemuck::Zeroable;
use serde_json::Value;
use std::ffi::c_char;
use tokentrie_c::abi::*;
use tokentrie_c::status::*;
use tokentrie_c::{In, Out};

const VECTORS: &str = include_str!("../../../tests/vectors/specs.json");
const END: i32 = 256;

fn vectors(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    all[name].as_array().unwrap().clone()
}

/// One token a byte, and one that ends the output.
fn vocab() -> tokentrie_vocab {
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.extend(b"</s>");
    let ends: Vec<u64> = (1..=256).chain([260]).collect();
    let kinds: Vec<u8> = [TOKENTRIE_TOKEN_NORMAL; 256].into_iter().chain([TOKENTRIE_TOKEN_END_OF_GENERATION]).collect();
    let mut vocab = 0;
    let status =
        tokentrie_vocab_from_pieces(input(&bytes), bytes.len(), input(&ends), input(&kinds), 257, put(&mut vocab));
    assert_eq!(status, TOKENTRIE_OK, "{}", said());
    vocab
}

fn constraint(spec: &str, vocab: tokentrie_vocab) -> Result<tokentrie_constraint, (tokentrie_status, String)> {
    let mut made = 0;
    match tokentrie_constraint_from_json(text(spec), spec.len(), vocab, put(&mut made)) {
        TOKENTRIE_OK => Ok(made),
        status => Err((status, said())),
    }
}

type Says = extern "C" fn(tokentrie_constraint, Out<c_char>, usize, Out<usize>) -> tokentrie_status;

fn text_of(says: Says, constraint: tokentrie_constraint) -> String {
    let (mut bytes, mut count) = (vec![0_u8; 1 << 16], 0);
    // SAFETY: the buffer is as long as is said, and lives during the call.
    let out = unsafe { Out::new(bytes.as_mut_ptr().cast()) };
    assert_eq!(says(constraint, out, bytes.len(), put(&mut count)), TOKENTRIE_OK, "{}", said());
    bytes.truncate(count);
    String::from_utf8(bytes).unwrap()
}

fn json(constraint: tokentrie_constraint) -> String {
    text_of(tokentrie_constraint_json, constraint)
}

#[test]
fn what_a_user_should_hear_is_kept() {
    let vocab = vocab();
    let payload = r#"{"payload": {"descriptors": [{"path": "a", "leaves": [
        {"name": "near", "tokens": [97]}, {"name": "far", "tokens": [97, 900]}]}]}}"#;
    for (spec, hears) in [
        (r#"{"regex": "[0-9]"}"#, None),
        (r#"{"grammar": "a : \"x\" ; unused : \"x\" ;", "lenient": true}"#, Some("grammar, ")),
        (payload, Some("payload: dropped 1 leaf with ids outside the vocabulary of 257 tokens")),
    ] {
        let made = constraint(spec, vocab).unwrap();
        let warnings: Vec<String> = serde_json::from_str(&text_of(tokentrie_constraint_warnings, made)).unwrap();
        assert_eq!(warnings.len(), usize::from(hears.is_some()), "{spec}: {warnings:?}");
        assert!(warnings.iter().all(|warning| warning.starts_with(hears.unwrap())), "{spec}: {warnings:?}");
        assert_eq!(tokentrie_constraint_free(made), TOKENTRIE_OK);
    }
    assert_eq!(tokentrie_vocab_free(vocab), TOKENTRIE_OK);
}

fn sampler(constraint: tokentrie_constraint, vocab: tokentrie_vocab) -> tokentrie_sampler {
    let options = tokentrie_sampler_options {
        size: size_of::<tokentrie_sampler_options>() as u32,
        after: TOKENTRIE_AFTER_STOP,
        ..Zeroable::zeroed()
    };
    let mut made = 0;
    assert_eq!(
        tokentrie_sampler_new(constraint, vocab, one(&options), input(&[END]), 1, put(&mut made)),
        TOKENTRIE_OK,
        "{}",
        said()
    );
    made
}

#[test]
fn what_was_filled_so_far_has_names() {
    let vocab = vocab();
    let slot = r#"{"slot": "a", "value": {"choice": ["x", "y"]}}, "-", {"slot": "b", "value": {"regex": "[0-9]+"}}"#;
    let form = constraint(&format!(r#"{{"form": ["<", {slot}, ">"]}}"#), vocab).unwrap();
    let sampler = sampler(form, vocab);
    let (mut text, mut count) = ([0; 64], 0);
    let mut values = |taken: &str| {
        let ids: Vec<i32> = taken.bytes().map(i32::from).collect();
        assert_eq!(tokentrie_sampler_accept(sampler, input(&ids), ids.len()), TOKENTRIE_OK, "{}", said());
        let status = tokentrie_sampler_values(sampler, output(&mut text), 64, put(&mut count));
        (status, text[..count].iter().map(|&char| char as u8 as char).collect::<String>())
    };
    assert_eq!(values(""), (TOKENTRIE_NONE, String::new()));
    assert_eq!(values("<"), (TOKENTRIE_NONE, String::new()));
    assert_eq!(values("y-1"), (TOKENTRIE_OK, r#"{"a":"y"}"#.to_owned()));
    assert_eq!(values("2>"), (TOKENTRIE_OK, r#"{"a":"y","b":"12"}"#.to_owned()));
    assert_eq!(tokentrie_sampler_values(sampler, output(&mut text), 3, put(&mut count)), TOKENTRIE_ERROR_BUFFER);
    assert_eq!(tokentrie_sampler_values(0, output(&mut text), 64, put(&mut count)), TOKENTRIE_ERROR_HANDLE);
}

/// Whether the whole text is legal: each byte, and the token that closes it.
fn takes(constraint: tokentrie_constraint, vocab: tokentrie_vocab, text: &str) -> bool {
    let sampler = sampler(constraint, vocab);
    let ids: Vec<i32> = text.bytes().map(i32::from).chain([END]).collect();
    let status = tokentrie_sampler_accept(sampler, input(&ids), ids.len());
    assert!(status == TOKENTRIE_OK || status == TOKENTRIE_ERROR_NOT_ALLOWED, "{text}: {status}: {}", said());
    assert_eq!(tokentrie_sampler_free(sampler), TOKENTRIE_OK);
    status == TOKENTRIE_OK
}

#[test]
fn texts_are_legal_as_the_vectors_say() {
    let vocab = vocab();
    let (mut walked, mut without_tokenizer) = (0, 0);
    for case in vectors("valid") {
        let Some(legal) = case["legal"].as_array() else { continue };
        let spec = case["spec"].to_string();
        let constraint = match constraint(&spec, vocab) {
            Ok(made) => made,
            Err((status, said)) => {
                assert_eq!((status, said.contains("cannot tokenize")), (TOKENTRIE_ERROR_SPEC, true), "{spec}: {said}");
                without_tokenizer += 1;
                continue;
            }
        };
        for text in legal {
            assert!(takes(constraint, vocab, text.as_str().unwrap()), "{spec} should take {text}");
        }
        for text in case["illegal"].as_array().unwrap() {
            assert!(!takes(constraint, vocab, text.as_str().unwrap()), "{spec} should refuse {text}");
        }
        walked += 1;
        assert_eq!(tokentrie_constraint_free(constraint), TOKENTRIE_OK);
        assert_eq!(tokentrie_constraint_free(constraint), TOKENTRIE_ERROR_HANDLE);
    }
    assert!(walked > 12 && without_tokenizer < 4, "{walked} {without_tokenizer}");
}

#[test]
fn what_is_read_is_written_in_its_canonical_form() {
    let vocab = vocab();
    for case in vectors("valid") {
        let Ok(constraint) = constraint(&case["spec"].to_string(), vocab) else { continue };
        assert_eq!(json(constraint), case.get("canonical").unwrap_or(&case["spec"]).to_string());
    }
}

#[test]
fn what_cannot_be_read_or_used_is_named_with_its_place() {
    let vocab = vocab();
    for case in vectors("invalid") {
        let (status, said) = constraint(case["text"].as_str().unwrap(), vocab).unwrap_err();
        assert_eq!(status, TOKENTRIE_ERROR_SPEC, "{said}");
        for part in ["place", "says"] {
            assert!(said.contains(case[part].as_str().unwrap()), "{case}: {said}");
        }
    }
    for case in vectors("unusable") {
        let (_, said) = constraint(&case["spec"].to_string(), vocab).unwrap_err();
        assert!(said.contains(case["place"].as_str().unwrap()), "{case}: {said}");
    }
}

#[test]
fn a_constraint_belongs_to_the_vocabulary_that_it_was_made_for() {
    let (bytes, mut size) = (vocab(), 0);
    assert_eq!(tokentrie_vocab_new(100, In::null(), 0, put(&mut size)), TOKENTRIE_OK);
    let made = constraint(r#"{"regex": "[0-9]"}"#, bytes).unwrap();
    let mut other = 0;
    assert_eq!(tokentrie_sampler_new(made, size, In::null(), In::null(), 0, put(&mut other)), TOKENTRIE_ERROR_VOCAB);
    assert!(said().contains("257 tokens, and this one has 100"), "{}", said());
    let (status, said) = constraint(r#"{"regex": "[0-9]"}"#, size).unwrap_err();
    assert!(status == TOKENTRIE_ERROR_VOCAB && said.contains("the bytes of each token"), "{said}");
    // What is followed goes on when the handle is gone.
    let sampler = sampler(made, bytes);
    assert_eq!(tokentrie_constraint_free(made), TOKENTRIE_OK);
    let (mut ids, mut count, mut what) = ([0; 16], 0, -1);
    assert_eq!(tokentrie_sampler_allowed(sampler, output(&mut ids), 16, put(&mut count), put(&mut what)), TOKENTRIE_OK);
    assert_eq!((count, ids[0], ids[9]), (10, 48, 57));
}
