//! Several sequences in one cache: texts, and branches of them.

use super::{Context, PlacedToken, TRUNK, in_range};
use crate::runtime::error::RuntimeError;
use crate::runtime::scoring::{KeptBranches, Placement, PlannedWave};
use trie_core::TokenId;

impl Context {
    /// One forward pass over tokens in branches, of which 0 is the first.
    pub(in crate::runtime) fn decode_branches(&mut self, tokens: &[PlacedToken]) -> Result<(), RuntimeError> {
        let first = self.branch(0);
        self.decode_placed(tokens, |number| first + number)
    }

    /// One forward pass over tokens in branches that were begun: 0 is that of the first placement.
    pub(in crate::runtime) fn decode_begun(
        &mut self,
        tokens: &[PlacedToken],
        branches: &[usize],
    ) -> Result<(), RuntimeError> {
        let first = self.branch(0);
        self.decode_placed(tokens, |number| first + branches[number as usize] as i32)
    }

    /// One forward pass over the rest of a prompt and a draft: in the trunk, or in these branches, which were begun and
    /// of which the trunk then owns the first.
    pub(in crate::runtime) fn decode_draft(
        &mut self,
        wave: &PlannedWave,
        branches: &[usize],
    ) -> Result<(), RuntimeError> {
        let (held, first) = (self.held.len(), self.branch(0));
        let sequence = |number: i32| branches.get(number as usize).map_or(TRUNK, |&branch| first + branch as i32);
        if let Err(error) = self.decode_placed(&wave.tokens, sequence) {
            self.truncate(held);
            return Err(error);
        }
        if let Some(&branch) = branches.first() {
            self.copy_back(branch, held);
        }
        self.held.extend(wave.tokens.iter().filter(|placed| placed.sequences.start == 0).map(|placed| placed.token));
        Ok(())
    }

    /// Begins a branch as the trunk or another branch begins.
    ///
    /// # Errors
    /// A branch that cannot be cut, which no KV cache is.
    pub(in crate::runtime) fn begin_branch(&mut self, placement: &Placement) -> Result<(), RuntimeError> {
        let Placement { branch, source, tokens, .. } = *placement;
        let sequence = self.branch(branch);
        if source == Some(branch) {
            if self.cut_sequence(sequence, tokens) < tokens {
                return Err(RuntimeError::Failed { reason: "a branch cannot be cut".to_owned() });
            }
            return Ok(());
        }
        self.cut_sequence(sequence, 0);
        match source {
            Some(source) => self.copy(self.branch(source), sequence, Some(tokens as u32)),
            None => self.copy(TRUNK, sequence, None),
        }
        Ok(())
    }

    /// Removes branches by their numbers.
    pub(in crate::runtime) fn remove_branches(&mut self, branches: Vec<usize>) {
        for branch in branches {
            // Whole sequences can always be removed.
            self.cut_sequence(self.branch(branch), 0);
        }
    }

    /// Lets the trunk own those of these tokens that a kept branch has.
    pub(in crate::runtime) fn take_kept(&mut self, tokens: &[TokenId], kept: &KeptBranches) {
        let held = self.held.len();
        if let Some((branch, shared)) = kept.longest(tokens).filter(|&(_, shared)| shared > held) {
            let (from, range) = (self.branch(branch), (Some(held as u32), Some(shared as u32)));
            // Only positions over 2^31 can fail.
            let _ = self.cell.with_dependent_mut(|_, context| context.kv_cache_seq_cp(from, TRUNK, range.0, range.1));
            self.held.extend_from_slice(&tokens[held..shared]);
            self.row = None;
        }
    }

    /// Begins branches 1 … `branches` where the trunk ends.
    pub(in crate::runtime) fn fork(&mut self, branches: usize) -> Result<(), RuntimeError> {
        in_range("branches", branches as u64, 1, self.branches as u64)?;
        (0..branches).for_each(|branch| self.copy(TRUNK, self.branch(branch), None));
        Ok(())
    }

    /// The sequence of a branch.
    fn branch(&self, number: usize) -> i32 {
        (self.slots + number) as i32
    }

    /// Copies another sequence, or its first `tokens` tokens, to a sequence that is empty.
    fn copy(&mut self, from: i32, to: i32, tokens: Option<u32>) {
        // Only positions over 2^31 can fail.
        let _ = self.cell.with_dependent_mut(|_, context| context.kv_cache_seq_cp(from, to, None, tokens));
    }

    /// Lets the trunk own the tokens of a branch from this position on, beside those that it has there.
    pub(in crate::runtime) fn copy_back(&mut self, branch: usize, from: usize) {
        self.add_tokens_of(self.branch(branch), TRUNK, from);
    }

