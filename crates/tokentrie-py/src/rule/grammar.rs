//! Rules that others write: LR(1) grammars, grammars of llama.cpp, modules of WebAssembly.

use crate::convert::by_text::by_text;
use crate::convert::gil::{asked, released};
use crate::errors::{Class, Error, Result, warn};
use crate::limits::{Limits, limits};
use crate::rule::Rule;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use tokentrie::spec::Spec;
use trie_core::{FileError, work};
use trie_rules::{Example, GrammarError, GrammarOptions, Wasm, WasmError};

/// An LR(1) grammar as a rule, written as for yacc.
///
/// `%start` names the rule to begin with, else the first one is. A rule is `name : first | "(" second ")" | ;`, with
/// comments as in C. "text" is a keyword, "/pattern/" a regular expression (syntax of the Rust crate `regex`), and a
/// name in capitals whose alternatives are such texts is a terminal. SKIP is the terminal that may stand between all
/// others: blanks, comments. Terminals are read byte by byte: the longest match counts, then keywords before patterns.
///
/// What is allowed is exact: every allowed text can be completed. Compares by text; can be pickled.
///
/// Args:
///     text: the grammar.
///     lenient: decide conflicts as yacc does (shift first, then the rule that comes first) and pass over what is never
///         used, with a warning each. What is allowed may then lead into a dead end.
///     limits: Limits of what making it may cost; None: the defaults.
///
/// Raises:
///     RuleError: the text is no grammar, or not LR(1); it says line, column and what is wrong. Or it takes more than
///         its limits. Also a ValueError.
///
/// Example:
///     >>> text = 'NUMBER : "/[0-9]+/" ; sum : NUMBER | sum "+" NUMBER ;'
///     >>> sums = tokentrie.Grammar(text)
///     >>> (sums.matches("1+20+3"), sums.matches("1+"))
///     (True, False)
///     >>> tokentrie.Grammar.example("json").matches('{"a": [1, 2]}')
///     True
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Grammar {
    /// str: its text.
    #[pyo3(get)]
    text: String,
    /// bool: whether conflicts were decided.
    #[pyo3(get)]
    lenient: bool,
    core: trie_rules::Grammar,
    limits: work::Limits,
}

const EXAMPLES: [(&str, Example); 4] =
    [("json", Example::Json), ("arithmetic", Example::Arithmetic), ("c", Example::C), ("sql", Example::Sql)];

#[pymethods]
impl Grammar {
    #[new]
    #[pyo3(signature = (text, *, lenient=false, limits=None))]
    fn new(
        py: Python<'_>,
        text: String,
        lenient: bool,
        limits: Option<&Bound<'_, Limits>>,
    ) -> Result<PyClassInitializer<Self>> {
        let limits = self::limits(limits);
        let options = GrammarOptions::default().lenient(lenient).limits(limits);
        let grammar = asked(py, limits, || trie_rules::Grammar::with_options(&text, options))??;
        for warning in grammar.warnings() {
            warn(py, &format!("grammar, {warning}"))?;
        }
        let made = Self { text, lenient, core: grammar.clone(), limits };
        Ok(PyClassInitializer::from(Rule::of(grammar)).add_subclass(made))
    }

    /// Limits: what making it may cost.
    #[getter]
    fn limits(&self) -> Limits {
        self.limits.into()
    }

