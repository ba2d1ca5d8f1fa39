//! The chat format of a template: renders prompts, parses replies, constrains replies.

use crate::analysis::text::{common_prefix, length_of_last_marker};
use crate::analysis::{Analysis, PromptOptions, ToolsIn};
use crate::check::RenderingCache;
use crate::constraint::{BeforeContent, CallSpelling, ControlTokens, ReplyConstraint, Whitespace};
use crate::custom::INPUT;
use crate::dialect::{ContentMode, Dialect};
use crate::error::FormatError;
use crate::lock::lock;
use crate::machine::{ByToken, LastThought, Machine, Plan, State, ToolChoice};
use crate::reply::{Parser, ParserOptions};
use crate::response_template::ResponseTemplate;
use crate::tools::Tools;
use crate::values::{Gaps, Limits};
use chat_template::{ChatTemplate, Data, RenderOptions, TemplateError, TracedText};
use lru::LruCache;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use trie_core::work::{self, Work, apart};
use trie_rules::{ByRuleError, Spelling};
use trie_schema::{SchemaCache, SchemaWarning, Values};

/// Capacity of the cache of machines, and of that of constraints.
const KEPT: NonZeroUsize = NonZeroUsize::new(32).unwrap();

/// The format of a model's chats, found out from its template. Cheap to clone: clones share the cached machines and
/// constraints.
#[derive(Debug, Clone)]
pub struct ChatFormat(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    template: ChatTemplate,
    analysis: Analysis,
    /// The response template that was given beside the template.
    said: Option<ResponseTemplate>,
    /// Compiled schemas of tools, which lists of tools share.
    schemas: SchemaCache,
    machines: Mutex<LruCache<Key, CachedMachine>>,
    /// Constraints with their tools. The tools stay alive, so that no other list can get the address that is in the
    /// key.
    constraints: Mutex<LruCache<ConstraintKey, (Tools, ReplyConstraint)>>,
}

/// Key of a constraint: its machine, its prompt, its vocabulary, whether it ends at the beginning of content, the
/// spelling of names, and whether a tokenizer determines it.
type ConstraintKey = (Key, String, usize, bool, CallSpelling, bool);
/// Key of a machine: tools are compared by identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    tools: Option<usize>,
    choice: ToolChoice,
    parallel: bool,
    strict: bool,
    by_token: ByToken,
    whitespace: Whitespace,
}

#[derive(Debug, Clone)]
pub(crate) struct CachedMachine {
    /// The tools of the key, kept alive so that no other list can get their address.
    _tools: Option<Tools>,
    pub(crate) machine: Arc<Machine>,
    warnings: Arc<[String]>,
}

/// Options of a constraint on a reply.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConstraintOptions {
    /// The tools that may be called.
    pub tools: Tools,
    /// Permission or requirement to call tools.
    pub choice: ToolChoice,
    /// Allows more than one call.
    pub parallel: bool,
    /// The prompt from the beginning of the assistant's turn; `None` takes the text that the template writes there.
    pub prompt: Option<String>,
    /// Tokens that may spell tool names, named keys and enum values.
    pub spelling: CallSpelling,
    /// White space in calls.
    pub whitespace: Whitespace,
}

/// Limit on the bytes that a template writes around one short message. Templates in use write some thousand.
const MOST_AROUND: usize = 1 << 17;

