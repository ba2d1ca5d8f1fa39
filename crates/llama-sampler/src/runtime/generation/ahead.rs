//! Walks of constraints ahead of the text, for drafts.

use crate::runtime::draft::Ahead;
use trie_core::{After, Allowed, Scratch, SpanRules, SpanState, Special, Status, TokenId, logits};
use trie_text::Vocab;

/// Text without a constraint.
pub(super) struct FreeAhead<'v>(pub(super) &'v Vocab);

impl Ahead for FreeAhead<'_> {
    fn forced(&mut self) -> Option<TokenId> {
        None
    }

    fn best(&mut self, row: &[f32]) -> Option<TokenId> {
        best_of(&Allowed::All, row)
    }

    fn accept(&mut self, token: TokenId) -> bool {
        token.index() < self.0.len() && !self.0.is_end_of_generation(token)
    }
}

/// Text that follows the rules of a span or form.
pub(super) struct RulesAhead<'r, C: Special> {
    vocab: &'r Vocab,
    rules: &'r SpanRules<C>,
    at: SpanState<C::State>,
    /// Returns whether a state's last token is part of the text.
    is_written: fn(&C::State) -> bool,
    scratch: Scratch,
}

impl<'r, C: Special> RulesAhead<'r, C> {
    pub(super) fn new(
        vocab: &'r Vocab,
        rules: &'r SpanRules<C>,
        at: &SpanState<C::State>,
        is_written: fn(&C::State) -> bool,
    ) -> Self {
        Self { vocab, rules, at: at.clone(), is_written, scratch: Scratch::default() }
    }
}

impl<C: Special> Ahead for RulesAhead<'_, C> {
    fn forced(&mut self) -> Option<TokenId> {
        self.rules.forced(&self.at, &mut self.scratch)
    }

    fn best(&mut self, row: &[f32]) -> Option<TokenId> {
        best_of(&self.rules.allowed(&self.at, &mut self.scratch), row.get(..self.rules.n_vocab())?)
    }

    fn accept(&mut self, token: TokenId) -> bool {
        if token.index() >= self.rules.n_vocab() || self.rules.advance(&mut self.at, token).is_none() {
            return false;
        }
        let is_over = self.at.status() == Status::Complete && self.rules.after_value() == After::Stop;
        !is_over && !self.vocab.is_end_of_generation(token) && (self.is_written)(self.at.position())
    }
}

/// Returns the allowed token with the highest logit, of equal ones the first.
fn best_of(allowed: &Allowed<'_>, row: &[f32]) -> Option<TokenId> {
    let usable = allowed.logits(row).filter(|&(_, logit)| logits::is_usable(logit));
    usable.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(token, _)| token)
}
