//! Token masks of a grammar, without a walk of all tokens for every stack.
//!
//! The effect of a token on the lexer depends on the lexer's state alone: the token completes some terminals and ends
//! inside another. Tokens with the same effect are one group. The groups are computed once for each state of the lexer;
//! a stack is then checked once for each group.

use super::lexer::NONE;
use super::stack::Stack;
use super::{Grammar, GrammarState};
use crate::automaton::dense::Alphabet;
use crate::rule::Walker;
use crate::tokens::masks::Legal;
use crate::tokens::slices::{MOST_CHARS, add, set};
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, tokens_from};
use lru::LruCache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::TokenId;
use trie_core::work::over;

pub(super) struct GrammarWalk {
    grammar: Grammar,
    alphabet: Alphabet,
    tokens: Arc<TokenBytes>,
    /// By state of the lexer.
    groups: Mutex<GroupCache>,
}

struct GroupCache {
    by_state: LruCache<u32, Arc<Groups>>,
    bytes: usize,
    limit: usize,
}

impl GroupCache {
    /// Gives up what was not used for longest.
    fn shrink(&mut self) {
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.by_state.pop_lru() else { break };
            self.bytes -= oldest.bytes();
        }
    }
}

/// Effects of tokens from one state of the lexer.
#[derive(Default)]
struct Groups {
    /// Sequences of terminals that were read, as a linked list: the index of the sequence without its last terminal,
    /// and that terminal. Entry 0 is the empty sequence.
    read: Vec<(u32, u32)>,
    /// Terminal that is read, terminals that may be read next, and the tokens.
    tokens: Vec<(u32, u32, Legal)>,
}

impl std::fmt::Debug for GrammarWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrammarWalk").field("tokens", &self.tokens.len()).finish_non_exhaustive()
    }
}

impl GrammarWalk {
    pub(super) fn new(grammar: Grammar, tokens: Arc<TokenBytes>) -> Self {
        let alphabet = Alphabet::new(grammar.0.lexer.dense().classes);
        Self {
            grammar,
            alphabet,
            tokens,
            groups: Mutex::new(GroupCache { by_state: LruCache::unbounded(), bytes: 0, limit: usize::MAX }),
        }
    }

    fn groups(&self, state: u32) -> Arc<Groups> {
        let kept = || self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().by_state.get(&state) {
            return Arc::clone(known);
        }
        let made = Arc::new(self.find(state));
        let mut kept = kept();
        kept.bytes += made.bytes();
        if let Some(before) = kept.by_state.put(state, Arc::clone(&made)) {
            kept.bytes -= before.bytes();
        }
        kept.shrink();
        made
    }

    fn find(&self, from: u32) -> Groups {
        let compiled = &*self.grammar.0;
        let lexer = &compiled.lexer;
        let mut read = vec![(0, NONE)];
        let mut step = |&(state, before): &(u32, u32), byte| {
            if let Some(next) = lexer.step(state, byte) {
                return Some((next, before));
            }
            let terminal = lexer.reads(state)?;
            let next = lexer.step(lexer.start(), byte)?;
            if compiled.skip == Some(terminal) {
                return Some((next, before));
            }
            // What no text of the grammar has next to each other needs no group.
            let last = read[before as usize].1;
            if last != NONE && !compiled.neighbours.are(last, terminal) {
                return None;
            }
            let known = read.iter().position(|&known| known == (before, terminal));
            let after = known.unwrap_or_else(|| {
                read.push((before, terminal));
                read.len() - 1
            });
            Some((next, after as u32))
        };
        let mut groups = TokenClasses::default();
        let mut path = Path::default();
        for blank in [false, true] {
            let kinds = self.whole_kinds(from, blank);
            if kinds != 0 {
                let mask = self.tokens.slice_mask(blank, kinds, MOST_CHARS);
                groups.add_all(0, lexer.reach(from), mask);
            }
            for others in self.tokens.remaining_tokens(blank, kinds) {
                tokens_from(&mut step, others, &(from, 0), &mut path, |token, &(state, after)| {
                    groups.add(after, lexer.reach(state), token);
                });
            }
        }
        let tokens = groups.finish(self.tokens.n_vocab());
        Groups { read, tokens }
    }

