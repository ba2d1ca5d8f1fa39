//! Rules with a type: integers, strings; one of several, and one after the other.

use crate::convert::gil::asked;
use crate::convert::ids::{shown, type_name};
use crate::convert::strings;
use crate::errors::{Class, Error, Result};
use crate::exit::items;
use crate::rule::Rule;
use pyo3::Borrowed;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateTime, PyInt, PyList, PyString, PyTime, PyTuple, PyType, PyTzInfo};
use std::hash::{DefaultHasher, Hash, Hasher};
use trie_core::work::Limits;
use trie_rules::{Clock, Regular, RegularError, StringOptions, Value};

type Made<T> = Result<PyClassInitializer<T>>;

/// The text of a value, and what to say where it is none of the rule's.
pub(super) fn value_of(slf: &Bound<'_, Rule>, text: &Bound<'_, PyString>) -> Result<Value> {
    let refused = || -> Result<Error> {
        let message = format!("{} is no text of {}", shown(text), slf.repr()?);
        Ok(Class::Rule.error(message))
    };
    let value = slf.get().regular().and_then(|regular| regular.value(text.to_str().ok()?.as_bytes()));
    value.map_or_else(|| Err(refused()?), Ok)
}

/// What a text of a rule stands for, in Python.
pub(crate) fn in_python<'py>(py: Python<'py>, value: Value, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let zone = |time: &Clock| time.utc.then(|| PyTzInfo::utc(py).map(Borrowed::to_owned)).transpose();
    Ok(match value {
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        // More digits than 128 bits have.
        Value::LongInteger(digits) => py.get_type::<PyInt>().call1((digits,))?,
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Date { year, month, day } => PyDate::new(py, year.into(), month, day)?.into_any(),
        Value::Time(time) => {
            let Clock { hour, minute, second, microsecond, .. } = time;
            PyTime::new(py, hour, minute, second, microsecond, zone(&time)?.as_ref())?.into_any()
        }
        Value::DateTime { year, month, day, time } => {
            let Clock { hour, minute, second, microsecond, .. } = time;
            let zone = zone(&time)?;
            PyDateTime::new(py, year.into(), month, day, hour, minute, second, microsecond, zone.as_ref())?.into_any()
        }
        Value::List(items) => {
            let items: Vec<_> = items.into_iter().map(|item| in_python(py, item, "")).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Text(said) | Value::Entry { text: said, .. } | Value::String(said) => {
            PyString::new(py, &said).into_any()
        }
        _ => PyString::new(py, text).into_any(),
    })
}

/// `parse` of a rule whose values [`in_python`] makes.
pub(super) fn parsed<'py>(rule: &Bound<'py, Rule>, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
    Ok(in_python(rule.py(), value_of(rule, text)?, text.to_str()?)?)
}

pub(super) fn hash_of(content: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// The integers of a range in decimal, without leading zeros: "0", "-12", and not "007", "-0" or "+1".
///
/// Its values are int. Compares by bounds; can be pickled.
///
/// Args:
///     lo, hi: the smallest and the largest, both included. None: no bound, so that digits may come for ever.
///
/// Raises:
///     RuleError: no integer is in the range.
///     OptionError: a bound does not fit 128 bits.
///
/// Example:
///     >>> model = tokentrie.Model()
///     >>> model.generate("A number from one to ten: ", tokentrie.Integer(1, 10)).value in range(1, 11)
///     True
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Integer {
    /// int | None: the smallest.
    #[pyo3(get)]
    lo: Option<i128>,
    /// int | None: the largest.
    #[pyo3(get)]
    hi: Option<i128>,
}

fn bound(name: &str, value: Option<&Bound<'_, PyAny>>) -> Result<Option<i128>> {
    let Some(value) = value else { return Ok(None) };
    value.extract().map(Some).map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            return Class::Option.error(format!("{name} is {}: it must fit 128 bits, or be None", shown(value)));
        }
        PyTypeError::new_err(format!("{name} must be an int or None, not {}", type_name(value))).into()
    })
}

#[pymethods]
impl Integer {
    #[new]
    #[pyo3(signature = (lo=None, hi=None))]
    fn new(lo: Option<&Bound<'_, PyAny>>, hi: Option<&Bound<'_, PyAny>>) -> Made<Self> {
        let (lo, hi) = (bound("lo", lo)?, bound("hi", hi)?);
        Ok(PyClassInitializer::from(Rule::of_regular(Regular::integer(lo, hi)?)).add_subclass(Self { lo, hi }))
    }

