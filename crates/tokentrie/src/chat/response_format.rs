//! `response_format` of chat APIs, as a constraint on the content.

use crate::chat::structural_tag::structural_tag;
use crate::constraint::{ReplyWhitespace, Spec, SpecError, SpecProblem};
use crate::json::place::Place;
use crate::json::{inner, read, refused_at, value_error};
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

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FormatType {
    Text,
    JsonObject,
    JsonSchema,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Format {
    #[serde(rename = "type")]
    of: FormatType,
    json_schema: Option<NamedSchema>,
    /// Schema beside the type, which llama.cpp's server and others accept.
    schema: Option<Value>,
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
        let value = Value::deserialize(from)?;
        if value.is_object() && value.get("type").is_none_or(Value::is_null) {
            let types = "\"text\", \"json_object\", \"json_schema\" or \"structural_tag\"".to_owned();
            return Err(refused_at("type", SpecProblem::Type { expected: types, given: "null".to_owned() }));
        }
        if let Some(fields) = value.as_object().filter(|fields| fields["type"] == "structural_tag") {
            let spec = structural_tag(fields).map_err(|reason| value_error(SpecProblem::Value(reason)))?;
            return inner(&spec).map(Some).map(Self);
        }
        let Format { of, json_schema, schema } = inner(&value)?;
        let schema = match of {
            FormatType::Text => return Ok(Self(None)),
            FormatType::JsonObject => schema.unwrap_or_else(|| json!({"type": "object"})),
            FormatType::JsonSchema => {
                let missing = || SpecProblem::Value("the field \"schema\" is missing".to_owned());
                let given = json_schema.and_then(|named| named.schema).or(schema);
                given.ok_or_else(|| refused_at("json_schema", missing()))?
            }
        };
        inner(&json!({"json_schema": schema})).map(Some).map(Self)
    }
}
