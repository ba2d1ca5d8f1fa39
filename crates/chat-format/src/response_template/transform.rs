//! Transforms: the shape into which a parsed region is put.

use serde_json::{Map, Value};

/// A shape with placeholders.
#[derive(Debug, Clone)]
pub(super) struct Transform {
    pub(super) shape: Value,
    /// True if the region is a list, and each of its items is put into the shape.
    pub(super) each: bool,
}

impl Transform {
    pub(super) fn new(shape: &Value, each: bool) -> Result<Self, String> {
        check(shape)?;
        Ok(Self { shape: shape.clone(), each })
    }

    /// Puts the value of a region into the shape, with what the patterns of its borders captured.
    ///
    /// # Errors
    /// A placeholder that stands for nothing, or a region that is not a list of objects although each item has a shape.
    pub(super) fn apply(&self, value: Value, captures: &Map<String, Value>) -> Result<Value, String> {
        if !self.each {
            let mut scope = captures.clone();
            scope.insert("content".into(), value);
            return fill(&self.shape, &scope);
        }
        let Value::Array(items) = value else { return Err(format!("transform_each needs a list, got {value}")) };
        let filled = items.into_iter().map(|item| match item {
            Value::Object(item) => {
                let mut scope = captures.clone();
                scope.extend(item);
                fill(&self.shape, &scope)
            }
            other => Err(format!("transform_each needs a list of objects, got {other} in it")),
        });
        filled.collect::<Result<Vec<Value>, String>>().map(Value::Array)
    }
}

/// The names in a placeholder, which is the whole text.
pub(super) fn placeholder(text: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = text.strip_prefix('{')?.strip_suffix('}')?.split('.').collect();
    let is_word = |name: &&str| !name.is_empty() && name.chars().all(|sign| sign.is_alphanumeric() || sign == '_');
    names.iter().all(is_word).then_some(names)
}

fn has_placeholder(text: &str) -> bool {
    let ends = |from: usize| text[from..].find('}').map(|length| &text[from..=from + length]);
    text.match_indices('{').any(|(from, _)| ends(from).is_some_and(|part| placeholder(part).is_some()))
}

fn check(shape: &Value) -> Result<(), String> {
    match shape {
        Value::Object(map) => map.values().try_for_each(check),
        Value::Array(list) => list.iter().try_for_each(check),
        Value::String(text) if has_placeholder(text) && placeholder(text).is_none() => {
            Err(format!("the transform {text:?} mixes a placeholder with a text: a placeholder is the whole text"))
        }
        _ => Ok(()),
    }
}

fn fill(shape: &Value, scope: &Map<String, Value>) -> Result<Value, String> {
    let text = match shape {
        Value::Object(map) => {
            let filled = map.iter().map(|(key, value)| Ok((key.clone(), fill(value, scope)?)));
            return filled.collect::<Result<Map<String, Value>, String>>().map(Value::Object);
        }
        Value::Array(list) => {
            return list.iter().map(|value| fill(value, scope)).collect::<Result<_, _>>().map(Value::Array);
        }
        Value::String(text) => text,
        other => return Ok(other.clone()),
    };
    let Some(names) = placeholder(text) else { return Ok(shape.clone()) };
    let mut value = scope.get(names[0]).ok_or_else(|| format!("the placeholder {text:?} stands for nothing"))?;
    for name in &names[1..] {
        value = value.get(name).ok_or_else(|| format!("the placeholder {text:?}: there is no {name:?} in {value}"))?;
    }
    Ok(value.clone())
}
