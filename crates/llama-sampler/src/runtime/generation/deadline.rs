//! The end of the room that a form has: where it comes near, the value that is being written ends by few tokens.

use std::collections::{BTreeSet, VecDeque};
use trie_core::TokenId;
use trie_text::{FormConstraint, FormState, RestOfForm};

/// Tokens that are left over where a form ends in time: texts differ by some at their boundaries.
const RESERVE: usize = 4;

/// Tokens beyond the need up to which each token of the model's is looked at before it is written.
const NEAR: usize = 64;

/// Room for what a form needs beside its literals, before that is worked out the first time.
const USUAL: usize = 256;

/// What is left of the room, and the tokens that end a value in time.
#[derive(Debug)]
pub(super) struct Deadline {
    /// The room that is left when the need is worked out next.
    look_at: usize,
    /// Whether each token counts.
    near: bool,
    rest: Option<RestOfForm>,
    /// Tokens that end the value that is being written.
    way: VecDeque<TokenId>,
    /// The numbers of the fields that were ended so.
    completed: BTreeSet<usize>,
}

impl Deadline {
    /// Far away from the end of this room, after which literals of so many bytes follow. As long as it is, nothing is
    /// worked out.
    pub(super) fn new(room: usize, literals: usize) -> Self {
        let look_at = (room / 8).saturating_add(USUAL).saturating_add(literals);
        Self { look_at, near: false, rest: None, way: VecDeque::new(), completed: BTreeSet::new() }
    }

    /// The next token that ends the value, where there is a way.
    pub(super) fn next(&self) -> Option<TokenId> {
        self.way.front().copied()
    }

    /// That token was written.
    pub(super) fn follow(&mut self) {
        self.way.pop_front();
    }

    /// Whether the field with this number was ended so.
    pub(super) fn has_completed(&self, field: usize) -> bool {
        self.completed.contains(&field)
    }

    /// Whether each token counts.
    pub(super) fn is_near(&self) -> bool {
        self.near
    }

    /// Looks how near the end is, if so much room is left that it may be.
    pub(super) fn look(&mut self, form: &FormConstraint, at: &FormState, left: usize) {
        if left > self.look_at {
            return;
        }
        let Some((need, _)) = self.need(form, at) else {
            // Perhaps there is a way later.
            (self.look_at, self.near) = (left / 2, false);
            return;
        };
        let slack = left.saturating_sub(need);
        self.near = need <= left && slack <= NEAR.saturating_add(need);
        self.look_at = left.saturating_sub((slack / 4).max(1));
    }

    /// Looks whether the form can still end in time after a token of the model's, which leads from one state to another
    /// where so much room is left; else the value ends another way.
    pub(super) fn check(&mut self, form: &FormConstraint, at: &FormState, after: &FormState, left: usize) {
        if after.is_over() {
            return;
        }
        let written = after.written().saturating_sub(at.written());
        let need_after = self.need(form, after).map(|(need, _)| need.saturating_add(written));
        if need_after.is_some_and(|need| need.saturating_add(RESERVE) <= left) {
            return;
        }
        let Some((need, tokens)) = self.need(form, at) else { return };
        if need <= left && need_after.is_none_or(|after| after > need) {
            self.completed.insert(at.filled());
            self.way = tokens.into();
        }
    }

    /// The room that the form needs from this state on, and the tokens that end the value there.
    fn need(&mut self, form: &FormConstraint, at: &FormState) -> Option<(usize, Vec<TokenId>)> {
        let way = form.way_out(at)?;
        if self.rest.is_none() {
            self.rest = Some(form.rest_after(&way)?);
        }
        let need = self.rest.as_ref()?.room_for(&way, at.filled());
        Some((need, way.tokens))
    }
}
