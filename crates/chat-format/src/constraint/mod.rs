//! The machine of a format as a constraint over tokens.

mod budget;
mod canonical;
mod control;
mod rule;

pub use budget::BudgetedReply;
pub use control::ControlTokens;

use crate::lock::lock;
use crate::machine::{Machine, State};
use crate::values::CONTROL;
use canonical::Canonical;
use lru::LruCache;
pub(crate) use rule::BeforeContent;
use rule::{ReplyRule, RuleState};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use trie_core::{
    AllExcept, Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, TokenId, Tokens, Trie,
};
use trie_rules::{ByRule, ByRuleError, ByRuleState, MaskStats, Rule, Spelling};

/// Number of states whose forbidden and forced tokens, and whose only way on, are kept.
const KEPT: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Limit on the look-ahead in forced text, in bytes: each asks for all ways on.
const MOST_FORCED: usize = 128;

/// Tokens that may spell tool names, named argument keys and enum values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CallSpelling {
    /// The tokenizer's own tokens, as a model has learned them. All tokens are allowed where there is no tokenizer,
    /// where its tokens are not certain, and where an object takes keys that its schema does not name.
    #[default]
    Canonical,
    /// All tokens that have the right bytes.
    Any,
}

/// White space in the gaps of calls, where it is written. Readers take any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Whitespace {
    /// In values one space behind a comma or a colon, or none; around them the white space of the template, one space
    /// or line break, or none. Where the template writes arguments over several lines, line breaks and indentation too.
    #[default]
    Compact,
    /// Up to eight characters in a row, in each gap; or a line break and an indentation of two spaces a level.
    Flexible,
}

/// Constraint on a reply: free text, in which a call that begins must become a valid one.
///
/// In reasoning and content all tokens are allowed, except those that would begin a call wrongly. Once a call has
/// begun, its name must be the name of a tool, and its arguments must follow the schema of that tool. A clone is one
/// reference count.
#[derive(Clone)]
pub struct ReplyConstraint(Arc<Inner>);

impl fmt::Debug for ReplyConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyConstraint").finish_non_exhaustive()
    }
}

/// State of a reply, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReplyState(ByRuleState<RuleState>);

struct Inner {
    machine: Arc<Machine>,
    rule: ReplyRule,
    tokens: ByRule<ReplyRule>,
    spelling: Spelling,
    control: ControlTokens,
    denied: Mutex<LruCache<RuleState, Arc<[TokenId]>>>,
    forced: Mutex<LruCache<RuleState, Option<TokenId>>>,
    ways: Mutex<LruCache<RuleState, Option<(u8, RuleState)>>>,
}

impl ReplyConstraint {
    pub(crate) fn new(
        machine: Arc<Machine>,
        start: State,
        before: Option<BeforeContent>,
        spelling: Spelling,
        control: ControlTokens,
        calls: CallSpelling,
    ) -> Result<Self, ByRuleError> {
        let rule = ReplyRule { machine: Arc::clone(&machine), start: start.into(), before, canonical: None };
        // Without a tokenizer no spelling is known, and before content no call comes.
        let is_canonical = calls == CallSpelling::Canonical && before.is_none() && spelling.has_tokenizer();
        let canonical = is_canonical.then(|| Canonical::new(rule.clone(), spelling.clone(), control.clone()));
        let rule = ReplyRule { canonical: canonical.map(Arc::new), ..rule };
        let tokens = ByRule::new(rule.clone(), spelling.clone())?;
        let (denied, forced) = (Mutex::new(LruCache::sparse(KEPT)), Mutex::new(LruCache::sparse(KEPT)));
        let ways = Mutex::new(LruCache::sparse(KEPT));
        Ok(Self(Arc::new(Inner { machine, rule, tokens, spelling, control, denied, forced, ways })))
    }

    /// Returns the statistics of the mask cache.
    pub fn stats(&self) -> MaskStats {
        self.0.tokens.stats()
    }

    /// Returns whether the position is inside reasoning.
    fn is_reasoning(&self, at: &ReplyState) -> bool {
        self.0.machine.is_reasoning(&at.0.rule_state().state)
    }

    /// Returns whether a marker may have begun here.
    fn may_be_in_marker(&self, at: &ReplyState) -> bool {
        self.0.machine.may_be_in_marker(&at.0.rule_state().state)
    }

