//! The wire form: what is refused, where the error points, and what is only reported.

use crate::common::ids;
use std::fmt::Write;
use std::sync::Arc;
use test_budget::computed;
use trie_core::{Span, SpanRules};
use trie_formats::{Payload, PayloadError};

fn read(text: &str) -> Result<Payload, PayloadError> {
    Payload::from_json(text.as_bytes(), None)
}

fn malformed(text: &str) -> (usize, usize, String, String) {
    match read(text).unwrap_err() {
        PayloadError::Malformed { line, column, field, reason } => (line, column, field, reason),
        other => panic!("another error: {other}"),
    }
}

#[test]
fn errors_say_line_column_field_and_value() {
    let text = concat!(
        "{\"modelId\": \"m\",\n \"descriptors\": [{\"path\": \"a\", ",
        "\"leaves\": [\n  {\"name\": \"x\", \"tokens\": [1, -7]}]}]}"
    );
    let (line, column, field, reason) = malformed(text);
    assert_eq!((line, field.as_str()), (3, "descriptors[0].leaves[0].tokens[1]"));
    assert!((29..=32).contains(&column), "{column}");
    assert!(reason.contains("-7") && reason.contains("from 0 to 2147483647"), "{reason}");
    let whole = read(text).unwrap_err().to_string();
    assert!(whole.starts_with("payload, line 3, column ") && !whole.contains(" at line "), "{whole}");
}

