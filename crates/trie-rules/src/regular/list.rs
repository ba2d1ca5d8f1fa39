//! A list of texts as a trie over bytes: sorted texts, with a node wherever texts diverge.

use super::RegularError;
use std::mem::size_of;
use std::sync::Arc;
use trie_core::shared_prefix;

/// Texts in the order of their bytes. A million of them are sorted once; nothing is determinised.
#[derive(PartialEq, Eq)]
pub(super) struct List {
    /// Bytes of all texts, one after the other.
    bytes: Vec<u8>,
    /// Start of each text; one more than texts.
    begins: Vec<u32>,
    /// First index of each text in the input.
    given: Vec<u32>,
    /// Number of texts in the input, duplicates included.
    offered: usize,
    /// Breadth first: the children of each stand together, after those of the node before. One more than nodes.
    nodes: Vec<Node>,
    /// The byte that leads to each node.
    reached_by: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Node {
    /// The first text under it: the one that ends here, if one does.
    text: u32,
    /// Length of the prefix that all texts under it share.
    shared: u32,
    /// Number of its first child.
    children: u32,
}

/// A place in a list: a node, and how many bytes were read. Bytes that all texts of a node share are read inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) node: u32,
    pub(super) depth: u32,
}

impl List {
    /// Texts, and then those of other lists, in the order in which those were given. `None` without any. Each text
    /// counts once.
    pub(super) fn new<T: AsRef<[u8]>>(texts: &[T], lists: &[Arc<Self>]) -> Result<Option<Self>, RegularError> {
        let mut offered = texts.len();
        let own = texts.iter().map(AsRef::as_ref).enumerate();
        let others = lists.iter().flat_map(|list| {
            let before = offered;
            offered += list.offered;
            list.texts().map(move |(text, given)| (before + given, text))
        });
        let rows: Vec<(usize, &[u8])> = own.chain(others).collect();
        let total: usize = rows.iter().map(|(_, text)| text.len()).sum();
        if u32::try_from(total).is_err() || u32::try_from(2 * offered).is_err() {
            return Err(RegularError::ListTooLong { texts: offered, bytes: total });
        }
        // Eight bytes beside the address: most texts are told apart without being read.
        let key = |text: &[u8]| {
            let mut first = [0; 8];
            let length = text.len().min(8);
            first[..length].copy_from_slice(&text[..length]);
            u64::from_be_bytes(first)
        };
        let mut rows: Vec<(u64, &[u8], u32)> =
            rows.into_iter().map(|(given, text)| (key(text), text, given as u32)).collect();
        rows.sort_unstable();
        rows.dedup_by_key(|(_, text, _)| *text);
        if rows.is_empty() {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(rows.iter().map(|(_, text, _)| text.len()).sum());
        let (mut begins, mut given) = (vec![0], Vec::with_capacity(rows.len()));
        for (_, text, number) in rows {
            bytes.extend_from_slice(text);
            begins.push(bytes.len() as u32);
            given.push(number);
        }
        let mut list = Self { bytes, begins, given, offered, nodes: Vec::new(), reached_by: vec![0] };
        list.part();
        Ok(Some(list))
    }

    /// Finds where texts part.
    fn part(&mut self) {
        let texts = self.given.len() as u32;
        // The texts under each node that waits, and how many bytes are known to be shared.
        let mut waiting = std::collections::VecDeque::from([(0, texts, 0)]);
        let mut found = 1;
        while let Some((first, end, known)) = waiting.pop_front() {
            let shared = self.common(first, end - 1, known);
            self.nodes.push(Node { text: first, shared, children: found });
            let mut from = first + u32::from(self.text(first).len() == shared as usize);
            while from < end {
                let byte = self.text(from)[shared as usize];
                let to = self.end_of(from, end, shared as usize, byte);
                self.reached_by.push(byte);
                waiting.push_back((from, to, shared + 1));
                found += 1;
                from = to;
            }
        }
        self.nodes.push(Node { text: texts, shared: 0, children: found });
        self.nodes.shrink_to_fit();
        self.reached_by.shrink_to_fit();
    }

    fn common(&self, one: u32, other: u32, known: u32) -> u32 {
        let (one, other) = (&self.text(one)[known as usize..], &self.text(other)[known as usize..]);
        known + shared_prefix(one, other) as u32
    }

    /// Behind the last text from `from` on that has this byte at a place: in steps that double, then halve.
    fn end_of(&self, from: u32, end: u32, at: usize, byte: u8) -> u32 {
        let has = |text: u32| self.text(text)[at] == byte;
        let (mut known, mut step) = (from, 1);
        while known + step < end && has(known + step) {
            known += step;
            step *= 2;
        }
        let mut beyond = end.min(known + step);
        while known + 1 < beyond {
            let middle = known.midpoint(beyond);
            if has(middle) { known = middle } else { beyond = middle }
        }
        beyond
    }

    fn text(&self, number: u32) -> &[u8] {
        &self.bytes[self.begins[number as usize] as usize..self.begins[number as usize + 1] as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.given.len()
    }

    pub(super) fn nbytes(&self) -> usize {
        self.bytes.len()
            + self.reached_by.len()
            + size_of::<u32>() * (self.begins.len() + self.given.len())
            + size_of::<Node>() * self.nodes.len()
    }

    /// Bytes of all texts.
    pub(super) fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The texts in the order of their bytes, and where each stood first.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&[u8], usize)> {
        (0..self.given.len()).map(|number| (self.text(number as u32), self.given[number] as usize))
    }

    /// Before the first byte.
    #[allow(clippy::unused_self)]
    pub(super) fn start(&self) -> Place {
        Place { node: 0, depth: 0 }
    }

    #[inline]
    pub(super) fn step(&self, at: Place, byte: u8) -> Option<Place> {
        let [node, behind] = [self.nodes[at.node as usize], self.nodes[at.node as usize + 1]];
        let depth = at.depth + 1;
        if at.depth < node.shared {
            let own = self.bytes[(self.begins[node.text as usize] + at.depth) as usize];
            return (own == byte).then_some(Place { node: at.node, depth });
        }
        let children = &self.reached_by[node.children as usize..behind.children as usize];
        let child = children.binary_search(&byte).ok()?;
        Some(Place { node: node.children + child as u32, depth })
    }

    #[inline]
    pub(super) fn is_end(&self, at: Place) -> bool {
        let text = self.nodes[at.node as usize].text as usize;
        self.begins[text + 1] - self.begins[text] == at.depth
    }

    /// Returns the first index, in the input, of the text that ends here.
    pub(super) fn entry(&self, at: Place) -> Option<usize> {
        self.is_end(at).then(|| self.given[self.nodes[at.node as usize].text as usize] as usize)
    }
}
