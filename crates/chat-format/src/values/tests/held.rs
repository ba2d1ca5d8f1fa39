use super::{Case, Was, keywords, qwen};
use crate::dialect::Arguments;
use serde_json::{Value, json};
use trie_schema::Values;

fn fits(schema: &Value, text: &str) -> bool {
    let case = Case::new(&Arguments::Json, "", &json!({"type": "object", "properties": {"a": schema}}));
    let text = format!("{{\"a\":{text}}}");
    matches!(case.strict(text.as_bytes()), Was::Over(end, _) if end == text.len())
}

#[track_caller]
fn check(schema: Value, right: &[&str], wrong: &[&str]) {
    for text in right {
        assert!(fits(&schema, text), "{schema} takes {text}");
    }
    for text in wrong {
        assert!(!fits(&schema, text), "{schema} takes no {text}");
    }
}

#[test]
fn scalars() {
    check(json!({"type": "boolean"}), &["true", "false"], &["null", "1", "\"true\""]);
    check(
        json!({"type": "integer", "minimum": -3, "maximum": 120}),
        &["-3", "0", "120", "7"],
        &["-4", "121", "-0", "1.0"],
    );
    check(json!({"type": "integer", "exclusiveMinimum": 0}), &["1", "99999999999"], &["0", "-1"]);
    check(json!({"type": "integer"}), &["0", "-9223372036854775808", "18446744073709551615"], &["1.5", "01"]);
    check(json!({"type": "number"}), &["0", "-1.5e-7", "3.0"], &["1e400", "+1", ".5"]);
    check(
        json!({"enum": ["a", "ab", 1, null, true, {"k": [1]}]}),
        &["\"a\"", "\"ab\"", "1", "null", "true", "{\"k\":[1]}"],
        &["\"b\"", "2", "false", "{}", "{\"k\":[]}"],
    );
    check(
        json!({"enum": ["é", "a\"b", "\n"], "type": "string"}),
        &["\"é\"", "\"a\\\"b\"", "\"\\n\""],
        &["\"\\u00e9\"", "\"a\""],
    );
    check(json!({"const": 1.5}), &["1.5"], &["1", "1.50"]);
    check(
        json!({"type": "string", "minLength": 2, "maxLength": 3}),
        &["\"éa\"", "\"abc\"", "\"\\n\\n\""],
        &["\"é\"", "\"abcd\""],
    );
    check(json!({"type": "string", "pattern": "b+\\d"}), &["\"xb1y\"", "\"bb2\""], &["\"b\"", "\"\""]);
    check(json!({"type": "string", "pattern": "^[a-z]{2}$"}), &["\"ab\""], &["\"a\"", "\"abc\"", "\"\\u0061b\""]);
    check(json!({"type": "string", "format": "date"}), &["\"2024-02-29\""], &["\"2023-02-29\"", "\"x\""]);
    check(
        json!({"type": "string", "format": "date-time"}),
        &["\"2024-02-29T10:00:00Z\""],
        &["\"2023-02-29T10:00:00Z\""],
    );
    check(json!({"type": "string", "format": "uuid"}), &["\"123e4567-e89b-12d3-a456-426614174000\""], &["\"123\""]);
    check(json!({"type": "string", "format": "ipv4"}), &["\"127.0.0.1\""], &["\"256.1.1.1\""]);
    check(json!({"type": "string", "format": "email"}), &["\"a.b@c.org\""], &["\"a\"", "\"@c.org\""]);
    check(json!({"type": "string"}), &["\"\\ud83d\\ude00\\/\""], &["\"\n\"", "\"\\ude00\"", "\"\\d\""]);
}

