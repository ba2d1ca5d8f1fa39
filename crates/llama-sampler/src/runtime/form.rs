//! A form: literal text, slots with finite sets, and free text, filled in order.

use std::collections::HashSet;
use trie_core::{RulesError, Trie};

/// A piece of a form.
#[derive(Debug, Clone)]
pub enum Part {
    /// Text that stands there whatever the model says.
    Literal(String),
    /// One value of a set.
    Slot {
        /// What the value is called in [`Filled::values`](super::Filled::values).
        name: String,
        /// The set.
        values: SlotValues,
    },
    /// Text that the model writes freely.
    Text {
        /// What it is called in [`Filled::values`](super::Filled::values).
        name: String,
        /// Text that ends it, and is no part of it. It appears in the output only where the next literal begins with it.
        stop: String,
        /// The most tokens of it.
        max_tokens: usize,
        /// Characters that may not occur in it.
        exclude: Vec<char>,
    },
}

impl Part {
    /// Free text without characters that would need an escape inside the quotes that end it: where `stop` begins with a double
    /// quote, backslash and control characters.
    pub fn text(name: impl Into<String>, stop: impl Into<String>, max_tokens: usize) -> Self {
        let stop = stop.into();
        let exclude =
            if stop.starts_with('"') { ('\0'..'\u{20}').chain(['\\', '\u{7f}']).collect() } else { Vec::new() };
        Self::Text { name: name.into(), stop, max_tokens, exclude }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Slot { name, .. } | Self::Text { name, .. } => Some(name),
        }
    }
}

/// What may stand in a slot.
#[derive(Debug, Clone)]
pub enum SlotValues {
    /// Texts, tokenised together with what stands around them.
    Texts(Vec<String>),
    /// Token sequences, taken as they are.
    Tokens(Trie),
}

/// Why parts make no form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Nothing to fill in.
    #[error("a form needs at least one slot or text")]
    NothingToFill,
    /// Two parts of one name.
    #[error("two parts of the form have the name {name:?}")]
    RepeatedName {
        /// The name.
        name: String,
    },
    /// Free text side by side with free text: nothing tells where one ends.
    #[error("text {name:?} follows text {before:?} directly: put a literal between them")]
    TextAfterText {
        /// The second.
        name: String,
        /// The first.
        before: String,
    },
    /// A slot without values.
    #[error("slot {slot:?} has no values")]
    NoValues {
        /// The slot.
        slot: String,
    },
    /// A value that is there already.
    #[error("slot {slot:?}: value {row}, {value:?}, repeats value {first}")]
    RepeatedValue {
        /// The slot.
        slot: String,
        /// Its number.
        row: usize,
        /// The value.
        value: String,
        /// The number of the first.
        first: usize,
    },
    /// Free text that nothing ends, or of no length.
    #[error("text {name:?} needs a stop that is not empty and max_tokens of at least 1")]
    Endless {
        /// The text.
        name: String,
    },
    /// The vocabulary cannot spell a part.
    #[error("{what}: the vocabulary cannot spell {text:?}")]
    Unspellable {
        /// Which part.
        what: String,
        /// Its text.
        text: String,
    },
    /// An empty value with nothing around it.
    #[error("slot {slot:?}: value {value:?} has no token here: put a literal before or after the slot")]
    NoTokens {
        /// The slot.
        slot: String,
        /// The value.
        value: String,
    },
    /// Two values that the same tokens begin, and nothing tells apart.
    #[error("slot {slot:?}: {value:?} cannot be told from another value by the tokens around it")]
    Ambiguous {
        /// The slot.
        slot: String,
        /// The value.
        value: String,
    },
    /// What follows a slot depends on where its value ends, which one sequence must say.
    #[error(
        "slot {slot:?}: several sequences stand for one value; a slot takes texts, or a set with one sequence each"
    )]
    NotATree {
        /// The slot.
        slot: String,
    },
    /// A slot whose set begins inside a text that is not the one before it.
    #[error(
        "slot {slot:?} begins inside the text before it and spells {spelled:?} again (heal_bytes), but {text:?} stands there"
    )]
    NotHealed {
        /// The slot.
        slot: String,
        /// What every value begins with.
        spelled: String,
        /// What stands before it and after the slot or text before it.
        text: String,
    },
    /// A set of tokens for another vocabulary.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

/// Parts that were checked. Share it: it is immutable.
#[derive(Debug)]
pub struct Form {
    parts: Vec<Part>,
    pub(super) cache: super::slot_set::SetCache,
}

