//! A sampler over rows of logits.

use super::parts::{filled, ids, named, rules_and_options, state};
use super::structs::{tokentrie_sampler, tokentrie_sampler_options, tokentrie_trie, tokentrie_vocab};
use crate::error::{Result, done, guarded};
use crate::handles::{Kind, Table};
use crate::memory::{Buffer, In, Out};
use crate::status::*;
use std::ffi::c_char;
use trie_core::{Allowed, Sampler, TokenId};

static SAMPLERS: Table<Sampler> = Table::new(Kind::Sampler);

/// A sampler armed at the start of the first trie. `options` may be NULL: all zero. `end_tokens` may end a leaf; none:
/// those of the set itself, if it has any.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_new(
    trie: tokentrie_trie,
    vocab: tokentrie_vocab,
    options: In<tokentrie_sampler_options>,
    end_tokens: In<i32>,
    n_end_tokens: usize,
    sampler: Out<tokentrie_sampler>,
) -> tokentrie_status {
    done(|| {
        sampler.check("sampler")?;
        let ends = end_tokens.slice(n_end_tokens, "end_tokens")?;
        let (rules, options) = rules_and_options(trie, vocab, &options, ends)?;
        sampler.put(SAMPLERS.insert(Sampler::new(rules, options)?)?);
        Ok(())
    })
}

/// Returns the allowed tokens: `what` becomes TOKENTRIE_ALLOWED_…; the ids ascend.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_allowed(
    sampler: tokentrie_sampler,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
    what: Out<i32>,
) -> tokentrie_status {
    done(|| {
        let buffer = Buffer::new(&ids, capacity, &count, "ids")?;
        what.check("what")?;
        SAMPLERS.with(sampler, |sampler| {
            let allowed = sampler.choices()?;
            let kind = match allowed {
                Allowed::Open { .. } => TOKENTRIE_ALLOWED_OPEN,
                Allowed::All => TOKENTRIE_ALLOWED_ALL,
                Allowed::Only { .. } | Allowed::Nothing => TOKENTRIE_ALLOWED_ONLY,
            };
            match allowed.ids() {
                Some(ids) => buffer.fill_with(ids.len(), ids.iter().map(|token| token.as_i32()))?,
                None => buffer.fill_with(allowed.iter().count(), allowed.iter().map(TokenId::as_i32))?,
            }
            what.put(kind);
            Ok(())
        })
    })
}

/// Sets every logit that may not come to minus infinity; the others keep their bits.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_apply(
    sampler: tokentrie_sampler,
    mut logits: Out<f32>,
    n_logits: usize,
) -> tokentrie_status {
    done(|| {
        let logits = logits.slice(n_logits, "logits")?;
        SAMPLERS.with(sampler, |sampler| Ok(sampler.mask(logits)?))
    })
}

/// Chooses the next token without accepting it.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_sample(
    sampler: tokentrie_sampler,
    logits: In<f32>,
    n_logits: usize,
    token: Out<i32>,
) -> tokentrie_status {
    done(|| {
        token.check("token")?;
        let logits = logits.slice(n_logits, "logits")?;
        token.put(SAMPLERS.with(sampler, |sampler| Ok(sampler.sample(logits)?))?.as_i32());
        Ok(())
    })
}

/// Chooses, accepts, and accepts what is forced after it: all of these tokens are written, one call a branch.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_advance(
    sampler: tokentrie_sampler,
    logits: In<f32>,
    n_logits: usize,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let buffer = Buffer::new(&ids, capacity, &count, "ids")?;
        let logits = logits.slice(n_logits, "logits")?;
        SAMPLERS.with(sampler, |sampler| {
            let mut tokens = Vec::new();
            if buffer.capacity() > longest(sampler) {
                sampler.advance(logits, &mut tokens)?;
                return buffer.fill_with(tokens.len(), tokens.iter().map(|token| token.as_i32()));
            }
            // It may not fit: then nothing shall have changed.
            let mut copy = sampler.clone();
            copy.advance(logits, &mut tokens)?;
            buffer.fill_with(tokens.len(), tokens.iter().map(|token| token.as_i32()))?;
            *sampler = copy;
            Ok(())
        })
    })
}

/// The most tokens that can be written at once: the longest leaf and what ends it.
fn longest(sampler: &Sampler) -> usize {
    let trie = sampler.span().constraint().as_trie();
    trie.filter(|trie| trie.is_tree()).map_or(usize::MAX, |trie| trie.max_depth() + 1)
}

/// Accepts all tokens or none.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_accept(sampler: tokentrie_sampler, ids: In<i32>, n_ids: usize) -> tokentrie_status {
    done(|| {
        let given = ids.slice(n_ids, "ids")?;
        if let &[only] = given {
            let token = TokenId::try_from(only)?;
            return SAMPLERS.with(sampler, |sampler| Ok(sampler.accept(token).map(|_| ())?));
        }
        let tokens = self::ids(given, "ids")?;
        SAMPLERS.with(sampler, |sampler| Ok(sampler.accept_all(&tokens)?))
    })
}

