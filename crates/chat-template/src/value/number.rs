//! Numbers as Python writes, rounds and computes with them.

use super::Value;
use crate::error::{Res, too_much, wrong};
use crate::syntax::ast::Operator;

/// Digits after the point that can be asked for.
pub(crate) const DIGITS: usize = 1000;

/// Python's `repr(float)`: the shortest digits that are this number.
pub(crate) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Rounds as Python's `round`.
pub(crate) fn round(value: &Value, digits: i128) -> Res<Value> {
    let value = match value {
        Value::Float(value) => *value,
        Value::Bool(value) => return Ok(Value::Int(i128::from(*value))),
        Value::Int(value) => return Ok(Value::Int(round_int(*value, digits))),
        other => {
            return Err(other.missing().unwrap_or_else(|| {
                let reason = format!("type {} doesn't define __round__ method", other.type_name());
                crate::error::Fault::new(crate::error::Kind::Value, reason)
            }));
        }
    };
    if !value.is_finite() || digits > 330 {
        return Ok(Value::Float(value));
    }
    if digits < -330 {
        return Ok(Value::Float(0.0_f64.copysign(value)));
    }
    if digits >= 0 {
        // Exact digits, ties to even: what Python does.
        return Ok(Value::Float(format!("{value:.*}", digits as usize).parse().unwrap_or(value)));
    }
    let unit = 10_f64.powi(-digits as i32);
    let quotient = value / unit;
    let rounded = quotient.round_ties_even();
    Ok(Value::Float(rounded * unit))
}

fn round_int(value: i128, digits: i128) -> i128 {
    if digits >= 0 {
        return value;
    }
    let Some(unit) = u32::try_from(-digits).ok().and_then(|digits| 10_i128.checked_pow(digits)) else { return 0 };
    let (down, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
    let up = rest > unit - rest || (rest == unit - rest && down % 2 != 0);
    (down + i128::from(up)).saturating_mul(unit)
}

/// A number for arithmetic.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(value) => Some(Number::Int(i128::from(*value))),
        Value::Int(value) => Some(Number::Int(*value)),
        Value::Float(value) => Some(Number::Float(*value)),
        _ => None,
    }
}

/// A number as a float, if it is one.
pub(crate) fn as_float(value: &Value) -> Option<f64> {
    match number(value)? {
        Number::Int(value) => Some(value as f64),
        Number::Float(value) => Some(value),
    }
}

/// An integer or a bool.
pub(crate) fn as_int(value: &Value) -> Option<i128> {
    match number(value)? {
        Number::Int(value) => Some(value),
        Number::Float(_) => None,
    }
}

/// Arithmetic on two numbers; nothing if one is none.
pub(crate) fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Option<Res<Value>> {
    let (left, right) = (number(left)?, number(right)?);
    Some(match (left, right) {
        (Number::Int(left), Number::Int(right)) => integers(operator, left, right),
        (left, right) => {
            let float = |number| match number {
                Number::Int(value) => value as f64,
                Number::Float(value) => value,
            };
            floats(operator, float(left), float(right))
        }
    })
}

fn integers(operator: Operator, left: i128, right: i128) -> Res<Value> {
    let found = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Sub => left.checked_sub(right),
        Operator::Mul => left.checked_mul(right),
        Operator::Div if right == 0 => return wrong("division by zero"),
        Operator::Div => return Ok(Value::Float(divide(left, right))),
        Operator::FloorDiv | Operator::Mod if right == 0 => return wrong("integer division or modulo by zero"),
        // Rounded towards minus infinity.
        Operator::FloorDiv => left
            .checked_div(right)
            .map(|quotient| quotient - i128::from(left % right != 0 && (left < 0) != (right < 0))),
        Operator::Mod => {
            left.checked_rem(right).map(|rest| if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest })
        }
        Operator::Pow if right < 0 => return floats(operator, left as f64, right as f64),
        Operator::Pow => u32::try_from(right).ok().and_then(|right| left.checked_pow(right)).or(match left {
            0 | 1 => Some(left),
            -1 => Some(if right % 2 == 0 { 1 } else { -1 }),
            _ => None,
        }),
    };
    match found {
        Some(value) => Ok(Value::Int(value)),
        None => too_much("an integer has more than 127 bits"),
    }
}

fn divide(left: i128, right: i128) -> f64 {
    left as f64 / right as f64
}

fn floats(operator: Operator, left: f64, right: f64) -> Res<Value> {
    let floor_mod = || {
        let rest = left % right;
        let rest = if rest != 0.0 && (rest < 0.0) != (right < 0.0) { rest + right } else { rest };
        let quotient = ((left - rest) / right).round();
        (quotient, if rest == 0.0 { 0.0_f64.copysign(right) } else { rest })
    };
    let found = match operator {
        Operator::Add => left + right,
        Operator::Sub => left - right,
        Operator::Mul => left * right,
        Operator::Div | Operator::FloorDiv | Operator::Mod if right == 0.0 => return wrong("float division by zero"),
        Operator::Div => left / right,
        Operator::FloorDiv => floor_mod().0,
        Operator::Mod => floor_mod().1,
        Operator::Pow if left == 0.0 && right < 0.0 => return wrong("zero to a negative power"),
        Operator::Pow if left < 0.0 && right.fract() != 0.0 => return wrong("a complex number"),
        Operator::Pow => {
            let found = left.powf(right);
            if found.is_infinite() && left.is_finite() && right.is_finite() {
                return wrong("numerical result out of range");
            }
            found
        }
    };
    Ok(Value::Float(found))
}
