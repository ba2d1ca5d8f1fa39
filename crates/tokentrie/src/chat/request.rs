//! A chat request as JSON, with the names that chat APIs use. It needs no model.

use crate::call::{CallOptions, ReceiptSubject, Stops, logit_bias, sampling};
use crate::chat::call_ids::CallIds;
use crate::chat::content::HeldContent;
use crate::chat::format::{ConstraintError, ModelFormat};
use crate::chat::messages::check_message;
use crate::chat::prompt::ChatPrompt;
use crate::chat::receipt::fingerprint;
use crate::chat::reply::{ReadyChat, ReplyOptions};
use crate::chat::response_format::ResponseFormat;
use crate::chat::shown::ShownSchema;
use crate::chat::tools::{known_tools, wrapped_tool};
use crate::constraint::{Host, Over, ReplyWhitespace, Spans, Spec, SpecError, SpecProblem, ToolUse};
use crate::json::place::Place;
use crate::json::{ReadParts, parse, shorten_value};
use chat_format::analysis::{ContinuedPart, PromptOptions, ToolsIn};
use chat_format::{ChatFormat, Data, FormatError, RenderOptions, TemplateError, ToolChoice, Tools};
use llama_sampler::RuntimeError;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use trie_core::ErrorKind;
use trie_core::{After, AnyConstraint, LogitBias, RulesError, SamplerOptions, SpanRules, Special, ThinkGate};
use trie_text::VocabError;

/// Messages, tools and settings of a reply.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// Messages of the conversation.
    pub messages: Vec<Value>,
    /// Definitions of tools, as the template finds them.
    pub definitions: Option<Arc<Value>>,
    /// Place of the tools in the prompt; `None` is the template, or the system message if the template cannot.
    pub tools_in: Option<ToolsIn>,
    /// Options of the prompt's rendering.
    pub prompt: PromptOptions,
    /// The most tokens of reasoning.
    pub thinking_budget: Option<u32>,
    /// Time limit and priority.
    pub call: CallOptions,
    /// Constraint on the content as data, if any: compiled by [`ChatRequest::build_content`].
    pub content: Option<Spec>,
    /// The schema of the content, if it is shown to the model.
    pub shown: Option<ShownSchema>,
    /// Options for generating and reading the reply.
    pub reply: ReplyOptions,
}

/// Options of a chat that are data in every host, beside messages, tools and the constraint on the content.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct ChatOptions {
    /// Permission or requirement to call tools.
    pub tool_choice: ToolUse,
    /// Place of the tools in the prompt; `None` is the template, or the system message if the template cannot.
    #[serde(deserialize_with = "tools_in_word")]
    pub tools_in: Option<ToolsIn>,
    /// Allows more than one call.
    pub parallel_tool_calls: bool,
    /// White space in calls, and in content that a `response_format` constrains.
    pub whitespace: ReplyWhitespace,
    /// Allows the model to think, if the template does.
    pub enable_thinking: bool,
    /// The most tokens of reasoning.
    pub thinking_budget: Option<u32>,
    /// Part of the last message to continue.
    #[serde(with = "ContinuedWord")]
    pub continue_final_message: ContinuedPart,
    /// Further variables of the template.
    pub template_variables: Map<String, Value>,
    /// Shows the schema of the content to the model.
    pub show_schema: bool,
    /// The most tokens of the reply; `None` is what the context has room for.
    pub max_tokens: Option<u32>,
    /// Texts that end the content.
    pub stop: Stops,
    /// Options of the sampler.
    #[serde(deserialize_with = "sampling")]
    pub sampling: SamplerOptions,
    /// Reports the probabilities of calls.
    pub probabilities: bool,
    /// Number of alternatives to report beside the log probability of each token of the content.
    pub logprobs: Option<u32>,
    /// Records the alternatives to each token for a receipt.
    pub receipt: bool,
    /// Biases on the logits of tokens.
    #[serde(deserialize_with = "logit_bias")]
    pub logit_bias: LogitBias,
    /// Completes required parts if no more tokens fit, with tokens that the model did not choose.
    pub complete: bool,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self {
            tool_choice: ToolUse::Auto,
            tools_in: None,
            parallel_tool_calls: true,
            whitespace: ReplyWhitespace::default(),
            enable_thinking: true,
            thinking_budget: None,
            continue_final_message: ContinuedPart::Nothing,
            template_variables: Map::new(),
            show_schema: true,
            max_tokens: None,
            stop: Stops::default(),
            sampling: SamplerOptions::default(),
            probabilities: false,
            logprobs: None,
            receipt: false,
            logit_bias: LogitBias::default(),
            complete: true,
        }
    }
}

