//! Arrays: what they contain, and items that must differ.

use super::front::{Front, MOST_WAYS, More, any_of, but, same, weight};
use serde_json::{Map, Value, json};

/// Items among which those are that an array of any length must contain.
const FIRST: usize = 8;
/// Arrays that are listed where items must differ.
const MOST_LISTED: usize = 400;

impl Front<'_> {
    pub(super) fn arrays(&mut self, map: &mut Map<String, Value>, more: &mut More, at: &str) {
        if let Some(schema) = map.shift_remove("contains") {
            let count = |key: &str| map.get(key).and_then(Value::as_u64);
            let (min, max) = (count("minContains").unwrap_or(1), count("maxContains"));
            map.shift_remove("minContains");
            map.shift_remove("maxContains");
            match self.containing(map, &schema, min as usize, max.map(|max| max as usize)) {
                Some(Value::Bool(true)) => {}
                Some(said) => more.push(("contains", said)),
                None => self.unheld(at, "contains"),
            }
            self.took(at, "contains");
        }
        if map.shift_remove("uniqueItems").is_some_and(|unique| unique == Value::Bool(true)) {
            let is_short = map.get("maxItems").and_then(Value::as_u64).is_some_and(|most| most < 2);
            match self.differing(map) {
                _ if is_short => {}
                Some(arrays) => more.push(("uniqueItems", any_of(vec![but(&["array"]), json!({ "enum": arrays })]))),
                None => self.unheld(at, "uniqueItems"),
            }
            self.took(at, "uniqueItems");
        }
    }

    /// Arrays of which so many items fit a schema: those are among the first.
    fn containing(&self, map: &Map<String, Value>, schema: &Value, min: usize, max: Option<usize>) -> Option<Value> {
        let most_items = map.get("maxItems").and_then(Value::as_u64).map_or(usize::MAX, |most| most as usize);
        let max = max.filter(|max| *max < most_items);
        if min == 0 && max.is_none() {
            return Some(Value::Bool(true));
        }
        let array = |said: Value| Some(any_of(vec![but(&["array"]), said]));
        if max.is_some_and(|max| max < min) {
            return array(Value::Bool(false));
        }
        if *schema == Value::Bool(true) {
            let mut said = json!({"type": "array", "minItems": min});
            if let Some(max) = max {
                said["maxItems"] = json!(max);
            }
            return array(said);
        }
        let denied = max.map(|_| self.deny(schema, 0));
        let denied = match denied {
            Some(None) => return None,
            Some(Some(denied)) => Some(denied),
            None => None,
        };
        // The more of them there are, the fewer places they may have.
        let wanted = max.unwrap_or(min);
        let places = if wanted <= 1 { FIRST } else { wanted + 3 }.min(most_items);
        let mut ways = Vec::new();
        if places > 16 {
            return None;
        }
        for set in 0_u32..1 << places {
            if !self.turns(1) {
                return None;
            }
            let size = set.count_ones() as usize;
            if size < min || size > wanted {
                continue;
            }
            let end = (u32::BITS - set.leading_zeros()) as usize;
            let other = || denied.as_ref().map_or(Value::Bool(true), |denied| self.copy(denied));
            let first = (0..end).map(|nth| if set & (1 << nth) != 0 { self.copy(schema) } else { other() });
            let first: Vec<Value> = first.collect();
            let mut way = json!({"type": "array", "minItems": end});
            if !first.is_empty() {
                way["prefixItems"] = Value::Array(first);
            }
            if let Some(denied) = &denied {
                way["items"] = self.copy(denied);
            }
            ways.push(way);
            if ways.len() > MOST_WAYS {
                return None;
            }
        }
        array(any_of(ways))
    }

    /// All arrays of items that differ, where the items are listed.
    fn differing(&self, map: &Map<String, Value>) -> Option<Vec<Value>> {
        let count =
            |key: &str, other: usize| map.get(key).and_then(Value::as_u64).map_or(other, |count| count as usize);
        let (min, max) = (count("minItems", 0), count("maxItems", usize::MAX));
        let empty = Vec::new();
        let first = map.get("prefixItems").and_then(Value::as_array).unwrap_or(&empty);
        let rest = map.get("items").unwrap_or(&Value::Bool(true));
        let (mut all, mut longest): (Vec<Vec<Value>>, Vec<Vec<Value>>) = (Vec::new(), vec![Vec::new()]);
        let mut length = 0;
        while !longest.is_empty() && length <= max {
            if length >= min {
                all.extend(longest.iter().cloned());
            }
            let schema = first.get(length).unwrap_or(rest);
            if length == max || *schema == Value::Bool(false) {
                break;
            }
            let values = listed(schema)?;
            // Each of them is compared with each.
            let all_weight = |arrays: &[Vec<Value>]| arrays.iter().flatten().map(weight).sum::<usize>();
            let given: usize = values.iter().map(weight).sum();
            if !self.turns((all_weight(&longest) + 1) * given) {
                return None;
            }
            let longer = longest.iter().flat_map(|array| {
                let new = values.iter().filter(|value| !array.iter().any(|item| same(item, value)));
                new.map(|value| [array.clone(), vec![value.clone()]].concat())
            });
            longest = longer.take(MOST_LISTED + 1).collect();
            if !self.takes(all_weight(&longest)) {
                return None;
            }
            if all.len() + longest.len() > MOST_LISTED {
                return None;
            }
            length += 1;
        }
        Some(all.into_iter().map(Value::Array).collect())
    }
}

/// The values of a schema that lists them.
fn listed(schema: &Value) -> Option<Vec<Value>> {
    let kind = schema.get("type").and_then(Value::as_str);
    match (schema.get("const"), schema.get("enum"), kind) {
        (Some(value), ..) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values)), _) => Some(values.clone()),
        (None, None, Some("boolean")) => Some(vec![Value::Bool(false), Value::Bool(true)]),
        (None, None, Some("null")) => Some(vec![Value::Null]),
        _ => None,
    }
}
