//! Forms: literal text, slots with finite sets, free text.

use crate::chat::constraint::ChatConstraint;
use crate::convert::ids::{shown, type_name};
use crate::convert::strings::{is_list, one_or_more};
use crate::convert::value::Value;
use crate::errors::Result;
use crate::exit::{called, module};
use crate::rule::typed::Typed;
use crate::spec::object::Constraint;
use crate::spec::payloads::Cache;
use crate::spec::{Around, as_object, spec_of, with_host};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple, PyType};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tokentrie::spec::{self, Over};
use trie_text::{Part, SlotValues};

/// The part of a form that takes one value of a set.
///
/// Texts are tokenised together with what stands around them, so that the whole text of the form has the tokens
/// that the tokenizer gives it; token sequences are taken as they are. An empty str makes a slot optional.
///
/// Args:
///     name: what the value is called in `Generated.values`.
///     values: a list or other iterable of distinct str; or a Trie; or a Sequence of tries, whose value is their
///         names together; or a Rule, such as a Regex; or a type, such as `int` or an Enum; or a payload, whose
///         descriptor with the path `name` is taken.
///
/// Raises:
///     PayloadError: the payload cannot be used; for one str it says that a list is wanted.
///     OptionError: no descriptor has the path `name`, or a Sequence has a list of str in it.
///     TypeError: a value is no str, or `values` is something else.
///
/// Example:
///     >>> tokentrie.Slot("colour", ["red", "green", "blue"])
///     <tokentrie.Slot "colour": 3 values>
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Slot {
    /// str: its name.
    #[pyo3(get)]
    name: String,
    values: SlotValues,
    /// The values as Python gave them; of an iterable its list.
    given: Py<PyAny>,
}

/// A slot is bound to no vocabulary, so its sets may have any ids.
const NO_VOCABULARY: Around<'static> =
    Around { over: Over { n_vocab: 1 << 31, vocab: None }, sets: None, cache: Cache::Thread };

impl Slot {
    /// Its name and what was given as its values.
    pub(crate) fn given<'py>(&self, py: Python<'py>) -> (&str, &Bound<'py, PyAny>) {
        (&self.name, self.given.bind(py))
    }
}

#[pymethods]
impl Slot {
    #[new]
    fn new(name: String, values: &Bound<'_, PyAny>) -> Result<Self> {
        let py = values.py();
        let mut given = as_object(values)?;
        if is_list(&given) {
            given = PyList::new(py, crate::convert::strings::list(&given)?)?.into_any();
        }
        let spec = spec_of("values", &given, None)?;
        let values = with_host(py, &NO_VOCABULARY, |over, host| spec.slot(&name, over, host))?;
        Ok(Self { name, values, given: given.unbind() })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String, Py<PyAny>)) {
        let Self { name, given, .. } = slf.get();
        (slf.get_type(), (name.clone(), given.clone_ref(slf.py())))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        Ok(self.name == other.get().name && self.given.bind(other.py()).eq(&other.get().given)?)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let count = match &self.values {
            SlotValues::Texts(values) => Some(values.len()),
            SlotValues::Tokens(constraint) => constraint.as_trie().map(trie_core::Trie::len),
            SlotValues::Rule(_) => {
                return Ok(format!("<tokentrie.Slot {:?}: {}>", self.name, self.given.bind(py).repr()?));
            }
        };
        let count = count.map_or_else(|| "a sequence".to_owned(), |count| format!("{count} values"));
        Ok(format!("<tokentrie.Slot {:?}: {count}>", self.name))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::spec::object::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::spec::object::added(other, slf.as_any())
    }
}

