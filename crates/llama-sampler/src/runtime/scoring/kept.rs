//! Branches that stay in the cache from one tree of a task to the next, so that a path is not decoded again.
//!
//! A branch is a sequence: the held tokens, and a path behind them. The next tree has paths that go on from such
//! branches or leave them somewhere. Each of its paths gets a branch of its own, which begins as the branch that has
//! most of it, and only what is missing is decoded. Cells of the cache belong to all sequences that have them, so this
//! copies no numbers.

use super::waves::PlannedWave;
use crate::runtime::context::PlacedToken;
use std::collections::{HashSet, VecDeque};
use trie_core::{TokenId, shared_length};

/// Branches that the cache has.
#[derive(Debug, Default)]
pub(in crate::runtime) struct KeptBranches {
    /// The tokens before all of them.
    prefix: Vec<TokenId>,
    /// The branch of each number, if it is kept.
    branches: Vec<Option<KeptBranch>>,
    /// Cells that they have behind the prefix: at most so many.
    cells: usize,
    /// Number of the next cell, and of the next wave.
    next_cell: usize,
    wave: usize,
}

#[derive(Debug)]
struct KeptBranch {
    /// Tokens behind the prefix.
    tokens: Vec<TokenId>,
    /// The cell of each. Those that the trunk has, too, count as cells of their own, since the trunk may lose them.
    cells: Vec<usize>,
    /// The wave that used it last.
    wave: usize,
}

/// The branch of a path of a wave.
#[derive(Debug)]
pub(in crate::runtime) struct Placement {
    /// Number of the branch.
    pub(in crate::runtime) branch: usize,
    /// The branch as which it begins; `None` is the trunk.
    pub(in crate::runtime) source: Option<usize>,
    /// Number of tokens that it begins with.
    pub(in crate::runtime) tokens: usize,
    /// All its tokens behind the prefix.
    path: Vec<TokenId>,
}

impl PlannedWave {
    /// The tokens that its branches do not begin with.
    pub(in crate::runtime) fn missing<'w>(
        &'w self,
        placements: &'w [Placement],
    ) -> impl Iterator<Item = &'w PlacedToken> {
        self.tokens.iter().filter(|placed| is_missing(placed, placements))
    }

    /// Leaves out the tokens that its branches begin with.
    pub(in crate::runtime) fn drop_begun(&mut self, placements: &[Placement]) {
        let (tokens, nodes) = std::mem::take(&mut self.tokens)
            .into_iter()
            .zip(std::mem::take(&mut self.nodes))
            .filter(|(placed, _)| is_missing(placed, placements))
            .unzip();
        (self.tokens, self.nodes) = (tokens, nodes);
    }
}

/// Returns whether the branches through a token do not begin with it: all of them or none, since they begin alike.
fn is_missing(placed: &PlacedToken, placements: &[Placement]) -> bool {
    placements.get(placed.sequences.start as usize).is_none_or(|placement| placed.position >= placement.tokens)
}

impl KeptBranches {
    /// Returns whether no wave had branches yet.
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    /// Returns whether they stand behind held tokens.
    pub(in crate::runtime) fn stand_behind(&self, held: &[TokenId]) -> bool {
        held.starts_with(&self.prefix)
    }

    /// Returns the number of cells that they have, or more.
    pub(in crate::runtime) fn cells(&self) -> usize {
        self.cells
    }

    /// The branch that has the most of these tokens, which begin with the prefix, and how many it has.
    pub(in crate::runtime) fn longest(&self, tokens: &[TokenId]) -> Option<(usize, usize)> {
        let path = tokens.get(self.prefix.len()..)?;
        let shared = self.sorted().longest(path)?;
        Some((shared.0, self.prefix.len() + shared.1))
    }

