//! A form: literal text, slots with finite sets, and free text, filled in order.

mod constraint;
mod continuation;
mod crossing;
mod error;
mod filling;
mod free_text;
mod slot_rule;
mod slot_set;
mod state;
mod way_out;

pub use constraint::FormConstraint;
pub use continuation::Continuation;
pub use error::FormError;
pub use slot_set::{SlotSet, WrittenTokens};
pub use state::{FilledField, FormState, KeptTokens, LastToken};
pub use way_out::{RestOfForm, WayOut};

use lru::LruCache;
use slot_rule::SlotRule;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::{AnyConstraint, Constraint, Ending, Special, TokenId, Trie};
use trie_rules::{AnyRule, fit_behind};

/// The most slots side by side that may be empty.
const MOST_EMPTY: usize = 64;

/// A piece of a form.
#[derive(Debug, Clone)]
pub enum Part {
    /// Fixed text, whatever the model prefers.
    Literal(String),
    /// One value of a set.
    Slot {
        /// Key in the values of a filled form.
        name: String,
        /// Values of the slot.
        values: SlotValues,
    },
    /// Text that the model writes freely.
    Text {
        /// Key in the values of a filled form.
        name: String,
        /// Texts that end it and do not belong to it; the one that is written first counts. It appears in the output
        /// only if the next literal begins with it.
        stops: Vec<String>,
        /// Largest number of its tokens.
        max_tokens: usize,
        /// Characters that may not occur in it.
        exclude: Vec<char>,
        /// Pattern for the text as a whole, if any.
        pattern: Option<Arc<dyn AnyRule>>,
    },
    /// Text that the model writes until it ends its output, under a constraint that forbids some tokens.
    Held {
        /// Key in the values of a filled form.
        name: String,
        /// Constraint on the value.
        constraint: AnyConstraint,
        /// Largest number of its tokens.
        max_tokens: usize,
    },
}

impl Part {
    /// Free text up to one of several stops. If a stop begins with a double quote, characters that need an escape
    /// inside quotes (backslash and control characters) are excluded.
    pub fn text<S: Into<String>>(
        name: impl Into<String>,
        stops: impl IntoIterator<Item = S>,
        max_tokens: usize,
    ) -> Self {
        let stops: Vec<String> = stops.into_iter().map(Into::into).collect();
        let quotes = stops.iter().any(|stop| stop.starts_with('"'));
        let exclude = if quotes { ('\0'..'\u{20}').chain(['\\', '\u{7f}']).collect() } else { Vec::new() };
        Self::Text { name: name.into(), stops, max_tokens, exclude, pattern: None }
    }

    /// Returns the key of its value in a filled form; `None` for a literal.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Slot { name, .. } | Self::Text { name, .. } | Self::Held { name, .. } => Some(name),
        }
    }

    /// Returns whether its value may be empty, as far as is known without walking it.
    fn may_be_empty(&self) -> bool {
        match self {
            Self::Slot { values: SlotValues::Texts(values), .. } => values.iter().any(String::is_empty),
            Self::Slot { values: SlotValues::Tokens(values), .. } => values.ending(&values.start()) != Ending::No,
            Self::Slot { values: SlotValues::Rule(_), .. } => true,
            Self::Literal(_) | Self::Text { .. } | Self::Held { .. } => false,
        }
    }

    /// The constraint that the user gave for it.
    fn constraint(&self) -> Option<&AnyConstraint> {
        match self {
            Self::Slot { values: SlotValues::Tokens(constraint), .. } | Self::Held { constraint, .. } => {
                Some(constraint)
            }
            Self::Literal(_) | Self::Slot { .. } | Self::Text { .. } => None,
        }
    }
}

/// Values of a slot.
#[derive(Debug, Clone)]
pub enum SlotValues {
    /// Texts, tokenised together with the text around them.
    Texts(Vec<String>),
    /// Token sequences, taken as they are: a set, or another constraint whose values end.
    Tokens(AnyConstraint),
    /// Texts that a rule allows. Tokens may cross into the text around them.
    Rule(Arc<dyn AnyRule>),
}

impl From<Trie> for SlotValues {
    fn from(set: Trie) -> Self {
        Self::Tokens(set.into())
    }
}

