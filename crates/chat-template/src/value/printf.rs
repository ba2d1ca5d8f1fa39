//! Python's `'%s' % args`, and how one number is laid out.

use super::number::{DIGITS, as_float, as_int, float_repr};
use super::{Buffer, Text, Value};
use crate::error::{Res, too_much, wrong};
use crate::meter::room;
use std::iter::Peekable;
use std::str::CharIndices;

/// Specification between `%` and the letter.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one sign of a format")]
pub(crate) struct Spec {
    pub(crate) left: bool,
    pub(crate) center: bool,
    /// Zeros between the sign and the digits.
    pub(crate) zero: bool,
    pub(crate) sign: Option<char>,
    pub(crate) alternate: bool,
    pub(crate) fill: Option<char>,
    pub(crate) width: usize,
    pub(crate) precision: Option<usize>,
}

/// Formats a text as Python's `%`.
pub(crate) fn format(whole: &Text, args: &Value) -> Res<Value> {
    let format = whole.as_str();
    let values: Vec<Value> = match args {
        Value::Tuple(list) => list.items().to_vec(),
        other => vec![other.clone()],
    };
    let mut out = Buffer::default();
    let mut values = values.into_iter();
    let mut by_name = false;
    let mut characters = format.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character != '%' {
            let end = format[at..].find('%').map_or(format.len(), |next| at + next);
            out.push_part(whole, &format[at..end])?;
            while characters.next_if(|&(next, _)| next < end).is_some() {}
            continue;
        }
        let mut key = None;
        if characters.next_if(|&(_, next)| next == '(').is_some() {
            let start = at + 2;
            let mut open = 1;
            let end = characters.find(|&(_, next)| {
                open += i32::from(next == '(') - i32::from(next == ')');
                open == 0
            });
            let Some((end, _)) = end else { return wrong("incomplete format key") };
            key = Some(&format[start..end]);
        }
        let mut next = || values.next().map_or_else(|| wrong("not enough arguments for format string"), Ok);
        let spec = spec(&mut characters, &mut next)?;
        while characters.next_if(|&(_, next)| "hlL".contains(next)).is_some() {}
        let Some((at, letter)) = characters.next() else { return wrong("incomplete format") };
        if letter == '%' {
            out.push_part(whole, &format[at..=at])?;
            continue;
        }
        let value = match (key, args) {
            (Some(key), Value::Dict(dict)) => {
                by_name = true;
                match dict.get(key) {
                    Some(value) => value.clone(),
                    None => return wrong(format!("KeyError: '{key}'")),
                }
            }
            (Some(_), _) => return wrong("format requires a mapping"),
            (None, _) => next()?,
        };
        conversion(letter, at, &spec, &value, &mut out)?;
    }
    let by_name = by_name || matches!(args, Value::Dict(_) | Value::List(_));
    if values.next().is_some() && !by_name {
        return wrong("not all arguments converted during string formatting");
    }
    out.into_value()
}

fn spec(characters: &mut Peekable<CharIndices<'_>>, next: &mut impl FnMut() -> Res<Value>) -> Res<Spec> {
    let mut spec = Spec::default();
    while let Some((_, flag)) = characters.next_if(|&(_, flag)| "-+ #0".contains(flag)) {
        match flag {
            '-' => spec.left = true,
            '+' => spec.sign = Some('+'),
            ' ' => spec.sign = spec.sign.or(Some(' ')),
            '#' => spec.alternate = true,
            _ => spec.zero = true,
        }
    }
    let mut number = |characters: &mut Peekable<CharIndices<'_>>| -> Res<Option<i128>> {
        if characters.next_if(|&(_, star)| star == '*').is_some() {
            return match as_int(&next()?) {
                Some(number) => Ok(Some(number)),
                None => wrong("* wants int"),
            };
        }
        let mut digits = None;
        while let Some((_, digit)) = characters.next_if(|(_, digit)| digit.is_ascii_digit()) {
            let more = i128::from(digit.to_digit(10).unwrap_or_default());
            digits = Some(digits.unwrap_or(0_i128).saturating_mul(10).saturating_add(more));
        }
        Ok(digits)
    };
    let width = number(characters)?.unwrap_or(0);
    spec.left |= width < 0;
    spec.width = check_width(width.saturating_abs())?;
    if characters.next_if(|&(_, point)| point == '.').is_some() {
        spec.precision = Some(check_width(number(characters)?.unwrap_or(0).max(0))?);
    }
    Ok(spec)
}

/// A width or precision that memory has room for.
pub(crate) fn check_width(width: i128) -> Res<usize> {
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    room(width)?;
    Ok(width)
}

