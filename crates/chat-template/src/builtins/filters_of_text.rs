//! Filters that give texts and numbers.

use super::args::{Args, flag, int, unless_none};
use super::methods_of_text as methods;
use crate::error::{Res, wrong};
use crate::eval::Eval;
use crate::eval::attributes::text_of;
use crate::meter::{room, spend_bytes};
use crate::value::number::{as_float, as_int, round as round_number};
use crate::value::text::lines;
use crate::value::{Buffer, Key, Text, Value, json, printf};
use std::fmt::Write;
use std::rc::Rc;

/// Jinja2's `soft_str`: a text stays what it is, and anything else becomes one.
fn soft(value: &Value) -> Res<Rc<Text>> {
    match value {
        Value::Str(text) => Ok(Rc::clone(text)),
        other => other.to_text(),
    }
}

pub(super) fn string(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("string")?;
    soft(&value).map(Value::Str)
}

pub(super) fn safe(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("safe")?;
    Text::traced_text(value.to_text()?.as_traced().clone(), true).map(Value::Str)
}

pub(super) fn escape(value: &Value, args: Args, force: bool) -> Res<Value> {
    args.none("escape")?;
    match value {
        Value::Str(text) if text.is_markup() && !force => Ok(Value::Str(Rc::clone(text))),
        other => {
            let text = other.to_text()?;
            room(6 * text.len())?;
            text.escape().map(Value::Str)
        }
    }
}

pub(super) fn case(value: &Value, args: Args, name: &str) -> Res<Value> {
    args.none(name)?;
    methods::changed_case(&*soft(value)?, name)
}

pub(super) fn trim(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [characters] = args.bind("trim", ["chars"])?;
    let text = soft(&value)?;
    spend_bytes(text.len())?;
    methods::strip(&text, unless_none(characters).as_ref(), "strip")
}

pub(super) fn title(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("title")?;
    let text = soft(&value)?;
    spend_bytes(8 * text.len())?;
    let mut out = Buffer::default();
    let mut inside = false;
    for character in text.as_str().chars() {
        let separates = "-({[<".contains(character) || crate::value::is_space(character);
        if separates {
            out.push_char(character)?;
        } else if inside {
            character.to_lowercase().try_for_each(|character| out.push_char(character))?;
        } else {
            character.to_uppercase().try_for_each(|character| out.push_char(character))?;
        }
        inside = !separates;
    }
    text.made_of(out.into_traced().into_text(), false).map(Value::Str)
}

pub(super) fn center(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [width] = args.bind("center", ["width"])?;
    methods::justify(&*soft(&value)?, int(width.as_ref(), 80, "center")?, ' ', "center")
}

pub(super) fn replace(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [old, new, count] = args.bind("replace", ["old", "new", "count"])?;
    let (Some(old), Some(new)) = (old, new) else { return wrong("replace needs what to replace, and by what") };
    let count = int(unless_none(count).as_ref(), -1, "replace")?;
    methods::replace(&*value.to_text()?, old.to_text()?.as_str(), &*new.to_text()?, count)
}

pub(super) fn indent(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [width, first, blank] = args.bind("indent", ["width", "first", "blank"])?;
    let text = text_of(&value, "what is indented")?;
    let indention = match width {
        Some(Value::Str(text)) => text,
        width => match Value::str(" ").and_then(|blank| match &blank {
            Value::Str(blank) => crate::value::ops::repeat(blank, int(width.as_ref(), 4, "indent")?),
            _ => Ok(Value::None),
        })? {
            Value::Str(text) => text,
            _ => return wrong("indent"),
        },
    };
    room(text.len() + 1)?;
    let mut whole = Buffer::default();
    whole.push_text(text)?;
    whole.push("\n")?;
    let whole = Text::traced_text(whole.into_traced(), false)?;
    let mut out = Buffer::default();
    if flag(first.as_ref(), false) {
        out.push_text(&indention)?;
    }
    for (index, line) in lines(whole.as_str(), false)?.into_iter().enumerate() {
        if index > 0 {
            out.push("\n")?;
            if !line.is_empty() || flag(blank.as_ref(), false) {
                out.push_text(&indention)?;
            }
        }
        out.push_part(&whole, line)?;
    }
    out.into_value()
}

