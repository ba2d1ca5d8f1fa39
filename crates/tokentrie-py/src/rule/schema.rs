//! JSON Schemas and Lark grammars as rules.

use crate::convert::by_text::by_text;
use crate::convert::gil::asked;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Error, Result, invalid, warn};
use crate::exit::{called, module};
use crate::limits::{Limits, limits};
use crate::rule::Rule;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};
use pyo3::{PyTraverseError, PyVisit};
use std::hash::{DefaultHasher, Hash, Hasher};
use tokentrie::spec::{Blanks, FEW_BLANKS, SchemaSpec, Spec};
use trie_core::work;
use trie_schema::{GuidedRule, LarkError, SchemaError, SchemaOptions, Whitespace};

/// A JSON Schema as a rule: the text is a JSON document that is valid under it.
///
/// `Generated.value` and the values of a form are the document itself, as `json.loads` gives it; of a type they are
/// objects of that type. Every text is valid, but not every valid document can be written:
/// properties come in the order in which the schema names them. The library llguidance decides; any tokenisation is
/// legal. In a form a document stands between tokens: end the text before it where a token may end.
///
/// As JSON Schema says, an object may have properties that it does not name, unless "additionalProperties" is false. A
/// class that ignores what it does not know gets its own fields and no others. Compares by content; can be pickled
/// where its class can.
///
/// Args:
///     schema: dict, bool, or JSON as str or bytes; or a type, such as `list[int]`, an Enum, a pydantic model or
///         TypeAdapter, a dataclass, a TypedDict or a compiled pattern. pydantic converts types if it is installed.
///         Without it there are str, int, float, bool, None, Any, list, tuple, dict with keys of str, Literal, Enum,
///         datetime.date, dataclasses, TypedDicts, and unions of these.
///     whitespace: blanks between the parts of a document. None takes a space, or a line break with up to 40 blanks;
///         True any number, so a model may write more and more; False none; a str those that this regular
///         expression matches.
///     unicode_escapes: whether any character in a string may be written as \\uXXXX, not only those that must be.
///     lenient: leave out keywords that are not supported, with a warning, instead of refusing them. Then documents may
///         come that the schema does not allow; `unheld` says what was left out.
///     limits: Limits of what making it may cost; None: the defaults.
///
/// Raises:
///     RuleError: the schema is no JSON (with line and column) or no schema, has keywords that are not supported, is
///         too large or allows nothing; it names the place as a JSON pointer. Also a ValueError.
///     TypeError: it is something else, or a type that cannot be converted.
///
/// Example:
///     >>> person = tokentrie.JsonSchema({
///     ...     "type": "object",
///     ...     "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"enum": [1, 2, 3]}},
///     ...     "required": ["name", "age"],
///     ...     "additionalProperties": False,
///     ... })
///     >>> (person.matches('{"name": "Ann", "age": 3}'), person.matches('{"name": "Ann"}'))
///     (True, False)
///     >>> out = tokentrie.Model().generate("A person: ", person)
///     >>> out.value["age"] in (1, 2, 3)
///     True
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct JsonSchema {
    /// The schema in JSON.
    text: String,
    /// The class or adapter that it came from, which reads documents.
    given: Option<Py<PyAny>>,
    whitespace: Whitespace,
    /// bool: whether any character may be written as an escape.
    #[pyo3(get)]
    unicode_escapes: bool,
    /// bool: whether keywords that are not supported were left out.
    #[pyo3(get)]
    lenient: bool,
    unheld: Vec<(String, String)>,
    /// Those of them that are hints of its type.
    hints: Vec<(String, String)>,
    limits: work::Limits,
}

/// What `whitespace` says.
fn whitespace(given: Option<&Bound<'_, PyAny>>) -> Result<Whitespace> {
    let Some(given) = given else { return Ok(Whitespace::Pattern(FEW_BLANKS.to_owned())) };
    if let Ok(flag) = given.cast::<PyBool>() {
        return Ok(if flag.is_true() { Whitespace::Any } else { Whitespace::None });
    }
    if let Ok(pattern) = given.cast::<PyString>() {
        return Ok(Whitespace::Pattern(pattern.to_str()?.to_owned()));
    }
    let message = format!(
        "whitespace must be None, a bool or the str of a regular expression, not {} of type {}",
        shown(given),
        type_name(given)
    );
    Err(PyTypeError::new_err(message).into())
}

/// A function of the part that is written in Python.
fn in_python<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    module(py, "tokentrie.schemas")?.getattr(name)
}

