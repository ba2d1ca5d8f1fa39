//! Values and fields of JSON with their places. `null` counts as left out, as hosts write what they have not set.

use super::place::Place;
pub(crate) use super::reader::shown;
use crate::constraint::{SpecError, SpecProblem};
use serde_json::{Map, Value};
use std::sync::Arc;
use trie_core::TokenId;

type Result<T> = std::result::Result<T, SpecError>;

/// That a value is of another type than it must be.
pub(crate) fn wrong_type(place: &Place<'_>, expected: &'static str, value: &Value) -> SpecError {
    SpecError::new(place, SpecProblem::Type { expected: expected.to_owned(), given: shown(value) })
}

pub(crate) fn text<'v>(place: &Place<'_>, value: &'v Value) -> Result<&'v str> {
    value.as_str().ok_or_else(|| wrong_type(place, "a string", value))
}

#[cfg(feature = "llama")]
pub(crate) fn number(place: &Place<'_>, value: &Value) -> Result<f64> {
    value.as_f64().ok_or_else(|| wrong_type(place, "a number", value))
}

pub(crate) fn array<'v>(place: &Place<'_>, value: &'v Value) -> Result<&'v [Value]> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(place, "an array", value))
}

/// A field that is a text or an array of texts; nothing where it is left out.
pub(crate) fn texts(fields: &Fields<'_>, name: &'static str) -> Result<Vec<Arc<str>>> {
    let read = fields.read(name, |place, value| match value {
        Value::String(one) => Ok(vec![one.as_str().into()]),
        Value::Array(all) => {
            let each = all.iter().enumerate();
            each.map(|(number, value)| text(&place.item(number), value).map(Arc::from)).collect()
        }
        other => Err(wrong_type(place, "a text, or an array of texts", other)),
    });
    Ok(read?.unwrap_or_default())
}

pub(crate) fn token_ids(place: &Place<'_>, value: &Value) -> Result<Vec<TokenId>> {
    let id = |(index, id): (usize, &Value)| {
        let id_or_none = id.as_u64().and_then(|id| u32::try_from(id).ok()).and_then(TokenId::new);
        id_or_none.ok_or_else(|| wrong_type(&place.item(index), "a token id from 0 to 2147483647", id))
    };
    array(place, value)?.iter().enumerate().map(id).collect()
}

/// The fields of an object; its reader knows which there may be.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) place: &'a Place<'a>,
    fields: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// An object with no other fields than these.
    pub(crate) fn of(place: &'a Place<'a>, value: &'a Value, known: &[&str]) -> Result<Self> {
        let fields = value.as_object().ok_or_else(|| wrong_type(place, "an object", value))?;
        Self::over(place, fields, known)
    }

    pub(crate) fn over(place: &'a Place<'a>, fields: &'a Map<String, Value>, known: &[&str]) -> Result<Self> {
        if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
            let known = known.iter().map(|&name| name.to_owned()).collect();
            return Err(SpecError::new(&place.field(name), SpecProblem::Unknown { known, meant: None }));
        }
        Ok(Self { place, fields })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// A field, read.
    pub(crate) fn read<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Place<'_>, &'a Value) -> Result<T>,
    ) -> Result<Option<T>> {
        self.get(name).map(|value| read(&self.place.field(name), value)).transpose()
    }

    /// A field that must be there, read.
    pub(crate) fn need<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Place<'_>, &'a Value) -> Result<T>,
    ) -> Result<T> {
        self.read(name, read)?.ok_or_else(|| SpecError::new(self.place, SpecProblem::Missing { name }))
    }

    pub(crate) fn flag(&self, name: &'static str, otherwise: bool) -> Result<bool> {
        let flag =
            |place: &Place<'_>, value: &Value| value.as_bool().ok_or_else(|| wrong_type(place, "true or false", value));
        Ok(self.read(name, flag)?.unwrap_or(otherwise))
    }

    pub(crate) fn count(&self, name: &'static str) -> Result<Option<u32>> {
        self.read(name, |place, value| {
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
            count.ok_or_else(|| wrong_type(place, "an integer from 0 to 4294967295", value))
        })
    }
}
