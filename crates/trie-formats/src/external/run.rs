//! A sorted run of leaves in a temporary file.
//!
//! Each leaf is stored as a few words in the byte order of this machine: the number of tokens shared with the leaf
//! before, the number of other tokens, its row and, with names, the number of bytes of its name. Then follow the other
//! tokens and the name.

use super::shape::Shape;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use trie_core::BuildError;
use trie_core::TokenId;

/// Number of bytes that are read or written at once.
const BUFFER: usize = 1 << 16;

/// Leaves that ascend, each sequence once.
#[derive(Debug)]
pub(super) struct Run {
    file: File,
    shape: Shape,
    named: bool,
}

pub(super) struct RunWriter {
    out: BufWriter<File>,
    shape: Shape,
    named: bool,
}

pub(super) struct RunReader {
    input: BufReader<File>,
    left: u64,
    named: bool,
    /// The leaf that was read last.
    pub(super) leaf: RunLeaf,
}

#[derive(Debug, Default)]
pub(super) struct RunLeaf {
    /// Tokens that it shares with the one before.
    pub(super) shared: usize,
    pub(super) tokens: Vec<TokenId>,
    pub(super) row: u32,
    pub(super) name: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(folder: &Path, named: bool) -> io::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(folder)?);
        Ok(Self { out, shape: Shape::default(), named })
    }

    /// Adds a leaf: how many tokens it shares with the one before, and its others.
    pub(super) fn push(&mut self, shared: usize, tokens: &[TokenId], row: u32, name: Option<&str>) -> io::Result<()> {
        self.push_bytes(shared, tokens, row, name.unwrap_or_default().as_bytes())
    }

    pub(super) fn push_bytes(&mut self, shared: usize, tokens: &[TokenId], row: u32, name: &[u8]) -> io::Result<()> {
        self.shape.add(shared, tokens, name.len());
        // Each is less than 2^32: that many tokens or bytes of a name are refused before they come here.
        let words = [shared as u32, tokens.len() as u32, row, name.len() as u32];
        self.out.write_all(bytemuck::cast_slice(&words[..3 + usize::from(self.named)]))?;
        self.out.write_all(bytemuck::cast_slice(tokens))?;
        self.out.write_all(name)
    }

    pub(super) fn finish(self) -> io::Result<Run> {
        Ok(Run { file: self.out.into_inner()?, shape: self.shape, named: self.named })
    }
}

impl Run {
    /// Returns the number of leaves.
    pub(super) fn len(&self) -> u64 {
        self.shape.leaves()
    }

    pub(super) fn has_names(&self) -> bool {
        self.named
    }

    /// Computes the levels of the nodes of these leaves.
    pub(super) fn shape(&self) -> Result<Shape, BuildError> {
        self.shape.check()?;
        Ok(self.shape.clone())
    }

    pub(super) fn read(mut self) -> io::Result<RunReader> {
        self.file.rewind()?;
        let input = BufReader::with_capacity(BUFFER, self.file);
        Ok(RunReader { input, left: self.shape.leaves(), named: self.named, leaf: RunLeaf::default() })
    }
}

impl RunReader {
    /// Reads the next leaf; `false` at the end.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        let mut words = [0u32; 4];
        self.input.read_exact(bytemuck::cast_slice_mut(&mut words[..3 + usize::from(self.named)]))?;
        let [shared, others, row, name] = words;
        let leaf = &mut self.leaf;
        (leaf.shared, leaf.row) = (shared as usize, row);
        leaf.tokens.resize(leaf.shared + others as usize, TokenId::default());
        self.input.read_exact(bytemuck::cast_slice_mut(&mut leaf.tokens[leaf.shared..]))?;
        leaf.name.resize(name as usize, 0);
        self.input.read_exact(&mut leaf.name)?;
        Ok(true)
    }
}
