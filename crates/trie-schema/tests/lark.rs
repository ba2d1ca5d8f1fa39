//! Lark grammars.

use crate::common::{allows, vocab};
use trie_core::{Allowed, AnyConstraint, Constraint, Ending, Scratch, Sequence, Span, SpanRules, Trie};
use trie_schema::{Guided, GuidedError, Lark, LarkError};

fn guided(text: &str) -> Guided {
    Lark::new(text).unwrap().over(&vocab()).unwrap()
}

#[test]
fn arithmetic() {
    let constraint = guided(
        "start: sum\nsum: product | sum \"+\" product\nproduct: atom | product \"*\" atom\n\
         atom: NUMBER | \"(\" sum \")\"\nNUMBER: /[0-9]+/\n%ignore / +/",
    );
    for text in ["1", "1+2*3", "(1 + 2) * 3", "((7))"] {
        assert!(allows(&constraint, text), "{text}");
    }
    for text in ["", "1+", "(1", "1)", "1 2", "+1"] {
        assert!(!allows(&constraint, text), "{text}");
    }
}

#[test]
fn json_inside_a_grammar() {
    let constraint =
        guided("start: \"call(\" args \")\"\nargs: %json {\"type\": \"array\", \"items\": {\"type\": \"integer\"}}");
    assert!(allows(&constraint, "call([1, 2])") && !allows(&constraint, "call([true])"));
}

#[test]
fn errors_have_line_and_column() {
    let error = |text| Lark::new(text).unwrap_err();
    let LarkError::Syntax { line, column, reason } = error("start: \"a\"\nb: ( \"x\"\nc: \"y\"") else {
        panic!("syntax")
    };
    assert!(line >= 2 && column >= 1 && !reason.is_empty(), "{line} {column} {reason}");
    let syntax = error("start: \"a\" ?? %");
    assert!(matches!(syntax, LarkError::Syntax { line: 1, .. }), "{syntax:?}");
    assert!(matches!(error("begin: \"a\""), LarkError::Invalid { reason } if reason.contains("start")));
    assert!(error("start: nobody").to_string().contains("nobody"));
    assert!(error("start: /(/").to_string().contains('('));
    assert!(matches!(error("start: \"a\" start"), LarkError::Endless { .. }));
    for text in ["start: <|tool|>", "start: <[7]>", "start: x\nx[max_tokens=3]: /.*/", "start: x\nx[stop=\"a\"]: /.*/"]
    {
        assert!(matches!(error(text), LarkError::Unsupported { .. }), "{text}: {:?}", error(text));
    }
    assert!(matches!(
        error(&format!("start: {}\"a\"{}", "(".repeat(50_000), ")".repeat(50_000))),
        LarkError::TooLarge { .. }
    ));
}

#[test]
fn a_vocabulary_that_cannot_begin_is_named() {
    let tokens = trie_rules::TokenBytes::new(1, [(&b"x"[..], crate::common::id(0))]).unwrap();
    let made = Lark::new("start: \"a\"").unwrap().over(&std::sync::Arc::new(tokens));
    assert_eq!(made.unwrap_err(), GuidedError::Unspellable { bytes: vec![b'a'] });
    let empty = Lark::new("start: \"\"").unwrap().over(&vocab());
    assert_eq!(empty.unwrap_err(), GuidedError::Nothing);
}

#[test]
fn a_limit_that_is_reached_is_said_and_allows_nothing() {
    let rules = |of: fn(usize) -> String| (0..3000).map(of).collect::<Vec<_>>().join("\n");
    let all = (0..3000).map(|n| format!("r{n}")).collect::<Vec<_>>().join(" | ");
    let constraint =
        guided(&format!("start: \"a\" \"b\" | \"x\" ({all})\n{}", rules(|n| format!("r{n}: \"a\" \"{n}\""))));
    let byte = |byte: u8| crate::common::id(usize::from(byte));
    let mut at = constraint.start();
    // After it, each token that begins with "a" means three thousand rules.
    constraint.advance(&mut at, byte(b'x')).expect("it may come");
    assert_eq!(constraint.problem(&at), None, "nobody asked");
    assert_eq!(crate::common::legal(&constraint, &at), (Vec::new(), Ending::No), "never all tokens");
    let problem = constraint.problem(&at).expect("it is said");
    assert!(problem.to_string().contains("2000"), "{problem}");
    assert!(constraint.advance(&mut at.clone(), byte(b'a')).is_none());
    // Elsewhere it goes on as before.
    let mut other = constraint.start();
    constraint.advance(&mut other, byte(b'a')).expect("it may come");
    assert_eq!(crate::common::legal(&constraint, &other).0, [byte(b'b')]);
    // And a span says it, also where the grammar is a part of something.
    let alone = AnyConstraint::new(constraint);
    let mut before = Trie::builder();
    before.push(Some("first"), &[byte(b'0')]);
    let parts = Sequence::new([before.build().unwrap().into(), alone.clone()]).unwrap();
    for (constraint, begin) in [(alone, &b"x"[..]), (AnyConstraint::new(parts), b"0x")] {
        let mut span = Span::new(SpanRules::of(constraint, vocab().n_vocab()).unwrap().into());
        span.accept_all(&begin.iter().map(|&text| byte(text)).collect::<Vec<_>>()).unwrap();
        assert_eq!(span.allowed(&mut Scratch::default()), Allowed::Nothing);
        assert_eq!(span.problem(), Some(problem.clone()));
    }
}