/// The part of a form that the model writes freely. The end of the model's output ends it as well.
///
/// Args:
///     name: what the text is called in `Generated.values`.
///     stop: text that ends it and is no part of it, or a list of such texts, of which the first that is written
///         counts; it stands in the output only where the literal after it begins with it. Several have some 120 bytes
///         together at the most. None only with a ChatConstraint.
///     max_tokens: the most tokens of it, at least 1.
///     exclude: characters that may not occur in it. None excludes, where a stop begins with a double quote,
///         backslash and control characters, so that JSON stays JSON; else nothing.
///     pattern: what it must be as a whole: a Regex or another Rule, or the str of a Regex, or a type that is a rule,
///         such as `int` or `re.compile(...)`. The text is over at the
///         first stop after one. Where `max_tokens` cut it off, its longest beginning that matches stays. Or a
///         ChatConstraint of the model's vocabulary: then the text is a reply, which ends when the model ends it, and
///         its value is a Message.
///
/// Raises:
///     OptionError: `max_tokens` is out of range, `exclude` stands beside `pattern`, there is no `stop`, or there is
///         one for a reply. When a form is made of it: a stop is empty or comes twice, or several are too long.
///     RuleError: the pattern is no regular expression.
///     TypeError: the pattern is nothing of these, or a ChatConstraint without a vocabulary.
///
/// Example:
///     >>> form = tokentrie.Form('"', tokentrie.Text("note", stop='"', max_tokens=8), '"')
///     >>> out = tokentrie.Model().generate("A note: ", form)
///     >>> out.text == '"' + out.values["note"] + '"'
///     True
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Text {
    /// str: its name.
    #[pyo3(get)]
    name: String,
    stops: Vec<String>,
    /// int: the most tokens of it.
    #[pyo3(get)]
    max_tokens: u32,
    /// str | None: characters that may not occur in it.
    #[pyo3(get)]
    exclude: Option<String>,
    /// Rule | ChatConstraint | None: what it must be as a whole.
    #[pyo3(get)]
    pattern: Option<Py<PyAny>>,
}

#[pymethods]
impl Text {
    #[new]
    #[pyo3(signature = (name, *, stop=None, max_tokens=64, exclude=None, pattern=None))]
    fn new(
        py: Python<'_>,
        name: String,
        stop: Option<Bound<'_, PyAny>>,
        max_tokens: i64,
        exclude: Option<String>,
        pattern: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let max_tokens = crate::convert::words::unsigned("max_tokens", max_tokens)?;
        if pattern.is_some() && exclude.is_some() {
            let message = "exclude has no effect beside pattern: leave those characters out of the pattern";
            return Err(crate::errors::Class::Option.error(message));
        }
        let reply = pattern.and_then(|pattern| pattern.cast::<ChatConstraint>().ok());
        if let Some(reply) = reply {
            ChatConstraint::made(reply)?;
        }
        let stops = stop.as_ref().map(|stop| one_or_more("stop", stop)).transpose()?.unwrap_or_default();
        if reply.is_some() != stops.is_empty() {
            let message = match reply {
                Some(_) => "a reply ends when the model ends it: leave stop out beside a ChatConstraint",
                None => "stop is missing: it is the text that ends this one",
            };
            return Err(crate::errors::Class::Option.error(message));
        }
        let read = |pattern: &Bound<'_, PyAny>| -> Result<Py<PyAny>> {
            if let Ok(text) = pattern.cast::<PyString>() {
                let regex = module(py, "tokentrie.constraints")?.getattr("Regex")?;
                return Ok(called(&regex, &(text,).into_pyobject(py)?, None)?.unbind());
            }
            let pattern = &as_object(pattern)?;
            if reply.is_some() || pattern.cast::<Constraint>().is_ok_and(|pattern| pattern.get().is_rule()) {
                return Ok(pattern.clone().unbind());
            }
            let (shown, name) = (shown(pattern), type_name(pattern));
            let message = format!(
                "pattern must be a Rule, such as a Regex, a ChatConstraint or a str, not {shown} of type {name}"
            );
            Err(PyTypeError::new_err(message).into())
        };
        Ok(Self { name, stops, max_tokens, exclude, pattern: pattern.map(read).transpose()? })
    }

    /// str | list[str] | None: what ends it; None for a reply.
    #[getter]
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match &self.stops[..] {
            [] => None,
            [one] => Some(PyString::new(py, one).into_any()),
            several => Some(PyList::new(py, several)?.into_any()),
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, Self { name, stops, max_tokens, exclude, pattern }) = (slf.py(), slf.get());
        let pattern = pattern.as_ref().map(|pattern| pattern.clone_ref(py));
        let fields = (name, stops, max_tokens, exclude, pattern).into_pyobject(py)?;
        Ok((slf.get_type().getattr("_restore")?, fields))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(
        name: String,
        stops: Vec<String>,
        max_tokens: u32,
        exclude: Option<String>,
        pattern: Option<Py<PyAny>>,
    ) -> Self {
        Self { name, stops, max_tokens, exclude, pattern }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let (py, other) = (other.py(), other.get());
        let known = |text: &Self| (text.name.clone(), text.stops.clone(), text.max_tokens, text.exclude.clone());
        let patterns = match (&self.pattern, &other.pattern) {
            (Some(one), Some(other)) => one.bind(py).eq(other)?,
            (one, other) => one.is_none() && other.is_none(),
        };
        Ok(patterns && known(self) == known(other))
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.name)
    }

    fn __repr__(&self) -> String {
        format!("<tokentrie.Text {:?}>", self.name)
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::spec::object::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::spec::object::added(other, slf.as_any())
    }
}