fn tools_in_word<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ToolsIn>, D::Error> {
    Ok(match ToolsInWord::deserialize(from)? {
        ToolsInWord::Auto => None,
        ToolsInWord::Template => Some(ToolsIn::Template),
        ToolsInWord::System => Some(ToolsIn::System),
        ToolsInWord::Messages => Some(ToolsIn::Messages),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToolsInWord {
    Auto,
    Template,
    System,
    Messages,
}

#[derive(Deserialize)]
#[serde(remote = "ContinuedPart", rename_all = "snake_case")]
enum ContinuedWord {
    #[serde(skip)]
    Nothing,
    Auto,
    Reasoning,
    Content,
}

impl ChatOptions {
    /// Returns the request for a reply to a conversation, with these tools.
    ///
    /// # Errors
    /// A tool that must be called, but is not one of these tools.
    pub fn request(
        self,
        messages: Vec<Value>,
        tools: Tools,
        definitions: Option<Arc<Value>>,
    ) -> Result<ChatRequest, SpecError> {
        let choice = self.tool_choice.to_choice(&tools, &Place::ROOT.field("tool_choice"))?;
        let mut prompt =
            PromptOptions::default().with_thinking(self.enable_thinking).continuing(self.continue_final_message);
        let with = |options: RenderOptions, (name, value): (&String, &Value)| {
            options.with_variable(name.as_str(), Data::from(value))
        };
        prompt.render = self.template_variables.iter().fold(prompt.render, with);
        Ok(ChatRequest {
            messages,
            definitions: definitions.filter(|_| !tools.is_empty()),
            tools_in: self.tools_in,
            prompt,
            thinking_budget: self.thinking_budget,
            call: CallOptions::default(),
            content: None,
            shown: None,
            reply: ReplyOptions {
                choice,
                tools,
                parallel: self.parallel_tool_calls,
                whitespace: self.whitespace,
                max_tokens: self.max_tokens,
                stop: self.stop,
                content: None,
                content_fingerprint: None,
                sampling: self.sampling,
                probabilities: self.probabilities,
                logprobs: self.logprobs,
                receipt: self.receipt,
                logit_bias: self.logit_bias,
                complete: self.complete,
                explain: None,
            },
        })
    }
}

impl ChatRequest {
    /// Reads `{"messages": [...], "tools": [...], ...}`: docs/c-sessions.md. `template` is the text of the template,
    /// which may know more roles.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8], template: &str) -> Result<Self, SpecError> {
        #[derive(Deserialize)]
        struct OwnFields {
            messages: Vec<Value>,
            #[serde(default)]
            tools: Vec<Value>,
            constraint: Option<Spec>,
            response_format: Option<ResponseFormat>,
        }

        let value = parse(json)?;
        let (own, options, call): (OwnFields, ChatOptions, _) = ReadParts::read_parts(&value)?;
        let OwnFields { messages, tools, constraint, response_format } = own;
        let place = Place::ROOT.field("messages");
        for (number, message) in messages.iter().enumerate() {
            let refused = |problem| SpecError::new(&place.item(number), problem);
            if !message.is_object() {
                let (expected, given) = ("a message, an object".to_owned(), shorten_value(message));
                return Err(refused(SpecProblem::Type { expected, given }));
            }
            check_message(message, template, &|_, _| String::new())
                .map_err(|reason| refused(SpecProblem::Value(reason)))?;
        }
        let definitions = Value::Array(tools.into_iter().map(wrapped_tool).collect());
        let tools = known_tools(&definitions).map_err(|error| SpecError::new(&Place::ROOT.field("tools"), error))?;
        let (show_schema, whitespace) = (options.show_schema, options.whitespace);
        let mut request = options.request(messages, tools, Some(Arc::new(definitions)))?;
        let format = response_format.and_then(|format| format.with_whitespace(whitespace).0);
        if constraint.is_some() && format.is_some() {
            let reason = SpecProblem::Value("constraint and response_format are both given: give one".to_owned());
            return Err(SpecError::new(&Place::ROOT.field("response_format"), reason));
        }
        request.content = constraint.or(format);
        request.shown = request.content.as_ref().filter(|_| show_schema).and_then(ShownSchema::from_spec);
        request.call = call;
        Ok(request)
    }

    /// Returns the request with the constraint on its content built over a vocabulary.
    ///
    /// # Errors
    /// As [`Spec::build`].
    pub fn build_content(mut self, over: &Over<'_>, host: &dyn Host) -> Result<Self, SpecError> {
        if let Some(spec) = self.content.take() {
            self.reply.content_fingerprint = spec.fingerprint();
            self.reply.content = only_span(&spec.constraint(over, host)?).map(Some)?;
        }
        Ok(self)
    }

    /// Returns the prompt of the conversation.
    ///
    /// # Errors
    /// As [`ChatPrompt::new`].
    pub fn prompt(&self, format: &ModelFormat) -> Result<ChatPrompt, ChatError> {
        let format = format.with_tools_in(self.place_of_tools(format.format()));
        let (vocab, mut messages) = (format.vocab(), Cow::from(&self.messages));
        if let Some(Ok(text)) = self.shown.as_ref().map(ShownSchema::text) {
            format.format().analysis().add_to_system(messages.to_mut(), text);
        }
        ChatPrompt::new(format.format(), vocab, &messages, self.definitions.as_deref(), &self.prompt)
    }

    /// Returns the place of the tools in the prompt.
    fn place_of_tools(&self, format: &ChatFormat) -> ToolsIn {
        let usual = if self.definitions.is_none() { ToolsIn::Template } else { format.analysis().place_of_tools() };
        self.tools_in.unwrap_or(usual)
    }

    /// Checks that the model sees its tools, and that calls of them can be parsed.
    fn check_tools(&self, format: &ChatFormat) -> Result<(), ChatError> {
        let found = format.analysis();
        match self.place_of_tools(format) {
            ToolsIn::Template if found.dialect.calls.is_none() => Err(FormatError::Unrendered.into()),
            ToolsIn::Template if !found.shows_tools() => Err(ChatError::Untold),
            _ => Ok(()),
        }
    }

    /// Returns the limit on reasoning tokens. A model that is told not to think may still begin a thought, which is
    /// then ended at once.
    fn budget(&self, format: &ModelFormat) -> Option<u32> {
        let is_quiet = !self.prompt.enable_thinking && !matches!(self.prompt.continued, ContinuedPart::Reasoning);
        self.thinking_budget.or_else(|| (is_quiet && format.can_end_thoughts()).then_some(0))
    }

    /// Returns the prepared chat, which then only needs a context. Its time is measured from this call on.
    ///
    /// # Errors
    /// Anything that the template, the tools or the vocabulary refuse.
    pub fn ready(self, format: &ModelFormat) -> Result<ReadyChat, ChatError> {
        let started = Instant::now();
        if !self.reply.tools.is_empty() && self.reply.choice != ToolChoice::None {
            self.check_tools(format.format())?;
        }
        let place = self.place_of_tools(format.format());
        let untold = (self.tools_in.is_none() && place == ToolsIn::System).then(|| format.warn_of_place()).flatten();
        let (prompt, format) = (self.prompt(format)?, format.with_tools_in(place));
        let (vocab, budget) = (format.vocab(), self.budget(format));
        let constraint = self.reply.constraint(&prompt);
        let mut warnings = format.format().warnings(&constraint)?;
        let unshown = self.shown.as_ref().and_then(|shown| shown.text().err());
        if untold.is_some() || unshown.is_some() {
            warnings = warnings.iter().cloned().chain(untold).chain(unshown).collect();
        }
        let mut content = None;
        // A reply that must call has no content.
        let held = self.reply.content.as_ref().filter(|_| !self.reply.choice.is_required());
        let rules = if let Some(held) = held {
            if matches!(self.prompt.continued, ContinuedPart::Auto | ContinuedPart::Content) {
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
            let calls =
                self.reply.calls_alone(&constraint).map(|calls| format.constraint(&calls, budget)).transpose()?;
            let (held, ends) = (HeldContent::new(before, held.clone(), calls), format.content_ends());
            content = Some(held.clone());
            let rules =
                SpanRules::for_constraint(AnyConstraint::new(held), vocab.len())?.with_end_tokens(ends.as_slice())?;
            rules.with_end_of_generation(vocab.end_of_generation())?.with_after(After::Stop)?
        } else {
            let mut rules = SpanRules::for_constraint(format.constraint(&constraint, budget)?, vocab.len())?;
            if self.reply.choice.is_required() && !vocab.end_of_generation().is_empty() {
                // After the calls nothing but the end may come.
                rules = rules.with_end_tokens(vocab.end_of_generation())?.with_after(After::Stop)?;
            }
            rules.with_end_of_generation(vocab.end_of_generation())?
        };
        let rules = Arc::new(rules);
        let needs_value = content.is_some() || self.reply.choice.is_required();
        let thought_end = if needs_value { format.thought_end() } else { Vec::new() };
        let parser = self.reply.parser(format, &prompt)?;
        let subject = self.reply.receipt.then(|| {
            let definitions = self.definitions.as_deref();
            let known = fingerprint(format.format(), definitions, place, budget, &prompt, &self.reply);
            ReceiptSubject::of_chat(&prompt.tokens, known)
        });
        let ids = CallIds::new(&self.messages, &prompt.tokens);
        Ok(ReadyChat {
            prompt,
            rules,
            parser,
            ids,
            content,
            thought_end,
            options: self.reply,
            vocab: Arc::clone(vocab),
            warnings,
            subject,
            key: None,
            n: 1,
            started,
        })
    }
}

/// Reason why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The template refuses the messages.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Tools that the format cannot express.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A template that does not show the tools to the model.
    #[error(
        "the model's chat template does not show the tools to the model: give tools_in=\"system\" to describe them in \
         the system message, or tools_in=\"messages\" if the messages describe them"
    )]
    Untold,
    /// Constrained content that could not end.
    #[error("the vocabulary has no token that ends generation, so content that is held to a constraint could not end")]
    ContentWithoutEnd,
    /// A set on the content that begins inside the prompt.
    #[error("the constraint of the content begins inside the prompt (token healing): make it without heal=True")]
    ContentHealed,
    /// A thinking gate as a constraint on the content.
    #[error(
        "a ThinkGate cannot constrain content, because a chat has thoughts of its own: give what the gate is \
         followed by, and thinking_budget"
    )]
    ContentThinks,
    /// Stop texts beside a constraint on the content, which alone ends the content.
    #[error(
        "stop is not supported beside constraint and response_format: it would cut the content in the middle, and the \
         constraint says where it ends. Leave stop out, or put the text into the constraint"
    )]
    StopOfContent,
    /// A constraint on content that the request has already begun.
    #[error(
        "constraint and response_format hold content from its beginning, and continue_final_message goes on with one"
    )]
    ContentBegun,
    /// The reply cannot be constrained.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// Error of the vocabulary.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// A constraint that does not fit the vocabulary.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Error of the model.
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
            | Self::ContentWithoutEnd
            | Self::ContentHealed
            | Self::ContentThinks
            | Self::StopOfContent
            | Self::ContentBegun => ErrorKind::Spec,
        }
    }
}

/// Returns the only constraint of these spans.
///
/// # Errors
/// Several constraints: content can have only one.
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
