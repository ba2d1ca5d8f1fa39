//! Constraints one after the other.

use super::{
    AllExcept, AnyConstraint, AnyState, Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, Thought,
    Tokens, WeightedList,
};
use crate::set::ids::TokenId;
use crate::set::trie::{Leaf, Trie};
use std::sync::Arc;

/// One constraint after the other: each part begins where a value of the part before ends.
///
/// Where a value ends but may also continue, a token that could do both is taken to continue the value. So a value of
/// the next part that begins with the same token cannot follow there. The same holds for end tokens.
///
/// ```
/// use trie_core::{AnyConstraint, Scratch, Sequence, Span, SpanRules, TokenId, Trie};
/// let id = |id| TokenId::new(id).unwrap();
/// let set = |values: &[(&str, u32)]| {
///     let mut builder = Trie::builder();
///     values.iter().for_each(|&(name, token)| builder.push(Some(name), &[id(token)]));
///     builder.build().map(AnyConstraint::from)
/// };
/// let parts = [set(&[("get", 1), ("set", 2)])?, set(&[("name", 7), ("color", 9)])?];
/// let rules = SpanRules::for_constraint(AnyConstraint::new(Sequence::new(parts)?), 10)?;
/// let mut span = Span::new(rules.into());
/// span.accept_all(&[id(2), id(9)])?;
/// let names: Vec<_> = span.leaves().into_iter().filter_map(|leaf| leaf.name).collect();
/// assert_eq!(names, ["set", "color"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sequence {
    parts: Arc<[AnyConstraint]>,
}

/// Reasons why constraints cannot form a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    /// No part at all.
    #[error("a sequence needs at least one part")]
    NoParts,
    /// A part that never ends is followed by another.
    #[error("part {part} of {parts} lets everything come, so nothing can follow it: it must be the last")]
    NeverEnds {
        /// Its number, from 0.
        part: usize,
        /// Total number of parts.
        parts: usize,
    },
    /// A part that begins with the end of the prompt, after another part.
    #[error("part {part} begins inside the text before it (token healing): only the first may")]
    Healed {
        /// Its number, from 0.
        part: usize,
    },
}

crate::error_kind!(SequenceError, Argument);

/// Position of a walk through a [`Sequence`].
#[derive(Debug, Clone, PartialEq)]
pub struct SequenceState {
    part: usize,
    at: AnyState,
    before: Option<Arc<PassedPart>>,
}

/// A part that was passed: the state at its end, and those before.
#[derive(Debug, PartialEq)]
struct PassedPart {
    at: AnyState,
    before: Option<Arc<PassedPart>>,
}

impl Sequence {
    /// A sequence of these parts, in their order. A sequence among them is replaced by its own parts.
    ///
    /// # Errors
    /// No part, a part without end that is not the last, or a set that begins inside the prompt and is not the first.
    pub fn new(parts: impl IntoIterator<Item = AnyConstraint>) -> Result<Self, SequenceError> {
        // Or its last part could be one that never ends, before others.
        let flat = |part: AnyConstraint| match part.downcast_ref::<Self>() {
            Some(inner) => inner.parts.to_vec(),
            None => vec![part],
        };
        let parts: Arc<[AnyConstraint]> = parts.into_iter().flat_map(flat).collect();
        if parts.is_empty() {
            return Err(SequenceError::NoParts);
        }
        if let Some(part) = parts[..parts.len() - 1].iter().position(Special::never_ends) {
            return Err(SequenceError::NeverEnds { part, parts: parts.len() });
        }
        let healed = |part: &AnyConstraint| part.first_set().is_some_and(|set| set.heal_bytes() > 0);
        if let Some(part) = parts.iter().skip(1).position(healed) {
            return Err(SequenceError::Healed { part: part + 1 });
        }
        Ok(Self { parts })
    }

    /// Returns the constraints in order.
    pub fn parts(&self) -> &[AnyConstraint] {
        &self.parts
    }

    fn is_last(&self, part: usize) -> bool {
        part + 1 >= self.parts.len()
    }

