//! Constraints of any kind, from the JSON form that all hosts share.

use super::parts::LeftOut;
use super::structs::{tokentrie_constraint, tokentrie_trie, tokentrie_vocab};
use super::trie::{TRIES, payload_bytes, payload_of};
use super::vocab::{VOCABS, Vocab};
use crate::error::{Result, done, guarded};
use crate::handles::{Kind, Table};
use crate::memory::{Buffer, In, Out};
use crate::status::*;
use std::cell::{Cell, RefCell};
use std::ffi::c_char;
use std::sync::Arc;
use tokentrie::constraint::{DataOnly, Host, MOST_TEXTS, Spans, Spec};
use trie_core::{Constraint, Trie};
use trie_formats::PayloadReport;

static CONSTRAINTS: Table<Arc<OfSpec>> = Table::new(Kind::Constraint);

/// A spec, and what it is over a vocabulary.
struct OfSpec {
    spec: Spec,
    #[cfg(feature = "llama")]
    built: tokentrie::constraint::Built,
    spans: Spans,
    vocab: Arc<Vocab>,
    #[cfg(feature = "llama")]
    left_out: LeftOut,
    warnings: Vec<String>,
}

impl OfSpec {
    /// All values, where there are few.
    fn values(&self) -> Result<Trie> {
        if let (Spec::Choice(_), [(_, texts)]) = (&self.spec, &*self.spans)
            && let [texts] = texts.sets()[..]
        {
            // They were tokenised when the constraint was made.
            return Ok(texts.clone());
        }
        Ok(self.spec.values(&self.vocab.over(), &DataOnly)?)
    }
}

/// Returns the values of a trie handle or of a constraint handle, with the spec of the constraint.
#[cfg(not(feature = "llama"))]
pub(crate) fn values_of(handle: u64) -> Result<(Trie, Option<Spec>)> {
    if !CONSTRAINTS.is_of_kind(handle) {
        return Ok((TRIES.get(handle)?.trie(None)?.clone(), None));
    }
    let of_spec = CONSTRAINTS.get(handle)?;
    Ok((of_spec.values()?, Some(of_spec.spec.clone())))
}

/// A host that looks nothing up, counts what is left out and notes what a user should hear.
pub(crate) struct Listening {
    n_vocab: usize,
    pub(crate) left_out: Cell<LeftOut>,
    pub(crate) warnings: RefCell<Vec<String>>,
}

impl Listening {
    pub(crate) fn new(n_vocab: usize) -> Self {
        Self { n_vocab, left_out: Cell::default(), warnings: RefCell::default() }
    }
}

impl Host for Listening {
    fn report_dropped(&self, report: &PayloadReport) {
        self.left_out.set(self.left_out.get().and(report));
        self.warnings.borrow_mut().extend(report.warning(self.n_vocab));
    }

    fn warn(&self, warning: &str) {
        self.warnings.borrow_mut().push(warning.to_owned());
    }
}

/// Constraint of a handle.
#[cfg(feature = "llama")]
pub(crate) struct Follows {
    /// Without regard to what stands before.
    pub(crate) spans: Spans,
    /// For whoever knows what stands before; where the vocabulary is the same.
    pub(crate) built: Option<tokentrie::constraint::Built>,
    /// Spec that it was built from, if any.
    pub(crate) spec: Option<Spec>,
    pub(crate) left_out: LeftOut,
}

/// Returns the constraint of a text in this vocabulary.
#[cfg(feature = "llama")]
pub(crate) fn follows(handle: u64, vocab: &trie_text::Vocab) -> Result<Follows> {
    let spans = spans_of(handle, vocab.len())?;
    if !CONSTRAINTS.is_of_kind(handle) {
        let left_out = LeftOut::of(&TRIES.get(handle)?.report);
        return Ok(Follows { spans, built: None, spec: None, left_out });
    }
    let of_spec = CONSTRAINTS.get(handle)?;
    let same = of_spec.vocab.over().vocab.is_some_and(|own| own.fingerprint() == vocab.fingerprint());
    let (built, spec) = (same.then(|| of_spec.built.clone()), same.then(|| of_spec.spec.clone()));
    Ok(Follows { spans, built, spec, left_out: of_spec.left_out })
}