impl Text {
    /// What holds it, where it is the reply of a chat.
    fn reply<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, ChatConstraint>> {
        self.pattern.as_ref()?.bind(py).cast().ok()
    }

    fn part(&self, py: Python<'_>) -> Result<Part> {
        let Self { name, stops, max_tokens, exclude, pattern } = self;
        let max_tokens = *max_tokens as usize;
        if let Some(reply) = self.reply(py) {
            let (_, constraint) = ChatConstraint::made(reply)?;
            return Ok(Part::Held { name: name.clone(), constraint: constraint.clone(), max_tokens });
        }
        let part = Part::text(name, stops, max_tokens);
        let Part::Text { name, stops, max_tokens, exclude: usual, .. } = part else { return Ok(part) };
        let exclude = exclude.as_ref().map_or(usual, |exclude| exclude.chars().collect());
        let rule = |pattern: &Bound<'_, PyAny>| Constraint::rule(pattern.cast().map_err(PyErr::from)?);
        let pattern = pattern.as_ref().map(|pattern| rule(pattern.bind(py))).transpose()?;
        Ok(Part::Text { name, stops, max_tokens, exclude, pattern })
    }

    /// As data.
    pub(crate) fn data(&self, py: Python<'_>) -> Result<spec::Part> {
        let Self { name, stops, max_tokens, exclude, pattern } = self;
        let text = |text: &String| Arc::from(text.as_str());
        let pattern = pattern.as_ref().map(|pattern| crate::spec::data::data_of("pattern", pattern.bind(py)));
        Ok(spec::Part::Text {
            name: name.as_str().into(),
            stops: stops.iter().map(text).collect(),
            max_tokens: *max_tokens,
            exclude: exclude.as_ref().map(text),
            pattern: pattern.transpose()?,
        })
    }
}

/// Text with parts to fill in: literals (str), Slot and Text, in their order.
///
/// Give it to `Model.generate` as the constraint. Literals are never sampled, each slot gets one of its values, and
/// the result has the values by name. It is bound to no model; what it works out for a vocabulary, it keeps. A Sampler,
/// a Batch or a gate with a Vocab walks it as any constraint: `leaves` are its values in order, and free text ends with
/// its stop to the byte, which stays in the text unless the literal behind it begins with it.
///
/// Args:
///     parts: str, Slot, Text or another Form, whose parts stand in its place; at least one slot or text.
///
/// Raises:
///     OptionError: the parts make no form: no slot, a name that comes twice, text right after text, Any in a slot.
///     TrieError: a slot has no values, or repeats one.
///     TypeError: a part is something else.
///
/// Example:
///     >>> colours, sizes = tokentrie.Slot("colour", ["red", "blue"]), tokentrie.Slot("size", ["big", "small"])
///     >>> form = tokentrie.Form('{"colour": "', colours, '", "size": "', sizes, '"}')
///     >>> out = tokentrie.Model().generate("A big red balloon: ", form)
///     >>> sorted(out.values)
///     ['colour', 'size']
#[pyclass(frozen, module = "tokentrie")]
pub(crate) struct Form {
    form: Arc<trie_text::Form>,
    /// tuple[str | Slot | Text, ...]: its parts.
    #[pyo3(get)]
    parts: Py<PyTuple>,
}

