//! JSON as Python's `json.dumps` writes it.

use super::number::float_repr;
use super::{Buffer, Key, Value};
use crate::error::{Res, too_much, wrong};
use crate::meter::{DEPTH, room, spend, spend_bytes};
use std::fmt::Write;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) ensure_ascii: bool,
    /// Indentation of one level; `None`: all in one line.
    pub(crate) indent: Option<String>,
    pub(crate) item: String,
    pub(crate) key: String,
    pub(crate) sort_keys: bool,
}

pub(crate) fn dumps(value: &Value, options: &Options) -> Res<String> {
    let mut out = Buffer::default();
    write(value, options, &mut out, 0)?;
    Ok(out.into_traced().into_text())
}

fn write(value: &Value, options: &Options, out: &mut Buffer, depth: u32) -> Res<()> {
    spend(1)?;
    if depth > DEPTH {
        return too_much(format!("a value written as JSON is more than {DEPTH} deep"));
    }
    match value {
        Value::None => out.push("null"),
        Value::Bool(value) => out.push(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push(&value.to_string()),
        Value::Float(value) => out.push(&float(*value)),
        Value::Str(text) => write_quoted(text.as_str(), options.ensure_ascii, out),
        Value::List(list) | Value::Tuple(list) if list.items().is_empty() => out.push("[]"),
        Value::List(list) | Value::Tuple(list) => {
            out.push("[")?;
            for (index, item) in list.items().iter().enumerate() {
                separate(index, options, out, depth)?;
                write(item, options, out, depth + 1)?;
            }
            new_line(options, out, depth)?;
            out.push("]")
        }
        Value::Dict(dict) if dict.entries().is_empty() => out.push("{}"),
        Value::Dict(dict) => {
            out.push("{")?;
            let mut entries: Vec<(Value, &Value)> =
                dict.entries().iter().map(|(Key(key), value)| (key.clone(), value)).collect();
            if options.sort_keys {
                super::ops::sort(&mut entries, false)?;
            }
            for (index, (key, value)) in entries.iter().enumerate() {
                separate(index, options, out, depth)?;
                let name = match key {
                    Value::Str(text) => text.as_str().to_owned(),
                    Value::None => "null".into(),
                    Value::Bool(value) => if *value { "true" } else { "false" }.into(),
                    Value::Int(value) => value.to_string(),
                    Value::Float(value) => float(*value),
                    other => {
                        let found = other.type_name();
                        return wrong(format!("keys must be str, int, float, bool or None, not {found}"));
                    }
                };
                write_quoted(&name, options.ensure_ascii, out)?;
                out.push(&options.key)?;
                write(value, options, out, depth + 1)?;
            }
            new_line(options, out, depth)?;
            out.push("}")
        }
        other => wrong(format!("Object of type {} is not JSON serializable", other.type_name())),
    }
}

fn float(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => float_repr(value),
    }
}

fn separate(index: usize, options: &Options, out: &mut Buffer, depth: u32) -> Res<()> {
    if index > 0 {
        out.push(&options.item)?;
    }
    new_line(options, out, depth + 1)
}

fn new_line(options: &Options, out: &mut Buffer, depth: u32) -> Res<()> {
    let Some(indent) = &options.indent else { return Ok(()) };
    out.push("\n")?;
    for _ in 0..depth {
        out.push(indent)?;
    }
    Ok(())
}

fn write_quoted(text: &str, ensure_ascii: bool, out: &mut Buffer) -> Res<()> {
    spend_bytes(text.len() * 4)?;
    room(text.len() * 6)?;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0c' => quoted.push_str("\\f"),
            '\x08' => quoted.push_str("\\b"),
            _ if character < ' ' || (ensure_ascii && character > '~') => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    out.push(&quoted)
}
