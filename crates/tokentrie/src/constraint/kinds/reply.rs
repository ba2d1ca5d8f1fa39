//! Replies of a chat: free text in which every tool call that begins is completed as a valid one.

use crate::constraint::Whitespace;
use crate::constraint::build::Over;
use crate::constraint::error::{SpecError, SpecProblem};
use crate::constraint::host::Host;
use crate::json::place::Place;
use crate::json::with::is_usual;
use crate::json::{read, refused_at, type_error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trie_core::AnyConstraint;
#[cfg(feature = "chat")]
use trie_text::Vocab;

/// Constraint on a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reply {
    /// Definitions of the tools as in chat APIs: the text of a JSON array.
    pub tools: Arc<str>,
    /// Permission or requirement to call them.
    pub tool_choice: ToolUse,
    /// Allows more than one call.
    pub parallel_tool_calls: bool,
    /// End of the prompt, from the beginning of the turn on; `None` is the text that the template writes there.
    pub generation_prompt: Option<Arc<str>>,
    /// The most tokens of reasoning.
    pub thinking_budget: Option<u32>,
    /// Allows any tokenization of tool names, declared keys and enum values, not only the tokenizer's own.
    pub any_spelling: bool,
    /// White space in calls.
    pub whitespace: ReplyWhitespace,
    /// Text of the chat template, with its variables `bos_token` and `eos_token`; `None` is the host's template.
    pub template: Option<TemplateTexts>,
    /// JSON of a response template by the model's author, for what the chat template does not show.
    pub response_template: Option<Arc<str>>,
}

/// Text of a chat template, with its variables `bos_token` and `eos_token`.
pub type TemplateTexts = (Arc<str>, Arc<str>, Arc<str>);

/// White space in the calls of a reply, and in content that a `response_format` constrains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyWhitespace {
    /// One space behind a comma or a colon, or none; around the arguments, the white space of the template.
    #[default]
    Compact,
    /// Up to eight characters in a row, in each gap.
    Flexible,
}

impl From<ReplyWhitespace> for Whitespace {
    fn from(whitespace: ReplyWhitespace) -> Self {
        match whitespace {
            ReplyWhitespace::Compact => Self::Compact,
            ReplyWhitespace::Flexible => Self::Flexible,
        }
    }
}

#[cfg(feature = "chat")]
impl From<ReplyWhitespace> for chat_format::Whitespace {
    fn from(whitespace: ReplyWhitespace) -> Self {
        match whitespace {
            ReplyWhitespace::Compact => Self::Compact,
            ReplyWhitespace::Flexible => Self::Flexible,
        }
    }
}

#[cfg(feature = "chat")]
impl From<chat_format::Whitespace> for ReplyWhitespace {
    fn from(whitespace: chat_format::Whitespace) -> Self {
        match whitespace {
            chat_format::Whitespace::Compact => Self::Compact,
            chat_format::Whitespace::Flexible => Self::Flexible,
        }
    }
}

/// Permission or requirement to call tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum ToolUse {
    /// Tools may be called.
    #[default]
    Auto,
    /// Tools must not be called.
    None,
    /// At least one must.
    Required,
    /// This tool must be called.
    Tool(Arc<str>),
    /// Some of the tools may be called, or one of them must be.
    Allowed {
        /// Names of the tools.
        names: Arc<[Arc<str>]>,
        /// True if one of them must be called.
        required: bool,
    },
}

impl ToolUse {
    /// Reads `tool_choice` of chat APIs: a word, the name of a tool, or an object that names a tool or lists those that
    /// are allowed.
    ///
    /// # Errors
    /// Another shape, with its place.
    pub fn from_value(value: &Value) -> Result<Self, SpecError> {
        read(&Place::ROOT.field("tool_choice"), value)
    }

