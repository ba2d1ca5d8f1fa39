//! The values of a slot with the literal that must follow them, in the tokens of texts that really continue.
//!
//! If a literal follows a slot, the probability of a value is that of the value and the literal together: a value that
//! the model would continue (`cat` in `category`) does not end there. A tokenizer cuts the value, the literal and the
//! text after the literal as one text. So the last token of the literal may contain the start of the next text.

use super::slot_set::Next;
use super::slot_set::{SlotHere, SlotSet, WrittenTokens};
use super::{Form, FormError, Part, SlotValues};
use crate::vocab::Vocab;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trie_core::{Choice, ChooseOptions, LeafId, TokenId, Trie, log_add};

/// Number of sequences that are listed if the values do not all continue in the same way.
const MOST_LISTED: usize = 1 << 18;

/// The sequences that are scored for the values of a slot.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Continuation {
    /// The values, each with as many tokens of the following literal as it takes.
    pub trie: Trie,
    /// Tokens of which one must follow; empty if none must.
    pub ends: Vec<TokenId>,
    /// True if each leaf is a value of its own and no value occurs twice.
    pub is_usual: bool,
    /// The value of each leaf; `None` if leaves and values are the same.
    values: Option<Vec<LeafId>>,
}

impl Continuation {
    /// The same continuation, for a set with these values.
    fn for_values(self, values: &Trie) -> Self {
        Self { trie: self.trie.with_vocabulary(values.vocabulary()), ..self }
    }

    /// Turns a choice among the leaves into one among `count` values: the probabilities of leaves of one value add up.
    pub fn choice(&self, mut choice: Choice, count: usize) -> Choice {
        let Some(values) = &self.values else { return choice };
        let mut logprobs = vec![f64::NAN; count];
        for (value, &logprob) in values.iter().zip(&choice.logprobs).filter(|(_, logprob)| !logprob.is_nan()) {
            if let Some(known) = logprobs.get_mut(value.index()) {
                *known = if known.is_nan() { logprob } else { log_add(*known, logprob) };
            }
        }
        let mut ranking: Vec<u32> = (0..count as u32).filter(|&value| !logprobs[value as usize].is_nan()).collect();
        ranking.sort_by(|&one, &other| logprobs[other as usize].total_cmp(&logprobs[one as usize]));
        choice.ranking = ranking.into_iter().map(LeafId::new).collect();
        (choice.logprobs, choice.logprobs_high) = (logprobs, None);
        choice
    }
}

/// Spellings of a value with its literal: all tokens but the last (usually one sequence), and every token that may be
/// the last.
type Spellings = BTreeMap<Vec<TokenId>, BTreeSet<TokenId>>;

fn spellings(tokens: Vec<TokenId>, lasts: BTreeSet<TokenId>) -> Spellings {
    BTreeMap::from([(tokens, lasts)])
}

impl Form {
    /// Returns the sequences to score for the values of the slot at part `index`. They include as much of the
    /// following literal as fits into the rows of a choice that scores every value, and at least the first token of
    /// the literal.
    pub(super) fn continuation(
        &self,
        index: usize,
        before: &WrittenTokens,
        vocab: &Arc<Vocab>,
        set: &SlotSet,
    ) -> Result<Continuation, FormError> {
        let values = set.values()?;
        let alone = || Continuation {
            trie: values.clone(),
            ends: set.rules.end_tokens().to_vec(),
            is_usual: true,
            values: None,
        };
        let next = self.next(index);
        let literal = self.literal(index + 1);
        if literal.is_empty() && !matches!(next, Next::Slot(SlotValues::Texts(_))) {
            return Ok(alone());
        }
        let left = ChooseOptions::MAX_ROWS.saturating_sub(values.nodes()) / values.len().max(1);
        let slot = SlotHere { name: "", vocab, literal, next };
        let here = SlotContext { slot, before, most: left.max(1), usual: OnceCell::new() };
        let is_text = match self.parts().get(index) {
            Some(Part::Slot { values, .. }) => !matches!(values, SlotValues::Tokens(_)),
            _ => return Ok(alone()),
        };
        let after = vocab.tokenize_inside(literal).unwrap_or_default();
        let of_value = |leaf: u32| {
            let leaf = values.leaf(LeafId::new(leaf))?;
            if is_text {
                here.of_text(leaf.name.as_deref()?, &leaf.tokens)
            } else {
                here.of_tokens(&leaf.tokens, &after)
            }
        };
        let all: Option<Vec<Spellings>> = (0..values.len() as u32).map(of_value).collect();
        let Some(all) = all else { return Ok(alone()) };
        Ok(list_sequences(&all).map_or_else(alone, |listed| listed.for_values(values)))
    }
}