/// Checked parts of a form. A form is immutable and caches its results for a vocabulary, so share it.
///
/// ```
/// use trie_text::{Form, Part, SlotValues};
///
/// let actions = SlotValues::Texts(vec!["REPLY".to_owned(), "STOP".to_owned()]);
/// let form = Form::new([
///     Part::Literal(r#"{"action": ""#.to_owned()),
///     Part::Slot { name: "action".to_owned(), values: actions },
///     Part::Literal(r#"", "reason": ""#.to_owned()),
///     Part::text("reason", [r#"""#], 32),
///     Part::Literal(r#""}"#.to_owned()),
/// ])?;
/// assert_eq!(form.parts().len(), 5);
/// # Ok::<(), trie_text::FormError>(())
/// ```
#[derive(Debug)]
pub struct Form {
    parts: Vec<Part>,
    cache: Cache,
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
        // All of them are asked for what may come, and each is made for it.
        let mut empty = 0;
        for part in &joined {
            empty = if part.may_be_empty() { empty + 1 } else { 0 };
            if empty > MOST_EMPTY {
                let name = part.name().unwrap_or_default().to_owned();
                return Err(FormError::TooManyEmpty { name, most: MOST_EMPTY });
            }
        }
        Ok(Self { parts: joined, cache: Cache::default() })
    }

    /// Returns the parts in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The token set at the start of the form, if it begins with one; token healing of a prompt uses it.
    pub fn begins_with(&self) -> Option<&Trie> {
        match self.parts.first() {
            Some(Part::Slot { values: SlotValues::Tokens(constraint), .. }) => constraint.first_set(),
            _ => None,
        }
    }

    /// The literal at part `index`; empty if another part or none is there.
    pub fn literal(&self, index: usize) -> &str {
        match self.parts.get(index) {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// The slot or text at part `index`, or at the part after it if it is a literal.
    fn field(&self, index: usize) -> Option<&Part> {
        self.parts.get(index..)?.iter().find(|part| part.name().is_some())
    }
}

fn check(part: &Part) -> Result<(), FormError> {
    match part {
        Part::Slot { name, values: SlotValues::Tokens(constraint) } => {
            if constraint.sets().iter().any(|set| !set.is_tree()) {
                return Err(FormError::NotATree { slot: name.clone() });
            }
            if constraint.never_ends() {
                return Err(FormError::NeverEnds { slot: name.clone() });
            }
            Ok(())
        }
        Part::Slot { name, values: SlotValues::Texts(values) } => {
            if values.is_empty() {
                return Err(FormError::NoValues { slot: name.clone() });
            }
            let mut seen = HashMap::new();
            for (row, value) in values.iter().enumerate() {
                if let Some(first) = seen.insert(value, row) {
                    return Err(FormError::RepeatedValue { slot: name.clone(), row, value: value.clone(), first });
                }
            }
            Ok(())
        }
        Part::Text { name, stops, max_tokens, .. } => {
            if stops.is_empty() || stops.iter().any(String::is_empty) || *max_tokens == 0 {
                return Err(FormError::Endless { name: name.clone() });
            }
            if let Some(stop) =
                stops.iter().enumerate().find_map(|(at, stop)| stops[..at].contains(stop).then_some(stop))
            {
                return Err(FormError::RepeatedStop { name: name.clone(), stop: stop.clone() });
            }
            // One that is long is looked for by its beginning.
            let all: Vec<&[u8]> = stops.iter().map(String::as_bytes).collect();
            if all.len() > 1 && !fit_behind(&all) {
                let bytes = all.iter().map(|stop| stop.len()).sum();
                return Err(FormError::StopsTooLong { name: name.clone(), stops: all.len(), bytes });
            }
            Ok(())
        }
        Part::Held { name, max_tokens: 0, .. } => Err(FormError::NoTokensLeft { name: name.clone() }),
        _ => Ok(()),
    }
}

/// Treatment of tokens that extend beyond a part of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overshoot {
    /// They are never allowed, so every token stays: for callers that cannot take a token back.
    #[default]
    Refused,
    /// They end the part, and [`FormState::written_count`](super::FormState::written_count) says how many tokens stay.
    /// So free text is written as the model would write it, and its stop need not appear in the text.
    TakenBack,
}

/// Selection of slots with rules whose texts are listed, so that they can be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Listing {
    /// No slot is listed; all are walked.
    #[default]
    Never,
    /// Slots with few texts.
    WhereFew,
    /// All slots are listed; a slot with too many texts is an error.
    Always,
}

