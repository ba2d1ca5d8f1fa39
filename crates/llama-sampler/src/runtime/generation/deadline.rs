//! The end of the room: as it comes near, the value that is being written is completed with few tokens.

use std::collections::{BTreeSet, VecDeque};
use trie_core::work::{Limits, Work};
use trie_core::{After, Allowed, AnyState, Constraint, Ending, Scratch, SpanRules, SpanState, Status, TokenId, Tokens};
use trie_text::{CompletionBound, FormConstraint, FormState, RestOfForm, Vocab, completion};

/// Tokens kept in reserve when a form ends in time, because tokenizations of texts differ slightly at their boundaries.
const RESERVE: usize = 4;

/// The cost of all searches of one generation together. Once it is spent, values are cut off.
const LIMITS: Limits = Limits::NONE.steps(20_000_000).seconds(5.0);

/// Slack in tokens up to which each token of the model is checked before it is written.
const NEAR: usize = 64;

/// Assumed need in tokens, before the need is computed for the first time.
const USUAL: usize = 256;

/// Schedule for computing the tokens that a value still needs, and the tokens that end it in time.
#[derive(Debug)]
pub(super) struct Deadline {
    /// The remaining room at which the need is computed next.
    look_at: usize,
    /// `true` if each token of the model must be checked.
    near: bool,
    /// Number of tokens that are kept in reserve.
    reserve: usize,
    /// Tokens that end the value that is being written.
    way: VecDeque<TokenId>,
}

impl Deadline {
    /// Builds a deadline for this room, of which `needed` tokens are needed in any case. Far from the end of the room,
    /// nothing is computed.
    fn new(room: usize, needed: usize, reserve: usize) -> Self {
        let look_at = (room / 8).saturating_add(USUAL).saturating_add(needed);
        Self { look_at, near: false, reserve, way: VecDeque::new() }
    }

    /// The next token that ends the value, if a way out is known.
    pub(super) fn next(&self) -> Option<TokenId> {
        self.way.front().copied()
    }

    /// Drops the token that [`Self::next`] returned, once it was written.
    pub(super) fn follow(&mut self) {
        self.way.pop_front();
    }

    /// Returns whether each token of the model must be checked.
    pub(super) fn is_near(&self) -> bool {
        self.near
    }

    /// Computes the need if so little room is left that it must be known. `need` returns `None` if there is no way out,
    /// though there may be one later.
    fn look(&mut self, left: usize, need: impl FnOnce() -> Option<usize>) {
        if left > self.look_at {
            return;
        }
        let Some(need) = need() else {
            (self.look_at, self.near) = (left / 2, false);
            return;
        };
        let slack = left.saturating_sub(need);
        self.near = need <= left && slack <= NEAR.saturating_add(need);
        self.look_at = left.saturating_sub((slack / 4).max(1));
    }

    /// Checks a token of the model with this much room left. `after` is the need with that token. If it is too much,
    /// the value ends by its way out without the token. Returns whether it does so now.
    fn check(
        &mut self,
        left: usize,
        after: Option<usize>,
        without: impl FnOnce() -> Option<(usize, Vec<TokenId>)>,
    ) -> bool {
        if after.is_some_and(|need| need.saturating_add(self.reserve) <= left) {
            return false;
        }
        let Some((need, way)) = without() else { return false };
        let ends = !way.is_empty() && need <= left && after.is_none_or(|after| after > need);
        if ends {
            self.way = way.into();
        }
        ends
    }
}

/// The deadline of a form.
#[derive(Debug)]
pub(super) struct FormDeadline {
    pub(super) of_value: Deadline,
    rest: Option<RestOfForm>,
    /// The numbers of the fields that were ended in time.
    completed: BTreeSet<usize>,
}

impl FormDeadline {
    /// Builds the deadline for this room, and for literals of this many bytes.
    pub(super) fn new(room: usize, literals: usize) -> Self {
        Self { of_value: Deadline::new(room, literals, RESERVE), rest: None, completed: BTreeSet::new() }
    }

    /// Returns whether the field with this number was ended in time.
    pub(super) fn has_completed(&self, field: usize) -> bool {
        self.completed.contains(&field)
    }