#[test]
fn ranges_of_numbers() {
    let numbers = [
        "-20", "-10.5", "-10", "-9.99", "-2.5", "-1", "-0.5", "-0.25", "0", "0.0", "0.05", "0.1", "0.2", "0.205",
        "0.25", "0.3", "0.30", "0.305", "0.31", "0.7", "0.75", "0.9", "1", "1.0", "1.5", "2", "5", "9.99", "10",
        "10.0", "10.01", "19", "20", "21", "99", "100", "100.5", "12345",
    ];
    let bounds: [f64; 17] =
        [-10.5, -10.0, -1.0, -0.25, 0.0, 0.05, 0.2, 0.205, 0.25, 0.3, 0.305, 0.75, 1.0, 9.99, 10.0, 20.0, 100.0];
    for (at, &low) in bounds.iter().enumerate() {
        for &high in &bounds[at..] {
            for (low_key, high_key) in
                [("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum"), ("minimum", "exclusiveMaximum")]
            {
                let same = low.total_cmp(&high).is_eq();
                if same && (low_key, high_key) != ("minimum", "maximum") {
                    continue;
                }
                let schema = json!({"type": "number", low_key: low, high_key: high});
                let case = Case::new(&Arguments::Json, "", &json!({"type": "object", "properties": {"a": schema}}));
                for number in numbers {
                    let value: f64 = number.parse().unwrap();
                    let above = if low_key == "minimum" { value >= low } else { value > low };
                    let below = if high_key == "maximum" { value <= high } else { value < high };
                    let text = format!("{{\"a\":{number}}}");
                    let was = matches!(case.strict(text.as_bytes()), Was::Over(..));
                    assert_eq!(was, above && below, "{schema} {number}");
                }
            }
        }
    }
}

#[test]
fn lists_and_objects() {
    check(
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
        &["[1]", "[1, 2]"],
        &["[]", "[1,2,3]", "[\"a\"]"],
    );
    check(
        json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false}),
        &["[]", "[\"a\"]", "[\"a\",1]"],
        &["[1]", "[\"a\",1,1]"],
    );
    let closed = json!({"type": "object", "properties": {"x": {"type": "integer"}, "xy": {"type": "string"}},
        "required": ["x"]});
    check(
        closed,
        &["{\"x\":1}", "{\"xy\":\"\",\"x\":1}", "{\n  \"x\": 1\n}"],
        &["{}", "{\"xy\":\"\"}", "{\"x\":1,\"x\":1}", "{\"x\":1,\"z\":1}", "{\"x\":\"\"}"],
    );
    let open = json!({"properties": {"x": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}});
    check(
        open,
        &["{\"x\":1,\"y\":true}", "{\"xx\":true,\"\":false}"],
        &["{\"x\":true}", "{\"y\":1}", "{\"\\u0078\":true}", "{\"x\":1,\"x\":2}"],
    );
    check(json!({"type": "object"}), &["{\"a\":[{}]}", "{}"], &["[]"]);
}

#[test]
fn unions_and_references() {
    check(
        json!({"anyOf": [{"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "integer"}},
            "required": ["k", "v"]},
        {"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "string"}}, "required": ["k", "v"]}]}),
        &["{\"k\":\"a\",\"v\":1}", "{\"v\":\"\",\"k\":\"b\"}"],
        &["{\"k\":\"a\",\"v\":\"\"}", "{\"v\":1,\"k\":\"b\"}"],
    );
    check(
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}}]}),
        &["{\"a\":1}", "{\"b\":\"\",\"a\":1}"],
        &["{\"b\":\"\"}", "{\"a\":\"\"}"],
    );
    let schema = json!({
        "type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "required": ["root"],
        "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"},
            "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}}, "required": ["next"]}},
    });
    let case = Case::new(&Arguments::Json, "", &schema);
    let text = b"{\"root\":{\"v\":1,\"next\":{\"next\":{\"next\":null}}}}";
    assert!(matches!(case.strict(text), Was::Over(..)));
    assert!(matches!(case.strict(b"{\"root\":{\"next\":{}}}"), Was::Dead(_)));
}

#[test]
fn white_space_is_bounded_and_nesting_too() {
    let case = Case::new(&Arguments::Json, "", &json!({"type": "object"}));
    assert!(matches!(case.strict(b"{\n\n\n"), Was::Dead(3)));
    assert!(matches!(case.strict(b"{   "), Was::Dead(3)));
    let deep = format!("{{\"a\":{}", "[".repeat(80));
    assert_eq!(case.strict(deep.as_bytes()), Was::Dead(5 + 63));
    let case = Case::new(&qwen(), "</function>", &json!({"type": "object"}));
    assert!(matches!(case.strict(b"\n\n\n"), Was::Dead(2)));
}

