//! All values of a constraint, found by walking it.

use trie_core::{Constraint, Ending, NotListed, Scratch, TokenId, Trie};

/// Tokens that are looked at for each value that may be listed.
const TOKENS_A_VALUE: usize = 256;

/// One value for each way through a constraint, with a name of the state at its end. `O(tokens)`.
///
/// # Errors
/// More than `limit`, or so many ways that it may never end; a way that leads nowhere.
pub(super) fn listed<C: Constraint>(
    constraint: &C,
    name: impl Fn(&C::State) -> Option<String>,
    limit: usize,
) -> Result<Trie, NotListed> {
    let (mut builder, mut count, mut looked_at) = (Trie::builder(), 0usize, 0usize);
    let mut begun: Vec<(C::State, Vec<TokenId>)> = vec![(constraint.start(), Vec::new())];
    let mut scratch = Scratch::default();
    while let Some((state, tokens)) = begun.pop() {
        looked_at += 1;
        if constraint.ending(&state) != Ending::No {
            count += 1;
            builder.push(name(&state).as_deref(), &tokens);
        }
        if count > limit || looked_at > limit.saturating_mul(TOKENS_A_VALUE) {
            return Err(NotListed::TooMany { limit });
        }
        if constraint.problem(&state).is_some() {
            return Err(NotListed::Damaged);
        }
        let next: Vec<TokenId> = constraint.next(&state, &mut scratch).tokens.iter().collect();
        for token in next {
            let step = constraint.step(&state, token).ok_or(NotListed::Damaged)?;
            begun.push((step.state, [tokens.as_slice(), &[token]].concat()));
        }
    }
    builder.build().map_err(|_| NotListed::Damaged)
}
