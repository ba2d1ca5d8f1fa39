//! A position in a form, as a value.

use super::free_text::FreeText;
use super::slot_rule::SlotRule;
use super::slot_set::{SlotSet, WrittenTokens};
use std::sync::Arc;
use trie_core::{AnyState, Leaf, LeafId, Problem, SpanRules, SpanState, TokenId};

/// A slot or text of a form, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilledField {
    /// Its name in the form.
    pub name: String,
    /// The chosen value, by its name if it has one, or the written text.
    pub value: String,
    /// The number of the value; `None` for text, or if the values are not a set.
    pub index: Option<usize>,
    /// Written tokens of the field, including text around it in the same tokens.
    pub tokens: Vec<TokenId>,
}

impl FilledField {
    /// The field as the value of a constraint; its number is 0 if it has none.
    pub fn leaf(&self) -> Leaf {
        Leaf {
            index: LeafId::new(self.index.unwrap_or_default() as u32),
            name: Some(self.value.clone()),
            tokens: self.tokens.clone(),
            field: Some(self.name.clone()),
        }
    }
}

/// State of a walk through a [`FormConstraint`](super::FormConstraint). A clone copies the tokens of one part.
#[derive(Debug, Clone)]
pub struct FormState {
    pub(super) filled: Option<Arc<FilledFields>>,
    /// Everything before the part's own tokens.
    pub(super) before: Arc<WrittenTokens>,
    /// The part's own tokens.
    pub(super) tokens: Vec<TokenId>,
    pub(super) part: usize,
    pub(super) at: PartPosition,
    pub(super) last: LastToken,
}

/// The filled fields, the last one first. There may be very many, so no code recurses over them.
#[derive(Debug)]
pub(super) struct FilledFields {
    pub(super) field: FilledField,
    pub(super) before: Option<Arc<FilledFields>>,
}

/// Position in a part.
#[derive(Debug, Clone)]
pub(super) enum PartPosition {
    /// Forced tokens before the part, and the position after them.
    Lead(Arc<[TokenId]>, Arc<PartPosition>),
    Set(Arc<SlotSet>, AnyState),
    Rule {
        rule: Arc<SlotRule>,
        at: AnyState,
        /// Number of tokens at which the value was last complete.
        whole: Option<usize>,
    },
    /// Free text, and the tokens that it may consist of.
    Free(FreeText, Arc<[TokenId]>),
    Held(Arc<SpanRules>, SpanState<AnyState>),
    Over,
    /// No token is allowed: the vocabulary cannot spell the next text.
    Failed(Problem),
}

/// Outcome of the last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastToken {
    /// It was written into the part that it was chosen for. It may be taken back when the part ends.
    #[default]
    Written,
    /// It ended a value that could have continued, and is not written: it may belong to the next part.
    Ended,
    /// It ended the part, and is not part of the text.
    Dropped,
}

/// Tokens of a walk that were not taken back.
#[derive(Debug, Clone, Default)]
pub struct KeptTokens {
    took: usize,
    kept: Vec<usize>,
}

impl KeptTokens {
    /// Records a token that led to this state.
    pub fn accept(&mut self, state: &FormState) {
        if state.last_token() == LastToken::Written {
            self.kept.push(self.took);
        }
        self.kept.truncate(state.written_count());
        self.took += 1;
    }

    /// Returns whether the token with this number stays, as far as the walk has come. `O(log tokens)`.
    pub fn contains(&self, token: usize) -> bool {
        self.kept.binary_search(&token).is_ok()
    }
}

impl PartialEq for FormState {
    /// The position follows from the written tokens.
    fn eq(&self, other: &Self) -> bool {
        let kind = |state: &Self| std::mem::discriminant(&state.at);
        (self.part, &self.tokens, &self.before, kind(self)) == (other.part, &other.tokens, &other.before, kind(other))
            && self.fields() == other.fields()
    }
}

impl FormState {
    /// The fields that are filled, in order.
    pub fn fields(&self) -> Vec<&FilledField> {
        let mut fields: Vec<_> = self.last_first().map(|filled| &filled.field).collect();
        fields.reverse();
        fields
    }

    fn last_first(&self) -> impl Iterator<Item = &FilledFields> {
        std::iter::successors(self.filled.as_deref(), |filled| filled.before.as_deref())
    }

    /// Returns the number of filled fields.
    pub fn filled_count(&self) -> usize {
        self.last_first().count()
    }

    /// Returns the number of tokens written: those that were taken back do not count.
    pub fn written_count(&self) -> usize {
        self.before.tokens.len() + self.tokens.len()
    }

    /// Returns the number of those that are never taken back.
    pub fn certain(&self) -> usize {
        self.before.tokens.len()
            + match &self.at {
                PartPosition::Free(text, _) => text.certain,
                PartPosition::Rule { rule, .. } if rule.max_tokens().is_some() => 0,
                _ => self.tokens.len(),
            }
    }

    /// The whole text so far, including text that is forced next.
    pub fn text(&self) -> &str {
        &self.before.text
    }

    /// Returns the outcome of the last token.
    pub fn last_token(&self) -> LastToken {
        self.last
    }

    /// Returns the depth in the part, in tokens; for free text, in bytes.
    pub fn depth(&self) -> usize {
        match &self.at {
            PartPosition::Lead(..) | PartPosition::Over | PartPosition::Failed(_) => 0,
            PartPosition::Free(text, _) => text.bytes.len(),
            PartPosition::Set(..) | PartPosition::Rule { .. } | PartPosition::Held(..) => self.tokens.len(),
        }
    }

    /// Returns whether tokens that must precede the next part are being written.
    pub fn is_before_part(&self) -> bool {
        matches!(self.at, PartPosition::Lead(..) | PartPosition::Over)
    }

    /// Returns whether the text that is being written is restricted by nothing but its end.
    pub fn is_free(&self) -> bool {
        matches!(self.at, PartPosition::Free(..))
    }

    /// Returns whether the form is filled.
    pub fn is_over(&self) -> bool {
        matches!(self.at, PartPosition::Over)
    }

    /// The set of the slot that begins here.
    pub fn begun_set(&self) -> Option<&Arc<SlotSet>> {
        match &self.at {
            PartPosition::Set(set, _) if self.tokens.is_empty() => Some(set),
            _ => None,
        }
    }
}

impl Drop for FilledFields {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut last) = before.and_then(Arc::into_inner) {
            before = last.before.take();
        }
    }
}
