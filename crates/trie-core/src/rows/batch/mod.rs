//! Many rows walked together: batches, beams and drafts. A row is a state with its rules. `span/` decides which tokens
//! are allowed in it, and `row.rs` applies them to a row of logits.

mod beam;
mod children;
mod continuations;
mod error;
mod items;
mod listed_logits;
mod logits;
mod mask;
mod moves;
mod rows;
mod threads;
mod top;

pub use beam::{BeamOptions, BeamSearch, Hypothesis};
pub use children::Children;
pub use continuations::ScoreMode;
pub use error::BatchError;
pub use items::NoRepeat;
pub use mask::{BatchMask, MaskMemory};
pub use rows::{Rows, RowsError, RowsMut};
pub use top::Child;

use crate::machine::constraint::{AnyConstraint, AnyState, Constraint, Role, Scratch, Thought, Unconstrained};
use crate::machine::span::{After, Allowed, SpanRules, SpanState, Status, Trail};
use crate::rows::chooser::{Mode, SamplerOptions};
use crate::rows::draw::Draw;
use crate::rows::settings::DrawSettings;
use crate::set::ids::TokenId;
use crate::set::trie::Leaf;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Rows that are decoded together, each at its own position in its own constraint.
///
/// A row is a state of a few bytes and its rollback history, so reordering beams copies integers, and
/// [`Batch::rollback`] can go back across [`Batch::reorder`]. Every call that changes rows changes all of them or
/// none. Calls that read or write much memory use all cores.
///
/// ```
/// use trie_core::{Batch, Rows, SamplerOptions, ScoreMode, SpanRules, TokenId, Trie};
/// # use std::sync::Arc;
/// let id = |n| TokenId::new(n).unwrap();
/// let mut items = Trie::builder();
/// for (name, tokens) in [("a", [1, 2]), ("b", [1, 3]), ("c", [4, 2])] {
///     items.push(Some(name), &tokens.map(id));
/// }
/// let rules = Arc::new(SpanRules::for_constraint(items.build()?, 6)?);
/// let mut beams = Batch::new(rules, 1, SamplerOptions::default())?;
///
/// // The two best first tokens of one row: token 5 is not a child.
/// let logits = [0.0, 3.0, 0.0, 0.0, 2.0, 9.0];
/// let best = beams.top_children(Rows::new(&logits, 1, 6, 6)?, 2, None, ScoreMode::Renormalised)?;
/// assert_eq!(best.iter().map(|child| child.token).collect::<Vec<_>>(), [id(1), id(4)]);
/// beams.reorder(&[0, 0])?;
/// beams.accept(&[id(1), id(4)])?;
///
/// assert!(beams.accept(&[id(3), id(3)]).is_err(), "3 may follow 1, but not 4: no row has moved");
/// beams.accept(&[id(3), id(2)])?;
/// let names: Vec<_> = (0..2).filter_map(|row| beams.leaf(row).unwrap()?.name).collect();
/// assert_eq!(names, ["b", "c"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batch {
    /// Rules of all rows; each row names its own by number.
    rules: Vec<Arc<SpanRules>>,
    rows: Vec<Row>,
    n_vocab: usize,
    options: SamplerOptions,
    seed: u32,
    /// One generator for each place, not for the row in it: two copies of a beam must not draw alike.
    draws: Vec<Draw>,
    starved: u64,
    /// True if a row remembers tokens.
    remembers: bool,
    /// Buffers kept for reuse of their memory.
    spare: Spare,
}

/// Number of places that keep their generator, which takes 2.5 KB. Other places rebuild theirs for each draw.
const KEPT: usize = 1 << 14;

#[derive(Debug, Default)]
struct Spare {
    rows: Vec<Row>,
    states: Vec<SpanState<AnyState>>,
    workers: Vec<Worker>,
}

/// Scratch memory of a thread that goes through rows.
#[derive(Debug, Default)]
struct Worker {
    scratch: Scratch,
    ids: Vec<TokenId>,
    logits: Vec<f32>,
    /// A row of halves as singles.
    wide: Vec<f32>,
}

#[derive(Debug, Clone)]
struct Row {
    walked: Trail,
    rules: u32,
    /// Items before the current one, shared by copies of a row.
    items: Option<Arc<items::Items>>,
    /// The tokens that the row has accepted, if something needs them: penalties, or values that are text.
    #[allow(clippy::box_collection, reason = "rows are many, and most remember nothing: one word")]
    written: Option<Box<Vec<TokenId>>>,
}

