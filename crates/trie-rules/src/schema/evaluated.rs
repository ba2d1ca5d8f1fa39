//! What nothing else evaluates: `unevaluatedProperties` and `unevaluatedItems`, by the ways in which a value may fit.

use super::front::{DEEPEST, Front, MOST_WAYS, More, all_of, any_of, text_weight, weight};
use serde_json::{Map, Value, json};

/// Branches of which any number may fit at once.
const MOST_BRANCHES: usize = 4;

/// One way in which a value may fit, and what is evaluated then.
#[derive(Clone, Default)]
struct Way {
    /// What more must hold for it.
    holds: Vec<Value>,
    names: Vec<String>,
    patterns: Vec<String>,
    all_names: bool,
    first: usize,
    all_items: bool,
    /// Some items are evaluated, and it is not known which.
    some_items: bool,
}

impl Way {
    fn weight(&self) -> usize {
        let names: usize = self.names.iter().chain(&self.patterns).map(|name| text_weight(name)).sum();
        1 + names + self.holds.iter().map(weight).sum::<usize>()
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            holds: [self.holds.clone(), other.holds.clone()].concat(),
            names: [self.names.clone(), other.names.clone()].concat(),
            patterns: [self.patterns.clone(), other.patterns.clone()].concat(),
            all_names: self.all_names || other.all_names,
            first: self.first.max(other.first),
            all_items: self.all_items || other.all_items,
            some_items: self.some_items || other.some_items,
        }
    }
}

