//! Writes the sections of a `.ttrie` file in one pass over a run.
//!
//! Within a level nodes come in the order of the leaves, so each level of a section is written from its beginning to
//! its end.

use super::run::Run;
use super::shape::{LevelCount, Shape};
use crate::file::{Counts, Header, Kind};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use trie_core::TokenId;
use trie_core::VocabularyId;
use trie_core::storage::Sink;

/// Bytes of all buffers together, and the most and the fewest of one.
const BUFFERS: usize = 4 << 20;
const BUFFER: usize = 1 << 16;
const LEAST_BUFFER: usize = 1 << 8;

/// One level of a section: the bytes that are not yet in the file, and where they go.
struct Cursor {
    at: u64,
    waiting: Vec<u8>,
    checksum: crc32fast::Hasher,
}

/// A section whose levels grow side by side.
struct Section {
    kind: Kind,
    levels: Vec<Cursor>,
    buffer: usize,
}

impl Section {
    /// A section that begins at `begin`, with levels of so many bytes.
    fn new(header: &mut Header, kind: Kind, levels: impl Iterator<Item = u64>, buffer: usize) -> Self {
        let mut at = header.slot(kind).map_or(0, |(begin, _)| begin as u64);
        let cursor = |bytes| {
            let begin = at;
            at += bytes;
            Cursor { at: begin, waiting: Vec::new(), checksum: crc32fast::Hasher::new() }
        };
        Self { kind, levels: levels.map(cursor).collect(), buffer }
    }

    fn word(&mut self, file: &mut File, level: usize, word: u32) -> io::Result<()> {
        self.bytes(file, level, &word.to_le_bytes())
    }

    #[inline]
    fn bytes(&mut self, file: &mut File, level: usize, bytes: &[u8]) -> io::Result<()> {
        let cursor = &mut self.levels[level];
        cursor.waiting.extend_from_slice(bytes);
        if cursor.waiting.len() >= self.buffer { cursor.flush(file) } else { Ok(()) }
    }

    /// Writes the remaining bytes, and stores the checksum.
    fn finish(mut self, file: &mut File, header: &mut Header) -> io::Result<()> {
        let mut all = crc32fast::Hasher::new();
        for cursor in &mut self.levels {
            cursor.flush(file)?;
            all.combine(&cursor.checksum);
        }
        if let Some((_, checksum)) = header.slot(self.kind) {
            *checksum = all.finalize();
        }
        Ok(())
    }
}

impl Cursor {
    fn flush(&mut self, file: &mut File) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.at))?;
        file.write_all(&self.waiting)?;
        self.checksum.update(&self.waiting);
        self.at += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// The sections of a set on their way into a file.
struct FileSink<'a> {
    file: &'a mut File,
    tokens: Section,
    first_child: Section,
    inner_terminals: Section,
    /// The node of each leaf and the leaves by node, where the leaves are not the last nodes.
    table: Option<[Section; 2]>,
    /// No node from here on has children.
    after_parents: u32,
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn node(&mut self, level: usize, node: u32, token: TokenId, first_child: Option<u32>) -> io::Result<()> {
        self.tokens.word(self.file, level, token.get())?;
        match first_child.filter(|_| node < self.after_parents) {
            Some(first_child) => self.first_child.word(self.file, level, first_child),
            None => Ok(()),
        }
    }

    fn end(&mut self, level: usize, leaf: u32, node: u32, _: u32) -> io::Result<()> {
        let Some([nodes, by_node]) = &mut self.table else { return Ok(()) };
        nodes.word(self.file, 0, node)?;
        by_node.word(self.file, level, leaf)
    }

    fn inner_terminal(&mut self, level: usize, node: u32) -> io::Result<()> {
        self.inner_terminals.word(self.file, level, node)
    }
}