    /// The integer that a text stands for.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     int.
    ///
    /// Raises:
    ///     RuleError: the text is none of the rule's.
    ///
    /// Example:
    ///     >>> tokentrie.Integer(-5, 5).parse("-3")
    ///     -3
    fn parse<'py>(slf: &Bound<'py, Self>, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        parsed(slf.as_super(), text)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| (self.lo, self.hi) == (other.get().lo, other.get().hi))
    }

    fn __hash__(&self) -> u64 {
        hash_of(&(self.lo, self.hi))
    }

    fn __repr__(&self) -> String {
        let shown = |bound: Option<i128>| bound.map_or_else(|| "None".to_owned(), |bound| bound.to_string());
        format!("tokentrie.Integer({}, {})", shown(self.lo), shown(self.hi))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Option<i128>, Option<i128>)) {
        (slf.get_type(), (slf.get().lo, slf.get().hi))
    }
}

impl Integer {
    pub(crate) fn bounds(&self) -> (Option<i128>, Option<i128>) {
        (self.lo, self.hi)
    }
}

/// JSON strings with their escapes: valid UTF-8, no half of a surrogate pair. Its values are str without escapes.
///
/// Compares by its settings; can be pickled.
///
/// Args:
///     min_chars, max_chars: fewest and most characters: an escape counts as one. None: no limit.
///     quotes: whether the text has the quotes around the string; else they stand around the rule.
///
/// Raises:
///     RuleError: no string is that long and that short, or `max_chars` is beyond some 15,000.
///
/// Example:
///     >>> tokentrie.String(max_chars=3).matches("four")
///     False
///     >>> tokentrie.String(max_chars=3, quotes=True).parse(r'"a\u0041b"')
///     'aAb'
#[pyclass(frozen, extends = Rule, get_all, name = "String", module = "tokentrie")]
pub(crate) struct StringRule {
    /// int: the fewest characters.
    min_chars: usize,
    /// int | None: the most characters.
    max_chars: Option<usize>,
    /// bool: whether the quotes are part of the text.
    quotes: bool,
}

#[pymethods]
impl StringRule {
    #[new]
    #[pyo3(signature = (*, min_chars=0, max_chars=None, quotes=false))]
    fn new(py: Python<'_>, min_chars: usize, max_chars: Option<usize>, quotes: bool) -> Made<Self> {
        let options = StringOptions::default().quotes(quotes).min_chars(min_chars);
        let options = max_chars.map_or(options, |most| options.max_chars(most));
        let rule = Rule::of_regular(asked(py, Limits::default(), || Regular::string(options))??);
        Ok(PyClassInitializer::from(rule).add_subclass(Self { min_chars, max_chars, quotes }))
    }

    /// What a text says, without quotes and escapes.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     str.
    ///
    /// Raises:
    ///     RuleError: the text is none of the rule's.
    ///
    /// Example:
    ///     >>> tokentrie.String().parse(r"caf\u00e9")
    ///     'café'
    fn parse(slf: &Bound<'_, Self>, text: &Bound<'_, PyString>) -> Result<String> {
        match value_of(slf.as_super(), text)? {
            Value::String(said) => Ok(said),
            _ => Ok(text.to_str()?.to_owned()),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.settings() == other.get().settings())
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.settings())
    }

    fn __repr__(&self) -> String {
        let most = self.max_chars.map_or_else(|| "None".to_owned(), |most| most.to_string());
        let quotes = if self.quotes { "True" } else { "False" };
        format!("tokentrie.String(min_chars={}, max_chars={most}, quotes={quotes})", self.min_chars)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Settings)> {
        Ok((slf.get_type().getattr("_restore")?, slf.get().settings()))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(py: Python<'_>, min_chars: usize, max_chars: Option<usize>, quotes: bool) -> Result<Py<Self>> {
        Ok(Py::new(py, Self::new(py, min_chars, max_chars, quotes)?)?)
    }
}

/// Fewest and most characters, and whether with quotes.
type Settings = (usize, Option<usize>, bool);

impl StringRule {
    pub(crate) fn settings(&self) -> Settings {
        (self.min_chars, self.max_chars, self.quotes)
    }
}

