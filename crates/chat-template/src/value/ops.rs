//! Operators. One whose result can grow asks the meter first.

use super::number::{arithmetic, as_float, as_int};
use super::{Buffer, List, Text, Value, View, printf};
use crate::error::{Fault, Kind, Res, wrong};
use crate::meter::{room, spend, spend_bytes};
use crate::syntax::ast::{Comparison, Operator};
use std::cmp::Ordering;
use std::rc::Rc;

/// Returns whether Python's `==` calls the values equal.
#[allow(clippy::float_cmp, reason = "Python compares floats exactly")]
pub(crate) fn equal(left: &Value, right: &Value) -> Res<bool> {
    spend(1)?;
    Ok(match (left, right) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::Str(left), Value::Str(right)) => {
            spend_bytes(left.len().min(right.len()))?;
            left.as_str() == right.as_str()
        }
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            Rc::ptr_eq(left, right) || all_equal(left.items(), right.items())?
        }
        (Value::Dict(left), Value::Dict(right)) => {
            if left.entries().len() != right.entries().len() {
                return Ok(false);
            }
            for (key, value) in left.entries() {
                let Some(other) = right.entries().get(key) else { return Ok(false) };
                if !equal(value, other)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::View(left, of), Value::View(right, other)) => left == right && Rc::ptr_eq(of, other),
        (Value::Range(left), Value::Range(right)) => {
            left.length == right.length && (left.length == 0 || (left.start, left.step) == (right.start, right.step))
        }
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        (Value::Macro(left), Value::Macro(right)) => Rc::ptr_eq(left, right),
        (Value::Stream(left), Value::Stream(right)) => Rc::ptr_eq(left, right),
        (Value::Loop(left), Value::Loop(right)) => Rc::ptr_eq(left, right),
        _ => match (as_int(left), as_int(right)) {
            (Some(left), Some(right)) => left == right,
            _ => matches!((as_float(left), as_float(right)), (Some(left), Some(right)) if left == right),
        },
    })
}

fn all_equal(left: &[Value], right: &[Value]) -> Res<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right) {
        if !equal(left, right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Python's order; `NaN` is neither less nor greater.
pub(crate) fn order(left: &Value, right: &Value, operator: &str) -> Res<Option<Ordering>> {
    spend(1)?;
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => {
            spend_bytes(left.len().min(right.len()))?;
            // UTF-8 is ordered as its code points are.
            return Ok(Some(left.as_str().cmp(right.as_str())));
        }
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            for (left, right) in left.items().iter().zip(right.items()) {
                if !equal(left, right)? {
                    return order(left, right, operator);
                }
            }
            return Ok(Some(left.items().len().cmp(&right.items().len())));
        }
        _ => {}
    }
    if let (Some(left), Some(right)) = (as_int(left), as_int(right)) {
        return Ok(Some(left.cmp(&right)));
    }
    if let (Some(left), Some(right)) = (as_float(left), as_float(right)) {
        return Ok(left.partial_cmp(&right));
    }
    if let Some(missing) = left.missing().or_else(|| right.missing()) {
        return Err(missing);
    }
    let (left, right) = (left.type_name(), right.type_name());
    wrong(format!("'{operator}' not supported between instances of '{left}' and '{right}'"))
}

/// Python's `sorted`: stable, and an error where two values have no order.
pub(crate) fn sort<T>(items: &mut [(Value, T)], reverse: bool) -> Res<()> {
    let mut failed = None;
    items.sort_by(|(left, _), (right, _)| {
        if failed.is_some() {
            return Ordering::Equal;
        }
        let (left, right) = if reverse { (right, left) } else { (left, right) };
        match order(left, right, "<") {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(fault) => {
                failed = Some(fault);
                Ordering::Equal
            }
        }
    });
    failed.map_or(Ok(()), Err)
}

pub(crate) fn compare(comparison: Comparison, left: &Value, right: &Value) -> Res<bool> {
    let ordered = |operator: &str, holds: fn(Ordering) -> bool| {
        order(left, right, operator).map(|order| order.is_some_and(holds))
    };
    match comparison {
        Comparison::Eq => equal(left, right),
        Comparison::Ne => equal(left, right).map(|equal| !equal),
        Comparison::Lt => ordered("<", Ordering::is_lt),
        Comparison::Le => ordered("<=", Ordering::is_le),
        Comparison::Gt => ordered(">", Ordering::is_gt),
        Comparison::Ge => ordered(">=", Ordering::is_ge),
        Comparison::In => contains(right, left),
        Comparison::NotIn => contains(right, left).map(|found| !found),
    }
}

/// Python's `item in container`.
pub(crate) fn contains(container: &Value, item: &Value) -> Res<bool> {
    match container {
        Value::Str(text) => match item {
            Value::Str(part) => {
                spend_bytes(text.len() + part.len())?;
                Ok(text.as_str().contains(part.as_str()))
            }
            other => {
                let found = other.type_name();
                wrong(format!("'in <string>' requires string as left operand, not {found}"))
            }
        },
        Value::Dict(dict) | Value::View(View::Keys, dict) => dict_has(dict, item),
        Value::List(list) | Value::Tuple(list) => any_equal(list.items(), item),
        Value::Range(range) => match as_float(item) {
            Some(number) => {
                let offset = (number - range.start as f64) / range.step as f64;
                Ok(offset.fract() == 0.0 && offset >= 0.0 && offset < range.length as f64)
            }
            None => Ok(false),
        },
        other if other.is_iterable() => any_equal(&other.iterate()?, item),
        other => wrong(format!("argument of type '{}' is not iterable", other.type_name())),
    }
}

