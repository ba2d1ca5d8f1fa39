//! Text forms of Python: `str()` and `repr()`.

use super::{Buffer, Text, Value, View};
use crate::error::{Res, too_much};
use crate::meter::{DEPTH, spend};
use crate::value::number::float_repr;
use crate::value::text::is_printable;
use std::fmt::Write;
use std::rc::Rc;

impl Value {
    /// Appends what `{{ value }}` prints.
    pub(crate) fn print(&self, out: &mut Buffer) -> Res<()> {
        match self {
            Self::Undefined(_) => Ok(()),
            Self::Str(text) => out.push_text(text),
            other => other.write_repr(out, 0),
        }
    }

    /// Converts a value as Python's `str(value)`.
    pub(crate) fn to_text(&self) -> Res<Rc<Text>> {
        match self {
            Self::Str(text) if !text.is_markup() => Ok(Rc::clone(text)),
            other => {
                let mut out = Buffer::default();
                other.print(&mut out)?;
                Text::traced_text(out.into_traced(), false)
            }
        }
    }

    /// Converts a value as Python's `repr(value)`.
    pub(crate) fn repr(&self) -> Res<Rc<Text>> {
        let mut out = Buffer::default();
        self.write_repr(&mut out, 0)?;
        Text::traced_text(out.into_traced(), false)
    }

    fn write_repr(&self, out: &mut Buffer, depth: u32) -> Res<()> {
        spend(1)?;
        // Namespaces can hold themselves.
        if depth > DEPTH {
            return too_much(format!("a value that is printed is more than {DEPTH} deep, or holds itself"));
        }
        match self {
            Self::Undefined(_) => out.push("Undefined"),
            Self::None => out.push("None"),
            Self::Bool(value) => out.push(if *value { "True" } else { "False" }),
            Self::Int(value) => out.push(&value.to_string()),
            Self::Float(value) => out.push(&float_repr(*value)),
            Self::Str(text) => {
                let markup = text.is_markup();
                if markup {
                    out.push("Markup(")?;
                }
                write_quoted(text.as_str(), out)?;
                if markup { out.push(")") } else { Ok(()) }
            }
            Self::List(list) => write_items(list.items(), ("[", "]"), out, depth),
            Self::Tuple(list) if list.items().len() == 1 => write_items(list.items(), ("(", ",)"), out, depth),
            Self::Tuple(list) => write_items(list.items(), ("(", ")"), out, depth),
            Self::Dict(dict) => {
                out.push("{")?;
                for (index, (key, value)) in dict.entries().iter().enumerate() {
                    out.push(if index > 0 { ", " } else { "" })?;
                    key.0.write_repr(out, depth + 1)?;
                    out.push(": ")?;
                    value.write_repr(out, depth + 1)?;
                }
                out.push("}")
            }
            Self::View(view, _) => {
                out.push(match view {
                    View::Keys => "dict_keys(",
                    View::Values => "dict_values(",
                    View::Items => "dict_items(",
                })?;
                write_items(&self.iterate()?, ("[", "])"), out, depth)
            }
            Self::Range(range) if range.step == 1 => out.push(&format!("range({}, {})", range.start, range.stop)),
            Self::Range(range) => out.push(&format!("range({}, {}, {})", range.start, range.stop, range.step)),
            Self::Namespace(namespace) => {
                out.push("<Namespace {")?;
                let attributes = namespace.attributes.borrow();
                for (index, (name, value)) in attributes.iter().enumerate() {
                    out.push(if index > 0 { ", " } else { "" })?;
                    write_quoted(name, out)?;
                    out.push(": ")?;
                    value.write_repr(out, depth + 1)?;
                }
                out.push("}>")
            }
            Self::Macro(found) => match &found.definition.name {
                Some(name) => {
                    out.push("<Macro ")?;
                    write_quoted(name, out)?;
                    out.push(">")
                }
                None => out.push("<Macro anonymous>"),
            },
            Self::Loop(state) => out.push(&format!("<LoopContext {}/{}>", state.index(), state.length())),
            // Python prints an address, which no template can mean.
            other => out.push(&format!("<{} object>", other.type_name())),
        }
    }
}

fn write_items(items: &[Value], (open, close): (&str, &str), out: &mut Buffer, depth: u32) -> Res<()> {
    out.push(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(", ")?;
        }
        item.write_repr(out, depth + 1)?;
    }
    out.push(close)
}

fn write_quoted(text: &str, out: &mut Buffer) -> Res<()> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::with_capacity(text.len() + 2);
    crate::meter::spend_bytes(text.len() * 8)?;
    crate::meter::room(text.len() * 4)?;
    quoted.push(quote);
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if character == quote => {
                quoted.push('\\');
                quoted.push(quote);
            }
            _ if is_printable(character) => quoted.push(character),
            _ => {
                let code = u32::from(character);
                // Writing to a string cannot fail.
                let _ = match code {
                    0..0x100 => write!(quoted, "\\x{code:02x}"),
                    0x100..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
            }
        }
    }
    quoted.push(quote);
    out.push(&quoted)
}
