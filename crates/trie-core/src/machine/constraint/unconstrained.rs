//! No constraint: every token is allowed.

use super::{Constraint, Ending, Next, NotListed, Role, Scratch, Special, Tokens};
use crate::set::ids::TokenId;
use crate::set::trie::Trie;

/// Allows every token. Alone, it stands for "no constraint" where an API requires one. As the last part of a
/// [`Sequence`](super::Sequence), it is the free text after a value.
///
/// ```
/// use trie_core::{Allowed, AnyConstraint, Scratch, Span, SpanRules, Unconstrained};
/// let rules = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), 100)?;
/// let span = Span::new(rules.into());
/// assert_eq!(span.allowed(&mut Scratch::default()), Allowed::All);
/// # Ok::<(), trie_core::RulesError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Unconstrained;

impl Constraint for Unconstrained {
    type State = ();

    fn start(&self) {}

    fn next<'a>(&'a self, (): &'a (), _: &'a mut Scratch) -> Next<'a> {
        Next { tokens: Tokens::default(), ending: Ending::Free }
    }

    fn advance(&self, (): &mut (), _: TokenId) -> Option<Role> {
        Some(Role::Free)
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for Unconstrained {
    fn remembers(&self) -> bool {
        true
    }

    fn back(&self, (): &mut (), _: usize) -> bool {
        true
    }
}