    /// A grammar that comes with the package.
    ///
    /// Args:
    ///     name: "json" (RFC 8259), "arithmetic", "c" (declarations, statements and expressions of C) or "sql"
    ///         (SELECT).
    ///
    /// Returns:
    ///     Grammar.
    ///
    /// Raises:
    ///     OptionError: there is none of that name.
    ///
    /// Example:
    ///     >>> tokentrie.Grammar.example("sql").matches("SELECT name FROM users WHERE id = 1")
    ///     True
    #[staticmethod]
    fn example(py: Python<'_>, name: &str) -> Result<Py<Self>> {
        let Some((_, example)) = EXAMPLES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = EXAMPLES.iter().map(|(known, _)| format!("{known:?}")).collect();
            return Err(Class::Option.error(format!("name is {name:?}: it must be one of {}", known.join(", "))));
        };
        Ok(Py::new(py, Self::new(py, example.text().to_owned(), false, None)?)?)
    }

    /// list[str]: its terminals as they were written.
    #[getter]
    fn terminals(&self) -> Vec<String> {
        self.core.terminals().map(str::to_owned).collect()
    }

    /// int: states of its parser.
    #[getter]
    fn parser_states(&self) -> usize {
        self.core.parser_states()
    }

    /// int: states of the automaton that reads its terminals.
    #[getter]
    fn lexer_states(&self) -> usize {
        self.core.lexer_states()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let key = |grammar: &Self| (grammar.text.clone(), grammar.lenient);
        other.cast::<Self>().is_ok_and(|other| key(self) == key(other.get()))
    }

    fn __hash__(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.text.hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        let (parser, lexer) = (self.core.parser_states(), self.core.lexer_states());
        format!("<tokentrie.Grammar: {} terminals, {parser} parser and {lexer} lexer states>", self.terminals().len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, bool, Limits))> {
        let Self { text, lenient, limits, .. } = slf.get();
        Ok((slf.get_type().getattr("_restore")?, (text.clone(), *lenient, (*limits).into())))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(py: Python<'_>, text: String, lenient: bool, limits: &Bound<'_, Limits>) -> Result<Py<Self>> {
        Ok(Py::new(py, Self::new(py, text, lenient, Some(limits))?)?)
    }
}

impl Grammar {
    pub(crate) fn spec(&self) -> Spec {
        Spec::Grammar { text: self.text.as_str().into(), lenient: self.lenient, limits: self.limits.into() }
    }
}

/// A grammar in GBNF as a rule: the language of llama.cpp's `--grammar` and of llama-server's `grammar`.
///
/// All texts follow the rule `root`. Syntax: grammars/README.md of github.com/ggml-org/llama.cpp. What is allowed is
/// what llama.cpp allows: texts are read by characters, without terminals, and a grammar may be ambiguous. Rules that
/// nothing uses are passed over. Refused are tokens, `<think>` or `<[7]>`; rules that begin with themselves or never
/// end; two rules of one name; an empty class, `[]`; a part that is repeated more than 100,000 times by one number.
/// Names of control tokens are no text, though llama.cpp takes them for some.
///
/// What is allowed is exact: every allowed text can be completed. Compares by text; can be pickled.
///
/// Args:
///     text: the grammar.
///     limits: Limits of what making it may cost; None: the defaults.
///
/// Raises:
///     RuleError: the text is no grammar, or has what is refused; it says line, column and what is wrong. Or it takes
///         more than its limits. Also a ValueError.
///
/// Example:
///     >>> lists = tokentrie.Gbnf('''
///     ... root ::= "[" (item ("," item)*)? "]"
///     ... item ::= [0-9]+ | root
///     ... ''')
///     >>> (lists.matches("[1,[],[23]]"), lists.matches("[1,"))
///     (True, False)
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Gbnf {
    /// str: its text.
    #[pyo3(get)]
    text: String,
    states: usize,
    limits: work::Limits,
}

#[pymethods]
impl Gbnf {
    #[new]
    #[pyo3(signature = (text, *, limits=None))]
    fn new(py: Python<'_>, text: String, limits: Option<&Bound<'_, Limits>>) -> Result<PyClassInitializer<Self>> {
        let limits = self::limits(limits);
        let grammar = asked(py, limits, || trie_rules::Gbnf::with_limits(&text, limits))??;
        let made = Self { text, states: grammar.states(), limits };
        Ok(PyClassInitializer::from(Rule::of(grammar)).add_subclass(made))
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Gbnf: {} lines, {} states>", self.text.lines().count(), self.states)
    }
}

by_text!(Gbnf);