    /// As the machine takes it.
    ///
    /// # Errors
    /// A name that is not a tool.
    #[cfg(feature = "chat")]
    pub(crate) fn to_choice(
        &self,
        tools: &chat_format::Tools,
        place: &Place<'_>,
    ) -> Result<chat_format::ToolChoice, SpecError> {
        use chat_format::ToolChoice;

        let known = |name: &str| {
            if tools.position(name).is_some() {
                return Ok(name.to_owned());
            }
            let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
            let reason = format!("unknown tool {name:?}; the tools are {names:?}");
            Err(SpecError::new(place, SpecProblem::Value(reason)))
        };
        Ok(match self {
            Self::Auto => ToolChoice::Auto,
            Self::None => ToolChoice::None,
            Self::Required => ToolChoice::Required,
            Self::Tool(name) => ToolChoice::Tool(known(name)?),
            Self::Allowed { names, required } => {
                let names = names.iter().map(|name| known(name)).collect::<Result<_, _>>()?;
                ToolChoice::Allowed { names, required: *required }
            }
        })
    }
}

/// Returns the name in `{"type": "function", "function": {"name": ...}}` and its like for custom tools, where the name
/// may also stand beside the type.
fn named_tool(value: &Value) -> Option<Arc<str>> {
    let inner = match value.get("type").and_then(Value::as_str) {
        Some("function") => value.get("function").unwrap_or(value),
        Some("custom") => value.get("custom").unwrap_or(value),
        Some(_) => return None,
        None => value.get("function").or_else(|| value.get("custom"))?,
    };
    inner.get("name").and_then(Value::as_str).map(Into::into)
}

/// Reads `{"mode": "auto", "tools": [...]}`.
fn allowed_tools<E: serde::de::Error>(value: &Value) -> Result<ToolUse, E> {
    let required = match value.get("mode").and_then(Value::as_str) {
        Some("auto") => false,
        Some("required") => true,
        _ => return Err(type_error("\"auto\" or \"required\" as \"mode\"", value.get("mode").unwrap_or(&Value::Null))),
    };
    let given = value.get("tools").unwrap_or(&Value::Null);
    let Some(tools) = given.as_array().filter(|tools| !tools.is_empty()) else {
        return Err(type_error("at least one tool in \"tools\"", given));
    };
    let name = |tool: &Value| {
        named_tool(tool)
            .ok_or_else(|| type_error("{\"type\": \"function\", \"function\": {\"name\": ...}} as a tool", tool))
    };
    Ok(ToolUse::Allowed { names: tools.iter().map(name).collect::<Result<_, E>>()?, required })
}

impl<'de> Deserialize<'de> for ToolUse {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        match value.as_str() {
            Some("auto") => return Ok(Self::Auto),
            Some("none") => return Ok(Self::None),
            Some("required") => return Ok(Self::Required),
            Some(name) => return Ok(Self::Tool(name.into())),
            None => {}
        }
        if value.get("type").is_some_and(|kind| kind == "allowed_tools") {
            return allowed_tools(value.get("allowed_tools").unwrap_or(&value));
        }
        named_tool(&value).map(Self::Tool).ok_or_else(|| {
            let names = "\"auto\", \"none\", \"required\" or the name of a tool, or {\"type\": \"function\", \
                         \"function\": {\"name\": ...}}, or \"custom\" or \"allowed_tools\" as its type";
            type_error(names, &value)
        })
    }
}

impl Serialize for ToolUse {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let named = |name: &str| json!({"type": "function", "function": {"name": name}});
        let word = match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Required => "required",
            Self::Tool(name) if ["auto", "none", "required"].contains(&&**name) => {
                return named(name).serialize(to);
            }
            Self::Tool(name) => name,
            Self::Allowed { names, required } => {
                let tools: Vec<Value> = names.iter().map(|name| named(name)).collect();
                let mode = if *required { "required" } else { "auto" };
                return json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}).serialize(to);
            }
        };
        to.serialize_str(word)
    }
}

