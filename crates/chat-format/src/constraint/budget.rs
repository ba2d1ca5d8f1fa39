//! Constraint that closes the reasoning of a reply after a budget of tokens.

use super::{ReplyConstraint, ReplyState};
use std::sync::Arc;
use trie_core::{Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, Thought, TokenId, Tokens, Trie};

/// Tokens beyond the budget that a begun marker may take to become whole.
const GRACE: u32 = 16;

/// A [`ReplyConstraint`] that limits the reasoning: after a number of reasoning tokens, the end marker is forced.
#[derive(Debug, Clone)]
pub struct BudgetedReply(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    reply: ReplyConstraint,
    closing: Vec<TokenId>,
    budget: u32,
}

/// State of such a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BudgetedState {
    at: ReplyState,
    thought: u32,
    /// Number of forced tokens of the marker so far.
    closing: u32,
    /// Tokens of markers that were forced.
    forced: u32,
}

impl ReplyConstraint {
    /// The same constraint with a budget of tokens for reasoning. `closing` holds the tokens of the end marker; if it
    /// is empty, nothing is closed.
    ///
    /// ```
    /// use chat_format::{ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens};
    /// use std::sync::Arc;
    /// use trie_core::{Constraint, Scratch, TokenId};
    /// use trie_rules::TokenBytes;
    ///
    /// let template = ChatTemplate::new(
    ///     "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}\
    ///      <think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}\n{% endfor %}\
    ///      {% if add_generation_prompt %}<|assistant|>{% endif %}",
    ///     "",
    ///     "",
    /// )?;
    /// let format = ChatFormat::new(template)?;
    /// // One token a byte.
    /// let all: Vec<[u8; 1]> = (0..128).map(|byte| [byte]).collect();
    /// let ids = |text: &str| text.bytes().filter_map(|byte| TokenId::new(byte.into())).collect::<Vec<_>>();
    /// let tokens = all.iter().zip(0..).filter_map(|(byte, id)| Some((&byte[..], TokenId::new(id)?)));
    /// let spelling = Arc::new(TokenBytes::new(128, tokens)?).into();
    /// let reply = format.constraint(&ConstraintOptions::default(), &spelling, &ControlTokens::default())?;
    /// let reply = reply.with_budget(2, ids("</think>"));
    ///
    /// let mut state = reply.start();
    /// ids("<think>ab").into_iter().for_each(|token| assert!(reply.advance(&mut state, token).is_some()));
    /// assert_eq!(reply.forced_token(&state, &mut Scratch::default()), TokenId::new(u32::from(b'<')));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_budget(self, budget: u32, closing: Vec<TokenId>) -> BudgetedReply {
        BudgetedReply(Arc::new(Inner { reply: self, closing, budget }))
    }
}

impl BudgetedReply {
    /// The token of the end marker that is forced here.
    fn must(&self, at: &BudgetedState) -> Option<&TokenId> {
        let inner = &*self.0;
        let over = at.thought >= inner.budget && inner.reply.is_reasoning(&at.at);
        // A marker that the model has begun is not begun again inside itself.
        let whole = at.thought >= inner.budget.saturating_add(GRACE) || !inner.reply.may_be_in_marker(&at.at);
        let token = inner.closing.get(at.closing as usize).filter(|_| at.closing > 0 || (over && whole))?;
        // White space after the marker may be more than what may stand there.
        inner.reply.step(&at.at, *token).is_some().then_some(token)
    }
}

impl Constraint for BudgetedReply {
    type State = BudgetedState;

    fn start(&self) -> BudgetedState {
        BudgetedState { at: self.0.reply.start(), thought: 0, closing: 0, forced: 0 }
    }

    fn next<'a>(&'a self, at: &'a BudgetedState, scratch: &'a mut Scratch) -> Next<'a> {
        match self.must(at) {
            Some(token) => Next { tokens: Tokens::Ids(std::slice::from_ref(token)), ending: Ending::No },
            None => self.0.reply.next(&at.at, scratch),
        }
    }

    fn advance(&self, at: &mut BudgetedState, token: TokenId) -> Option<Role> {
        let must = self.must(at).copied();
        if must.is_some_and(|must| must != token) {
            return None;
        }
        let thinking = must.is_none() && self.0.reply.is_reasoning(&at.at);
        let role = self.0.reply.advance(&mut at.at, token)?;
        // What closes the reasoning is none of it.
        at.thought += u32::from(thinking && self.0.reply.is_reasoning(&at.at));
        if must.is_none() {
            at.closing = 0;
            return Some(role);
        }
        // Reasoning that begins again is closed again.
        at.closing = (at.closing + 1) % self.0.closing.len() as u32;
        at.forced += 1;
        Some(Role::Marker)
    }

    fn forced_token(&self, at: &BudgetedState, scratch: &mut Scratch) -> Option<TokenId> {
        match self.must(at) {
            Some(&token) => Some(token),
            None => self.0.reply.forced_token(&at.at, scratch),
        }
    }

    fn problem(&self, at: &BudgetedState) -> Option<Problem> {
        self.0.reply.problem(&at.at)
    }

    fn max_token(&self) -> Option<TokenId> {
        self.0.closing.iter().max().copied()
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for BudgetedReply {
    fn text_ends(&self, at: &BudgetedState) -> bool {
        self.must(at).is_none() && self.0.reply.text_ends(&at.at)
    }

    fn thought(&self, at: &BudgetedState) -> Thought {
        let mut thought = Thought::default();
        thought.tokens = at.thought as usize;
        thought.forced = at.forced as usize;
        thought.cut_short = at.forced > 0;
        thought
    }
}
