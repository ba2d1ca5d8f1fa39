//! The shortest way to finish a form: tokens that end the current part, and the least number that the other parts
//! need.

use super::constraint::FormConstraint;
use super::state::{FormState, LastToken, PartPosition};
use crate::completion::{LIMITS, completion, spellings};
use std::iter::{empty, once, once_with};
use trie_core::work::Work;
use trie_core::{Constraint, Scratch, TokenId};

/// Numbers of states in which the end of a value is searched byte by byte: first the small one, which costs little,
/// and, if the most promising tokens lead to no end either, the large one.
const NEAR: usize = 200;
const FAR: usize = 5_000;

/// Few tokens that end the current part of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WayOut {
    /// The tokens. The last token may only end the part without being written.
    pub tokens: Vec<TokenId>,
    /// Number of tokens before the last one that is not forced, if there is one: that much room is needed to choose
    /// it.
    pub before_last_choice: Option<usize>,
    after: FormState,
}

/// The least number of tokens that the parts not yet begun need, by the number of fields filled before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestOfForm {
    filled: usize,
    /// Tokens from the end of each part up to the last choice of all, if there is one.
    needs: Vec<Option<usize>>,
}

impl RestOfForm {
    /// Returns the number of tokens that need room if this way is taken and the rest of the form is filled by its
    /// shortest ways: the tokens before the last choice of all. `field` is the number of the field that the way ends.
    pub fn room_for(&self, way: &WayOut, field: usize) -> usize {
        let rest = field.checked_sub(self.filled).and_then(|at| *self.needs.get(at)?);
        rest.map_or(way.before_last_choice.unwrap_or_default(), |rest| way.tokens.len() + rest)
    }
}

impl FormConstraint {
    /// Few tokens that end the current part, the same every time. `None` if none were found, if no part is begun, or
    /// if tokens are not taken back.
    pub fn way_out(&self, state: &FormState) -> Option<WayOut> {
        Work::new(LIMITS).run(|| self.shortest(state)).filter(|_| self.takes_back())
    }

    /// The least number of tokens that the later parts need; `None` if no way out of one of them was found.
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

    /// Returns the number of written tokens of the current value: tokens that extend beyond the unwritten text before
    /// it.
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

    /// Accepts a token and adds it to the way.
    fn follow(&self, way: &mut WayOut, token: TokenId) -> Option<()> {
        if self.forced_token(&way.after, &mut Scratch::default()) != Some(token) {
            way.before_last_choice = Some(way.tokens.len());
        }
        self.advance(&mut way.after, token)?;
        way.tokens.push(token);
        Some(())
    }

    /// Token sequences after which the current value may end.
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

    /// A token that ends the value here and is not written.
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
