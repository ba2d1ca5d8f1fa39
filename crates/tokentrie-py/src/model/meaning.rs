//! Value of the text of a generation or a row.

#[cfg(feature = "llama")]
use crate::convert::strings::is_list;
use crate::convert::value::Value;
use crate::errors::{Refused, Result};
use crate::exit::called;
use crate::rule::gate::ThinkGate;
use crate::rule::typed::Typed;
use crate::spec::object::{Constraint, Spec};
use crate::trie::leaf::fields_of;
#[cfg(feature = "llama")]
use llama_sampler::Finish;
use pyo3::prelude::*;

/// Value of a text.
pub(crate) enum Meaning {
    /// One value, if it was completed.
    Value(Option<Value>),
    /// Values of a form, by name.
    Form(Vec<(String, Value)>),
}

/// Output text before it is read as a value.
pub(crate) struct Written<'g> {
    /// The texts of a form that was filled, by name; `None` where none was.
    pub(crate) fields: Option<Vec<(String, &'g str)>>,
    /// The values that were completed, in order.
    pub(crate) leaves: &'g [trie_core::Leaf],
    /// The text of the value as a whole.
    pub(crate) text: Option<&'g str>,
}

/// Reads the value as the constraint does; also returns the first error in it.
pub(crate) fn meaning(
    py: Python<'_>,
    written: Written<'_>,
    given: Option<&Bound<'_, PyAny>>,
) -> Result<(Meaning, Option<Refused>)> {
    let mut refused = None;
    let after_thinking = given.and_then(gate_form);
    let fields = written.fields.or_else(|| {
        let fields = after_thinking.as_ref().map(|_| fields_of(written.leaves));
        fields.filter(|fields| !fields.is_empty())
    });
    if let (Some(fields), Some(given)) = (fields, given) {
        let form = after_thinking.unwrap_or_else(|| given.clone());
        let mut values = Vec::with_capacity(fields.len());
        for (name, text) in fields {
            let value = value_or_refused(py, text, part_value(&form, &name, text.to_owned()), &mut refused)?;
            values.push((name, value.unwrap_or_else(|| Value::from(&py.None().into_bound(py)))));
        }
        return Ok((Meaning::Form(values), refused));
    }
    let (name, reader) = (written.leaves.last().and_then(|leaf| leaf.name.clone()), given.and_then(value_reader));
    let of_leaf = name.as_deref().filter(|_| reader.as_ref().is_some_and(PyAnyMethods::is_instance_of::<Typed>));
    if let Some((text, rule)) = written.text.or(of_leaf).zip(reader) {
        let value = value_or_refused(py, text, Value::parsed(&rule, text.to_owned()), &mut refused)?;
        return Ok((Meaning::Value(value), refused));
    }
    Ok((Meaning::Value(name.map(Value::Text)), None))
}

/// Returns whether a constraint determines the type of the value, so that there must be one: a rule, a type, a list of
/// texts.
#[cfg(feature = "llama")]
pub(crate) fn promises_value(given: &Bound<'_, PyAny>) -> bool {
    if let Ok(spec) = given.cast::<Constraint>() {
        return spec.get().promises_value();
    }
    is_list(given) || value_reader(given).is_some_and(|_| gate_form(given).is_none())
}

/// Why a value was cut off; `None` where the caller ended the call.
#[cfg(feature = "llama")]
pub(crate) fn cut_off(generated: &llama_sampler::Generated, max_tokens: Option<u32>) -> Option<String> {
    let (tokens, thought) = (generated.tokens.len(), generated.stats.thinking_tokens);
    let only_thought = thought > 0 && generated.value_tokens == 0;
    let what =
        if only_thought { "the model was still thinking, and no value was begun" } else { "the value was cut off" };
    let then = match generated.finish {
        Finish::Cancelled | Finish::TimedOut => return None,
        Finish::MaxTokens => {
            let gate = if only_thought { ", or give the ThinkGate a budget below it" } else { "" };
            format!("raise max_tokens, which is {}{gate}", max_tokens.unwrap_or_default())
        }
        Finish::ContextFull => {
            "the context is full: shorten the prompt, bound the constraint, or give the Model a larger \
                                n_ctx"
                .to_owned()
        }
        other => format!("the output ended ({})", other.name()),
    };
    Some(format!("{what} after {tokens} tokens: {then}"))
}

/// Reads a text as a value; `None` if it is invalid, with the error kept.
///
/// # Errors
/// What else was raised.
pub(crate) fn value_or_refused(
    py: Python<'_>,
    text: &str,
    read: Result<Value>,
    refused: &mut Option<Refused>,
) -> Result<Option<Value>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let of_text = Refused::of(py, text, error)?;
            refused.get_or_insert(of_text);
            Ok(None)
        }
    }
}

/// The form after the gate that a constraint is.
fn gate_form<'py>(constraint: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let gate = constraint.cast::<ThinkGate>().ok()?;
    gate.get().then(gate.py()).filter(|then| then.cast::<Constraint>().is_ok_and(|then| then.get().is_form()))
}

/// Reads the text of a part, in a form of either kind.
///
/// # Errors
/// What the `parse` of its rule raises.
fn part_value(constraint: &Bound<'_, PyAny>, name: &str, text: String) -> Result<Value> {
    if !constraint.is_instance_of::<Constraint>() {
        return Ok(Value::Text(text));
    }
    let arguments = (name, text).into_pyobject(constraint.py())?;
    Ok(Value::from(&called(&constraint.getattr("_part_value")?, &arguments, None)?))
}

/// Returns the reader of a constraint's texts as values, if it has one: a method `parse`.
pub(crate) fn value_reader<'py>(constraint: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let gate = constraint.cast::<ThinkGate>().ok().and_then(|gate| gate.get().then(gate.py()));
    let given = gate.unwrap_or_else(|| constraint.clone());
    let reads = match given.cast::<Constraint>() {
        Ok(constraint) => given.is_instance_of::<Spec>() || constraint.get().has_value(),
        Err(_) => given.is_instance_of::<Typed>(),
    };
    reads.then_some(given)
}
