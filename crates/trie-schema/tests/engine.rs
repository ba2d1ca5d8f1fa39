//! Keywords that need more than a look at one value, alone and together: what is written, what is not, no dead ends.

use crate::common::Random;
use serde_json::{Value, json};
use trie_rules::{AnyRule, Read, Rule, check_rule};
use trie_schema::{Formats, JsonSchema, Order, SchemaError, SchemaOptions, Whitespace};

fn dense() -> SchemaOptions {
    let mut options = SchemaOptions::default();
    options.whitespace = Whitespace::None;
    options
}

/// A schema, texts that are valid under it and may be written, and texts that may not.
type Case = (Value, &'static [&'static str], &'static [&'static str]);

#[allow(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let unique =
        |items: Value, least: usize| json!({"type": "array", "items": items, "uniqueItems": true, "minItems": least});
    vec![
        (unique(json!({"type": "integer"}), 2), &["[1,2]", "[10,1,0]"], &["[1,1]", "[1]", "[1,2,1]"]),
        (unique(json!({"enum": ["a", "b", 1]}), 3), &["[\"a\",1,\"b\"]"], &["[\"a\",1]", "[\"a\",1,\"a\"]"]),
        (unique(json!({"type": "boolean"}), 2), &["[true,false]", "[false,true]"], &["[true,true]", "[true]"]),
        (
            unique(json!({"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}), 0),
            &["[[1],[2],[1,2],[2,1],[]]"],
            &["[[1],[1]]", "[[],[]]", "[[1,2],[1,2]]"],
        ),
        (
            json!({"type": "array", "items": {"enum": [1, 2, [1]]}, "not": {"uniqueItems": true}, "maxItems": 3}),
            &["[1,1]", "[1,2,1]", "[[1],[1],2]", "[1,1,1]"],
            &["[]", "[1]", "[1,2]", "[2,1,[1]"],
        ),
        (
            json!({"type": "array", "prefixItems": [{}, {"const": 2}], "items": false, "not": {"uniqueItems": true}}),
            &["[2,2]"],
            &["[1", "[2]", "[]"],
        ),
        (
            // What comes last must be left to it.
            json!({"type": "array", "prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2, 3]}, {"const": 1}],
                "items": false, "minItems": 3, "uniqueItems": true}),
            &["[2,3,1]"],
            &["[1,2,1]", "[1", "[2,1", "[2,2"],
        ),
        (
            json!({"type": "array", "contains": {"const": 1}, "minContains": 2, "maxContains": 2, "maxItems": 4,
                "items": {"enum": [1, 2, 3]}}),
            &["[1,1]", "[2,1,3,1]", "[1,2,1]"],
            &["[1]", "[1,1,1]", "[2,2,2", "[1,2,2,2]"],
        ),
        (
            json!({"type": "array", "allOf": [{"contains": {"const": "a"}}, {"contains": {"const": "b"}}],
                "maxItems": 2, "items": {"type": "string", "maxLength": 1}}),
            &["[\"a\",\"b\"]", "[\"b\",\"a\"]"],
            &["[\"a\",\"a\"]", "[\"c\"", "[\"a\",\"c"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "null"}, "propertyNames": {"enum": ["a", "b"]},
                "minProperties": 2}),
            &[r#"{"b":null,"a":null}"#, r#"{"a":null,"b":null}"#],
            &[r#"{"a":null}"#, r#"{"a":null,"a":null}"#, r#"{"c"#, r#"{"a":null,"b":null,"#],
        ),
        (
            json!({"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"],
                "additionalProperties": false, "patternProperties": {"^sc?ore$": {"minimum": 5}}}),
            &[r#"{"score":5}"#, r#"{"score":7,"sore":6}"#],
            &[r#"{"score":4}"#, r#"{"score":5,"score""#, r#"{"score":5,"x"#, r#"{"sore":6}"#],
        ),
        (
            json!({"type": "object", "dependentRequired": {"a": ["b"]}, "properties": {"a": {}, "b": {"const": 1}},
                "maxProperties": 1}),
            &["{}", r#"{"b":1}"#, r#"{"x":1}"#],
            &[r#"{"a""#, r#"{"b":1,"#],
        ),
        (
            json!({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "x": {"type": "boolean"}},
                "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]}, "then": {"required": ["x"]},
                "else": {"properties": {"x": false}}, "additionalProperties": false}),
            &[r#"{"kind":"a","x":true}"#, r#"{"kind":"b"}"#, "{}"],
            &[r#"{"kind":"a"}"#, r#"{"kind":"b","#, r#"{"x"#],
        ),
        (
            json!({"oneOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"const": 1}}, "required": ["b"]}],
                "properties": {"a": {"enum": [1, 2]}, "b": {"enum": [1, 2]}}, "additionalProperties": false}),
            &[r#"{"a":1}"#, r#"{"b":1}"#, r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#],
            &["{}", r#"{"a":2}"#, r#"{"a":1,"b":1}"#, r#"{"a":2,"b":2"#],
        ),
        (
            json!({"type": "object", "anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {"const": 2}}, "required": ["b"]}], "unevaluatedProperties": false}),
            &[r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#],
            &[r#"{"a":1,"c"#, r#"{"a":1,"b":3}"#, "{}"],
        ),
        (
            json!({"type": "array", "prefixItems": [{"const": 1}], "contains": {"const": "x"},
                "unevaluatedItems": false}),
            &["[1,\"x\"]", "[1,\"x\",\"x\"]"],
            &["[1]", "[1,2", "[\"x\"]"],
        ),
        (
            json!({"not": {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}},
                "type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"enum": [1, 2]}}),
            &[r#"{"a":2}"#, r#"{"b":1}"#, r#"{"a":1,"b":1}"#, r#"{"a":2,"b":2}"#],
            &["{}", r#"{"a":1}"#, r#"{"a":1,"b":2}"#],
        ),
        (
            json!({"type": "integer", "multipleOf": 6, "not": {"multipleOf": 4}, "minimum": 0, "maximum": 30}),
            &["6", "18", "30"],
            &["0", "12", "24", "7", "36"],
        ),
        (
            json!({"type": "string", "pattern": "^[ab]*$", "not": {"pattern": "bb"}, "minLength": 2, "maxLength": 3}),
            &["\"ab\"", "\"aba\"", "\"bab\""],
            &["\"bb", "\"a\"", "\"abab", "\"ac"],
        ),
        (
            json!({"type": "number", "minimum": -0.5, "exclusiveMaximum": 0.25, "multipleOf": 0.25}),
            &["-0.5", "-0.25", "0"],
            &["0.25", "-0.75", "1", "0.1"],
        ),
        (
            json!({"const": {"a": [1, {"b": null}]}}),
            &[r#"{"a":[1,{"b":null}]}"#],
            &[r#"{"a":[1,{"b":1"#, "{}", r#"{"a":[1]"#],
        ),
        (
            json!({"type": "object", "not": {"const": {"a": 1}}, "properties": {"a": {"enum": [1, 2]}},
                "additionalProperties": false}),
            &["{}", r#"{"a":2}"#],
            &[r#"{"a":1}"#],
        ),
    ]
}

fn legal(rule: &JsonSchema, text: &str) -> bool {
    rule.read(text.as_bytes()) == Read::Whole
}

#[test]
fn what_is_valid_is_written_and_nothing_else() {
    for (schema, yes, no) in cases() {
        let rule = JsonSchema::of(schema.clone(), dense()).unwrap_or_else(|error| panic!("{schema}: {error}"));
        for text in yes {
            assert!(legal(&rule, text), "{schema} refuses {text}: {:?}", rule.read(text.as_bytes()));
        }
        for text in no {
            let read = rule.read(text.as_bytes());
            let is_whole = serde_json::from_str::<Value>(text).is_ok();
            let is_refused = if is_whole { read != Read::Whole } else { matches!(read, Read::Refused { .. }) };
            assert!(is_refused, "{schema} takes {text}: {read:?}");
        }
    }
}

#[test]
fn schemas_keep_the_laws_of_rules() {
    for (schema, ..) in cases() {
        let rule = JsonSchema::of(schema.clone(), dense()).unwrap();
        check_rule(&rule, 1500).unwrap_or_else(|error| panic!("{schema}: {error}"));
    }
}

/// Walks at random come to an end and to no dead one.
#[test]
fn walks_at_random_come_to_an_end() {
    let mut random = Random(7);
    for (schema, ..) in cases() {
        for order in [Order::Schema, Order::Any] {
            let mut options = dense();
            options.order = order;
            let rule = JsonSchema::of(schema.clone(), options).unwrap();
            for _ in 0..10 {
                let (mut at, mut text) = (rule.start(), Vec::new());
                for _ in 0..200 {
                    let next: Vec<u8> = (0..128).filter(|&byte| rule.step(&at, byte).is_some()).collect();
                    if rule.is_end(&at) && (next.is_empty() || random.below(3) == 0) {
                        break;
                    }
                    assert!(!next.is_empty(), "{schema}: {}", String::from_utf8_lossy(&text));
                    let ends: Vec<u8> = next.iter().copied().filter(|byte| b"\"]}".contains(byte)).collect();
                    let byte = if !ends.is_empty() && random.below(2) == 0 { ends[0] } else { *random.one(&next) };
                    text.push(byte);
                    at = rule.step(&at, byte).unwrap();
                }
            }
        }
    }
}

#[test]
fn members_come_in_any_order_where_that_is_asked_for() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"], "additionalProperties": {"type": "null"}});
    let mut options = dense();
    assert!(!legal(&JsonSchema::of(schema.clone(), options.clone()).unwrap(), r#"{"b":1,"a":2}"#));
    options.order = Order::Any;
    let rule = JsonSchema::of(schema, options).unwrap();
    for text in [r#"{"b":1,"a":2}"#, r#"{"x":null,"a":2}"#, r#"{"a":2,"x":null,"b":3}"#] {
        assert!(legal(&rule, text), "{text}");
    }
    for text in [r#"{"b":1}"#, r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":null}"#, r#"{"x":null,"x":null,"a":1}"#] {
        assert!(!legal(&rule, text), "{text}");
    }
}

#[test]
fn an_order_says_nothing_of_numerals() {
    let mut options = dense();
    options.order = Order::Any;
    for schema in [json!({"enum": [100]}), json!({"const": 100}), json!({"enum": [[100], {"a": 100}]})] {
        let rule = JsonSchema::of(schema.clone(), options.clone()).unwrap();
        for text in ["100.0", "1e2", "[100.0]", r#"{"a":100.0}"#] {
            assert!(!legal(&rule, text), "{schema}: {text}");
        }
    }
    let rule = JsonSchema::of(json!({"enum": [{"a": 1, "b": 2}, 3]}), options).unwrap();
    assert!(legal(&rule, r#"{"b":2,"a":1}"#) && legal(&rule, "3"));
}

#[test]
fn numbers_are_exact_at_any_size() {
    let rule = |schema: &str| JsonSchema::new(schema, dense()).unwrap();
    let ids = rule(r#"{"enum": [1234567890123456789, 42]}"#);
    assert!(legal(&ids, "1234567890123456789") && !legal(&ids, "1234567890123456768"));
    let huge = rule(r#"{"type": "integer", "minimum": 1e400, "maximum": 1e400}"#);
    let text = format!("1{}", "0".repeat(400));
    assert!(legal(&huge, &text) && !legal(&huge, &text[..400]) && !legal(&huge, &format!("{}1", &text[..400])));
    let small = rule(r#"{"type": "number", "exclusiveMinimum": 0, "maximum": 1e-400}"#);
    assert!(legal(&small, &format!("0.{}1", "0".repeat(399))) && !legal(&small, "0.1") && !legal(&small, "0"));
    let mut options = dense();
    options.any_numerals = true;
    let free = JsonSchema::new(r#"{"type": "integer", "enum": [100, 3]}"#, options).unwrap();
    assert!(legal(&free, "100.0") && legal(&free, "3") && !legal(&free, "3.1"));
}

#[test]
fn formats_are_asserted_or_not() {
    let schema = json!({"type": "string", "format": "date"});
    assert!(!legal(&JsonSchema::of(schema.clone(), dense()).unwrap(), "\"soon\""));
    let mut options = dense();
    options.formats = Formats::Annotate;
    assert!(legal(&JsonSchema::of(schema, options).unwrap(), "\"soon\""));
}

#[test]
fn what_is_no_format_is_surely_none() {
    let rule = |schema: Value| JsonSchema::of(schema, dense()).unwrap();
    let no_time = rule(json!({"type": "string", "not": {"format": "time"}, "maxLength": 9}));
    assert!(legal(&no_time, "\"soon\"") && !legal(&no_time, "\"12:00:00Z\"") && !legal(&no_time, "\"23:59:60Z\""));
    let names = rule(json!({"type": "object", "propertyNames": {"format": "time"}, "maxProperties": 1}));
    assert!(legal(&names, r#"{"12:00:00Z":1}"#) && !legal(&names, r#"{"23:59:60Z":1}"#) && legal(&names, "{}"));
    let none = rule(json!({"type": "object", "not": {"propertyNames": {"format": "time"}}, "maxProperties": 1}));
    assert!(legal(&none, r#"{"soon":1}"#) && !legal(&none, r#"{"23:59:60Z":1}"#) && !legal(&none, "{}"));
}

#[test]
fn references_find_their_place() {
    let tree = r##"{"$id": "https://example.com/tree", "$dynamicAnchor": "node", "type": "object",
        "properties": {"children": {"type": "array", "items": {"$dynamicRef": "#node"}}}}"##;
    let strict = format!(
        r#"{{"$id": "https://example.com/strict", "$dynamicAnchor": "node", "$ref": "tree",
            "unevaluatedProperties": false, "$defs": {{"tree": {tree}}}}}"#
    );
    let rule = JsonSchema::new(&strict, dense()).unwrap();
    assert!(legal(&rule, r#"{"children":[{"children":[]}]}"#));
    assert!(!legal(&rule, r#"{"children":[{"daat":1}]}"#));
    let nested = JsonSchema::new(tree, dense()).unwrap();
    assert!(legal(&nested, r#"{"children":[{"daat":1}]}"#));
}

#[test]
fn a_discriminator_must_come() {
    let branch = |kind: &str, own: &str| {
        json!({"type": "object", "properties": {"kind": {"const": kind, "default": kind}, own: {"type": "integer"}},
            "required": [own]})
    };
    let schema = json!({"$defs": {"Cat": branch("cat", "lives"), "Dog": branch("dog", "bark")},
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}},
        "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]});
    let rule = JsonSchema::of(schema, dense()).unwrap();
    assert!(legal(&rule, r#"{"kind":"cat","lives":9}"#) && legal(&rule, r#"{"kind":"dog","bark":1}"#));
    assert!(!legal(&rule, r#"{"lives":9}"#) && !legal(&rule, r#"{"kind":"dog","lives":9}"#));
}

#[test]
fn what_excludes_what_is_said_with_both_values() {
    for (schema, at, said) in [
        (
            json!({"type": "integer", "minimum": 5, "exclusiveMaximum": 5}),
            "",
            "minimum and exclusiveMaximum exclude each other: minimum is 5, and exclusiveMaximum is 5",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}},
                "required": ["a"]}),
            "/properties/a",
            "minLength and maxLength exclude each other: minLength is 3, and maxLength is 2",
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false, "minProperties": 2}),
            "",
            "exclude each other",
        ),
        (json!({"not": {}}), "", "not is {}, which allows nothing"),
        (json!({"anyOf": [false, {"$ref": "#/$defs/n"}], "$defs": {"n": false}}), "/anyOf/0", "schema is false"),
    ] {
        let error = JsonSchema::of(schema.clone(), SchemaOptions::default()).unwrap_err();
        let SchemaError::Nothing { at: place, reason } = &error else { panic!("{schema}: {error:?}") };
        // Number and string keywords allow values of other kinds.
        assert!(place == at && reason.contains(said) || reason.contains("type"), "{schema}: {error}");
    }
}

#[test]
fn many_alternatives_that_clauses_tell_apart_are_no_product() {
    // 40 conditions, each of two ways.
    let all: Vec<Value> = (0..40)
        .map(|n| {
            json!({"if": {"properties": {"kind": {"const": format!("k{n}")}}, "required": ["kind"]},
                "then": {"required": [format!("x{n}")]}})
        })
        .collect();
    let schema = json!({"type": "object", "properties": {"kind": {"type": "string", "maxLength": 8}}, "allOf": all});
    let rule = JsonSchema::of(schema, dense()).unwrap();
    assert!(legal(&rule, r#"{"kind":"k7","x7":1}"#) && legal(&rule, r#"{"kind":"other"}"#) && legal(&rule, "{}"));
    assert!(!legal(&rule, r#"{"kind":"k7"}"#) && !legal(&rule, r#"{"kind":"k7","x8":1}"#));
    let branches: Vec<Value> = (0..60)
        .map(|n| json!({"properties": {"kind": {"const": n}, "v": {"minimum": n}}, "required": ["kind"]}))
        .map(|branch| json!({"type": "object", "allOf": [branch]}))
        .collect();
    let rule = JsonSchema::of(json!({"oneOf": branches}), dense()).unwrap();
    assert!(legal(&rule, r#"{"kind":7,"v":8}"#) && !legal(&rule, r#"{"kind":7,"v":6}"#));
}

#[test]
fn meta_schemas_are_known() {
    let rule = |schema: Value| {
        let mut options = dense();
        options.order = Order::Any;
        JsonSchema::of(schema.clone(), options).unwrap_or_else(|error| panic!("{schema}: {error}"))
    };
    for uri in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let whole = rule(json!({"$ref": uri}));
        assert!(legal(&whole, r#"{"minLength":1,"properties":{"a":{"type":"string"}}}"#), "{uri}");
        for invalid in [r#"{"minLength":-1}"#, r#"{"properties":{"a":{"type":"text"}}}"#, "[]", r#"{"maxItems":"3"}"#] {
            assert!(!legal(&whole, invalid), "{uri}: {invalid}");
        }
        let listed = rule(json!({"$schema": uri, "type": "array", "items": {"$ref": uri}}));
        assert!(legal(&listed, r#"[{"title":"a"},{"enum":[1]}]"#) && !legal(&listed, r#"[{"title":1}]"#), "{uri}");
    }
    // A schema that every schema inside it must be, too.
    let newest = "https://json-schema.org/draft/2020-12/schema";
    let strict = rule(json!({"$schema": newest, "$id": "https://example.com/strict", "$dynamicAnchor": "meta",
        "$ref": newest, "required": ["type"]}));
    assert!(legal(&strict, r#"{"type":"array","items":{"type":"null"}}"#));
    assert!(!legal(&strict, r#"{"type":"array","items":{}}"#));
    // A document that has its identifier is that one.
    let own = json!({"$defs": {"own": {"$id": "http://json-schema.org/draft-07/schema", "type": "null"}},
        "$ref": "http://json-schema.org/draft-07/schema#"});
    assert!(legal(&rule(own.clone()), "null") && !legal(&rule(own), "{}"));
    let unknown = JsonSchema::of(json!({"$ref": "https://json-schema.org/draft/2030-01/schema"}), dense());
    assert!(unknown.unwrap_err().to_string().contains("refers to another document"));
}

#[test]
fn few_values_are_counted_however_long_they_are() {
    let of = |least: usize, items: Value| {
        JsonSchema::of(json!({"type": "array", "uniqueItems": true, "minItems": least, "items": items}), dense())
    };
    let number = |last: u8| format!("1{}{last}", "0".repeat(40));
    let long = |least: usize| {
        let items = format!(r#"{{"type":"integer","minimum":{},"maximum":{}}}"#, number(3), number(5));
        let all = format!(r#"{{"type":"array","uniqueItems":true,"minItems":{least},"items":{items}}}"#);
        JsonSchema::new(&all, dense())
    };
    assert!(matches!(long(4), Err(SchemaError::Nothing { .. })), "{:?}", long(4));
    assert!(legal(&long(3).unwrap(), &format!("[{},{},{}]", number(4), number(3), number(5))));
    let words = json!({"type": "string", "pattern": "^(a{900}|b{900})$"});
    assert!(matches!(of(3, words.clone()), Err(SchemaError::Nothing { .. })));
    assert!(of(2, words).is_ok());
    let trees = json!({"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "null"}},
        "required": ["b"], "additionalProperties": false});
    assert!(matches!(of(4, trees.clone()), Err(SchemaError::Nothing { .. })) && of(3, trees).is_ok());
}

#[test]
fn what_items_must_differ_from_is_made_out_once() {
    let (took, ()) = test_budget::computed(|| {
        let schema = json!({"type": "array", "items": [{"type": "null"}], "contains": {"type": "string"},
            "uniqueItems": true, "$schema": "http://json-schema.org/draft-06/schema#"});
        let rule = JsonSchema::of(schema, dense()).unwrap();
        let mut at = rule.start();
        for byte in br#"[null,"a","b",true,{"a":"a"},[1,"c"],"cdefgh",12]"# {
            assert!((0..=255).any(|byte| rule.step(&at, byte).is_some()));
            at = rule.step(&at, *byte).unwrap();
        }
        assert!(rule.is_end(&at));
    });
    assert!(took.as_secs_f64() < 4.0, "{took:?}");
}

#[test]
fn listed_values_are_held_to_the_list_in_what_is_in_them_too() {
    let schema = json!({"enum": [[], [[]], [["a"]], [[[]]]], "items": {"$ref": "#"}});
    let rule = JsonSchema::of(schema, dense()).unwrap();
    assert!(["[]", "[[]]", "[[[]]]"].iter().all(|text| legal(&rule, text)) && !legal(&rule, r#"[["a"]]"#));
}

#[test]
fn alternatives_inside_each_other_are_merged_or_refused() {
    let list = |more: Value| {
        let mut list = json!({"type": "array", "items": {"$ref": "#/$defs/tree"}});
        list.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        list
    };
    let rule = |one: Value, other: Value| {
        let defs = json!({"tree": {"anyOf": [list(one), list(other)]}});
        JsonSchema::of(json!({"$defs": defs, "$ref": "#/$defs/tree"}), dense()).unwrap()
    };
    let text = [b"[".repeat(90), b"]".repeat(90)].concat();
    // The same, through references at places of their own.
    let same = rule(json!({}), json!({}));
    assert!(same.steps(&same.start(), &text).is_some_and(|end| same.is_end(&end)));
    // Nothing tells them apart before their ends, at any level.
    let other = rule(json!({"maxItems": 2}), json!({"maxItems": 3}));
    assert!(other.steps(&other.start(), &text).is_none() && other.failing());
    assert!(other.failure().unwrap().to_string().contains("may mean more than 4096 things"));
    assert!(other.steps(&other.start(), &text[90 - 8..90 + 8]).is_some_and(|end| other.is_end(&end)));
}

#[test]
fn equal_parts_are_told_of_at_each_of_their_places() {
    let part = || json!({"type": "string", "format": "colour"});
    let schema = json!({"type": "object", "properties": {"a": part(), "b": part(), "c": {"type": "string"}}});
    let rule = JsonSchema::of(schema, dense()).unwrap();
    let places = |name: &str| rule.warnings().iter().any(|one| one.contains(&format!("/properties/{name}:")));
    assert!(places("a") && places("b") && !places("c"), "{:?}", rule.warnings());
    let mut options = dense();
    options.lenient = true;
    let part = || json!({"type": "string", "pattern": "^(a)\\1$"});
    let schema = json!({"type": "object", "properties": {"a": part(), "b": part()}});
    let rule = JsonSchema::of(schema, options).unwrap();
    assert_eq!(rule.unheld().iter().map(|one| &*one.at).collect::<Vec<_>>(), ["/properties/a", "/properties/b"]);
    // Bounds of different types are different parts.
    let part = |kind: &str| json!({"type": kind, "minimum": 3, "maximum": 4});
    let schema = json!({"type": "array", "prefixItems": [part("integer"), part("number"), part("integer")]});
    let rule = JsonSchema::of(schema, dense()).unwrap();
    assert!(legal(&rule, "[3,3.5,4]") && !legal(&rule, "[3.5,3,3]") && !legal(&rule, "[3,3,3.5]"));
}

/// What one of several alternatives must tell apart is too much: the others go on, and each question has one answer.
#[test]
fn an_alternative_that_is_too_large_is_left_out() {
    let one = |number: usize| {
        format!(r#"{{"properties": {{"big": {{"properties": {{"x{number}": {{"type": "string"}}}}}}}}}}"#)
    };
    let all: Vec<String> = (0..11).map(one).collect();
    let schema = format!(r#"{{"type": "object", "properties": {{"a": {{"oneOf": [{}]}}}}}}"#, all.join(", "));
    let mut options = SchemaOptions::default();
    options.order = trie_schema::Order::Any;
    let schema = JsonSchema::new(&schema, options).unwrap();
    let after = |text: &str| {
        text.bytes().try_fold(schema.start(), |at, byte| {
            let found = [schema.step(&at, byte), schema.step(&at, byte)];
            let failed = schema.failure().is_some();
            assert_eq!(found[0], found[1], "{text}");
            assert!(found[0].is_none() || !failed, "{text}: a step that goes on does not fail");
            found[0].clone()
        })
    };
    for text in [r#"{"a":{"small":1}}"#, r#"{"a":{}}"#, r#"{"a":7}"#, r#"{"b":{"big":{"x1":2}}}"#] {
        let end = after(text);
        // Exactly one of alternatives that all hold is none: such a value is refused as before.
        assert!(end.is_none_or(|end| schema.is_end(&end)), "{text}");
    }
    assert!(after(r#"{"a":{"#).is_some());
}
