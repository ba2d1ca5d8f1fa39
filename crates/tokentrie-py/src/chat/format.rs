//! The format of a model's chats: a template that renders, reads and constrains.

use crate::chat::constraint::ChatConstraint;
use crate::chat::message::{message_result, prompt_result};
use crate::chat::messages::{messages, nearest};
use crate::chat::parser::{ChatParser, ReplyPart};
use crate::chat::response_template::ResponseTemplate;
use crate::chat::template::ChatTemplate;
use crate::chat::tools::Tools;
use crate::convert::gil::{apart, asked, locked, released};
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result, warn};
use crate::exit::module;
use crate::vocab::Vocab;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokentrie::chat::{
    CallSpelling, ConstraintOptions, FormatError, Message, ParserOptions, ReasoningFormat, ToolChoice, Whitespace,
};
use tokentrie::chat::{
    ConfigError, ConstraintError, ModelFormat, NO_TEMPLATE, PartError, ReplyParser, ToolsIn, control_texts,
    template_or_chatml,
};
use tokentrie::chat::{ContinuedPart, PromptOptions};
use tokentrie::constraint::ToolUse;
use trie_core::AnyConstraint;
use trie_core::work::Limits;

/// Limit on the warnings that are remembered, to report each once.
const MOST_TOLD: usize = 10_000;

/// The format of a model's chats, worked out from its chat template by comparing what it renders.
///
/// It renders conversations, reads replies while they come, and constrains them: a call that begins becomes a right
/// one. No template is known by its name; what is odd about one stands in `analysis.warnings`. Cannot change; may be
/// used from several threads. What is worked out for a list of tools is kept. Compares by template; can be pickled
/// where its vocabulary can.
///
/// Args:
///     template: the Jinja text, or a ChatTemplate. None beside a `response_template`: the format then parses and
///         constrains replies, and renders nothing.
///     vocab: the Vocab for constraints that are given none.
///     bos, eos: what the template finds as `bos_token` and `eos_token`; not beside a ChatTemplate.
///     tools_in: where the model is told of tools, as for `with_tools_in`.
///     response_template: a ResponseTemplate, or a dict or JSON of one: how the model's author says that replies are
///         read. What the template shows of calls and reasoning counts; what it does not show is taken from there.
///         `analysis.differences` lists the template's replies that the two read differently.
///
/// Raises:
///     TemplateError: it is not Jinja, or cannot even render a message of a user; or the response template is none,
///         or, without a template, says what a format cannot express.
///     OptionError: bos or eos stand beside a ChatTemplate, or `tools_in` is another word.
///
/// Example:
///     >>> format = tokentrie.ChatFormat(
///     ...     "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}"
///     ...     "<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}"
///     ...     "{% if add_generation_prompt %}<|assistant|>{% endif %}"
///     ... )
///     >>> message = format.parse('Ding.<call>{"name": "ring", "arguments": {"times": 2}}</call>')
///     >>> (message.content, message.tool_calls[0].name, message.tool_calls[0].arguments)
///     ('Ding.', 'ring', '{"times": 2}')
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct ChatFormat {
    core: tokentrie::chat::ChatFormat,
    vocab: Option<Py<Vocab>>,
    analysis: PyOnceLock<Py<PyAny>>,
    /// Warnings that were given, each with a hash of the tools that it is of.
    told: Mutex<HashSet<(u64, String)>>,
    /// Format over the vocabulary that was used last.
    over_vocab: Mutex<Option<Arc<ModelFormat>>>,
}

impl ChatFormat {
    pub(crate) fn of(core: tokentrie::chat::ChatFormat, vocab: Option<Py<Vocab>>) -> Self {
        Self { core, vocab, analysis: PyOnceLock::new(), told: Mutex::default(), over_vocab: Mutex::default() }
    }

    /// Reads the format of a model file: its template, or else ChatML, with a warning.
    ///
    /// # Errors
    /// As `__new__`.
    pub(crate) fn of_file(
        py: Python<'_>,
        template: Option<tokentrie::chat::ChatTemplate>,
        vocab: Arc<trie_text::Vocab>,
        said: Option<&tokentrie::chat::ResponseTemplate>,
    ) -> Result<Self> {
        let (template, is_missing) = template_or_chatml(template)?;
        if is_missing {
            warn(py, NO_TEMPLATE)?;
        }
        let control = control_texts(&vocab);
        let core = asked(py, Limits::NONE, || {
            let core = tokentrie::chat::ChatFormat::with_control_tokens(template, control)?;
            Ok::<_, tokentrie::chat::TemplateError>(match said {
                Some(said) => core.with_response_template(said),
                None => core,
            })
        })??;
        Ok(Self::of(core, Some(Py::new(py, Vocab::new(vocab))?)))
    }

