//! Values that serde has no form for, as modules for `#[serde(with = "…")]`.

use super::reader::{type_error, value_error};
use crate::constraint::SpecProblem;
#[cfg(feature = "llama")]
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
#[cfg(feature = "llama")]
use std::fmt;
use trie_core::TokenId;

/// Integers that every reader of JSON holds exactly.
pub(crate) const EXACT: i128 = (1 << 53) - 1;

/// Returns whether a value is the usual one, which is not written.
pub(crate) fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns whether a flag is up where that is usual.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(crate) fn is_true(flag: &bool) -> bool {
    *flag
}

pub(crate) fn yes() -> bool {
    true
}

pub(crate) fn no_text() -> std::sync::Arc<str> {
    "".into()
}

/// Reading of shared text.
pub(crate) mod text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(text: &impl AsRef<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text.as_ref())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<T, D::Error> {
        String::deserialize(from).map(T::from)
    }
}

/// Shared text that may be left out.
pub(crate) mod maybe_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(text: &Option<impl AsRef<str>>, to: S) -> Result<S::Ok, S::Error> {
        text.as_ref().map(AsRef::as_ref).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(T::from))
    }
}

/// A text, or an array of texts.
pub(crate) mod texts {
    use super::{Deserialize, Deserializer, Value, type_error};
    use crate::json::inner;
    use serde::{Serialize, Serializer};
    use std::sync::Arc;

    pub(crate) fn serialize<S: Serializer>(texts: &[Arc<str>], to: S) -> Result<S::Ok, S::Error> {
        match texts {
            [one] => to.serialize_str(one),
            several => several.iter().map(|text| &**text).collect::<Vec<&str>>().serialize(to),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Arc<str>>, D::Error> {
        match Value::deserialize(from)? {
            Value::String(one) => Ok(vec![one.into()]),
            all @ Value::Array(_) => Ok(inner::<Vec<String>, _>(&all)?.into_iter().map(Arc::from).collect()),
            other => Err(type_error("a text, or an array of texts", &other)),
        }
    }
}

/// A count of 32 bits, held as this machine counts.
pub(crate) mod count {
    use super::{Deserialize, Deserializer};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
        Ok(usize::try_from(u32::deserialize(from)?).unwrap_or(usize::MAX))
    }
}

/// The same where it may be left out.
pub(crate) mod maybe_count {
    use super::{Deserialize, Deserializer};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
        Ok(Option::<u32>::deserialize(from)?.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }
}

/// List of token ids.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Ids(#[serde(deserialize_with = "ids")] pub(crate) Vec<TokenId>);

/// Reads the token ids.
pub(crate) fn ids<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<TokenId>, D::Error> {
    struct Id(TokenId);

    impl<'de> Deserialize<'de> for Id {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let value = Value::deserialize(from)?;
            let id = value.as_u64().and_then(|id| u32::try_from(id).ok()).and_then(TokenId::new);
            id.map(Self).ok_or_else(|| type_error("a token id from 0 to 2147483647", &value))
        }
    }

    Ok(Vec::<Id>::deserialize(from)?.into_iter().map(|Id(id)| id).collect())
}

/// Reads token ids that may be left out.
pub(crate) fn maybe_ids<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<TokenId>>, D::Error> {
    Ok(Option::<Ids>::deserialize(from)?.map(|Ids(ids)| ids))
}

/// Reading of bytes in base64.
pub(crate) mod base64 {
    use super::{Deserialize, Deserializer, SpecProblem, value_error};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::Serializer;
    use std::sync::Arc;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(from)?);
        bytes.map(Arc::from).map_err(|error| value_error(SpecProblem::Value(format!("invalid base64: {error}"))))
    }
}

/// Reads a count of at least one that may be left out.
#[cfg(feature = "llama")]
pub(crate) fn from_one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    struct FromOne;

    impl Visitor<'_> for FromOne {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an integer from 1 to 4294967295")
        }

        fn visit_u64<E: Error>(self, count: u64) -> Result<u32, E> {
            match u32::try_from(count) {
                Ok(0) => Err(value_error(SpecProblem::Value(format!("it is 0: it must be from 1 to {}", u32::MAX)))),
                Ok(count) => Ok(count),
                Err(_) => Err(E::invalid_value(Unexpected::Unsigned(count), &self)),
            }
        }
    }

    from.deserialize_any(FromOne).map(Some)
}

/// Reads a probability that may be left out.
#[cfg(feature = "llama")]
pub(crate) fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(from)?;
    let share = value.as_f64().filter(|share| (0.0..=1.0).contains(share));
    share.map(Some).ok_or_else(|| type_error("a number from 0 to 1", &value))
}

/// Values by name, in the order in which they came.
#[cfg(feature = "llama")]
pub(crate) mod named {
    use super::{Deserialize, Deserializer};
    use serde::Serializer;
    use serde::de::{MapAccess, Visitor};
    use std::fmt;
    use std::marker::PhantomData;

    struct NamedVisitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
        type Value = Vec<(String, T)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(field) = fields.next_entry()? {
                all.push(field);
            }
            Ok(all)
        }
    }

    pub(crate) fn serialize<T: serde::Serialize, S: Serializer>(all: &[(String, T)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(all.iter().map(|(name, value)| (name, value)))
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(String, T)>, D::Error> {
        from.deserialize_map(NamedVisitor(PhantomData))
    }
}
