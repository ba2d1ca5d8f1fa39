//! Objects and arrays inside each other, up to the limit.

use crate::common::Random;
use serde_json::{Map, Value, json};
use trie_schema::{Event, MOST_LEVELS, SchemaError, ValueState, Values};

/// Turns of a walk down; then it goes up.
const TURNS: usize = 200;

/// Returns a schema of objects, so many of which must stand inside each other.
fn chain(defs: &mut Map<String, Value>, name: &str, levels: usize) -> Value {
    for level in 0..levels {
        let inner = json!({"$ref": format!("#/$defs/{name}{}", level + 1)});
        let object = json!({"type": "object", "properties": {"n": inner}, "required": ["n"]});
        let array = json!({"type": "array", "items": inner, "minItems": 1});
        let one = if level % 3 == 2 { array } else { object };
        defs.insert(format!("{name}{level}"), one);
    }
    defs.insert(format!("{name}{levels}"), json!({"type": "integer"}));
    json!({"$ref": format!("#/$defs/{name}0")})
}

/// Returns the state after some events, if they may come.
fn told(values: &Values, state: &ValueState, events: &[Event]) -> Option<ValueState> {
    let mut state = state.clone();
    events.iter().all(|&event| values.tell(&mut state, event)).then_some(state)
}

/// What may come, each with the levels that it adds.
fn ways(values: &Values, state: &ValueState) -> Vec<(isize, ValueState)> {
    let name = |name: u8| [Event::TextOpen, Event::Text(name), Event::TextClose];
    let one: [(isize, &[Event]); 7] = [
        (1, &[Event::ObjectOpen]),
        (1, &[Event::ArrayOpen]),
        (0, &[Event::Number(b'1'), Event::NumberEnd]),
        (0, &[Event::Comma]),
        (-1, &[Event::Close]),
        (0, &name(b'n')),
        (0, &name(b't')),
    ];
    one.into_iter().filter_map(|(levels, events)| Some((levels, told(values, state, events)?))).collect()
}

/// Walks down, in arrays if it may, or else at random, and says how deep that was. Wherever one is, something may come.
fn walk(values: &Values, start: ValueState, is_straight: bool, random: &mut Random, said: &Value) -> usize {
    let (mut state, mut levels, mut most) = (start, 0, 0);
    for turn in 0.. {
        let ways = ways(values, &state);
        assert!(!ways.is_empty(), "dead end in {levels} levels: {said}");
        let wanted = if turn < TURNS { 1 } else { -1 };
        let some: Vec<_> = ways.iter().filter(|(levels, _)| *levels == wanted).collect();
        let (more, next) = match some.last() {
            Some(&last) if is_straight => last,
            Some(_) if turn >= TURNS || random.below(12) > 0 => *random.one(&some),
            _ => random.one(&ways),
        };
        (state, levels) = (next.clone(), levels + more);
        most = most.max(levels);
        if levels == 0 {
            break;
        }
        assert!(turn < 20_000, "no end of {said}");
    }
    most as usize
}

#[test]
fn what_is_begun_has_room_for_all_that_it_needs() {
    let mut random = Random(17);
    for _ in 0..test_budget::cases(60) {
        let mut defs = Map::new();
        // What goes on for ever, and holds what needs some levels.
        let needs = [1 + random.below(60), 1 + random.below(6)];
        let ends = [chain(&mut defs, "a", needs[0]), chain(&mut defs, "b", needs[1])];
        let tree = json!({"$ref": "#/$defs/tree"});
        let list = json!({"type": "array", "items": tree});
        let object = json!({"type": "object", "properties": {"t": tree, "n": ends[1]}, "required": ["n"]});
        let some = [list, object, ends[0].clone(), ends[1].clone()];
        let mut branches = vec![&some[0], &some[2]];
        branches.extend([1, 3].iter().filter(|_| random.below(4) > 0).map(|&nth: &usize| &some[nth]));
        defs.insert("tree".to_owned(), json!({"anyOf": branches}));
        let schema = json!({"$defs": defs, "type": "object", "properties": {"t": tree}, "required": ["t"]});
        let mut values = Values::new(None);
        let (id, _) = values.add(&schema).unwrap();
        assert_eq!(walk(&values, values.begin(id), true, &mut random, &schema), MOST_LEVELS, "{schema}");
        for _ in 0..2 {
            let most = walk(&values, values.begin(id), false, &mut random, &schema);
            assert!(most <= MOST_LEVELS, "{most} levels: {schema}");
        }
    }
}

#[test]
fn what_needs_more_levels_than_there_are_is_refused() {
    for (levels, fits) in [(MOST_LEVELS - 2, true), (MOST_LEVELS - 1, true), (MOST_LEVELS, false), (90, false)] {
        let mut defs = Map::new();
        let inner = chain(&mut defs, "a", levels);
        let schema = json!({"$defs": defs, "type": "object", "properties": {"n": inner}, "required": ["n"]});
        let mut values = Values::new(None);
        match values.add(&schema) {
            Ok((id, _)) => {
                assert!(fits, "{levels}");
                assert_eq!(walk(&values, values.begin(id), false, &mut Random(3), &schema), levels + 1);
            }
            Err(error) => {
                assert!(!fits && matches!(error, SchemaError::TooLarge { .. }), "{levels}: {error}");
                assert!(error.to_string().contains("more than 64 objects and arrays inside each other"), "{error}");
            }
        }
    }
}
