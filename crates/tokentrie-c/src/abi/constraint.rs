//! Constraints of any kind, from the JSON form that all hosts share.

use super::structs::{tokentrie_constraint, tokentrie_vocab};
use super::trie::{TRIES, payload_bytes};
use super::vocab::VOCABS;
use crate::error::{Result, done};
use crate::handles::{Kind, Table};
use crate::memory::{Buffer, In, Out};
use crate::status::tokentrie_status;
use std::ffi::c_char;
use std::sync::Arc;
use tokentrie::spec::{DataOnly, Spans, Spec};

static CONSTRAINTS: Table<Arc<Built>> = Table::new(Kind::Constraint);

/// A spec, and what it is over a vocabulary.
struct Built {
    spec: Spec,
    spans: Spans,
    n_vocab: usize,
}

/// What a handle of a trie or of a constraint says may come.
pub(crate) fn spans_of(handle: u64, n_vocab: usize) -> Result<Spans> {
    if !CONSTRAINTS.is_of_kind(handle) {
        return Ok(Arc::clone(&TRIES.get(handle)?.constraints));
    }
    let built = CONSTRAINTS.get(handle)?;
    if built.n_vocab != n_vocab {
        let message = format!(
            "the constraint {handle:#x} was made for a vocabulary of {} tokens, and this one has {n_vocab}",
            built.n_vocab
        );
        return Err(crate::error::Error::new(crate::status::TOKENTRIE_ERROR_VOCAB, message));
    }
    Ok(Arc::clone(&built.spans))
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
        let spans = spec.constraint(&vocab.over(), &DataOnly)?;
        constraint.put(CONSTRAINTS.insert(Arc::new(Built { spec, spans, n_vocab: vocab.len() }))?);
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

/// Ends the handle; samplers, batches and sessions that follow it go on.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_free(constraint: tokentrie_constraint) -> tokentrie_status {
    done(|| CONSTRAINTS.free(constraint))
}
