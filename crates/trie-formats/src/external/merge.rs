//! Several runs into one.

use super::run::{Run, RunLeaf, RunReader, RunWriter};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::Path;
use trie_core::shared_length;

/// A run that is being read; the one with the smallest leaf is the greatest.
struct Head(RunReader);

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.leaf.tokens.cmp(&self.0.leaf.tokens)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

/// The leaves of all runs, each sequence once: with its first row and its smallest name.
pub(super) fn merge(runs: Vec<Run>, folder: &Path) -> io::Result<Run> {
    let mut writer = RunWriter::new(folder, runs.iter().any(Run::has_names))?;
    let mut heads = BinaryHeap::with_capacity(runs.len());
    for run in runs {
        let mut reader = run.read()?;
        if reader.advance()? {
            heads.push(Head(reader));
        }
    }
    // The leaf that goes out next, with what it shares with the one that went before it.
    let mut waiting = RunLeaf::default();
    while let Some(mut head) = heads.peek_mut() {
        let leaf = &mut head.0.leaf;
        let shared = shared_length(&waiting.tokens, &leaf.tokens);
        if shared == leaf.tokens.len() && shared == waiting.tokens.len() {
            waiting.row = waiting.row.min(leaf.row);
            if leaf.name < waiting.name {
                std::mem::swap(&mut leaf.name, &mut waiting.name);
            }
        } else {
            write(&mut writer, &waiting)?;
            waiting.shared = shared;
            waiting.tokens.truncate(shared);
            waiting.tokens.extend_from_slice(&leaf.tokens[shared..]);
            waiting.row = leaf.row;
            std::mem::swap(&mut leaf.name, &mut waiting.name);
        }
        if !head.0.advance()? {
            PeekMut::pop(head);
        }
    }
    write(&mut writer, &waiting)?;
    writer.finish()
}

/// Writes a leaf. A leaf without tokens is not written: it stands for the start, before the first leaf.
fn write(writer: &mut RunWriter, leaf: &RunLeaf) -> io::Result<()> {
    if leaf.tokens.is_empty() {
        return Ok(());
    }
    writer.push_bytes(leaf.shared, &leaf.tokens[leaf.shared..], leaf.row, &leaf.name)
}
