//! JSON Schema: what is allowed, what is refused, and with which words.

use crate::common::{after, allows, legal, spaced, vocab};
use trie_core::{Constraint, Ending};
use trie_rules::ByRule;
use trie_schema::{JsonSchema, SchemaError, SchemaOptions, Whitespace};

fn guided(schema: &str) -> ByRule<JsonSchema> {
    JsonSchema::new(schema, spaced()).unwrap().over(&vocab()).unwrap()
}

fn refused(schema: &str) -> SchemaError {
    JsonSchema::new(schema, SchemaOptions::default()).unwrap_err()
}

#[test]
fn documents_made_by_hand() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (r#"{"type":"boolean"}"#, &["true", "false"], &["null", "1", "True", "tru", ""]),
        (
            r#"{"type":"integer","minimum":-3,"maximum":12}"#,
            &["-3", "0", "9", "12"],
            &["-4", "13", "01", "+1", "1.5", "100", "-0x"],
        ),
        (r#"{"type":"integer","multipleOf":3}"#, &["0", "3", "-6", "12"], &["1", "4", "-5"]),
        (
            r#"{"type":"string","maxLength":2}"#,
            &["\"\"", "\"é日\"", r#""\n\"""#, r#""\u00e9a""#],
            &["\"abc\"", "\"a", "a"],
        ),
        (r#"{"type":"string","pattern":"^a+b$"}"#, &["\"ab\"", "\"aab\""], &["\"b\"", "\"abb\"", "\"xab\""]),
        (r#"{"type":"string","pattern":"^\\s$"}"#, &["\"\u{feff}\"", "\"\u{a0}\"", "\" \""], &["\"\u{85}\"", "\"a\""]),
        (
            r#"{"type":"string","pattern":"^[^\\s]\\S$"}"#,
            &["\"a\u{85}\""],
            &["\"a\u{feff}\"", "\"\u{feff}a\"", "\"a \""],
        ),
        (
            r#"{"type":"object","dependentRequired":{"a":["b"]}}"#,
            &[r#"{"a":1,"b":2}"#, r#"{"b":1}"#, r#"{"c":1,"b":2}"#, "{}"],
            &[r#"{"a":1}"#, r#"{"a":1,"c":2}"#],
        ),
        (r#"{"type":"string","pattern":"b"}"#, &["\"b\"", "\"abc\""], &["\"a\"", "\"\""]),
        (
            r#"{"enum":["red","green",3,null,{"a":[1]}]}"#,
            &["\"red\"", "3", "null", r#"{"a": [1]}"#],
            &["\"re\"", "4", "{}"],
        ),
        (r#"{"const":{"a":"é"}}"#, &[r#"{"a":"é"}"#], &[r#"{"a":"e"}"#]),
        (
            r#"{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}"#,
            &["[1]", "[1, 2,3]", "[ 1 ]"],
            &["[]", "[1,2,3,4]", "[1,]", "[\"a\"]"],
        ),
        (r#"{"type":"array","prefixItems":[{"type":"null"}],"items":false}"#, &["[]", "[null]"], &["[1]", "[null,1]"]),
        (
            r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["a"],
               "additionalProperties":false}"#,
            &[r#"{"a":1}"#, r#"{"a":1,"b":true}"#, "{\n \"a\" : 10 ,\n \"b\": false }"],
            &["{}", r#"{"b":true}"#, r#"{"a":1,"c":1}"#, r#"{"a":1,"a":1}"#, r#"{"a":"1"}"#, r#"{"a":1,}"#],
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#,
            &["{}", r#"{"a":1}"#, r#"{"x":[1,{"y":null}]}"#, r#"{"a":1,"ab":"x"}"#],
            &[r#"{"a":"x"}"#, "[]"],
        ),
        (
            r#"{"anyOf":[{"type":"integer"},{"type":"array","items":{"const":"a"}}]}"#,
            &["7", "[\"a\"]"],
            &["[7]", "\"a\""],
        ),
        (
            r##"{"$defs":{"tree":{"type":"object","properties":{"l":{"$ref":"#/$defs/tree"},"v":{"type":"integer"}},
               "required":["v"],"additionalProperties":false}},"$ref":"#/$defs/tree"}"##,
            &[r#"{"v":1}"#, r#"{"l":{"l":{"v":1},"v":2},"v":3}"#],
            &["{}", r#"{"l":{},"v":1}"#],
        ),
        ("true", &["1", "[]", "{\"a\": \"b\"}", "-1.5e3"], &["[", "nul", "{\"a\"}"]),
    ];
    for (schema, yes, no) in cases {
        let constraint = guided(schema);
        for text in *yes {
            assert!(allows(&constraint, text), "{schema} refuses {text}");
        }
        for text in *no {
            assert!(!allows(&constraint, text), "{schema} allows {text}");
        }
    }
}

#[test]
fn an_end_is_may_or_must() {
    let constraint = guided(r#"{"type":"integer","minimum":1,"maximum":12}"#);
    let ending = |text| constraint.ending(&after(&constraint, text).unwrap());
    assert_eq!((ending(""), ending("1"), ending("12")), (Ending::No, Ending::May, Ending::Must));
    let constraint = guided(r#"{"enum":["a"]}"#);
    let ending = |text| constraint.ending(&after(&constraint, text).unwrap());
    assert_eq!((ending("\"a"), ending("\"a\"")), (Ending::No, Ending::Must));
}

#[test]
fn nothing_follows_a_whole_document() {
    for (schema, text) in [(r#"{"type":"object"}"#, "{}"), ("true", "[1]"), (r#"{"type":"string"}"#, "\"a\"")] {
        let constraint = guided(schema);
        assert_eq!(constraint.ending(&after(&constraint, text).unwrap()), Ending::Must, "{text}");
        assert!(after(&constraint, &format!("{text} ")).is_none() && after(&constraint, &format!(" {text}")).is_none());
    }
}

#[test]
fn tokens_that_are_no_text_never_come() {
    let constraint = guided("true");
    let last = vocab().n_vocab() - 1;
    for odd in [last, last - 1, 0xff] {
        assert!(constraint.advance(&mut constraint.start(), crate::common::id(odd)).is_none());
        assert!(!legal(&constraint, &constraint.start()).0.contains(&crate::common::id(odd)));
    }
}

#[test]
fn a_token_of_a_thousand_bytes_may_come() {
    let constraint = guided(r#"{"type":"array","items":{"type":"integer"}}"#);
    let long = crate::common::id(vocab().n_vocab() - 3);
    let at = after(&constraint, "[").unwrap();
    assert!(legal(&constraint, &at).0.contains(&long), "1,100 blanks and a digit");
    assert!(constraint.advance(&mut at.clone(), long).is_some());
    assert!(!legal(&constraint, &constraint.start()).0.contains(&long));
}

#[test]
fn options_change_blanks_and_escapes() {
    let schema = r#"{"type":"array","items":{"type":"string"}}"#;
    let with = |change: fn(&mut SchemaOptions)| {
        let mut options = SchemaOptions::default();
        change(&mut options);
        JsonSchema::new(schema, options).unwrap().over(&vocab()).unwrap()
    };
    let compact = with(|_| ());
    assert!(allows(&compact, r#"["a", "\u00e9"]"#) && allows(&compact, r#"["a","b"]"#));
    for text in [r#"[ "a"]"#, r#"["a" ]"#, r#"["a" ,"b"]"#, r#"["a",  "b"]"#, "[\"a\",\n\"b\"]", "[\"a\",\t\"b\"]"] {
        assert!(!allows(&compact, text), "{text}");
    }
    let flexible = with(|options| options.whitespace = Whitespace::Flexible);
    assert!(allows(&flexible, "[\r\n\t  \"a\"        ,\n\n\"b\" ]") && !allows(&flexible, "[         \"a\"]"));
    let dense = with(|options| options.whitespace = Whitespace::None);
    assert!(allows(&dense, r#"["a","b"]"#) && !allows(&dense, r#"["a", "b"]"#));
    let line = with(|options| options.whitespace = Whitespace::Pattern(" ?".to_owned()));
    assert!(allows(&line, r#"["a", "b"]"#) && !allows(&line, "[\"a\",\n\"b\"]"));
    let plain = with(|options| options.unicode_escapes = false);
    assert!(allows(&plain, "[\"é\"]") && !allows(&plain, r#"["\u00e9"]"#) && allows(&plain, r#"["\u0001"]"#));
}

#[test]
fn what_is_left_out_is_said() {
    let schema = r#"{"type":"string","pattern":"(a)\\1","maxLength":3}"#;
    assert!(matches!(refused(schema), SchemaError::Invalid { .. }), "{:?}", refused(schema));
    let mut options = SchemaOptions::default();
    options.lenient = true;
    let schema = JsonSchema::new(schema, options).unwrap();
    assert_eq!(schema.warnings(), ["pattern is not held"]);
    assert!(matches!(schema.unheld(), [one] if one.at.is_empty() && one.keyword == "pattern"));
    let schema = schema.over(&vocab()).unwrap();
    assert!(allows(&schema, "\"ab\"") && !allows(&schema, "\"abcd\""));
    // No pattern at all is no pattern that is not supported.
    for invalid in [r"(a", r"(a)\\2", r"\\k<x>", r"[", r"a\\1)", r"(a)\\1["] {
        let mut options = SchemaOptions::default();
        options.lenient = true;
        let made = JsonSchema::new(&format!(r#"{{"pattern":"{invalid}"}}"#), options);
        assert!(matches!(made, Err(SchemaError::Invalid { .. })), "{invalid}: {made:?}");
    }
    assert!(JsonSchema::new("true", SchemaOptions::default()).unwrap().warnings().is_empty());
}

#[test]
fn many_patterns_that_are_too_large_are_found_out_soon() {
    let patterns: Vec<String> = (20..28).map(|nth| format!(r#""a{nth}":{{"pattern":"a.{{{nth}}}b"}}"#)).collect();
    let few = r#""b":{"pattern":"^a.{9}$"}"#;
    let mut options = SchemaOptions::default();
    options.lenient = true;
    let schema = format!(r#"{{"properties":{{{},{few}}}}}"#, patterns.join(","));
    let schema = JsonSchema::new(&schema, options).unwrap();
    let reasons: Vec<&str> = schema.unheld().iter().map(|one| &*one.reason).collect();
    let with = |bytes: &str| reasons.iter().filter(|reason| reason.contains(bytes)).count();
    assert_eq!((reasons.len(), with("more than 33554432 bytes"), with("more than 1048576 bytes")), (8, 2, 6));
    let schema = schema.over(&vocab()).unwrap();
    assert!(allows(&schema, r#"{"b":"a123456789"}"#) && !allows(&schema, r#"{"b":"a"}"#));
}

/// What has to be counted beside what another part says of the same objects.
#[test]
fn members_are_counted_beside_those_of_another_part() {
    let own = r#""properties":{"a":{"type":"integer"},"b":{"type":"boolean"}}"#;
    let beside = r#","$defs":{"two":{"title":"x","minProperties":2}}"#;
    for (more, yes, no) in [
        (r#""allOf":[{"required":["a"]},{"minProperties":2}]"#, r#"{"a":1,"b":true}"#, r#"{"a":1}"#),
        (r#""allOf":[{"maxProperties":1},{"minProperties":1}]"#, r#"{"b":true}"#, r#"{"a":1,"b":true}"#),
        (r##""$ref":"#/$defs/two""##, r#"{"a":1,"c":null}"#, r#"{"c":1}"#),
        (r#""allOf":[{"not":{"maxProperties":1}}]"#, r#"{"a":1,"b":true}"#, "{}"),
        (r#""oneOf":[{"minProperties":2},{"type":"null"}]"#, r#"{"a":1,"b":true}"#, r#"{"a":1}"#),
    ] {
        let schema = guided(&format!("{{\"type\":[\"object\",\"null\"],{own},{more}{beside}}}"));
        assert!(allows(&schema, yes) && !allows(&schema, no), "{more}");
    }
}

#[test]
fn errors_have_their_place() {
    let text = |schema| refused(schema).to_string();
    assert_eq!(text("{\"a\": 1,\n  }"), "the schema is not JSON: line 2, column 3: trailing comma");
    assert_eq!(text("[1]"), "a schema is an object or a boolean, not [1]");
    assert_eq!(text("false"), "no document is allowed: schema is false");
    assert!(
        text(r#"{"properties":{"x/y":{"items":{"pattern":"(a)\\1"}}}}"#)
            .starts_with("at /properties/x~1y/items: invalid pattern: ")
    );
    assert_eq!(
        text(r##"{"$defs":{"p":{"type":"string","pattern":"("}},"properties":{"a":{"$ref":"#/$defs/p"}}}"##)
            .split(": ")
            .next(),
        Some("at /$defs/p")
    );
    assert!(
        text(r#"{"properties":{"a":{"type":"strin"}}}"#).starts_with("at /properties/a: invalid type: expected null, ")
    );
    assert!(
        text(r#"{"properties":{"a":{"multipleOf":0}}}"#).starts_with("at /properties/a: invalid multipleOf: expected ")
    );
    assert!(text(r##"{"properties":{"a":{"$ref":"#/$defs/none"}}}"##).contains("none"), "the name that is unknown");
    let SchemaError::Nothing { at, reason } =
        refused(r#"{"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":2}},"required":["a"]}"#)
    else {
        panic!("nothing is allowed")
    };
    assert_eq!(at, "/properties/a");
    assert!(reason.contains('3') && reason.contains('2'), "{reason}");
}

#[test]
fn what_can_never_be_completed_is_refused() {
    let endless = r##"{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}"##;
    assert!(matches!(refused(endless), SchemaError::Nothing { .. }), "{:?}", refused(endless));
    let part = r##"{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/loop"}],
        "$defs":{"loop":{"type":"array","items":{"$ref":"#/$defs/loop"},"minItems":1}}}"##;
    // What one of several says nothing of is left to the others.
    assert!(allows(&guided(part), "12") && !allows(&guided(part), "[]"));
    let fine = r##"{"type":"array","items":{"$ref":"#"}}"##;
    assert!(allows(&guided(fine), "[[],[[]]]"));
}

#[test]
fn hostile_schemas_are_refused_without_harm() {
    let deep = format!("{}true{}", r#"{"items":"#.repeat(120), "}".repeat(120));
    let _ = JsonSchema::new(&deep, SchemaOptions::default());
    assert!(matches!(
        JsonSchema::new(&format!("{}true{}", r#"{"items":"#.repeat(5000), "}".repeat(5000)), SchemaOptions::default()),
        Err(SchemaError::Json { .. })
    ));
    let mut nested = serde_json::json!(true);
    for _ in 0..200 {
        nested = serde_json::json!({ "items": nested });
    }
    assert!(matches!(JsonSchema::of(nested, SchemaOptions::default()), Err(SchemaError::TooLarge { .. })));
    // Each definition is followed inside the one before.
    for (count, siblings) in [(15_000, ""), (3000, r#","minLength":1"#)] {
        let chain = (0..count).map(|n| format!(r##""a{n}":{{"$ref":"#/$defs/a{}"{siblings}}}"##, n + 1));
        let chain = chain.collect::<Vec<_>>().join(",");
        let schema = format!(r##"{{"$defs":{{{chain},"a{count}":{{"type":"string"}}}},"$ref":"#/$defs/a0"}}"##);
        let made = JsonSchema::new(&schema, SchemaOptions::default());
        assert!(made.is_ok() || matches!(made, Err(SchemaError::TooLarge { .. } | SchemaError::Invalid { .. })));
    }
    for pattern in
        ["(a{1,1000}){1,1000}", "(((a?){30}a?){30}a?){30}", "(.*a.{20}){20}", "^([0-9a-f]{2}(?:x|y)*){1,5000}$"]
    {
        let schema = serde_json::json!({"type": "string", "pattern": pattern});
        let Ok(schema) = JsonSchema::of(schema, SchemaOptions::default()) else { continue };
        let Ok(constraint) = schema.over(&vocab()) else { continue };
        let mut random = crate::common::Random(7);
        let mut at = constraint.start();
        for _ in 0..200 {
            let (tokens, ending) = legal(&constraint, &at);
            if tokens.is_empty() {
                assert!(
                    ending == Ending::Must || constraint.problem(&at).is_some(),
                    "nothing comes, and nothing is said"
                );
                break;
            }
            constraint.advance(&mut at, *random.one(&tokens)).expect("what is legal is taken");
        }
    }
}

#[test]
fn references_by_pointer_anchor_and_id() {
    for (schema, yes, no) in [
        (r##"{"$defs":{"a/b":{"type":"integer"}},"$ref":"#/$defs/a~1b"}"##, "7", "true"),
        (r##"{"$defs":{"x":{"$anchor":"here","type":"null"}},"$ref":"#here"}"##, "null", "7"),
        (
            r#"{"$defs":{"x":{"$id":"https://example.com/x","type":"boolean"}},"$ref":"https://example.com/x"}"#,
            "true",
            "7",
        ),
    ] {
        let constraint = guided(schema);
        assert!(allows(&constraint, yes) && !allows(&constraint, no), "{schema}");
    }
    // Nothing is fetched.
    let error = refused(r#"{"properties":{"a":{"$ref":"https://example.com/other"}}}"#);
    assert!(error.to_string().contains("example.com"), "{error}");
}

/// Returns whether each run of whitespace outside strings is one space behind a comma or a colon: read from the text
/// alone.
fn is_compact(text: &str) -> bool {
    let (mut inside, mut escaped, mut before) = (false, false, ' ');
    text.chars().all(|sign| {
        let fits = inside || !sign.is_whitespace() || sign == ' ' && matches!(before, ',' | ':');
        (inside, escaped) = match sign {
            _ if escaped => (inside, false),
            '\\' if inside => (inside, true),
            '"' => (!inside, false),
            _ => (inside, false),
        };
        before = sign;
        fits
    })
}

#[test]
fn compact_documents_have_one_space_behind_a_sign_or_none() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"enum":[1,"x, y: z",[2,{"b":3}]]}},
        "c":{"type":"number"}},"required":["a"]}"#;
    let compact = JsonSchema::new(schema, SchemaOptions::default()).unwrap().over(&vocab()).unwrap();
    let mut random = crate::common::Random(47);
    let parts = [
        "{",
        "\"a\"",
        ":",
        "[",
        "1",
        ",",
        "\"x, y: z\"",
        ",",
        "[",
        "2",
        ",",
        "{",
        "\"b\"",
        ":",
        "3",
        "}",
        "]",
        "]",
        ",",
        "\"c\"",
        ":",
        "-4.5",
        "}",
    ];
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut text = String::new();
        let rare = random.below(3) == 0;
        for (at, part) in parts.iter().enumerate() {
            let is_sign = at > 0 && matches!(parts[at - 1], "," | ":");
            if at > 0 && (is_sign && random.below(2) == 0 || rare && random.below(20) == 0) {
                text.push_str(if rare { [" ", "  ", "\n", "\t"][random.below(4)] } else { " " });
            }
            text.push_str(part);
        }
        assert_eq!(allows(&compact, &text), is_compact(&text), "{text:?}");
        *if is_compact(&text) { &mut taken } else { &mut refused } += 1;
    }
    assert!(taken > 2000 && refused > 500, "{taken} taken, {refused} refused");
}
