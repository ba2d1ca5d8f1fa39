//! What may come with what a row says of it: the one place where [`Allowed`] meets logits.

use crate::machine::span::Allowed;
use crate::rows::element::Logit;
use crate::rows::logits::with_weight;
use crate::set::ids::TokenId;

impl<'a> Allowed<'a> {
    /// What a choice is made from: each token that may come, ascending and once, with its logit in this row and its
    /// weight together. `row` is as long as the vocabulary.
    pub fn logits<'r, L: Logit>(&self, row: &'r [L]) -> impl Iterator<Item = (TokenId, f32)> + use<'a, 'r, L> {
        let everything = matches!(self, Self::All | Self::Open { .. });
        let all = TokenId::all(if everything { row.len() } else { 0 });
        let some = (!everything).then(|| self.iter());
        let weighed = self.weigh(all.chain(some.into_iter().flatten()));
        weighed.map(|(token, weight)| (token, with_weight(row[token.index()].to_f32(), weight)))
    }
}
