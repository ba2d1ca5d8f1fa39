//! The format of a model's chats, over its vocabulary.

#[cfg(feature = "llama")]
use super::prompt::ChatPrompt;
use chat_format::analysis::ToolsIn;
#[cfg(feature = "llama")]
use chat_format::analysis::{ContinuedPart, PromptOptions};
use chat_format::{
    ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, Event, FormatError, Parser, ParserOptions,
    TemplateError,
};
#[cfg(feature = "llama")]
use serde_json::{Value, json};
use std::collections::HashMap;
#[cfg(feature = "llama")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use trie_core::{AnyConstraint, ErrorKind, TokenId};
#[cfg(feature = "llama")]
use trie_core::{Constraint, Ending, Scratch};
use trie_text::Vocab;
#[cfg(feature = "llama")]
use trie_text::VocabError;

/// The template of a model whose file has none: that of `ChatML`, with calls of tools as JSON in `<tool_call>` tags.
pub const CHATML: &str = include_str!("chatml.jinja");

/// Warning about a missing template.
pub const NO_TEMPLATE: &str =
    "the model file has no chat template: ChatML is used, with calls of tools as JSON in <tool_call> tags";

/// Returns the texts of a vocabulary's control tokens: they may tell how a tool call begins if the template does not.
#[must_use]
pub fn control_texts(vocab: &Vocab) -> Vec<String> {
    let pieces = vocab.control().iter().filter_map(|&token| vocab.piece(token));
    pieces.filter_map(|piece| std::str::from_utf8(piece).ok()).map(str::to_owned).collect()
}

/// Returns the template of a model file. A file without one gives [`CHATML`] and `true`; users are then warned with
/// [`NO_TEMPLATE`].
///
/// # Errors
/// None, unless [`CHATML`] is faulty.
pub fn template_or_chatml(template: Option<ChatTemplate>) -> Result<(ChatTemplate, bool), TemplateError> {
    template.map_or_else(|| Ok((ChatTemplate::new(CHATML, "", "")?, true)), |template| Ok((template, false)))
}

/// A chat format over a vocabulary: constrains and parses replies token by token.
#[derive(Debug)]
pub struct ModelFormat {
    format: ChatFormat,
    vocab: Arc<Vocab>,
    control: ControlTokens,
    /// The same format with the tools at another place of the prompt, built on first use.
    elsewhere: [OnceLock<Box<Self>>; ToolsIn::ALL.len()],
    /// True once a call was warned that the system message describes its tools.
    #[cfg(feature = "llama")]
    was_warned: AtomicBool,
}

/// Why there is no constraint.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConstraintError {
    /// The format, the tools, or a vocabulary that cannot spell them.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Reasoning cannot be ended.
    #[error("the vocabulary has no tokens for the marker {end:?}")]
    NoEnd {
        /// The end marker used.
        end: String,
    },
}

impl ConstraintError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Format(error) => error.kind(),
            Self::NoEnd { .. } => ErrorKind::Vocabulary,
        }
    }
}

impl ModelFormat {
    /// A format over a vocabulary.
    #[must_use]
    pub fn new(format: ChatFormat, vocab: Arc<Vocab>) -> Self {
        let markers = vocab.control().iter().filter(|&&token| !vocab.is_end_of_generation(token));
        let texts = markers.filter_map(|&token| Some((vocab.piece(token)?, token)));
        let control = ControlTokens::new(texts).with_ends(vocab.end_of_generation().to_vec());
        Self {
            format,
            vocab,
            control,
            elsewhere: Default::default(),
            #[cfg(feature = "llama")]
            was_warned: AtomicBool::new(false),
        }
    }

    /// Returns the same format with the tools at this place of the prompt instead of the template's. Each is built
    /// once.
    #[must_use]
    pub fn with_tools_in(&self, place: ToolsIn) -> &Self {
        let Some(at) = ToolsIn::ALL.iter().position(|known| *known == place && place != ToolsIn::Template) else {
            return self;
        };
        self.elsewhere[at]
            .get_or_init(|| Box::new(Self::new(self.format.with_tools_in(place), Arc::clone(&self.vocab))))
    }

    /// Returns the warning that the system message describes the tools because the template does not; `None` if a call
    /// was warned before.
    #[cfg(feature = "llama")]
    pub(crate) fn warn_of_place(&self) -> Option<String> {
        (!self.was_warned.swap(true, Ordering::Relaxed)).then(|| {
            let cannot = if self.format.analysis().shows_tools() { "writes no calls" } else { "shows no tools" };
            format!(
                "the model's chat template {cannot}, so the system message describes the tools: require the call of a \
                 model that was not trained for it (tool_choice=\"required\"); tools_in=\"system\" says that this is \
                 meant, tools_in=\"messages\" that the messages describe the tools"
            )
        })
    }

