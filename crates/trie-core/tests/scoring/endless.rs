//! Constraints whose texts do not end, as small automata, and the plainest sums over them.

use crate::common::id;
use crate::scoring::table::{Model, VOCABULARY};
use std::collections::BTreeMap;
use trie_core::{Constraint, Ending, Next, NotListed, Role, Scratch, Special, TokenId, Tokens, Trie};

/// Whether a text may end at a state, and the tokens that go on, each with the state that it leads to.
pub(crate) type Row = (bool, Vec<(u32, usize)>);

/// An automaton: for each state whether a text may end there, and the tokens with the states that they lead to.
#[derive(Debug, Clone)]
pub(crate) struct Automaton {
    states: Vec<(bool, BTreeMap<TokenId, usize>)>,
    tokens: Vec<Vec<TokenId>>,
}

impl Automaton {
    /// A text may end at the last state, which each state may reach.
    pub(crate) fn new(rows: &[Row]) -> Self {
        let last = rows.len() - 1;
        let state = |(number, (ends, ways)): (usize, &Row)| {
            let mut ways: BTreeMap<TokenId, usize> =
                ways.iter().map(|&(token, to)| (id(token % VOCABULARY as u32), to % rows.len())).collect();
            ways.entry(id(number as u32)).or_insert((number + 1).min(last));
            if !ways.values().any(|&to| to > number) && number < last {
                ways.insert(id(number as u32), number + 1);
            }
            (*ends || number == last, ways)
        };
        let states: Vec<_> = rows.iter().enumerate().map(state).collect();
        let tokens = states.iter().map(|(_, ways)| ways.keys().copied().collect()).collect();
        Self { states, tokens }
    }

    /// Every text of at most `limit` tokens, with the probability that the model writes it and then one of `ends`.
    pub(crate) fn texts(
        &self,
        model: Model,
        prompt: &[TokenId],
        ends: &[TokenId],
        limit: usize,
    ) -> BTreeMap<Vec<TokenId>, f64> {
        self.sums(model, prompt, ends, limit, false)
    }

    /// The probability of each text when each token is drawn among the allowed ones, without those that go on beyond
    /// the limit.
    pub(crate) fn masked(
        &self,
        model: Model,
        prompt: &[TokenId],
        ends: &[TokenId],
        limit: usize,
    ) -> BTreeMap<Vec<TokenId>, f64> {
        self.sums(model, prompt, ends, limit, true)
    }

    fn sums(
        &self,
        model: Model,
        prompt: &[TokenId],
        ends: &[TokenId],
        limit: usize,
        is_masked: bool,
    ) -> BTreeMap<Vec<TokenId>, f64> {
        let (mut found, mut open) = (BTreeMap::new(), vec![(Vec::new(), 0, 1.0)]);
        while let Some((text, at, probability)) = open.pop() {
            let before = [prompt, &text].concat();
            let (may_end, ways) = &self.states[at];
            let share = |token: TokenId| model.share(&before, |other| other == token);
            let stops = match (may_end, ends) {
                (false, _) => 0.0,
                (true, []) => model.share(&before, |token| !ways.contains_key(&token)),
                (true, ends) => model.share(&before, |token| ends.contains(&token) && !ways.contains_key(&token)),
            };
            let further: Vec<(TokenId, usize, f64)> =
                ways.iter().filter(|_| text.len() < limit).map(|(&token, &to)| (token, to, share(token))).collect();
            let all = if is_masked { stops + further.iter().map(|(.., share)| share).sum::<f64>() } else { 1.0 };
            if *may_end {
                found.insert(text.clone(), probability * stops / all);
            }
            for (token, to, share) in further {
                open.push(([&text[..], &[token]].concat(), to, probability * share / all));
            }
        }
        found
    }
}

impl Constraint for Automaton {
    type State = usize;

    fn start(&self) -> usize {
        0
    }

    fn next<'a>(&'a self, at: &'a usize, _: &'a mut Scratch) -> Next<'a> {
        let ending = if self.states[*at].0 { Ending::May } else { Ending::No };
        Next { tokens: Tokens::Ids(&self.tokens[*at]), ending }
    }

    fn advance(&self, at: &mut usize, token: TokenId) -> Option<Role> {
        *at = *self.states[*at].1.get(&token)?;
        Some(Role::Value)
    }

    fn max_token(&self) -> Option<TokenId> {
        Some(id(VOCABULARY as u32 - 1))
    }

    fn to_trie(&self, _: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for Automaton {}