    pub(crate) fn core(&self) -> &tokentrie::chat::ChatFormat {
        &self.core
    }

    pub(crate) fn vocab<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Vocab>> {
        self.vocab.as_ref().map(|vocab| vocab.bind(py).clone())
    }

    /// A constraint over a vocabulary; what was made before is kept.
    ///
    /// # Errors
    /// As `constraint`.
    pub(crate) fn over(
        &self,
        py: Python<'_>,
        options: &ConstraintOptions,
        budget: Option<u32>,
        vocab: &Arc<trie_text::Vocab>,
    ) -> Result<AnyConstraint> {
        let model = self.over_vocab(py, vocab)?;
        let options = options.clone();
        Ok(apart(py, move || model.constraint(&options, budget))??)
    }

    /// A whole reply as a message.
    ///
    /// # Errors
    /// As `parse`.
    pub(crate) fn read(&self, text: &Bound<'_, PyAny>, options: ParserOptions, partial: bool) -> Result<Message> {
        let (py, part) = (text.py(), ReplyPart::of("text", text)?);
        let mut parser = self.reading(py, options)?;
        asked(py, Limits::NONE, || {
            part.push(&mut parser)?;
            Ok(parser.finish(partial).1)
        })?
    }

    /// A parser of a reply in parts.
    ///
    /// # Errors
    /// As `parser`.
    fn reading(&self, py: Python<'_>, options: ParserOptions) -> Result<ReplyParser> {
        let over = self.vocab.as_ref().map(|vocab| self.over_vocab(py, vocab.get().core())).transpose()?;
        asked(py, Limits::NONE, || Ok(ReplyParser::new(&self.core, over, options)?))?
    }

