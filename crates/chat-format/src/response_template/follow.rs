//! A chat format with the response template of its model.

use super::error::ResponseError;
use super::read::{CALLS, CONTENT, REASONING};
use super::template::ResponseTemplate;
use crate::ChatFormat;
use crate::analysis::Analysis;
use crate::check::{RenderedReply, difference, rendered_replies};
use crate::dialect::{ContentMode, Dialect, ReasoningMode};
use crate::reply::{CallKind, Message, ToolCall};
use chat_template::{ChatTemplate, TemplateError};
use serde_json::Value;

/// The chat template of a format that has none: it renders nothing.
const NO_TEMPLATE: &str = "{{ raise_exception('there is no chat template: a response template reads replies only') }}";

impl ChatFormat {
    /// The format that a response template says, without a chat template: it parses and constrains replies, and renders
    /// no prompts.
    ///
    /// # Errors
    /// The response template says what the machine of formats cannot express; a [`ResponseTemplate`] by itself still
    /// parses.
    ///
    /// ```
    /// use chat_format::response_template::ResponseTemplate;
    /// use chat_format::{ChatFormat, ParserOptions};
    /// use serde_json::json;
    ///
    /// let said = ResponseTemplate::new(&json!({
    ///     "start_anchor": "<|bot|>",
    ///     "fields": {
    ///         "tool_calls": {
    ///             "open": "<call>", "close": "</call>", "content": "json", "repeats": true,
    ///             "transform": {"type": "function", "function": "{content}"},
    ///         },
    ///         "content": {"close": "<|end|>"},
    ///     },
    /// }))?;
    /// let format = ChatFormat::from_response_template(&said)?;
    /// let mut parser = format.parser(&ParserOptions::default())?;
    /// parser.push(b"<call>{\"name\": \"ring\", \"arguments\": {}}</call>");
    /// assert_eq!(parser.finish(false).1.tool_calls[0].name, "ring");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_response_template(said: &ResponseTemplate) -> Result<Self, ResponseError> {
        let unread = |reason: String| ResponseError::Unread { reason };
        let derived = said.derive();
        let dialect = derived.dialect().map_err(unread)?;
        let no_template = |error: TemplateError| unread(error.to_string());
        let template = ChatTemplate::new(NO_TEMPLATE, "", "").map_err(no_template)?;
        let mut analysis = Analysis::of_dialect(dialect);
        analysis.differences.extend(unread_fields(&derived.others));
        Ok(Self::from_analysis(template, analysis, Some(said.clone())))
    }

    /// Returns whether the format has no chat template of its own.
    pub fn renders_nothing(&self) -> bool {
        self.template().text() == NO_TEMPLATE
    }

    /// The same format, where the author of the model also says how replies are read. Both are compared:
    /// [`Analysis::differences`] lists each reply of the chat template that the response template reads otherwise.
    ///
    /// Parts that the chat template does not show are those of the response template. Parts that both show are those of
    /// the chat template, which also shows white space, unless its analysis failed and the response template reads more
    /// replies right.
    #[must_use]
    pub fn with_response_template(&self, said: &ResponseTemplate) -> Self {
        let derived = said.derive();
        let replies = rendered_replies(self);
        let mut differences = readings_that_differ(said, &replies, &[Reading::Whole]);
        let ours = &self.analysis().dialect;
        let mut dialect = ours.clone();
        let mut note = |part: &str, reason: &String| {
            differences.push(format!("the response template says more of {part} than can be followed: {reason}"));
        };
        if ours.calls.is_none() {
            match &derived.calls {
                Ok(calls) => dialect.calls.clone_from(calls),
                Err(reason) => note("calls", reason),
            }
        }
        if ours.reasoning.mode == ReasoningMode::None {
            match &derived.reasoning {
                Ok(reasoning) => dialect.reasoning = reasoning.clone().unwrap_or_default(),
                Err(reason) => note("reasoning", reason),
            }
        }
        if ours.content.mode == ContentMode::Plain && replies.is_empty() {
            match &derived.content {
                Ok(content) => dialect.content = content.clone(),
                Err(reason) => note("content", reason),
            }
        }
        differences.extend(unread_fields(&derived.others));
        let whole = derived.dialect().ok().filter(|_| self.analysis().degraded.is_some());
        let whole = whole.map(|whole| Dialect { turns: ours.turns.clone(), ..whole });
        self.with_best_dialect(std::iter::once(dialect).chain(whole), differences, said)
    }
}

fn unread_fields(others: &[String]) -> Option<String> {
    (!others.is_empty()).then(|| {
        let names: Vec<String> = others.iter().map(|name| format!("{name:?}")).collect();
        format!("only the response template reads {}: formats have reasoning, content and calls", names.join(", "))
    })
}

/// Way in which a reply comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    /// All of it at once.
    Whole,
    /// One character after the other.
    Streamed,
}

impl Reading {
    fn read(self, said: &ResponseTemplate, reply: &RenderedReply) -> Result<Value, ResponseError> {
        let tools = reply.tools.as_array().map_or(&[][..], Vec::as_slice);
        let mut parser = said.parser(&reply.prompt, tools)?;
        match self {
            Self::Whole => drop(parser.push(&reply.whole)?),
            Self::Streamed => {
                for sign in reply.whole.chars() {
                    parser.push(sign.encode_utf8(&mut [0; 4]))?;
                }
            }
        }
        parser.finish().map(|(message, _)| message)
    }
}

/// The replies that a response template does not read as the messages that they were rendered from, in one of these
/// ways.
pub(crate) fn readings_that_differ(
    said: &ResponseTemplate,
    replies: &[RenderedReply],
    ways: &[Reading],
) -> Vec<String> {
    let differs = |(reply, way): (&RenderedReply, Reading)| {
        let got = match way.read(said, reply) {
            Ok(read) => as_message(&read),
            Err(error) => return Some(format!("{}: {error}", reply.name)),
        };
        difference(&reply.message, &reply.text, &got).map(|how| format!("{}: {how}", reply.name))
    };
    let each = replies.iter().flat_map(|reply| ways.iter().map(move |&way| (reply, way)));
    each.filter_map(differs).collect()
}

/// Returns the message that a response template read.
fn as_message(read: &Value) -> Message {
    let text = |name: &str| read[name].as_str().unwrap_or_default().to_owned();
    let reasoning = REASONING.iter().map(|name| text(name)).find(|text| !text.is_empty()).unwrap_or_default();
    let call = |call: &Value| {
        let function = call.get("function").unwrap_or(call);
        let arguments = &function["arguments"];
        ToolCall {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: function["name"].as_str().unwrap_or_default().to_owned(),
            arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
            kind: CallKind::Function,
        }
    };
    let calls = match &read[CALLS] {
        Value::Array(list) => list.iter().map(call).collect(),
        Value::Null => Vec::new(),
        one => vec![call(one)],
    };
    Message { content: text(CONTENT), reasoning, tool_calls: calls, warnings: Vec::new() }
}