impl Form {
    pub(crate) fn parts<'py>(&self, py: Python<'py>) -> &Bound<'py, PyTuple> {
        self.parts.bind(py)
    }

    pub(crate) fn core(&self) -> &Arc<trie_text::Form> {
        &self.form
    }

    /// # Errors
    /// `VocabularyError` where a reply in it was made for another vocabulary.
    pub(crate) fn check_vocab(slf: &Bound<'_, Self>, vocab: &Arc<trie_text::Vocab>) -> Result<()> {
        for part in slf.get().parts.bind(slf.py()) {
            let Ok(text) = part.cast::<Text>() else { continue };
            let Some(reply) = text.get().reply(slf.py()) else { continue };
            let (of, _) = ChatConstraint::made(reply)?;
            if !Arc::ptr_eq(of, vocab) && of.fingerprint() != vocab.fingerprint() {
                return Err(crate::errors::Class::Vocabulary.error(format!(
                    "text {:?}: its ChatConstraint was made for another vocabulary: give ChatFormat.constraint the \
                     vocab of this model",
                    text.get().name
                )));
            }
        }
        Ok(())
    }

    /// What the text of a slot or text stands for.
    ///
    /// # Errors
    /// What the `parse` of its rule raises.
    pub(crate) fn parsed(slf: &Bound<'_, Self>, name: &str, text: String) -> Result<Value> {
        let py = slf.py();
        let rule = |part: Bound<'_, PyAny>| -> Option<Py<PyAny>> {
            if let Ok(slot) = part.cast::<Slot>() {
                let given = slot.get().given.bind(py);
                let reads = given.is_instance_of::<Constraint>() || given.is_instance_of::<Typed>();
                return (slot.get().name == name && reads).then(|| given.clone().unbind());
            }
            let text = part.cast::<Text>().ok()?;
            let rule = text.get().pattern.as_ref()?;
            (text.get().name == name).then(|| rule.clone_ref(py))
        };
        match slf.get().parts.bind(py).iter().find_map(rule) {
            Some(rule) => Value::parsed(rule.bind(py), text),
            None => Ok(Value::Text(text)),
        }
    }
}

/// Parts with those of forms among them in their place.
fn spliced<'py>(parts: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match part.cast::<Form>() {
            Ok(form) => all.extend(form.get().parts(parts.py())),
            Err(_) => all.push(part),
        }
    }
    PyTuple::new(parts.py(), all)
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[pymethods]
impl Form {
    #[new]
    #[pyo3(signature = (*parts))]
    fn new(parts: &Bound<'_, PyTuple>) -> Result<Self> {
        let part = |(place, part): (usize, Bound<'_, PyAny>)| -> Result<Part> {
            if let Ok(text) = part.cast::<PyString>() {
                return Ok(Part::Literal(text.to_str()?.to_owned()));
            }
            if let Ok(slot) = part.cast::<Slot>() {
                let Slot { name, values, .. } = slot.get();
                return Ok(Part::Slot { name: name.clone(), values: values.clone() });
            }
            if let Ok(text) = part.cast::<Text>() {
                return text.get().part(part.py());
            }
            let (shown, name) = (shown(&part), type_name(&part));
            let message = format!("part {place} of a form must be str, Slot, Text or Form, not {shown} of type {name}");
            Err(PyTypeError::new_err(message).into())
        };
        let parts = spliced(parts)?;
        let read: Vec<Part> = parts.iter().enumerate().map(part).collect::<Result<_>>()?;
        Ok(Self { form: Arc::new(trie_text::Form::new(read)?), parts: parts.unbind() })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Py<PyTuple>) {
        (slf.get_type(), slf.get().parts.clone_ref(slf.py()))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        self.parts.bind(other.py()).eq(&other.get().parts)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.parts.bind(py).hash()
    }

    fn __repr__(&self) -> String {
        let parts = self.form.parts().iter().map(|part| match part {
            Part::Literal(text) => format!("{text:?}"),
            Part::Slot { name, .. } => format!("Slot({name:?})"),
            Part::Text { name, .. } | Part::Held { name, .. } => format!("Text({name:?})"),
        });
        format!("<tokentrie.Form: {}>", parts.collect::<Vec<_>>().join(", "))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::spec::object::added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        crate::spec::object::added(other, slf.as_any())
    }
}
