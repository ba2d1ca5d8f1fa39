//! Methods of Python's `str`.

use super::args::{Args, flag, int, unless_none};
use crate::error::{Res, wrong};
use crate::eval::Eval;
use crate::eval::attributes::text_of;
use crate::meter::{room, spend, spend_bytes};
use crate::value::text::{is_decimal, is_letter, is_printable, is_space, lines};
use crate::value::{Buffer, Text, Value, str_format};
use std::rc::Rc;

/// Names of the methods, in alphabetical order.
pub(crate) const METHODS: [&str; 46] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
    "encode",
    "translate",
];

pub(crate) fn call(_: &mut Eval<'_>, text: &Rc<Text>, name: &str, args: Args) -> Res<Value> {
    let whole = text.as_str();
    spend_bytes(whole.len())?;
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let [characters] = args.bind(name, ["chars"])?;
            strip(text, unless_none(characters).as_ref(), name)
        }
        "split" | "rsplit" => {
            let [separator, most] = args.bind(name, ["sep", "maxsplit"])?;
            split(text, unless_none(separator).as_ref(), int(most.as_ref(), -1, name)?, name == "rsplit")
        }
        "splitlines" => {
            let [keep] = args.bind(name, ["keepends"])?;
            texts(text, lines(whole, flag(keep.as_ref(), false))?)
        }
        "partition" | "rpartition" => {
            let separator = args.one(name)?;
            let separator = text_of(&separator, "separator")?.as_str();
            if separator.is_empty() {
                return wrong("empty separator");
            }
            let last = name == "rpartition";
            let found = if last { whole.rfind(separator) } else { whole.find(separator) };
            let parts = match found {
                Some(at) => {
                    let (before, rest) = whole.split_at(at);
                    let (found, after) = rest.split_at(separator.len());
                    [before, found, after]
                }
                None if last => ["", "", whole],
                None => [whole, "", ""],
            };
            Value::tuple(parts.into_iter().map(|part| text.part(part)).collect::<Res<_>>()?)
        }
        "removeprefix" | "removesuffix" => {
            let part = args.one(name)?;
            let part = text_of(&part, "argument")?.as_str();
            let rest = if name == "removeprefix" { whole.strip_prefix(part) } else { whole.strip_suffix(part) };
            text.part(rest.unwrap_or(whole))
        }
        "startswith" | "endswith" => starts_or_ends(text, name == "startswith", args),
        "replace" => {
            let [old, new, most] = args.bind(name, ["", "", "count"])?;
            let (Some(old), Some(new)) = (old, new) else { return wrong("replace expected at least 2 arguments") };
            let (old, new) = (text_of(&old, "argument 1")?, text_of(&new, "argument 2")?);
            replace(text, old.as_str(), new, int(most.as_ref(), -1, name)?)
        }
        "join" => join(text, &args.one(name)?.iterate()?, false),
        "find" | "rfind" | "index" | "rindex" | "count" => find(text, name, args),
        "center" | "ljust" | "rjust" => {
            let [width, fill] = args.bind(name, ["", ""])?;
            let fill = match &fill {
                None => ' ',
                Some(fill) => match (text_of(fill, "the fill character")?.as_str().chars().next(), fill.length()?) {
                    (Some(fill), 1) => fill,
                    _ => return wrong("The fill character must be exactly one character long"),
                },
            };
            let Some(width) = width else { return wrong(format!("{name} expected at least 1 argument, got 0")) };
            justify(text, int(Some(&width), 0, name)?, fill, name)
        }
        "zfill" => {
            let width = int(Some(&args.one(name)?), 0, name)?;
            let sign = usize::from(whole.starts_with(['+', '-']));
            let missing = missing_width(text, width)?;
            let mut out = Buffer::default();
            out.push_part(text, &whole[..sign])?;
            out.fill('0', missing)?;
            out.push_part(text, &whole[sign..])?;
            out.into_value()
        }
        "expandtabs" => {
            let [size] = args.bind(name, ["tabsize"])?;
            expand_tabs(text, int(size.as_ref(), 8, name)?)
        }
        "format" => str_format::format(text, &args),
        "format_map" => {
            let Value::Dict(dict) = args.one(name)? else { return wrong("format_map() argument must be a mapping") };
            let named = dict.entries().iter().filter_map(|(key, value)| match &key.0 {
                Value::Str(name) => Some((name.as_str().into(), value.clone())),
                _ => None,
            });
            str_format::format(text, &Args { positional: Vec::new(), named: named.collect() })
        }
        "encode" | "translate" => Err(crate::error::Fault::new(
            crate::error::Kind::Unsupported,
            format!("str.{name}: bytes and tables are no part of a template"),
        )),
        _ => {
            args.none(name)?;
            match is(whole, name) {
                Some(holds) => Ok(Value::Bool(holds)),
                None => changed_case(text, name),
            }
        }
    }
}

