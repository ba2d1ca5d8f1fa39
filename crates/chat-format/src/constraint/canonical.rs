//! Tool names, named keys and enum values in the tokenizer's own tokens.
//!
//! Many token sequences spell the same text, but a model has learned only the tokenizer's. Where only listed texts may
//! come, a token that ends inside such a text is allowed only if it is the tokenizer's next token. Tokens that go
//! beyond the end of the text stay allowed. So do all tokens of a text whose tokenization is not known.

use super::ControlTokens;
use super::rule::{ReplyRule, RuleState};
use crate::lock::lock;
use crate::values::Rest;
use lru::LruCache;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock};
use trie_core::TokenId;
use trie_rules::{Rule, Spelling};

/// Number of states for which texts are kept.
const KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Limits on a list, in texts and in bytes: texts of a larger list may be spelled in any tokens.
const MOST_TEXTS: usize = 128;
const MOST_BYTES: usize = 1 << 14;

/// Limit on the bytes inspected behind a text.
const MOST_BEHIND: usize = 4;

/// Filter of tokens that the tokenizer would not write.
pub(crate) struct Canonical {
    rule: ReplyRule,
    spelling: Spelling,
    control: ControlTokens,
    texts: Mutex<LruCache<RuleState, Option<Arc<[Text]>>>>,
}

/// A text that may be written from a state on.
struct Text {
    /// The rest of the text, and the bytes after it.
    bytes: Box<[u8]>,
    /// Length of the rest of the text in `bytes`.
    length: usize,
    /// The bytes that may follow after all of `bytes`.
    goes_on: Arc<[bool; 256]>,
    /// `true` if the tokenizer may read punctuation at the front together with the text written before.
    may_join: bool,
    /// The tokens that may begin it.
    firsts: OnceLock<Firsts>,
}

/// The tokens that may begin a text and end inside it. `None` if the tokenizer's tokens are not known, so that all may.
type Firsts = Option<Box<[TokenId]>>;

impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canonical").field("spelling", &self.spelling).finish_non_exhaustive()
    }
}

impl Canonical {
    pub(super) fn new(rule: ReplyRule, spelling: Spelling, control: ControlTokens) -> Self {
        Self { rule, spelling, control, texts: Mutex::new(LruCache::sparse(KEPT)) }
    }