    /// The branches of a wave behind the held tokens, in the order in which they must begin: `count` is the number of
    /// branches that there are.
    pub(in crate::runtime) fn place(&mut self, count: usize, held: &[TokenId], wave: &PlannedWave) -> Vec<Placement> {
        if self.branches.iter().all(Option::is_none) {
            self.prefix = held.to_vec();
            self.branches.resize_with(count, || None);
        }
        let before = &held[self.prefix.len()..];
        // Tokens behind one whose row is wanted are decoded again.
        let mut paths = vec![(before.to_vec(), usize::MAX); wave.branches];
        for placed in &wave.tokens {
            for (path, most) in &mut paths[placed.sequences.start as usize..placed.sequences.end as usize] {
                if placed.wanted {
                    *most = path.len().min(*most);
                }
                path.push(placed.token);
            }
        }
        let sorted = self.sorted();
        let begun = |(path, most): (Vec<TokenId>, usize)| {
            let found = sorted.longest(&path).map(|(branch, shared)| (branch, shared.min(most)));
            (path, found.filter(|&(_, shared)| shared > before.len()))
        };
        let paths: Vec<_> = paths.into_iter().map(begun).collect();
        let mut users = vec![0; self.branches.len()];
        paths.iter().filter_map(|(_, source)| *source).for_each(|(branch, _)| users[branch] += 1);
        let mut idle: Vec<usize> = (0..self.branches.len()).filter(|&branch| users[branch] == 0).collect();
        idle.sort_by_key(|&branch| self.branches[branch].as_ref().map(|kept| kept.wave));
        let mut idle = VecDeque::from(idle);
        let placed = |(path, source): (Vec<TokenId>, Option<(usize, usize)>)| {
            let mut whole = None;
            if let Some((branch, shared)) = source {
                users[branch] -= 1;
                if users[branch] == 0 {
                    // One that is continued as a whole need not be there twice; of another there is more to keep.
                    if self.branches[branch].as_ref().is_some_and(|kept| kept.tokens.len() == shared) {
                        whole = Some(branch);
                    } else {
                        idle.push_back(branch);
                    }
                }
            }
            // There are as many branches as paths, so one is idle, or the source has no other user left.
            let branch = whole.or_else(|| idle.pop_front())?;
            let tokens = self.prefix.len() + source.map_or(before.len(), |(_, shared)| shared);
            Some(Placement { branch, source: source.map(|(branch, _)| branch), tokens, path })
        };
        paths.into_iter().filter_map(placed).collect()
    }

    /// Notes the branches of a wave, whose tokens are those that are decoded now.
    pub(in crate::runtime) fn note(&mut self, placements: Vec<Placement>, wave: &PlannedWave) {
        let (cells_before, behind) = (self.next_cell, self.prefix.len());
        let (branches, next_cell) = (&self.branches, &mut self.next_cell);
        let begun = |placement: &Placement| {
            let shared = placement.tokens - behind;
            let of_source = placement.source.and_then(|branch| branches[branch].as_ref());
            of_source.map_or_else(
                || (0..shared).map(|_| std::mem::replace(next_cell, *next_cell + 1)).collect(),
                |kept| kept.cells[..shared].to_vec(),
            )
        };
        let mut cells: Vec<Vec<usize>> = placements.iter().map(begun).collect();
        for placed in &wave.tokens {
            for cells in &mut cells[placed.sequences.start as usize..placed.sequences.end as usize] {
                cells.push(self.next_cell);
            }
            self.next_cell += 1;
        }
        self.cells += self.next_cell - cells_before;
        self.wave += 1;
        for (placement, cells) in placements.into_iter().zip(cells) {
            let kept = KeptBranch { tokens: placement.path, cells, wave: self.wave };
            self.branches[placement.branch] = Some(kept);
        }
    }

    /// Forgets the older half of them, and returns their numbers; there are none once none is kept.
    pub(in crate::runtime) fn forget_older(&mut self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.branches.len()).filter(|&branch| self.branches[branch].is_some()).collect();
        all.sort_by_key(|&branch| self.branches[branch].as_ref().map(|kept| kept.wave));
        all.truncate(all.len().div_ceil(2));
        for &branch in &all {
            self.branches[branch] = None;
        }
        let cells = self.branches.iter().flatten().flat_map(|kept| &kept.cells);
        self.cells = cells.collect::<HashSet<_>>().len();
        all
    }

    /// Forgets all of them, and returns their numbers.
    pub(in crate::runtime) fn forget(&mut self) -> Vec<usize> {
        let all = (0..self.branches.len()).filter(|&branch| self.branches[branch].is_some()).collect();
        *self = Self::default();
        all
    }

    fn sorted(&self) -> SortedBranches<'_> {
        let kept = self.branches.iter().enumerate();
        let mut all: Vec<_> = kept.filter_map(|(branch, kept)| Some((&kept.as_ref()?.tokens[..], branch))).collect();
        all.sort_unstable();
        SortedBranches(all)
    }
}

/// The paths of branches with their numbers, ascending.
struct SortedBranches<'k>(Vec<(&'k [TokenId], usize)>);

