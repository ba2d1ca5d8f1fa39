//! Properties that hold for any schema and any text, on generated ones.

use super::{Was, gemma, keywords, qwen, read, tagged};
use crate::dialect::{Arguments, Style};
use crate::values::{ArgsState, CONTROL, Gaps, JsonOut, Limits, Nobody, Reader, Step};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use trie_schema::{ValueId, Values};

const ENDS: [&str; 12] = [
    "</parameter>",
    "a</parameter>b",
    "</",
    "<|\"|>",
    "<|\"|",
    "x]]>",
    "<![CDATA[",
    "<![CDATA[a]]>",
    "]<]m[>[</",
    "\n",
    "",
    "null",
];

/// A schema and a value that it allows.
fn pair() -> impl Strategy<Value = (Value, Value)> {
    let text = || "[a-zé\"\\\\\n<' 0-9]{0,6}";
    let leaf = prop_oneof![
        any::<bool>().prop_map(|value| (json!({"type": "boolean"}), json!(value))),
        Just((json!({"type": "null"}), Value::Null)),
        text().prop_map(|value| (json!({"type": "string"}), json!(value))),
        text().prop_map(|value| (json!({"type": ["string", "null"]}), json!(value))),
        (text(), 0usize..4).prop_map(|(value, more)| {
            let chars = value.chars().count();
            (
                json!({"type": "string", "minLength": chars.saturating_sub(more), "maxLength": chars + more}),
                json!(value),
            )
        }),
        (prop::collection::vec(text(), 1..5), 0usize..5).prop_map(|(values, at)| {
            let value = values[at % values.len()].clone();
            (json!({"enum": values}), json!(value))
        }),
        // What ends values in one style or another.
        (prop::collection::vec(select(&ENDS[..]), 1..4), 0usize..4).prop_map(|(values, at)| {
            let value = values[at % values.len()];
            (json!({"enum": values}), json!(value))
        }),
        "[a-f]{1,3}[0-9]{0,2}".prop_map(|value| (json!({"type": "string", "pattern": "^[a-f]+[0-9]*$"}), json!(value))),
        (any::<i32>(), 0i64..100, 0i64..100).prop_map(|(value, below, above)| {
            let (low, high) = (i64::from(value) - below, i64::from(value) + above);
            (json!({"type": "integer", "minimum": low, "maximum": high}), json!(value))
        }),
        any::<i64>().prop_map(|value| (json!({"type": "integer"}), json!(value))),
        (-1e6..1e6f64).prop_map(|value| (json!({"type": "number"}), json!(value))),
        (-1000i32..1000, 0i32..50, 0i32..50).prop_map(|(value, below, above)| {
            let of = |cents: i32| f64::from(cents) / 100.0;
            (json!({"type": "number", "minimum": of(value - below), "maximum": of(value + above)}), json!(of(value)))
        }),
        (-90i64..90, 1i64..400, 0i64..9, any::<bool>()).prop_map(|(times, step, room, is_integer)| {
            let schema = |kind: &str, step: Value, low: Value, high: Value| {
                json!({"type": kind, "multipleOf": step, "minimum": low, "maximum": high})
            };
            let (value, low, high) = (times * step, (times - room) * step, (times + room) * step + 1);
            let cents = |number: i64| json!(number as f64 / 100.0);
            if is_integer {
                (schema("integer", json!(step), json!(low), json!(high)), json!(value))
            } else {
                // Multiples of a whole number are written without a point.
                let written = if step % 100 == 0 { json!(value / 100) } else { cents(value) };
                (schema("number", cents(step), cents(low), cents(high)), written)
            }
        }),
        Just((json!({}), json!({"a": [1, null, "x"]}))),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0usize..3).prop_map(|((schema, value), count)| (
                json!({"type": "array", "items": schema}),
                json!(vec![value; count])
            )),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|pairs| {
                let (schemas, values): (Vec<Value>, Vec<Value>) = pairs.into_iter().unzip();
                (
                    json!({"type": "array", "prefixItems": schemas, "items": false, "minItems": values.len()}),
                    json!(values),
                )
            }),
            object(inner.clone()),
            (inner.clone(), inner).prop_map(|((schema, value), (other, _))| (json!({"anyOf": [other, schema]}), value)),
        ]
    })
}

