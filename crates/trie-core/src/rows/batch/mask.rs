//! Rows of bits: token `i` is bit `i % 32` of word `i / 32`, the layout that serving engines share.

use super::rows::RowsMut;
use super::threads::{map_parts, worthwhile};
use super::{Batch, BatchError, Row, shares};
use crate::machine::constraint::Scratch;
use crate::machine::span::{Allowed, SpanRules};
use crate::rows::row::write_bits;
use crate::set::ids::TokenId;
use std::sync::Arc;

/// Number of allowed tokens from which a row is copied from an equal one, and cleared as a whole, not bit by bit.
const MANY: usize = 512;

impl Batch {
    fn check_masks(&self, width: usize) -> Result<(), BatchError> {
        let (need, n_vocab) = (self.mask_words(), self.n_vocab);
        if width < need {
            return Err(BatchError::Width { what: "rows of a bit mask", got: width, need, n_vocab });
        }
        Ok(())
    }

    /// Sets the bit of every allowed token and clears all other bits, those beyond the vocabulary too.
    /// `O(rows · V / 32)`: it writes every word. [`Batch::update`] writes only the changes.
    ///
    /// # Errors
    /// Another number of rows, rows narrower than [`Batch::mask_words`], or a damaged set; nothing was written then.
    pub fn fill_bitmask(&mut self, words: RowsMut<'_, i32>) -> Result<(), BatchError> {
        self.count("rows of a bit mask", words.count())?;
        self.check_masks(words.width())?;
        let logits = self.survey()?;
        let count = worthwhile(size_of::<i32>() * (words.width() * self.len() + logits));
        let (rules, n_vocab) = (&self.rules, self.n_vocab);
        let parts = shares(&self.rows, words, self.spare.workers(count));
        map_parts(parts, |(rows, words, worker)| fill_rows(rules, n_vocab, rows, words, &mut worker.scratch));
        Ok(())
    }

    /// Brings a mask up to date: writes only the bits that were set before or are set now. `O(k)` a row in the number
    /// of allowed tokens; `O(V / 32)` if very many are allowed.
    ///
    /// # Errors
    /// A damaged set; the mask is as before then.
    pub fn update(&mut self, mask: &mut BatchMask) -> Result<(), BatchError> {
        let (rows, width) = (self.len(), self.mask_words());
        self.survey()?;
        let BatchMask { words, width: of, memory } = mask;
        if *of != width {
            (*words, *of, *memory) = (Vec::new(), width, MaskMemory::default());
        }
        words.resize(rows * width, 0);
        self.write_changes(RowsMut::new(words, rows, width, width)?, memory);
        Ok(())
    }

    /// [`Batch::update`] for words that the caller owns. With a memory that was used before, the words must be
    /// unchanged since the last update with it, but the stride may differ; with a new memory, they must be zeros.
    ///
    /// # Errors
    /// Another number of rows, rows narrower than [`Batch::mask_words`], or a damaged set; nothing was written then.
    pub fn update_rows(&mut self, words: RowsMut<'_, i32>, memory: &mut MaskMemory) -> Result<(), BatchError> {
        self.count("rows of a bit mask", words.count())?;
        self.check_masks(words.width())?;
        self.survey()?;
        self.write_changes(words, memory);
        Ok(())
    }

    /// [`Batch::update_rows`] once nothing can be refused any more.
    fn write_changes(&mut self, words: RowsMut<'_, i32>, memory: &mut MaskMemory) {
        memory.rows.resize_with(self.len(), Set::default);
        let scratch = &mut self.spare.workers(1)[0].scratch;
        let mut wide: Option<(&Row, &[i32])> = None;
        for (row, (words, set)) in self.rows.iter().zip(words.into_iter().zip(&mut memory.rows)) {
            if let Some((_, same)) = wide.filter(|(alike, _)| alike.is_where(row)) {
                words.copy_from_slice(same);
                set.many = true;
                continue;
            }
            let allowed = self.rules[row.rules as usize].allowed(row.walked.state(), scratch);
            set.change(words, allowed, self.n_vocab);
            if set.many {
                wide = Some((row, words));
            }
        }
    }