/// A reply as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyFields {
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default, skip_serializing_if = "is_usual")]
    tool_choice: ToolUse,
    #[serde(default, skip_serializing_if = "is_usual")]
    parallel_tool_calls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(default, skip_serializing_if = "is_usual")]
    spelling: Spelling,
    #[serde(default, skip_serializing_if = "is_usual")]
    whitespace: ReplyWhitespace,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bos: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eos: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_template: Option<Map<String, Value>>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Spelling {
    #[default]
    Canonical,
    Any,
}

impl<'de> Deserialize<'de> for Reply {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = ReplyFields::deserialize(from)?;
        if written.template.is_none()
            && let Some(name) = written.bos.as_ref().map(|_| "bos").or(written.eos.as_ref().map(|_| "eos"))
        {
            let reason = "it goes with a template, which is not given".to_owned();
            return Err(refused_at(name, SpecProblem::Value(reason)));
        }
        let marker = |text: Option<String>| text.unwrap_or_default().into();
        let (bos, eos) = (marker(written.bos), marker(written.eos));
        Ok(Self {
            tools: Value::Array(written.tools).to_string().into(),
            tool_choice: written.tool_choice,
            parallel_tool_calls: written.parallel_tool_calls,
            generation_prompt: written.generation_prompt.map(Into::into),
            thinking_budget: written.thinking_budget,
            any_spelling: written.spelling == Spelling::Any,
            whitespace: written.whitespace,
            template: written.template.map(|template| (template.into(), bos, eos)),
            response_template: written.response_template.map(|said| Value::Object(said).to_string().into()),
        })
    }
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text = |text: &Arc<str>| Some((**text).to_owned());
        let marker = |marker: &Arc<str>| text(marker).filter(|marker| !marker.is_empty());
        let written = ReplyFields {
            tools: serde_json::from_str(&self.tools).unwrap_or_default(),
            tool_choice: self.tool_choice.clone(),
            parallel_tool_calls: self.parallel_tool_calls,
            generation_prompt: self.generation_prompt.as_ref().and_then(text),
            thinking_budget: self.thinking_budget,
            spelling: if self.any_spelling { Spelling::Any } else { Spelling::Canonical },
            whitespace: self.whitespace,
            template: self.template.as_ref().and_then(|(template, ..)| text(template)),
            bos: self.template.as_ref().and_then(|(_, bos, _)| marker(bos)),
            eos: self.template.as_ref().and_then(|(.., eos)| marker(eos)),
            response_template: self.response_template.as_ref().and_then(|said| serde_json::from_str(said).ok()),
        };
        written.serialize(to)
    }
}

#[cfg(feature = "chat")]
impl From<&chat_format::ToolChoice> for ToolUse {
    fn from(choice: &chat_format::ToolChoice) -> Self {
        use chat_format::ToolChoice;

        match choice {
            ToolChoice::None => Self::None,
            ToolChoice::Required => Self::Required,
            ToolChoice::Tool(name) => Self::Tool(name.as_str().into()),
            ToolChoice::Allowed { names, required } => {
                let names = names.iter().map(|name| name.as_str().into()).collect();
                Self::Allowed { names, required: *required }
            }
            _ => Self::Auto,
        }
    }
}

impl Reply {
    /// Returns the texts by which a spec has this format.
    #[cfg(feature = "chat")]
    pub fn texts_of(format: &chat_format::ChatFormat) -> (Option<TemplateTexts>, Option<Arc<str>>) {
        let template = format.template();
        let texts = || (template.text().into(), template.bos().into(), template.eos().into());
        let said = format.given_response_template().map(|said| said.source().to_string().into());
        ((!format.renders_nothing()).then(texts), said)
    }

