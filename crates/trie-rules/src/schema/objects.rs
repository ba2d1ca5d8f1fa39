//! Objects: how many members they have, and which names.

use super::front::{Front, MOST_WAYS, More, any_of, but, weight};
use super::texts::Texts;
use serde_json::{Map, Value, json};

impl Front<'_> {
    pub(super) fn objects(&mut self, map: &mut Map<String, Value>, more: &mut More, at: &str) {
        if !self.own.names
            && let Some(names) = map.shift_remove("propertyNames")
        {
            match self.texts(&names, 0) {
                Some(Texts::Any) => {}
                Some(Texts::Listed(names)) => {
                    let any: Map<String, Value> = names.into_iter().map(|name| (name, Value::Bool(true))).collect();
                    more.push(("propertyNames", json!({"properties": any, "additionalProperties": false})));
                }
                Some(Texts::Pattern(pattern)) if is_alone(map, &pattern) => {
                    let named = json!({"patternProperties": {pattern: true}, "additionalProperties": false});
                    more.push(("propertyNames", named));
                }
                _ => self.unheld(at, "propertyNames"),
            }
            self.took(at, "propertyNames");
        }
        if !self.own.counts {
            self.counts(map, more);
            self.took(at, if map.contains_key("maxProperties") { "maxProperties" } else { "minProperties" });
        }
    }

    /// How many there may be beside those that need not come: which of them come is said.
    fn counts(&self, map: &mut Map<String, Value>, more: &mut More) {
        let count = |key: &str| map.get(key).and_then(Value::as_u64);
        let (min, max) = (count("minProperties").unwrap_or(0), count("maxProperties"));
        let empty = Vec::new();
        let required: Vec<&Value> = map.get("required").and_then(Value::as_array).unwrap_or(&empty).iter().collect();
        let Some(Value::Object(properties)) = map.get("properties") else { return };
        let may: Vec<&String> = properties
            .iter()
            .filter(|(name, schema)| **schema != Value::Bool(false) && !required.contains(&&json!(name)))
            .map(|(name, _)| name)
            .collect();
        let least = min.saturating_sub(required.len() as u64);
        let closed =
            map.get("additionalProperties") == Some(&Value::Bool(false)) && !map.contains_key("patternProperties");
        let room = max.map_or(u64::MAX, |max| max.saturating_sub(required.len() as u64));
        let told = closed && least <= 1 && (max.is_none() || room == 1);
        if may.is_empty() || (least == 0 && max.is_none()) || told {
            return;
        }
        if may.len() > 20 {
            return;
        }
        let mut ways = Vec::new();
        for set in 0_u32..1 << may.len() {
            if !self.turns(1) {
                return;
            }
            let size = u64::from(set.count_ones());
            let enough = max.is_none() && size >= least;
            if size > room || (enough && size > least) {
                continue;
            }
            let (come, stay): (Vec<_>, Vec<_>) = may.iter().enumerate().partition(|(nth, _)| set & (1 << nth) != 0);
            let come: Vec<&String> = come.into_iter().map(|(_, name)| *name).collect();
            let mut way = json!({"type": "object", "required": come});
            if !enough {
                let none = stay.into_iter().map(|(_, name)| ((*name).clone(), Value::Bool(false)));
                way["properties"] = Value::Object(none.collect());
                way["minProperties"] = json!(min);
            }
            if let Some(max) = max {
                way["maxProperties"] = json!(max);
            }
            if !self.takes(weight(&way)) {
                return;
            }
            ways.push(way);
            if ways.len() > MOST_WAYS {
                return;
            }
        }
        map.shift_remove("minProperties");
        map.shift_remove("maxProperties");
        ways.push(but(&["object"]));
        more.push(("minProperties", any_of(ways)));
    }
}

/// Whether names are told by no other pattern: of several it is not known whether some name fits two.
fn is_alone(map: &Map<String, Value>, pattern: &str) -> bool {
    let others = map.get("patternProperties").and_then(Value::as_object);
    others.is_none_or(|others| others.keys().all(|other| other == pattern))
}