/// A text of any of several rules, or one of a list.
///
/// Its values are what the rule that takes the text gives; those of a list are str.
/// Lists of any length stay tries: a million texts are sorted once. Compares by its parts; can be pickled.
///
/// Args:
///     choices: a Rule that is no Grammar and none of your own, a str, or a list or other iterable of str.
///
/// Raises:
///     RuleError: there is nothing to choose from, or the rules make an automaton that is too large.
///     TypeError: a part is something else.
///
/// Example:
///     >>> when = tokentrie.OneOf(tokentrie.rules.Date(), ["today", "tomorrow"], "never")
///     >>> (when.parse("2024-05-01"), when.parse("today"))
///     (datetime.date(2024, 5, 1), 'today')
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct OneOf {
    /// tuple[Rule | str | list[str], ...]: what may be chosen.
    #[pyo3(get)]
    choices: Py<PyTuple>,
    /// Those that are rules, in their order.
    rules: Vec<Py<Rule>>,
}

impl OneOf {
    pub(crate) fn choices<'py>(&self, py: Python<'py>) -> &Bound<'py, PyTuple> {
        self.choices.bind(py)
    }
}

impl Concatenation {
    pub(crate) fn parts<'py>(&self, py: Python<'py>) -> &Bound<'py, PyTuple> {
        self.parts.bind(py)
    }
}

fn regular_of(place: &str, rule: &Bound<'_, Rule>) -> Result<Regular> {
    rule.get().regular().cloned().ok_or_else(|| {
        let name = type_name(rule.as_any());
        let message = format!(
            "{place} is of type {name}, which is no finite automaton: only Regex, Integer, Number, Date, Time, \
             DateTime, String, OneOf, Repeat and what + makes of them can be put together"
        );
        PyTypeError::new_err(message).into()
    })
}

#[pymethods]
impl OneOf {
    #[new]
    #[pyo3(signature = (*choices))]
    fn new(choices: &Bound<'_, PyTuple>) -> Made<Self> {
        let py = choices.py();
        let (mut rules, mut texts, mut kept, mut parts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, choice) in items(choices)?.enumerate() {
            let choice = choice?;
            if let Ok(rule) = choice.cast::<Rule>() {
                rules.push(regular_of(&format!("choice {number}"), rule)?);
                kept.push(rule.clone().unbind());
                parts.push(choice);
            } else if let Ok(text) = choice.cast::<PyString>() {
                texts.push(text.to_str()?.to_owned());
                parts.push(choice);
            } else if strings::is_list(&choice) {
                let list = strings::list(&choice)?;
                parts.push(PyList::new(py, &list)?.into_any());
                texts.extend(list);
            } else {
                let message = format!(
                    "choice {number} must be a Rule, a str or a list of str, not {} of type {}",
                    shown(&choice),
                    type_name(&choice)
                );
                return Err(PyTypeError::new_err(message).into());
            }
        }
        let regular = asked(py, Limits::default().steps(u64::MAX), || Regular::one_of(rules, &texts))??;
        let made = Self { choices: PyTuple::new(py, parts)?.unbind(), rules: kept };
        Ok(PyClassInitializer::from(Rule::of_regular(regular)).add_subclass(made))
    }

    /// What the first rule that takes a text gives; a text of a list is itself.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     Any.
    ///
    /// Raises:
    ///     RuleError: the text is none of the rule's.
    ///
    /// Example:
    ///     >>> tokentrie.OneOf(tokentrie.Integer(0, 9), ["many"]).parse("7")
    ///     7
    fn parse<'py>(slf: &Bound<'py, Self>, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        if let Value::Entry { .. } = value_of(slf.as_super(), text)? {
            return Ok(text.clone().into_any());
        }
        let bytes = text.to_str()?.as_bytes();
        let takes = |rule: &&Py<Rule>| rule.get().regular().is_some_and(|regular| regular.is_match(bytes));
        match slf.get().rules.iter().find(takes) {
            Some(rule) => Ok(rule.bind(slf.py()).call_method1("parse", (text,))?),
            None => Ok(text.clone().into_any()),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        self.choices.bind(other.py()).eq(&other.get().choices)
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        hash_of(&self.choices.bind(py).len())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let part = |part: Bound<'_, PyAny>| match part.cast::<PyList>() {
            Ok(list) => Ok(format!("{} texts", list.len())),
            Err(_) => Ok(part.repr()?.to_string()),
        };
        let parts: Vec<String> = self.choices.bind(py).iter().map(part).collect::<PyResult<_>>()?;
        Ok(format!("<tokentrie.OneOf: {}>", parts.join(" or ")))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Py<PyTuple>) {
        (slf.get_type(), slf.get().choices.clone_ref(slf.py()))
    }
}

