//! The handle that every constraint of Python's holds: its spec, and what was made of it.

use crate::chat::template::ChatTemplate;
use crate::chat::{format, messages};
use crate::convert::added::added;
use crate::convert::data::objects_of_json;
use crate::convert::gil::{asked, locked, released};
use crate::convert::ids::{shown, type_name};
use crate::convert::strings::text_bytes;
use crate::errors::{Class, Error, Result};
use crate::exit::module;
use crate::rule::of_user::UserRule;
use crate::rule::problem::{heard, problem};
use crate::rule::values::in_python;
use crate::spec::payloads::Cache;
use crate::spec::{Around, data_of, of_dict, of_spec, part_of, spec_of, told_by_host};
use crate::trie::payload::payload_text;
use crate::vocab::Vocab;
use lru::LruCache;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokentrie::chat::response_format;
use tokentrie::constraint::{
    AnyRule, ByteTable, CompiledRule, CompiledSpec, DataOnly, Host, MOST_TOKENS, MaskLimits, MaskStats, Object,
    Over as OverTokens, Read, Spec as Data, TemplateTexts,
};
use trie_core::work::Limits;
use trie_core::{Problem, Trie};
use trie_formats::{FileOptions, Payload, TrieFile as _};

/// For how many vocabularies a rule of a user's keeps what it worked out.
const VOCABULARIES: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// The largest vocabulary there may be: a constraint is bound to none when it is made.
pub(crate) const ANY_VOCABULARY: Around<'static> =
    Around { over: OverTokens { n_vocab: MOST_TOKENS, vocab: None }, sets: None, cache: Cache::Thread };

/// Constraint without a vocabulary: the base of all rules, and of the results of `tokentrie.constraint`.
///
/// Stands wherever a constraint does: for `Sampler`, `Batch`, `Model.generate`, a `Slot`, and for `Model.choose` where
/// its values can be listed. What it works out for a vocabulary it keeps, and shares between all who use it there.
/// Compares by content; can be pickled where it is data.
///
/// Args:
///     args, keywords: those of what extends it; Constraint itself uses none.
///
/// Example:
///     >>> isinstance(tokentrie.rules.Integer(0, 9), tokentrie.rules.Constraint)
///     True
///     >>> tokentrie.rules.Integer(0, 9).to_json()
///     '{"integer":{"min":0,"max":9}}'
#[pyclass(frozen, subclass, module = "tokentrie.rules")]
pub(crate) struct Constraint {
    /// Empty of a rule of a user's, which is its own object.
    compiled: OnceLock<Arc<CompiledSpec>>,
    /// A user's rule by the address of the vocabulary, which its entry keeps.
    asked: Mutex<Option<LruCache<usize, AskedRule>>>,
}

/// A constraint as data: one JSON form for every host. Made by `tokentrie.constraint`.
///
/// Example:
///     >>> spec = tokentrie.constraint({"integer": {"min": 0, "max": 9}})
///     >>> spec == tokentrie.constraint(tokentrie.rules.Integer(0, 9))
///     True
///     >>> spec.to_json()
///     '{"integer":{"min":0,"max":9}}'
#[pyclass(frozen, extends = Constraint, module = "tokentrie.rules")]
pub(crate) struct Spec;

/// A rule of a user's over a vocabulary.
#[derive(Clone)]
struct AskedRule {
    _vocab: Arc<trie_text::Vocab>,
    spelled: Arc<dyn CompiledRule>,
    user: UserRule,
}

impl Constraint {
    /// Returns the spec and what was compiled of it; `None` for a rule written in Python.
    pub(crate) fn compiled(&self) -> Option<&Arc<CompiledSpec>> {
        self.compiled.get()
    }

    /// Returns whether its values are texts of a rule.
    pub(crate) fn is_rule(&self) -> bool {
        self.compiled().is_none_or(|compiled| compiled.spec().is_rule())
    }

    /// Returns it as an object that other specs may hold.
    pub(crate) fn object(slf: &Bound<'_, Self>) -> Object {
        match slf.get().compiled() {
            Some(compiled) => Object::Compiled(Arc::clone(compiled)),
            None => Object::Rule(crate::spec::user_rule(slf)),
        }
    }