    /// As [`Deadline::look`], inside of a form.
    pub(super) fn look(&mut self, form: &FormConstraint, at: &FormState, left: usize) {
        let rest = &mut self.rest;
        self.of_value.look(left, || need(rest, form, at).map(|(need, _)| need));
    }

    /// The same as [`Deadline::check`], for a token that leads from one state to another.
    pub(super) fn check(&mut self, form: &FormConstraint, at: &FormState, after: &FormState, left: usize) {
        if after.is_over() {
            return;
        }
        let (rest, written) = (&mut self.rest, after.written_count().saturating_sub(at.written_count()));
        let need_after = need(rest, form, after).map(|(need, _)| need.saturating_add(written));
        if self.of_value.check(left, need_after, || need(rest, form, at)) {
            self.completed.insert(at.filled_count());
        }
    }
}

/// The room that the form needs from this state on, and the tokens that end the current value.
fn need(rest: &mut Option<RestOfForm>, form: &FormConstraint, at: &FormState) -> Option<(usize, Vec<TokenId>)> {
    let way = form.way_out(at)?;
    if rest.is_none() {
        *rest = Some(form.rest_after(&way)?);
    }
    let need = rest.as_ref()?.room_for(&way, at.filled_count());
    Some((need, way.tokens))
}

/// The deadline of values inside a span.
#[derive(Debug)]
pub(super) struct SpanDeadline {
    pub(super) of_value: Deadline,
    search: Search,
    completed: bool,
}

impl SpanDeadline {
    /// Builds the deadline for this room. `closes`: whether the tokens that close a value must have room, too.
    /// `thought_end`: the tokens that end a thought before a value.
    pub(super) fn new(room: usize, closes: bool, thought_end: Vec<TokenId>) -> Self {
        let search = Search { work: None, closes, thought_end, value_after: Vec::new(), bound: None };
        Self { of_value: Deadline::new(room, search.thought_end.len(), 0), search, completed: false }
    }

    /// Returns whether a value was ended in time.
    pub(super) fn has_completed(&self) -> bool {
        self.completed
    }

    /// As [`Deadline::look`], inside of a span.
    pub(super) fn look(&mut self, vocab: &Vocab, rules: &SpanRules, at: &SpanState<AnyState>, left: usize) {
        if left <= self.of_value.look_at && !fits(rules, at, left) && self.search.is_held(rules, at) {
            let search = &mut self.search;
            self.of_value.look(left, || search.way_out(vocab, rules, at).map(|(need, _)| need));
        }
    }

    /// The same as [`Deadline::check`], for a token. `begun`: whether part of a value is written, since nothing else is
    /// ended.
    pub(super) fn check(
        &mut self,
        vocab: &Vocab,
        rules: &SpanRules,
        (at, token): (&SpanState<AnyState>, TokenId),
        (left, begun): (usize, bool),
    ) {
        if fits(rules, at, left) {
            return;
        }
        let search = &mut self.search;
        let Some(after) = rules.step(at, token).map(|step| step.state).filter(|after| search.is_held(rules, after))
        else {
            return;
        };
        // Free text goes on to a value: where that has no room, and none is written, the text is cut off.
        if !begun && !search.is_held(rules, at) {
            return;
        }
        // Mostly there is room for any way out that the search could find.
        if search.most(vocab, rules, &after).is_some_and(|most| most < left) {
            return;
        }
        let need_after = search.way_out(vocab, rules, &after).map(|(need, _)| need + 1);
        let without = || search.way_out(vocab, rules, at);
        self.completed |= self.of_value.check(left, need_after, without);
    }
}

/// Returns whether the rest of each value fits in this room, with a token that closes it: then none has to be ended in
/// time.
fn fits(rules: &SpanRules, at: &SpanState<AnyState>, left: usize) -> bool {
    rules.constraint(at).as_trie().is_some_and(|set| set.max_depth().saturating_sub(at.depth()) < left)
}

/// Returns the state after some tokens, all of which must be allowed.
fn walk_tokens(rules: &SpanRules, at: &SpanState<AnyState>, tokens: &[TokenId]) -> Option<SpanState<AnyState>> {
    let mut end = at.clone();
    tokens.iter().try_for_each(|&token| rules.advance(&mut end, token).map(drop))?;
    Some(end)
}

