//! Compiled schemas of tools that several lists of tools share.

use crate::common::Random;
use serde_json::{Value, json};
use trie_rules::TextSet;
use trie_schema::{Event, SchemaCache, ValueState, Values, Writable};

fn tool(n: u64) -> Value {
    let name = format!("count_{n}");
    json!({"type": "object", "required": ["mode"], "properties": {
        "mode": {"enum": ["fast", format!("m{n}")]}, name: {"type": "integer", "minimum": n, "maximum": n + 20},
        "when": {"type": "string", "format": "date"}, "tags": {"type": "array", "items": {"type": "string"}}}})
}

/// Walks both at random, and compares what may come.
fn compare(one: (&Values, ValueState), other: (&Values, ValueState), random: &mut Random) {
    let (mut one, mut other) = (one, other);
    let signs = [Event::ObjectOpen, Event::ArrayOpen, Event::TextOpen, Event::TextClose, Event::Comma, Event::Close];
    let bytes = b"fastm0123456789-countwheg_d".iter().flat_map(|&byte| [Event::Text(byte), Event::Number(byte)]);
    let events: Vec<Event> = signs.into_iter().chain([Event::NumberEnd]).chain(bytes).collect();
    for _ in 0..200 {
        let mut ways = Vec::new();
        for &event in &events {
            let (mut next, mut twin) = (one.1.clone(), other.1.clone());
            let legal = one.0.tell(&mut next, event);
            assert_eq!(legal, other.0.tell(&mut twin, event), "{event:?}");
            if legal {
                ways.push((next, twin));
            }
        }
        if ways.is_empty() {
            return;
        }
        (one.1, other.1) = random.one(&ways).clone();
    }
}

#[test]
fn shared_schemas_are_those_that_each_list_would_compile() {
    let cache = SchemaCache::default();
    let mut random = Random(0x9E37_79B9);
    for round in 0..30 {
        // Each list has tools of the one before it.
        let (mut shared, mut own) = (Values::sharing(None, &cache), Values::new(None));
        for n in round..round + 5 {
            let (one, other) = (shared.add(&tool(n)).unwrap(), own.add(&tool(n)).unwrap());
            assert_eq!(one.1, other.1);
            compare((&shared, shared.begin(one.0)), (&own, own.begin(other.0)), &mut random);
        }
    }
    assert_eq!(cache.len(), 34);
    cache.clear();
    assert!(cache.is_empty());
}

#[test]
fn what_differs_is_not_shared() {
    let cache = SchemaCache::default();
    let open = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let mut values = Values::sharing(None, &cache);
    assert!(values.add(&open).is_ok());
    assert!(values.add_strict(&open).is_err(), "a strict tool allows no other members");
    // The same texts in another order: members come in the order of the schema where that counts.
    let ordered = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    values.add(&ordered(r#"{"properties": {"a": {}, "b": {}}}"#)).unwrap();
    values.add(&ordered(r#"{"properties": {"b": {}, "a": {}}}"#)).unwrap();
    assert_eq!(cache.len(), 3);
    // Where a text cannot be written, it is no value.
    let plain = TextSet::pattern("^[^<]*$").unwrap();
    let limited = Writable::new(plain.clone(), plain.clone(), plain);
    let listed = json!({"type": "object", "properties": {"a": {"enum": ["<", "x"]}}, "required": ["a"]});
    let begun = |values: &mut Values| {
        let id = values.add(&listed).unwrap().0;
        let mut state = values.begin(id);
        let name = [Event::ObjectOpen, Event::TextOpen, Event::Text(b'a'), Event::TextClose, Event::TextOpen];
        assert!(name.into_iter().all(|event| values.tell(&mut state, event)));
        values.tell(&mut state, Event::Text(b'<'))
    };
    for _ in 0..2 {
        assert!(begun(&mut Values::sharing(None, &cache)));
        assert!(!begun(&mut Values::sharing(Some(limited.clone()), &cache)));
    }
    assert_eq!(cache.len(), 5);
}

#[test]
fn a_cache_is_bounded() {
    let cache = SchemaCache::default();
    for n in 0..1100 {
        let schema = json!({"properties": {"a": {"type": "integer", "minimum": n}}});
        Values::sharing(None, &cache).add(&schema).unwrap();
    }
    assert_eq!(cache.len(), 1024);
    // Few large ones: 4 MiB of text.
    for n in 0..6 {
        let schema =
            json!({"description": "d".repeat(1 << 20), "properties": {"a": {"type": "integer", "minimum": n}}});
        let mut values = Values::sharing(None, &cache);
        let id = values.add(&schema).unwrap().0;
        assert!(values.tell(&mut values.begin(id), Event::ObjectOpen));
    }
    assert_eq!(cache.len(), 3);
}