    /// Returns its rule.
    ///
    /// # Errors
    /// `TypeError` where its values are no texts of a rule; what a rule of a user's raises.
    pub(crate) fn rule(slf: &Bound<'_, Self>) -> Result<Arc<dyn AnyRule>> {
        let Some(compiled) = slf.get().compiled() else { return Ok(Arc::new(UserRule::new(slf.as_any())?)) };
        let (made, _) = told_by_host(slf.py(), &ANY_VOCABULARY, Limits::NONE, |_, host| {
            Ok(compiled.made_rule(host)?.map(|made| Arc::clone(&made.rule)))
        })?;
        made?.ok_or_else(|| {
            let message = format!("{} is not a rule: its texts are not known without a vocabulary", type_name(slf));
            pyo3::exceptions::PyTypeError::new_err(message).into()
        })
    }

    /// Returns all texts, in UTF-8; `None` where its values are no texts.
    ///
    /// # Errors
    /// `RuleError` for too many, texts without end, and bytes that are no text; what a rule of a user's raises.
    pub(crate) fn listed(slf: &Bound<'_, Self>, limit: usize) -> Result<Option<Vec<String>>> {
        if let Some(compiled) = slf.get().compiled() {
            if let Data::Choice(_) = compiled.spec() {
                return Ok(released(slf.py(), || compiled.spec().texts(&DataOnly, limit))?);
            }
            if !compiled.spec().is_rule() {
                return Ok(None);
            }
        }
        let any = Self::rule(slf)?;
        let texts = asked(slf.py(), Limits::default(), || any.texts(limit))?;
        heard(&*any)?;
        let refused = |error: String| Class::Rule.error(error);
        let texts = texts.map_err(|error| refused(format!("{}: {error}", shown(slf.as_any()))))?;
        texts.into_iter().map(utf8).collect::<Result<_>>().map(Some)
    }

    /// Returns a user's rule over a vocabulary: worked out once, and kept.
    ///
    /// # Errors
    /// `RuleError` where it allows nothing, `VocabularyError` where the vocabulary cannot begin it, and what the rule
    /// raises.
    pub(crate) fn asked_over(slf: &Bound<'_, Self>, vocab: &Arc<trie_text::Vocab>) -> Result<Arc<dyn CompiledRule>> {
        let (py, key) = (slf.py(), Arc::as_ptr(vocab) as usize);
        if let Some(over) = locked(py, &slf.get().asked)?.as_mut().and_then(|known| known.get(&key)) {
            return Ok(Arc::clone(&over.spelled));
        }
        collect_now_and_then(py)?;
        let user = UserRule::new(slf.as_any())?;
        let any: Arc<dyn AnyRule> = Arc::new(user.clone());
        let limits = Limits::default().seconds(20.0).steps(u64::MAX);
        let spelled = asked(py, limits, || any.compile_for(vocab.spelling(), MaskLimits::default()))??;
        let over = AskedRule { _vocab: Arc::clone(vocab), spelled: Arc::clone(&spelled), user };
        locked(py, &slf.get().asked)?.get_or_insert_with(|| LruCache::new(VOCABULARIES)).put(key, over);
        Ok(spelled)
    }

    /// Returns whether it has one value, of a type that is known.
    #[cfg(feature = "llama")]
    pub(crate) fn promises_value(&self) -> bool {
        fn promises(spec: &Data) -> bool {
            match spec {
                Data::Think(think) => promises(&think.then),
                Data::Object(Object::Compiled(compiled)) => promises(compiled.spec()),
                Data::Choice(_) => true,
                other => other.is_rule(),
            }
        }
        self.compiled().is_none_or(|compiled| promises(compiled.spec()))
    }

    /// Returns the values of a text of it: a form, a sequence or anything have none of their own.
    pub(crate) fn has_value(&self) -> bool {
        let spec = self.compiled().map(|compiled| compiled.spec());
        !matches!(spec, Some(Data::Form(_) | Data::Sequence(_) | Data::Any))
    }

    /// Returns whether it is a form.
    pub(crate) fn is_form(&self) -> bool {
        matches!(self.compiled().map(|compiled| compiled.spec()), Some(Data::Form(_)))
    }

