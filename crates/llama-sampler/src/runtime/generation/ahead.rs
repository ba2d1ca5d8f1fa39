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

    fn list_few(&mut self, _: usize) -> Vec<TokenId> {
        Vec::new()
    }

    fn best(&mut self, row: &[f32], most: usize) -> Vec<(TokenId, f32)> {
        best_of(&Allowed::All, row, most)
    }

    fn accept(&mut self, token: TokenId) -> bool {
        token.index() < self.0.len() && !self.0.is_end_of_generation(token)
    }

    fn note(&mut self) {}

    fn go_back(&mut self) {}
}

/// Text that follows the rules of a span or form.
pub(super) struct RulesAhead<'r, C: Special> {
    vocab: &'r Vocab,
    rules: &'r SpanRules<C>,
    at: SpanState<C::State>,
    noted: Vec<SpanState<C::State>>,
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
        Self { vocab, rules, at: at.clone(), noted: Vec::new(), is_written, scratch: Scratch::default() }
    }
}

impl<C: Special> Ahead for RulesAhead<'_, C> {
    fn forced(&mut self) -> Option<TokenId> {
        self.rules.forced(&self.at, &mut self.scratch)
    }

    fn list_few(&mut self, most: usize) -> Vec<TokenId> {
        let allowed = self.rules.allowed(&self.at, &mut self.scratch);
        if !matches!(allowed, Allowed::Only { .. }) {
            return Vec::new();
        }
        let few: Vec<TokenId> = allowed.iter().take(most + 1).collect();
        if few.len() > most { Vec::new() } else { few }
    }

    fn best(&mut self, row: &[f32], most: usize) -> Vec<(TokenId, f32)> {
        let Some(row) = row.get(..self.rules.n_vocab()) else { return Vec::new() };
        best_of(&self.rules.allowed(&self.at, &mut self.scratch), row, most)
    }

    fn accept(&mut self, token: TokenId) -> bool {
        if token.index() >= self.rules.n_vocab() || self.rules.advance(&mut self.at, token).is_none() {
            return false;
        }
        let is_over = self.at.status() == Status::Complete && self.rules.after_value() == After::Stop;
        !is_over && !self.vocab.is_end_of_generation(token) && (self.is_written)(self.at.position())
    }

    fn note(&mut self) {
        self.noted.push(self.at.clone());
    }

    fn go_back(&mut self) {
        if let Some(noted) = self.noted.pop() {
            self.at = noted;
        }
    }
}

/// Returns the allowed tokens with the highest logits, the highest first, of equal ones the first.
fn best_of(allowed: &Allowed<'_>, row: &[f32], most: usize) -> Vec<(TokenId, f32)> {
    let mut best: Vec<(TokenId, f32)> = Vec::with_capacity(most + 1);
    for next in allowed.logits(row).filter(|&(_, logit)| logits::is_usable(logit)) {
        if best.len() == most && best.last().is_none_or(|last| next.1 <= last.1) {
            continue;
        }
        let place = best.partition_point(|one| one.1 >= next.1);
        best.insert(place, next);
        best.truncate(most);
    }
    best
}
