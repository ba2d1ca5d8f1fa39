//! The weights of a table, on the edges and ends of its trie.

use super::problem::PrefixTableReport;
use super::walk::Walk;
use crate::set::ids::TokenId;
use crate::set::trie::{Cursor, Trie};
use crate::set::weights::WeightsError;
use std::convert::Infallible;

/// The trie of the values that the walk gives, with their weights. Leaves are numbered as the walk gives them.
pub(super) fn weigh(trie: Trie, walk: &Walk<'_>) -> Result<Trie, WeightsError> {
    let (mut edges, mut ends) = (vec![0.0; trie.nodes()], Vec::with_capacity(trie.len()));
    // The positions on the path of the value before.
    let (mut path, mut passed): (Vec<TokenId>, Vec<Cursor>) = (Vec::new(), vec![Cursor::ROOT]);
    let Ok(_) = walk.run(&mut PrefixTableReport::default(), |value: &[TokenId], weights: &[f32], end| {
        let common = path.iter().zip(value).take_while(|(one, other)| one == other).count();
        path.truncate(common);
        passed.truncate(common + 1);
        for (&token, &weight) in value.iter().zip(weights).skip(common) {
            // Every value is in the trie.
            let Some(at) = passed.last().and_then(|&at| trie.step(at, token)) else { break };
            edges[at.node().index()] = weight;
            path.push(token);
            passed.push(at);
        }
        ends.push(end);
        Ok::<(), Infallible>(())
    });
    trie.with_weights(edges, ends)
}