    /// Clears what is cached for tools, also in the formats of [`ModelFormat::with_tools_in`]. Parts in use stay valid.
    pub fn forget(&self) {
        self.format.forget();
        self.elsewhere.iter().filter_map(OnceLock::get).for_each(|format| format.forget());
    }

    /// Returns the format without the vocabulary.
    #[must_use]
    pub fn format(&self) -> &ChatFormat {
        &self.format
    }

    /// Returns the vocabulary of the format.
    #[must_use]
    pub fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    /// Returns a parser of a reply, which [`ModelFormat::push`] gives tokens.
    ///
    /// # Errors
    /// As [`ChatFormat::parser`].
    pub fn parser(&self, options: &ParserOptions) -> Result<Parser, FormatError> {
        let mut options = options.clone();
        options.control = self.control.clone();
        self.format.parser(&options)
    }

    /// Reads a token of a reply, and returns the events that became certain with it.
    pub fn push(&self, parser: &mut Parser, token: TokenId) -> Vec<Event> {
        let is_control = self.vocab.control().binary_search(&token).is_ok();
        parser.push_token(self.vocab.piece(token).unwrap_or_default(), is_control)
    }

    /// Returns the constraint on a reply, with a limit on its reasoning tokens if `budget` is given. Built parts are
    /// cached.
    ///
    /// # Errors
    /// As [`ChatFormat::constraint`]; with a budget also [`ConstraintError::NoEnd`].
    pub fn constraint(
        &self,
        options: &ConstraintOptions,
        budget: Option<u32>,
    ) -> Result<AnyConstraint, ConstraintError> {
        let closing = budget.map(|_| self.closing()).transpose()?;
        let spelling = self.vocab.spelling_with_control(ControlTokens::BYTE);
        let made = self.format.constraint(options, &spelling, &self.control)?;
        Ok(match (budget, closing) {
            (Some(budget), Some(closing)) => AnyConstraint::new(made.with_budget(budget, closing)),
            _ => AnyConstraint::new(made),
        })
    }

    /// Returns the constraint on text between the beginning of a turn and its content, if there may be any; a value of
    /// it ends wherever content may begin.
    ///
    /// # Errors
    /// As [`ModelFormat::constraint`].
    #[cfg(feature = "llama")]
    pub(crate) fn before_content(
        &self,
        prompt: &str,
        budget: Option<u32>,
    ) -> Result<Option<AnyConstraint>, ConstraintError> {
        let closing = budget.map(|_| self.closing()).transpose()?;
        let spelling = self.vocab.spelling_with_control(ControlTokens::BYTE);
        let before = self.format.before_content(Some(prompt), &spelling, &self.control)?;
        Ok(before.map(|before| match (budget, closing) {
            (Some(budget), Some(closing)) => AnyConstraint::new(before.with_budget(budget, closing)),
            _ => AnyConstraint::new(before),
        }))
    }

    /// Returns the prompt of a conversation up to the beginning of the reply's content: without thinking if the
    /// template allows that, else after an empty thought. The marker that begins the content is included.
    ///
    /// # Errors
    /// As [`ChatPrompt::new`], and as [`ModelFormat::constraint`].
    #[cfg(feature = "llama")]
    pub(crate) fn content_prompt<E>(&self, messages: &[Value]) -> Result<ChatPrompt, E>
    where
        E: From<TemplateError> + From<VocabError> + From<ConstraintError>,
    {
        self.content_prompt_by(messages, |messages, options| {
            ChatPrompt::new::<E>(&self.format, &self.vocab, messages, None, options)
        })
    }

    /// The same as [`ModelFormat::content_prompt`] for messages in which a mark stands: [`ChatPrompt::with_mark`].
    ///
    /// # Errors
    /// As [`ModelFormat::content_prompt`].
    #[cfg(feature = "llama")]
    pub(crate) fn marked_content_prompt<E>(&self, messages: &[Value], mark: &str) -> Result<ChatPrompt, E>
    where
        E: From<TemplateError> + From<VocabError> + From<ConstraintError>,
    {
        self.content_prompt_by(messages, |messages, options| {
            ChatPrompt::with_mark::<E>(&self.format, &self.vocab, messages, mark, options)
        })
    }

