//! The exact probability of every value, which greedy decoding cannot give.
//!
//! `log P(value)` is the sum of the log-softmax, over the whole vocabulary, along its tokens. If end tokens are given,
//! the probability that any of them follows is a factor too. If none are given and the value is a prefix of others, so
//! is the probability that none of its children follows. If several sequences stand for one value, their probabilities
//! add up. `span/` determines where a value ends and which tokens continue; rows of logits come from any host that
//! implements [`TreeDecoder`].
//!
//! Of a constraint that cannot be listed, [`ProbabilityJob`] finds the probability of all its texts together, and
//! [`CorrectionJob`] draws a text as the model would if it had to write one of them.
//!
//! Scoring is a [`Job`]: it says which rows it wants and never computes one (`scoring.rs`). Small sets are scored as
//! one tree of tokens (`whole.rs`), large ones best first (`search.rs`). `scores.rs` keeps the probabilities found so
//! far, and `job.rs` refuses rows that were not asked for. `mass.rs` alone reads rows.

mod choice;
mod correction;
mod decoder;
mod error;
mod frontier;
mod job;
mod mass;
mod outlook;
mod particles;
mod paths;
mod prefixes;
mod probability;
mod scores;
#[allow(clippy::module_inception, reason = "the work that this storey is for")]
mod scoring;
mod search;
mod tree;
mod values;
mod whole;

pub use choice::{Choice, ChooseOptions, ChooseStats};
pub use correction::{CorrectedDraw, Correction, CorrectionJob, CorrectionOptions};
pub use decoder::{DecodeCost, Host, TreeDecoder};
pub use error::{ChooseError, DeadEnd, PromptProblem, RowProblem, ScoringError};
pub use job::{Job, RunError, WantedRows, run};
pub use prefixes::{PrefixRows, PrefixRowsError};
pub use probability::{Probability, ProbabilityJob, ProbabilityOptions, TextProbability};
pub use scoring::{Scoring, ScoringRequest};
pub use tree::{TokenTree, TreeNode};

use crate::machine::constraint::AnyConstraint;
use crate::set::ids::TokenId;

/// The probabilities of all values of a constraint after `prompt`.
///
/// A set may begin inside the prompt ([`Trie::heal_bytes`](crate::Trie::heal_bytes)). Then first take the bytes that
/// it spells again off the end of the prompt. A set from a file that was never verified is read completely, once.
///
/// ```
/// use trie_core::{ChooseOptions, PrefixRows, TokenId, Trie, choose};
/// let id = |id| TokenId::new(id).unwrap();
/// let mut builder = Trie::builder();
/// builder.push(Some("yes"), &[id(1), id(2)]);
/// builder.push(Some("no"), &[id(3)]);
/// let set = builder.build()?;
///
/// // A model of four tokens: after token 1 all are alike, otherwise 3 is three times as probable as each other one.
/// let mut model = PrefixRows::new(4, |prefixes: &[&[TokenId]]| {
///     let row = |prefix: &&[TokenId]| {
///         if prefix.last() == Some(&id(1)) { [0.0; 4] } else { [0.0, 0.0, 0.0, 3f32.ln()] }
///     };
///     Ok::<_, std::convert::Infallible>(prefixes.iter().flat_map(row).collect::<Vec<f32>>())
/// });
/// let choice = choose(&mut model, &[id(0)], set, &ChooseOptions::new())?;
/// // "no" has 3 of 6, and "yes" 1 of 6 and then 1 of 4.
/// assert!((choice.logprobs[0] - (1.0f64 / 24.0).ln()).abs() < 1e-6);
/// assert!((choice.logprobs[1] - 0.5f64.ln()).abs() < 1e-6);
/// assert_eq!(choice.ranking[0].index(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A constraint whose values cannot be listed, a damaged set, an empty prompt, no room for the prompt with the longest
/// value, an id outside the vocabulary, a limit of 0, rows that were not asked for, a row after an allowed prefix in
/// which no token can be chosen, or an error of the host. The host can be used afterwards.
pub fn choose<D: TreeDecoder + ?Sized>(
    decoder: &mut D,
    prompt: &[TokenId],
    constraint: impl Into<AnyConstraint>,
    options: &ChooseOptions<'_>,
) -> Result<Choice, ChooseError<D::Error>> {
    let mut choices = choose_many(decoder, &[prompt], constraint, options)?;
    choices.pop().ok_or(ChooseError::Prompt { number: 0, problem: PromptProblem::Empty })
}

/// [`choose`] for several prompts, in order. If all values are scored, the common prefix of all prompts is decoded
/// once, and the rest as one tree.
///
/// # Errors
/// As [`choose`]; then there is no result for any prompt. [`ChooseError::Prompt`] says which prompt was refused. All
/// prompts are checked before anything is decoded.
pub fn choose_many<D: TreeDecoder + ?Sized>(
    decoder: &mut D,
    prompts: &[&[TokenId]],
    constraint: impl Into<AnyConstraint>,
    options: &ChooseOptions<'_>,
) -> Result<Vec<Choice>, ChooseError<D::Error>> {
    let mut scoring = Scoring::new(Host::from_decoder(decoder), prompts, &constraint.into(), options)?;
    run(&mut scoring, decoder)?;
    Ok(scoring.finish(decoder.n_threads()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::storage::packed::PackedInts;
    use crate::set::trie::{LeafTable, Store, Trie};

    /// Unreachable unless a file changes after it was verified.
    #[test]
    fn a_position_without_a_way_on_is_an_error() {
        let id = |id| TokenId::new(id).unwrap();
        for (tokens, node) in [(&[id(1), id(2), id(3)], 1), (&[id(1), id(2), id(3)], 2)] {
            let mut builder = Trie::builder();
            builder.push(None, tokens);
            let built = builder.build().unwrap();
            let store = built.store();
            // Node `node` loses its children.
            let mut first_child = store.first_child.to_vec();
            first_child.copy_within(node..=node, node + 1);
            let trie = Trie::from_store(Store {
                tokens: store.tokens.to_vec().into(),
                first_child: first_child.into(),
                inner_terminals: store.inner_terminals.to_vec().into(),
                leaves: LeafTable::Tail(3, 1),
                names: None,
                input_rows: PackedInts::default(),
                max_token: store.max_token,
                max_depth: store.max_depth,
                verified: false,
                unread: None,
                graph: None,
            });

            let rules = crate::machine::span::SpanRules::new(vec![(String::new(), trie)], 4).unwrap();
            let values = std::sync::Arc::new(values::Values { rules });
            let mut rows = PrefixRows::new(4, |prefixes: &[&[TokenId]]| {
                Ok::<_, std::convert::Infallible>(vec![0.0; 4 * prefixes.len()])
            });
            for options in [ChooseOptions::new(), ChooseOptions::new().with_top(1)] {
                let prompt: &[TokenId] = &[id(0)];
                let scoring =
                    Scoring::of_values::<()>(Host::from_decoder(&rows), vec![(prompt, values.clone())], &[], &options);
                let ended = run(&mut scoring.unwrap(), &mut rows);
                assert_eq!(ended, Err(RunError::Job(DeadEnd { depth: node }.into())));
            }
        }
    }
}
