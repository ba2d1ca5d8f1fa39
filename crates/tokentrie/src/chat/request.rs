//! A request as JSON: what chat APIs call it, without a model.

use crate::chat::format::{ConstraintError, ModelFormat};
use crate::chat::messages::check_message;
use crate::chat::prompt::ChatPrompt;
use crate::chat::reading::ChatWatch;
use crate::chat::reply::{ChatReply, Prepared, ReplyOptions, reply};
use crate::chat::tools::{known_tools, wrapped_tool};
use crate::spec::fields::{Fields, array, text, wrong_type};
use crate::spec::json::parse;
use crate::spec::kinds::reply::ToolUse;
use crate::spec::place::Place;
use crate::spec::{SpecError, SpecProblem};
use chat_format::analysis::{Continued, PromptOptions};
use chat_format::{Data, FormatError, Parser, RenderOptions, TemplateError};
use llama_sampler::{Context, RuntimeError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{DrawSettings, Mode, RulesError, SamplerOptions, SpanRules};
use trie_text::{Vocab, VocabError};

/// Messages, tools and settings of a reply.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    messages: Vec<Value>,
    /// For the template.
    definitions: Option<Value>,
    prompt: PromptOptions,
    /// The most tokens of reasoning.
    pub thinking_budget: Option<u32>,
    /// How the reply is made and read.
    pub reply: ReplyOptions,
}

const FIELDS: [&str; 11] = [
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "enable_thinking",
    "thinking_budget",
    "continue_final_message",
    "template_variables",
    "max_tokens",
    "probabilities",
    "sampling",
];

impl ChatRequest {
    /// Reads `{"messages": [...], "tools": [...], ...}`: docs/c.md. `template` is the text of the template, which
    /// may know more roles.
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
        let choice = fields.read("tool_choice", ToolUse::read)?.unwrap_or_default();
        let choice = choice.among(&tools, &Place::ROOT.field("tool_choice"))?;
        let reply = ReplyOptions {
            choice,
            tools,
            parallel: fields.flag("parallel_tool_calls", true)?,
            max_tokens: fields.count("max_tokens")?,
            sampling: fields.read("sampling", sampling)?.unwrap_or_default(),
            probabilities: fields.flag("probabilities", false)?,
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
        let definitions = Some(definitions).filter(|_| !reply.tools.is_empty());
        Ok(Self { messages, definitions, prompt, thinking_budget: fields.count("thinking_budget")?, reply })
    }

    /// Its prompt.
    ///
    /// # Errors
    /// As [`ChatPrompt::new`].
    pub fn prompt(&self, format: &ModelFormat) -> Result<ChatPrompt, ChatError> {
        let vocab = format.vocab();
        ChatPrompt::new(format.format(), vocab, &self.messages, self.definitions.as_ref(), &self.prompt)
    }

    /// All that a reply needs but a context.
    ///
    /// # Errors
    /// What the template, the tools or the vocabulary do not take.
    pub fn ready(self, format: &ModelFormat) -> Result<ReadyChat, ChatError> {
        let started = Instant::now();
        let (prompt, vocab) = (self.prompt(format)?, format.vocab());
        let constraint = self.reply.constraint(&prompt);
        let warnings = format.format().warnings(&constraint)?.to_vec();
        let rules = SpanRules::of(format.constraint(&constraint, self.thinking_budget)?, vocab.len())?;
        let rules = Arc::new(rules.with_end_of_generation(vocab.end_of_generation())?);
        let parser = self.reply.parser(format.format(), &prompt)?;
        Ok(ReadyChat { prompt, rules, parser, options: self.reply, warnings, started })
    }
}

/// A chat that only needs a context.
#[derive(Debug)]
pub struct ReadyChat {
    prompt: ChatPrompt,
    rules: Arc<SpanRules>,
    parser: Parser,
    options: ReplyOptions,
    /// What of the tools' schemas is not held.
    pub warnings: Vec<String>,
    started: Instant,
}

impl ReadyChat {
    /// The reply.
    ///
    /// # Errors
    /// As [`reply`].
    pub fn reply(
        self,
        context: &mut Context,
        vocab: &Arc<Vocab>,
        watch: &mut dyn ChatWatch,
    ) -> Result<ChatReply, RuntimeError> {
        let Self { prompt, rules, parser, options, started, .. } = self;
        reply(context, vocab, Prepared { prompt: &prompt, rules: &rules, parser, started }, &options, watch)
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

/// `{"temperature": 0.7, "seed": 1}`: with any setting of the draw tokens are drawn, without one the best are taken.
fn sampling(place: &Place<'_>, value: &Value) -> Result<SamplerOptions, SpecError> {
    let names: Vec<&str> = DrawSettings::ALL.iter().map(|setting| setting.name).chain(["mode", "seed"]).collect();
    let fields = Fields::of(place, value, &names)?;
    let mut draw = DrawSettings::default();
    let mut is_drawn = false;
    for setting in DrawSettings::ALL {
        let number =
            |place: &Place<'_>, value: &Value| value.as_f64().ok_or_else(|| wrong_type(place, "a number", value));
        let Some(number) = fields.read(setting.name, number)? else { continue };
        let wrong = |error: trie_core::DrawError| {
            SpecError::new(&place.field(setting.name), SpecProblem::Value(error.to_string()))
        };
        setting.set(&mut draw, number).map_err(wrong)?;
        is_drawn = true;
    }
    let mode = fields.read("mode", |place, value| match text(place, value)? {
        "greedy" => Ok(Mode::Greedy),
        "sampled" => Ok(Mode::Sampled),
        _ => Err(wrong_type(place, "\"greedy\" or \"sampled\"", value)),
    })?;
    let usual = if is_drawn { Mode::Sampled } else { Mode::Greedy };
    Ok(SamplerOptions { mode: mode.unwrap_or(usual), draw, seed: fields.count("seed")? })
}
