//! A request as JSON: what chat APIs call it, without a model.

use crate::chat::content::{HeldContent, read_format};
use crate::chat::format::{ConstraintError, ModelFormat};
use crate::chat::messages::check_message;
use crate::chat::prompt::ChatPrompt;
use crate::chat::receipt::fingerprint;
use crate::chat::reply::{ReadyChat, ReplyOptions};
use crate::chat::shown::ShownSchema;
use crate::chat::tools::{known_tools, tools_in, wrapped_tool};
use crate::constraint::{Host, Over, Spans, Spec, SpecError, SpecProblem, ToolUse};
use crate::json::fields::{Fields, array, text, wrong_type};
use crate::json::parse;
use crate::json::place::Place;
use crate::json::read;
use crate::run::{CallOptions, ReceiptSubject, call_options, logit_bias, sampling, stops};
use chat_format::analysis::{Continued, PromptOptions, ToolsIn};
use chat_format::{ChatFormat, Data, FormatError, RenderOptions, TemplateError, ToolChoice};
use llama_sampler::RuntimeError;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use trie_core::ErrorKind;
use trie_core::{After, AnyConstraint, RulesError, SpanRules, Special, ThinkGate};
use trie_text::VocabError;

/// Messages, tools and settings of a reply.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<Value>,
    /// Definitions of tools, as the template finds them.
    pub definitions: Option<Arc<Value>>,
    /// Where the model is told of them.
    pub tools_in: ToolsIn,
    /// How the prompt is rendered.
    pub prompt: PromptOptions,
    /// The most tokens of reasoning.
    pub thinking_budget: Option<u32>,
    /// Its time and its turn.
    pub call: CallOptions,
    /// What the content obeys, where that was said as data: made a constraint by [`ChatRequest::over`].
    pub content: Option<Spec>,
    /// The schema of the content, where the model is shown it.
    pub shown: Option<ShownSchema>,
    /// How the reply is made and read.
    pub reply: ReplyOptions,
}

const FIELDS: [&str; 22] = [
    "messages",
    "tools",
    "tool_choice",
    "tools_in",
    "parallel_tool_calls",
    "enable_thinking",
    "thinking_budget",
    "continue_final_message",
    "template_variables",
    "max_tokens",
    "probabilities",
    "logprobs",
    "receipt",
    "logit_bias",
    "sampling",
    "timeout",
    "priority",
    "stop",
    "constraint",
    "response_format",
    "show_schema",
    "complete",
];