fn dict_has(dict: &super::Dict, item: &Value) -> Res<bool> {
    dict.get_value(item).map(|found| found.is_some())
}

fn any_equal(items: &[Value], item: &Value) -> Res<bool> {
    for other in items {
        if equal(other, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn unsupported_operands<T>(operator: &str, left: &Value, right: &Value) -> Res<T> {
    if let Some(missing) = left.missing().or_else(|| right.missing()) {
        return Err(missing);
    }
    let (left, right) = (left.type_name(), right.type_name());
    wrong(format!("unsupported operand type(s) for {operator}: '{left}' and '{right}'"))
}

pub(crate) fn apply(operator: Operator, left: &Value, right: &Value) -> Res<Value> {
    spend(1)?;
    if let Some(found) = arithmetic(operator, left, right) {
        return found;
    }
    match (operator, left, right) {
        (Operator::Add, Value::Str(left), Value::Str(right)) => add_texts(left, right),
        (Operator::Add, Value::List(left), Value::List(right)) => Value::list(concatenate(left, right)?),
        (Operator::Add, Value::Tuple(left), Value::Tuple(right)) => Value::tuple(concatenate(left, right)?),
        (Operator::Mul, Value::Str(text), times) | (Operator::Mul, times, Value::Str(text)) => match as_int(times) {
            Some(times) => repeat(text, times),
            None => unsupported_operands("*", left, right),
        },
        (Operator::Mul, list @ (Value::List(_) | Value::Tuple(_)), times)
        | (Operator::Mul, times, list @ (Value::List(_) | Value::Tuple(_))) => match as_int(times) {
            Some(times) => repeat_list(list, times),
            None => unsupported_operands("*", left, right),
        },
        (Operator::Mod, Value::Str(text), args) => printf::format(text, args),
        (operator, left, right) => {
            let name = match operator {
                Operator::Add => "+",
                Operator::Sub => "-",
                Operator::Mul => "*",
                Operator::Div => "/",
                Operator::FloorDiv => "//",
                Operator::Mod => "%",
                Operator::Pow => "** or pow()",
            };
            unsupported_operands(name, left, right)
        }
    }
}

fn add_texts(left: &Text, right: &Text) -> Res<Value> {
    let markup = left.is_markup() || right.is_markup();
    room(left.len() + right.len())?;
    let mut out = Buffer::default();
    for side in [left, right] {
        if side.is_markup() == markup {
            out.push_text(side)?;
        } else {
            room(5 * (left.len() + right.len()))?;
            out.push_text(&*side.escape()?)?;
        }
    }
    Text::traced_text(out.into_traced(), markup).map(Value::Str)
}

fn concatenate(left: &List, right: &List) -> Res<Vec<Value>> {
    let count = left.items().len() + right.items().len();
    spend(count as u64)?;
    room(count * size_of::<Value>())?;
    Ok([left.items(), right.items()].concat())
}

fn times(times: i128) -> usize {
    usize::try_from(times.max(0)).unwrap_or(usize::MAX)
}

pub(crate) fn repeat(text: &Text, count: i128) -> Res<Value> {
    let count = if text.is_empty() { 0 } else { times(count) };
    room(text.len().saturating_mul(count))?;
    let mut out = Buffer::default();
    for _ in 0..count {
        out.push_text(text)?;
    }
    Text::traced_text(out.into_traced(), text.is_markup()).map(Value::Str)
}

fn repeat_list(value: &Value, count: i128) -> Res<Value> {
    let (Value::List(list) | Value::Tuple(list)) = value else { return Ok(Value::None) };
    let count = if list.items().is_empty() { 0 } else { times(count) };
    let length = list.items().len().saturating_mul(count);
    room(length.saturating_mul(size_of::<Value>()))?;
    spend(length as u64)?;
    let items: Vec<Value> = (0..count).flat_map(|_| list.items().iter().cloned()).collect();
    if matches!(value, Value::Tuple(_)) { Value::tuple(items) } else { Value::list(items) }
}

/// Python's unary minus and plus.
pub(crate) fn negate(value: &Value, negative: bool) -> Res<Value> {
    match value {
        Value::Float(value) => Ok(Value::Float(if negative { -value } else { *value })),
        other => match as_int(other) {
            Some(value) => Ok(Value::Int(if negative { -value } else { value })),
            None => Err(other.missing().unwrap_or_else(|| {
                let sign = if negative { '-' } else { '+' };
                Fault::new(Kind::Value, format!("bad operand type for unary {sign}: '{}'", other.type_name()))
            })),
        },
    }
}

/// Returns the start, the number of items and the step of a slice, as Python's `slice.indices`.
pub(crate) fn slice_indices(
    length: usize,
    [start, stop, step]: [Option<i128>; 3],
) -> Res<impl Iterator<Item = usize> + Clone> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return wrong("slice step cannot be zero");
    }
    let length = length as i128;
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let clamp = |index: Option<i128>, otherwise: i128| match index {
        None => otherwise,
        Some(index) if index < 0 => index.saturating_add(length).max(least),
        Some(index) => index.min(most),
    };
    let (start, stop) =
        if step > 0 { (clamp(start, least), clamp(stop, most)) } else { (clamp(start, most), clamp(stop, least)) };
    let span = if step > 0 { stop - start } else { start - stop };
    let apart = step.unsigned_abs() as i128;
    let count = if span <= 0 { 0 } else { (span - 1) / apart.max(1) + 1 };
    Ok((0..count).map(move |number| (start + number * step) as usize))
}