pub(super) fn truncate(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [length, kill, end, leeway] = args.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let text = text_of(&value, "what is truncated")?;
    let end = end.map_or_else(|| Value::str("..."), Ok)?;
    let end = text_of(&end, "end")?;
    let length = int(length.as_ref(), 255, "truncate")?;
    let leeway = int(unless_none(leeway).as_ref(), 5, "truncate")?;
    let shown = end.count()? as i128;
    if length < shown || leeway < 0 {
        return wrong(format!("expected length >= {shown}, got {length}"));
    }
    if text.count()? as i128 <= length.saturating_add(leeway) {
        return Ok(value);
    }
    let kept = text.slice(0, (length - shown) as usize)?;
    let kept = if flag(kill.as_ref(), false) { kept } else { kept.rsplit_once(' ').map_or(kept, |(kept, _)| kept) };
    let mut out = Buffer::default();
    out.push_part(text, kept)?;
    out.push_text(end)?;
    out.into_value()
}

pub(super) fn format(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    if !args.positional.is_empty() && !args.named.is_empty() {
        return wrong("can't handle positional and keyword arguments at the same time");
    }
    let text = soft(&value)?;
    let values = if args.named.is_empty() {
        Value::tuple(args.positional)?
    } else {
        let mut entries = indexmap::IndexMap::new();
        for (name, value) in args.named {
            entries.insert(Key::new(Value::str(&*name)?)?, value);
        }
        Value::Dict(crate::value::Dict::new(entries)?)
    };
    printf::format(&text, &values)
}

pub(super) fn striptags(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("striptags")?;
    let text = value.to_text()?;
    spend_bytes(4 * text.len())?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let comment = rest[at..].starts_with("<!--");
        let end = if comment { rest[at..].find("-->").map(|end| end + 3) } else { rest[at..].find('>').map(|e| e + 1) };
        let Some(end) = end else {
            rest = &rest[at..];
            break;
        };
        rest = &rest[at + end..];
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split(crate::value::is_space).filter(|word| !word.is_empty()).collect();
    let plain = words.join(" ").replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'");
    let plain = plain.replace("&#34;", "\"").replace("&quot;", "\"").replace("&amp;", "&");
    text.made_of(plain, false).map(Value::Str)
}

pub(super) fn wordcount(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("wordcount")?;
    let text = soft(&value)?;
    spend_bytes(8 * text.len())?;
    let word = |character: char| character == '_' || character.is_alphanumeric();
    Ok(text.as_str().split(|character| !word(character)).filter(|part| !part.is_empty()).count().into())
}

pub(super) fn urlencode(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("urlencode")?;
    if matches!(value, Value::Str(_)) || !value.is_iterable() {
        return Value::str(quoted_url(value.to_text()?.as_str(), false)?);
    }
    let pairs = match &value {
        Value::Dict(dict) => Value::View(crate::value::View::Items, Rc::clone(dict)).iterate()?,
        other => other.iterate()?,
    };
    let mut out = Buffer::default();
    for (index, pair) in pairs.iter().enumerate() {
        let [key, value] = &pair.iterate()?[..] else { return wrong("urlencode needs pairs") };
        out.push(if index > 0 { "&" } else { "" })?;
        out.push(&quoted_url(key.to_text()?.as_str(), true)?)?;
        out.push("=")?;
        out.push(&quoted_url(value.to_text()?.as_str(), true)?)?;
    }
    out.into_value()
}

fn quoted_url(text: &str, query: bool) -> Res<String> {
    room(3 * text.len())?;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' if query => out.push('+'),
            b'/' if !query => out.push('/'),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' | b'-' | b'~' => out.push(byte.into()),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    Ok(out)
}