    /// Removes the tokens that are left out from the allowed tokens of a state.
    pub(super) fn narrow(&self, at: &RuleState, words: &mut [u32]) {
        if !self.may_leave_out(at) {
            return;
        }
        for (place, word) in words.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let token = TokenId::new(place as u32 * 32 + bit);
                if token.is_some_and(|token| self.is_left_out(at, token)) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Returns whether a token with allowed bytes is left out.
    pub(super) fn leaves_out(&self, at: &RuleState, token: TokenId) -> bool {
        self.may_leave_out(at) && self.is_left_out(at, token)
    }

    fn may_leave_out(&self, at: &RuleState) -> bool {
        let machine = &self.rule.machine;
        machine.is_listed(&at.state) || machine.leads_to_listed(&at.state)
    }

    fn is_left_out(&self, at: &RuleState, token: TokenId) -> bool {
        let bytes = self.spelling.tokens().bytes(token);
        let is_listed = |at: &RuleState| self.rule.machine.is_listed(&at.state);
        if is_listed(at) {
            return self.texts(at).is_some_and(|texts| self.ends_badly(&texts, token, &[], bytes));
        }
        // A token may begin before the text.
        let mut state = at.clone();
        for (place, &byte) in bytes.iter().enumerate() {
            let Some(next) = self.rule.step(&state, byte) else { return false };
            if is_listed(&next) {
                let (before, inside) = bytes.split_at(place + 1);
                let texts = if inside.is_empty() { None } else { self.texts(&next) };
                return texts.is_some_and(|texts| self.ends_badly(&texts, token, before, inside));
            }
            state = next;
        }
        false
    }

    /// Returns whether a token ends inside texts although the tokenizer begins none of them with it. `before` holds the
    /// bytes of the token that precede the texts.
    fn ends_badly(&self, texts: &[Text], token: TokenId, before: &[u8], inside: &[u8]) -> bool {
        let allows = |firsts: &Firsts| firsts.as_ref().is_none_or(|firsts| firsts.contains(&token));
        let mut held = texts.iter().filter(|text| text.bytes[..text.length].starts_with(inside)).peekable();
        held.peek().is_some()
            && !held.any(|text| {
                if before.is_empty() {
                    allows(text.firsts.get_or_init(|| self.firsts(text, before)))
                } else {
                    allows(&self.firsts(text, before))
                }
            })
    }

    fn firsts(&self, text: &Text, before: &[u8]) -> Firsts {
        let bytes = [before, &text.bytes].concat();
        let goes_on = |rest: &[u8]| rest.first().is_some_and(|&byte| text.goes_on[usize::from(byte)]);
        let mut firsts = self.spelling.first_tokens(&bytes, goes_on)?;
        // Tokenizers read runs of punctuation as one, and the first sign otherwise where a letter follows it.
        let run = bytes.iter().take_while(|byte| byte.is_ascii_punctuation()).count();
        if (text.may_join || !before.is_empty()) && run > 0 && run < bytes.len() {
            firsts.extend(self.spelling.first_tokens(&bytes[..run], |_| false)?);
        }
        // A tokenizer that normalises writes another text.
        let is_spelled = firsts.iter().all(|&token| bytes.starts_with(self.spelling.tokens().bytes(token)));
        is_spelled.then(|| firsts.into())
    }

    /// The texts that may be written from a state on. `None` if they are too many, or may be spelled otherwise than
    /// they are read.
    fn texts(&self, at: &RuleState) -> Option<Arc<[Text]>> {
        if let Some(kept) = lock(&self.texts).get(at) {
            return kept.clone();
        }
        let found = self.find(at);
        lock(&self.texts).put(at.clone(), found.clone());
        found
    }

    fn find(&self, at: &RuleState) -> Option<Arc<[Text]>> {
        let rests = self.rule.machine.text_remainders(&at.state, MOST_TEXTS)?;
        if rests.iter().map(|rest| rest.text.len()).sum::<usize>() > MOST_BYTES {
            return None;
        }
        // Names, and what follows them, are the machine's own. Arguments may be written otherwise than they are read.
        let is_own = |rest: &Rest| !rest.behind.is_empty();
        let mut end = None;
        for rest in rests.iter().filter(|rest| !is_own(rest)) {
            let after = self.rule.walk(at, &rest.text)?;
            if !rest.is_cut {
                end = Some(after);
            }
        }
        // What closes a string closes every one of the list. No text is longer than the last of those that begin alike.
        let closing = end.map(|end| std::array::from_fn(|byte| self.rule.step(&end, byte as u8).is_some()));
        let closing: Arc<[bool; 256]> = Arc::new(closing.unwrap_or([false; 256]));
        let mut closers = (0..=u8::MAX).filter(|&byte| closing[usize::from(byte)]);
        let closer = closers.next().filter(|_| closers.next().is_none());
        let (any, none) = (Arc::new([true; 256]), Arc::new([false; 256]));
        let text = |rest: Rest| {
            let control = self.control.first_in(&rest.behind).map(|(place, _)| place);
            let (behind, goes_on) = match (control, closer) {
                _ if rest.is_cut => (Vec::new(), &any),
                // No token goes on into a control token.
                (Some(place), _) if place <= MOST_BEHIND => (rest.behind[..place].to_vec(), &none),
                (_, Some(closer)) if rest.behind.is_empty() => (vec![closer], &any),
                _ if rest.behind.is_empty() => (Vec::new(), &closing),
                _ => (rest.behind[..rest.behind.len().min(MOST_BEHIND)].to_vec(), &any),
            };
            Text {
                bytes: [&rest.text[..], &behind].concat().into(),
                length: rest.text.len(),
                goes_on: Arc::clone(goes_on),
                may_join: rest.before.is_none_or(|byte| byte.is_ascii_punctuation()),
                firsts: OnceLock::new(),
            }
        };
        Some(rests.into_iter().map(text).collect())
    }
}