    #[cfg(feature = "llama")]
    fn content_prompt_by<E: From<ConstraintError>>(
        &self,
        messages: &[Value],
        make: impl Fn(&[Value], &PromptOptions) -> Result<ChatPrompt, E>,
    ) -> Result<ChatPrompt, E> {
        let quiet = PromptOptions::default().with_thinking(false);
        let prompt = make(messages, &quiet)?;
        if self.content_may_begin(&prompt.turn)? == Some(true) {
            return Ok(prompt);
        }
        let begun = [messages, &[json!({"role": "assistant", "content": ""})]].concat();
        let options = quiet.continuing(ContinuedPart::Content);
        let mut prompt = make(&begun, &options)?;
        // Some templates leave the end of a thought out of what was said before.
        if self.content_may_begin(&prompt.turn)? == Some(false) {
            prompt.tokens.extend(self.closing()?);
            prompt.turn.push_str(&self.format.analysis().dialect.reasoning.end);
        }
        Ok(prompt)
    }

    /// Returns whether content may follow the beginning of its turn directly; `None` if a recipient must come between.
    #[cfg(feature = "llama")]
    fn content_may_begin(&self, turn: &str) -> Result<Option<bool>, ConstraintError> {
        match self.before_content(turn, None) {
            Ok(None) => Ok(Some(true)),
            Ok(Some(before)) => Ok(Some(before.next(&before.start(), &mut Scratch::default()).ending != Ending::No)),
            Err(ConstraintError::Format(FormatError::Recipients { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the tokens that end content: those that end generation, and the end marker of content if that is a
    /// control token. A text marker could not be told from content.
    #[cfg(feature = "llama")]
    pub(crate) fn content_ends(&self) -> Vec<TokenId> {
        let spelled = self.vocab.tokenize_marker(&self.format.analysis().dialect.content.end);
        let first = spelled.filter(|_| self.vocab.can_tokenize()).and_then(|tokens| tokens.first().copied());
        let marker = first.filter(|first| self.vocab.control().contains(first));
        let mut ends: Vec<TokenId> = self.vocab.end_of_generation().iter().copied().chain(marker).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Returns the tokens with which a caller can end a thought; none if thoughts have no end marker, or the vocabulary
    /// cannot spell it.
    #[cfg(feature = "llama")]
    pub(crate) fn thought_end(&self) -> Vec<TokenId> {
        let is_thinking = !self.format.analysis().dialect.reasoning.end.is_empty();
        if is_thinking { self.closing().unwrap_or_default() } else { Vec::new() }
    }

    /// Returns whether a caller can end a thought.
    #[cfg(feature = "llama")]
    pub(crate) fn can_end_thoughts(&self) -> bool {
        self.closing().is_ok()
    }

    /// The end marker of reasoning in tokens; none where the format has no reasoning.
    fn closing(&self) -> Result<Vec<TokenId>, ConstraintError> {
        let end = &self.format.analysis().dialect.reasoning.end;
        let tokens = self.vocab.tokenize_marker(end).filter(|_| self.vocab.can_tokenize());
        // A token that ends the whole reply ends no reasoning.
        let goes_on = |tokens: &Vec<TokenId>| !tokens.iter().any(|&token| self.vocab.is_end_of_generation(token));
        let tokens = tokens.filter(goes_on).or_else(|| self.pieces(end.as_bytes()));
        tokens.ok_or_else(|| ConstraintError::NoEnd { end: end.clone() })
    }

    /// A marker in tokens without a tokenizer: the longest ones, a control token before text of the same name.
    fn pieces(&self, marker: &[u8]) -> Option<Vec<TokenId>> {
        let vocab = &self.vocab;
        let text = TokenId::all(vocab.len()).filter(|&token| vocab.is_text(token));
        let all = text.chain(vocab.control().iter().copied()).filter(|&token| !vocab.is_end_of_generation(token));
        let by_bytes: HashMap<&[u8], TokenId> = all.filter_map(|token| Some((vocab.piece(token)?, token))).collect();
        let (mut rest, mut found) = (marker, Vec::new());
        while !rest.is_empty() {
            let longest = (1..=rest.len()).rev().find_map(|length| Some((length, *by_bytes.get(&rest[..length])?)));
            let (length, token) = longest?;
            found.push(token);
            rest = &rest[length..];
        }
        Some(found)
    }
}

#[cfg(feature = "llama")]
impl ModelFormat {
    /// Returns the format of a model's chats, from the template in its file; [`CHATML`] and `true` if the file has
    /// none.
    ///
    /// # Errors
    /// A faulty template.
    pub fn of_model<E>(model: &llama_sampler::Model) -> Result<(Self, bool), E>
    where
        E: From<llama_sampler::RuntimeError> + From<chat_format::TemplateError> + From<FormatError>,
    {
        use llama_sampler::RuntimeError;

        let given = match model.chat_template() {
            Ok(template) => Some(template.clone()),
            Err(RuntimeError::NoTemplate { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let (template, is_missing) = template_or_chatml(given)?;
        let vocab = model.vocab();
        Ok((Self::new(ChatFormat::with_control_tokens(template, control_texts(vocab))?, Arc::clone(vocab)), is_missing))
    }
}