    /// Returns what a text of the part with this name stands for, where it is a form.
    ///
    /// # Errors
    /// Those of Python's `json`.
    fn part_value<'py>(&self, name: &str, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        use tokentrie::constraint::Part;
        let Some(Data::Form(parts)) = self.compiled().map(|compiled| compiled.spec()) else {
            return Ok(text.clone().into_any());
        };
        let spec = parts.iter().find_map(|part| match part {
            Part::Slot { name: of, value } if **of == *name => Some(value),
            Part::Text { name: of, pattern: Some(pattern), .. } if **of == *name => Some(pattern),
            _ => None,
        });
        let value = spec.map(|spec| value_of(spec, text)).transpose()?.flatten();
        Ok(value.unwrap_or_else(|| text.clone().into_any()))
    }
}

fn utf8(text: Vec<u8>) -> Result<String> {
    String::from_utf8(text).map_err(|error| Class::Rule.error(format!("a text is not UTF-8: {error}")))
}

/// A rule of a user's and what it keeps hold each other. Python's collector counts objects and not their bytes, so it
/// would come late.
fn collect_now_and_then(py: Python<'_>) -> PyResult<()> {
    const RULES: usize = 256;
    static MADE: AtomicUsize = AtomicUsize::new(0);
    if MADE.fetch_add(1, Ordering::Relaxed) % RULES == RULES - 1 {
        module(py, "gc")?.call_method0("collect")?;
    }
    Ok(())
}

/// Reads the value of a text of a spec; `None` if a typed spec does not match it.
fn value_of<'py>(spec: &Data, text: &Bound<'py, PyString>) -> Result<Option<Bound<'py, PyAny>>> {
    let py = text.py();
    let value = match spec {
        Data::Think(think) => return value_of(&think.then, text),
        Data::JsonSchema(_) => return Ok(Some(module(py, "json")?.call_method1("loads", (text,))?)),
        Data::Object(Object::Compiled(compiled)) => match compiled.spec() {
            inner @ (Data::Think(_) | Data::JsonSchema(_)) => return value_of(inner, text),
            // Every text stands for itself.
            Data::Regex { .. } => None,
            inner if !inner.is_regular() => None,
            _ => match compiled.value(text.to_str()?, &DataOnly)? {
                Some(value) => Some(value),
                None => return Ok(None),
            },
        },
        other => other.value(text.to_str()?, &DataOnly)?,
    };
    match value {
        Some(value) => Ok(Some(in_python(py, value, text)?)),
        None => Ok(Some(text.clone().into_any())),
    }
}

/// Registered names and files of specs in this program.
struct Registered<'py> {
    names: Option<Bound<'py, PyDict>>,
    sets: Option<PathBuf>,
    template: Option<TemplateTexts>,
}

