//! Words and numbers among the keyword arguments that many calls share.

use crate::convert::ids::shown;
use crate::errors::{Class, Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// `"greedy"`/`0` or `"sampled"`/`1`.
#[derive(Clone, Copy)]
pub(crate) struct Mode(pub(crate) trie_core::Mode);

/// Either `"free"` or `"stop"`.
#[derive(Clone, Copy)]
pub(crate) struct After(pub(crate) trie_core::After);

/// Handling of a text that its class rejects: `"raise"` or `"none"`.
#[cfg(feature = "llama")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInvalid {
    Raise,
    None,
}

#[cfg(feature = "llama")]
impl<'a, 'py> FromPyObject<'a, 'py> for OnInvalid {
    type Error = Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        one_of("on_invalid", &obj, [("raise", Self::Raise), ("none", Self::None)])
    }
}

/// Either `"free"` or `"fixed"`.
#[cfg(feature = "llama")]
#[derive(Clone, Copy)]
pub(crate) struct Batching(pub(crate) tokentrie::engine::Batching);

#[cfg(feature = "llama")]
impl<'a, 'py> FromPyObject<'a, 'py> for Batching {
    type Error = Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        use tokentrie::engine::Batching::{Fixed, Free};
        one_of("batching", &obj, [("free", Free), ("fixed", Fixed)]).map(Self)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Mode {
    type Error = Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        let word = obj.cast::<PyString>().ok();
        let word = word.as_ref().and_then(|word| word.to_str().ok());
        // Only a value that is not a word is asked for a number: an error of Python's costs more than all else.
        match (word, if word.is_none() { obj.extract::<i64>().ok() } else { None }) {
            (Some("greedy"), _) | (None, Some(0)) => Ok(Self(trie_core::Mode::Greedy)),
            (Some("sampled"), _) | (None, Some(1)) => Ok(Self(trie_core::Mode::Sampled)),
            _ => Err(Class::Option
                .error(format!("mode is {}: it must be \"greedy\" or 0, or \"sampled\" or 1", shown(&obj)))),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for After {
    type Error = Error;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        one_of("after", &obj, [("free", trie_core::After::Free), ("stop", trie_core::After::Stop)]).map(Self)
    }
}

/// One of two words.
fn one_of<T: Copy>(name: &str, given: &Bound<'_, PyAny>, words: [(&str, T); 2]) -> Result<T> {
    let word = given.cast::<PyString>().ok();
    let word = word.as_ref().and_then(|word| word.to_str().ok());
    let found = words.into_iter().find(|(known, _)| word == Some(*known)).map(|(_, meaning)| meaning);
    found.ok_or_else(|| {
        let [(one, _), (other, _)] = words;
        Class::Option.error(format!("{name} is {}: it must be \"{one}\" or \"{other}\"", shown(given)))
    })
}

/// The numbers of a cache by their name.
#[cfg(feature = "llama")]
pub(crate) fn cache_type(word: &str) -> Result<llama_sampler::CacheType> {
    let all = llama_sampler::CacheType::ALL;
    all.into_iter().find(|known| known.name() == word).ok_or_else(|| {
        let names = all.map(|known| format!("{:?}", known.name())).join(", ");
        Class::Option.error(format!("unknown cache_type {word:?}: it may be {names}"))
    })
}

pub(crate) fn unsigned(name: &str, value: i64) -> Result<u32> {
    u32::try_from(value).map_err(|_| Class::Option.error(format!("{name} is {value}: it must be from 0 to 4294967295")))
}
