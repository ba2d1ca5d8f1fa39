//! `response_format` of chat APIs, as a constraint on the content.

use crate::chat::structural_tag::StructuralTag;
use crate::constraint::{ReplyWhitespace, Spec, SpecError, SpecProblem};
use crate::json::place::Place;
use crate::json::{inner, read, refused_at};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// Converts `response_format` of chat APIs to a spec: `{"type": "text"}`, `{"type": "json_object"}`, `{"type":
/// "json_schema", "json_schema": {"schema": ...}}`, or `{"type": "structural_tag", ...}`. `None` is text. A document
/// has this white space between its parts.
///
/// # Errors
/// Another shape, with its place.
pub fn response_format(value: &Value, whitespace: ReplyWhitespace) -> Result<Option<Spec>, SpecError> {
    let format: ResponseFormat = read(&Place::ROOT.field("response_format"), value)?;
    Ok(format.with_whitespace(whitespace).0)
}

/// Constraint on the content; `None` is text.
pub(crate) struct ResponseFormat(pub(crate) Option<Spec>);

impl ResponseFormat {
    /// The same with this white space between the parts of a document.
    pub(crate) fn with_whitespace(mut self, whitespace: ReplyWhitespace) -> Self {
        if let Some(Spec::JsonSchema(schema)) = &mut self.0 {
            schema.whitespace = whitespace.into();
        }
        self
    }
}

/// The shapes of a format, by their type.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ReplyFormat {
    Text {},
    JsonObject {
        /// Schema beside the type, which llama.cpp's server and others accept.
        schema: Option<Value>,
    },
    JsonSchema {
        json_schema: Option<NamedSchema>,
        schema: Option<Value>,
    },
    StructuralTag(StructuralTag),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedSchema {
    schema: Option<Value>,
    #[serde(rename = "name")]
    _name: Option<String>,
    #[serde(rename = "description")]
    _description: Option<String>,
    /// A schema is always held as a whole.
    #[serde(rename = "strict")]
    _strict: Option<bool>,
}

impl<'de> Deserialize<'de> for ResponseFormat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let schema = match ReplyFormat::deserialize(from)? {
            ReplyFormat::Text {} => return Ok(Self(None)),
            ReplyFormat::StructuralTag(StructuralTag(spec)) => return inner(&spec).map(Some).map(Self),
            ReplyFormat::JsonObject { schema } => schema.unwrap_or_else(|| json!({"type": "object"})),
            ReplyFormat::JsonSchema { json_schema, schema } => {
                let missing = || refused_at("json_schema", SpecProblem::Missing { name: "schema" });
                json_schema.and_then(|named| named.schema).or(schema).ok_or_else(missing)?
            }
        };
        inner(&json!({"json_schema": schema})).map(Some).map(Self)
    }
}