impl Host for Registered<'_> {
    fn template(&self) -> Option<TemplateTexts> {
        self.template.clone()
    }

    fn named_spec(&self, name: &str) -> std::result::Result<Option<Data>, Problem> {
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
///     OptionError: it is not a spec; the message begins with the place, such as $.form[1].value.integer.min. Also a
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
///     tokentrie.errors.OptionError: $.integer: no integer is in the range: min is 9, max is 1
#[pyfunction]
#[pyo3(signature = (spec, *, names=None, sets=None, template=None))]
pub(crate) fn constraint(
    spec: &Bound<'_, PyAny>,
    names: Option<Bound<'_, PyDict>>,
    sets: Option<PathBuf>,
    template: Option<PyRef<'_, ChatTemplate>>,
) -> Result<Py<Spec>> {
    let template = template.map(|template| {
        let core = &template.0;
        (core.text().into(), core.bos().into(), core.eos().into())
    });
    let host = Registered { names, sets, template };
    let read = match of_dict(spec)? {
        Some(read) => read,
        None if spec.is_instance_of::<PyString>() => payload_text("spec", spec, |text| {
            Ok(if Payload::is_meant(text) { Data::payload(text)? } else { Data::from_json(text)? })
        })?,
        None => data_of("spec", spec)?,
    };
    Ok(Py::new(spec.py(), Spec::made(read, &host)?)?)
}

#[pymethods]
impl Constraint {
    #[new]
    #[pyo3(signature = (*args, **keywords))]
    fn py_new(args: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> Self {
        let _ = (args, keywords);
        Self { compiled: OnceLock::new(), asked: Mutex::default() }
    }

    /// Takes the spec that a class of Python's is, once, and makes its rule.
    ///
    /// Args:
    ///     json: str, the spec; {"object": n} in it is the object of that number.
    ///     objects: constraints and lists of str.
    ///     unlimited: what making it may cost is said in it, or was when its parts were made.
    ///
    /// Returns:
    ///     list[str]: what to warn of.
    #[pyo3(signature = (json, objects, unlimited=false))]
    fn _hold(slf: &Bound<'_, Self>, json: &str, objects: &Bound<'_, PyList>, unlimited: bool) -> Result<Vec<String>> {
        let py = slf.py();
        let objects: Vec<Data> = objects.iter().map(|object| part_of(&object)).collect::<Result<_>>()?;
        let limits = if unlimited { Limits::NONE } else { Limits::default() };
        // Without the place: what was given has no fields of JSON.
        let placeless = |error: tokentrie::constraint::SpecError| of_spec(error.into_parts().1);
        let spec = released(py, || Data::from_host(json.as_bytes(), &objects)).map_err(placeless)?;
        let (made, warnings) = told_by_host(py, &ANY_VOCABULARY, limits, |_, host| {
            let compiled = CompiledSpec::new(spec, host)?;
            compiled.make(host)?;
            Ok(compiled)
        })?;
        let made = made.map_err(placeless)?;
        if slf.get().compiled.set(Arc::new(made)).is_err() {
            return Err(Class::Base.error("a constraint is made once"));
        }
        Ok(warnings)
    }

    /// Facts about its rule, for what extends it.
    #[getter]
    fn _facts<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>> {
        let facts = PyDict::new(slf.py());
        let Some(compiled) = slf.get().compiled() else { return Ok(facts) };
        let Some(made) = compiled.made_rule(&DataOnly)? else { return Ok(facts) };
        facts.set_item("states", made.facts.states)?;
        facts.set_item("lexer_states", made.facts.lexer_states)?;
        facts.set_item("terminals", made.facts.terminals.clone())?;
        facts.set_item("unheld", made.facts.unheld.clone())?;
        facts.set_item("digits", made.facts.digits)?;
        facts.set_item("is_regular", made.regular.is_some())?;
        Ok(facts)
    }

    /// The table of its automaton, for `Regex.table`.
    fn _table(slf: &Bound<'_, Self>) -> Result<Option<ByteTable>> {
        let Some(compiled) = slf.get().compiled() else { return Ok(None) };
        let Some(made) = compiled.made_rule(&DataOnly)? else { return Ok(None) };
        Ok(released(slf.py(), || made.table()))
    }

    /// The items of a text of a repetition; None of what is none, or no text of it.
    fn _items(slf: &Bound<'_, Self>, text: &str) -> Result<Option<Vec<String>>> {
        let Some(compiled) = slf.get().compiled() else { return Ok(None) };
        let Some(made) = compiled.made_rule(&DataOnly)? else { return Ok(None) };
        let items = made.items(text.as_bytes());
        Ok(items.map(|items| items.into_iter().filter_map(|item| text.get(item).map(str::to_owned)).collect()))
    }

    /// Some texts, drawn at random.
    ///
    /// Args:
    ///     count: the most texts.
    ///     seed: 0 to 2**32 - 1.
    ///
    /// Returns:
    ///     list[str], shorter ones first. Empty of a JsonSchema and of a Lark.
    ///
    /// Raises:
    ///     RuleError: bytes that are no text. What a rule of your own raises.
    ///     TypeError: the constraint is not a rule.
    ///
    /// Example:
    ///     >>> all(text in ("a", "b") for text in tokentrie.Regex("a|b").samples(5))
    ///     True
    #[pyo3(signature = (count, seed=0))]
    fn samples(slf: &Bound<'_, Self>, count: usize, seed: u32) -> Result<Vec<String>> {
        let any = Self::rule(slf)?;
        let texts = asked(slf.py(), Limits::default(), || any.samples(count, seed))?;
        heard(&*any)?;
        texts.into_iter().map(utf8).collect()
    }

    /// Reads the value of a text of the part with this name, if it is a form.
    fn _part_value<'py>(&self, name: &str, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        self.part_value(name, text)
    }

    /// Returns whether its values are texts of a rule.
    #[getter]
    fn _is_rule(&self) -> bool {
        self.is_rule()
    }

    /// str: the kind, as it is called in JSON.
    ///
    /// Raises OptionError for a rule of your own, which has none.
    #[getter]
    fn kind(&self) -> Result<&str> {
        Ok(self.data()?.original().kind())
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
    ///     >>> (tokentrie.rules.Date() + "!").to_json()
    ///     '{"then":[{"date":{}},"!"]}'
    fn to_json(&self) -> Result<String> {
        Ok(self.data()?.original().to_json()?)
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
        Ok(objects_of_json(py, self.to_json()?)?)
    }

    /// Returns whether a text is legal as a whole. Cost: O(bytes).
    ///
    /// Args:
    ///     text: str or bytes.
    ///
    /// Returns:
    ///     bool.
    ///
    /// Raises:
    ///     TypeError: it is neither, or the constraint is not a rule.
    ///     RuleError: a JsonSchema or a Lark is too complex to read this text on.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("[0-9]{2}").matches("42")
    ///     True
    fn matches(slf: &Bound<'_, Self>, text: &Bound<'_, PyAny>) -> Result<bool> {
        let (any, text) = (Self::rule(slf)?, text_bytes("text", text)?);
        let read = asked(slf.py(), Limits::NONE, || any.read(&text))?;
        heard(&*any)?;
        if let Read::Unread { at } = read {
            return Err(Class::Rule.error(format!("the rule is too complex to read on after byte {at} of the text")));
        }
        Ok(read == Read::Whole)
    }

    /// Reads the value of a text: an int, a float, a day, a time, the document of a JSON Schema; else the text.
    ///
    /// `Generated.value` and the values of a form are what it gives. Extend it where a rule of your own has a type.
    ///
    /// Args:
    ///     text: str, legal as a whole.
    ///
    /// Returns:
    ///     Any.
    ///
    /// Raises:
    ///     RuleError: the text is none of a rule that has a type.
    ///
    /// Example:
    ///     >>> (tokentrie.rules.Integer().parse("12"), tokentrie.Regex("[a-z]+").parse("word"))
    ///     (12, 'word')
    fn parse<'py>(slf: &Bound<'py, Self>, text: &Bound<'py, PyString>) -> Result<Bound<'py, PyAny>> {
        let Some(compiled) = slf.get().compiled() else { return Ok(text.clone().into_any()) };
        let value = value_of(&Data::Object(Object::Compiled(Arc::clone(compiled))), text)?;
        match value {
            Some(value) => Ok(value),
            None => Err(Class::Rule.error(format!("{} does not match {}", shown(text), slf.repr()?))),
        }
    }

    /// All texts of it, if there are few.
    ///
    /// Args:
    ///     limit: the most texts.
    ///
    /// Returns:
    ///     list[str], shorter ones first, those of equal length in the order of their bytes.
    ///
    /// Raises:
    ///     RuleError: there are more, or there is no end of them.
    ///     TypeError: the constraint is not a rule.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("yes|no?").texts()
    ///     ['n', 'no', 'yes']
    #[pyo3(signature = (limit=10_000))]
    fn texts(slf: &Bound<'_, Self>, limit: usize) -> Result<Vec<String>> {
        match Self::listed(slf, limit)? {
            Some(texts) => Ok(texts),
            None => Self::rule(slf).map(|_| Vec::new()),
        }
    }

    /// Looks for laws that a rule breaks: whether answers repeat, and whether every text can be completed.
    ///
    /// For rules of your own. States are looked at, shortest texts first, by all 256 bytes: O(256 · states) calls.
    ///
    /// Args:
    ///     states: the most states to look at.
    ///
    /// Returns:
    ///     bool: whether there are no more states, so that nothing was missed.
    ///
    /// Raises:
    ///     RuleError: a law is broken; it says which, and after which text.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("[a-z]{3}").check()
    ///     True
    #[pyo3(signature = (states=1000))]
    fn check(slf: &Bound<'_, Self>, states: usize) -> Result<bool> {
        let any = Self::rule(slf)?;
        let checked = asked(slf.py(), Limits::default().seconds(60.0).steps(u64::MAX), || any.check(states))?;
        heard(&*any)?;
        Ok(checked.map_err(|broken| Class::Rule.error(broken.to_string()))?.complete)
    }

    /// Returns the statistics of its mask cache for a vocabulary.
    ///
    /// Args:
    ///     vocab: Vocab.
    ///
    /// Returns:
    ///     RuleStats. All zeros where it was not used with that vocabulary.
    ///
    /// Example:
    ///     >>> tokentrie.Regex("[0-9]+").stats(tokentrie.Model().vocab)
    ///     RuleStats(masks=0, bytes=0, hits=0, misses=0)
    fn stats(slf: &Bound<'_, Self>, vocab: &Bound<'_, Vocab>) -> Result<Py<PyAny>> {
        let vocab = vocab.get().core();
        let stats: MaskStats = if let Some(compiled) = slf.get().compiled() {
            compiled.stats(vocab)
        } else {
            let mut over = locked(slf.py(), &slf.get().asked)?;
            let known = over.as_mut().and_then(|over| over.peek(&(Arc::as_ptr(vocab) as usize)));
            known.map(|over| over.spelled.stats()).unwrap_or_default()
        };
        let made = module(slf.py(), "tokentrie.rules")?.getattr("RuleStats")?;
        Ok(made.call1((stats.masks, stats.bytes, stats.hits, stats.misses))?.unbind())
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else { return false };
        match (slf.get().compiled(), other.get().compiled()) {
            (Some(one), Some(other)) => one == other,
            _ => slf.is(other),
        }
    }

    fn __hash__(slf: &Bound<'_, Self>) -> u64 {
        let mut hash = DefaultHasher::new();
        match slf.get().compiled() {
            Some(compiled) => compiled.hash(&mut hash),
            None => slf.as_ptr().hash(&mut hash),
        }
        hash.finish()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        const SHOWN: usize = 80;
        let Some(compiled) = slf.get().compiled() else { return Ok(format!("<{}>", slf.get_type().qualname()?)) };
        Ok(match compiled.original().to_json() {
            Ok(text) if text.chars().count() <= SHOWN => format!("<tokentrie.rules.Spec: {text}>"),
            Ok(text) => format!("<tokentrie.rules.Spec: {}…>", text.chars().take(SHOWN).collect::<String>()),
            Err(_) => format!("<tokentrie.rules.Spec: {}>", compiled.original().kind()),
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        let (py, class) = (slf.py(), slf.get_type());
        if let Some(compiled) = slf.get().compiled() {
            let text = compiled.spec().to_json()?;
            return Ok((class.getattr("_restore")?, (text,)).into_pyobject(py)?);
        }
        let restore = module(py, "copyreg")?.getattr("__newobj__")?;
        let state = slf.getattr("__dict__").unwrap_or_else(|_| py.None().into_bound(py));
        Ok((restore, (class,), state).into_pyobject(py)?)
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        added(other, slf.as_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // What somebody else holds too is not this object's to give up.
        let Ok(over) = self.asked.try_lock() else { return Ok(()) };
        for (_, over) in over.iter().flatten() {
            let unused = over.spelled.unused_copies();
            if unused == Some(over.user.holders() - 1) {
                over.user.traverse(&visit)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        if let Ok(mut over) = self.asked.try_lock() {
            *over = None;
        }
    }
}

impl Spec {
    /// # Errors
    /// What the host does not have.
    pub(crate) fn made(spec: Data, host: &dyn Host) -> Result<PyClassInitializer<Self>> {
        let compiled = OnceLock::from(Arc::new(CompiledSpec::new(spec, host)?));
        let constraint = Constraint { compiled, asked: Mutex::default() };
        Ok(PyClassInitializer::from(constraint).add_subclass(Self))
    }
}

#[pymethods]
impl Spec {
    /// Restores the constraint from `__reduce__`.
    #[staticmethod]
    fn _restore(py: Python<'_>, text: &str) -> Result<Py<Self>> {
        Ok(Py::new(py, Self::made(Data::from_json(text.as_bytes())?, &DataOnly)?)?)
    }

    /// Converts `response_format` of chat APIs to a constraint, with this white space; None for text.
    #[staticmethod]
    fn _of_response_format(given: &Bound<'_, PyAny>, whitespace: &str) -> Result<Option<Py<Self>>> {
        let value = messages::dict("response_format", given)?;
        let whitespace = format::whitespace(whitespace)?.into();
        let spec = response_format(&value, whitespace).map_err(Error::from)?;
        Ok(spec.map(|spec| Py::new(given.py(), Self::made(spec, &DataOnly)?)).transpose()?)
    }
}

impl Constraint {
    /// # Errors
    /// `OptionError` of a rule of a user's.
    fn data(&self) -> Result<&CompiledSpec> {
        let none = || Class::Option.error("a user's rule is an object of this program and cannot be written as JSON");
        self.compiled().map(|compiled| &**compiled).ok_or_else(none)
    }
}
