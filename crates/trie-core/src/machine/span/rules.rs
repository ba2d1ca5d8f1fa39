//! Settings that do not change during the life of a span: its constraints and the tokens around their values.

use super::error::UnknownPath;
use crate::machine::constraint::{AnyConstraint, Constraint, Special, Unconstrained};
use crate::set::ids::TokenId;
use crate::work::ErrorKind;
use std::sync::{Arc, OnceLock};

/// Text allowed after a complete leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum After {
    /// Logits are left alone.
    #[default]
    Free,
    /// Only end of generation may follow.
    Stop,
}

/// Constraints by path, end tokens and limits of a span: checked once, immutable, shared by `Arc`.
#[derive(Debug, Clone)]
pub struct SpanRules<C = AnyConstraint> {
    constraints: Arc<[(String, C)]>,
    /// Their numbers in the order of their paths, made when a path is first asked for.
    by_path: OnceLock<Box<[u32]>>,
    n_vocab: usize,
    /// End tokens given for all constraints, or those of each.
    end_tokens: EndTokens,
    end_of_generation: Vec<TokenId>,
    after: After,
    patience: u32,
    weighted: bool,
}

/// Tokens that may close a value.
#[derive(Debug, Clone)]
enum EndTokens {
    Given(Vec<TokenId>),
    /// End tokens of each constraint, by number; empty if none has any.
    Own(Vec<Vec<TokenId>>),
}

/// Rules that contradict the vocabulary or each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// No constraint at all.
    #[error("a span needs at least one constraint")]
    NoConstraint,
    /// The vocabulary size is 0 or over 2^31.
    #[error("a vocabulary of {n_vocab} tokens: the size must be from 1 to 2147483648")]
    VocabularySize {
        /// The size that was given.
        n_vocab: usize,
    },
    /// An id that the vocabulary does not have.
    #[error("{what}: token id {token} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// Name of the setting that contains it.
        what: String,
        /// The invalid token id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// `After::Stop` with nothing to stop on.
    #[error(
        "after a complete leaf only end of generation shall follow, \
         but neither end-of-generation nor end tokens are known"
    )]
    NothingToStopOn,
}

impl RulesError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoConstraint => ErrorKind::Set,
            Self::VocabularySize { .. } | Self::OutsideVocabulary { .. } => ErrorKind::Vocabulary,
            Self::NothingToStopOn => ErrorKind::Argument,
        }
    }
}

impl SpanRules {
    /// Rules over one constraint, whose path is empty.
    ///
    /// # Errors
    /// As [`SpanRules::new`].
    pub fn for_constraint(constraint: impl Into<AnyConstraint>, n_vocab: usize) -> Result<Self, RulesError> {
        Self::new(vec![(String::new(), constraint.into())], n_vocab)
    }

    /// Rules that constrain nothing: every token is allowed. One of the tokens `ends` ends the text; if there are
    /// none, it never ends.
    ///
    /// # Errors
    /// As [`SpanRules::new`], or an id that the vocabulary does not have.
    pub fn free(n_vocab: usize, ends: &[TokenId], after: After) -> Result<Self, RulesError> {
        let rules = Self::for_constraint(AnyConstraint::new(Unconstrained), n_vocab)?;
        if ends.is_empty() {
            return Ok(rules);
        }
        rules.with_end_tokens(ends)?.with_end_of_generation(ends)?.with_after(after)
    }
}

impl<C: Special> SpanRules<C> {
    /// Number of accepted tokens without progress after which an armed span turns itself off.
    pub const PATIENCE: u32 = 500;

    /// Rules over these constraints, by path; the first is active at the start. `n_vocab` is the number of token ids.
    /// A set that has end tokens of its own ([`Trie::end_tokens`](crate::Trie::end_tokens)) ends with those.
    ///
    /// # Errors
    /// No constraint, a size out of range, or an id that the vocabulary does not have.
    pub fn new(constraints: impl Into<Arc<[(String, C)]>>, n_vocab: usize) -> Result<Self, RulesError> {
        let constraints = constraints.into();
        if n_vocab == 0 || n_vocab > TokenId::MAX.index() + 1 {
            return Err(RulesError::VocabularySize { n_vocab });
        }
        if constraints.is_empty() {
            return Err(RulesError::NoConstraint);
        }
        for (path, constraint) in constraints.iter() {
            check_inside(n_vocab, constraint.max_token().as_slice(), || format!("trie {path:?}"))?;
        }
        let mut own = Vec::new();
        if constraints.iter().any(|(_, constraint)| !own_ends(constraint).is_empty()) {
            own.extend(constraints.iter().map(|(_, constraint)| own_ends(constraint).to_vec()));
            own.iter().try_for_each(|ends| check_inside(n_vocab, ends, || "end tokens".to_owned()))?;
        }
        let weighted = constraints.iter().any(|(_, of)| of.sets().iter().any(|set| set.is_weighted()));
        Ok(Self {
            weighted,
            constraints,
            by_path: OnceLock::new(),
            n_vocab,
            end_tokens: EndTokens::Own(own),
            end_of_generation: Vec::new(),
            after: After::Free,
            patience: Self::PATIENCE,
        })
    }

