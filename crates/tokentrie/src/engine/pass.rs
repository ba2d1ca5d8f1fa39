//! Scheduling of one forward pass: the tokens in it, and the jobs that get its rows.
//!
//! Every running job gets an even share of each pass. Room that is left goes to the jobs that were served longest ago.
//! So a long prompt takes the room that is left over, and no job waits while another has two turns. All rows of a pass
//! come at its end: if some job wants few tokens, long prompts get only a chunk of the pass.

use super::cells::Cells;
use super::core::{Core, WORTH_SHARING, catch_panic};
use super::job::Stage;
use super::slot::DraftPaths;
use llama_sampler::{Bounds, PlacedToken, PlannedWave, RuntimeError, place_branches, plan_draft};
use std::ops::Range;
use std::time::Instant;
use trie_core::{WantedRows, shared_length};

/// Share of a job in a pass.
struct Part {
    slot: usize,
    /// Range of its tokens in the pass.
    tokens: Range<usize>,
}

impl<M: Cells> Core<M> {
    /// One forward pass for all jobs that want something. Returns whether there were any.
    pub(super) fn pass(&mut self) -> bool {
        let began = Instant::now();
        self.go_on();
        let (tokens, parts) = self.compose();
        if tokens.is_empty() {
            return false;
        }
        self.counts.passes += 1;
        self.counts.tokens += tokens.len() as u64;
        let decoding = Instant::now();
        let decoded = self.cells.decode(&tokens);
        let took = decoding.elapsed();
        match decoded {
            Ok(()) => parts.iter().for_each(|part| self.deliver(part)),
            Err(error) => self.handle_failure(&parts, &error),
        }
        self.counts.decoding += took;
        self.counts.own += began.elapsed().saturating_sub(took);
        true
    }

    /// Returns the slots that want tokens in this pass: those of higher priority first, of these those served longest
    /// ago.
    fn by_turn(&self) -> Vec<usize> {
        let key = |&number: &usize| {
            let running = self.slots[number].running.as_ref();
            running.map(|running| {
                (std::cmp::Reverse(running.arrived.priority), running.served, running.arrived.seat.number)
            })
        };
        let mut numbers: Vec<usize> = (0..self.slots.len()).filter(|number| key(number).is_some()).collect();
        numbers.sort_by_key(key);
        numbers
    }

    fn compose(&mut self) -> (Vec<PlacedToken>, Vec<Part>) {
        let turns = self.by_turn();
        let mut wanted: Vec<(usize, usize)> = Vec::with_capacity(turns.len());
        let mut may_lend = true;
        for number in turns {
            let tokens = match self.slots[number].running.as_ref().map(|running| &running.stage) {
                Some(Stage::Prompt) => self.wanted_of_prompt(number),
                Some(Stage::Branches(_)) => self.wanted_of_branches(number, &mut may_lend),
                Some(Stage::Tree(_)) => self.wanted_of_tree(number, &mut may_lend),
                Some(Stage::Asking) | None => 0,
            };
            if tokens > 0 {
                wanted.push((number, tokens));
                if self.cells.piece().is_some() {
                    break;
                }
            }
        }
        let mut rows = PlannedWave::most_rows(self.cells.host().n_vocab);
        let granted = grant(&wanted, self.cells.n_batch(), self.prefill_chunk);
        let (mut tokens, mut parts) = (Vec::new(), Vec::new());
        for (&(slot, _), &most) in wanted.iter().zip(&granted) {
            let begin = tokens.len();
            self.push_tokens(slot, most, &mut rows, &mut tokens);
            if tokens.len() > begin {
                parts.push(Part { slot, tokens: begin..tokens.len() });
            }
        }
        (tokens, parts)
    }

    /// Returns the number of prompt tokens that a job wants decoded now: none while another job decodes the same
    /// prefix.
    fn wanted_of_prompt(&mut self, number: usize) -> usize {
        let left = self.undecoded_of_prompt(number);
        let Some(running) = self.slots[number].running.as_ref().filter(|_| left > 0) else { return left };
        left + running.arrived.job.want().drafted().len()
    }

