//! Sets that do not fit in memory: sorted runs in temporary files, merged into a `.ttrie` file.
//!
//! [`ExternalBuilder`] collects leaves up to a budget, sorts them as [`TrieBuilder`] does and writes them to a
//! temporary file as a run (`run.rs`). At the end the runs are merged into one (`merge.rs`). Its shape determines the
//! position of every node (`shape.rs`), so one more pass writes all sections, with one cursor for each level
//! (`sections.rs`).

mod merge;
mod run;
mod sections;
mod shape;

use crate::file::{FileError, TrieFile, check_vocabulary, of_written, replace_whole};
use run::{Run, RunWriter};
use std::io;
use std::path::{Path, PathBuf};
use trie_core::ErrorKind;
use trie_core::TokenId;
use trie_core::Trie;
use trie_core::VocabularyId;
use trie_core::storage::PackedInts;
use trie_core::storage::fits;
use trie_core::{BuildError, TrieBuilder};

/// Builds sets of any size in bounded memory: leaves beyond a budget are sorted in temporary files.
///
/// The same leaves in any order give the same trie, or file, as a [`TrieBuilder`] gives.
///
/// ```
/// use trie_core::TokenId;
/// use trie_formats::ExternalBuilder;
/// let mut builder = ExternalBuilder::new(64 << 20);
/// for row in 0..1000u32 {
///     builder.push(None, &[row % 7, row].map(|id| TokenId::new(id).unwrap()))?;
/// }
/// assert_eq!(builder.finish()?.len(), 1000);
/// # Ok::<(), trie_formats::ExternalError>(())
/// ```
#[derive(Debug)]
pub struct ExternalBuilder {
    chunk: TrieBuilder,
    budget: usize,
    folder: PathBuf,
    /// Leaves before those in `chunk`.
    rows: usize,
    names: usize,
    /// Runs of one chunk; then runs merged of `FAN_IN` of those; and so on.
    runs: Vec<Vec<Run>>,
}

/// Error returned when leaves cannot become a trie.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// Error of the leaves.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// An error of a temporary file or of the file to write, such as a full disk.
    #[error(transparent)]
    File(#[from] FileError),
}

impl ExternalError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Build(error) => error.kind(),
            Self::File(error) => error.kind(),
        }
    }
}

/// Number of runs that are merged at once: each needs a file and a buffer.
const FAN_IN: usize = 32;

impl ExternalBuilder {
    /// A builder that holds leaves of about `budget` bytes at once, including the memory for sorting them. It needs a
    /// few more megabytes. Runs are temporary files in the system's folder for temporary files.
    pub fn new(budget: usize) -> Self {
        let (chunk, folder) = (TrieBuilder::default(), std::env::temp_dir());
        Self { chunk, budget, folder, rows: 0, names: 0, runs: Vec::new() }
    }

    /// Sets the folder of the temporary files. Where the system allows it, the files have no names; they disappear
    /// with the builder or the process.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Returns the number of leaves so far.
    pub fn len(&self) -> usize {
        self.rows + self.chunk.len()
    }

    /// Returns whether there is no leaf yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether leaves were written to temporary files.
    pub fn has_spilled(&self) -> bool {
        self.rows > 0
    }

    /// Adds a leaf. Equal sequences become one leaf with the smallest name, by code point.
    ///
    /// # Errors
    /// A leaf without tokens, names for some leaves only (which may be detected later), too many leaves, or an error
    /// of the operating system for a temporary file. After any error except that of a leaf without tokens, the builder
    /// cannot be used.
    pub fn push(&mut self, name: Option<&str>, tokens: &[TokenId]) -> Result<(), ExternalError> {
        if tokens.is_empty() {
            return Err(BuildError::EmptySequence { row: self.len() }.into());
        }
        fits("leaves", self.len() + 1)?;
        self.chunk.push(name, tokens);
        if self.chunk.bytes() >= self.budget { self.spill() } else { Ok(()) }
    }

