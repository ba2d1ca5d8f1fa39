//! A row of logits at a state of the machine: how probable each way on is under the whole vocabulary.

use crate::machine::constraint::{Role, Scratch, Special, Tokens};
use crate::machine::span::{Allowed, SpanRules, SpanState};
use crate::rows::logits::{NoLogits, nothing_in};
use crate::rows::softmax::{log_add, log_probability, log_sum_exp};
use crate::set::ids::TokenId;

/// So many end tokens are summed one by one, which is exact to the last bits; more, such as all tokens that end a word,
/// in one pass over their logits.
const FEW_ENDS: usize = 16;

/// A row whose probabilities are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowMass<'r> {
    row: &'r [f32],
    sum: f64,
}

impl<'r> RowMass<'r> {
    /// Reads a row; `certain` is a buffer. Infinite logits are alike, and nothing else is possible then.
    ///
    /// # Errors
    /// A row in which no token can be chosen; its prefix is not known here.
    pub(super) fn read(row: &'r [f32], certain: &'r mut Vec<f32>) -> Result<Self, NoLogits> {
        match log_sum_exp(row) {
            f64::INFINITY => {
                certain.clear();
                let alike = |&logit: &f32| if logit == f32::INFINITY { 0.0 } else { f32::NEG_INFINITY };
                certain.extend(row.iter().map(alike));
                Ok(Self { row: certain, sum: log_sum_exp(certain) })
            }
            f64::NEG_INFINITY => {
                let found = nothing_in(row).unwrap_or("-inf");
                Err(NoLogits { prefix: Vec::new(), found, n_vocab: row.len() })
            }
            sum => Ok(Self { row, sum }),
        }
    }

    /// Reads a row after tokens of this log-probability: after those that never come, a row may be of any kind, and
    /// nothing in it is possible. Errors are those of [`RowMass::read`].
    pub(super) fn read_after(logprob: f64, row: &'r [f32], certain: &'r mut Vec<f32>) -> Result<Self, NoLogits> {
        match Self::read(row, certain) {
            Err(_) if logprob == f64::NEG_INFINITY => Ok(Self { row, sum: f64::NEG_INFINITY }),
            read => read,
        }
    }

    /// The log-probability of a token.
    pub(super) fn logprob(&self, token: TokenId) -> f64 {
        if self.sum == f64::NEG_INFINITY { self.sum } else { log_probability(self.row[token.index()], self.sum) }
    }

    /// The log-probability that one of these tokens comes.
    fn logprob_of_all(&self, logits: &[f32]) -> f64 {
        let all = log_sum_exp(logits) - self.sum;
        // In a row without a usable logit nothing is probable, not even to stop.
        if all.is_nan() { f64::NEG_INFINITY } else { all.min(0.0) }
    }

    /// The ways on from a state; `None` if there are none. `spare` is a buffer.
    pub(super) fn ways<'a, C: Special>(
        &self,
        rules: &'a SpanRules<C>,
        at: &'a SpanState<C::State>,
        scratch: &'a mut Scratch,
        spare: &mut Vec<f32>,
    ) -> Option<Ways<'a>> {
        let (tokens, ends) = match rules.allowed(at, scratch) {
            Allowed::Only { tokens, ends: [] } => {
                return Some(Ways { tokens: Some(tokens), ends: Vec::new(), stops: None });
            }
            Allowed::Only { tokens, ends } => (Some(tokens), ends),
            Allowed::Open { tokens } => {
                // Ending is whatever no child is. Summed without them: 1 − Σ would cancel.
                spare.clear();
                spare.extend_from_slice(self.row);
                for child in tokens.iter() {
                    spare[child.index()] = f32::NEG_INFINITY;
                }
                let stops = Some(self.logprob_of_all(spare));
                return Some(Ways { tokens: Some(tokens), ends: Vec::new(), stops });
            }
            Allowed::All => (None, rules.end_tokens()),
            Allowed::Nothing => return None,
        };
        // In free text end tokens end it, unless the constraint looks for them; elsewhere what is both is the child.
        let is_free = matches!(tokens, None | Some(Tokens::Except(_)));
        let is_end = |end: &TokenId| match tokens {
            Some(tokens) if !is_free => !tokens.contains(*end),
            _ => rules.step(at, *end).is_some_and(|step| step.role == Role::End),
        };
        let ends: Vec<TokenId> = ends.iter().copied().filter(is_end).collect();
        let stops = if ends.len() <= FEW_ENDS {
            ends.iter().map(|&end| self.logprob(end)).fold(f64::NEG_INFINITY, log_add)
        } else {
            spare.clear();
            spare.extend(ends.iter().map(|end| self.row[end.index()]));
            self.logprob_of_all(spare)
        };
        let has_ends = tokens.is_some() || !ends.is_empty();
        Some(Ways { tokens, ends, stops: has_ends.then_some(stops) })
    }

    /// The most probable of these tokens.
    pub(super) fn best(&self, tokens: &[TokenId]) -> Option<TokenId> {
        tokens.iter().copied().max_by(|a, b| self.logprob(*a).total_cmp(&self.logprob(*b)))
    }

    /// Number of tokens of the vocabulary.
    pub(super) fn n_vocab(&self) -> usize {
        self.row.len()
    }
}

/// The ways on from a state.
#[derive(Debug)]
pub(super) struct Ways<'a> {
    /// `None` stands for the whole vocabulary.
    tokens: Option<Tokens<'a>>,
    /// End tokens, of which each ends the value here.
    pub(super) ends: Vec<TokenId>,
    /// The log-probability that the value ends here; `None` if none does.
    pub(super) stops: Option<f64>,
}

impl<'a> Ways<'a> {
    /// The tokens that continue, ascending.
    pub(super) fn tokens(&self, n_vocab: usize) -> impl Iterator<Item = TokenId> + use<'a, '_> {
        let all = TokenId::all(if self.tokens.is_none() { n_vocab } else { 0 });
        let is_free = matches!(self.tokens, None | Some(Tokens::Except(_)));
        all.chain(self.tokens.iter().flat_map(Tokens::iter))
            .filter(move |token| !is_free || self.ends.binary_search(token).is_err())
    }
}