    fn undecoded_of_prompt(&mut self, number: usize) -> usize {
        let left = self.left_of_prompt(number);
        if left < WORTH_SHARING || !self.cells.shares() {
            return left;
        }
        let Some(running) = &self.slots[number].running else { return 0 };
        let WantedRows { prompt, tree, .. } = running.arrived.job.want();
        // The row after the last token must be computed.
        let most = prompt.len() - usize::from(tree.wants_root());
        let here = self.slots[number].held.len();
        let others = self.slots.iter().enumerate().filter(|&(other, _)| other != number);
        let best = others.clone().map(|(other, slot)| (slot.shared_prefix(prompt).min(most), other)).max();
        let earlier = others.filter_map(|(_, slot)| slot.running.as_ref().map(|other| (slot, other)));
        let is_coming = |(slot, other): (&super::slot::Slot, &super::job::Running)| {
            let is_first = (other.arrived.priority, std::cmp::Reverse(other.arrived.seat.number))
                > (running.arrived.priority, std::cmp::Reverse(running.arrived.seat.number));
            let to_come = || shared_length(other.arrived.job.want().prompt, prompt).min(most);
            is_first && matches!(other.stage, Stage::Prompt) && {
                let to_come = to_come();
                to_come >= here + WORTH_SHARING && slot.held.len() < to_come
            }
        };
        if earlier.into_iter().any(is_coming) {
            return 0;
        }
        if let Some((shared, other)) = best.filter(|&(shared, _)| shared >= here + WORTH_SHARING)
            && self.cells.copy(other as i32, number as i32, shared).is_ok()
        {
            self.counts.tokens_reused += (shared - here) as u64;
            self.slots[number].held = self.slots[other].held[..shared].to_vec();
            return self.left_of_prompt(number);
        }
        left
    }

    /// Returns the number of tokens of its prompt's branches that a job wants decoded now: none while there are no free
    /// sequences for them.
    fn wanted_of_branches(&mut self, number: usize, may_lend: &mut bool) -> usize {
        let most = self.branches_at_once();
        let slot = &mut self.slots[number];
        let Some(running) = &mut slot.running else { return 0 };
        let Stage::Branches(spreading) = &mut running.stage else { return 0 };
        if spreading.lent.is_none() {
            let rest = &running.arrived.job.want().branches[spreading.done..];
            let next = &rest[..rest.len().min(most)];
            let Some(lent) = may_lend.then(|| self.branches.lend(number, next.len())).flatten() else {
                *may_lend = false;
                return 0;
            };
            for sequence in lent.clone() {
                // Both are sequences of this context.
                let _ = self.cells.copy(number as i32, sequence, slot.held.len());
            }
            (spreading.tokens, spreading.from) = (place_branches(next, slot.held.len()), 0);
            spreading.lent = Some(lent);
        }
        spreading.tokens.len() - spreading.from
    }

    /// Returns the number of tree tokens that a job wants decoded now: none while there are no free sequences for it.
    fn wanted_of_tree(&mut self, number: usize, may_lend: &mut bool) -> usize {
        let slot = &mut self.slots[number];
        let Some(Stage::Tree(growing)) = slot.running.as_mut().map(|running| &mut running.stage) else { return 0 };
        let Some(wave) = growing.waves.front() else { return 0 };
        let rest = wave.tokens.len() - growing.from;
        if growing.branches.is_some() {
            return rest;
        }
        // Who could not have its sequences goes first: nobody behind it takes them away.
        if !*may_lend {
            return 0;
        }
        let Some(lent) = self.branches.lend(number, wave.branches) else {
            *may_lend = false;
            return 0;
        };
        for sequence in lent.clone() {
            // Both are sequences of this context.
            let _ = self.cells.copy(number as i32, sequence, growing.behind);
        }
        growing.branches = Some(lent);
        rest
    }

