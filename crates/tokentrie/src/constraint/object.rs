//! Objects of a host, such as built sets and a user's own rules. They have no JSON form.

use super::build::{Over, Spans};
use super::compiled::CompiledSpec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use trie_core::{AnyConstraint, Problem, Trie};
use trie_rules::{AnyRule, CompiledRule};
use trie_text::Vocab;

/// An object of a host. Sets and specs compare by content, the others by identity.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Object {
    /// A set of token sequences.
    Set(Trie),
    /// Constraints, selected by path.
    Spans(Spans),
    /// Rule of a host.
    Rule(Arc<dyn HostRule>),
    /// Constraint that is built anew for each vocabulary.
    Constraint(Arc<dyn HostConstraint>),
    /// A spec that was made already.
    Compiled(Arc<CompiledSpec>),
}

/// A rule that a host holds, and that may cache its compiled forms.
pub trait HostRule: fmt::Debug + Send + Sync {
    /// Returns its name in errors.
    fn name(&self) -> String;

    /// The rule.
    ///
    /// # Errors
    /// What the host fails with.
    fn rule(&self) -> Result<Arc<dyn AnyRule>, Problem>;

    /// The rule over a vocabulary.
    ///
    /// # Errors
    /// What the host fails with.
    fn compile(&self, vocab: &Arc<Vocab>) -> Result<Arc<dyn CompiledRule>, Problem>;
}

/// A constraint that a host makes for each vocabulary.
pub trait HostConstraint: fmt::Debug + Send + Sync {
    /// Returns its name in errors.
    fn name(&self) -> String;

    /// The constraint.
    ///
    /// # Errors
    /// What the host fails with.
    fn build(&self, over: &Over<'_>) -> Result<AnyConstraint, Problem>;

    /// Checks that it may stand in a form of tokens of this vocabulary, as the part of this name.
    ///
    /// # Errors
    /// What the host fails with.
    fn check(&self, part: &str, vocab: &Arc<Vocab>) -> Result<(), Problem> {
        let _ = (part, vocab);
        Ok(())
    }
}

impl Object {
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Set(_) => "ready-made set",
            Self::Spans(_) | Self::Constraint(_) => "ready-made constraint",
            Self::Rule(_) => "user's rule",
            Self::Compiled(compiled) => compiled.spec().kind(),
        }
    }

    fn address(&self) -> usize {
        match self {
            Self::Set(_) => 0,
            Self::Spans(spans) => Arc::as_ptr(spans).cast::<()>() as usize,
            Self::Rule(rule) => Arc::as_ptr(rule).cast::<()>() as usize,
            Self::Constraint(constraint) => Arc::as_ptr(constraint).cast::<()>() as usize,
            Self::Compiled(compiled) => Arc::as_ptr(compiled) as usize,
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Set(one), Self::Set(other)) => one == other,
            (Self::Compiled(one), Self::Compiled(other)) => one == other,
            (Self::Set(_) | Self::Compiled(_), _) | (_, Self::Set(_) | Self::Compiled(_)) => false,
            (one, other) => one.address() == other.address(),
        }
    }
}

impl Eq for Object {}

impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Set(set) => set.len().hash(state),
            Self::Compiled(compiled) => compiled.hash(state),
            other => other.address().hash(state),
        }
    }
}
