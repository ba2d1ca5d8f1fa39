//! How much llguidance would write out: it counts what it merges, but not how large that is, and cannot be stopped.

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// Nodes that it may copy.
const MOST: f64 = 4e6;
/// Alternatives beyond which it gives up by itself.
const MOST_WAYS: f64 = 5e4;
/// Keywords whose values are schemas of parts of a value.
const ONE: [&str; 3] = ["items", "additionalProperties", "additionalItems"];
const NAMED: [&str; 2] = ["properties", "patternProperties"];
const LISTED: [&str; 2] = ["prefixItems", "items"];
/// Types that a schema may have which names none.
const TYPES: f64 = 6.0;
/// Patterns that may be found anywhere in one text: each multiplies the states of all others.
const MOST_SEARCHES: f64 = 12.0;
/// Characters of a pattern that count as one node.
const TEXT: f64 = 8.0;

/// What a schema takes, and where it multiplies most.
pub(super) struct Cost {
    nodes: f64,
    searches: f64,
    /// The largest product of alternatives, and its JSON pointer.
    most: (f64, String),
}

impl Cost {
    /// Finds the cost of a schema that was said in the words of llguidance.
    pub(super) fn of(schema: &Value) -> Self {
        let mut count = Count {
            root: schema,
            known: HashMap::new(),
            cost: Self { nodes: 0.0, searches: 0.0, most: (0.0, String::new()) },
        };
        count.targets();
        count.size(schema, "");
        count.cost
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.nodes > MOST || self.searches > MOST_SEARCHES
    }

    /// The place that multiplies most.
    pub(super) fn place(&self) -> &str {
        &self.most.1
    }
}

/// How large a schema becomes.
#[derive(Clone, Copy)]
struct Size {
    /// Alternatives side by side, of each type.
    ways: f64,
    /// Types that it may have.
    types: f64,
    nodes: f64,
    /// Patterns of one text that may be found anywhere in it.
    searches: f64,
}

const LEAF: Size = Size { ways: 1.0, types: 1.0, nodes: 1.0, searches: 0.0 };

impl Size {
    /// All alternatives, as many as there may be.
    fn all(self) -> f64 {
        (self.ways * self.types).min(MOST_WAYS)
    }
}

struct Count<'a> {
    root: &'a Value,
    known: HashMap<&'a str, Size>,
    cost: Cost,
}

impl<'a> Count<'a> {
    fn size(&mut self, schema: &'a Value, at: &str) -> Size {
        let Value::Object(map) = schema else { return LEAF };
        let mut whole = self.own(map, at);
        let mut parts = Vec::new();
        for (key, value) in map {
            match (key.as_str(), value) {
                ("allOf", Value::Array(all)) => {
                    for (nth, one) in all.iter().enumerate() {
                        let place = format!("{at}/allOf/{nth}");
                        parts.push(self.size(one, &place));
                    }
                }
                ("anyOf" | "oneOf", Value::Array(all)) => {
                    let (mut union, mut ways) = (LEAF, 0.0);
                    for (nth, one) in all.iter().enumerate() {
                        let one = self.size(one, &format!("{at}/{key}/{nth}"));
                        ways += one.all();
                        union = Size {
                            ways: 1.0,
                            types: union.types.max(one.types),
                            nodes: union.nodes + one.nodes,
                            searches: union.searches.max(one.searches),
                        };
                    }
                    union.ways = f64::max(1.0, ways / union.types);
                    if key == "oneOf" {
                        // Each is compared with each.
                        self.cost.nodes += union.all() * union.nodes / 2.0;
                    }
                    parts.push(union);
                }
                // What leads back to itself stays a reference.
                ("$ref", Value::String(to)) => parts.push(self.known.get(to.as_str()).copied().unwrap_or(LEAF)),
                _ => {}
            }
        }
        for part in parts {
            let (ways, types) = (whole.ways.min(MOST_WAYS) * part.ways, whole.types.min(part.types));
            self.cost.nodes += whole.all() * part.nodes + part.all() * whole.nodes;
            let (nodes, searches) = (whole.nodes + part.nodes, whole.searches + part.searches);
            whole = Size { ways, types, nodes, searches };
        }
        self.cost.searches = self.cost.searches.max(whole.searches);
        if whole.all() >= self.cost.most.0 {
            self.cost.most = (whole.all(), at.to_owned());
        }
        whole
    }

    /// What it says itself, and the schemas of parts.
    fn own(&mut self, map: &'a Map<String, Value>, at: &str) -> Size {
        let mut own = LEAF;
        match map.get("type") {
            Some(Value::Array(names)) => own.types = names.len().max(1) as f64,
            None => own.types = TYPES,
            Some(_) => {}
        }
        for (key, value) in map {
            match value {
                Value::Object(named) if NAMED.contains(&key.as_str()) => {
                    for (name, child) in named {
                        own.nodes += self.child(child, &format!("{at}/{key}/{name}"));
                    }
                }
                Value::Array(listed) if LISTED.contains(&key.as_str()) => {
                    for (nth, child) in listed.iter().enumerate() {
                        own.nodes += self.child(child, &format!("{at}/{key}/{nth}"));
                    }
                }
                Value::Object(_) if ONE.contains(&key.as_str()) => {
                    own.nodes += self.child(value, &format!("{at}/{key}"));
                }
                Value::Array(values) if key == "enum" => own.nodes += values.len() as f64,
                Value::String(text) if key == "pattern" => {
                    own.nodes += text.len() as f64 / TEXT;
                    own.searches += f64::from(u8::from(!text.starts_with('^')));
                }
                _ => {}
            }
        }
        own
    }

    /// One that refers to another and says nothing else stays a reference.
    fn child(&mut self, schema: &'a Value, at: &str) -> f64 {
        let is_reference = schema.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("$ref"));
        let size = self.size(schema, at);
        if is_reference { 1.0 } else { size.nodes }
    }

    /// Finds the sizes of what is referred to, each after those that it refers to itself. Chains of references may be
    /// longer than a stack is deep.
    fn targets(&mut self) {
        let mut seen = HashSet::new();
        let mut open = vec![("", references(self.root))];
        while let Some((to, left)) = open.last_mut() {
            if let Some(next) = left.pop() {
                if let (true, Some(target)) = (seen.insert(next), target(self.root, next)) {
                    open.push((next, references(target)));
                }
                continue;
            }
            let to = *to;
            open.pop();
            if let (false, Some(found)) = (to.is_empty(), target(self.root, to)) {
                let size = self.size(found, to.trim_start_matches('#'));
                self.known.insert(to, size);
            }
        }
    }
}

fn target<'a>(root: &'a Value, to: &str) -> Option<&'a Value> {
    to.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
}

/// The references of a schema, in all of its parts.
fn references(schema: &Value) -> Vec<&str> {
    let (mut found, mut left) = (Vec::new(), vec![schema]);
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                left.extend(members.values());
            }
            _ => {}
        }
    }
    found
}
