//! The tokens of a slot's values where they stand: together with the text before and after them.
//!
//! A text is cut into tokens as a whole, so a value in its middle need not begin or end where a token does. Therefore
//! each value is tokenized together with the literals around it. Text before the value that is not written yet belongs
//! to the set; it is forced, unless a token crosses its end. A token that crosses the end of the value belongs to the
//! value.

use super::continuation::Continuation;
use super::{Form, FormError, Part, SlotValues};
use crate::values::ValueSet;
use crate::vocab::Vocab;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use trie_core::{AnyConstraint, Constraint, NotListed, Scratch, Sequence, SpanRules, Special, TokenId, Trie};
use trie_rules::{AnyRule, MaskLimits};

/// The most texts of a rule that are scored as a whole.
const MOST_TEXTS: usize = 1 << 16;

/// A slot, ready to be walked after the written text.
#[derive(Debug)]
#[non_exhaustive]
pub struct SlotSet {
    /// Tokens before the values.
    pub lead: Vec<TokenId>,
    /// The values, and the tokens that may end them.
    pub rules: Arc<SpanRules>,
    /// For each leaf, the index of its value; empty if the values are not a set.
    pub order: Vec<usize>,
    slot: String,
    listed: OnceLock<Result<Trie, NotListed>>,
    /// The sequences that are scored for the values.
    pub(super) continuation: OnceLock<Result<Continuation, FormError>>,
}

impl SlotSet {
    /// Largest number of values that are listed for scoring.
    pub const MOST_LISTED: usize = 1 << 20;

    /// Returns the constraint that is walked.
    pub(super) fn constraint(&self) -> &AnyConstraint {
        &self.rules.constraints()[0].1
    }

    /// The set that is walked, where the values are one.
    pub fn trie(&self) -> Option<&Trie> {
        self.constraint().as_trie()
    }

    /// The values as one set. The values of another constraint are listed on the first call.
    ///
    /// # Errors
    /// [`FormError::NotListed`] for more than [`SlotSet::MOST_LISTED`].
    pub fn values(&self) -> Result<&Trie, FormError> {
        let list = || self.constraint().to_trie(Self::MOST_LISTED);
        let listed = match self.trie() {
            Some(trie) => return Ok(trie),
            None => self.listed.get_or_init(list),
        };
        listed.as_ref().map_err(|&error| FormError::NotListed { slot: self.slot.clone(), error })
    }

    /// Returns the entries of `by_leaf`, one for each leaf of [`SlotSet::values`], by the names of their values, in
    /// the order of the values.
    ///
    /// # Errors
    /// As [`SlotSet::values`].
    pub fn by_name(&self, by_leaf: &[f64]) -> Result<Vec<(String, f64)>, FormError> {
        let order = (!self.order.is_empty()).then(|| self.order.as_slice().into());
        Ok(ValueSet { trie: self.values()?.clone(), order }.by_name(by_leaf))
    }
}

/// Written tokens of a form, and the text that must follow them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WrittenTokens {
    /// The text up to the slot: its written part and the rest that is not written yet.
    pub text: String,
    /// Bytes at its end that are not written yet.
    pub rest: usize,
    /// Tokens that are written.
    pub tokens: Vec<TokenId>,
}

impl WrittenTokens {
    /// The bytes that are not written yet.
    pub(super) fn rest_bytes(&self) -> &[u8] {
        &self.text.as_bytes()[self.text.len().saturating_sub(self.rest)..]
    }

    /// Returns the text that is not written yet; `None` if the last token ends inside a character.
    fn remaining_text(&self) -> Option<&str> {
        self.text.get(self.text.len().checked_sub(self.rest)?..)
    }

    /// The tokens that continue from here through the text `more`: those of the whole text if it begins with the
    /// written tokens, otherwise those of the rest alone.
    pub(super) fn go_on(&self, vocab: &Vocab, more: &str) -> Option<Vec<TokenId>> {
        if !self.tokens.is_empty() {
            let whole = vocab.tokenize_inside(&format!("{}{more}", self.text));
            if let Some(tokens) = whole.as_deref().and_then(|whole| whole.strip_prefix(self.tokens.as_slice())) {
                return Some(tokens.to_vec());
            }
        }
        // The last token may end inside a character: its other bytes are tokens of their own.
        let from = self.text.len().checked_sub(self.rest)?;
        let whole = (from..=self.text.len()).find(|&at| self.text.is_char_boundary(at))?;
        let mut tokens: Vec<TokenId> =
            self.text.as_bytes()[from..whole].iter().map(|&byte| byte_token(vocab, byte)).collect::<Option<_>>()?;
        tokens.extend(vocab.tokenize_inside(&format!("{}{more}", &self.text[whole..]))?);
        Some(tokens)
    }