impl JsonSchema {
    /// Without its class.
    pub(crate) fn spec(&self) -> Spec {
        let schema = serde_json::from_str::<serde_json::Value>(&self.text).map(|schema| schema.to_string());
        Spec::JsonSchema(SchemaSpec {
            schema: schema.unwrap_or_else(|_| self.text.clone()).into(),
            whitespace: match &self.whitespace {
                Whitespace::Any => Blanks::Any,
                Whitespace::None => Blanks::None,
                Whitespace::Pattern(pattern) if pattern == FEW_BLANKS => Blanks::Few,
                Whitespace::Pattern(pattern) => Blanks::Pattern(pattern.as_str().into()),
            },
            unicode_escapes: self.unicode_escapes,
            lenient: self.lenient,
            limits: self.limits.into(),
        })
    }

    fn made(
        py: Python<'_>,
        given: Option<Py<PyAny>>,
        text: String,
        options: SchemaOptions,
        limits: work::Limits,
        hints: Vec<(String, String)>,
    ) -> Result<Made> {
        let SchemaOptions { ref whitespace, unicode_escapes, lenient, .. } = options;
        let whitespace = whitespace.clone();
        let made = asked(py, limits, || trie_schema::JsonSchema::new(&text, options))?;
        let schema = made.map_err(|error| match error.reason(&text) {
            Some(reason) => Class::Rule.error(format!("{error}: {reason}")),
            None => error.into(),
        })?;
        for warning in schema.warnings() {
            warn(py, &format!("schema: {warning}"))?;
        }
        // As Python writes it, so that schemas compare by what they say.
        let text = called(&in_python(py, "normal")?, &(text,).into_pyobject(py)?, None)?.extract()?;
        for (at, hint) in &hints {
            let at = if at.is_empty() { String::new() } else { format!("at {at}: ") };
            warn(py, &format!("schema: {at}{hint} is not held"))?;
        }
        let unheld =
            schema.unheld().iter().map(|one| (one.at.clone(), one.keyword.clone())).chain(hints.clone()).collect();
        let made = Self { text, given, whitespace, unicode_escapes, lenient, unheld, hints, limits };
        Ok(PyClassInitializer::from(Rule::of(GuidedRule::from(&schema))).add_subclass(made))
    }

    fn options(whitespace: Whitespace, unicode_escapes: bool, lenient: bool) -> SchemaOptions {
        let mut options = SchemaOptions::default();
        (options.whitespace, options.unicode_escapes, options.lenient) = (whitespace, unicode_escapes, lenient);
        options
    }
}

type Made = PyClassInitializer<JsonSchema>;

#[pymethods]
impl JsonSchema {
    #[new]
    #[pyo3(
        signature = (schema, *, whitespace=None, unicode_escapes=true, lenient=false, limits=None),
        text_signature = "(schema, *, whitespace=None, unicode_escapes=True, lenient=False, limits=None)"
    )]
    fn new(
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        whitespace: Option<&Bound<'_, PyAny>>,
        unicode_escapes: bool,
        lenient: bool,
        limits: Option<&Bound<'_, Limits>>,
    ) -> Result<Made> {
        let options = Self::options(self::whitespace(whitespace)?, unicode_escapes, lenient);
        let read = called(&in_python(py, "read")?, &(schema,).into_pyobject(py)?, None)?;
        let (text, given, hints) = read.extract()?;
        Self::made(py, given, text, options, self::limits(limits), hints)
    }

    /// dict | bool: the schema, as it was read: of a class the one that was made for it.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        module(py, "json")?.call_method1("loads", (&self.text,))
    }

    /// list[tuple[str, str]]: what is not held: the JSON pointer of a schema ("" is the whole), and the keyword,
    /// with `lenient`, or the hint of a type that JSON Schema has no word for. Empty where documents are valid under
    /// all of it.
    #[getter]
    fn unheld(&self) -> Vec<(String, String)> {
        self.unheld.clone()
    }

    /// Limits: what making it may cost.
    #[getter]
    fn limits(&self) -> Limits {
        self.limits.into()
    }

    /// None | bool | str: which blanks may stand between the parts of a document.
    #[getter]
    fn whitespace<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.whitespace {
            Whitespace::Pattern(pattern) if pattern == FEW_BLANKS => py.None().into_bound(py),
            Whitespace::Pattern(pattern) => PyString::new(py, pattern).into_any(),
            flag => PyBool::new(py, *flag == Whitespace::Any).to_owned().into_any(),
        }
    }

    /// The document that a text is; of a type an object of that type.
    ///
    /// Args:
    ///     text: str, legal as a whole.
    ///
    /// Returns:
    ///     Any.
    ///
    /// Raises:
    ///     InvalidValueError: the type refuses it, as pydantic's own validators may.
    ///     ValueError: it is no JSON.
    ///
    /// Example:
    ///     >>> tokentrie.JsonSchema({"type": "array"}).parse("[1, null]")
    ///     [1, None]
    ///     >>> tokentrie.JsonSchema(tuple[int, bool]).parse("[1, true]")
    ///     (1, True)
    fn parse<'py>(&self, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        let py = text.py();
        let given = self.given.as_ref().map(|given| given.bind(py));
        let read = called(&in_python(py, "parse")?, &(given, text).into_pyobject(py)?, None);
        match (read, given) {
            (Err(error), Some(given)) if error.is_instance_of::<PyValueError>(py) => {
                let class: String = in_python(py, "name")?.call1((given,))?.extract()?;
                Err(invalid(py, &format!("the text as {class}"), text.to_str()?, error))
            }
            (read, _) => Ok(read?),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (py, other) = (other.py(), other.get());
        let key =
            |schema: &Self| (schema.text.clone(), schema.whitespace.clone(), schema.unicode_escapes, schema.lenient);
        let given = match (&self.given, &other.given) {
            (Some(one), Some(other)) => one.bind(py).eq(other)?,
            (one, other) => one.is_none() && other.is_none(),
        };
        Ok(given && key(self) == key(other))
    }

    fn __hash__(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.text.hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 80;
        let of = match &self.given {
            Some(given) => in_python(py, "name")?.call1((given,))?.extract()?,
            None if self.text.chars().count() > SHOWN => {
                format!("{}…", self.text.chars().take(SHOWN).collect::<String>())
            }
            None => self.text.clone(),
        };
        Ok(format!("<tokentrie.JsonSchema: {of}>"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let (py, Self { text, given, unicode_escapes, lenient, hints, limits, .. }) = (slf.py(), slf.get());
        let given = given.as_ref().map(|given| given.clone_ref(py));
        let whitespace = slf.get().whitespace(py).unbind();
        let parts = (given, text.clone(), whitespace, *unicode_escapes, *lenient, (*limits).into(), hints.clone());
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "they are the parts of a pickle")]
    fn _restore(
        py: Python<'_>,
        given: Option<Py<PyAny>>,
        text: String,
        whitespace: Option<&Bound<'_, PyAny>>,
        unicode_escapes: bool,
        lenient: bool,
        limits: &Bound<'_, Limits>,
        hints: Vec<(String, String)>,
    ) -> Result<Py<Self>> {
        let options = Self::options(self::whitespace(whitespace)?, unicode_escapes, lenient);
        Ok(Py::new(py, Self::made(py, given, text, options, self::limits(Some(limits)), hints)?)?)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.given)
    }
}

