//! The tokens of a receipt, walked again.

use super::error::GenerateError;
use super::receipt::{Receipt, ReceiptError, ReceiptStep, known_token};
use crate::constraint::SpecProblem;
use llama_sampler::form_of;
use std::sync::Arc;
use trie_core::{Allowed, Scratch, Span, SpanRules, TokenId};
use trie_text::{Form, FormConstraint, KeptTokens, LastToken, Listing, Vocab, hexadecimal};

impl Receipt {
    /// Checks that each token was allowed by rules; `None` for free text.
    pub(crate) fn check_inside(&self, rules: Option<&Arc<SpanRules>>, vocab: &Arc<Vocab>) -> Result<(), ReceiptError> {
        if let Some(form) = rules.and_then(|rules| form_of(rules)) {
            return self.check_filled(form, vocab);
        }
        let mut span = rules.map(|rules| Span::new(Arc::clone(rules)));
        let mut scratch = Scratch::default();
        for (step, of) in self.steps.iter().enumerate() {
            let token = known_token(vocab, step, of.token)?;
            let allowed = span.as_ref().map_or(Allowed::All, |span| span.allowed(&mut scratch));
            let is_only = of.check_among(step, token, &allowed, vocab)?;
            // Or text that must come, in the tokenizer's own tokens.
            let mut forced = || span.as_ref().and_then(|span| span.forced_token(&mut scratch));
            if of.branch.is_none() && !is_only && forced() != Some(token) {
                return Err(ReceiptError::Mask { step });
            }
            if of.dropped {
                return Err(ReceiptError::Dropped { step });
            }
            if let Some(span) = &mut span {
                span.accept(token).map_err(|_| ReceiptError::Token { step, token: of.token })?;
            }
        }
        Ok(())
    }

    /// Checks the tokens of a filled form: tokens that were dropped must have been allowed, too, and exactly the others
    /// are kept.
    pub(crate) fn check_filled(&self, form: &Arc<Form>, vocab: &Arc<Vocab>) -> Result<(), ReceiptError> {
        let rules = FormConstraint::rules_for_filling(Arc::clone(form), vocab, Listing::Never);
        let rules = rules.map_err(|error| GenerateError::Constraint(SpecProblem::Form(error)))?;
        let (mut at, mut scratch, mut kept) = (rules.start(), Scratch::default(), KeptTokens::default());
        // A token that ended a value was chosen there, and may begin what follows without another choice.
        let mut carried = None;
        for (step, of) in self.steps.iter().enumerate() {
            let token = known_token(vocab, step, of.token)?;
            let is_only = of.check_among(step, token, &rules.allowed(&at, &mut scratch), vocab)?;
            let mut forced = || rules.forced(&at, &mut scratch) == Some(token);
            if of.branch.is_none() && !is_only && carried != Some(token) && !forced() {
                return Err(ReceiptError::Mask { step });
            }
            rules.advance(&mut at, token).ok_or(ReceiptError::Token { step, token: of.token })?;
            kept.accept(at.position());
            carried = (at.position().last_token() == LastToken::Ended).then_some(token);
        }
        let astray = self.steps.iter().enumerate().find(|&(step, of)| of.dropped == kept.contains(step));
        astray.map_or(Ok(()), |(step, _)| Err(ReceiptError::Dropped { step }))
    }
}

impl ReceiptStep {
    /// Checks that the token is allowed and that the receipt records this token mask; returns whether it is the only
    /// allowed token.
    fn check_among(
        &self,
        step: usize,
        token: TokenId,
        allowed: &Allowed<'_>,
        vocab: &Vocab,
    ) -> Result<bool, ReceiptError> {
        if !allowed.contains(token) {
            return Err(ReceiptError::Token { step, token: self.token });
        }
        let is_only = allowed.single_token().is_some();
        let differs = |mask: &str| is_only || *mask != hexadecimal(&vocab.mask_digest(*allowed));
        if self.branch.as_ref().is_some_and(|branch| differs(&branch.mask)) {
            return Err(ReceiptError::Mask { step });
        }
        Ok(is_only)
    }
}