    /// Goes on to the next part where this one is over.
    fn settle(&self, state: &mut SequenceState) {
        if !self.is_last(state.part) && self.parts[state.part].ending(&state.at) == Ending::Must {
            state.pass(self.parts[state.part + 1].start());
        }
    }
}

impl SequenceState {
    /// Leaves a part behind, for the next one at this state.
    fn pass(&mut self, next: AnyState) {
        let at = std::mem::replace(&mut self.at, next);
        self.before = Some(Arc::new(PassedPart { at, before: self.before.take() }));
        self.part += 1;
    }
}

impl Constraint for Sequence {
    type State = SequenceState;

    fn start(&self) -> SequenceState {
        SequenceState { part: 0, at: self.parts[0].start(), before: None }
    }

    fn next<'a>(&'a self, state: &'a SequenceState, scratch: &'a mut Scratch) -> Next<'a> {
        let Some(part) = self.parts.get(state.part) else {
            return Next { tokens: Tokens::default(), ending: Ending::No };
        };
        if self.is_last(state.part) || part.ending(&state.at) != Ending::May {
            return part.next(&state.at, scratch);
        }
        // A value ends here: those that go on in this part, and the first of the next one.
        let (ids, weighted, scratch) = scratch.split_weighted();
        ids.clear();
        weighted.clear(0.0);
        let on = part.next(&state.at, scratch).tokens;
        if let Tokens::Except(on) = on {
            // It takes all but those itself.
            ids.extend_from_slice(on.denied_tokens());
            return self.or_first(state, ids, weighted, scratch, true);
        }
        if on.weights().is_some() {
            weighted.extend(on.weigh());
        }
        ids.extend(on.iter());
        self.or_first(state, ids, weighted, scratch, false)
    }

    fn advance(&self, state: &mut SequenceState, token: TokenId) -> Option<Role> {
        let part = self.parts.get(state.part)?;
        if let Some(role) = part.advance(&mut state.at, token) {
            self.settle(state);
            return Some(role);
        }
        if self.is_last(state.part) || part.ending(&state.at) != Ending::May {
            return None;
        }
        let next = &self.parts[state.part + 1];
        let mut first = next.start();
        let role = next.advance(&mut first, token)?;
        state.pass(first);
        self.settle(state);
        Some(role)
    }

    fn forced_token(&self, state: &SequenceState, scratch: &mut Scratch) -> Option<TokenId> {
        let part = self.parts.get(state.part)?;
        if part.ending(&state.at) == Ending::No {
            return part.forced_token(&state.at, scratch);
        }
        let Next { tokens, ending } = self.next(state, scratch);
        (ending == Ending::No).then(|| tokens.single_token()).flatten()
    }

    fn values(&self, state: &SequenceState, over: bool) -> Vec<Leaf> {
        let mut passed = Vec::new();
        let mut before = &state.before;
        while let Some(part) = before {
            passed.push(&part.at);
            before = &part.before;
        }
        let passed = passed.into_iter().rev().zip(self.parts.iter()).flat_map(|(at, part)| part.values(at, true));
        passed.chain(self.parts.get(state.part).map_or_else(Vec::new, |part| part.values(&state.at, over))).collect()
    }

    fn problem(&self, state: &SequenceState) -> Option<Problem> {
        self.parts.get(state.part)?.problem(&state.at)
    }

    fn max_token(&self) -> Option<TokenId> {
        self.parts.iter().filter_map(Constraint::max_token).max()
    }

    fn sets(&self) -> Vec<&Trie> {
        self.parts.iter().flat_map(Constraint::sets).collect()
    }

    /// One value for each path through the parts, named by their joined names.
    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        let sets: Vec<Trie> = self.parts.iter().map(|part| part.to_trie(limit)).collect::<Result<_, _>>()?;
        let count =
            sets.iter().try_fold(1usize, |count, set| count.checked_mul(set.len()).filter(|&count| count <= limit));
        count.ok_or(NotListed::TooMany { limit })?;
        let mut values = vec![(String::new(), Vec::new())];
        for set in &sets {
            let leaves: Vec<Leaf> = set.leaves().collect();
            let longer = |(name, tokens): &(String, Vec<TokenId>)| {
                let after = |leaf: &Leaf| {
                    (
                        format!("{name}{}", leaf.name.as_deref().unwrap_or_default()),
                        [tokens.as_slice(), &leaf.tokens].concat(),
                    )
                };
                leaves.iter().map(after).collect::<Vec<_>>()
            };
            values = values.iter().flat_map(longer).collect();
        }
        let named =
            sets.iter().all(|set| set.leaf(crate::set::ids::LeafId::new(0)).is_some_and(|leaf| leaf.name.is_some()));
        let mut builder = Trie::builder();
        for (name, tokens) in values.iter().filter(|(_, tokens)| self.takes(tokens)) {
            builder.push(named.then_some(name.as_str()), tokens);
        }
        let heal_bytes = sets[0].heal_bytes() as u32;
        let ends = self.sets().last().map_or(&[][..], |last| last.end_tokens());
        let trie = builder.build().map_err(|_| NotListed::Damaged)?;
        Ok(trie.with_heal_bytes(heal_bytes).with_end_tokens(ends))
    }
}

