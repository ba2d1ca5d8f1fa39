//! The shortest way out of a form: what ends the part that is being filled, and what the rest needs at least.

use super::constraint::FormConstraint;
use super::state::{FormState, LastToken, PartPosition};
use crate::completion::{LIMITS, completion, spellings};
use std::iter::{empty, once, once_with};
use trie_core::work::Work;
use trie_core::{Constraint, Scratch, TokenId};

/// States within which the end of a value is looked for byte by byte: first where that costs little, and where the most
/// promising tokens lead to no end either, further.
const NEAR: usize = 200;
const FAR: usize = 5_000;

/// Few tokens that end the part of a form that is being filled.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WayOut {
    /// The tokens. The last may only end the part, and not be written.
    pub tokens: Vec<TokenId>,
    /// Number of them before the last that has a rival, if one has: so much room is needed to choose it.
    pub before_last_choice: Option<usize>,
    after: FormState,
}

/// The fewest tokens that the parts of a form that are not begun need, by the number of fields that are filled before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestOfForm {
    filled: usize,
    /// Tokens before the last choice of all, if there is one, from the end of each part on.
    needs: Vec<Option<usize>>,
}

impl RestOfForm {
    /// Returns the number of tokens that need room if this continuation is taken and the form filled by others as
    /// short: those before the last choice of all. `field`: the number of the field that the way ends.
    pub fn room_for(&self, way: &WayOut, field: usize) -> usize {
        let rest = field.checked_sub(self.filled).and_then(|at| *self.needs.get(at)?);
        rest.map_or(way.before_last_choice.unwrap_or_default(), |rest| way.tokens.len() + rest)
    }
}

impl FormConstraint {
    /// Few tokens that end the part here, the same every time; `None` where none were found, or nothing is begun. Only
    /// where tokens are taken back.
    pub fn way_out(&self, state: &FormState) -> Option<WayOut> {
        Work::new(LIMITS).run(|| self.shortest(state)).filter(|_| self.takes_back())
    }

    /// The fewest tokens that the parts after this one need; `None` where one of them has no way out.
    pub fn rest_after(&self, way: &WayOut) -> Option<RestOfForm> {
        Work::new(LIMITS).run(|| {
            let (mut at, mut begins, mut last_choice) = (way.after.clone(), Vec::new(), None);
            let filled = at.filled_count();
            while !at.is_over() {
                let begin = at.written_count();
                begins.resize(at.filled_count() + 1 - filled, begin);
                let way = self.shortest(&at)?;
                last_choice = way.before_last_choice.map(|before| begin + before).or(last_choice);
                at = way.after;
            }
            let needs = begins.into_iter().map(|begin| last_choice?.checked_sub(begin)).collect();
            Some(RestOfForm { filled: filled.saturating_sub(1), needs })
        })
    }

    /// Returns the number of written tokens of the value that is being filled: those that have more bytes than the text
    /// before it.
    pub fn tokens_begun(&self, state: &FormState) -> usize {
        let (mut rest, bytes) = (state.before.rest, |token| self.vocab.piece(token).map_or(0, <[u8]>::len));
        let is_own = |&token: &TokenId| {
            let own = bytes(token) > rest;
            rest = rest.saturating_sub(bytes(token));
            own
        };
        state.tokens.iter().copied().filter(is_own).count()
    }

    fn shortest(&self, from: &FormState) -> Option<WayOut> {
        let mut way = WayOut { tokens: Vec::new(), before_last_choice: None, after: from.clone() };
        while let PartPosition::Lead(lead, _) = &way.after.at {
            let token = lead.get(way.after.tokens.len()).copied()?;
            self.follow(&mut way, token)?;
        }
        let is_left = |at: &FormState| at.is_over() || at.filled_count() > from.filled_count();
        if is_left(&way.after) {
            return Some(way);
        }
        for tokens in self.endings_inside(&way.after) {
            let mut tried = way.clone();
            let mut tokens = tokens.into_iter();
            while let Some(token) = (!is_left(&tried.after)).then(|| tokens.next()).flatten() {
                if self.follow(&mut tried, token).is_none() {
                    break;
                }
            }
            if tokens.len() > 0 && !is_left(&tried.after) {
                continue;
            }
            if !is_left(&tried.after)
                && let Some(end) = self.end_token(&tried.after)
            {
                self.follow(&mut tried, end)?;
            }
            if is_left(&tried.after) {
                return Some(tried);
            }
        }
        None
    }

    /// Goes on by a token of the way.
    fn follow(&self, way: &mut WayOut, token: TokenId) -> Option<()> {
        if self.forced_token(&way.after, &mut Scratch::default()) != Some(token) {
            way.before_last_choice = Some(way.tokens.len());
        }
        self.advance(&mut way.after, token)?;
        way.tokens.push(token);
        Some(())
    }

    /// Tokens after which the value that is being filled may end.
    fn endings_inside<'a>(&'a self, state: &'a FormState) -> Box<dyn Iterator<Item = Vec<TokenId>> + 'a> {
        match &state.at {
            PartPosition::Rule { rule, at, .. } => {
                let within = |most_states| {
                    let bytes = once_with(move || rule.shortest_end(at, most_states)).flatten();
                    bytes.flat_map(|bytes| spellings(&self.vocab, &bytes).collect::<Vec<_>>())
                };
                let promising = once_with(|| completion(rule.constraint(), at, &self.vocab)).flatten();
                Box::new(within(NEAR).chain(promising).chain(within(FAR)))
            }
            PartPosition::Set(set, at) => Box::new(completion(set.constraint(), at, &self.vocab).into_iter()),
            PartPosition::Held(..) | PartPosition::Free(..) => Box::new(once(Vec::new())),
            PartPosition::Lead(..) | PartPosition::Over | PartPosition::Failed(_) => Box::new(empty()),
        }
    }

    /// A token that ends the value here, and is not written.
    fn end_token(&self, state: &FormState) -> Option<TokenId> {
        let ends = |&token: &TokenId| {
            let after = self.step(state, token).map(|step| step.state);
            after.is_some_and(|after| {
                after.last_token() != LastToken::Written && after.filled_count() > state.filled_count()
            })
        };
        Self::end_tokens(state).iter().chain(self.vocab.end_of_generation()).copied().find(ends)
    }
}