/// A text of a rule, several times, with a separator between: "1, 2, 3".
///
/// Every way to split a text counts. Its values are lists: of several ways to split a text, that whose first items are
/// longest. Compares by its settings; can be pickled.
///
/// Args:
///     rule: a Rule that is no Grammar and none of your own, a str, or a list or other iterable of str.
///     min, max: fewest and most times. None: no limit, so that items may come for ever.
///     separator: stands between two of them.
///
/// Raises:
///     RuleError: `min` is above `max`, or the automaton is too large.
///     TypeError: the rule is something else.
///
/// Example:
///     >>> codes = tokentrie.Repeat(tokentrie.Integer(0, 99), min=1, max=3, separator=", ")
///     >>> (codes.parse("7, 42"), codes.matches("7, 42, 1, 2"), codes.matches(""))
///     ([7, 42], False, False)
///     >>> tokentrie.Repeat(["red", "blue"], separator="|").parse("blue|red|red")
///     ['blue', 'red', 'red']
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Repeat {
    /// Rule | str | list[str]: what is repeated.
    #[pyo3(get)]
    rule: Py<PyAny>,
    /// int: the fewest times.
    #[pyo3(get)]
    min: usize,
    /// int | None: the most times.
    #[pyo3(get)]
    max: Option<usize>,
    /// str: what stands between two of them.
    #[pyo3(get)]
    separator: String,
}

#[pymethods]
impl Repeat {
    #[new]
    #[pyo3(signature = (rule, min=0, max=None, separator=""))]
    fn new(rule: &Bound<'_, PyAny>, min: usize, max: Option<usize>, separator: &str) -> Made<Self> {
        let py = rule.py();
        let (item, rule) = if let Ok(given) = rule.cast::<Rule>() {
            (regular_of("rule", given)?, rule.clone())
        } else if let Ok(text) = rule.cast::<PyString>() {
            (Regular::one_of([], &[text.to_str()?])?, rule.clone())
        } else if strings::is_list(rule) {
            let list = strings::list(rule)?;
            (Regular::one_of([], &list)?, PyList::new(py, &list)?.into_any())
        } else {
            let (shown, name) = (shown(rule), type_name(rule));
            let message = format!("rule must be a Rule, a str or a list of str, not {shown} of type {name}");
            return Err(PyTypeError::new_err(message).into());
        };
        let regular = asked(py, Limits::default(), || item.repeat(min, max, separator))??;
        let made = Self { rule: rule.unbind(), min, max, separator: separator.to_owned() };
        Ok(PyClassInitializer::from(Rule::of_regular(regular)).add_subclass(made))
    }

    /// What each item of a text stands for.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     list: what the rule gives for each; of a str or a list str.
    ///
    /// Raises:
    ///     RuleError: the text is none of the rule's.
    ///
    /// Example:
    ///     >>> tokentrie.Repeat(tokentrie.rules.Date(), separator="/").parse("2024-02-28/2024-02-29")[1]
    ///     datetime.date(2024, 2, 29)
    fn parse<'py>(slf: &Bound<'py, Self>, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        let whole = text.to_str()?;
        let items = slf.as_super().get().regular().and_then(|regular| regular.items(whole.as_bytes()));
        let Some(items) = items else {
            // Says what is wrong.
            return Ok(in_python(slf.py(), value_of(slf.as_super(), text)?, whole)?);
        };
        let rule = slf.get().rule.bind(slf.py());
        let is_rule = rule.is_instance_of::<Rule>();
        let each = items.into_iter().map(|item| {
            let item = PyString::new(slf.py(), &String::from_utf8_lossy(&whole.as_bytes()[item]));
            if is_rule { rule.call_method1("parse", (item,)) } else { Ok(item.into_any()) }
        });
        Ok(PyList::new(slf.py(), each.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (this, that) = (self, other.get());
        let same = (this.min, this.max, &this.separator) == (that.min, that.max, &that.separator);
        Ok(same && this.rule.bind(other.py()).eq(&that.rule)?)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&(self.min, self.max, &self.separator))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let rule = match self.rule.bind(py).cast::<PyList>() {
            Ok(list) => format!("<{} texts>", list.len()),
            Err(_) => self.rule.bind(py).repr()?.to_string(),
        };
        let most = self.max.map_or_else(|| "None".to_owned(), |most| most.to_string());
        let separator = PyString::new(py, &self.separator).repr()?;
        Ok(format!("tokentrie.Repeat({rule}, {}, {most}, {separator})", self.min))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Repeated) {
        let Self { rule, min, max, separator } = slf.get();
        (slf.get_type(), (rule.clone_ref(slf.py()), *min, *max, separator.clone()))
    }
}

