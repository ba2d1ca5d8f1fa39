//! Work that a context does: it says what it wants decoded, gets the rows, and never calls llama.cpp itself.

use super::context::{Context, PlacedToken, TRUNK, fits};
use super::error::RuntimeError;
use super::scoring::{Bounds, KeptBranches, PlannedWave, place_branches, plan, plan_draft};
use trie_core::{DecodeCost, Host, Job, Span, TokenId, WantedRows};

/// A [`Job`] of the runtime.
pub trait Task: Job<Error = RuntimeError> {
    /// Returns whether to end the task; called before every forward pass for it.
    fn stop(&mut self) -> bool;

    /// Returns the span whose allowed tokens are all that the task reads of the row after its prompt; `None` if it
    /// reads others, too.
    fn reads_allowed_by(&self) -> Option<&Span> {
        None
    }
}

impl Context {
    /// Runs a task to its end, with no other beside it.
    ///
    /// # Errors
    /// The task's own, an id outside the vocabulary, no room, a failed forward pass, or
    /// [`RuntimeError::Stopped`]. The context can be used afterwards.
    pub fn run(&mut self, task: &mut dyn Task) -> Result<(), RuntimeError> {
        let mut kept = KeptBranches::default();
        let ended = self.run_beside(&mut kept, task);
        self.remove_branches(kept.forget());
        ended
    }

    fn run_beside(&mut self, kept: &mut KeptBranches, task: &mut dyn Task) -> Result<(), RuntimeError> {
        while task.advance()? {
            let before = (self.forward_passes(), self.gathered_rows());
            if task.want().is_draft {
                let tokens = self.verify(task, kept)?;
                task.finish_batch(self.cost_since(before, tokens));
                continue;
            }
            let mut tokens = self.reach(task, kept)?;
            if task.want().tree.wants_root() {
                task.take(None, self.last_row()?)?;
            }
            let behind = self.tokens().len();
            let joined = self.join_branches(task);
            let grown = joined.and_then(|joined| Ok(joined + self.branch_out(task, kept)?));
            if !task.want().branches.is_empty() {
                self.cut_sequence(TRUNK, behind);
            }
            tokens += grown?;
            task.finish_batch(self.cost_since(before, tokens));
        }
        Ok(())
    }

    /// The cost of a batch of so many tokens, after so many passes and gathered rows.
    fn cost_since(&self, (passes, gathered): (u64, u64), tokens: usize) -> DecodeCost {
        let (forward_passes, gathered_rows) = (self.forward_passes() - passes, self.gathered_rows() - gathered);
        DecodeCost { forward_passes, tokens, gathered_rows }
    }

    /// Returns the limits of a task.
    pub fn host(&self) -> Host {
        Host { n_vocab: self.vocab().len(), room: self.n_ctx(), rows_at_once: self.branches() }
    }

    /// Checks that the tokens that a task wants exist and fit.
    fn check_wanted(&self, want: WantedRows<'_>) -> Result<(), RuntimeError> {
        let WantedRows { prompt, branches, tree, .. } = want;
        self.vocab().check_tokens(prompt)?;
        let inside: Vec<TokenId> = tree.nodes().iter().map(|node| node.token).collect();
        self.vocab().check_tokens(&inside)?;
        fits(0, prompt.len(), self.n_ctx())?;
        fits(prompt.len() + want.branch_tokens(), tree.depth(), self.n_ctx())?;
        branches.iter().try_for_each(|branch| Ok(self.vocab().check_tokens(branch)?))
    }

    /// Makes the context hold the prompt of the task, and returns the number of tokens that were decoded.
    fn reach(&mut self, task: &mut dyn Task, kept: &mut KeptBranches) -> Result<usize, RuntimeError> {
        self.check_wanted(task.want())?;
        self.forget_gathered();
        if !kept.is_empty() {
            let WantedRows { prompt, branches, tree, .. } = task.want();
            let left = self.keep_common_prefix(prompt, tree.wants_root());
            if !kept.stand_behind(self.tokens()) || !branches.is_empty() {
                self.remove_branches(kept.forget());
            } else if left > 0 {
                // The row after the last token must be computed.
                self.take_kept(&prompt[..prompt.len() - usize::from(tree.wants_root())], kept);
            }
        }
        let (mut done, mut is_whole) = (0, false);
        loop {
            let WantedRows { prompt, tree, .. } = task.want();
            let left = self.keep_common_prefix(prompt, tree.wants_root());
            while self.make_room(kept, left) {}
            if left == 0 {
                return Ok(done);
            }
            if task.stop() {
                return Err(RuntimeError::Stopped { what: "tokens", done, of: done + left });
            }
            let WantedRows { prompt, tree, .. } = task.want();
            let span = task.reads_allowed_by().filter(|_| !is_whole && tree.nodes().is_empty());
            done += self.approach(prompt, tree.wants_root(), span)?;
            // Where the device gave nothing to choose from, the whole row tells why.
            is_whole |= self.has_gathered_nothing();
        }
    }