/// An object of such values.
fn object(inner: impl Strategy<Value = (Value, Value)>) -> impl Strategy<Value = (Value, Value)> {
    let odd = select(&["a b", "a:b", "a=b", "<x", "é", ">", "", "{", "\"", "item", "</"][..]).prop_map(str::to_owned);
    let key = prop_oneof![8 => "[a-c]{1,2}", 1 => odd];
    let keys = prop::collection::btree_map(key, (inner, any::<[bool; 2]>()), 0..4);
    (keys, any::<bool>(), any::<[Option<u8>; 2]>()).prop_map(|(keys, open, counts)| {
        let (mut properties, mut value, mut required) = (Map::new(), Map::new(), Vec::new());
        for (key, ((schema, of), [is_required, is_there])) in keys {
            properties.insert(key.clone(), schema);
            if is_required {
                required.push(key.clone());
            }
            if is_required || is_there {
                value.insert(key, of);
            }
        }
        if open {
            value.insert("other".to_owned(), json!([true]));
        }
        let mut schema = json!({"type": "object", "properties": properties, "required": required,
            "additionalProperties": open});
        let there = value.len() as u64;
        // The search for an end does not find keys that may have any name; `held.rs` has such objects.
        if let Some(fewer) = counts[0].filter(|_| !open) {
            schema["minProperties"] = there.saturating_sub(u64::from(fewer % 3)).into();
        }
        if let Some(more) = counts[1] {
            schema["maxProperties"] = (there + u64::from(more % 3)).into();
        }
        (schema, Value::Object(value))
    })
}

fn top() -> impl Strategy<Value = (Value, Value)> {
    object(pair().boxed())
}

/// Without newlines around values, and with sections.
fn glm() -> Arguments {
    let Arguments::Tagged(mut keyed) = tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n") else {
        panic!("it is between tags")
    };
    keyed.cdata = true;
    Arguments::Tagged(keyed)
}

/// With texts in quotes too.
fn quoted(key_start: &str, opened: &str, value_end: &str) -> Arguments {
    let Arguments::Tagged(mut keyed) = tagged(key_start, opened, value_end) else { panic!("it is between tags") };
    keyed.quoted = true;
    Arguments::Tagged(keyed)
}

/// All styles, with the text after the arguments.
fn styles() -> Vec<(Arguments, &'static str)> {
    let mark = || "]<]m[>[".to_owned();
    vec![
        (Arguments::Json, ""),
        (Arguments::JsonText, ""),
        (glm(), "</tool_call>"),
        (keywords(), ")"),
        (gemma(), "}"),
        (qwen(), "</function>"),
        (Arguments::Elements { mark: mark(), quoted: false }, "]<]m[>[</invoke>"),
        (Arguments::Elements { mark: String::new(), quoted: false }, "</invoke>"),
        (Arguments::Elements { mark: String::new(), quoted: true }, "</invoke>"),
        (Arguments::Literal(Style::python()), ""),
        (Arguments::Keywords(Style { keys_apart: true, ..Style::python() }), ")"),
        (quoted("<parameter=", ">", "</parameter>"), "</function>"),
        (quoted("", ": ", "\n"), "</lines>"),
    ]
}

/// Texts that a strict reader lets be written, one after the other, then soon to an end; those that it refuses are left
/// out.
fn pieced(reader: &Reader, values: &Values, id: ValueId, parts: &[&str]) -> Result<Option<Vec<u8>>, Vec<u8>> {
    let (mut state, mut text) = (reader.begin(values, id), Vec::new());
    for part in parts {
        let mut next = state.clone();
        let fits = |byte: u8| reader.step(values, &mut next, byte, &mut Nobody) == Step::Inside;
        if part.bytes().all(fits) {
            text.extend(part.bytes());
            state = next;
        }
    }
    finished(reader, values, state, text)
}

