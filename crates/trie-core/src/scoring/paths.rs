//! The token sequences of a constraint of any kind, where they are few.

use crate::machine::constraint::{Scratch, Tokens};
use crate::machine::span::{Allowed, SpanRules, Status};
use crate::set::trie::Trie;

/// Returns the sequences that the first constraint of `rules` allows, as one set; `None` if more than `limit` positions
/// need a row, or if one of the sequences is empty. Every way to write a text is a sequence of its own.
pub(super) fn list_paths(rules: &SpanRules, limit: usize) -> Option<Trie> {
    let (mut builder, mut positions) = (Trie::builder(), 0);
    let mut open = vec![(rules.start(), Vec::new())];
    while let Some((at, path)) = open.pop() {
        positions += 1;
        let mut scratch = Scratch::default();
        let (tokens, ends_here) = match rules.allowed(&at, &mut scratch) {
            Allowed::Only { tokens, ends } => (tokens, ends.iter().any(|&end| !tokens.contains(end))),
            Allowed::Open { tokens } => (tokens, true),
            Allowed::All | Allowed::Nothing => return None,
        };
        let is_free = matches!(tokens, Tokens::Except(_));
        if is_free || tokens.len() > limit || positions + open.len() > limit || (ends_here && path.is_empty()) {
            return None;
        }
        if ends_here {
            builder.push(None, &path);
        }
        for token in tokens.iter() {
            let after = rules.step(&at, token)?.state;
            let longer = [&path[..], &[token]].concat();
            if after.status() == Status::Complete { builder.push(None, &longer) } else { open.push((after, longer)) }
        }
    }
    builder.build().ok()
}
