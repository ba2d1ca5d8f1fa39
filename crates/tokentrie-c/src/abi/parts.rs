//! Parameters shared by several functions: token ids, items by their ends, sets of rules, numbers with a meaning.

#[cfg(feature = "specs")]
use super::constraint::spans_of;
use super::structs::{tokentrie_sampler_options, tokentrie_trie, tokentrie_vocab};
use super::vocab::VOCABS;
use crate::error::{Error, Result};
use crate::memory::In;
use crate::status::*;
use serde_json::{Map, Value};
use std::sync::Arc;
use trie_core::{After, Leaf, Mode, SamplerOptions, SpanRules, Status, TokenId};
#[cfg(feature = "specs")]
use trie_formats::PayloadReport;

/// Ids of C as ids.
pub(crate) fn ids(numbers: &[i32], what: &str) -> Result<Vec<TokenId>> {
    let id = |(at, &number): (usize, &i32)| {
        TokenId::try_from(number).map_err(|error| Error::from(error).of(&format!("{what}[{at}]")))
    };
    numbers.iter().enumerate().map(id).collect()
}

/// The items of a buffer by their ends, which must ascend up to its length.
pub(crate) fn items<'a>(
    length: usize,
    ends: &'a [u64],
    what: &str,
) -> Result<impl ExactSizeIterator<Item = std::ops::Range<usize>> + Clone + use<'a>> {
    let mut before = 0;
    for (at, &end) in ends.iter().enumerate() {
        if end < before || end > length as u64 {
            let message = format!("ends of {what}: [{at}] is {end}: it must be from {before} to {length}");
            return Err(Error::argument(message));
        }
        before = end;
    }
    if before != length as u64 {
        return Err(Error::argument(format!("ends of {what}: the last is {before}, the length is {length}")));
    }
    let begins = |at: usize| at.checked_sub(1).map_or(0, |before| ends[before]) as usize;
    Ok((0..ends.len()).map(move |at| begins(at)..ends[at] as usize))
}

pub(crate) fn mode(mode: i32) -> Result<Mode> {
    match mode {
        TOKENTRIE_MODE_GREEDY => Ok(Mode::Greedy),
        TOKENTRIE_MODE_SAMPLED => Ok(Mode::Sampled),
        _ => Err(Error::argument(format!("mode is {mode}: it must be 0 (greedy) or 1 (sampled)"))),
    }
}

pub(crate) fn after(after: i32) -> Result<After> {
    match after {
        TOKENTRIE_AFTER_FREE => Ok(After::Free),
        TOKENTRIE_AFTER_STOP => Ok(After::Stop),
        _ => Err(Error::argument(format!("after is {after}: it must be 0 (free) or 1 (stop)"))),
    }
}

pub(crate) fn state(status: Status) -> i32 {
    match status {
        Status::Active => TOKENTRIE_STATE_ACTIVE,
        Status::Complete => TOKENTRIE_STATE_COMPLETE,
        Status::Idle => TOKENTRIE_STATE_IDLE,
        Status::Off => TOKENTRIE_STATE_OFF,
    }
}

/// Returns the spans of a handle: without constraints it is a trie.
#[cfg(not(feature = "specs"))]
fn spans_of(handle: u64, _: usize) -> Result<tokentrie::constraint::Spans> {
    Ok(Arc::clone(&super::trie::TRIES.get(handle)?.constraints))
}

/// Rules and choice of a sampler or a batch.
pub(super) fn rules_and_options(
    trie: tokentrie_trie,
    vocab: tokentrie_vocab,
    options: &In<tokentrie_sampler_options>,
    end_tokens: &[i32],
) -> Result<(Arc<SpanRules>, SamplerOptions)> {
    let given = options.fields("options")?.unwrap_or_else(bytemuck::Zeroable::zeroed);
    let vocab = VOCABS.get(vocab)?;
    let mut rules =
        SpanRules::new(spans_of(trie, vocab.len())?, vocab.len())?.with_end_of_generation(vocab.end_of_generation())?;
    if !end_tokens.is_empty() {
        rules = rules.with_end_tokens(ids(end_tokens, "end_tokens")?)?;
    }
    let rules = rules.with_after(after(given.after)?)?;
    let seed = (given.has_seed != 0).then_some(given.seed);
    Ok((Arc::new(rules), SamplerOptions { mode: mode(given.mode)?, draw: given.draw(), seed }))
}

/// Leaves of payloads that were left out.
#[cfg(feature = "specs")]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeftOut {
    /// They have no tokens.
    pub(crate) empty: usize,
    /// The vocabulary does not have their ids.
    pub(crate) outside: usize,
}

#[cfg(feature = "specs")]
impl LeftOut {
    pub(crate) fn of(report: &PayloadReport) -> Self {
        Self { empty: report.empty_leaves, outside: report.out_of_vocabulary }
    }

    /// Adds the counts of one more payload.
    pub(crate) fn and(self, report: &PayloadReport) -> Self {
        let more = Self::of(report);
        Self { empty: self.empty + more.empty, outside: self.outside + more.outside }
    }
}

/// Number and name of a leaf.
pub(crate) fn named(leaf: Option<Leaf>) -> Option<(u32, String)> {
    leaf.map(|leaf| (leaf.index.get(), leaf.name.unwrap_or_default()))
}

/// Returns the filled fields of a form, by name, as JSON; `None` without any.
pub(crate) fn filled(fields: impl Iterator<Item = (String, String)>) -> Option<String> {
    let values: Map<String, Value> = fields.map(|(name, value)| (name, value.into())).collect();
    (!values.is_empty()).then(|| Value::Object(values).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_lie_are_refused() {
        let ranges = |length, ends: &[u64]| items(length, ends, "tokens").map(Iterator::collect::<Vec<_>>);
        assert_eq!(ranges(5, &[2, 2, 5]).unwrap(), [0..2, 2..2, 2..5]);
        assert_eq!(ranges(0, &[]).unwrap(), Vec::<std::ops::Range<usize>>::new());
        let said = |length, ends: &[u64]| ranges(length, ends).unwrap_err().message;
        assert_eq!(said(5, &[3, 2, 5]), "ends of tokens: [1] is 2: it must be from 3 to 5");
        assert_eq!(said(5, &[3, u64::MAX]), format!("ends of tokens: [1] is {}: it must be from 3 to 5", u64::MAX));
        assert_eq!(said(5, &[3, 4]), "ends of tokens: the last is 4, the length is 5");
        assert_eq!(said(5, &[]), "ends of tokens: the last is 0, the length is 5");
        assert_eq!(ids(&[1, -5], "ids").unwrap_err().message, "ids[1]: token id -5 must be from 0 to 2147483647");
    }
}
