//! Replies of a chat: free text in which a call of a tool that begins becomes a right one.

use crate::spec::build::Over;
use crate::spec::error::{SpecError, SpecProblem};
use crate::spec::fields::{Fields, array, text, wrong_type};
use crate::spec::host::Host;
use crate::spec::place::Place;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trie_core::AnyConstraint;

/// What a reply may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reply {
    /// The tools as chat APIs have them: the text of an array of JSON.
    pub tools: Arc<str>,
    /// Whether they may or must be called.
    pub tool_choice: ToolUse,
    /// Whether more than one call may come.
    pub parallel_tool_calls: bool,
    /// The prompt from where the turn begins; `None` is what the template writes there.
    pub generation_prompt: Option<Arc<str>>,
    /// The most tokens of reasoning.
    pub thinking_budget: Option<u32>,
    /// Whether names of tools, named keys and values of enums may come in any tokens, not only in the tokenizer's.
    pub any_spelling: bool,
    /// Text of the chat template and what it finds as `bos_token` and `eos_token`; `None` is the host's.
    pub template: Option<(Arc<str>, Arc<str>, Arc<str>)>,
}

/// Whether tools may or must be called.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum ToolUse {
    /// They may.
    #[default]
    Auto,
    /// They may not.
    None,
    /// At least one must.
    Required,
    /// This one must.
    Tool(Arc<str>),
}

const FIELDS: [&str; 9] = [
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "generation_prompt",
    "thinking_budget",
    "spelling",
    "template",
    "bos",
    "eos",
];

impl ToolUse {
    pub(crate) fn read(place: &Place<'_>, value: &Value) -> Result<Self, SpecError> {
        if let Some(word) = value.as_str() {
            return Ok(match word {
                "auto" => Self::Auto,
                "none" => Self::None,
                "required" => Self::Required,
                name => Self::Tool(name.into()),
            });
        }
        let name = value.get("function").and_then(|function| function.get("name")).and_then(Value::as_str);
        let expected = "\"auto\", \"none\", \"required\" or the name of a tool, or {\"function\": {\"name\": ...}}";
        name.map(|name| Self::Tool(name.into())).ok_or_else(|| wrong_type(place, expected, value))
    }

    /// As the machine takes it.
    ///
    /// # Errors
    /// A name that is no tool.
    #[cfg(feature = "chat")]
    pub(crate) fn among(
        &self,
        tools: &chat_format::Tools,
        place: &Place<'_>,
    ) -> Result<chat_format::ToolChoice, SpecError> {
        use chat_format::ToolChoice;

        Ok(match self {
            Self::Auto => ToolChoice::Auto,
            Self::None => ToolChoice::None,
            Self::Required => ToolChoice::Required,
            Self::Tool(name) if tools.position(name).is_none() => {
                let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
                let reason = format!("it is {name:?}, which is no tool; the tools are {names:?}");
                return Err(SpecError::new(place, SpecProblem::Value(reason)));
            }
            Self::Tool(name) => ToolChoice::Tool((**name).to_owned()),
        })
    }

    fn write(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::None => "none".into(),
            Self::Required => "required".into(),
            Self::Tool(name) if ["auto", "none", "required"].contains(&&**name) => {
                json!({"type": "function", "function": {"name": &**name}})
            }
            Self::Tool(name) => (&**name).into(),
        }
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
            _ => Self::Auto,
        }
    }
}