    /// Returns the format of its own templates, or of the host's.
    #[cfg(feature = "chat")]
    fn format(&self, place: &Place<'_>, vocab: &Vocab, host: &dyn Host) -> Result<chat_format::ChatFormat, SpecError> {
        use crate::chat::format::control_texts;
        use chat_format::response_template::ResponseTemplate;
        use chat_format::{ChatFormat, ChatTemplate};

        let at = |problem: SpecProblem| SpecError::new(place, problem);
        let in_response = |error: chat_format::response_template::ResponseError| {
            SpecError::new(&place.field("response_template"), SpecProblem::Value(error.to_string()))
        };
        let said = self.response_template.as_deref().map(ResponseTemplate::from_json).transpose();
        let said = said.map_err(in_response)?;
        let own = match &self.template {
            Some((template, bos, eos)) => {
                let template = ChatTemplate::new(&**template, &**bos, &**eos).map_err(|error| at(error.into()))?;
                Some(
                    ChatFormat::with_control_tokens(template, control_texts(vocab))
                        .map_err(|error| at(error.into()))?,
                )
            }
            None => host.chat_format().map_err(|error| at(error.into()))?,
        };
        match (own, said) {
            (Some(own), None) => Ok(own),
            (Some(own), Some(said)) => Ok(own.with_response_template(&said)),
            (None, Some(said)) => ChatFormat::from_response_template(&said).map_err(in_response),
            (None, None) => {
                let reason = "a reply needs the format of a chat, and no model here has one: give \"template\"";
                Err(at(SpecProblem::NotGiven(reason.to_owned())))
            }
        }
    }

    #[cfg(not(feature = "chat"))]
    #[expect(clippy::unused_self, reason = "the same call with and without chats")]
    pub(in crate::constraint) fn build_constraint(
        &self,
        place: &Place<'_>,
        _over: &Over<'_>,
        _host: &dyn Host,
    ) -> Result<AnyConstraint, SpecError> {
        Err(SpecError::new(place, SpecProblem::NotBuilt { kind: "reply", feature: "chat" }))
    }

    #[cfg(feature = "chat")]
    pub(in crate::constraint) fn build_constraint(
        &self,
        place: &Place<'_>,
        over: &Over<'_>,
        host: &dyn Host,
    ) -> Result<AnyConstraint, SpecError> {
        use crate::chat::format::{ConstraintError, ModelFormat};
        use chat_format::analysis::ToolsIn;
        use chat_format::{CallSpelling, ConstraintOptions, Tools};

        let at = |problem: SpecProblem| SpecError::new(place, problem);
        let vocab = over.need("reply", "the bytes of each token").map_err(at)?;
        let format = self.format(place, vocab, host)?;
        let tools: Vec<Value> = serde_json::from_str(&self.tools).unwrap_or_default();
        let tools = Tools::new(&tools).map_err(|error| SpecError::new(&place.field("tools"), error))?;
        // A spec says nothing of the prompt, which tells of tools that the template does not show.
        let is_told = tools.iter().next().is_some() && format.analysis().dialect.calls.is_none();
        let format = if is_told { format.with_tools_in(ToolsIn::Messages) } else { format };
        let mut options = ConstraintOptions::default();
        options.choice = self.tool_choice.to_choice(&tools, &place.field("tool_choice"))?;
        options.tools = tools;
        options.parallel = self.parallel_tool_calls;
        options.prompt = self.generation_prompt.as_deref().map(str::to_owned);
        options.spelling = if self.any_spelling { CallSpelling::Any } else { CallSpelling::Canonical };
        options.whitespace = self.whitespace.into();
        for warning in format.warnings(&options).map_err(|error| at(error.into()))?.iter() {
            host.warn(warning);
        }
        let made = ModelFormat::new(format, Arc::clone(vocab)).constraint(&options, self.thinking_budget);
        made.map_err(|error| match error {
            ConstraintError::Format(error) => at(error.into()),
            ConstraintError::NoEnd { .. } => {
                SpecError::new(&place.field("thinking_budget"), SpecProblem::Marker(error.to_string()))
            }
        })
    }
}