impl ChatFormat {
    /// Analyses a template on a thread of its own. The time limit is ten seconds, unless the
    /// calling thread already limits its [work](trie_core::work).
    ///
    /// # Errors
    /// The template cannot even render a user message, writes too much, or takes too long.
    ///
    /// ```
    /// use chat_format::{ChatFormat, ChatTemplate, ParserOptions};
    ///
    /// let template = ChatTemplate::new(
    ///     "{% for m in messages %}<|{{ m.role }}|>\
    ///      {% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}\
    ///      {{ m.content }}{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}\
    ///      <|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    ///     "",
    ///     "",
    /// )?;
    /// let format = ChatFormat::new(template)?;
    /// let mut parser = format.parser(&ParserOptions::default())?;
    /// parser.push(b"<think>A bell.</think>Ding.<call>{\"name\": \"ring\", \"argu");
    /// parser.push(b"ments\": {\"times\": 2}}</call>");
    /// let (_, message) = parser.finish(false);
    /// assert_eq!((&message.reasoning[..], &message.content[..]), ("A bell.", "Ding."));
    /// assert_eq!(message.tool_calls[0].name, "ring");
    /// assert_eq!(message.tool_calls[0].arguments, "{\"times\": 2}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(template: ChatTemplate) -> Result<Self, TemplateError> {
        Self::with_control_tokens(template, Vec::new())
    }

    /// The same for a vocabulary with control tokens of these texts. If a template shows the model tools but no call,
    /// these tokens may tell how a call begins.
    ///
    /// # Errors
    /// As [`ChatFormat::new`].
    pub fn with_control_tokens(template: ChatTemplate, control: Vec<String>) -> Result<Self, TemplateError> {
        const SECONDS: f64 = 10.0;
        let too_much = |reason: String| TemplateError::Limit { line: 0, reason };
        let message = Data::from(&json!([{"role": "user", "content": "Hi"}]));
        let written = template.render(&message, None, &RenderOptions::default()).map_or(0, |text| text.len());
        if written > MOST_AROUND {
            let reason =
                format!("around one short message it writes {written} bytes; a format has at most {MOST_AROUND}");
            return Err(too_much(reason));
        }
        // What is compared has no step that could be asked.
        Work::run_bounded(work::Limits::default().seconds(SECONDS), || apart(move || Self::analyse(template, &control)))
            .unwrap_or_else(|over| Err(too_much(format!("finding out how its replies are written: {over}"))))
    }

    fn analyse(template: ChatTemplate, control: &[String]) -> Result<Self, TemplateError> {
        let seen = RenderingCache::default();
        let first =
            Self::with_checked_analysis(template.clone(), Analysis::with_control_tokens(&template, control)?, &seen);
        if first.1 == usize::MAX {
            return Ok(first.0);
        }
        // What does not hold may be something else: the round trip decides.
        let mut best = first;
        for analysis in Analysis::other_hypotheses(&template, control)? {
            let other = Self::with_checked_analysis(template.clone(), analysis, &seen);
            if other.1 > best.1 {
                best = other;
            }
            if best.1 == usize::MAX {
                break;
            }
        }
        Ok(best.0)
    }

    /// Returns the format with this analysis, and the number of checks that it passed.
    fn with_checked_analysis(template: ChatTemplate, analysis: Analysis, seen: &RenderingCache) -> (Self, usize) {
        let mut format = Self::from_analysis(template, analysis, None);
        let found = crate::check::check(&format, seen);
        let passed = if found.degraded.is_none() { usize::MAX } else { found.passed };
        // Nobody else has it yet; the machines of the check are of no use to anybody.
        if let Some(inner) = Arc::get_mut(&mut format.0) {
            inner.analysis.degraded = found.degraded;
            inner.analysis.warnings.extend(found.warnings);
            lock(&inner.machines).clear();
            inner.schemas.clear();
        }
        (format, passed)
    }

    /// Returns the chat template of the format.
    pub fn template(&self) -> &ChatTemplate {
        &self.0.template
    }

    /// Clears the caches of schemas, machines and constraints. Parsers and constraints in use keep theirs.
    pub fn forget(&self) {
        self.0.schemas.clear();
        lock(&self.0.machines).clear();
        lock(&self.0.constraints).clear();
    }

    /// Returns the analysis of the template.
    pub fn analysis(&self) -> &Analysis {
        &self.0.analysis
    }

    /// The same format with the tools described in this place of the prompt. Its caches begin empty.
    #[must_use]
    pub fn with_tools_in(&self, place: ToolsIn) -> Self {
        let (template, analysis) = (self.0.template.clone(), self.0.analysis.telling(&self.0.template, place));
        Self::from_analysis(template, analysis, self.0.said.clone())
    }

    /// The format with the dialect of these that reads most of its template's replies, the first of equals.
    pub(crate) fn with_best_dialect(
        &self,
        dialects: impl Iterator<Item = Dialect>,
        differences: Vec<String>,
        said: &ResponseTemplate,
    ) -> Self {
        let seen = RenderingCache::default();
        let mut best: Option<(Self, usize)> = None;
        for dialect in dialects {
            let mut analysis = self.0.analysis.with_dialect(dialect);
            analysis.degraded = None;
            let other = Self::with_checked_analysis(self.0.template.clone(), analysis, &seen);
            if best.as_ref().is_none_or(|(_, passed)| other.1 > *passed) {
                best = Some(other);
            }
        }
        let mut analysis = best.map_or_else(|| self.0.analysis.clone(), |(format, _)| format.0.analysis.clone());
        let mut known: Vec<String> = Vec::new();
        analysis.warnings.retain(|warning| !known.contains(warning) && (known.push(warning.clone()), true).1);
        analysis.differences = differences;
        Self::from_analysis(self.0.template.clone(), analysis, Some(said.clone()))
    }

    /// Returns the response template that was given beside the template, or instead of it.
    pub fn given_response_template(&self) -> Option<&ResponseTemplate> {
        self.0.said.as_ref()
    }

    pub(crate) fn from_analysis(template: ChatTemplate, analysis: Analysis, said: Option<ResponseTemplate>) -> Self {
        let (machines, constraints) = (Mutex::new(LruCache::new(KEPT)), Mutex::new(LruCache::new(KEPT)));
        let schemas = SchemaCache::default();
        Self(Arc::new(Inner { template, analysis, said, schemas, machines, constraints }))
    }

    fn dialect(&self) -> &Dialect {
        &self.0.analysis.dialect
    }

    /// The prompt of a conversation, and the byte offset at which the reply's turn begins.
    ///
    /// # Errors
    /// The template refuses these messages, or fails on them.
    pub fn prompt(
        &self,
        messages: &[Value],
        tools: Option<&Value>,
        options: &PromptOptions,
    ) -> Result<(String, usize), TemplateError> {
        self.0.analysis.prompt(&self.0.template, messages, tools, options)
    }

    /// The same as [`ChatFormat::prompt`], with the bytes marked that may name control tokens; see
    /// [`Analysis::traced_prompt`].
    ///
    /// # Errors
    /// As [`ChatFormat::prompt`].
    pub fn traced_prompt(
        &self,
        messages: &[Value],
        tools: Option<&Value>,
        options: &PromptOptions,
    ) -> Result<(TracedText, usize), TemplateError> {
        self.0.analysis.traced_prompt(&self.0.template, messages, tools, options)
    }

    /// The rendered text of a conversation, with its messages in the shape that the template accepts.
    ///
    /// # Errors
    /// The template refuses these messages, or fails on them.
    pub fn render(
        &self,
        messages: &[Value],
        tools: Option<&Value>,
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        self.traced_render(messages, tools, options).map(TracedText::into_text)
    }

    /// The same as [`ChatFormat::render`], with the bytes marked that may name control tokens; see
    /// [`Analysis::traced_prompt`].
    ///
    /// # Errors
    /// As [`ChatFormat::render`].
    pub fn traced_render(
        &self,
        messages: &[Value],
        tools: Option<&Value>,
        options: &RenderOptions,
    ) -> Result<TracedText, TemplateError> {
        self.0.analysis.traced_render(&self.0.template, messages, tools, options)
    }

    /// Returns the length of a prompt's end that precedes every reply: it is not part of the reply.
    pub(crate) fn prelude_length(&self, prompt: &str) -> usize {
        // Never inside of a marker: its first bytes would be no part of it.
        let common = |other: &str| common_prefix(prompt, other).len();
        common(&self.0.analysis.prompt_thinking).min(common(&self.0.analysis.prompt_not_thinking))
    }

    /// A parser for one reply.
    ///
    /// # Errors
    /// No value satisfies the schema of a tool.
    pub fn parser(&self, options: &ParserOptions) -> Result<Parser, FormatError> {
        let by_token = self.by_token(&options.control);
        let key = Key { by_token, ..Key::new(options.tools.as_ref(), &options.tool_choice, true, false) };
        let made = self.machine_by(options.tools.as_ref(), key)?;
        let prompt = options.prompt.as_deref().unwrap_or(&self.0.analysis.prompt_thinking);
        let known = self.prelude_length(prompt);
        Ok(Parser::after_prompt(made.machine, options, prompt, (known, length_of_last_marker(&prompt[..known]))))
    }

    /// A constraint on a reply, over the tokens of a vocabulary. `spelling` gives a text token by its bytes, and a
    /// control token by [`ControlTokens::BYTE`] and its text.
    ///
    /// # Errors
    /// A name that the format cannot write, a schema that no value satisfies, or a required call in a format without
    /// calls.
    pub fn constraint(
        &self,
        options: &ConstraintOptions,
        spelling: &Spelling,
        control: &ControlTokens,
    ) -> Result<ReplyConstraint, FormatError> {
        self.cached_constraint(options, None, spelling, control)
    }

    /// A constraint on a reply, or on the text before its content. It is taken from the cache if it is there.
    fn cached_constraint(
        &self,
        options: &ConstraintOptions,
        before: Option<BeforeContent>,
        spelling: &Spelling,
        control: &ControlTokens,
    ) -> Result<ReplyConstraint, FormatError> {
        let (tools, by_token) = (Some(&options.tools), self.by_token(control));
        let key = Key::new(tools, &options.choice, options.parallel, true);
        let key = Key { by_token, whitespace: options.whitespace, ..key };
        let made = self.machine_by(tools, key.clone())?;
        let prompt = options.prompt.as_deref().unwrap_or(&self.0.analysis.prompt_thinking);
        let vocab = Arc::as_ptr(spelling.tokens()) as usize;
        let key = (key, prompt.to_owned(), vocab, before.is_some(), options.spelling, spelling.has_tokenizer());
        if let Some((_, kept)) = lock(&self.0.constraints).get(&key) {
            return Ok(kept.clone());
        }
        let start = state_after_prompt(&made.machine, prompt, self.prelude_length(prompt));
        let (tokens, control) = (spelling.clone(), control.clone());
        let made = ReplyConstraint::new(made.machine, start, before, tokens, control, options.spelling)?;
        lock(&self.0.constraints).put(key, (options.tools.clone(), made.clone()));
        Ok(made)
    }

    /// Returns the constraint on the text before the content of a reply without calls: reasoning and markers. `None` if
    /// no such text is allowed, so that content begins at once. A value of the constraint ends wherever content may
    /// begin. `prompt` is that of [`ConstraintOptions::prompt`].
    ///
    /// # Errors
    /// The vocabulary cannot spell such text.
    pub fn before_content(
        &self,
        prompt: Option<&str>,
        spelling: &Spelling,
        control: &ControlTokens,
    ) -> Result<Option<ReplyConstraint>, FormatError> {
        let marked = self.dialect().content.mode == ContentMode::Wrapped;
        let mut options = ConstraintOptions { choice: ToolChoice::None, ..ConstraintOptions::default() };
        options.prompt = prompt.map(str::to_owned);
        match self.cached_constraint(&options, Some(BeforeContent { marked }), spelling, control) {
            Ok(before) => Ok(Some(before)),
            Err(FormatError::Vocabulary(ByRuleError::Unspellable { .. } | ByRuleError::Nothing { .. }))
                if self.begins_with_content(prompt, marked)? =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether content may begin at once after a prompt.
    fn begins_with_content(&self, prompt: Option<&str>, marked: bool) -> Result<bool, FormatError> {
        let machine = self.machine(Some(&Tools::default()), &ToolChoice::None, false, true)?.machine;
        let prompt = prompt.unwrap_or(&self.0.analysis.prompt_thinking);
        let start = state_after_prompt(&machine, prompt, self.prelude_length(prompt));
        Ok(BeforeContent { marked }.may_begin(&machine, &start))
    }

    /// Returns the parts of the tools' schemas that are not enforced, in words.
    ///
    /// # Errors
    /// As [`ChatFormat::constraint`].
    pub fn warnings(&self, options: &ConstraintOptions) -> Result<Arc<[String]>, FormatError> {
        Ok(self.machine(Some(&options.tools), &options.choice, options.parallel, true)?.warnings)
    }

    pub(crate) fn machine(
        &self,
        tools: Option<&Tools>,
        choice: &ToolChoice,
        parallel: bool,
        strict: bool,
    ) -> Result<CachedMachine, FormatError> {
        self.machine_by(tools, Key::new(tools, choice, parallel, strict))
    }

    /// The markers of reasoning that begin with a control token.
    fn by_token(&self, control: &ControlTokens) -> ByToken {
        let reasoning = &self.dialect().reasoning;
        ByToken { starts: control.begin(&reasoning.start), ends: control.begin(&reasoning.end) }
    }

    fn machine_by(&self, tools: Option<&Tools>, key: Key) -> Result<CachedMachine, FormatError> {
        let Key { choice, parallel, strict, by_token, whitespace, .. } = &key;
        let (parallel, strict, by_token) = (*parallel, *strict, *by_token);
        if let Some(kept) = lock(&self.0.machines).get(&key) {
            return Ok(kept.clone());
        }
        if strict {
            self.can_call(tools, choice)?;
        }
        let limits = self.dialect().calls.as_ref().filter(|_| strict).map_or_else(Limits::default, Limits::of);
        let (mut arguments, mut warnings) = (Vec::new(), Vec::new());
        // A list of tools has so much together, whatever else the call may do.
        let values = Work::new(work::Limits::default()).run(|| {
            let refused = |tool: &crate::tools::Tool, error| FormatError::Schema { tool: tool.name.clone(), error };
            let mut values = Values::sharing(limits.writable(), &self.0.schemas);
            for tool in tools.into_iter().flat_map(Tools::iter) {
                if let Some(grammar) = tool.input.as_ref().and_then(|input| input.grammar.as_ref()) {
                    let id = match values.add_text(INPUT, &grammar.name(), &grammar.texts) {
                        Ok(id) => id,
                        Err(_) if !strict => Values::ANY,
                        Err(error) => return Err(refused(tool, error)),
                    };
                    arguments.push(id);
                    continue;
                }
                // Who only reads takes what there is.
                let schema = if strict { tool.enforced_schema() } else { Cow::Borrowed(&tool.parameters) };
                let added = if strict && tool.strict { values.add_strict(&schema) } else { values.add(&schema) };
                let (id, found) = match added {
                    Ok(added) => added,
                    // Who only reads can take what nothing satisfies.
                    Err(_) if !strict => (Values::ANY, Vec::new()),
                    Err(error) => return Err(refused(tool, error)),
                };
                arguments.push(id);
                warnings.extend(found.iter().map(|warning| warning_text(&tool.name, warning)));
            }
            Ok(values)
        })?;
        // What was given up on request is not kept.
        work::look(0, 0).map_err(FormatError::Over)?;
        let values = Arc::new(values);
        let gaps = match whitespace {
            Whitespace::Flexible => Gaps::Flexible,
            Whitespace::Compact if self.dialect().calls.as_ref().is_some_and(|calls| calls.lines) => Gaps::Lines,
            Whitespace::Compact => Gaps::Compact,
        };
        let plan = Plan { dialect: self.dialect(), tools, values, arguments, choice, parallel, strict, by_token, gaps };
        let machine = Arc::new(plan.compile());
        if strict && let Some((tool, text)) = machine.unwritable(tools) {
            return Err(FormatError::Name { tool, text });
        }
        if strict && !tools.is_none_or(Tools::is_empty) {
            // The one that will read the replies, unless no call may come.
            let choice = if *choice == ToolChoice::None { &ToolChoice::Auto } else { choice };
            let reader = self.machine(tools, choice, true, false)?.machine;
            if let Some((tool, text)) = machine.misread(&reader, tools) {
                return Err(FormatError::Misread { tool, text });
            }
        }
        let made = CachedMachine { _tools: tools.cloned(), machine, warnings: warnings.into() };
        lock(&self.0.machines).put(key, made.clone());
        Ok(made)
    }

    /// Checks that calls are possible if they are required.
    fn can_call(&self, tools: Option<&Tools>, choice: &ToolChoice) -> Result<(), FormatError> {
        let unknown = |name: &String| tools.is_none_or(|tools| tools.position(name).is_none());
        let missing = match choice {
            ToolChoice::Tool(name) => Some(name).filter(|name| unknown(name)),
            ToolChoice::Allowed { names, .. } => names.iter().find(|name| unknown(name)),
            _ => None,
        };
        let reason = match missing {
            None if !choice.is_required() => return Ok(()),
            _ if tools.is_none_or(Tools::is_empty) => "there are no tools".to_owned(),
            _ if self.dialect().calls.is_none() => return Err(FormatError::Unrendered),
            None => return Ok(()),
            Some(name) => {
                let some: Vec<&str> =
                    tools.into_iter().flat_map(Tools::iter).map(|tool| &tool.name[..]).take(8).collect();
                format!("there is no tool {name:?} among {some:?}")
            }
        };
        Err(FormatError::NoCalls { reason })
    }
}

impl Key {
    /// Nothing is told by control tokens, and white space is the usual one.
    fn new(tools: Option<&Tools>, choice: &ToolChoice, parallel: bool, strict: bool) -> Self {
        let (choice, by_token, whitespace) = (choice.clone(), ByToken::default(), Whitespace::default());
        Self { tools: tools.map(Tools::address), choice, parallel, strict, by_token, whitespace }
    }
}

/// Returns the state of a reply after a prompt.
pub(crate) fn state_after_prompt(machine: &Machine, prompt: &str, known: usize) -> State {
    let mut state = State::start();
    state.in_prompt(true);
    let mut thought = LastThought::default();
    let marker = length_of_last_marker(&prompt[..known]);
    for (at, byte) in prompt.bytes().enumerate() {
        if at == known {
            machine.after_prelude(&mut state, marker);
        }
        let mut next = state.clone();
        // What a strict machine does not take in a prompt is not its own to refuse.
        if machine.step(&mut next, byte, at < known, &mut thought).is_ok() {
            state = next;
        }
    }
    if known >= prompt.len() {
        machine.after_prelude(&mut state, marker);
    }
    machine.begin(&mut state, thought.is_over);
    state
}

fn warning_text(tool: &str, warning: &SchemaWarning) -> String {
    let SchemaWarning { at, keyword, reason, .. } = warning;
    format!("tool {tool:?}, schema at {at:?}: {keyword:?} is not held: {reason}")
}
