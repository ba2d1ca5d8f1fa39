//! Building of constraints: the one place that turns each kind of spec into a constraint over a vocabulary.

use super::error::{SpecError, SpecProblem};
use super::{Host, Object, Spec};
use crate::json::MOST_DEPTH;
use crate::json::place::Place;
use std::sync::Arc;
use trie_core::{AnyConstraint, Constraint, Sequence, Trie, Unconstrained};
use trie_rules::{CompiledRule, MaskLimits};
use trie_text::{Form, FormConstraint, FormOptions, TextValues, Values, Vocab};

/// The most values that are listed.
pub const MOST_VALUES: usize = 1 << 20;
/// The most texts of a rule that are listed.
pub const MOST_TEXTS: usize = 1 << 16;

/// Constraints by path; at least one.
pub type Spans = Arc<[(String, AnyConstraint)]>;

/// Vocabulary over which constraints are built.
#[derive(Debug, Clone, Copy)]
pub struct Over<'v> {
    /// Number of token ids.
    pub n_vocab: usize,
    /// The vocabulary with bytes and special tokens, if it is known.
    pub vocab: Option<&'v Arc<Vocab>>,
}

impl<'v> Over<'v> {
    /// Uses a vocabulary with texts.
    pub fn vocab(vocab: &'v Arc<Vocab>) -> Self {
        Self { n_vocab: vocab.len(), vocab: Some(vocab) }
    }

    /// Uses a number of token ids, of which nothing else is known.
    pub fn size(n_vocab: usize) -> Self {
        Self { n_vocab, vocab: None }
    }

    pub(super) fn need(&self, what: &str, knows: &'static str) -> std::result::Result<&'v Arc<Vocab>, SpecProblem> {
        let n_vocab = self.n_vocab;
        self.vocab.ok_or_else(|| SpecProblem::NeedsVocab { what: what.to_owned(), knows, n_vocab })
    }
}

/// A spec built over a vocabulary, in the form that runs it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Built {
    /// Constraints by path. Token healing follows the set with which the first constraint begins.
    Spans(Spans),
    /// Texts, to be tokenised together with the end of the prompt.
    Texts(TextValues),
    /// A rule. Tokens may cross from the end of the prompt into its text.
    Rule(Arc<dyn CompiledRule>),
    /// A form, which is filled.
    Form(Arc<Form>),
}

/// Error of a library that was built without these kinds. As a constant it links no code of theirs.
const NO_PARTS: SpecProblem = SpecProblem::NotBuilt { kind: "form, sequence and thinking", feature: "parts" };

type Result<T> = std::result::Result<T, SpecError>;

impl Spec {
    /// Builds this spec over a vocabulary.
    ///
    /// # Errors
    /// [`SpecError`] with the place of the part that fails.
    pub fn build(&self, over: &Over<'_>, host: &dyn Host) -> Result<Built> {
        self.build_at(&Place::ROOT, over, host, MOST_DEPTH)
    }

    /// Constraints by path, without regard to what stands before: texts are tokenised alone.
    ///
    /// # Errors
    /// As [`Spec::build`].
    pub fn constraint(&self, over: &Over<'_>, host: &dyn Host) -> Result<Spans> {
        self.spans(&Place::ROOT, over, host, MOST_DEPTH)
    }

    /// Returns all values of a constraint with few values, as a set: [`Spec::list_values`] without regard to the
    /// prompt.
    ///
    /// # Errors
    /// As [`Spec::list_values`].
    pub fn values(&self, over: &Over<'_>, host: &dyn Host) -> Result<Trie> {
        match self.list_values(over, host)? {
            Values::Set(set) => Ok(set.trie().clone()),
            Values::Texts(texts) => {
                let at = |problem| SpecError::new(&Place::ROOT, problem);
                let vocab = over.need(self.kind(), "how to tokenize").map_err(at)?;
                host.texts(&texts.with_distinct(false), vocab).map_err(|error| at(error.into()))
            }
        }
    }

