//! References to what allows nothing. llguidance refuses a document that has one anywhere, though other values may come
//! in its place, as it does not where the schema stands there itself.

use super::blame::{alone, nothing};
use crate::compiled::Refused;
use serde_json::Value;
use std::collections::BTreeSet;

/// Schemas that references to are left out of one document at most: each is looked for anew.
pub(super) const MOST: usize = 64;

/// Makes references to the schema that allows nothing at a place, or to one that it is part of, false. Returns whether
/// there were some.
pub(super) fn leave_out(schema: &mut Value, at: &str, compile: &dyn Fn(Value) -> Result<(), Refused>) -> bool {
    let mut targets = BTreeSet::new();
    let mut open = vec![&*schema];
    while let Some(part) = open.pop() {
        targets.extend(
            target(part).filter(|to| at == *to || at.strip_prefix(to).is_some_and(|in_it| in_it.starts_with('/'))),
        );
        open.extend(inside(part));
    }
    // The innermost last.
    let is_dead = |to: &str| {
        let part = schema.pointer(to).map(|part| alone(schema, part));
        part.is_some_and(|part| part == Value::Bool(false) || compile(part).is_err_and(|refused| nothing(&refused)))
    };
    let dead = targets.into_iter().rev().find(|to| is_dead(to)).map(str::to_owned);
    let Some(dead) = dead else { return false };
    let mut open = vec![schema];
    while let Some(part) = open.pop() {
        if target(part) == Some(&*dead) {
            *part = Value::Bool(false);
            continue;
        }
        match part {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values_mut()),
            _ => {}
        }
    }
    true
}

/// The place that a schema refers to, but for the whole document.
fn target(part: &Value) -> Option<&str> {
    part.get("$ref")?.as_str()?.strip_prefix('#').filter(|to| to.starts_with('/'))
}

fn inside(part: &Value) -> Vec<&Value> {
    match part {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}