/// Returns whether an unfinished value stands or begins here, so that not every token is allowed.
fn is_held(rules: &SpanRules, at: &SpanState<AnyState>) -> bool {
    let constraint = rules.constraint(at);
    at.status() == Status::Active
        && match constraint.ending(at.position()) {
            Ending::Free => false,
            Ending::May | Ending::Must => true,
            Ending::No => !matches!(constraint.next(at.position(), &mut Scratch::default()).tokens, Tokens::Except(_)),
        }
}

/// The search for ways out of values.
#[derive(Debug)]
struct Search {
    /// The cost that is left for searches, set by the first search.
    work: Option<Work>,
    closes: bool,
    thought_end: Vec<TokenId>,
    /// The value that was found behind a thought, which is the same for each token of the thought.
    value_after: Vec<TokenId>,
    /// The bound of a constraint, and its number.
    bound: Option<(usize, CompletionBound<AnyState>)>,
}

impl Search {
    /// Returns whether an unfinished value stands or begins here, or a value must come after the current thought.
    fn is_held(&self, rules: &SpanRules, at: &SpanState<AnyState>) -> bool {
        is_held(rules, at) || self.after_thought(rules, at).is_some()
    }

    /// The state behind the current thought, if a value must come there.
    fn after_thought(&self, rules: &SpanRules, at: &SpanState<AnyState>) -> Option<SpanState<AnyState>> {
        let in_thought = !self.thought_end.is_empty()
            && at.status() == Status::Active
            && rules.constraint(at).ending(at.position()) == Ending::No
            && !is_held(rules, at);
        let after = || walk_tokens(rules, at, &self.thought_end);
        in_thought.then(after).flatten().filter(|after| is_held(rules, after))
    }

    /// Returns a number of tokens that [`Search::way_out`] does not exceed; `None` if only the search itself can tell.
    fn most(&mut self, vocab: &Vocab, rules: &SpanRules, at: &SpanState<AnyState>) -> Option<usize> {
        if !is_held(rules, at) {
            return None;
        }
        let number = at.constraint_number();
        if self.bound.as_ref().is_none_or(|(of, _)| *of != number) {
            self.bound = Some((number, CompletionBound::new(vocab)));
        }
        let work = self.work.get_or_insert_with(|| Work::new(LIMITS));
        let (_, bound) = self.bound.as_mut()?;
        let whole = work.run(|| bound.most(rules.constraint(at), at.position(), vocab))?;
        // One token closes the value.
        Some(whole + 1)
    }

    /// The number of tokens needed, and a short run of tokens that ends the value and closes it.
    fn way_out(&mut self, vocab: &Vocab, rules: &SpanRules, at: &SpanState<AnyState>) -> Option<(usize, Vec<TokenId>)> {
        let work = self.work.get_or_insert_with(|| Work::new(LIMITS));
        let work = work.clone();
        let find = |from: &SpanState<AnyState>| work.run(|| completion(rules.constraint(from), from.position(), vocab));
        let (mut way, end) = match self.after_thought(rules, at) {
            None => {
                let way = find(at)?;
                let end = walk_tokens(rules, at, &way)?;
                (way, end)
            }
            Some(from) => {
                let is_value = |end: &SpanState<AnyState>| {
                    end.status() != Status::Active || rules.constraint(end).ending(end.position()) != Ending::No
                };
                let known = walk_tokens(rules, &from, &self.value_after).filter(is_value);
                let end = if let Some(end) = known {
                    end
                } else {
                    self.value_after = find(&from)?;
                    walk_tokens(rules, &from, &self.value_after)?
                };
                ([&*self.thought_end, &*self.value_after].concat(), end)
            }
        };
        let whole = way.len();
        if end.status() == Status::Active {
            match rules.allowed(&end, &mut Scratch::default()) {
                Allowed::Only { ends, .. } => way.push(*ends.first()?),
                // Any token ends it.
                Allowed::Open { .. } if rules.after_value() == After::Stop => {
                    way.push(*rules.end_of_generation().first()?);
                }
                _ => {}
            }
        }
        Some((if self.closes { way.len() } else { whole }, way))
    }
}