#[test]
fn enums_and_keys_in_other_styles() {
    let schema = json!({"type": "object", "properties": {"unit": {"enum": ["it's", "k\"m"]},
        "n": {"type": "integer", "maximum": 5}}, "required": ["unit"]});
    let case = Case::new(&keywords(), ")", &schema);
    assert_eq!(case.json("unit='it\\'s', n=5)", true), json!({"unit": "it's", "n": 5}));
    assert_eq!(case.json("unit=\"k\\\"m\")", true), json!({"unit": "k\"m"}));
    assert_eq!(case.json("n=5)", false), json!({"n": 5}));
    assert_eq!(case.json("unit='x')", false), json!({"unit": "x"}));
    let case = Case::new(&qwen(), "</function>", &schema);
    assert_eq!(case.json("<parameter=unit>\nit's\n</parameter>\n</function>", true), json!({"unit": "it's"}));
    assert_eq!(case.json("<parameter=unit>\nit\n</parameter>\n</function>", false), json!({"unit": "it"}));
    assert_eq!(case.strict(b"<parameter=n>\n6"), Was::Dead(14));
    assert_eq!(case.strict(b"<parameter=m"), Was::Dead(11));
    assert_eq!(case.strict(b"</f"), Was::Dead(1));
}

#[test]
fn objects_with_a_number_of_keys() {
    let two = json!({"a": {"type": "boolean"}, "b": {"type": "boolean"}});
    let object = json!({"type": "object", "properties": two, "additionalProperties": true, "minProperties": 3,
        "maxProperties": 4, "required": ["b"]});
    let list = json!({"type": "array", "prefixItems": [object], "items": false, "minItems": 1});
    let schema = json!({"type": "object", "properties": {"a": list}, "additionalProperties": false});
    let case = Case::new(&qwen(), "</function>", &schema);
    for (inner, fits) in [
        (r#"[{"a":true,"b":true,"x":1}]"#, true),
        (r#"[{"x":1,"y":2,"b":false}]"#, true),
        (r#"[{"x":1,"y":2,"z":3,"b":false}]"#, true),
        (r#"[{"x":1,"y":2,"z":3,"a":true}]"#, false),
        (r#"[{"x":1,"y":2,"z":3}]"#, false),
        (r#"[{"a":true,"b":true}]"#, false),
        (r#"[{"a":true,"b":true,"x":1,"y":2,"z":3}]"#, false),
        ("[{}]", false),
    ] {
        let text = format!("<parameter=a>\n{inner}\n</parameter>\n</function>");
        assert_eq!(matches!(case.strict(text.as_bytes()), Was::Over(..)), fits, "{inner}");
    }
}

#[test]
fn what_holds_at_once_and_under_conditions() {
    let number = json!({"type": "integer"});
    check(
        json!({"type": "object", "properties": {"a": number}, "required": ["a", "b"]}),
        &["{\"a\":1,\"b\":[]}"],
        &["{\"a\":1}", "{\"a\":1,\"b\":1,\"c\":1}"],
    );
    check(
        json!({"properties": {"a": number}, "additionalProperties": {"type": "string"},
            "allOf": [{"properties": {"b": {"maxLength": 2}}}]}),
        &["{\"a\":1,\"b\":\"xy\",\"c\":\"\"}"],
        &["{\"b\":1}", "{\"b\":\"xyz\"}", "{\"c\":1}"],
    );
    check(
        json!({"allOf": [{"prefixItems": [{"minimum": 3}]}, {"items": number}]}),
        &["[3, 1]"],
        &["[1]", "[3.5]", "[3, \"\"]"],
    );
    check(
        json!({"properties": {"a": number, "b": number}, "dependentRequired": {"a": ["b"]}}),
        &["{}", "{\"b\":1}", "{\"b\":1,\"a\":1}", "{\"a\":1,\"b\":1}"],
        &["{\"a\":1}"],
    );
    check(
        json!({"properties": {"k": {"enum": ["x", "y"]}, "v": number}, "required": ["k"],
            "if": {"properties": {"k": {"const": "x"}}}, "then": {"required": ["v"]}}),
        &["{\"k\":\"y\"}", "{\"k\":\"x\",\"v\":1}", "{\"v\":1,\"k\":\"x\"}"],
        &["{\"k\":\"x\"}", "{\"k\":\"z\"}"],
    );
    check(json!({"enum": [1, "a", 2], "not": {"const": 2}}), &["1", "\"a\""], &["2"]);
    check(json!({"enum": [{"a": 1}, {"b": 1}], "required": ["b"]}), &["{\"b\":1}"], &["{\"a\":1}"]);
    check(
        json!({"anyOf": [{"properties": {"a": number}}, {"properties": {"b": number}}],
            "unevaluatedProperties": false}),
        &["{\"a\":1}", "{\"b\":1}"],
        &["{\"c\":1}"],
    );
    check(json!({"prefixItems": [true], "unevaluatedItems": false}), &["[1]"], &["[1, 2]"]);
}

#[test]
fn names_of_keys() {
    check(
        json!({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false}),
        &["{}", "{\"x\":1,\"xy\":2}"],
        &["{\"y\":1}", "{\"x\":\"\"}"],
    );
    check(json!({"propertyNames": {"enum": ["a", "b"]}}), &["{\"a\":1}", "{\"b\":[]}"], &["{\"c\":1}"]);
    check(json!({"propertyNames": {"maxLength": 2}}), &["{\"ab\":1}"], &["{\"abc\":1}"]);
    check(json!({"propertyNames": false}), &["{}"], &["{\"a\":1}"]);
}

#[test]
fn recursion_beside_other_keywords() {
    for again in [json!({"$ref": "#", "type": "object"}), json!({"allOf": [{"$ref": "#"}]})] {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "a": again}});
        let case = Case::new(&Arguments::Json, "", &schema);
        assert!(matches!(case.strict(b"{\"a\":{\"a\":{\"n\":1}}}"), Was::Over(..)), "{schema}");
        assert!(matches!(case.strict(b"{\"a\":{\"a\":{\"n\":\""), Was::Dead(_)), "{schema}");
    }
}

#[test]
fn nothing_is_left_out_in_silence() {
    for (schema, keyword) in [
        (json!({"type": "string", "pattern": "(a)\\1"}), "pattern"),
        (json!({"patternProperties": {"(a)\\1": true}}), "patternProperties"),
        (json!({"type": "string", "format": "colour"}), "format"),
        (json!({"type": "object", "required": "a"}), "required"),
    ] {
        let mut values = Values::new(None);
        let (_, warnings) = values.add(&json!({"type": "object", "properties": {"a": schema}})).unwrap();
        assert!(warnings.iter().any(|warning| warning.keyword == keyword), "{schema}: {warnings:?}");
    }
}

#[test]
fn what_other_keywords_say_is_held() {
    for (schema, yes, no) in [
        (json!({"oneOf": [{"const": 1}, {"type": "number"}]}), "2.5", "1"),
        (json!({"type": "array", "items": {"type": "integer"}, "contains": {"const": 3}}), "[1,3]", "[1,2]"),
        (
            json!({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true}),
            "[\"b\",\"a\"]",
            "[\"b\",\"b\"]",
        ),
        (json!({"type": "integer", "not": {"const": 3}}), "4", "3"),
        (json!({"type": "integer", "not": {"multipleOf": 3}}), "4", "3"),
        (json!({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}), "4", "6"),
        (json!({"type": "array", "uniqueItems": true}), "[1,2]", "[1,1]"),
        (json!({"type": "string", "format": "regex"}), "\"a*\"", "\"(\""),
        (json!({"type": "string", "not": {"enum": ["a", "bc"]}}), "\"b\"", "\"bc\""),
        (json!({"type": "string", "format": "date"}), "\"2024-02-29\"", "\"2023-02-29\""),
        (json!({"type": "string", "format": "date-time"}), "\"2024-02-29T10:00:00Z\"", "\"2023-02-29T10:00:00Z\""),
        (json!({"type": "string", "format": "hostname"}), "\"a.example\"", "\"-a.example\""),
        (json!({"type": "string", "format": "ipv6"}), "\"::1\"", "\"1::2::3\""),
    ] {
        let whole = json!({"type": "object", "properties": {"a": schema}});
        let mut values = Values::new(None);
        let (_, warnings) = values.add(&whole).unwrap();
        assert!(warnings.is_empty(), "{schema}: {warnings:?}");
        let case = Case::new(&Arguments::Json, "", &whole);
        let written = |value: &str| format!("{{\"a\":{value}}}");
        assert!(matches!(case.strict(written(yes).as_bytes()), Was::Over(..)), "{schema} refuses {yes}");
        assert!(!matches!(case.strict(written(no).as_bytes()), Was::Over(..)), "{schema} allows {no}");
    }
}