/// The sequences as a set. If all values continue with the same tokens, these are end tokens, and no value has several
/// sequences.
fn list_sequences(all: &[Spellings]) -> Option<Continuation> {
    let ends = all.first()?.values().next()?;
    let is_usual =
        |one: &Spellings| one.len() == 1 && one.iter().all(|(tokens, lasts)| !tokens.is_empty() && lasts == ends);
    let is_usual = all.iter().all(is_usual);
    let fits = all.iter().flat_map(BTreeMap::values).map(BTreeSet::len).sum::<usize>() <= MOST_LISTED;
    let (mut builder, mut rows) = (Trie::builder(), Vec::new());
    for (value, one) in (0..).map(LeafId::new).zip(all) {
        for (tokens, lasts) in one {
            if is_usual {
                builder.push(None, tokens);
                rows.push(value);
                continue;
            }
            for &last in lasts.iter().take(if fits { usize::MAX } else { 1 }) {
                builder.push(None, &[tokens.as_slice(), &[last]].concat());
                rows.push(value);
            }
        }
    }
    let trie = builder.build().ok()?;
    let value = |leaf: u32| rows.get(trie.input_row(LeafId::new(leaf))?).copied();
    let values: Vec<LeafId> = (0..trie.len() as u32).map(value).collect::<Option<_>>()?;
    let ends = if is_usual { ends.iter().copied().collect() } else { Vec::new() };
    Some(Continuation { trie, ends, is_usual, values: Some(values) })
}

/// A slot in its form, with the text before it.
struct SlotContext<'f> {
    slot: SlotHere<'f>,
    before: &'f WrittenTokens,
    /// Largest number of tokens of the literal.
    most: usize,
    /// The tokens after a value for which the next token is one of several.
    usual: OnceCell<Spellings>,
}

impl SlotContext<'_> {
    /// A value tokenised together with the text around it; `own` are its tokens.
    fn of_text(&self, value: &str, own: &[TokenId]) -> Option<Spellings> {
        let SlotHere { vocab, literal, .. } = self.slot;
        let whole = self.before.go_on(vocab, &format!("{value}{literal}"))?;
        if whole.len() > own.len() + self.most {
            // The literal goes on: what stands behind it does not matter.
            let (&last, tokens) = whole[..own.len() + self.most].split_last()?;
            return Some(spellings(tokens.to_vec(), [last].into()));
        }
        let Next::Slot(SlotValues::Texts(next)) = &self.slot.next else {
            let (&last, tokens) = whole.split_last()?;
            return Some(spellings(tokens.to_vec(), self.beginning_with(last)));
        };
        let end = self.before.rest + value.len() + literal.len();
        let with = |more: &String| {
            let whole = self.before.go_on(vocab, &format!("{value}{literal}{more}"))?;
            let (&last, tokens) = whole.get(..vocab.tokens_over(&whole, end).max(own.len() + 1))?.split_last()?;
            Some((tokens.to_vec(), last))
        };
        // As after the first value, mostly: then not each pair of values is tokenised.
        let behind = |tokens: &[TokenId]| tokens.strip_prefix(own).map(<[TokenId]>::to_vec);
        let (tokens, last) = next.iter().find_map(with)?;
        if let (Some(behind), Some(usual)) = (behind(&tokens), self.usual.get())
            && let Some(lasts) = usual.get(&behind).filter(|lasts| usual.len() == 1 && lasts.contains(&last))
        {
            return Some(spellings(tokens, lasts.clone()));
        }
        let mut all = Spellings::new();
        for (tokens, last) in next.iter().filter_map(with) {
            all.entry(tokens).or_default().insert(last);
        }
        let usual: Option<Spellings> =
            all.iter().map(|(tokens, lasts)| Some((behind(tokens)?, lasts.clone()))).collect();
        if let Some(usual) = usual {
            let _ = self.usual.set(usual);
        }
        Some(all)
    }

    /// A value that is a sequence of tokens.
    fn of_tokens(&self, own: &[TokenId], after: &[TokenId]) -> Option<Spellings> {
        let taken = after.len().min(self.most);
        let (&last, before) = after[..taken].split_last()?;
        let lasts = if taken < after.len() { [last].into() } else { self.beginning_with(last) };
        Some(spellings([own, before].concat(), lasts))
    }

    /// The tokens with which a text may continue if the literal ends with this token: the token itself and longer
    /// ones.
    fn beginning_with(&self, last: TokenId) -> BTreeSet<TokenId> {
        let piece = self.slot.vocab.piece(last).unwrap_or_default();
        let beyond = self.slot.vocab.by_bytes().starting_with(piece).iter().copied();
        beyond.chain([last]).collect()
    }
}
