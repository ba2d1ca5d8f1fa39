//! Read-only methods of Python's types, and of the objects that Jinja2 makes.

use super::args::{Args, int};
use super::methods_of_text;
use crate::error::{Res, wrong};
use crate::eval::Eval;
use crate::value::{Value, View, ops};
use std::rc::Rc;

/// Support for an attribute of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributeAccess {
    Safe,
    /// The type has it, but the sandbox hides it: methods that change values, and Python's internals.
    Forbidden,
    No,
}

pub(crate) fn method_access(of: &Value, name: &str) -> AttributeAccess {
    let (safe, forbidden): (&[&str], &[&str]) = match of {
        Value::Str(_) => (&methods_of_text::METHODS, &[]),
        Value::List(_) => {
            (&["copy", "count", "index"], &["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"])
        }
        Value::Dict(_) => {
            (&["copy", "get", "items", "keys", "values"], &["clear", "pop", "popitem", "setdefault", "update"])
        }
        Value::Tuple(_) | Value::Range(_) => (&["count", "index"], &[]),
        Value::Float(_) => (&["is_integer"], &[]),
        Value::Int(_) | Value::Bool(_) => (&["bit_length"], &[]),
        Value::Loop(_) => (&["cycle", "changed"], &[]),
        Value::Cycler(_) => (&["next", "reset"], &[]),
        _ => (&[], &[]),
    };
    if safe.contains(&name) {
        AttributeAccess::Safe
    } else if forbidden.contains(&name) || DUNDER.contains(&name) {
        AttributeAccess::Forbidden
    } else {
        AttributeAccess::No
    }
}

/// Attributes of every object of Python.
const DUNDER: [&str; 12] = [
    "__class__",
    "__dict__",
    "__doc__",
    "__init__",
    "__module__",
    "__new__",
    "__reduce__",
    "__repr__",
    "__str__",
    "__subclasshook__",
    "__dir__",
    "__getattribute__",
];

pub(crate) fn call(eval: &mut Eval<'_>, of: &Value, name: &str, args: Args) -> Res<Value> {
    match of {
        Value::Str(text) => methods_of_text::call(eval, text, name, args),
        Value::Dict(dict) => match name {
            "get" => {
                let [key, otherwise] = args.bind("get", ["", ""])?;
                let Some(key) = key else { return wrong("get expected at least 1 argument, got 0") };
                Ok(dict.get_value(&key)?.cloned().or(otherwise).unwrap_or(Value::None))
            }
            "items" => args.none("items").map(|()| Value::View(View::Items, Rc::clone(dict))),
            "keys" => args.none("keys").map(|()| Value::View(View::Keys, Rc::clone(dict))),
            "values" => args.none("values").map(|()| Value::View(View::Values, Rc::clone(dict))),
            _ => args.none("copy").map(|()| of.clone()),
        },
        Value::List(_) | Value::Tuple(_) | Value::Range(_) => match name {
            "copy" => args.none("copy").map(|()| of.clone()),
            // Only where changes pass without effect.
            "append" => args.one("append").map(|_| Value::None),
            "count" => {
                let wanted = args.one("count")?;
                let mut count = 0_usize;
                for item in of.iterate()? {
                    count += usize::from(ops::equal(&item, &wanted)?);
                }
                Ok(count.into())
            }
            _ => index(of, args),
        },
        Value::Float(value) => args.none(name).map(|()| Value::Bool(value.fract() == 0.0)),
        Value::Int(_) | Value::Bool(_) => {
            args.none(name)?;
            let value = crate::value::number::as_int(of).unwrap_or_default();
            Ok(Value::Int(i128::from(128 - value.unsigned_abs().leading_zeros())))
        }
        Value::Loop(state) if name == "cycle" => state.cycle(&args.positional),
        Value::Loop(state) => state.have_changed(args.positional),
        Value::Cycler(cycler) => {
            args.none(name)?;
            if name == "next" {
                Ok(cycler.next())
            } else {
                cycler.reset();
                Ok(Value::None)
            }
        }
        other => wrong(format!("'{}' object has no method '{name}'", other.type_name())),
    }
}

fn index(of: &Value, args: Args) -> Res<Value> {
    let [wanted, from, to] = args.bind("index", ["", "", ""])?;
    let Some(wanted) = wanted else { return wrong("index expected at least 1 argument, got 0") };
    let items = of.iterate()?;
    let from = int(from.as_ref(), 0, "index")?;
    let to = int(to.as_ref(), i128::MAX, "index")?;
    for at in ops::slice_indices(items.len(), [Some(from), Some(to), None])? {
        if ops::equal(&items[at], &wanted)? {
            return Ok(at.into());
        }
    }
    wrong(format!("{} is not in the list", wanted.repr()?.as_str()))
}
