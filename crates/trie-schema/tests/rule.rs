//! JSON Schemas and Lark grammars beside rules of other kinds.

use crate::common::{Random, id, pieces, vocab};
use proptest::prelude::*;
use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{AnyRule, Broken, ByRule, ByRuleError, MaskLimits, Read, Regex, Spelling, TextsError, TokenBytes};
use trie_schema::{GuidedRule, JsonSchema, Lark, SchemaOptions};

fn rule(schema: &str) -> GuidedRule {
    (&JsonSchema::new(schema, SchemaOptions::default()).unwrap()).into()
}

/// The longest token at each place.
fn longest(tokens: &TokenBytes, text: &str) -> Option<Vec<TokenId>> {
    let (mut rest, mut found) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let begins = |&token: &TokenId| !tokens.bytes(token).is_empty() && rest.starts_with(tokens.bytes(token));
        let best = TokenId::all(tokens.n_vocab()).filter(begins).max_by_key(|&token| tokens.bytes(token).len())?;
        rest = &rest[tokens.bytes(best).len()..];
        found.push(best);
    }
    Some(found)
}

fn spelling(tokens: &Arc<TokenBytes>) -> Spelling {
    let copy = Arc::clone(tokens);
    Spelling::with_tokenizer(Arc::clone(tokens), move |text| longest(&copy, text))
}

