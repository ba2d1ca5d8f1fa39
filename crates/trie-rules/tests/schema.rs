//! JSON Schema in fewer words: formats, and what becomes of keywords.

use serde_json::{Value, json};
use trie_rules::schema::{Own, Unheld, format_pattern, multiplying, place_in, spelled_out};
use trie_rules::{Regex, Rule};

fn is_whole(regex: &Regex, text: &str) -> bool {
    let end = text.bytes().try_fold(regex.start(), |state, byte| regex.step(&state, byte));
    end.is_some_and(|end| regex.is_end(&end))
}

#[test]
fn formats_have_the_texts_that_they_should() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "date",
            &["2024-02-29", "2000-02-29", "1999-12-31"],
            &["2021-02-29", "1900-02-29", "2024-04-31", "0000-01-01"],
        ),
        ("time", &["23:59:59Z", "00:00:00.5+01:00"], &["24:00:00Z", "22:59:60Z", "10:00:00", "10:00Z"]),
        ("date-time", &["2024-02-29T10:00:00Z"], &["2023-02-29T10:00:00Z", "2024-02-29", "2024-02-29 10:00:00Z"]),
        ("duration", &["P1Y2M3DT4H5M6S", "PT1H", "P2W", "P1D"], &["P", "P1YT", "PT1D", "P1Y2W", "P1D2H", "1Y"]),
        ("uuid", &["2eb8aa08-AA98-11ea-b4aa-73b441d16380"], &["2eb8aa08-aa98-11ea-b4aa-73b441d1638"]),
        ("ipv4", &["0.0.0.0", "255.9.10.99"], &["256.1.1.1", "1.2.3", "01.2.3.4"]),
        (
            "ipv6",
            &["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "1:2:3:4:5:6:7::", "::ffff:192.168.0.1", "1::d6:1.2.3.4"],
            &["1", ":::", "1::2::3", "1:2:3:4:5:6:7:8:9", "12345::", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "1:"],
        ),
        ("hostname", &["a", "a-b.example", "a1.B"], &["", "-a", "a-", "a..b", "a_b", "ab--c", "a."]),
        ("email", &["joe@x.example", "a.b@[127.0.0.1]"], &["joe", "@x", "a..b@x", ".a@x", "a@-x", "a b@x"]),
        ("uri", &["http://a.example/x?y#z", "urn:x:y", "a://[::1]:80/"], &["//a/b", "a b:c", "http://[::1", "x:%zz"]),
        ("uri-reference", &["", "a/b", "//a/b", "#x", "http://a"], &["a b", "\\\\a", "1:b"]),
        ("iri", &["http://ƒøø.example/"], &["/ƒøø", "http:// a"]),
        ("iri-reference", &["/ƒøø", ""], &["\\ë"]),
        ("uri-template", &["/{a}/{+b,c*}{?d:3}", "x"], &["/{a", "{}", "{a:0}", "a b"]),
        ("json-pointer", &["", "/", "/a~0b/~1"], &["a", "/~2", "/~"]),
        ("relative-json-pointer", &["0", "1/a", "2#"], &["", "01", "/a", "-1"]),
    ];
    for (format, yes, no) in cases {
        let regex = Regex::new(&format_pattern(format).unwrap()).unwrap_or_else(|error| panic!("{format}: {error}"));
        for text in *yes {
            assert!(is_whole(&regex, text), "{format} refuses {text}");
        }
        for text in *no {
            assert!(!is_whole(&regex, text), "{format} allows {text}");
        }
    }
    assert_eq!(format_pattern("colour"), None);
}

fn left(schema: &Value) -> Vec<(String, String)> {
    let spelled = spelled_out(schema, Own::default()).unwrap();
    spelled.unheld.into_iter().map(|Unheld { at, keyword }| (at, keyword)).collect()
}

#[test]
fn what_cannot_be_said_is_named_with_its_place() {
    let named = |at: &str, keyword: &str| (at.to_owned(), keyword.to_owned());
    let schema = json!({"properties": {"a/b": {"not": {"multipleOf": 2}}, "c": {"items": {"uniqueItems": true}}}});
    assert_eq!(left(&schema), [named("/properties/a~1b", "not"), named("/properties/c/items", "uniqueItems")]);
    let twice = json!({"$defs": {"a": {"$dynamicAnchor": "x"}, "b": {"$dynamicAnchor": "x"}}, "$dynamicRef": "#x"});
    assert_eq!(left(&twice), [named("", "$dynamicRef")]);
    for held in [
        json!({"not": {"required": ["a"]}}),
        json!({"if": {"minLength": 3}, "then": {"pattern": "a"}, "else": false}),
        json!({"contains": {"type": "null"}, "maxContains": 2}),
        json!({"propertyNames": {"maxLength": 3}, "unevaluatedProperties": false}),
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"then": {"multipleOf": 2}, "uniqueItems": false}),
    ] {
        assert_eq!(left(&held), [], "{held}");
    }
}

