use super::{Was, gemma, keywords, qwen, read};
use crate::dialect::Arguments;
use crate::values::{Gaps, Limits, Reader};
use serde_json::{Value, json};
use trie_core::work::Work;
use trie_schema::{SchemaWarning, Values};

#[test]
fn what_is_not_held_is_told() {
    let mut values = Values::new(None);
    let schema = json!({"type": "object", "properties": {"a/b": {"type": "array", "required": 3,
        "items": {"type": "string", "pattern": "(.)\\1"}}}});
    let (_, warnings) = values.add(&schema).unwrap();
    let told: Vec<_> = warnings.iter().map(|w| (w.at.as_str(), w.keyword.as_str())).collect();
    assert_eq!(told, [("/properties/a~1b", "required"), ("/properties/a~1b/items", "pattern")]);
}

#[test]
fn what_nothing_satisfies_is_an_error() {
    for (schema, pointer) in [
        (json!({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}), "/properties/a"),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}},
                "required": ["a"]}),
            "/properties/a",
        ),
        (json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/x"}}}), "/properties/a"),
        (json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}), "/properties/a"),
        (json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}), ""),
        (json!({"type": "string"}), ""),
        (json!({"type": "object", "properties": {"a": {"type": "strnig"}}}), "/properties/a"),
        (json!({"type": "object", "properties": {"a": 3}}), "/properties/a"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}},
                "required": ["a"]}),
            "/properties/a",
        ),
        (json!(false), ""),
    ] {
        let error = Values::new(None).add(&schema).expect_err(&schema.to_string());
        assert_eq!(error.placed().0, pointer, "{schema}: {error}");
    }
}

/// No value is valid under the standard; those that are listed are meant.
#[test]
fn listed_values_win_over_the_type_beside_them() {
    let many: Vec<_> = (0..9).map(|n| n.to_string()).collect();
    for (schema, listed) in [
        (json!({"type": "string", "enum": [1, 2]}), vec![json!(1), json!(2)]),
        (json!({"type": "integer", "const": 1.5}), vec![json!(1.5)]),
        (json!({"type": ["null", "array"], "enum": many}), many.iter().map(|text| json!(text)).collect()),
    ] {
        let said = format!("the type {}", schema["type"]);
        for required in [json!([]), json!(["a"])] {
            let whole = json!({"type": "object", "properties": {"a": schema}, "required": required,
                "additionalProperties": false});
            let mut values = Values::new(None);
            let (id, warnings) = values.add(&whole).unwrap();
            let is_told = |one: &SchemaWarning| one.keyword == "type" && one.reason.contains(&said);
            assert!(matches!(&warnings[..], [one] if one.at == "/properties/a" && is_told(one)), "{warnings:?}");
            let strict = Reader::new(&Arguments::Json, "", true, Gaps::Lines);
            let takes = |value: Value| {
                let text = json!({"a": value}).to_string();
                matches!(read(&strict, &values, id, text.as_bytes()), Was::Over(..))
            };
            assert!(listed.iter().all(|value| takes(value.clone())), "{whole}");
            assert!(![json!(7), json!("x"), json!(null), json!([])].into_iter().any(takes), "{whole}");
            let error = Values::new(None).add_strict(&whole);
            assert_eq!(error.is_err(), required == json!(["a"]), "{error:?}");
        }
    }
}

