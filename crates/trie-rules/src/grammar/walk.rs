//! Tokens of a grammar without walking them again for every stack.
//!
//! What a token does to the lexer depends on the lexer alone: it reads some terminals and ends inside another. Tokens
//! that do the same are one group, found once for each state of the lexer. A stack is then asked once for each group.

use super::lexer::NONE;
use super::stack::Stack;
use super::{Grammar, GrammarState};
use crate::masks::Legal;
use crate::rule::Walker;
use crate::token_bytes::TokenBytes;
use crate::walk::{Path, tokens_from};
use lru::LruCache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::TokenId;

/// Bytes of all groups that are kept.
const KEPT: usize = 256 << 20;

pub(super) struct GrammarWalk {
    grammar: Grammar,
    tokens: Arc<TokenBytes>,
    /// By state of the lexer.
    groups: Mutex<Kept>,
}

struct Kept {
    by_state: LruCache<u32, Arc<Groups>>,
    bytes: usize,
}

/// What tokens do from one state of the lexer.
#[derive(Default)]
struct Groups {
    /// Terminals that are read, one after the other: where the ones before stand, and the last. The first is none.
    read: Vec<(u32, u32)>,
    /// Which of them is read, what may be read next, and the tokens.
    tokens: Vec<(u32, u32, Legal)>,
}

impl std::fmt::Debug for GrammarWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrammarWalk").field("tokens", &self.tokens.len()).finish_non_exhaustive()
    }
}

impl GrammarWalk {
    pub(super) fn new(grammar: Grammar, tokens: Arc<TokenBytes>) -> Self {
        Self { grammar, tokens, groups: Mutex::new(Kept { by_state: LruCache::unbounded(), bytes: 0 }) }
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
        while kept.bytes > KEPT {
            let Some((_, oldest)) = kept.by_state.pop_lru() else { break };
            kept.bytes -= oldest.bytes();
        }
        made
    }

    fn find(&self, from: u32) -> Groups {
        let compiled = &*self.grammar.0;
        let lexer = &compiled.lexer;
        let mut read = vec![(0, NONE)];
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let step = |&(state, before): &(u32, u32), byte| {
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
            let after = *known.entry((before, terminal)).or_insert_with(|| {
                read.push((before, terminal));
                read.len() as u32 - 1
            });
            Some((next, after))
        };
        let mut by_deed: HashMap<(u32, u32), usize> = HashMap::new();
        let mut groups: Vec<((u32, u32), Vec<TokenId>)> = Vec::new();
        let mut last = ((NONE, NONE), 0);
        tokens_from(step, &self.tokens, &(from, 0), &mut Path::default(), |token, &(state, after)| {
            let deed = (after, lexer.reach(state));
            // Neighbours mostly do the same.
            if last.0 != deed {
                let at = *by_deed.entry(deed).or_insert_with(|| {
                    groups.push((deed, Vec::new()));
                    groups.len() - 1
                });
                last = (deed, at);
            }
            groups[last.1].1.push(token);
        });
        groups.sort_unstable_by_key(|(deed, _)| *deed);
        let n_vocab = self.tokens.n_vocab();
        let tokens = groups.into_iter().map(|((after, reach), ids)| (after, reach, Legal::of_ids(ids, n_vocab)));
        let tokens = tokens.collect();
        Groups { read, tokens }
    }
}

impl Groups {
    fn bytes(&self) -> usize {
        let tokens: usize = self.tokens.iter().map(|(.., legal)| legal.bytes() + size_of::<(u32, u32, Legal)>()).sum();
        tokens + size_of_val(&*self.read)
    }
}

impl Walker<GrammarState> for GrammarWalk {
    fn tokens(&self, state: &GrammarState, words: &mut [u32]) {
        let compiled = &*self.grammar.0;
        let groups = self.groups(state.lexer);
        // The stack after each run of terminals; what comes before stands before.
        let mut stacks: Vec<Option<Stack>> = Vec::with_capacity(groups.read.len());
        for &(before, terminal) in &groups.read {
            let after = match terminal {
                NONE => Some(state.stack.clone()),
                _ => stacks[before as usize].as_ref().and_then(|stack| compiled.parser.shift(stack, terminal)),
            };
            stacks.push(after);
        }
        for (after, reach, legal) in &groups.tokens {
            let Some(stack) = &stacks[*after as usize] else { continue };
            if compiled.lexer.set(*reach).is_some_and(|reach| reach.meets(&compiled.parser.live(stack).kinds)) {
                legal.add_to(words);
            }
        }
    }
}
