//! Prompts: the text before the model's reply in a rendered conversation.

use super::Analysis;
use super::frame::{Frame, ReasoningSource};
use super::own_marks::OwnMarks;
use super::probe::{Needles, with_fixed_time};
use super::shaped::reasoning_of;
use super::text::common_prefix;
use crate::dialect::{Dialect, ReasoningMode};
use chat_template::{ChatTemplate, Data, RenderOptions, TemplateError, TracedText};
use serde_json::Value;

/// Part of the last message to continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContinuedPart {
    /// Nothing: the model answers it.
    #[default]
    Nothing,
    /// Its content if it has some, else its reasoning.
    Auto,
    /// Continues its reasoning text.
    Reasoning,
    /// Continues its content text.
    Content,
}

/// Options of a prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PromptOptions {
    /// Allows the model to think.
    pub enable_thinking: bool,
    /// Part of the last message to continue.
    pub continued: ContinuedPart,
    /// Other options of the rendering.
    pub render: RenderOptions,
}

impl Default for PromptOptions {
    fn default() -> Self {
        Self { enable_thinking: true, continued: ContinuedPart::Nothing, render: RenderOptions::default() }
    }
}

impl PromptOptions {
    /// The same with thinking on or off.
    #[must_use]
    pub fn with_thinking(mut self, thinking: bool) -> Self {
        self.enable_thinking = thinking;
        self
    }

    /// The same, continuing the last message.
    #[must_use]
    pub fn continuing(mut self, continued: ContinuedPart) -> Self {
        self.continued = continued;
        self
    }
}

/// Data of an analysis that continuing messages needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Continuing {
    header: String,
    start: String,
    end: String,
    pub(super) as_part: bool,
    /// True if null content is accepted beside calls.
    pub(super) null_content: bool,
    /// End of a turn with calls, if it differs from the end of other turns.
    pub(super) end_of_calls: String,
}

impl Continuing {
    pub(super) fn new(frame: &Frame, dialect: &Dialect) -> Self {
        let reasoning = &dialect.reasoning;
        let (mut start, mut end) = (reasoning.start.clone(), reasoning.end.clone());
        let python = dialect.calls.as_ref().is_some_and(|calls| calls.list && !frame.taken.is_somewhere());
        if reasoning.mode == ReasoningMode::None && python && frame.prompts.thinking.ends_with('\n') {
            // Such models know these tags although their templates have none.
            (start, end) = ("<think>".into(), "</think>".into());
        }
        if let Some(rest) = frame.prompts.thinking.strip_prefix(frame.header.as_str())
            && reasoning.mode == ReasoningMode::OpenedByPrompt
            && !frame.taken.is_somewhere()
            && rest.starts_with(start.trim())
        {
            start.truncate(start.trim_end().len());
            start.drain(..start.len() - start.trim_start().len());
        }
        Self {
            header: frame.header.clone(),
            start,
            end,
            as_part: frame.taken == ReasoningSource::Part,
            ..Self::default()
        }
    }

    /// Returns the beginning of reasoning in a message that is continued.
    pub(super) fn start(&self) -> &str {
        &self.start
    }

    /// Returns the end of reasoning.
    pub(super) fn end(&self) -> &str {
        &self.end
    }
}

impl Analysis {
    /// The rendered text of a conversation, with its messages and tools in the shape that the template accepts.
    pub(crate) fn traced_render(
        &self,
        template: &ChatTemplate,
        messages: &[Value],
        tools: Option<&Value>,
        options: &RenderOptions,
    ) -> Result<TracedText, TemplateError> {
        let marks = OwnMarks::random();
        let (messages, tools) = self.tell(messages, tools, &marks);
        let options = with_usual_variables(options.clone(), tools.as_ref());
        let messages = marks.data(&Value::Array(self.shaped_all(&messages, &marks)));
        render_with_retries(template, &messages, tools.as_ref(), &options)
    }