/// Returns the spans of a trie handle or of a constraint handle.
pub(crate) fn spans_of(handle: u64, n_vocab: usize) -> Result<Spans> {
    if !CONSTRAINTS.is_of_kind(handle) {
        return Ok(Arc::clone(&TRIES.get(handle)?.constraints));
    }
    let built = CONSTRAINTS.get(handle)?;
    if built.vocab.len() != n_vocab {
        let message = format!(
            "the constraint {handle:#x} was made for a vocabulary of {} tokens, and this one has {n_vocab}",
            built.vocab.len()
        );
        return Err(crate::error::Error::new(TOKENTRIE_ERROR_VOCAB, message));
    }
    Ok(Arc::clone(&built.spans))
}

/// Keeps what was built elsewhere.
#[cfg(not(feature = "llama"))]
pub(crate) fn insert(spec: Spec, spans: Spans, vocab: Arc<Vocab>) -> Result<u64> {
    CONSTRAINTS.insert(Arc::new(OfSpec { spec, spans, vocab, warnings: Vec::new() }))
}

/// A constraint of any kind over a vocabulary, from a spec: `{"regex": "[0-9]+"}`, `{"choice": ["yes", "no"]}` and all
/// others of docs/specs.md. Wherever a trie is followed its handle will do: samplers, batches, sessions. Rules need a
/// vocabulary with the bytes of its tokens, texts one of a model. Files and names are not looked up. The sentence of an
/// error says which part is wrong, as `$.then[1].integer.min`: mostly TOKENTRIE_ERROR_SPEC, but TOKENTRIE_ERROR_VOCAB
/// for what this vocabulary cannot do.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_from_json(
    json: In<c_char>,
    length: usize,
    vocab: tokentrie_vocab,
    constraint: Out<tokentrie_constraint>,
) -> tokentrie_status {
    done(|| {
        constraint.check("constraint")?;
        let spec = Spec::from_json(payload_bytes(&json, length, "json")?)?;
        let vocab = VOCABS.get(vocab)?;
        let host = Listening::new(vocab.len());
        let built = spec.build(&vocab.over(), &host)?;
        let spans = built.spans(&vocab.over(), &DataOnly)?;
        constraint.put(CONSTRAINTS.insert(Arc::new(OfSpec {
            spec,
            #[cfg(feature = "llama")]
            built,
            spans,
            vocab,
            #[cfg(feature = "llama")]
            left_out: host.left_out.get(),
            warnings: host.warnings.into_inner(),
        }))?);
        Ok(())
    })
}

/// The spec in its canonical form: one text for one content.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_json(
    constraint: tokentrie_constraint,
    json: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, built) = (Buffer::new(&json, capacity, &count, "json")?, CONSTRAINTS.get(constraint)?);
        buffer.fill_text(&built.spec.to_json()?)
    })
}

/// All values of a constraint that has few, as a trie. Texts that a rule allows are tokenised as a list of texts is;
/// the leaves have their names. Where a token crosses the boundary between `prefix` and a text of a choice, the trie
/// begins before that token, and sessions take it off the prompt. TOKENTRIE_ERROR_SPEC where the values have no end or
/// are too many to list.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_trie(
    constraint: tokentrie_constraint,
    trie: Out<tokentrie_trie>,
) -> tokentrie_status {
    done(|| {
        trie.check("trie")?;
        let values = CONSTRAINTS.get(constraint)?.values()?;
        trie.put(TRIES.insert(Arc::new(payload_of(String::new(), values)))?);
        Ok(())
    })
}

/// The texts of a constraint that is a list of texts or a rule with few, as a JSON array, in the order of a list;
/// TOKENTRIE_NONE for every other kind. TOKENTRIE_ERROR_SPEC where they have no end or are too many to list.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_texts(
    constraint: tokentrie_constraint,
    json: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let (buffer, of_spec) = (Buffer::new(&json, capacity, &count, "json")?, CONSTRAINTS.get(constraint)?);
        let Some(texts) = of_spec.spec.texts(&DataOnly, MOST_TEXTS)? else { return Ok(TOKENTRIE_NONE) };
        buffer.fill_text(&serde_json::Value::from(texts).to_string())?;
        Ok(TOKENTRIE_OK)
    })
}

/// Returns the warnings about a constraint, as a JSON array of sentences: unused rules of a grammar, keywords of a
/// schema that `lenient` leaves out, leaves of a payload that this vocabulary cannot spell.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_warnings(
    constraint: tokentrie_constraint,
    json: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, of_spec) = (Buffer::new(&json, capacity, &count, "json")?, CONSTRAINTS.get(constraint)?);
        buffer.fill_text(&serde_json::Value::from(of_spec.warnings.clone()).to_string())
    })
}

/// Ends the handle; samplers, batches and sessions that follow it go on.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_free(constraint: tokentrie_constraint) -> tokentrie_status {
    done(|| CONSTRAINTS.free(constraint))
}