    /// Returns the format over a vocabulary, cached.
    pub(crate) fn over_vocab(&self, py: Python<'_>, vocab: &Arc<trie_text::Vocab>) -> Result<Arc<ModelFormat>> {
        let mut kept = locked(py, &self.over_vocab)?;
        if let Some(known) = kept.as_ref().filter(|known| Arc::ptr_eq(known.vocab(), vocab)) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(ModelFormat::new(self.core.clone(), Arc::clone(vocab)));
        *kept = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Forgets what was made for tools, and what was warned of.
    pub(crate) fn forget(&self, py: Python<'_>) -> Result<()> {
        self.core.forget();
        if let Some(known) = locked(py, &self.over_vocab)?.as_ref() {
            known.forget();
        }
        locked(py, &self.told)?.clear();
        Ok(())
    }

    /// Warns of what in the tools' schemas is not held, once.
    pub(crate) fn warn_of(&self, py: Python<'_>, options: &ConstraintOptions) -> Result<Arc<[String]>> {
        let warnings = released(py, || self.core.warnings(options))?;
        self.tell(py, &options.tools, &warnings)?;
        Ok(warnings)
    }

    /// Gives warnings that were not given before of the same tools.
    pub(crate) fn tell(&self, py: Python<'_>, tools: &tokentrie::chat::Tools, warnings: &[String]) -> Result<()> {
        if warnings.is_empty() {
            return Ok(());
        }
        let mut hasher = DefaultHasher::new();
        tools.iter().for_each(|tool| (&tool.name, tool.parameters.to_string()).hash(&mut hasher));
        let of = hasher.finish();
        for warning in warnings {
            let new = {
                let mut told = locked(py, &self.told)?;
                told.len() < MOST_TOLD && told.insert((of, warning.clone()))
            };
            if new {
                warn(py, warning)?;
            }
        }
        Ok(())
    }
}

/// Returns the tokens that may spell names.
///
/// # Errors
/// `OptionError` for a word that is none of the two.
pub(crate) fn spelling(word: &str) -> Result<CallSpelling> {
    match word {
        "canonical" => Ok(CallSpelling::Canonical),
        "any" => Ok(CallSpelling::Any),
        _ => {
            let message = format!("invalid spelling: expected \"canonical\" or \"any\", got {word:?}");
            Err(Class::Option.error(message))
        }
    }
}

/// Returns the white space in calls.
///
/// # Errors
/// `OptionError` for a word that is none of the two.
pub(crate) fn whitespace(word: &str) -> Result<Whitespace> {
    match word {
        "compact" => Ok(Whitespace::Compact),
        "flexible" => Ok(Whitespace::Flexible),
        _ => {
            let message = format!("invalid whitespace: expected \"compact\" or \"flexible\", got {word:?}");
            Err(Class::Option.error(message))
        }
    }
}

/// Parses `tool_choice`.
///
/// # Errors
/// `OptionError` for a tool that there is not, `TypeError` for anything that is neither a str nor a dict.
pub(crate) fn tool_choice(given: Option<&Bound<'_, PyAny>>, names: Option<&[&str]>) -> Result<ToolChoice> {
    const SHOWN: usize = 8;
    let Some(given) = given else { return Ok(ToolChoice::Auto) };
    let value = if given.is_instance_of::<PyDict>() {
        crate::chat::messages::dict("tool_choice", given)?
    } else if let Ok(word) = given.cast::<PyString>() {
        word.to_str()?.into()
    } else {
        let message = format!(
            "tool_choice must be \"auto\", \"none\", \"required\", the name of a tool or a dict of chat APIs, not {} \
             of type {}",
            shown(given),
            type_name(given)
        );
        return Err(PyTypeError::new_err(message).into());
    };
    let checked = |name: &str| {
        if names.is_none_or(|names| names.contains(&name)) {
            return Ok(name.to_owned());
        }
        let names = names.unwrap_or_default();
        let known: Vec<&str> = ["auto", "none", "required"].into_iter().chain(names.iter().copied()).collect();
        let near = nearest(given.py(), name, &known)?;
        let dots = if names.len() > SHOWN { ", …" } else { "" };
        let listed: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
        Err(Class::Option
            .error(format!("unknown tool {name:?} in tool_choice{near}; the tools are [{}{dots}]", listed.join(", "))))
    };
    Ok(match ToolUse::from_value(&value)? {
        ToolUse::Auto => ToolChoice::Auto,
        ToolUse::None => ToolChoice::None,
        ToolUse::Required => ToolChoice::Required,
        ToolUse::Tool(name) => ToolChoice::Tool(checked(&name)?),
        ToolUse::Allowed { names, required } => {
            let names = names.iter().map(|name| checked(name)).collect::<Result<_>>()?;
            ToolChoice::Allowed { names, required }
        }
    })
}

/// # Errors
/// `OptionError` for another word.
fn reasoning_format(word: &str) -> Result<ReasoningFormat> {
    match word {
        "auto" | "deepseek" => Ok(ReasoningFormat::Auto),
        "none" => Ok(ReasoningFormat::None),
        other => Err(Class::Option
            .error(format!("reasoning_format is {other:?}: it must be \"auto\", \"deepseek\" or \"none\""))),
    }
}

/// Parses the place of the tools in the prompt; `None` is what the template needs.
///
/// # Errors
/// `OptionError` for another word.
pub(crate) fn tools_in(word: &str) -> Result<Option<ToolsIn>> {
    tokentrie::chat::tools_in(word).map_err(|reason| Class::Option.error(reason))
}

/// Parses the part of the last message to continue.
///
/// # Errors
/// `OptionError` for another word.
pub(crate) fn continued(word: Option<&str>) -> Result<ContinuedPart> {
    match word {
        None => Ok(ContinuedPart::Nothing),
        Some("auto") => Ok(ContinuedPart::Auto),
        Some("reasoning") => Ok(ContinuedPart::Reasoning),
        Some("content") => Ok(ContinuedPart::Content),
        Some(other) => Err(Class::Option.error(format!(
            "continue_final_message is {other:?}: it must be None, \"auto\", \"reasoning\" or \"content\""
        ))),
    }
}

/// Reads the options of a parser from keywords.
fn parser_options(
    tools: Option<&Bound<'_, PyAny>>,
    generation_prompt: Option<String>,
    choice: Option<&Bound<'_, PyAny>>,
    reasoning: &str,
    json_content: bool,
) -> Result<ParserOptions> {
    let tools = tools.map(Tools::of).transpose()?;
    let mut options = ParserOptions::default();
    options.tools = tools.as_ref().map(|tools| tools.get().core().clone());
    let names = tools.as_ref().map(|tools| tools.get().names());
    options.tool_choice = tool_choice(choice, names.as_deref())?;
    options.reasoning = reasoning_format(reasoning)?;
    options.prompt = generation_prompt;
    options.json_content = json_content;
    Ok(options)
}

#[cfg(feature = "llama")]
fn read_gguf(path: PathBuf) -> Result<(trie_text::Vocab, Option<tokentrie::chat::ChatTemplate>)> {
    Ok(llama_sampler::chat_from_gguf(path)?)
}

#[cfg(not(feature = "llama"))]
fn read_gguf(_: PathBuf) -> Result<(trie_text::Vocab, Option<tokentrie::chat::ChatTemplate>)> {
    Err(crate::model::missing::refused("llama.cpp reads a GGUF file"))
}

#[pymethods]
impl ChatFormat {
    #[new]
    #[pyo3(signature = (template, vocab=None, bos="", eos="", tools_in="template", response_template=None))]
    fn new(
        py: Python<'_>,
        template: &Bound<'_, PyAny>,
        vocab: Option<Py<Vocab>>,
        bos: &str,
        eos: &str,
        tools_in: &str,
        response_template: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let place = self::tools_in(tools_in)?;
        let said = response_template.map(ResponseTemplate::of).transpose()?;
        if let (true, Some(said)) = (template.is_none(), &said) {
            let core = tokentrie::chat::ChatFormat::from_response_template(said)?;
            return Ok(Self::of(core, vocab));
        }
        let template = if let Ok(template) = template.cast::<ChatTemplate>() {
            if !bos.is_empty() || !eos.is_empty() {
                return Err(Class::Option.error("bos and eos are the ChatTemplate's own: give them to it"));
            }
            template.get().0.clone()
        } else if let Ok(text) = template.cast::<PyString>() {
            let text = text.to_str()?;
            released(py, || tokentrie::chat::ChatTemplate::new(text, bos, eos))?
        } else {
            let message = format!(
                "template must be a str or a ChatTemplate, or None beside a response_template, not {}",
                type_name(template)
            );
            return Err(PyTypeError::new_err(message).into());
        };
        let control = vocab.as_ref().map(|vocab| control_texts(vocab.get().core())).unwrap_or_default();
        let core = asked(py, Limits::NONE, || {
            let core = tokentrie::chat::ChatFormat::with_control_tokens(template, control)?;
            Ok::<_, tokentrie::chat::TemplateError>(match &said {
                Some(said) => core.with_response_template(said),
                None => core,
            })
        })??;
        let place = place.unwrap_or_else(|| core.analysis().place_of_tools());
        Ok(Self::of(if place == ToolsIn::Template { core } else { core.with_tools_in(place) }, vocab))
    }

