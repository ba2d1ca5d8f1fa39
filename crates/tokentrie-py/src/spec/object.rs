//! Constraints as data in Python.

use crate::chat::template::ChatTemplate;
use crate::errors::{Error, Result};
use crate::exit::module;
use crate::rule::regular::in_python;
use crate::spec::data::data_of;
use crate::spec::{of_dict, problem, spec_of};
use crate::trie::payload::payload_text;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use tokentrie::spec::{DataOnly, Host, Part, Spec, SpecCache};
use trie_core::{FileOptions, Payload, Problem, Trie};

/// A constraint as data: one JSON form for every host. Made by `tokentrie.constraint`.
///
/// Stands wherever a constraint does: for `Sampler`, `Batch`, `Model.generate`, a `Slot`, and for `Model.choose` where
/// its values can be listed. It is bound to no vocabulary; what it works out for one, it keeps. Compares by content;
/// can be pickled where it is data.
///
/// Example:
///     >>> spec = tokentrie.constraint({"integer": {"min": 0, "max": 9}})
///     >>> spec == tokentrie.constraint(tokentrie.Integer(0, 9))
///     True
///     >>> spec.to_json()
///     '{"integer":{"min":0,"max":9}}'
#[pyclass(frozen, name = "Spec", module = "tokentrie")]
pub(crate) struct SpecObject {
    spec: Spec,
    /// Without names and files.
    resolved: Spec,
    cache: SpecCache,
}

impl SpecObject {
    /// # Errors
    /// What the host does not have.
    pub(crate) fn new(spec: Spec, host: &dyn Host) -> Result<Self> {
        Ok(Self { resolved: spec.resolved(host)?, spec, cache: SpecCache::default() })
    }

    /// With its names.
    pub(crate) fn given(&self) -> &Spec {
        &self.spec
    }

    pub(crate) fn resolved(&self) -> &Spec {
        &self.resolved
    }

    pub(crate) fn cache(&self) -> &SpecCache {
        &self.cache
    }

    /// Whether it has one value, of a type that is known.
    #[cfg(feature = "llama")]
    pub(crate) fn promises_value(&self) -> bool {
        fn promises(spec: &Spec) -> bool {
            match spec {
                Spec::Think(think) => promises(&think.then),
                Spec::Any
                | Spec::Set(_)
                | Spec::Payload { .. }
                | Spec::Sequence(_)
                | Spec::Form(_)
                | Spec::Reply(_)
                | Spec::Name(_)
                | Spec::Object(_) => false,
                _ => true,
            }
        }
        promises(&self.resolved)
    }

    /// What a text of the part with this name stands for, where it is a form.
    ///
    /// # Errors
    /// Those of Python's `json`.
    pub(crate) fn part_value<'py>(&self, name: &str, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        let Spec::Form(parts) = &self.resolved else { return Ok(text.clone().into_any()) };
        let spec = parts.iter().find_map(|part| match part {
            Part::Slot { name: of, value } if **of == *name => Some(value),
            Part::Text { name: of, pattern: Some(pattern), .. } if **of == *name => Some(pattern),
            _ => None,
        });
        spec.map_or_else(|| Ok(text.clone().into_any()), |spec| value_of(spec, text))
    }
}

/// What a text of a spec stands for.
fn value_of<'py>(spec: &Spec, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
    let py = text.py();
    match spec {
        Spec::Think(think) => return value_of(&think.then, text),
        Spec::JsonSchema(_) => return Ok(module(py, "json")?.call_method1("loads", (text,))?),
        _ => {}
    }
    match spec.value(text.to_str()?, &DataOnly)? {
        Some(value) => Ok(in_python(py, value, text.to_str()?)?),
        None => Ok(text.clone().into_any()),
    }
}

/// What names and files of a spec stand for in this program.
struct Registered<'py> {
    names: Option<Bound<'py, PyDict>>,
    sets: Option<PathBuf>,
    template: Option<(Arc<str>, Arc<str>, Arc<str>)>,
}

impl Host for Registered<'_> {
    fn template(&self) -> Option<(Arc<str>, Arc<str>, Arc<str>)> {
        self.template.clone()
    }

    fn named(&self, name: &str) -> std::result::Result<Option<Spec>, Problem> {
        let Some(names) = &self.names else { return Ok(None) };
        let found = names.get_item(name).map_err(|error| problem(error.into()))?;
        let spec = |found: Bound<'_, PyAny>| match of_dict(&found)? {
            Some(spec) => Ok(spec),
            None => spec_of("names", &found, None),
        };
        found.map(spec).transpose().map_err(problem)
    }

    fn set(&self, name: &str) -> std::result::Result<Option<Trie>, Problem> {
        let Some(folder) = &self.sets else { return Ok(None) };
        // A name, and no way out of the folder.
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0', ':']);
        if !plain {
            return Ok(None);
        }
        Trie::open(folder.join(name), FileOptions::default()).map(Some).map_err(|error| problem(Error::from(error)))
    }
}