    /// The tokens of the rest.
    ///
    /// # Errors
    /// [`FormError::Unspellable`].
    pub fn rest_tokens(&self, vocab: &Vocab) -> Result<Vec<TokenId>, FormError> {
        let unspellable = || FormError::Unspellable { what: "literal".to_owned(), text: self.text.clone() };
        if self.rest == 0 { Ok(Vec::new()) } else { self.go_on(vocab, "").ok_or_else(unspellable) }
    }

    /// Keeps the rest alone, if the text before it does not matter.
    pub(super) fn keep_remaining(&self) -> Option<Self> {
        Some(Self { text: self.remaining_text()?.to_owned(), rest: self.rest, tokens: Vec::new() })
    }
}

/// The token that is this byte.
fn byte_token(vocab: &Vocab, byte: u8) -> Option<TokenId> {
    let mut tokens = vocab.tokens_with_prefix(&[byte]).into_iter();
    tokens.find(|&token| vocab.is_text(token) && vocab.piece(token) == Some(&[byte]))
}

impl Form {
    /// The set of the slot at part `index`, after the written text.
    ///
    /// ```
    /// # use trie_core::TokenId;
    /// # use trie_text::{TokenKind, Tokenizer, TokenizerError};
    /// use trie_text::{Form, Part, SlotValues, Vocab, WrittenTokens};
    /// # #[derive(Debug)]
    /// # struct Bytes;
    /// # impl Tokenizer for Bytes {
    /// #     fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
    /// #         Ok(text.bytes().filter_map(|byte| TokenId::new(byte.into())).collect())
    /// #     }
    /// # }
    /// # let bytes = (0..=255u8).map(|byte| ([byte], TokenKind::Text));
    /// # let vocab = std::sync::Arc::new(Vocab::new(bytes, vec![], Some(std::sync::Arc::new(Bytes)))?);
    ///
    /// let values = SlotValues::Texts(vec!["yes".to_owned(), "no".to_owned()]);
    /// let slot = Part::Slot { name: "answer".to_owned(), values };
    /// let form = Form::new([Part::Literal("A: ".to_owned()), slot, Part::Literal(".".to_owned())])?;
    /// // Nothing is written yet, so that the literal belongs to the set.
    /// let written = WrittenTokens { text: "A: ".to_owned(), rest: 3, tokens: vec![] };
    /// let set = form.set(1, &written, &vocab)?;
    /// assert_eq!(vocab.join(&set.values()?.leaves().next().unwrap().tokens)?, b"A: no");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A part that is not a slot, or values that the vocabulary cannot spell or distinguish.
    pub fn set(&self, index: usize, written: &WrittenTokens, vocab: &Arc<Vocab>) -> Result<Arc<SlotSet>, FormError> {
        let Some(Part::Slot { name, values }) = self.parts().get(index) else {
            return Err(FormError::NoSlot { index });
        };
        let slot = SlotHere { name, vocab, literal: self.literal(index + 1), next: self.next(index) };
        let key = |before: WrittenTokens| (vocab.fingerprint().to_owned(), index, before);
        // Known under both names: the next time after the same text, nothing has to be probed.
        self.cache.sets.get_or_make(key(written.clone()), |_| {
            let alone = match values {
                SlotValues::Texts(values) => slot.independent(written, &values[0]),
                SlotValues::Tokens(_) | SlotValues::Rule(_) => written.keep_remaining(),
            };
            let shared = key(alone.unwrap_or_else(|| written.clone()));
            self.cache.sets.get_or_make(shared, |(_, _, before)| match values {
                SlotValues::Texts(values) => Ok(Arc::new(slot.of_texts(before, values)?)),
                SlotValues::Tokens(values) => Ok(Arc::new(slot.of_tokens(before, values)?)),
                SlotValues::Rule(rule) => Ok(Arc::new(slot.of_texts(before, &slot.texts(&**rule)?)?)),
            })
        })
    }

    /// The tokens that the free text at part `index` may consist of, ascending: tokens without an excluded character
    /// before a stop, and tokens that end the output. Empty for other parts.
    pub fn text_tokens(&self, index: usize, vocab: &Vocab) -> Arc<[TokenId]> {
        let Some(Part::Text { stops, exclude, .. }) = self.parts().get(index) else { return Arc::default() };
        let fits = |token: &TokenId| {
            if vocab.control().binary_search(token).is_ok() || vocab.is_end_of_generation(*token) {
                return vocab.is_end_of_generation(*token);
            }
            let text = String::from_utf8_lossy(vocab.piece(*token).unwrap_or_default()).into_owned();
            let first = stops.iter().filter_map(|stop| text.find(stop.as_str()).map(|at| (at + stop.len(), at))).min();
            let text = &text[..first.map_or(text.len(), |(_, begin)| begin)];
            !text.contains(exclude.as_slice())
        };
        let tokens = || (0..vocab.len() as u32).filter_map(TokenId::new).filter(fits).collect();
        let key = (vocab.fingerprint().to_owned(), index);
        let Ok(tokens) = self.cache.texts.get_or_make(key, |_| Ok::<_, Infallible>(tokens()));
        tokens
    }

