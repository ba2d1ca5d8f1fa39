//! A constraint as a set of values, and the state machine that walks it, which alone decides where values end.

use super::choice::ChooseOptions;
use super::error::ChooseError;
use crate::machine::constraint::{AnyConstraint, Constraint, Scratch, Step, TrieState};
use crate::machine::span::{Allowed, SpanRules, SpanState, Status};
use crate::set::ids::TokenId;
use crate::set::trie::Trie;

/// Largest number of values of a constraint that has to be listed first.
const MOST_VALUES: usize = 1 << 20;

/// A position of the machine.
pub(super) type TrieSpanState = SpanState<TrieState>;

/// The values to score.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) rules: SpanRules<Trie>,
}

impl Values {
    /// The values of a constraint, checked.
    pub(super) fn new<E>(
        constraint: &AnyConstraint,
        options: &ChooseOptions<'_>,
        n_vocab: usize,
    ) -> Result<Self, ChooseError<E>> {
        for (what, limit) in [("top", options.top), ("max_rows", options.max_rows), ("beam", options.beam)] {
            if limit == Some(0) {
                return Err(ChooseError::Zero { what });
            }
        }
        let trie = list(constraint)?;
        if trie.max_token().index() >= n_vocab {
            return Err(ChooseError::SetOutsideVocabulary { max_token: trie.max_token(), n_vocab });
        }
        let ends = options.end_tokens.unwrap_or_else(|| trie.end_tokens()).to_vec();
        if let Some(position) = ends.iter().position(|end| end.index() >= n_vocab) {
            return Err(ChooseError::EndTokenOutsideVocabulary { position, token: ends[position], n_vocab });
        }
        let rules = SpanRules::new(vec![(String::new(), trie)], n_vocab).and_then(|rules| rules.with_end_tokens(ends));
        rules.map(|rules| Self { rules }).map_err(ChooseError::Rules)
    }

    pub(super) fn trie(&self) -> &Trie {
        &self.rules.constraints()[0].1
    }

    /// Tokens after the prompt for which a host must have room. The row after a value matters only if an end token
    /// must follow.
    pub(super) fn tokens_needed(&self) -> usize {
        let trie = self.trie();
        let longest = if trie.is_tree() {
            trie.max_depth()
        } else {
            // Of many sequences of one value only the canonical one must fit.
            trie.leaves().map(|leaf| leaf.tokens.len()).max().unwrap_or(1)
        };
        longest.saturating_sub(usize::from(self.rules.end_tokens().is_empty()))
    }

    /// The positions after the first that need a row, depth first, each with the token that leads to it.
    pub(super) fn positions(&self) -> impl Iterator<Item = (TokenId, TrieSpanState)> + '_ {
        // The positions on the way, each with the index of its next token.
        let mut path = vec![(self.rules.start(), 0)];
        std::iter::from_fn(move || {
            while let Some((at, next)) = path.last_mut() {
                let Some(token) = self.nth(at, *next) else {
                    path.pop();
                    continue;
                };
                *next += 1;
                if let Some(Step { state, .. }) = self.rules.step(at, token).filter(|step| needs_row(&step.state)) {
                    path.push((state, 0));
                    return Some((token, state));
                }
            }
            None
        })
    }

    /// The token with this index among those that continue.
    fn nth(&self, at: &TrieSpanState, index: usize) -> Option<TokenId> {
        match self.rules.allowed(at, &mut Scratch::default()) {
            Allowed::Only { tokens, .. } | Allowed::Open { tokens } => tokens.iter().nth(index),
            Allowed::All | Allowed::Nothing => None,
        }
    }
}

/// Returns whether a value's probability depends on the tokens after this position.
pub(super) fn needs_row(at: &TrieSpanState) -> bool {
    at.status() == Status::Active
}

/// The values as one set, which is not damaged.
fn list<E>(constraint: &AnyConstraint) -> Result<Trie, ChooseError<E>> {
    let sets = constraint.sets();
    sets.iter().try_for_each(|set| set.verify()).map_err(ChooseError::Damaged)?;
    if let Some(trie) = constraint.as_trie() {
        return Ok(trie.clone());
    }
    let trie = constraint.to_trie(MOST_VALUES).map_err(ChooseError::NotListed)?;
    trie.verify().map_err(ChooseError::Damaged)?;
    if trie.is_tree() && sets.iter().any(|set| !set.is_tree()) {
        return Err(ChooseError::ManySequences);
    }
    // As for a span: what the last part brings.
    Ok(match sets.last() {
        Some(last) if trie.end_tokens().is_empty() => trie.with_end_tokens(last.end_tokens()),
        _ => trie,
    })
}

impl From<&AnyConstraint> for AnyConstraint {
    fn from(constraint: &AnyConstraint) -> Self {
        constraint.clone()
    }
}