#[test]
fn what_is_said_already_stays() {
    for schema in [
        json!({"type": "object", "properties": {"a": {"enum": [1, "b"]}}, "required": ["a"], "items": false}),
        json!({"$defs": {"a": {"items": {"$ref": "#"}}}, "anyOf": [{"$ref": "#/$defs/a"}, {"minimum": 3}]}),
        json!(true),
    ] {
        let spelled = spelled_out(&schema, Own::default()).unwrap();
        assert_eq!((spelled.schema.into_owned(), spelled.unheld, spelled.notes), (schema, vec![], vec![]));
    }
}

#[test]
fn a_format_that_nobody_knows_is_noted() {
    let coloured = json!({"items": {"format": "colour"}});
    let spelled = spelled_out(&coloured, Own::default()).unwrap();
    assert_eq!(spelled.notes, ["at /items: no format is named \"colour\": it says nothing"]);
    assert_eq!(*spelled.schema, json!({"items": {}}));
    let number = json!({"type": "integer", "format": "int32"});
    let number = spelled_out(&number, Own::default()).unwrap();
    assert!(number.notes.is_empty());
}

#[test]
fn schemas_that_would_grow_without_end_are_refused() {
    let mut deep = json!({"type": "string"});
    for nth in 0..40 {
        deep = json!({"oneOf": [deep, {"properties": {format!("a{nth}"): deep}, "required": ["b"]}]});
        if deep.to_string().len() > 200_000 {
            break;
        }
    }
    let error = spelled_out(&deep, Own::default()).unwrap_err();
    assert_eq!((&*error.keyword, deep.pointer(&error.at).is_some()), ("oneOf", true), "{error}");
    let many: Vec<Value> = (0..60_000).map(|_| json!({})).collect();
    assert!(spelled_out(&json!({ "anyOf": many }), Own::default()).is_ok(), "what is long already does not grow");
}

#[test]
fn conditions_over_one_key_are_one_union_of_its_values() {
    for count in [2_usize, 9, 40, 200] {
        let kinds: Vec<String> = (0..count).map(|nth| format!("x{nth}")).collect();
        let then = |nth: usize| json!({"required": [format!("p{nth}")]});
        let of = |kind: &String| json!({"properties": {"type": {"const": kind}}});
        let rule = |(nth, kind)| json!({"if": of(kind), "then": then(nth)});
        let rules: Vec<Value> = kinds.iter().enumerate().map(rule).collect();
        let schema = json!({"type": "object", "properties": {"type": {"enum": kinds}}, "allOf": rules});
        let spelled = spelled_out(&schema, Own::default()).unwrap();
        let ways = spelled.schema.pointer("/allOf/0/anyOf").and_then(Value::as_array).unwrap();
        // Each value, and no value at all.
        assert_eq!((ways.len(), spelled.unheld.len()), (count + 1, 0));
    }
}

#[test]
fn places_are_those_of_the_schema_that_was_given() {
    let given = json!({
        "properties": {"a/b": {"oneOf": [true, {"minimum": 3}], "nullable": true}},
        "if": {"required": ["c"]},
        "then": {"items": [{"uniqueItems": true}]},
    });
    for (said, at) in [
        ("/properties/a~1b/anyOf/1", "/properties/a~1b/oneOf/1"),
        ("/properties/a~1b/anyOf/0/allOf/7/anyOf/3", "/properties/a~1b/oneOf/0"),
        ("/properties/nobody/items", ""),
        ("/allOf/0/anyOf/1/properties/a~1b/minimum", "/properties/a~1b"),
        ("no pointer", ""),
    ] {
        assert_eq!(place_in(&given, said), at, "{said}");
    }
    assert_eq!(left(&given), [("/then/items/0".to_owned(), "uniqueItems".to_owned())]);
    assert_eq!(multiplying(&given, "/properties/a~1b/anyOf/1/anyOf/2"), ("/properties/a~1b".to_owned(), "oneOf"));
}