/// Texts that values begin and end with, that stand between them, and that are in them.
fn delimiters() -> impl Strategy<Value = Vec<&'static str>> {
    let parts = vec![
        "<parameter=",
        "a",
        "b",
        "o",
        ">",
        ">\n",
        "\n",
        "</parameter>",
        "\n</parameter>\n",
        "</function>",
        "a:",
        "b:",
        "o:{",
        "<|\"|>",
        "{",
        "}",
        "[",
        "]",
        ",",
        " ",
        "]<]m[>[<a>",
        "]<]m[>[</a>",
        "]<]m[>[<b>",
        "]<]m[>[</b>",
        "]<]m[>[<o>",
        "]<]m[>[</o>",
        "]<]m[>[",
        "<a>",
        "</a>",
        "<b>",
        "</b>",
        "<o>",
        "</o>",
        "]<]m[>[</invoke>",
        "</invoke>",
        "<arg_key>",
        "</arg_key>\n<arg_value>",
        "</arg_value>",
        "</tool_call>",
        "<",
        "/",
    ];
    prop::collection::vec(select(parts), 0..80)
}

/// Texts of all styles, in any order.
fn texts() -> impl Strategy<Value = Vec<&'static str>> {
    let parts = vec![
        "<parameter=",
        ">",
        "\n",
        "</parameter>",
        "</function>",
        "a",
        "b=",
        "a:",
        "'",
        "\"",
        "<|\"|>",
        "{",
        "}",
        "[",
        "]",
        ",",
        "1",
        "-",
        ".",
        "true",
        "None",
        "]<]m[>[",
        "<",
        "</",
        "item",
        "é",
        "\\",
        "\\u",
        "d83d",
        ")",
        "</invoke>",
        " ",
    ];
    prop::collection::vec(select(parts), 0..30)
}

/// What may come next, of many bytes.
fn next(reader: &Reader, values: &Values, state: &ArgsState) -> Vec<(u8, Option<ArgsState>)> {
    let bytes = (0..=255u8).filter(|byte| *byte != CONTROL);
    let after = |byte: u8| {
        let mut state = state.clone();
        match reader.step(values, &mut state, byte, &mut Nobody) {
            Step::Inside => Some((byte, Some(state))),
            Step::Done | Step::DoneBefore => Some((byte, None)),
            Step::Dead => None,
        }
    };
    bytes.filter_map(after).collect()
}

/// A text that a strict reader lets be written: at random for so many bytes, then soon to an end, where a search finds
/// one. The error is a text from which there is no end.
fn written(reader: &Reader, values: &Values, id: ValueId, choices: &[u16]) -> Result<Option<Vec<u8>>, Vec<u8>> {
    let (mut state, mut text) = (reader.begin(values, id), Vec::new());
    for &choice in choices {
        let all = next(reader, values, &state);
        let Some((byte, after)) = all.get(usize::from(choice) % all.len().max(1)) else { return Err(text) };
        text.push(*byte);
        let Some(after) = after else { return Ok(Some(text)) };
        state = after.clone();
    }
    finished(reader, values, state, text)
}