/// Upper, lower and the like.
pub(crate) fn changed_case(whole: &Text, name: &str) -> Res<Value> {
    let text = whole.as_str();
    room(3 * text.len())?;
    spend_bytes(4 * text.len())?;
    let mut characters = text.chars();
    let changed = match name {
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        "casefold" => text.to_lowercase().replace('ß', "ss"),
        "capitalize" => match characters.next() {
            Some(first) => first.to_uppercase().chain(characters.as_str().to_lowercase().chars()).collect(),
            None => String::new(),
        },
        "swapcase" => characters
            .flat_map(|character| -> Vec<char> {
                if character.is_uppercase() {
                    character.to_lowercase().collect()
                } else {
                    character.to_uppercase().collect()
                }
            })
            .collect(),
        // "title": each letter that stands behind no other.
        _ => {
            let mut inside = false;
            let mut out = String::with_capacity(text.len());
            for character in characters {
                let letter = character.is_alphabetic();
                if letter && inside {
                    out.extend(character.to_lowercase());
                } else if letter {
                    out.extend(character.to_uppercase());
                } else {
                    out.push(character);
                }
                inside = letter;
            }
            out
        }
    };
    whole.made_of(changed, false).map(Value::Str)
}

pub(crate) fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)
}

pub(crate) fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)
}

fn is(text: &str, name: &str) -> Option<bool> {
    let all = |holds: fn(char) -> bool| !text.is_empty() && text.chars().all(holds);
    Some(match name {
        "isspace" => all(is_space),
        "isalpha" => all(is_letter),
        "isalnum" => all(|character| is_letter(character) || character.is_numeric()),
        "isdigit" => all(|character| is_decimal(character) || "²³¹⁰⁴⁵⁶⁷⁸⁹".contains(character)),
        "isdecimal" => all(is_decimal),
        "isnumeric" => all(char::is_numeric),
        "isascii" => text.is_ascii(),
        "isprintable" => text.chars().all(is_printable),
        "islower" => is_lower(text),
        "isupper" => is_upper(text),
        "isidentifier" => {
            let begins = text.starts_with(|first: char| first == '_' || first.is_alphabetic());
            begins && text.chars().all(|character| character == '_' || character.is_alphanumeric())
        }
        "istitle" => {
            let (mut inside, mut any) = (false, false);
            for character in text.chars() {
                if (character.is_uppercase() && inside) || (character.is_lowercase() && !inside) {
                    return Some(false);
                }
                inside = character.is_alphabetic();
                any |= inside;
            }
            any
        }
        _ => return None,
    })
}

/// Implements `strip`, `lstrip` and `rstrip`.
pub(crate) fn strip(text: &Rc<Text>, characters: Option<&Value>, name: &str) -> Res<Value> {
    let whole = text.as_str();
    let set: Option<&str> = match characters {
        Some(characters) => Some(text_of(characters, &format!("{name} arg"))?.as_str()),
        None => None,
    };
    if let Some(set) = set {
        spend((whole.len() as u64 / 32 + 1).saturating_mul(set.len() as u64 + 1))?;
    }
    let drops = |character: char| set.map_or_else(|| is_space(character), |set| set.contains(character));
    let mut rest = whole;
    if name != "rstrip" {
        rest = rest.trim_start_matches(drops);
    }
    if name != "lstrip" {
        rest = rest.trim_end_matches(drops);
    }
    if rest.len() == whole.len() { Ok(Value::Str(Rc::clone(text))) } else { text.part(rest) }
}

fn texts(whole: &Text, parts: Vec<&str>) -> Res<Value> {
    room(parts.len() * 96)?;
    Value::list(parts.into_iter().map(|part| whole.part(part)).collect::<Res<_>>()?)
}