/// A constraint from data, or data from a constraint.
///
/// A dictionary with one kind of spec may also be given directly where a constraint is wanted; this says at once what
/// is wrong with it, keeps what is worked out, and finds names and files.
///
/// Args:
///     spec: a dict or JSON text in the form of docs/specs.md; or whatever else is a constraint: a payload, a list of
///         str, a Rule, a Trie, a Form, …
///     names: what {"name": ...} stands for: a dict from names to constraints. None: nothing.
///     sets: the folder in which {"set": ...} is a file. None: no file is read.
///     template: a ChatTemplate for {"reply": ...} that brings none. None: that of the model it is used with.
///
/// Returns:
///     Spec.
///
/// Raises:
///     OptionError: it is no spec; the message begins with the place, such as $.form[1].value.integer.min. Also a
///         ValueError.
///     TypeError: it is nothing that is a constraint.
///
/// Example:
///     >>> model = tokentrie.Model()
///     >>> size = tokentrie.constraint('{"then": [{"integer": {"min": 1, "max": 99}}, " kg"]}')
///     >>> model.generate("The weight is ", size).text.endswith(" kg")
///     True
///     >>> tokentrie.constraint({"integer": {"min": 9, "max": 1}})
///     Traceback (most recent call last):
///     tokentrie.OptionError: $.integer: no integer is in the range: min is 9, max is 1
#[pyfunction]
#[pyo3(signature = (spec, *, names=None, sets=None, template=None))]
pub(crate) fn constraint(
    spec: &Bound<'_, PyAny>,
    names: Option<Bound<'_, PyDict>>,
    sets: Option<PathBuf>,
    template: Option<PyRef<'_, ChatTemplate>>,
) -> Result<SpecObject> {
    let template = template.map(|template| {
        let core = &template.0;
        (core.text().into(), core.bos().into(), core.eos().into())
    });
    let host = Registered { names, sets, template };
    let read = match of_dict(spec)? {
        Some(read) => read,
        None if spec.is_instance_of::<PyString>() => payload_text("spec", spec, |text| {
            Ok(if Payload::is_meant(text) { Spec::payload(text)? } else { Spec::from_json(text)? })
        })?,
        None => data_of("spec", spec)?,
    };
    SpecObject::new(read, &host)
}

#[pymethods]
impl SpecObject {
    /// str: the kind, as it is called in JSON.
    #[getter]
    fn kind(&self) -> &str {
        self.spec.kind()
    }

    /// The JSON form: one text for one content.
    ///
    /// Returns:
    ///     str.
    ///
    /// Raises:
    ///     OptionError: a part is an object of this program, such as a Trie or a rule of your own.
    ///
    /// Example:
    ///     >>> tokentrie.constraint(tokentrie.rules.Date() + "!").to_json()
    ///     '{"then":[{"date":{}},"!"]}'
    fn to_json(&self) -> Result<String> {
        Ok(self.spec.to_json()?)
    }

    /// The JSON form as Python's dict.
    ///
    /// Returns:
    ///     dict.
    ///
    /// Raises:
    ///     OptionError: as for `to_json`.
    ///
    /// Example:
    ///     >>> tokentrie.constraint(["yes", "no"]).to_dict()
    ///     {'choice': ['yes', 'no']}
    fn to_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(module(py, "json")?.call_method1("loads", (self.to_json()?,))?)
    }

    /// What a text stands for: an int, a float, a day, a time, the document of a JSON Schema; else itself.
    ///
    /// Args:
    ///     text: str, one of the texts that the spec allows.
    ///
    /// Returns:
    ///     Any.
    ///
    /// Example:
    ///     >>> tokentrie.constraint({"integer": {}}).parse("12")
    ///     12
    fn parse<'py>(&self, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        value_of(&self.resolved, text)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.resolved == other.get().resolved)
    }

    fn __hash__(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.resolved.hash(&mut hash);
        hash.finish()
    }

    fn __repr__(&self) -> String {
        const SHOWN: usize = 80;
        match self.spec.to_json() {
            Ok(text) if text.chars().count() <= SHOWN => format!("<tokentrie.Spec: {text}>"),
            Ok(text) => format!("<tokentrie.Spec: {}…>", text.chars().take(SHOWN).collect::<String>()),
            Err(_) => format!("<tokentrie.Spec: {}>", self.spec.kind()),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let text = slf.get().resolved.to_json()?;
        Ok((slf.get_type().getattr("_restore")?, PyTuple::new(slf.py(), [text])?))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(text: &str) -> Result<Self> {
        Self::new(Spec::from_json(text.as_bytes())?, &DataOnly)
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::rule::sequence::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::rule::sequence::added(other, slf.as_any())
    }
}