fn conversion(letter: char, at: usize, spec: &Spec, value: &Value, out: &mut Buffer) -> Res<()> {
    match letter {
        's' | 'r' | 'a' => {
            let text = if letter == 's' { value.to_text()? } else { value.repr()? };
            let spec = Spec { width: spec.width, left: spec.left, precision: spec.precision, ..Spec::default() };
            pad_text(&text, &spec, out)
        }
        'c' => match value {
            Value::Str(text) if text.count()? == 1 => pad(text.as_str(), &spec.without_zero(), out),
            other => match as_int(other).and_then(|code| char::from_u32(u32::try_from(code).ok()?)) {
                Some(character) => pad(&character.to_string(), &spec.without_zero(), out),
                None => wrong("%c requires int or char"),
            },
        },
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let number = match value {
                Value::Float(value) if "diu".contains(letter) && value.is_finite() => Some(value.trunc() as i128),
                other => as_int(other),
            };
            let Some(number) = number else {
                let found = value.type_name();
                return Err(value.missing().unwrap_or_else(|| {
                    let what = if "diu".contains(letter) { "a real number" } else { "an integer" };
                    crate::error::Fault::new(
                        crate::error::Kind::Value,
                        format!("%{letter} format: {what} is required, not {found}"),
                    )
                }));
            };
            number_out(&integer_digits(number, letter, spec)?, spec, out)
        }
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
            let Some(number) = as_float(value) else {
                let found = value.type_name();
                return Err(value.missing().unwrap_or_else(|| {
                    crate::error::Fault::new(crate::error::Kind::Value, format!("must be real number, not {found}"))
                }));
            };
            number_out(&float_digits(number, letter, spec)?, spec, out)
        }
        other => wrong(format!("unsupported format character {other:?} at index {at}")),
    }
}

impl Spec {
    fn without_zero(&self) -> Self {
        Self { width: self.width, left: self.left, ..Self::default() }
    }
}

/// Digits of an integer with what stands before them.
pub(crate) fn integer_digits(number: i128, letter: char, spec: &Spec) -> Res<String> {
    let magnitude = number.unsigned_abs();
    let digits = match letter {
        'x' => format!("{magnitude:x}"),
        'X' => format!("{magnitude:X}"),
        'o' => format!("{magnitude:o}"),
        'b' => format!("{magnitude:b}"),
        _ => magnitude.to_string(),
    };
    let least = spec.precision.unwrap_or(0);
    room(least)?;
    let digits = "0".repeat(least.saturating_sub(digits.len())) + &digits;
    let prefix = match letter {
        'x' | 'X' | 'o' | 'b' if spec.alternate => format!("0{letter}"),
        _ => String::new(),
    };
    Ok(format!("{}{prefix}{digits}", if number < 0 { "-" } else { "" }))
}

/// Digits of a float.
pub(crate) fn float_digits(number: f64, letter: char, spec: &Spec) -> Res<String> {
    let precision = spec.precision.unwrap_or(6);
    if precision > DIGITS {
        return too_much(format!("{precision} digits after the point: at most {DIGITS} are written"));
    }
    let text = if number.is_finite() {
        match letter.to_ascii_lowercase() {
            'f' => format!("{number:.precision$}"),
            'e' => exponent_form(number, precision),
            _ => general_form(number, precision.max(1), spec.alternate),
        }
    } else {
        float_repr(number)
    };
    Ok(if letter.is_ascii_uppercase() { text.to_uppercase() } else { text })
}

fn exponent_form(number: f64, precision: usize) -> String {
    let scientific = format!("{number:.precision$e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

pub(crate) fn general_form(number: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponent_form(number, precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
    let power: i64 = exponent.parse().unwrap_or_default();
    let trimmed = |text: &str| {
        if text.contains('.') && !keep_zeros {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if power < -4 || power >= precision as i64 {
        return format!("{}e{exponent}", trimmed(digits));
    }
    let after = (precision as i64 - 1 - power).max(0) as usize;
    trimmed(&format!("{number:.after$}"))
}

/// A number with its sign, padded.
pub(crate) fn number_out(digits: &str, spec: &Spec, out: &mut Buffer) -> Res<()> {
    let (negative, digits) = digits.strip_prefix('-').map_or((false, digits), |digits| (true, digits));
    let sign = if negative { Some('-') } else { spec.sign.filter(|sign| *sign != '-') };
    let sign = sign.map(String::from).unwrap_or_default();
    if spec.zero && !spec.left {
        let (prefix, digits) = match digits.get(..2) {
            Some(prefix @ ("0x" | "0X" | "0o" | "0b")) if spec.alternate => (prefix, &digits[2..]),
            _ => ("", digits),
        };
        out.push(&sign)?;
        out.push(prefix)?;
        let taken = sign.len() + prefix.len() + digits.chars().count();
        out.fill('0', spec.width.saturating_sub(taken))?;
        return out.push(digits);
    }
    pad(&(sign + digits), spec, out)
}

/// Writes a field padded to its width.
pub(crate) fn pad(text: &str, spec: &Spec, out: &mut Buffer) -> Res<()> {
    write_padded(text, spec, out, |out| out.push(text))
}

/// Writes a text, cut to the precision and padded to the width. Its bytes keep their origin.
pub(crate) fn pad_text(text: &Text, spec: &Spec, out: &mut Buffer) -> Res<()> {
    let (whole, most) = (text.as_str(), spec.precision.unwrap_or(usize::MAX));
    let part = whole.char_indices().nth(most).map_or(whole, |(end, _)| &whole[..end]);
    write_padded(part, spec, out, |out| out.push_part(text, part))
}

fn write_padded(text: &str, spec: &Spec, out: &mut Buffer, push: impl FnOnce(&mut Buffer) -> Res<()>) -> Res<()> {
    let fill = spec.fill.unwrap_or(' ');
    let missing = spec.width.saturating_sub(text.chars().count());
    let before = if spec.center {
        missing / 2
    } else if spec.left {
        0
    } else {
        missing
    };
    out.fill(fill, before)?;
    push(out)?;
    out.fill(fill, missing - before)
}
