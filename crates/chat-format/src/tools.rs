//! The tools a model may call.

use crate::custom::{ToolInput, custom_definition, input_schema, read_input};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The tools of a conversation, as chat APIs write them: `{"type": "function", "function": {"name": ..., "description":
/// ..., "parameters": JSON Schema}}`, or the inner object of `function` alone; and `{"type": "custom", "custom":
/// {"name": ..., "description": ..., "format": ...}}`, or these fields beside the type. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tools(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
}

/// Definition of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// Name of the tool.
    pub name: String,
    /// Description of its purpose.
    pub description: String,
    /// JSON Schema of its arguments; `{}` where none is given.
    pub parameters: Value,
    /// Texts that it takes, if it is a custom tool; `None` for a function.
    pub input: Option<ToolInput>,
    /// True if every keyword of its schema must be held, and no argument is allowed that the schema does not declare.
    pub strict: bool,
    /// True if it takes no arguments: it has no parameters, or an empty list of them and no other keyword about them.
    pub(crate) takes_none: bool,
}

/// Longest name of a tool, in bytes.
const MOST_NAME: usize = 1024;

/// Tools that cannot be offered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ToolError {
    /// Not an object with a name.
    #[error(
        "tool {number} has no name: a tool is {{\"type\": \"function\", \"function\": {{\"name\": ..., \
        \"parameters\": ...}}}}, not {given}"
    )]
    NoName {
        /// Index of the tool.
        number: usize,
        /// The refused value, shortened for the message.
        given: String,
    },
    /// A name that is too long.
    #[error("the name of tool {number} has {bytes} bytes, {begin:?} and more: at most {MOST_NAME} are taken")]
    LongName {
        /// Index of the tool.
        number: usize,
        /// Number of its bytes.
        bytes: usize,
        /// Beginning of the name.
        begin: String,
    },
    /// Two tools of one name.
    #[error("tools {first} and {second} are both named {name:?}: each tool needs a name of its own")]
    Repeated {
        /// Name of both tools.
        name: String,
        /// Index of the first, from 0.
        first: usize,
        /// Index of the second.
        second: usize,
    },
    /// A type that no tool has.
    #[error("tool {number} has an unknown type: expected \"function\" or \"custom\", got {given}")]
    Type {
        /// Index of the tool.
        number: usize,
        /// The refused type, shortened for the message.
        given: String,
    },
    /// A field of another type.
    #[error("invalid {field} of tool {name:?}: expected {expected}, got {given}")]
    Field {
        /// Name of the tool.
        name: String,
        /// Name of the field.
        field: &'static str,
        /// Description of valid values.
        expected: &'static str,
        /// The refused value, shortened for the message.
        given: String,
    },
    /// A format of the input that is not valid, or cannot be held.
    #[error("invalid format of tool {name:?}: {reason}")]
    Format {
        /// Name of the tool.
        name: String,
        /// Description of the error.
        reason: String,
    },
    /// A schema that is not an object.
    #[error("the parameters of tool {name:?} are {given}: they must be a JSON Schema, an object")]
    Schema {
        /// Name of the tool.
        name: String,
        /// The refused parameters, shortened for the message.
        given: String,
    },
}

trie_core::error_kind!(ToolError, Spec);

impl Tools {
    /// Reads a list of tools.
    ///
    /// # Errors
    /// [`ToolError`]: a tool without name, a name twice, parameters that are no JSON Schema.
    ///
    /// ```
    /// use chat_format::Tools;
    /// use serde_json::json;
    ///
    /// let tools = Tools::new(&[json!({"type": "function", "function": {"name": "now"}}), json!({"name": "stop"})])?;
    /// assert_eq!(tools.iter().map(|tool| &tool.name[..]).collect::<Vec<_>>(), ["now", "stop"]);
    /// assert!(Tools::new(&[json!({"name": "now"}), json!({"name": "now"})]).is_err());
    /// # Ok::<(), chat_format::ToolError>(())
    /// ```
    pub fn new(tools: &[Value]) -> Result<Self, ToolError> {
        let mut inner = Inner::default();
        for (number, given) in tools.iter().enumerate() {
            let tool = Tool::read(number, given)?;
            if tool.name.len() > MOST_NAME {
                let (bytes, begin) = (tool.name.len(), tool.name.chars().take(40).collect());
                return Err(ToolError::LongName { number, bytes, begin });
            }
            if let Some(first) = inner.by_name.insert(tool.name.clone(), number) {
                return Err(ToolError::Repeated { name: tool.name, first, second: number });
            }
            inner.tools.push(tool);
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.0.tools.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.tools.is_empty()
    }

    /// All tools in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.0.tools.iter()
    }

