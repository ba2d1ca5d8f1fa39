//! Batches of many rows.

use super::parts::{ids, named, rules_and_options, state};
use super::sampler::put_leaf;
use super::structs::{tokentrie_batch, tokentrie_sampler_options, tokentrie_trie, tokentrie_vocab};
use crate::error::{Error, Result, done, guarded};
use crate::handles::{Kind, Table};
use crate::memory::{Buffer, In, Out};
use crate::status::{TOKENTRIE_ERROR_ROW, tokentrie_status};
use std::ffi::c_char;
use trie_core::{Batch, Rows, RowsMut, TokenId};

static BATCHES: Table<Batch> = Table::new(Kind::Batch);

/// The most rows of a batch.
const LARGEST: usize = 1 << 20;

fn few_enough(rows: usize) -> Result<()> {
    if rows <= LARGEST { Ok(()) } else { Err(Error::argument(format!("{rows} rows: a batch may have {LARGEST}"))) }
}

/// `n_rows` rows, all at the start; more than one thread works on large ones. Every call changes all rows or none. A
/// matrix of logits has n_rows rows of `stride` floats, which begin with the vocabulary's.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_new(
    trie: tokentrie_trie,
    vocab: tokentrie_vocab,
    options: In<tokentrie_sampler_options>,
    end_tokens: In<i32>,
    n_end_tokens: usize,
    n_rows: usize,
    batch: Out<tokentrie_batch>,
) -> tokentrie_status {
    done(|| {
        batch.check("batch")?;
        few_enough(n_rows)?;
        let ends = end_tokens.slice(n_end_tokens, "end_tokens")?;
        let (rules, options) = rules_and_options(trie, vocab, &options, ends)?;
        batch.put(BATCHES.insert(Batch::new(rules, n_rows, options)?)?);
        Ok(())
    })
}

/// Returns the number of rows.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_rows(batch: tokentrie_batch, n_rows: Out<usize>) -> tokentrie_status {
    done(|| {
        n_rows.check("n_rows")?;
        n_rows.put(BATCHES.with(batch, |batch| Ok(batch.len()))?);
        Ok(())
    })
}

/// Checks that a matrix has a row for each row of the batch: its last row may end with the vocabulary.
fn shape(batch: &Batch, what: &str, length: usize, stride: usize, width: usize) -> Result<(usize, usize)> {
    let rows = batch.len();
    let need = rows.checked_sub(1).map_or(Some(0), |full| full.checked_mul(stride)?.checked_add(width));
    if stride < width || need.is_none_or(|need| need > length) {
        let message =
            format!("{what} has {length} entries in rows of {stride}: {rows} rows of at least {width} are needed");
        return Err(Error::new(TOKENTRIE_ERROR_ROW, message));
    }
    Ok((rows, width))
}

/// Sets every logit that may not come to minus infinity.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_apply(
    batch: tokentrie_batch,
    mut logits: Out<f32>,
    n_logits: usize,
    stride: usize,
) -> tokentrie_status {
    done(|| {
        let logits = logits.slice(n_logits, "logits")?;
        BATCHES.with(batch, |batch| {
            let (rows, width) = shape(batch, "logits", logits.len(), stride, batch.n_vocab())?;
            Ok(batch.apply(RowsMut::new(logits, rows, width, stride)?)?)
        })
    })
}

/// Chooses one token a row; accepts none.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_select(
    batch: tokentrie_batch,
    logits: In<f32>,
    n_logits: usize,
    stride: usize,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let buffer = Buffer::new(&ids, capacity, &count, "ids")?;
        let logits = logits.slice(n_logits, "logits")?;
        BATCHES.with(batch, |batch| {
            let (rows, width) = shape(batch, "logits", logits.len(), stride, batch.n_vocab())?;
            buffer.needs(rows)?;
            let mut chosen = vec![TokenId::default(); rows];
            batch.select(Rows::new(logits, rows, width, stride)?, &mut chosen)?;
            buffer.fill_with(rows, chosen.iter().map(|token| token.as_i32()))
        })
    })
}

/// Accepts one token a row.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_accept(batch: tokentrie_batch, ids: In<i32>, n_ids: usize) -> tokentrie_status {
    done(|| {
        let tokens = self::ids(ids.slice(n_ids, "ids")?, "ids")?;
        BATCHES.with(batch, |batch| Ok(batch.accept(&tokens)?))
    })
}

/// Row i becomes a copy of what row sources[i] was; the number of rows may change.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_reorder(
    batch: tokentrie_batch,
    sources: In<u32>,
    n_sources: usize,
) -> tokentrie_status {
    done(|| {
        few_enough(n_sources)?;
        let sources: Vec<usize> = sources.slice(n_sources, "sources")?.iter().map(|&row| row as usize).collect();
        BATCHES.with(batch, |batch| Ok(batch.reorder(&sources)?))
    })
}

/// Takes back the last `n` tokens of every row.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_rollback(batch: tokentrie_batch, n: usize) -> tokentrie_status {
    done(|| BATCHES.with(batch, |batch| Ok(batch.rollback(n)?)))
}

/// A mask a row, as tokentrie_sampler_bitmask, each of `stride` words.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_bitmask(
    batch: tokentrie_batch,
    mut words: Out<u32>,
    n_words: usize,
    stride: usize,
) -> tokentrie_status {
    done(|| {
        let words: &mut [i32] = bytemuck::cast_slice_mut(words.slice(n_words, "words")?);
        BATCHES.with(batch, |batch| {
            let (rows, width) = shape(batch, "words", words.len(), stride, batch.mask_words())?;
            Ok(batch.fill_bitmask(RowsMut::new(words, rows, width, stride)?)?)
        })
    })
}

/// `state` becomes TOKENTRIE_STATE_…, `depth` the tokens that a row has walked; either may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_state(
    batch: tokentrie_batch,
    row: usize,
    state: Out<i32>,
    depth: Out<usize>,
) -> tokentrie_status {
    done(|| {
        BATCHES.with(batch, |batch| {
            let at = batch.state(row)?;
            state.put(self::state(at.status()));
            depth.put(at.depth());
            Ok(())
        })
    })
}

/// As tokentrie_sampler_leaf, of a row.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_leaf(
    batch: tokentrie_batch,
    row: usize,
    leaf: Out<u32>,
    name: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let found = BATCHES.with(batch, |batch| Ok(named(batch.leaf(row)?)))?;
        put_leaf(found, &leaf, &Buffer::new(&name, capacity, &count, "name")?)
    })
}

/// Frees the handle of a batch.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_batch_free(batch: tokentrie_batch) -> tokentrie_status {
    done(|| BATCHES.free(batch))
}
