//! Values as Python reads them.

use serde_json::Value;

/// Removes white space at both ends, as `str.strip` does.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(|sign: char| sign.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&sign))
}

/// Returns whether a value is true in Python.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(value) => value.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Removes underscores between digits; `None` if one stands elsewhere.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let between = |(at, _)| is_digit(at_before(at)) && is_digit(Some(at + 1));
    text.match_indices('_').all(between).then(|| text.replace('_', ""))
}

fn at_before(at: usize) -> Option<usize> {
    at.checked_sub(1)
}

/// An integer, as `int` reads it.
///
/// # Errors
/// The text is none, or does not fit into 64 bits.
pub(super) fn int(text: &str) -> Result<i64, String> {
    let text = strip(text);
    let plain = without_underscores(text).filter(|text| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let plain = plain.ok_or_else(|| format!("invalid integer: got {text:?}"))?;
    plain.parse().map_err(|_| format!("the integer {text} does not fit into 64 bits"))
}

/// A number, as `float` reads it.
///
/// # Errors
/// The text is none.
pub(super) fn float(text: &str) -> Result<f64, String> {
    let text = strip(text);
    let plain = without_underscores(text).filter(|text| text.bytes().all(|byte| byte.is_ascii()));
    plain.and_then(|text| text.parse().ok()).ok_or_else(|| format!("invalid number: got {text:?}"))
}

/// A JSON value, as `json.loads` reads it: the last of two equal keys holds.
///
/// # Errors
/// The text is not JSON, or holds a number that does not fit into 64 bits.
pub(super) fn json(text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match numbers(text).find(|number| is_wide(number)) {
        Some(number) => Err(format!("the number {number} does not fit into 64 bits")),
        None => Ok(value),
    }
}

/// Returns whether a number is an integer that 64 bits do not hold.
fn is_wide(number: &str) -> bool {
    !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

/// The numbers of a JSON text.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let (mut inside, mut escaped) = (false, false);
    let outside = move |sign: char| {
        let is_text = inside || sign == '"';
        if inside && !escaped && sign == '\\' {
            escaped = true;
        } else {
            if sign == '"' && !escaped {
                inside = !inside;
            }
            escaped = false;
        }
        is_text || !(sign.is_ascii_digit() || "+-.eE".contains(sign))
    };
    text.split(outside).filter(|number| number.contains(|sign: char| sign.is_ascii_digit()))
}