/// Class, text, whitespace, escapes, leniency, limits, hints that are not held.
type Parts = (Option<Py<PyAny>>, String, Py<PyAny>, bool, bool, Limits, Vec<(String, String)>);

/// A grammar in Lark as a rule, of the variant that the library llguidance reads.
///
/// It begins with the rule `start`. Rules are in small letters, terminals in capitals; `%ignore` names what may stand
/// between terminals, `%import common.INT` and `%json {...}` bring others. Terminals are regular expressions, also with
/// & (and) and ~ (not), and take the longest match: where they run into each other, a text may be begun that nothing
/// completes, which ends with a RuleError. Syntax: docs/syntax.md of github.com/guidance-ai/llguidance. What counts
/// tokens or names them is refused. Compares by text; can be pickled.
///
/// Unlike a Grammar it may be ambiguous, and need not be LR(1). In a form its text stands between tokens: end the text
/// before it where a token may end.
///
/// Args:
///     text: the grammar.
///     limits: Limits of what making it may cost; None: the defaults.
///
/// Raises:
///     RuleError: the text is no grammar (with line and column), is too large, or allows nothing. Also a ValueError.
///
/// Example:
///     >>> call = tokentrie.Lark('start: NAME "(" [NUMBER ("," NUMBER)*] ")"\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/')
///     >>> (call.matches("max(1,20)"), call.matches("max(1"))
///     (True, False)
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Lark {
    /// str: its text.
    #[pyo3(get)]
    text: String,
    limits: work::Limits,
}

#[pymethods]
impl Lark {
    #[new]
    #[pyo3(signature = (text, *, limits=None))]
    fn new(py: Python<'_>, text: String, limits: Option<&Bound<'_, Limits>>) -> Result<PyClassInitializer<Self>> {
        let limits = self::limits(limits);
        let lark = asked(py, limits, || trie_schema::Lark::new(&text))??;
        for warning in lark.warnings() {
            warn(py, &format!("Lark: {warning}"))?;
        }
        Ok(PyClassInitializer::from(Rule::of(GuidedRule::from(&lark))).add_subclass(Self { text, limits }))
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Lark: {} lines>", self.text.lines().count())
    }
}

by_text!(Lark);

impl Lark {
    pub(crate) fn spec(&self) -> Spec {
        Spec::Lark { text: self.text.as_str().into(), limits: self.limits.into() }
    }
}

impl From<SchemaError> for Error {
    fn from(error: SchemaError) -> Self {
        Class::Rule.error(error.to_string())
    }
}

impl From<LarkError> for Error {
    fn from(error: LarkError) -> Self {
        Class::Rule.error(format!("Lark: {error}"))
    }
}
