//! Functions of the C interface for tries.

use super::cache::CACHES;
use super::parts::{ids, items};
use super::structs::{tokentrie_cache, tokentrie_trie, tokentrie_trie_info, tokentrie_vocab};
use super::vocab::VOCABS;
use crate::error::{Error, Result, done, guarded};
use crate::handles::{Kind, Table};
use crate::memory::{Buffer, In, Out, text};
use crate::rtkt;
use crate::status::*;
use bytemuck::Pod;
use std::ffi::c_char;
use std::sync::Arc;
#[cfg(not(target_family = "wasm"))]
use trie_core::VocabularyId;
use trie_core::{Cursor, FlatSequences, LeafId, TokenId, Trie, TrieBuilder};
#[cfg(not(target_family = "wasm"))]
use trie_formats::{FileOptions, TrieFile as _};
use trie_formats::{Payload, PayloadReport};

/// One or several tries, as a payload has them.
pub(crate) static TRIES: Table<Arc<Payload>> = Table::new(Kind::Trie);

/// One trie as a payload.
pub(crate) fn payload_of(path: String, trie: Trie) -> Payload {
    let constraints = Arc::new([(path, trie.into())]);
    Payload { model_id: String::new(), constraints, report: PayloadReport::default() }
}

/// The first trie of a handle.
fn first(trie: tokentrie_trie) -> Result<Trie> {
    Ok(TRIES.get(trie)?.trie(None)?.clone())
}

/// Bytes of a payload, unless there are more than anyone has.
pub(crate) fn payload_bytes<'a, T: Pod>(json: &'a In<T>, length: usize, what: &str) -> Result<&'a [u8]> {
    if length > TOKENTRIE_MAX_PAYLOAD {
        let message = format!("{what} has {length} bytes: a payload may have {TOKENTRIE_MAX_PAYLOAD}");
        return Err(Error::new(TOKENTRIE_ERROR_LIMIT, message));
    }
    json.slice(length, what).map(bytemuck::cast_slice)
}

/// The size of a vocabulary; `None` for the handle 0.
pub(super) fn size_of_vocab(vocab: tokentrie_vocab) -> Result<Option<usize>> {
    if vocab == 0 { Ok(None) } else { VOCABS.get(vocab).map(|vocab| Some(vocab.len())) }
}

/// The tries of a payload in JSON. `vocab` may be 0: ids are not checked against one. `cache` may be 0; one keeps what
/// it read, and a payload with the same text or the same content is not built again.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_from_json(
    json: In<c_char>,
    length: usize,
    vocab: tokentrie_vocab,
    cache: tokentrie_cache,
    trie: Out<tokentrie_trie>,
) -> tokentrie_status {
    done(|| {
        trie.check("trie")?;
        let (json, n_vocab) = (payload_bytes(&json, length, "json")?, size_of_vocab(vocab)?);
        let payload = match cache {
            0 => Arc::new(Payload::from_json(json, n_vocab)?),
            cache => CACHES.with_waiting(cache, |cache| Ok(cache.payload(json, n_vocab)?))?,
        };
        trie.put(TRIES.insert(payload)?);
        Ok(())
    })
}

/// One trie whose path is empty. `names` may be NULL: leaves without names; `name_ends` is not read then.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_from_sequences(
    tokens: In<i32>,
    n_tokens: usize,
    ends: In<u64>,
    names: In<c_char>,
    n_names: usize,
    name_ends: In<u64>,
    n_leaves: usize,
    trie: Out<tokentrie_trie>,
) -> tokentrie_status {
    done(|| {
        trie.check("trie")?;
        let (tokens, ends) = (tokens.slice(n_tokens, "tokens")?, ends.slice(n_leaves, "ends")?);
        let sequences = items(tokens.len(), ends, "tokens")?;
        let tokens = ids(tokens, "tokens")?;
        let built = if names.is_null() {
            let ends: Vec<usize> = ends.iter().map(|&end| end as usize).collect();
            let flat = FlatSequences::from_ends(&tokens, &ends);
            flat.ok_or_else(|| Error::argument("ends do not ascend up to n_tokens"))?.build()?
        } else {
            let (names, ends) = (names.text(n_names, "names")?, name_ends.slice(n_leaves, "name_ends")?);
            let mut builder = TrieBuilder::with_capacity(n_leaves, tokens.len());
            for (sequence, name) in sequences.zip(items(names.len(), ends, "names")?) {
                // An end inside a character is found out here.
                let name = text(&names.as_bytes()[name], "a name")?;
                builder.push(Some(name), &tokens[sequence]);
            }
            builder.build()?
        };
        trie.put(TRIES.insert(Arc::new(payload_of(String::new(), built)))?);
        Ok(())
    })
}