/// Writes the leaves of `run`, whose shape is `shape`, into an empty file. `origin` is told the row of each.
pub(super) fn write(
    run: Run,
    shape: &Shape,
    vocabulary: Option<VocabularyId<'_>>,
    file: &mut File,
    mut origin: impl FnMut(u32),
) -> io::Result<()> {
    if cfg!(target_endian = "big") {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "files are written on little-endian machines only"));
    }
    let (levels, last, named) = (shape.levels(), shape.max_depth() as usize, run.has_names());
    let table = !shape.leaves_are_last();
    let fingerprint = vocabulary.and_then(|vocabulary| vocabulary.fingerprint);
    let mut header = layout(shape, table, named, vocabulary);
    file.set_len(header.end())?;

    let buffer = (BUFFERS / (4 * levels.len())).clamp(LEAST_BUFFER, BUFFER);
    let mut section = |kind, words: fn(&LevelCount) -> u64| {
        Section::new(&mut header, kind, levels.iter().map(|level| 4 * words(level)), buffer)
    };
    let tokens = section(Kind::Tokens, |level| level.nodes);
    // Its last level is cut off after the last parent, but nothing comes behind that.
    let first_child = section(Kind::FirstChild, |level| level.nodes);
    let inner_terminals = section(Kind::InnerTerminals, |level| level.inner);
    let by_node = section(Kind::LeavesByNode, |level| level.leaves);
    let mut alone = |kind| Section::new(&mut header, kind, [0].into_iter(), BUFFER);
    let table = table.then(|| [alone(Kind::LeafNodes), by_node]);
    let [mut name_text, mut name_ends] = [Kind::NameText, Kind::NameEnds].map(alone);

    let mut cursors = shape.cursors();
    let after_parents = cursors.nodes[last - 1] + levels[last - 1].parents as u32;
    let mut sink = FileSink { file, tokens, first_child, inner_terminals, table, after_parents };
    sink.tokens.word(sink.file, 0, 0)?;
    sink.first_child.word(sink.file, 0, 1)?;
    let mut name_bytes = 0;
    let mut reader = run.read()?;
    while reader.advance()? {
        let read = &reader.leaf;
        cursors.push(read.shared, &read.tokens[read.shared..], &mut sink)?;
        if named {
            name_bytes += read.name.len() as u32;
            name_text.bytes(sink.file, 0, &read.name)?;
            name_ends.word(sink.file, 0, name_bytes)?;
        }
        origin(read.row);
    }
    sink.first_child.word(sink.file, last - 1, shape.node_count())?;
    let FileSink { file, tokens, first_child, inner_terminals, table, .. } = sink;
    let sections = [tokens, first_child, inner_terminals, name_text, name_ends];
    for section in sections.into_iter().chain(table.into_iter().flatten()) {
        section.finish(file, &mut header)?;
    }
    if let Some(text) = fingerprint {
        let mut section = Section::new(&mut header, Kind::Fingerprint, [0].into_iter(), BUFFER);
        section.bytes(file, 0, text.as_bytes())?;
        section.finish(file, &mut header)?;
    }
    file.rewind()?;
    file.write_all(&header.to_bytes())
}

/// Computes the position of every section.
fn layout(shape: &Shape, table: bool, named: bool, vocabulary: Option<VocabularyId<'_>>) -> Header {
    let (leaves, nodes) = (shape.leaf_count() as usize, shape.node_count() as usize);
    let (levels, last) = (shape.levels(), shape.max_depth() as usize);
    let before: u64 = levels[..last - 1].iter().map(|level| level.nodes).sum();
    let inner: u64 = levels.iter().map(|level| level.inner).sum();
    let mut lengths = vec![
        (Kind::Tokens, 4 * nodes),
        (Kind::FirstChild, 4 * (before + levels[last - 1].parents + 1) as usize),
        (Kind::InnerTerminals, 4 * inner as usize),
    ];
    if table {
        lengths.extend([(Kind::LeafNodes, 4 * leaves), (Kind::LeavesByNode, 4 * leaves)]);
    }
    if named {
        lengths.extend([(Kind::NameText, shape.name_bytes()), (Kind::NameEnds, 4 * leaves)]);
    }
    let fingerprint = vocabulary.and_then(|vocabulary| vocabulary.fingerprint);
    lengths.extend(fingerprint.map(|text| (Kind::Fingerprint, text.len())));
    let counts = Counts {
        leaves: shape.leaf_count(),
        nodes: shape.node_count(),
        max_token: shape.max_token().get(),
        max_depth: shape.max_depth(),
        n_vocab: vocabulary.map_or(0, VocabularyId::stored_size),
    };
    Header::layout(counts, lengths.into_iter())
}