    /// Returns all values of a constraint with few values, for `choose` to score. The values of a rule are texts, like
    /// those of a list.
    ///
    /// # Errors
    /// As [`Spec::build`]; also infinitely many values, more than [`MOST_VALUES`], or more than [`MOST_TEXTS`] texts of
    /// a rule.
    pub fn list_values(&self, over: &Over<'_>, host: &dyn Host) -> Result<Values> {
        if let Self::Choice(texts) = self {
            return Ok(Values::Texts(texts.clone().with_distinct(true)));
        }
        if let Some(texts) = self.texts(host, MOST_TEXTS)? {
            return Ok(Values::Texts(TextValues::new(texts).with_distinct(true)));
        }
        let set = self.constraint(over, host)?[0].1.to_trie(MOST_VALUES);
        Ok(Values::Set(set.map_err(|error| SpecError::new(&Place::ROOT, error))?.into()))
    }

    pub(super) fn build_at(&self, place: &Place<'_>, over: &Over<'_>, host: &dyn Host, deeper: usize) -> Result<Built> {
        let at = |problem| SpecError::new(place, problem);
        match self {
            Self::Choice(values) => {
                over.need("choice", "how to tokenize").map_err(at)?;
                Ok(Built::Texts(values.clone()))
            }
            Self::Form(_) if !cfg!(feature = "parts") => Err(at(NO_PARTS)),
            Self::Form(parts) => {
                let at = place.field("form");
                let part = |(index, part): (usize, &super::Part)| part.build_part(&at.item(index), over, host, deeper);
                let parts = parts.iter().enumerate().map(part).collect::<Result<Vec<_>>>()?;
                let form = Form::new(parts).map_err(|error| SpecError::new(&at, error))?;
                Ok(Built::Form(Arc::new(form)))
            }
            Self::Object(Object::Compiled(compiled)) => compiled.build_at(place, over, host, deeper),
            Self::Object(Object::Rule(rule)) => {
                let vocab = over.need(&rule.name(), "the bytes of each token").map_err(at)?;
                Ok(Built::Rule(rule.compile(vocab).map_err(|error| at(error.into()))?))
            }
            Self::Name(_) => {
                let (spec, deeper) = self.resolve_name(place, host, deeper)?;
                spec.build_at(place, over, host, deeper)
            }
            other => {
                let Some(rule) = other.rule_at(place, host, deeper)? else {
                    return other.spans(place, over, host, deeper).map(Built::Spans);
                };
                let vocab = over.need(other.kind(), "the bytes of each token").map_err(at)?;
                let spelled = rule.compile_for(vocab.spelling(), MaskLimits::default());
                Ok(Built::Rule(spelled.map_err(|error| at(error.into()))?))
            }
        }
    }