impl Clone for Spare {
    /// Returns an empty buffer: memory is not content.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Row {
    /// Returns the tokens that penalties count: none without penalties.
    fn counted_tokens(&self, settings: &DrawSettings) -> &[TokenId] {
        self.written.as_ref().filter(|_| settings.has_penalties()).map_or(&[], |written| written)
    }
}

impl Spare {
    fn workers(&mut self, count: usize) -> &mut [Worker] {
        if self.workers.len() < count {
            self.workers.resize_with(count, Worker::default);
        }
        &mut self.workers[..count]
    }
}

impl Batch {
    /// A batch of `rows` rows, all at the start of the same rules.
    ///
    /// # Errors
    /// A setting of the draw out of range.
    pub fn new(rules: Arc<SpanRules>, rows: usize, options: SamplerOptions) -> Result<Self, BatchError> {
        let n_vocab = rules.n_vocab();
        Self::of_rows(std::iter::repeat_n(Some(rules), rows), n_vocab, options)
    }

    /// A batch with one row for each of these rules. `None` makes a row that is never constrained; [`SpanRules::free`]
    /// makes one that can end. `n_vocab` is the number of token ids.
    ///
    /// # Errors
    /// Rules for another vocabulary size, or a setting out of range.
    pub fn of_rows(
        rules: impl IntoIterator<Item = Option<Arc<SpanRules>>>,
        n_vocab: usize,
        options: SamplerOptions,
    ) -> Result<Self, BatchError> {
        options.draw.check()?;
        // Checks the size, too.
        SpanRules::free(n_vocab, &[], After::Free)?;
        let sampled = options.mode == Mode::Sampled;
        let seed = options.seed.unwrap_or_else(|| if sampled { RandomState::new().hash_one(()) as u32 } else { 0 });
        let rules = rules.into_iter();
        let most = rules.size_hint().0;
        let (rows, draws) = (Vec::with_capacity(most), Vec::with_capacity(if sampled { most } else { 0 }));
        let spare = Spare::default();
        let mut batch =
            Self { rules: Vec::new(), rows, n_vocab, options, seed, draws, starved: 0, remembers: false, spare };
        for rules in rules {
            batch.push(rules)?;
        }
        Ok(batch)
    }

    /// Adds one row at the start of these rules; `None` makes a row that is not constrained.
    ///
    /// # Errors
    /// Rules for another vocabulary size.
    pub fn push(&mut self, rules: Option<Arc<SpanRules>>) -> Result<(), BatchError> {
        let row = self.arm_row(self.rows.len(), rules)?;
        self.rows.push(row);
        self.seed_places();
        Ok(())
    }

    /// Gives a row to another request: the row starts these rules, or is not constrained. `O(rows)`.
    ///
    /// # Errors
    /// No such row, or rules for another vocabulary size.
    pub fn assign(&mut self, row: usize, rules: Option<Arc<SpanRules>>) -> Result<(), BatchError> {
        self.row(row)?;
        self.rows[row] = self.arm_row(row, rules)?;
        self.forget_rules();
        Ok(())
    }

    /// Drops rules that no row follows any more, because requests come and go.
    fn forget_rules(&mut self) {
        const UNUSED: u32 = u32::MAX;
        let mut numbers = vec![UNUSED; self.rules.len()];
        self.rows.iter().for_each(|row| numbers[row.rules as usize] = 0);
        let used = |number: &&mut u32| **number != UNUSED;
        numbers.iter_mut().filter(used).zip(0..).for_each(|(number, next)| *number = next);
        let mut kept = numbers.iter().map(|&number| number != UNUSED);
        self.rules.retain(|_| kept.next().unwrap_or(true));
        self.rows.iter_mut().for_each(|row| row.rules = numbers[row.rules as usize]);
    }

    fn arm_row(&mut self, row: usize, rules: Option<Arc<SpanRules>>) -> Result<Row, BatchError> {
        let rules = match rules {
            Some(rules) => rules,
            None => self.free_rules()?,
        };
        let (got, n_vocab) = (rules.n_vocab(), self.n_vocab);
        if got != n_vocab {
            return Err(BatchError::MixedVocabularies { row, got, n_vocab });
        }
        let walked = Trail::new(rules.start());
        let is_text = |(_, of): &(String, AnyConstraint)| of.sets().is_empty() && !is_free(of);
        let asked = self.options.draw.has_penalties() || rules.constraints().iter().any(is_text);
        let written = asked.then(Box::default);
        self.remembers |= asked;
        Ok(Row { walked, rules: self.number_of(rules), items: None, written })
    }