    /// The prompt of a conversation, and the byte offset at which the reply's turn begins.
    ///
    /// # Errors
    /// The template refuses these messages, or fails on them.
    ///
    /// ```
    /// use chat_format::analysis::{ContinuedPart, PromptOptions};
    /// use chat_format::{Analysis, ChatTemplate};
    /// use serde_json::json;
    ///
    /// let text = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}\
    ///     {% if add_generation_prompt %}<|assistant|>{% endif %}";
    /// let template = ChatTemplate::new(text, "", "")?;
    /// let analysis = Analysis::from_template(&template)?;
    /// let asked = [json!({"role": "user", "content": "Hi"}), json!({"role": "assistant", "content": "Hello, "})];
    /// let options = PromptOptions::default().continuing(ContinuedPart::Content);
    /// let (prompt, begins) = analysis.prompt(&template, &asked, None, &options)?;
    /// assert_eq!(prompt, "<|user|>Hi\n<|assistant|>Hello, ");
    /// assert_eq!(&prompt[begins..], "<|assistant|>Hello, ");
    /// # Ok::<(), chat_format::TemplateError>(())
    /// ```
    pub fn prompt(
        &self,
        template: &ChatTemplate,
        messages: &[Value],
        tools: Option<&Value>,
        options: &PromptOptions,
    ) -> Result<(String, usize), TemplateError> {
        let (text, begins) = self.traced_prompt(template, messages, tools, options)?;
        Ok((text.into_text(), begins))
    }

    /// The same as [`Analysis::prompt`], with the bytes marked that the template or this format wrote. A marker is a
    /// control token if either of them wrote it; the same text in messages, tools or variables is not.
    ///
    /// # Errors
    /// As [`Analysis::prompt`].
    pub fn traced_prompt(
        &self,
        template: &ChatTemplate,
        messages: &[Value],
        tools: Option<&Value>,
        options: &PromptOptions,
    ) -> Result<(TracedText, usize), TemplateError> {
        let marks = OwnMarks::random();
        let (messages, tools) = self.tell(messages, tools, &marks);
        let (messages, tools) = (&messages[..], tools.as_ref());
        let usual = with_usual_variables(options.render.clone(), tools);
        let render = |messages: &[Value], add: bool| {
            let data = marks.data(&Value::Array(messages.to_vec()));
            let mut render = usual.clone().with_generation_prompt(add);
            render = render.with_variable("enable_thinking", options.enable_thinking);
            render_with_retries(template, &data, tools, &render)
        };
        let shaped = self.shaped_all(messages, &marks);
        let last = messages.last().filter(|last| last["role"] == "assistant");
        let (Some(last), true) = (last, options.continued != ContinuedPart::Nothing) else {
            let with = render(&shaped, true)?;
            let without = render(&shaped, false).unwrap_or_default();
            let begins = common_prefix(with.text(), without.text()).len();
            return Ok((with, begins));
        };
        let before = &shaped[..shaped.len() - 1];
        let asked = render(before, false)?;
        let opened = render(before, true)?;
        let added = common_prefix(opened.text(), asked.text()).len();
        let header = self.header_of(&opened.text()[added..]);
        let mut prompt = opened.part(0..added + header.len());
        let text = |field: &str| last[field].as_str().unwrap_or_default();
        let (reasoning, content) = (reasoning_of(last), text("content"));
        let only_reasoning = match options.continued {
            ContinuedPart::Reasoning => true,
            ContinuedPart::Auto => content.is_empty() && !reasoning.is_empty(),
            _ => false,
        };
        let rendered = self.rendered_last(template, before, last, tools, options, &marks);
        prompt.push(&self.reply_beginning(rendered, header, reasoning, content, only_reasoning));
        Ok((prompt, added))
    }
}

/// Renders with retries: some templates need a list of tools even if there are none, or need optional fields of tools.
fn render_with_retries(
    template: &ChatTemplate,
    messages: &Data,
    given: Option<&Value>,
    options: &RenderOptions,
) -> Result<TracedText, TemplateError> {
    let tools = given.map(Data::from);
    match template.render_growing(messages, tools.as_ref(), options) {
        Err(TemplateError::Undefined { line, reason }) if given.is_some() => {
            with_fields(template, messages, given, options).ok_or(TemplateError::Undefined { line, reason })
        }
        Err(TemplateError::Value { line, reason }) if given.is_some() => {
            with_fields(template, messages, given, options).ok_or(TemplateError::Value { line, reason })
        }
        Err(TemplateError::Value { line, reason }) if tools.is_none() => {
            let none = Data::List(Vec::new());
            let refused = |_| TemplateError::Value { line, reason };
            template.render_growing(messages, Some(&none), options).map_err(refused)
        }
        done => done,
    }
}

/// Renders with the optional fields of tools filled in, if the template accepts it.
fn with_fields(
    template: &ChatTemplate,
    messages: &Data,
    tools: Option<&Value>,
    options: &RenderOptions,
) -> Option<TracedText> {
    let tools = tools?;
    [false, true].into_iter().find_map(|any_type| {
        let filled = super::tool_fields::fill_missing(tools, any_type);
        template.render_growing(messages, Some(&Data::from(&filled)), options).ok()
    })
}

