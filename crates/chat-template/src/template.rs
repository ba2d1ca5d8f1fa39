//! A template, and the input of its renderings.

use crate::builtins::functions::FUNCTIONS;
use crate::clock::Clock;
use crate::data::Data;
use crate::error::{Res, TemplateError};
use crate::eval::Eval;
use crate::eval::scope::Scope;
use crate::meter;
use crate::shapes;
use crate::syntax::{self, ast::Block};
use crate::value::{Dict, Key, TracedText, Value};
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A chat template that was parsed, with the texts of its tokens for the beginning and the end of a text.
///
/// It is immutable, cheap to clone, and can be used by several threads at once.
#[derive(Clone)]
pub struct ChatTemplate(Arc<Inner>);

struct Inner {
    text: String,
    bos: String,
    eos: String,
    body: Block,
    /// Its string literals that could be roles.
    words: HashSet<Arc<str>>,
}

/// Roles that every chat API knows.
const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// Options of a rendering.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RenderOptions {
    /// Ends the prompt at the beginning of the assistant's answer.
    pub add_generation_prompt: bool,
    /// Further variables of the template, such as `enable_thinking`.
    pub variables: Vec<(String, Data)>,
    /// The clock that `strftime_now` of the template reads.
    pub clock: Clock,
    /// Tries other shapes of a conversation if the template refuses it.
    pub adapt: bool,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { add_generation_prompt: true, variables: Vec::new(), clock: Clock::system(), adapt: true }
    }
}

impl RenderOptions {
    /// The same options, with or without the beginning of the assistant's answer.
    #[must_use]
    pub fn with_generation_prompt(mut self, add: bool) -> Self {
        self.add_generation_prompt = add;
        self
    }

    /// The same options with one variable more.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<Data>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The same options with another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The same options, with or without attempts at other shapes of the conversation.
    #[must_use]
    pub fn with_adapt(mut self, adapt: bool) -> Self {
        self.adapt = adapt;
        self
    }
}

impl ChatTemplate {
    /// Reads a template, which sees `bos` as `bos_token` and `eos` as `eos_token`.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`] with the line; [`TemplateError::Limit`] for templates of more than a megabyte, or with
    /// more than 240 levels inside each other.
    ///
    /// ```
    /// use chat_template::ChatTemplate;
    ///
    /// let error = ChatTemplate::new("Hello\n{% if %}", "", "").unwrap_err();
    /// assert_eq!(error.line(), 2);
    /// ```
    pub fn new(text: impl Into<String>, bos: impl Into<String>, eos: impl Into<String>) -> Result<Self, TemplateError> {
        let (text, bos, eos) = (text.into(), bos.into(), eos.into());
        let (body, words) = on_own_stack(|| syntax::parse(&text))?;
        Ok(Self(Arc::new(Inner { text, bos, eos, body, words })))
    }

    /// The source of the template.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the text of `bos_token`.
    pub fn bos(&self) -> &str {
        &self.0.bos
    }

    /// Returns the text of `eos_token`.
    pub fn eos(&self) -> &str {
        &self.0.eos
    }

    /// The text of a conversation, as Jinja2 would render it.
    ///
    /// `messages` is a list of dicts, `tools` a list of tool definitions, both as the template expects them. Where the
    /// template refuses them, and [`RenderOptions::adapt`] is set, other shapes of the same conversation are tried, the
    /// fewest changes first: the arguments of tool calls as dicts instead of JSON text, and the other way round; an
    /// empty text for content that is null or missing; content parts as one text, and the other way round; `developer`
    /// as `system`; the system message at the head of the first user message.
    ///
    /// # Errors
    /// The template's error for the conversation as it was given, with the line; a [`TemplateError::Limit`] for more
    /// than six million steps, 32 MB of values and output, or 16 MB of data.
    pub fn render(
        &self,
        messages: &Data,
        tools: Option<&Data>,
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        self.render_traced(messages, tools, options).map(TracedText::into_text)
    }