    /// The rules of a free row, shared by all of them.
    fn free_rules(&self) -> Result<Arc<SpanRules>, BatchError> {
        let endless = |rules: &&Arc<SpanRules>| {
            matches!(rules.constraints(), [(path, only)] if path.is_empty() && is_free(only))
                && rules.end_tokens().is_empty()
        };
        match self.rules.iter().find(endless) {
            Some(rules) => Ok(rules.clone()),
            None => Ok(Arc::new(SpanRules::free(self.n_vocab, &[], After::Free)?)),
        }
    }

    /// The number of these rules. The last row is looked at first, because rows of one set have the same rules.
    fn number_of(&mut self, rules: Arc<SpanRules>) -> u32 {
        let last = self.rows.last().map(|row| row.rules);
        if let Some(last) = last.filter(|&last| Arc::ptr_eq(&self.rules[last as usize], &rules)) {
            return last;
        }
        if let Some(known) = self.rules.iter().position(|known| Arc::ptr_eq(known, &rules)) {
            return known as u32;
        }
        self.rules.push(rules);
        self.rules.len() as u32 - 1
    }

    /// Returns the number of rows.
    #[allow(clippy::len_without_is_empty, reason = "no rows are a batch like any other")]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the mode of [`Batch::select`]: greedy or sampled.
    pub fn mode(&self) -> Mode {
        self.options.mode
    }

    /// Number of token ids.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Returns whether one of the sets has [weights](crate::Trie::with_weights). Masks of bits have no room for them.
    pub fn is_weighted(&self) -> bool {
        self.rules.iter().any(|rules| rules.is_weighted())
    }

    /// Number of 32-bit words of a row's mask.
    pub fn mask_words(&self) -> usize {
        self.n_vocab.div_ceil(32)
    }

    /// Returns how often every allowed logit of a row was −inf or NaN, so that its lowest allowed id was taken.
    pub fn starved_count(&self) -> u64 {
        self.starved
    }

    /// The seed of the draws of this place. The first place has the seed of the batch.
    pub fn seed(&self, row: usize) -> u32 {
        seed_of(self.seed, row)
    }

    fn row(&self, row: usize) -> Result<&Row, BatchError> {
        self.rows.get(row).ok_or(BatchError::NoSuchRow { what: "row", row, rows: self.rows.len() })
    }

    #[inline]
    fn rules_of(&self, row: &Row) -> &SpanRules {
        &self.rules[row.rules as usize]
    }

    /// Returns the allowed tokens of a row.
    ///
    /// # Errors
    /// No such row, or a row in which no token is allowed, because its set is damaged or its constraint has an error.
    pub fn allowed<'a>(&'a self, row: usize, scratch: &'a mut Scratch) -> Result<Allowed<'a>, BatchError> {
        let held = self.row(row)?;
        let choices = self.rules_of(held).choices(held.walked.state(), scratch);
        choices.map_err(|source| BatchError::Refused { row, source })
    }

    /// Returns the state of a row, as a value.
    ///
    /// # Errors
    /// No such row.
    pub fn state(&self, row: usize) -> Result<&SpanState<AnyState>, BatchError> {
        Ok(self.row(row)?.walked.state())
    }

    /// The rules of a row.
    ///
    /// # Errors
    /// No such row.
    pub fn rules(&self, row: usize) -> Result<&Arc<SpanRules>, BatchError> {
        Ok(&self.rules[self.row(row)?.rules as usize])
    }

    fn count(&self, what: &'static str, got: usize) -> Result<(), BatchError> {
        let rows = self.rows.len();
        if got == rows { Ok(()) } else { Err(BatchError::Count { what, got, rows }) }
    }

    /// Makes a generator for each place without one. Places that stay keep theirs.
    fn seed_places(&mut self) {
        if self.options.mode == Mode::Sampled {
            let draw = |row| {
                if row < KEPT { Draw::new(seed_of(self.seed, row)) } else { Draw::light(seed_of(self.seed, row)) }
            };
            self.draws.extend((self.draws.len()..self.rows.len()).map(draw));
        }
    }