#[test]
fn texts_are_read_byte_by_byte() {
    let array = rule(r#"{"type": "array", "items": {"type": "integer"}}"#);
    assert_eq!(array.read(b"[1, 2]"), Read::Whole);
    assert_eq!(array.read(b"[1,"), Read::Begun);
    assert_eq!(array.read(b""), Read::Begun);
    assert_eq!(array.read(b"[1, x]"), Read::Refused { at: 4 });
    assert_eq!(array.read(b"[1]]"), Read::Refused { at: 3 });
    let empty = GuidedRule::from(&Lark::new("start: \"\"").unwrap());
    assert_eq!(empty.read(b""), Read::Whole);
    assert_eq!(empty.read(b"a"), Read::Refused { at: 0 });
}

#[test]
fn long_texts_are_read_to_their_end() {
    let long = rule(r#"{"type": "string", "pattern": "^([a-z]+[ ,.])*$", "maxLength": 200000}"#);
    let text = format!("\"{}\"", "abc d,".repeat(8000));
    assert_eq!(long.read(text.as_bytes()), Read::Whole);
    assert_eq!(long.read(&text.as_bytes()[..text.len() - 1]), Read::Begun);
    let at = text.len() - 1;
    assert_eq!(long.read(format!("{}A\"", &text[..at]).as_bytes()), Read::Refused { at });
}

#[test]
fn what_only_rules_over_bytes_have_is_refused() {
    let yes = rule(r#"{"enum": ["yes"]}"#);
    assert_eq!(yes.texts(10), Err(TextsError::Unlisted { what: "a JSON Schema" }));
    assert_eq!(yes.check(10), Err(Broken::Unasked { what: "a JSON Schema" }));
    let spelled = yes.spelled(vocab().into(), MaskLimits::default()).unwrap();
    assert!(spelled.after(b" ").unwrap().is_none() && spelled.beginnings(100).is_none());
    assert!(yes.placed(b"a", b"b", vocab().into(), MaskLimits::default()).unwrap().is_none());
}

#[test]
fn what_is_walked_already_is_shared() {
    let schema = rule(r#"{"type": "string"}"#);
    let one = schema.spelled(vocab().into(), MaskLimits::default()).unwrap();
    let constraint = one.constraint();
    assert!(one.unused().is_none());
    let mut scratch = Scratch::default();
    constraint.next(&constraint.start(), &mut scratch);
    let other = schema.clone().spelled(vocab().into(), MaskLimits::default()).unwrap();
    assert_eq!(other.stats(), one.stats());
    assert!(one.stats().masks > 0);
    // Not with other limits, and not with a tokenizer.
    let less = schema.spelled(vocab().into(), MaskLimits::bytes(4096)).unwrap();
    assert_ne!(less.stats(), one.stats());
}

#[test]
fn a_vocabulary_that_cannot_begin_names_the_bytes() {
    let poor = Arc::new(TokenBytes::new(1, [(&b"x"[..], id(0))]).unwrap());
    let refused = rule(r#"{"type": "object"}"#).spelled(poor.into(), MaskLimits::default()).unwrap_err();
    assert_eq!(refused, ByRuleError::Unspellable { bytes: b"{".to_vec() });
    let empty = GuidedRule::from(&Lark::new("start: \"\"").unwrap());
    let refused = empty.spelled(vocab().into(), MaskLimits::default()).unwrap_err();
    assert_eq!(refused, ByRuleError::Nothing { empty: true });
}

#[test]
fn a_place_without_way_on_is_a_problem() {
    let tokens = Arc::new(TokenBytes::new(2, [(&b"a"[..], id(0)), (&b"b"[..], id(1))]).unwrap());
    let constraint = Lark::new("start: \"a\" \"c\" | \"b\"").unwrap().over(&tokens).unwrap();
    let mut at = constraint.start();
    constraint.advance(&mut at, id(0)).unwrap();
    assert!(constraint.next(&at, &mut Scratch::default()).tokens.is_empty());
    let problem = constraint.problem(&at).unwrap();
    assert!(problem.to_string().contains("the rule wants 'c'"), "{problem}");
}

proptest! {
    /// As a regular expression that is walked byte by byte.
    #[test]
    fn text_that_must_come_is_that_of_the_regex(
        literal in "[ab]{1,6}",
        rest in prop::sample::select(vec!["", "c", "[ab]", "(a|c)b*", "(aa|bb)", "[^a]"]),
        extra in prop::collection::vec("[abc]{1,4}", 0..6),
    ) {
        let single = (0..=255u8).map(|byte| vec![byte]);
        let pieces: Vec<Vec<u8>> = single.chain(extra.into_iter().map(String::into_bytes)).collect();
        let tokens = pieces.iter().zip(0..).map(|(piece, n)| (piece.as_slice(), id(n)));
        let tokens = Arc::new(TokenBytes::new(pieces.len(), tokens).unwrap());
        let lark = GuidedRule::from(&Lark::new(&format!("start: /{literal}{rest}/")).unwrap());
        let lark = lark.spelled(spelling(&tokens), MaskLimits::default()).unwrap().constraint();
        let regex = ByRule::new(Regex::new(&format!("{literal}{rest}")).unwrap(), spelling(&tokens)).unwrap();
        let (mut scratch, mut random) = (Scratch::default(), Random(7));
        let (mut one, mut other) = (lark.start(), regex.start());
        for _ in 0..8 {
            let legal: Vec<TokenId> = regex.next(&other, &mut scratch).tokens.iter().collect();
            prop_assert_eq!(lark.next(&one, &mut scratch).tokens.iter().collect::<Vec<_>>(), legal.clone());
            // Of many legal tokens it is not asked whether they have one way to go on.
            if legal.len() <= 9 {
                prop_assert_eq!(lark.forced_token(&one, &mut scratch), regex.forced_token(&other, &mut scratch));
            }
            let Some(token) = (!legal.is_empty()).then(|| *random.one(&legal)) else { break };
            lark.advance(&mut one, token).unwrap();
            regex.advance(&mut other, token).unwrap();
        }
    }
}

#[test]
fn forced_text_is_in_the_tokenizers_tokens() {
    let options = |mut options: SchemaOptions| {
        options.whitespace = trie_schema::Whitespace::None;
        options
    };
    let schema = r#"{"type": "object", "properties": {"name": {"enum": ["red", "green"]}}, "required": ["name"],
        "additionalProperties": false}"#;
    let schema = JsonSchema::new(schema, options(SchemaOptions::default())).unwrap();
    let constraint = GuidedRule::from(&schema).spelled(spelling(&vocab()), MaskLimits::default()).unwrap().constraint();
    let (mut at, mut scratch, mut written) = (constraint.start(), Scratch::default(), Vec::new());
    while let Some(token) = constraint.forced_token(&at, &mut scratch) {
        constraint.advance(&mut at, token).unwrap();
        written.push(String::from_utf8(pieces()[token.index()].clone()).unwrap());
    }
    // The quote may begin a token that goes on into the value.
    assert_eq!(written, ["{\"", "name"]);
    assert_eq!(constraint.ending(&at), Ending::No);
}