    /// Tokens that are forbidden at a state where most are allowed.
    fn denied_tokens(&self, at: &ReplyState) -> Arc<[TokenId]> {
        let inner = &*self.0;
        if let Some(denied) = lock(&inner.denied).get(at.0.rule_state()) {
            return Arc::clone(denied);
        }
        let mut scratch = Scratch::default();
        let legal = inner.tokens.next(&at.0, &mut scratch).tokens;
        // Most words of a mask are full.
        let is_full = |word: usize| matches!(legal, Tokens::Mask(mask) if mask.words()[word] == u32::MAX);
        let n_vocab = inner.spelling.tokens().n_vocab();
        let words = (0..n_vocab.div_ceil(32)).filter(|&word| !is_full(word));
        let all =
            words.flat_map(|word| word * 32..n_vocab.min(word * 32 + 32)).filter_map(|id| TokenId::new(id as u32));
        // A token that is neither text nor a control token of the format is nobody's: tokens without bytes stay legal.
        let end = inner.rule.is_end(at.0.rule_state());
        let ends = |id: TokenId| !end && inner.control.ends_output(id);
        let is_text = |id: TokenId| !inner.spelling.tokens().bytes(id).is_empty();
        let denied: Arc<[TokenId]> = all.filter(|&id| !legal.names(id) && (is_text(id) || ends(id))).collect();
        lock(&inner.denied).put(at.0.rule_state().clone(), Arc::clone(&denied));
        denied
    }

    /// The only byte that may come, and the state after it; of white space and text, the byte that the template writes.
    fn only_way(&self, state: &RuleState) -> Option<(u8, RuleState)> {
        let inner = &*self.0;
        if let Some(known) = lock(&inner.ways).get(state) {
            return known.clone();
        }
        let mut ways = (0..CONTROL).filter_map(|byte| Some((byte, inner.rule.step(state, byte)?)));
        let only = ways.next().filter(|_| ways.next().is_none());
        let written = || {
            let byte = inner.machine.written_next(&state.state)?;
            Some((byte, inner.rule.step(state, byte)?))
        };
        let found = only.or_else(written);
        // What failed is asked again.
        if !inner.rule.failing() {
            lock(&inner.ways).put(state.clone(), found.clone());
        }
        found
    }

    /// The forced token. For the text of a control token it is that token, otherwise the tokenizer's first token.
    fn find_forced(&self, from: &RuleState) -> Option<TokenId> {
        let inner = &*self.0;
        let (mut bytes, mut state) = (Vec::new(), from.clone());
        while bytes.len() < MOST_FORCED && !inner.rule.is_end(&state) {
            let Some((byte, next)) = self.only_way(&state) else { break };
            bytes.push(byte);
            state = next;
        }
        match inner.control.first_in(&bytes) {
            Some((0, token)) => Some(token),
            // No token goes on into a control token.
            Some((place, _)) => inner.spelling.certain_token(&bytes[..place], false, |_| false),
            None => inner.spelling.certain_token(&bytes, bytes.len() == MOST_FORCED, |rest| {
                let mut rest = rest.iter();
                rest.try_fold(state.clone(), |state, &byte| inner.rule.step(&state, byte)).is_some()
            }),
        }
    }
}

impl Constraint for ReplyConstraint {
    type State = ReplyState;

    fn start(&self) -> Self::State {
        ReplyState(self.0.tokens.start())
    }

    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a> {
        let (rule, state) = (&self.0.rule, at.0.rule_state());
        if rule.is_open(state) {
            let denied = scratch.keep_ids(self.denied_tokens(at));
            let ending = if rule.is_end(state) { Ending::Free } else { Ending::No };
            return Next { tokens: Tokens::Except(AllExcept::new(denied)), ending };
        }
        self.0.tokens.next(&at.0, scratch)
    }

    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role> {
        let (rule, machine) = (&self.0.rule, &self.0.machine);
        if rule.is_open(at.0.rule_state()) && self.0.spelling.tokens().bytes(token).is_empty() {
            // Where a call is required, thinking does not end the reply.
            let early = self.0.control.ends_output(token) && !rule.is_end(at.0.rule_state());
            return (!early).then_some(Role::Free);
        }
        let before = machine.in_call(&at.0.rule_state().state);
        let role = self.0.tokens.advance(&mut at.0, token)?;
        Some(if before || machine.in_call(&at.0.rule_state().state) { role } else { Role::Free })
    }

    fn forced_token(&self, at: &Self::State, scratch: &mut Scratch) -> Option<TokenId> {
        let state = at.0.rule_state();
        if self.0.rule.is_end(state) || self.0.rule.is_open(state) {
            return None;
        }
        if let Some(only) = self.0.tokens.next(&at.0, scratch).tokens.single_token() {
            return Some(only);
        }
        if let Some(&known) = lock(&self.0.forced).get(state) {
            return known;
        }
        let forced = self.find_forced(state).filter(|&token| !self.0.rule.leaves_out(state, token));
        lock(&self.0.forced).put(state.clone(), forced);
        forced
    }

    fn problem(&self, at: &Self::State) -> Option<Problem> {
        if self.0.rule.is_end(at.0.rule_state()) { None } else { self.0.tokens.problem(&at.0) }
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for ReplyConstraint {
    /// Behind the calls of a reply that must call.
    fn text_ends(&self, at: &ReplyState) -> bool {
        let (rule, state) = (&self.0.rule, at.0.rule_state());
        rule.before.is_none() && rule.is_end(state) && !rule.is_open(state)
    }
}