    /// Adds at most so many tokens of a job.
    fn push_tokens(&mut self, number: usize, most: usize, rows: &mut usize, tokens: &mut Vec<PlacedToken>) {
        let most_paths = if self.cells.shares() { self.branches_at_once() } else { 1 };
        let slot = &mut self.slots[number];
        let Some(running) = &mut slot.running else { return };
        match &running.stage {
            Stage::Prompt => {
                let want = running.arrived.job.want();
                let WantedRows { prompt, tree, .. } = want;
                let rest = &prompt[slot.held.len()..];
                let whole = self.cells.piece().map_or(most, |piece| piece - slot.held.len() % piece);
                let mut piece = rest.len().min(most).min(whole);
                let mut is_wanted = piece == rest.len() && tree.wants_root();
                if is_wanted && *rows == 0 {
                    (piece, is_wanted) = (piece - 1, false);
                }
                if !is_wanted {
                    for (index, &token) in rest[..piece].iter().enumerate() {
                        let (position, sequences) = (slot.held.len() + index, number as i32..number as i32 + 1);
                        tokens.push(PlacedToken { token, position, sequences, wanted: false });
                    }
                    running.served = self.counts.passes + 1;
                    return;
                }
                // A draft goes with the last tokens before it, as far as there is room in the pass.
                let (held, room) = (slot.held.len(), self.cells.host().room - prompt.len());
                let planned = |branches| plan_draft(want, held, Bounds { branches, cells: room }, most, *rows);
                let mut wave = planned(most_paths);
                let mut first = number as i32;
                if wave.branches > 1 {
                    match self.branches.lend(number, wave.branches) {
                        None => wave = planned(1),
                        Some(lent) => {
                            first = lent.start;
                            let path = |path: i32| {
                                let of_path = wave.tokens.iter().filter(|placed| placed.sequences.contains(&path));
                                of_path.map(|placed| placed.token).collect()
                            };
                            let paths = (0..wave.branches as i32).map(path).collect();
                            for sequence in lent.clone() {
                                // Both are sequences of this context.
                                let _ = self.cells.copy(number as i32, sequence, held);
                            }
                            slot.paths = Some(DraftPaths { lent, held, tokens: paths });
                        }
                    }
                }
                for placed in wave.tokens {
                    *rows -= usize::from(placed.wanted);
                    let sequences = placed.sequences.start + first..placed.sequences.end + first;
                    tokens.push(PlacedToken { sequences, ..placed });
                }
            }
            Stage::Branches(spreading) => {
                let Some(lent) = &spreading.lent else { return };
                let rest = &spreading.tokens[spreading.from..];
                for placed in &rest[..rest.len().min(most)] {
                    let sequences = placed.sequences.start + lent.start..placed.sequences.end + lent.start;
                    tokens.push(PlacedToken { sequences, ..placed.clone() });
                }
            }
            Stage::Tree(growing) => {
                let (Some(wave), Some(lent)) = (growing.waves.front(), &growing.branches) else { return };
                let piece = wave.piece(growing.from, most, *rows);
                for placed in &wave.tokens[growing.from..growing.from + piece] {
                    let sequences = placed.sequences.start + lent.start..placed.sequences.end + lent.start;
                    *rows -= usize::from(placed.wanted);
                    tokens.push(PlacedToken { sequences, ..placed.clone() });
                }
            }
            Stage::Asking => {}
        }
        running.served = self.counts.passes + 1;
    }

    /// Gives a job its rows.
    fn deliver(&mut self, part: &Part) {
        let Self { slots, cells, branches, .. } = self;
        let slot = &mut slots[part.slot];
        let Some(running) = &mut slot.running else { return };
        let count = part.tokens.len();
        running.cost.forward_passes += 1;
        running.cost.tokens += count;
        let (job, work) = (&mut running.arrived.job, &running.arrived.work);
        let taken = match &mut running.stage {
            Stage::Prompt => {
                let want = job.want();
                let WantedRows { prompt, tree, .. } = want;
                let held = slot.held.len();
                let of_prompt = count.min(prompt.len() - held);
                slot.held.extend_from_slice(&prompt[held..held + of_prompt]);
                let is_whole = slot.held.len() == prompt.len();
                // A piece that ends with a row is none that a longer prompt has.
                if slot.pieces == held && cells.piece() == Some(count) && !(is_whole && tree.wants_root()) {
                    slot.pieces += count;
                }
                if !is_whole {
                    Ok(false)
                } else if tree.wants_root() {
                    let drafted = &want.drafted()[..count - of_prompt];
                    let first_path = drafted.iter().zip(1..).take_while(|(node, depth)| node.depth == *depth);
                    slot.held.extend(first_path.map(|(node, _)| node.token));
                    if let Some(paths) = &slot.paths {
                        // Both are sequences of this context.
                        let _ = cells.join(paths.lent.start, part.slot as i32, paths.held);
                    }
                    let wanted = (0..drafted.len()).filter(|&node| drafted[node].wanted).map(Some);
                    let rows: Vec<Option<usize>> = std::iter::once(None).chain(wanted).collect();
                    let first = part.tokens.start + of_prompt;
                    let taken = rows.into_iter().try_for_each(|node| {
                        let row = cells.row(node.map_or(first - 1, |node| first + node));
                        catch_panic(|| work.run(|| job.take(node, row)))
                    });
                    taken.map(|()| true)
                } else {
                    Ok(true)
                }
            }
            Stage::Branches(spreading) => {
                spreading.from += count;
                if spreading.from == spreading.tokens.len() {
                    let lent = spreading.give_back(branches);
                    for sequence in lent.into_iter().flatten() {
                        // Both are sequences of this context.
                        let _ = cells.join(sequence, part.slot as i32, slot.held.len());
                        cells.cut_sequence(sequence, 0);
                        spreading.done += 1;
                    }
                    slot.is_joined = true;
                }
                Ok(spreading.done == job.want().branches.len())
            }
            Stage::Tree(growing) => {
                let nodes = growing.waves.front().map_or(&[][..], |wave| &wave.nodes[growing.from..][..count]);
                let mut wanted = nodes.iter().enumerate().filter_map(|(index, node)| Some((index, (*node)?)));
                let taken = wanted.try_for_each(|(index, node)| {
                    catch_panic(|| work.run(|| job.take(Some(node), cells.row(part.tokens.start + index))))
                });
                growing.from += count;
                if growing.waves.front().is_some_and(|wave| growing.from == wave.tokens.len()) {
                    growing.waves.pop_front();
                    growing.from = 0;
                    let lent = growing.give_back(branches);
                    lent.into_iter().flatten().for_each(|sequence| {
                        cells.cut_sequence(sequence, 0);
                    });
                }
                taken.map(|()| false)
            }
            Stage::Asking => Ok(false),
        };
        match (taken, &running.stage) {
            (Err(error), _) => self.end(part.slot, Err(error)),
            (Ok(true), Stage::Prompt | Stage::Branches(_)) => self.begin_tree(part.slot),
            (Ok(_), Stage::Tree(growing)) if growing.waves.is_empty() => self.finish_batch(part.slot),
            _ => {}
        }
    }