    /// Lets a sequence own the tokens of another from this position on, beside those that it has there: whatever is
    /// decoded in it afterwards sees them all.
    ///
    /// # Errors
    /// A sequence that does not exist.
    pub fn join_sequence(&mut self, from: i32, to: i32, position: usize) -> Result<(), RuntimeError> {
        for sequence in [from, to] {
            in_range("sequence", sequence as u64, 0, (self.slots + self.branches) as u64 - 1)?;
        }
        self.add_tokens_of(from, to, position);
        Ok(())
    }

    fn add_tokens_of(&mut self, from: i32, to: i32, position: usize) {
        let first = Some(position as u32);
        // Only positions over 2^31 can fail.
        let _ = self.cell.with_dependent_mut(|_, context| context.kv_cache_seq_cp(from, to, first, None));
    }

    /// Removes those branches. Cells that only they held are free again.
    pub(in crate::runtime) fn join(&mut self, branches: usize) {
        for branch in 0..branches {
            // Whole sequences can always be removed.
            self.cut_sequence(self.branch(branch), 0);
        }
    }

    /// Removes the tokens at and after a position from a sequence, or all its tokens if it cannot be cut there. Returns
    /// the number of tokens that are left.
    pub fn cut_sequence(&mut self, sequence: i32, position: usize) -> usize {
        let from = (position > 0).then_some(position as u32);
        let cut = self.cell.with_dependent_mut(|_, context| context.kv_cache_seq_rm(sequence, from, None));
        if cut.is_ok() || position == 0 {
            if sequence == TRUNK && position < self.held.len() {
                // Whoever counts the tokens of sequences also cuts the trunk: what is said to be held never is more
                // than what is there.
                self.held.truncate(position);
                self.row = None;
            }
            return position;
        }
        self.cut_sequence(sequence, 0)
    }

    /// Replaces the tokens of a sequence by the first tokens of another. Both share their cells.
    ///
    /// # Errors
    /// A sequence that does not exist.
    pub fn copy_sequence(&mut self, from: i32, to: i32, tokens: usize) -> Result<(), RuntimeError> {
        for sequence in [from, to] {
            in_range("sequence", sequence as u64, 0, (self.slots + self.branches) as u64 - 1)?;
        }
        self.cut_sequence(to, 0);
        self.copy(from, to, Some(tokens as u32));
        Ok(())
    }

    /// Runs one forward pass over tokens of several sequences, for callers that count positions themselves. The rows of
    /// logits are at [`Context::row`].
    ///
    /// # Errors
    /// No token, more than [`Context::n_batch`], a token outside the vocabulary or in a sequence that does not exist,
    /// or a failed forward pass: then the contents of the KV cache are not known.
    pub fn decode_pass(&mut self, tokens: &[PlacedToken]) -> Result<(), RuntimeError> {
        in_range("tokens of a pass", tokens.len() as u64, 1, self.n_batch as u64)?;
        let sequences = (self.slots + self.branches) as i32;
        for PlacedToken { token, position, sequences: of, .. } in tokens {
            self.vocab.check_tokens(std::slice::from_ref(token))?;
            in_range("position", *position as u64, 0, self.n_ctx as u64 - 1)?;
            if of.is_empty() || of.start < 0 || of.end > sequences {
                let most = sequences as u64 - 1;
                return Err(RuntimeError::OutOfRange { what: "sequence", value: of.end as u64, least: 0, most });
            }
        }
        self.decode_placed(tokens, |sequence| sequence)
    }

    /// The first and the last position of the trunk in the KV cache, if any. A window of attention or a recurrent state
    /// forgets the first positions.
    pub(super) fn trunk_positions(&self) -> Option<(u32, u32)> {
        let context = self.cell.borrow_dependent();
        let (first, last) = (context.kv_cache_seq_pos_min(TRUNK), context.kv_cache_seq_pos_max(TRUNK));
        Some((u32::try_from(first).ok()?, u32::try_from(last).ok()?))
    }

    /// Sequences that hold texts: 0, 1, ….
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns whether the model has a recurrent state in place of a KV cache. Its sequences cannot be cut, nor copied
    /// in part.
    pub fn is_recurrent(&self) -> bool {
        self.is_recurrent
    }

    /// Returns whether branches may stay in the cache for later passes.
    pub(in crate::runtime) fn keeps_branches(&self) -> bool {
        self.keeps_branches
    }

    /// Branches that can be decoded at once: the sequences after the slots.
    pub fn branches(&self) -> usize {
        self.branches
    }
}