    /// Sets the tokens that may close the span at the end of a value. They replace the end tokens of the sets.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn with_end_tokens(mut self, tokens: impl Into<Vec<TokenId>>) -> Result<Self, RulesError> {
        let tokens = ascending(tokens.into());
        check_inside(self.n_vocab, &tokens, || "end tokens".to_owned())?;
        self.end_tokens = EndTokens::Given(tokens);
        Ok(self)
    }

    /// The vocabulary's end-of-generation tokens.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn with_end_of_generation(mut self, tokens: impl Into<Vec<TokenId>>) -> Result<Self, RulesError> {
        self.end_of_generation = ascending(tokens.into());
        check_inside(self.n_vocab, &self.end_of_generation, || "end-of-generation tokens".to_owned())?;
        Ok(self)
    }

    /// Sets the text that is allowed after a complete leaf. Set it after the token sets.
    ///
    /// # Errors
    /// [`After::Stop`] where neither end-of-generation nor end tokens are known.
    pub fn with_after(mut self, after: After) -> Result<Self, RulesError> {
        self.after = after;
        let stops = (0..self.constraints.len() as u32).all(|number| !self.stop_tokens_of(number).is_empty());
        if after == After::Stop && !stops {
            return Err(RulesError::NothingToStopOn);
        }
        Ok(self)
    }

    /// Sets the number of accepted tokens without progress after which an armed span turns itself off (default
    /// [`SpanRules::PATIENCE`]).
    #[must_use]
    pub fn with_patience(mut self, patience: u32) -> Self {
        self.patience = patience;
        self
    }

    /// Path and constraint, in their order; never empty.
    #[inline]
    pub fn constraints(&self) -> &[(String, C)] {
        &self.constraints
    }

    /// The same rules with one constraint replaced. The new constraint names no token that the old one does not name.
    pub(crate) fn replacing(&self, number: usize, constraint: C) -> Self
    where
        C: Clone,
    {
        let mut constraint = Some(constraint);
        let replaced = self.constraints.iter().enumerate().map(|(at, (path, of))| {
            let of = constraint.take_if(|_| at == number).unwrap_or_else(|| of.clone());
            (path.clone(), of)
        });
        Self { constraints: replaced.collect(), by_path: OnceLock::new(), ..self.clone() }
    }

    /// The same rules over other constraints, each made by `other` from the old one. The tokens that end a value stay
    /// the same.
    ///
    /// # Errors
    /// An id that the vocabulary does not have, or what `other` fails with.
    pub fn map_constraints<E: From<RulesError>>(&self, mut other: impl FnMut(&C) -> Result<C, E>) -> Result<Self, E>
    where
        C: Clone,
    {
        let others = self.constraints.iter().map(|(path, constraint)| Ok((path.clone(), other(constraint)?)));
        let constraints = others.collect::<Result<Arc<[_]>, E>>()?;
        // What is new in them is checked there.
        Self::new(Arc::clone(&constraints), self.n_vocab)?;
        Ok(Self { constraints, by_path: OnceLock::new(), ..self.clone() })
    }

    /// The vocabulary's end-of-generation tokens, ascending; often none are known.
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.end_of_generation
    }

    /// The number of the constraint with this path, the first where several have it. `O(log paths)` after one sort.
    ///
    /// # Errors
    /// No constraint has that path.
    pub(super) fn number_of(&self, path: &str) -> Result<u32, UnknownPath> {
        let path_of = |number: u32| self.constraints[number as usize].0.as_str();
        let ordered = self.by_path.get_or_init(|| {
            let mut numbers: Vec<u32> = (0..self.constraints.len() as u32).collect();
            numbers.sort_by_key(|&number| path_of(number));
            numbers.into()
        });
        let at = ordered.partition_point(|&number| path_of(number) < path);
        let found = ordered.get(at).copied().filter(|&number| path_of(number) == path);
        found.ok_or_else(|| UnknownPath::new(path, self.constraints.iter().map(|(known, _)| known.as_str())))
    }

    /// The set that the first constraint begins with, if it begins with one: a prompt may be healed for it.
    pub fn first_set(&self) -> Option<&crate::Trie> {
        self.constraints[0].1.first_set()
    }

    /// Returns whether one of the sets has [weights](crate::Trie::with_weights), which a bit mask cannot represent.
    pub fn is_weighted(&self) -> bool {
        self.weighted
    }

    /// Number of token ids.
    #[inline]
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Tokens that may close a value of the first constraint, ascending.
    pub fn end_tokens(&self) -> &[TokenId] {
        self.end_tokens_of(0)
    }

    #[inline]
    pub(super) fn end_tokens_of(&self, constraint: u32) -> &[TokenId] {
        match &self.end_tokens {
            EndTokens::Given(tokens) => tokens,
            EndTokens::Own(of_each) => of_each.get(constraint as usize).map_or(&[], Vec::as_slice),
        }
    }

    /// Returns the tokens allowed after a complete value of the first constraint under [`After::Stop`], ascending: end
    /// of generation, or the end tokens if the vocabulary names none.
    pub fn stop_tokens(&self) -> &[TokenId] {
        self.stop_tokens_of(0)
    }

    #[inline]
    pub(super) fn stop_tokens_of(&self, constraint: u32) -> &[TokenId] {
        if self.end_of_generation.is_empty() { self.end_tokens_of(constraint) } else { &self.end_of_generation }
    }

    /// Returns the text allowed after a complete value.
    #[inline]
    pub fn after_value(&self) -> After {
        self.after
    }

    /// Returns the setting of [`SpanRules::with_patience`].
    pub fn patience(&self) -> u32 {
        self.patience
    }
}

/// The end tokens that a constraint's last set brings.
fn own_ends(constraint: &impl Constraint) -> &[TokenId] {
    constraint.sets().last().map_or(&[], |set| set.end_tokens())
}

fn ascending(mut tokens: Vec<TokenId>) -> Vec<TokenId> {
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

fn check_inside(n_vocab: usize, ascending: &[TokenId], what: impl Fn() -> String) -> Result<(), RulesError> {
    match ascending.last() {
        Some(&token) if token.index() >= n_vocab => Err(RulesError::OutsideVocabulary { what: what(), token, n_vocab }),
        _ => Ok(()),
    }
}
