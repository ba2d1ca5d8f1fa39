//! Tests: what may follow `is`.

use super::args::Args;
use super::{filters, methods_of_text};
use crate::error::{Res, wrong};
use crate::syntax::ast::{Comparison, Operator};
use crate::value::{Value, ops};
use std::rc::Rc;

pub(crate) type TestFn = fn(&Value, &Args) -> Res<bool>;

pub(crate) fn find(name: &str) -> Option<TestFn> {
    Some(match name {
        "defined" => |value, _| Ok(!matches!(value, Value::Undefined(_))),
        "undefined" => |value, _| Ok(matches!(value, Value::Undefined(_))),
        "none" => |value, _| Ok(matches!(value, Value::None)),
        "boolean" => |value, _| Ok(matches!(value, Value::Bool(_))),
        "true" => |value, _| Ok(matches!(value, Value::Bool(true))),
        "false" => |value, _| Ok(matches!(value, Value::Bool(false))),
        "integer" => |value, _| Ok(matches!(value, Value::Int(_))),
        "float" => |value, _| Ok(matches!(value, Value::Float(_))),
        "number" => |value, _| Ok(matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))),
        "string" => |value, _| Ok(matches!(value, Value::Str(_))),
        "mapping" => |value, _| Ok(matches!(value, Value::Dict(_))),
        "iterable" => |value, _| Ok(value.is_iterable()),
        "sequence" => |value, _| {
            let listed = matches!(value, Value::Str(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_));
            // An undefined value has a length of 0, and refuses items only when asked for one.
            Ok(listed || matches!(value, Value::Range(_) | Value::Undefined(_)))
        },
        "callable" => |value, _| {
            let called = matches!(value, Value::Macro(_) | Value::Function(_) | Value::Method(_) | Value::Joiner(_));
            Ok(called || matches!(value, Value::Loop(_) | Value::Undefined(_)))
        },
        "escaped" => |value, _| Ok(matches!(value, Value::Str(text) if text.is_markup())),
        "odd" => |value, _| remainder(value, &Value::Int(2)).map(|rest| is_int(&rest, 1)),
        "even" => |value, _| remainder(value, &Value::Int(2)).map(|rest| is_int(&rest, 0)),
        "divisibleby" => |value, args| remainder(value, argument(args)?).map(|rest| is_int(&rest, 0)),
        "lower" => |value, _| Ok(methods_of_text::is_lower(value.to_text()?.as_str())),
        "upper" => |value, _| Ok(methods_of_text::is_upper(value.to_text()?.as_str())),
        "sameas" => |value, args| is_same(value, argument(args)?),
        "in" => |value, args| ops::contains(argument(args)?, value),
        "filter" => |value, _| Ok(matches!(value, Value::Str(name) if filters::find(name.as_str()).is_some())),
        "test" => |value, _| Ok(matches!(value, Value::Str(name) if find(name.as_str()).is_some())),
        "eq" | "==" | "equalto" => |value, args| ops::equal(value, argument(args)?),
        "ne" | "!=" => |value, args| ops::compare(Comparison::Ne, value, argument(args)?),
        "lt" | "<" | "lessthan" => |value, args| ops::compare(Comparison::Lt, value, argument(args)?),
        "le" | "<=" => |value, args| ops::compare(Comparison::Le, value, argument(args)?),
        "gt" | ">" | "greaterthan" => |value, args| ops::compare(Comparison::Gt, value, argument(args)?),
        "ge" | ">=" => |value, args| ops::compare(Comparison::Ge, value, argument(args)?),
        _ => return None,
    })
}

fn argument(args: &Args) -> Res<&Value> {
    args.positional.first().map_or_else(|| wrong("a test needs an argument"), Ok)
}

fn remainder(value: &Value, divisor: &Value) -> Res<Value> {
    ops::apply(Operator::Mod, value, divisor)
}

fn is_int(value: &Value, wanted: i128) -> bool {
    ops::equal(value, &Value::Int(wanted)).unwrap_or(false)
}

/// Python's `is`, for what a template can tell apart.
fn is_same(left: &Value, right: &Value) -> Res<bool> {
    Ok(match (left, right) {
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => Rc::ptr_eq(left, right),
        (Value::Dict(left), Value::Dict(right)) => Rc::ptr_eq(left, right),
        (Value::Bool(left), Value::Bool(right)) => left == right,
        // Equal, and yet not one.
        (Value::Bool(_), _)
        | (_, Value::Bool(_))
        | (Value::Int(_), Value::Float(_))
        | (Value::Float(_), Value::Int(_)) => false,
        _ => ops::equal(left, right)?,
    })
}