/// What is repeated, how often, and what stands between.
type Repeated = (Py<PyAny>, usize, Option<usize>, String);

impl Repeat {
    pub(crate) fn parts<'py>(&self, py: Python<'py>) -> (&Bound<'py, PyAny>, usize, Option<usize>, &str) {
        (self.rule.bind(py), self.min, self.max, &self.separator)
    }
}

/// One rule after the other: what + makes of rules and str.
///
/// Every way to split a text between the parts counts. Its values are str. Compares by its parts; can be pickled.
///
/// Args:
///     parts: a Rule that is no Grammar and none of your own, or a str, which stands there as it is.
///
/// Raises:
///     RuleError: there is no part, or they make an automaton that is too large.
///     TypeError: a part is something else.
///
/// Example:
///     >>> weight = tokentrie.Integer(1, 999) + " " + tokentrie.OneOf("kg", "lb")
///     >>> (weight.matches("70 kg"), weight.matches("70kg"))
///     (True, False)
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Concatenation {
    /// tuple[Rule | str, ...]: what follows each other.
    #[pyo3(get)]
    parts: Py<PyTuple>,
}

#[pymethods]
impl Concatenation {
    #[new]
    #[pyo3(signature = (*parts))]
    fn new(parts: &Bound<'_, PyTuple>) -> Made<Self> {
        let py = parts.py();
        let mut flat = Vec::new();
        let mut given = Vec::new();
        for part in items(parts)? {
            let part = part?;
            match part.cast::<Self>() {
                Ok(parts) => flat.extend(parts.get().parts.bind(py).iter()),
                Err(_) => flat.push(part.clone()),
            }
            given.push(part);
        }
        if flat.len() > MOST_PARTS {
            let message = format!("{} parts: at most {MOST_PARTS} can follow each other; join texts first", flat.len());
            return Err(Class::Rule.error(message));
        }
        let read = |(number, part): (usize, &Bound<'_, PyAny>)| -> Result<Regular> {
            if let Ok(rule) = part.cast::<Rule>() {
                return regular_of(&format!("part {number}"), rule);
            }
            if let Ok(text) = part.cast::<PyString>() {
                return Ok(Regular::one_of([], &[text.to_str()?])?);
            }
            let (shown, name) = (shown(part), type_name(part));
            Err(PyTypeError::new_err(format!("part {number} must be a Rule or a str, not {shown} of type {name}"))
                .into())
        };
        let read: Vec<Regular> = given.iter().enumerate().map(read).collect::<Result<_>>()?;
        let joined = asked(py, Limits::default(), || Regular::sequence(&read))??;
        let Some(regular) = joined else {
            return Err(Class::Rule.error("a concatenation of no parts: nothing could be written"));
        };
        let made = Self { parts: PyTuple::new(py, flat)?.unbind() };
        Ok(PyClassInitializer::from(Rule::of_regular(regular)).add_subclass(made))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        self.parts.bind(other.py()).eq(&other.get().parts)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.parts.bind(py).hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let parts = self.parts.bind(py).iter().map(|part| Ok(part.repr()?.to_string()));
        Ok(parts.collect::<PyResult<Vec<String>>>()?.join(" + "))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Py<PyTuple>) {
        (slf.get_type(), slf.get().parts.clone_ref(slf.py()))
    }
}

/// Parts that may follow each other: each more is joined to all before it.
const MOST_PARTS: usize = 1024;

impl From<RegularError> for Error {
    fn from(error: RegularError) -> Self {
        Class::Rule.error(error.to_string())
    }
}
