//! Arguments that are no JSON object: tags, elements, keywords, pairs.

use super::shape::Shape;
use crate::analysis::probe::Probe;
use crate::analysis::text::{common_prefix, common_suffix};
use crate::dialect::{Arguments, Style, TaggedArguments, ValueOpening};
use serde_json::{Value, json};

/// Arguments in a text, and where they are.
#[derive(Debug, Clone)]
pub(super) struct FoundArguments {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) arguments: Arguments,
}

/// The texts around the keys and values of a call.
struct ArgumentDelimiters<'a> {
    /// Between name and first key.
    to_key: &'a str,
    /// Between a key and its value, a text.
    to_value: &'a str,
    /// Between a value and the next key.
    to_next: &'a str,
    /// After the last value.
    rest: &'a str,
    key_at: usize,
    value_end: usize,
}

/// The arguments of the call of this number, which stands in `text`.
pub(super) fn find(probe: &Probe, shape: &Shape, text: &str, number: usize) -> Option<FoundArguments> {
    let needles = &probe.needles;
    let (name, [key, next]) = (&needles.names[number], &needles.keys);
    let name_at = text.find(name.as_str())?;
    let both = json!({key: &needles.values[0], next: &needles.values[1]});
    let pair = shape.render(probe, vec![probe.call(0, both)])?;
    let to_next = text_between(&pair, &needles.values[0], next)?;
    // The name may be written again before the first key.
    let key_at = name_at + text[name_at..].find(key.as_str())?;
    let name_end = text[..key_at].rfind(name.as_str())? + name.len();
    let value_at = key_at + text[key_at..].find(needles.values[number].as_str())?;
    let value_end = value_at + needles.values[number].len();
    let around = ArgumentDelimiters {
        to_key: &text[name_end..key_at],
        to_value: text.get(key_at + key.len()..value_at)?,
        to_next,
        rest: &text[value_end..],
        key_at,
        value_end,
    };
    keywords(&around)
        .or_else(|| pairs(probe, shape, &around))
        .or_else(|| elements(probe, shape, &around))
        .or_else(|| find_tagged(probe, shape, &around))
}

fn text_between<'a>(text: &'a str, first: &str, second: &str) -> Option<&'a str> {
    let from = text.find(first)? + first.len();
    let to = from + text[from..].find(second)?;
    Some(&text[from..to])
}

/// `(key='value', next='value')`.
fn keywords(around: &ArgumentDelimiters) -> Option<FoundArguments> {
    let quote = around.to_value.trim().strip_prefix('=')?.trim_start();
    let is_quote = matches!(quote, "'" | "\"");
    if !is_quote || !around.to_key.ends_with('(') || !around.rest.starts_with(quote) {
        return None;
    }
    if around.to_next.strip_prefix(quote)?.trim() != "," {
        return None;
    }
    let mut style = python(quote);
    style.keys_apart = around.to_value.starts_with(char::is_whitespace);
    let end = around.value_end + quote.len();
    Some(FoundArguments { start: around.key_at, end, arguments: Arguments::Keywords(style) })
}

/// Python's style, these quotes first.
fn python(quote: &str) -> Style {
    let mut style = Style::python();
    style.quotes.sort_by_key(|other| other.mark != quote);
    style
}

/// `{key:"value",next:"value"}`, often with quotes of its own.
fn pairs(probe: &Probe, shape: &Shape, around: &ArgumentDelimiters) -> Option<FoundArguments> {
    let quote = around.to_value.trim().strip_prefix(':')?.trim_start();
    let opened = around.to_key.trim_end().ends_with(['{', '(', '[']);
    if quote.is_empty() || !opened || around.to_next.strip_prefix(quote)?.trim() != "," {
        return None;
    }
    let end = around.value_end + around.rest.strip_prefix(quote).map(|_| quote.len())?;
    let mut style = if matches!(quote, "'" | "\"") { python(quote) } else { Style::quoted_by(quote) };
    style.keys_apart = around.to_value.starts_with(char::is_whitespace);
    find_nested_delimiters(probe, shape, &mut style);
    Some(FoundArguments { start: around.key_at, end, arguments: Arguments::Pairs(style) })
}

/// Finds the delimiters of texts and keys inside objects, if those are JSON's or Python's.
fn find_nested_delimiters(probe: &Probe, shape: &Shape, style: &mut Style) {
    let (key, [inner, value]) = (&probe.needles.keys[0], &probe.needles.values);
    let Some(text) = shape.render(probe, vec![probe.call(0, json!({key: {inner: value}}))]) else { return };
    let mark = |needle: &str| text.find(needle).and_then(|at| text[..at].chars().next_back()).map(String::from);
    let quoted = |mark: &Option<String>| matches!(mark.as_deref(), Some("'" | "\""));
    let of_value = mark(value);
    if quoted(&of_value) && style.quotes.iter().all(|quote| Some(&quote.mark) != of_value.as_ref()) {
        style.quotes.extend(if of_value.as_deref() == Some("'") { Style::python() } else { Style::json() }.quotes);
    }
    style.bare_keys = !quoted(&mark(inner));
}