    /// Handles a failed pass, after which the content of the cache is unknown. Jobs in the pass end, and so do jobs
    /// with a part of a tree in the cache; all others decode their prompts again.
    fn handle_failure(&mut self, parts: &[Part], error: &RuntimeError) {
        self.counts.failed_passes += 1;
        for number in 0..self.slots.len() {
            let is_part = parts.iter().any(|part| part.slot == number);
            if self.cells.piece().is_some() && !is_part {
                continue;
            }
            let running = self.slots[number].running.as_ref();
            if is_part || running.is_some_and(|running| matches!(running.stage, Stage::Tree(_) | Stage::Branches(_))) {
                self.end(number, Err(clone_error(error)));
            }
            self.keep(number, 0);
        }
    }
}

/// The same error for another job.
fn clone_error(error: &RuntimeError) -> RuntimeError {
    match error {
        RuntimeError::Decode { position, tokens, reason } => {
            RuntimeError::Decode { position: *position, tokens: *tokens, reason: reason.clone() }
        }
        other => RuntimeError::Failed { reason: other.to_string() },
    }
}

/// Returns the number of tokens that each job gets, out of `most`: an even share, and then the room that others leave,
/// in their order. Beside a job that wants at most a chunk, all larger jobs together get one chunk.
fn grant(wanted: &[(usize, usize)], most: usize, chunk: usize) -> Vec<usize> {
    let is_long = |tokens: usize| tokens > chunk;
    let is_mixed = wanted.iter().any(|&(_, tokens)| !is_long(tokens));
    let mut left = most;
    let mut left_of_long = if is_mixed { chunk.min(most) } else { most };
    let share = (most / wanted.len().max(1)).max(1);
    let mut granted = vec![0; wanted.len()];
    for limit in [share, most] {
        for (granted, &(_, tokens)) in granted.iter_mut().zip(wanted) {
            let of_kind = if is_long(tokens) { left_of_long } else { left };
            let more = (tokens - *granted).min(limit).min(of_kind).min(left);
            left -= more;
            left_of_long -= if is_long(tokens) { more } else { 0 };
            *granted += more;
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_pass() {
        assert_eq!(grant(&[(0, 1000), (1, 1), (2, 3)], 100, 100), [96, 1, 3]);
        assert_eq!(grant(&[(0, 1000), (1, 1000)], 100, 10), [50, 50]);
        assert_eq!(grant(&[(0, 5), (1, 5), (2, 5)], 2, 9), [1, 1, 0]);
        assert_eq!(grant(&[], 2, 9), [0; 0]);
    }

    #[test]
    fn long_ones_have_a_chunk_of_a_pass_beside_short_ones() {
        assert_eq!(grant(&[(0, 1000), (1, 1)], 100, 10), [10, 1]);
        assert_eq!(grant(&[(0, 1000), (1, 10), (2, 900)], 100, 10), [10, 10, 0]);
        assert_eq!(grant(&[(0, 1000)], 100, 10), [100]);
        assert_eq!(grant(&[(0, 1000), (1, 1)], 100, 1), [1, 1]);
        assert_eq!(grant(&[(0, 1000), (1, 60)], 100, 300), [50, 50], "a chunk that is longer than a pass");
    }
}
