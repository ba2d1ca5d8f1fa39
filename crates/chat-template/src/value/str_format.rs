//! Formatting as Python's `'{}'.format(...)`.

use super::number::{as_float, as_int, float_repr};
use super::printf::{Spec, check_width, float_digits, general_form, integer_digits, number_out, pad, pad_text};
use super::{Buffer, Text, Value};
use crate::builtins::args::Args;
use crate::error::{Res, wrong};
use crate::eval::attributes;

/// Formats a text with arguments.
pub(crate) fn format(format: &Text, args: &Args) -> Res<Value> {
    let mut out = Buffer::default();
    let mut number = 0;
    write(format, format.as_str(), args, &mut number, 0, &mut out)?;
    out.into_value()
}

/// Fills a part of a format.
fn write(whole: &Text, format: &str, args: &Args, number: &mut usize, depth: u32, out: &mut Buffer) -> Res<()> {
    if depth > 2 {
        return wrong("Max string recursion exceeded");
    }
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_part(whole, &rest[..at])?;
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_part(whole, brace)?;
            rest = after;
            continue;
        }
        if brace == "}" {
            return wrong("Single '}' encountered in format string");
        }
        let mut open = 1;
        let end = rest.find(|character| {
            open += i32::from(character == '{') - i32::from(character == '}');
            open == 0
        });
        let Some(end) = end else { return wrong("expected '}' before end of string") };
        field(whole, &rest[..end], args, number, depth, out)?;
        rest = &rest[end + 1..];
    }
    out.push_part(whole, rest)
}

fn field(whole: &Text, field: &str, args: &Args, number: &mut usize, depth: u32, out: &mut Buffer) -> Res<()> {
    let (name, spec) = field.split_once(':').unwrap_or((field, ""));
    let (name, conversion) = match name.split_once('!') {
        Some((name, conversion)) => (name, Some(conversion)),
        None => (name, None),
    };
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let mut value = match &name[..end] {
        "" => {
            *number += 1;
            args.positional.get(*number - 1).cloned()
        }
        first => match first.parse::<usize>() {
            Ok(index) => args.positional.get(index).cloned(),
            Err(_) => args.named.iter().find(|(name, _)| &**name == first).map(|(_, value)| value.clone()),
        },
    };
    let mut path = &name[end..];
    while let (Some(of), false) = (&value, path.is_empty()) {
        let (found, rest) = if let Some(rest) = path.strip_prefix('.') {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            (attributes::attribute(of, &rest[..end])?, &rest[end..])
        } else {
            let Some((key, rest)) = path.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
                return wrong("Missing ']' in format string");
            };
            let key = match key.parse::<i128>() {
                Ok(index) => Value::Int(index),
                Err(_) => Value::str(key)?,
            };
            (attributes::item(of, &key)?, rest)
        };
        if let Some(missing) = found.missing() {
            return Err(missing);
        }
        (value, path) = (Some(found), rest);
    }
    let Some(value) = value else { return wrong(format!("no argument for '{{{name}}}' in a format string")) };
    let mut inner = Buffer::default();
    write(whole, spec, args, number, depth + 1, &mut inner)?;
    let value = match conversion {
        None => value,
        Some("s") => Value::Str(value.to_text()?),
        Some("r") => Value::Str(value.repr()?),
        Some(other) => return wrong(format!("Unknown conversion specifier {other:?}")),
    };
    write_formatted(&value, inner.as_str(), out)
}

/// Python's `format(value, spec)`.
fn write_formatted(value: &Value, spec: &str, out: &mut Buffer) -> Res<()> {
    if spec.is_empty() {
        return value.print(out);
    }
    let mut parsed = Spec::default();
    let mut rest = spec;
    let second = rest.chars().nth(1);
    let mut align = None;
    if second.is_some_and(|second| "<>^=".contains(second)) {
        parsed.fill = rest.chars().next();
        align = second;
        rest = rest.char_indices().nth(2).map_or("", |(at, _)| &rest[at..]);
    } else if rest.starts_with(['<', '>', '^', '=']) {
        align = rest.chars().next();
        rest = &rest[1..];
    }
    if rest.starts_with(['+', '-', ' ']) {
        parsed.sign = rest.chars().next();
        rest = &rest[1..];
    }
    if let Some(after) = rest.strip_prefix('#') {
        parsed.alternate = true;
        rest = after;
    }
    if rest.starts_with('0') {
        parsed.zero = align.is_none();
        rest = &rest[1..];
    }
    let digits = |rest: &mut &str| -> Option<i128> {
        let end = rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len());
        let (found, after) = rest.split_at(end);
        *rest = after;
        (!found.is_empty()).then(|| found.parse().unwrap_or(i128::MAX))
    };
    parsed.width = check_width(digits(&mut rest).unwrap_or(0))?;
    let grouping = rest.chars().next().filter(|sign| ",_".contains(*sign));
    rest = &rest[grouping.map_or(0, |_| 1)..];
    if let Some(mut after) = rest.strip_prefix('.') {
        let Some(precision) = digits(&mut after) else { return wrong("Format specifier missing precision") };
        parsed.precision = Some(check_width(precision)?);
        rest = after;
    }
    let letter = rest.chars().next();
    if rest.chars().count() > 1 {
        return wrong(format!("Invalid format specifier '{spec}'"));
    }
    parsed.center = align == Some('^');
    parsed.left = align == Some('<');
    parsed.zero |= align == Some('=') && parsed.fill == Some('0');
    let is_number = !matches!(value, Value::Bool(_)) || letter.is_some();
    match (value, letter) {
        (Value::Str(text), None | Some('s')) => {
            parsed.left = !matches!(align, Some('>' | '^'));
            pad_text(text, &parsed, out)
        }
        (_, Some('f' | 'F' | 'e' | 'E' | 'g' | 'G' | '%')) if as_float(value).is_some() => {
            let (number, letter) = (as_float(value).unwrap_or_default(), letter.unwrap_or('f'));
            let digits = if letter == '%' {
                float_digits(number * 100.0, 'f', &parsed)? + "%"
            } else {
                float_digits(number, letter, &parsed)?
            };
            number_out(&group_digits(&digits, grouping), &parsed, out)
        }
        (Value::Float(number), None) => {
            let digits = match parsed.precision {
                Some(precision) => {
                    let digits = general_form(*number, precision.clamp(1, 400), false);
                    if digits.contains(['.', 'e', 'n']) { digits } else { digits + ".0" }
                }
                None => float_repr(*number),
            };
            number_out(&group_digits(&digits, grouping), &parsed, out)
        }
        (_, None | Some('d' | 'n' | 'x' | 'X' | 'o' | 'b')) if is_number && as_int(value).is_some() => {
            if parsed.precision.is_some() {
                return wrong("Precision not allowed in integer format specifier");
            }
            let digits = integer_digits(as_int(value).unwrap_or_default(), letter.unwrap_or('d'), &parsed)?;
            number_out(&group_digits(&digits, grouping), &parsed, out)
        }
        (Value::Bool(value), None) => pad(if *value { "True" } else { "False" }, &parsed, out),
        (other, _) => wrong(format!("unsupported format string '{spec}' for {}", other.type_name())),
    }
}

/// Separates groups of three digits.
fn group_digits(digits: &str, separator: Option<char>) -> String {
    let Some(separator) = separator else { return digits.to_owned() };
    let start = usize::from(digits.starts_with('-'));
    let end = digits.find(['.', 'e']).unwrap_or(digits.len());
    let whole = &digits[start..end];
    let mut out = digits[..start].to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(separator);
        }
        out.push(digit);
    }
    out + &digits[end..]
}