/// The text with an end: a search, the nearest ends first. `None` where it gives up.
fn finished(reader: &Reader, values: &Values, state: ArgsState, text: Vec<u8>) -> Result<Option<Vec<u8>>, Vec<u8>> {
    let order = |byte: u8| match byte {
        b'/' => 10,
        b'"' | b'\'' | b'>' => 9,
        b'}' | b']' | b')' | b'<' | b'|' => 8,
        b'0'..=b'9' | b'\\' => 7,
        b',' => 2,
        b' ' | b'\t' => 0,
        b'[' | b'{' => 1,
        _ => 5,
    };
    // Keys of any name differ by what is written of them, and lead on alike.
    let known = |state: &ArgsState| {
        let mut state = state.clone();
        reader.forget_names(values, &mut state);
        state
    };
    let (mut seen, mut states) = (HashSet::from([known(&state)]), vec![(state, text.clone())]);
    let mut open = BinaryHeap::from([(Reverse(0), 0, 0, 0)]);
    while let Some((.., at)) = open.pop() {
        if states.len() > MOST_STATES {
            return Ok(None);
        }
        let (state, text) = states[at].clone();
        for (byte, after) in next(reader, values, &state) {
            let text = [&text[..], &[byte]].concat();
            let Some(after) = after else { return Ok(Some(text)) };
            if seen.insert(known(&after)) {
                open.push((Reverse(after.distance()), text.len(), order(byte), states.len()));
                states.push((after, text));
            }
        }
    }
    Err(text)
}