impl Reply {
    pub(in crate::spec) fn read(place: &Place<'_>, value: &Value) -> Result<Self, SpecError> {
        let fields = Fields::of(place, value, &FIELDS)?;
        let tools = fields.read("tools", |place, value| {
            array(place, value)?;
            Ok(value.to_string().into())
        })?;
        let spelling = fields.read("spelling", |place, value| match text(place, value)? {
            "canonical" => Ok(false),
            "any" => Ok(true),
            _ => Err(wrong_type(place, "\"canonical\" or \"any\"", value)),
        })?;
        let template = fields.text("template")?;
        let markers = (fields.text("bos")?, fields.text("eos")?);
        if template.is_none() && (markers.0.is_some() || markers.1.is_some()) {
            let reason = "it goes with a template, which is not given".to_owned();
            let name = if markers.0.is_some() { "bos" } else { "eos" };
            return Err(SpecError::new(&place.field(name), SpecProblem::Value(reason)));
        }
        let (bos, eos) = (markers.0.unwrap_or_default(), markers.1.unwrap_or_default());
        Ok(Self {
            tools: tools.unwrap_or_else(|| "[]".into()),
            tool_choice: fields.read("tool_choice", ToolUse::read)?.unwrap_or_default(),
            parallel_tool_calls: fields.flag("parallel_tool_calls", false)?,
            generation_prompt: fields.read("generation_prompt", |place, value| Ok(text(place, value)?.into()))?,
            thinking_budget: fields.count("thinking_budget")?,
            any_spelling: spelling.unwrap_or(false),
            template: template.map(|template| (template, bos, eos)),
        })
    }

    pub(in crate::spec) fn write(&self) -> Value {
        let tools = serde_json::from_str(&self.tools).unwrap_or_else(|_| Value::Array(Vec::new()));
        let mut fields = Map::from_iter([("tools".to_owned(), tools)]);
        if self.tool_choice != ToolUse::Auto {
            fields.insert("tool_choice".to_owned(), self.tool_choice.write());
        }
        if self.parallel_tool_calls {
            fields.insert("parallel_tool_calls".to_owned(), true.into());
        }
        if let Some(prompt) = &self.generation_prompt {
            fields.insert("generation_prompt".to_owned(), (&**prompt).into());
        }
        if let Some(budget) = self.thinking_budget {
            fields.insert("thinking_budget".to_owned(), budget.into());
        }
        if self.any_spelling {
            fields.insert("spelling".to_owned(), "any".into());
        }
        if let Some((template, bos, eos)) = &self.template {
            for (name, text) in [("template", template), ("bos", bos), ("eos", eos)] {
                if name == "template" || !text.is_empty() {
                    fields.insert(name.to_owned(), (&**text).into());
                }
            }
        }
        Value::Object(fields)
    }

    #[cfg(not(feature = "chat"))]
    #[expect(clippy::unused_self, reason = "the same call with and without chats")]
    pub(in crate::spec) fn over(
        &self,
        place: &Place<'_>,
        _over: &Over<'_>,
        _host: &dyn Host,
    ) -> Result<AnyConstraint, SpecError> {
        Err(SpecError::new(place, SpecProblem::NotBuilt { kind: "reply", feature: "chat" }))
    }

    #[cfg(feature = "chat")]
    pub(in crate::spec) fn over(
        &self,
        place: &Place<'_>,
        over: &Over<'_>,
        host: &dyn Host,
    ) -> Result<AnyConstraint, SpecError> {
        use crate::chat::format::{ConstraintError, ModelFormat, control_texts};
        use chat_format::{CallSpelling, ChatFormat, ChatTemplate, ConstraintOptions, Tools};

        let at = |problem: SpecProblem| SpecError::new(place, problem);
        let vocab = over.need("reply", "the bytes of each token").map_err(at)?;
        let format = match &self.template {
            Some((template, bos, eos)) => {
                let template = ChatTemplate::new(&**template, &**bos, &**eos).map_err(|error| at(error.into()))?;
                ChatFormat::over(template, control_texts(vocab)).map_err(|error| at(error.into()))?
            }
            None => host.chat_format().map_err(|error| at(error.into()))?.ok_or_else(|| {
                let reason = "a reply needs the format of a chat, and here is no model that has one: give \"template\"";
                at(SpecProblem::NotGiven(reason.to_owned()))
            })?,
        };
        let tools: Vec<Value> = serde_json::from_str(&self.tools).unwrap_or_default();
        let tools = Tools::new(&tools).map_err(|error| SpecError::new(&place.field("tools"), error))?;
        let mut options = ConstraintOptions::default();
        options.choice = self.tool_choice.among(&tools, &place.field("tool_choice"))?;
        options.tools = tools;
        options.parallel = self.parallel_tool_calls;
        options.prompt = self.generation_prompt.as_deref().map(str::to_owned);
        options.spelling = if self.any_spelling { CallSpelling::Any } else { CallSpelling::Canonical };
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