    /// Checks that each row has an allowed token, and returns the number of logits that a choice over all rows
    /// examines.
    fn survey(&mut self) -> Result<usize, BatchError> {
        self.spare.workers(1);
        let scratch = &mut self.spare.workers[0].scratch;
        let mut logits = 0;
        for (index, row) in self.rows.iter().enumerate() {
            let state = row.walked.state();
            let rules = &*self.rules[row.rules as usize];
            logits += match rules.allowed(state, scratch) {
                Allowed::Only { tokens, ends } => tokens.ids().map_or(self.n_vocab, |ids| ids.len() + ends.len()),
                Allowed::All | Allowed::Open { .. } => self.n_vocab,
                Allowed::Nothing => {
                    return Err(BatchError::dead_end_error(index, rules, state));
                }
            };
        }
        Ok(logits)
    }
}

/// Returns whether it constrains nothing.
fn is_free(constraint: &AnyConstraint) -> bool {
    constraint.downcast_ref::<Unconstrained>().is_some()
}

/// The rows split into one share for each worker, each with its part of the output and its worker.
fn shares<'b, T>(
    rows: &'b [Row],
    written: RowsMut<'b, T>,
    workers: &'b mut [Worker],
) -> Vec<(&'b [Row], RowsMut<'b, T>, &'b mut Worker)> {
    let size = rows.len().div_ceil(workers.len());
    let (mut rest, mut left, mut shares) = (written, rows, Vec::with_capacity(workers.len()));
    for worker in workers {
        let (part, later) = rest.split_at(size);
        let (of, others) = left.split_at(size.min(left.len()));
        shares.push((of, part, worker));
        (rest, left) = (later, others);
    }
    shares
}

/// The seed of a place, mixed from the seed of the batch, so that batches with neighbouring seeds have no seed in
/// common. The first place keeps the seed, so that a batch of one row draws the same as a sampler.
fn seed_of(seed: u32, row: usize) -> u32 {
    if row == 0 {
        return seed;
    }
    // SplitMix64.
    let mut mixed = (u64::from(seed) << 32 | row as u64 & 0xFFFF_FFFF).wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ mixed >> 31) as u32
}

impl Batch {
    /// Returns for each row whether its value is complete. The rules decide what may follow it: any token, or only
    /// tokens that end the output.
    pub fn finished_rows(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        self.rows.iter().map(|row| row.walked.state().status() == Status::Complete)
    }

    /// The value of a row, once complete. It stays known whatever follows.
    ///
    /// # Errors
    /// No such row.
    pub fn leaf(&self, row: usize) -> Result<Option<Leaf>, BatchError> {
        let row = self.row(row)?;
        Ok(row.walked.leaf(self.rules_of(row).constraint(row.walked.state())))
    }

    /// The values of a row known so far: more than one where constraints follow each other.
    ///
    /// # Errors
    /// No such row.
    pub fn leaves(&self, row: usize) -> Result<Vec<Leaf>, BatchError> {
        let row = self.row(row)?;
        Ok(row.walked.leaves(self.rules_of(row).constraint(row.walked.state())))
    }

    /// The tokens of the complete value of a row that follows a rule; they spell its text. `None` for other rows,
    /// whose values are leaves.
    ///
    /// # Errors
    /// No such row.
    pub fn value_tokens(&self, row: usize) -> Result<Option<Vec<TokenId>>, BatchError> {
        let row = self.row(row)?;
        let (rules, state) = (self.rules_of(row), row.walked.state());
        let constraint = rules.constraint(state);
        let is_text = constraint.sets().is_empty() && !is_free(constraint);
        let Some(written) = row.written.as_ref().filter(|_| is_text && state.status() == Status::Complete) else {
            return Ok(None);
        };
        let mut at = rules.start();
        let since_begun = &written[written.len() - state.accepted()..];
        let of_value = |token: &&TokenId| rules.advance(&mut at, **token) == Some(Role::Value);
        Ok(Some(since_begun.iter().filter(of_value).copied().collect()))
    }

    /// Returns the thinking of a row so far, behind a [`ThinkGate`](crate::ThinkGate).
    ///
    /// # Errors
    /// No such row.
    pub fn thought(&self, row: usize) -> Result<Thought, BatchError> {
        let row = self.row(row)?;
        Ok(row.walked.thought(self.rules_of(row).constraint(row.walked.state())))
    }
}
