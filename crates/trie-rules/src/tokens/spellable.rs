//! Check that a vocabulary can spell some text of a rule: without a token for some byte it may begin texts but complete
//! none.

use crate::rule::Rule;
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, tokens_from};
use std::collections::HashSet;

/// Steps of tokens after which it is given up: then it is said where no token goes on.
const MOST_STEPS: usize = 20_000_000;

/// Returns a state at which no token continues, if tokens reach no end of the rule. A vocabulary with a token for every
/// byte of UTF-8 is not checked: it can spell every text of the rule.
pub(crate) fn unspellable<R: Rule>(rule: &R, tokens: &TokenBytes) -> Option<R::State> {
    let in_utf8 = |byte: &u8| !matches!(byte, 0xc0 | 0xc1 | 0xf5..);
    if (0..=255).filter(in_utf8).all(|byte| tokens.has_byte(byte)) {
        return None;
    }
    let (mut known, mut queue) = (HashSet::from([rule.start()]), vec![rule.start()]);
    let (mut steps, mut path, mut stuck) = (0, Path::default(), None);
    while let Some(from) = queue.pop() {
        if rule.is_end(&from) || steps > MOST_STEPS {
            return None;
        }
        let mut goes_on = false;
        let step = |state: &R::State, byte| {
            steps += 1;
            rule.step(state, byte)
        };
        tokens_from(step, tokens.all_tokens(), &from, &mut path, |_, state| {
            goes_on = true;
            if !known.contains(state) {
                known.insert(state.clone());
                queue.push(state.clone());
            }
        });
        if !goes_on {
            stuck.get_or_insert(from);
        }
    }
    stuck.or_else(|| Some(rule.start()))
}