#[test]
fn values_that_nothing_satisfies_are_named() {
    for (schema, said) in [
        (json!({"enum": [1, 2], "const": 3}), ["const and enum", "const is 3", "enum lists 1, 2"]),
        (json!({"enum": []}), ["enum lists no value", "list", "leave enum out"]),
        (json!({"$ref": "#/$defs/e", "type": "boolean"}), ["enum and type", "\"boolean\"", "enum lists \"x\""]),
        (json!({"allOf": [{"type": "string"}, {"enum": [[]]}]}), ["enum and type", "\"string\"", "enum lists []"]),
    ] {
        let mut whole = json!({"type": "object", "properties": {"other": {"enum": []}, "a": schema},
            "required": ["a"], "$defs": {"e": {"enum": ["x"]}, "unused": {"enum": []}}});
        let error = Values::new(None).add(&whole).unwrap_err();
        assert_eq!(error.placed().0, "/properties/a", "{error}");
        for said in said {
            assert!(error.placed().1.contains(said), "{said}: {error}");
        }
        // Where it need not come it is left out, and nothing comes in its place.
        whole["required"] = json!([]);
        let mut values = Values::new(None);
        let (id, warnings) = values.add(&whole).unwrap();
        let of_a: Vec<_> = warnings.iter().filter(|warning| warning.at == "/properties/a").collect();
        assert!(matches!(of_a[..], [one] if said.iter().all(|said| one.reason.contains(said))), "{warnings:?}");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let strict = Reader::new(&Arguments::Json, "", true, Gaps::Lines);
        let takes = |text: &str| matches!(read(&strict, &values, id, text.as_bytes()), Was::Over(..));
        assert!(takes("{}") && !takes(r#"{"a":1}"#) && !takes(r#"{"b":1}"#));
    }
    // What fits somewhere contradicts nothing.
    for schema in [
        json!({"type": "integer", "enum": [1, "b"]}),
        json!({"type": "number", "const": 2}),
        json!({"type": "string", "nullable": true, "enum": [null]}),
        json!({"type": "str", "enum": ["a"]}),
        json!({"type": "string", "not": {"type": "string", "enum": [1]}}),
    ] {
        let whole = json!({"type": "object", "properties": {"a": schema}, "required": ["a"]});
        assert_eq!(Values::new(None).add(&whole).unwrap().1, vec![], "{whole}");
    }
}

/// What a schema of a property allows, and what it does not, without a warning.
#[track_caller]
fn check(whole: &Value, allowed: &[Value], others: &[Value]) {
    let mut values = Values::new(None);
    let (id, warnings) = values.add(whole).unwrap();
    assert_eq!(warnings, vec![], "{whole}");
    let strict = Reader::new(&Arguments::Json, "", true, Gaps::Lines);
    let takes = |value: &Value| {
        let text = json!({"a": value}).to_string();
        matches!(read(&strict, &values, id, text.as_bytes()), Was::Over(..))
    };
    for value in allowed {
        assert!(takes(value), "{whole} {value}");
    }
    for value in others {
        assert!(!takes(value), "{whole} {value}");
    }
}

fn of(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

#[test]
fn schemas_as_tools_have_them() {
    let none = Value::Null;
    let check_of = |schema: Value, allowed: &[Value], others: &[Value]| check(&of(&schema), allowed, others);
    check_of(json!({"type": ["string", "null"], "enum": ["x", null]}), &[json!("x"), none.clone()], &[json!("y")]);
    check_of(json!({"type": ["string", "null"], "enum": ["x"]}), &[json!("x")], std::slice::from_ref(&none));
    check_of(json!({"type": "string", "nullable": true}), &[json!("x"), none.clone()], &[json!(1)]);
    check_of(json!({"type": "string", "enum": ["x"], "nullable": true}), &[json!("x"), none.clone()], &[json!("y")]);
    check_of(json!({"type": "integer", "nullable": false}), &[json!(1)], &[none]);
    let numbers = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    check_of(numbers, &[json!({}), json!({"x": 1, "y": 2})], &[json!({"x": "1"})]);
    let told = json!({"type": "integer", "title": "A", "default": 3, "description": "n", "examples": [1]});
    check_of(told, &[json!(1)], &[json!("1")]);
    check(&json!({"properties": {"a": {"type": "integer"}}}), &[json!(1)], &[json!("1")]);
    check_of(json!({"const": {"x": [1, "y"]}}), &[json!({"x": [1, "y"]})], &[json!({"x": [1]}), json!({})]);
    check_of(json!({"enum": [{"x": 1}, [2], "y"]}), &[json!({"x": 1}), json!([2]), json!("y")], &[json!({"x": 2})]);
}

#[test]
fn references_as_tools_have_them() {
    let properties = json!({"next": {"$ref": "#/definitions/tree"}, "v": {"type": "integer"}});
    let tree = json!({"type": "object", "properties": properties});
    check(
        &json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/tree"}}, "definitions": {"tree": tree}}),
        &[json!({"v": 1, "next": {"next": {"v": 2}}}), json!({})],
        &[json!({"next": {"next": 2}})],
    );
    let defs = json!({"size": {"type": "integer", "minimum": 1}, "unit": {"enum": ["k", "m"]}});
    let whole = |schema: Value| json!({"type": "object", "properties": {"a": schema}, "$defs": defs});
    let siblings = json!({"$ref": "#/$defs/size", "description": "how large", "maximum": 3, "default": 2});
    check(&whole(siblings), &[json!(1), json!(3)], &[json!(0), json!(4)]);
    check(&whole(json!({"$ref": "#/$defs/unit", "nullable": true})), &[json!("k"), Value::Null], &[json!("x")]);
    check(&whole(json!({"allOf": [{"$ref": "#/$defs/unit"}], "default": "k"})), &[json!("k")], &[json!("x")]);
    let args = json!({"$ref": "#/$defs/args", "$defs": {"args": of(&json!({"type": "null"}))}});
    check(&args, &[Value::Null], &[json!(1)]);
}

#[test]
fn patterns_with_lengths() {
    let pairs = json!({"type": "string", "pattern": "^(ab)*$", "minLength": 3, "maxLength": 5});
    check(&of(&pairs), &[json!("abab")], &[json!("ab"), json!("ababab"), json!("aba")]);
    let found = json!({"type": "string", "pattern": "é", "maxLength": 3});
    check(&of(&found), &[json!("é"), json!("xéé")], &[json!("xyzé"), json!("xyz")]);
    let format = json!({"type": "string", "format": "ipv4", "maxLength": 8});
    check(&of(&format), &[json!("1.1.1.22")], &[json!("1.1.11.22")]);
    let nothing = json!({"type": "string", "pattern": "^(ab)*$", "minLength": 3, "maxLength": 3});
    let mut needs = of(&nothing);
    needs["required"] = json!(["a"]);
    assert_eq!(Values::new(None).add(&needs).unwrap_err().placed().0, "/properties/a");
}

/// Values for this style alone.
fn within(arguments: &Arguments) -> Values {
    let mut limits = Limits::default();
    limits.add(arguments);
    Values::new(limits.writable())
}

#[test]
fn what_cannot_be_written_is_left_out_or_refused() {
    let add = |arguments: &Arguments, schema: Value| {
        let mut whole = of(&schema);
        whole["required"] = json!(["a"]);
        within(arguments).add(&whole).map(|(_, warnings)| warnings.len()).map_err(|error| error.placed().0)
    };
    let refused = || Err("/properties/a".to_owned());
    let end = "x</parameter>y";
    assert_eq!(add(&qwen(), json!({"enum": [end, "b"]})), Ok(1));
    assert_eq!(add(&qwen(), json!({"enum": [end]})), refused());
    assert_eq!(add(&keywords(), json!({"enum": [end]})), Ok(0));
    assert_eq!(add(&qwen(), json!({"type": "string", "pattern": "^x</parameter>"})), refused());
    assert_eq!(add(&gemma(), json!({"const": "<|\"|>"})), refused());
    let key = |key: &str| json!({"type": "object", "properties": {key: {}}, "required": [key]});
    for bad in ["a b", "a:b", "{", "", "a\"b"] {
        assert_eq!(add(&gemma(), key(bad)), refused(), "{bad:?}");
        assert_eq!(add(&keywords(), key(bad)), Ok(0), "{bad:?}");
    }
    assert_eq!(within(&keywords()).add(&key("a=b")).unwrap_err().placed().0, "");
    assert_eq!(within(&qwen()).add(&key("a>b")).unwrap_err().placed().0, "");
    // Where only one way to go on leads there, the way is not begun.
    let mut values = within(&qwen());
    let schema = of(&json!({"type": "string", "pattern": "^(a</parameter>|a<b|c</parameter>)$"}));
    let (id, _) = values.add(&schema).unwrap();
    let strict = Reader::new(&qwen(), "</function>", true, Gaps::Lines);
    let read = |text: &str| read(&strict, &values, id, text.as_bytes());
    assert!(matches!(read("<parameter=a>\na<b\n</parameter>\n</function>"), Was::Over(..)));
    assert_eq!(read("<parameter=a>\nc"), Was::Dead(14));
    assert_eq!(read("<parameter=a>\na</"), Was::Dead(16));
}

#[test]
fn both_of_two_closed_objects_hold() {
    let closed = |key: &str| {
        let properties = json!({"both": {"type": "integer"}, key: {}});
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let all = json!({"allOf": [closed("x"), closed("y")]});
    check(&of(&all), &[json!({"both": 1}), json!({})], &[json!({"x": 1}), json!({"y": 1})]);
}

#[test]
fn what_multiplies_is_refused_at_its_place_and_said_twice_is_once() {
    let work = || Work::new(trie_core::work::Limits::default().bytes(1 << 24));
    let union = |nth: usize| {
        let ways: Vec<Value> = (2..8).map(|way| json!({"multipleOf": 10 * nth + way})).collect();
        json!({ "anyOf": ways })
    };
    let unions: Vec<Value> = (0..8).map(union).collect();
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer", "allOf": unions}}});
    let (at, problem) = work().run(|| Values::new(None).add(&schema)).unwrap_err().placed();
    assert!(at.starts_with("/properties/x"), "{at}");
    assert!(problem.starts_with("anyOf is not supported: what holds at once here is too much"), "{problem}");
    let mut defs = json!({"a30": {"type": "string", "pattern": "^a"}});
    for nth in 0..30 {
        let next = json!({"$ref": format!("#/$defs/a{}", nth + 1)});
        defs[format!("a{nth}")] = json!({"allOf": [next, next]});
    }
    let twice = json!({"type": "object", "$defs": defs, "properties": {"x": {"$ref": "#/$defs/a0"}}});
    assert!(work().run(|| Values::new(None).add(&twice)).unwrap().1.is_empty());
}