impl Special for Sequence {
    fn never_ends(&self) -> bool {
        self.parts.last().is_some_and(Special::never_ends)
    }

    fn depth(&self) -> usize {
        self.parts.iter().map(Special::depth).max().unwrap_or(0)
    }

    fn barred_tokens(&self) -> &[TokenId] {
        // Of several gates each bars what follows it: only the last one is followed by what comes after the span.
        self.parts.iter().rev().map(Special::barred_tokens).find(|barred| !barred.is_empty()).unwrap_or_default()
    }

    fn thought(&self, state: &SequenceState) -> Thought {
        let passed = std::iter::successors(state.before.as_deref(), |part| part.before.as_deref());
        let passed = passed.zip(self.parts[..state.part.min(self.parts.len())].iter().rev());
        let now = self.parts.get(state.part).map_or_else(Thought::default, |part| part.thought(&state.at));
        passed.fold(now, |sum, (passed, part)| sum + part.thought(&passed.at))
    }

    fn first_set(&self) -> Option<&Trie> {
        self.parts.first().and_then(Special::first_set)
    }
}

impl Sequence {
    /// Returns the tokens that continue this part or begin the next one: `ids` are those tokens, or, with `all_but`,
    /// the exceptions; `weighted` the same with weights.
    fn or_first<'a>(
        &self,
        state: &SequenceState,
        ids: &'a mut Vec<TokenId>,
        weighted: &'a mut WeightedList,
        scratch: &mut Scratch,
        all_but: bool,
    ) -> Next<'a> {
        let (next, start) = (&self.parts[state.part + 1], self.parts[state.part + 1].start());
        let first = next.next(&start, scratch);
        let ending = if first.ending == Ending::Free { Ending::Free } else { Ending::No };
        let tokens = match first.tokens {
            first if all_but => {
                ids.retain(|&token| !first.contains(token));
                Tokens::Except(AllExcept::new(ids))
            }
            Tokens::Except(first) => {
                let denied = first.denied_tokens().iter().copied().filter(|token| !ids.contains(token)).collect();
                *ids = denied;
                Tokens::Except(AllExcept::new(ids))
            }
            first if !weighted.is_empty() || first.weights().is_some() => {
                // What this part takes counts as it does here. No end token is written between parts, so none weighs.
                weighted.extend(ids.iter().map(|&token| (token, 0.0)));
                weighted.extend(first.weigh());
                weighted.tokens()
            }
            first => {
                ids.extend(first.iter());
                ids.sort_unstable();
                ids.dedup();
                Tokens::Ids(ids)
            }
        };
        Next { tokens, ending }
    }

    /// Returns whether these tokens are a value: one part may take tokens that another needs.
    fn takes(&self, tokens: &[TokenId]) -> bool {
        let walked = tokens.iter().try_fold(self.start(), |at, &token| self.step(&at, token).map(|step| step.state));
        walked.is_some_and(|at| self.is_last(at.part) && matches!(self.ending(&at), Ending::May | Ending::Must))
    }
}