/// Takes back the last `n` accepted tokens.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_rollback(sampler: tokentrie_sampler, n: usize) -> tokentrie_status {
    done(|| SAMPLERS.with(sampler, |sampler| Ok(sampler.rollback(n)?)))
}

/// Armed again at the start of the first trie; the draws begin again.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_reset(sampler: tokentrie_sampler) -> tokentrie_status {
    done(|| {
        SAMPLERS.with(sampler, |sampler| {
            sampler.reset();
            Ok(())
        })
    })
}

/// Armed at the start of the trie with this path.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_activate(
    sampler: tokentrie_sampler,
    path: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| {
        let path = path.text(length, "path")?;
        SAMPLERS.with(sampler, |sampler| Ok(sampler.span_mut().activate(path)?))
    })
}

/// Stops constraining until a path is activated or the sampler is reset.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_deactivate(sampler: tokentrie_sampler) -> tokentrie_status {
    done(|| {
        SAMPLERS.with(sampler, |sampler| {
            sampler.span_mut().deactivate();
            Ok(())
        })
    })
}

/// An independent copy, at the same place.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_clone(
    sampler: tokentrie_sampler,
    copy: Out<tokentrie_sampler>,
) -> tokentrie_status {
    done(|| {
        copy.check("copy")?;
        let another = SAMPLERS.with(sampler, |sampler| Ok(sampler.clone()))?;
        copy.put(SAMPLERS.insert(another)?);
        Ok(())
    })
}

/// Tokens that must come next whatever the model says.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_forced(
    sampler: tokentrie_sampler,
    ids: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    done(|| {
        let buffer = Buffer::new(&ids, capacity, &count, "ids")?;
        SAMPLERS.with(sampler, |sampler| {
            let forced: Vec<i32> = sampler.span().forced().map(TokenId::as_i32).collect();
            buffer.fill(&forced)
        })
    })
}

/// Bit i % 32 of word i / 32 is set where token i may come; n_words is at least (n_vocab + 31) / 32.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_bitmask(
    sampler: tokentrie_sampler,
    mut words: Out<u32>,
    n_words: usize,
) -> tokentrie_status {
    done(|| {
        let words = words.slice(n_words, "words")?;
        SAMPLERS.with(sampler, |sampler| Ok(sampler.fill_bitmask(bytemuck::cast_slice_mut(words))?))
    })
}

/// `state` becomes TOKENTRIE_STATE_…, `depth` the tokens walked in the trie; either may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_state(
    sampler: tokentrie_sampler,
    state: Out<i32>,
    depth: Out<usize>,
) -> tokentrie_status {
    done(|| {
        SAMPLERS.with(sampler, |sampler| {
            state.put(self::state(sampler.status()));
            depth.put(sampler.span().depth());
            Ok(())
        })
    })
}

/// Number and name of the complete leaf; TOKENTRIE_NONE before. A leaf without a name has an empty one.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_leaf(
    sampler: tokentrie_sampler,
    leaf: Out<u32>,
    name: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let found = SAMPLERS.with(sampler, |sampler| Ok(named(sampler.span().leaf())))?;
        put_leaf(found, &leaf, &Buffer::new(&name, capacity, &count, "name")?)
    })
}

/// Returns the filled fields of a form so far, by name, as JSON: `{"action": "STOP"}`. TOKENTRIE_NONE if nothing was.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_values(
    sampler: tokentrie_sampler,
    json: Out<c_char>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let leaves = SAMPLERS.with(sampler, |sampler| Ok(sampler.span().leaves()))?;
        let fields = leaves.into_iter().filter_map(|leaf| leaf.field.zip(leaf.name));
        put_values(filled(fields), &Buffer::new(&json, capacity, &count, "json")?)
    })
}

/// Writes the values of a form, or says that there are none.
pub(super) fn put_values(values: Option<String>, json: &Buffer<'_, c_char>) -> Result<tokentrie_status> {
    let Some(values) = values else { return Ok(TOKENTRIE_NONE) };
    json.fill_text(&values).map(|()| TOKENTRIE_OK)
}

/// Writes a leaf, or says that there is none.
pub(super) fn put_leaf(
    found: Option<(u32, String)>,
    leaf: &Out<u32>,
    name: &Buffer<'_, c_char>,
) -> Result<tokentrie_status> {
    leaf.check("leaf")?;
    let Some((number, named)) = found else { return name.fill(&[]).map(|()| TOKENTRIE_NONE) };
    name.fill_text(&named)?;
    leaf.put(number);
    Ok(TOKENTRIE_OK)
}

/// Frees the handle of a sampler.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_sampler_free(sampler: tokentrie_sampler) -> tokentrie_status {
    done(|| SAMPLERS.free(sampler))
}