    /// The format of a GGUF file's chats, with its vocabulary; no weights are loaded, and the file needs none.
    ///
    /// Of a file without a template ChatML, with a warning. Cost: a tenth of a second for big vocabularies.
    ///
    /// Args:
    ///     path: the file.
    ///
    /// Returns:
    ///     ChatFormat.
    ///
    /// Raises:
    ///     ModelError: the file is missing, truncated or no GGUF.
    ///     TemplateError: its template is faulty.
    ///
    /// Example:
    ///     >>> path = tokentrie.Model().path  # the tiny model inside the package
    ///     >>> tokentrie.ChatFormat.from_gguf(path).analysis.calls.function
    ///     'json-object'
    #[staticmethod]
    fn from_gguf(py: Python<'_>, path: PathBuf) -> Result<Self> {
        let (vocab, template) = released(py, || read_gguf(path))?;
        Self::of_file(py, template, Arc::new(vocab), None)
    }

    /// The format of a model's folder, or of its `tokenizer_config.json`, as transformers keeps them.
    ///
    /// It is of the template, with its tokens for the beginning and the end of a text, and of the response template if
    /// there is one. The template is the file `chat_template.jinja` beside it, or the key `chat_template`.
    ///
    /// Args:
    ///     path: the folder, or the file.
    ///     vocab: as for the constructor.
    ///
    /// Returns:
    ///     ChatFormat.
    ///
    /// Raises:
    ///     TemplateError: there is neither template nor response template, or one of them is faulty.
    ///     OSError: the file cannot be read.
    ///
    /// Example:
    ///     >>> import json, pathlib, tempfile
    ///     >>> folder = pathlib.Path(tempfile.mkdtemp())
    ///     >>> fields = {"thinking": {"open": "<t>", "close": "</t>"}, "content": {}}
    ///     >>> said = {"start_anchor": "<|bot|>", "fields": fields}
    ///     >>> text = json.dumps({"response_template": said})
    ///     >>> _ = (folder / "tokenizer_config.json").write_text(text)
    ///     >>> tokentrie.ChatFormat.from_tokenizer_config(folder).parse("<t>A bell.</t>Ding.").reasoning
    ///     'A bell.'
    #[staticmethod]
    #[pyo3(signature = (path, vocab=None))]
    fn from_tokenizer_config(py: Python<'_>, path: PathBuf, vocab: Option<Py<Vocab>>) -> Result<Self> {
        let control = vocab.as_ref().map(|vocab| control_texts(vocab.get().core())).unwrap_or_default();
        let core = asked(py, Limits::NONE, || tokentrie::chat::format_from_config(&path, control))?;
        Ok(Self::of(
            core.map_err(|error| match error {
                ConfigError::File { error, .. } => Error::from(PyErr::from(error)),
                ConfigError::Template(error) => error.into(),
                ConfigError::Response(error) => error.into(),
                _ => Class::Template.error(error.to_string()),
            })?,
            vocab,
        ))
    }