    pub(super) fn next(&self, index: usize) -> Next<'_> {
        match self.field(index + 1) {
            Some(Part::Slot { values, .. }) => Next::Slot(values),
            Some(_) => Next::Text,
            None => Next::End,
        }
    }
}

/// Part after a slot and the literal behind it.
pub(super) enum Next<'f> {
    Slot(&'f SlotValues),
    Text,
    End,
}

/// A slot and the part after it.
pub(super) struct SlotHere<'f> {
    pub(super) name: &'f str,
    pub(super) vocab: &'f Arc<Vocab>,
    pub(super) literal: &'f str,
    pub(super) next: Next<'f>,
}

impl SlotHere<'_> {
    fn unspellable(&self, value: &str) -> FormError {
        FormError::Unspellable { what: format!("slot {:?}", self.name), text: value.to_owned() }
    }

    /// The rest alone, if the rest and a value have the same tokens without the written text before them.
    fn independent(&self, written: &WrittenTokens, value: &str) -> Option<WrittenTokens> {
        let more = format!("{value}{}", self.literal);
        let alone = written.keep_remaining().filter(|alone| alone.rest > 0)?;
        (written.go_on(self.vocab, &more) == alone.go_on(self.vocab, &more)).then_some(alone)
    }

    /// The texts of a rule, where they are few.
    fn texts(&self, rule: &dyn AnyRule) -> Result<Vec<String>, FormError> {
        let refused = |error| FormError::NotListed { slot: self.name.to_owned(), error };
        let texts = rule.texts(MOST_TEXTS).map_err(|error| refused(error.into()))?;
        texts.into_iter().map(|text| String::from_utf8(text).map_err(|_| refused(NotListed::Endless))).collect()
    }

    fn of_texts(&self, before: &WrittenTokens, values: &[String]) -> Result<SlotSet, FormError> {
        let mut builder = Trie::builder();
        let mut spelled: Vec<(Vec<TokenId>, usize)> = Vec::with_capacity(values.len());
        for value in values {
            let tokens = before.go_on(self.vocab, &format!("{value}{}", self.literal));
            let tokens = tokens.ok_or_else(|| self.unspellable(value))?;
            // An empty value after an empty literal is known by what follows it.
            let own = self.vocab.tokens_over(&tokens, before.rest + value.len()).max(1);
            if tokens.is_empty() {
                return Err(FormError::NoTokens { slot: self.name.to_owned(), value: value.clone() });
            }
            builder.push(Some(value), &tokens[..own]);
            spelled.push((tokens, own));
        }
        let ambiguous = |row: usize| FormError::Ambiguous { slot: self.name.to_owned(), value: values[row].clone() };
        let trie = builder.build().map_err(|_| FormError::NoValues { slot: self.name.to_owned() })?;
        let order: Vec<usize> = trie.leaves().filter_map(|leaf| trie.input_row(leaf.index)).collect();
        if order.len() < values.len() {
            let row = (0..values.len()).find(|row| !order.contains(row)).unwrap_or(0);
            return Err(ambiguous(row));
        }

        // A value that others go on from ends where a token of what follows comes.
        let mut ends: Vec<TokenId> = Vec::new();
        let mut inner: Vec<usize> = Vec::new();
        for (row, (tokens, own)) in spelled.iter().enumerate() {
            if trie.walk(&tokens[..*own]).is_ok_and(|at| !trie.children(at).is_empty()) {
                inner.push(row);
                self.ends_after(before, &values[row], tokens, *own, &mut ends);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        for row in inner {
            let (tokens, own) = &spelled[row];
            let children = trie.walk(&tokens[..*own]).map(|at| trie.children(at)).unwrap_or_default();
            if !ends.is_empty() && ends.iter().all(|end| children.binary_search(end).is_ok()) {
                return Err(ambiguous(row));
            }
        }
        self.finish(Vec::new(), trie.into(), ends, order)
    }

    /// The tokens that may follow this value.
    pub(super) fn ends_after(
        &self,
        before: &WrittenTokens,
        value: &str,
        tokens: &[TokenId],
        own: usize,
        ends: &mut Vec<TokenId>,
    ) {
        let after = &tokens[own..];
        match (&self.next, after.first()) {
            // The last token of a literal may be another one where a value follows.
            (Next::Slot(SlotValues::Texts(next)), first) if after.len() < 2 => {
                ends.extend(first);
                for more in next {
                    let text = format!("{value}{}{more}", self.literal);
                    let whole = before.go_on(self.vocab, &text).unwrap_or_default();
                    ends.extend(whole.strip_prefix(&tokens[..own]).and_then(<[TokenId]>::first));
                }
            }
            (Next::Slot(SlotValues::Tokens(next)), None) => {
                ends.extend(next.next(&next.start(), &mut Scratch::default()).tokens.iter());
            }
            (Next::Slot(SlotValues::Rule(next)), None) => {
                let next = next.compile_for(self.vocab.spelling(), MaskLimits::default()).map(|next| next.constraint());
                let Ok(next) = next else { return };
                ends.extend(next.next(&next.start(), &mut Scratch::default()).tokens.iter());
            }
            (Next::End, None) => ends.extend(self.vocab.end_of_generation()),
            (_, first) => ends.extend(first),
        }
    }

    /// The tokens between the written text and these values.
    fn lead(&self, before: &WrittenTokens, values: &AnyConstraint) -> Result<Vec<TokenId>, FormError> {
        let rest = before.rest_tokens(self.vocab)?;
        let Some(healed) = values.first_set().filter(|set| set.heal_bytes() > 0) else { return Ok(rest) };
        let spelled = self.vocab.healed_bytes(healed).unwrap_or_default();
        if let Some(lead) = self.vocab.strip(&rest, &spelled) {
            return Ok(lead.to_vec());
        }
        // A token of the literal crosses that position: the text up to there alone.
        let shorter = before.remaining_text().and_then(|rest| rest.strip_suffix(std::str::from_utf8(&spelled).ok()?));
        let lead = shorter.and_then(|shorter| {
            let text = before.text[..before.text.len() - spelled.len()].to_owned();
            WrittenTokens { text, rest: shorter.len(), tokens: before.tokens.clone() }.go_on(self.vocab, "")
        });
        lead.ok_or_else(|| FormError::NotHealed {
            slot: self.name.to_owned(),
            spelled: String::from_utf8_lossy(&spelled).into_owned(),
            text: before.remaining_text().unwrap_or_default().to_owned(),
        })
    }

    fn of_tokens(&self, before: &WrittenTokens, values: &AnyConstraint) -> Result<SlotSet, FormError> {
        let lead = self.lead(before, values)?;
        let mut ends = Vec::new();
        if may_go_on(values) {
            let after = self.vocab.tokenize_inside(self.literal).ok_or_else(|| self.unspellable(self.literal))?;
            let nothing = WrittenTokens { text: String::new(), rest: 0, tokens: Vec::new() };
            self.ends_after(&nothing, "", &after, 0, &mut ends);
        }
        let order = values.as_trie().map_or_else(Vec::new, |trie| (0..trie.len()).collect());
        self.finish(lead, partial_values(values), ends, order)
    }

    fn finish(
        &self,
        lead: Vec<TokenId>,
        values: AnyConstraint,
        ends: Vec<TokenId>,
        order: Vec<usize>,
    ) -> Result<SlotSet, FormError> {
        let rules = SpanRules::for_constraint(values, self.vocab.len())?.with_end_tokens(ends)?;
        let (rules, slot) = (Arc::new(rules), self.name.to_owned());
        Ok(SlotSet { lead, rules, order, slot, listed: OnceLock::new(), continuation: OnceLock::new() })
    }
}

/// Returns whether a value may end at a position that longer ones continue.
fn may_go_on(values: &AnyConstraint) -> bool {
    if let Some(last) = values.downcast_ref::<Sequence>().and_then(|sequence| sequence.parts().last()) {
        return may_go_on(last);
    }
    let goes_on =
        |trie: &Trie| trie.leaves().any(|leaf| trie.walk(&leaf.tokens).is_ok_and(|at| !trie.children(at).is_empty()));
    values.as_trie().is_none_or(goes_on)
}

/// The same values without healing, because the bytes that they spell again are already taken off the text before.
fn partial_values(values: &AnyConstraint) -> AnyConstraint {
    if let Some(trie) = values.as_trie() {
        return trie.clone().with_heal_bytes(0).into();
    }
    let parts = values.downcast_ref::<Sequence>().map(|sequence| sequence.parts().iter());
    let begun = parts.and_then(|mut parts| {
        let first = parts.next().map(partial_values);
        Sequence::new(first.into_iter().chain(parts.cloned())).ok()
    });
    begun.map_or_else(|| values.clone(), AnyConstraint::new)
}