pub(super) fn tojson(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let [ascii, indent, separators, sort] = args.bind("tojson", names)?;
    let indent = match unless_none(indent) {
        None => None,
        Some(Value::Str(text)) => Some(text.as_str().to_owned()),
        Some(width) => {
            let width = usize::try_from(int(Some(&width), 0, "indent")?.max(0)).unwrap_or(usize::MAX);
            room(width)?;
            Some(" ".repeat(width))
        }
    };
    let (item, key) = match unless_none(separators) {
        Some(pair) => match &pair.iterate()?[..] {
            [item, key] => {
                (text_of(item, "separator")?.as_str().to_owned(), text_of(key, "separator")?.as_str().to_owned())
            }
            _ => return wrong("separators must be two texts"),
        },
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
    };
    let options = json::Options {
        ensure_ascii: flag(ascii.as_ref(), false),
        indent,
        item,
        key,
        sort_keys: flag(sort.as_ref(), false),
    };
    Value::str(json::dumps(&value, &options)?)
}

pub(super) fn abs(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("abs")?;
    match (as_int(&value), as_float(&value)) {
        (Some(value), _) => Ok(Value::Int(value.saturating_abs())),
        (None, Some(value)) => Ok(Value::Float(value.abs())),
        _ => Err(value.missing().unwrap_or_else(|| {
            let reason = format!("bad operand type for abs(): '{}'", value.type_name());
            crate::error::Fault::new(crate::error::Kind::Value, reason)
        })),
    }
}

pub(super) fn round(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [precision, method] = args.bind("round", ["precision", "method"])?;
    let precision = int(precision.as_ref(), 0, "round")?;
    let method = method.map_or_else(|| Value::str("common"), Ok)?;
    let method = text_of(&method, "method")?.as_str();
    if method == "common" {
        return round_number(&value, precision);
    }
    let Some(number) = as_float(&value) else {
        let reason = "must be real number";
        return Err(value.missing().unwrap_or_else(|| crate::error::Fault::new(crate::error::Kind::Value, reason)));
    };
    let unit = 10_f64.powi(precision.clamp(-400, 400) as i32);
    let scaled = number * unit;
    let found = match method {
        "ceil" => scaled.ceil(),
        "floor" => scaled.floor(),
        _ => return wrong("method must be common, ceil or floor"),
    };
    if !found.is_finite() {
        return wrong("cannot convert float infinity to integer");
    }
    Ok(Value::Float(found / unit))
}

/// Python's `int(text, base)`.
fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim_matches(crate::value::is_space);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (base, digits) = match (prefix.as_deref(), base) {
        (Some("0x"), 16 | 0) => (16, &digits[2..]),
        (Some("0o"), 8 | 0) => (8, &digits[2..]),
        (Some("0b"), 2 | 0) => (2, &digits[2..]),
        (_, 0) => (10, digits),
        _ => (base, digits),
    };
    if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") || !(2..=36).contains(&base) {
        return None;
    }
    if !digits.starts_with(char::is_alphanumeric) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -value } else { value })
}

/// Parses a number as Python's `float(text)`.
fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(crate::value::is_space).replace('_', "");
    text.parse().ok()
}

pub(super) fn int_of(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [otherwise, base] = args.bind("int", ["default", "base"])?;
    let otherwise = otherwise.unwrap_or(Value::Int(0));
    let base = u32::try_from(int(base.as_ref(), 10, "int")?).unwrap_or(1);
    if let Some(missing) = value.missing() {
        return Err(missing);
    }
    let truncated = |number: f64| (number.is_finite() && number.abs() < 1e37).then_some(number.trunc() as i128);
    let found = match &value {
        Value::Str(text) => {
            let text = text.as_str();
            spend_bytes(text.len())?;
            parse_int(text, base).or_else(|| truncated(parse_float(text)?))
        }
        other => as_int(other).or_else(|| truncated(as_float(other)?)),
    };
    Ok(found.map_or(otherwise, Value::Int))
}

pub(super) fn float(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [otherwise] = args.bind("float", ["default"])?;
    if let Some(missing) = value.missing() {
        return Err(missing);
    }
    let found = match &value {
        Value::Str(text) => {
            spend_bytes(text.len())?;
            parse_float(text.as_str())
        }
        other => as_float(other),
    };
    Ok(found.map_or_else(|| otherwise.unwrap_or(Value::Float(0.0)), Value::Float))
}
