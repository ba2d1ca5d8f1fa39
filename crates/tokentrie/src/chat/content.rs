//! Constrained content of a reply: the text before the content stays free, and calls may come instead of content.

use trie_core::{
    AllExcept, AnyConstraint, AnyState, Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, Thought,
    TokenId, Tokens, Trie,
};

/// Constraint on a reply whose content obeys a constraint, or that has calls instead of content.
///
/// The text before the content, the content itself and the calls are followed side by side, because the bytes that
/// begin a marker may begin content, too.
#[derive(Debug, Clone)]
pub(crate) struct HeldContent {
    /// Constraint on the text before the content, which ends wherever content may begin; `None` if there is no such
    /// text.
    before: Option<AnyConstraint>,
    content: AnyConstraint,
    /// Constraint on a reply that has calls and no content; `None` if there must be content.
    calls: Option<AnyConstraint>,
}

/// State of such a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeldState {
    /// State before the content; `None` once content has certainly begun.
    before: Option<AnyState>,
    /// State inside the content, and the number of its tokens.
    content: Option<(AnyState, usize)>,
    /// State in a reply with calls; `None` once there are certainly none.
    calls: Option<AnyState>,
}

impl HeldState {
    /// Returns the number of content tokens, if the last token may be content.
    pub(crate) fn content_tokens(&self) -> Option<usize> {
        self.content.as_ref().map(|(_, tokens)| *tokens)
    }

    /// Returns whether only content is possible.
    pub(crate) fn is_certain(&self) -> bool {
        self.before.is_none() && self.calls.is_none()
    }
}

/// Union of allowed tokens.
struct Union<'s> {
    ids: &'s mut Vec<TokenId>,
    /// The tokens that no part allows, if some part allows all but a few.
    denied: Option<Vec<TokenId>>,
}

impl<'s> Union<'s> {
    fn add(&mut self, tokens: Tokens<'_>) {
        match (&mut self.denied, tokens) {
            (Some(denied), tokens) => denied.retain(|&token| !tokens.contains(token)),
            (none, Tokens::Except(but)) => {
                *none = Some(but.denied_tokens().iter().copied().filter(|token| !self.ids.contains(token)).collect());
            }
            (None, few) => self.ids.extend(few.iter()),
        }
    }

    fn tokens(self) -> Tokens<'s> {
        let all_but = self.denied.map(|denied| *self.ids = denied).is_some();
        self.ids.sort_unstable();
        self.ids.dedup();
        if all_but { Tokens::Except(AllExcept::new(self.ids)) } else { Tokens::Ids(self.ids) }
    }
}

impl HeldContent {
    pub(crate) fn new(before: Option<AnyConstraint>, content: AnyConstraint, calls: Option<AnyConstraint>) -> Self {
        Self { before, content, calls }
    }

    /// Returns whether the content has begun, is complete and cannot continue.
    pub(crate) fn is_over(&self, at: &HeldState) -> bool {
        let is_over = |(inside, _): &(AnyState, usize)| self.content.ending(inside) == Ending::Must;
        at.calls.is_none() && at.content.as_ref().is_some_and(is_over)
    }

    /// Returns whether the reply is one with calls, and may end here. What may be both counts as calls, as the template
    /// writes them.
    pub(crate) fn has_called(&self, at: &HeldState) -> bool {
        let calls = self.calls.as_ref().zip(at.calls.as_ref());
        calls.is_some_and(|(rule, at)| rule.ending(at) != Ending::No)
    }

    fn may_begin(&self, before: &AnyState) -> bool {
        self.before.as_ref().is_some_and(|rule| !matches!(rule.ending(before), Ending::No))
    }

    /// Returns the only part that is followed, with its state.
    fn only_part<'a>(&'a self, at: &'a HeldState) -> Option<(&'a AnyConstraint, &'a AnyState)> {
        match (&at.before, &at.content, &at.calls) {
            (Some(before), None, None) if !self.may_begin(before) => Some((self.before.as_ref()?, before)),
            (None, Some((content, _)), None) => Some((&self.content, content)),
            (None, None, Some(calls)) => Some((self.calls.as_ref()?, calls)),
            _ => None,
        }
    }
}

impl Constraint for HeldContent {
    type State = HeldState;