/// One trie in the binary form RTKT, which has a path and no names.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_from_rtkt(
    bytes: In<u8>,
    length: usize,
    trie: Out<tokentrie_trie>,
) -> tokentrie_status {
    done(|| {
        trie.check("trie")?;
        let (path, built) = rtkt::decode(payload_bytes(&bytes, length, "bytes")?)?;
        trie.put(TRIES.insert(Arc::new(payload_of(path, built)))?);
        Ok(())
    })
}

/// The first of these tries in that form.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_to_rtkt(
    trie: tokentrie_trie,
    bytes: Out<u8>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let buffer = Buffer::new(&bytes, capacity, &count, "bytes")?;
        let payload = TRIES.get(trie)?;
        let path = payload.constraints.first().map_or("", |(path, _)| path.as_str());
        buffer.fill(&rtkt::encode(path, Some(payload.trie(None)?))?)
    })
}

/// A .ttrie file, which is mapped. `verify` other than 0 reads and checks all of it. `path` is UTF-8.
#[cfg(not(target_family = "wasm"))]
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_open(
    path: In<c_char>,
    length: usize,
    verify: i32,
    trie: Out<tokentrie_trie>,
) -> tokentrie_status {
    done(|| {
        trie.check("trie")?;
        let opened = Trie::open(path.text(length, "path")?, FileOptions::default().with_verify(verify != 0))?;
        trie.put(TRIES.insert(Arc::new(payload_of(String::new(), opened)))?);
        Ok(())
    })
}

/// Writes the first of these tries as a .ttrie file. `vocab` may be 0.
#[cfg(not(target_family = "wasm"))]
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_save(
    trie: tokentrie_trie,
    path: In<c_char>,
    length: usize,
    vocab: tokentrie_vocab,
) -> tokentrie_status {
    done(|| {
        let vocabulary = size_of_vocab(vocab)?.map(|size| VocabularyId { size, fingerprint: None });
        Ok(first(trie)?.save(path.text(length, "path")?, vocabulary)?)
    })
}

/// One of the tries of a payload, by its path, as a handle of its own.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_select(
    trie: tokentrie_trie,
    path: In<c_char>,
    length: usize,
    selected: Out<tokentrie_trie>,
) -> tokentrie_status {
    done(|| {
        selected.check("selected")?;
        let (payload, path) = (TRIES.get(trie)?, path.text(length, "path")?);
        let one = payload.trie(Some(path))?.clone();
        selected.put(TRIES.insert(Arc::new(payload_of(path.to_owned(), one)))?);
        Ok(())
    })
}

/// The path of one of these tries, by its number from 0.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_path(
    trie: tokentrie_trie,
    number: usize,
    path: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, payload) = (Buffer::new(&path, capacity, &count, "path")?, TRIES.get(trie)?);
        let tries = payload.constraints.len();
        let wrong = || Error::argument(format!("number is {number}: there are {tries} tries, numbered from 0"));
        buffer.fill_text(&payload.constraints.get(number).ok_or_else(wrong)?.0)
    })
}