impl SortedBranches<'_> {
    /// The branch that begins with the most tokens of a path, and how many.
    fn longest(&self, path: &[TokenId]) -> Option<(usize, usize)> {
        let place = self.0.partition_point(|(tokens, _)| *tokens < path);
        let shared = |&(tokens, branch): &(&[TokenId], usize)| (branch, shared_length(tokens, path));
        // The paths that begin most alike are beside it.
        let beside = self.0[..place].last().into_iter().chain(self.0.get(place)).map(shared);
        beside.max_by_key(|&(_, shared)| shared)
    }
}

#[cfg(test)]
mod tests {
    use super::super::waves::{Bounds, plan};
    use super::*;
    use proptest::prelude::*;
    use trie_core::TokenTree;

    /// The cache as a list of sequences, each with the tokens and the cells that it has.
    #[derive(Clone, Default)]
    struct Sequence(Vec<(TokenId, usize)>);

    fn id(token: u32) -> TokenId {
        TokenId::new(token).unwrap()
    }

    proptest! {
        /// Each branch has its path, after any trees, before the rows are read, and no more cells than are counted.
        #[test]
        fn every_branch_has_its_path(
            trees in prop::collection::vec(prop::collection::vec((0_usize..6, 0_u32..3, any::<bool>()), 1..30), 1..12),
            count in 1_usize..9,
            room in 8_usize..60,
        ) {
            let held: Vec<TokenId> = [7, 8, 9].map(id).to_vec();
            let trunk = Sequence(held.iter().map(|&token| (token, 0)).collect());
            let mut cache = vec![Sequence::default(); count];
            let (mut kept, mut cell) = (KeptBranches::default(), 0);
            for nodes in trees {
                let mut tree = TokenTree::new();
                let mut siblings = std::collections::HashSet::new();
                for (depth, token, wanted) in nodes {
                    let number = tree.push(depth, id(token), wanted);
                    // Paths of a tree differ.
                    if !siblings.insert(tree.path(number)) {
                        break;
                    }
                }
                for mut wave in plan(&tree, held.len(), Bounds { branches: count, cells: room }) {
                    let wanted: Vec<Vec<TokenId>> = (0..wave.branches as i32).map(|branch| {
                        let of = wave.tokens.iter().filter(|placed| placed.sequences.contains(&branch));
                        of.map(|placed| placed.token).collect()
                    }).collect();
                    let mut placements = kept.place(count, &held, &wave);
                    while kept.cells() + wave.missing(&placements).count() > room {
                        let older = kept.forget_older();
                        prop_assert!(!older.is_empty() || kept.cells() == 0);
                        if older.is_empty() {
                            break;
                        }
                        for branch in older {
                            cache[branch] = Sequence::default();
                        }
                        placements = kept.place(count, &held, &wave);
                    }
                    let branches: Vec<usize> = placements.iter().map(|placement| placement.branch).collect();
                    prop_assert_eq!(branches.len(), wave.branches);
                    prop_assert_eq!(branches.iter().collect::<HashSet<_>>().len(), branches.len());
                    for placement in &placements {
                        let source = placement.source.map_or(&trunk, |source| &cache[source]).clone();
                        prop_assert!(placement.tokens <= source.0.len());
                        cache[placement.branch] = Sequence(source.0[..placement.tokens].to_vec());
                    }
                    wave.drop_begun(&placements);
                    for placed in &wave.tokens {
                        cell += 1;
                        for &branch in &branches[placed.sequences.start as usize..placed.sequences.end as usize] {
                            prop_assert_eq!(cache[branch].0.len(), placed.position);
                            cache[branch].0.push((placed.token, cell));
                        }
                    }
                    for (path, &branch) in wanted.iter().zip(&branches) {
                        let tokens: Vec<TokenId> = cache[branch].0.iter().map(|&(token, _)| token).collect();
                        prop_assert_eq!(tokens, [&held[..], path].concat());
                    }
                    kept.note(placements, &wave);
                    let cells: HashSet<usize> = cache.iter().flat_map(|of| &of.0[held.len().min(of.0.len())..])
                        .map(|&(_, cell)| cell).collect();
                    prop_assert!(cells.len() <= kept.cells(), "{} cells, {} counted", cells.len(), kept.cells());
                }
            }
            for branch in kept.forget() {
                cache[branch] = Sequence::default();
            }
            prop_assert!(cache.iter().all(|sequence| sequence.0.is_empty()));
        }
    }
}