impl Form {
    /// Checks parts. Neighbouring literals become one, empty ones vanish.
    ///
    /// # Errors
    /// Nothing to fill, a repeated name or value, a slot without values, free text without end or beside free text.
    pub fn new(parts: impl IntoIterator<Item = Part>) -> Result<Self, FormError> {
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part) {
                (Some(Part::Literal(before)), Part::Literal(text)) => before.push_str(&text),
                (_, Part::Literal(text)) if text.is_empty() => {}
                (_, part) => joined.push(part),
            }
        }
        let mut names = HashSet::new();
        for name in joined.iter().filter_map(Part::name) {
            if !names.insert(name) {
                return Err(FormError::RepeatedName { name: name.to_owned() });
            }
        }
        if names.is_empty() {
            return Err(FormError::NothingToFill);
        }
        for part in &joined {
            check(part)?;
        }
        for pair in joined.windows(2) {
            if let [Part::Text { name: before, .. }, Part::Text { name, .. }] = pair {
                return Err(FormError::TextAfterText { name: name.clone(), before: before.clone() });
            }
        }
        Ok(Self { parts: joined, cache: super::slot_set::SetCache::default() })
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The set of tokens that the form begins with, if it begins with one: a prompt may be healed for it.
    pub fn begins_with(&self) -> Option<&Trie> {
        match self.parts.first() {
            Some(Part::Slot { values: SlotValues::Tokens(trie), .. }) => Some(trie),
            _ => None,
        }
    }

    /// The literal at this place; empty where another part stands, or none.
    pub(super) fn literal(&self, place: usize) -> &str {
        match self.parts.get(place) {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// The slot or text at this place, or after the literal there.
    pub(super) fn field(&self, place: usize) -> Option<&Part> {
        self.parts.get(place..)?.iter().find(|part| part.name().is_some())
    }
}

fn check(part: &Part) -> Result<(), FormError> {
    match part {
        Part::Slot { name, values: SlotValues::Tokens(trie) } if !trie.is_tree() => {
            Err(FormError::NotATree { slot: name.clone() })
        }
        Part::Slot { name, values: SlotValues::Texts(values) } => {
            if values.is_empty() {
                return Err(FormError::NoValues { slot: name.clone() });
            }
            let mut seen = std::collections::HashMap::new();
            for (row, value) in values.iter().enumerate() {
                if let Some(first) = seen.insert(value, row) {
                    return Err(FormError::RepeatedValue { slot: name.clone(), row, value: value.clone(), first });
                }
            }
            Ok(())
        }
        Part::Text { name, stop, max_tokens, .. } if stop.is_empty() || *max_tokens == 0 => {
            Err(FormError::Endless { name: name.clone() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str, values: &[&str]) -> Part {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        Part::Slot { name: name.to_owned(), values: SlotValues::Texts(values) }
    }

    fn refusal(parts: Vec<Part>) -> String {
        Form::new(parts).unwrap_err().to_string()
    }

    #[test]
    fn what_makes_no_form_is_named() {
        assert_eq!(refusal(vec![Part::Literal("x".into())]), "a form needs at least one slot or text");
        assert_eq!(refusal(vec![slot("a", &["1"]), slot("a", &["2"])]), "two parts of the form have the name \"a\"");
        assert_eq!(refusal(vec![slot("a", &[])]), "slot \"a\" has no values");
        assert_eq!(refusal(vec![slot("a", &["1", "2", "1"])]), "slot \"a\": value 2, \"1\", repeats value 0");
        assert!(refusal(vec![Part::text("a", "", 3)]).starts_with("text \"a\" needs a stop"));
        assert!(refusal(vec![Part::text("a", ".", 0)]).starts_with("text \"a\" needs a stop"));
        assert!(
            refusal(vec![Part::text("a", ".", 1), Part::text("b", ".", 1)]).contains("follows text \"a\" directly")
        );
    }

    #[test]
    fn literals_join() {
        let literal = |text: &str| Part::Literal(text.to_owned());
        let form = Form::new([literal("a"), literal(""), literal("b"), slot("x", &["1"]), literal("")]).unwrap();
        assert_eq!(form.parts().len(), 2);
        assert_eq!(form.literal(0), "ab");
        assert_eq!(form.literal(2), "");
        assert_eq!(form.field(0).and_then(Part::name), Some("x"));
    }
}
