//! JSON Schema in fewer words: what asks something of other keywords, said by those that machines hold.
//!
//! `not`, `if`, `dependentRequired`, `contains`, `unevaluatedProperties` and others become `anyOf`, `allOf`,
//! `properties`, `pattern`. A schema that was spelled out allows nothing that the schema does not. What cannot be said
//! otherwise is named, and left out.

mod anchors;
mod arrays;
mod cases;
mod contradictions;
mod deny;
mod evaluated;
mod formats;
mod front;
mod modern;
mod objects;
mod patterns;
mod places;
mod plain;
mod sides;
mod texts;

pub use contradictions::{Contradiction, contradiction, contradictions};
pub use formats::format_pattern;
pub use front::{Own, TYPES, TooLarge, Unheld, charge, same, says_nothing, weight};
pub use patterns::ecma_classes;
pub use places::{multiplying, place_in};

use anchors::Anchors;
use front::{Front, LISTED, MOST_VALUES, More, NAMED, ONE, SCHEMA, WHOLE, all_of, any_of, text_weight, type_names};
use modern::Modern;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use trie_core::work::{Limits, Over, Work, look};

/// A schema in fewer words.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SpelledOut<'a> {
    /// It allows what the other allows, and what only the unheld keywords refuse. Often it is the other.
    pub schema: Cow<'a, Value>,
    /// What could not be said.
    pub unheld: Vec<Unheld>,
    /// What says nothing, though it may be meant to, such as a format that nobody knows; with its place.
    pub notes: Vec<String>,
}

/// Says a schema in fewer words. Places are those of the schema that is given.
///
/// # Errors
/// It would become too large, or the [work](trie_core::work) is over.
pub fn spelled_out(schema: &Value, own: Own) -> Result<SpelledOut<'_>, TooLarge> {
    if plain::is_plain(schema, own) {
        return Ok(SpelledOut { schema: Cow::Borrowed(schema), unheld: Vec::new(), notes: Vec::new() });
    }
    Work::bounded(Limits::default(), || in_fewer_words(schema, own))
}

fn in_fewer_words(schema: &Value, own: Own) -> Result<SpelledOut<'static>, TooLarge> {
    let own_weight = weight(schema);
    let most = MOST_VALUES + SCHEMA * own_weight;
    let too_large = |at: &str, keyword: &str, over: Option<Over>| {
        let (at, mut keyword) = places::place_of(schema, at, keyword);
        if schema.pointer(&at).is_none_or(|part| part.get(&keyword).is_none()) {
            WHOLE.clone_into(&mut keyword);
        }
        TooLarge { at, keyword, most, over }
    };
    charge(2 * own_weight).map_err(|over| too_large("", WHOLE, Some(over)))?;
    let has_ids = places::has_ids(schema);
    let words = Modern { anchors: Anchors::of(schema), old: modern::is_old(schema), has_ids };
    let root = &words.whole(schema.clone());
    let (left, anchors) = (Cell::new(most), Anchors::of(root));
    let (unheld, done, notes) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let mut front = Front { root, own, has_ids, anchors, left, grown: None, unheld, notes, done };
    let mut spelled = front.schema(root.clone(), "");
    front.follow(&mut spelled);
    if front.left.get() == 0 {
        let (at, keyword) = front.grown.unwrap_or_else(|| (String::new(), WHOLE));
        return Err(too_large(&at, keyword, look(0, 0).err()));
    }
    let named = |Unheld { at, keyword }: Unheld| {
        let (at, keyword) = places::place_of(schema, &at, &keyword);
        Unheld { at, keyword }
    };
    let unheld: BTreeSet<Unheld> = front.unheld.into_iter().map(named).collect();
    let format_note = |(at, format): (String, String)| {
        let (at, _) = places::place_of(schema, &at, "format");
        let place = if at.is_empty() { at } else { format!("at {at}: ") };
        format!("{place}no format is named {format:?}: it says nothing")
    };
    let notes = front.notes.into_iter().map(format_note).collect();
    Ok(SpelledOut { schema: Cow::Owned(spelled), unheld: unheld.into_iter().collect(), notes })
}