/// States beyond which a search gives up.
const MOST_STATES: usize = 30_000;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: test_budget::cases(24), max_shrink_iters: 200, ..ProptestConfig::default()
    })]

    #[test]
    fn what_a_schema_allows_is_taken_as_json_is_written((schema, value) in top()) {
        let mut values = Values::new(None);
        let (id, warnings) = values.add(&schema).unwrap();
        prop_assert_eq!(warnings, vec![]);
        let strict = Reader::new(&Arguments::Json, "", true, Gaps::Lines);
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let was = read(&strict, &values, id, text.as_bytes());
            prop_assert_eq!(was, Was::Over(text.len(), text.clone()), "{} {}", schema, text);
        }
    }

    #[test]
    fn what_is_taken_is_what_the_schema_allows(
        (schema, value) in top(), at in any::<prop::sample::Index>(), byte in select(&b"\"{}[],:0159-.tfnae \\"[..]),
    ) {
        let mut values = Values::new(None);
        let (id, _) = values.add(&schema).unwrap();
        let mut text = value.to_string().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let strict = Reader::new(&Arguments::Json, "", true, Gaps::Lines);
        if let Was::Over(_, json) = read(&strict, &values, id, &text) {
            let value: Value = serde_json::from_str(&json).unwrap();
            prop_assert!(super::naive::fits(&schema, &value), "{} {}", schema, json);
        }
    }

    #[test]
    fn runs_are_many_steps_at_once((schema, _) in top(), style in 0usize..12, parts in texts()) {
        let (arguments, after) = styles().swap_remove(style);
        let mut values = Values::new(None);
        let (id, _) = values.add(&schema).unwrap();
        let lenient = Reader::new(&arguments, after, false, Gaps::Lines);
        let text = parts.concat().into_bytes();
        let (mut state, mut out) = (lenient.begin(&values, id), JsonOut::new(&values));
        let (mut stepped, mut stepped_out, mut at) = (state.clone(), JsonOut::new(&values), 0);
        while at < text.len() {
            let run = lenient.run(&mut state, &text[at..], &mut out);
            for &byte in &text[at..at + run] {
                prop_assert_eq!(lenient.step(&values, &mut stepped, byte, &mut stepped_out), Step::Inside);
            }
            prop_assert_eq!((&state, out.text()), (&stepped, stepped_out.text()));
            at += run;
            let Some(&byte) = text.get(at) else { break };
            let step = lenient.step(&values, &mut state, byte, &mut out);
            prop_assert_eq!(step, lenient.step(&values, &mut stepped, byte, &mut stepped_out));
            if step != Step::Inside {
                break;
            }
            at += 1;
        }
    }

    #[test]
    fn no_text_breaks_a_lenient_reader(
        (schema, _) in top(), style in 0usize..12,
        parts in texts(),
    ) {
        let (arguments, after) = styles().swap_remove(style);
        let mut values = Values::new(None);
        let (id, _) = values.add(&schema).unwrap();
        let lenient = Reader::new(&arguments, after, false, Gaps::Lines);
        let text = parts.concat();
        let (mut state, mut out, mut so_far) = (lenient.begin(&values, id), JsonOut::new(&values), String::new());
        for &byte in text.as_bytes() {
            let step = lenient.step(&values, &mut state, byte, &mut out);
            prop_assert!(out.text().starts_with(&so_far));
            so_far = out.text().to_owned();
            match step {
                Step::Inside => {}
                Step::Dead => break,
                Step::Done | Step::DoneBefore => {
                    let value = serde_json::from_str::<Value>(&so_far);
                    prop_assert!(value.is_ok_and(|value| value.is_object()), "{} {:?}", so_far, text);
                    break;
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: test_budget::cases(2000), ..ProptestConfig::default() })]

    #[test]
    fn what_ends_values_is_read_as_it_was_allowed(
        style in 0usize..13, parts in delimiters(), max in 3u32..40, closed in any::<bool>(),
    ) {
        let (arguments, after) = styles().swap_remove(style);
        let text = json!({"type": "string"});
        let inner = json!({"type": "object", "properties": {"a": text, "b": {"type": "array", "items": text}},
            "additionalProperties": !closed});
        let schema = json!({"type": "object", "properties": {"a": text, "b": {"type": "string", "maxLength": max},
            "o": inner}, "additionalProperties": false});
        let mut limits = Limits::default();
        limits.add(&arguments);
        let mut values = Values::new(limits.writable());
        let (id, _) = values.add(&schema).unwrap();
        let [lenient, strict] = [false, true].map(|strict| Reader::new(&arguments, after, strict, Gaps::Lines));
        let text = pieced(&strict, &values, id, &parts);
        prop_assert!(text.is_ok(), "{:?}", text.map_err(|text| String::from_utf8_lossy(&text).into_owned()));
        let Some(text) = text.unwrap() else { return Ok(()) };
        let was = read(&strict, &values, id, &text);
        prop_assert_eq!(&was, &read(&lenient, &values, id, &text), "{:?}", String::from_utf8_lossy(&text));
        let Was::Over(_, json) = was else { panic!("{was:?}") };
        let value: Value = serde_json::from_str(&json).unwrap();
        prop_assert!(super::naive::fits(&schema, &value), "{} {:?}", json, String::from_utf8_lossy(&text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: test_budget::cases(60), max_shrink_iters: 200, ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_begun_can_be_finished_and_is_allowed_and_read_alike(
        (schema, _) in top(), style in 0usize..12, choices in prop::collection::vec(any::<u16>(), 0..60),
    ) {
        let (arguments, after) = styles().swap_remove(style);
        let mut limits = Limits::default();
        limits.add(&arguments);
        let mut values = Values::new(limits.writable());
        let Ok((id, _)) = values.add(&schema) else { return Ok(()) };
        let [lenient, strict] = [false, true].map(|strict| Reader::new(&arguments, after, strict, Gaps::Lines));
        let text = written(&strict, &values, id, &choices);
        prop_assert!(text.is_ok(), "{} {} {:?}", schema, style,
            text.map_err(|text| String::from_utf8_lossy(&text).into_owned()));
        let Some(text) = text.unwrap() else { return Ok(()) };
        let was = read(&strict, &values, id, &text);
        prop_assert_eq!(&was, &read(&lenient, &values, id, &text));
        let Was::Over(_, json) = was else { panic!("{was:?}") };
        let value = serde_json::from_str::<Value>(&json);
        // The only numbers that are too large have very many digits.
        let too_large = value.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
        if too_large && json.contains(['e', 'E']) {
            return Ok(());
        }
        let value = value.unwrap();
        prop_assert!(super::naive::fits(&schema, &value), "{} {} {:?}", schema, json, String::from_utf8_lossy(&text));
    }
}