    /// Returns the number of leading draft tokens that the row would accept, and writes the token mask of each
    /// position: row `i` of `masks` describes the tokens allowed after the first `i` drafts. No row changes.
    ///
    /// The positions after a refused draft are not verified: they repeat the mask that refused it. So no row of the
    /// masks is empty or allows too much.
    ///
    /// # Errors
    /// No such row, not one mask more than drafts, masks narrower than [`Batch::mask_words`], or a damaged set; nothing
    /// was written then.
    pub fn verify(&self, row: usize, drafts: &[TokenId], masks: RowsMut<'_, i32>) -> Result<usize, BatchError> {
        if masks.count() != drafts.len() + 1 {
            let (got, rows) = (masks.count(), drafts.len() + 1);
            return Err(BatchError::Count { what: "rows of a bit mask (one more than drafts)", got, rows });
        }
        self.check_masks(masks.width())?;
        let of = self.row(row)?;
        let rules = self.rules_of(of);
        let mut states = vec![of.walked.state().clone()];
        for &draft in drafts {
            let mut state = states[states.len() - 1].clone();
            if rules.advance(&mut state, draft).is_none() {
                break;
            }
            states.push(state);
        }
        let mut scratch = Scratch::default();
        for state in &states {
            if rules.allowed(state, &mut scratch) == Allowed::Nothing {
                return Err(BatchError::dead_end_error(row, rules, state));
            }
        }
        let last = states.len() - 1;
        for (position, words) in masks.into_iter().enumerate() {
            let allowed = rules.allowed(&states[position.min(last)], &mut scratch);
            // Something may come: that was looked at first.
            let _ = write_bits(words, allowed, self.n_vocab);
        }
        Ok(last)
    }
}

fn fill_rows(rules: &[Arc<SpanRules>], n_vocab: usize, rows: &[Row], words: RowsMut<'_, i32>, scratch: &mut Scratch) {
    // Beams are often many at one wide node: the root above all.
    let mut wide: Option<(&Row, &[i32])> = None;
    for (row, words) in rows.iter().zip(words.into_iter()) {
        if let Some((_, same)) = wide.filter(|(alike, _)| alike.is_where(row)) {
            words.copy_from_slice(same);
            continue;
        }
        let allowed = rules[row.rules as usize].allowed(row.walked.state(), scratch);
        let _ = write_bits(words, allowed, n_vocab);
        if matches!(allowed, Allowed::Only { tokens, .. } if tokens.ids().is_some_and(|ids| ids.len() >= MANY)) {
            wide = Some((row, words));
        }
    }
}

impl Row {
    /// Returns whether the same tokens are allowed in both.
    fn is_where(&self, other: &Self) -> bool {
        self.rules == other.rules && self.walked.state() == other.walked.state()
    }
}

/// The bit masks of a batch, which remembers what it holds: see [`Batch::update`].
///
/// ```
/// use trie_core::{Batch, BatchMask, SamplerOptions, SpanRules, TokenId, Trie};
/// # use std::sync::Arc;
/// let id = |n| TokenId::new(n).unwrap();
/// let mut set = Trie::builder();
/// set.push(Some("a"), &[id(1), id(33)]);
/// let mut batch = Batch::new(Arc::new(SpanRules::for_constraint(set.build()?, 40)?), 2, SamplerOptions::default())?;
/// let mut mask = BatchMask::default();
/// batch.update(&mut mask)?;
/// assert_eq!(mask.words(), [2, 0, 2, 0]);
/// batch.accept(&[id(1), id(1)])?;
/// batch.update(&mut mask)?;
/// assert_eq!(mask.words(), [0, 2, 0, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct BatchMask {
    words: Vec<i32>,
    width: usize,
    memory: MaskMemory,
}

/// Contents of bit masks, so that not all of their words have to be written again: see [`Batch::update_rows`].
#[derive(Debug, Clone, Default)]
pub struct MaskMemory {
    rows: Vec<Set>,
}

/// Contents of one row of a mask.
#[derive(Debug, Clone, Default)]
struct Set {
    /// The words that are not 0, some of them more than once; meaningless where there were too many.
    words: Vec<u32>,
    many: bool,
}

impl BatchMask {
    /// All words, row after row, each [`Batch::mask_words`] wide.
    pub fn words(&self) -> &[i32] {
        &self.words
    }

    /// Words of a row.
    pub fn width(&self) -> usize {
        self.width
    }
}

impl Set {
    fn change(&mut self, words: &mut [i32], allowed: Allowed<'_>, n_vocab: usize) {
        let few = match allowed {
            Allowed::Only { tokens, ends } => tokens.ids().map(|ids| (ids, ends)),
            _ => None,
        };
        let few = few.filter(|(ids, ends)| ids.len() + ends.len() < MANY);
        let Some((ids, ends)) = few else {
            let _ = write_bits(words, allowed, n_vocab);
            self.many = true;
            return;
        };
        if std::mem::take(&mut self.many) {
            words.fill(0);
        } else {
            self.words.iter().for_each(|&word| words[word as usize] = 0);
        }
        self.words.clear();
        self.words.extend(ids.iter().chain(ends).map(|id| {
            let word = id.get() / 32;
            words[word as usize] |= 1 << (id.get() % 32);
            word
        }));
    }
}