/// Returns the properties of these tries. The caller sets info->size.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_get_info(trie: tokentrie_trie, info: Out<tokentrie_trie_info>) -> tokentrie_status {
    done(|| {
        info.check_fields("info")?;
        let payload = TRIES.get(trie)?;
        let one = payload.trie(None)?;
        let known = tokentrie_trie_info {
            size: 0,
            tries: payload.constraints.len() as u32,
            leaves: one.len() as u64,
            nodes: one.nodes() as u64,
            bytes: one.nbytes() as u64,
            max_token: one.max_token().as_i32(),
            max_depth: one.max_depth() as u32,
            empty_leaves: payload.report.empty_leaves as u64,
            outside_vocabulary: payload.report.out_of_vocabulary as u64,
        };
        info.put_fields(&known, "info")
    })
}

fn walked(trie: &Trie, prefix: &In<i32>, n_prefix: usize) -> Result<Cursor> {
    Ok(trie.walk(&ids(prefix.slice(n_prefix, "prefix")?, "prefix")?)?)
}

/// Tokens that continue this prefix, ascending; none at the end of a leaf that is not a prefix of another. A prefix
/// that leads out of the trie gives TOKENTRIE_ERROR_NOT_ALLOWED.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_children(
    trie: tokentrie_trie,
    prefix: In<i32>,
    n_prefix: usize,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, trie) = (Buffer::new(&ids, capacity, &count, "ids")?, first(trie)?);
        let children = trie.children(walked(&trie, &prefix, n_prefix)?);
        buffer.fill_with(children.len(), children.iter().map(|token| token.as_i32()))
    })
}

/// Tokens that must follow this prefix, up to the next choice or the end of a leaf.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_forced(
    trie: tokentrie_trie,
    prefix: In<i32>,
    n_prefix: usize,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, trie) = (Buffer::new(&ids, capacity, &count, "ids")?, first(trie)?);
        let forced: Vec<i32> = trie.forced(walked(&trie, &prefix, n_prefix)?).map(TokenId::as_i32).collect();
        buffer.fill(&forced)
    })
}

/// The number of the leaf with these tokens; TOKENTRIE_NONE if there is none. Leaves are numbered in the order of their
/// tokens.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_find(
    trie: tokentrie_trie,
    tokens: In<i32>,
    n_tokens: usize,
    leaf: Out<u32>,
) -> tokentrie_status {
    guarded(|| {
        leaf.check("leaf")?;
        let found = first(trie)?.find(&ids(tokens.slice(n_tokens, "tokens")?, "tokens")?);
        Ok(found.map_or(TOKENTRIE_NONE, |found| {
            leaf.put(found.get());
            TOKENTRIE_OK
        }))
    })
}

fn no_leaf(trie: &Trie, leaf: u32) -> Error {
    Error::argument(format!("leaf is {leaf}: there are {} leaves, numbered from 0", trie.len()))
}

/// The tokens of a leaf.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_leaf_tokens(
    trie: tokentrie_trie,
    leaf: u32,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let (buffer, trie) = (Buffer::new(&ids, capacity, &count, "ids")?, first(trie)?);
        let tokens = trie.leaf(LeafId::new(leaf)).ok_or_else(|| no_leaf(&trie, leaf))?.tokens;
        buffer.fill_with(tokens.len(), tokens.iter().map(|token| token.as_i32()))
    })
}

/// The name of a leaf; TOKENTRIE_NONE for one without.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_leaf_name(
    trie: tokentrie_trie,
    leaf: u32,
    name: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let (buffer, trie) = (Buffer::new(&name, capacity, &count, "name")?, first(trie)?);
        if leaf as usize >= trie.len() {
            return Err(no_leaf(&trie, leaf));
        }
        match trie.name(LeafId::new(leaf)) {
            Some(name) => buffer.fill_text(&name).map(|()| TOKENTRIE_OK),
            None => buffer.fill(&[]).map(|()| TOKENTRIE_NONE),
        }
    })
}

/// Ends the handle; samplers over these tries stay.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_trie_free(trie: tokentrie_trie) -> tokentrie_status {
    done(|| TRIES.free(trie))
}
