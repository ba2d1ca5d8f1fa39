//! Input of a template: messages, tools, variables.

use crate::error::{Res, too_much};
use crate::meter::{DATA, DEPTH, RANGE};
use crate::value::{Dict, Key, Text, TracedText, Value};

/// A value with the types of Python's JSON: integers of any size up to 127 bits, and dicts that keep their order.
///
/// ```
/// use chat_template::Data;
///
/// let message = Data::from(&serde_json::json!({"role": "user", "content": "Hello"}));
/// assert_eq!(message.get("role"), Some(&Data::Text("user".into())));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Python's `None`, JSON's `null`.
    None,
    /// Either true or false.
    Bool(bool),
    /// An integer of 128 bits.
    Int(i128),
    /// A number with a point.
    Float(f64),
    /// A text of Unicode characters.
    Text(String),
    /// A text some of whose bytes count as the template's own.
    Traced(TracedText),
    /// A list of any values.
    List(Vec<Data>),
    /// A dict, in its order.
    Dict(Vec<(String, Data)>),
}

impl Data {
    /// The value of a key, if this is a dict with that key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Dict(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match self {
            Self::Dict(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Traced(text) => Some(text.text()),
            _ => None,
        }
    }

    /// The text with its origins, if this is one.
    pub(crate) fn as_traced(&self) -> Option<TracedText> {
        match self {
            Self::Text(text) => Some(TracedText::foreign_text(&**text)),
            Self::Traced(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Size in bytes: those of all texts, and some for each value. An error if the value is too deep or too large.
    pub(crate) fn measure(&self, depth: u32) -> Res<usize> {
        if depth > DEPTH {
            return too_much(format!("the data is more than {DEPTH} deep"));
        }
        let mut bytes = 16_usize;
        match self {
            Self::Text(text) => bytes += text.len(),
            Self::Traced(text) => bytes += text.text().len() + RANGE * text.own_ranges().len(),
            Self::List(items) => {
                for item in items {
                    bytes += item.measure(depth + 1)?;
                }
            }
            Self::Dict(entries) => {
                for (key, value) in entries {
                    bytes += key.len() + value.measure(depth + 1)?;
                }
            }
            _ => {}
        }
        if bytes > DATA {
            return too_much(format!("the data has more than {DATA} bytes"));
        }
        Ok(bytes)
    }

    pub(crate) fn to_value(&self) -> Res<Value> {
        Ok(match self {
            Self::None => Value::None,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(text) => Value::str(&**text)?,
            Self::Traced(text) => Value::Str(Text::traced_text(text.clone(), false)?),
            Self::List(items) => Value::list(items.iter().map(Self::to_value).collect::<Res<_>>()?)?,
            Self::Dict(entries) => {
                let entry = |(key, value): &(String, Self)| Ok((Key::new(Value::str(&**key)?)?, value.to_value()?));
                Value::Dict(Dict::new(entries.iter().map(entry).collect::<Res<_>>()?)?)
            }
        })
    }
}

impl From<&serde_json::Value> for Data {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::None,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => match number.as_i128() {
                Some(value) => Self::Int(value),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) => {
                Self::Dict(entries.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
        }
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<bool> for Data {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<const N: usize> From<[Data; N]> for Data {
    fn from(items: [Data; N]) -> Self {
        Self::List(items.into())
    }
}
