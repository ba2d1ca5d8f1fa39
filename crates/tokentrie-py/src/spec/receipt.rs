//! Receipts of generations: asked for with a key or without, and checked without the model.

use crate::convert::gil::asked;
use crate::convert::ids::{shown, type_name};
use crate::convert::strings::{is_list, list};
use crate::errors::{Class, Error, Result};
use crate::rule::of_user::UserRule;
use crate::spec::payloads::Cache;
use crate::spec::{Around, as_object, built, data_of};
use crate::trie::payload::with_text;
use crate::vocab::Vocab;
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList};
use std::sync::Arc;
use tokentrie::call::{Receipt, ReceiptError};
use tokentrie::constraint::{Over, Spec};
use trie_core::work::Limits;
use trie_text::ValueSets;

/// Request of a receipt, and the key of its seal.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) receipt: bool,
    pub(crate) key: Option<Vec<u8>>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Wanted {
    type Error = Error;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        if let Ok(said) = given.cast::<PyBool>() {
            return Ok(Self { receipt: said.is_true(), key: None });
        }
        match given.cast::<PyBytes>() {
            Ok(key) if key.as_bytes().is_empty() => {
                Err(Class::Option.error("receipt is b\"\": a key has a byte at least"))
            }
            Ok(key) => Ok(Self { receipt: true, key: Some(key.as_bytes().to_vec()) }),
            Err(_) => {
                let message = format!("receipt must be a bool or the bytes of a key, not {}", type_name(&given));
                Err(PyTypeError::new_err(message).into())
            }
        }
    }
}

/// A constraint that can be read twice, to be built and to be known by: what is iterated over is read into a list.
pub(crate) fn read_once(constraint: Bound<'_, PyAny>) -> Result<Bound<'_, PyAny>> {
    if is_list(&constraint) { Ok(PyList::new(constraint.py(), list(&constraint)?)?.into_any()) } else { Ok(constraint) }
}

/// The constraint of a receipt as data, as far as it is that.
pub(crate) fn data(constraint: Option<&Bound<'_, PyAny>>) -> Option<Spec> {
    data_of("constraint", constraint?).ok()
}

/// # Errors
/// `TypeError` for anything but bytes.
pub(crate) fn key_of(key: Option<&Bound<'_, PyAny>>) -> Result<Option<Vec<u8>>> {
    let Some(key) = key else { return Ok(None) };
    let Ok(key) = key.cast::<PyBytes>() else {
        let message = format!("key must be bytes, not {} of type {}", shown(key), type_name(key));
        return Err(PyTypeError::new_err(message).into());
    };
    Ok(Some(key.as_bytes().to_vec()))
}

impl From<ReceiptError> for Error {
    fn from(error: ReceiptError) -> Self {
        Class::Receipt.error(error.to_string())
    }
}

/// The receipt of a dict or of JSON text.
///
/// # Errors
/// `ReceiptError` for anything that is not a receipt, `TypeError` for other types.
pub(crate) fn read_receipt(given: &Bound<'_, PyAny>) -> Result<Receipt> {
    with_text(given, |text| Ok(Receipt::from_json(text)?)).map_err(|error| match error {
        Error::Ours(Class::Payload, message) => {
            let message = message.strip_prefix("payload: ").unwrap_or(&message);
            Class::Receipt.error(format!("no receipt: {message}"))
        }
        other => other,
    })
}

/// Checks a receipt of `Model.generate(receipt=True)` without the model.
///
/// The constraint is walked again along the tokens: each must be allowed, among exactly what the receipt says could
/// come, and nothing of the receipt may be changed. Without a key everybody can seal a receipt of other shares; the
/// tokens and masks must be those of the constraint all the same. Cost: O(tokens * vocabulary).
///
/// Args:
///     receipt: the dict, or its JSON as str or bytes.
///     constraint: what the generation was inside, as it was given there; None for free text.
///     vocab: the model's vocabulary, such as `Model.vocab` or `Vocab.from_gguf`.
///     key: the key of the seal, where there was one.
///
/// Raises:
///     ReceiptError: it does not hold; the message says what, and where. Also a ValueError.
///     TypeError: it is not a dict, str or bytes.
///
/// Example:
///     >>> model = tokentrie.Model()
///     >>> out = model.generate("The sky is ", ["blue", "red"], receipt=b"my key")
///     >>> tokentrie.receipts.verify_receipt(out.receipt, ["blue", "red"], vocab=model.vocab, key=b"my key")
#[pyfunction]
#[pyo3(signature = (receipt, constraint=None, *, vocab, key=None))]
pub(crate) fn verify_receipt(
    receipt: &Bound<'_, PyAny>,
    constraint: Option<&Bound<'_, PyAny>>,
    vocab: &Bound<'_, Vocab>,
    key: Option<&Bound<'_, PyAny>>,
) -> Result<()> {
    let py = receipt.py();
    let key = key_of(key)?;
    let receipt = read_receipt(receipt)?;
    let vocab = vocab.get().core();
    let given = constraint.map(|given| read_once(as_object(given)?)).transpose()?;
    receipt.check_seal(data(given.as_ref()).as_ref(), vocab, key.as_deref())?;
    let around = Around { over: Over::vocab(vocab), sets: None, cache: Cache::Thread };
    let built = given.as_ref().map(|given| built("constraint", given, &around)).transpose()?;
    let sets = ValueSets::new(Arc::clone(vocab));
    let checked = asked(py, Limits::NONE, || receipt.check_steps(built, &sets))?;
    UserRule::raised()?;
    Ok(checked?)
}