    fn start(&self) -> HeldState {
        let content = self.before.is_none().then(|| (self.content.start(), 0));
        let (before, calls) = [&self.before, &self.calls].map(|part| part.as_ref().map(Constraint::start)).into();
        HeldState { before, content, calls }
    }

    fn next<'a>(&'a self, at: &'a HeldState, scratch: &'a mut Scratch) -> Next<'a> {
        if let Some((only, at)) = self.only_part(at) {
            return only.next(at, scratch);
        }
        let (ids, _, scratch) = scratch.split();
        ids.clear();
        let (mut union, mut ending) = (Union { ids, denied: None }, Ending::No);
        if let (Some(rule), Some(before)) = (&self.before, &at.before) {
            union.add(rule.next(before, scratch).tokens);
        }
        if let (Some(rule), Some(calls)) = (&self.calls, &at.calls) {
            let next = rule.next(calls, scratch);
            ending = if next.ending == Ending::No { ending } else { Ending::May };
            union.add(next.tokens);
        }
        let start = at.before.as_ref().filter(|before| self.may_begin(before)).map(|_| self.content.start());
        for (inside, begun) in at.content.iter().map(|(at, _)| (at, true)).chain(start.iter().map(|at| (at, false))) {
            let next = self.content.next(inside, scratch);
            if begun && next.ending != Ending::No {
                ending = Ending::May;
            }
            union.add(next.tokens);
        }
        Next { tokens: union.tokens(), ending }
    }

    fn advance(&self, at: &mut HeldState, token: TokenId) -> Option<Role> {
        let content = at.content.as_ref().and_then(|(inside, tokens)| {
            let mut inside = inside.clone();
            self.content.advance(&mut inside, token).map(|_| (inside, tokens + 1))
        });
        // Of two ways into content the one that began first counts: it can always go on.
        let content = content.or_else(|| {
            at.before.as_ref().filter(|before| self.may_begin(before))?;
            let mut inside = self.content.start();
            self.content.advance(&mut inside, token).map(|_| (inside, 1))
        });
        let mut role = None;
        let mut advanced = |rule: &Option<AnyConstraint>, at: &Option<AnyState>| {
            let mut at = at.clone()?;
            let of_part = rule.as_ref()?.advance(&mut at, token)?;
            role.get_or_insert(of_part);
            Some(at)
        };
        let (before, calls) = (advanced(&self.before, &at.before), advanced(&self.calls, &at.calls));
        role = role.or_else(|| content.is_some().then_some(Role::Value));
        if role.is_some() {
            *at = HeldState { before, content, calls };
        }
        role
    }

    fn forced_token(&self, at: &HeldState, scratch: &mut Scratch) -> Option<TokenId> {
        let (only, at) = self.only_part(at)?;
        only.forced_token(at, scratch)
    }

    fn problem(&self, at: &HeldState) -> Option<Problem> {
        let of_content = at.content.as_ref().and_then(|(content, _)| self.content.problem(content));
        let of = |rule: &Option<AnyConstraint>, at: &Option<AnyState>| rule.as_ref()?.problem(at.as_ref()?);
        of_content.or_else(|| of(&self.before, &at.before)).or_else(|| of(&self.calls, &at.calls))
    }

    fn max_token(&self) -> Option<TokenId> {
        let others = [&self.before, &self.calls].map(|part| part.as_ref().and_then(Constraint::max_token));
        self.content.max_token().max(others[0]).max(others[1])
    }

    fn sets(&self) -> Vec<&Trie> {
        self.content.sets()
    }

    fn values(&self, at: &HeldState, over: bool) -> Vec<trie_core::Leaf> {
        at.content.as_ref().map_or_else(Vec::new, |(content, _)| self.content.values(content, over))
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for HeldContent {
    fn never_ends(&self) -> bool {
        false
    }

    fn text_ends(&self, at: &HeldState) -> bool {
        match (&at.before, &at.content, &self.calls, &at.calls) {
            (None, None, Some(rule), Some(calls)) => rule.text_ends(calls),
            _ => false,
        }
    }

    fn thought(&self, at: &HeldState) -> Thought {
        let before = self.before.as_ref().zip(at.before.as_ref());
        before.map_or_else(Thought::default, |(rule, before)| rule.thought(before))
    }
}
