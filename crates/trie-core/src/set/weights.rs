//! Weights of a set: numbers that are added to the logit of a token at its position in the trie.

use crate::set::ids::{LeafId, TokenId};
use crate::set::storage::memory::Array;
use crate::set::trie::{Cursor, Trie};

/// One weight for each edge and, if ends have weights, one for each leaf.
#[derive(Debug)]
pub struct Weights {
    /// Weights by the node that the edge leads to; the root's is unused.
    pub edges: Array<f32>,
    /// Weights of end tokens, by the leaf that ends.
    pub ends: Option<Array<f32>>,
}

/// Weights that do not fit a trie.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// Not one for each.
    #[error("{got} weights for {need} {what}")]
    Count {
        /// Name of the weighted items.
        what: &'static str,
        /// Number of weights given.
        got: usize,
        /// Number of weights required.
        need: usize,
    },
    /// A weight is NaN or infinite.
    #[error("the weight of {what} {at} is {weight}: it must be a finite number")]
    NotFinite {
        /// Name of the weighted item.
        what: &'static str,
        /// Number of the item.
        at: usize,
        /// The weight that is invalid.
        weight: f32,
    },
    /// Several sequences stand for one leaf, so an edge has no single position.
    #[error("a set in which several sequences stand for one value can have no weights")]
    NotATree,
}

crate::error_kind!(WeightsError, Argument);

impl PartialEq for Weights {
    fn eq(&self, other: &Self) -> bool {
        fn bits(weights: &[f32]) -> &[u32] {
            bytemuck::cast_slice(weights)
        }
        bits(&self.edges) == bits(&other.edges) && self.ends.as_deref().map(bits) == other.ends.as_deref().map(bits)
    }
}

impl Eq for Weights {}

impl Weights {
    /// Returns the number of bytes held.
    pub(crate) fn nbytes(&self) -> usize {
        size_of_val(&*self.edges) + self.ends.as_deref().map_or(0, size_of_val)
    }
}

impl Trie {
    /// The same leaves, with a weight for the edge into each node (that of the root is ignored) and for the end of
    /// each leaf (none if all are 0). The weight is added to the logit of the token of the edge, or of an end token.
    /// Weights change neither the allowed tokens nor the model's own probabilities.
    ///
    /// ```
    /// use trie_core::{TokenId, Trie};
    /// let mut builder = Trie::builder();
    /// for token in [5, 7] {
    ///     builder.push(None, &[TokenId::new(token).unwrap()]);
    /// }
    /// let trie = builder.build()?.with_weights(vec![0.0, 0.5, -1.0], Vec::new())?;
    /// assert_eq!(trie.weights(trie.root()), [0.5, -1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Another number of them, one that is not finite, or a set that is not a tree ([`Trie::is_tree`]).
    pub fn with_weights(self, edges: Vec<f32>, ends: Vec<f32>) -> Result<Self, WeightsError> {
        if !self.is_tree() {
            return Err(WeightsError::NotATree);
        }
        let ends = if ends.iter().all(|&weight| weight == 0.0) && ends.len() == self.len() { Vec::new() } else { ends };
        let wanted = if ends.is_empty() { 0 } else { self.len() };
        check("nodes", &edges, self.nodes())?;
        check("leaves", &ends, wanted)?;
        let mut edges = edges;
        edges[0] = 0.0;
        let ends = (!ends.is_empty()).then(|| ends.into());
        Ok(self.replace_weights(Some(Weights { edges: edges.into(), ends })))
    }

    /// The same leaves without weights.
    #[must_use]
    pub fn without_weights(self) -> Self {
        self.replace_weights(None)
    }

    /// Returns whether it has weights.
    pub fn is_weighted(&self) -> bool {
        self.info().weights().is_some()
    }

    /// The weights of [`Trie::children`], one for each; none where the set has none.
    pub fn weights(&self, at: Cursor) -> &[f32] {
        let Some(weights) = self.info().weights() else { return &[] };
        let (first, tokens) = self.family(at);
        weights.edges.get(first as usize..first as usize + tokens.len()).unwrap_or_default()
    }

    /// The weight of an end token here; 0 where no leaf ends or the set has none.
    pub fn end_weight(&self, at: Cursor) -> f32 {
        let ends = self.info().weights().and_then(|weights| weights.ends.as_ref());
        ends.and_then(|ends| ends.get(self.leaf_at(at)?.index()).copied()).unwrap_or(0.0)
    }

    /// The same leaves, with the weight of each edge and end from the first of these sets that has it; without weights
    /// if none of them has weights. Both are trees.
    #[must_use]
    pub(crate) fn weighed_as(self, sets: &[&Self]) -> Self {
        if !sets.iter().any(|set| set.is_weighted()) {
            return self;
        }
        let (mut edges, mut ends) = (vec![0.0; self.nodes()], vec![0.0; self.len()]);
        let places: Vec<Option<Cursor>> = sets.iter().map(|_| Some(Cursor::ROOT)).collect();
        let mut open = vec![(Cursor::ROOT, places)];
        while let Some((at, places)) = open.pop() {
            if let Some(LeafId(leaf)) = self.leaf_at(at) {
                let ending = |(set, place): (&&Self, &Option<Cursor>)| {
                    place.filter(|&place| set.is_terminal(place)).map(|place| set.end_weight(place))
                };
                ends[leaf as usize] = sets.iter().zip(&places).find_map(ending).unwrap_or(0.0);
            }
            for (nth, &token) in self.children(at).iter().enumerate() {
                let child = self.child(at, nth);
                let below: Vec<Option<Cursor>> =
                    sets.iter().zip(&places).map(|(set, place)| set.step((*place)?, token)).collect();
                let edge = |(set, (place, below)): (&&Self, (&Option<Cursor>, &Option<Cursor>))| {
                    let _ = (*below)?;
                    Some(set.edge_weight((*place)?, token))
                };
                edges[child.node().index()] = sets.iter().zip(places.iter().zip(&below)).find_map(edge).unwrap_or(0.0);
                open.push((child, below));
            }
        }
        // A damaged file may hold NaN.
        let sound = |weights: Vec<f32>| weights.into_iter().map(|w| if w.is_finite() { w } else { 0.0 }).collect();
        let plain = self.clone();
        self.with_weights(sound(edges), sound(ends)).unwrap_or(plain)
    }

    pub(crate) fn edge_weight(&self, at: Cursor, token: TokenId) -> f32 {
        let nth = self.children(at).binary_search(&token).ok();
        nth.and_then(|nth| self.weights(at).get(nth).copied()).unwrap_or(0.0)
    }
}

fn check(what: &'static str, weights: &[f32], need: usize) -> Result<(), WeightsError> {
    if weights.len() != need {
        return Err(WeightsError::Count { what, got: weights.len(), need });
    }
    match weights.iter().position(|weight| !weight.is_finite()) {
        Some(at) => Err(WeightsError::NotFinite { what, at, weight: weights[at] }),
        None => Ok(()),
    }
}