/// `<key>value</key>`, the value perhaps as JSON: `<key>"value"</key>`.
fn elements(probe: &Probe, shape: &Shape, around: &ArgumentDelimiters) -> Option<FoundArguments> {
    let key = &probe.needles.keys[0];
    let quote = if around.to_value.ends_with('"') && !is_quoted(probe, shape, '"') { "\"" } else { "" };
    let to_value = around.to_value.strip_suffix(quote)?;
    let closing = &around.rest[..around.rest.find(key)?];
    let mark = closing.strip_prefix(quote)?.strip_suffix("</")?;
    let opening = format!("{mark}<");
    if !around.to_key.ends_with(&opening) || !around.rest[closing.len() + key.len()..].starts_with(to_value) {
        return None;
    }
    let start = around.key_at - opening.len();
    let end = around.value_end + closing.len() + key.len() + to_value.len();
    let arguments = Arguments::Elements { mark: mark.to_owned(), quoted: !quote.is_empty() };
    Some(FoundArguments { start, end, arguments })
}

fn find_tagged(probe: &Probe, shape: &Shape, around: &ArgumentDelimiters) -> Option<FoundArguments> {
    let mut value_end = common_prefix(around.to_next, around.rest);
    let rest = &around.to_next[value_end.len()..];
    let key_start = common_suffix(around.to_key, rest).trim_start();
    let mut to_value = around.to_value;
    // Quotes that are of texts only belong to them.
    let quote = value_end.chars().next().filter(|sign| matches!(sign, '"' | '\''));
    let quote = quote.filter(|quote| to_value.ends_with(*quote) && !is_quoted(probe, shape, *quote));
    if quote.is_some() {
        (to_value, value_end) = (&to_value[..to_value.len() - 1], &value_end[1..]);
    }
    let mut keyed = TaggedArguments::new(key_start, to_value, value_end);
    keyed.quoted = quote.is_some();
    let lines = keyed.is_lines() && !to_value.contains('\n');
    let marked = !key_start.is_empty() && !value_end.trim().is_empty();
    let joined = !to_value.trim().is_empty() || (lines && to_value.contains('\t'));
    if !(lines || marked) || !joined {
        return None;
    }
    rest[..rest.len() - key_start.len()].trim().clone_into(&mut keyed.between);
    keyed.opened = value_openings(probe, shape, to_value, if lines { "\n" } else { value_end.trim() });
    keyed.cdata = takes_cdata(probe, shape);
    let end = around.value_end + usize::from(keyed.quoted) + value_end.len();
    Some(FoundArguments { start: around.key_at - key_start.len(), end, arguments: Arguments::Tagged(keyed) })
}

/// Returns whether a number is quoted too.
fn is_quoted(probe: &Probe, shape: &Shape, quote: char) -> bool {
    let number = json!(NUMBER);
    let text = shape.render(probe, vec![probe.call(0, json!({&probe.needles.keys[0]: number}))]);
    text.is_some_and(|text| text.contains(&format!("{quote}{NUMBER}")))
}

const NUMBER: u32 = 918_273;

/// Returns the text between key and value for each type of JSON Schema.
fn value_openings(probe: &Probe, shape: &Shape, of_text: &str, value_end: &str) -> Vec<ValueOpening> {
    let (key, value) = (&probe.needles.keys[0], &probe.needles.values[0]);
    let inner = &probe.needles.values[1];
    let values: [(&str, Value, &[&str]); 6] = [
        ("integer", json!(NUMBER), &["918273"]),
        ("number", json!(918.25), &["918.25"]),
        ("boolean", json!(true), &["true", "True"]),
        ("null", Value::Null, &["null", "None"]),
        ("array", json!([inner]), &["[", "]"]),
        ("object", json!({value: inner}), &["{", "}"]),
    ];
    let mut found = vec![ValueOpening { text: of_text.to_owned(), types: vec!["string".into()] }];
    for (kind, value, written) in values {
        let Some(text) = shape.render(probe, vec![probe.call(0, json!({key: value}))]) else { continue };
        let Some(from) = text.find(&probe.needles.names[0]) else { continue };
        let Some(from) = text[from..].find(key.as_str()).map(|at| from + at + key.len()) else { continue };
        let Some(until) = text[from..].find(value_end).map(|at| from + at) else { continue };
        let region = text[from..until].trim_end();
        let begin = if written[0].len() > 1 {
            written.iter().find_map(|literal| region.strip_suffix(literal))
        } else {
            // Lists and objects: up to where the brackets open.
            region.find(inner.as_str()).and_then(|at| region[..at].rfind(written[0])).map(|at| &region[..at])
        };
        let Some(begin) = begin else { continue };
        match found.iter_mut().find(|other| other.text == begin) {
            Some(same) => same.types.push(kind.into()),
            None => found.push(ValueOpening { text: begin.to_owned(), types: vec![kind.into()] }),
        }
    }
    if found.len() == 1 {
        found[0].types.clear();
    }
    found
}

/// Returns whether a value with markup characters is wrapped in `<![CDATA[`.
fn takes_cdata(probe: &Probe, shape: &Shape) -> bool {
    let value = format!("{}<a>&</a>", probe.needles.values[0]);
    let call = probe.call(0, json!({&probe.needles.keys[0]: value}));
    shape.render(probe, vec![call]).is_some_and(|text| text.contains("<![CDATA["))
}