    /// The response template of the format: the one that was given, or one that is written from what was found out.
    ///
    /// Other programs read replies by it: `tokenizer.response_template = format.response_template().source` for
    /// transformers. It is checked: it reads the replies that the template renders as `parse` does.
    ///
    /// Returns:
    ///     ResponseTemplate.
    ///
    /// Raises:
    ///     TemplateError: a response template cannot say what this format is; it tells which part.
    ///
    /// Example:
    ///     >>> written = tokentrie.Model().chat_format.response_template()
    ///     >>> reply = '<tool_call>\n{"name": "ring", "arguments": {"times": 2}}\n</tool_call>'
    ///     >>> written.parse(reply)["tool_calls"]
    ///     [{'type': 'function', 'function': {'name': 'ring', 'arguments': {'times': 2}}}]
    fn response_template(&self, py: Python<'_>) -> Result<ResponseTemplate> {
        let written = asked(py, Limits::NONE, || self.core.response_template())?;
        Ok(ResponseTemplate(written?))
    }

    /// ChatTemplate: the template of it.
    #[getter]
    fn template(&self) -> ChatTemplate {
        ChatTemplate(self.core.template().clone())
    }

    /// Vocab | None: the vocabulary of constraints that are given none.
    #[getter(vocab)]
    fn py_vocab<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Vocab>> {
        self.vocab(py)
    }

    /// str: where the model is told of tools: "template", "system" or "messages".
    #[getter(tools_in)]
    fn py_tools_in(&self) -> &'static str {
        self.core.analysis().tools_in().name()
    }

    /// The same with tools told elsewhere, for templates that show none or write no calls.
    ///
    /// Args:
    ///     tools_in: "system": the system message describes them and how one is called, and results of tools are
    ///         messages of the user where the template has no calls; "messages": the messages describe them already;
    ///         "template": where the template shows them; "auto": "template", or "system" if it cannot.
    ///
    /// Returns:
    ///     ChatFormat. Calls are JSON in <tool_call> tags where the template has none.
    ///
    /// Raises:
    ///     OptionError: it is another word.
    ///
    /// Example:
    ///     >>> plain = tokentrie.ChatFormat("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
    ///     >>> told = plain.with_tools_in("system")
    ///     >>> ring = {"name": "ring", "parameters": {"type": "object", "properties": {}}}
    ///     >>> prompt = told.render([{"role": "user", "content": "Ring!"}], [ring])
    ///     >>> prompt.startswith("[system] # Tools") and prompt.endswith("[user] Ring!\n")
    ///     True
    ///     >>> told.parse('<tool_call>\n{"name": "ring", "arguments": {}}\n</tool_call>').tool_calls[0].name
    ///     'ring'
    #[pyo3(signature = (tools_in))]
    fn with_tools_in(&self, py: Python<'_>, tools_in: &str) -> Result<Self> {
        let place = self::tools_in(tools_in)?;
        Ok(Self::of(
            released(py, || self.core.with_tools_in(place.unwrap_or_else(|| self.core.analysis().place_of_tools()))),
            self.vocab.as_ref().map(|vocab| vocab.clone_ref(py)),
        ))
    }

