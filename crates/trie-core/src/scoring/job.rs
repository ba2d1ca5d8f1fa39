//! Work that needs rows of logits but never computes them: it asks for rows and is given them.

use super::decoder::{DecodeCost, TreeDecoder};
use super::error::{ChooseError, RowProblem, ScoringError};
use super::tree::{TokenTree, TreeNode};
use crate::set::ids::TokenId;

/// Batch of rows that a job needs decoded next.
#[derive(Debug, Clone, Copy)]
pub struct WantedRows<'j> {
    /// The tokens before the branches and the tree.
    pub prompt: &'j [TokenId],
    /// Runs of tokens after the prompt that do not see each other: each stands at the same positions, directly after
    /// the prompt. The tree stands after the longest of them and sees all. Mostly there are none.
    pub branches: &'j [Vec<TokenId>],
    /// The tree whose wanted nodes need their rows. The row after the prompt is needed if the tree wants its root.
    pub tree: &'j TokenTree,
    /// True if the tree is a single path of drafted tokens. They are decoded in the sequence of the prompt, together
    /// with its last tokens, and stay there: the next batch cuts those that it does not begin with. As many as fit
    /// into the pass are enough, from the first on; the rows of the others are left out.
    pub is_draft: bool,
}

impl WantedRows<'static> {
    /// No tokens, and no row.
    pub(super) const NOTHING: Self = Self { prompt: &[], branches: &[], tree: &TokenTree::EMPTY, is_draft: false };
}

impl<'j> WantedRows<'j> {
    /// The row after these tokens.
    pub const fn row_after(prompt: &'j [TokenId]) -> Self {
        const ROOT: &TokenTree = &TokenTree::root();
        Self { prompt, branches: &[], tree: ROOT, is_draft: false }
    }

    /// Returns the number of positions that the branches take: the length of the longest.
    pub fn branch_positions(&self) -> usize {
        self.branches.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns the tokens that stay in the sequence of the prompt after the batch, if they are right: drafted ones.
    pub fn drafted(&self) -> &'j [TreeNode] {
        if self.is_draft { self.tree.nodes() } else { &[] }
    }

    /// Returns the number of tokens of all branches.
    pub fn branch_tokens(&self) -> usize {
        self.branches.iter().map(Vec::len).sum()
    }
}

/// Work as a state machine. The owner of a model runs it: [`run`] runs one job on any host, an engine runs many at
/// once.
///
/// 1. [`Job::advance`] does the work that needs no row and says whether the job wants rows. [`Job::want`] returns
///    them, and stays the same during the next two steps.
/// 2. [`Job::take`] is given every wanted row, once each and parents first.
/// 3. [`Job::finish_batch`] is told the cost of these rows. Then step 1 follows again, and not before.
///
/// After an error, no method of the job may be called.
pub trait Job {
    /// Error type of the job.
    type Error;

    /// Continues as far as possible without a row. Returns whether the job wants rows; if not, it is over.
    ///
    /// # Errors
    /// Its own.
    fn advance(&mut self) -> Result<bool, Self::Error>;

    /// Returns the batch that the job needs next.
    fn want(&self) -> WantedRows<'_>;

    /// Takes the row after a wanted node of the tree, or, for `None`, the row after the prompt.
    ///
    /// # Errors
    /// Its own.
    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), Self::Error>;

    /// Ends a batch: all its rows were taken, at this cost.
    fn finish_batch(&mut self, decoded: DecodeCost);
}

/// Why work could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError<J, H> {
    /// Error of the job itself.
    Job(J),
    /// Error of the host.
    Host(H),
    /// Rows other than those that were asked for.
    Rows(RowProblem),
}

impl<E> From<RunError<ScoringError, E>> for ChooseError<E> {
    fn from(error: RunError<ScoringError, E>) -> Self {
        match error {
            RunError::Job(error) => error.into(),
            RunError::Host(error) => Self::Host(error),
            RunError::Rows(problem) => Self::Rows(problem),
        }
    }
}

/// Runs a job to its end on one host. The rows of the host are checked, because a missing row must not silently give a
/// wrong result.
///
/// # Errors
/// [`RunError`]. The host can be used afterwards.
pub fn run<J: Job + ?Sized, D: TreeDecoder + ?Sized>(
    job: &mut J,
    host: &mut D,
) -> Result<(), RunError<J::Error, D::Error>> {
    while job.advance().map_err(RunError::Job)? {
        let WantedRows { prompt, branches, tree, .. } = job.want();
        if !branches.is_empty() {
            return Err(RunError::Rows(RowProblem::Branches));
        }
        let (prompt, tree) = (prompt.to_vec(), tree.clone());
        let mut checks = Checks::new(&tree, host.n_vocab());
        let mut problem = None;
        let mut each = |node: Option<usize>, row: &[f32]| {
            if problem.is_none() {
                let taken = checks.take(node, row).map_err(RunError::Rows);
                problem = taken.and_then(|()| job.take(node, row).map_err(RunError::Job)).err();
            }
        };
        let decoded = host.decode(&prompt, &tree, &mut each).map_err(RunError::Host)?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        checks.check_complete().map_err(RunError::Rows)?;
        job.finish_batch(decoded);
    }
    Ok(())
}

/// Record of the rows that were fed.
pub(super) struct Checks<'t> {
    tree: &'t TokenTree,
    n_vocab: usize,
    /// For each node, true while its row is missing; and the same for the row after the prompt.
    waits: Vec<bool>,
    root_waits: bool,
}

impl<'t> Checks<'t> {
    pub(super) fn new(tree: &'t TokenTree, n_vocab: usize) -> Self {
        let waits = tree.nodes().iter().map(|node| node.wanted).collect();
        Self { tree, n_vocab, waits, root_waits: tree.wants_root() }
    }

    pub(super) fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RowProblem> {
        if row.len() != self.n_vocab {
            return Err(RowProblem::Length { found: row.len(), n_vocab: self.n_vocab });
        }
        let waits = node.map_or(Some(&mut self.root_waits), |node| self.waits.get_mut(node));
        if !waits.is_some_and(std::mem::take) {
            return Err(RowProblem::Unwanted { node });
        }
        let Some(node) = node else { return Ok(()) };
        let parent_waits = self.tree.nodes()[node].parent.map_or(self.root_waits, |parent| self.waits[parent]);
        if parent_waits { Err(RowProblem::BeforeParent { node }) } else { Ok(()) }
    }

    pub(super) fn check_complete(&self) -> Result<(), RowProblem> {
        let missing = usize::from(self.root_waits) + self.waits.iter().filter(|&&waits| waits).count();
        if missing == 0 { Ok(()) } else { Err(RowProblem::Missing { missing }) }
    }
}
