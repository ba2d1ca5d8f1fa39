//! Tables that were written wrongly, cut off, or to do harm.

use std::fmt::Write;
use std::io::{self, Read};
use trie_formats::{PrefixTable, PrefixTableError, SkippedWhy, Strictness};

fn strict(json: &str) -> Result<PrefixTable, PrefixTableError> {
    PrefixTable::from_json(json.as_bytes(), Strictness::Strict)
}

fn repaired(json: &str) -> Result<PrefixTable, PrefixTableError> {
    PrefixTable::from_json(json.as_bytes(), Strictness::Repair)
}

fn leaves(table: &PrefixTable) -> Vec<Vec<u32>> {
    table.trie.leaves().map(|leaf| leaf.tokens.iter().map(|token| token.get()).collect()).collect()
}

/// What both say of it, and what the strict reading says.
fn refused(json: &str, parts: &[&str]) {
    let error = strict(json).unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{error} lacks {part:?}");
    }
}

#[test]
fn positions_keys_and_values_are_named() {
    let broken = "{\"prefix_dict\": {\n  \"225\": [1, 2,\n  oops]}}";
    let PrefixTableError::Malformed { line, column, .. } = strict(broken).unwrap_err() else { panic!("not malformed") };
    assert_eq!((line, column), (3, 3));
    refused(r#"{"prefix_dict": {"225": [1, "7"]}}"#, &["line 1", "column", "\"225\"", "\"7\"", "an integer"]);
    refused(r#"{"prefix_dict": {"225": [1.5]}}"#, &["1.5", "\"225\""]);
    refused(r#"{"prefix_dict": {"225": [true]}}"#, &["true", "\"225\""]);
    refused(r#"{"prefix_dict": {"225": null}}"#, &["null", "\"225\""]);
    refused(r#"{"prefix_dict": {"225": [-1]}}"#, &["\"225\"", "-1", "0 to 2147483647"]);
    refused(r#"{"prefix_dict": {"225": [2147483648]}}"#, &["\"225\"", "2147483648"]);
    refused(r#"{"prefix_dict": {"225": [99999999999999999999999]}}"#, &["\"225\"", "1e23"]);
    refused(r#"{"prefix_dict": {"225": [7], "225_8": [9]}}"#, &["\"225_8\"", "\"225\" does not list 8"]);
    refused(r#"{"prefix_dict": {"225": [7], "225_7_1_3": [9]}}"#, &["\"225_7_1_3\"", "no path leads to \"225_7_1\""]);
    refused(r#"{"prefix_dict": {"225": [7], "9_7": [9]}}"#, &["\"9_7\"", "start token 225"]);
    refused(r#"{"prefix_dict": {"225": [7, 2]}}"#, &["\"225\"", "lists the end token 2"]);
    refused(
        r#"{"prefix_dict": {"225": [7], "225_7": [2], "225_7_2": [9]}}"#,
        &["\"225_7_2\"", "after the end token 2"],
    );
    refused(r#"{"prefix_dict": {"225": [7], "225": [8]}}"#, &["\"225\"", "more than once"]);
    refused(r#"{"prefix_dict": {"225": [7], "225_07": [8]}}"#, &["\"225_07\"", "leading zeros"]);
    refused(r#"{"start_token_id": 3}"#, &["prefix_dict"]);
    refused("{}", &["missing field `prefix_dict`"]);
}

#[test]
fn repairing_skips_and_counts() {
    let json = r#"{"prefix_dict": {"225_7": [8, -5, 9999999999], "225_8": [-1], "225_7_8": [2], "225_x": [1],
        "225_9_9": [1], "225_7": [8, 3], "225_08": [1], "225_7_3_2": [2], "225-1": [2]}}"#;
    refused(json, &["no key \"225\"", "5 key(s)", "\"225_7\""]);
    let table = repaired(json).unwrap();
    assert_eq!(leaves(&table), [[7, 3], [7, 8]]);
    let report = &table.report;
    assert!(report.derived_root && !report.weighted);
    assert_eq!((report.keys, report.bad_keys, report.bad_ids), (9, 3, 3));
    assert_eq!((report.duplicate_keys, report.unreachable, report.dead_ends, report.after_end), (1, 1, 1, 1));
    assert_eq!(report.skipped.len(), 8);
    assert!(report.skipped.iter().any(|skipped| skipped.why == SkippedWhy::Unreachable && skipped.key == "225_9_9"));
    assert_eq!(report.skipped_count(), 8);
}

#[test]
fn a_table_in_which_nothing_can_be_said_is_refused_either_way() {
    for json in [
        r#"{"prefix_dict": {}}"#,
        r#"{"prefix_dict": {"225": []}}"#,
        r#"{"prefix_dict": {"225": [2]}}"#,
        r#"{"prefix_dict": {"225": [-1]}}"#,
        r#"{"prefix_dict": {"225": [7], "225_7": [-1]}}"#,
        r#"{"prefix_dict": {"225_2": [2]}}"#,
        r#"{"prefix_dict": {"7": [8]}}"#,
        r#"{"prefix_dict": {}, "prefix_weight_dict": {}}"#,
        r#"{"prefix_weight_dict": {"225": ["2:1.0"]}}"#,
    ] {
        assert!(strict(json).is_err(), "{json}");
        let error = repaired(json).unwrap_err();
        assert!(matches!(error, PrefixTableError::NoValues { .. }), "{json}: {error}");
        assert!(error.to_string().contains("nothing but the end"), "{error}");
    }
}

#[test]
fn separators() {
    for sep in ["", "5", "a1b"] {
        for read in [strict, repaired] {
            let error = read(&format!(r#"{{"prefix_dict": {{"225": [7]}}, "sep": "{sep}"}}"#)).unwrap_err();
            assert!(matches!(error, PrefixTableError::Separator { .. }), "{error}");
        }
    }
    for sep in [" ", "->", "-", "_", "é", "\u{1F600}", ", "] {
        // Before and after the keys.
        for json in [
            format!(r#"{{"sep": "{sep}", "prefix_dict": {{"225{sep}7": [8], "225": [7]}}}}"#),
            format!(r#"{{"prefix_dict": {{"225": [7], "225{sep}7": [8]}}, "sep": "{sep}"}}"#),
        ] {
            assert_eq!(leaves(&strict(&json).unwrap()), [[7, 8]], "{json}");
        }
    }
    refused(r#"{"prefix_dict": {"225": [7], "225_7": [8]}, "sep": "-"}"#, &["\"225_7\"", "separator"]);
    refused(r#"{"prefix_dict": {"225": [7, 8], "225_7": [8], "225-8": [8]}}"#, &["\"225-8\""]);
    refused(r#"{"prefix_dict": {"225": [7], " 225_7": [8]}}"#, &["\" 225_7\""]);
    refused(r#"{"prefix_dict": {"225": [7], "225_7_": [8]}}"#, &["\"225_7_\""]);
    refused(r#"{"prefix_dict": {"225": [7], "225__7": [8]}}"#, &["\"225__7\""]);
    refused(r#"{"prefix_dict": {"225": [7], "225_7_1-2": [8]}}"#, &["\"225_7_1-2\""]);
    refused(r#"{"prefix_dict": {"225": [7], "": [8]}}"#, &["\"\""]);
    assert_eq!(leaves(&strict(r#"{"prefix_dict": {"225": [7], "225\u005f7": [8]}}"#).unwrap()), [[7, 8]], "escapes");
}

#[test]
fn fields_come_once_and_in_any_order() {
    let table = strict(
        r#"{"prefix_dict": {"0": [5, 6], "0|5": [9, 0]}, "x": {"y": [{}]}, "end_token_id": 9, "sep": "|",
        "start_token_id": 0}"#,
    );
    assert_eq!(leaves(&table.unwrap()), [vec![5], vec![5, 0], vec![6]]);
    let zero = strict(r#"{"end_token_id": 0, "start_token_id": 1, "prefix_dict": {"1": [5], "1_5": [0]}}"#).unwrap();
    assert_eq!((leaves(&zero), zero.trie.end_tokens()[0].get()), (vec![vec![5]], 0));
    for field in ["start_token_id", "end_token_id", "sep", "prefix_dict", "prefix_weight_dict"] {
        let value = match field {
            "sep" => r#""_""#,
            "prefix_dict" | "prefix_weight_dict" => "{}",
            _ => "3",
        };
        let json = format!(r#"{{"{field}": {value}, "{field}": {value}, "prefix_dict": {{"3": [1]}}}}"#);
        refused(&json, &["duplicate field"]);
    }
}

#[test]
fn every_cut_is_an_error() {
    let json = r#"{"start_token_id": 1, "x": [[{"y": null}]], "prefix_dict": {"1": [5, 6], "1_5": [7]}, "sep": "_"}"#;
    for end in 0..json.len() {
        for strictness in [Strictness::Strict, Strictness::Repair] {
            let error = PrefixTable::read(&json.as_bytes()[..end], strictness).unwrap_err();
            assert!(matches!(error, PrefixTableError::Malformed { .. }), "{end}: {error}");
        }
    }
    assert!(strict(json).is_ok());
    assert!(matches!(strict(&format!("{json} x")).unwrap_err(), PrefixTableError::Malformed { .. }), "what follows");
    assert!(strict(&format!(" \n\t\r{json}\n")).is_ok());
    let bytes = [json.as_bytes(), b"\xff"].concat();
    assert!(PrefixTable::from_json(&bytes, Strictness::Strict).is_err());
}

#[test]
fn depth_costs_nothing() {
    let (open, close) = ("[".repeat(1_000_000), "]".repeat(1_000_000));
    let json = format!(r#"{{"skipped": {open}{close}, "prefix_dict": {{"225": [7]}}}}"#);
    assert_eq!(leaves(&strict(&json).unwrap()), [[7]]);
    refused(&format!(r#"{{"prefix_dict": {open}"#), &["line 1"]);
    refused(&format!(r#"{{"prefix_dict": {{"225": {open}"#), &["\"225\""]);
    // A path of ten thousand tokens, each with a key.
    let (mut json, mut key) = (String::from("{\"prefix_dict\": {"), String::from("225"));
    for token in 0..2000 {
        write!(json, "{}\"{key}\": [{}]", if token > 0 { ", " } else { "" }, token + 3).unwrap();
        write!(key, "_{}", token + 3).unwrap();
    }
    json += "}}";
    assert_eq!(leaves(&strict(&json).unwrap())[0].len(), 2000);
}

#[test]
fn long_keys_are_shown_shortened() {
    let json = format!(r#"{{"prefix_dict": {{"225": [7], "{}": [1]}}}}"#, "é".repeat(100_000));
    assert!(strict(&json).unwrap_err().to_string().len() < 1000);
    let json = format!(r#"{{"prefix_dict": {{"225": ["{}"]}}}}"#, "x".repeat(100_000));
    assert!(strict(&json).unwrap_err().to_string().len() < 1000);
}

#[test]
fn weights() {
    let json = |list: &str| format!(r#"{{"prefix_dict": {{"1": [3]}}, "prefix_weight_dict": {{"225": [{list}]}}}}"#);
    for list in [
        r#""7:nan""#,
        r#""7:inf""#,
        r#""7:-Infinity""#,
        r#""7:1e39""#,
        r#""7""#,
        r#""7:""#,
        r#"":1""#,
        "7",
        r#""x:1""#,
        r#""7:1:2""#,
        r#""7:0x1""#,
        r#"["7:1"]"#,
        "null",
    ] {
        for read in [strict, repaired] {
            let error = read(&json(list)).unwrap_err();
            assert!(matches!(error, PrefixTableError::Malformed { .. }), "{list}: {error}");
            assert!(error.to_string().contains("\"225\""), "{error}");
        }
    }
    refused(&json(r#""-7:1""#), &["\"225\"", "-7"]);
    refused(&json(r#""07:1""#), &["\"225\"", "07"]);
    refused(&json(r#""7:1", "7:2""#), &["\"225\"", "token 7", "two weights"]);
    let table = repaired(&json(r#""9: 1e-3 ", "7:1", "7:2", "8:-0""#)).unwrap();
    assert_eq!(table.trie.weights(table.trie.root()), [1.0, 0.0, 1e-3]);
    assert_eq!((table.report.two_weights, table.report.ignored_keys, table.report.keys), (1, 1, 1));
    assert!(strict(&json(r#""7:1", "7:1""#)).is_ok(), "one weight, twice");
    // Without weights the plain table counts.
    let plain = strict(r#"{"prefix_weight_dict": {}, "prefix_dict": {"225": [3]}}"#).unwrap();
    assert!(!plain.trie.is_weighted() && !plain.report.weighted);
}

struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let text = b"{\"prefix_dict\": {\"225\": [7], ";
        if self.0 >= text.len() {
            return Err(io::Error::other("the disk is gone"));
        }
        let count = into.len().min(3).min(text.len() - self.0);
        into[..count].copy_from_slice(&text[self.0..][..count]);
        self.0 += count;
        Ok(count)
    }
}

#[test]
fn what_a_reader_says_is_said() {
    let error = PrefixTable::read(Failing(0), Strictness::Strict).unwrap_err();
    assert!(matches!(&error, PrefixTableError::Read(said) if said.to_string() == "the disk is gone"), "{error}");
}
