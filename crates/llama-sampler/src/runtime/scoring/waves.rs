//! A tree of tokens after what a session holds, decoded in as few forward passes as its sequences and cells allow.
//!
//! Every path from the root to an end is a sequence of its own; a token that several paths share is decoded once and
//! belongs to all of their sequences. What does not fit at once is decoded in waves.

use crate::runtime::context::{Context, Placed, fits};
use crate::runtime::error::RuntimeError;
use trie_core::{TokenId, TokenTree};

/// Bytes of logits in one pass: rows are as long as the vocabulary.
const MAX_OUTPUT: usize = 128 << 20;

/// Neighbouring ends of paths that fit into one go, and all nodes on those paths in depth-first order.
#[derive(Debug, Default)]
struct Wave {
    ends: Vec<usize>,
    nodes: Vec<usize>,
}

impl Wave {
    /// Waves of at most `paths` paths and `cells` nodes; one path always fits.
    fn split(tree: &TokenTree, paths: usize, cells: usize) -> Vec<Self> {
        let mut waves: Vec<Self> = Vec::new();
        let mut begin = 0;
        for end in (0..tree.nodes().len()).filter(|&node| !tree.nodes()[node].has_children) {
            // In depth-first order, whatever came since the last end is on the path to this one.
            let fresh = begin..end + 1;
            begin = end + 1;
            match waves.last_mut() {
                Some(wave) if wave.ends.len() < paths && wave.nodes.len() + fresh.len() <= cells => {
                    wave.nodes.extend(fresh);
                    wave.ends.push(end);
                }
                _ => {
                    let mut nodes: Vec<usize> = tree.upwards(end).collect();
                    nodes.reverse();
                    waves.push(Self { ends: vec![end], nodes });
                }
            }
        }
        waves
    }

    /// For each node of the wave, the paths through it: they are neighbours.
    fn paths(&self, tree: &TokenTree) -> Vec<(usize, usize)> {
        let place = |node: usize| self.nodes.binary_search(&node).ok();
        let mut through = vec![(usize::MAX, 0); self.nodes.len()];
        for (number, &end) in self.ends.iter().enumerate() {
            for at in tree.upwards(end).filter_map(place) {
                through[at] = (through[at].0.min(number), number + 1);
            }
        }
        through
    }
}

/// One forward pass, unless it is to stop.
type Decode<'a> = dyn FnMut(&mut Context, &[Placed]) -> Result<(), RuntimeError> + 'a;

impl Context {
    /// Decodes the tree after the tokens held, calls `each` with every wanted node and its row, parents first, and
    /// forgets the tree. Returns the number of tokens decoded.
    ///
    /// # Errors
    /// A token outside the vocabulary, a path for which there is no room, a failed forward pass, or `stop` said so. The
    /// tokens held stay.
    pub(super) fn decode_tree(
        &mut self,
        tree: &TokenTree,
        stop: &mut dyn FnMut() -> bool,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<usize, RuntimeError> {
        let tokens: Vec<TokenId> = tree.nodes().iter().map(|node| node.token).collect();
        self.vocab().check_tokens(&tokens)?;
        fits(self.tokens().len(), tree.depth(), self.n_ctx())?;
        let waves = Wave::split(tree, self.branches(), self.room());
        let mut done = vec![false; tree.nodes().len()];
        let mut decoded = 0;
        for (index, wave) in waves.iter().enumerate() {
            self.fork(wave.ends.len())?;
            let result = self.decode_wave(
                tree,
                wave,
                &mut done,
                &mut decoded,
                &mut |session, nodes| {
                    if stop() {
                        return Err(RuntimeError::Stopped { what: "parts of the set", done: index, of: waves.len() });
                    }
                    session.decode_placed(nodes)
                },
                each,
            );
            self.join(wave.ends.len());
            result?;
        }
        Ok(decoded)
    }

    fn decode_wave(
        &mut self,
        tree: &TokenTree,
        wave: &Wave,
        done: &mut [bool],
        decoded: &mut usize,
        decode: &mut Decode<'_>,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), RuntimeError> {
        let held = self.tokens().len();
        let max_rows = (MAX_OUTPUT / (4 * self.vocab().len())).clamp(1, self.n_batch());
        let paths = wave.paths(tree);
        let mut from = 0;
        while from < wave.nodes.len() {
            let mut rows = 0;
            let placed: Vec<Placed> = wave.nodes[from..]
                .iter()
                .zip(&paths[from..])
                .take(self.n_batch())
                .map(|(&node, &(first, last))| Placed {
                    token: tree.nodes()[node].token,
                    position: held + tree.nodes()[node].depth - 1,
                    // Sequence 0 is what is held.
                    sequences: first as i32 + 1..last as i32 + 1,
                    wanted: tree.nodes()[node].wanted && !done[node],
                })
                .take_while(|placed| {
                    rows += usize::from(placed.wanted);
                    rows <= max_rows
                })
                .collect();
            decode(self, &placed)?;
            *decoded += placed.len();
            for (index, _) in placed.iter().enumerate().filter(|(_, place)| place.wanted) {
                let node = wave.nodes[from + index];
                done[node] = true;
                each(node, self.row(index));
            }
            from += placed.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 ─ 1 ─ 2, 1 ─ 3 ─ 4, 0 ─ 5, 6 ─ 7
    fn tree() -> TokenTree {
        let mut tree = TokenTree::new();
        for (node, depth) in [0, 1, 2, 2, 3, 1, 0, 1].into_iter().enumerate() {
            assert_eq!(tree.push(depth, TokenId::new(node as u32).unwrap(), true), node);
        }
        tree
    }

    fn waves(paths: usize, cells: usize) -> Vec<Vec<usize>> {
        Wave::split(&tree(), paths, cells).into_iter().map(|wave| wave.nodes).collect()
    }

    #[test]
    fn waves_keep_to_their_limits_and_repeat_ancestors() {
        assert_eq!(waves(9, 99), [vec![0, 1, 2, 3, 4, 5, 6, 7]]);
        assert_eq!(waves(1, 99), [vec![0, 1, 2], vec![0, 1, 3, 4], vec![0, 5], vec![6, 7]]);
        assert_eq!(waves(2, 99), [vec![0, 1, 2, 3, 4], vec![0, 5, 6, 7]]);
        assert_eq!(waves(9, 4), [vec![0, 1, 2], vec![0, 1, 3, 4], vec![0, 5, 6, 7]]);
        assert_eq!(waves(9, 1), waves(1, 1), "a path alone is never cut");
    }

    #[test]
    fn a_shared_token_belongs_to_all_of_its_paths() {
        let tree = tree();
        let [wave] = &Wave::split(&tree, 9, 99)[..] else { panic!("one wave") };
        assert_eq!(wave.ends, [2, 4, 5, 7]);
        assert_eq!(wave.paths(&tree), [(0, 3), (0, 2), (0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (3, 4)]);
        assert_eq!(tree.depth(), 4);
    }
}