    /// The trie in memory. Building it needs the memory of one trie and 4 bytes a leaf.
    ///
    /// # Errors
    /// As [`TrieBuilder::build`], or an error of the operating system for a temporary file.
    pub fn finish(mut self) -> Result<Trie, ExternalError> {
        if !self.has_spilled() {
            return Ok(self.chunk.build()?);
        }
        let run = self.merge_chunks()?;
        let shape = run.shape()?;
        let mut input = Vec::with_capacity(shape.leaf_count() as usize);
        let failed = |source| FileError::io(&self.folder, "write a temporary file there")(source);
        let mut file = tempfile::tempfile_in(&self.folder).map_err(failed)?;
        sections::write(run, &shape, None, &mut file, |row| input.push(row)).map_err(failed)?;
        Ok(of_written(&mut file, PackedInts::new(std::iter::once(&input[..])))?)
    }

    /// Writes the set as [`TrieFile::save`] does, without ever holding all of it.
    ///
    /// # Errors
    /// As [`ExternalBuilder::finish`] and [`TrieFile::save`]: an error or a kill leaves the old file as it was.
    pub fn finish_to(
        mut self,
        path: impl AsRef<Path>,
        vocabulary: Option<VocabularyId<'_>>,
    ) -> Result<(), ExternalError> {
        let path = path.as_ref();
        if !self.has_spilled() {
            return Ok(self.chunk.build()?.save(path, vocabulary)?);
        }
        let run = self.merge_chunks()?;
        let shape = run.shape()?;
        if let Some(vocabulary) = vocabulary {
            check_vocabulary(vocabulary, shape.max_token()).map_err(|problem| problem.with_path(path))?;
        }
        Ok(replace_whole(path, |file| sections::write(run, &shape, vocabulary, file, |_| ()))?)
    }

    /// Writes the leaves in memory away.
    fn spill(&mut self) -> Result<(), ExternalError> {
        let (first, chunk) = (self.rows as u32, &self.chunk);
        let (rows, names) = (self.rows + chunk.len(), self.names + chunk.name_count());
        if names != 0 && names != rows {
            return Err(BuildError::MixedNames { names, rows }.into());
        }
        let folder = &self.folder;
        let mut writer = RunWriter::new(folder, names > 0).map_err(spilling(folder))?;
        chunk.visit_in_order(|leaf| {
            writer.push(leaf.shared, leaf.tokens, first + leaf.row, leaf.name).map_err(spilling(folder))
        })?;
        let run = writer.finish().map_err(spilling(folder))?;
        (self.rows, self.names) = (rows, names);
        self.chunk.clear();
        self.add(run)
    }

    fn add(&mut self, mut run: Run) -> Result<(), ExternalError> {
        for level in 0.. {
            if self.runs.len() == level {
                self.runs.push(Vec::new());
            }
            self.runs[level].push(run);
            if self.runs[level].len() < FAN_IN {
                break;
            }
            let full = std::mem::take(&mut self.runs[level]);
            run = merge::merge(full, &self.folder).map_err(spilling(&self.folder))?;
        }
        Ok(())
    }

    /// All leaves as one run; the memory of the chunk is given back.
    fn merge_chunks(&mut self) -> Result<Run, ExternalError> {
        if !self.chunk.is_empty() {
            self.spill()?;
        }
        self.chunk = TrieBuilder::default();
        let mut left: Vec<Run> = std::mem::take(&mut self.runs).into_iter().flatten().collect();
        // The smallest runs are merged first.
        left.sort_by_key(|run| std::cmp::Reverse(run.len()));
        while left.len() > 1 {
            let most = left.split_off(left.len().saturating_sub(FAN_IN));
            left.insert(0, merge::merge(most, &self.folder).map_err(spilling(&self.folder))?);
            left.sort_by_key(|run| std::cmp::Reverse(run.len()));
        }
        Ok(left.pop().ok_or(BuildError::NoLeaves)?)
    }
}

fn spilling(folder: &Path) -> impl Fn(io::Error) -> ExternalError {
    move |source| FileError::io(folder, "write a temporary file there")(source).into()
}