    /// ChatAnalysis: what was found out: markers of reasoning and content, how calls are written, what the template
    /// can do, warnings.
    #[getter]
    fn analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = || {
            let text = self.core.analysis().to_json().to_string();
            let read = module(py, "tokentrie.chat_analysis")?.getattr("ChatAnalysis")?;
            Ok::<_, PyErr>(read.call_method1("from_json", (text,))?.unbind())
        };
        Ok(self.analysis.get_or_try_init(py, made)?.bind(py).clone())
    }

    /// The text of a conversation, its messages brought into the shape that the template takes.
    ///
    /// Args:
    ///     messages: a list of dict with "role" and "content", and of Message, such as replies of the model.
    ///     tools: a list of tools, or Tools.
    ///     add_generation_prompt: end where the assistant's answer begins.
    ///     enable_thinking: what the template finds under this name.
    ///     variables: what it finds under other names.
    ///
    /// Returns:
    ///     str.
    ///
    /// Raises:
    ///     TemplateError: the template refuses the messages.
    ///     OptionError: a message has an unknown role or shape; it says which.
    ///     TypeError: something is not a list of messages or tools.
    ///
    /// Example:
    ///     >>> format = tokentrie.ChatFormat("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
    ///     >>> format.render([{"role": "user", "content": "Ring!"}, tokentrie.Message("Ding.")]).splitlines()
    ///     ['[user] Ring!', '[assistant] Ding.']
    #[pyo3(signature = (messages, tools=None, *, add_generation_prompt=true, enable_thinking=true, **variables))]
    fn render(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        add_generation_prompt: bool,
        enable_thinking: bool,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> Result<String> {
        let messages = self::messages(messages, self.core.template().text())?;
        let tools = tools.map(Tools::of).transpose()?;
        let options = crate::chat::template::options(add_generation_prompt, None, variables)?;
        let options = options.with_variable("enable_thinking", enable_thinking);
        let tools =
            tools.as_ref().map(|tools| &**tools.get().definitions()).filter(|tools| tools != &&serde_json::json!([]));
        Ok(released(py, || self.core.render(&messages, tools, &options))?)
    }

    /// The prompt of a conversation, with the part of it that begins the reply's turn.
    ///
    /// Args:
    ///     messages, tools: as for `render`.
    ///     enable_thinking: whether the model may think.
    ///     continue_final_message: None answers the last message. "auto" goes on with it, which is the assistant's:
    ///         with its content if it has some, else with its reasoning; "content" and "reasoning" say with which.
    ///     variables: what the template finds under other names.
    ///
    /// Returns:
    ///     ChatPrompt.
    ///
    /// Raises:
    ///     TokenTrieError: as for `render`.
    ///
    /// Example:
    ///     >>> format = tokentrie.Model().chat_format
    ///     >>> begun = [{"role": "user", "content": "Ring!"}, {"role": "assistant", "content": "Ding"}]
    ///     >>> format.prompt(begun, continue_final_message="auto").generation_prompt
    ///     '<|im_start|>assistant\nDing'
    #[pyo3(signature = (messages, tools=None, *, enable_thinking=true, continue_final_message=None, **variables))]
    fn prompt(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        enable_thinking: bool,
        continue_final_message: Option<&str>,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> Result<Py<PyAny>> {
        let messages = self::messages(messages, self.core.template().text())?;
        let tools = tools.map(Tools::of).transpose()?;
        let options = prompt_options(enable_thinking, continued(continue_final_message)?, variables)?;
        let tools =
            tools.as_ref().map(|tools| &**tools.get().definitions()).filter(|tools| tools != &&serde_json::json!([]));
        let (text, begins) = released(py, || self.core.traced_prompt(&messages, tools, &options))?;
        Ok(prompt_result(py, text, begins)?.unbind())
    }

    /// The message that a whole reply is. What fits nothing is content: never an error.
    ///
    /// Args:
    ///     text: str, bytes, or the token ids of the reply, where the format has a vocabulary: up to the first that
    ///         ends generation. Where a marker of reasoning is a control token, text that spells it is text then, as
    ///         it is for `constraint`.
    ///     tools: the tools that may be called, which type arguments without types of their own. None takes calls of
    ///         any name, an empty list none.
    ///     generation_prompt: what of the prompt begins the reply's turn; None is what the template writes there.
    ///     tool_choice: "auto", "none", "required" or the name of a tool.
    ///     parallel_tool_calls: for symmetry with `constraint`; all calls that there are, are read.
    ///     reasoning_format: "auto" or "deepseek" puts reasoning into `message.reasoning`; "none" leaves it in the
    ///         content with its markers.
    ///     partial: the reply was cut off: what may have become a marker is left out.
    ///     json_content: the content is JSON: a code fence around it is left out.
    ///
    /// Returns:
    ///     Message.
    ///
    /// Raises:
    ///     OptionError: an argument has no such value, a tool is none, or token ids are given and the format has no
    ///         vocabulary.
    ///     VocabularyError: the vocabulary has no such token.
    ///     TypeError: the text is neither str nor bytes nor token ids.
    ///
    /// Example:
    ///     >>> format = tokentrie.Model().chat_format
    ///     >>> message = format.parse('<tool_call>\n{"name": "ring", "arguments": {"times": 2}}\n</tool_call>')
    ///     >>> message.tool_calls
    ///     [ToolCall('', 'ring', '{"times": 2}')]
    #[pyo3(signature = (
        text, tools=None, *, generation_prompt=None, tool_choice=None, parallel_tool_calls=false,
        reasoning_format="auto", partial=false, json_content=false
    ), text_signature = "($self, text, tools=None, *, generation_prompt=None, tool_choice=\"auto\", \
        parallel_tool_calls=False, reasoning_format=\"auto\", partial=False, json_content=False)")]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn parse(
        &self,
        text: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        generation_prompt: Option<String>,
        tool_choice: Option<&Bound<'_, PyAny>>,
        parallel_tool_calls: bool,
        reasoning_format: &str,
        partial: bool,
        json_content: bool,
    ) -> Result<Py<PyAny>> {
        let _ = parallel_tool_calls;
        let options = parser_options(tools, generation_prompt, tool_choice, reasoning_format, json_content)?;
        Ok(message_result(text.py(), self.read(text, options, partial)?)?.unbind())
    }

    /// A parser of a reply that comes in parts.
    ///
    /// Args:
    ///     tools, generation_prompt, tool_choice, parallel_tool_calls: as for `parse`.
    ///     reasoning_format, json_content: as for `parse`.
    ///
    /// Returns:
    ///     ChatParser. Its parts are all text or, where the format has a vocabulary, all token ids.
    ///
    /// Raises:
    ///     OptionError: an argument has no such value, or a tool is none.
    ///
    /// Example:
    ///     >>> parser = tokentrie.Model().chat_format.parser()
    ///     >>> [event.text for part in ("Ding", " dong") for event in parser.push(part)]
    ///     ['Ding', ' dong']
    ///     >>> parser.finish().content
    ///     'Ding dong'
    #[pyo3(signature = (
        tools=None, *, generation_prompt=None, tool_choice=None, parallel_tool_calls=false,
        reasoning_format="auto", json_content=false
    ), text_signature = "($self, tools=None, *, generation_prompt=None, tool_choice=\"auto\", \
        parallel_tool_calls=False, reasoning_format=\"auto\", json_content=False)")]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn parser(
        &self,
        py: Python<'_>,
        tools: Option<&Bound<'_, PyAny>>,
        generation_prompt: Option<String>,
        tool_choice: Option<&Bound<'_, PyAny>>,
        parallel_tool_calls: bool,
        reasoning_format: &str,
        json_content: bool,
    ) -> Result<ChatParser> {
        let _ = parallel_tool_calls;
        let options = parser_options(tools, generation_prompt, tool_choice, reasoning_format, json_content)?;
        Ok(ChatParser::of(self.reading(py, options)?))
    }

    /// A constraint on a reply: free text, in which a call that begins becomes a right one.
    ///
    /// Its name is one of the tools', its arguments follow the tool's schema. It stands wherever a constraint does:
    /// `Model.generate`, `Sampler`, `Batch`, `ThinkGate`, processors of logits; not in a slot of a Form. What is made
    /// for a Tools object is kept: asking again costs microseconds.
    ///
    /// Args:
    ///     tools: a list of tools, or Tools.
    ///     vocab: the Vocab that it is made for. None takes that of the format; without one it is made where it is
    ///         used.
    ///     tool_choice: "auto"; "none": no call; "required": a call at once, after reasoning if there is any; or the
    ///         name of the tool to call.
    ///     parallel_tool_calls: whether there may be several calls.
    ///     generation_prompt: what of the prompt begins the reply's turn (`ChatPrompt.generation_prompt`); None is
    ///         what the template writes there with thinking on.
    ///     thinking_budget: the most tokens of reasoning; then its end marker is forced.
    ///     spelling: "canonical": names of tools, named keys of arguments and values of enums come in the tokenizer's
    ///         own tokens, as a model has learned them; "any": in any that have the bytes. Keys of an object that takes
    ///         others than those it names come in any tokens, and so does all where a vocabulary cannot tokenise.
    ///     whitespace: "compact": one space after a comma or a colon, or none, as `json.dumps` writes it with any of
    ///         its usual separators, and around the arguments the white space of the template, one space or line break;
    ///         "flexible": up to eight characters in a row, or a line break and two spaces a level.
    ///
    /// Returns:
    ///     ChatConstraint.
    ///
    /// Raises:
    ///     OptionError: there is no such tool, two have one name, a name cannot be written in this format, a call is
    ///         required where the template has none, or the spelling or the white space is another.
    ///     RuleError: nothing satisfies a tool's schema.
    ///     VocabularyError: the vocabulary cannot spell it.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> tools = [{"name": "ring", "parameters": {"properties": {"loud": {"type": "boolean"}}}}]
    ///     >>> required = model.chat_format.constraint(tools, tool_choice="required")
    ///     >>> sampler = tokentrie.Sampler(model.vocab, required)
    ///     >>> sampler.accept(model.vocab.tokenize('<tool_call>\n{"name": "', parse_special=True))
    ///     >>> model.vocab.detokenize(sampler.forced()).startswith('ring')
    ///     True
    #[pyo3(signature = (
        tools, vocab=None, tool_choice=None, parallel_tool_calls=false, generation_prompt=None, *, thinking_budget=None,
        spelling="canonical", whitespace="compact"
    ), text_signature = "($self, tools, vocab=None, tool_choice=\"auto\", parallel_tool_calls=False, \
        generation_prompt=None, *, thinking_budget=None, spelling=\"canonical\", \
        whitespace=\"compact\")")]
    #[expect(clippy::too_many_arguments, reason = "they are what there is")]
    fn constraint(
        slf: &Bound<'_, Self>,
        tools: Option<&Bound<'_, PyAny>>,
        vocab: Option<Bound<'_, Vocab>>,
        tool_choice: Option<&Bound<'_, PyAny>>,
        parallel_tool_calls: bool,
        generation_prompt: Option<String>,
        thinking_budget: Option<i64>,
        spelling: &str,
        whitespace: &str,
    ) -> Result<ChatConstraint> {
        let tools = Tools::of_optional(slf.py(), tools)?;
        let choice = self::tool_choice(tool_choice, Some(&tools.get().names()))?;
        let budget =
            thinking_budget.map(|budget| crate::convert::words::unsigned("thinking_budget", budget)).transpose()?;
        let vocab = vocab.or_else(|| slf.get().vocab(slf.py()));
        let mut options = ConstraintOptions::default();
        (options.choice, options.parallel, options.prompt) = (choice, parallel_tool_calls, generation_prompt);
        (options.spelling, options.whitespace) = (self::spelling(spelling)?, self::whitespace(whitespace)?);
        ChatConstraint::new(slf, tools, vocab, budget, options)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = other.get();
            let said = |format: &Self| format.core.given_response_template().map(|said| said.source().clone());
            self.core.template() == other.core.template()
                && self.py_tools_in() == other.py_tools_in()
                && said(self) == said(other)
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hash = std::hash::DefaultHasher::new();
        self.core.template().text().hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        let names = self.core.analysis().names();
        let calls = if self.core.analysis().dialect.calls.is_some() {
            format!("calls as {} with arguments as {}", names.function, names.arguments)
        } else {
            "no calls".to_owned()
        };
        format!("<tokentrie.ChatFormat: reasoning {}, {calls}>", names.reasoning)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, format) = (slf.py(), slf.get());
        let said = format.core.given_response_template().cloned();
        // Without a template of its own it is made from the response template alone.
        let template = (!format.core.renders_nothing()).then(|| format.template());
        let said = said.map(ResponseTemplate);
        let fields = (template, format.vocab(py), "", "", format.py_tools_in(), said).into_pyobject(py)?;
        Ok((slf.get_type().into_any(), fields))
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }
}

