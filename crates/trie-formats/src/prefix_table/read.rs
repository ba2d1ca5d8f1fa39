//! The JSON of a table, read as a stream. Only ids are kept; fields may come in any order.

use super::problem::{PrefixTableError, SkippedWhy, shorten};
use super::rows::{Rows, id_of};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use std::borrow::Cow;
use std::fmt;
use trie_core::TokenId;

/// A table as it was written.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) start: TokenId,
    pub(super) end: TokenId,
    pub(super) sep: Box<str>,
    /// Rows of the dictionary that is used.
    pub(super) rows: Rows,
    pub(super) weighted: bool,
    /// Number of keys in the dictionary that is not used.
    pub(super) ignored_keys: usize,
}

const START: u32 = 225;
const END: u32 = 2;
const SEPARATOR: &str = "_";

pub(super) fn table<'de, R: serde_json::de::Read<'de>>(
    mut json: serde_json::Deserializer<R>,
) -> Result<Raw, PrefixTableError> {
    let raw = json.deserialize_any(TableVisitor).map_err(problem)?;
    json.end().map_err(problem)?;
    Ok(raw)
}

fn problem(error: serde_json::Error) -> PrefixTableError {
    if error.is_io() {
        return PrefixTableError::Read(error.into());
    }
    let (line, column, text) = (error.line(), error.column(), error.to_string());
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text).to_owned();
    PrefixTableError::Malformed { line, column, reason }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the field `prefix_dict`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let (mut start, mut end, mut sep, mut plain, mut weighted) = (None, None, None, None, None);
        while let Some(Text(field)) = map.next_key()? {
            match field.as_ref() {
                "start_token_id" => read_once(&mut start, "start_token_id", || map.next_value::<TokenId>())?,
                "end_token_id" => read_once(&mut end, "end_token_id", || map.next_value::<TokenId>())?,
                "sep" => read_once(&mut sep, "sep", || map.next_value::<Box<str>>())?,
                "prefix_dict" => read_once(&mut plain, "prefix_dict", || map.next_value_seed(Dictionary::new(false)))?,
                "prefix_weight_dict" => {
                    read_once(&mut weighted, "prefix_weight_dict", || map.next_value_seed(Dictionary::new(true)))?;
                }
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        let id = |id: Option<TokenId>, usual: u32| id.or(TokenId::new(usual)).unwrap_or_default();
        let weighted = weighted.filter(|rows: &Rows| rows.keys() > 0);
        let ignored_keys = weighted.as_ref().and(plain.as_ref()).map_or(0, Rows::keys);
        let is_weighted = weighted.is_some();
        Ok(Raw {
            start: id(start, START),
            end: id(end, END),
            sep: sep.unwrap_or_else(|| SEPARATOR.into()),
            rows: weighted.or(plain).ok_or_else(|| de::Error::missing_field("prefix_dict"))?,
            weighted: is_weighted,
            ignored_keys,
        })
    }
}

fn read_once<T, E: de::Error>(
    slot: &mut Option<T>,
    name: &'static str,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<(), E> {
    if slot.is_some() {
        return Err(E::duplicate_field(name));
    }
    *slot = Some(read()?);
    Ok(())
}

/// A text that is borrowed where it can be.
struct Text<'de>(Cow<'de, str>);

impl<'de> de::Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyText;
        impl<'de> Visitor<'de> for AnyText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(AnyText)
    }
}

/// One of `prefix_dict` and `prefix_weight_dict`.
struct Dictionary {
    rows: Rows,
    weighted: bool,
}

impl Dictionary {
    fn new(weighted: bool) -> Self {
        Self { rows: Rows::new(weighted), weighted }
    }
}

impl<'de> DeserializeSeed<'de> for Dictionary {
    type Value = Rows;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Rows, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Dictionary {
    type Value = Rows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of lists, whose keys are paths of token ids")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Rows, A::Error> {
        let (mut text, mut items) = (String::new(), Vec::new());
        while map.next_key_seed(KeyBuffer(&mut text))?.is_some() {
            let key = self.rows.begin(&text);
            items.clear();
            let list = List { key: &text, items: &mut items, rows: &mut self.rows, weighted: self.weighted };
            let read = map.next_value_seed(list)?;
            self.rows.end(key, &text, &mut items, read);
        }
        Ok(self.rows)
    }
}

/// A key, copied into a text that is used again.
struct KeyBuffer<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for KeyBuffer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyBuffer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.clear();
        self.0.push_str(text);
        Ok(())
    }
}

/// The list of a key. Gives how many entries it has.
struct List<'l> {
    key: &'l str,
    items: &'l mut Vec<(TokenId, f32)>,
    rows: &'l mut Rows,
    weighted: bool,
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.weighted { "texts \"token:weight\"" } else { "token ids" };
        write!(f, "a list of {what} for the key {:?}", shorten(self.key))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        let mut read = 0;
        loop {
            let item = if self.weighted {
                list.next_element_seed(WeightedEntry(self.key))?
            } else {
                list.next_element_seed(Plain(self.key))?
            };
            let Some(item) = item else { return Ok(read) };
            read += 1;
            match item {
                Ok(item) => self.items.push(item),
                Err(id) => self.rows.left_out.skip(SkippedWhy::BadId, || (self.key.to_owned(), Some(id))),
            }
        }
    }
}

/// A token, with its weight or 0; or an integer that is not a token id, as it was written.
type Item = Result<(TokenId, f32), String>;

/// An entry of `prefix_dict`.
struct Plain<'l>(&'l str);

/// An entry of `prefix_weight_dict`.
struct WeightedEntry<'l>(&'l str);

impl<'de> DeserializeSeed<'de> for Plain<'_> {
    type Value = Item;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Plain<'_> {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer in the list of the key {:?}", shorten(self.0))
    }

    fn visit_u64<E>(self, id: u64) -> Result<Item, E> {
        Ok(TokenId::try_from(id).map(|token| (token, 0.0)).map_err(|_| id.to_string()))
    }

    fn visit_i64<E>(self, id: i64) -> Result<Item, E> {
        Ok(TokenId::try_from(id).map(|token| (token, 0.0)).map_err(|_| id.to_string()))
    }

    fn visit_f64<E: de::Error>(self, id: f64) -> Result<Item, E> {
        // An integer of more than 64 bits comes as this.
        const BITS: f64 = 9_223_372_036_854_775_808.0;
        let is_integer = id.fract() == 0.0 && id.abs() >= BITS;
        if is_integer { Ok(Err(format!("{id:e}"))) } else { Err(E::invalid_type(Unexpected::Float(id), &self)) }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Item, E> {
        Err(E::invalid_type(Unexpected::Str(&shorten(text)), &self))
    }
}

impl<'de> DeserializeSeed<'de> for WeightedEntry<'_> {
    type Value = Item;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for WeightedEntry<'_> {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text \"token:weight\" with a finite number in the list of the key {:?}", shorten(self.0))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Item, E> {
        let wrong = || E::invalid_value(Unexpected::Str(&shorten(text)), &self);
        let (token, weight) = text.split_once(':').ok_or_else(wrong)?;
        let weight: f32 = weight.trim_ascii().parse().map_err(|_| wrong())?;
        let token = token.trim_ascii();
        let digits = token.strip_prefix('-').unwrap_or(token);
        if !weight.is_finite() || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        // One zero: there is no difference in what is added.
        Ok(id_of(token).map(|token| (token, weight + 0.0)).ok_or_else(|| shorten(token)))
    }
}