impl Front<'_> {
    /// Each way of the one with each of the other, unless there are too many.
    fn product(&self, one: &[Way], other: &[Way]) -> Option<Vec<Way>> {
        let weight = |ways: &[Way]| ways.iter().map(Way::weight).sum::<usize>();
        let is_small = one.len() * other.len() <= MOST_WAYS;
        (is_small && self.takes(weight(one) * other.len() + weight(other) * one.len()))
            .then(|| one.iter().flat_map(|one| other.iter().map(move |other| one.and(other))).collect())
    }

    fn if_so(&self, condition: &Value, ways: Vec<Way>) -> Vec<Way> {
        let add = |mut way: Way| {
            way.holds.push(self.copy(condition));
            way
        };
        ways.into_iter().map(add).collect()
    }

    pub(super) fn evaluated(&mut self, map: &mut Map<String, Value>, more: &mut More, at: &str) {
        let names = map.shift_remove("unevaluatedProperties").filter(|schema| *schema != Value::Bool(true));
        let items = map.shift_remove("unevaluatedItems").filter(|schema| *schema != Value::Bool(true));
        let names = names.filter(|_| !map.contains_key("additionalProperties"));
        let items = items.filter(|_| !map.contains_key("items"));
        if names.is_none() && items.is_none() {
            return;
        }
        let ways = self.ways(map, 0);
        let ways = ways.filter(|ways| items.is_none() || ways.iter().all(|way| way.all_items || !way.some_items));
        let Some(ways) = ways else {
            for (keyword, schema) in [("unevaluatedProperties", &names), ("unevaluatedItems", &items)] {
                if schema.is_some() {
                    self.unheld(at, keyword);
                }
            }
            return;
        };
        let said = ways.into_iter().map(|way| {
            let mut rest = Map::new();
            if let Some(schema) = names.as_ref().filter(|_| !way.all_names).map(|names| self.copy(names)) {
                let any = |names: Vec<String>| names.into_iter().map(|name| (name, Value::Bool(true))).collect();
                rest.insert("properties".to_owned(), Value::Object(any(way.names)));
                if !way.patterns.is_empty() {
                    rest.insert("patternProperties".to_owned(), Value::Object(any(way.patterns)));
                }
                rest.insert("additionalProperties".to_owned(), schema);
            }
            if let Some(schema) = items.as_ref().filter(|_| !way.all_items).map(|items| self.copy(items)) {
                if way.first > 0 {
                    rest.insert("prefixItems".to_owned(), json!(vec![true; way.first]));
                }
                rest.insert("items".to_owned(), schema);
            }
            let rest = if rest.is_empty() { Value::Bool(true) } else { Value::Object(rest) };
            all_of(way.holds.into_iter().chain([rest]))
        });
        match any_of(said.collect()) {
            Value::Bool(true) => {}
            said => more.push(("unevaluatedProperties", said)),
        }
    }

    /// The ways in which a value may fit a schema.
    fn ways_of(&self, schema: &Value, depth: usize) -> Option<Vec<Way>> {
        match schema {
            Value::Object(map) if depth < DEEPEST && self.count() => self.ways(map, depth + 1),
            Value::Bool(_) => Some(vec![Way::default()]),
            _ => None,
        }
    }

    fn ways(&self, map: &Map<String, Value>, depth: usize) -> Option<Vec<Way>> {
        if map.contains_key("$dynamicRef") || map.contains_key("$recursiveRef") {
            return None;
        }
        let keys = |key: &str| map.get(key).and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned();
        let has = |key: &str| map.contains_key(key);
        let list = |key: &str| map.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut ways = vec![Way {
            holds: Vec::new(),
            names: keys("properties").collect(),
            patterns: keys("patternProperties").collect(),
            all_names: has("additionalProperties") || has("unevaluatedProperties"),
            first: list("prefixItems").len(),
            all_items: has("items") || has("unevaluatedItems"),
            some_items: has("contains"),
        }];
        for schema in list("allOf") {
            ways = self.product(&ways, &self.ways_of(schema, depth)?)?;
        }
        if let Some(Value::String(to)) = map.get("$ref") {
            ways = self.product(&ways, &self.ways_of(self.target(to)?, depth)?)?;
        }
        for key in ["anyOf", "oneOf"] {
            let branches = list(key);
            if !branches.is_empty() {
                ways = self.product(&ways, &self.ways_of_branches(branches, key == "oneOf", depth)?)?;
            }
        }
        if let Some(condition) = map.get("if") {
            let branch = |name: &str| map.get(name).unwrap_or(&Value::Bool(true));
            let (then, other) = (self.ways_of(branch("then"), depth)?, self.ways_of(branch("else"), depth)?);
            let mut either = self.if_so(condition, self.product(&self.ways_of(condition, depth)?, &then)?);
            either.extend(self.if_so(&self.deny(condition, depth)?, other));
            ways = self.product(&ways, &either)?;
        }
        if let Some(Value::Object(dependencies)) = map.get("dependentSchemas") {
            for (name, schema) in dependencies {
                let mut either =
                    self.if_so(&json!({"type": "object", "required": [name]}), self.ways_of(schema, depth)?);
                either.extend(self.if_so(&json!({"properties": {name: false}}), vec![Way::default()]));
                ways = self.product(&ways, &either)?;
            }
        }
        Some(ways)
    }

    /// What any of these evaluate counts: each set of them is a way.
    fn ways_of_branches(&self, branches: &[Value], one: bool, depth: usize) -> Option<Vec<Way>> {
        let each: Option<Vec<Vec<Way>>> =
            branches.iter().map(|branch| Some(self.if_so(branch, self.ways_of(branch, depth)?))).collect();
        let each = each?;
        let apart = || {
            let pairs = branches.iter().enumerate();
            pairs.clone().all(|(nth, one)| branches[..nth].iter().all(|other| self.are_apart(one, other, depth)))
        };
        if one || apart() {
            return Some(each.concat());
        }
        if branches.len() > MOST_BRANCHES {
            return None;
        }
        let mut ways = Vec::new();
        for set in 1_u32..1 << branches.len() {
            let mut all = vec![Way::default()];
            for (nth, way) in each.iter().enumerate() {
                if set & (1 << nth) != 0 {
                    all = self.product(&all, way)?;
                }
            }
            ways.extend(all);
        }
        (ways.len() <= MOST_WAYS).then_some(ways)
    }
}