/// Reads the options of a prompt from keywords.
pub(crate) fn prompt_options(
    enable_thinking: bool,
    continued: ContinuedPart,
    variables: Option<&Bound<'_, PyDict>>,
) -> Result<PromptOptions> {
    let mut options = PromptOptions::default().with_thinking(enable_thinking).continuing(continued);
    options.render = crate::chat::template::options(true, None, variables)?;
    Ok(options)
}

impl From<PartError> for Error {
    fn from(error: PartError) -> Self {
        match error {
            PartError::Mixed { .. } | PartError::NoVocabulary => Class::Option.error(error.to_string()),
            PartError::Outside { .. } => Class::Vocabulary.error(error.to_string()),
            PartError::Format(error) => error.into(),
            PartError::Over(_) => Class::Base.error(error.to_string()),
        }
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Template(error) => error.into(),
            FormatError::Vocabulary(error) => error.into(),
            FormatError::Schema { .. } => Class::Rule.error(error.to_string()),
            _ => Class::Option.error(error.to_string()),
        }
    }
}

impl From<ConstraintError> for Error {
    fn from(error: ConstraintError) -> Self {
        match error {
            ConstraintError::Format(error) => error.into(),
            ConstraintError::NoEnd { .. } => Class::Vocabulary.error(format!("thinking_budget: {error}")),
        }
    }
}