#[test]
fn refuses_what_is_not_of_the_form() {
    let leaf =
        |tokens: &str| format!(r#"{{"descriptors":[{{"path":"a","leaves":[{{"name":"x","tokens":{tokens}}}]}}]}}"#);
    for (text, word) in [
        (String::new(), "EOF"),
        ("{".into(), "EOF"),
        ("[]".into(), "descriptors"),
        ("{}".into(), "descriptors"),
        ("null".into(), "object"),
        (leaf("5"), "sequence"),
        (leaf("[1.5]"), "1.5"),
        (leaf("[NaN]"), "expected value"),
        (leaf("[2147483648]"), "2147483648"),
        (leaf("[99999999999999999999]"), "99999999999999999999"),
        (leaf("[\"1\"]"), "\"1\""),
        (leaf("[true]"), "true"),
        (leaf("[1]") + "x", "trailing"),
        (r#"{"descriptors":[{"leaves":[]}]}"#.into(), "path"),
        (r#"{"descriptors":[{"path":"a","leaves":[{"tokens":[1]}]}]}"#.into(), "name"),
        (r#"{"descriptors":[{"path":"a","leaves":[{"name":"x"}]}]}"#.into(), "tokens"),
        (r#"{"descriptors":[{"path":"a","leaves":[{"name":"\ud800","tokens":[1]}]}]}"#.into(), "escape"),
        (r#"{"descriptors":[],"descriptors":[]}"#.into(), "duplicate"),
        (r#"{"modelId":3,"descriptors":[]}"#.into(), "3"),
    ] {
        let (.., reason) = malformed(&text);
        let seen = reason.replace("1e+20", "99999999999999999999").replace("1e20", "99999999999999999999");
        assert!(seen.contains(word), "{text}: {reason}");
    }
    assert!(Payload::from_json(b"{\"descriptors\": \"\xff\"}", None).is_err());
}

#[test]
fn semantic_errors_have_their_own_names() {
    let none = read(r#"{"modelId":"m","descriptors":[{"path":"a","leaves":[{"name":"x","tokens":[]}]}]}"#).unwrap_err();
    assert_eq!(none, PayloadError::NoUsableLeaf { descriptors: 1, empty: 1, outside: 0 });
    let twice = read(r#"{"descriptors":[{"path":"a","leaves":[]},{"path":"a","leaves":[]}]}"#).unwrap_err();
    assert_eq!(twice, PayloadError::DuplicatePath { path: "a".into() });
}

#[test]
fn what_is_left_out_is_reported() {
    let text = r#"{"note":[1,{"deep":[[]]}],"descriptors":[{"path":"none","leaves":[]},{"path":"a","more":1,"leaves":[
        {"name":"BAD","tokens":[3,999]},{"name":"EMPTY","tokens":[]},{"name":"OK","tokens":[2],"x":{}}]}]}"#;
    let payload = Payload::from_json(text.as_bytes(), Some(100)).unwrap();
    assert_eq!(payload.model_id, "");
    assert_eq!(payload.report.empty_leaves, 1);
    assert_eq!(payload.report.out_of_vocabulary, 1);
    assert_eq!(payload.report.dropped[0].name, "BAD");
    assert_eq!(payload.report.dropped[0].token.get(), 999);
    assert_eq!(payload.report.empty_paths, ["none"]);
    assert_eq!(payload.constraints.len(), 1);
    assert!(payload.tries().next().unwrap().1.find(&ids(&[2])).is_some());
}

#[test]
fn unknown_fields_may_be_deeper_than_any_stack() {
    let depth = 2_000_000;
    let text = format!(
        r#"{{"junk":{}{},"descriptors":[{{"path":"a","leaves":[{{"name":"x","tokens":[1]}}]}}]}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    assert_eq!(read(&text).unwrap().constraints.len(), 1);
    let broken = format!(r#"{{"junk":{}"#, "[".repeat(depth));
    assert!(read(&broken).is_err());
}

#[test]
fn sixty_four_mebibytes_are_no_trouble() {
    let mut text = String::from(r#"{"descriptors":[{"path":"a","leaves":["#);
    let mut leaves = 0u32;
    while text.len() < 64 << 20 {
        if leaves > 0 {
            text.push(',');
        }
        let (first, second) = (leaves >> 10, leaves & 1023);
        write!(text, r#"{{"name":"a rather long name of one leaf {leaves}","tokens":[{first},{second},7]}}"#).unwrap();
        leaves += 1;
    }
    text.push_str("]}]}");
    let payload = read(&text).unwrap();
    assert_eq!(payload.tries().next().unwrap().1.len(), leaves as usize);
    let found = payload.tries().next().unwrap().1.find(&ids(&[3, 5, 7])).unwrap();
    assert_eq!(payload.tries().next().unwrap().1.name(found).as_deref(), Some("a rather long name of one leaf 3077"));
}

#[test]
fn thirty_actions_fit_in_four_kilobytes() {
    let leaves: Vec<String> = (0..30)
        .map(|n| format!(r#"{{"name":"SOME_ACTION_{n:02}","tokens":[{},{},{},{}]}}"#, n / 4, n, n + 7, n + 9))
        .collect();
    let text = format!(r#"{{"modelId":"m","descriptors":[{{"path":"action","leaves":[{}]}}]}}"#, leaves.join(","));
    let trie = read(&text).unwrap().tries().next().unwrap().1.clone();
    assert_eq!(trie.len(), 30);
    assert!(trie.nbytes() <= 4096, "{} bytes", trie.nbytes());
}

fn many_paths(count: u32) -> String {
    let mut text = String::from(r#"{"descriptors":["#);
    for number in 0..count {
        let comma = if number > 0 { "," } else { "" };
        write!(text, r#"{comma}{{"path":"path/{number}","leaves":[{{"name":"x","tokens":[{number}]}}]}}"#).unwrap();
    }
    text + "]}"
}

#[test]
fn sixteen_times_the_paths_take_some_sixteen_times_as_long() {
    let (few, many) = (2_000, 32_000);
    let read_and_visit = |count: u32| {
        let text = many_paths(count);
        let work = || {
            let payload = read(&text).unwrap();
            let mut span = Span::new(Arc::new(SpanRules::new(payload.constraints, 1 << 20).unwrap()));
            for number in (0..count).rev() {
                span.activate(&format!("path/{number}")).unwrap();
                assert!(span.role_of(ids(&[number])[0]).is_some());
            }
        };
        (0..3).map(|_| computed(work).0).min().unwrap()
    };
    let (short, long) = (read_and_visit(few), read_and_visit(many));
    // Comparing each with all before takes 256 times as long.
    assert!(long < short * 64, "{few} paths: {short:?}, {many} paths: {long:?}");
}

#[test]
fn one_of_many_paths_twice_and_one_that_is_not_there() {
    let mut text = many_paths(1000);
    text.truncate(text.len() - 2);
    let twice = read(&(text + r#",{"path":"path/7","leaves":[]}]}"#)).unwrap_err();
    assert_eq!(twice, PayloadError::DuplicatePath { path: "path/7".into() });
    let payload = read(&many_paths(1000)).unwrap();
    let message = payload.trie(Some("path/1000")).unwrap_err().to_string();
    assert!(message.contains("\"path/1000\"") && message.ends_with("\"path/31\"] and 968 more"), "{message}");
    let mut span = Span::new(Arc::new(SpanRules::new(payload.constraints, 1 << 20).unwrap()));
    assert_eq!(span.activate("path/1000").unwrap_err().to_string(), message);
    assert_eq!(span.path(), "path/0");
}