    /// Kinds of characters all of whose texts stay inside the terminal that is being read, after a blank or without
    /// one, and may become what it may become.
    fn whole_kinds(&self, from: u32, blank: bool) -> u8 {
        let lexer = &self.grammar.0.lexer;
        let same = |state| lexer.reach(state) == lexer.reach(from);
        let after = if blank { lexer.step(from, b' ').filter(|&after| same(after)) } else { Some(from) };
        let whole = after.map(|after| lexer.dense().whole_kinds(&self.alphabet, after, false, same));
        whole.map_or(0, |whole| self.tokens.best_slice(blank, whole.kinds))
    }
}

/// Tokens by what they do: where the terminals stand that they read, and what may be read next.
#[derive(Default)]
struct TokenClasses {
    at: HashMap<(u32, u32), usize>,
    last: Option<((u32, u32), usize)>,
    groups: Vec<TokenClass>,
}

struct TokenClass {
    after: u32,
    reach: u32,
    ids: Vec<TokenId>,
    /// And these, as bits.
    words: Vec<u32>,
}

impl TokenClasses {
    fn class_mut(&mut self, after: u32, reach: u32) -> &mut TokenClass {
        let deed = (after, reach);
        // Neighbours mostly do the same.
        let at = match self.last {
            Some((last, at)) if last == deed => at,
            _ => *self.at.entry(deed).or_insert_with(|| {
                self.groups.push(TokenClass { after, reach, ids: Vec::new(), words: Vec::new() });
                self.groups.len() - 1
            }),
        };
        self.last = Some((deed, at));
        &mut self.groups[at]
    }

    fn add(&mut self, after: u32, reach: u32, token: TokenId) {
        self.class_mut(after, reach).ids.push(token);
    }

    fn add_all(&mut self, after: u32, reach: u32, words: &[u32]) {
        let deed = self.class_mut(after, reach);
        deed.words.resize(words.len(), 0);
        add(&mut deed.words, words);
    }

    fn finish(mut self, n_vocab: usize) -> Vec<(u32, u32, Legal)> {
        self.groups.sort_unstable_by_key(|deed| (deed.after, deed.reach));
        let legal = |mut deed: TokenClass| {
            if deed.words.is_empty() {
                return (deed.after, deed.reach, Legal::of_ids(deed.ids, n_vocab));
            }
            deed.ids.iter().for_each(|&id| set(&mut deed.words, id));
            (deed.after, deed.reach, Legal::from_mask(&deed.words))
        };
        self.groups.into_iter().map(legal).collect()
    }
}

impl Groups {
    fn bytes(&self) -> usize {
        let tokens: usize = self.tokens.iter().map(|(.., legal)| legal.nbytes() + size_of::<(u32, u32, Legal)>()).sum();
        tokens + size_of_val(&*self.read)
    }
}

impl Walker<GrammarState> for GrammarWalk {
    fn nbytes(&self) -> usize {
        self.alphabet.nbytes() + self.groups.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    fn limit(&self, bytes: usize) {
        let mut kept = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        kept.limit = bytes.saturating_sub(self.alphabet.nbytes());
        kept.shrink();
    }

    fn forget(&self) {
        if let Ok(mut kept) = self.groups.try_lock() {
            (kept.by_state, kept.bytes) = (LruCache::unbounded(), 0);
        }
    }

    fn tokens(&self, state: &GrammarState, words: &mut [u32]) {
        let compiled = &*self.grammar.0;
        let groups = self.groups(state.lexer);
        // The stack after each run of terminals; what comes before stands before.
        let mut stacks: Vec<Option<Stack>> = Vec::with_capacity(groups.read.len());
        for &(before, terminal) in &groups.read {
            if over().is_some() {
                return;
            }
            let after = match terminal {
                NONE => Some(state.stack.clone()),
                _ => stacks[before as usize].as_ref().and_then(|stack| compiled.parser.shift(stack, terminal)),
            };
            stacks.push(after);
        }
        for (after, reach, legal) in &groups.tokens {
            let Some(stack) = &stacks[*after as usize] else { continue };
            if compiled.lexer.meets(*reach, &compiled.parser.live(stack).kinds) {
                legal.add_to(words);
            }
        }
    }
}
