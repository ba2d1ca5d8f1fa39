//! Allowed tokens of all rows as ragged lists, for callers with their own kernels.

use super::{Batch, BatchError};
use crate::machine::constraint::{AnyState, Scratch};
use crate::machine::span::{Allowed, SpanState};
use crate::set::ids::TokenId;

/// The allowed tokens of each row and the state after each: row `i` has the entries `offsets[i] .. offsets[i + 1]`.
///
/// ```
/// use trie_core::{Batch, Children, SamplerOptions, SpanRules, TokenId, Trie};
/// # use std::sync::Arc;
/// let id = |n| TokenId::new(n).unwrap();
/// let mut set = Trie::builder();
/// for tokens in [[1, 2], [1, 3]] {
///     set.push(None, &tokens.map(id));
/// }
/// let mut batch = Batch::new(Arc::new(SpanRules::for_constraint(set.build()?, 6)?), 2, SamplerOptions::default())?;
/// batch.accept_in(1, &[id(1)])?;
/// let mut children = Children::default();
/// batch.children(&mut children)?;
/// assert_eq!((children.offsets(), children.tokens()), (&[0, 1, 3][..], &[id(1), id(2), id(3)][..]));
/// // The trie's own number of where an entry leads: one small integer is a whole state.
/// let node = |entry: usize| children.next()[entry].position().as_trie().unwrap().cursor().node().index();
/// assert_eq!([node(0), node(1), node(2)], [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Children {
    offsets: Vec<usize>,
    tokens: Vec<TokenId>,
    next: Vec<SpanState<AnyState>>,
}

impl Children {
    /// Returns the start of each row, followed by the number of entries: one more than rows.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The tokens, in each row ascending.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The state after each of them.
    pub fn next(&self) -> &[SpanState<AnyState>] {
        &self.next
    }
}

impl Batch {
    /// Lists the allowed tokens of each row, end tokens included. For a row in which every token is allowed, lists
    /// only the tokens that continue in its constraint: often none. `O(Σ k)`.
    ///
    /// # Errors
    /// A damaged set; `children` is as before then.
    pub fn children(&mut self, children: &mut Children) -> Result<(), BatchError> {
        self.survey()?;
        let Children { offsets, tokens, next } = children;
        offsets.clear();
        tokens.clear();
        next.clear();
        let mut scratch = Scratch::default();
        offsets.push(0);
        for row in &self.rows {
            let (rules, state) = (self.rules_of(row), row.walked.state());
            let allowed: Allowed<'_> = rules.allowed(state, &mut scratch);
            for token in allowed.iter() {
                // A constraint that names a token which it refuses leads nowhere.
                if let Some(step) = rules.step(state, token) {
                    tokens.push(token);
                    next.push(step.state);
                }
            }
            offsets.push(tokens.len());
        }
        Ok(())
    }
}