/// Adds variables that some templates read: the tools as a text, and the time. The caller's own variables stay.
pub(crate) fn with_usual_variables(options: RenderOptions, tools: Option<&Value>) -> RenderOptions {
    let mut options = options;
    let given = |options: &RenderOptions, name: &str| options.variables.iter().any(|(known, _)| known == name);
    if !given(&options, "functions") {
        let functions = tools.and_then(|tools| serde_json::to_string_pretty(tools).ok());
        options = options.with_variable("functions", &functions.unwrap_or_else(|| "[]".into())[..]);
    }
    if !given(&options, "datetime") {
        let now = options.clock.date_and_time();
        options = options.with_variable("datetime", &now[..]);
    }
    options
}

impl Analysis {
    /// Returns the end of a turn with calls, if it differs from the end of other turns.
    pub(crate) fn end_of_calls(&self) -> &str {
        &self.continued.end_of_calls
    }

    /// The header of the turn, where what opens it begins so.
    fn header_of(&self, added: &str) -> &str {
        if added.starts_with(self.continued.header.as_str()) { &self.continued.header } else { "" }
    }

    /// The last message, rendered with needles in place of its texts.
    fn rendered_last(
        &self,
        template: &ChatTemplate,
        before: &[Value],
        last: &Value,
        tools: Option<&Value>,
        options: &PromptOptions,
        marks: &OwnMarks,
    ) -> Option<(TracedText, Needles)> {
        let needles = Needles::absent_from(&format!("{}{}", template.text(), Value::Array(before.to_vec())));
        let mut message = serde_json::json!({"role": "assistant", "content": needles.reply});
        if !reasoning_of(last).is_empty() {
            message["reasoning_content"] = Value::String(needles.reason.clone());
        }
        let messages = [before.to_vec(), vec![self.shape_message(&message)]].concat();
        let render = with_fixed_time(options.render.clone()).with_generation_prompt(false);
        let render = render.with_variable("enable_thinking", options.enable_thinking);
        let text = render_with_retries(template, &marks.data(&Value::Array(messages)), tools, &render).ok()?;
        Some((text, needles))
    }

    /// The reply so far, after the header of its turn: as the template writes it, or with the known markers.
    fn reply_beginning(
        &self,
        rendered: Option<(TracedText, Needles)>,
        header: &str,
        reasoning: &str,
        content: &str,
        only_reasoning: bool,
    ) -> TracedText {
        // A format without reasoning has no place for it: it is dropped, never said.
        let none = self.continued.start.is_empty() && self.continued.end.is_empty();
        let reasoning = if none { "" } else { reasoning };
        if none && only_reasoning {
            return TracedText::default();
        }
        let known = || {
            let mut text = TracedText::default();
            if only_reasoning || !reasoning.is_empty() {
                text.push_own(&self.continued.start);
                text.push_foreign(reasoning);
            }
            if !only_reasoning {
                text.push_own(if reasoning.is_empty() { "" } else { self.continued.end.trim_start() });
                text.push_own(&self.dialect.content.start);
                text.push_foreign(content);
            }
            text
        };
        let Some((traced, needles)) = rendered else { return known() };
        let text = traced.text();
        let needle = if only_reasoning { &needles.reason } else { &needles.reply };
        let Some(until) = text.rfind(needle.as_str()) else { return known() };
        if !reasoning.is_empty() && !text.contains(&needles.reason) {
            return known();
        }
        let first = if reasoning.is_empty() { needle } else { &needles.reason };
        let Some(first) = text.find(first.as_str()) else { return known() };
        let Some(from) = text[..first].rfind(header.trim()).map(|at| at + header.trim().len()) else { return known() };
        // Without a header it begins with what begins its first part.
        let opens = if reasoning.is_empty() { &self.dialect.content.start } else { &self.continued.start };
        let opened = text[..first].strip_suffix(opens.as_str()).map_or(first, str::len);
        let from = if header.is_empty() { opened } else { from };
        let white = header.len() - header.trim_end().len();
        let from = if text[from..].starts_with(&header[header.len() - white..]) { from + white } else { from };
        let (reasoning, content) = (TracedText::foreign_text(reasoning), TracedText::foreign_text(content));
        let begun = traced.part(from..until + needle.len());
        begun.replace(&needles.reason, &reasoning).replace(&needles.reply, &content)
    }
}