fn split(whole: &Text, separator: Option<&Value>, most: i128, from_right: bool) -> Res<Value> {
    let text = whole.as_str();
    spend_bytes(4 * text.len())?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = Vec::new();
    if let Some(separator) = separator {
        let separator = text_of(separator, "separator")?.as_str();
        if separator.is_empty() {
            return wrong("empty separator");
        }
        room(16 * (text.len() / separator.len()))?;
        let most = most.saturating_add(1);
        if from_right {
            parts.extend(text.rsplitn(most, separator));
            parts.reverse();
        } else {
            parts.extend(text.splitn(most, separator));
        }
        return texts(whole, parts);
    }
    room(8 * text.len())?;
    let mut rest = if from_right { text.trim_end_matches(is_space) } else { text.trim_start_matches(is_space) };
    while !rest.is_empty() {
        let cut = if from_right { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(at) = cut.filter(|_| parts.len() < most) else {
            // What is left keeps its other end, as Python has it.
            parts.push(if from_right { rest.trim_end_matches(is_space) } else { rest });
            break;
        };
        if from_right {
            let width = rest[at..].chars().next().map_or(1, char::len_utf8);
            parts.push(&rest[at + width..]);
            rest = rest[..at].trim_end_matches(is_space);
        } else {
            parts.push(&rest[..at]);
            rest = rest[at..].trim_start_matches(is_space);
        }
    }
    if from_right {
        parts.reverse();
    }
    texts(whole, parts)
}

fn starts_or_ends(text: &Rc<Text>, starts: bool, args: Args) -> Res<Value> {
    let [parts, from, to] = args.bind(if starts { "startswith" } else { "endswith" }, ["", "", ""])?;
    let Some(parts) = parts else { return wrong("startswith expected at least 1 argument, got 0") };
    let (whole, _) = slice_within(text, unless_none(from).as_ref(), unless_none(to).as_ref())?;
    let candidates = match &parts {
        Value::Tuple(list) => list.items().to_vec(),
        other => vec![other.clone()],
    };
    for part in &candidates {
        let part = text_of(part, "the first argument")?.as_str();
        if whole.is_some_and(|whole| if starts { whole.starts_with(part) } else { whole.ends_with(part) }) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// A part of a text by optional bounds, and where it begins; nothing if the bounds cross.
fn slice_within<'t>(text: &'t Text, from: Option<&Value>, to: Option<&Value>) -> Res<(Option<&'t str>, usize)> {
    if from.is_none() && to.is_none() {
        return Ok((Some(text.as_str()), 0));
    }
    let length = text.count()? as i128;
    let bound = |value: Option<&Value>, otherwise: i128| -> Res<i128> {
        let value = int(value, otherwise, "slice indices")?;
        Ok(if value < 0 { value.saturating_add(length).max(0) } else { value })
    };
    let (from, to) = (bound(from, 0)?, bound(to, length)?.min(length));
    if from > to {
        return Ok((None, 0));
    }
    Ok((Some(text.slice(from as usize, to as usize)?), from as usize))
}

fn find(text: &Rc<Text>, name: &str, args: Args) -> Res<Value> {
    let [part, from, to] = args.bind(name, ["", "", ""])?;
    let Some(part) = part else { return wrong(format!("{name} expected at least 1 argument, got 0")) };
    let part = text_of(&part, "argument")?.as_str();
    let (whole, start) = slice_within(text, unless_none(from).as_ref(), unless_none(to).as_ref())?;
    if name == "count" {
        return Ok(match whole {
            None => 0_usize.into(),
            Some(whole) if part.is_empty() => (whole.chars().count() + 1).into(),
            Some(whole) => whole.matches(part).count().into(),
        });
    }
    let at = whole.and_then(|whole| {
        let at = if name.starts_with('r') { whole.rfind(part) } else { whole.find(part) };
        at.map(|at| start + whole[..at].chars().count())
    });
    match at {
        Some(at) => Ok(at.into()),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => wrong("substring not found"),
    }
}

/// Replaces parts of a text as Python's `str.replace`.
pub(crate) fn replace(whole: &Text, old: &str, new: &Text, most: i128) -> Res<Value> {
    let text = whole.as_str();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    spend_bytes(text.len())?;
    let count = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() }.min(most);
    room(text.len().saturating_add(count.saturating_mul(new.len())))?;
    let (mut out, mut from) = (Buffer::default(), 0);
    for (at, _) in text.match_indices(old).take(most) {
        out.push_part(whole, &text[from..at])?;
        out.push_text(new)?;
        from = at + old.len();
    }
    out.push_part(whole, &text[from..])?;
    out.into_value()
}

/// Python's `str.join`. With `any`, items that are not texts are converted to text first.
pub(crate) fn join(separator: &Text, items: &[Value], any: bool) -> Res<Value> {
    let mut out = Buffer::default();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_text(separator)?;
        }
        match item {
            Value::Str(text) => out.push_text(text)?,
            other if any => other.print(&mut out)?,
            other => {
                let found = other.type_name();
                return wrong(format!("sequence item {index}: expected str instance, {found} found"));
            }
        }
    }
    out.into_value()
}

fn missing_width(text: &Text, width: i128) -> Res<usize> {
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    Ok(width.saturating_sub(text.count()?))
}

/// Implements `center`, `ljust` and `rjust`.
pub(crate) fn justify(text: &Text, width: i128, fill: char, name: &str) -> Res<Value> {
    let missing = missing_width(text, width)?;
    let before = match name {
        // Python's own rule for an odd rest.
        "center" => missing / 2 + (missing & usize::try_from(width.max(0)).unwrap_or(0) & 1),
        "ljust" => 0,
        _ => missing,
    };
    let mut out = Buffer::default();
    out.fill(fill, before)?;
    out.push_text(text)?;
    out.fill(fill, missing - before)?;
    out.into_value()
}

fn expand_tabs(text: &Text, size: i128) -> Res<Value> {
    let size = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    let (mut out, mut column) = (Buffer::default(), 0_usize);
    for character in text.as_str().chars() {
        match character {
            '\t' if size > 0 => {
                let blanks = size - column % size;
                out.fill(' ', blanks)?;
                column += blanks;
            }
            '\t' => {}
            _ => {
                out.push_char(character)?;
                column = if matches!(character, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    text.made_of(out.into_traced().into_text(), false).map(Value::Str)
}