    /// The tool at this index.
    pub fn get(&self, number: usize) -> Option<&Tool> {
        self.0.tools.get(number)
    }

    /// Identity of the list: equal for clones of one list, and for all empty lists.
    pub(crate) fn address(&self) -> usize {
        if self.0.tools.is_empty() { 0 } else { Arc::as_ptr(&self.0) as usize }
    }

    /// The index of the tool with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0.by_name.get(name).copied()
    }
}

impl Tool {
    fn read(number: usize, given: &Value) -> Result<Self, ToolError> {
        let custom = custom_definition(given);
        let of = custom.or_else(|| given.get("function").filter(|inner| inner.is_object())).unwrap_or(given);
        let name = of.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = name else { return Err(ToolError::NoName { number, given: shorten_json(given) }) };
        if let Some(kind) =
            given.get("type").filter(|kind| **kind != "function" && **kind != "custom" && !kind.is_null())
        {
            return Err(ToolError::Type { number, given: shorten_json(kind) });
        }
        let wrong = |field: &'static str, expected: &'static str, value: &Value| {
            Err(ToolError::Field { name: name.to_owned(), field, expected, given: shorten_json(value) })
        };
        let description = match of.get("description") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => return wrong("description", "a text", other),
        };
        let strict = match of.get("strict") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(strict)) => *strict,
            Some(other) => return wrong("strict", "true or false", other),
        };
        if custom.is_some() {
            let input = Some(read_input(name, of.get("format"))?);
            return Ok(Self {
                name: name.into(),
                description,
                parameters: input_schema(None),
                input,
                strict,
                takes_none: false,
            });
        }
        let (parameters, takes_none) = match of.get("parameters").or_else(|| of.get("input_schema")) {
            None | Some(Value::Null) => (Value::Object(serde_json::Map::new()), true),
            Some(schema @ (Value::Object(_) | Value::Bool(true))) => (schema.clone(), names_none(schema)),
            Some(other) => return Err(ToolError::Schema { name: name.into(), given: shorten_json(other) }),
        };
        Ok(Self { name: name.into(), description, parameters, input: None, strict, takes_none })
    }

    /// The schema that the arguments must satisfy.
    pub(crate) fn enforced_schema(&self) -> Cow<'_, Value> {
        let takes_none = self.takes_none || (self.strict && declares_none(&self.parameters));
        if !takes_none {
            return Cow::Borrowed(&self.parameters);
        }
        Cow::Owned(serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false}))
    }
}

/// Returns whether a schema describes an object with an empty list of properties, and no others.
fn names_none(schema: &Value) -> bool {
    schema.get("properties").is_some() && declares_none(schema)
}

/// The same, where the list of properties may be missing.
fn declares_none(schema: &Value) -> bool {
    const SILENT: [&str; 8] = ["type", "properties", "required", "title", "description", "$schema", "$id", "$comment"];
    let is_empty = |key: &str, missing: bool| {
        schema.get(key).map_or(missing, |value| match value {
            Value::Object(fields) => fields.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        })
    };
    schema.get("type").is_none_or(|kind| kind == "object")
        && is_empty("properties", true)
        && is_empty("required", true)
        && schema.as_object().is_none_or(|fields| fields.keys().all(|key| SILENT.contains(&key.as_str())))
}

pub(crate) fn shorten_json(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