impl ChatRequest {
    /// Reads `{"messages": [...], "tools": [...], ...}`: docs/c-sessions.md. `template` is the text of the template,
    /// which may know more roles.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8], template: &str) -> Result<Self, SpecError> {
        let value = parse(json)?;
        let fields = Fields::of(&Place::ROOT, &value, &FIELDS)?;
        let messages = fields.need("messages", |place, value| {
            let messages = array(place, value)?;
            for (number, message) in messages.iter().enumerate() {
                let place = place.item(number);
                if !message.is_object() {
                    return Err(wrong_type(&place, "a message, an object", message));
                }
                check_message(message, template, &|_, _| String::new())
                    .map_err(|reason| SpecError::new(&place, SpecProblem::Value(reason)))?;
            }
            Ok(messages.to_vec())
        })?;
        let definitions = fields.read("tools", |place, value| {
            Ok(array(place, value)?.iter().cloned().map(wrapped_tool).collect::<Vec<_>>())
        })?;
        let definitions = Value::Array(definitions.unwrap_or_default());
        let tools_at = Place::ROOT.field("tools");
        let tools = known_tools(&definitions).map_err(|error| SpecError::new(&tools_at, error))?;
        let choice = fields.read("tool_choice", read::<ToolUse>)?.unwrap_or_default();
        let choice = choice.among(&tools, &Place::ROOT.field("tool_choice"))?;
        let reply = ReplyOptions {
            choice,
            tools,
            parallel: fields.flag("parallel_tool_calls", true)?,
            max_tokens: fields.count("max_tokens")?,
            stop: stops(&fields)?,
            content: None,
            content_fingerprint: None,
            sampling: fields.read("sampling", sampling)?.unwrap_or_default(),
            probabilities: fields.flag("probabilities", false)?,
            logprobs: fields.count("logprobs")?,
            receipt: fields.flag("receipt", false)?,
            logit_bias: fields.read("logit_bias", logit_bias)?.unwrap_or_default(),
            complete: fields.flag("complete", true)?,
            explain: None,
        };
        let continued = fields.read("continue_final_message", |place, value| match text(place, value)? {
            "auto" => Ok(Continued::Auto),
            "reasoning" => Ok(Continued::Reasoning),
            "content" => Ok(Continued::Content),
            _ => Err(wrong_type(place, "\"auto\", \"reasoning\" or \"content\"", value)),
        })?;
        let mut prompt = PromptOptions::default()
            .with_thinking(fields.flag("enable_thinking", true)?)
            .continuing(continued.unwrap_or_default());
        if let Some(variables) = fields.read("template_variables", |place, value| {
            value.as_object().ok_or_else(|| wrong_type(place, "an object", value))
        })? {
            let with = |options: RenderOptions, (name, value): (&String, &Value)| {
                options.with_variable(name.as_str(), Data::from(value))
            };
            prompt.render = variables.iter().fold(prompt.render, with);
        }
        let tools_in = fields.read("tools_in", |place, value| {
            tools_in(text(place, value)?).map_err(|reason| SpecError::new(place, SpecProblem::Value(reason)))
        })?;
        let definitions = Some(Arc::new(definitions)).filter(|_| !reply.tools.is_empty());
        let (thinking_budget, call) = (fields.count("thinking_budget")?, call_options(&fields)?);
        let show_schema = fields.flag("show_schema", true)?;
        let constraint = fields.read("constraint", read)?;
        let format = fields.read("response_format", read_format)?.flatten();
        if constraint.is_some() && format.is_some() {
            let reason = SpecProblem::Value("constraint and response_format are both given: give one".to_owned());
            return Err(SpecError::new(&Place::ROOT.field("response_format"), reason));
        }
        let content = constraint.or(format);
        let shown = content.as_ref().filter(|_| show_schema).and_then(ShownSchema::of);
        Ok(Self {
            messages,
            definitions,
            tools_in: tools_in.unwrap_or_default(),
            prompt,
            thinking_budget,
            call,
            content,
            shown,
            reply,
        })
    }

    /// The same with what the content obeys as a constraint over a vocabulary.
    ///
    /// # Errors
    /// As [`Spec::build`].
    pub fn over(mut self, over: &Over<'_>, host: &dyn Host) -> Result<Self, SpecError> {
        if let Some(spec) = self.content.take() {
            self.reply.content_fingerprint = spec.fingerprint();
            self.reply.content = only_span(&spec.constraint(over, host)?).map(Some)?;
        }
        Ok(self)
    }

    /// Its prompt.
    ///
    /// # Errors
    /// As [`ChatPrompt::new`].
    pub fn prompt(&self, format: &ModelFormat) -> Result<ChatPrompt, ChatError> {
        let format = format.with_tools_in(self.tools_in);
        let (vocab, mut messages) = (format.vocab(), Cow::from(&self.messages));
        if let Some(Ok(text)) = self.shown.as_ref().map(ShownSchema::text) {
            format.format().analysis().add_to_system(messages.to_mut(), text);
        }
        ChatPrompt::new(format.format(), vocab, &messages, self.definitions.as_deref(), &self.prompt)
    }

    /// Whether the model is told of its tools, and calls of them can be read.
    fn told(&self, format: &ChatFormat) -> Result<(), ChatError> {
        let found = format.analysis();
        match self.tools_in {
            ToolsIn::Template if found.dialect.calls.is_none() => Err(FormatError::Unrendered.into()),
            ToolsIn::Template if !found.shows_tools() => Err(ChatError::Untold),
            _ => Ok(()),
        }
    }

    /// The most tokens of reasoning. Who is not to think begins a thought all the same at times: it is ended at once.
    fn budget(&self, format: &ModelFormat) -> Option<u32> {
        let is_quiet = !self.prompt.enable_thinking && !matches!(self.prompt.continued, Continued::Reasoning);
        self.thinking_budget.or_else(|| (is_quiet && format.can_end_thoughts()).then_some(0))
    }

    /// All that a reply needs but a context. Its time counts from here.
    ///
    /// # Errors
    /// What the template, the tools or the vocabulary do not take.
    pub fn ready(self, format: &ModelFormat) -> Result<ReadyChat, ChatError> {
        let started = Instant::now();
        if !self.reply.tools.is_empty() && self.reply.choice != ToolChoice::None {
            self.told(format.format())?;
        }
        let (prompt, format) = (self.prompt(format)?, format.with_tools_in(self.tools_in));
        let (vocab, budget) = (format.vocab(), self.budget(format));
        let constraint = self.reply.constraint(&prompt);
        let mut warnings = format.format().warnings(&constraint)?;
        if let Some(Err(unshown)) = self.shown.as_ref().map(ShownSchema::text) {
            warnings = warnings.iter().cloned().chain([unshown]).collect();
        }
        let mut content = None;
        let rules = if let Some(held) = &self.reply.content {
            if !self.reply.tools.is_empty() && self.reply.choice != ToolChoice::None {
                return Err(ChatError::ContentBesideTools);
            }
            if matches!(self.prompt.continued, Continued::Auto | Continued::Content) {
                return Err(ChatError::ContentBegun);
            }
            if held.downcast_ref::<ThinkGate>().is_some() {
                return Err(ChatError::ContentThinks);
            }
            if held.first_set().is_some_and(|set| set.heal_bytes() > 0) {
                return Err(ChatError::ContentHealed);
            }
            if vocab.end_of_generation().is_empty() {
                return Err(ChatError::ContentWithoutEnd);
            }
            if !self.reply.stop.is_empty() && !held.never_ends() {
                return Err(ChatError::StopOfContent);
            }
            let before = format.before_content(&prompt.turn, budget)?;
            let (held, ends) = (HeldContent::new(before, held.clone()), format.content_ends());
            content = Some(held.clone());
            let rules = SpanRules::of(AnyConstraint::new(held), vocab.len())?.with_end_tokens(ends.as_slice())?;
            rules.with_end_of_generation(vocab.end_of_generation())?.with_after(After::Stop)?
        } else {
            let mut rules = SpanRules::of(format.constraint(&constraint, budget)?, vocab.len())?;
            let must_call = matches!(self.reply.choice, ToolChoice::Required | ToolChoice::Tool(_));
            if must_call && !vocab.end_of_generation().is_empty() {
                // After the calls nothing but the end may come.
                rules = rules.with_end_tokens(vocab.end_of_generation())?.with_after(After::Stop)?;
            }
            rules.with_end_of_generation(vocab.end_of_generation())?
        };
        let rules = Arc::new(rules);
        let needs_value = content.is_some() || matches!(self.reply.choice, ToolChoice::Required | ToolChoice::Tool(_));
        let thought_end = if needs_value { format.thought_end() } else { Vec::new() };
        let parser = self.reply.parser(format, &prompt)?;
        let subject = self.reply.receipt.then(|| {
            let (template, definitions) = (format.format().template(), self.definitions.as_deref());
            let known = fingerprint(template, definitions, self.tools_in, budget, &prompt, &self.reply);
            Arc::new(ReceiptSubject::of_chat(&prompt.tokens, known))
        });
        Ok(ReadyChat {
            prompt,
            rules,
            parser,
            content,
            thought_end,
            options: self.reply,
            vocab: Arc::clone(vocab),
            warnings,
            subject,
            started,
        })
    }
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The template refuses the messages.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The tools do not go into the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The model would not know its tools.
    #[error(
        "the model's chat template does not show the tools to the model: give tools_in=\"system\" to describe them in \
         the system message, or tools_in=\"messages\" if the messages describe them"
    )]
    Untold,
    /// Content is held to something where calls may come.
    #[error(
        "constraint and response_format are for the content of a reply without calls: give no tools, or tool_choice \
         \"none\""
    )]
    ContentBesideTools,
    /// Content that is held to something could not end.
    #[error("the vocabulary has no token that ends generation, so content that is held to a constraint could not end")]
    ContentWithoutEnd,
    /// A set that begins inside the prompt.
    #[error("the constraint of the content begins inside the prompt (token healing): make it without heal=True")]
    ContentHealed,
    /// Thoughts are no content.
    #[error(
        "a ThinkGate is no constraint of content, because a chat has thoughts of its own: give what the gate is \
         followed by, and thinking_budget"
    )]
    ContentThinks,
    /// Content that is held to something ends where that says so.
    #[error(
        "stop is not supported beside constraint and response_format: it would cut the content in the middle, and the \
         constraint says where it ends. Leave stop out, or put the text into the constraint"
    )]
    StopOfContent,
    /// Content that was begun cannot be held to something.
    #[error(
        "constraint and response_format hold content from its beginning, and continue_final_message goes on with one"
    )]
    ContentBegun,
    /// The reply cannot be constrained.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// The vocabulary.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// The vocabulary and the constraint.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The model.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl ChatError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Template(_) => ErrorKind::Template,
            Self::Format(error) => error.kind(),
            Self::Constraint(error) => error.kind(),
            Self::Vocab(error) => error.kind(),
            Self::Rules(error) => error.kind(),
            Self::Runtime(error) => error.kind(),
            Self::Untold
            | Self::ContentBesideTools
            | Self::ContentWithoutEnd
            | Self::ContentHealed
            | Self::ContentThinks
            | Self::StopOfContent
            | Self::ContentBegun => ErrorKind::Spec,
        }
    }
}

/// The one constraint that content obeys.
///
/// # Errors
/// Several: content has one.
pub fn only_span(spans: &Spans) -> Result<AnyConstraint, SpecError> {
    match &**spans {
        [(_, only)] => Ok(only.clone()),
        several => {
            let paths: Vec<&str> = several.iter().map(|(path, _)| path.as_str()).collect();
            let reason = format!("content obeys one constraint, and this has {paths:?}: give a path");
            Err(SpecError::new(&Place::ROOT.field("constraint"), SpecProblem::Value(reason)))
        }
    }
}