impl Gbnf {
    pub(crate) fn spec(&self) -> Spec {
        Spec::Gbnf { text: self.text.as_str().into(), limits: self.limits.into() }
    }
}

impl From<GrammarError> for Error {
    fn from(error: GrammarError) -> Self {
        Class::Rule.error(format!("grammar, {error}"))
    }
}

/// A rule of your own as a module of WebAssembly, written in Rust, C, AssemblyScript or whatever compiles to it.
///
/// The module imports nothing and exports `start() -> i64`, `step(state: i64, byte: i32) -> i64`, which is negative
/// where no text begins so, and `is_end(state: i64) -> i32`; perhaps `allowed(state: i64, word: i32) -> i64`, 64 bits
/// of the bytes for which `step` need be asked. Everything it knows of a text is in the state. docs/own-rules.md has
/// all of it and an example.
///
/// It runs inside limits, so a stranger's may be taken: a module that loops, traps or wants memory ends the call with a
/// RuleError, and `check()` finds one that remembers more than its state. Compares by its bytes; can be pickled, also
/// to where there is no such file.
///
/// Args:
///     module: bytes of a module, or the path of its file.
///     limits: Limits of what making and asking it may cost; None: the defaults. The module has at most a 256th of
///         `bytes` (1 MiB), its memory a 64th (4 MiB). A call takes at most a 400th of `steps` in fuel, about one for
///         each instruction (250,000), all calls for one mask a quarter (25 million).
///
/// Raises:
///     RuleError: it is no module, or not one of a rule, or takes more than its limits. Also a ValueError.
///     OSError: what the operating system says of a file.
///
/// Example:
///     >>> letters = bytes.fromhex(  # texts of the letter a
///     ...     "0061736d010000000110036000017e60027e7f017e60017e017f030403000102071903057374617274000004"
///     ...     "7374657000010669735f656e6400020a1903040042000b0d004200427f200141e100461b0b040041010b"
///     ... )
///     >>> tokentrie.WasmRule(letters).matches("aaa")
///     True
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct WasmRule {
    module: Arc<[u8]>,
    limits: work::Limits,
}

#[pymethods]
impl WasmRule {
    #[new]
    #[pyo3(signature = (module, *, limits=None))]
    fn new(module: &Bound<'_, PyAny>, limits: Option<&Bound<'_, Limits>>) -> Result<PyClassInitializer<Self>> {
        let (py, limits) = (module.py(), self::limits(limits));
        let module: Arc<[u8]> = if let Ok(bytes) = module.cast::<PyBytes>() {
            bytes.as_bytes().into()
        } else {
            let path: PathBuf = module.extract()?;
            let read = released(py, || std::fs::read(&path));
            read.map_err(|source| FileError::Io { path, action: "read", source })?.into()
        };
        let rule = asked(py, limits, || Wasm::with_limits(&module, limits))??;
        Ok(PyClassInitializer::from(Rule::of(rule)).add_subclass(Self { module, limits }))
    }

    /// bytes: the module.
    #[getter]
    fn module<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.module)
    }

    /// Limits: what making and asking it may cost.
    #[getter]
    fn limits(&self) -> Limits {
        self.limits.into()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.module == other.get().module)
    }

    fn __hash__(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.module.hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.WasmRule: {} bytes>", self.module.len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let own = slf.get();
        Ok((slf.get_type().getattr("_restore")?, (own.module(slf.py()), own.limits.into())))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(module: &Bound<'_, PyBytes>, limits: &Bound<'_, Limits>) -> Result<Py<Self>> {
        Ok(Py::new(module.py(), Self::new(module.as_any(), Some(limits))?)?)
    }
}

/// A module and its limits.
type Parts<'py> = (Bound<'py, PyBytes>, Limits);

impl WasmRule {
    pub(crate) fn spec(&self) -> Spec {
        Spec::Wasm { module: Arc::clone(&self.module), limits: self.limits.into() }
    }
}

impl From<WasmError> for Error {
    fn from(error: WasmError) -> Self {
        Class::Rule.error(format!("wasm: {error}"))
    }
}