    /// The same as [`ChatTemplate::render`], with the bytes marked that the template wrote itself.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_traced(
        &self,
        messages: &Data,
        tools: Option<&Data>,
        options: &RenderOptions,
    ) -> Result<TracedText, TemplateError> {
        self.render_on_own_stack(messages, tools, options, false)
    }

    /// The same as [`ChatTemplate::render_traced`], but lists may grow if the sandbox refuses that.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`]; the sandbox's refusal where growing lists did not help.
    pub fn render_growing(
        &self,
        messages: &Data,
        tools: Option<&Data>,
        options: &RenderOptions,
    ) -> Result<TracedText, TemplateError> {
        match self.render_on_own_stack(messages, tools, options, false) {
            Err(refused @ TemplateError::Forbidden { .. }) => {
                self.render_on_own_stack(messages, tools, options, true).map_err(|_| refused)
            }
            done => done,
        }
    }

    fn render_on_own_stack(
        &self,
        messages: &Data,
        tools: Option<&Data>,
        options: &RenderOptions,
        growing: bool,
    ) -> Result<TracedText, TemplateError> {
        on_own_stack(|| {
            if growing {
                meter::let_lists_grow();
            }
            let data = [Some(messages), tools].into_iter().flatten().chain(options.variables.iter().map(|(_, v)| v));
            let mut bytes = 0_usize;
            for data in data {
                bytes = bytes.saturating_add(data.measure(0)?);
            }
            meter::start(bytes);
            let refused = match self.render_once(messages, tools, options) {
                Err(refused) if options.adapt && shapes::may_help(&refused) => refused,
                done => return done,
            };
            for shape in shapes::other_shapes(messages) {
                match self.render_once(&shape, tools, options) {
                    Err(again) if shapes::may_help(&again) => {}
                    Err(_) => break,
                    done => return done,
                }
            }
            Err(refused)
        })
    }

    /// Runs many renderings in one thread, within the steps of one.
    ///
    /// # Errors
    /// [`TemplateError::Thread`] where there is no thread to render in.
    pub fn in_session<T: Send>(&self, run: impl FnOnce(&Session<'_>) -> T + Send) -> Result<T, TemplateError> {
        on_own_stack(|| {
            meter::start(0);
            meter::be_lenient();
            Ok(run(&Session(self)))
        })
    }

    fn render_once(&self, messages: &Data, tools: Option<&Data>, options: &RenderOptions) -> Res<TracedText> {
        meter::before_data();
        let globals = Rc::new(Scope::default());
        for (name, function) in FUNCTIONS {
            globals.set(&name.into(), Value::Function(function))?;
        }
        let tools = tools.map_or(Ok(Value::None), Data::to_value)?;
        let given = [
            ("messages", self.messages(messages)?),
            ("tools", tools),
            ("documents", Value::None),
            ("add_generation_prompt", Value::Bool(options.add_generation_prompt)),
            ("bos_token", Value::own_str(self.bos())?),
            ("eos_token", Value::own_str(self.eos())?),
        ];
        for (name, value) in given {
            globals.set(&name.into(), value)?;
        }
        for (name, value) in &options.variables {
            globals.set(&name.as_str().into(), value.to_value()?)?;
        }
        meter::count_from_here();
        let mut eval = Eval::new(Scope::new_child(globals), &options.clock);
        eval.run(&self.0.body)?;
        Ok(eval.finish())
    }

    /// Messages as the template sees them. They are foreign, except the roles that it knows, because those name its own
    /// tokens.
    fn messages(&self, messages: &Data) -> Res<Value> {
        let Data::List(list) = messages else { return messages.to_value() };
        let entry = |(key, value): &(String, Data)| {
            let value = match value.as_text().filter(|_| key == "role") {
                Some(role) if ROLES.contains(&role) || self.0.words.contains(role) => Value::own_str(role)?,
                _ => value.to_value()?,
            };
            Ok((Key::new(Value::str(&**key)?)?, value))
        };
        let message = |message: &Data| match message {
            Data::Dict(entries) => Dict::new(entries.iter().map(entry).collect::<Res<_>>()?).map(Value::Dict),
            other => other.to_value(),
        };
        Value::list(list.iter().map(message).collect::<Res<_>>()?)
    }
}

/// A template that is rendered many times in one thread, for those who probe it. All renderings share one budget.
pub struct Session<'a>(&'a ChatTemplate);

impl Session<'_> {
    /// Returns whether the template tried to change a list. In a session the change has no effect; elsewhere it is
    /// refused.
    #[allow(clippy::unused_self, reason = "it is told of this session's thread")]
    pub fn tried_change(&self) -> bool {
        meter::tried_change()
    }

    /// The same as [`ChatTemplate::render`], for small data.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`]; the limits are those of the whole session.
    pub fn render(
        &self,
        messages: &Data,
        tools: Option<&Data>,
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        let refused = match self.0.render_once(messages, tools, options) {
            Err(refused) if options.adapt && shapes::may_help(&refused) => refused,
            done => return done.map(TracedText::into_text).map_err(TemplateError::from),
        };
        let others = shapes::other_shapes(messages);
        let taken = others.iter().find_map(|shape| self.0.render_once(shape, tools, options).ok());
        taken.map(TracedText::into_text).ok_or_else(|| TemplateError::from(refused))
    }
}

impl PartialEq for ChatTemplate {
    fn eq(&self, other: &Self) -> bool {
        (self.text(), self.bos(), self.eos()) == (other.text(), other.bos(), other.eos())
    }
}

impl Eq for ChatTemplate {}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.text().chars().take(40).collect();
        formatter.debug_struct("ChatTemplate").field("text", &text).finish_non_exhaustive()
    }
}

/// Runs on a stack deep enough for any template, however much stack the caller's thread has left.
#[cfg(not(target_family = "wasm"))]
fn on_own_stack<T: Send>(run: impl FnOnce() -> Res<T> + Send) -> Result<T, TemplateError> {
    use crate::meter::STACK;
    use std::thread;

    let failed = |reason: String| TemplateError::Thread { reason };
    thread::scope(|scope| {
        let named = thread::Builder::new().name("chat-template".into()).stack_size(STACK);
        // Faults stay in their thread: only the public error leaves it.
        let thread = named.spawn_scoped(scope, || run().map_err(TemplateError::from));
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        thread.join().unwrap_or_else(|_| Err(failed("it stopped by a fault of this library".into())))
    })
}

/// Runs on the caller's stack: WebAssembly has only one thread, and its stack is deep enough for the limits.
#[cfg(target_family = "wasm")]
fn on_own_stack<T: Send>(run: impl FnOnce() -> Res<T> + Send) -> Result<T, TemplateError> {
    meter::afresh(run).map_err(TemplateError::from)
}

/// So that a template can be sent to another thread.
const fn is_shared<T: Send + Sync>() {}
const _: () = is_shared::<ChatTemplate>();