    /// Makes the context hold the prompt of the task and the draft after it, gives the task their rows, and returns the
    /// number of tokens that were decoded. The paths of a draft are branches that are kept until the next batch tells
    /// which of them goes on; the trunk has the first.
    fn verify(&mut self, task: &mut dyn Task, kept: &mut KeptBranches) -> Result<usize, RuntimeError> {
        self.check_wanted(task.want())?;
        let mut done = 0;
        loop {
            // The row after the prompt is one of the pass, even if the context has it.
            let prompt = task.want().prompt;
            let begun = &prompt[..prompt.len().saturating_sub(1)];
            self.keep_common_prefix(begun, false);
            if kept.stand_behind(self.tokens()) {
                self.take_kept(begun, kept);
            }
            self.remove_branches(kept.forget());
            if task.stop() {
                let of = done + task.want().prompt.len() - self.tokens().len();
                return Err(RuntimeError::Stopped { what: "tokens", done, of });
            }
            let (want, held) = (task.want(), self.tokens().len());
            let rest = want.prompt.len() - held;
            if rest > self.n_batch() {
                done += self.approach(want.prompt, true, None)?;
                continue;
            }
            let branches = if self.is_recurrent() { 1 } else { self.branches().max(1) };
            let bounds = Bounds { branches, cells: self.n_ctx() - want.prompt.len() };
            let rows = PlannedWave::most_rows(self.vocab().len());
            let mut wave = plan_draft(want, held, bounds, self.n_batch(), rows);
            let branches = if wave.branches > 1 { self.begin_branches(&mut wave, kept)? } else { Vec::new() };
            self.decode_draft(&wave, &branches)?;
            task.take(None, self.row(rest - 1))?;
            for (index, node) in wave.nodes.iter().enumerate() {
                if let Some(node) = *node {
                    task.take(Some(node), self.row(index))?;
                }
            }
            return Ok(done + wave.tokens.len());
        }
    }

    /// Decodes the branches of the task behind the held tokens, each in a sequence of its own, and then lets the trunk
    /// own all of them, beyond the tokens that are held. Returns the number of tokens that were decoded.
    fn join_branches(&mut self, task: &mut dyn Task) -> Result<usize, RuntimeError> {
        let held = self.tokens().len();
        let of = task.want().branches.len();
        let (most, mut done) = (self.branches().max(1), 0);
        while done < of {
            let these = &task.want().branches[done..of.min(done + most)];
            let placed: Vec<PlacedToken> = place_branches(these, held);
            let count = these.len();
            self.fork(count)?;
            let decoded = placed.chunks(self.n_batch()).try_for_each(|piece| {
                if task.stop() {
                    return Err(RuntimeError::Stopped { what: "branches of the prompt", done, of });
                }
                self.decode_branches(piece)
            });
            if decoded.is_ok() {
                (0..count).for_each(|branch| self.copy_back(branch, held));
            }
            self.join(count);
            decoded?;
            done += count;
        }
        Ok(task.want().branch_tokens())
    }

    /// Decodes what the kept branches lack of the task's tree behind the held tokens, and keeps its branches. Returns
    /// the number of tokens that were decoded.
    fn branch_out(&mut self, task: &mut dyn Task, kept: &mut KeptBranches) -> Result<usize, RuntimeError> {
        let want = task.want();
        let bounds = Bounds { branches: self.branches(), cells: self.room() - want.branch_tokens() };
        let waves = plan(want.tree, self.tokens().len() + want.branch_positions(), bounds);
        // Branches of a prompt are no part of the held tokens.
        let keeps = self.keeps_branches() && want.branches.is_empty();
        let (mut tokens, of) = (0, waves.len());
        for (done, mut wave) in waves.into_iter().enumerate() {
            let grown =
                self.begin_branches(&mut wave, kept).and_then(|branches| self.wave(task, &wave, &branches, (done, of)));
            if grown.is_err() || !keeps {
                self.remove_branches(kept.forget());
            }
            tokens += grown?;
        }
        Ok(tokens)
    }

    /// Removes the older half of the kept branches if so many tokens have no room beside them. Returns whether it did.
    fn make_room(&mut self, kept: &mut KeptBranches, tokens: usize) -> bool {
        let older = if kept.cells() + tokens > self.room() { kept.forget_older() } else { Vec::new() };
        let is_more = !older.is_empty();
        self.remove_branches(older);
        is_more
    }

    /// Begins the branches of a wave, and returns their numbers. Only tokens that they lack are left in it.
    fn begin_branches(&mut self, wave: &mut PlannedWave, kept: &mut KeptBranches) -> Result<Vec<usize>, RuntimeError> {
        let mut placements = kept.place(self.branches(), self.tokens(), wave);
        while self.make_room(kept, wave.missing(&placements).count()) {
            placements = kept.place(self.branches(), self.tokens(), wave);
        }
        wave.drop_begun(&placements);
        let branches = placements.iter().map(|placement| placement.branch).collect();
        let begun = placements.iter().try_for_each(|placement| self.begin_branch(placement));
        kept.note(placements, wave);
        begun.map(|()| branches)
    }

    fn wave(
        &mut self,
        task: &mut dyn Task,
        wave: &PlannedWave,
        branches: &[usize],
        (done, of): (usize, usize),
    ) -> Result<usize, RuntimeError> {
        let (mut from, rows) = (0, PlannedWave::most_rows(self.vocab().len()));
        while from < wave.tokens.len() {
            if task.stop() {
                return Err(RuntimeError::Stopped { what: "parts of the set", done, of });
            }
            let piece = from..from + wave.piece(from, self.n_batch(), rows);
            self.decode_begun(&wave.tokens[piece.clone()], branches)?;
            for (index, node) in wave.nodes[piece.clone()].iter().enumerate() {
                if let Some(node) = *node {
                    task.take(Some(node), self.row(index))?;
                }
            }
            from = piece.end;
        }
        Ok(from)
    }
}
