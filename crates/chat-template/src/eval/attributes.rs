//! `value.name` and `value[key]`, as the sandbox of Jinja2 looks them up.

use crate::builtins::methods::{self, AttributeAccess};
use crate::error::{Res, wrong};
use crate::meter::{self, spend};
use crate::value::number::as_int;
use crate::value::ops::slice_indices;
use crate::value::{Method, Range, Text, Value};
use std::rc::Rc;

/// `value.name`: an attribute of the type first, then an item.
pub(crate) fn attribute(of: &Value, name: &str) -> Res<Value> {
    spend(1)?;
    if let Some(missing) = of.missing() {
        return Err(missing);
    }
    if let Some(found) = own_attribute(of, name) {
        return Ok(found);
    }
    match of {
        Value::Dict(dict) => match dict.get(name) {
            Some(value) => Ok(value.clone()),
            None => Ok(undefined_attribute(of, name)),
        },
        _ => Ok(undefined_attribute(of, name)),
    }
}

/// Returns the attribute that Python's `getattr` finds.
fn own_attribute(of: &Value, name: &str) -> Option<Value> {
    if let Value::Namespace(namespace) = of
        && let Some(found) = namespace.attributes.borrow().get(name)
    {
        return Some(found.clone());
    }
    if let Value::Loop(state) = of
        && let Some(found) = state.attribute(name)
    {
        return Some(found);
    }
    if let Value::Tuple(list) = of
        && let Some(found) = list.get_named(name)
    {
        return Some(found.clone());
    }
    if let (Value::Cycler(cycler), "current") = (of, name) {
        return Some(cycler.current());
    }
    if let (Value::Macro(found), "name") = (of, name) {
        return found.definition.name.as_deref().and_then(|name| Value::own_str(name).ok());
    }
    match methods::method_access(of, name) {
        AttributeAccess::Safe => Some(Value::Method(Rc::new(Method { of: of.clone(), name: name.into() }))),
        AttributeAccess::Forbidden if matches!((of, name), (Value::List(_), "append")) && meter::passes_change() => {
            Some(Value::Method(Rc::new(Method { of: of.clone(), name: name.into() })))
        }
        AttributeAccess::Forbidden => {
            let found = of.type_name();
            Some(Value::forbidden(format!("access to attribute '{name}' of '{found}' object is unsafe.")))
        }
        AttributeAccess::No => None,
    }
}

fn undefined_attribute(of: &Value, name: &str) -> Value {
    Value::undefined(format!("'{} object' has no attribute '{name}'", of.type_name()))
}

/// `value[key]`: an item first, then an attribute.
pub(crate) fn item(of: &Value, key: &Value) -> Res<Value> {
    spend(1)?;
    if let Some(missing) = of.missing() {
        return Err(missing);
    }
    let found = match of {
        Value::Dict(dict) => match dict.get_value(key) {
            Ok(found) => found.cloned(),
            Err(fault) if fault.kind() == crate::error::Kind::Value => None,
            Err(fault) => return Err(fault),
        },
        Value::List(list) | Value::Tuple(list) => {
            position(key, list.items().len()).and_then(|at| list.items().get(at).cloned())
        }
        Value::Range(range) => position(key, range.length).map(|at| range.get(at)),
        Value::Str(text) => match position(key, text.count()?) {
            Some(at) => Some(text.part(text.slice(at, at + 1)?)?),
            None => None,
        },
        _ => None,
    };
    if let Some(found) = found {
        return Ok(found);
    }
    if let Value::Str(name) = key {
        return Ok(own_attribute(of, name.as_str()).unwrap_or_else(|| undefined_attribute(of, name.as_str())));
    }
    Ok(Value::undefined(format!("{} object has no element {}", of.type_name(), key.repr()?.as_str())))
}

/// Returns the position of an index, counted from the end if it is negative.
fn position(key: &Value, length: usize) -> Option<usize> {
    let index = as_int(key)?;
    let index = if index < 0 { index.checked_add(length as i128)? } else { index };
    usize::try_from(index).ok().filter(|at| *at < length)
}

/// `value[from:to:step]`, which Jinja2 asks of the value itself: nothing is undefined here.
pub(crate) fn slice(of: &Value, bounds: [Option<Value>; 3]) -> Res<Value> {
    if let Some(missing) = of.missing() {
        return Err(missing);
    }
    let mut indices = [None; 3];
    for (index, bound) in indices.iter_mut().zip(&bounds) {
        *index = match bound {
            None | Some(Value::None) => None,
            Some(value) => match as_int(value) {
                Some(value) => Some(value),
                None => return wrong("slice indices must be integers or None or have an __index__ method"),
            },
        };
    }
    match of {
        Value::Str(text) => {
            let places = slice_indices(text.count()?, indices)?;
            if indices[2].unwrap_or(1) == 1 {
                let from = places.clone().next().unwrap_or(0);
                let count = places.count();
                return text.part(text.slice(from, from + count)?);
            }
            spend(text.len() as u64 / 8)?;
            crate::meter::room(text.len() * 5)?;
            let characters: Vec<char> = text.as_str().chars().collect();
            text.made_of(places.filter_map(|at| characters.get(at)).collect(), false).map(Value::Str)
        }
        Value::List(list) => Value::list(take_items(list.items(), indices)?),
        Value::Tuple(list) => Value::tuple(take_items(list.items(), indices)?),
        Value::Range(range) => {
            let mut places = slice_indices(range.length, indices)?;
            let (length, first) = (places.clone().count(), places.next().unwrap_or(range.length));
            let step = range.step * indices[2].unwrap_or(1);
            let start = range.start + range.step * first as i128;
            Ok(Value::Range(Rc::new(Range { start, step, length, stop: start + step * length as i128 })))
        }
        Value::Dict(_) => wrong("unhashable type: 'slice'"),
        other => wrong(format!("'{}' object is not subscriptable", other.type_name())),
    }
}

fn take_items(items: &[Value], indices: [Option<i128>; 3]) -> Res<Vec<Value>> {
    let places = slice_indices(items.len(), indices)?;
    crate::meter::room(std::mem::size_of_val(items))?;
    spend(items.len() as u64 / 4)?;
    Ok(places.filter_map(|at| items.get(at).cloned()).collect())
}

/// A text, or the error of another kind of value.
pub(crate) fn text_of<'v>(value: &'v Value, what: &str) -> Res<&'v Rc<Text>> {
    match value {
        Value::Str(text) => Ok(text),
        other => match other.missing() {
            Some(missing) => Err(missing),
            None => wrong(format!("{what} must be str, not {}", other.type_name())),
        },
    }
}