/// Options for walking a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct FormOptions {
    /// Treatment of tokens that extend beyond a part.
    pub overshoot: Overshoot,
    /// Slots with rules that are listed.
    pub listed: Listing,
}

impl FormOptions {
    /// Sets [`FormOptions::overshoot`] of the options.
    #[must_use]
    pub fn with_overshoot(self, overshoot: Overshoot) -> Self {
        Self { overshoot, ..self }
    }

    /// Sets [`FormOptions::listed`] of the options.
    #[must_use]
    pub fn with_listed(self, listed: Listing) -> Self {
        Self { listed, ..self }
    }
}

/// Cached results for a vocabulary and a part: sets and rules by the text before the part, and tokens of free text.
#[derive(Debug, Default)]
struct Cache {
    sets: RecentEntries<(String, usize, WrittenTokens), SlotSet>,
    /// Cached rules, by the text before the part that is not written yet.
    rules: RecentEntries<(String, usize, Vec<u8>, FormOptions), SlotRule>,
    texts: RecentEntries<(String, usize), [TokenId]>,
}

/// The entries used last.
#[derive(Debug)]
struct RecentEntries<K: Hash + Eq, V: ?Sized>(Mutex<LruCache<K, Arc<V>>>);

impl<K: Hash + Eq, V: ?Sized> Default for RecentEntries<K, V> {
    fn default() -> Self {
        const ENTRIES: NonZeroUsize = NonZeroUsize::new(128).unwrap();
        Self(Mutex::new(LruCache::new(ENTRIES)))
    }
}

impl<K: Hash + Eq, V: ?Sized> RecentEntries<K, V> {
    /// Returns the cached value, or makes it now. No lock is held meanwhile, because making it may wait for other
    /// threads: two threads may make the same value once each.
    fn get_or_make<E>(&self, key: K, make: impl FnOnce(&K) -> Result<Arc<V>, E>) -> Result<Arc<V>, E> {
        if let Some(kept) = self.entries().get(&key) {
            return Ok(Arc::clone(kept));
        }
        let value = make(&key)?;
        self.entries().put(key, Arc::clone(&value));
        Ok(value)
    }

    /// Only whole entries are behind this lock, which no panic can leave half changed.
    fn entries(&self) -> MutexGuard<'_, LruCache<K, Arc<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trie_core::Sequence;

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
        assert!(refusal(vec![Part::text("a", [""], 3)]).starts_with("text \"a\" needs a stop"));
        assert!(refusal(vec![Part::text("a", ["."], 0)]).starts_with("text \"a\" needs a stop"));
        let none: [&str; 0] = [];
        assert!(refusal(vec![Part::text("a", none, 3)]).starts_with("text \"a\" needs a stop"));
        assert!(refusal(vec![Part::text("a", [".", ""], 3)]).starts_with("text \"a\" needs a stop"));
        assert_eq!(refusal(vec![Part::text("a", [".", "!", "."], 3)]), "text \"a\": the stop \".\" comes twice");
        let long = refusal(vec![Part::text("a", ["x".repeat(100), "y".repeat(30)], 3)]);
        assert_eq!(long, "text \"a\": its 2 stops have 130 bytes: several may have 126 together");
        assert!(
            refusal(vec![Part::text("a", ["."], 1), Part::text("b", ["."], 1)]).contains("follows text \"a\" directly")
        );
        let mut builder = Trie::builder();
        builder.push(Some("x"), &[trie_core::TokenId::default()]);
        let (any, set) = (AnyConstraint::new(trie_core::Unconstrained), builder.build().unwrap());
        let sequence = AnyConstraint::new(Sequence::new([set.into(), any.clone()]).unwrap());
        for values in [any, sequence] {
            let free = Part::Slot { name: "a".into(), values: SlotValues::Tokens(values) };
            let expected = "slot \"a\": its values never end, because anything may come; free text with a stop does";
            assert_eq!(refusal(vec![free]), expected);
        }
        let constraint = AnyConstraint::new(trie_core::Unconstrained);
        let held = |max_tokens| Part::Held { name: "a".into(), constraint: constraint.clone(), max_tokens };
        assert_eq!(refusal(vec![held(0)]), "text \"a\" needs max_tokens of at least 1");
        assert_eq!(refusal(vec![held(1), held(1)]), "two parts of the form have the name \"a\"");
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