impl Front<'_> {
    fn schema(&mut self, schema: Value, at: &str) -> Value {
        let mut map = match schema {
            Value::Object(map) if self.count() && self.takes(text_weight(at)) => map,
            schema => {
                self.took(at, WHOLE);
                return schema;
            }
        };
        self.done.insert(at.to_owned());
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if map.shift_remove(keyword).is_some() {
                self.unheld(at, keyword);
            }
        }
        // What refers to all or nothing is that.
        let target = map.get("$ref").and_then(Value::as_str).and_then(|to| self.target(to)).and_then(Value::as_bool);
        match target {
            Some(true) => drop(map.shift_remove("$ref")),
            Some(false) => return Value::Bool(false),
            None => {}
        }
        let mut more = Vec::new();
        // What is evaluated is known from keywords that are said otherwise here.
        self.evaluated(&mut map, &mut more, at);
        self.took(at, "unevaluatedProperties");
        self.cases(&mut map, &mut more, at);
        self.conditions(&mut map, &mut more, at);
        self.sides(&mut map, &mut more);
        self.took(at, "oneOf");
        self.objects(&mut map, &mut more, at);
        self.arrays(&mut map, &mut more, at);
        if !self.own.formats {
            self.format(&mut map, &mut more, at);
        }
        for (key, value) in &mut map {
            self.inside(key, value, at);
        }
        let more: Vec<Value> =
            more.into_iter().map(|(keyword, schema)| self.schema(schema, &places::said_at(at, keyword))).collect();
        if !more.is_empty() {
            match map.get_mut("allOf") {
                Some(Value::Array(all)) => all.extend(more),
                _ => drop(map.insert("allOf".to_owned(), Value::Array(more))),
            }
        }
        Value::Object(map)
    }

    /// The schemas that stand behind a keyword.
    fn inside(&mut self, key: &str, value: &mut Value, at: &str) {
        match value {
            Value::Object(named) if NAMED.contains(&key) => {
                for (name, schema) in named {
                    *schema = self.schema(schema.take(), &format!("{at}/{key}/{}", places::escaped(name)));
                }
            }
            Value::Array(listed) if LISTED.contains(&key) => {
                for (nth, schema) in listed.iter_mut().enumerate() {
                    *schema = self.schema(schema.take(), &format!("{at}/{key}/{nth}"));
                }
            }
            schema if ONE.contains(&key) => *schema = self.schema(schema.take(), &format!("{at}/{key}")),
            _ => {}
        }
    }

    /// `not`, `if`, and what depends on a key.
    fn conditions(&mut self, map: &mut Map<String, Value>, more: &mut More, at: &str) {
        if let Some(none) = map.shift_remove("not") {
            match self.deny_beside(&none, Some(&Value::Object(beside(map))), 0) {
                Some(denied) => more.push(("not", denied)),
                None => self.unheld(at, "not"),
            }
            self.took(at, "not");
        }
        if let Some(condition) = map.shift_remove("if") {
            let mut branch = |name: &str| map.shift_remove(name).unwrap_or(Value::Bool(true));
            let (then, other) = (branch("then"), branch("else"));
            match (then == Value::Bool(true) && other == Value::Bool(true), self.deny(&condition, 0)) {
                (true, _) => {}
                (false, Some(not)) => {
                    let [yes, no] = [all_of([condition, then]), all_of([not, other])];
                    more.push(("if", any_of(vec![yes, no])));
                }
                (false, None) => self.unheld(at, "if"),
            }
            self.took(at, "if");
        }
        for keyword in ["dependentRequired", "dependentSchemas"] {
            let Some(Value::Object(dependencies)) = map.shift_remove(keyword) else { continue };
            for (name, then) in dependencies {
                // The key is named first: so it comes before what depends on it, unless the schema orders both.
                let then = match keyword {
                    "dependentRequired" if then == json!([]) => continue,
                    "dependentRequired" => json!({"properties": {&name: true}, "required": then}),
                    _ => then,
                };
                if then != Value::Bool(true) {
                    more.push((keyword, any_of(vec![json!({"properties": {name: false}}), then])));
                }
            }
            self.took(at, keyword);
        }
    }

    /// `oneOf`, where several may fit.
    fn sides(&mut self, map: &mut Map<String, Value>, more: &mut More) {
        let Some(Value::Array(branches)) = map.get("oneOf") else { return };
        let Some(apart) = self.one_of(branches) else { return };
        map.shift_remove("oneOf");
        if map.contains_key("anyOf") {
            more.push(("oneOf", json!({ "anyOf": apart })));
        } else {
            map.insert("anyOf".to_owned(), Value::Array(apart));
        }
    }

    fn format(&mut self, map: &mut Map<String, Value>, more: &mut More, at: &str) {
        let Some(format) = map.get("format").and_then(Value::as_str).map(str::to_owned) else { return };
        let is_text = map.get("type").is_none_or(|said| type_names(said).any(|name| name == "string"));
        match (formats::known(&format), is_text) {
            (formats::Known::Pattern(pattern), true) => {
                if map.contains_key("pattern") {
                    more.push(("format", json!({ "pattern": pattern })));
                } else {
                    map.insert("pattern".to_owned(), Value::String(pattern));
                }
            }
            (formats::Known::Unheld, true) => self.unheld(at, "format"),
            (formats::Known::Not, true) => {
                self.takes(text_weight(at));
                self.notes.push((at.to_owned(), format.clone()));
            }
            (_, false) => {}
        }
        map.shift_remove("format");
    }
}

/// What a schema says of types, without all else.
fn beside(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().filter(|(key, _)| *key == "type").map(|(key, value)| (key.clone(), value.clone())).collect()
}