    pub(super) fn spans(&self, place: &Place<'_>, over: &Over<'_>, host: &dyn Host, deeper: usize) -> Result<Spans> {
        let at = |problem| SpecError::new(place, problem);
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(at(SpecProblem::TooDeep { most: MOST_DEPTH }));
        };
        match self {
            Self::Any => Ok(single_span(AnyConstraint::new(Unconstrained))),
            Self::Set(name) => {
                let at = place.field("set");
                let set = host.set(name).map_err(|problem| SpecError::new(&at, problem))?;
                let none = || SpecProblem::NotGiven(format!("there is no saved set {name:?} here"));
                let set = set.ok_or_else(|| SpecError::new(&at, none()))?;
                check_vocabulary(&at, over, &set.clone().into())?;
                Ok(single_span(set.into()))
            }
            Self::Payload { text, path } => {
                let payload = host.payload(text, Some(over.n_vocab));
                let payload = payload.map_err(|error| SpecError::new(place, error))?;
                host.report_dropped(&payload.report);
                let Some(path) = path else { return Ok(Arc::clone(&payload.constraints)) };
                let set = payload.trie(Some(path)).map_err(|error| SpecError::new(&place.field("path"), error))?;
                Ok(Arc::from([((**path).to_owned(), set.clone().into())]))
            }
            Self::Sequence(_) | Self::Think(_) if !cfg!(feature = "parts") => Err(at(NO_PARTS)),
            Self::Sequence(parts) => {
                let at = place.field("sequence");
                let part = |(index, part): (usize, &Self)| {
                    let place = at.item(index);
                    let spans = part.spans(&place, over, host, deeper)?;
                    match &*spans {
                        [(_, only)] => Ok(only.clone()),
                        several => {
                            let paths: Vec<&str> = several.iter().map(|(path, _)| path.as_str()).collect();
                            let reason = format!("a part has one constraint, and this has {paths:?}: give a path");
                            Err(SpecError::new(&place, SpecProblem::Value(reason)))
                        }
                    }
                };
                let parts = parts.iter().enumerate().map(part).collect::<Result<Vec<_>>>()?;
                Ok(single_span(AnyConstraint::new(Sequence::new(parts).map_err(|error| SpecError::new(&at, error))?)))
            }
            Self::Think(think) => think.spans(&place.field("think"), over, host, deeper),
            Self::Reply(reply) => Ok(single_span(reply.build_constraint(&place.field("reply"), over, host)?)),
            Self::Object(Object::Set(set)) => Ok(single_span(set.clone().into())),
            Self::Object(Object::Spans(spans)) => Ok(Arc::clone(spans)),
            Self::Object(Object::Constraint(constraint)) => {
                Ok(single_span(constraint.build(over).map_err(|error| at(error.into()))?))
            }
            Self::Name(_) => {
                let (spec, deeper) = self.resolve_name(place, host, deeper)?;
                spec.spans(place, over, host, deeper)
            }
            other => other.build_at(place, over, host, deeper)?.spans_at(place, over, host),
        }
    }
}

impl Built {
    /// Constraints by path, without regard to what stands before: texts are tokenised alone.
    ///
    /// # Errors
    /// [`SpecError`] for text that the vocabulary cannot write.
    pub fn spans(&self, over: &Over<'_>, host: &dyn Host) -> Result<Spans> {
        self.spans_at(&Place::ROOT, over, host)
    }

    fn spans_at(&self, place: &Place<'_>, over: &Over<'_>, host: &dyn Host) -> Result<Spans> {
        let at = |problem| SpecError::new(place, problem);
        match self {
            Self::Spans(spans) => Ok(Arc::clone(spans)),
            Self::Rule(rule) => Ok(single_span(rule.constraint())),
            Self::Texts(texts) => {
                let vocab = over.need("choice", "how to tokenize").map_err(at)?;
                let set = host.texts(texts, vocab);
                Ok(single_span(set.map_err(|error| SpecError::new(&place.field("choice"), error))?.into()))
            }
            Self::Form(form) => {
                let vocab = over.need("form", "how to tokenize").map_err(at)?;
                let form = form_constraint(Arc::clone(form), vocab);
                Ok(single_span(form.map_err(|error| SpecError::new(&place.field("form"), error))?))
            }
        }
    }
}

/// Returns one constraint, with an empty path.
pub fn single_span(constraint: AnyConstraint) -> Spans {
    Arc::from([(String::new(), constraint)])
}

pub(super) fn form_constraint(form: Arc<Form>, vocab: &Arc<Vocab>) -> std::result::Result<AnyConstraint, SpecProblem> {
    if !cfg!(feature = "parts") {
        return Err(NO_PARTS);
    }
    Ok(AnyConstraint::new(FormConstraint::new(form, vocab, FormOptions::default())?))
}

/// Checks that a set is not known to be of another vocabulary.
fn check_vocabulary(place: &Place<'_>, over: &Over<'_>, constraint: &AnyConstraint) -> Result<()> {
    let Some(vocab) = over.vocab else { return Ok(()) };
    constraint.sets().into_iter().try_for_each(|set| vocab.check_set(set)).map_err(|error| SpecError::new(place, error))
}
