//! Several `if` that ask for the value of one key: one case for each value, not a product of all answers.

use super::front::{Front, More, all_of, any_of, is_silent, same};
use serde_json::{Map, Value, json};

/// One `if` over the value of a key.
struct Case {
    values: Vec<Value>,
    /// Whether the key must be there.
    is_required: bool,
    then: Value,
    other: Value,
}

impl Front<'_> {
    /// Takes the conditions over one key out of a schema of objects and out of its `allOf`, where there are several,
    /// and says which of them hold for which value.
    pub(super) fn cases(&mut self, map: &mut Map<String, Value>, more: &mut More, at: &str) {
        if map.get("type").is_none_or(|name| name != "object") {
            return;
        }
        let mut keys: Vec<String> = Vec::new();
        for schema in std::iter::once(&*map).chain(listed(map)) {
            keys.extend(asked(schema).map(|(key, ..)| key.to_owned()));
        }
        let is_repeated = |(nth, key): (usize, &String)| keys[..nth].contains(key);
        let Some(key) = keys.iter().enumerate().find(|one| is_repeated(*one)).map(|(_, key)| key.clone()) else {
            return;
        };
        if !self.turns(keys.len() * keys.len()) {
            return self.took(at, "if");
        }
        let is_of_key = |schema: &Map<String, Value>| asked(schema).is_some_and(|(own, ..)| own == key);
        let of_key = std::iter::once(&*map).chain(listed(map)).filter(|schema| is_of_key(schema));
        let cases: Vec<Case> = of_key.filter_map(taken).collect();
        let Some(said) = self.by_value(map, &key, &cases) else { return self.took(at, "if") };
        if is_of_key(map) {
            for word in ["if", "then", "else"] {
                map.shift_remove(word);
            }
        }
        if let Some(Value::Array(all)) = map.get_mut("allOf") {
            all.retain(|schema| !schema.as_object().is_some_and(|schema| is_only(schema) && is_of_key(schema)));
            if all.is_empty() {
                map.shift_remove("allOf");
            }
        }
        more.push(("if", said));
        self.took(at, "if");
        // There may be another key.
        self.cases(map, more, at);
    }

    /// What the cases say, value by value; `None` where it cannot be said what the key holds besides.
    fn by_value(&self, map: &Map<String, Value>, key: &str, cases: &[Case]) -> Option<Value> {
        // Values for which the same conditions hold.
        let mut groups: Vec<(Vec<bool>, Vec<&Value>)> = Vec::new();
        let mut seen: Vec<&Value> = Vec::new();
        for value in cases.iter().flat_map(|case| &case.values) {
            let all: usize = cases.iter().map(|case| case.values.len()).sum();
            if !self.turns(all + seen.len()) {
                return None;
            }
            if seen.iter().any(|other| same(other, value)) {
                continue;
            }
            seen.push(value);
            let holds: Vec<bool> = cases.iter().map(|case| case.values.iter().any(|own| same(own, value))).collect();
            match groups.iter_mut().find(|(own, _)| *own == holds) {
                Some((_, values)) => values.push(value),
                None => groups.push((holds, vec![value])),
            }
        }
        let with_key = |schema: Value| json!({"properties": {key: schema}, "required": [key]});
        let said = |first: Value, holds: &dyn Fn(usize) -> bool| {
            let each = cases.iter().enumerate();
            let each = each.map(|(nth, case)| self.copy(if holds(nth) { &case.then } else { &case.other }));
            all_of(std::iter::once(first).chain(each))
        };
        let mut ways: Vec<Value> = groups
            .iter()
            .map(|(holds, values)| {
                let values: Vec<Value> = values.iter().map(|value| self.copy(value)).collect();
                said(with_key(json!({ "enum": values })), &|nth| holds[nth])
            })
            .collect();
        let own = map.get("properties").and_then(|all| all.get(key));
        let own_values = own.and_then(|own| own.get("enum")).and_then(Value::as_array);
        let rest = match own_values {
            Some(own) if self.turns(own.len() * seen.len()) => {
                let left = own.iter().filter(|value| !seen.iter().any(|other| same(other, value)));
                let left: Vec<Value> = left.map(|value| self.copy(value)).collect();
                if left.is_empty() { Value::Bool(false) } else { json!({ "enum": left }) }
            }
            _ => {
                let all: Vec<Value> = seen.iter().map(|value| self.copy(value)).collect();
                self.deny(&json!({ "enum": all }), 0)?
            }
        };
        if rest != Value::Bool(false) {
            ways.push(said(with_key(rest), &|_| false));
        }
        let required = map.get("required").and_then(Value::as_array);
        if !required.is_some_and(|names| names.iter().any(|name| name == key)) {
            ways.push(said(json!({"properties": {key: false}}), &|nth| !cases[nth].is_required));
        }
        Some(any_of(ways))
    }
}

fn listed(map: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let all = map.get("allOf").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_object).filter(|schema| is_only(schema))
}

/// Whether a schema is a condition and nothing besides.
fn is_only(map: &Map<String, Value>) -> bool {
    map.contains_key("if") && map.keys().all(|key| key == "if" || is_silent(key))
}

/// The key whose value a condition asks for, the schema of the value, and whether the key must be there.
fn asked(map: &Map<String, Value>) -> Option<(&str, &Map<String, Value>, bool)> {
    let condition = map.get("if")?.as_object()?;
    let properties = condition.get("properties")?.as_object()?;
    let (key, value) = properties.iter().next().filter(|_| properties.len() == 1)?;
    let is_known = |(word, said): (&String, &Value)| match word.as_str() {
        "properties" => true,
        "type" => said == "object",
        "required" => said.as_array().is_some_and(|names| names.iter().all(|name| name == key)),
        word => is_silent(word),
    };
    let value = value.as_object()?;
    let lists = |(word, said): (&String, &Value)| match word.as_str() {
        "const" => true,
        "enum" => said.is_array(),
        word => is_silent(word),
    };
    let one = value.contains_key("const") != value.contains_key("enum");
    let required = condition.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    (condition.iter().all(is_known) && one && value.iter().all(lists)).then_some((key, value, required))
}

/// The case of a condition.
fn taken(map: &Map<String, Value>) -> Option<Case> {
    let (_, value, is_required) = asked(map)?;
    let values = match (value.get("const"), value.get("enum")) {
        (Some(value), _) => vec![value.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => return None,
    };
    let branch = |name: &str| map.get(name).cloned().unwrap_or(Value::Bool(true));
    Some(Case { values, is_required, then: branch("then"), other: branch("else") })
}
